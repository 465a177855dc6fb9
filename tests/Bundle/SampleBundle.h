//===- SampleBundle.h - A small host bundle made by hand ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step of least squares with momentum: loss = mean((x w - t)^2). It has an
// argument of every kind, a strided input, a memset, a copy, a constant, an
// alias in the arena, updates in place and a scalar that advances. Kernels:
// sample_kernels.c. Used by the tests of Bundle and Runtime, and the golden.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_BUNDLE_SAMPLEBUNDLE_H
#define NOVA_TESTS_BUNDLE_SAMPLEBUNDLE_H

#include "nova/Bundle/Bundle.h"

namespace nova::test {

/// Inputs: w (parameter [5]), m (state [5]), lr (scalar f32), count (scalar
/// int64, advance 1), x (input [7,5], row stride 8), t (input [7]).
/// Outputs: loss, g (gradient [5]), w and m (updates), seen (output int64: a
/// copy of count), zeros (output uint8 [16], by memset to 3).
bundle::Bundle sampleBundle(std::string hostObject);

/// The bytes of the compiled sample_kernels.c.
std::string sampleHostObject();

} // namespace nova::test

#endif // NOVA_TESTS_BUNDLE_SAMPLEBUNDLE_H
