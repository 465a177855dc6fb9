#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small graphs whose right results are known without a reference.

  small_graphs.py --novac NOVAC

repeated  a value that is an output several times, alone, beside others, beside an
          update of an input, or an input itself: every place gets it
lengths   bfloat16 vectors of every length around those of vector registers,
          halved (which is exact), cast to float32 and back
nothing   what is made of no elements: reductions, products, running sums, scatters
          and gathers along an extent of 0, on the CPU and by simulation of a GPU,
          where a read of one element that is not there is a fault
gathered  rows less one element of theirs that an index names, of what is computed from
          memory alone and of what a reduction takes part in, on the CPU and by
          simulation of a GPU
running   running sums of rows and columns, short and long, on the CPU and by
          simulation of a GPU; no candidate of theirs spills
"""
import argparse
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile


def read(path):
    """{name: bytes} of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


def write(path, tensors):
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def node(name, op, args, dtype, shape):
    return {"name": name, "op": op, "args": args, "results": [{"dtype": dtype, "shape": shape}]}


def run(novac, folder, name, inputs, nodes, outputs, tensors):
    """The outputs of one step on the CPU."""
    graph = {"format": "nova.graph", "version": 1, "name": name, "producer": {}, "inputs": inputs, "constants": [],
             "nodes": nodes, "outputs": outputs}
    (folder / "graph.json").write_text(json.dumps(graph))
    write(folder / "in.safetensors", tensors)
    bundle = folder / "step.nova"
    for command in (["compile", folder / "graph.json", "--target", "host", "--no-cache", "-o", bundle],
                    ["run", bundle, "--device", "host", "--data", folder / "in.safetensors", "--out", folder / "out.safetensors"]):
        done = subprocess.run([novac, *map(str, command)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: novac {command[0]} ended with {done.returncode}\n{done.stderr}")
    return read(folder / "out.safetensors")


def judge(novac, folder, what, compiling=(), verifying=()):
    """graph.json gives what in.safetensors says, on the CPU and by simulation of a GPU."""
    bundle, data = folder / "step.nova", ["--data", folder / "in.safetensors", *verifying]
    for command in (["compile", folder / "graph.json", "--target", "sm_80,host", *compiling, "--no-cache", "-o", bundle],
                    ["verify", bundle, "--device", "host", *data], ["verify", bundle, "--simulate", *data]):
        done = subprocess.run([novac, *map(str, command)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{what}: novac {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")


def repeated(novac, folder):
    n = 37
    x = struct.pack(f"<{n}f", *range(-10, n - 10))
    twice = struct.pack(f"<{n}f", *(2 * i for i in range(-10, n - 10)))
    count = 0
    for update in (False, True):
        for places in (["v"], ["v", "v"], ["v"] * 3, ["v"] * 5, ["x", "v", "x", "x"], ["x", "x", "v", "v", "v", "x"],
                       ["w", "v", "w", "v", "w"]):
            # w is v computed a second time.
            inputs = [{"name": "x", "role": "parameter", "path": "x", "dtype": "float32", "shape": [n]}]
            nodes = [node(k, "aten.add.Tensor", [{"ref": "x"}, {"ref": "x"}], "float32", [n]) for k in ("v", "w")]
            outputs = [{"ref": place, "role": "output"} for place in places]
            if update:
                outputs.insert(1, {"ref": "v", "role": "update", "updates": "x"})
            results = run(novac, folder, "repeated", inputs, nodes, outputs, {"in/x": ("F32", [n], x)})
            for i, output in enumerate(outputs):
                expected = x if output["ref"] == "x" else twice
                got = results.get(f"out/{i}", results.get("in/x") if output["role"] == "update" else None)
                if got != expected:
                    sys.exit(f"repeated: outputs {places}, update {update}: output {i} is not {output['ref']}")
                count += 1
    return count


def lengths(novac, folder):
    sizes = sorted({*range(1, 20), *(k + d for k in (24, 32, 48, 64, 96, 128, 256) for d in (-1, 0, 1))})
    for n in sizes:
        values = [struct.unpack("<H", struct.pack("<f", float(i - n // 2))[2:])[0] for i in range(n)]
        halves = [struct.unpack("<H", struct.pack("<f", (i - n // 2) / 2)[2:])[0] for i in range(n)]
        inputs = [{"name": "x", "role": "input", "path": "x", "dtype": "bfloat16", "shape": [n]}]
        nodes = [node("h", "aten.mul.Tensor", [{"ref": "x"}, 0.5], "bfloat16", [n]),
                 node("wide", "aten._to_copy.default", [{"ref": "x"}], "float32", [n]),
                 node("narrow", "aten._to_copy.default", [{"ref": "wide"}], "bfloat16", [n])]
        nodes[1]["kwargs"] = {"dtype": {"dtype": "float32"}}
        nodes[2]["kwargs"] = {"dtype": {"dtype": "bfloat16"}}
        results = run(novac, folder, f"lengths_{n}", inputs, nodes,
                      [{"ref": "h", "role": "output"}, {"ref": "narrow", "role": "output"}],
                      {"in/x": ("BF16", [n], struct.pack(f"<{n}H", *values))})
        for i, expected in enumerate((halves, values)):
            if results[f"out/{i}"] != struct.pack(f"<{n}H", *expected):
                sys.exit(f"lengths: {n} elements, output {i} is wrong")
    return len(sizes)


def nothing(novac, folder):
    def of(name, op, args, shape, value, dtype="float32", **kwargs):
        made = node(name, op, args, dtype, shape)
        if kwargs:
            made["kwargs"] = kwargs
        return made, value

    x = lambda name: {"ref": name}
    nan = float("nan")
    inputs = {"a": [0, 7], "b": [5, 0], "c": [0, 6], "e": [0], "table": [10, 7], "p": [3, 0, 4], "q": [3, 4, 0], "w": [3, 0]}
    cases = [
        of("sum0", "aten.sum.dim_IntList", [x("a"), [0]], [7], 0.0),
        of("sum1", "aten.sum.dim_IntList", [x("a"), [1]], [0], 0.0),
        of("sums", "aten.sum.default", [x("e")], [], 0.0),
        of("mean", "aten.mean.dim", [x("b"), [1], True], [5, 1], nan),
        of("softmax", "aten._softmax.default", [x("b"), 1, False], [5, 0], 0.0),
        of("columns", "aten._softmax.default", [x("a"), 0, False], [0, 7], 0.0),
        of("logs", "aten._log_softmax.default", [x("b"), 1, False], [5, 0], 0.0),
        of("mm", "aten.mm.default", [x("b"), x("c")], [5, 6], 0.0),
        of("large", "aten.mm.default", [x("w"), x("c")], [3, 6], 0.0),
        of("inner", "aten.bmm.default", [x("q"), x("p")], [3, 4, 4], 0.0),
        of("outer", "aten.bmm.default", [x("p"), x("q")], [3, 0, 0], 0.0),
        of("running", "aten.cumsum.default", [x("b"), 1], [5, 0], 0.0),
        of("rows", "aten.embedding.default", [x("table"), x("i"), -1], [0, 7], 0.0),
        of("back", "aten.embedding_dense_backward.default", [x("a"), x("i"), 10, -1, False], [10, 7], 0.0),
        of("scattered", "aten.scatter_add.default", [x("table"), 0, x("j"), x("a")], [10, 7], 1.0),
        of("narrow", "aten.scatter_add.default", [x("table"), 0, x("k"), x("b")], [10, 7], 1.0),
        # Not nothing, but less than there is to write to.
        of("part", "aten.scatter_add.default", [x("table"), 0, x("l"), x("d")], [10, 7],
           [6.0 if row == 1 and column < 3 else 1.0 for row in range(10) for column in range(7)]),
        of("norm", "aten.native_layer_norm.default", [x("w"), [0], None, None, 1e-5], [3, 0], 0.0),
    ]
    count = 0
    for made, value in cases:
        used = [a["ref"] for a in made["args"] if isinstance(a, dict)]
        shapes = inputs | {"i": [0], "j": [0, 7], "k": [5, 0], "l": [5, 3], "d": [5, 3]}
        # Beside it a gradient that is not nothing: `verify` wants one.
        given = [{"name": n, "role": "input", "path": n, "dtype": "int64" if n in "ijkl" else "float32", "shape": shapes[n]}
                 for n in dict.fromkeys(used)]
        given.append({"name": "one", "role": "parameter", "path": "one", "dtype": "float32", "shape": [1]})
        if made["name"] == "norm":
            made["results"] += [{"dtype": "float32", "shape": [3, 1]}] * 2
        nodes = [made, node("two", "aten.add.Tensor", [x("one"), x("one")], "float32", [1])]
        graph = {"format": "nova.graph", "version": 1, "name": made["name"], "producer": {}, "inputs": given, "constants": [],
                 "nodes": nodes, "outputs": [{"ref": made["name"], "role": "output"}, {"ref": "two", "role": "gradient"}]}
        (folder / "graph.json").write_text(json.dumps(graph))

        def tensor(shape, value, dtype="F32"):
            size = 1
            for extent in shape:
                size *= extent
            values = value if isinstance(value, list) else [value] * size
            return dtype, shape, struct.pack(f"<{size}{'q' if dtype == 'I64' else 'f'}", *values)

        data = {f"in/{e['name']}": tensor(e["shape"], 1, "I64" if e["dtype"] == "int64" else "F32") for e in given}
        data |= {"out/0": tensor(made["results"][0]["shape"], value), "out/1": tensor([1], 2.0)}
        write(folder / "in.safetensors", data)
        for precision in ("f32", "tf32"):
            judge(novac, folder, f"nothing: {made['name']}", ["--precision", precision])
        count += 1
    return count


def gathered(novac, folder):
    rows, columns = 6, 333
    values = [[(7 * i + 5 * j) % 11 - 5 for j in range(columns)] for i in range(rows)]
    places = [(100 * i + 3) % columns for i in range(rows)]
    short = lambda v: struct.unpack("<H", struct.pack("<f", v)[2:])[0]
    for dtype in ("float32", "bfloat16"):
        for reduced in (False, True):
            shape, one = [rows, columns], [rows, 1]
            nodes = [node("wide", "aten._to_copy.default", [{"ref": "x"}], "float32", shape) | {"kwargs": {"dtype": {"dtype": "float32"}}}]
            if reduced:
                nodes += [node("most", "aten.amax.default", [{"ref": "wide"}, [1], True], "float32", one),
                          node("y", "aten.sub.Tensor", [{"ref": "wide"}, {"ref": "most"}], "float32", shape)]
            else:
                nodes += [node("y", "aten.mul.Tensor", [{"ref": "wide"}, 3.0], "float32", shape)]
            nodes += [node("sum", "aten.sum.dim_IntList", [{"ref": "y"}, [1], True], "float32", one),
                      node("element", "aten.gather.default", [{"ref": "y"}, 1, {"ref": "i"}], "float32", one),
                      node("rest", "aten.sub.Tensor", [{"ref": "sum"}, {"ref": "element"}], "float32", one)]
            graph = {"format": "nova.graph", "version": 1, "name": "gathered", "producer": {}, "constants": [],
                     "inputs": [{"name": "x", "role": "input", "path": "x", "dtype": dtype, "shape": shape},
                                {"name": "i", "role": "input", "path": "i", "dtype": "int64", "shape": one}],
                     "nodes": nodes, "outputs": [{"ref": "rest", "role": "gradient"}]}
            (folder / "graph.json").write_text(json.dumps(graph))
            made = [[v - max(row) if reduced else 3 * v for v in row] for row in values]
            flat = [v for row in values for v in row]
            data = struct.pack(f"<{len(flat)}f", *flat) if dtype == "float32" else struct.pack(f"<{len(flat)}H", *map(short, flat))
            write(folder / "in.safetensors", {"in/x": ("F32" if dtype == "float32" else "BF16", shape, data),
                                              "in/i": ("I64", one, struct.pack(f"<{rows}q", *places)),
                                              "out/0": ("F32", one, struct.pack(f"<{rows}f", *(sum(row) - row[at] for row, at in zip(made, places))))})
            judge(novac, folder, f"gathered: {dtype}{' less its maximum' if reduced else ''}", verifying=["--tolerance", "1e-9"])
    return 4


def running(novac, folder):
    def sums(values, shape, dim):
        values, inner = list(values), math.prod(shape[dim + 1:])
        for i in range(len(values)):
            if i // inner % shape[dim]:
                values[i] += values[i - inner]
        return values

    shapes = [([2, 257], 1), ([1, 4096], 1), ([3, 50257], 1), ([7, 513], 0), ([300, 40], 0), ([5, 96, 33], 1), ([4, 7, 1536], 2),
              ([1], 0), ([33], 0), ([100000], 0)]
    types = {"float32": ("F32", "f"), "int64": ("I64", "q"), "int32": ("I32", "i"), "bfloat16": ("BF16", "H")}
    short = lambda values: [struct.unpack("<H", struct.pack("<f", v)[2:])[0] for v in values]
    for number, (shape, dim) in enumerate(shapes):
        for dtype in ("float32", list(types)[1 + number % 3]):
            # Sums stay small: exact in every type.
            values = [(i * 7) % 5 - 2 for i in range(math.prod(shape))]
            wide = dtype != "bfloat16" and dtype.startswith("int")
            result = "int64" if wide else dtype
            graph = {"format": "nova.graph", "version": 1, "name": "running", "producer": {}, "constants": [],
                     "inputs": [{"name": "x", "role": "input", "path": "x", "dtype": dtype, "shape": shape}],
                     "nodes": [node("s", "aten.cumsum.default", [{"ref": "x"}, dim], result, shape)],
                     "outputs": [{"ref": "s", "role": "gradient"}]}
            (folder / "graph.json").write_text(json.dumps(graph))
            tensor = lambda dtype, values: (types[dtype][0], shape, struct.pack(
                f"<{len(values)}{types[dtype][1]}", *(short(values) if dtype == "bfloat16" else values)))
            write(folder / "in.safetensors", {"in/x": tensor(dtype, values), "out/0": tensor(result, sums(values, shape, dim))})
            judge(novac, folder, f"running: {dtype} {shape} along {dim}", verifying=["--tolerance", "1e-9"])
            for kernel in json.loads((folder / "step.nova/manifest.json").read_text())["targets"][0]["kernels"]:
                troubles = [c["why"] for c in kernel["schedule"]["candidates"] if "why" in c]
                if kernel["spill_bytes"] or troubles:
                    sys.exit(f"running: {dtype} {shape} along {dim}: {kernel['spill_bytes']} bytes spilled, {troubles}")
    return len(shapes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    novac = os.path.abspath(parser.parse_args().novac)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(f"{repeated(novac, folder)} places, {lengths(novac, folder)} lengths, "
              f"{nothing(novac, folder)} graphs of nothing, "
              f"{gathered(novac, folder)} graphs of gathered elements, {running(novac, folder)} running sums")


if __name__ == "__main__":
    main()
