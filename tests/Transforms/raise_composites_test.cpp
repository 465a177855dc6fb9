//===- raise_composites_test.cpp - Raised is what it was
//-------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PassHarness.h"

#include "mlir/Transforms/Passes.h"

namespace nova::test {
namespace {

/// The function computes the same raised and decomposed as just decomposed.
void expectSame(const std::string &text,
                const std::vector<Numbers> &arguments) {
  auto plain = compute(text, arguments, [](mlir::OpPassManager &manager) {
    manager.addPass(createDecomposeComposites());
  });
  auto raised = compute(text, arguments, [](mlir::OpPassManager &manager) {
    manager.addPass(createRaiseComposites());
    manager.addPass(mlir::createCanonicalizerPass());
    manager.addPass(createDecomposeComposites());
  });
  ASSERT_EQ(plain.size(), raised.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    expectNear(raised[i], plain[i]);
  }
}

TEST(RaiseComposites, CrossEntropy) {
  for (std::string reduction : {"none", "sum", "mean"}) {
    std::string loss = reduction == "none" ? "tensor<5xf32>" : "tensor<f32>";
    std::string r = "{reduction = #nova<loss_reduction " + reduction +
                    ">, ignore_index = 1 : i64}";
    expectSame("func.func @f(%x: tensor<5x3xf32>, %l: tensor<5xi64>, %g: " +
                   loss + ") -> (" + loss +
                   ", tensor<f32>, tensor<5x3xf32>) {\n"
                   "%lp = nova.log_softmax %x {dim = 1 : i64} : "
                   "(tensor<5x3xf32>) -> tensor<5x3xf32>\n"
                   "%loss, %t = nova.nll_loss %lp, %l " +
                   r + " : (tensor<5x3xf32>, tensor<5xi64>) -> (" + loss +
                   ", tensor<f32>)\n"
                   "%d = nova.nll_loss_backward %g, %lp, %l, %t " +
                   r + " : (" + loss +
                   ", tensor<5x3xf32>, tensor<5xi64>, tensor<f32>) -> "
                   "tensor<5x3xf32>\n"
                   "%dx = nova.log_softmax_backward %d, %lp {dim = 1 : i64} : "
                   "(tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>\n"
                   "return %loss, %t, %dx : " +
                   loss + ", tensor<f32>, tensor<5x3xf32>\n}",
               {someNumbers(15, 1),
                {2, 1, 0, 1, 2},
                someNumbers(reduction == "none" ? 5 : 1, 2)});
  }
}

TEST(RaiseComposites, DecomposedCrossEntropy) {
  expectSame(
      R"(func.func @f(%x: tensor<5x3xf32>, %l: tensor<5x1xi64>, %w: tensor<5x1xf32>) -> (tensor<5x1xf32>, tensor<5x3xf32>) {
    %lp = nova.log_softmax %x {dim = 1 : i64} : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %picked = nova.gather %lp, %l {dim = 1 : i64} : (tensor<5x3xf32>, tensor<5x1xi64>) -> tensor<5x1xf32>
    %zeros = nova.constant dense<0.0> : tensor<5x3xf32>
    %minus = nova.constant dense<-1.0> : tensor<5x1xf32>
    %hot = nova.scatter %zeros, %l, %minus {dim = 1 : i64} : (tensor<5x3xf32>, tensor<5x1xi64>, tensor<5x1xf32>) -> tensor<5x3xf32>
    %d = nova.mul %hot, %w : (tensor<5x3xf32>, tensor<5x1xf32>) -> tensor<5x3xf32>
    %p = nova.exp %lp : (tensor<5x3xf32>) -> tensor<5x3xf32>
    %s = nova.sum %d {dims = array<i64: 1>, keepdims} : (tensor<5x3xf32>) -> tensor<5x1xf32>
    %ps = nova.mul %p, %s : (tensor<5x3xf32>, tensor<5x1xf32>) -> tensor<5x3xf32>
    %dx = nova.sub %d, %ps : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
    return %picked, %dx : tensor<5x1xf32>, tensor<5x3xf32>
  })",
      {someNumbers(15, 1), {2, 1, 0, 1, 2}, someNumbers(5, 2)});
}

