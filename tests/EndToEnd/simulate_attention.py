#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulates attention, forward and backward, of warpgroups, against the host target.

  simulate_attention.py --novac NOVAC

Causal, of 16 and 32 bits, of lengths that tiles divide and of others. Where the type is
bfloat16 and a head has 64 elements, all kernels must be warpgroups': a schedule that
ptxas spoils (spills, products it serialises) would be passed over without a word. The
simulator must find no fault, whatever the order of warps, and the values of the host.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Device"))
import bench_products  # noqa: E402

# Batches, heads, length, elements of a head, type; kernels that warpgroups must compute.
SHAPES = [((1, 2, 1024, 64), "bfloat16", 3), ((1, 3, 384, 64), "bfloat16", 3), ((2, 1, 136, 64), "bfloat16", 2),
          ((1, 2, 1000, 64), "bfloat16", 3), ((1, 2, 1024, 128), "bfloat16", 2), ((1, 2, 300, 128), "bfloat16", 0), ((1, 1, 70, 32), "bfloat16", 0),
          ((1, 2, 512, 64), "float32", 0), ((1, 1, 256, 128), "float32", 0)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    novac = parser.parse_args().novac
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for shape, dtype, expected in SHAPES:
            name = "x".join(map(str, shape)) + "_" + dtype
            path, bundle = pathlib.Path(folder) / f"{name}.json", pathlib.Path(folder) / f"{name}.nova"
            path.write_text(json.dumps(bench_products.graph_of(("attention", *shape, dtype), "gradient")))
            subprocess.run([novac, "compile", path, "-o", bundle, "--target", "sm_90a,host", "--no-cache"], check=True, capture_output=True)
            targets = json.loads((bundle / "manifest.json").read_text())["targets"]
            kernels = [k for t in targets if t["name"] == "sm_90a" for k in t["kernels"]]
            ours = sum(k["schedule"].get("family") == "hopper" for k in kernels)
            done = subprocess.run([novac, "verify", bundle, "--simulate", "--seed", "1", "--interleavings", "2"], capture_output=True, text=True)
            print(f"{name}: {ours} of {len(kernels)} kernels of warpgroups, exit status {done.returncode}: "
                  f"{(done.stdout.strip().splitlines() or [''])[-1]}", flush=True)
            if done.returncode or ours < expected:
                failed += 1
                print(done.stderr, file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
