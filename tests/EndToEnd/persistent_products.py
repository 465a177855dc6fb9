#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulates products whose blocks go from tile to tile, against the host target.

  persistent_products.py --novac NOVAC

Each graph is a step on one weight, w -= a^T b or the like, of more tiles than an
H200 has multiprocessors, with sides that no tile divides. Compiled for sm_90a some
schedule must have persistent blocks, and some teams; the simulator must find no fault
and the values of the host.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

# Layout of the operands, sides, depth, type.
PRODUCTS = [("NN", 2000, 1736, 256, "float32"), ("TN", 2000, 1736, 256, "float32"), ("NT", 4096, 1480, 96, "float32"),
            ("NT", 4104, 3016, 128, "bfloat16"), ("TN", 4104, 3016, 128, "bfloat16")]


def graph(layout, m, n, k, dtype):
    nodes, inputs, operands = [], [], []
    for name, shape, turned in (("a", [m, k], layout[0] == "T"), ("b", [k, n], layout[1] == "T")):
        inputs.append({"name": name, "role": "input", "path": name, "dtype": dtype, "shape": shape[::-1] if turned else shape})
        operands.append({"ref": name})
        if turned:
            nodes.append({"name": name + "_t", "op": "aten.t.default", "args": [{"ref": name}],
                          "results": [{"dtype": dtype, "shape": shape, "strides": [1, shape[0]]}]})
            operands[-1] = {"ref": name + "_t"}
    inputs.append({"name": "w", "role": "parameter", "path": "w", "dtype": dtype, "shape": [m, n]})
    result = {"dtype": dtype, "shape": [m, n]}
    nodes.append({"name": "mm", "op": "aten.mm.default", "args": operands, "results": [result]})
    nodes.append({"name": "sub", "op": "aten.sub.Tensor", "args": [{"ref": "w"}, {"ref": "mm"}], "results": [result]})
    return {"format": "nova.graph", "version": 1, "name": f"product_{layout}_{dtype}", "producer": {"torch": "2.11.0", "decomposed": False},
            "inputs": inputs, "constants": [], "nodes": nodes, "outputs": [{"ref": "sub", "role": "update", "updates": "w"}]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    novac = parser.parse_args().novac
    persistent, teams, failed = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for product in PRODUCTS:
            name = "x".join(map(str, product))
            path, bundle = pathlib.Path(folder) / f"{name}.json", pathlib.Path(folder) / f"{name}.nova"
            path.write_text(json.dumps(graph(*product)))
            subprocess.run([novac, "compile", path, "-o", bundle, "--target", "sm_90a,host", "--no-cache"], check=True, capture_output=True)
            for target in json.loads((bundle / "manifest.json").read_text())["targets"]:
                for kernel in target["kernels"]:
                    persistent += kernel["schedule"].get("persistent_blocks", 0) > 0
                    teams += kernel["schedule"].get("teams", 1) > 1
            done = subprocess.run([novac, "verify", bundle, "--simulate", "--seed", "1"], capture_output=True, text=True)
            print(f"{name}: exit status {done.returncode}: {(done.stdout.strip().splitlines() or [''])[-1]}", flush=True)
            if done.returncode:
                failed += 1
                print(done.stderr, file=sys.stderr)
    print(f"{persistent} kernels stay on the device, {teams} have teams")
    if failed or not persistent or not teams:
        sys.exit(1)


if __name__ == "__main__":
    main()
