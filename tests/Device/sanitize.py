#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compute-sanitizer on each class of kernel, one after the other.

  sanitize.py make DIR --novac NOVAC [--target sm_90a] [--jobs N] [--only CLASS,...]
  sanitize.py run DIR --nova-run NOVA_RUN --commit HASH [--json FILE] [--only CLASS,...]
                  [--tools memcheck,racecheck,synccheck] [--jobs 4] [--allow-jit]

`make` writes a small graph of each class and its bundles: float32 multiplied in
f32 and in tf32, and bfloat16; it needs neither torch nor a GPU. `run` is for where
the device is, and needs no torch either: one step of each bundle, launch by
launch, under each tool, on random inputs. A class is clean when no tool reports
anything and the step ends well. One line per report, a table, and with --json
everything, with the device and the date. Exit status 1 where something was found.
"""
import argparse
import collections
import concurrent.futures
import datetime
import json
import pathlib
import random
import re
import subprocess
import sys
import time

import problems

PRECISIONS = {"f32": ("float32", "f32"), "tf32": ("float32", "tf32"), "bf16": ("bfloat16", "tf32")}
TOOLS = {"memcheck": ["--report-api-errors", "no"], "racecheck": ["--racecheck-report", "all"], "synccheck": []}


# --- the classes -------------------------------------------------------------------

def epilogue(b, y):
    """Scaled, bias, an activation and a residual."""
    shape = y.shape
    y = b.op("aten.mul.Tensor", [y, 0.125], shape)
    y = b.op("aten.add.Tensor", [y, b.input(shape[-1:])], shape)
    y = b.op("aten.gelu.default", [y], shape, approximate="tanh")
    b.output(b.op("aten.add.Tensor", [y, b.input(shape)], shape))


def gemm(left, right):
    def problem(b):
        m, n, k = 136, 200, 96
        x = b.permute(b.input([k, m]), [1, 0]) if left == "t" else b.input([m, k])
        y = b.op("aten.t.default", [b.input([n, k])], [k, n]) if right == "t" else b.input([k, n])
        epilogue(b, b.op("aten.mm.default", [x, y], [m, n]))
    return problem


def gemm_batched(b):
    epilogue(b, b.op("aten.bmm.default", [b.input([3, 72, 80]), b.input([3, 80, 104])], [3, 72, 104]))


def gemm_long(b):
    """A depth that is cut in two stages."""
    epilogue(b, b.op("aten.mm.default", [b.permute(b.input([4096, 64]), [1, 0]), b.input([4096, 128])], [64, 128]))


def layer_norm(b):
    shape, c = [40, 200], 200
    x, g = b.input(shape), b.input(shape)
    w, bias = b.input([c], role="parameter"), b.input([c], role="parameter")
    y, mean, rstd = b.ops("aten.native_layer_norm.default", [x, [c], w, bias, 1e-5],
                          [(shape, b.dtype), ([40, 1], "float32"), ([40, 1], "float32")])
    b.output(y)
    for value in b.ops("aten.native_layer_norm_backward.default", [g, x, [c], mean, rstd, w, bias, [True] * 3],
                       [(shape, b.dtype), ([c], b.dtype), ([c], b.dtype)]):
        b.output(value, "gradient")


def softmax(b):
    shape = [5, 24, 200]
    x, g = b.input(shape), b.input(shape)
    y = b.op("aten._softmax.default", [x, -1, False], shape)
    b.output(y)
    b.output(b.op("aten._softmax_backward_data.default", [g, y, -1, {"dtype": b.dtype}], shape), "gradient")


def cross_entropy(b):
    rows, classes = 48, 1000
    x, target = b.input([rows, classes]), b.input([rows], "int64")
    y = b.op("aten._log_softmax.default", [x, 1, False], [rows, classes])
    loss, weight = b.ops("aten.nll_loss_forward.default", [y, target, None, 1, -100], [([], b.dtype), ([], b.dtype)])
    b.output(loss, "loss")
    one = b.op("aten.full_like.default", [loss, 1], [])
    g = b.op("aten.nll_loss_backward.default", [one, y, target, None, 1, -100, weight], [rows, classes])
    b.output(b.op("aten._log_softmax_backward_data.default", [g, y, 1, {"dtype": b.dtype}], [rows, classes]), "gradient")


def attention(causal):
    def problem(b):
        batch, heads, t, d = 1, 2, 136, 64
        shape = [batch, heads, t, d]
        q, k, v, g = (b.permute(b.input([batch, t, heads, d]), [0, 2, 1, 3]) for _ in range(4))
        if b.dtype == "float32":
            out, lse, seed, offset = b.ops(
                "aten._scaled_dot_product_efficient_attention.default", [q, k, v, None, True, 0.0, causal],
                [(shape, b.dtype), ([batch, heads, 160], "float32"), ([], "int64"), ([], "int64")], scale=0.125)
            made = b.ops("aten._scaled_dot_product_efficient_attention_backward.default",
                         [g, q, k, v, None, out, lse, seed, offset, 0.0, [True, True, True, False], causal],
                         [(shape, b.dtype)] * 3 + [None], scale=0.125)[:3]
        else:
            out, lse, _, _, _, _, seed, offset, _ = b.ops(
                "aten._scaled_dot_product_flash_attention.default", [q, k, v, 0.0, causal],
                [(shape, b.dtype), ([batch, heads, t], "float32"), None, None, None, None, ([], "int64"), ([], "int64"), None],
                scale=0.125)
            made = b.ops("aten._scaled_dot_product_flash_attention_backward.default",
                         [g, q, k, v, out, lse, None, None, t, t, 0.0, causal, seed, offset], [(shape, b.dtype)] * 3, scale=0.125)
        b.output(out)
        for value in made:
            b.output(value, "gradient")
    return problem


def elementwise(b):
    shape = [3, 40, 100]
    y = b.op("aten.add.Tensor", [b.input(shape), b.input([40, 1])], shape)
    y = b.op("aten.mul.Tensor", [y, b.input([100])], shape)
    mask = b.op("aten.gt.Scalar", [b.input([3, 1, 1], "float32"), 0.3], [3, 1, 1], "bool")
    y = b.op("aten.where.self", [mask, y, b.input(shape)], shape)
    b.output(b.op("aten.tanh.default", [y], shape))
    b.output(b.op("aten.sigmoid.default", [b.permute(y, [2, 0, 1])], [100, 3, 40]))


def columns(b):
    x = b.input([4000, 72])
    b.output(b.op("aten.sum.dim_IntList", [x, [0]], [72]), "gradient")
    b.output(b.op("aten.amax.default", [b.input([33, 40]), [0]], [40]))


def running(b):
    b.output(b.op("aten.cumsum.default", [b.input([3, 5000]), 1], [3, 5000]))
    b.output(b.op("aten.cumsum.default", [b.input([300, 40]), 0], [300, 40]))


def gather(b):
    rows = b.op("aten.remainder.Scalar", [b.input([60], "int64"), 50], [60], "int64")
    b.output(b.op("aten.embedding.default", [b.input([50, 72]), rows, -1], [60, 72]))
    b.output(b.op("aten.gather.default", [b.input([50, 72]), 0, b.op("aten.remainder.Scalar", [b.input([7, 72], "int64"), 50],
                                                                   [7, 72], "int64")], [7, 72]))


def scatter_add(b):
    rows = b.op("aten.remainder.Scalar", [b.input([300], "int64"), 50], [300], "int64")
    b.output(b.op("aten.embedding_dense_backward.default", [b.input([300, 72]), rows, 50, -1, False], [50, 72]), "gradient")
    index = b.op("aten.remainder.Scalar", [b.input([20, 72], "int64"), 50], [20, 72], "int64")
    b.output(b.op("aten.scatter_add.default", [b.input([50, 72]), 0, index, b.input([20, 72])], [50, 72]))


def adamw(b):
    problems.adamw(b)


def linalg(dtype):
    """A kernel written in linalg, with a reduction of three operations that is no
    operation of any dialect of novac's, as the stage `fused` holds it."""
    t, name = {"float32": ("f32", "float32"), "bfloat16": ("bf16", "bfloat16")}[dtype]
    wide = "" if t == "f32" else f"%a = arith.extf %a0 : {t} to f32\n    %b = arith.extf %b0 : {t} to f32"
    a, b = ("%a", "%b") if t == "f32" else ("%a0", "%b0")
    return f'''module {{
func.func @step(%x: tensor<70x300x{t}> {{nova.name = "x", nova.role = "input", nova.path = "x"}},
                %y: tensor<300x{t}> {{nova.name = "y", nova.role = "input", nova.path = "y"}})
    -> (tensor<70xf32> {{nova.role = "gradient"}}) attributes {{nova.graph = "linalg"}} {{
  %r = nova.launch @distance(%x, %y) views [#nova.view<0, [300, 1]>, #nova.view<0, [1]>] nodes ["distance"]
      : (tensor<70x300x{t}>, tensor<300x{t}>) -> tensor<70xf32>
  return %r : tensor<70xf32>
}}
func.func private @distance(%x: tensor<70x300x{t}>, %y: tensor<300x{t}>) -> (tensor<70xf32> {{nova.map = array<i64: 0>}})
    attributes {{nova.kernel, nova.role = "rowwise", nova.space = array<i64: 70>}} {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<70xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<70xf32>) -> tensor<70xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>],
                       iterator_types = ["parallel", "reduction"]}}
      ins(%x, %y : tensor<70x300x{t}>, tensor<300x{t}>) outs(%f : tensor<70xf32>) {{
  ^bb0({a}: {t}, {b}: {t}, %sum: f32):
    {wide}
    %d = arith.subf %a, %b : f32
    %n = math.absf %d : f32
    %p = math.absf %a : f32
    %s = arith.addf %p, %one : f32
    %v = arith.divf %n, %s : f32
    %next = arith.addf %sum, %v : f32
    linalg.yield %next : f32
  }} -> tensor<70xf32>
  return %r : tensor<70xf32>
}}
}}
'''


