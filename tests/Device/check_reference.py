#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks this folder's reference and rule on every graph that has a data file.

  check_reference.py FOLDER [--device cpu|cuda] [--novac NOVAC] [--only NAME,...]

The reference must give what the data file says, in float32 and in float64. With
--novac, each graph is compiled for host, run on the file's inputs, and judged
by this folder's rule and by `novac verify`: fraction by fraction the same.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import judge
import run_graph_torch
import tensor_files


def compare_rules(novac, path, data, graph, column, folder):
    """Differences between this folder's fractions and novac's."""
    bundle, out = folder + "/step.nova", folder + "/out.safetensors"
    done = subprocess.run([novac, "compile", path, "-o", bundle, "--target", "host", "--no-cache"], capture_output=True, text=True)
    if done.returncode:
        return [f"compile: {done.stderr.strip()}"]
    subprocess.run([novac, "run", bundle, "--data", data, "--out", out, "--device", "host"], check=True, capture_output=True)
    done = subprocess.run([novac, "verify", bundle, "--data", data, "--json"], capture_output=True, text=True)
    theirs = json.loads(done.stdout)
    ours, ref = tensor_files.Reader(out), tensor_files.Reader(data)
    rows = judge.judge_all(graph, column, lambda i: ours.torch(f"out/{i}"), lambda i: ref.torch(f"out/{i}"),
                           lambda name: ref.torch("in/" + name))
    found = [] if theirs["column"] == column else [f"column {column}, novac says {theirs['column']}"]
    for mine, other in zip(rows, theirs["outputs"]):
        verdict = {"FAILED": "fail", "untested": "untested", "pass": "pass"}[mine["verdict"]]
        if not str(other["verdict"]).lower().startswith(verdict):
            found.append(f"{mine['output']}: {mine['verdict']}, novac says {other['verdict']}")
        for key, used in (("element", "used_tau"), ("norm", "used_tau2"), ("loss", "used_tau_loss")):
            a, b = mine[key], float(other[used] or 0)
            if abs(a - b) > 1e-9 * max(a, b) + 1e-12:
                found.append(f"{mine['output']}: {key} {a}, novac says {b}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--novac")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    failed = 0
    for path in sorted(arguments.folder.glob("*.json")):
        data = path.with_suffix(".data.safetensors")
        if not data.exists() or (arguments.only and path.stem not in arguments.only.split(",")):
            continue
        reader = tensor_files.Reader(data)
        for precision in ("f32", "float64"):
            runner = run_graph_torch.Runner(path, arguments.device, precision)
            column = judge.column_of(runner.graph)
            outputs = runner.run(runner.inputs(reader))
            rows = judge.judge_all(runner.graph, column, lambda i: outputs[i].cpu(), lambda i: reader.torch(f"out/{i}"),
                                   lambda name: reader.torch("in/" + name))
            print(f"{path.stem}, {precision}:")
            failed += not judge.summary(rows, column, shown=1)
        if arguments.novac:
            with tempfile.TemporaryDirectory() as folder:
                found = compare_rules(arguments.novac, path, data, runner.graph, column, folder)
            print(f"{path.stem}: the rule is novac's: {'yes' if not found else 'no'}")
            for line in found[:10]:
                print("  " + line)
            failed += bool(found)
    print(f"{failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
