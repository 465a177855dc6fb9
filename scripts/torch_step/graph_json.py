# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An fx graph of ATen calls as a nova.graph (graphs/README.md)."""
import json
import math
import operator

import torch

DTYPES = {getattr(torch, name): name for name in
          ("float64", "float32", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")}
# Constants of more elements than this go to a file.
INLINE = 64


class GraphError(Exception):
    """What cannot be written as a graph; the message is for the user."""


def contiguous(shape, strides):
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= max(extent, 1)
    return True


def tensor_fields(value, what):
    if value.dtype not in DTYPES:
        raise GraphError(f"{what} is a tensor of {value.dtype}, which graphs do not have; "
                         f"expected one of {', '.join(DTYPES.values())}")
    fields = {"dtype": DTYPES[value.dtype], "shape": [int(extent) for extent in value.shape]}
    if 0 not in fields["shape"] and not contiguous(fields["shape"], value.stride()):
        fields["strides"] = [int(stride) for stride in value.stride()]
    return fields


def number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    return value


def reference(node, names):
    if node.op == "call_function" and node.target is operator.getitem:
        source, index = node.args
        if index != 0:
            return {"ref": names[source], "result": index}
        return {"ref": names[source], "result": 0} if is_list(source) else {"ref": names[source]}
    return {"ref": names[node]}


def is_list(node):
    return isinstance(node.meta.get("val"), (list, tuple))


def argument(value, names, what):
    if isinstance(value, torch.fx.Node):
        return reference(value, names)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, (list, tuple)):
        return [argument(element, names, what) for element in value]
    if isinstance(value, torch.dtype):
        if value not in DTYPES:
            raise GraphError(f"{what} asks for {value}, which graphs do not have")
        return {"dtype": DTYPES[value]}
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return {"enum": str(value)}
    raise GraphError(f"{what} has an argument of type {type(value).__name__}, which graphs do not have: {value!r}")


def operation(node):
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        raise GraphError(f"node '{node.name}' calls {target}, which is not an ATen operation")
    return str(target)


def where_of(node):
    """The user's line that a node comes from, as far as the trace has kept it."""
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")]
    return lines[-1] if lines else None


def uniform_node(name, node, names):
    """torch.ops.nova.uniform in the spelling of the dialect: operands, then attributes by name."""
    seed, stream, _ = node.args
    return {"name": name, "op": "nova.uniform", "args": [argument(seed, names, name)], "kwargs": {"stream": stream},
            "results": [tensor_fields(node.meta["val"], name)]}


def write_constant(name, value, constants, files):
    fields = {"name": name, **tensor_fields(value, f"constant '{name}'")}
    fields.pop("strides", None)
    if value.numel() <= INLINE:
        fields["values"] = [number(element) for element in value.detach().reshape(-1).tolist()]
    else:
        fields |= {"file": None, "key": name}
        files[name] = value.detach().contiguous()
    constants.append(fields)


def convert(module, inputs, outputs, name, producer):
    """The graph of `module`, whose placeholders are `inputs` (fields but dtype and shape) and whose
    results are `outputs` (fields but the reference; None: leave it out). Gives it and the tensors of
    constants that go to a file."""
    graph, names, taken = module.graph, {}, {entry["name"] for entry in inputs}
    graph_inputs, constants, nodes, files = [], [], [], {}
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node, entry in zip(placeholders, inputs, strict=True):
        names[node] = entry["name"]
        graph_inputs.append({**entry, **tensor_fields(node.meta["val"], f"input '{entry['name']}'")})

    def fresh(wanted):
        unique, count = wanted, 1
        while unique in taken:
            unique, count = f"{wanted}_{count}_", count + 1
        taken.add(unique)
        return unique

    result = None
    for node in graph.nodes:
        if node.op == "get_attr":
            names[node] = fresh(node.name)
            value = module
            for part in node.target.split("."):
                value = getattr(value, part)
            value = getattr(value, "constant", None) if isinstance(value, torch._subclasses.FakeTensor) else value
            if value is None:
                raise GraphError(f"constant '{node.target}' has no value: it was made on the meta device")
            write_constant(names[node], value, constants, files)
        elif node.op == "call_function" and node.target is not operator.getitem:
            names[node] = fresh(node.name)
            if node.target is torch.ops.nova.uniform.default:
                nodes.append(uniform_node(names[node], node, names))
                continue
            entry = {"name": names[node], "op": operation(node),
                     "args": [argument(value, names, f"node '{node.name}'") for value in node.args]}
            if node.kwargs:
                entry["kwargs"] = {key: argument(value, names, f"node '{node.name}'")
                                   for key, value in node.kwargs.items()}
            values = node.meta["val"]
            entry["results"] = [None if value is None else tensor_fields(value, f"node '{node.name}'")
                                for value in (values if isinstance(values, (list, tuple)) else [values])]
            nodes.append(entry)
        elif node.op == "output":
            result = node.args[0]
    graph_outputs = []
    for node, entry in zip(result, outputs, strict=True):
        if entry is not None:
            graph_outputs.append({**reference(node, names), **entry})
    return {"format": "nova.graph", "version": 1, "name": name, "producer": producer, "inputs": graph_inputs,
            "constants": constants, "nodes": nodes, "outputs": graph_outputs}, files


def text(graph):
    """JSON with one input, node or output a line."""
    dump = lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False)
    parts = []
    for key, value in graph.items():
        if isinstance(value, list) and value:
            parts.append(f' "{key}": [\n' + ",\n".join("  " + dump(element) for element in value) + "\n ]")
        else:
            parts.append(f' "{key}": {dump(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
