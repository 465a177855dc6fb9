#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What PyTorch means where one could mean something else, on graphs whose results are
known without it; and graphs of the kinds that random ones were found to fail on.

  semantics.py --novac NOVAC
"""
import argparse
import math
import pathlib
import struct
import sys
import tempfile

from small_graphs import run

inf, nan = math.inf, math.nan
CODES = {"float32": ("F32", "f"), "float64": ("F64", "d"), "int64": ("I64", "q"), "int32": ("I32", "i"), "int8": ("I8", "b"),
         "uint8": ("U8", "B"), "bool": ("BOOL", "B")}


def x(name, result=0):
    return {"ref": name, "result": result} if result else {"ref": name}


def flat(values):
    return [e for v in values for e in flat(v)] if isinstance(values, list) else [values]


def shape_of(values):
    return [len(values), *shape_of(values[0])] if isinstance(values, list) and values else [0] if isinstance(values, list) else []


def number(value):
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


class Graph:
    def __init__(self, name, **inputs):
        """inputs: name=(dtype, nested values[, strides])"""
        self.name, self.inputs, self.tensors, self.nodes, self.wanted = name, [], {}, [], []
        for key, (dtype, values, *strides) in inputs.items():
            entry = {"name": key, "role": "input", "path": key, "dtype": dtype, "shape": shape_of(values)}
            if strides:
                entry["strides"] = strides[0]
            self.inputs.append(entry)
            code, letter = CODES[dtype]
            self.tensors[f"in/{key}"] = (code, entry["shape"], struct.pack(f"<{len(flat(values))}{letter}", *flat(values)))

    def node(self, op, args, *results, **kwargs):
        """results: (dtype, shape) or None; gives the node's name."""
        name = f"n{len(self.nodes)}"
        entry = {"name": name, "op": op, "args": args,
                 "results": [None if r is None else {"dtype": r[0], "shape": r[1]} for r in results]}
        if kwargs:
            entry["kwargs"] = kwargs
        self.nodes.append(entry)
        return name

    def want(self, ref, dtype, values, tolerance=0.0):
        self.wanted.append((ref, dtype, flat(values), tolerance))

    def one(self, op, args, kind, values, tolerance=0.0, **kwargs):
        self.want(x(self.node(op, args, (kind, shape_of(values)), **kwargs)), kind, values, tolerance)

    def check(self, novac, folder):
        outputs = [{**ref, "role": "output"} for ref, *_ in self.wanted]
        results = run(novac, folder, self.name, self.inputs, self.nodes, outputs, self.tensors)
        for i, (ref, dtype, values, tolerance) in enumerate(self.wanted):
            got = struct.unpack(f"<{len(values)}{CODES[dtype][1]}", results[f"out/{i}"])
            for a, b in zip(got, values):
                if not (a == b or (a != a and b != b) or abs(a - b) <= tolerance):
                    sys.exit(f"{self.name}: output {i} ({ref['ref']}): got {got}, expected {values}")
        return len(self.wanted)


