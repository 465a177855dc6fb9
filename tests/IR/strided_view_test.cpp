//===- strided_view_test.cpp - The view algebra, by enumeration ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each law is checked against what the views mean: the list of memory positions
// in row-major order of the view.
//
//===----------------------------------------------------------------------===//
#include "nova/IR/StridedView.h"

#include <gtest/gtest.h>

#include <random>

using namespace nova;
using Shape = llvm::SmallVector<int64_t>;

static int64_t volume(llvm::ArrayRef<int64_t> shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

/// Memory positions of all elements, row-major.
static std::vector<int64_t> positions(const StridedView &view) {
  std::vector<int64_t> result;
  int64_t count = volume(view.shape);
  for (int64_t linear = 0; linear < count; ++linear) {
    int64_t rest = linear, at = view.offset;
    for (size_t i = view.shape.size(); i-- > 0;) {
      at += rest % view.shape[i] * view.strides[i];
      rest /= view.shape[i];
    }
    result.push_back(at);
  }
  return result;
}

/// All shapes of `elements` elements with at most four dimensions.
static std::vector<Shape> shapesOf(int64_t elements) {
  std::vector<Shape> result;
  std::function<void(Shape, int64_t)> extend = [&](Shape shape, int64_t rest) {
    if (rest == 1)
      result.push_back(shape);
    if (shape.size() == 4)
      return;
    for (int64_t d = 1; d <= rest; ++d)
      if (rest % d == 0) {
        Shape next = shape;
        next.push_back(d);
        extend(next, rest / d);
      }
  };
  extend({}, elements);
  return result;
}

/// Whether some strides describe `want` under `shape`.
static bool isStrided(const std::vector<int64_t> &want, const Shape &shape) {
  StridedView view{want.empty() ? 0 : want[0], shape, Shape(shape.size(), 0)};
  int64_t inner = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] > 1)
      view.strides[i] = want[inner] - want[0];
    inner *= shape[i];
  }
  return positions(view) == want;
}

TEST(StridedView, ContiguousIsRowMajor) {
  for (const Shape &shape : shapesOf(24)) {
    StridedView view = StridedView::contiguous(shape);
    EXPECT_TRUE(view.isContiguous());
    std::vector<int64_t> got = positions(view);
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], (int64_t)i);
  }
}

TEST(StridedView, ReshapeFindsStridesExactlyWhenThereAreSome) {
  std::mt19937 random(7);
  unsigned found = 0, refused = 0;
  for (int64_t elements : {1, 12, 24, 36})
    for (const Shape &from : shapesOf(elements)) {
      // A random permutation, slice, and broadcast of a contiguous tensor.
      Shape perm(from.size());
      std::iota(perm.begin(), perm.end(), 0);
      std::shuffle(perm.begin(), perm.end(), random);
      StridedView view = StridedView::contiguous(from).transpose(perm);
      if (!from.empty() && random() % 3 == 0) {
        Shape wide(view.shape);
        wide.insert(wide.begin(), 2);
        view = view.broadcast(wide);
      }
      std::vector<int64_t> want = positions(view);
      for (const Shape &to : shapesOf(volume(view.shape))) {
        auto got = view.reshape(to);
        bool strided = isStrided(want, to);
        ASSERT_EQ(got.has_value(), strided);
        if (got)
          ASSERT_EQ(positions(*got), want);
        ++(got ? found : refused);
      }
    }
  EXPECT_GT(found, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(StridedView, SliceAndTransposeCommute) {
  StridedView whole = StridedView::contiguous({4, 5, 6});
  StridedView a = whole.slice({1, 0, 2}, {2, 3, 2}, {1, 2, 2}).transpose({2, 0, 1});
  StridedView b = whole.transpose({2, 0, 1}).slice({2, 1, 0}, {2, 2, 3}, {2, 1, 2});
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.offset, 1 * 30 + 2);
}

TEST(StridedView, BroadcastRepeats) {
  StridedView view = StridedView::contiguous({3, 1}).broadcast({2, 3, 4});
  EXPECT_EQ(view.strides, (Shape{0, 1, 0}));
  EXPECT_FALSE(view.isContiguous());
}

TEST(StridedView, EmptyTensorsAreContiguousUnderAnyShape) {
  StridedView view = StridedView::contiguous({3, 0, 2}).transpose({2, 1, 0});
  EXPECT_TRUE(view.isContiguous());
  ASSERT_TRUE(view.reshape({0}).has_value());
}

TEST(Broadcast, AgreesWithNumPy) {
  EXPECT_EQ(*broadcastShapes({3, 1, 5}, {4, 1}), (Shape{3, 4, 5}));
  EXPECT_EQ(*broadcastShapes({}, {2, 0}), (Shape{2, 0}));
  EXPECT_EQ(*broadcastShapes({1}, {0}), (Shape{0}));
  EXPECT_TRUE(failed(broadcastShapes({2}, {0})));
  EXPECT_TRUE(failed(broadcastShapes({3, 2}, {3})));
}

TEST(Permutation, InverseUndoes) {
  Shape perm{2, 0, 3, 1};
  StridedView view = StridedView::contiguous({2, 3, 4, 5});
  EXPECT_EQ(view.transpose(perm).transpose(invertPermutation(perm)), view);
}
