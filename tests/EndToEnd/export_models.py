#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports the training steps of torch_models.py, and asks three things of each:

- what the exported graph computes in PyTorch is what PyTorch's own eager step computes
  (the model's forward, backward(), clip_grad_norm_, optimizer.step()), on the CPU;
- `novac verify` on host agrees with PyTorch's results;
- with --simulate TARGET, the PTX for that GPU does too, executed by the simulator.

  export_models.py --novac NOVAC [--only NAME ...] [--simulate sm_90a] [--keep FOLDER]
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import torch
import export_torch
import torch_models

# tau, tau2, tau_loss of the columns f32 and bf16 (nova/Runtime/Run.h).
COLUMNS = {"f32": (1e-5, 1e-5, 2e-6), "bf16": (5e-2, 2e-2, 2e-3)}


def used(ours, reference, before, role, column):
    """The largest used fraction of the tolerance."""
    tau, tau2, tau_loss = COLUMNS[column]
    if not reference.is_floating_point():
        return 0.0 if torch.equal(ours, reference) else float("inf")
    ours, wide = ours.double(), reference.double()
    if role == "loss":
        return float((ours - wide).abs() / (tau_loss * wide.abs()))
    d = wide - before.double() if before is not None else wide
    ulp = torch.finfo(reference.dtype).eps * wide.abs()
    rest = ((ours - wide).abs() - 2 * ulp).clamp(min=0)
    if not rest.any():
        return 0.0
    return float(max(rest.max() / (tau * d.abs().max()), rest.norm() / (tau2 * d.norm())))


def eager(make, step, inputs, options):
    """PyTorch's own step: the outputs of the graph, in their order; None where it has none."""
    model, loss_fn, optimizer, batch, _ = make
    model = copy.deepcopy(model)
    named = dict(model.named_parameters())
    with torch.no_grad():
        for name, p in named.items():
            if name in inputs:
                p.copy_(inputs[name])
    if optimizer is not None:
        back = {id(p): name for name, p in make[0].named_parameters()}
        optimizer = type(optimizer)([{**{k: v for k, v in group.items() if k != "params"},
                                      "params": [named[back[id(p)]] for p in group["params"]]}
                                     for group in optimizer.param_groups])
        for name, p in named.items():
            slots = {entry["name"][len(name) + 1:]: inputs[entry["name"]].clone() for entry in step.graph["inputs"]
                     if entry["role"] == "state" and entry["name"].rsplit(".", 1)[0] == name}
            if slots or "step" in inputs:
                optimizer.state[p] = {**slots, "step": inputs["step"] - 1} if "step" in inputs else slots
    parts = options.get("accumulate", 1)
    scale = float(inputs["loss_scale"]) if "loss_scale" in inputs else 1.0
    total = 0
    for index in range(parts):
        cut = lambda value: value.chunk(parts)[index]
        autocast = options.get("autocast")
        with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            if loss_fn is None:
                loss = model(**{key: cut(value) for key, value in batch.items()}).loss
            elif isinstance(batch, dict):
                loss = loss_fn(model, **{key: cut(value) for key, value in batch.items()})
            else:
                loss = loss_fn(model, *[cut(value) for value in batch])
        loss, *extra = loss if isinstance(loss, tuple) else (loss,)
        (loss * (scale / parts)).backward()
        total = total + loss.detach() / parts
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= scale
    if options.get("clip_norm"):
        torch.nn.utils.clip_grad_norm_(model.parameters(), options["clip_norm"])
    if optimizer is not None:
        optimizer.step()
    results = []
    alive = [name for name, p in named.items() if p.requires_grad and p.grad is not None]
    for entry in step.graph["outputs"]:
        if entry["role"] == "loss":
            results.append(total)
        elif entry["role"] == "gradient":
            results.append(named[alive.pop(0)].grad)
        elif entry["role"] == "update":
            path, buffers = entry["updates"], dict(model.named_buffers())
            owner, _, slot = path.rpartition(".")
            results.append(named[path].detach() if path in named else buffers[path] if path in buffers
                           else optimizer.state[named[owner]][slot])
        else:  # found_inf is not PyTorch's to compute here
            results.append(extra.pop(0).detach() if extra else None)
    return results


def novac(program, *arguments):
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)


