#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Valid graphs drawn at random over the whole vocabulary, computed by PyTorch on the CPU
while they are drawn, compiled by novac for host (or simulated) and compared.

Each value that a graph gives is one that PyTorch has the same, well within the tolerance,
in float32 and float64: what depends on rounding is left out.

  random_vocabulary.py --novac NOVAC [--count N] [--seed S] [--simulate TARGET] [--keep FOLDER]

A failure prints its seed; `--seed S --count 1` makes that graph again, and --keep leaves it.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import torch
from safetensors.torch import save_file

from torch_step.graph_json import DTYPES, number, tensor_fields

warnings.filterwarnings("ignore")
aten = torch.ops.aten
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


class Value:
    def __init__(self, name, tensor, result=0, depth=0):
        self.name, self.tensor, self.result, self.depth = name, tensor, result, depth
        self.used = False
        self.steep = False  # a small difference of an operand is a large one here: not for comparing

    @property
    def shape(self):
        return tuple(self.tensor.shape)

    @property
    def dtype(self):
        return self.tensor.dtype


class Dead(Exception):
    """This draw leads nowhere (nothing fits): another is made."""


class Draw:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        torch.manual_seed(seed)
        self.inputs, self.nodes, self.values, self.calls = [], [], [], []
        rng = self.rng
        extents = [1, 2, 3, 4, 5, 7, 8, 12, 17, 33]
        dims = [rng.choice(extents) for _ in range(3)]
        if rng.random() < 0.04:
            dims[rng.randrange(3)] = 0
        self.dims = dims
        for _ in range(rng.randint(2, 4)):
            self.input(torch.randn(self.any_shape()))

    def any_shape(self):
        rng = self.rng
        return rng.choice([self.dims, self.dims[1:], self.dims[:2], [self.dims[2]], [self.dims[0], 1, self.dims[2]],
                           [self.dims[1], self.dims[1]], []])

    def input(self, tensor, strided=True):
        rng = self.rng
        if strided and tensor.dim() > 1 and rng.random() < 0.15:
            order = list(range(tensor.dim()))
            rng.shuffle(order)
            back = [order.index(d) for d in range(len(order))]
            tensor = tensor.permute(order).contiguous().permute(back)
        value = Value(f"x{len(self.inputs)}", tensor)
        self.inputs.append(value)
        self.values.append(value)
        return value

    # Values.
    def pick(self, *tests, make=None):
        found = [v for v in self.values if all(test(v) for test in tests)]
        if not found or (make and self.rng.random() < 0.15):
            if make:
                return self.input(make())
            raise Dead
        late = found[-5:] if self.rng.random() < 0.6 else found
        return self.rng.choice(late)

    def floating(self, *tests):
        return self.pick(lambda v: v.dtype == torch.float32, *tests, make=None if tests else lambda: torch.randn(self.any_shape()))

    def like(self, value, tests=()):
        """A float32 value of a shape."""
        return self.pick(lambda v: v.dtype == torch.float32 and v.shape == value.shape and v is not value,
                         make=lambda: torch.randn(value.shape))

    def of(self, *shape, scale=1.0):
        return self.pick(lambda v: v.dtype == torch.float32 and v.shape == tuple(shape),
                         make=lambda: torch.randn(shape) * scale)

    def integers(self, shape, low, high, dtype=torch.int64):
        return self.input(torch.randint(low, high, tuple(shape), dtype=dtype), strided=False)

    # Nodes.
    def emit(self, op, *args, **kwargs):
        """Calls torch.ops.<op> now, and writes the node."""
        namespace, name, overload = op.split(".")
        function = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        plain = lambda a: a.tensor if isinstance(a, Value) else [plain(e) for e in a] if isinstance(a, (list, tuple)) else a
        try:
            results = function(*plain(args), **{key: plain(value) for key, value in kwargs.items()})
        except (RuntimeError, IndexError, NotImplementedError) as error:
            raise Dead(str(error)) from error

        def spell(a):
            if isinstance(a, Value):
                a.used = True
                return {"ref": a.name} | ({"result": a.result} if a.result else {})
            if isinstance(a, (list, tuple)):
                return [spell(e) for e in a]
            if isinstance(a, torch.dtype):
                return {"dtype": DTYPES[a]}
            return number(a) if isinstance(a, float) else a

        outputs = list(results) if isinstance(results, (list, tuple)) else [results]
        for output in outputs:
            if output is not None and torch.is_tensor(output) and output.dtype not in DTYPES:
                raise Dead
        node = {"name": f"n{len(self.nodes)}", "op": op, "args": spell(args),
                "results": [None if o is None or not torch.is_tensor(o) else tensor_fields(o, op) for o in outputs]}
        if kwargs:
            node["kwargs"] = {key: spell(value) for key, value in kwargs.items()}
        self.nodes.append(node)
        self.calls.append((function, args, kwargs, node["name"]))
        made = [None if entry is None else Value(node["name"], o, i) for i, (o, entry) in enumerate(zip(outputs, node["results"]))]
        steep = is_steep(op, args)
        for value in made:
            if value is not None:
                value.steep = steep
        if not steep:
            self.values += [v for v in made if v is not None]
        return made if len(made) > 1 else made[0]

    def replay(self, noise=0.0):
        """All values again, floats in float64; each that is computed off by up to `noise` of itself."""
        random_numbers = torch.Generator().manual_seed(1)
        wide = lambda t: t.double() if t.is_floating_point() else t

        def made(t):
            t = wide(t)
            if not noise or not t.is_floating_point():
                return t
            return t * (1 + noise * (2 * torch.rand(t.shape, generator=random_numbers, dtype=t.dtype) - 1))
        known = {(v.name, 0): wide(v.tensor) for v in self.inputs}

        def plain(a):
            if isinstance(a, Value):
                return known[a.name, a.result]
            if isinstance(a, (list, tuple)):
                return [plain(e) for e in a]
            return torch.float64 if a in FLOATS else a

        for function, args, kwargs, name in self.calls:
            results = function(*plain(args), **{key: plain(value) for key, value in kwargs.items()})
            for i, result in enumerate(results if isinstance(results, (list, tuple)) else [results]):
                known[name, i] = made(result) if torch.is_tensor(result) else result
        return known


