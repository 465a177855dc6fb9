#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times products beside torch.matmul (cuBLAS), and attention beside torch's, in one process.

  bench_products.py write FOLDER [--set issue|gpt2|attention|all]
      writes one graph per problem, PROBLEM.json; compile each into PROBLEM.nova:
      novac compile PROBLEM.json --target sm_90a --out PROBLEM.nova
      (those of float32 with --precision tf32)
  bench_products.py run FOLDER --nova-rt libnova_rt.so [--only TEXT] [--rounds 7] [--out RESULTS.json]

A problem is named M x N x K by layout and type. NN: A[M,K] B[K,N]; NT: A[M,K] B[N,K]^T; TN: A[K,M]^T B[K,N].
Contenders alternate; every round repeats each for about 10 ms; times are of the device, by events, medians of
rounds. Before that, results are compared with float64 on sampled rows: the error printed is max|e| / max|ref|.
"""
import argparse
import json
import math
import pathlib
import statistics
import time

BF16_ISSUE = [(4096, 4096, 4096), (5120, 5120, 5120), (16384, 3072, 768), (16384, 768, 3072), (16384, 50304, 768)]
GPT2 = [("NT", 8192, 2304, 768), ("NT", 8192, 768, 768), ("NT", 8192, 3072, 768), ("NT", 8192, 768, 3072),
        ("NT", 8192, 50304, 768), ("NN", 8192, 768, 2304), ("NN", 8192, 768, 768), ("NN", 8192, 3072, 768),
        ("NN", 8192, 768, 3072), ("NN", 8192, 768, 50304), ("TN", 768, 2304, 8192), ("TN", 2304, 768, 8192),
        ("TN", 768, 768, 8192), ("TN", 3072, 768, 8192), ("TN", 768, 3072, 8192), ("TN", 50304, 768, 8192)]
ATTENTION = [(8, 12, 512, 64), (8, 12, 1024, 64), (8, 12, 2048, 64), (8, 16, 1024, 64), (8, 32, 1024, 64), (8, 16, 1024, 128),
             (8, 32, 1024, 128), (4, 32, 2048, 128)]
SAMPLED = 64


def problems(which):
    found = []
    if which in ("issue", "all"):
        found += [(layout, *sizes, dtype) for sizes in BF16_ISSUE for layout in ("NN", "NT", "TN") for dtype in ("bfloat16", "float32")]
    if which in ("gpt2", "all"):
        found += [(*problem, dtype) for problem in GPT2 for dtype in ("bfloat16", "float32")]
    if which in ("attention", "all"):
        found += [("attention", *shape, dtype) for shape in ATTENTION for dtype in ("bfloat16", "float32")]
    return found


def name_of(problem):
    kind, *sizes, dtype = problem
    return f"{kind}_{'x'.join(map(str, sizes))}_{dtype}"


def product_graph(layout, m, n, k, dtype):
    left = [k, m] if layout[0] == "T" else [m, k]
    right = [n, k] if layout[1] == "T" else [k, n]
    nodes, operands = [], []
    for name, shape, turned in (("a", left, layout[0] == "T"), ("b", right, layout[1] == "T")):
        operands.append({"ref": name})
        if turned:
            nodes.append({"name": name + "_t", "op": "aten.t.default", "args": [{"ref": name}],
                          "results": [{"dtype": dtype, "shape": shape[::-1], "strides": [1, shape[1]]}]})
            operands[-1] = {"ref": name + "_t"}
    nodes.append({"name": "mm", "op": "aten.mm.default", "args": operands, "results": [{"dtype": dtype, "shape": [m, n]}]})
    return ([("a", left), ("b", right)], nodes, [("mm", 0)])


def attention_graph(b, h, t, d, dtype):
    """Forward and backward of causal attention, q, k, v and gradient as projections leave them: [b, t, h, d] in memory."""
    shape, strides = [b, h, t, d], [h * t * d, d, h * d, 1]
    value = {"dtype": dtype, "shape": shape, "strides": strides}
    nodes, names = [], {}
    for name in ("q", "k", "v", "g"):
        nodes.append({"name": name + "_t", "op": "aten.transpose.int", "args": [{"ref": name}, 1, 2], "results": [value]})
        names[name] = {"ref": name + "_t"}
    spelled = {"bfloat16": "cudnn", "float32": "efficient"}[dtype]
    lse = {"dtype": "float32", "shape": [b, h, t, 1] if dtype == "bfloat16" else [b, h, t]}
    number = {"dtype": "int64", "shape": []}
    q, k, v, g = (names[x] for x in "qkvg")
    scale = {"scale": 1 / math.sqrt(d)}
    if dtype == "bfloat16":
        nodes.append({"name": "fwd", "op": "aten._scaled_dot_product_cudnn_attention.default", "args": [q, k, v, None, True, 0.0, True],
                      "kwargs": scale, "results": [value, lse, None, None, None, None, number, number, None]})
        nodes.append({"name": "bwd", "op": "aten._scaled_dot_product_cudnn_attention_backward.default",
                      "args": [g, q, k, v, {"ref": "fwd"}, {"ref": "fwd", "result": 1}, {"ref": "fwd", "result": 6},
                               {"ref": "fwd", "result": 7}, None, None, None, t, t, 0.0, True],
                      "kwargs": scale, "results": [value] * 3})
    else:
        nodes.append({"name": "fwd", "op": "aten._scaled_dot_product_efficient_attention.default", "args": [q, k, v, None, True, 0.0, True],
                      "kwargs": scale, "results": [value, lse, number, number]})
        nodes.append({"name": "bwd", "op": "aten._scaled_dot_product_efficient_attention_backward.default",
                      "args": [g, q, k, v, None, {"ref": "fwd"}, {"ref": "fwd", "result": 1}, {"ref": "fwd", "result": 2},
                               {"ref": "fwd", "result": 3}, 0.0, [True, True, True, False], True],
                      "kwargs": scale, "results": [value] * 3 + [None]})
    return ([(x, [b, t, h, d]) for x in "qkvg"], nodes, [("fwd", 0), ("bwd", 0), ("bwd", 1), ("bwd", 2)])


def graph_of(problem, role="output"):
    """The problem as a graph; its results have `role`."""
    kind, *sizes, dtype = problem
    make = attention_graph if kind == "attention" else lambda *rest: product_graph(kind, *rest)
    inputs, nodes, outputs = make(*sizes, dtype)
    return {"format": "nova.graph", "version": 1, "name": name_of(problem), "producer": {"torch": "2.11.0", "decomposed": False},
            "inputs": [{"name": n, "role": "input", "path": n, "dtype": dtype, "shape": s} for n, s in inputs],
            "constants": [], "nodes": nodes,
            "outputs": [{"ref": n, "role": role, **({"result": r} if r else {})} for n, r in outputs]}


def write(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for problem in problems(arguments.set):
        (arguments.folder / f"{name_of(problem)}.json").write_text(json.dumps(graph_of(problem)))


def torch_product(torch, layout, inputs, out):
    a, b = inputs
    a, b = (a.t() if layout[0] == "T" else a), (b.t() if layout[1] == "T" else b)
    return lambda: torch.mm(a, b, out=out)


def torch_attention(torch, shape, dtype, inputs):
    """The fastest of torch's backends for forward and backward, each once."""
    q, k, v, g = (x.transpose(1, 2) for x in inputs)
    scale = 1 / math.sqrt(shape[-1])
    found = {}
    if dtype == torch.bfloat16:
        def cudnn():
            f = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, True, scale=scale)
            return f[0], *torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
                g, q, k, v, f[0], f[1], f[6], f[7], None, f[2], f[3], f[4], f[5], 0.0, True, scale=scale)

        def flash():
            f = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True, False, scale=scale)
            return f[0], *torch.ops.aten._scaled_dot_product_flash_attention_backward(
                g, q, k, v, f[0], f[1], f[2], f[3], f[4], f[5], 0.0, True, f[6], f[7], scale=scale)
        found = {"cudnn": cudnn, "flash": flash}
    else:
        def efficient():
            f = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, True, scale=scale)
            return f[0], *torch.ops.aten._scaled_dot_product_efficient_attention_backward(
                g, q, k, v, None, f[0], f[1], f[2], f[3], 0.0, [True, True, True, False], True, scale=scale)[:3]
        found = {"efficient": efficient}
    return found


