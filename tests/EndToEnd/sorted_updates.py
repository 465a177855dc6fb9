#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Updates that many positions add to rows of a table, simulated.

  sorted_updates.py --novac NOVAC [--only NAME,...]

Positions that all go to one row, to rows of their own, out of order, nowhere, of
rank 3, by two index tensors, in several types. Values are such that every sum is
exact, or such that it depends on the order of its terms, which is that of positions.
"""
import argparse
import itertools
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Device"))
import problems  # noqa: E402
from small_graphs import write  # noqa: E402

NAMES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32"}


def packed(dtype, values):
    if dtype == "bfloat16":  # what is here is exact in 16 bits
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    form = {"float32": "f", "float16": "e", "float64": "d", "int64": "q", "int32": "i"}[dtype]
    return struct.pack(f"<{len(values)}{form}", *values)


def rounded(value, dtype):
    return struct.unpack("<f", struct.pack("<f", value))[0] if dtype == "float32" else value


def expected(table, positions, inner, lists, updates, dtype, base):
    """Row by row, in the order of positions; places outside the table are left out."""
    width = math.prod(inner)
    out = list(base)
    for p in range(math.prod(positions)):
        row = 0
        for extent, values in zip(table, lists):
            place = values[p] + (extent if values[p] < 0 else 0)
            row = row * extent + place if row is not None and 0 <= place < extent else None
        if row is not None:
            for c in range(width):
                out[row * width + c] = rounded(out[row * width + c] + updates[p * width + c], dtype)
    return out


def cases():
    rng = random.Random(7)
    some = lambda n, low, high: [rng.randint(low, high) for _ in range(n)]
    # name: table, positions, inner, one list of indices for each dimension of the table, dtype, index dtype
    yield "one_row", [9], [200], [20], [[3] * 200], "float32", "int64"
    yield "own_rows", [300], [256], [8], [list(range(255, -1, -1))], "float32", "int64"
    yield "any_order", [50], [5, 60], [33], [some(300, -50, 49)], "float32", "int64"
    yield "runs", [700], [2100], [3], [some(2100, -700, 699)], "float32", "int32"
    yield "few_rows", [2], [100], [130], [some(100, -2, 1)], "float32", "int64"
    yield "one_table_row", [1], [70], [40], [[0] * 70], "float32", "int64"
    yield "rank_3", [11], [4, 5, 6], [3, 7], [some(120, 0, 10)], "float32", "int64"
    yield "two_lists", [4, 6], [90], [5], [some(90, -4, 3), some(90, 0, 5)], "float32", "int64"
    yield "scalars", [40], [128], [], [some(128, 0, 39)], "float32", "int64"
    for dtype in ("bfloat16", "float16", "float64", "int64", "int32"):
        yield dtype, [13], [150], [24], [some(150, 0, 12)], dtype, "int64"
    yield "few", [13], [5], [24], [some(5, 0, 12)], "float32", "int64"
    yield "no_positions", [13], [0], [24], [[]], "float32", "int64"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, table, positions, inner, lists, dtype, indexType in cases():
            if arguments.only and name not in arguments.only.split(","):
                continue
            rng = random.Random(name)
            shape = table + inner
            b = problems.Builder(rng, dtype)
            base = b.input(shape, dtype)
            indices = [b.input(positions, indexType) for _ in lists]
            updates = b.input(positions + inner, dtype)
            result = b.op("aten.index_put.default", [base, indices, updates, True], shape)
            b.output(result, "gradient")
            count = math.prod(positions) * math.prod(inner)
            values = [rng.randint(-1, 1) for _ in range(count)]
            start = [rng.randint(-4, 4) for _ in range(math.prod(shape))]
            if name in ("one_row", "any_order"):  # the ones between large numbers are lost
                period = itertools.cycle([1e8, 1, 1, -1e8, 3])
                values = [value for _ in range(math.prod(positions)) for value in [next(period)] * math.prod(inner)]
                start = [0] * math.prod(shape)
            want = expected(table, positions, inner, lists, values, dtype, start)
            tensors = {"in/x0": (NAMES[dtype], shape, packed(dtype, start)), "out/0": (NAMES[dtype], shape, packed(dtype, want))}
            for i, places in enumerate(lists):
                tensors[f"in/x{i + 1}"] = (NAMES[indexType], positions, packed(indexType, places))
            tensors[f"in/x{len(lists) + 1}"] = (NAMES[dtype], positions + inner, packed(dtype, values))
            write(folder / "data.safetensors", tensors)
            (folder / "graph.json").write_text(json.dumps(b.finish(name)))
            bundle = folder / "step.nova"
            commands = [["compile", folder / "graph.json", "-o", bundle, "--target", "sm_80,host", "--no-cache"]]
            for how in (["--simulate", "--interleavings", "2"], []):
                commands.append(["verify", bundle, *how, "--data", folder / "data.safetensors", "--tolerance", "1e-6"])
            for command in commands:
                done = subprocess.run([arguments.novac, *command], capture_output=True, text=True)
                if done.returncode:
                    break
            if done.returncode:
                failed += 1
                print(f"FAILED {name}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
            else:
                print(f"ok {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
