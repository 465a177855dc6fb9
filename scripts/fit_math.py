#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derives every polynomial coefficient and constant of src/Math.

  python3 scripts/fit_math.py            write src/Math/Coefficients.h
  python3 scripts/fit_math.py --check    exit 1 if that file is not what this script derives
  python3 scripts/fit_math.py NAME...    derive these only and print them

Needs mpmath (pip install mpmath). Each fit is a weighted minimax polynomial (Remez exchange over a Chebyshev-spaced
grid, 60 digits). The coefficients are then rounded to the type they are used in, lowest degree first, refitting the
rest after every rounding, so that the later coefficients absorb the rounding of the earlier ones. The error printed
with each is that of the rounded polynomial in exact arithmetic, measured on a grid four times as fine.
"""
import pathlib
import sys

try:
    from mpmath import mp, mpf
except ImportError:
    print("fit_math.py needs mpmath: pip install mpmath", file=sys.stderr)
    sys.exit(77)  # what ctest takes for skipped

mp.dps = 80
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "Math" / "Coefficients.h"


def round_to(value, bits):
    """`value` rounded to nearest even at `bits` significant bits (normal range only)."""
    if value == 0:
        return mpf(0)
    mantissa, exponent = mp.frexp(value)
    scaled = mantissa * mpf(2) ** bits
    floor = mp.floor(scaled)
    rest = scaled - floor
    if rest > mpf(1) / 2 or (rest == mpf(1) / 2 and int(floor) % 2):
        floor += 1
    return floor * mpf(2) ** (exponent - bits)


def grid(low, high, count):
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def extrema(errors, wanted):
    """Indices of `wanted` points of alternating sign, each a local extremum of the error, keeping the largest."""
    runs = []
    for i, e in enumerate(errors):
        if e == 0:
            continue
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > wanted:
        if len(runs) == wanted + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
            continue
        # Drop the smallest together with its smaller neighbour, so that the signs go on alternating.
        k = min(range(len(runs)), key=lambda j: abs(errors[runs[j]]))
        if k in (0, len(runs) - 1):
            runs.pop(k)
        else:
            n = k - 1 if abs(errors[runs[k - 1]]) < abs(errors[runs[k + 1]]) else k + 1
            for j in sorted((k, n), reverse=True):
                runs.pop(j)
    return runs


def remez(xs, target, weight, degree):
    """Coefficients c minimising max |weight * (target - sum c[k] x^k)| over the grid xs; weight > 0."""
    n = degree + 1
    basis = [[x ** k for k in range(n)] for x in xs]
    reference = [(len(xs) - 1) * i // n for i in range(n + 1)]
    best = None
    for _ in range(40):
        a, b = mp.matrix(n + 1), mp.matrix(n + 1, 1)
        for row, i in enumerate(reference):
            for k in range(n):
                a[row, k] = basis[i][k]
            a[row, n] = mpf((-1) ** row) / weight[i]
            b[row] = target[i]
        solution = mp.lu_solve(a, b)
        c = [solution[k] for k in range(n)]
        errors = [w * (t - mp.fdot(c, row)) for t, w, row in zip(target, weight, basis)]
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[0]:
            best = (worst, c)
        new = extrema(errors, n + 1)
        if len(new) < n + 1 or worst <= abs(solution[n]) * mpf("1.0001"):
            break
        reference = new
    return best[1]


class Fit:
    """One polynomial. `target` and `weight` are functions of the variable; `bits` is the precision of use."""

    def __init__(self, name, text, low, high, degree, bits, target, weight, fixed=()):
        self.name, self.text, self.degree, self.bits = name, text, degree, bits
        self.low, self.high, self.target, self.weight = mpf(low), mpf(high), target, weight
        self.fixed = list(fixed)

    def derive(self):
        count = 60 * (self.degree + 2)
        xs = grid(self.low, self.high, count)
        weight = [self.weight(x) for x in xs]
        target = [self.target(x) for x in xs]
        done = list(self.fixed)
        residual = [t - sum(c * x ** k for k, c in enumerate(done)) for t, x in zip(target, xs)]
        for k in range(len(done), self.degree + 1):
            # Divided by x^k, so that the weight keeps one sign and the error alternates.
            c = remez(xs, [r / x ** k for r, x in zip(residual, xs)], [abs(w * x ** k) for w, x in zip(weight, xs)],
                      self.degree - k)
            value = round_to(c[0], self.bits)
            done.append(value)
            residual = [r - value * x ** k for r, x in zip(residual, xs)]
        fine = grid(self.low, self.high, 4 * count + 1)
        error = max(abs(self.weight(x) * (self.target(x) - mp.polyval(done[::-1], x))) for x in fine)
        return done, error

    def emit(self):
        coefficients, error = self.derive()
        body = ",\n".join("    " + hexadecimal(c) for c in coefficients)
        log = mp.nstr(mp.log(error, 2), 5)
        return (f"/// {self.text}\n/// on [{mp.nstr(self.low, 6)}, {mp.nstr(self.high, 6)}], error 2^{log}.\n"
                f"inline constexpr double {self.name}[] = {{\n{body}}};\n")


class Constant:
    """A constant split into terms, largest first, of the given numbers of significant bits. The last is rounded to
    nearest, the others down, so that all are positive."""

    def __init__(self, name, text, value, bits):
        self.name, self.text, self.value, self.bits = name, text, mpf(value), bits

    def emit(self):
        rest, body = self.value, []
        for i, b in enumerate(self.bits):
            part = round_to(rest, b)
            if part > rest and i + 1 < len(self.bits):
                part -= mpf(2) ** (mp.frexp(part)[1] - b)
            body.append("    " + hexadecimal(part))
            rest -= part
        return f"/// {self.text}\ninline constexpr double {self.name}[] = {{\n" + ",\n".join(body) + "};\n"


def hexadecimal(value):
    text = float(value).hex()
    assert mpf(float.fromhex(text)) == value, f"{value} does not fit a double"
    mantissa, exponent = text.split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return mantissa + "p" + exponent


def sq(f):
    """A function of z = x*x from one of x."""
    return lambda z: f(mp.sqrt(z))


LN2 = mp.log(2)
HALF_LN2 = LN2 / 2 * mpf("1.0001")  # the rounding of x*log2(e) may leave the interval by a hair
TWO_OVER_SQRT_PI = 2 / mp.sqrt(mp.pi)
QUARTER_PI = mp.pi / 4 * mpf("1.02")  # what the reduction leaves at most


def erfcx(x):
    return mp.exp(x * x) * mp.erfc(x)


def exp_fits(suffix, bits, exp_degree, expm1_degree, exp2_degree):
    tail = lambda r: (mp.expm1(r) - r) / r ** 2
    return [
        Fit(f"kExp{suffix}", "exp(r) = 1 + r + r^2 P(r), relative to exp(r),", -HALF_LN2, HALF_LN2, exp_degree - 2,
            bits, tail, lambda r: r ** 2 / mp.exp(r)),
        Fit(f"kExpm1{suffix}", "expm1(r) = r + r^2 P(r), relative to expm1(r),", -HALF_LN2, HALF_LN2, expm1_degree - 2,
            bits, tail, lambda r: r ** 2 / abs(mp.expm1(r))),
        Fit(f"kExp2{suffix}", "exp2(r) = 1 + r P(r), relative to exp2(r),", mpf("-0.5001"), mpf("0.5001"),
            exp2_degree - 1, bits, lambda r: mp.expm1(r * LN2) / r, lambda r: abs(r) / mp.exp(r * LN2)),
    ]


def window(low_exponent, terms):
    """The bits of 2/pi of weight below 2^low_exponent, in `terms` doubles."""
    value = 2 / mp.pi
    unit = mpf(2) ** low_exponent
    value -= mp.floor(value / unit) * unit
    parts = []
    for _ in range(terms):
        parts.append(round_to(value, 53))
        value -= parts[-1]
    return parts


class Table:
    """Constants given one by one."""

    def __init__(self, name, text, values):
        self.name, self.text, self.values = name, text, values

    def emit(self):
        body = ",\n".join("    " + hexadecimal(v) for v in self.values)
        return f"/// {self.text}\ninline constexpr double {self.name}[] = {{\n{body}}};\n"


class Words:
    """The fraction bits of a value in 64-bit words, after one zero word."""

    def __init__(self, name, text, value, count):
        self.name, self.text, self.value, self.count = name, text, value, count

    def emit(self):
        with mp.workprec(64 * self.count + 64):
            bits = int(mp.floor(self.value() * mpf(2) ** (64 * (self.count - 1))))
        words = [(bits >> (64 * (self.count - 1 - i))) & (2 ** 64 - 1) for i in range(self.count)]
        body = ",\n".join(f"    0x{w:016x}" for w in words)
        return f"/// {self.text}\ninline constexpr uint64_t {self.name}[] = {{\n{body}}};\n"


# Exponents E at which float32 sin and cos change the window of 2/pi.
TRIG_F32 = [44, 65, 86, 107]

FITS = [
    Constant("kLn2F32", "ln 2, the head short enough for n*head to be exact when |n| < 2^9.", LN2, [15, 24]),
    Constant("kLn2F64", "ln 2, the head short enough for n*head to be exact when |n| < 2^12.", LN2, [41, 53]),
    Constant("kLog2eF32", "log2 e = 1/ln 2.", 1 / LN2, [24, 24]),
    Constant("kLog2eF64", "log2 e = 1/ln 2.", 1 / LN2, [53, 53]),
    Constant("kTwoOverPi", "2/pi in doubles.", 2 / mp.pi, [53, 53, 53]),
    Constant("kPiOver2", "pi/2 in doubles.", mp.pi / 2, [53, 53, 53]),
    Table("kTrigBoundsF32", "From each of these on, sin and cos use the next pair of kTrigF32.",
          [mpf(2) ** e for e in TRIG_F32]),
    Table("kTrigF32", "Pairs of doubles: 2/pi, then its bits of weight below 2^(25-E).",
          window(2, 2) + [p for e in TRIG_F32 for p in window(25 - e, 2)]),
    *exp_fits("F32", 24, 6, 6, 6),
    Fit("kLogF32", "log(1+f) = f - f^2/2 + f^3 P(f), relative to log(1+f),", mpf(-1) / 3, mpf(1) / 3, 7, 24,
        lambda f: (mp.log1p(f) - f + f ** 2 / 2) / f ** 3, lambda f: abs(f ** 3 / mp.log1p(f))),
    Fit("kLog2F32", "log2(1+f) = f log2(e) + f^2 P(f), relative to log2(1+f),", mpf(-1) / 3, mpf(1) / 3, 8, 24,
        lambda f: (mp.log1p(f) - f) / LN2 / f ** 2, lambda f: abs(f ** 2 * LN2 / mp.log1p(f))),
    Fit("kTanhF32", "tanh(x) = x + x z P(z), z = x^2, relative to tanh(x),", mpf(2) ** -24, mpf("0.625") ** 2, 4, 24,
        sq(lambda x: (mp.tanh(x) - x) / x ** 3), sq(lambda x: x ** 3 / mp.tanh(x))),
    Fit("kErfF32", "erf(x) = x + x P(z), z = x^2, relative to erf(x),", mpf(2) ** -24, mpf("0.9375") ** 2, 5, 24,
        sq(lambda x: mp.erf(x) / x - 1), sq(lambda x: x / mp.erf(x))),
    Fit("kErfcLogF32", "ln(1 - erf(x)) = P(x), absolute error of erf(x) / erf(x),", mpf("0.9375"), mpf("4.0"), 6, 24,
        lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x)),
    Fit("kSinF32", "sin(r) = r + r z P(z), z = r^2, relative to sin(r),", mpf(2) ** -24, QUARTER_PI ** 2, 2, 24,
        sq(lambda r: (mp.sin(r) - r) / r ** 3), sq(lambda r: r ** 3 / mp.sin(r))),
    Fit("kCosF32", "cos(r) = 1 - z/2 + z^2 P(z), z = r^2, relative to cos(r),", mpf(2) ** -24, QUARTER_PI ** 2, 2, 24,
        sq(lambda r: (mp.cos(r) - 1 + r ** 2 / 2) / r ** 4), sq(lambda r: r ** 4 / mp.cos(r))),
    Fit("kPowLog2F32", "log2(1+f) = f P(f) in doubles, relative to log2(1+f),", mpf(-1) / 3, mpf(1) / 3, 13, 53,
        lambda f: mp.log1p(f) / LN2 / f, lambda f: f * LN2 / mp.log1p(f)),
    Fit("kPowExp2F32", "exp2(r) = P(r) in doubles, relative to exp2(r),", mpf("-0.5001"), mpf("0.5001"), 6, 53,
        lambda r: mp.exp(r * LN2), lambda r: mp.exp(-r * LN2), fixed=[mpf(1)]),
    *exp_fits("F64", 53, 11, 11, 11),
    Fit("kLogF64", "log((1+s)/(1-s)) = 2s + s z P(z), z = s^2, relative to the logarithm,", mpf(2) ** -60,
        mpf("0.04"), 6, 53, sq(lambda s: (2 * mp.atanh(s) - 2 * s) / s ** 3), sq(lambda s: s ** 3 / mp.atanh(s) / 2)),
    Fit("kTanhF64", "tanh(x) = x + x z P(z), z = x^2, relative to tanh(x),", mpf(2) ** -50, mpf("0.625") ** 2, 10, 53,
        sq(lambda x: (mp.tanh(x) - x) / x ** 3), sq(lambda x: x ** 3 / mp.tanh(x))),
    Fit("kErfF64", "erf(x) = x + x P(z), z = x^2, relative to erf(x),", mpf(2) ** -50, mpf("0.9375") ** 2, 11, 53,
        sq(lambda x: mp.erf(x) / x - 1), sq(lambda x: x / mp.erf(x))),
    Fit("kErfcxF64", "exp(x^2) (1 - erf(x)) = P(t), x = 2(1+t)/(1-t), absolute error of erf(x) / erf(x),",
        (mpf("0.9375") - 2) / (mpf("0.9375") + 2), mpf("0.5"), 13, 53, lambda t: erfcx(2 * (1 + t) / (1 - t)),
        lambda t: mp.exp(-(2 * (1 + t) / (1 - t)) ** 2)),
    Fit("kSinF64", "sin(r) = r + r z P(z), z = r^2, relative to sin(r),", mpf(2) ** -50, QUARTER_PI ** 2, 5, 53,
        sq(lambda r: (mp.sin(r) - r) / r ** 3), sq(lambda r: r ** 3 / mp.sin(r))),
    Fit("kCosF64", "cos(r) = 1 - z/2 + z^2 P(z), z = r^2, relative to cos(r),", mpf(2) ** -50, QUARTER_PI ** 2, 5, 53,
        sq(lambda r: (mp.cos(r) - 1 + r ** 2 / 2) / r ** 4), sq(lambda r: r ** 4 / mp.cos(r))),
    Words("kTwoOverPiWords", "A zero word, then the fraction bits of 2/pi, highest first.", lambda: 2 / mp.pi, 20),
    Constant("kThird", "1/3 in doubles.", mpf(1) / 3, [53, 53]),
    Constant("kTwoLog2eF64", "2/ln 2 in doubles.", 2 / LN2, [53, 53]),
    Fit("kPowLogF64", "log((1+s)/(1-s)) = 2s (1 + z (1/3 + z P(z))), z = s^2, relative to the logarithm,",
        mpf(2) ** -30, mpf("0.04"), 7, 53, sq(lambda s: ((mp.atanh(s) / s - 1) / s ** 2 - mpf(1) / 3) / s ** 2),
        sq(lambda s: s ** 5 / mp.atanh(s))),
]


def header():
    return """\
//===- Coefficients.h - Constants of the math expansions ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derived by scripts/fit_math.py; do not edit. Each array holds the coefficients
// of a polynomial P in ascending order, exact in the type named by its suffix
// (all are written as doubles), with the error of P in exact arithmetic.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_MATH_COEFFICIENTS_H
#define NOVA_LIB_MATH_COEFFICIENTS_H

#include <cstdint>

namespace nova::coefficients {

"""


def main(arguments):
    names = [a for a in arguments if not a.startswith("-")]
    if names:
        for fit in FITS:
            if fit.name in names:
                print(fit.emit())
        return 0
    text = header() + "\n".join(f.emit() for f in FITS)
    text += "\n} // namespace nova::coefficients\n\n#endif // NOVA_LIB_MATH_COEFFICIENTS_H\n"
    if "--check" in arguments:
        same = OUTPUT.exists() and OUTPUT.read_text() == text
        print(f"{OUTPUT.name}: {'as derived' if same else 'differs from what fit_math.py derives'}")
        return 0 if same else 1
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
