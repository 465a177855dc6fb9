//===- Members.cpp - Programs that serve several members -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whose a grid point is, is found by comparing it with constants: a tree of branches
// that all threads take alike, with a leaf for every run of members of equal size, in
// which the member is a quotient. Pointers come from one parameter, a table: loads of
// parameters, at an offset that is computed. So the code is as long for a hundred
// members as for two, but for that tree.
//
//===----------------------------------------------------------------------===//
#include "ThreadEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace nova;
using namespace nova::tile;

static constexpr int64_t kPointerBytes = 8;

namespace {
/// `count` things from `first` on.
struct Run {
  int64_t first = 0, count = 1;
};
} // namespace

using Leaf = llvm::function_ref<SmallVector<Value>(OpBuilder &, const Run &)>;

/// The results, of these types, of the leaf of the run that `position` is in: a run
/// has the positions from `begins[i]` to the next one's.
static SmallVector<Value> search(OpBuilder &builder, Location loc, Value position, ArrayRef<Run> runs,
                                 ArrayRef<int64_t> begins, TypeRange types, Leaf leaf) {
  if (runs.size() == 1)
    return leaf(builder, runs[0]);
  size_t half = runs.size() / 2;
  Value middle = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(begins[half]));
  Value below = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, position, middle);
  auto branch = scf::IfOp::create(builder, loc, types, below, /*withElseRegion=*/true);
  OpBuilder first = OpBuilder::atBlockEnd(branch.thenBlock());
  scf::YieldOp::create(first, loc, search(first, loc, position, runs.take_front(half), begins.take_front(half), types, leaf));
  OpBuilder second = OpBuilder::atBlockEnd(branch.elseBlock());
  scf::YieldOp::create(second, loc, search(second, loc, position, runs.drop_front(half), begins.drop_front(half), types, leaf));
  return SmallVector<Value>(branch.getResults());
}

void ThreadEmitter::openTable() {
  Value pointers = table = kernel.getArgument(0);
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), (unsigned)NVVM::NVVMMemorySpace::Global);
  kernel.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(LLVM::LLVMArrayType::get(pointer, program.getNumArguments())));
  kernel.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(kPointerBytes));
  kernel.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(), builder.getUnitAttr());
  for (BlockArgument argument : program.getArguments()) {
    bool direct = llvm::any_of(argument.getUsers(), [](Operation *user) { return !isa<SelectOp>(user); });
    if (!direct)
      continue;
    Value address = LLVM::GEPOp::create(builder, loc, pointers.getType(), builder.getI8Type(), pointers,
                                        ArrayRef<LLVM::GEPArg>{(int32_t)(argument.getArgNumber() * kPointerBytes)});
    scalars.map(argument, LLVM::LoadOp::create(builder, loc, pointer, address, kPointerBytes).getResult());
  }
}

void ThreadEmitter::emitMember(MemberOp op) {
  ArrayRef<int64_t> starts = op.getStarts();
  int64_t grid = program->getAttrOfType<IntegerAttr>(attr::grid).getInt();
  auto sizeOf = [&](size_t member) { return (member + 1 < starts.size() ? starts[member + 1] : grid) - starts[member]; };
  SmallVector<Run> runs;
  SmallVector<int64_t> begins;
  for (size_t member = 0; member < starts.size(); ++member) {
    if (member && sizeOf(member) == sizeOf(member - 1)) {
      ++runs.back().count;
      continue;
    }
    runs.push_back({(int64_t)member, 1});
    begins.push_back(starts[member]);
  }
  auto i32 = builder.getI32Type();
  Value position = arith::IndexCastUIOp::create(builder, loc, i32, scalar(op.getPoint()));
  SmallVector<Type> types{i32, i32};
  SmallVector<Value> found = search(builder, loc, position, runs, begins, types, [&](OpBuilder &b, const Run &run) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
    };
    Value local = position, member = constant(run.first);
    if (starts[run.first])
      local = arith::SubIOp::create(b, loc, position, constant(starts[run.first]));
    if (run.count > 1) {
      Value size = constant(sizeOf(run.first));
      Value quotient = arith::DivUIOp::create(b, loc, local, size);
      member = arith::AddIOp::create(b, loc, member, quotient);
      local = arith::SubIOp::create(b, loc, local, arith::MulIOp::create(b, loc, quotient, size));
    }
    return SmallVector<Value>{member, local};
  });
  for (auto [result, value] : llvm::zip_equal(op.getResults(), found))
    scalars.map(result, arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), value).getResult());
}

Value ThreadEmitter::byNumber(Value number, ArrayRef<int64_t> values) {
  // Runs of equal distances: an extent that repeats, the places of what every member
  // has one of.
  SmallVector<Run> runs;
  SmallVector<int64_t> begins;
  auto stepOf = [&](const Run &run) { return run.count > 1 ? values[run.first + 1] - values[run.first] : 0; };
  for (int64_t k = 0; k < (int64_t)values.size(); ++k) {
    auto distance = [&](int64_t to) { return values[to] - values[to - 1]; };
    bool isLast = k + 1 == (int64_t)values.size();
    bool follows = !runs.empty() && (runs.back().count == 1 ? isLast || distance(k) == distance(k + 1)
                                                            : distance(k) == stepOf(runs.back()));
    if (follows) {
      ++runs.back().count;
      continue;
    }
    runs.push_back({k, 1});
    begins.push_back(k);
  }
  auto i64 = builder.getI64Type();
  Value narrow = arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(), number);
  Value found = search(builder, loc, narrow, runs, begins, i64, [&](OpBuilder &b, const Run &run) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
    };
    int64_t step = stepOf(run);
    if (!step)
      return SmallVector<Value>{constant(values[run.first])};
    Value wide = arith::ExtUIOp::create(b, loc, i64, narrow);
    Value part = arith::MulIOp::create(b, loc, wide, constant(step));
    return SmallVector<Value>{
        arith::AddIOp::create(b, loc, part, constant(values[run.first] - run.first * step)).getResult()};
  })[0];
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), found);
}

void ThreadEmitter::emitSelect(SelectOp op) {
  SmallVector<int64_t> places;
  for (Value memory : op.getMemories())
    places.push_back(cast<BlockArgument>(memory).getArgNumber() * kPointerBytes);
  Value number = scalar(op.getNumber());
  Value place = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), byNumber(number, places));
  Value address = LLVM::GEPOp::create(builder, loc, table.getType(), builder.getI8Type(), table,
                                      ArrayRef<LLVM::GEPArg>{place});
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), (unsigned)NVVM::NVVMMemorySpace::Global);
  scalars.map(op.getResult(), LLVM::LoadOp::create(builder, loc, pointer, address, kPointerBytes).getResult());
  MemRefType type = cast<MemRefType>(op.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!type.isDynamicDim(dim))
      continue;
    SmallVector<int64_t> sizes;
    for (Value memory : op.getMemories())
      sizes.push_back(cast<MemRefType>(memory.getType()).getDimSize(dim));
    extents[{op.getResult(), dim}] = byNumber(number, sizes);
  }
}

Value ThreadEmitter::extentOf(Value memory, unsigned dim) {
  auto type = cast<MemRefType>(memory.getType());
  return type.isDynamicDim(dim) ? extents.lookup({memory, dim}) : constantIndex(type.getDimSize(dim));
}
