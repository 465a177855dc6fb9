#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many compiles of overlapping graphs into one cache, killed at random.

  kill_compiles.py NOVAC [--at-once 64] [--kills 100] [--seed 1] [--limit 300K]

The graphs share most kernels, and the cache is too small for all of them, so that
compiles evict each other's entries. Afterwards: no compile that was left alone said
anything of damage or failed, each bundle is the same as without a cache, the cache
verifies, and nothing waits for a lock.
"""
import argparse
import filecmp
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("novac")
parser.add_argument("--at-once", type=int, default=64)
parser.add_argument("--kills", type=int, default=100)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--limit", default="300K")
arguments = parser.parse_args()
rng = random.Random(arguments.seed)
graphs = pathlib.Path(__file__).resolve().parents[2] / "graphs"


def same(first, second):
    """Whether two bundles differ in nothing but their provenance."""
    names = lambda root: sorted(f.relative_to(root) for f in root.rglob("*") if f.is_file() and f.name != "provenance.json")
    return names(first) == names(second) and all(filecmp.cmp(first / n, second / n, shallow=False) for n in names(first))


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    # One constant after the other is changed: most kernels stay what they are.
    text = (graphs / "mlp_mnist.json").read_text()
    sources = []
    for i in range(6):
        path = folder / f"g{i}.json"
        path.write_text(text.replace('"name": "mlp_mnist"', f'"name": "g{i}"').replace("relu", ["relu", "tanh", "sigmoid"][i % 3]))
        sources.append(path)

    def compile_into(number, source, *more):
        out = folder / f"{number}.nova"
        return out, subprocess.Popen([arguments.novac, "compile", source, "--target", "host", "-j", "1", "-o", out, *more],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    plain = []
    for i, source in enumerate(sources):
        out, process = compile_into(f"plain{i}", source, "--no-cache")
        said = process.communicate()[0]
        if process.returncode:
            sys.exit(f"FAIL: {source}: {said}")
        plain.append(out)

    cache = ["--cache-dir", folder / "cache", "--cache-limit", arguments.limit]
    running, killed, finished, number = [], 0, 0, 0
    while killed < arguments.kills or running:
        while killed < arguments.kills and len(running) < arguments.at_once:
            which = rng.randrange(len(sources))
            running.append((which, *compile_into(number, sources[which], *cache)))
            number += 1
        time.sleep(rng.random() * 0.02)
        if killed < arguments.kills:
            _, _, victim = running[rng.randrange(len(running))]
            if victim.poll() is None:
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                killed += 1
        still = []
        for which, out, process in running:
            if process.poll() is None:
                still.append((which, out, process))
                continue
            said = process.stdout.read()
            process.stdout.close()
            if process.returncode == -signal.SIGKILL:
                continue
            finished += 1
            if process.returncode or "warning" in said or "damaged" in said:
                sys.exit(f"FAIL: exit status {process.returncode}: {said}")
            if not same(out, plain[which]):
                sys.exit(f"FAIL: {out} is not what was compiled without a cache")
        running = still

    start = time.monotonic()
    done = subprocess.run([arguments.novac, "cache", "verify", *cache], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"FAIL: {done.stdout}{done.stderr}")
    done = subprocess.run([arguments.novac, "cache", "gc", *cache], capture_output=True, text=True)
    if done.returncode or time.monotonic() - start > 4:
        sys.exit(f"FAIL: {done.stdout}{done.stderr}")
    left = [f for f in (folder / "cache").rglob("*") if ".tmp-" in f.name]
    if left:
        sys.exit(f"FAIL: left behind: {left}")
print(f"pass: {killed} killed, {finished} finished, all right")
