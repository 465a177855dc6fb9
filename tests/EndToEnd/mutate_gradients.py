#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Is `verify` able to fail? Every gradient of a graph is scaled by 0, -1 and 1.1
in turn, inside the graph, and each time verify must refuse the step. (By 0, -1 and
2 where the graph multiplies 16-bit numbers: the rule allows 5% there, of an update
of which the gradient is a part.)

A gradient that is zero but for rounding, as that of a bias of keys, which softmax
takes back, cannot be mutated: those below a millionth of the largest are counted.

  mutate_gradients.py --novac NOVAC --graph GRAPH.json --data FILE.safetensors

A gradient is what the elementwise operations of an optimizer begin with: walking
back from each update of a parameter, the first results that no elementwise
operation made. Behind each, a multiplication by a scalar input is inserted; so
one compilation serves all mutations, and with every scalar 1 verify must pass.
"""
import argparse
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

SCALES = {"f32": (0.0, -1.0, 1.1), "bf16": (0.0, -1.0, 2.0)}
ELEMENTWISE = {"add", "sub", "mul", "div", "sqrt", "rsqrt", "addcmul", "addcdiv", "pow", "neg", "lerp", "reciprocal"}


def refs(value):
    if isinstance(value, dict):
        if "ref" in value:
            yield value
    elif isinstance(value, list):
        for element in value:
            yield from refs(element)


def arguments_of(node):
    yield from refs(node["args"])
    yield from refs(list(node.get("kwargs", {}).values()))


def key(ref):
    return ref["ref"], ref.get("result", 0)


def find_gradients(graph):
    """(node, result) of every gradient, in order."""
    nodes = {node["name"]: node for node in graph["nodes"]}
    shapes = {i["name"]: i["shape"] for i in graph["inputs"] if i["role"] == "parameter"}
    found = set()
    for output in graph["outputs"]:
        if output["role"] == "gradient":
            found.add(key(output))
        if output["role"] != "update" or output["updates"] not in shapes:
            continue
        shape = shapes[output["updates"]]
        todo, seen = [key(output)], set()
        while todo:
            value = todo.pop()
            if value in seen or value[0] not in nodes:
                continue
            seen.add(value)
            node = nodes[value[0]]
            result = node["results"][value[1]]
            if node["op"].split(".")[1].rstrip("_") in ELEMENTWISE:
                todo += [key(r) for r in arguments_of(node)]
            elif result["shape"] == shape and result["dtype"].startswith("float"):
                found.add(value)
    order = {name: i for i, name in enumerate(nodes)}
    return sorted(found, key=lambda value: (order[value[0]], value[1]))


def largest_elements(novac, graph, gradients, data, folder):
    """max |g| of each gradient, of a run of the graph that gives them."""
    outputs = [{"ref": name, **({"result": result} if result else {}), "role": "gradient"} for name, result in gradients]
    (folder / "gradients.json").write_text(json.dumps(graph | {"outputs": outputs}))
    subprocess.run([novac, "compile", folder / "gradients.json", "-o", folder / "gradients.nova", "--target", "host",
                    "--no-cache"], check=True, capture_output=True)
    subprocess.run([novac, "run", folder / "gradients.nova", "--data", data, "--out", folder / "gradients"], check=True,
                   capture_output=True)
    header, raw = read_safetensors(folder / "gradients")
    found = []
    for i in range(len(gradients)):
        entry = header[f"out/{i}"]
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":  # the upper half of a float32
            values = struct.unpack(f"<{(end - begin) // 2}H", raw[begin:end])
            values = struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}I", *(v << 16 for v in values)))
        else:
            values = struct.unpack(f"<{(end - begin) // 4}f", raw[begin:end])
        found.append(max(map(abs, values)))
    return found


def mutable(graph, gradients):
    """The graph with a scalar input multiplied onto each gradient."""
    graph["inputs"] += [{"name": f"mutation_{i}", "role": "scalar", "dtype": "float32", "shape": []}
                        for i in range(len(gradients))]
    scaled, nodes = {}, []

    def redirect(ref):
        if key(ref) in scaled:
            ref["ref"] = scaled[key(ref)]
            ref.pop("result", None)

    for node in graph["nodes"]:
        for ref in arguments_of(node):
            redirect(ref)
        nodes.append(node)
        for i, (name, result) in enumerate(gradients):
            if name != node["name"]:
                continue
            scaled[name, result] = f"mutated_{i}"
            nodes.append({"name": f"mutated_{i}", "op": "aten.mul.Tensor",
                          "args": [{"ref": name, "result": result}, {"ref": f"mutation_{i}"}],
                          "results": [{k: v for k, v in node["results"][result].items() if k != "strides"}]})
    for output in graph["outputs"]:
        redirect(output)
    graph["nodes"] = nodes


def read_safetensors(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + size]), raw[8 + size:]


def write_safetensors(path, header, data, scalars):
    header = dict(header)
    for i, value in enumerate(scalars):
        header[f"in/mutation_{i}"] = {"dtype": "F32", "shape": [], "data_offsets": [len(data), len(data) + 4]}
        data = data + struct.pack("<f", value)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    parser = argparse.ArgumentParser()
    for name in ("novac", "graph", "data"):
        parser.add_argument("--" + name, required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    graph = json.loads(arguments.graph.read_text())
    gradients = find_gradients(graph)
    if not gradients:
        sys.exit("FAIL: found no gradient to scale")
    header, data = read_safetensors(arguments.data)
    failures, rounding = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for constants in arguments.graph.parent.glob("*.safetensors"):
            shutil.copy(constants, folder) # a link out of the folder is refused
        sizes = largest_elements(arguments.novac, graph, gradients, arguments.data, folder)
        mutable(graph, gradients)
        (folder / "graph.json").write_text(json.dumps(graph))
        subprocess.run([arguments.novac, "compile", folder / "graph.json", "-o", folder / "step.nova", "--target", "host",
                        "--no-cache"], check=True)

        def verify(scalars):
            write_safetensors(folder / "data", header, data, scalars)
            return subprocess.run([arguments.novac, "verify", folder / "step.nova", "--data", folder / "data", "--json"],
                                  capture_output=True, text=True)

        ones = [1.0] * len(gradients)
        untouched = verify(ones)
        if untouched.returncode != 0:
            sys.exit(f"FAIL: the untouched step is refused:\n{untouched.stdout}{untouched.stderr}")
        scales = SCALES[json.loads(untouched.stdout)["column"]]
        for i, gradient in enumerate(gradients):
            if sizes[i] < 1e-6 * max(sizes):
                rounding += 1
                continue
            for scale in scales:
                result = verify(ones[:i] + [scale] + ones[i + 1:])
                if result.returncode != 5:
                    failures += 1
                    print(f"FAIL: {gradient[0]}:{gradient[1]} scaled by {scale}: verify exits with {result.returncode}, expected 5")
    total = (len(gradients) - rounding) * len(scales)
    print(f"{arguments.graph.stem}: {len(gradients)} gradients, {rounding} of them zero but for rounding, "
          f"{total - failures} of {total} mutations refused")
    if rounding == len(gradients):
        failures = 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
