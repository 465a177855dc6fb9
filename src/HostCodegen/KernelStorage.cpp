//===- KernelStorage.cpp - Where the values of a kernel live
//---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelModel.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace nova::host {
namespace {

class StoragePlanner {
public:
  explicit StoragePlanner(KernelModel &model) : model(model) {}
  LogicalResult assignStorage();

private:
  void assignScratch();
  /// May result `r` be written while the kernel runs, although `argument`
  /// shares its memory? Failure if not even a copy at the end would be right.
  FailureOr<bool> writesInPlace(unsigned argument, unsigned r);

  KernelModel &model;
};

/// One read of a kernel argument, as the in-place check sees it.
struct ArgumentRead {
  Operation *op;
  /// Per dimension of the argument: the space dimension the index follows, or
  /// kLocal; empty for computed indices.
  Binding binding;
  /// How a generic reads it (null otherwise).
  AffineMap map;
  /// Read element by element, each before the result's element is written.
  bool elementwise = false;

  /// Is each element read before this op writes element `result` of the same
  /// indices?
  bool precedesWrite(unsigned result) const {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      return elementwise;
    OpOperand *init = generic.getDpsInitOperand(result);
    return map && generic.getMatchingIndexingMap(init) == map;
  }
};

/// Every read of `argument` by the ops at work.
SmallVector<ArgumentRead> readsOf(const KernelModel &model, Value argument) {
  SmallVector<ArgumentRead> reads;
  for (Operation *op : model.work) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic) {
      for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
        if (operand != argument)
          continue;
        ArgumentRead read{op, {}, {}, false};
        // The init of scatter and the input of cumsum are read element by
        // element before the result's element is written.
        if (i == 0 && !isa<tensor::ConcatOp>(op)) {
          read.binding = model.plan(op->getResult(0)).binding;
          read.elementwise = true;
        }
        reads.push_back(read);
      }
      continue;
    }
    Binding loops = iterationBinding(model, generic);
    for (OpOperand &operand : generic->getOpOperands()) {
      if (operand.get() != argument ||
          generic.getMatchingBlockArgument(&operand).use_empty())
        continue;
      ArgumentRead read{
          op, {}, generic.getMatchingIndexingMap(&operand), false};
      for (AffineExpr expr : read.map.getResults()) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        read.binding.push_back(dim ? loops[dim.getPosition()] : kLocal);
      }
      reads.push_back(read);
    }
    generic.getBody()->walk([&](tensor::ExtractOp extract) {
      if (extract.getTensor() == argument)
        reads.push_back({op, {}, {}, false});
    });
  }
  return reads;
}

FailureOr<bool> StoragePlanner::writesInPlace(unsigned argument, unsigned r) {
  func::FuncOp func = model.func;
  Value arg = func.getArgument(argument);
  auto *terminator = func.front().getTerminator();
  Value returned = terminator->getOperand(r);
  auto unsafe = [&](Operation *op, const Twine &why) {
    return refuse(func, op)
           << "result " << r << " cannot share memory with argument "
           << argument << " (nova.inplace): " << why;
  };
  auto argType = cast<RankedTensorType>(arg.getType());
  if (argType != func.getResultTypes()[r])
    return unsafe(func, "their types differ"), failure();
  if (model.plan(arg).strides != model.resultStrides[r])
    return unsafe(func, "the argument is not contiguous"), failure();
  // Between grid points: what one point reads no other may write.
  const Binding &binding = model.resultBinding[r];
  for (size_t s = 0; s < model.space.size(); ++s)
    if (model.tiles(s) > 1 &&
        !llvm::is_contained(binding, static_cast<int64_t>(s)))
      return unsafe(func,
                    "the result is not bound to space dimension " + Twine(s)),
             failure();
  bool inPlace = true;
  Operation *writer = returned.getDefiningOp();
  for (const ArgumentRead &read : readsOf(model, arg)) {
    for (size_t i = 0; i < binding.size(); ++i)
      if (binding[i] != kLocal && model.tiles(binding[i]) > 1 &&
          (read.binding.empty() || read.binding[i] != binding[i]))
        return unsafe(read.op,
                      "a grid point reads elements that another one writes"),
               failure();
    // Within a grid point: every read comes before the write.
    if (read.op == writer)
      inPlace &= read.precedesWrite(cast<OpResult>(returned).getResultNumber());
    else
      inPlace &= writer && read.op->isBeforeInBlock(writer);
  }
  // A returned argument is copied at the end, when everything has been read.
  for (unsigned other = 0; other < func.getNumResults(); ++other)
    if (other != r && terminator->getOperand(other) == arg)
      inPlace = false;
  return inPlace;
}