CLASSES = {"gemm_nn": gemm("n", "n"), "gemm_nt": gemm("n", "t"), "gemm_tn": gemm("t", "n"), "gemm_tt": gemm("t", "t"),
           "gemm_batched": gemm_batched, "gemm_long": gemm_long, "layer_norm": layer_norm, "softmax": softmax,
           "cross_entropy": cross_entropy, "attention": attention(False), "attention_causal": attention(True),
           "elementwise": elementwise, "columns": columns, "running_sums": running, "gather": gather, "scatter_add": scatter_add,
           "adamw": adamw, "linalg": None}


# --- make --------------------------------------------------------------------------

def make(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)

    def build(kind, column):
        dtype, precision = PRECISIONS[column]
        name = f"{kind}.{column}"
        if kind == "linalg":
            path = arguments.folder / f"{name}.mlir"
            path.write_text(linalg(dtype))
        else:
            b = problems.Builder(random.Random(7), dtype)
            CLASSES[kind](b)
            path = arguments.folder / f"{name}.json"
            graph = {"format": "nova.graph", "version": 1, "name": kind, "producer": {}, "inputs": b.inputs, "constants": [],
                     "nodes": b.nodes, "outputs": b.outputs}
            path.write_text(json.dumps(graph, separators=(",", ":")))
        done = subprocess.run([str(c) for c in [arguments.novac, "compile", path, "-o", arguments.folder / f"{name}.nova", "--target",
                                                arguments.target, "--precision", precision, "--no-cache", "-j", 1]],
                              capture_output=True, text=True)
        return name, done.returncode, done.stderr.strip()

    pairs = [(kind, column) for kind in chosen(arguments) for column in PRECISIONS]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, status, said in pool.map(lambda pair: build(*pair), pairs):
            failed += status != 0
            if status:
                print(f"{name}: exit status {status}: {said}", flush=True)
    print(f"{len(pairs) - failed} of {len(pairs)} bundles in {arguments.folder}")
    return failed


