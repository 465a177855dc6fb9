//===- Jit.h - Machine code of one expansion, for tests -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes one math op through nova-expand-math, the upstream conversions, LLVM's
// optimizer and code generator into this process, as a loop over vectors.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_MATH_JIT_H
#define NOVA_TESTS_MATH_JIT_H

#include <memory>
#include <string>
#include <vector>

namespace nova::test {

struct JitOptions {
  /// Element type of operands and result: f32, f64, f16 or bf16.
  std::string type = "f32";
  /// 1 gives scalar code.
  unsigned lanes = 8;
  /// Let the code generator contract products and sums, as GPU targets do.
  bool contract = false;
};

/// Elements that one call computes.
inline constexpr size_t kBlock = 4096;

/// A compiled op: out[i] = op(a[i], b[i]) for i < kBlock.
class JitKernel {
public:
  /// `body` computes %r from %a (and %b) of type VT, e.g.
  /// "%r = math.exp %a : VT". Ends the process with a message on failure: a
  /// test that cannot compile has nothing to go on with.
  JitKernel(const std::string &body, const JitOptions &options);
  ~JitKernel();

  void operator()(const void *a, const void *b, void *out) const {
    function(a, b, out);
  }
  /// Undefined symbols of the object: what the code calls.
  const std::vector<std::string> &undefined() const { return imports; }
  const std::string &assembly() const { return text; }
  /// Instructions from the first loop label to the jump back to it, for each
  /// store (AVX2).
  unsigned loopInstructions() const;

private:
  struct State;
  std::unique_ptr<State> state;
  std::vector<std::string> imports;
  std::string text;
  void (*function)(const void *, const void *, void *) = nullptr;
};

/// Sums in the expansion that have a product as an operand, which a backend
/// might contract into an fma.
unsigned contractibleSums(const std::string &body, const std::string &type);

/// The same loop, scalar, as PTX for sm_90, less the ".rn" that keeps ptxas
/// from contracting where `contract` is off.
std::string ptxOf(const std::string &body, const std::string &type,
                  bool contract = true);

} // namespace nova::test

#endif // NOVA_TESTS_MATH_JIT_H
