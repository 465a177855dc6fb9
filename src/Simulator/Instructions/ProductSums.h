//===- ProductSums.h - Sums of products as a tensor core has them ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accumulation. The ISA leaves the order and the rounding of a tensor core's
// sums open ("at least single precision"). Here they are those of mma.sync on
// an H200, bit for bit (tests/Simulator), and wgmma is taken to have the same:
// all K products and the accumulator are aligned to the largest of their
// exponents, where a product's is the sum of its factors', cut to 25 bits below
// it, added exactly, and the sum is cut to float32. So a result differs from
// the exact sum by at most (K + 2) 2^-23 of the largest addend; devices that
// add in smaller groups (sm_80, sm_86, sm_89) stay within twice that of these
// results.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SIMULATOR_PRODUCTSUMS_H
#define NOVA_SIMULATOR_PRODUCTSUMS_H

#include <cstdint>

namespace nova::sim {

/// Most of K, and columns are multiples of 8.
constexpr unsigned kMostDepth = 32;

/// c[m][n] += sum over k of a[m][k] b[k][n], for dense arrays of float32 that
/// hold elements of a narrower type exactly. `least` is the exponent of the
/// type's smallest normal number. Results are cut to float32; with `half` the
/// accumulator is a float16, to which the caller rounds: then they are rounded
/// to odd, which that does not spoil.
void addProducts(unsigned M, unsigned N, unsigned K, const float *a,
                 const float *b, float *c, int32_t least, bool half);

} // namespace nova::sim

#endif // NOVA_SIMULATOR_PRODUCTSUMS_H
