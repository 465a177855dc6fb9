//===- decompose_composites_test.cpp - What the parts compute together
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Forwards against their definition, backwards against differences of it.
//
//===----------------------------------------------------------------------===//
#include "PassHarness.h"

#include <numeric>

namespace nova::test {
namespace {

const double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Numbers> decomposed(const std::string &text,
                                const std::vector<Numbers> &arguments) {
  return compute(text, arguments, [](mlir::OpPassManager &manager) {
    manager.addPass(createDecomposeComposites());
  });
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

double dot(const Numbers &a, const Numbers &b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Rows of `size` elements `stride` apart, `count` elements in all.
template <typename Function>
void forEachRow(size_t count, size_t size, size_t stride, Function body) {
  for (size_t first = 0; first < count; ++first)
    if (first / stride % size == 0)
      body(first);
}

Numbers logSoftmax(const Numbers &x, size_t size, size_t stride) {
  Numbers y(x.size());
  forEachRow(x.size(), size, stride, [&](size_t first) {
    double most = -kInfinity, sum = 0;
    for (size_t i = 0; i < size; ++i)
      most = std::max(most, x[first + i * stride]);
    for (size_t i = 0; i < size; ++i)
      sum += std::exp(x[first + i * stride] - most);
    for (size_t i = 0; i < size; ++i)
      y[first + i * stride] = x[first + i * stride] - most - std::log(sum);
  });
  return y;
}
Numbers expOf(Numbers x) {
  for (double &value : x)
    value = std::exp(value);
  return x;
}

const char *const kSoftmax =
    R"(func.func @f(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %0 = nova.softmax %x {dim = DIM : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = nova.log_softmax %x {dim = DIM : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %0, %1 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
})";
const char *const kSoftmaxBackward =
    R"(func.func @f(%g: tensor<2x3x4xf32>, %p: tensor<2x3x4xf32>, %lp: tensor<2x3x4xf32>)
    -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %0 = nova.softmax_backward %g, %p {dim = DIM : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = nova.log_softmax_backward %g, %lp {dim = DIM : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %0, %1 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
})";

TEST(DecomposeComposites, Softmax) {
  const size_t sizes[] = {2, 3, 4}, strides[] = {12, 4, 1};
  for (size_t dim = 0; dim < 3; ++dim) {
    Numbers x = someNumbers(24, 1), g = someNumbers(24, 2);
    x[5] = 1e4; // its exponential alone would overflow
    x[7] = -kInfinity;
    Numbers want = logSoftmax(x, sizes[dim], strides[dim]);
    auto got = decomposed(replaced(kSoftmax, "DIM", std::to_string(dim)), {x});
    expectNear(got[0], expOf(want));
    expectNear(got[1], want);

    x = someNumbers(24, 3);
    want = logSoftmax(x, sizes[dim], strides[dim]);
    auto back =
        decomposed(replaced(kSoftmaxBackward, "DIM", std::to_string(dim)),
                   {g, expOf(want), want});
    auto slope = [&](bool logarithm) {
      return slopes(x, [&](const Numbers &v) {
        Numbers y = logSoftmax(v, sizes[dim], strides[dim]);
        return dot(g, logarithm ? y : expOf(y));
      });
    };
    expectNear(back[0], slope(false), 1e-6);
    expectNear(back[1], slope(true), 1e-6);
  }
}

TEST(DecomposeComposites, SoftmaxOfNothingSeen) {
  Numbers x(24, 0.0);
  std::fill_n(x.begin() + 4, 4, -kInfinity);
  auto got = decomposed(replaced(kSoftmax, "DIM", "2"), {x});
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(std::isnan(got[0][i]), i >= 4 && i < 8) << i;
    EXPECT_EQ(std::isnan(got[1][i]), i >= 4 && i < 8) << i;
  }
}

//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

struct Normed {
  Numbers y, mean, rstd;
};
Normed layerNorm(const Numbers &x, const Numbers &w, const Numbers &b,
                 double eps) {
  Normed result;
  size_t size = w.size();
  for (size_t row = 0; row < x.size(); row += size) {
    double mean =
               std::accumulate(x.begin() + row, x.begin() + row + size, 0.0) /
               size,
           variance = 0;
    for (size_t i = 0; i < size; ++i)
      variance += (x[row + i] - mean) * (x[row + i] - mean) / size;
    double rstd = 1 / std::sqrt(variance + eps);
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
    for (size_t i = 0; i < size; ++i)
      result.y.push_back((x[row + i] - mean) * rstd * w[i] + b[i]);
  }
  return result;
}

TEST(DecomposeComposites, LayerNorm) {
  struct Case {
    const char *axes, *affine, *statistics;
    size_t size;
  };
  for (Case c : {Case{"1", "4xf32", "2x3x1xf32", 4},
                 Case{"2", "3x4xf32", "2x1x1xf32", 12}}) {
    std::string forward =
        R"(func.func @f(%x: tensor<2x3x4xf32>, %w: tensor<W>, %b: tensor<W>)
      -> (tensor<2x3x4xf32>, tensor<S>, tensor<S>) {
    %y, %m, %r = nova.layer_norm %x, %w, %b {axes = AXES : i64, eps = 0.01 : f64, operandSegmentSizes = array<i32: 1, 1, 1>}
      : (tensor<2x3x4xf32>, tensor<W>, tensor<W>) -> (tensor<2x3x4xf32>, tensor<S>, tensor<S>)
    return %y, %m, %r : tensor<2x3x4xf32>, tensor<S>, tensor<S>
  })";
    std::string backward =
        R"(func.func @f(%g: tensor<2x3x4xf32>, %x: tensor<2x3x4xf32>, %m: tensor<S>, %r: tensor<S>, %w: tensor<W>)
      -> (tensor<2x3x4xf32>, tensor<W>, tensor<W>) {
    %dx, %dw, %db = nova.layer_norm_backward %g, %x, %m, %r, %w {axes = AXES : i64}
      : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<S>, tensor<S>, tensor<W>) -> (tensor<2x3x4xf32>, tensor<W>, tensor<W>)
    return %dx, %dw, %db : tensor<2x3x4xf32>, tensor<W>, tensor<W>
  })";
    for (std::string *text : {&forward, &backward})
      *text = replaced(replaced(replaced(*text, "AXES", c.axes), "<W>",
                                std::string("<") + c.affine + ">"),
                       "<S>", std::string("<") + c.statistics + ">");
    Numbers x = someNumbers(24, 1), w = someNumbers(c.size, 2),
            b = someNumbers(c.size, 3), g = someNumbers(24, 4);
    // eps and sizes are f32 constants: the double of 0.01f is not 0.01.
    Normed want = layerNorm(x, w, b, 0.01);
    auto got = decomposed(forward, {x, w, b});
    expectNear(got[0], want.y, 1e-6);
    expectNear(got[1], want.mean);
    expectNear(got[2], want.rstd, 1e-6);

    auto back = decomposed(backward, {g, x, want.mean, want.rstd, w});
    expectNear(back[0],
               slopes(x,
                      [&](const Numbers &v) {
                        return dot(g, layerNorm(v, w, b, 0.01).y);
                      }),
               1e-6);
    expectNear(back[1],
               slopes(w,
                      [&](const Numbers &v) {
                        return dot(g, layerNorm(x, v, b, 0.01).y);
                      }),
               1e-6);
    expectNear(back[2],
               slopes(b,
                      [&](const Numbers &v) {
                        return dot(g, layerNorm(x, w, v, 0.01).y);
                      }),
               1e-6);
  }
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

