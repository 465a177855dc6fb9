#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When is a result right? The rule of graphs/README.md, written a second time,
from its text, in torch and float64.

  judge.py GRAPH.json --ours OUT.safetensors --data REF.safetensors
           [--inputs IN.safetensors] [--column f32|tf32|bf16]

--ours and --data hold out/I, and --data (or --inputs) in/NAME. Prints a table of the worst
outputs; exit status 1 where one fails or no update and no gradient is tested.
"""
import argparse
import json
import math
import pathlib
import sys

import torch

import tensor_files

#          tau,  tau2, tau_loss
COLUMNS = {"f32": (1e-5, 1e-5, 2e-6), "tf32": (1e-2, 5e-3, 2e-5), "bf16": (5e-2, 2e-2, 2e-3)}
# bits of the stored significand, exponent of the smallest normal number
FORMATS = {"float64": (52, -1022), "float32": (23, -126), "bfloat16": (7, -126), "float16": (10, -14)}


def references(value):
    """What a value of `args` names, as (name, result)."""
    if isinstance(value, list):
        return set().union(*(references(v) for v in value))
    if isinstance(value, dict) and isinstance(value.get("ref"), str):
        return {(value["ref"], value.get("result", 0))}
    return set()


def column_of(graph, matmul="f32"):
    """The column for how float32 is multiplied: bf16 where the graph itself multiplies 16-bit tensors."""
    types = {(node["name"], i): r["dtype"] for node in graph["nodes"] for i, r in enumerate(node["results"]) if r}
    types |= {(e["name"], 0): e["dtype"] for e in graph["inputs"] + graph["constants"]}
    products = ("mm", "addmm", "bmm", "baddbmm", "matmul", "linear", "mv", "convolution")
    for node in graph["nodes"]:
        name = node["op"].split(".")[1]
        if name in products or "attention" in name:
            if any(types.get(ref) in ("bfloat16", "float16") for ref in references(node["args"])):
                return "bf16"
    return matmul


def ulp(dtype, value):
    """The distance of neighbours of a type at finite float64 values."""
    significand, smallest = FORMATS[dtype]
    exponent = torch.frexp(value)[1].to(torch.int64) - 1
    exponent = torch.where(value == 0, smallest, exponent.clamp(min=smallest)) - significand
    return ((exponent.clamp(min=-1022) + 1023) << 52).view(torch.float64)  # the power of two, exactly


def used(value, bound):
    if value == 0:
        return 0.0
    return value / bound if bound > 0 else math.inf


def measure(column, dtype, is_loss, ours, ref, largest, norm):
    """Fractions of the bounds: element, norm, loss; and how many elements are plainly wrong. All float64."""
    tau, tau2, tau_loss = COLUMNS[column]
    finite = torch.isfinite(ref) & torch.isfinite(ours)
    same = torch.where(torch.isnan(ref), torch.isnan(ours), ours == ref)
    mismatches = int((~finite & ~same).sum())
    e = torch.where(finite, (ours - ref).abs(), 0.0)
    slack = 2 * ulp(dtype, torch.where(finite, ref, 0.0))
    fraction = torch.where(e == 0, 0.0, e / (slack + tau * largest))
    worst = int(fraction.argmax()) if fraction.numel() else 0
    result = {"element": float(fraction.max()) if fraction.numel() else 0.0,
              "norm": used(float(torch.linalg.vector_norm((e - slack).clamp(min=0))), tau2 * norm),
              "loss": 0.0, "mismatches": mismatches, "worst": worst}
    if is_loss and e.numel():
        result["loss"] = max(used(a, tau_loss * b) for a, b in
                             zip(e.reshape(-1).tolist(), torch.where(finite, ref, 0.0).abs().reshape(-1).tolist()))
    return result


def passed(m):
    return m["mismatches"] == 0 and max(m["element"], m["norm"], m["loss"]) <= 1


def judge(column, role, dtype, ours, ref, before=None):
    """One output. `dtype` is that of the graph; `ref` may be more precise. `before` is what an update replaces.
    Adds to the measure: verdict pass, FAILED or untested; and largest."""
    if dtype not in FORMATS:
        different = (ours != ref.to(ours.dtype)).reshape(-1)
        count = int(different.sum())
        m = {"element": 0.0, "norm": 0.0, "loss": 0.0, "mismatches": count,
             "worst": int(different.to(torch.uint8).argmax()) if count else 0}
        candidates = [torch.zeros_like(ours)] + ([] if before is None else [before])
        idle = not count and any(bool((c.to(ours.dtype) == ref.to(ours.dtype)).all()) for c in candidates)
    else:
        ours, ref = ours.to(torch.float64).reshape(-1), ref.to(torch.float64).reshape(-1)
        d = ref if before is None else ref - before.to(torch.float64).reshape(-1)
        d = torch.where(torch.isfinite(d), d, 0.0)
        largest = float(d.abs().max()) if d.numel() else 0.0
        norm = float(torch.linalg.vector_norm(d))
        m = measure(column, dtype, role == "loss", ours, ref, largest, norm)
        candidates = [torch.zeros_like(ref)] + ([] if before is None else [before.to(torch.float64).reshape(-1)])
        idle = passed(m) and any(passed(measure(column, dtype, role == "loss", c, ref, largest, norm)) for c in candidates)
        m["scale"] = largest
    # The value as it is in memory, to look at.
    if ours.numel():
        m["got"], m["expected"] = (float(t.reshape(-1)[m["worst"]]) for t in (ours, ref))
    m["verdict"] = "FAILED" if not passed(m) else "untested" if idle else "pass"
    m["largest"] = math.inf if m["mismatches"] else max(m["element"], m["norm"], m["loss"])
    return m


def defined(graph, output, tensor):
    """`tensor` without the padding that its producer leaves undefined."""
    if output.get("result", 0) == 1:
        for node in graph["nodes"]:
            if node["name"] == output["ref"] and "scaled_dot_product" in node["op"] and "backward" not in node["op"]:
                return tensor[:, :, :node["results"][0]["shape"][2]]
    return tensor


def judge_all(graph, column, ours, ref, before):
    """`ours`, `ref`: functions of an output's index, `before`: of an input's name; all give tensors on one device."""
    by_name = {entry["name"]: entry for entry in graph["inputs"]}
    declared = {node["name"]: node["results"] for node in graph["nodes"]}
    declared |= {e["name"]: [e] for e in graph["inputs"] + graph["constants"]}
    rows = []
    for i, output in enumerate(graph["outputs"]):
        dtype = declared[output["ref"]][output.get("result", 0)]["dtype"]
        update = output["role"] == "update"
        m = judge(column, output["role"], dtype, defined(graph, output, ours(i)), defined(graph, output, ref(i)),
                  before(output["updates"]) if update else None)
        path = by_name[output["updates"]].get("path", "") if update else ""
        rows.append({"output": f"out/{i}", "role": output["role"], "path": path} | m)
    return rows


def summary(rows, column, shown=12, out=sys.stdout):
    """Prints the worst outputs and a last line like that of `novac verify`. True when it passes."""
    failed = [r for r in rows if r["verdict"] == "FAILED"]
    rows = sorted(rows, key=lambda r: -r["largest"])
    print(f"column {column}: {COLUMNS[column]}", file=out)
    print(f"{'output':<9}{'role':<10}{'verdict':<10}{'element':<11}{'norm':<11}{'loss':<11}path", file=out)
    for r in rows[:max(shown, len(failed))]:
        loss = f"{r['loss']:<11.3g}" if r["role"] == "loss" else f"{'-':<11}"
        print(f"{r['output']:<9}{r['role']:<10}{r['verdict']:<10}{r['element']:<11.3g}{r['norm']:<11.3g}{loss}{r['path']}", file=out)
        if r["verdict"] == "FAILED":
            print(f"         element {r['worst']}: {r.get('got')!r}, expected {r.get('expected')!r}; "
                  f"max|d| {r.get('scale')!r}, {r['mismatches']} mismatches", file=out)
    tested = [r for r in rows if r["verdict"] == "pass"]
    judged = [r for r in rows if r["role"] in ("update", "gradient")]
    none = judged and not any(r["role"] in ("update", "gradient") for r in tested)
    untested = sum(r["verdict"] == "untested" for r in rows)
    print(f"{len(rows)} outputs, {len(tested)} passed, {untested} untested, {len(failed)} failed; "
          f"largest used fraction {rows[0]['largest'] if rows else 0:.4g} ({rows[0]['output'] if rows else '-'})"
          + ("; no update and no gradient is tested" if none else ""), file=out)
    return not failed and not none


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--inputs")
    parser.add_argument("--column", default="f32", choices=COLUMNS)
    parser.add_argument("--json", action="store_true", help="all rows as one JSON object")
    arguments = parser.parse_args()
    graph = json.loads(arguments.graph.read_text())
    ours, data = tensor_files.Reader(arguments.ours), tensor_files.Reader(arguments.data)
    inputs = tensor_files.Reader(arguments.inputs) if arguments.inputs else data
    rows = judge_all(graph, arguments.column, lambda i: ours.torch(f"out/{i}"), lambda i: data.torch(f"out/{i}"),
                     lambda name: inputs.torch("in/" + name))
    good = summary(rows, arguments.column, out=sys.stderr if arguments.json else sys.stdout)
    if arguments.json:
        print(json.dumps({"outputs": rows}, sort_keys=True))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
