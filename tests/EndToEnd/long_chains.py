#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of elementwise operations compile in time that grows as they do.

  long_chains.py --novac NOVAC

CPU seconds, the least of some runs, for 2000 operations against 500: four times
as many if each costs the same, sixteen times if each costs as much as there are
before it. The bound is in between, so that a busy machine is not a failure. The
long chain is right, too: it is cut, and computes what the short ones do in turn.
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from small_graphs import node, read, write

SHORT, LONG, BOUND = 500, 2000, 8


def chain(count, same):
    """With `same` its kernels repeat; else each has numbers of its own."""
    nodes, last = [], "x"
    for i in range(count):
        op = ["aten.mul.Tensor", "aten.tanh.default", "aten.add.Tensor", "aten.sigmoid.default"][i % 4]
        nodes.append(node(f"n{i}", op, [{"ref": last}] + ([] if i % 2 else [1.25 if same else 1.25 + i / 65536]), "float32", [64]))
        last = f"n{i}"
    return {"format": "nova.graph", "version": 1, "name": f"chain_{count}", "producer": {}, "constants": [],
            "inputs": [{"name": "x", "role": "parameter", "path": "x", "dtype": "float32", "shape": [64]}], "nodes": nodes,
            "outputs": [{"ref": last, "role": "update", "updates": "x"}]}


def cpu_seconds(command):
    before = os.times()
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAIL: {' '.join(map(str, command))}: {done.returncode}\n{done.stderr}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    novac = os.path.abspath(parser.parse_args().novac)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for count in (SHORT, LONG):
            (folder / f"{count}.json").write_text(json.dumps(chain(count, False)))
        compiled = lambda count, target: cpu_seconds(
            [novac, "compile", folder / f"{count}.json", "--target", target, "-j", 1, "--no-cache", "-o", folder / f"{count}.nova"])
        for target in ("sm_80", "host"):
            least = {count: min(compiled(count, target) for _ in range(2)) for count in (SHORT, LONG)}
            ratio = least[LONG] / least[SHORT]
            print(f"{target}: {least[SHORT]:.2f} s for {SHORT} operations, {least[LONG]:.2f} s for {LONG}: {ratio:.1f} times")
            if ratio > BOUND:
                sys.exit(f"FAIL: {ratio:.1f} times the time, expected at most {BOUND}")
        results = []
        for count in (SHORT, LONG):
            (folder / f"{count}.json").write_text(json.dumps(chain(count, True)))
            compiled(count, "host")
            write(folder / "in.safetensors", {"in/x": ("F32", [64], struct.pack("<64f", *(i / 16 - 2 for i in range(64))))})
            cpu_seconds([novac, "run", folder / f"{count}.nova", "--device", "host", "--data", folder / "in.safetensors", "--steps",
                         LONG // count, "--out", folder / "out.safetensors"])
            results.append(read(folder / "out.safetensors")["in/x"])
        if results[0] != results[1]:
            sys.exit("FAIL: one long chain and its parts one after the other give different bits")


if __name__ == "__main__":
    main()
