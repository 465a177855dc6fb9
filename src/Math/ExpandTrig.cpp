//===- ExpandTrig.cpp - sin, cos
//--------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Coefficients.h"
#include "Expansions.h"

using namespace llvm;
namespace nova::expand {

namespace {
/// |x| = (4 j + quadrant) pi/2 + r, |r| < 0.51 * pi/2.
struct Reduced {
  Num r;        // in the type of x, NaN where |x| is not finite
  Num quadrant; // integer of the same width; the low two bits count
};
} // namespace

// In doubles: |x| * 2/pi = n + f. x has 24 bits, so where |x| >= 2^E the bits
// of 2/pi of weight 2^(25-E) and more contribute multiples of 4 and are left
// out: one pair of doubles (106 bits of 2/pi) for each range of exponents
// covers all of float32. The pairs are so cut that |x*head| < 2^46 and |x*tail|
// < 2^-7.
static Reduced reduceF32(const Num &magnitude) {
  using namespace coefficients;
  Num x = toF64(magnitude);
  Num head = constant(x, kTrigF32[0]), tail = constant(x, kTrigF32[1]);
  for (unsigned i = 1; i < std::size(kTrigBoundsF32) + 1; ++i) {
    Num above = x >= kTrigBoundsF32[i - 1];
    head = select(above, kTrigF32[2 * i], head);
    tail = select(above, kTrigF32[2 * i + 1], tail);
  }
  Num biased = fma(x, head, 0x1.8p52);
  Num n = biased - 0x1.8p52;
  Num f = fma(x, tail, fma(x, head, -n));
  return {toF32(f * kPiOver2[0]), truncInt(asInt(biased), 32)};
}

// |x| < 2^20: x - n pi/2 in three steps. n has few bits and pi/2 three doubles;
// the first step is exact, the others add what the head of pi/2 lacks.
static Reduced reduceSmallF64(const Num &x) {
  using namespace coefficients;
  Rounded n = roundByMagic(x, kTwoOverPi[0]);
  Num r = x;
  for (double part : kPiOver2)
    r = fma(n.asFloat, -part, r);
  return {r, asInt(n.biased)};
}

/// word[index + i] for i < count, index < 2^levels, each bit of `index` halving
/// the candidates: a lookup without memory.
static SmallVector<Num> selectWords(const Num &index, unsigned count) {
  using namespace coefficients;
  SmallVector<Num> words;
  for (uint64_t word : kTwoOverPiWords)
    words.push_back(bitsConstant(index, word));
  for (unsigned bit : {16, 8, 4, 2, 1}) {
    Num set = (index & constant(index, bit)) != 0;
    SmallVector<Num> kept;
    for (unsigned i = 0; i < count + bit - 1 && i < words.size(); ++i)
      kept.push_back(i + bit < words.size()
                         ? select(set, words[i + bit], words[i])
                         : words[i]);
    words = kept;
  }
  return words;
}

// |x| >= 2^20, after Payne and Hanek: x = m 2^(e-52) times 192 bits of 2/pi
// from the first one whose product with x counts modulo 4. No double is closer
// to a multiple of pi/2 than 2^-61, so 2^-137 of error is small beside r.
static Reduced reduceLargeF64(const Num &x) {
  using namespace coefficients;
  Num bits = asInt(x);
  Num exponent = shrLogical(bits, 52) - bitsConstant(bits, 1023);
  Num m = (bits & bitsConstant(bits, (uint64_t(1) << 52) - 1)) |
          bitsConstant(bits, uint64_t(1) << 52);
  // Bit 0 is the first of the zero word; e - 54 bits of 2/pi are left out.
  Num first = exponent + bitsConstant(bits, 10);
  Num shift = first & bitsConstant(bits, 63);
  SmallVector<Num> words = selectWords(shrLogical(first, 6), 4);
  // Shifted down by one and then by 63 - shift, as a shift by 64 is undefined.
  Num back = shift ^ bitsConstant(bits, 63);
  Num w[3] = {words[0], words[1], words[2]};
  for (unsigned i = 0; i < 3; ++i)
    w[i] = shl(words[i], shift) | shrLogical(shrLogical(words[i + 1], 1), back);

  // The product modulo 2^192; its top two bits count quarter turns.
  WideProduct middle = mulWide(m, w[1]), low = mulWide(m, w[2]);
  Num p1 = middle.low + low.high;
  Num carry = zeroExtend(lessUnsigned(p1, low.high), p1);
  Num p0 = m * w[0] + middle.high + carry;
  Num quadrant = shrLogical(p0 + bitsConstant(p0, uint64_t(1) << 61), 62);
  Num head = shl(p0, 2) | shrLogical(p1, 62);
  Num tail = shl(p1, 2) | shrLogical(low.low, 62);
  Num f =
      fma(unsignedToFloat(tail, x), 0x1p-128, intToFloat(head, x) * 0x1p-64);
  return {fma(f, kPiOver2[0], f * kPiOver2[1]), quadrant};
}

static Reduced reduceF64(const Num &magnitude) {
  Reduced small = reduceSmallF64(magnitude);
  Reduced large = reduceLargeF64(magnitude);
  Num isSmall = magnitude < 0x1p20;
  Num r = select(isSmall, small.r, large.r);
  // NaN for infinity and NaN, which the integer path cannot make.
  r = select(magnitude <= formatOf(r).maxFinite, r, magnitude - magnitude);
  return {r, select(isSmall, small.quadrant, large.quadrant)};
}

static Reduced reduce(const Num &magnitude) {
  return magnitude.bits() == 32 ? reduceF32(magnitude) : reduceF64(magnitude);
}

/// sin and cos of the reduced argument, chosen and signed by the quadrant:
/// sin r, cos r, -sin r, -cos r.
static Num combine(const Reduced &reduced, const Num &quadrant) {
  using namespace coefficients;
  const Num &r = reduced.r;
  bool single = r.bits() == 32;
  Num z = r * r;
  Num sine = fma(r * z, single ? horner(z, kSinF32) : horner(z, kSinF64), r);
  Num cosine = fma(z * z, single ? horner(z, kCosF32) : horner(z, kCosF64),
                   fma(z, -0.5, 1.0));
  Num odd = (quadrant & constant(quadrant, 1)) != 0;
  Num magnitude = select(odd, cosine, sine);
  Num sign = shl(quadrant & constant(quadrant, 2), r.bits() - 2);
  return asFloat(asInt(magnitude) ^ sign, r);
}

Num sin(const Num &x) {
  // On |x|, with the sign of x: keeps -0.
  Reduced reduced = reduce(abs(x));
  Num result = combine(reduced, reduced.quadrant);
  Num sign = asInt(x) & bitsConstant(x, uint64_t(1) << (x.bits() - 1));
  return asFloat(asInt(result) ^ sign, x);
}

Num cos(const Num &x) {
  Reduced reduced = reduce(abs(x));
  return combine(reduced, reduced.quadrant + 1);
}

} // namespace nova::expand
