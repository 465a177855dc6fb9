//===- ContractionToLoops.cpp - Matrix products: packed and register-tiled
//-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ContractionLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace nova::host {
namespace {

constexpr int64_t W = kVectorWidth;
/// Rows of B in a packed panel: KC x NR floats are half of a 32 KiB cache.
constexpr int64_t kBlockK = 256;
/// Columns packed at once: KC x NC floats are 256 KiB.
constexpr int64_t kBlockN = 256;
/// Rows of A that are reused from the second cache.
constexpr int64_t kBlockM = 96;

/// `value` itself or what an arith.extf of it widens; null if neither.
BlockArgument bodyOperand(Value value, GenericBody &body) {
  if (auto extend = value.getDefiningOp<arith::ExtFOp>())
    value = extend.getIn();
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != body.op.getBody() ||
      argument.getArgNumber() >= body.numInputs)
    return {};
  return argument;
}

/// The structure of a contraction worth blocking, or nothing.
std::optional<Roles> matchContraction(GenericBody &body) {
  if (body.numInputs != 2 || body.numResults != 1 || !body.isWritten(0) ||
      !body.result(0).elementType.isF32() || body.accesses[0].splat ||
      body.accesses[1].splat)
    return std::nullopt;
  auto add = body.op.getBody()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  if (!add || !body.outArg(0).hasOneUse())
    return std::nullopt;
  Value product = add.getLhs() == body.outArg(0) ? add.getRhs() : add.getLhs();
  if (add.getLhs() != body.outArg(0) && add.getRhs() != body.outArg(0))
    return std::nullopt;
  auto mul = product.getDefiningOp<arith::MulFOp>();
  if (!mul)
    return std::nullopt;
  BlockArgument lhs = bodyOperand(mul.getLhs(), body),
                rhs = bodyOperand(mul.getRhs(), body);
  if (!lhs || !rhs || lhs == rhs)
    return std::nullopt;

  Roles roles;
  SmallVector<unsigned> onlyA, onlyB, k;
  auto uses = [&](unsigned operand, unsigned d) {
    AffineMap map =
        body.op.getMatchingIndexingMap(&body.op->getOpOperand(operand));
    return map.isFunctionOfDim(d);
  };
  for (unsigned d = 0; d < body.dims.size(); ++d) {
    bool inA = uses(0, d), inB = uses(1, d);
    if (body.dims[d].maxSize == 1)
      roles.parallel.push_back(d); // Whatever it is, one iteration.
    else if (body.dims[d].reduction && inA && inB)
      k.push_back(d);
    else if (body.dims[d].reduction)
      return std::nullopt;
    else if (inA && inB)
      roles.parallel.push_back(d);
    else if (inA)
      onlyA.push_back(d);
    else if (inB)
      onlyB.push_back(d);
    else
      return std::nullopt;
  }
  if (k.empty() || onlyA.empty() || onlyB.empty())
    return std::nullopt;
  // n is the dimension along which C is contiguous; its operand is B.
  const Access &c = body.result(0);
  int64_t found = -1;
  for (unsigned d : llvm::concat<unsigned>(onlyB, onlyA))
    if (c.coef[d] == 1 && found < 0)
      found = d;
  if (found < 0)
    return std::nullopt;
  roles.n = found;
  if (llvm::is_contained(onlyA, roles.n)) {
    std::swap(roles.a, roles.b);
    std::swap(onlyA, onlyB);
  }
  auto largest = [&](ArrayRef<unsigned> from) {
    return *llvm::max_element(from, [&](unsigned x, unsigned y) {
      return body.dims[x].maxSize < body.dims[y].maxSize;
    });
  };
  roles.m = largest(onlyA);
  roles.k = largest(k);
  for (unsigned d : llvm::concat<unsigned>(onlyA, onlyB))
    if (d != roles.m && d != roles.n)
      roles.parallel.push_back(d);
  for (unsigned d : k)
    if (d != roles.k)
      roles.reductions.push_back(d);
  int64_t m = body.dims[roles.m].maxSize, n = body.dims[roles.n].maxSize,
          depth = body.dims[roles.k].maxSize;
  if (m < 4 || n < W || depth < 4 || m * n * depth < 2048)
    return std::nullopt;
  return roles;
}

} // namespace