LogicalResult StoragePlanner::assignStorage() {
  func::FuncOp func = model.func;
  auto *terminator = func.front().getTerminator();
  for (Operation &op : func.front())
    for (Value value : op.getResults()) {
      auto it = model.values.find(value);
      if (it == model.values.end())
        continue;
      if (isa<tensor::EmptyOp>(op)) {
        it->second.storage = Storage::Undefined;
      } else if (splatValue(value)) {
        it->second.storage = Storage::Splat;
      } else if (op.hasTrait<OpTrait::ConstantLike>()) {
        return refuse(func, &op)
               << "constant " << value.getType()
               << " is not a splat; it must be an argument of the kernel";
      }
    }
  for (unsigned r = 0; r < func.getNumResults(); ++r) {
    Value returned = terminator->getOperand(r);
    ValuePlan &plan = model.values[returned];
    bool direct = plan.storage == Storage::Dead;
    for (size_t s = 0; s < model.space.size(); ++s)
      if (model.tiles(s) > 1 &&
          !llvm::is_contained(model.resultBinding[r], (int64_t)s))
        direct = false; // Several grid points compute it; one of them writes.
    for (auto [argument, result] : model.inplace) {
      if (result != r)
        continue;
      FailureOr<bool> inPlace = writesInPlace(argument, r);
      if (failed(inPlace))
        return failure();
      direct &= *inPlace;
    }
    if (plan.storage == Storage::Undefined)
      return refuse(func, terminator)
             << "returns tensor.empty, which has no value";
    if (!direct) {
      model.copies.push_back({returned, r});
      continue;
    }
    plan.storage = Storage::Result;
    plan.index = r;
    plan.strides = model.resultStrides[r];
  }
  assignScratch();
  return success();
}

void StoragePlanner::assignScratch() {
  llvm::DenseMap<Operation *, unsigned> position;
  for (auto [i, op] : llvm::enumerate(model.work))
    position[op] = i;
  const unsigned end = model.work.size();
  // Last reader of a value, seen from the work list.
  auto lastUse = [&](Value value) {
    unsigned last = 0;
    for (Operation *user : value.getUsers()) {
      Operation *top = model.func.front().findAncestorOpInBlock(*user);
      if (top == model.func.front().getTerminator())
        last = end;
      else if (auto it = position.find(top); it != position.end())
        last = std::max(last, it->second);
    }
    return last;
  };
  SmallVector<unsigned> freeAfter; // Per slot: the last op that needs it.
  for (auto [i, op] : llvm::enumerate(model.work)) {
    for (Value value : op->getResults()) {
      ValuePlan &plan = model.values[value];
      if (plan.storage != Storage::Dead)
        continue;
      bool copied = llvm::any_of(model.copies,
                                 [&](auto &c) { return c.source == value; });
      unsigned last = copied ? end : lastUse(value);
      if (last == 0)
        continue; // An unused result among others.
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape(type.getShape());
      for (auto [size, s] : llvm::zip_equal(shape, plan.binding))
        if (s != kLocal)
          size = model.tile[s];
      plan.storage = Storage::Scratch;
      plan.strides = contiguousStrides(shape);
      int64_t elements = spannedElements(shape, plan.strides);
      // The free slot of this type that grows least.
      int best = -1;
      for (unsigned slot = 0; slot < model.slots.size(); ++slot) {
        if (model.slots[slot].elementType != type.getElementType() ||
            freeAfter[slot] >= i)
          continue;
        auto growth = [&](unsigned s) {
          return std::max<int64_t>(0, elements - model.slots[s].elements);
        };
        if (best < 0 || growth(slot) < growth(best))
          best = slot;
      }
      if (best < 0) {
        best = model.slots.size();
        model.slots.push_back({type.getElementType(), 0});
        freeAfter.push_back(0);
      }
      model.slots[best].elements =
          std::max(model.slots[best].elements, elements);
      freeAfter[best] = last;
      plan.index = best;
    }
  }
}

} // namespace

LogicalResult planStorage(KernelModel &model) {
  return StoragePlanner(model).assignStorage();
}

} // namespace nova::host
