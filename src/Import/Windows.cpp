//===- Windows.cpp - What slides over a convolution's or pooling's input --===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Windows.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;

int64_t Windows::taps() const {
  int64_t product = 1;
  for (int64_t each : kernel)
    product *= each;
  return product;
}

int64_t Windows::windows() const {
  int64_t product = 1;
  for (int64_t each : count)
    product *= each;
  return product;
}

SmallVector<int64_t> Windows::tap(int64_t t) const {
  SmallVector<int64_t> at(kernel.size());
  for (int64_t d = spatialRank() - 1; d >= 0; --d) {
    at[d] = t % kernel[d];
    t /= kernel[d];
  }
  return at;
}

bool Windows::cutsPatches() const {
  return stride == kernel && llvm::all_of(padding, [](int64_t p) { return p == 0; }) &&
         llvm::all_of(dilation, [](int64_t d) { return d == 1; });
}

FailureOr<Windows> importer::readWindows(Call &call, mlir::Value input,
                                         ArrayRef<int64_t> kernel, bool ceil,
                                         bool dilated) {
  Windows w;
  llvm::append_range(w.input, shapeOf(input));
  llvm::append_range(w.kernel, kernel);
  auto read = [&](StringRef name, SmallVector<int64_t> &out, int64_t least) {
    out = call.integers(name);
    if (out.empty() && name == "stride")
      out = w.kernel;
    if (out.size() == 1)
      out.resize(w.kernel.size(), out[0]);
    bool good = out.size() == w.kernel.size() &&
                llvm::all_of(out, [&](int64_t each) { return each >= least; });
    if (good)
      return success();
    return call.failAt(name, "got " + shapeText(out) + ", expected " +
                                 Twine(w.kernel.size()) +
                                 " numbers, none below " + Twine(least));
  };
  if (failed(read("stride", w.stride, 1)) ||
      failed(read("padding", w.padding, 0)))
    return failure();
  w.dilation.assign(kernel.size(), 1);
  if (dilated && failed(read("dilation", w.dilation, 1)))
    return failure();
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    int64_t extent = w.input[2 + d], reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
    int64_t room = extent + 2 * w.padding[d] - reach;
    if (room < 0)
      return call.fail("a window of " + Twine(reach) + " along dimension " +
                       Twine(2 + d) + ", expected at most the padded extent " +
                       Twine(extent + 2 * w.padding[d]));
    int64_t count = room / w.stride[d] + 1;
    // PyTorch's rule: the last window begins inside the input or its left
    // padding.
    if (ceil && room % w.stride[d] != 0 &&
        count * w.stride[d] < extent + w.padding[d])
      ++count;
    w.count.push_back(count);
  }
  return w;
}

/// How far the taps reach along a spatial dimension.
static int64_t reachOf(const Windows &w, size_t d) {
  return (w.count[d] - 1) * w.stride[d] + w.dilation[d] * (w.kernel[d] - 1) + 1;
}

static mlir::Value pad(Call &call, mlir::Value x, ArrayRef<int64_t> low,
                       ArrayRef<int64_t> high, const Number &value) {
  bool none = llvm::all_of(low, [](int64_t each) { return each == 0; }) &&
              llvm::all_of(high, [](int64_t each) { return each == 0; });
  if (none || !x)
    return x;
  return call.emit<PadOp>(
      {x}, {call.listAttr("low", low), call.listAttr("high", high),
            call.namedAttr("value", call.element(value, dtypeOf(x)))});
}

mlir::Value importer::padWindows(Call &call, const Windows &w,
                                 mlir::Value input, const Number &value) {
  SmallVector<int64_t> low{0, 0}, high{0, 0};
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    low.push_back(w.padding[d]);
    high.push_back(std::max<int64_t>(
        reachOf(w, d) - w.padding[d] - w.input[2 + d], 0));
  }
  return pad(call, input, low, high, value);
}

mlir::Value importer::readTap(Call &call, const Windows &w, mlir::Value padded,
                              int64_t t) {
  SmallVector<int64_t> at = w.tap(t);
  for (size_t d = 0; d < w.kernel.size(); ++d)
    padded = call.sliceDim(padded, 2 + d, at[d] * w.dilation[d], w.count[d],
                           w.stride[d]);
  return padded;
}

/// `stride - 1` zeros between neighbours along a dimension.
static mlir::Value spread(Call &call, mlir::Value x, int64_t dim,
                          int64_t stride) {
  if (!x || stride == 1)
    return x;
  SmallVector<int64_t> shape(shapeOf(x)), low(rankOf(x) + 1, 0),
      high(rankOf(x) + 1, 0);
  int64_t extent = shape[dim];
  x = call.unsqueeze(x, dim + 1);
  high[dim + 1] = stride - 1;
  x = pad(call, x, low, high, Number::ofInt(0));
  shape[dim] = extent * stride;
  return call.sliceDim(call.reshape(x, shape), dim, 0,
                       (extent - 1) * stride + 1);
}

mlir::Value importer::sumTaps(Call &call, const Windows &w,
                              ArrayRef<mlir::Value> parts) {
  mlir::Value total;
  for (auto [t, part] : llvm::enumerate(parts)) {
    mlir::Value x = part;
    SmallVector<int64_t> at = w.tap(t), low{0, 0}, high{0, 0};
    for (size_t d = 0; d < w.kernel.size(); ++d) {
      x = spread(call, x, 2 + d, w.stride[d]);
      int64_t first = at[d] * w.dilation[d],
              wide = std::max(reachOf(w, d), w.padding[d] + w.input[2 + d]);
      low.push_back(first);
      high.push_back(wide - first - ((w.count[d] - 1) * w.stride[d] + 1));
    }
    x = pad(call, x, low, high, Number::ofInt(0));
    total = total ? call.emit<AddOp>({total, x}) : x;
  }
  for (size_t d = 0; d < w.kernel.size(); ++d)
    total = call.sliceDim(total, 2 + d, w.padding[d], w.input[2 + d]);
  return total;
}
