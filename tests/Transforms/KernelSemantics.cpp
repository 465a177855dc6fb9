//===- KernelSemantics.cpp - Nova kernels lowered, compiled, run, compared
//-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelSemantics.h"

#include "../HostCodegen/KernelHarness.h"

#include "nova/IR/Nova.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace mlir;

namespace nova::test {
namespace {

/// A tensor in memory, row-major, element by element.
std::vector<unsigned char> toBytes(const Tensor &tensor) {
  size_t size = elementBytes(tensor.elementType);
  std::vector<unsigned char> bytes(tensor.elements.size() * size);
  for (auto [i, s] : llvm::enumerate(tensor.elements)) {
    uint64_t bits = s.i;
    if (auto type = dyn_cast<FloatType>(tensor.elementType)) {
      APFloat f(s.f);
      bool lost;
      f.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      bits = f.bitcastToAPInt().getZExtValue();
    }
    std::memcpy(&bytes[i * size], &bits, size); // Little endian.
  }
  return bytes;
}

Tensor fromBytes(RankedTensorType tensorType,
                 const std::vector<unsigned char> &bytes) {
  Tensor tensor(tensorType);
  size_t size = elementBytes(tensor.elementType);
  for (auto [i, s] : llvm::enumerate(tensor.elements)) {
    uint64_t bits = 0;
    std::memcpy(&bits, &bytes[i * size], size);
    if (auto type = dyn_cast<FloatType>(tensor.elementType)) {
      APFloat f(type.getFloatSemantics(), APInt(8 * size, bits));
      bool lost;
      f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      s.f = f.convertToDouble();
    } else {
      s.i = static_cast<int64_t>(bits << (64 - 8 * size)) >> (64 - 8 * size);
    }
  }
  return tensor;
}

Tensor randomArgument(RankedTensorType type, unsigned number,
                      const SemanticsOptions &options, std::mt19937 &random) {
  Tensor tensor(type);
  auto range = options.range.find(number);
  std::uniform_int_distribution<int64_t> integer(
      range == options.range.end() ? -7 : range->second.first,
      range == options.range.end() ? 7 : range->second.second);
  std::normal_distribution<double> normal;
  const double specials[] = {NAN,  INFINITY, -INFINITY, 0.0,
                             -0.0, 1e-41,    -3e38,     1};
  auto given = options.values.find(number);
  for (auto [i, s] : llvm::enumerate(tensor.elements)) {
    s.f = normal(random);
    if (options.specials && random() % 4 == 0)
      s.f = specials[random() % std::size(specials)];
    s.i = type.getElementType().isInteger(1) ? integer(random) & 1
                                             : integer(random);
    if (given != options.values.end()) {
      s.f = given->second[i % given->second.size()];
      s.i = std::isfinite(s.f) ? static_cast<int64_t>(s.f) : 0;
    }
    s.f = roundTo(s.f, type.getElementType());
  }
  return tensor;
}

void compareTensors(const Tensor &ours, const Tensor &reference,
                    double tolerance, unsigned result) {
  Type type = ours.elementType;
  bool floating = isa<FloatType>(type);
  double eps = type.isBF16()  ? 1.0 / 256
               : type.isF16() ? 1.0 / 2048
               : type.isF64() ? 3e-16
                              : 1.2e-7;
  tolerance =
      type.isF64() ? 1e-12 : std::max(tolerance, type.isF32() ? 0 : eps);
  double largest = 0;
  for (const Scalar &s : reference.elements)
    if (std::isfinite(s.f) && std::fabs(s.f) < 1e30)
      largest = std::max(largest, std::fabs(s.f));
  unsigned shown = 0;
  for (size_t i = 0; i < ours.elements.size() && shown < 5; ++i) {
    const Scalar &a = ours.elements[i], &b = reference.elements[i];
    double want = roundTo(b.f, type);
    bool same = floating ? std::fabs(a.f - want) <=
                               tolerance * largest + 2 * eps * std::fabs(want)
                         : a.i == b.i;
    if (floating && (std::isnan(want) || std::isinf(want)))
      same = std::isnan(want) ? std::isnan(a.f) : a.f == want;
    if (same)
      continue;
    ++shown;
    ADD_FAILURE() << "result " << result << " element " << i << ": got "
                  << (floating ? a.f : static_cast<double>(a.i))
                  << ", expected "
                  << (floating ? want : static_cast<double>(b.i));
  }
}

} // namespace

std::string kernelText(const std::string &signature, const std::string &space,
                       const std::string &tile, const std::string &body) {
  auto list = [](const std::string &items) {
    return items.empty() ? std::string("array<i64>")
                         : "array<i64: " + items + ">";
  };
  return "func.func private @k" + signature +
         " attributes {nova.kernel, nova.space = " + list(space) +
         ", nova.tile = " + list(tile) + "} {\n" + body + "\n}\n";
}

void checkSemantics(const std::string &text, const SemanticsOptions &options) {
  SCOPED_TRACE(text);
  auto module = parse(text);
  if (!module)
    return;
  func::FuncOp kernel = kernelOf(*module);
  std::mt19937 random(7);
  std::vector<Tensor> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
    arguments.push_back(
        randomArgument(cast<RankedTensorType>(type), i, options, random));
  std::vector<Tensor> reference = interpretNova(kernel, arguments);

  PassManager passes(&context());
  passes.addNestedPass<func::FuncOp>(createLowerKernelsToLinalg());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  std::string lowered;
  llvm::raw_string_ostream(lowered) << *module;
  SCOPED_TRACE(lowered);
  auto object = compileKernel(kernel, "kernel_under_test");
  ASSERT_TRUE(static_cast<bool>(object)) << object.error().message;
  auto shared = linkSharedObject({*object});
  ASSERT_TRUE(static_cast<bool>(shared)) << shared.error().message;
  LoadedObject loaded(*shared);
  KernelFunction function = loaded.get("kernel_under_test");
  ASSERT_NE(function, nullptr);

  std::vector<std::vector<unsigned char>> memory;
  for (const Tensor &argument : arguments)
    memory.push_back(toBytes(argument));
  for (const Tensor &result : reference)
    memory.emplace_back(
        result.elements.size() * elementBytes(result.elementType), 0xA5);
  std::vector<void *> pointers;
  for (auto &bytes : memory)
    pointers.push_back(bytes.data());
  function(pointers.data(), 0, kernelGridPoints(kernel));
  for (auto [r, type] : llvm::enumerate(kernel.getResultTypes()))
    compareTensors(
        fromBytes(cast<RankedTensorType>(type), memory[arguments.size() + r]),
        reference[r], options.tolerance, r);
}

} // namespace nova::test
