#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verifies the GPU code of a graph on this machine's CPU.

  simulate_graph.py --novac NOVAC --graph GRAPH.json --data DATA --precision f32|tf32
                    [--target sm_80] [--seconds LIMIT] [--interleavings N]

Compiles for a GPU and executes the PTX of the bundle (`novac verify
--simulate`): no fault, and every output right. Prints what that took; the
budget holds for the simulation alone.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--graph", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--precision", required=True, choices=["f32", "tf32"])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--interleavings", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        bundle = pathlib.Path(name) / "step.nova"
        subprocess.run([arguments.novac, "compile", arguments.graph, "-o", bundle, "--target", arguments.target, "--precision",
                        arguments.precision, "--no-cache"], check=True, capture_output=True)
        start = time.monotonic()
        done = subprocess.run([arguments.novac, "verify", bundle, "--simulate", "--data", arguments.data, "--json",
                               "--interleavings", str(arguments.interleavings)], capture_output=True, text=True)
        seconds = time.monotonic() - start
    sys.stderr.write(done.stderr)
    if done.returncode:
        sys.exit(f"FAIL: exit status {done.returncode}\n{done.stdout}")
    target = json.loads(done.stdout)["targets"][0]
    print(f"{target['tested']} outputs, largest used fraction {target['largest_used']}, {seconds:.1f} s")
    if not target["tested"]:
        sys.exit("FAIL: no output was tested")
    if seconds > arguments.seconds:
        sys.exit(f"FAIL: {seconds:.1f} s, expected at most {arguments.seconds:g}")


if __name__ == "__main__":
    main()
