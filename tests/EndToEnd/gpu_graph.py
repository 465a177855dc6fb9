#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a graph for GPUs, with the real ptxas, in one precision.

  gpu_graph.py --novac NOVAC --graph GRAPH.json --precision f32|tf32

Every kernel of every target gets machine code. The bundle has the same bytes
with one thread and with two, and its plan stands the
checks of `verify`. No kernel spills registers, and nothing is warned of.
"""
import argparse
import filecmp
import json
import pathlib
import subprocess
import sys
import tempfile

TARGETS = ["sm_80", "sm_86", "sm_89", "sm_90a"]


def run(command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"FAIL: {' '.join(map(str, command))}: status {result.returncode}\n{result.stderr}")
    return result


def contents(bundle):
    """Path -> file, but for who made it when."""
    return {p.relative_to(bundle): p for p in bundle.rglob("*") if p.is_file() and p.name != "provenance.json"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True, type=pathlib.Path)
    parser.add_argument("--graph", required=True, type=pathlib.Path)
    parser.add_argument("--precision", required=True, choices=["f32", "tf32"])
    arguments = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory() as name:
        bundles = [pathlib.Path(name) / f"j{jobs}" / "step.nova" for jobs in (2, 1)]
        for jobs, bundle in zip((2, 1), bundles):
            bundle.parent.mkdir()
            compiled = run([arguments.novac, "compile", arguments.graph, "-o", bundle, "--target", ",".join(TARGETS),
                            "--precision", arguments.precision, "--no-cache", f"-j{jobs}"])
        one, two = contents(bundles[0]), contents(bundles[-1])
        failures += [f"{path} is only in one of the bundles" for path in sorted(set(one) ^ set(two))]
        failures += [f"{path} differs between -j1 and -j2" for path in sorted(set(one) & set(two))
                     if not filecmp.cmp(one[path], two[path], shallow=False)]
        run([arguments.novac, "verify", bundles[0]])
        manifest = json.loads((bundles[0] / "manifest.json").read_text())

    names = [target["name"] for target in manifest["targets"]]
    if names != TARGETS:
        failures.append(f"targets {names}, expected {TARGETS}")
    for target in manifest["targets"]:
        for kernel in target["kernels"]:
            symbol, spilled = kernel["symbol"], kernel["spill_bytes"]
            if not kernel["registers"]:
                failures.append(f"{target['name']}: {symbol} has no machine code")
            if spilled:
                failures.append(f"{target['name']}: {symbol} spills {spilled} bytes")
    for line in compiled.stderr.splitlines():
        if "warning" in line:
            failures.append(line)
    kernels = sum(len(target["kernels"]) for target in manifest["targets"])
    print(f"{arguments.graph.stem} {arguments.precision}: {kernels} kernels for {len(names)} targets")
    print("".join(f"FAIL: {failure}\n" for failure in failures), end="")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
