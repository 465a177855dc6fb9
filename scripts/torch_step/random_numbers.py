# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers that are a function of a seed: what dropout becomes.

torch.ops.nova.uniform(seed, stream, size) is novac's operation nova.uniform: numbers in
[0, 1), of which element i is made of word i % 4 of Philox4x32-10's block for the counter
(i / 4, stream) and the key `seed` (Salmon et al., Parallel random numbers: as easy as 1,
2, 3, SC 2011); its upper 24 bits, times 2^-24. Each place of the program that draws has
a stream of its own, so the numbers do not depend on the order of execution.
"""
import torch

LOW = 0xFFFFFFFF


def _multiply(a, b):
    """High and low word of the product of 32-bit words in int64 tensors."""
    low, high = (b & 0xFFFF) * a, (b >> 16) * a
    middle = high + (low >> 16)  # below 2^49
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)


def philox(counter, key):
    """Philox4x32-10 of four words and two, each an int64 tensor or a number."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = _multiply(c0, 0xD2511F53)
        high1, low1 = _multiply(c2, 0xCD9E8D57)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & LOW, (k1 + 0xBB67AE85) & LOW
    return c0, c1, c2, c3


def uniform(seed, stream, size):
    count = 1
    for extent in size:
        count *= extent
    seed = seed.to(torch.int64)
    block = torch.arange((count + 3) // 4, dtype=torch.int64)
    words = philox((block & LOW, block >> 32, torch.full_like(block, stream), torch.zeros_like(block)),
                   (seed & LOW, (seed >> 32) & LOW))
    bits = torch.stack(words, dim=1).reshape(-1)[:count] >> 8
    return (bits.to(torch.float32) * 2.0 ** -24).reshape(list(size))


_library = torch.library.Library("nova", "DEF")
_library.define("uniform(Tensor seed, int stream, int[] size) -> Tensor")
_library.impl("uniform", uniform, "CPU")
_library.impl("uniform", lambda seed, stream, size: torch.empty(size, dtype=torch.float32, device=seed.device), "Meta")


class Streams:
    """Decompositions of what draws random numbers; each call of one is a stream."""

    def __init__(self):
        self.seed = None  # the tensor being traced
        self.count = 0
        self.scripted = None

    def draw(self, size, dtype=None):
        numbers = torch.ops.nova.uniform(self.seed, self.count, list(size))
        self.count += 1
        return numbers if dtype in (None, torch.float32) else numbers.to(dtype)

    def keep(self, like, probability):
        return self.draw(like.shape) < probability

    def table(self):
        aten = torch.ops.aten

        def native_dropout(x, p, train):
            if train is False or p == 0:
                return x.clone(), torch.ones_like(x, dtype=torch.bool)
            keep = self.keep(x, 1 - p)
            scale = 0.0 if p == 1 else 1 / (1 - p)
            return x * keep * scale, keep

        def bernoulli_in_place(x, p=0.5, generator=None):
            return x.copy_(self.keep(x, p))

        def bernoulli_of(x, p, generator=None):
            return self.keep(x, p).to(x.dtype)

        def rand(size, dtype=None, **_):
            return self.draw(size, dtype or torch.get_default_dtype())

        def rand_like(x, dtype=None, **_):
            return self.draw(x.shape, dtype or x.dtype)

        def uniform_in_place(x, low=0.0, high=1.0, generator=None):
            return x.copy_(self.draw(x.shape) * (high - low) + low)

        return {aten.native_dropout.default: native_dropout,
                aten.bernoulli_.float: bernoulli_in_place, aten.bernoulli.p: bernoulli_of,
                aten.bernoulli.default: lambda x, generator=None: (self.draw(x.shape) < x).to(x.dtype),
                aten.rand.default: rand, aten.rand_like.default: rand_like,
                aten.uniform_.default: uniform_in_place}
