#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph of real size goes through `plan` and to a bundle within its budget.

  large_graph.py --novac NOVAC --graph GRAPH.json [--results FOLDER]

Times are processor time, so that a busy machine fails nothing: to `plan` 10 s and
2 GB, to a bundle for host 120 s; the arena is at most 5 % above its lower bound;
there are fewer launches than a quarter of the nodes, and fewer kernels than a
quarter of the launches.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def run(command):
    """Standard output, processor seconds and peak bytes of one command."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"FAIL: {' '.join(map(str, command))}: status {os.waitstatus_to_exitcode(status)}")
    return output, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser()
    for name in ("novac", "graph", "results"):
        parser.add_argument("--" + name, required=name != "results", type=pathlib.Path)
    arguments = parser.parse_args()
    nodes = len(json.loads(arguments.graph.read_text())["nodes"])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compile_ = [arguments.novac, "compile", arguments.graph, "--target", "host", "--no-cache"]
        _, plan_seconds, plan_bytes = run(compile_ + ["--stop-after", "plan", "-o", folder / "plan.mlir"])
        output, seconds, _ = run(compile_ + ["--json", "-o", folder / "step.nova"])
    target = json.loads(output)["targets"][0]
    result = {"graph": arguments.graph.stem, "nodes": nodes, "launches": target["launches"], "kernels": target["kernels"],
              "arena_bytes": target["arena_bytes"], "arena_lower_bound": target["arena_lower_bound"],
              "plan_seconds": round(plan_seconds, 2), "plan_bytes": plan_bytes, "seconds": round(seconds, 2)}
    print(json.dumps(result, sort_keys=True))
    if arguments.results:
        arguments.results.mkdir(parents=True, exist_ok=True)
        (arguments.results / f"large-{arguments.graph.stem}.json").write_text(json.dumps(result, indent=1) + "\n")
    limits = {
        "plan_seconds": 10, "plan_bytes": 2e9, "seconds": 120, "arena_bytes": 1.05 * target["arena_lower_bound"],
        "launches": nodes / 4, "kernels": target["launches"] / 4}
    failed = [f"FAIL: {key} is {result[key]}, expected at most {limit:g}" for key, limit in limits.items()
              if result[key] > limit]
    print("\n".join(failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