def is_steep(op, args):
    """Whether rounding could decide: a whole number near, values compared nearly equal."""
    values = [a.tensor.double() for a in args if isinstance(a, Value) and a.tensor.is_floating_point()]
    if not values or any(v.numel() == 0 for v in values):
        return False
    name, x = op.split(".")[1], values[0]
    if name in ("floor", "ceil", "trunc", "sign"):
        other = x.round() if name != "sign" else torch.zeros_like(x)
    elif name in ("lt", "le", "gt", "ge", "eq", "ne"):
        other = values[1] if len(values) > 1 else torch.tensor(float(args[1]) if not isinstance(args[1], Value) else 0.0)
    elif name in ("argmax", "argmin", "max", "min", "max_pool2d_with_indices"):
        rest = x.flatten().sort().values.diff()
        return bool(((rest < 1e-4) & (rest > 0)).any())
    else:
        return False
    gap = (x - other).abs()
    return bool((gap < 1e-4).any())


# What a graph is made of. Each function draws operands and emits one node, or a few.
OPS = []


def rule(weight=1):
    def add(function):
        OPS.append((function, weight))
        return function
    return add


def bounded(d, x, low=-3.0, high=3.0):
    return d.emit("aten.clamp.default", x, low, high)


def positive(d, x):
    return d.emit("aten.add.Tensor", d.emit("aten.abs.default", x), 0.5)


@rule(4)
def unary(d):
    op = d.rng.choice(["sigmoid", "tanh", "relu", "erf", "sin", "cos", "neg", "abs", "square", "silu", "clone", "detach", "alias",
                       "sign", "positive", "isnan", "isinf", "isfinite", "logical_not", "empty_fill"])
    x = d.floating()
    if op == "empty_fill":
        return d.emit("aten.fill.Scalar", d.emit("aten.empty_like.default", x), d.rng.choice([0.5, 2]))
    d.emit(f"aten.{op}.default", x)


@rule(2)
def guarded(d):
    op = d.rng.choice(["log", "sqrt", "rsqrt", "reciprocal", "exp", "log1p", "expm1", "log2", "log10", "floor", "ceil", "trunc"])
    x = d.floating()
    x = bounded(d, x) if op in ("exp", "expm1") else x if op in ("floor", "ceil", "trunc") else positive(d, x)
    d.emit(f"aten.{op}.default", x)


@rule(1)
def unguarded(d):
    """NaN and infinity travel; of little else, so rarely."""
    if d.rng.random() < 0.3:
        d.emit(f"aten.{d.rng.choice(['log', 'sqrt', 'rsqrt'])}.default", d.floating())


