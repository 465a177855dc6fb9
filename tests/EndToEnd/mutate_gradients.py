#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shows that `verify` sees a wrong gradient: scales the gradient of each updated
parameter by 0, -1 and 1.1, one at a time, inside the graph, and expects exit
status 5 every time.

  mutate_gradients.py --novac NOVAC --graph GRAPH.json --data FILE [--jobs N]

The gradient of a parameter is what its optimizer multiplies by the learning
rate (SGD: `p - lr * g`) or blends into the first moment (Adam:
`b * exp_avg + (1 - b) * g`).
"""
import argparse
import concurrent.futures
import copy
import json
import pathlib
import subprocess
import sys
import tempfile


def key(value):
    return (value["ref"], value.get("result", 0)) if isinstance(value, dict) and "ref" in value else None


class Step:
    def __init__(self, graph):
        self.inputs = {i["name"]: i for i in graph["inputs"]}
        self.paths = {i["path"]: i["name"] for i in graph["inputs"]}
        self.nodes = {n["name"]: n for n in graph["nodes"]}
        self.updates = {o["updates"]: (o["ref"], o.get("result", 0)) for o in graph["outputs"] if "updates" in o}

    def factors(self, value):
        """The tensor operands of a product, or nothing."""
        node = self.nodes.get(value[0]) if value else None
        if not node or not node["op"].startswith("aten.mul."):
            return []
        return [key(a) for a in node["args"] if key(a)]

    def blended(self, update, into):
        """g in `update = c * into + c' * g` or `into - c * g`."""
        node = self.nodes.get(update[0])
        if not node or node["op"] not in ("aten.add.Tensor", "aten.sub.Tensor"):
            return None
        terms = [key(a) for a in node["args"]]
        for mine, other in (terms, terms[::-1]):
            if mine == (into, 0) or (into, 0) in self.factors(mine):
                scaled = [f for f in self.factors(other) if f[0] not in self.inputs]
                if len(scaled) == 1:
                    return scaled[0]
        return None

    def gradient(self, parameter):
        moment = self.paths.get(self.inputs[parameter]["path"] + ".exp_avg")
        if moment:
            return self.blended(self.updates[moment], moment)
        return self.blended(self.updates[parameter], parameter)


def mutated(graph, gradient, factor):
    graph = copy.deepcopy(graph)
    name, result = gradient
    at = next(i for i, n in enumerate(graph["nodes"]) if n["name"] == name)
    tensor = {k: v for k, v in graph["nodes"][at]["results"][result].items() if k != "strides"}
    scaled = {"name": name + "__scaled", "op": "aten.mul.Tensor", "args": [{"ref": name, "result": result}, factor],
              "results": [tensor]}

    def rename(value):
        if key(value) == gradient:
            value.clear()
            value["ref"] = scaled["name"]
        elif isinstance(value, list):
            for item in value:
                rename(item)

    for node in graph["nodes"][at + 1:]:
        rename(node["args"])
        rename(list(node.get("kwargs", {}).values()))
    for output in graph["outputs"]:
        if key(output) == gradient:
            output["ref"] = scaled["name"]
            output.pop("result", None)
    graph["nodes"].insert(at + 1, scaled)
    return graph


def main():
    parser = argparse.ArgumentParser()
    for name in ("novac", "graph", "data"):
        parser.add_argument("--" + name, required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    graph = json.loads(arguments.graph.read_text())
    step = Step(graph)
    parameters = [i["name"] for i in graph["inputs"] if i["role"] == "parameter" and i["name"] in step.updates]
    unknown = [p for p in parameters if step.gradient(p) is None]
    if unknown or not parameters:
        sys.exit(f"{arguments.graph.name}: found no gradient for {unknown or 'any parameter'}")

    def run(case):
        parameter, factor = case
        path = step.inputs[parameter]["path"]
        with tempfile.TemporaryDirectory() as folder:
            for constants in graph["constants"]:
                if "file" in constants:
                    (pathlib.Path(folder) / constants["file"]).write_bytes(
                        (arguments.graph.parent / constants["file"]).read_bytes())
            file = pathlib.Path(folder) / "mutated.json"
            file.write_text(json.dumps(mutated(graph, step.gradient(parameter), factor)))
            done = subprocess.run([arguments.novac, "verify", file, "--data", arguments.data, "--target", "host"],
                                  capture_output=True, text=True)
        if done.returncode == 5:
            return None
        return f"gradient of {path} times {factor}: expected exit status 5, got {done.returncode}\n{done.stderr[-2000:]}"

    cases = [(p, f) for p in parameters for f in (0.0, -1.0, 1.1)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        missed = [m for m in pool.map(run, cases) if m]
    for text in missed:
        print(text)
    print(f"{arguments.graph.stem}: {len(cases) - len(missed)} of {len(cases)} wrong gradients were seen")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