def judge(torch, problem, inputs, outputs):
    kind, *sizes, _ = problem
    if kind == "attention":
        b, h, t, d = sizes
        q, k, v, g = (x[0:1].transpose(1, 2)[:, :2].double().requires_grad_(True) for x in inputs)
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        o.backward(g.detach())
        references = [o.detach(), q.grad, k.grad, v.grad]
        return max(float((out[0:1, :2].double() - ref).abs().max() / ref.abs().max()) for out, ref in zip(outputs, references))
    a, b = inputs
    a, b = (a.t() if kind[0] == "T" else a), (b.t() if kind[1] == "T" else b)
    rows = torch.randint(0, a.shape[0], (SAMPLED,), device=a.device)
    reference = a[rows].double() @ b.double()
    return float((outputs[0][rows].double() - reference).abs().max() / reference.abs().max())


def run(arguments):
    import torch

    import bench_step
    import nova_rt
    device = torch.device("cuda", 0)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.zeros(1, device=device)
    library = nova_rt.Library(arguments.nova_rt)
    clock = bench_step.Clock(True)
    torch.cuda.set_stream(clock.stream)
    results = {}
    for problem in problems("all"):
        name = name_of(problem)
        bundle = arguments.folder / f"{name}.nova"
        if not bundle.exists() or not any(text in name for text in arguments.only.split(",")):
            continue
        kind, *sizes, dtype = problem
        dtype = getattr(torch, dtype)
        torch.manual_seed(1)
        shapes = [s for _, s in (attention_graph(*sizes, "float32") if kind == "attention" else product_graph(kind, *sizes, ""))[0]]
        inputs = [torch.randn(s, device=device).to(dtype) for s in shapes]
        signature = nova_rt.Signature(library, bundle)
        outputs = bench_step.output_buffers(signature, device)
        step = nova_rt.Step(library, bundle, 0, "graph")
        step.bind(signature.addresses(inputs, outputs))
        contenders = {"nova": lambda: step.launch(clock.handle())}
        if kind == "attention":
            contenders |= torch_attention(torch, sizes, dtype, inputs)
            flops = 3.5 * 2 * sizes[0] * sizes[1] * sizes[2] ** 2 * sizes[3]
        else:
            contenders["torch"] = torch_product(torch, kind, inputs, torch.empty_like(outputs[0]))
            flops = 2 * math.prod(sizes)
        contenders["nova"]()
        torch.cuda.synchronize()
        error = judge(torch, problem, inputs, outputs)
        for function in contenders.values():
            function()
        once = max(clock.time(contenders["nova"], 3), 1e-3)
        repeats = max(1, min(200, int(arguments.milliseconds / once)))
        times = {key: [] for key in contenders}
        for r in range(arguments.rounds):
            for key in list(contenders)[::-1 if r % 2 else 1]:
                times[key].append(clock.time(contenders[key], repeats))
        medians = {key: statistics.median(t) for key, t in times.items()}
        best = min(v for key, v in medians.items() if key != "nova")
        results[name] = {"us": {key: round(v * 1e3, 2) for key, v in medians.items()}, "ratio": round(best / medians["nova"], 4),
                         "tflops": round(flops / medians["nova"] / 1e9, 1), "error": error, "repeats": repeats}
        print(f"{name:44}" + " ".join(f"{k} {v * 1e3:9.1f}" for k, v in medians.items()) +
              f"  ratio {best / medians['nova']:.3f}  {flops / medians['nova'] / 1e9:6.1f} TF/s  error {error:.1e}", flush=True)
        step.close()
    for kinds, dtype in ((("NN", "NT", "TN"), "bfloat16"), (("NN", "NT"), "float32"), (("TN",), "float32"), (("attention",), "bfloat16"), (("attention",), "float32")):
        ratios = [r["ratio"] for n, r in results.items() if n.split("_")[0] in kinds and n.endswith(dtype)]
        if ratios:
            print(f"geometric mean, {' '.join(kinds)} {dtype}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f} of {len(ratios)}")
    if arguments.out:
        arguments.out.write_text(json.dumps({
            "what": "products and attention beside torch, one process, alternating", "date": time.strftime("%Y-%m-%d"), "commit": arguments.commit,
            "device": torch.cuda.get_device_name(0), "peers": f"torch {torch.__version__}, CUDA {torch.version.cuda}",
            "how": "tests/Device/bench_products.py", "results": results}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    writer = verbs.add_parser("write")
    writer.add_argument("folder", type=pathlib.Path)
    writer.add_argument("--set", default="all")
    writer.set_defaults(verb=write)
    runner = verbs.add_parser("run")
    runner.add_argument("folder", type=pathlib.Path)
    runner.add_argument("--nova-rt", required=True)
    runner.add_argument("--only", default="")
    runner.add_argument("--rounds", type=int, default=7)
    runner.add_argument("--milliseconds", type=float, default=10)
    runner.add_argument("--commit")
    runner.add_argument("--out", type=pathlib.Path)
    runner.set_defaults(verb=run)
    arguments = parser.parse_args()
    arguments.verb(arguments)


if __name__ == "__main__":
    main()