@rule(2)
def activations(d):
    x = d.floating()
    kind = d.rng.randrange(6)
    if kind == 0:
        d.emit("aten.gelu.default", x, approximate=d.rng.choice(["none", "tanh"]))
    elif kind == 1:
        d.emit("aten.gelu_backward.default", d.like(x), x, approximate=d.rng.choice(["none", "tanh"]))
    elif kind == 2:
        d.emit("aten.silu_backward.default", d.like(x), x)
    elif kind == 3:
        d.emit("aten.threshold_backward.default", d.like(x), x, d.rng.choice([0, 0.25]))
    else:
        y = d.emit(f"aten.{['tanh', 'sigmoid'][kind - 4]}.default", x)
        d.emit(f"aten.{['tanh', 'sigmoid'][kind - 4]}_backward.default", d.like(x), y)


def operand(d, x):
    """Something that broadcasts with x: a tensor of any kind, or a number."""
    rng = d.rng
    kind = rng.random()
    if kind < 0.2:
        return rng.choice([0.5, -1.25, 2, -3])
    if kind < 0.35:
        shape = [extent if rng.random() < 0.6 else 1 for extent in x.shape][rng.randrange(len(x.shape) + 1):]
        dtype = rng.choice([torch.int64, torch.int32, torch.bool, torch.uint8, torch.int8, torch.float64, torch.bfloat16, torch.float16])
        if dtype in FLOATS:
            return d.input(torch.randn(shape).to(dtype))
        return d.integers(shape, 0, 2 if dtype == torch.bool else 5, dtype)
    def fits(v):
        if v.dtype != torch.float32:
            return False
        try:
            return torch.broadcast_shapes(v.shape, x.shape).numel() <= 20000
        except RuntimeError:
            return False
    return d.pick(fits)


@rule(6)
def binary(d):
    rng = d.rng
    x = d.floating()
    y = operand(d, x)
    op = rng.choice(["add", "sub", "mul", "maximum", "minimum", "rsub", "div"])
    scalar = not isinstance(y, Value)
    if op in ("maximum", "minimum"):
        if scalar:
            raise Dead
        d.emit(f"aten.{op}.default", x, y)
    elif op in ("add", "sub", "rsub"):
        kwargs = {"alpha": rng.choice([2, 0.5, -1])} if rng.random() < 0.3 else {}
        if op == "sub" and not scalar and y.dtype == torch.bool:
            raise Dead
        d.emit(f"aten.{op}.{'Scalar' if scalar and op == 'rsub' else 'Tensor'}", x, y, **kwargs)
    elif op == "div":
        y = y if scalar else positive(d, y) if y.dtype == torch.float32 else None
        if y is None:
            raise Dead
        d.emit("aten.div.Tensor", x, y)
    else:
        d.emit("aten.mul.Tensor", x, y)


