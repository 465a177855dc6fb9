//===- ExpandTrig.cpp - sin, cos --------------------------------------------===//
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
  Num r;        // in the type of x
  Num quadrant; // integer of the same width; the low two bits count
};
} // namespace

// In doubles: |x| * 2/pi = n + f. x has 24 bits, so where |x| >= 2^E the bits of
// 2/pi of weight 2^(25-E) and more contribute multiples of 4 and are left out:
// one pair of doubles (106 bits of 2/pi) for each range of exponents covers all
// of float32. The pairs are so cut that |x*head| < 2^46 and |x*tail| < 2^-7.
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

/// sin and cos of the reduced argument, chosen and signed by the quadrant:
/// sin r, cos r, -sin r, -cos r.
static Num combine(const Reduced &reduced, const Num &quadrant) {
  using namespace coefficients;
  const Num &r = reduced.r;
  Num z = r * r;
  Num sine = fma(r * z, horner(z, kSinF32), r);
  Num cosine = fma(z * z, horner(z, kCosF32), fma(z, -0.5, 1.0));
  Num odd = (quadrant & constant(quadrant, 1)) != 0;
  Num magnitude = select(odd, cosine, sine);
  Num sign = shl(quadrant & constant(quadrant, 2), r.bits() - 2);
  return asFloat(asInt(magnitude) ^ sign, r);
}

Num sin(const Num &x) {
  Reduced reduced = reduceF32(abs(x));
  Num result = combine(reduced, reduced.quadrant);
  Num sign = asInt(x) & bitsConstant(x, uint64_t(1) << (x.bits() - 1));
  return asFloat(asInt(result) ^ sign, x);
}

Num cos(const Num &x) {
  Reduced reduced = reduceF32(abs(x));
  return combine(reduced, reduced.quadrant + 1);
}

} // namespace nova::expand
