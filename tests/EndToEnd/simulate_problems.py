#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random problems, compiled for a GPU and verified by simulation.

  simulate_problems.py --novac NOVAC [--target sm_80] [--seed S] [--seconds 60]
                       [--limit-elements N] [--keep DIR] [--only CLASS,...] [--family F]

Draws a kernel class, shapes, layouts, types and bodies per problem
(tests/Device/problems.py), compiles for a GPU and host and compares the two on
random inputs, the GPU code simulated. With --family, only problems of which a
kernel has a schedule of that family; for hopper (warpgroups and tensor maps) they
are products that are large enough to have one. Problems are drawn until the time is
spent; the seed of each is printed where it fails, and the seed to start from
always. Without --seed it is the day's number, so that CI sees new problems.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Device"))
import problems  # noqa: E402


def volume(graph):
    """Elements of all values: what a simulation costs grows with it."""
    total = 0
    for value in graph["inputs"] + [r for node in graph["nodes"] for r in node["results"] if r]:
        size = 1
        for extent in value["shape"]:
            size *= extent
        total += size
    return total


def large_product(b):
    """A product in any layout, with what may follow it."""
    rng = b.rng
    m, n, k = (rng.choice([512, 640, 768, 1000, 1024]) for _ in range(3))
    kind = rng.choice(["nn", "nt", "tn", "tt"])
    left = b.permute(b.input([k, m]), [1, 0]) if kind[0] == "t" else b.input([m, k])
    right = b.op("aten.t.default", [b.input([n, k])], [k, n]) if kind[1] == "t" else b.input([k, n])
    y = b.op("aten.mm.default", [left, right], [m, n])
    y = b.op("aten.mul.Tensor", [y, round(k**-0.5, 4)], [m, n])
    b.output(b.epilogue(y))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--family")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--limit-elements", type=int, default=1 << 19)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else int(time.time() // 86400) * 100000
    print(f"seed {seed}", flush=True)
    if arguments.family == "hopper":
        problems.CLASSES["large_product"] = large_product
        arguments.only = arguments.only or "large_product"
        arguments.limit_elements *= 16
    classes = arguments.only.split(",") if arguments.only else list(problems.CLASSES)
    start = time.monotonic()
    counts, failures = collections.Counter(), []
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or pathlib.Path(name)
        folder.mkdir(exist_ok=True)
        number = seed
        while time.monotonic() - start < arguments.seconds:
            kind = classes[number % len(classes)]
            # By FMA there is nothing for warpgroups.
            precision = ("f32", "tf32")[arguments.family == "hopper" or number // len(classes) % 2]
            graph, kind = problems.draw(kind, number)
            number += 1
            if volume(graph) > arguments.limit_elements:
                counts["too large"] += 1
                continue
            path, bundle = folder / f"{number - 1}.json", folder / f"{number - 1}.nova"
            path.write_text(json.dumps(graph, separators=(",", ":")))
            label = f"{number - 1} {kind} {precision}"
            done = subprocess.run([arguments.novac, "compile", path, "-o", bundle, "--target", f"{arguments.target},host", "--precision",
                                   precision, "--no-cache"], capture_output=True, text=True)
            if done.returncode:
                # What is refused is the business of other tests; a defect is not.
                counts["refused" if done.returncode == 1 else "not compiled"] += 1
                if done.returncode != 1:
                    failures.append(f"{label}: compile: exit status {done.returncode}: {done.stderr.strip()[:300]}")
                continue
            families = {k["schedule"].get("family") for t in json.loads((bundle / "manifest.json").read_text())["targets"]
                        for k in t["kernels"]}
            if arguments.family and arguments.family not in families:
                counts["of another family"] += 1
                continue
            done = subprocess.run([arguments.novac, "verify", bundle, "--simulate", "--seed", str(number - 1)],
                                  capture_output=True, text=True)
            # Most problems have neither gradients nor updates: then `verify`, which
            # has compared the outputs, says that it cannot vouch for a step.
            compared = done.returncode == 0 or "no update and no gradient is tested" in done.stderr
            if not compared:
                failures.append(f"{label}: {done.stderr.strip()[:600]}")
                print("FAILED " + failures[-1], flush=True)
            counts[kind] += 1
    seconds = time.monotonic() - start
    simulated = sum(counts[k] for k in classes)
    print(f"{simulated} problems simulated in {seconds:.0f} s: " + ", ".join(f"{k} {n}" for k, n in sorted(counts.items())))
    if failures:
        sys.exit(f"FAIL: {len(failures)} of {simulated}\n" + "\n".join(failures))
    if not simulated:
        sys.exit("FAIL: the time was too short for any problem")


if __name__ == "__main__":
    main()
