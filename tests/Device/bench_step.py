#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times a bundle's step beside torch's on the same graph, in one process.

  bench_step.py GRAPH.json BUNDLE --nova-rt libnova_rt.so [--data FILE | --seed S]
                [--device 0|host] [--peers eager,compile] [--compile-mode MODE,...]
                [--rounds 10] [--steps 10] [--launch graph|chain|plain] [--out RESULTS.json]

Contenders: the bundle through the C interface; `eager`, the graph's nodes
called one by one; `compile`, the same nodes under torch.compile(fullgraph=True)
(once per mode: default, max-autotune-no-cudagraphs, reduce-overhead, ...). All
have their inputs on the device, attention runs in the operators that the graph
names, and float32 is multiplied as the bundle does. The bundle and `compile`
replace parameters and state in place; `eager` returns them. Rounds of --steps
steps alternate, in turned order every other round; times are medians over
rounds, of the device by events (host: of the wall clock). Each contender
steps its own copy of the inputs, and its first loss is printed.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import make_inputs
import nova_rt
import run_graph_torch
import tensor_files


class Clock:
    """Milliseconds of some work on a device."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.stream = torch.cuda.Stream() if cuda else None

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()

    def handle(self):
        return self.stream.cuda_stream if self.cuda else None

    def time(self, function, times):
        self.wait()
        if not self.cuda:
            started = time.perf_counter()
            for _ in range(times):
                function()
            return (time.perf_counter() - started) * 1e3 / times
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(times):
            function()
        last.record()
        self.wait()
        return first.elapsed_time(last) / times


def spread(values):
    return {"median": round(statistics.median(values), 5), "min": round(min(values), 5), "max": round(max(values), 5), "count": len(values)}


def copies(tensors):
    """The same values in the same layout elsewhere."""
    made = []
    for t in tensors:
        made.append(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(t))
    return made


def output_buffers(signature, device):
    return [None if t.updates >= 0 else torch.empty_strided(t.sizes(), t.steps(), dtype=getattr(torch, t.dtype.decode()), device=device)
            for t in signature.outputs]


def total_bytes(tensors):
    return sum(t.untyped_storage().nbytes() for t in tensors if t is not None)


def cpu_microseconds(work, clock, count=60):
    """Of the CPU, per call, on an idle device."""
    times = []
    for _ in range(count):
        clock.wait()
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1e6)
    clock.wait()
    return spread(times[count // 6:])


def bench_nova(arguments, library, inputs, clock, device):
    """(Step, its bound buffers, numbers)"""
    ordinal = nova_rt.HOST if device.type == "cpu" else int(arguments.device)
    numbers, opens, complete = {}, [], []
    signature = nova_rt.Signature(library, arguments.bundle)
    for k in range(arguments.opens):
        ours, outputs = copies(inputs), output_buffers(signature, device)
        addresses = signature.addresses(ours, outputs)
        clock.wait()
        started = time.perf_counter()
        step = nova_rt.Step(library, arguments.bundle, ordinal, arguments.launch)
        step.bind(addresses)
        step.launch(clock.handle())
        opens.append((time.perf_counter() - started) * 1e3)
        clock.wait()
        complete.append((time.perf_counter() - started) * 1e3)
        if k + 1 < arguments.opens:
            step.close()
            del ours, outputs
    numbers["open_to_first_launch_ms"] = spread(opens)
    numbers["first_open_to_first_launch_ms"] = round(opens[0], 5)
    numbers["open_to_first_step_done_ms"] = spread(complete)
    second, second_outputs = copies(inputs), output_buffers(signature, device)
    other = signature.addresses(second, second_outputs)

    def unchanged():
        step.bind(addresses)
        step.launch(clock.handle())

    turn = [0]

    def changed():
        turn[0] ^= 1
        step.bind(other if turn[0] else addresses)
        step.launch(clock.handle())

    numbers["bind_unchanged_launch_us"] = cpu_microseconds(unchanged, clock)
    numbers["bind_all_changed_launch_us"] = cpu_microseconds(changed, clock)
    step.bind(addresses)
    del second, second_outputs, other
    for mine, first in zip(ours, inputs):
        mine.copy_(first)
    target = step.target()
    numbers |= {"launches": target.launches, "kernels": target.kernels, "graph_nodes": step.instance_info().graph_nodes,
                "arena_bytes": target.arena_bytes, "arena_lower_bound": target.arena_lower_bound,
                "peak_bytes": target.arena_bytes + target.constant_bytes + total_bytes(ours) + total_bytes(outputs),
                "target": target.name.decode(), "matmul": signature.info.matmul.decode()}
    return step, ours, outputs, numbers


def loss_of(graph, outputs, in_place):
    """The first loss among the outputs that a module returns."""
    kept = [o for o in graph["outputs"] if not (in_place and o["role"] == "update")]
    for output, value in zip(kept, outputs):
        if output["role"] == "loss":
            return float(value)
    return None


def bench_peer(name, runner, inputs, mode, clock, device):
    """(function of no arguments, numbers)"""
    in_place = name == "compile"
    module = runner.module(in_place)
    mine = copies(inputs)
    numbers = {}
    function = module
    if name == "compile":
        torch._dynamo.reset()
        function = torch.compile(module, fullgraph=True, **({} if mode == "default" else {"mode": mode}))
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
    started = time.perf_counter()
    with torch.no_grad():
        outputs = function(*mine)
        numbers["first_loss"] = loss_of(runner.graph, outputs, in_place)
        clock.wait()
        numbers["first_step_s"] = round(time.perf_counter() - started, 3)
        del outputs
        function(*mine)
        clock.wait()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
            function(*mine)
            clock.wait()
            numbers["peak_bytes"] = torch.cuda.max_memory_allocated() - before + total_bytes(mine)

    def call():
        with torch.no_grad():
            function(*mine)

    numbers["launch_cpu_us"] = cpu_microseconds(call, clock, 12)
    return call, numbers


def write_results(path, name, entry, device_name, commit):
    """Adds one graph to a file like those of tests/bench/results."""
    data = json.loads(path.read_text()) if path.exists() else {
        "what": "step time beside torch eager and torch.compile", "date": time.strftime("%Y-%m-%d"), "commit": commit,
        "device": device_name, "peers": f"torch {torch.__version__}", "graphs": {},
        "how": "tests/Device/bench_step.py: one process, alternating rounds, medians; times in ms, of the device by events"}
    data["graphs"][name] = entry
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--nova-rt", required=True)
    parser.add_argument("--data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="0")
    parser.add_argument("--peers", default="eager,compile")
    parser.add_argument("--compile-mode", default="default")
    parser.add_argument("--launch", default="graph", choices=nova_rt.LAUNCH)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--opens", type=int, default=3)
    parser.add_argument("--name", help="the entry in the results (default: the graph's name and how it multiplies)")
    parser.add_argument("--commit")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    cuda = arguments.device != "host"
    device = torch.device("cuda", int(arguments.device)) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)  # torch's context is the one that the bundle is loaded into
    clock = Clock(cuda)
    if cuda:
        torch.cuda.set_stream(clock.stream)  # everybody's
    library = nova_rt.Library(arguments.nova_rt)
    matmul = json.loads((arguments.bundle / "manifest.json").read_text())["numerics"]["matmul"]
    precision = "f32" if matmul == "f32" or not cuda else "tf32"
    runner = run_graph_torch.Runner(arguments.graph, device, precision)
    run_graph_torch.set_precision(precision)
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data
        if not data:
            data = folder + "/inputs.safetensors"
            make_inputs.make(runner.graph, arguments.seed, data)
        inputs = list(runner.inputs(tensor_files.Reader(data)).values())
    if not cuda:  # views of the mapped file lie where they lie
        inputs = copies(inputs)
    step, ours, outputs, numbers = bench_nova(arguments, library, inputs, clock, device)
    step.launch(clock.handle())
    clock.wait()
    losses = [t for t, o in zip(outputs, runner.graph["outputs"]) if o["role"] == "loss"]
    numbers["first_loss"] = float(losses[0]) if losses else None
    contenders = {"nova": (lambda: step.launch(clock.handle()), numbers)}
    # torch.compile may take minutes, or more than there are.
    alone = [clock.time(contenders["nova"][0], arguments.steps) for _ in range(3)]
    print(f"nova alone: {statistics.median(alone):.4f} ms a step, first loss {numbers['first_loss']}", flush=True)
    for peer in filter(None, arguments.peers.split(",")):
        for mode in arguments.compile_mode.split(",") if peer == "compile" else [None]:
            key = peer if mode in (None, "default") else f"{peer} {mode}"
            print(f"{key} ...", file=sys.stderr, flush=True)
            try:
                contenders[key] = bench_peer(peer, runner, inputs, mode, clock, device)
            except Exception as error:
                print(f"{key}: {type(error).__name__}: {str(error)[:2000]}", file=sys.stderr)
    times = {key: [] for key in contenders}
    for function, _ in contenders.values():
        clock.time(function, max(1, arguments.steps // 2))
    for r in range(arguments.rounds):
        for key in list(contenders)[::-1 if r % 2 else 1]:
            times[key].append(clock.time(contenders[key][0], arguments.steps))
    entry = {"nodes": len(runner.graph["nodes"]), "matmul": matmul, "rounds": arguments.rounds, "steps_per_round": arguments.steps}
    for key, (_, values) in contenders.items():
        entry[key] = {"step_ms": spread(times[key])} | values
    best = min((statistics.median(times[k]) for k in contenders if k != "nova"), default=None)
    if best:
        entry["best_peer_over_nova"] = round(best / statistics.median(times["nova"]), 4)
    device_name = "host CPU"
    if cuda:
        device_name = f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"
    commit = arguments.commit
    if not commit:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                                cwd=pathlib.Path(__file__).parent).stdout.strip()
    print(f"{'contender':<40}{'step ms':<12}{'min':<12}{'max':<12}{'peak MB':<12}first loss")
    for key in contenders:
        s, v = entry[key]["step_ms"], entry[key]
        print(f"{key:<40}{s['median']:<12.4f}{s['min']:<12.4f}{s['max']:<12.4f}{v.get('peak_bytes', 0) / 1e6:<12.1f}{v['first_loss']}")
    for key in ("open_to_first_launch_ms", "open_to_first_step_done_ms", "bind_unchanged_launch_us", "bind_all_changed_launch_us"):
        print(f"nova {key:<35}{numbers[key]['median']}")
    if best:
        print(f"best peer / nova: {entry['best_peer_over_nova']}")
    if arguments.out:
        write_results(arguments.out, arguments.name or f"{runner.graph['name']} {matmul}", entry, device_name, commit)


if __name__ == "__main__":
    main()
