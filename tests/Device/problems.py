# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random graphs of one problem each: what the classes of random_problems.py draw.

Decisions that rounding could flip (comparisons, maxima with an index) are taken
on inputs only, so that any right program agrees with the reference.
"""
import math
import random

SIZES = [1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 200, 255, 256, 257, 384, 511, 512,
         513, 640, 768, 1000, 1024]
END = 9223372036854775807


class Value:
    def __init__(self, name, shape, dtype, result=0):
        self.name, self.shape, self.dtype, self.result = name, list(shape), dtype, result

    def ref(self):
        return {"ref": self.name, "result": self.result} if self.result else {"ref": self.name}


class Builder:
    def __init__(self, rng, dtype):
        self.rng, self.dtype = rng, dtype
        self.inputs, self.nodes, self.outputs = [], [], []

    # --- pieces -----------------------------------------------------------------

    def size(self, limit=1024, least=1):
        found = [s for s in SIZES if least <= s <= limit]
        # A size that divides nothing, now and then.
        return self.rng.choice(found) if self.rng.random() < 0.8 else self.rng.randint(least, limit)

    def input(self, shape, dtype=None, role="input", path=None, strides=None, **extra):
        name = f"x{len(self.inputs)}"
        entry = {"name": name, "role": role, "path": path or name, "dtype": dtype or self.dtype, "shape": list(shape)} | extra
        if strides:
            entry["strides"] = strides
        self.inputs.append(entry)
        return Value(name, shape, entry["dtype"])

    def op(self, op, args, shape, result=None, **kwargs):
        """A node of one result, of dtype `result`."""
        return self.ops(op, args, [(shape, result or self.dtype)], **kwargs)[0]

    def ops(self, op, args, results, **kwargs):
        plain = lambda v: v.ref() if isinstance(v, Value) else [plain(x) for x in v] if isinstance(v, list) else v
        name = f"n{len(self.nodes)}"
        node = {"name": name, "op": op, "args": plain(args),
                "results": [None if r is None else {"dtype": r[1], "shape": list(r[0])} for r in results]}
        if kwargs:
            node["kwargs"] = {k: plain(v) for k, v in kwargs.items()}
        self.nodes.append(node)
        return [None if r is None else Value(name, r[0], r[1], i) for i, r in enumerate(results)]

    def output(self, value, role="output", updates=None):
        self.outputs.append(value.ref() | {"role": role} | ({"updates": updates.name} if updates else {}))

    def permute(self, value, perm):
        return self.op("aten.permute.default", [value, list(perm)], [value.shape[p] for p in perm], value.dtype)

    def operand(self, shape, dtype=None):
        """An input of that shape, in one of the layouts that real graphs have."""
        rng, rank = self.rng, len(shape)
        dtype = dtype or self.dtype
        kind = rng.choice(["plain", "plain", "plain", "strided", "permuted", "slice", "flat", "expanded"])
        if rank >= 2 and kind == "strided":
            order = list(range(rank))
            rng.shuffle(order)
            strides, step = [0] * rank, 1
            for d in order:
                strides[d] = step
                step *= max(shape[d], 1)
            # Row-major strides are left out, as the format says.
            usual = [math.prod(shape[d + 1:]) for d in range(rank)]
            return self.input(shape, dtype, strides=None if strides == usual else strides)
        if rank >= 2 and kind == "permuted":
            perm = list(range(rank))
            rng.shuffle(perm)
            stored = [0] * rank
            for i, p in enumerate(perm):
                stored[p] = shape[i]
            return self.permute(self.input(stored, dtype), perm)
        if rank >= 1 and kind == "slice":
            dim = rng.randrange(rank)
            before, after = rng.choice([0, 1, 3, 8]), rng.choice([0, 1, 4])
            larger = list(shape)
            larger[dim] += before + after
            return self.op("aten.slice.Tensor", [self.input(larger, dtype), dim, before, before + shape[dim]], shape, dtype)
        if kind == "flat":
            return self.op("aten.view.default", [self.input([math.prod(shape)], dtype), list(shape)], shape, dtype)
        if rank >= 2 and kind == "expanded" and rng.random() < 0.3:
            small = [1] + list(shape[1:])
            return self.op("aten.expand.default", [self.input(small, dtype), list(shape)], shape, dtype)
        return self.input(shape, dtype)

    def epilogue(self, value, steps=None):
        rng, shape = self.rng, value.shape
        for _ in range(rng.randint(0, 3) if steps is None else steps):
            kind = rng.choice(["bias", "gelu", "residual", "scale", "relu", "silu", "tanh", "sigmoid", "column"])
            if kind == "bias" and shape:
                value = self.op("aten.add.Tensor", [value, self.operand(shape[-1:])], shape)
            elif kind == "column" and len(shape) > 1:
                value = self.op("aten.mul.Tensor", [value, self.operand(shape[-2:-1] + [1])], shape)
            elif kind == "residual":
                value = self.op("aten.add.Tensor", [value, self.operand(shape)], shape)
            elif kind == "scale":
                value = self.op("aten.mul.Tensor", [value, round(rng.uniform(-2, 2), 3)], shape)
            elif kind == "gelu":
                value = self.op("aten.gelu.default", [value], shape, approximate=rng.choice(["none", "tanh"]))
            elif kind in ("relu", "silu", "tanh", "sigmoid"):
                value = self.op(f"aten.{kind}.default", [value], shape)
            if rng.random() < 0.15:
                self.output(value)
        return value

    def finish(self, name):
        if not self.outputs:
            raise ValueError("no outputs")
        if self.rng.random() < 0.05:  # one value several times
            again = {k: v for k, v in self.outputs[-1].items() if k != "updates"} | {"role": "output"}
            self.outputs += [again] * self.rng.randint(1, 3)
        return {"format": "nova.graph", "version": 1, "name": name, "producer": {}, "inputs": self.inputs, "constants": [],
                "nodes": self.nodes, "outputs": self.outputs}


def halved(shape_product, rng, sizes, limit):
    """Sizes made smaller until their product is at most the limit."""
    sizes = list(sizes)
    while shape_product(sizes) > limit:
        k = max(range(len(sizes)), key=lambda i: sizes[i])
        sizes[k] = max(1, sizes[k] // 2 + rng.choice([0, 1]))
    return sizes


# --- the classes -----------------------------------------------------------------

def matmul(b):
    rng = b.rng
    m, n, k = halved(math.prod, rng, [b.size(), b.size(), b.size(2048)], 1 << 26)
    kind = rng.choice(["nn", "nt", "tn", "tt", "addmm", "linear", "any"])
    if kind == "any":
        a, c = b.operand([m, k]), b.operand([k, n])
    else:
        a = b.permute(b.input([k, m]), [1, 0]) if kind[0] == "t" else b.input([m, k])
        c = b.op("aten.t.default", [b.input([n, k])], [k, n]) if kind[1] == "t" else b.input([k, n])
    scale = round(1 / math.sqrt(k), 4)
    if kind == "addmm":
        y = b.op("aten.addmm.default", [b.operand([n]), a, c], [m, n])
    elif kind == "linear":
        y = b.op("aten.linear.default", [a, b.operand([n, k]), b.input([n]) if rng.random() < .5 else None], [m, n])
    else:
        y = b.op("aten.mm.default", [a, c], [m, n])
    y = b.op("aten.mul.Tensor", [y, scale], [m, n])
    b.output(b.epilogue(y))
    if rng.random() < 0.2:
        b.output(b.op("aten.sum.dim_IntList", [y, [0]], [n]), "gradient")


def batched(b):
    rng = b.rng
    batch, m, n, k = halved(math.prod, rng, [b.size(33), b.size(300), b.size(300), b.size(300)], 1 << 24)
    a, c = b.operand([batch, m, k]), b.operand([batch, k, n])
    y = b.op("aten.bmm.default", [a, c], [batch, m, n])
    y = b.op("aten.mul.Tensor", [y, round(1 / math.sqrt(k), 4)], [batch, m, n])
    b.output(b.epilogue(y))


def linear_backward(b):
    """The three products of a layer, and the sum over columns."""
    rows, n, k = halved(math.prod, b.rng, [b.size(2048), b.size(), b.size()], 1 << 25)
    x, w, g = b.operand([rows, k]), b.operand([n, k]), b.operand([rows, n])
    wt = b.op("aten.t.default", [w], [k, n])
    y = b.op("aten.addmm.default", [b.operand([n]), x, wt], [rows, n])
    act = b.op("aten.gelu.default", [y], [rows, n], approximate="tanh")
    b.output(act)
    g = b.op("aten.gelu_backward.default", [g, y], [rows, n], approximate="tanh")
    b.output(b.op("aten.mm.default", [g, w], [rows, k]), "gradient")
    gt = b.op("aten.t.default", [g], [n, rows])
    b.output(b.op("aten.mm.default", [gt, x], [n, k]), "gradient")
    b.output(b.op("aten.sum.dim_IntList", [g, [0], b.rng.random() < .5 and len(b.nodes) < 0], [n]), "gradient")


def layer_norm(b):
    rng = b.rng
    rows, c = halved(math.prod, rng, [b.size(2000), b.size(4096, 3)], 1 << 21)
    lead = rng.choice([[rows], [1, rows], [rows, 1]])
    shape, stats = lead + [c], lead + [1]
    x, g = b.operand(shape), b.operand(shape)
    w = b.input([c], role="parameter", path="norm.weight") if rng.random() < .8 else None
    bias = b.input([c], role="parameter", path="norm.bias") if w and rng.random() < .8 else None
    y, mean, rstd = b.ops("aten.native_layer_norm.default", [x, [c], w, bias, 1e-5],
                          [(shape, b.dtype), (stats, "float32"), (stats, "float32")])
    b.output(b.epilogue(y))
    if rng.random() < 0.8:
        mask = [True, w is not None, bias is not None]
        made = b.ops("aten.native_layer_norm_backward.default", [g, x, [c], mean, rstd, w, bias, mask],
                     [(shape, b.dtype), (([c], b.dtype) if mask[1] else None), (([c], b.dtype) if mask[2] else None)])
        for value in made:
            if value:
                b.output(value, "gradient")


def rms_norm(b):
    rows, c = halved(math.prod, b.rng, [b.size(2000), b.size(4096, 2)], 1 << 21)
    shape, stats = [rows, c], [rows, 1]
    x, g = b.operand(shape), b.operand(shape)
    w = b.input([c], role="parameter", path="norm.weight")
    square = b.op("aten.pow.Tensor_Scalar", [x, 2], shape)
    mean = b.op("aten.mean.dim", [square, [-1], True], stats)
    r = b.op("aten.rsqrt.default", [b.op("aten.add.Tensor", [mean, 1e-5], stats)], stats)
    normed = b.op("aten.mul.Tensor", [x, r], shape)
    b.output(b.op("aten.mul.Tensor", [normed, w], shape))
    gn = b.op("aten.mul.Tensor", [g, normed], shape)
    b.output(b.op("aten.sum.dim_IntList", [gn, [0]], [c]), "gradient")
    h = b.op("aten.mul.Tensor", [g, w], shape)
    dot = b.op("aten.sum.dim_IntList", [b.op("aten.mul.Tensor", [h, x], shape), [1], True], stats)
    cube = b.op("aten.pow.Tensor_Scalar", [r, 3], stats)
    factor = b.op("aten.mul.Scalar", [b.op("aten.mul.Tensor", [dot, cube], stats), 1.0 / c], stats)
    left, right = b.op("aten.mul.Tensor", [h, r], shape), b.op("aten.mul.Tensor", [x, factor], shape)
    b.output(b.op("aten.sub.Tensor", [left, right], shape), "gradient")


def softmax(b):
    rng = b.rng
    shape = halved(math.prod, rng, [b.size(700) for _ in range(rng.randint(1, 3))], 1 << 20)
    dim = rng.choice([-1, -1, -1, rng.randrange(len(shape))])
    log = rng.random() < .5
    x, g = b.operand(shape), b.operand(shape)
    if rng.random() < .4 and not log:  # masked, perhaps a whole row
        mask = b.op("aten.gt.Scalar", [b.operand(shape, "float32"), 2.0], shape, "bool")
        x = b.op("aten.masked_fill.Scalar", [x, mask, -20.0], shape)
    name = "_log_softmax" if log else "_softmax"
    y = b.op(f"aten.{name}.default", [x, dim, False], shape)
    b.output(b.epilogue(y, 1 if rng.random() < .3 else 0))
    b.output(b.op(f"aten.{name}_backward_data.default", [g, y, dim, {"dtype": b.dtype}], shape), "gradient")


def loss_and_gradient(b, x, target, shape):
    """Cross entropy of logits, and their gradient, as outputs."""
    y = b.op("aten._log_softmax.default", [x, 1, False], shape)
    loss, weight = b.ops("aten.nll_loss_forward.default", [y, target, None, 1, -100], [([], b.dtype), ([], b.dtype)])
    b.output(loss, "loss")
    one = b.op("aten.full_like.default", [loss, 1], [])
    g = b.op("aten.nll_loss_backward.default", [one, y, target, None, 1, -100, weight], shape)
    b.output(b.op("aten._log_softmax_backward_data.default", [g, y, 1, {"dtype": b.dtype}], shape), "gradient")


def cross_entropy(b):
    rng = b.rng
    rows, classes = halved(math.prod, rng, [b.size(1024), b.size(8000, 2)], 1 << 20)
    x, target = b.operand([rows, classes]), b.input([rows], "int64")
    if rng.random() < .4:  # some are ignored
        odd = b.op("aten.eq.Scalar", [target, rng.randrange(classes)], [rows], "bool")
        target = b.op("aten.masked_fill.Scalar", [target, odd, -100], [rows], "int64")
    loss_and_gradient(b, x, target, [rows, classes])


def attention(b):
    rng = b.rng
    d = rng.choice([8, 16, 16, 32, 40, 64, 64, 80, 96, 128])
    t, batch, heads = halved(lambda s: s[0] * s[0] * s[1] * s[2] * d, rng, [b.size(513), b.size(3), b.size(5)], 1 << 25)
    t = max(t, 2)
    causal = rng.random() < .5
    s = t if causal else halved(lambda v: v[0] * t * batch * heads * d, rng, [b.size(513)], 1 << 25)[0]
    s = max(s, 2)  # one key has the gradient zero, of which only rounding is left

    def heads_of(length):
        if rng.random() < .7:  # as a projection leaves them
            return b.permute(b.input([batch, length, heads, d]), [0, 2, 1, 3])
        return b.operand([batch, heads, length, d])

    q, k, v, g = heads_of(t), heads_of(s), heads_of(s), heads_of(t)
    qs, ks = [batch, heads, t, d], [batch, heads, s, d]
    scale = round(d ** -0.5 * rng.choice([1, 1, 0.7]), 6)
    kind = rng.choice(["fused", "fused", "spelled"])
    bias = None
    if not causal and rng.random() < .5:
        blocked = b.op("aten.gt.Scalar", [b.operand([batch, 1, t, s], "float32"), 1.5], [batch, 1, t, s], "bool")
        # Never a whole row: what is left of scores beside -10000 is rounding.
        later = b.op("aten.gt.Scalar", [b.op("aten.arange.default", [s], [s], "int64"), 0], [s], "bool")
        blocked = b.op("aten.logical_and.default", [blocked, later], [batch, 1, t, s], "bool")
        zero = b.op("aten.full.default", [[batch, 1, t, s], 0.0], [batch, 1, t, s], dtype={"dtype": b.dtype})
        bias = b.op("aten.masked_fill.Scalar", [zero, blocked, -10000.0], [batch, 1, t, s])
        if kind == "fused":
            bias = b.op("aten.expand.default", [bias, [batch, heads, t, s]], [batch, heads, t, s])
    if kind == "fused" and (b.dtype == "float32" or bias):
        out, lse, seed, offset = b.ops("aten._scaled_dot_product_efficient_attention.default", [q, k, v, bias, True, 0.0, causal],
                                       [(qs, b.dtype), ([batch, heads, (t + 31) // 32 * 32], "float32"), ([], "int64"), ([], "int64")], scale=scale)
        made = b.ops("aten._scaled_dot_product_efficient_attention_backward.default",
                     [g, q, k, v, bias, out, lse, seed, offset, 0.0, [True, True, True, False], causal],
                     [(qs, b.dtype), (ks, b.dtype), (ks, b.dtype), None], scale=scale)[:3]
    elif kind == "fused":
        out, lse, _, _, _, _, seed, offset, _ = b.ops(
            "aten._scaled_dot_product_flash_attention.default", [q, k, v, 0.0, causal],
            [(qs, b.dtype), ([batch, heads, t], "float32"), None, None, None, None, ([], "int64"), ([], "int64"), None], scale=scale)
        made = b.ops("aten._scaled_dot_product_flash_attention_backward.default",
                     [g, q, k, v, out, lse, None, None, t, s, 0.0, causal, seed, offset],
                     [(qs, b.dtype), (ks, b.dtype), (ks, b.dtype)], scale=scale)
    else:
        flat = lambda x: b.op("aten.reshape.default", [x, [batch * heads] + x.shape[2:]], [batch * heads] + x.shape[2:])
        turned = lambda x: b.op("aten.transpose.int", [x, 1, 2], [x.shape[0], x.shape[2], x.shape[1]])
        q3, k3, v3, g3, n = flat(q), flat(k), flat(v), flat(g), batch * heads
        score = b.op("aten.mul.Scalar", [b.op("aten.bmm.default", [q3, turned(k3)], [n, t, s]), scale], [n, t, s])
        full = b.op("aten.view.default", [score, [batch, heads, t, s]], [batch, heads, t, s])
        if causal:
            row = b.op("aten.unsqueeze.default", [b.op("aten.arange.default", [t], [t], "int64"), 1], [t, 1], "int64")
            future = b.op("aten.gt.Tensor", [b.op("aten.arange.default", [s], [s], "int64"), row], [t, s], "bool")
            low = b.op("aten.scalar_tensor.default", [{"float": "-inf"}], [], dtype={"dtype": b.dtype})
            full = b.op("aten.where.self", [future, low, full], [batch, heads, t, s])
        elif bias:
            full = b.op("aten.add.Tensor", [full, bias], [batch, heads, t, s])
        p4 = b.op("aten._softmax.default", [full, -1, False], [batch, heads, t, s])
        p = b.op("aten.view.default", [p4, [n, t, s]], [n, t, s])
        out = b.op("aten.bmm.default", [p, v3], [n, t, d])
        dv = b.op("aten.bmm.default", [turned(p), g3], [n, s, d])
        dp = b.op("aten.view.default", [b.op("aten.bmm.default", [g3, turned(v3)], [n, t, s]), [batch, heads, t, s]], [batch, heads, t, s])
        ds = b.op("aten._softmax_backward_data.default", [dp, p4, -1, {"dtype": b.dtype}], [batch, heads, t, s])
        ds = b.op("aten.mul.Scalar", [b.op("aten.view.default", [ds, [n, t, s]], [n, t, s]), scale], [n, t, s])
        made = [b.op("aten.bmm.default", [ds, k3], [n, t, d]), b.op("aten.bmm.default", [turned(ds), q3], [n, s, d]), dv]
    b.output(out)
    if rng.random() < .85:
        for value in made:
            b.output(value, "gradient")


def elementwise(b):
    rng = b.rng
    shape = halved(math.prod, rng, [b.size(700) for _ in range(rng.randint(1, 4))], 1 << 20)
    value = b.operand(shape)
    for _ in range(rng.randint(1, 9)):
        other = [1 if rng.random() < .3 else s for s in shape][rng.randrange(len(shape)):]
        kind = rng.choice(["binary", "binary", "unary", "where", "cast", "divide", "pow", "back"])
        if kind == "binary":
            name = rng.choice(["add", "sub", "mul"])
            value = b.op(f"aten.{name}.Tensor", [value, b.operand(other)], shape)
        elif kind == "unary":
            value = b.op(f"aten.{rng.choice(['tanh', 'neg', 'sigmoid', 'silu', 'relu', 'abs', 'sin', 'cos', 'erf'])}.default", [value], shape)
        elif kind == "where":
            mask = b.op("aten.gt.Scalar", [b.operand(other, "float32"), 0.3], other, "bool")
            value = b.op("aten.where.self", [mask, value, b.operand(shape)], shape)
        elif kind == "cast":
            there, back = ("bfloat16", "float32") if b.dtype == "float32" else ("float32", "bfloat16")
            if b.dtype == "bfloat16":
                value = b.op("aten._to_copy.default", [value], shape, there, dtype={"dtype": there})
                value = b.op("aten.exp.default", [b.op("aten.tanh.default", [value], shape, there)], shape, there)
                value = b.op("aten._to_copy.default", [value], shape, back, dtype={"dtype": back})
        elif kind == "divide":
            positive = b.op("aten.add.Tensor", [b.op("aten.abs.default", [b.operand(other)], other), 0.5], other)
            value = b.op("aten.div.Tensor", [value, positive], shape)
        elif kind == "pow":
            value = b.op("aten.tanh.default", [b.op("aten.pow.Tensor_Scalar", [value, rng.choice([2, 3, 2.0])], shape)], shape)
        elif kind == "back":
            value = b.op(f"aten.{rng.choice(['tanh', 'sigmoid'])}_backward.default", [value, b.operand(shape)], shape)
            value = b.op("aten.tanh.default", [value], shape)
    if not b.nodes:
        value = b.op("aten.neg.default", [value], shape)
    b.output(value)


def reduction(b):
    rng = b.rng
    shape = halved(math.prod, rng, [b.size(1500) for _ in range(rng.randint(1, 3))], 1 << 20)
    x = b.operand(shape)
    y = b.epilogue(x, rng.randint(0, 2))
    if not b.nodes:
        y = b.op("aten.mul.Tensor", [x, 0.5], shape)
    for _ in range(rng.randint(1, 3)):
        dims = sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape))))
        keep = rng.random() < .5
        out = [1 if d in dims else s for d, s in enumerate(shape)] if keep else [s for d, s in enumerate(shape) if d not in dims]
        kind = rng.choice(["sum", "sum", "mean", "amax", "amin", "var"])
        if kind == "var" and math.prod(shape[d] for d in dims) > 1:
            r = b.op("aten.var.correction", [y, dims], out, correction=rng.choice([0, 1]), keepdim=keep)
        elif kind in ("amax", "amin"):
            r = b.op(f"aten.{kind}.default", [y, dims, keep], out)
        elif kind == "mean":
            r = b.op("aten.mean.dim", [y, dims, keep], out)
        else:
            r = b.op("aten.sum.dim_IntList", [y, dims, keep], out)
        b.output(r)
    if rng.random() < .3:
        b.output(b.op("aten.cumsum.default", [b.op("aten.tanh.default", [x], shape), rng.randrange(len(shape))], shape))


def embedding(b):
    rng = b.rng
    rows, c, t, batch = b.size(1000, 2), b.size(300), b.size(200), b.size(4)
    table, index = b.input([rows, c], role="parameter"), b.input([batch, t], "int64")
    y = b.op("aten.embedding.default", [table, index], [batch, t, c])
    b.output(b.epilogue(y))
    g = b.operand([batch, t, c])
    back = b.op("aten.embedding_dense_backward.default", [g, index, rows, -1, False], [rows, c])
    b.output(back, "gradient")
    if rng.random() < .3:
        step = b.op("aten.mul.Tensor", [back, 0.1], [rows, c])
        b.output(b.op("aten.sub.Tensor", [table, step], [rows, c]), "update", table)


def indexing(b):
    rng = b.rng
    rows, c, n = b.size(300, 2), b.size(200), b.size(200)
    x = b.operand([rows, c])
    kind = rng.choice(["index", "index_select", "gather", "scatter_add", "index_put", "two", "max"])
    if kind == "index":
        b.output(b.op("aten.index.Tensor", [x, [b.input([n], "int64")]], [n, c]))
    elif kind == "index_select":
        b.output(b.op("aten.index_select.default", [x, 0, b.input([n], "int64")], [n, c]))
    elif kind == "gather":
        b.output(b.op("aten.gather.default", [x, 0, b.input([n, c], "int64")], [n, c]))
    elif kind == "scatter_add":
        b.output(b.op("aten.scatter_add.default", [x, 0, b.input([n, c], "int64"), b.operand([n, c])], [rows, c]), "gradient")
    elif kind == "index_put":
        b.output(b.op("aten.index_put.default", [x, [b.input([n], "int64")], b.operand([n, c]), True], [rows, c]), "gradient")
    elif kind == "two" and c > 1:
        b.output(b.op("aten.index.Tensor", [x, [b.input([n], "int64"), b.input([n], "int64")]], [n]))
    else:
        dim = rng.randrange(2)
        out = [s for d, s in enumerate([rows, c]) if d != dim]
        values, where = b.ops("aten.max.dim", [b.input([rows, c], "float32"), dim], [(out, "float32"), (out, "int64")])
        b.output(values)
        b.output(where)


def adamw(b):
    rng = b.rng
    b.dtype = "float32"
    step = b.input([], "float32", "scalar", "step", advance=1)
    count = b.op("aten.add.Tensor", [step, 1], [])
    low = rng.random() < .3
    power1, power2 = (b.op("aten.rsub.Scalar", [b.op("aten.pow.Scalar", [beta, count], []), 1], []) for beta in (0.9, 0.999))
    root = b.op("aten.sqrt.default", [power2], [])
    for k in range(rng.randint(1, 3)):
        shape = halved(math.prod, rng, [b.size(1500) for _ in range(rng.randint(1, 2))], 1 << 20)
        p = b.input(shape, role="parameter", path=f"p{k}.weight")
        m, v = b.input(shape, role="state", path=f"p{k}.exp_avg"), b.input(shape, role="state", path=f"p{k}.exp_avg_sq")
        g = b.operand(shape, "bfloat16" if low else "float32")
        if low:
            g = b.op("aten._to_copy.default", [g], shape, dtype={"dtype": "float32"})
        g = b.op("aten.mul.Tensor", [g, 0.01], shape)
        decayed = b.op("aten.mul.Tensor", [p, 0.99], shape)
        m1 = b.op("aten.add.Tensor", [b.op("aten.mul.Tensor", [m, 0.9], shape), b.op("aten.mul.Tensor", [g, 0.1], shape)], shape) \
            if rng.random() < .5 else b.op("aten.lerp.Scalar", [m, g, 0.1], shape)
        v1 = b.op("aten.add.Tensor", [b.op("aten.mul.Tensor", [v, 0.999], shape),
                                      b.op("aten.mul.Tensor", [b.op("aten.mul.Tensor", [g, g], shape), 0.001], shape)], shape) \
            if rng.random() < .5 else b.op("aten.addcmul.default", [b.op("aten.mul.Tensor", [v, 0.999], shape), g, g], shape, value=0.001)
        deviation = b.op("aten.div.Tensor", [b.op("aten.sqrt.default", [v1], shape), root], shape)
        deviation = b.op("aten.add.Tensor", [deviation, 1e-8], shape)
        size = b.op("aten.div.Tensor", [b.op("aten.div.Tensor", [m1, deviation], shape), power1], shape)
        p1 = b.op("aten.sub.Tensor", [decayed, b.op("aten.mul.Tensor", [size, 0.01], shape)], shape)
        for old, new in ((p, p1), (m, m1), (v, v1)):
            b.output(new, "update", old)


def moving(b):
    """Concatenation, slices, splits, padding, permutations."""
    rng = b.rng
    shape = halved(math.prod, rng, [b.size(300) for _ in range(rng.randint(1, 3))], 1 << 19)
    value = b.operand(shape)
    for _ in range(rng.randint(2, 6)):
        shape, rank = value.shape, len(value.shape)
        dim = rng.randrange(rank)
        kind = rng.choice(["cat", "slice", "pad", "permute", "view", "split", "select", "add", "stack"])
        if kind == "cat" and math.prod(shape) < 1 << 19:
            other = list(shape)
            other[dim] = b.size(40)
            out = list(shape)
            out[dim] += other[dim]
            value = b.op("aten.cat.default", [[value, b.operand(other)], dim], out)
        elif kind == "slice" and shape[dim] > 1:
            start, step = rng.randrange(shape[dim]), rng.choice([1, 1, 2, 3])
            out = list(shape)
            out[dim] = len(range(start, shape[dim], step))
            value = b.op("aten.slice.Tensor", [value, dim, start, END, step], out)
        elif kind == "pad":
            left, right = rng.choice([0, 1, 3]), rng.choice([0, 1, 2])
            value = b.op("aten.constant_pad_nd.default", [value, [left, right], 0.5], shape[:-1] + [shape[-1] + left + right])
        elif kind == "permute":
            perm = list(range(rank))
            rng.shuffle(perm)
            value = b.permute(value, perm)
        elif kind == "view":
            flat = rng.choice([[math.prod(shape)], shape + [1], [shape[0], math.prod(shape[1:])], [1] + shape])
            if len(flat) <= 4:
                value = b.op("aten.reshape.default", [value, flat], flat)
        elif kind == "split" and shape[dim] > 2:
            first = rng.randrange(1, shape[dim])
            sizes = [first, shape[dim] - first]
            parts = b.ops("aten.split_with_sizes.default", [value, sizes, dim],
                          [(shape[:dim] + [s] + shape[dim + 1:], b.dtype) for s in sizes])
            b.output(b.op("aten.mul.Tensor", [parts[0], 2.0], parts[0].shape))
            value = parts[1]
        elif kind == "select" and rank > 1:
            value = b.op("aten.select.int", [value, dim, rng.randrange(shape[dim])], shape[:dim] + shape[dim + 1:])
        elif kind == "stack" and rank < 4 and math.prod(shape) < 1 << 18:
            value = b.op("aten.stack.default", [[value, b.operand(shape)], dim], shape[:dim] + [2] + shape[dim:])
        else:
            value = b.op("aten.add.Tensor", [value, b.operand(value.shape)], value.shape)
    b.output(b.op("aten.mul.Tensor", [value, 0.5], value.shape))


CLASSES = {f.__name__: f for f in (matmul, batched, linear_backward, layer_norm, rms_norm, softmax, cross_entropy, attention,
                                   elementwise, reduction, embedding, indexing, adamw, moving)}


def draw(kind, seed):
    """(graph, class) of a seed; `kind` None: the class is drawn too."""
    rng = random.Random(seed)
    kind = kind or rng.choice(list(CLASSES))
    b = Builder(rng, rng.choice(["float32", "float32", "bfloat16"]))
    CLASSES[kind](b)
    return b.finish(f"{kind}_{seed}"), kind
