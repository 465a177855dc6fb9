//===- PassHarness.h - What a function computes after some passes
//----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_TRANSFORMS_PASSHARNESS_H
#define NOVA_TESTS_TRANSFORMS_PASSHARNESS_H

#include "NovaInterpreter.h"

#include "nova/IR/Nova.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace nova::test {

using Numbers = std::vector<double>;

inline Tensor tensorOf(mlir::RankedTensorType type, const Numbers &values) {
  Tensor tensor(type);
  for (size_t i = 0; i < values.size(); ++i)
    tensor.elements[i] = {values[i], std::isfinite(values[i])
                                         ? static_cast<int64_t>(values[i])
                                         : 0};
  return tensor;
}

inline Numbers numbersOf(const Tensor &tensor) {
  Numbers numbers;
  for (const Scalar &element : tensor.elements)
    numbers.push_back(
        mlir::isa<mlir::FloatType>(tensor.elementType) ? element.f : element.i);
  return numbers;
}

/// Parses one function, runs the passes that `build` adds to it, and computes
/// its results on `arguments` (in the order of the function's, row-major).
inline std::vector<Numbers>
compute(const std::string &text, const std::vector<Numbers> &arguments,
        const std::function<void(mlir::OpPassManager &)> &build) {
  mlir::MLIRContext context;
  context.loadDialect<NovaDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return {};
  }
  mlir::PassManager manager(&context);
  build(manager.nest<mlir::func::FuncOp>());
  if (failed(manager.run(*module))) {
    ADD_FAILURE() << "the passes fail on:\n" << text;
    return {};
  }
  auto func = *module->getOps<mlir::func::FuncOp>().begin();
  std::vector<Tensor> tensors;
  for (auto [type, numbers] :
       llvm::zip_equal(func.getArgumentTypes(), arguments))
    tensors.push_back(
        tensorOf(mlir::cast<mlir::RankedTensorType>(type), numbers));
  std::vector<Numbers> results;
  for (const Tensor &tensor : interpretNova(func, tensors))
    results.push_back(numbersOf(tensor));
  return results;
}

/// Equal to a relative `tolerance`; NaN and infinity where they are expected.
inline void expectNear(const Numbers &got, const Numbers &want,
                       double tolerance = 1e-9) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i]))
          << "at " << i << ": " << got[i] << ", expected NaN";
    else if (std::isinf(want[i]))
      EXPECT_EQ(got[i], want[i]) << "at " << i;
    else
      EXPECT_NEAR(got[i], want[i],
                  tolerance * std::max(1.0, std::fabs(want[i])))
          << "at " << i;
  }
}

/// Smooth numbers without structure, by place and `seed`.
inline Numbers someNumbers(size_t count, double seed) {
  Numbers numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(std::sin(seed + 1.7 * i) * 2 +
                      std::cos(seed * 3 + 0.37 * i * i));
  return numbers;
}

/// d loss / d x, by central differences.
inline Numbers slopes(Numbers x,
                      const std::function<double(const Numbers &)> &loss) {
  const double h = 1e-5;
  Numbers result;
  for (double &value : x) {
    double at = value;
    value = at + h;
    double above = loss(x);
    value = at - h;
    double below = loss(x);
    value = at;
    result.push_back((above - below) / (2 * h));
  }
  return result;
}

} // namespace nova::test

#endif // NOVA_TESTS_TRANSFORMS_PASSHARNESS_H
