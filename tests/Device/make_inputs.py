#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seeded inputs of a graph, the same on every machine.

  make_inputs.py GRAPH.json --seed S --out IN.safetensors [--like roles|nova-run]

The random numbers are those of include/nova/Runtime/Run.h (a hash of seed, name
and position). `nova-run` also takes its distributions, and so writes what
`nova-run run --seed S` runs on, bit for bit. `roles` looks closer, at paths and
at what the graph does:
  parameter  of a norm 1 + 0.1 N; another bias 0.1 N; other vectors 0.5 + 0.1 N;
             higher rank 0.02 N
  state      first moments 0.001 N, second moments 1e-6 + 1e-4 U; rank 0: 3
  scalar     with `advance` 3; else floating 0.001, integer 1
  buffer     rotary frequencies what they are; others, and inputs, N
  integers   below the extent that they index: of an embedding's table, a
             gather's dimension, the classes of a loss; an index that the graph
             uses for several, below the smallest
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib

import numpy as np

import tensor_files

GOLDEN = 0x9e3779b97f4a7c15
MASK = (1 << 64) - 1
CHUNK = 1 << 20
# Operations through which an integer stays the same number.
SAME = {"view", "_unsafe_view", "reshape", "slice", "unsqueeze", "squeeze", "expand", "permute", "transpose", "t", "detach",
        "alias", "clone", "contiguous", "lift_fresh_copy", "_to_copy", "to", "select", "cat", "constant_pad_nd", "where",
        "flatten", "split", "chunk", "narrow", "repeat", "index_put", "masked_fill", "clamp", "clamp_min", "clamp_max"}


def mix(z):
    """The finaliser of SplitMix64, of a number."""
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & MASK
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & MASK
    return z ^ (z >> 31)


def fnv1a(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001b3) & MASK
    return value


def hashes(stream, first, count):
    """The hashes of elements first, first + 1, ..."""
    z = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    z *= np.uint64(GOLDEN)
    z += np.uint64(stream)
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb), (31, None)):
        z ^= z >> np.uint64(shift)
        if factor:
            z *= np.uint64(factor)
    return z


def uniform(h):
    return (h >> np.uint64(11)).astype(np.float64) * 2.0 ** -53


def normal(h):
    low = np.uint64(0xffff)
    total = (h & low) + (h >> np.uint64(16) & low) + (h >> np.uint64(32) & low) + (h >> np.uint64(48))
    return float.fromhex("0x1.bb67ae8584caap+0") * (total.astype(np.float64) * 2.0 ** -16 - 2 + 2.0 ** -15)


def stored(values, dtype):
    """float64 or integers as the bytes of a graph dtype, rounded to nearest even."""
    if dtype == "bfloat16":
        single = values.astype(np.float32)
        # Through float32, rounded to odd, so that there is no double rounding.
        bits = single.view(np.uint32)
        exact = single.astype(np.float64)
        inexact = exact != values
        away = np.abs(exact) > np.abs(values)
        bits = np.where(inexact, np.where(away, bits - 1, bits) | 1, bits).astype(np.uint32)
        bits += ((bits >> 16) & 1) + np.uint32(0x7fff)
        return (bits >> 16).astype(np.uint16)
    return values.astype({"bool": np.bool_}.get(dtype, dtype))


# --- what integers index -----------------------------------------------------------

def index_bounds(graph):
    """Input name to the smallest extent that its integers index, where the graph says."""
    entries = {e["name"]: e for e in graph["inputs"]}
    shapes = {(e["name"], 0): e["shape"] for e in graph["inputs"] + graph["constants"]}
    sources = {(n, 0): {n} for n, e in entries.items() if e["dtype"].startswith("int") and e["role"] != "scalar"}
    bounds = {}
    ref = lambda v: (v["ref"], v.get("result", 0)) if isinstance(v, dict) and "ref" in v else None

    def limit(index, extent):
        for name in sources.get(ref(index), ()):
            bounds[name] = min(bounds.get(name, extent), extent)

    for node in graph["nodes"]:
        for i, result in enumerate(node["results"]):
            if result:
                shapes[node["name"], i] = result["shape"]
        op, args = node["op"].split(".")[1], node["args"]
        shape = lambda k: shapes[ref(args[k])]
        if op in SAME:
            flat = [a for b in args for a in (b if isinstance(b, list) else [b])]
            passed = set().union(*(sources.get(ref(a), set()) for a in flat if ref(a)))
            for i, result in enumerate(node["results"]):
                if passed and result and result["dtype"].startswith("int"):
                    sources[node["name"], i] = passed
        elif op == "embedding":
            limit(args[1], shape(0)[0])
        elif op == "embedding_dense_backward":
            limit(args[1], args[2])
        elif op in ("gather", "scatter", "scatter_add", "index_select") and shape(0):
            limit(args[2], shape(0)[args[1]])
        elif op == "nll_loss_forward" or op == "cross_entropy_loss":
            limit(args[1], shape(0)[-1 if op == "nll_loss_forward" else min(1, len(shape(0)) - 1)])
        elif op == "nll_loss_backward":
            limit(args[2], shape(1)[-1])
        if op in ("index", "_unsafe_index", "index_put", "_unsafe_index_put"):
            for k, index in enumerate(args[1]):
                if index is not None and k < len(shape(0)):
                    limit(index, shape(0)[k])
    return bounds


