#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a bundle with nova-run and judges every output against torch.

  check_bundle.py GRAPH.json BUNDLE --nova-run PATH [--data FILE | --seed S]
                  [--column f32|tf32|bf16] [--device N|host] [--repeat 2]
                  [--precision float64|f32] [--torch-device cuda|cpu]
                  [--launch graph|chain|plain] [--committed] [--keep FOLDER]

Inputs are in/NAME of FILE, else those of make_inputs.py. The reference is the
graph in float64; where that does not fit, in float32, and it says so; with
--committed it is out/I of FILE. The column is what the bundle's manifest says,
for host f32. Every repeat must give the same bits. Exit status 1 on failure.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch

import judge
import make_inputs
import run_graph_torch
import tensor_files


def launch(nova_run, bundle, data, out, device, how=None):
    """One step; what went wrong, or None."""
    command = [nova_run, "run", bundle, "--data", data, "--out", out, "--device", str(device)]
    try:
        done = subprocess.run([str(c) for c in command + (["--launch", how] if how else [])], capture_output=True, text=True,
                              timeout=600)
    except subprocess.TimeoutExpired:
        return "nova-run: more than 600 s"
    return None if done.returncode == 0 else f"nova-run: exit status {done.returncode}: {done.stderr.strip()[-1500:]}"


def reference(path, reader, precision, device):
    """The outputs, and the precision that they were computed in."""
    for attempt in [precision] if precision == "f32" else [precision, "f32"]:
        runner = run_graph_torch.Runner(path, device, attempt)
        try:
            return runner.run(runner.inputs(reader)), attempt
        except (RuntimeError, MemoryError) as error:
            if attempt == "f32" or "out of memory" not in str(error).lower():
                raise
        torch.cuda.empty_cache()
    raise AssertionError


def manifest_column(bundle, graph, device):
    manifest = json.loads((pathlib.Path(bundle) / "manifest.json").read_text())
    return judge.column_of(graph, "f32" if device == "host" and manifest["numerics"]["matmul"] != "bf16"
                           else manifest["numerics"]["matmul"])


def differing(first, second):
    """The outputs whose bits differ between two files of results."""
    return [name for name in first if name.startswith("out/") and bytes(first[name][2]) != bytes(second[name][2])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--nova-run", required=True)
    parser.add_argument("--data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--column", choices=judge.COLUMNS)
    parser.add_argument("--device", default="0")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--precision", default="float64", choices=["float64", "f32"])
    parser.add_argument("--torch-device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--launch", choices=["graph", "chain", "plain"])
    parser.add_argument("--committed", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="leave inputs and results there")
    parser.add_argument("--rows", type=int, default=12)
    arguments = parser.parse_args()
    graph = json.loads(arguments.graph.read_text())
    column = arguments.column or manifest_column(arguments.bundle, graph, arguments.device)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        data = arguments.data
        if not data:
            data = folder / "inputs.safetensors"
            make_inputs.make(graph, arguments.seed, data)
        reader = tensor_files.Reader(data)
        results, same = [], True
        for k in range(max(arguments.repeat, 1)):
            out = folder / f"results-{k}.safetensors"
            failure = launch(arguments.nova_run, arguments.bundle, data, out, arguments.device, arguments.launch)
            if failure:
                print(failure)
                sys.exit(1)
            results.append(tensor_files.Reader(out))
            if k:
                different = differing(results[0], results[k])
                same = same and not different
                if different:
                    print(f"run {k + 1} gives other bits than run 1 in {len(different)} outputs: {', '.join(different[:8])}")
                results[k] = None
                if not arguments.keep:
                    out.unlink()
        if arguments.committed:
            outputs, used = [reader.torch(f"out/{i}") for i in range(len(graph["outputs"]))], "the data file"
        else:
            outputs, used = reference(arguments.graph, reader, arguments.precision, arguments.torch_device)
        print(f"{graph['name']}: device {arguments.device} against torch {used}, "
              f"{arguments.repeat} runs, {'the same bits' if same else 'DIFFERENT BITS'}")
        on = arguments.torch_device
        with torch.no_grad():
            rows = judge.judge_all(graph, column, lambda i: results[0].torch(f"out/{i}").to(on), lambda i: outputs[i].to(on),
                                   lambda name: reader.torch("in/" + name).to(on))
        good = judge.summary(rows, column, arguments.rows)
    sys.exit(0 if good and same else 1)


if __name__ == "__main__":
    main()