def graphs():
    third = 1 / 3
    g = Graph("masks", s=("float32", [[1.0, -inf], [-inf, -inf], [-1e9, -1e9]]))
    g.one("aten._softmax.default", [x("s"), 1, False], "float32", [[1.0, 0.0], [nan, nan], [0.5, 0.5]])
    g.one("aten._safe_softmax.default", [x("s"), 1], "float32", [[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]])
    yield g

    # Attention that sees nothing gives zeros, and so do its gradients.
    q, keys = [[[[1.0, 2.0], [3.0, -1.0]]]], [[[[0.5, 1.0], [1.0, 1.0], [2.0, 0.0]]]]
    mask = [[[[-inf, -inf, -inf], [0.0, 0.0, 0.0]]]]
    g = Graph("attention", q=("float32", [[[[0.0, 0.0], [0.0, 0.0]]]]), k=("float32", keys), m=("float32", mask), g=("float32", q))
    flash = "aten._scaled_dot_product_flash_attention_for_cpu"
    n = g.node(flash + ".default", [x("q"), x("k"), x("k"), 0.0, False], ("float32", [1, 1, 2, 2]), ("float32", [1, 1, 2]),
               attn_mask=x("m"), scale=1.0)
    g.want(x(n), "float32", [0.0, 0.0, 3.5 * third, 2 * third], 1e-6)
    b = g.node(flash + "_backward.default", [x("g"), x("q"), x("k"), x("k"), x(n), x(n, 1), 0.0, False],
               *[("float32", [1, 1, e, 2]) for e in (2, 3, 3)], attn_mask=x("m"), scale=1.0)
    g.want(x(b, 2), "float32", [1.0, -third, 1.0, -third, 1.0, -third], 1e-6)
    yield g

    # Labels that are ignored; where all are, the mean is of nothing.
    logs = [[-1.0, -2.0, -4.0], [-8.0, -16.0, -32.0]]
    for labels, loss, total in (([1, -100], 2.0, 1.0), ([2, 0], 6.0, 2.0), ([-100, -100], nan, 0.0)):
        g = Graph("ignored", l=("float32", logs), t=("int64", labels))
        n = g.node("aten.nll_loss_forward.default", [x("l"), x("t"), None, 1, -100], ("float32", []), ("float32", []))
        g.want(x(n), "float32", loss)
        g.want(x(n, 1), "float32", total)
        yield g

    # Division towards either side; Python's remainder; integers divide as float32.
    g = Graph("division", i=("int64", [-7, 7, -6, 0]), j=("int32", [2, -2, 4, 3]), f=("float32", [-7.5, 7.5, 0.5, -0.5]))
    g.one("aten.div.Tensor_mode", [x("i"), 2], "int64", [-4, 3, -3, 0], rounding_mode="floor")
    g.one("aten.div.Tensor_mode", [x("i"), 2], "int64", [-3, 3, -3, 0], rounding_mode="trunc")
    g.one("aten.remainder.Scalar", [x("i"), 4], "int64", [1, 3, 2, 0])
    g.one("aten.remainder.Scalar", [x("i"), -4], "int64", [-3, -1, -2, 0])
    g.one("aten.remainder.Tensor", [x("i"), x("j")], "int64", [1, -1, 2, 0])
    g.one("aten.div.Tensor", [x("i"), x("j")], "float32", [-3.5, -3.5, -1.5, 0.0])
    g.one("aten.floor.default", [x("f")], "float32", [-8.0, 7.0, 0.0, -1.0])
    g.one("aten.ceil.default", [x("f")], "float32", [-7.0, 8.0, 1.0, 0.0])
    g.one("aten.add.Tensor", [x("i"), x("f")], "float32", [-14.5, 14.5, -5.5, -0.5])
    g.one("aten.mul.Tensor", [x("i"), 0.5], "float32", [-3.5, 3.5, -3.0, 0.0])
    yield g

    # Unsigned bytes wrap around, and are never negative.
    g = Graph("unsigned", a=("uint8", [200, 100, 0, 255]), b=("uint8", [100, 200, 1, 255]))
    g.one("aten.add.Tensor", [x("a"), x("b")], "uint8", [44, 44, 1, 254])
    g.one("aten.sub.Tensor", [x("a"), x("b")], "uint8", [100, 156, 255, 0])
    g.one("aten.gt.Tensor", [x("a"), x("b")], "bool", [1, 0, 0, 0])
    g.one("aten.maximum.default", [x("a"), x("b")], "uint8", [200, 200, 1, 255])
    g.one("aten.floor_divide.default", [x("a"), 7], "uint8", [28, 14, 0, 36])
    g.one("aten._to_copy.default", [x("a")], "float32", [200.0, 100.0, 0.0, 255.0], dtype={"dtype": "float32"})
    g.one("aten.sum.default", [x("a")], "int64", 555)
    yield g

    # NaN and infinity travel.
    g = Graph("special", v=("float32", [nan, inf, -inf, 1.0]))
    g.one("aten.relu.default", [x("v")], "float32", [nan, inf, 0.0, 1.0])
    g.one("aten.maximum.default", [x("v"), x("v")], "float32", [nan, inf, -inf, 1.0])
    g.one("aten.amax.default", [x("v"), [0]], "float32", nan)
    g.one("aten.isfinite.default", [x("v")], "bool", [0, 0, 0, 1])
    g.one("aten.floor.default", [x("v")], "float32", [nan, inf, -inf, 1.0])
    g.one("aten.sign.default", [x("v")], "float32", [0.0, 1.0, -1.0, 1.0])
    g.one("aten.log1p.default", [x("v")], "float32", [nan, inf, nan, math.log(2)], 1e-7)
    g.one("aten.expm1.default", [x("v")], "float32", [nan, inf, -1.0, math.e - 1], 2e-7)
    yield g

    # What 1 + x and e^x - 1 lose is not lost.
    tiny = [1e-8, -1e-8, 3e-5, -2e-3]
    g = Graph("small", v=("float32", tiny))
    single = [struct.unpack("<f", struct.pack("<f", v))[0] for v in tiny]
    g.one("aten.log1p.default", [x("v")], "float32", [math.log1p(v) for v in single], 5e-10)
    g.one("aten.expm1.default", [x("v")], "float32", [math.expm1(v) for v in single], 5e-10)
    yield g

    # The first block of Philox4x32-10 for counter 0 and key 0, as Salmon et al. publish it.
    words = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    g = Graph("random", seed=("int64", 0))
    n = g.node("nova.uniform", [x("seed")], ("float32", [2, 2]), stream=0)
    g.want(x(n), "float32", [(w >> 8) * 2.0 ** -24 for w in words])
    yield g
    # A negative seed is the key of all ones, and stream 2^32 - 1 with block 0 is not the published counter:
    # both give numbers in [0, 1) that differ.
    g = Graph("streams", seed=("int64", -1))
    a = g.node("nova.uniform", [x("seed")], ("float32", [4]), stream=0)
    b = g.node("nova.uniform", [x("seed")], ("float32", [4]), stream=4294967295)
    for n in (a, b):
        low = g.node("aten.ge.Scalar", [x(n), 0], ("bool", [4]))
        high = g.node("aten.lt.Scalar", [x(n), 1], ("bool", [4]))
        g.one("aten.logical_and.default", [x(low), x(high)], "bool", [1, 1, 1, 1])
    g.one("aten.eq.Tensor", [x(a), x(b)], "bool", [0, 0, 0, 0])
    yield g

    # Inputs that lie transposed, and rows of one another.
    g = Graph("strided", t=("float32", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1, 2]))
    g.one("aten.mul.Tensor", [x("t"), 2], "float32", [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]])
    g.one("aten.sum.dim_IntList", [x("t"), [0]], "float32", [5.0, 7.0, 9.0])
    yield g

    # Kinds of graphs that random ones found. A row of a value beside the value, in what would be one kernel;
    # it is read from memory.
    g = Graph("own_row", v=("float32", [[1.0, -2.0], [3.0, -4.0]]), w=("float32", [[1.0, 1.0], [1.0, 1.0]]))
    a = g.node("aten.abs.default", [x("v")], ("float32", [2, 2]))
    s = g.node("aten.add.Tensor", [x(a), 1.0], ("float32", [2, 2]))
    d = g.node("aten.div.Tensor", [x("w"), x(s)], ("float32", [2, 2]))
    e = g.node("aten.add.Tensor", [x("w"), x(d)], ("float32", [2, 2]))
    row = g.node("aten.select.int", [x(s), 0, -1], ("float32", [2]))
    p = g.node("aten.mul.Tensor", [x(a), x(row)], ("float32", [2, 2]))
    m = g.node("aten.ne.Tensor", [x(p), x(p)], ("bool", [2, 2]))
    g.want(x(row), "float32", [4.0, 5.0])
    g.want(x(p), "float32", [4.0, 10.0, 12.0, 20.0])
    g.one("aten.where.self", [x(m), x(p), x(e)], "float32", [[1.5, 1 + 1 / 3], [1.25, 1.2]], 1e-6)
    yield g
    g = Graph("own_index", v=("float32", [[[2.0, 3.0], [4.0, 5.0]]]), w=("float32", [[2.0, 3.0], [4.0, 5.0]]), i=("int64", [0]))
    a = g.node("aten.mul.Tensor", [x("w"), x("w")], ("float32", [2, 2]))
    u = g.node("aten.unsqueeze.default", [x(a), 0], ("float32", [1, 2, 2]))
    b = g.node("aten.gelu_backward.default", [x("v"), x(u)], ("float32", [1, 2, 2]))
    j = g.node("aten.index_select.default", [x(u), 0, x("i")], ("float32", [1, 2, 2]))
    m = g.node("aten.ge.Tensor", [x(j), x(u)], ("bool", [1, 2, 2]))
    n = g.node("aten.bitwise_not.default", [x(m)], ("bool", [1, 2, 2]))
    g.want(x(a), "float32", [4.0, 9.0, 16.0, 25.0])
    g.want(x(b), "float32", [2.001010, 3.0, 4.0, 5.0], 1e-4)
    g.one("aten.logical_or.default", [x(m), x(n)], "bool", [[[1, 1], [1, 1]]])
    yield g
    g = Graph("padded_positions", v=("float32", [1.0, 1.0, 1.0]))
    i = g.node("aten.arange.default", [3], ("float32", [3]), dtype={"dtype": "float32"})
    g.one("aten.constant_pad_nd.default", [x(i), [1, 1], 9], "float32", [9.0, 0.0, 1.0, 2.0, 9.0])
    g.one("aten.add.Tensor", [x("v"), x(i)], "float32", [1.0, 2.0, 3.0])
    yield g
    # A view that begins behind the end of nothing.
    g = Graph("view_of_nothing", v=("float32", [[], [], []]))
    a = g.node("aten.reshape.default", [x("v"), [3, 0, 4]], ("float32", [3, 0, 4]))
    b = g.node("aten.neg.default", [x(a)], ("float32", [3, 0, 4]))
    s = g.node("aten.slice.Tensor", [x(b), 2, 1, 4, 2], ("float32", [3, 0, 2]))
    g.want(x(b), "float32", [])
    g.want(x(s), "float32", [])
    g.one("aten.sum.default", [x(s)], "float32", 0.0)
    yield g


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    arguments = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for graph in graphs():
            count += graph.check(arguments.novac, pathlib.Path(folder))
    print(f"{count} passed, 0 failed")


if __name__ == "__main__":
    main()