constexpr size_t kRows = 5, kClasses = 3;
constexpr double kIgnored = -100;

struct Loss {
  Numbers loss; // per row, or one number
  double total;
};
Loss nllLoss(const Numbers &logProbs, const Numbers &labels,
             const Numbers &weight, const std::string &reduction) {
  Loss result{{}, 0};
  for (size_t row = 0; row < kRows; ++row) {
    bool counts = labels[row] != kIgnored;
    size_t label = counts ? static_cast<size_t>(labels[row]) : 0;
    result.loss.push_back(
        counts ? -weight[label] * logProbs[row * kClasses + label] : 0);
    result.total += counts ? weight[label] : 0;
  }
  if (reduction == "none")
    return {result.loss, 0};
  double sum = std::accumulate(result.loss.begin(), result.loss.end(), 0.0);
  return {{reduction == "mean" ? sum / result.total : sum}, result.total};
}

TEST(DecomposeComposites, NllLoss) {
  for (std::string reduction : {"none", "sum", "mean"})
    for (bool weighted : {false, true})
      for (const Numbers &labels :
           {Numbers{2, kIgnored, 0, 1, 2}, Numbers(kRows, kIgnored)}) {
        std::string loss =
            reduction == "none" ? "tensor<5xf32>" : "tensor<f32>";
        std::string w = weighted ? ", %w" : "",
                    wType = weighted ? ", tensor<3xf32>" : "";
        std::string attributes = "{reduction = #nova<loss_reduction " +
                                 reduction + ">, ignore_index = -100 : i64}";
        std::string signature =
            "%lp: tensor<5x3xf32>, %l: tensor<5xi64>, %w: tensor<3xf32>, %g: " +
            loss;
        std::string forward =
            "func.func @f(" + signature + ") -> (" + loss +
            ", tensor<f32>) {\n%0, %1 = nova.nll_loss %lp, %l" + w + " " +
            attributes + " : (tensor<5x3xf32>, tensor<5xi64>" + wType +
            ") -> (" + loss + ", tensor<f32>)\nreturn %0, %1 : " + loss +
            ", tensor<f32>\n}";
        std::string backward =
            "func.func @f(" + signature +
            ", %t: tensor<f32>) -> tensor<5x3xf32> {\n%0 = "
            "nova.nll_loss_backward %g, %lp, %l" +
            w + ", %t " + attributes + " : (" + loss +
            ", tensor<5x3xf32>, tensor<5xi64>" + wType +
            ", tensor<f32>) -> tensor<5x3xf32>\nreturn %0 : tensor<5x3xf32>\n}";
        Numbers logProbs = logSoftmax(someNumbers(15, 1), kClasses, 1);
        Numbers weight = weighted ? Numbers{0.5, 2, 1.5} : Numbers{1, 1, 1};
        Loss want = nllLoss(logProbs, labels, weight, reduction);
        Numbers grad = someNumbers(want.loss.size(), 5);
        auto got = decomposed(forward, {logProbs, labels, weight, grad});
        expectNear(got[0], want.loss);
        expectNear(got[1], {want.total});
        auto back = decomposed(backward,
                               {logProbs, labels, weight, grad, {want.total}});
        // A mean over nothing is NaN, its gradient 0.
        expectNear(
            back[0],
            reduction == "mean" && want.total == 0
                ? Numbers(15, 0.0)
                : slopes(logProbs,
                         [&](const Numbers &v) {
                           return dot(
                               grad,
                               nllLoss(v, labels, weight, reduction).loss);
                         }),
            1e-6);
      }
}