/// Fills the registers best for this size: cycles per k are bound by FMAs (two
/// a cycle), loads (two a cycle) and, in small tiles, by the FMA's latency.
void ContractionLowering::chooseTile() {
  int64_t m = body.dims[roles.m].maxSize, n = body.dims[roles.n].maxSize;
  auto cycles = [](int64_t rows, int64_t vectors) {
    return std::max({rows * vectors / 2.0, (rows + vectors) / 2.0, 4.0});
  };
  double best = 0;
  const std::pair<int64_t, int64_t> shapes[] = {{6, 2}, {4, 3}, {5, 2},
                                                {4, 2}, {3, 4}, {2, 6}};
  for (auto [rows, vectors] : shapes) {
    double total = 0;
    int64_t columns = vectors * W;
    for (int64_t j = 0; j < n; j += columns) {
      int64_t v = std::min(vectors, (n - j + W - 1) / W);
      total +=
          (m / rows) * cycles(rows, v) + (m % rows ? cycles(m % rows, v) : 0);
    }
    if (best == 0 || total < best * 0.97) {
      best = total;
      mr = rows;
      nv = vectors;
    }
  }
}

void ContractionLowering::emit() {
  chooseTile();
  int64_t m = body.dims[roles.m].maxSize, n = body.dims[roles.n].maxSize,
          k = body.dims[roles.k].maxSize;
  // Equal blocks of k rather than full ones and a small last.
  int64_t count = (k + kBlockK - 1) / kBlockK;
  blockK = llvm::alignTo((k + count - 1) / count, 8);
  int64_t nr = nv * W;
  blockN = std::min<int64_t>(llvm::alignTo(n, nr), llvm::alignTo(kBlockN, nr));
  blockM = std::min<int64_t>(llvm::alignTo(m, mr), llvm::alignTo(kBlockM, mr));
  packsA = aK != 1 || !a.elementType.isF32();
  bool plainInit = init.splat || init.coef[roles.n] == 1;
  oneBlock = count == 1 && roles.reductions.empty() && plainInit &&
             init.elementType.isF32();
  packedB = e.stackBuffer(e.getF32Type(), blockK * blockN);
  if (packsA)
    packedA = e.stackBuffer(e.getF32Type(), blockK * blockM);
  emitParallel(0, body.origin());
}

void ContractionLowering::emitParallel(unsigned level, const Cursor &at) {
  if (level < roles.parallel.size()) {
    unsigned d = roles.parallel[level];
    e.loop(e.getIndexAttr(0), body.dims[d].size, 1,
           [&](Value iv) { emitParallel(level + 1, body.enter(at, d, iv)); });
    return;
  }
  if (!oneBlock) {
    auto matrix = [&](const Access &access, Value base) {
      Access out = access;
      out.base = base;
      out.coef = {access.coef[roles.m], access.coef[roles.n]};
      return out;
    };
    LoopDim dims[] = {body.dims[roles.m], body.dims[roles.n]};
    emitCopy(e, dims, matrix(init, at.offset[2]), matrix(c, at.offset[3]));
  }
  emitReductions(0, at);
}

void ContractionLowering::emitReductions(unsigned level, const Cursor &at) {
  if (level == roles.reductions.size())
    return emitMatrix(at);
  unsigned d = roles.reductions[level];
  e.loop(e.getIndexAttr(0), body.dims[d].size, 1,
         [&](Value iv) { emitReductions(level + 1, body.enter(at, d, iv)); });
}

void ContractionLowering::blocks(
    OpFoldResult size, int64_t maxSize, int64_t step,
    llvm::function_ref<void(Value, OpFoldResult)> body) {
  if (maxSize <= step)
    return body(e.index(0), size);
  auto fixed = getConstantIntValue(size);
  e.loop(e.getIndexAttr(0), size, step, [&](Value iv) {
    if (fixed && *fixed % step == 0)
      return body(iv, e.getIndexAttr(step));
    Value left = arith::SubIOp::create(e, e.asValue(size), iv);
    body(iv, e.minIndex(left, e.index(step)));
  });
}

