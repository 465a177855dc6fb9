# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values for a graph's inputs, and what PyTorch computes from them."""
import torch

from .graph_json import GraphError


def state_value(shape, dtype, path, generator):
    """Like the states of a run that is under way: second moments are positive."""
    if path.endswith("_sq") or path.endswith("square_avg") or path.endswith("sum") or path.endswith("exp_inf"):
        return ((torch.rand(shape, generator=generator) + 0.1) * 1e-4).to(dtype)
    return (torch.randn(shape, generator=generator) * 1e-3).to(dtype)


def input_values(graph, known, seed):
    generator = torch.Generator().manual_seed(seed)
    values = {}
    for entry in graph["inputs"]:
        name, dtype = entry["name"], getattr(torch, entry["dtype"])
        value = known.get(name)
        if name == "step" and entry["role"] == "scalar":
            value = torch.tensor(3.0)
        if value is None:
            value = state_value(entry["shape"], dtype, entry["path"], generator)
        if value.is_meta:
            raise GraphError(f"input '{name}' has no value: the model or the batch is on the meta device; data needs a "
                             "model with weights")
        values[name] = value.detach().to("cpu", dtype).clone()
    return values


def run(module, graph, inputs):
    arguments = [inputs[entry["name"]].clone() for entry in graph["inputs"]]
    with torch.no_grad():
        return [value.clone() for value in module(*arguments)]