@rule(2)
def integer_arithmetic(d):
    """Promotion among integers, division towards either side, Python's remainder."""
    rng = d.rng
    dtype = rng.choice([torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
    shape = d.any_shape()
    x = d.integers(shape, 0 if dtype == torch.uint8 else -20, 20, dtype)
    kind = rng.randrange(8)
    divisor = rng.choice([1, 2, 3, 7]) * (1 if dtype == torch.uint8 else rng.choice([1, -1]))
    if kind == 0:
        d.emit("aten.div.Tensor_mode", x, divisor, rounding_mode=rng.choice(["floor", "trunc"]))
    elif kind == 1:
        d.emit("aten.remainder.Scalar", x, divisor)
    elif kind == 2:
        d.emit("aten.floor_divide.default", x, d.input(torch.randint(1, 6, shape, dtype=rng.choice([torch.int64, dtype]))))
    elif kind == 3:
        d.emit(f"aten.{rng.choice(['add', 'mul', 'sub'])}.Tensor", x, d.integers(shape, 0, 9, rng.choice([torch.int64, torch.int16, torch.uint8])))
    elif kind == 4:
        d.emit(f"aten.bitwise_{rng.choice(['and', 'or', 'xor'])}.Tensor", x, d.integers(shape, 0, 20, dtype))
    elif kind == 5:
        d.emit("aten.div.Tensor", x, divisor)
    elif kind == 6:
        d.emit("aten.sum.default", x)
    else:
        y = d.emit("aten._to_copy.default", x, dtype=torch.float32)
        d.emit("aten.mul.Tensor", y, 0.125)


@rule(2)
def powers(d):
    x = d.floating()
    exponent = d.rng.choice([2, 3, 2.0, 0.5, -1, -0.5, 1.5])
    if exponent in (0.5, -1, -0.5, 1.5):
        x = positive(d, x)
    if d.rng.random() < 0.3:
        return d.emit("aten.pow.Scalar", d.rng.choice([2, 0.9, 1.5]), bounded(d, x))
    if d.rng.random() < 0.2:
        return d.emit("aten.pow.Tensor_Tensor", positive(d, x), bounded(d, x, -2.0, 2.0))
    d.emit("aten.pow.Tensor_Scalar", x, exponent)


@rule(2)
def three(d):
    x = d.floating()
    kind = d.rng.randrange(4)
    if kind == 0:
        d.emit("aten.addcmul.default", x, d.like(x), d.like(x), value=d.rng.choice([1, -0.5]))
    elif kind == 1:
        d.emit("aten.addcdiv.default", x, d.like(x), positive(d, d.like(x)), value=d.rng.choice([1, -0.5]))
    elif kind == 2:
        d.emit("aten.lerp.Scalar", x, d.like(x), d.rng.choice([0.1, 0.75]))
    else:
        d.emit("aten.clamp.default", x, *d.rng.choice([(-0.5, None), (None, 0.5), (-1, 1), (-0.25, 0.75)]))


@rule(3)
def masks(d):
    rng = d.rng
    x = d.floating()
    y = operand(d, x)
    overload = "Tensor" if isinstance(y, Value) else "Scalar"
    mask = d.emit(f"aten.{rng.choice(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])}.{overload}", x, y)
    kind = rng.randrange(4)
    if kind == 0:
        d.emit("aten.where.self", mask, x, d.like(x))
    elif kind == 1 and mask.shape == x.shape:
        d.emit("aten.masked_fill.Scalar", x, mask, rng.choice([0.0, -1e4, 3]))
    elif kind == 2:
        other = d.emit("aten.bitwise_not.default", mask)
        d.emit(f"aten.{rng.choice(['logical_and', 'logical_or', 'logical_xor'])}.default", mask, other)
    else:
        d.emit("aten.mul.Tensor", x, mask)


@rule(4)
def reshaped(d):
    rng = d.rng
    x = d.floating()
    rank, kind = len(x.shape), rng.randrange(10)
    if kind == 0:
        d.emit("aten.reshape.default", x, [-1] if 0 not in x.shape else [x.tensor.numel()])
    elif kind == 1 and rank >= 2:
        order = list(range(rank))
        rng.shuffle(order)
        d.emit("aten.permute.default", x, order)
    elif kind == 2 and rank >= 2:
        d.emit("aten.transpose.int", x, rng.randrange(rank), -1)
    elif kind == 3:
        d.emit("aten.unsqueeze.default", x, rng.randint(-rank - 1, rank))
    elif kind == 4 and rank:
        d.emit("aten.squeeze.dim", x, rng.randrange(rank))
    elif kind == 5:
        d.emit("aten.expand.default", x, [rng.choice([2, 3])] + [-1] * rank)
    elif kind == 6 and rank == 2:
        d.emit("aten.t.default", x)
    elif kind == 7 and rank >= 2:
        d.emit("aten.flatten.using_ints", x, 0, 1)
    elif kind == 8 and rank:
        d.emit("aten.repeat.default", x, [rng.choice([1, 2])] * rank)
    else:
        d.emit("aten.view.default", d.emit("aten.contiguous.default", x), [1] + list(x.shape))


@rule(4)
def parts(d):
    rng = d.rng
    x = d.floating(lambda v: len(v.shape) > 0)
    dim = rng.randrange(len(x.shape))
    extent = x.shape[dim]
    kind = rng.randrange(10)
    if kind == 0:
        d.emit("aten.slice.Tensor", x, dim, rng.choice([0, 1, -3]), rng.choice([2, 100, 9223372036854775807]), rng.choice([1, 2]))
    elif kind == 1:
        d.emit("aten.select.int", x, dim, rng.choice([0, -1]))
    elif kind == 2:
        d.emit("aten.split.Tensor", x, rng.choice([1, 2, 3]), dim) if 0 < extent <= 8 else None
    elif kind == 3 and 0 < extent <= 5:
        d.emit("aten.unbind.int", x, dim)
    elif kind == 4:
        d.emit("aten.cat.default", [x, d.like(x)], dim)
    elif kind == 5:
        d.emit("aten.stack.default", [x, d.like(x)], dim)
    elif kind == 6:
        pads = [rng.choice([0, 1, 2]) for _ in range(2 * min(len(x.shape), 2))]
        d.emit("aten.constant_pad_nd.default", x, pads, rng.choice([0, 0.5]))
    elif kind == 7:
        d.emit("aten.flip.default", x, [dim])
    elif kind == 8 and extent >= 2:
        step = rng.choice([1, 2])
        rows = d.emit("aten.slice.Tensor", x, dim, 1, extent, step)
        d.emit("aten.slice_scatter.default", d.like(x), d.emit("aten.neg.default", rows), dim, 1, extent, step)
    elif kind == 9 and extent:
        row = d.emit("aten.select.int", x, dim, -1)
        d.emit("aten.select_scatter.default", d.like(x), d.emit("aten.sigmoid.default", row), dim, rng.choice([0, -1]))


@rule(1)
def triangles(d):
    x = d.floating(lambda v: len(v.shape) >= 2)
    d.emit(f"aten.{d.rng.choice(['tril', 'triu'])}.default", x, d.rng.choice([-1, 0, 1]))


@rule(1)
def factories(d):
    rng = d.rng
    x = d.floating(lambda v: len(v.shape) > 0 and v.shape[-1] > 0)
    kind = rng.randrange(5)
    if kind == 0:
        i = d.emit("aten.arange.start_step", 0, x.shape[-1] * 2, 2)
        d.emit("aten.mul.Tensor", x, i)
    elif kind == 1:
        d.emit("aten.add.Tensor", x, d.emit("aten.full_like.default", x, 0.5))
    elif kind == 2:
        d.emit("aten.add.Tensor", x, d.emit("aten.arange.default", x.shape[-1], dtype=torch.float32))
    elif kind == 3:
        d.emit("aten.where.self", d.emit("aten.gt.Scalar", x, 0), x, d.emit("aten.scalar_tensor.default", 0.25))
    else:
        d.emit("aten.cat.default", [x, d.emit("aten.new_ones.default", x, list(x.shape))], 0)


@rule(4)
def reductions(d):
    rng = d.rng
    x = d.floating(lambda v: len(v.shape) > 0 and 0 not in v.shape)
    dim, keep = rng.randrange(len(x.shape)), rng.random() < 0.5
    kind = rng.randrange(12)
    if kind == 0:
        d.emit("aten.sum.dim_IntList", x, [dim], keep)
    elif kind == 1:
        d.emit("aten.mean.dim", x, [dim], keep)
    elif kind == 2:
        d.emit(f"aten.{rng.choice(['sum', 'mean'])}.default", x)
    elif kind == 3:
        d.emit(f"aten.{rng.choice(['amax', 'amin'])}.default", x, [dim], keep)
    elif kind == 4 and x.shape[dim] > 1:
        d.emit(f"aten.{rng.choice(['var', 'std'])}.correction", x, [dim], correction=rng.choice([0, 1]), keepdim=keep)
    elif kind == 5 and x.shape[dim] > 1:
        d.emit("aten.var_mean.correction", x, [dim], correction=1, keepdim=keep)
    elif kind == 6:
        d.emit(f"aten.{rng.choice(['max', 'min'])}.dim", x, dim, keep)
    elif kind == 7:
        d.emit(f"aten.{rng.choice(['argmax', 'argmin'])}.default", x, rng.choice([dim, None]))
    elif kind == 8:
        d.emit("aten.cumsum.default", x, dim)
    elif kind == 9:
        d.emit("aten.linalg_vector_norm.default", x, 2, [dim], keep)
    elif kind == 10:
        mask = d.emit("aten.gt.Scalar", x, 1.5)
        d.emit(f"aten.{rng.choice(['any', 'all'])}.dim", mask, dim, keep)
    else:
        d.emit("aten.sum.dim_IntList", d.emit("aten.gt.Scalar", x, 0), [dim], keep)


@rule(1)
def empty_reductions(d):
    x = d.floating(lambda v: 0 in v.shape)
    d.emit("aten.sum.dim_IntList", x, [0], d.rng.random() < 0.5)


@rule(4)
def products(d):
    rng = d.rng
    m, k, n, b = (rng.choice([1, 2, 3, 5, 8, 16, 17, 33]) for _ in range(4))
    kind = rng.randrange(7)
    a, c = d.of(m, k), d.of(k, n)
    if kind == 0:
        d.emit("aten.mm.default", a, c)
    elif kind == 1:
        d.emit("aten.addmm.default", d.of(n), a, c, **({"beta": 0.5, "alpha": 2} if rng.random() < 0.3 else {}))
    elif kind == 2:
        d.emit("aten.mm.default", a, d.emit("aten.t.default", d.of(n, k)))
    elif kind == 3:
        d.emit("aten.bmm.default", d.of(b, m, k), d.of(b, k, n))
    elif kind == 4:
        d.emit("aten.baddbmm.default", d.of(b, m, n), d.of(b, m, k), d.of(b, k, n))
    elif kind == 5:
        x = d.floating(lambda v: len(v.shape) >= 2 and v.shape[-1] > 0)
        d.emit("aten.linear.default", x, d.of(n, x.shape[-1]), rng.choice([None, d.of(n)]))
    else:
        d.emit("aten.matmul.default", d.of(b, m, k), c)


@rule(3)
def indexing(d):
    rng = d.rng
    x = d.floating(lambda v: len(v.shape) > 0 and 0 not in v.shape)
    dim = rng.randrange(len(x.shape))
    extent, kind = x.shape[dim], rng.randrange(9)
    count = rng.choice([1, 3, 6])
    if kind == 0:
        d.emit("aten.index_select.default", x, dim, d.integers([count], 0, extent))
    elif kind == 1:
        shape = list(x.shape)
        shape[dim] = count
        d.emit("aten.gather.default", x, dim, d.integers(shape, 0, extent))
    elif kind == 2:
        d.emit("aten.index.Tensor", x, [None] * dim + [d.integers([2, count], -extent, extent)])
    elif kind == 3:
        d.emit("aten.index_put.default", x, [d.integers([count], 0, x.shape[0])],
               d.of(count, *x.shape[1:]), True)
    elif kind == 4:
        shape = list(x.shape)
        shape[dim] = count
        d.emit("aten.scatter_add.default", x, dim, d.integers(shape, 0, extent), d.of(*shape))
    elif kind == 5:
        shape = list(x.shape)
        shape[dim] = 1
        d.emit("aten.scatter.value", x, dim, d.integers(shape, 0, extent), rng.choice([1.0, -2]))
    elif kind == 6 and len(x.shape) == 2:
        d.emit("aten.embedding.default", x, d.integers([2, count], 0, x.shape[0]))
    elif kind == 7:
        rows, width = rng.choice([3, 9, 40]), rng.choice([4, 17])
        d.emit("aten.embedding_dense_backward.default", d.of(2, count, width), d.integers([2, count], 0, rows), rows,
               rng.choice([-1, 1]), False)
    else:
        shape = list(x.shape)
        shape[dim] = 1
        d.emit("aten.scatter.src", x, dim, d.integers(shape, 0, extent), d.of(*shape))


@rule(3)
def norms(d):
    rng = d.rng
    x = d.floating(lambda v: len(v.shape) > 0 and v.shape[-1] > 1 and 0 not in v.shape)
    dim, kind, width = rng.randrange(-len(x.shape), 0), rng.randrange(6), x.shape[-1]
    if kind == 0:
        y, mean, rstd = d.emit("aten.native_layer_norm.default", x, [width], d.of(width), rng.choice([None, d.of(width)]), 0.1)
        d.emit("aten.native_layer_norm_backward.default", d.like(x), x, [width], mean, rstd, d.of(width), d.of(width),
               [True, True, True])
    elif kind == 1:
        y = d.emit("aten._softmax.default", x, dim, False)
        d.emit("aten._softmax_backward_data.default", d.like(x), y, dim, torch.float32)
    elif kind == 2:
        y = d.emit("aten._log_softmax.default", x, dim, False)
        d.emit("aten._log_softmax_backward_data.default", d.like(x), y, dim, torch.float32)
    elif kind == 3:
        masked = d.emit("aten.masked_fill.Scalar", x, d.emit("aten.gt.Scalar", x, rng.choice([0, -9.0])), float("-inf"))
        d.emit(f"aten.{rng.choice(['_safe_softmax.default', 'softmax.int'])}", masked, dim)
    else:
        rows = rng.choice([1, 4, 9])
        logits = d.of(rows, width)
        labels = d.integers([rows], 0, width)
        if rng.random() < 0.4:
            labels.tensor[rng.randrange(rows)] = -100
            labels.tensor[0] = 0
        reduction = rng.choice([0, 1, 2])
        weight = rng.choice([None, positive(d, d.of(width))])
        log = d.emit("aten._log_softmax.default", logits, 1, False)
        loss, total = d.emit("aten.nll_loss_forward.default", log, labels, weight, reduction, -100)
        d.emit("aten.nll_loss_backward.default", d.like(loss), log, labels, weight, reduction, -100, total)


@rule(1)
def attention(d):
    rng = d.rng
    b, h, t, s, width = rng.choice([1, 2]), rng.choice([1, 3]), rng.choice([1, 7, 16, 20]), rng.choice([5, 16, 33]), rng.choice([4, 8, 16])
    causal = rng.random() < 0.4
    if causal:
        s = t
    q, k, v = d.of(b, h, t, width), d.of(b, h, s, width), d.of(b, h, s, width)
    kwargs = {"scale": 0.25} if rng.random() < 0.4 else {}
    if not causal and rng.random() < 0.5:
        bias = torch.randn(rng.choice([[b, h, t, s], [1, 1, t, s], [b, 1, t, s]]))
        bias[bias > 0.8] = -float("inf")
        bias[..., 0] = 0.0
        kwargs["attn_mask"] = d.input(bias, strided=False)
    # PyTorch chooses this implementation for tensors that are contiguous along the last dimension only.
    straight = lambda x: x if x.tensor.is_contiguous() else d.emit("aten.contiguous.default", x)
    q, k, v, grad = straight(q), straight(k), straight(v), straight(d.of(b, h, t, width))
    out, lse = d.emit("aten._scaled_dot_product_flash_attention_for_cpu.default", q, k, v, 0.0, causal, **kwargs)
    d.emit("aten._scaled_dot_product_flash_attention_for_cpu_backward.default", grad, q, k, v, out, lse, 0.0,
           causal, **kwargs)


@rule(1)
def convolutions(d):
    rng = d.rng
    groups = rng.choice([1, 1, 2])
    n, c, o = rng.choice([1, 2]), 2 * rng.choice([1, 2]), 2 * rng.choice([1, 3])
    kernel = [rng.choice([1, 2, 3]) for _ in range(2)]
    size = [rng.choice([5, 8, 9]) for _ in range(2)]
    stride, padding, dilation = ([rng.choice(list(options)) for _ in range(2)] for options in ((1, 2, 3), (0, 1), (1, 2)))
    x, w = d.of(n, c, *size), d.of(o, c // groups, *kernel)
    rest = (stride, padding, dilation, False, [0, 0], groups)
    y = d.emit("aten.convolution.default", x, w, rng.choice([None, d.of(o)]), *rest)
    d.emit("aten.convolution_backward.default", d.of(*y.shape), x, w, [o], *rest, [True, True, True])


@rule(1)
def pools(d):
    rng = d.rng
    x = d.of(rng.choice([1, 2]), rng.choice([1, 3]), rng.choice([6, 9]), rng.choice([5, 8]))
    kernel, stride, ceil = [rng.choice([2, 3]), rng.choice([2, 3])], [rng.choice([1, 2, 3]), 2], rng.random() < 0.4
    padding = [rng.choice([0, 1]), 0]
    if rng.random() < 0.5:
        y, where = d.emit("aten.max_pool2d_with_indices.default", x, kernel, stride, padding, [1, rng.choice([1, 2])], ceil)
        dilation = d.nodes[-1]["args"][4]
        d.emit("aten.max_pool2d_with_indices_backward.default", d.of(*y.shape), x, kernel, stride, padding, dilation, ceil, where)
    else:
        rest = (ceil, rng.random() < 0.5, rng.choice([None, None, 3]))
        y = d.emit("aten.avg_pool2d.default", x, kernel, stride, padding, *rest)
        d.emit("aten.avg_pool2d_backward.default", d.of(*y.shape), x, kernel, stride, padding, *rest)


@rule(1)
def half(d):
    """16-bit results round as the graph says; they stay the ends of their graph."""
    dtype = d.rng.choice([torch.bfloat16, torch.float16])
    x = d.emit("aten._to_copy.default", d.floating(), dtype=dtype)
    op = d.rng.choice(["mul", "add", "sigmoid", "sum", "back"])
    if op in ("mul", "add"):
        d.emit(f"aten.{op}.Tensor", x, d.rng.choice([x, 0.3, 2]))
    elif op == "sum" and len(x.shape):
        d.emit("aten.sum.dim_IntList", x, [-1])
    elif op == "sigmoid":
        d.emit("aten.sigmoid.default", x)
    else:
        d.emit("aten._to_copy.default", x, dtype=torch.float32)


def draw(seed, length):
    d = Draw(seed)
    functions, weights = zip(*OPS)
    while len(d.nodes) < length:
        try:
            d.rng.choices(functions, weights)[0](d)
        except Dead:
            pass
        # Values that have grown out of hand do nothing but hide others.
        d.values = [v for v in d.values if v.tensor.numel() <= 20000 and (
            not v.tensor.is_floating_point() or v.tensor.numel() == 0 or float(v.tensor.abs().nan_to_num(0, 0, 0).max()) < 1e4)]
    return d


TAU = 1e-5


def same_in_float64(value, wide):
    t = value.tensor
    if not t.is_floating_point():
        return torch.equal(t, wide)
    if t.numel() == 0:
        return True
    if t.dtype == torch.float64:
        return False  # beside float32 values: their rounding shows
    a, b = t.double(), wide.double()
    if not torch.equal(a.isnan(), b.isnan()) or not torch.equal(a.isinf(), b.isinf()):
        return False
    finite = a.isfinite()
    if not finite.any():
        return True
    e, ulp = (a - b)[finite].abs(), torch.finfo(t.dtype).eps * b[finite].abs()
    if t.dtype != torch.float32:
        return bool((e <= ulp).all())
    return bool((e <= 0.25 * TAU * b[finite].abs().max()).all() and e.norm() <= 0.25 * TAU * b[finite].norm())


def is_steady(wide, off):
    """What is left of a difference depends on every rounding before it, and on FMAs: not steady."""
    if not wide.is_floating_point():
        return torch.equal(wide, off)
    finite = wide.isfinite()
    if not torch.equal(finite, off.isfinite()) or not finite.any():
        return torch.equal(finite, off.isfinite())
    e = (wide - off)[finite].abs()
    return bool((e <= 0.25 * TAU * wide[finite].abs().max()).all() and e.norm() <= 0.25 * TAU * wide[finite].norm())


def graph_of(d, seed):
    wide, off = d.replay(), d.replay(noise=2.0**-23)
    outputs = []
    for v in d.values:
        if v in d.inputs or not same_in_float64(v, wide[v.name, v.result]):
            continue
        if v.tensor.dtype == torch.float32 and not is_steady(wide[v.name, v.result], off[v.name, v.result]):
            continue
        if v.used and d.rng.random() < 0.8:
            continue
        outputs.append(v)
    outputs = outputs[-12:]
    tested = [v for v in outputs if v.tensor.is_floating_point() and v.tensor.numel() and bool((v.tensor.nan_to_num(0, 0, 0) != 0).any())]
    if not tested:
        return None
    graph = {"format": "nova.graph", "version": 1, "name": f"random_{seed}",
             "inputs": [{"name": v.name, "role": "input", "path": v.name, **tensor_fields(v.tensor, v.name)} for v in d.inputs],
             "constants": [], "nodes": d.nodes,
             "outputs": [{"ref": v.name, **({"result": v.result} if v.result else {}),
                          "role": "gradient" if v.tensor.is_floating_point() else "output"} for v in outputs]}
    data = {f"in/{v.name}": v.tensor.contiguous().clone() for v in d.inputs}
    data |= {f"out/{i}": v.tensor.contiguous().clone() for i, v in enumerate(outputs)}
    return graph, data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--length", type=int, default=18, help="nodes of a graph, at least")
    parser.add_argument("--simulate", metavar="TARGET")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failed, done, used = 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            made = graph_of(draw(seed, arguments.length), seed)
            if made is None:
                continue
            graph, data = made
            file, values = folder / f"random_{seed}.json", folder / f"random_{seed}.data.safetensors"
            file.write_text(json.dumps(graph))
            save_file(data, str(values))
            bundle = folder / f"random_{seed}.nova"
            compiled = subprocess.run([arguments.novac, "compile", file, "-o", bundle, "--target", arguments.simulate or "host",
                                       "--no-cache"], capture_output=True, text=True)
            verified = compiled if compiled.returncode else subprocess.run(
                [arguments.novac, "verify", bundle, "--data", values] + (["--simulate"] if arguments.simulate else []),
                capture_output=True, text=True)
            done += 1
            used.update(node["op"] for node in graph["nodes"])
            if verified.returncode:
                failed += 1
                text = verified.stderr + verified.stdout
                lines = [line for line in text.splitlines() if " pass " not in line and "untested" not in line]
                print(f"FAILED seed {seed} (exit {verified.returncode}):\n    " + "\n    ".join(lines[:8]), flush=True)
            if not arguments.keep:
                file.unlink()
                values.unlink()
    print(f"{len(used)} operations, {sum(used.values())} nodes")
    print(f"{done - failed} passed, {failed} failed")
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
