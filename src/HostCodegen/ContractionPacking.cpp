//===- ContractionPacking.cpp - Operands of a product, into panels
//---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ContractionLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace nova::host {

static constexpr int64_t W = kVectorWidth;

Value ContractionLowering::wide(Value value) {
  if (getElementTypeOrSelf(value.getType()).isF32())
    return value;
  Type type = e.getF32Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = VectorType::get(vector.getShape(), type);
  return arith::ExtFOp::create(e, type, value);
}

/// Packed B: panels of NR columns; in a panel rows of k, NR floats each. What
/// lies beside the real columns is never looked at. Memory is read in the order
/// it lies in: few pages are open at a time.
void ContractionLowering::packB(const Place &at) {
  Access to = flat(packedB);
  const int64_t nr = nv * W;
  if (bK == 1 && bN != 1) {
    parts(at.nc, nr, /*exactRest=*/false, [&](Value j, Part columns) {
      packBTransposed(e.mulIndex(j, blockK),
                      e.addIndex(at.bBase, e.mulIndex(j, bN)), columns, at.kc);
    });
    return;
  }
  e.loop(e.getIndexAttr(0), at.kc, 1, [&](Value k) {
    Value fromRow = e.addIndex(at.bBase, e.mulIndex(k, bK));
    Value toRow = e.mulIndex(k, nr);
    parts(
        at.nc, nr, /*exactRest=*/false,
        [&](Value j, Part columns) {
          Value from = e.addIndex(fromRow, e.mulIndex(j, bN));
          Value row = e.addIndex(toRow, e.mulIndex(j, blockK));
          auto fixed = getConstantIntValue(columns.real);
          if (columns.real && (!fixed || bN != 1)) {
            // A ragged edge, element by element.
            e.loop(e.getIndexAttr(0), columns.real, 1, [&](Value column) {
              Value value =
                  e.loadScalar(b, e.addIndex(from, e.mulIndex(column, bN)));
              e.storeScalar(to, e.addIndex(row, column), wide(value));
            });
            return;
          }
          for (int64_t v = 0; v < columns.full / W; ++v) {
            int64_t lanes = fixed ? std::min(W, *fixed - v * W) : W;
            Lanes value =
                e.load(b, e.addIndex(from, e.index(v * W * bN)), bN, lanes);
            Value vector = wide(e.materialise(value, lanes));
            e.store(to, e.addIndex(row, e.index(v * W)), 1, lanes,
                    {lanes == 1 ? Lanes::Form::Uniform : Lanes::Form::Vector,
                     vector});
          }
        },
        /*unrolled=*/true);
  });
}

/// Rows become columns, 8 by 8.
SmallVector<Value> ContractionLowering::transpose(ArrayRef<Value> rows) {
  SmallVector<Value> now(rows);
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> lanes) -> Value {
    return vector::ShuffleOp::create(e, x, y, lanes);
  };
  // Pairs, then quadruples within 128-bit halves, then the halves.
  SmallVector<Value> pairs(8), quads(8), out(8);
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = shuffle(now[i], now[i + 1], {0, 8, 1, 9, 4, 12, 5, 13});
    pairs[i + 1] = shuffle(now[i], now[i + 1], {2, 10, 3, 11, 6, 14, 7, 15});
  }
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 2; ++i) {
      Value x = pairs[half * 4 + i], y = pairs[half * 4 + 2 + i];
      quads[half * 4 + 2 * i] = shuffle(x, y, {0, 1, 8, 9, 4, 5, 12, 13});
      quads[half * 4 + 2 * i + 1] = shuffle(x, y, {2, 3, 10, 11, 6, 7, 14, 15});
    }
  for (int i = 0; i < 4; ++i) {
    out[i] = shuffle(quads[i], quads[4 + i], {0, 1, 2, 3, 8, 9, 10, 11});
    out[4 + i] = shuffle(quads[i], quads[4 + i], {4, 5, 6, 7, 12, 13, 14, 15});
  }
  return out;
}

void ContractionLowering::packBTransposed(Value panel, Value source,
                                          const Part &columns,
                                          OpFoldResult kc) {
  Access to = flat(packedB);
  const int64_t nr = nv * W;
  auto oneColumn = [&](Value column, OpFoldResult from) {
    e.loop(from, kc, 1, [&](Value k) {
      Value value = e.loadScalar(
          b, e.addIndex(e.addIndex(source, e.mulIndex(column, bN)), k));
      e.storeScalar(to,
                    e.addIndex(e.addIndex(panel, e.mulIndex(k, nr)), column),
                    wide(value));
    });
  };
  int64_t groups = columns.real ? 0 : columns.full / W;
  if (auto fixed = getConstantIntValue(columns.real))
    groups = *fixed / W;
  OpFoldResult full = e.roundDown(kc, W);
  for (int64_t g = 0; g < groups; ++g) {
    e.loop(e.getIndexAttr(0), full, W, [&](Value k) {
      SmallVector<Value> rows;
      for (int64_t l = 0; l < W; ++l) {
        Value from =
            e.addIndex(e.addIndex(source, e.index((g * W + l) * bN)), k);
        rows.push_back(wide(e.load(b, from, 1, W).value));
      }
      for (auto [l, row] : llvm::enumerate(transpose(rows))) {
        Value where = e.addIndex(panel, e.mulIndex(k, nr));
        e.store(to, e.addIndex(where, e.index(l * nr + g * W)), 1, W,
                {Lanes::Form::Vector, row});
      }
    });
    for (int64_t l = 0; l < W; ++l)
      oneColumn(e.index(g * W + l), full);
  }
  OpFoldResult end = columns.real ? columns.real : e.getIndexAttr(columns.full);
  e.loop(e.getIndexAttr(groups * W), end, 1,
         [&](Value column) { oneColumn(column, e.getIndexAttr(0)); });
}

/// Packed A: panels of MR rows; in a panel columns of k, MR floats each.
void ContractionLowering::packA(const Place &at) {
  Access to = flat(packedA);
  e.loop(e.getIndexAttr(0), at.kc, 1, [&](Value k) {
    Value fromColumn = e.addIndex(at.aBase, e.mulIndex(k, aK));
    Value toColumn = e.mulIndex(k, mr);
    parts(
        at.mc, mr, /*exactRest=*/true,
        [&](Value i, Part rows) {
          Value from = e.addIndex(fromColumn, e.mulIndex(i, aM));
          Value column = e.addIndex(toColumn, e.mulIndex(i, blockK));
          if (!rows.real && rows.full > 1) {
            Lanes value = e.load(a, from, aM, rows.full);
            e.store(
                to, column, 1, rows.full,
                {Lanes::Form::Vector, wide(e.materialise(value, rows.full))});
            return;
          }
          OpFoldResult end = rows.real ? rows.real : e.getIndexAttr(rows.full);
          e.loop(e.getIndexAttr(0), end, 1, [&](Value r) {
            Value value = e.loadScalar(a, e.addIndex(from, e.mulIndex(r, aM)));
            e.storeScalar(to, e.addIndex(column, r), wide(value));
          });
        },
        /*unrolled=*/true);
  });
}

} // namespace nova::host