TEST(DecomposeComposites, SoftmaxCrossEntropy) {
  for (std::string reduction : {"none", "sum", "mean"}) {
    std::string loss = reduction == "none" ? "tensor<5xf32>" : "tensor<f32>";
    std::string text =
        R"(func.func @f(%x: tensor<5x3xf32>, %l: tensor<5xi64>, %g: LOSS)
        -> (LOSS, tensor<5xf32>, tensor<f32>, tensor<5x3xf32>) {
      %loss, %lse, %count = nova.sce %x, %l {reduction = #nova<loss_reduction RED>, ignore_index = -100 : i64}
        : (tensor<5x3xf32>, tensor<5xi64>) -> (LOSS, tensor<5xf32>, tensor<f32>)
      %d = nova.sce_backward %g, %x, %l, %lse, %count {reduction = #nova<loss_reduction RED>, ignore_index = -100 : i64}
        : (LOSS, tensor<5x3xf32>, tensor<5xi64>, tensor<5xf32>, tensor<f32>) -> tensor<5x3xf32>
      return %loss, %lse, %count, %d : LOSS, tensor<5xf32>, tensor<f32>, tensor<5x3xf32>
    })";
    text = replaced(replaced(text, "LOSS", loss), "RED", reduction);
    Numbers x = someNumbers(15, 1), labels{2, kIgnored, 0, 1, 2}, ones{1, 1, 1};
    x[4] = 1e4;
    auto lossOf = [&](const Numbers &v) {
      return nllLoss(logSoftmax(v, kClasses, 1), labels, ones, reduction);
    };
    Numbers grad = someNumbers(lossOf(x).loss.size(), 5),
            logProbs = logSoftmax(x, kClasses, 1), lse;
    for (size_t row = 0; row < kRows; ++row)
      lse.push_back(x[row * kClasses] - logProbs[row * kClasses]);
    auto got = decomposed(text, {x, labels, grad});
    expectNear(got[0], lossOf(x).loss);
    expectNear(got[1], lse);
    expectNear(got[2], {4});
    expectNear(
        got[3],
        slopes(x, [&](const Numbers &v) { return dot(grad, lossOf(v).loss); }),
        1e-6);
  }
}

/// A row of -inf logits is NaN in its loss and gradient, and nowhere else.
TEST(DecomposeComposites, SoftmaxCrossEntropyOfNothingSeen) {
  std::string text =
      R"(func.func @f(%x: tensor<5x3xf32>, %l: tensor<5xi64>) -> tensor<5xf32> {
    %loss, %lse, %count = nova.sce %x, %l {reduction = #nova<loss_reduction none>, ignore_index = -100 : i64}
      : (tensor<5x3xf32>, tensor<5xi64>) -> (tensor<5xf32>, tensor<5xf32>, tensor<f32>)
    return %loss : tensor<5xf32>
  })";
  Numbers x(15, 0.0);
  std::fill_n(x.begin() + 3, 6, -kInfinity);
  auto got = decomposed(text, {x, {2, kIgnored, 0, 1, 2}});
  expectNear(got[0], {std::log(3), 0, kNaN, std::log(3), std::log(3)});
}

} // namespace
} // namespace nova::test