/// Indices outside the dimension write nothing, on either form.
TEST(RaiseComposites, Scatter) {
  expectSame(
      R"(func.func @f(%x: tensor<3x4xf32>, %i: tensor<1x4xi64>, %u: tensor<1x4xf32>) -> tensor<3x4xf32> {
    %r = nova.scatter %x, %i, %u {dim = 0 : i64} : (tensor<3x4xf32>, tensor<1x4xi64>, tensor<1x4xf32>) -> tensor<3x4xf32>
    return %r : tensor<3x4xf32>
  })",
      {someNumbers(12, 1), {0, 2, 3, -1}, someNumbers(4, 2)});
}

TEST(RaiseComposites, Shapes) {
  expectSame(
      R"(func.func @f(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>, %w2: tensor<4x5xf32>, %c: tensor<2x3x1xf32>,
                             %row: tensor<1x5xf32>) -> (tensor<2x3x4xf32>, tensor<1x5xf32>, tensor<6x1xf32>, tensor<4x5xf32>) {
    %half = nova.constant dense<0.5> : tensor<6x5xf32>
    %0 = nova.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    %1 = nova.linear %0, %w, %b : (tensor<6x4xf32>, tensor<4x5xf32>, tensor<5xf32>) -> tensor<6x5xf32>
    %2 = nova.tanh %1 : (tensor<6x5xf32>) -> tensor<6x5xf32>
    %3 = nova.mul %2, %half : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
    %4 = nova.reshape %c : (tensor<2x3x1xf32>) -> tensor<6x1xf32>
    %5 = nova.broadcast %4 : (tensor<6x1xf32>) -> tensor<6x5xf32>
    %6 = nova.add %3, %5 : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
    %7 = nova.sub %6, %row : (tensor<6x5xf32>, tensor<1x5xf32>) -> tensor<6x5xf32>
    %8 = nova.matmul %7, %w2 {transpose_rhs} : (tensor<6x5xf32>, tensor<4x5xf32>) -> tensor<6x4xf32>
    %9 = nova.reshape %8 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
    %10 = nova.sum %7 {dims = array<i64: 0>} : (tensor<6x5xf32>) -> tensor<5xf32>
    %11 = nova.reshape %10 : (tensor<5xf32>) -> tensor<1x5xf32>
    %12 = nova.max %7 {dims = array<i64: 1>} : (tensor<6x5xf32>) -> tensor<6xf32>
    %13 = nova.reshape %12 : (tensor<6xf32>) -> tensor<6x1xf32>
    %14 = nova.matmul %0, %7 {transpose_lhs} : (tensor<6x4xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
    return %9, %11, %13, %14 : tensor<2x3x4xf32>, tensor<1x5xf32>, tensor<6x1xf32>, tensor<4x5xf32>
  })",
      {someNumbers(24, 1), someNumbers(20, 2), someNumbers(5, 3),
       someNumbers(20, 4), someNumbers(6, 5), someNumbers(5, 6)});
}

TEST(RaiseComposites, Batches) {
  expectSame(
      R"(func.func @f(%x: tensor<2x3x4x5xf32>, %y: tensor<8x3x5xf32>, %w: tensor<5x2xf32>) -> (tensor<8x3x3xf32>, tensor<8x3x2xf32>) {
    %0 = nova.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
    %1 = nova.reshape %0 : (tensor<2x4x3x5xf32>) -> tensor<8x3x5xf32>
    %2 = nova.matmul %y, %1 {transpose_rhs} : (tensor<8x3x5xf32>, tensor<8x3x5xf32>) -> tensor<8x3x3xf32>
    %3 = nova.matmul %1, %w : (tensor<8x3x5xf32>, tensor<5x2xf32>) -> tensor<8x3x2xf32>
    return %2, %3 : tensor<8x3x3xf32>, tensor<8x3x2xf32>
  })",
      {someNumbers(120, 1), someNumbers(120, 2), someNumbers(10, 3)});
}

} // namespace
} // namespace nova::test