def verdict(done):
    """The largest used fraction of a `verify --json`, or what it complained of."""
    if done.stdout.startswith("{"):
        report = json.loads(done.stdout)
        report = report.get("targets", [report])[0]  # one each where they are simulated
        if done.returncode == 0:
            return report["largest_used"], report["column"], None
        if "outputs" not in report:
            return None, None, json.dumps(report)
        bad = [output for output in report["outputs"] if output["verdict"] not in ("pass", "untested")]
        return None, report["column"], f"{len(bad)} outputs differ, the first is {json.dumps(bad[0]) if bad else '?'}"
    return None, None, (done.stderr.strip() or "?")


def examine(make, arguments, folder):
    name = make.__name__
    torch.manual_seed(sum(map(ord, name)))
    row = {"model": name, "failed": []}
    made = make()
    model, loss_fn, optimizer, batch, options = made
    start = time.time()
    step = export_torch.export_step(model, loss_fn, optimizer, batch, name=name, **options)
    row["export_s"] = round(time.time() - start, 1)
    row["nodes"] = len(step.graph["nodes"])
    graph, data = folder / f"{name}.json", folder / f"{name}.data.safetensors"
    step.write(graph)
    step.write_data(data)
    inputs = step.inputs()
    column = "bf16" if options.get("autocast") else "f32"
    draws = any(node["op"] == "nova.uniform" for node in step.graph["nodes"])
    if not draws:
        worst = 0.0
        for index, (ours, theirs, entry) in enumerate(zip(step.run(inputs), eager(made, step, inputs, options),
                                                          step.graph["outputs"])):
            if theirs is None:
                continue
            fraction = used(ours, theirs, inputs.get(entry.get("updates")), entry["role"], column)
            worst = max(worst, fraction)
            if not fraction <= 1:
                row["failed"].append(f"export: output {index} ({entry}) uses {fraction:.3g} of the tolerance")
        row["eager"] = round(worst, 3)
    bundle = folder / f"{name}.nova"
    compiled = novac(arguments.novac, "compile", graph, "-o", bundle, "--target", "host", "--no-cache", "--json")
    if compiled.returncode != 0:
        row["failed"].append("compile: " + compiled.stderr.strip())
        return row
    target = json.loads(compiled.stdout)["targets"][0]
    row |= {"launches": target["launches"], "kernels": target["kernels"]}
    row["host"], row["column"], failure = verdict(novac(arguments.novac, "verify", bundle, "--data", data, "--json"))
    if failure:
        row["failed"].append("host: " + failure)
    if arguments.simulate:
        start = time.time()
        done = novac(arguments.novac, "compile", graph, "-o", bundle, "--target", arguments.simulate, "--no-cache", "--json")
        failure = done.stderr.strip() if done.returncode else None
        if not failure:
            row["simulated"], _, failure = verdict(novac(arguments.novac, "verify", bundle, "--data", data, "--simulate", "--json"))
        row["simulate_s"] = round(time.time() - start, 1)
        if failure:
            row["failed"].append(f"{arguments.simulate}: {failure}")
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True, type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--simulate", metavar="TARGET")
    parser.add_argument("--keep", type=pathlib.Path, help="leave graphs, data and bundles here")
    parser.add_argument("--results", type=pathlib.Path, help="write the table there, as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for make in torch_models.MODELS:
            if arguments.only and make.__name__ not in arguments.only:
                continue
            try:
                rows.append(examine(make, arguments, folder))
            except export_torch.ExportError as error:
                rows.append({"model": make.__name__, "failed": [f"export: {error}"]})
            row = rows[-1]
            print("FAILED" if row["failed"] else "ok", json.dumps({k: v for k, v in row.items() if k != "failed"}), flush=True)
            for failure in row["failed"]:
                print("   ", failure.replace("\n", "\n    ")[:1500], flush=True)
    for make, signs in torch_models.REFUSED:
        if arguments.only and make.__name__ not in arguments.only:
            continue
        model, loss_fn, optimizer, batch, options = make()
        try:
            export_torch.export_step(model, loss_fn, optimizer, batch, **options)
            missing = ["an error"]
        except export_torch.ExportError as error:
            missing = [sign for sign in signs if sign not in str(error)]
        rows.append({"model": make.__name__, "refused": True, "failed": [f"its error lacks {sign}" for sign in missing]})
        print("FAILED" if missing else "ok", make.__name__, "is refused", *missing, flush=True)
    if arguments.results:
        arguments.results.write_text(json.dumps(rows, indent=1) + "\n")
    failed = sum(bool(row["failed"]) for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
