#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small graphs whose right results are known without a reference.

  small_graphs.py --novac NOVAC

repeated  a value that is an output several times, alone, beside others, beside an
          update of an input, or an input itself: every place gets it
lengths   bfloat16 vectors of every length around those of vector registers,
          halved (which is exact), cast to float32 and back
"""
import argparse
import json
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    novac = os.path.abspath(parser.parse_args().novac)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(f"{repeated(novac, folder)} places, {lengths(novac, folder)} lengths")


if __name__ == "__main__":
    main()