def chosen(arguments):
    return [kind for kind in CLASSES if not arguments.only or kind in arguments.only.split(",")]


# --- run ---------------------------------------------------------------------------

def check(arguments, name, tool):
    """What the tool found (None: it found nothing), and how long it took."""
    command = ["compute-sanitizer", "--tool", tool, *TOOLS[tool], "--error-exitcode", "99", arguments.nova_run, "run",
               arguments.folder / f"{name}.nova", "--seed", "1", "--device", "0", "--launch", "plain", "--steps", "1"]
    if arguments.allow_jit:
        command.append("--allow-jit")
    start = time.monotonic()
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "more than 120 s", time.monotonic() - start
    text = done.stdout + done.stderr
    reports = [line.strip("= \t") for line in text.splitlines()
               if line.startswith("=========") and re.search(r"Error|Invalid|hazard|Barrier|Internal", line)
               and not re.search(r"(ERROR|RACECHECK) SUMMARY: 0 ", line)]
    clean = re.search(r"(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)", text)
    if done.returncode == 0 and clean and not reports:
        return None, time.monotonic() - start
    return " | ".join(reports[:4]) or f"exit status {done.returncode}: {text.strip()[-300:]}", time.monotonic() - start


def device():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True,
                              text=True)
    except OSError:
        return "none"
    return done.stdout.strip().splitlines()[0] if done.stdout.strip() else "none"


