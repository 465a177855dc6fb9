#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws training-step-like graphs at random, compiles each with and without
fusion, runs two steps of both on the same inputs and compares every output.

Fusion, layouts, recomputation, in-place updates and the arena differ between
the two; the numbers may not (but for the order of sums).

  random_graphs.py --novac NOVAC [--count N] [--seed S]
"""
import argparse
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile


class Draw:
    """One random graph. Values are (name, shape); all stay within a few units, and
    a norm's eps is large enough that rounding is not amplified."""

    def __init__(self, rng):
        self.rng, self.nodes, self.values = rng, [], []
        self.inputs = []
        dims = [rng.choice([1, 2, 3, 4, 5, 7, 8, 16, 17, 33]) for _ in range(3)]
        self.shapes = [dims, dims[1:], [dims[0], dims[2]], [dims[2]], [dims[1], dims[1]]]
        for i in range(rng.randint(3, 6)):
            shape = list(rng.choice(self.shapes))
            entry = {"name": f"p{i}", "role": "parameter", "path": f"p{i}", "dtype": "float32", "shape": shape}
            if len(shape) > 1 and rng.random() < 0.2:  # lies transposed in memory
                strides = [1] * len(shape)
                for d in range(1, len(shape)):
                    strides[d] = strides[d - 1] * max(shape[d - 1], 1)
                entry["strides"] = strides
            self.inputs.append(entry)
            self.values.append((entry["name"], tuple(shape)))
        self.inputs.append({"name": "lr", "role": "scalar", "path": "lr", "dtype": "float32", "shape": []})

    def node(self, op, args, shape, dtype="float32", kwargs=None, keep=True):
        name = f"n{len(self.nodes)}"
        entry = {"name": name, "op": op, "args": args, "results": [{"dtype": dtype, "shape": list(shape)}]}
        if kwargs:
            entry["kwargs"] = kwargs
        self.nodes.append(entry)
        if keep:
            self.values.append((name, tuple(shape)))
        return name

    def pick(self, test=lambda shape: True):
        found = [v for v in self.values if test(v[1])]
        # Late values more often: depth.
        return self.rng.choice(found[-6:] if found and self.rng.random() < 0.7 else found) if found else None

    def grow(self):
        rng = self.rng
        kind = rng.choice(["unary", "binary", "binary", "scale", "row", "softmax", "norm", "column", "matmul", "view",
                           "view", "slice", "cat", "where", "expand"])
        ref = lambda v: {"ref": v[0]}
        x = self.pick(lambda s: len(s) >= 1)
        shape = list(x[1])
        if kind == "unary":
            self.node(rng.choice(["aten.tanh.default", "aten.neg.default", "aten.relu.default", "aten.sigmoid.default"]),
                      [ref(x)], shape)
        elif kind == "scale":
            self.node("aten.mul.Tensor", [ref(x), round(rng.uniform(-1, 1), 3)], shape)
        elif kind == "binary":
            y = self.pick(lambda s: s == x[1] or (len(s) <= len(x[1]) and tuple(x[1][len(x[1]) - len(s):]) == s))
            op = rng.choice(["aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.maximum.default"])
            name = self.node(op, [ref(x), ref(y)], shape, keep=False)
            self.node("aten.tanh.default", [{"ref": name}], shape)  # bounded
        elif kind == "row":
            keep = rng.random() < 0.5
            dim = rng.randrange(len(shape))
            out = shape[:dim] + ([1] if keep else []) + shape[dim + 1:]
            name = self.node("aten.sum.dim_IntList", [ref(x), [dim - (len(shape) if rng.random() < .5 else 0)], keep],
                             out, keep=False)
            self.node("aten.mul.Tensor", [{"ref": name}, 1.0 / max(shape[dim], 1)], out)
        elif kind == "softmax":
            self.node("aten._softmax.default", [ref(x), rng.randrange(len(shape)), False], shape)
        elif kind == "norm" and shape[-1] > 1:
            name = f"n{len(self.nodes)}"
            stats = shape[:-1] + [1]
            self.nodes.append({"name": name, "op": "aten.native_layer_norm.default",
                               "args": [ref(x), [shape[-1]], None, None, 0.1],
                               "results": [{"dtype": "float32", "shape": s} for s in (shape, stats, stats)]})
            self.values.append((name, tuple(shape)))
        elif kind == "column":
            name = self.node("aten.sum.dim_IntList", [ref(x), list(range(len(shape) - 1)) or [0]],
                             shape[-1:] if len(shape) > 1 else [], keep=False)
            self.node("aten.tanh.default", [{"ref": name}], shape[-1:] if len(shape) > 1 else [])
        elif kind == "matmul":
            a = self.pick(lambda s: len(s) == 2)
            b = a and self.pick(lambda s: len(s) == 2 and s[0] == a[1][1])
            if b:
                name = self.node("aten.mm.default", [ref(a), ref(b)], [a[1][0], b[1][1]], keep=False)
                self.node("aten.mul.Tensor", [{"ref": name}, 1.0 / max(a[1][1], 1)], [a[1][0], b[1][1]])
        elif kind == "view":
            perm = list(range(len(shape)))
            rng.shuffle(perm)
            moved = [shape[p] for p in perm]
            name = self.node("aten.permute.default", [ref(x), perm], moved)
            if rng.random() < 0.6:
                flat = rng.choice([[math.prod(moved)], moved + [1], [moved[0], math.prod(moved[1:])]])
                op = "aten.reshape.default"
                self.node(op, [{"ref": name}, flat], flat)
        elif kind == "slice":
            dim = rng.randrange(len(shape))
            if shape[dim] > 1:
                start = rng.randrange(shape[dim])
                step = rng.choice([1, 1, 2])
                shape[dim] = len(range(start, x[1][dim], step))
                self.node("aten.slice.Tensor", [ref(x), dim, start, 9223372036854775807, step], shape)
        elif kind == "cat":
            dim = rng.randrange(len(shape))
            y = self.pick(lambda s: len(s) == len(shape) and all(i == dim or a == b for i, (a, b) in enumerate(zip(s, shape))))
            shape[dim] += y[1][dim]
            if shape[dim] < 200:
                self.node("aten.cat.default", [[ref(x), ref(y)], dim], shape)
        elif kind == "where":
            y = self.pick(lambda s: s == x[1])
            mask = self.node("aten.gt.Scalar", [ref(x), 0.05], shape, "bool", keep=False)
            self.node("aten.where.self", [{"ref": mask}, ref(y), ref(x)], shape)
        elif kind == "expand" and math.prod(shape) < 2000:
            self.node("aten.expand.default", [ref(x), [3] + shape], [3] + shape)

    def graph(self, size):
        while len(self.nodes) < size:
            self.grow()
        outputs = []
        for entry in self.inputs:
            if entry["role"] != "parameter" or self.rng.random() < 0.3:
                continue
            g = self.pick(lambda s: s == tuple(entry["shape"]) and True)
            if g[0] == entry["name"]:
                continue
            step = self.node("aten.mul.Tensor", [{"ref": g[0]}, {"ref": "lr"}], entry["shape"], keep=False)
            new = self.node("aten.sub.Tensor", [{"ref": entry["name"]}, {"ref": step}], entry["shape"], keep=False)
            outputs.append({"ref": new, "role": "update", "updates": entry["name"]})
        for value in self.values[-4:]:
            outputs.append({"ref": value[0], "role": "output"})
        return {"format": "nova.graph", "version": 1, "name": "random", "producer": {}, "inputs": self.inputs,
                "constants": [], "nodes": self.nodes, "outputs": outputs}


def tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "F32":
            result[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return result


def run(command, cwd):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        return f"{' '.join(map(str, command))}\nexit status {done.returncode}\n{done.stderr[-1500:]}"
    return None


def check(novac, seed, keep):
    rng = random.Random(seed)
    graph = Draw(rng).graph(rng.randint(8, 45))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "g.json").write_text(json.dumps(graph))
        for kind, flags in (("fused", []), ("apart", ["--no-fusion"])):
            failure = run([novac, "compile", "g.json", "-o", kind + ".nova", "--target", "host", "--no-cache", *flags], folder) or \
                run([novac, "run", kind + ".nova", "--seed", str(seed), "--set", "lr=0.1", "--steps", "2", "--out", kind + ".safetensors"], folder)
            if failure:
                pathlib.Path(keep).write_text(json.dumps(graph))
                return failure
        fused, apart = (tensors(folder / (kind + ".safetensors")) for kind in ("fused", "apart"))
        for name, expected in apart.items():
            largest = max([abs(v) for v in expected if math.isfinite(v)], default=0.0)
            for i, (a, b) in enumerate(zip(fused[name], expected)):
                if not (a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 2e-5 * max(largest, 1.0)):
                    pathlib.Path(keep).write_text(json.dumps(graph))
                    return f"{name}[{i}]: {a} with fusion, {b} without (largest {largest})"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default=tempfile.gettempdir() + "/novac-random-graph.json", help="where a failing graph goes")
    arguments = parser.parse_args()
    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        failure = check(arguments.novac.resolve(), seed, arguments.keep)
        if failure:
            failed += 1
            print(f"seed {seed}: {failure}\ngraph kept as {arguments.keep}")
    print(f"{arguments.count - failed} of {arguments.count} random graphs agree (seeds from {arguments.seed})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