def common_bound(graph):
    """What nova-run takes for every integer."""
    extents = [e for t in graph["inputs"] if t["role"] in ("parameter", "buffer", "input") for e in t["shape"] if e > 1]
    return min(extents + [127]) if extents else 2


# --- the distributions --------------------------------------------------------------

def floats_like_run(entry):
    role, rank = entry["role"], len(entry["shape"])
    if role == "scalar":
        value = 1.0 if "advance" in entry else 0.001
        return lambda h: np.full(h.shape, value)
    if role == "parameter":
        return (lambda h: 0.5 + 0.1 * normal(h)) if rank < 2 else (lambda h: 0.02 * normal(h))
    if role == "state":
        return (lambda h: 0.001 + 0.009 * uniform(h)) if rank else (lambda h: np.ones(h.shape))
    return normal


def floats_by_role(entry):
    role, rank, path = entry["role"], len(entry["shape"]), entry.get("path", "").lower()
    parts = [part for word in path.split(".") for part in word.split("_")]
    if role == "scalar" and "advance" in entry:
        return lambda h: np.full(h.shape, 3.0)
    if role == "parameter" and rank < 2:
        if path.endswith("bias"):
            return lambda h: 0.1 * normal(h)
        if any("norm" in part or part in ("ln", "bn") for part in parts):
            return lambda h: 1 + 0.1 * normal(h)
    if role == "state":
        if rank == 0:
            return lambda h: np.full(h.shape, 3.0)
        if "sq" in parts or parts[-1] in ("v", "nu"):
            return lambda h: 1e-6 + 1e-4 * uniform(h)
        if "avg" in parts or parts[-1] in ("m", "mu", "buffer"):
            return lambda h: 1e-3 * normal(h)
    return floats_like_run(entry)


def generators(graph, seed, like):
    """One function per input that gives its elements, row-major, as an iterator of buffers."""
    bounds = index_bounds(graph) if like == "roles" else {}
    made = []
    for entry in graph["inputs"]:
        count = math.prod(entry["shape"])
        stream = mix((seed + GOLDEN * (1 + fnv1a(entry["name"]))) & MASK)
        if entry["dtype"] in ("float64", "float32", "bfloat16", "float16"):
            draw = (floats_by_role if like == "roles" else floats_like_run)(entry)
        elif entry["role"] == "scalar":
            value = 3 if like == "roles" and "advance" in entry else 1
            draw = lambda h, value=value: np.full(h.shape, value, np.int64)
        else:
            bound = 2 if entry["dtype"] == "bool" else max(bounds.get(entry["name"], common_bound(graph)), 1)
            bound = min(bound, {"int8": 127, "uint8": 255}.get(entry["dtype"], bound))
            draw = lambda h, bound=bound: (h % np.uint64(bound)).astype(np.int64)
        if like == "roles" and entry["role"] == "buffer" and entry.get("path", "").endswith("inv_freq") and count:
            draw = lambda h, n=count: 10000.0 ** (-np.arange(n) / n)

        def parts(count=count, stream=stream, draw=draw, dtype=entry["dtype"]):
            chunk = lambda first: stored(draw(hashes(stream, first, min(CHUNK, count - first))), dtype)
            with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, min(8, os.cpu_count() or 1))) as pool:
                starts = list(range(0, count, CHUNK))
                for k in range(0, len(starts), 16):  # in the order of the file, a bounded number at a time
                    yield from pool.map(chunk, starts[k:k + 16])

        made.append((entry, parts))
    return made


def make(graph, seed, out, like="roles"):
    tensor_files.write(out, [("in/" + entry["name"], entry["dtype"], entry["shape"], parts)
                             for entry, parts in generators(graph, seed, like)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", required=True)
    parser.add_argument("--like", default="roles", choices=["roles", "nova-run"])
    arguments = parser.parse_args()
    make(json.loads(arguments.graph.read_text()), arguments.seed, arguments.out, arguments.like)


if __name__ == "__main__":
    main()