def run(arguments):
    tools, table, findings = arguments.tools.split(","), collections.OrderedDict(), []
    jobs = [(kind, column, tool) for kind in chosen(arguments) for column in PRECISIONS for tool in tools
            if (arguments.folder / f"{kind}.{column}.nova").exists()]
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for (kind, column, tool), (found, _) in zip(jobs, pool.map(lambda j: check(arguments, f"{j[0]}.{j[1]}", j[2]), jobs)):
            table.setdefault(kind, {}).setdefault(column, {})[tool] = "clean" if found is None else found
            if found:
                findings.append(f"{kind} {column} {tool}: {found}")
                print(findings[-1], flush=True)
    print(f"{'class':<18}" + "".join(f"{column:<8}" for column in PRECISIONS))
    for kind, columns in table.items():
        print(f"{kind:<18}" + "".join(
            f"{('clean' if all(v == 'clean' for v in columns[c].values()) else 'FOUND') if c in columns else '-':<8}"
            for c in PRECISIONS))
    print(f"{len(jobs) - len(findings)} of {len(jobs)} runs clean ({', '.join(tools)}), {time.monotonic() - start:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(
            {"what": "compute-sanitizer on each class of kernel (tests/Device/sanitize.py)", "device": device(),
             "date": datetime.date.today().isoformat(), "commit": arguments.commit, "tools": tools,
             "runs": len(jobs), "clean": len(jobs) - len(findings), "classes": table}, indent=1) + "\n")
    return len(findings) or not jobs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("make", "run"):
        sub = verbs.add_parser(verb)
        sub.add_argument("folder", type=pathlib.Path)
        sub.add_argument("--only", default="")
        sub.add_argument("--jobs", type=int, default=2 if verb == "make" else 4)
        if verb == "make":
            sub.add_argument("--novac", required=True)
            sub.add_argument("--target", default="sm_90a")
        else:
            sub.add_argument("--nova-run", required=True)
            sub.add_argument("--commit", required=True)
            sub.add_argument("--json", type=pathlib.Path)
            sub.add_argument("--tools", default=",".join(TOOLS))
            sub.add_argument("--allow-jit", action="store_true")
    arguments = parser.parse_args()
    sys.exit(1 if (make if arguments.verb == "make" else run)(arguments) else 0)


if __name__ == "__main__":
    main()
