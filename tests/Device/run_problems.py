#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what random_problems.py wrote against torch in float64, by the rule.

  run_problems.py DIR --nova-run PATH [--device 0,host] [--repeat 2] [--only N|CLASS,...]
                  [--jobs 4] [--torch-device cuda|cpu] [--seconds N] [--json FILE]

One line per failure, a summary by class. Each problem runs in a process of its
own, so one that kills its device is one failure. Repeats must give the same
bits. Exit status 1 on failure.

The column is that of the bundle, and bf16 for a graph with 16-bit values; the
exit status does not count outputs that are `untested`. After --seconds no problem
is begun; those that were not are counted.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import sys
import tempfile
import time

import torch

import check_bundle
import judge
import make_inputs
import run_graph_torch
import tensor_files


def column_of(graph, precision, device):
    dtypes = {r["dtype"] for node in graph["nodes"] for r in node["results"] if r} | {e["dtype"] for e in graph["inputs"]}
    if dtypes & {"bfloat16", "float16"}:
        return "bf16"
    return "f32" if device == "host" else precision


def run(nova_run, folder, entry, graph, work, devices, repeat):
    """Everything that needs no torch: inputs and results. {device: [files] or text}"""
    data = work / f"{entry['seed']}.in.safetensors"
    make_inputs.make(graph, entry["seed"], data)
    results = {}
    for device in devices:
        files = []
        for k in range(repeat):
            out = work / f"{entry['seed']}.{device}.{k}.safetensors"
            try:
                failure = check_bundle.launch(nova_run, folder / entry["bundle"], data, out, device)
            except Exception as error:
                failure = repr(error)
            if failure:
                files = failure
                break
            files.append(out)
        results[device] = files
    return data, results


def judged(graph, column, data, files, outputs, on):
    """(what is wrong or None, largest used fraction, whether all is untested)"""
    ours, inputs = tensor_files.Reader(files[0]), tensor_files.Reader(data)
    for other in files[1:]:
        different = check_bundle.differing(ours, tensor_files.Reader(other))
        if different:
            return f"other bits in a second run: {', '.join(different)}", math.inf, False
    rows = judge.judge_all(graph, column, lambda i: ours.torch(f"out/{i}").to(on), lambda i: outputs[i],
                           lambda name: inputs.torch("in/" + name).to(on))
    worst = max(rows, key=lambda r: r["largest"])
    wrong = [r for r in rows if r["verdict"] == "FAILED"]
    text = None
    if wrong:
        node = graph["outputs"][int(worst["output"].split("/")[1])]["ref"]
        op = next((n["op"] for n in graph["nodes"] if n["name"] == node), "input")
        text = (f"column {column}: {len(wrong)} of {len(rows)} outputs; worst {worst['output']} ({node}, {op}): element "
                f"{worst['element']:.3g} norm {worst['norm']:.3g} loss {worst['loss']:.3g} mismatches {worst['mismatches']}, "
                f"[{worst['worst']}] {worst.get('got')!r}, expected {worst.get('expected')!r}, max|d| {worst.get('scale')!r}")
    return text, worst["largest"], all(r["verdict"] == "untested" for r in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--nova-run", required=True)
    parser.add_argument("--device", default="0")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--torch-device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    devices, only = arguments.device.split(","), set(filter(None, arguments.only.split(",")))
    index = json.loads((arguments.folder / "index.json").read_text())
    entries = [e for e in index["problems"] if not e["error"] and (not only or {str(e["seed"]), e["class"]} & only)]
    table = collections.defaultdict(lambda: {"checked": 0, "failed": 0, "untested": 0, "largest": 0.0})
    lines, started = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        work, waiting, todo = pathlib.Path(temporary), collections.deque(), iter(entries)

        def start():
            entry = next(todo, None) if time.perf_counter() - started < arguments.seconds else None
            if entry:
                graph = json.loads((arguments.folder / entry["graph"]).read_text())
                waiting.append((entry, graph, pool.submit(run, arguments.nova_run, arguments.folder, entry, graph, work, devices,
                                                          max(1, arguments.repeat))))

        for _ in range(2 * arguments.jobs):  # not all at once: they are files
            start()
        begun = 0
        while waiting:
            entry, graph, job = waiting.popleft()
            if time.perf_counter() - started >= arguments.seconds and job.cancel():
                continue
            begun += 1
            data, results = job.result()
            outputs = None
            for device, files in results.items():
                row = table[device, entry["class"], column_of(graph, entry["precision"], device)]
                row["checked"] += 1
                largest, untested = math.inf, False
                if isinstance(files, str):
                    failure = files
                else:
                    try:
                        if outputs is None:
                            runner = run_graph_torch.Runner(arguments.folder / entry["graph"], arguments.torch_device, "float64")
                            outputs = runner.run(runner.inputs(tensor_files.Reader(data)))
                        failure, largest, untested = judged(graph, column_of(graph, entry["precision"], device), data, files,
                                                            outputs, arguments.torch_device)
                    except Exception as error:
                        failure = f"the reference: {error}"
                row["untested"] += untested
                if failure:
                    row["failed"] += 1
                    line = f"{entry['seed']} {entry['class']} on {device}, {entry['precision']}: {failure}".replace("\n", " | ")
                    lines.append(line)
                    print(line, flush=True)
                else:
                    row["largest"] = max(row["largest"], largest)
            for file in work.glob(f"{entry['seed']}.*"):
                file.unlink()
            start()
    print(f"{'device':<8}{'class':<18}{'column':<8}{'checked':<9}{'failed':<8}{'untested':<10}largest used fraction of what passed")
    for (device, kind, column), row in sorted(table.items()):
        print(f"{device:<8}{kind:<18}{column:<8}{row['checked']:<9}{row['failed']:<8}{row['untested']:<10}{row['largest']:.3g}")
    failed, checked = (sum(row[k] for row in table.values()) for k in ("failed", "checked"))
    print(f"{checked - failed} of {checked} agree with float64, {failed} failed, {len(entries) - begun} not run, "
          f"{time.perf_counter() - started:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps({"failures": lines, "not_run": len(entries) - begun, "classes": [
            {"device": d, "class": c, "column": k} | row for (d, c, k), row in sorted(table.items())]}, indent=1) + "\n")
    sys.exit(1 if failed or not checked else 0)


if __name__ == "__main__":
    main()
