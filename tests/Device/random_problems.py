#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws random graphs of one problem each and compiles them, for run_problems.py
to check where the device is. Needs neither torch nor a GPU.

  random_problems.py --novac PATH --count 200 --seed S --out DIR
                     [--target sm_90a,host] [--precision f32,tf32] [--only CLASS,...]
                     [--jobs N] [--limit-mib 64]

Writes DIR/N.json and DIR/N.nova for seeds S, S + 1, ... and DIR/index.json. The
classes are drawn in turn, the precision per problem. What does not compile is
printed; exit status 1 if anything did not, after everything is written.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys

import problems


def build(novac, folder, seed, kind, target, precision):
    graph, kind = problems.draw(kind, seed)
    path, bundle = folder / f"{seed}.json", folder / f"{seed}.nova"
    path.write_text(json.dumps(graph, separators=(",", ":")))
    entry = {"seed": seed, "class": kind, "graph": path.name, "bundle": bundle.name, "precision": precision, "error": None}
    command = [novac, "compile", path, "-o", bundle, "--target", target, "--precision", precision, "--no-cache", "-j", "1"]
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
        if done.returncode:
            entry["error"] = f"exit status {done.returncode}: {done.stderr.strip()}"
    except subprocess.TimeoutExpired:
        entry["error"] = "compile: more than 300 s"
    entry["bytes"] = sum(f.stat().st_size for f in bundle.rglob("*") if f.is_file()) + path.stat().st_size
    return entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--novac", required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--target", default="sm_90a,host")
    parser.add_argument("--precision", default="f32,tf32")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit-mib", type=float, default=64)
    arguments = parser.parse_args()
    if arguments.out.exists():
        if any(arguments.out.iterdir()) and not (arguments.out / "index.json").exists():
            sys.exit(f"{arguments.out}: is not empty and was not written by this script")
        shutil.rmtree(arguments.out)
    arguments.out.mkdir(parents=True)
    classes = arguments.only.split(",") if arguments.only else list(problems.CLASSES)
    precisions = arguments.precision.split(",")
    entries, total, refused = [], 0, 0
    counts, failures = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        seeds = range(arguments.seed, arguments.seed + arguments.count)
        jobs = [pool.submit(build, arguments.novac, arguments.out, seed, classes[seed % len(classes)], arguments.target,
                            precisions[seed // len(classes) % len(precisions)]) for seed in seeds]
        for job in jobs:
            entry = job.result()
            counts[entry["class"]] += 1
            if entry["error"]:
                failures[entry["class"]] += 1
                lines = entry["error"].splitlines()
                print(f"{entry['seed']} {entry['class']} {entry['precision']}: " + " | ".join(lines[:4])[:400], flush=True)
            elif total + entry["bytes"] > arguments.limit_mib * (1 << 20):
                shutil.rmtree(arguments.out / entry["bundle"])
                entry["error"], refused = "left out: the folder has its size", refused + 1
            else:
                total += entry["bytes"]
            entries.append(entry)
    (arguments.out / "index.json").write_text(json.dumps({"target": arguments.target, "problems": entries}, indent=1) + "\n")
    for kind in counts:
        print(f"{kind:<16}{counts[kind] - failures[kind]} of {counts[kind]} compiled")
    print(f"{sum(counts.values()) - sum(failures.values())} of {sum(counts.values())} compiled, {refused} left out, "
          f"{total / (1 << 20):.1f} MiB in {arguments.out}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
