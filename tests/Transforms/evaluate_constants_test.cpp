//===- evaluate_constants_test.cpp - Random programs, evaluated
//------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluator on strided tensors against the interpreter on whole ones.
//
//===----------------------------------------------------------------------===//
#include "NovaInterpreter.h"

#include "../../src/Transforms/Evaluate.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;

namespace nova::test {
namespace {

/// Writes a function of random evaluable operations on small tensors; sizes of
/// 1 and broadcasts are frequent, so that most tensors have repeated
/// dimensions.
class ProgramWriter {
public:
  ProgramWriter(MLIRContext &context, unsigned seed)
      : b(UnknownLoc::get(&context), &context), random(seed) {
    module = ModuleOp::create(b.getLoc());
    b.setInsertionPointToEnd(module->getBody());
    func = func::FuncOp::create(b, "step", b.getFunctionType({}, {}));
    b.setInsertionPointToEnd(func.addEntryBlock());
    for (int64_t size : {1, 2, 3, 4})
      pool.push_back(IotaOp::create(
          b, RankedTensorType::get({size}, b.getI64Type()),
          b.getI64IntegerAttr(pick(5) - 2), b.getI64IntegerAttr(pick(4) - 1)));
    for (int i = 0; i < 60; ++i)
      addOp();
    func::ReturnOp::create(b, pool);
    SmallVector<Type> types(ValueRange(pool).getTypes());
    func.setFunctionType(b.getFunctionType({}, types));
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp func;

private:
  int64_t pick(int64_t below) {
    return std::uniform_int_distribution<int64_t>(0, below - 1)(random);
  }
  static RankedTensorType typeOf(Value v) {
    return cast<RankedTensorType>(v.getType());
  }
  static bool is(Value v, Type element) {
    return typeOf(v).getElementType() == element;
  }
  Value any() { return pool[pick(pool.size())]; }
  /// A value of the element type; null if this draw found none.
  Value any(Type element) {
    Value v = any();
    return is(v, element) ? v : Value();
  }
  static bool fits(ArrayRef<Value> values) {
    SmallVector<int64_t> shape;
    for (Value v : values) {
      auto wide = broadcastShapes(shape, typeOf(v).getShape());
      if (failed(wide))
        return false;
      shape = *wide;
    }
    return shape.size() <= 4;
  }

  void addOp() {
    Value x = any(), y = any();
    auto type = typeOf(x);
    ArrayRef<int64_t> shape = type.getShape();
    Type i64 = b.getI64Type(), f32 = b.getF32Type();
    bool isInt = is(x, i64);
    switch (pick(16)) {
    case 0: { // reshape, with unit dimensions put anywhere or everything flat
      SmallVector<int64_t> to(shape);
      if (pick(2))
        to = {type.getNumElements()};
      if (to.size() < 4)
        to.insert(to.begin() + pick(to.size() + 1), 1);
      return push(ReshapeOp::create(b, type.clone(to), x));
    }
    case 1: {
      SmallVector<int64_t> to(shape);
      for (int64_t &size : to)
        size = size == 1 ? 1 + pick(3) : size;
      if (to.size() < 4 && pick(2))
        to.insert(to.begin(), 1 + pick(3));
      return push(BroadcastOp::create(b, type.clone(to), x));
    }
    case 2: {
      SmallVector<int64_t> permutation =
          llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
      std::shuffle(permutation.begin(), permutation.end(), random);
      return push(TransposeOp::create(b, x, permutation));
    }
    case 3: {
      SmallVector<int64_t> offsets, sizes, strides;
      for (int64_t size : shape) {
        strides.push_back(1 + pick(2));
        offsets.push_back(pick(size));
        sizes.push_back(1 +
                        pick((size - offsets.back() - 1) / strides.back() + 1));
      }
      return push(SliceOp::create(b, x, offsets, sizes, strides));
    }
    case 4:
    case 5:
    case 6:
      return addBinary(x, y);
    case 7:
      if (x.getType() == y.getType() && !shape.empty())
        push(ConcatOp::create(b, ValueRange{x, y}, pick(shape.size())));
      return;
    case 8: {
      SmallVector<int64_t> low, high;
      for (size_t i = 0; i < shape.size(); ++i) {
        low.push_back(pick(3) == 0);
        high.push_back(pick(3) == 0);
      }
      TypedAttr value = isInt        ? TypedAttr(b.getI64IntegerAttr(7))
                        : is(x, f32) ? TypedAttr(b.getF32FloatAttr(0.5))
                                     : TypedAttr(b.getBoolAttr(true));
      return push(PadOp::create(b, x, low, high, value));
    }
    case 9:
      if (isInt && !shape.empty())
        push(CumsumOp::create(b, x, pick(shape.size())));
      return;
    case 10: {
      SmallVector<int64_t> dims;
      for (size_t i = 0; i < shape.size(); ++i)
        if (pick(2))
          dims.push_back(i);
      if (!isInt || dims.empty())
        return;
      bool keep = pick(2);
      int64_t which = pick(3);
      return push(which == 0   ? Value(SumOp::create(b, x, dims, keep))
                  : which == 1 ? Value(MaxOp::create(b, x, dims, keep))
                               : Value(MinOp::create(b, x, dims, keep)));
    }
    case 11: { // any integers are indices: some are outside
      if (!is(y, i64) || shape.empty() ||
          shape.size() + typeOf(y).getRank() > 5)
        return;
      int64_t dim = pick(shape.size());
      if (dim + 1 < (int64_t)shape.size() && pick(2)) {
        Value z = any(i64);
        if (z && z.getType() == y.getType())
          push(IndexOp::create(b, x, ValueRange{y, z},
                               ArrayRef<int64_t>{dim, dim + 1}));
        return;
      }
      return push(IndexOp::create(b, x, ValueRange{y}, ArrayRef<int64_t>{dim}));
    }
    case 12: {
      auto index = typeOf(y).getShape();
      if (!is(y, i64) || shape.empty() || index.size() != shape.size())
        return;
      int64_t dim = pick(shape.size());
      for (size_t i = 0; i < shape.size(); ++i)
        if ((int64_t)i != dim && index[i] > shape[i])
          return;
      return push(GatherOp::create(b, x, y, dim));
    }
    case 13: {
      Type to = pick(2) ? i64 : pick(2) ? Type(f32) : b.getI1Type();
      return push(CastOp::create(b, type.clone(to), x));
    }
    case 14: {
      Value condition = any(b.getI1Type());
      if (condition && is(x, typeOf(y).getElementType()) &&
          fits({condition, x, y}))
        push(SelectOp::create(b, condition, x, y));
      return;
    }
    default:
      return push(NotOp::create(b, isInt || !is(x, f32) ? x : pool[0]));
    }
  }

  void addBinary(Value x, Value y) {
    if (typeOf(x).getElementType() != typeOf(y).getElementType() ||
        !fits({x, y}))
      return;
    bool isFloat = is(x, b.getF32Type()), isInt = is(x, b.getI64Type());
    switch (pick(12)) {
    case 0:
      return push(AddOp::create(b, x, y));
    case 1:
      return push(isInt || isFloat ? Value(SubOp::create(b, x, y))
                                   : Value(XorOp::create(b, x, y)));
    case 2:
      return push(MulOp::create(b, x, y));
    case 3:
      return push(MaximumOp::create(b, x, y));
    case 4:
      return push(MinimumOp::create(b, x, y));
    case 5:
      if (isInt)
        push(FloorDivOp::create(b, x, y));
      return;
    case 6:
      if (isInt)
        push(RemainderOp::create(b, x, y));
      return;
    case 7:
      if (isInt)
        push(TruncDivOp::create(b, x, y));
      return;
    case 8:
      if (!isFloat)
        push(pick(2) ? Value(AndOp::create(b, x, y))
                     : Value(OrOp::create(b, x, y)));
      return;
    default:
      return push(
          CompareOp::create(b, x, y, static_cast<ComparePredicate>(pick(6))));
    }
  }

  /// Into the pool, unless it grows beyond what a test should take.
  void push(Value v) {
    if (typeOf(v).getNumElements() <= 2000)
      pool.push_back(v);
    else
      v.getDefiningOp()->erase();
  }

  ImplicitLocOpBuilder b;
  std::mt19937 random;
  SmallVector<Value> pool;
};

/// The interpreter is one of kernels, whose slices are argument views: here
/// each becomes look-ups of evenly spaced positions.
std::vector<Tensor> interpretProgram(ModuleOp module) {
  OwningOpRef<ModuleOp> copy(module.clone());
  copy->walk([](SliceOp slice) {
    ImplicitLocOpBuilder b(slice.getLoc(), slice);
    Value value = slice.getInput();
    for (size_t dim = 0; dim < slice.getSizes().size(); ++dim) {
      Value positions = IotaOp::create(
          b, RankedTensorType::get({slice.getSizes()[dim]}, b.getI64Type()),
          b.getI64IntegerAttr(slice.getOffsets()[dim]),
          b.getI64IntegerAttr(slice.getStrides()[dim]));
      value = IndexOp::create(b, value, ValueRange{positions},
                              ArrayRef<int64_t>{(int64_t)dim});
    }
    slice.getResult().replaceAllUsesWith(value);
    slice.erase();
  });
  return interpretNova(*copy->getOps<func::FuncOp>().begin(), {});
}

TEST(EvaluateConstants, RandomPrograms) {
  MLIRContext context;
  context.loadDialect<NovaDialect, func::FuncDialect>();
  int compared = 0, repeated = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    ProgramWriter program(context, seed);
    Operation *terminator = program.func.getBody().front().getTerminator();
    std::vector<Tensor> expected = interpretProgram(*program.module);
    llvm::DenseMap<Value, ConstantTensor> values;
    for (Operation &op : program.func.getBody().front().without_terminator()) {
      SmallVector<ConstantTensor> operands;
      for (Value operand : op.getOperands())
        if (auto known = values.find(operand); known != values.end())
          operands.push_back(known->second);
      if (operands.size() != op.getNumOperands())
        continue;
      if (auto result = evaluate(&op, operands, 1 << 20))
        values.try_emplace(op.getResult(0), *result);
    }
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      auto known = values.find(value);
      if (known == values.end())
        continue; // a cast of a float no integer holds, and what follows from
                  // it
      const ConstantTensor &got = known->second;
      ASSERT_EQ(got.type(), value.getType());
      ++compared;
      repeated += got.coreShape() != SmallVector<int64_t>(got.shape());
      size_t position = 0;
      bool equal = true;
      forEachOffset(
          got.shape(), {got.strides()}, [&](ArrayRef<int64_t> offsets) {
            const Scalar &want = expected[index].elements[position++];
            if (isFloat(got.kind())) {
              double is = got.floatAt(offsets[0]);
              equal &= is == want.f || (std::isnan(is) && std::isnan(want.f)) ||
                       std::fabs(is - want.f) <= 1e-6 * std::fabs(want.f);
            } else {
              equal &= got.integerAt(offsets[0]) ==
                       (got.kind() == ElementKind::Bool ? want.i & 1 : want.i);
            }
          });
      std::string text;
      llvm::raw_string_ostream(text) << value;
      ASSERT_TRUE(equal) << "seed " << seed << ": " << text;
    }
  }
  // Most of what was drawn is evaluated, and much of it repeats.
  EXPECT_GT(compared, 5000);
  EXPECT_GT(repeated, 1000);
}

/// A mask over a batch of long rows: the size of what is computed and kept is
/// that of one row pair, not of the batch.
TEST(EvaluateConstants, RepeatedDimensionsAreComputedOnce) {
  MLIRContext context;
  context.loadDialect<NovaDialect>();
  ImplicitLocOpBuilder b(UnknownLoc::get(&context), &context);
  auto module = ModuleOp::create(b.getLoc());
  b.setInsertionPointToEnd(module.getBody());
  auto positions =
      IotaOp::create(b, RankedTensorType::get({64}, b.getI64Type()),
                     b.getI64IntegerAttr(0), b.getI64IntegerAttr(1));
  auto column = ReshapeOp::create(
      b, RankedTensorType::get({64, 1}, b.getI64Type()), positions);
  auto batch = BroadcastOp::create(
      b, RankedTensorType::get({1 << 20, 64, 1}, b.getI64Type()), column);
  auto mask = CompareOp::create(b, positions, batch, ComparePredicate::le);
  auto run = [](Operation *op, ArrayRef<ConstantTensor> operands) {
    return *evaluate(op, operands, 64 * 64);
  };
  ConstantTensor p = run(positions, {});
  ConstantTensor result = run(mask, {p, run(batch, {run(column, {p})})});
  EXPECT_EQ(result.type(), mask.getType());
  EXPECT_EQ(result.coreShape(), (SmallVector<int64_t>{1, 64, 64}));
  module.erase();
}

} // namespace
} // namespace nova::test