void ContractionLowering::parts(OpFoldResult size, int64_t step, bool exactRest,
                                llvm::function_ref<void(Value, Part)> body,
                                bool unrolled) {
  OpFoldResult full = e.roundDown(size, step);
  auto fixed = getConstantIntValue(size);
  if (unrolled && fixed)
    for (int64_t at = 0; at + step <= *fixed; at += step)
      body(e.index(at), {step, {}});
  else
    e.loop(e.getIndexAttr(0), full, step,
           [&](Value iv) { body(iv, {step, {}}); });
  if (fixed) {
    int64_t rest = *fixed % step;
    // Rows: a tile of that size; columns: whole vectors, the last one masked.
    int64_t computed = exactRest ? rest : llvm::alignTo(rest, W);
    if (rest)
      body(
          e.index(*fixed - rest),
          {computed, computed == rest ? OpFoldResult() : e.getIndexAttr(rest)});
    return;
  }
  Value start = e.asValue(full), end = e.asValue(size);
  Value some = arith::CmpIOp::create(e, arith::CmpIPredicate::slt, start, end);
  emitIf(e, some, [&] {
    body(start, {step, arith::SubIOp::create(e, end, start).getResult()});
  });
}

void ContractionLowering::emitMatrix(const Cursor &at) {
  const LoopDim &m = body.dims[roles.m], &n = body.dims[roles.n],
                &k = body.dims[roles.k];
  auto along = [&](Value base, Value iv, int64_t stride) {
    return e.addIndex(base, e.mulIndex(iv, stride));
  };
  Place outer;
  outer.aBase = at.offset[roles.a];
  outer.bBase = at.offset[roles.b];
  outer.initBase = at.offset[2];
  outer.cBase = at.offset[3];
  blocks(k.size, k.maxSize, blockK, [&](Value kb, OpFoldResult kc) {
    blocks(n.size, n.maxSize, blockN, [&](Value jc, OpFoldResult nc) {
      Place column = outer;
      column.aBase = along(outer.aBase, kb, aK);
      column.bBase = along(along(outer.bBase, kb, bK), jc, bN);
      column.cBase = e.addIndex(outer.cBase, jc);
      if (!init.splat)
        column.initBase = along(outer.initBase, jc, init.coef[roles.n]);
      column.kc = kc;
      column.nc = nc;
      packB(column);
      blocks(m.size, m.maxSize, blockM, [&](Value ic, OpFoldResult mc) {
        Place place = column;
        place.aBase = along(column.aBase, ic, aM);
        place.cBase = along(column.cBase, ic, cM);
        if (!init.splat)
          place.initBase = along(column.initBase, ic, init.coef[roles.m]);
        place.mc = mc;
        if (packsA)
          packA(place);
        parts(
            place.nc, nv * W, /*exactRest=*/false, [&](Value j, Part columns) {
              parts(place.mc, mr, /*exactRest=*/true, [&](Value i, Part rows) {
                microKernel(place, i, rows, j, columns);
              });
            });
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// The register tile
//===----------------------------------------------------------------------===//

/// Lanes of the given vector of a tile's columns that exist.
Value ContractionLowering::mask(const Part &columns, int64_t vector) {
  VectorType type = e.laneType(e.getI32Type(), W);
  SmallVector<int32_t> numbers;
  for (int64_t l = 0; l < W; ++l)
    numbers.push_back(vector * W + l);
  Value lanes = arith::ConstantOp::create(
      e, DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  Value real =
      arith::IndexCastOp::create(e, e.getI32Type(), e.asValue(columns.real));
  return arith::CmpIOp::create(e, arith::CmpIPredicate::slt, lanes,
                               vector::BroadcastOp::create(e, type, real));
}

void ContractionLowering::microKernel(const Place &at, Value i,
                                      const Part &rows, Value j,
                                      const Part &columns) {
  const int64_t vectors = columns.full / W, nr = nv * W;
  VectorType type = e.laneType(e.getF32Type(), W);
  // Row numbers within the block; those that do not exist repeat the last.
  SmallVector<Value> row;
  for (int64_t r = 0; r < rows.full; ++r) {
    Value number = e.addIndex(i, e.index(r));
    if (rows.real) {
      Value last = arith::SubIOp::create(e, e.asValue(at.mc), e.index(1));
      number = e.minIndex(number, last);
    }
    row.push_back(number);
  }
  SmallVector<Value> masks(vectors);
  if (columns.real)
    for (int64_t v = 0; v < vectors; ++v)
      if (auto fixed = getConstantIntValue(columns.real);
          !fixed || *fixed < (v + 1) * W)
        masks[v] = mask(columns, v);
  auto offset = [&](Value base, int64_t r, int64_t stride, int64_t v) {
    Value at0 = e.addIndex(base, e.mulIndex(row[r], stride));
    return e.addIndex(e.addIndex(at0, j), e.index(v * W));
  };

  SmallVector<Value> sums;
  for (int64_t r = 0; r < rows.full; ++r)
    for (int64_t v = 0; v < vectors; ++v) {
      const Access &from = oneBlock ? init : c;
      if (from.splat) {
        sums.push_back(vector::BroadcastOp::create(e, type, from.splat));
        continue;
      }
      Value where = oneBlock ? offset(at.initBase, r, init.coef[roles.m], v)
                             : offset(at.cBase, r, cM, v);
      if (masks[v]) {
        Value zero = arith::ConstantOp::create(e, e.getZeroAttr(type));
        sums.push_back(vector::MaskedLoadOp::create(e, type, from.memref, where,
                                                    masks[v], zero));
      } else {
        sums.push_back(vector::LoadOp::create(e, type, from.memref, where));
      }
    }

  Value panelB = e.mulIndex(j, blockK);
  SmallVector<Value> rowA;
  for (int64_t r = 0; r < rows.full; ++r)
    rowA.push_back(packsA ? e.addIndex(e.mulIndex(i, blockK), e.index(r))
                          : e.addIndex(at.aBase, e.mulIndex(row[r], aM)));
  const int64_t stepA = packsA ? mr : aK;
  Access fromA = packsA ? flat(packedA) : a;
  sums = e.loop(
      e.getIndexAttr(0), at.kc, 1, sums, [&](Value k, ValueRange carried) {
        SmallVector<Value> next(carried), columnsB;
        Value rowB = e.addIndex(panelB, e.mulIndex(k, nr));
        for (int64_t v = 0; v < vectors; ++v)
          columnsB.push_back(vector::LoadOp::create(
              e, type, packedB, ValueRange{e.addIndex(rowB, e.index(v * W))}));
        for (int64_t r = 0; r < rows.full; ++r) {
          Value x =
              e.loadScalar(fromA, e.addIndex(rowA[r], e.mulIndex(k, stepA)));
          Value splat = vector::BroadcastOp::create(e, type, x);
          for (int64_t v = 0; v < vectors; ++v) {
            Value &sum = next[r * vectors + v];
            sum = vector::FMAOp::create(e, splat, columnsB[v], sum);
          }
        }
        return next;
      });

  for (int64_t r = 0; r < rows.full; ++r) {
    auto storeRow = [&] {
      for (int64_t v = 0; v < vectors; ++v) {
        Value where = offset(at.cBase, r, cM, v);
        if (masks[v])
          vector::MaskedStoreOp::create(e, c.memref, where, masks[v],
                                        sums[r * vectors + v]);
        else
          vector::StoreOp::create(e, sums[r * vectors + v], c.memref, where);
      }
    };
    if (!rows.real) {
      storeRow();
      continue;
    }
    Value exists = arith::CmpIOp::create(e, arith::CmpIPredicate::slt,
                                         e.index(r), e.asValue(rows.real));
    emitIf(e, exists, storeRow);
  }
}

bool emitContraction(LoopEmitter &e, linalg::GenericOp op) {
  GenericBody body(e, op);
  std::optional<Roles> roles = matchContraction(body);
  if (!roles)
    return false;
  ContractionLowering(e, body, *roles).emit();
  return true;
}

} // namespace nova::host
