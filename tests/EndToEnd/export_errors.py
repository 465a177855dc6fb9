#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scripts/export_torch.py refuses, and that its messages name the user's line;
what it leaves alone: the model, its weights, PyTorch's random numbers.
"""
import pathlib
import subprocess
import sys
import tempfile

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import torch
from torch import nn
from torch.nn import functional as F

import export_torch

X, Y = torch.zeros(6, 4), torch.zeros(6, dtype=torch.int64)


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def branching(model, x, y):
    value = loss(model, x, y)
    if value > 3:  # BRANCH
        return value * 2
    return value


def selecting(model, x, y):
    return F.cross_entropy(model(x)[y > 0], y[y > 0])  # SELECT


def asking(model, x, y):
    return loss(model, x, y) * x.sum().item()  # ASK


def several(model, x, y):
    return model(x)


def line_of(mark):
    for number, line in enumerate(pathlib.Path(__file__).read_text().splitlines(), 1):
        if line.endswith("# " + mark):
            return f"{pathlib.Path(__file__).name}:{number}"


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


def frozen(model):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return sgd(model)


# (loss, optimizer, options, what the message must have)
CASES = [
    (branching, sgd, {}, (line_of("BRANCH"), "if value > 3", "the value of a tensor decides", "torch.where")),
    (selecting, sgd, {}, (line_of("SELECT"), "shape of a result depends", "use a mask")),
    (asking, sgd, {}, (line_of("ASK"), "the value of a tensor decides")),
    (several, sgd, {}, ("loss_fn: returned a tensor of shape (6, 3)", "expected a tensor of one element")),
    (loss, lambda model: None, {}, ("optimizer: got None in mode 'step'",)),
    (loss, sgd, {"mode": "gradients"}, ("in mode 'gradients'",)),
    (loss, sgd, {"mode": "all"}, ("mode: got 'all', expected one of 'step', 'gradients'",)),
    (loss, sgd, {"accumulate": 4}, ("accumulate: got 4", "shape (6, 4)", "a divisor of its first dimension")),
    (loss, lambda model: sgd(nn.Linear(4, 3)), {}, ("parameter 0 of group 0, of shape (3, 4)", "not one of the model's")),
    (loss, frozen, {}, ("has no parameter that requires a gradient",)),
]

PROGRAM = """
import torch
def step():
    model = torch.nn.Linear(4, 3)
    loss = lambda model, x: model(x).sum()
    return model, loss, torch.optim.SGD(model.parameters(), lr=0.1), (torch.zeros(2, 4),)
"""


def main():
    failures = []
    for index, (loss_fn, make_optimizer, options, signs) in enumerate(CASES):
        model = nn.Linear(4, 3)
        try:
            export_torch.export_step(model, loss_fn, make_optimizer(model), (X, Y), **options)
            failures.append(f"case {index}: no error, expected {signs}")
        except export_torch.ExportError as error:
            failures += [f"case {index}: no '{sign}' in: {error}" for sign in signs if sign not in str(error)]

    # Nothing of the user's is touched, and nothing is computed: weights of the meta device do.
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    before, state = {k: v.clone() for k, v in model.state_dict().items()}, torch.random.get_rng_state()
    optimizer = torch.optim.AdamW(model.parameters())
    export_torch.export_step(model, loss, optimizer, (X, Y))
    if any(not torch.equal(v, before[k]) for k, v in model.state_dict().items()) or optimizer.state:
        failures.append("the model or the optimizer has changed")
    if not torch.equal(state, torch.random.get_rng_state()):
        failures.append("PyTorch's random numbers have advanced")
    with torch.device("meta"):
        model = nn.Linear(4, 3)
        step = export_torch.export_step(model, loss, torch.optim.AdamW(model.parameters()), (X, Y))
    scalars = {entry["name"]: entry.get("advance") for entry in step.graph["inputs"] if entry["role"] == "scalar"}
    if scalars != {"lr": None, "weight_decay": None, "step": 1}:
        failures.append(f"scalars are {scalars}")
    try:
        step.inputs()
        failures.append("data of a model without weights")
    except export_torch.GraphError as error:
        if "'weight' has no value" not in str(error):
            failures.append(str(error))

    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "train.py"
        program.write_text(PROGRAM)

        def command(source):
            return subprocess.run([sys.executable, SCRIPTS / "export_torch.py", source, "-o", f"{folder}/step.json"],
                                  capture_output=True, text=True)
        done = command(f"{program}:step")
        if done.returncode or "inputs" not in done.stdout or not (pathlib.Path(folder) / "step.json").exists():
            failures.append(f"the command fails: {done.stderr}")
        for source, sign in ((f"{program}:other", "has no function 'other'"), (f"{folder}/none.py", "no such file")):
            done = command(source)
            if done.returncode != 1 or sign not in done.stderr:
                failures.append(f"{source}: exit {done.returncode}, {done.stderr}")
    print("\n".join(failures))
    print(f"{len(CASES) + 7 - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
