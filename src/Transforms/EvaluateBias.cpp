//===- EvaluateBias.cpp - What a constant bias of attention says
//-----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "EvaluateBias.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nova;

/// What finite values mask from, inclusively.
static constexpr double kMasked = -65504;

BiasMeaning nova::readBias(const ConstantTensor &bias,
                           ArrayRef<int64_t> scores) {
  ConstantTensor full = bias.withView(bias.view().broadcast(scores));
  SmallVector<int64_t> core = full.coreShape();
  int64_t queries = scores[2], keys = scores[3], rowStride = full.strides()[2],
          keyStride = full.strides()[3];
  BiasMeaning meaning{true, true, true, {}};
  if (full.empty())
    return meaning;

  // Of repeated rows or keys all are looked at: which side of the diagonal they
  // are on differs.
  SmallVector<double> row(keys);
  SmallVector<int64_t> planes{core[0], core[1]};
  int64_t plane = 0;
  forEachOffset(
      planes, {full.strides().take_front(2)}, [&](ArrayRef<int64_t> offsets) {
        auto say = [&](int64_t i, int64_t j) {
          llvm::raw_string_ostream(meaning.witness)
              << llvm::formatv("bias[{0}, {1}, {2}, {3}] is ",
                               plane / planes[1], plane % planes[1], i, j)
              << llvm::format("%g", row[j]);
        };
        for (int64_t i = 0; i < queries && meaning.lowerIsZero; ++i) {
          if (i == 0 || rowStride != 0)
            loadFloats(full.kind(),
                       full.data() +
                           (offsets[0] + i * rowStride) * bytesOf(full.kind()),
                       keyStride, keys, row.data());
          int64_t visible = std::min(i + 1, keys), j = 0;
          while (j < visible && row[j] == 0)
            ++j;
          if (j < visible) {
            meaning = {};
            return say(i, j);
          }
          for (; j < keys && (meaning.upperIsZero || meaning.upperIsMasked);
               ++j) {
            meaning.upperIsZero &= row[j] == 0;
            meaning.upperIsMasked &= row[j] <= kMasked;
            if (!meaning.upperIsZero && !meaning.upperIsMasked)
              say(i, j);
          }
        }
        ++plane;
      });
  return meaning;
}
