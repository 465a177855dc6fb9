# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small graph of each class of kernel, for sanitize.py. Sizes are small, and divide nothing."""
import json
import random

import problems

PRECISIONS = {"f32": ("float32", "f32"), "tf32": ("float32", "tf32"), "bf16": ("bfloat16", "tf32")}


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
    problems.loss_and_gradient(b, x, target, [rows, classes])


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


def write(folder, kind, column):
    """The graph of a class for a column of PRECISIONS, as a file; its path."""
    dtype = PRECISIONS[column][0]
    if kind == "linalg":
        path = folder / f"{kind}.{column}.mlir"
        path.write_text(linalg(dtype))
        return path
    b = problems.Builder(random.Random(7), dtype)
    CLASSES[kind](b)
    path = folder / f"{kind}.{column}.json"
    path.write_text(json.dumps({"format": "nova.graph", "version": 1, "name": kind, "producer": {}, "inputs": b.inputs,
                                "constants": [], "nodes": b.nodes, "outputs": b.outputs}, separators=(",", ":")))
    return path
