#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the nodes of a nova.graph with torch.ops, in order: the reference of
graphs that have no data file.

  run_graph_torch.py GRAPH.json --inputs IN.safetensors --out OUT.safetensors
                     [--device cuda|cpu] [--precision f32|tf32|float64]
                     [--attention composite|native] [--no-rounding]

f32 and tf32 say how float32 contractions multiply. float64 computes everything
in float64, the reference of long sums: only where the graph declares a 16-bit
result is the value rounded to that type, as the graph says (not with
--no-rounding). Attention is spelled out in products and exponentials, so that
it runs in every precision on every device, unless --attention native.
"""
import argparse
import importlib
import json
import operator
import pathlib
import sys
import time

import torch

import tensor_files
from judge import references

HALVES = (torch.bfloat16, torch.float16)
# Strides of results are not part of the format; a view of what another
# implementation lays out otherwise has to copy.
RESPELLED = {"aten.view.default": "aten.reshape.default", "aten._unsafe_view.default": "aten.reshape.default"}


def set_precision(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.set_default_dtype(torch.float64 if precision == "float64" else torch.float32)


def find_op(name):
    """`aten.mm.default` as an OpOverload."""
    parts = name.split(".")
    if len(parts) != 3 or parts[0] == "nova":
        raise ValueError(f"operation {name}: expected an overload that PyTorch has, such as aten.mm.default")
    if parts[0] == "prims":
        importlib.import_module("torch._prims")  # registers them
    try:
        return getattr(getattr(getattr(torch.ops, parts[0]), parts[1]), parts[2])
    except AttributeError:
        raise ValueError(f"operation {name}: this PyTorch ({torch.__version__}) does not have it") from None


def bind(op, args, kwargs):
    """All arguments of a call by name, defaults filled in."""
    bound = {}
    for i, argument in enumerate(op._schema.arguments):
        if i < len(args) and not argument.kwarg_only:
            bound[argument.name] = args[i]
        elif argument.name in kwargs:
            bound[argument.name] = kwargs[argument.name]
        else:
            bound[argument.name] = argument.default_value if argument.has_default_value() else None
    return bound


# --- attention -----------------------------------------------------------------

def scores(query, key, bias, is_causal, scale):
    s = torch.matmul(query, key.transpose(-2, -1)) * scale
    if is_causal:
        t, u = s.shape[-2:]
        s = s.masked_fill(torch.ones(t, u, dtype=torch.bool, device=s.device).triu(1), -float("inf"))
    if bias is not None:
        s = s.masked_fill(~bias, -float("inf")) if bias.dtype == torch.bool else s + bias
    return s


def laid_out(value, result):
    """`value` in the type and, where the graph gives them, the strides of a result."""
    dtype = value.dtype if value.dtype == torch.float64 else getattr(torch, result["dtype"])
    if "strides" not in result:
        return value.to(dtype).contiguous()
    out = torch.empty_strided(result["shape"], result["strides"], dtype=dtype, device=value.device)
    return out.copy_(value)


def attention_forward(results, query, key, value, bias, is_causal, scale):
    wide = lambda t: t.float() if t.dtype in HALVES else t
    q, k, v = wide(query), wide(key), wide(value)
    s = scores(q, k, bias if bias is None or bias.dtype == torch.bool else wide(bias), is_causal, scale)
    logsumexp = torch.logsumexp(s, -1)
    out = torch.matmul(torch.softmax(s, -1), v)
    made = [None] * len(results)
    for i, result in enumerate(results):
        if result is None:
            continue
        if i == 0:
            made[i] = laid_out(out, result)
        elif i == 1:  # [B,H,T], [B,H,T,1] or with padding [B,H,ceil32(T)]
            padded = torch.full(result["shape"], float("inf"), dtype=logsumexp.dtype, device=s.device)
            kept = min(query.shape[-2], result["shape"][2])
            flat = padded.view(*result["shape"][:3])
            flat[..., :kept] = logsumexp[..., :kept]
            made[i] = padded
        else:  # random state, which is unused
            made[i] = torch.zeros(result["shape"], dtype=getattr(torch, result["dtype"]), device=s.device)
    return made


def attention_backward(results, grad_out, query, key, value, bias, out, logsumexp, is_causal, scale):
    wide = lambda t: t.float() if t.dtype in HALVES else t
    g, q, k, v, o = wide(grad_out), wide(query), wide(key), wide(value), wide(out)
    s = scores(q, k, bias if bias is None or bias.dtype == torch.bool else wide(bias), is_causal, scale)
    saved = logsumexp.reshape(*logsumexp.shape[:3])[..., :query.shape[-2], None].to(s.dtype)
    p = torch.exp(s - saved)
    delta = (g * o).sum(-1, keepdim=True)
    ds = p * (torch.matmul(g, v.transpose(-2, -1)) - delta)
    made = [torch.matmul(ds, k) * scale, torch.matmul(ds.transpose(-2, -1), q) * scale,
            torch.matmul(p.transpose(-2, -1), g)]
    if len(results) > 3 and results[3] is not None:
        made.append(ds.sum_to_size(results[3]["shape"]))
    made += [None] * (len(results) - len(made))
    return [None if result is None else laid_out(value, result) for value, result in zip(made, results)]


def attention(name, results, bound):
    scale = bound["scale"] if bound["scale"] is not None else bound["query"].shape[-1] ** -0.5
    if bound["dropout_p"]:
        raise ValueError(f"{name}: dropout_p {bound['dropout_p']}, expected 0")
    bias = bound.get("attn_bias", bound.get("attn_mask"))
    common = (bound["query"], bound["key"], bound["value"], bias)
    if "backward" in name:
        grad = bound.get("grad_out", bound.get("grad_out_"))
        return attention_backward(results, grad, *common, bound["out"], bound["logsumexp"], bound["is_causal"], scale)
    return attention_forward(results, *common, bound["is_causal"], scale)


# --- the graph -------------------------------------------------------------------

class Runner:
    """Executes a graph. `wide`: everything floating is float64."""

    def __init__(self, path, device="cuda", precision="f32", composite=True, rounding=True):
        self.path = pathlib.Path(path)
        self.graph = json.loads(self.path.read_text())
        self.device, self.precision = torch.device(device), precision
        self.wide, self.composite, self.rounding = precision == "float64", composite, rounding
        self.last_use = {}
        for i, node in enumerate(self.graph["nodes"]):
            for ref in references([node["args"], *node.get("kwargs", {}).values()]):
                self.last_use[ref] = i
        for output in self.graph["outputs"]:
            self.last_use[output["ref"], output.get("result", 0)] = len(self.graph["nodes"])

    def dtype(self, name):
        dtype = getattr(torch, name)
        return torch.float64 if self.wide and dtype.is_floating_point else dtype

    def place(self, tensor, entry):
        """A CPU tensor as the input or constant that `entry` describes."""
        dtype = self.dtype(entry["dtype"])
        if "strides" in entry and entry["shape"]:
            out = torch.empty_strided(entry["shape"], entry["strides"], dtype=dtype, device=self.device)
            return out.copy_(tensor)
        return tensor.to(self.device).to(dtype)

    def inputs(self, reader):
        made = {}
        for entry in self.graph["inputs"]:
            key = "in/" + entry["name"]
            if key not in reader:
                raise ValueError(f"the data file has no tensor {key}")
            tensor = reader.torch(key)
            if list(tensor.shape) != entry["shape"] or tensor.dtype != getattr(torch, entry["dtype"]):
                raise ValueError(f"{key} is {tensor.dtype} {list(tensor.shape)}, expected {entry['dtype']} {entry['shape']}")
            made[entry["name"]] = self.place(tensor, entry)
        return made

    def constants(self):
        made = {}
        for entry in self.graph["constants"]:
            if "file" in entry:
                tensor = tensor_files.Reader(self.path.parent / entry["file"]).torch(entry["key"])
            else:
                values = [float(v["float"]) if isinstance(v, dict) else v for v in entry["values"]]
                tensor = torch.tensor(values, dtype=getattr(torch, entry["dtype"])).view(entry["shape"])
            made[entry["name"]] = self.place(tensor, entry)
        return made

    def argument(self, value, lookup):
        if isinstance(value, list):
            return [self.argument(v, lookup) for v in value]
        if isinstance(value, dict):
            if "ref" in value:
                return lookup(value["ref"], value.get("result", 0))
            if "float" in value:
                return float(value["float"])
            if "dtype" in value:
                return self.dtype(value["dtype"])
            if "enum" in value:
                text = value["enum"]
                if text.startswith("torch."):
                    return getattr(torch, text[len("torch."):])
                return self.device
            raise ValueError(f"argument {value}: unknown")
        return value

    def function(self, node):
        """What computes a node: a function of its arguments that returns one value or a sequence."""
        name = node["op"]
        if self.composite and "scaled_dot_product" in name:
            op = find_op(name)
            return lambda *args, **kwargs: attention(name, node["results"], bind(op, args, kwargs))
        op = find_op(RESPELLED.get(name, name))
        if self.wide and name in ("aten._softmax.default", "aten._log_softmax.default"):
            return lambda x, dim, half_to_float: op(x, dim, False)
        if op._schema.arguments and any(a.name == "pin_memory" for a in op._schema.arguments):
            return lambda *args, **kwargs: op(*args, **{k: v for k, v in kwargs.items() if k != "pin_memory"})
        return op

    def check(self, node, results):
        """Results in the declared type; a shape or kind that is not as declared is an error."""
        made = []
        for i, (value, result) in enumerate(zip(results, node["results"])):
            if result is None or not isinstance(value, torch.Tensor):
                made.append(None)
                continue
            declared, expected = getattr(torch, result["dtype"]), self.dtype(result["dtype"])
            padded = i == 1 and "scaled_dot_product" in node["op"]
            if list(value.shape) != result["shape"] and not padded:
                raise ValueError(f"shape {list(value.shape)} of result {i}, expected {result['shape']}")
            if value.dtype != expected:
                if not (value.dtype.is_floating_point and expected.is_floating_point):
                    raise ValueError(f"{value.dtype} as result {i}, expected {expected}")
                value = value.to(expected)
            if self.wide and self.rounding and declared in HALVES:
                value = value.to(declared).to(torch.float64)
            # Factories that name no device make their tensors on the CPU.
            made.append(value.to(self.device))
        return made

    def run(self, inputs):
        """`inputs`: name to tensor; emptied, so that what is not used any more is freed. Returns the outputs."""
        set_precision(self.precision)
        values = {(name, 0): value for name, value in (self.constants() | inputs).items()}
        inputs.clear()
        free_after = {}
        for ref, i in self.last_use.items():
            free_after.setdefault(i, []).append(ref)
        look = lambda name, result: values[name, result]
        with torch.no_grad():
            for i, node in enumerate(self.graph["nodes"]):
                try:
                    args = self.argument(node["args"], look)
                    kwargs = {k: self.argument(v, look) for k, v in node.get("kwargs", {}).items()}
                    results = self.function(node)(*args, **kwargs)
                    results = list(results) if isinstance(results, (list, tuple)) else [results]
                    results = self.check(node, results)
                except Exception as error:
                    raise RuntimeError(f"nodes[{i}] \"{node['name']}\", {node['op']}: {error}") from error
                for k, value in enumerate(results):
                    if (node["name"], k) in self.last_use:
                        values[node["name"], k] = value
                del args, kwargs, results
                for ref in free_after.get(i, ()):
                    values.pop(ref, None)
        return [values[o["ref"], o.get("result", 0)] for o in self.graph["outputs"]]

    def module(self, update_in_place):
        """The graph as a torch.fx.GraphModule of its inputs, which gives the outputs; with update_in_place the updates
        are copied into the inputs that they replace, and the other outputs returned. For eager and torch.compile."""
        graph = torch.fx.Graph()
        values = {(e["name"], 0): graph.placeholder(e["name"]) for e in self.graph["inputs"]}
        root = torch.nn.Module()
        for name, value in self.constants().items():
            root.register_buffer("constant_" + name, value)
            values[name, 0] = graph.get_attr("constant_" + name)
        for node in self.graph["nodes"]:
            look = lambda name, result: values[name, result]
            args = tuple(self.argument(node["args"], look))
            kwargs = {k: self.argument(v, look) for k, v in node.get("kwargs", {}).items() if k != "pin_memory"}
            op = find_op(RESPELLED.get(node["op"], node["op"]))
            called = graph.call_function(op, args, kwargs)
            if len(op._schema.returns) == 1 and "[]" not in str(op._schema.returns[0].type) \
                    and not str(op._schema.returns[0].type).startswith("List"):
                values[node["name"], 0] = called
                continue
            for k in range(len(node["results"])):
                if (node["name"], k) in self.last_use:
                    values[node["name"], k] = graph.call_function(operator.getitem, (called, k))
        returned = []
        for output in self.graph["outputs"]:
            value = values[output["ref"], output.get("result", 0)]
            if update_in_place and output["role"] == "update":
                graph.call_function(torch.ops.aten.copy_.default, (values[output["updates"], 0], value))
            else:
                returned.append(value)
        graph.output(tuple(returned))
        graph.lint()
        return torch.fx.GraphModule(root, graph)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("--inputs", required=True, help="safetensors with in/NAME")
    parser.add_argument("--out", required=True, help="safetensors with out/I")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="f32", choices=["f32", "tf32", "float64"])
    parser.add_argument("--attention", default="composite", choices=["composite", "native"])
    parser.add_argument("--no-rounding", action="store_true", help="with float64: no 16-bit roundings either")
    arguments = parser.parse_args()
    started = time.perf_counter()
    runner = Runner(arguments.graph, arguments.device, arguments.precision, arguments.attention == "composite",
                    not arguments.no_rounding)
    outputs = runner.run(runner.inputs(tensor_files.Reader(arguments.inputs)))
    tensor_files.write_torch(arguments.out, {f"out/{i}": value for i, value in enumerate(outputs)})
    print(f"{len(runner.graph['nodes'])} nodes in {time.perf_counter() - started:.1f} s on {arguments.device}, "
          f"{arguments.precision}", file=sys.stderr)


if __name__ == "__main__":
    main()
