//===- KernelSemantics.h - Nova kernels lowered, compiled, run, compared
//---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_TRANSFORMS_KERNELSEMANTICS_H
#define NOVA_TESTS_TRANSFORMS_KERNELSEMANTICS_H

#include "NovaInterpreter.h"

#include <map>
#include <string>

namespace nova::test {

struct SemanticsOptions {
  /// Random integers of argument i lie in [first, second]; default [-7, 7].
  std::map<unsigned, std::pair<int64_t, int64_t>> range;
  /// Argument i is this instead of random.
  std::map<unsigned, std::vector<double>> values;
  /// Largest error relative to the largest result, beside 2 ulp.
  double tolerance = 2e-6;
  /// Mixes NaN, infinities, zeros of both signs and denormals into the floats.
  bool specials = false;
};

/// Lowers the kernel in `text` with nova-lower-kernels-to-linalg, compiles it
/// for the CPU, runs it on random arguments and compares every result with the
/// interpreter of nova operations.
void checkSemantics(const std::string &text,
                    const SemanticsOptions &options = {});

/// A kernel over the whole of its results: `signature` as in "(%x: T) -> (U)",
/// each result with its own nova.map, `space` as in "3, 40", tile likewise.
std::string kernelText(const std::string &signature, const std::string &space,
                       const std::string &tile, const std::string &body);

} // namespace nova::test

#endif // NOVA_TESTS_TRANSFORMS_KERNELSEMANTICS_H
