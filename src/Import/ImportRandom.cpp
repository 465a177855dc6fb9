//===- ImportRandom.cpp - Random numbers as a function of a seed ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// nova.uniform(seed, stream=S): numbers in [0, 1), float32, of the shape that
// the node declares. Element i (row-major) is made of word i mod 4 of
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy
// as 1, 2, 3, SC 2011) for the counter (i / 4, S) and the key `seed`: its upper
// 24 bits times 2^-24. It is arithmetic of int64 like any other: it fuses into
// what uses it, and a backward pass may compute a mask again.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

using namespace mlir;
using namespace nova;
using namespace nova::importer;
using graph::DType;

namespace {
/// 32-bit words in int64 tensors, none negative.
struct Words {
  Call &call;

  mlir::Value number(int64_t value) {
    return call.splat(Number::ofInt(value), DType::Int64);
  }
  mlir::Value mul(mlir::Value a, int64_t b) {
    return call.emit<MulOp>({a, number(b)});
  }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return call.emit<AddOp>({a, b});
  }
  mlir::Value mask(mlir::Value a, int64_t bits) {
    return call.emit<AndOp>({a, number(bits)});
  }
  /// What is not negative divided by a power of two: a shift.
  mlir::Value shift(mlir::Value a, int bits) {
    return call.emit<TruncDivOp>({a, number(int64_t(1) << bits)});
  }
  mlir::Value exclusive(mlir::Value a, mlir::Value b) {
    return call.emit<XorOp>({a, b});
  }
  /// The upper word of the product with a 32-bit constant, by halves: no
  /// product of 32 and 16 bits, nor a sum of two, leaves int64.
  mlir::Value high(mlir::Value a, int64_t factor) {
    mlir::Value low = mul(mask(a, 0xffff), factor);
    mlir::Value upper = mul(shift(a, 16), factor);
    return shift(add(upper, shift(low, 16)), 16);
  }
  /// The lower word: products wrap around.
  mlir::Value low(mlir::Value a, int64_t factor) {
    return mask(mul(a, factor), 0xffffffff);
  }
};
} // namespace

static LogicalResult importUniform(Call &call) {
  mlir::Value seed = call.tensor("seed");
  if (dtypeOf(seed) != DType::Int64 || rankOf(seed) != 0)
    return call.failAt("seed", "got " +
                                   Twine(dtypeName(dtypeOf(seed)).data()) +
                                   shapeText(shapeOf(seed)) +
                                   ", expected a 0-d tensor of int64");
  const auto &results = call.node().results;
  if (results.size() != 1 || !results[0])
    return call.fail("got no declared result, expected one: its shape says how "
                     "many numbers are drawn");
  ArrayRef<int64_t> shape = results[0]->shape;
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  int64_t stream = call.integer("stream");
  if (stream < 0 || stream > 0xffffffff)
    return call.failAt("stream", "got " + Twine(stream) +
                                     ", expected a number of 32 bits");
  Words w{call};
  mlir::Value index = call.reshape(
      call.iota(Number::ofInt(0), Number::ofInt(1), DType::Int64, count),
      shape);
  mlir::Value block = w.shift(index, 2), zero = w.number(0);
  mlir::Value c[4] = {w.mask(block, 0xffffffff), w.shift(block, 32),
                      w.number(stream), zero};
  // A seed may be negative: its upper word is what is left of it.
  mlir::Value k0 = w.mask(seed, 0xffffffff);
  mlir::Value k1 = w.mask(
      call.emit<FloorDivOp>({seed, w.number(int64_t(1) << 32)}), 0xffffffff);
  for (int round = 0; round < 10; ++round) {
    mlir::Value next[4] = {
        w.exclusive(w.exclusive(w.high(c[2], 0xCD9E8D57), c[1]), k0),
        w.low(c[2], 0xCD9E8D57),
        w.exclusive(w.exclusive(w.high(c[0], 0xD2511F53), c[3]), k1),
        w.low(c[0], 0xD2511F53)};
    std::copy(std::begin(next), std::end(next), std::begin(c));
    k0 = w.mask(w.add(k0, w.number(0x9E3779B9)), 0xffffffff);
    k1 = w.mask(w.add(k1, w.number(0xBB67AE85)), 0xffffffff);
  }
  mlir::Value which = w.mask(index, 3), word = c[3];
  for (int i = 2; i >= 0; --i)
    word = call.emit<SelectOp>(
        {call.compare(ComparePredicate::eq, which, w.number(i)), c[i], word});
  mlir::Value bits = call.cast(w.shift(word, 8), DType::Float32);
  return call.result(
      call.emit<MulOp>({bits, call.splat(0x1p-24, DType::Float32)}));
}

llvm::ArrayRef<OpEntry> importer::randomTable() {
  static const OpEntry table[] = {
      {"nova.uniform", "(Tensor seed, *, int stream=0)",
       "seed of int64; float32 of the declared shape", importUniform},
  };
  return table;
}
