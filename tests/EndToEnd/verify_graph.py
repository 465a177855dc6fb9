#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a graph for host, verifies one step against its data file, and writes
RESULTS/verify-NAME.json: what README's table of what works is made of.

  verify_graph.py --novac NOVAC --graph GRAPH.json --data FILE --results FOLDER
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser()
    for name in ("novac", "graph", "data", "results"):
        parser.add_argument("--" + name, required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)
    result = {"graph": arguments.graph.stem, "target": "host", "passed": False}
    nodes = len(json.loads(arguments.graph.read_text())["nodes"])
    with tempfile.TemporaryDirectory() as folder:
        bundle = folder + "/step.nova"
        compiled = subprocess.run([arguments.novac, "compile", arguments.graph, "-o", bundle, "--target", "host",
                                   "--no-cache", "--json"], capture_output=True, text=True)
        sys.stderr.write(compiled.stderr)
        if compiled.returncode == 0:
            target = json.loads(compiled.stdout)["targets"][0]
            result |= {"nodes": nodes, "launches": target["launches"], "kernels": target["kernels"],
                       "arena_bytes": target["arena_bytes"], "arena_lower_bound": target["arena_lower_bound"]}
            # The same without raising, and how much the passes have to say.
            plain = subprocess.run([arguments.novac, "compile", arguments.graph, "-o", folder + "/plain.nova", "--target", "host",
                                    "--no-cache", "--no-raising", "--json"], capture_output=True, text=True)
            if plain.returncode == 0:
                target = json.loads(plain.stdout)["targets"][0]
                result |= {"launches_plain": target["launches"], "kernels_plain": target["kernels"]}
            explained = subprocess.run([arguments.novac, "compile", arguments.graph, "-o", folder + "/plain.nova", "--target",
                                        "host", "--no-cache", "--explain"], capture_output=True, text=True)
            result["remarks"] = sum(line.startswith("remark: ") for line in (explained.stdout + explained.stderr).splitlines())
            verified = subprocess.run([arguments.novac, "verify", bundle, "--data", arguments.data, "--json"],
                                      capture_output=True, text=True)
            sys.stderr.write(verified.stderr)
            if verified.stdout:
                report = json.loads(verified.stdout)
                result |= {key: report[key] for key in ("column", "tested", "untested", "failed", "largest_used")}
                result["outputs"] = len(report["outputs"])
            result["passed"] = verified.returncode == 0
    path = arguments.results / f"verify-{arguments.graph.stem}.json"
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    print(json.dumps(result, sort_keys=True))
    sys.exit(0 if result["passed"] else 1)


if __name__ == "__main__":
    main()
