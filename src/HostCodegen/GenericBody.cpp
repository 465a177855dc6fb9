//===- GenericBody.cpp - A generic's body, one scalar or W lanes at a time
//-===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GenericBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace nova::host {

GenericBody::GenericBody(LoopEmitter &e, linalg::GenericOp op)
    : e(e), op(op), numInputs(op.getNumDpsInputs()),
      numResults(op.getNumResults()) {
  Binding binding = iterationBinding(e.model, op);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto iterators = op.getIteratorTypesArray();
  for (auto [extent, space, iterator] :
       llvm::zip_equal(extents, binding, iterators)) {
    LoopDim dim = e.dimFor(extent, space);
    dim.reduction = iterator == utils::IteratorType::reduction;
    dims.push_back(dim);
  }
  for (OpOperand &operand : op->getOpOperands())
    accesses.push_back(
        e.access(operand.get(), op.getMatchingIndexingMap(&operand), dims));
  for (auto [result, init] :
       llvm::zip_equal(op.getResults(), op.getDpsInitsMutable()))
    accesses.push_back(
        e.access(result, op.getMatchingIndexingMap(&init), dims));
  mergeDims();
}

void GenericBody::mergeDims() {
  SmallVector<bool> fixed(dims.size(), false); // Somebody asks for its index.
  op.getBody()->walk(
      [&](linalg::IndexOp index) { fixed[index.getDim()] = true; });
  auto mergeable = [&](unsigned outer, unsigned inner) {
    std::optional<int64_t> size = dims[inner].staticSize();
    // Into a dimension of size 1 nothing merges: the two would only swap, and,
    // where no access depends on either, swap back for ever.
    if (outer == inner || !size || *size < 2 || dims[inner].maxSize != *size ||
        fixed[outer] || fixed[inner] ||
        dims[outer].reduction != dims[inner].reduction ||
        dims[outer].maxSize == 1)
      return false;
    return llvm::all_of(accesses, [&](const Access &access) {
      return access.coef.empty() ||
             access.coef[outer] == access.coef[inner] * *size;
    });
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (unsigned outer = 0; outer < dims.size(); ++outer)
      for (unsigned inner = 0; inner < dims.size(); ++inner) {
        if (!mergeable(outer, inner))
          continue;
        int64_t size = dims[inner].maxSize;
        if (auto count = dims[outer].staticSize())
          dims[inner].size = e.getIndexAttr(*count * size);
        else
          dims[inner].size = e.mulIndex(e.asValue(dims[outer].size), size);
        dims[inner].maxSize = dims[outer].maxSize * size;
        dims[outer].size = e.getIndexAttr(1);
        dims[outer].maxSize = 1;
        for (Access &access : accesses)
          if (!access.coef.empty())
            access.coef[outer] = 0;
        changed = true;
      }
  }
}

//===----------------------------------------------------------------------===//
// Cursors
//===----------------------------------------------------------------------===//

Cursor GenericBody::origin() {
  Cursor at;
  at.iv.assign(dims.size(), Value());
  for (const Access &access : accesses)
    at.offset.push_back(access.base);
  return at;
}

Cursor GenericBody::enter(const Cursor &at, unsigned d, Value iv) {
  Cursor out = at;
  out.iv[d] = iv;
  for (auto [offset, access] : llvm::zip_equal(out.offset, accesses))
    if (!access.coef.empty() && access.coef[d] != 0)
      offset = e.addIndex(offset, e.mulIndex(iv, access.coef[d]));
  return out;
}

Cursor GenericBody::shift(const Cursor &at, unsigned d, int64_t by) {
  if (by == 0)
    return at;
  Cursor out = at;
  out.iv[d] = e.addIndex(out.iv[d], e.index(by));
  for (auto [offset, access] : llvm::zip_equal(out.offset, accesses))
    if (!access.coef.empty() && access.coef[d] != 0)
      offset = e.addIndex(offset, e.index(by * access.coef[d]));
  return out;
}

/// Stride of an access from lane to lane.
static int64_t laneStride(const Access &access, int64_t vdim) {
  return vdim < 0 || access.coef.empty() ? 0 : access.coef[vdim];
}

Lanes GenericBody::loadInit(const Cursor &at, unsigned r, int64_t vdim,
                            int64_t width) {
  const Access &access = init(r);
  if (outArg(r).use_empty() || (!access.memref && !access.splat))
    return {Lanes::Form::Uniform,
            e.scalarConstant(e.getZeroAttr(outArg(r).getType()))};
  return e.load(access, at.offset[numInputs + r], laneStride(access, vdim),
                width);
}

void GenericBody::storeResult(const Cursor &at, unsigned r, int64_t vdim,
                              int64_t width, const Lanes &value) {
  if (isWritten(r))
    e.store(result(r), at.offset[numInputs + numResults + r],
            laneStride(result(r), vdim), width, value);
}

//===----------------------------------------------------------------------===//
// Lanes through the body
//===----------------------------------------------------------------------===//

/// The form of a body op's result, from those of its operands.
static Lanes::Form formOf(Operation *op, ArrayRef<Lanes::Form> operands) {
  using Form = Lanes::Form;
  if (llvm::all_of(operands, [](Form f) { return f == Form::Uniform; }))
    return Form::Uniform;
  if (isa<arith::AddIOp>(op) && llvm::is_contained(operands, Form::Uniform) &&
      llvm::is_contained(operands, Form::Step))
    return Form::Step;
  if (isa<arith::SubIOp>(op) && operands[0] == Form::Step &&
      operands[1] == Form::Uniform)
    return Form::Step;
  // Indices are not negative and far below the range of 64 bits.
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op) &&
      operands[0] == Form::Step &&
      (op->getResult(0).getType().isIndex() ||
       op->getResult(0).getType().isInteger(64)))
    return Form::Step;
  return Form::Vector;
}

/// An address: a part equal in all lanes, `step` per lane, and whether there
/// is a part that differs freely.
static Lanes::Form extractForm(ArrayRef<Lanes::Form> indices) {
  if (llvm::all_of(indices, [](auto f) { return f == Lanes::Form::Uniform; }))
    return Lanes::Form::Uniform;
  return Lanes::Form::Vector;
}

llvm::DenseMap<Value, Lanes::Form> GenericBody::forms(int64_t vdim) {
  using Form = Lanes::Form;
  llvm::DenseMap<Value, Form> out;
  auto get = [&](Value v) {
    auto it = out.find(v);
    return it == out.end() ? Form::Uniform : it->second;
  };
  for (unsigned i = 0; i < numInputs + numResults; ++i) {
    bool flat = laneStride(accesses[i], vdim) == 0 || accesses[i].splat;
    out[op.getBody()->getArgument(i)] = flat ? Form::Uniform : Form::Vector;
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    SmallVector<Form> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(get(operand));
    Form form = formOf(&inner, operands);
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      form = static_cast<int64_t>(index.getDim()) == vdim ? Form::Step
                                                          : Form::Uniform;
    else if (isa<tensor::ExtractOp>(inner))
      form = extractForm(ArrayRef(operands).drop_front());
    for (Value result : inner.getResults())
      out[result] = form;
  }
  return out;
}

Lanes GenericBody::extract(tensor::ExtractOp extract, ArrayRef<Lanes> indices,
                           int64_t width) {
  auto type = cast<RankedTensorType>(extract.getTensor().getType());
  // One iteration dimension per index: coef is then the memory's strides. An
  // in-kernel source has every dimension local, so its indices are whole too.
  SmallVector<LoopDim> whole(type.getRank());
  Access source = e.access(extract.getTensor(),
                           e.getMultiDimIdentityMap(type.getRank()), whole);
  if (source.splat)
    return {Lanes::Form::Uniform, source.splat};
  Value uniform = source.base;
  int64_t step = 0;
  Value free; // vector<W x index>
  for (auto [index, stride] : llvm::zip_equal(indices, source.coef)) {
    if (index.form != Lanes::Form::Vector) {
      uniform = e.addIndex(uniform, e.mulIndex(index.value, stride));
      if (index.form == Lanes::Form::Step)
        step += stride;
      continue;
    }
    VectorType vectorType = e.laneType(e.getIndexType(), width);
    Value factor = arith::ConstantOp::create(
        e,
        DenseElementsAttr::get(vectorType, Attribute(e.getIndexAttr(stride))));
    Value scaled = arith::MulIOp::create(e, index.value, factor);
    free = free ? arith::AddIOp::create(e, free, scaled).getResult() : scaled;
  }
  if (!free)
    return e.load(source, uniform, step, width);
  SmallVector<Value> elements;
  for (int64_t l = 0; l < width; ++l) {
    Value offset = e.addIndex(uniform, e.index(l * step));
    offset = e.addIndex(offset, vector::ExtractOp::create(e, free, l));
    elements.push_back(e.loadScalar(source, offset));
  }
  return {Lanes::Form::Vector,
          vector::FromElementsOp::create(
              e, e.laneType(source.elementType, width), elements)};
}

std::optional<std::pair<int64_t, int64_t>> GenericBody::bounds(Value value) {
  using Range = std::pair<int64_t, int64_t>;
  auto fits = [](int64_t low, int64_t high) -> std::optional<Range> {
    constexpr int64_t limit = int64_t{1} << 31;
    if (low < -limit || high >= limit)
      return std::nullopt;
    return Range(low, high);
  };
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getBitWidth() <= 64
               ? fits(constant.getSExtValue(), constant.getSExtValue())
               : std::nullopt;
  Operation *def = value.getDefiningOp();
  if (!def)
    return std::nullopt;
  if (auto index = dyn_cast<linalg::IndexOp>(def))
    return fits(0, op.getStaticLoopRanges()[index.getDim()]);
  if (isa<arith::IndexCastOp>(def) &&
      (value.getType().isInteger(64) ||
       def->getOperand(0).getType().isInteger(64)))
    return bounds(def->getOperand(0));
  if (!isa<arith::AddIOp, arith::SubIOp>(def) ||
      !(value.getType().isIndex() || value.getType().isInteger(64)))
    return std::nullopt;
  auto l = bounds(def->getOperand(0)), r = bounds(def->getOperand(1));
  if (!l || !r)
    return std::nullopt;
  return isa<arith::AddIOp>(def)
             ? fits(l->first + r->first, l->second + r->second)
             : fits(l->first - r->second, l->second - r->first);
}

std::optional<Lanes> GenericBody::compareNarrow(Operation *inner,
                                                ArrayRef<Lanes> operands,
                                                int64_t width) {
  auto compare = dyn_cast<arith::CmpIOp>(inner);
  if (!compare || width == 1)
    return std::nullopt;
  bool steps = false;
  for (const Lanes &lanes : operands) {
    steps |= lanes.form == Lanes::Form::Step;
    if (lanes.form == Lanes::Form::Vector)
      return std::nullopt;
  }
  auto l = bounds(compare.getLhs()), r = bounds(compare.getRhs());
  if (!steps || !l || !r)
    return std::nullopt;
  arith::CmpIPredicate predicate = compare.getPredicate();
  // The processor compares signed; without negative values it is the same.
  if (l->first >= 0 && r->first >= 0) {
    using P = arith::CmpIPredicate;
    predicate = predicate == P::ult   ? P::slt
                : predicate == P::ule ? P::sle
                : predicate == P::ugt ? P::sgt
                : predicate == P::uge ? P::sge
                                      : predicate;
  }
  SmallVector<Value> narrow;
  for (const Lanes &lanes : operands) {
    Value base = lanes.value;
    base = base.getType().isIndex()
               ? arith::IndexCastOp::create(e, e.getI32Type(), base).getResult()
               : arith::TruncIOp::create(e, e.getI32Type(), base).getResult();
    narrow.push_back(e.materialise({lanes.form, base}, width));
  }
  return Lanes{Lanes::Form::Vector,
               arith::CmpIOp::create(e, predicate, narrow[0], narrow[1])};
}

SmallVector<Lanes> GenericBody::apply(Operation *inner,
                                      ArrayRef<Lanes> operands, int64_t width) {
  SmallVector<Lanes::Form> in;
  for (const Lanes &operand : operands)
    in.push_back(operand.form);
  Lanes::Form form = formOf(inner, in);
  if (std::optional<Lanes> compared = compareNarrow(inner, operands, width))
    return {*compared};
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(inner->getOperands(), operands)) {
    // A step op acts on the bases.
    bool scalar = form != Lanes::Form::Vector;
    mapping.map(from, scalar ? to.value : e.materialise(to, width));
  }
  Operation *clone = e.clone(*inner, mapping);
  // Multiplies and adds of a body may contract into FMA.
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(clone)) {
    auto fast = cast<arith::ArithFastMathInterface>(clone);
    auto flags =
        fast.getFastMathFlagsAttr().getValue() | arith::FastMathFlags::contract;
    clone->setAttr(fast.getFastMathAttrName(),
                   arith::FastMathFlagsAttr::get(e.getContext(), flags));
  }
  SmallVector<Lanes> out;
  for (Value result : clone->getResults()) {
    if (form == Lanes::Form::Vector && width > 1)
      result.setType(e.laneType(result.getType(), width));
    out.push_back({form, result});
  }
  return out;
}

SmallVector<Lanes> GenericBody::compute(const Cursor &at, int64_t vdim,
                                        int64_t width, ArrayRef<Lanes> outs) {
  llvm::DenseMap<Value, Lanes> values;
  for (unsigned i = 0; i < numInputs; ++i)
    if (!inputArg(i).use_empty())
      values[inputArg(i)] = e.load(accesses[i], at.offset[i],
                                   laneStride(accesses[i], vdim), width);
  for (unsigned r = 0; r < numResults; ++r)
    values[outArg(r)] = outs[r];
  auto lookup = [&](Value value) -> Lanes {
    auto it = values.find(value);
    if (it != values.end())
      return it->second;
    Attribute constant; // From outside the body: the model has checked it.
    bool matched = matchPattern(value, m_Constant(&constant));
    (void)matched;
    assert(matched && "a captured scalar is a constant");
    return {Lanes::Form::Uniform, e.scalarConstant(constant)};
  };
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      unsigned d = index.getDim();
      Value value = at.iv[d];
      if (dims[d].start)
        value = e.addIndex(dims[d].start, value);
      bool step = static_cast<int64_t>(d) == vdim && width > 1;
      values[index.getResult()] = {
          step ? Lanes::Form::Step : Lanes::Form::Uniform, value};
      continue;
    }
    if (auto extractOp = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Lanes> indices;
      for (Value operand : extractOp.getIndices())
        indices.push_back(lookup(operand));
      values[extractOp.getResult()] = extract(extractOp, indices, width);
      continue;
    }
    SmallVector<Lanes> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(lookup(operand));
    for (auto [result, lanes] :
         llvm::zip_equal(inner.getResults(), apply(&inner, operands, width)))
      values[result] = lanes;
  }
  SmallVector<Lanes> yielded;
  for (Value operand : op.getBody()->getTerminator()->getOperands())
    yielded.push_back(lookup(operand));
  return yielded;
}

//===----------------------------------------------------------------------===//
// Combiners
//===----------------------------------------------------------------------===//

Operation *GenericBody::combiner(unsigned r) {
  if (!outArg(r).hasOneUse())
    return nullptr;
  Operation *user = *outArg(r).user_begin();
  if (!isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp,
           arith::MaxNumFOp, arith::MinNumFOp, arith::AddIOp, arith::MulIOp,
           arith::MaxSIOp, arith::MaxUIOp, arith::MinSIOp, arith::MinUIOp,
           arith::AndIOp, arith::OrIOp, arith::XOrIOp>(user))
    return nullptr;
  Value folded = user->getResult(0);
  Operation *yield = op.getBody()->getTerminator();
  if (!folded.hasOneUse() || yield->getOperand(r) != folded)
    return nullptr;
  return user;
}

TypedAttr GenericBody::identity(Operation *combiner) {
  Type type = combiner->getResult(0).getType();
  auto kind =
      llvm::TypeSwitch<Operation *, arith::AtomicRMWKind>(combiner)
          .Case<arith::AddFOp>([](auto) { return arith::AtomicRMWKind::addf; })
          .Case<arith::MulFOp>([](auto) { return arith::AtomicRMWKind::mulf; })
          .Case<arith::MaximumFOp>(
              [](auto) { return arith::AtomicRMWKind::maximumf; })
          .Case<arith::MinimumFOp>(
              [](auto) { return arith::AtomicRMWKind::minimumf; })
          .Case<arith::MaxNumFOp>(
              [](auto) { return arith::AtomicRMWKind::maximumf; })
          .Case<arith::MinNumFOp>(
              [](auto) { return arith::AtomicRMWKind::minimumf; })
          .Case<arith::AddIOp>([](auto) { return arith::AtomicRMWKind::addi; })
          .Case<arith::MulIOp>([](auto) { return arith::AtomicRMWKind::muli; })
          .Case<arith::MaxSIOp>([](auto) { return arith::AtomicRMWKind::maxs; })
          .Case<arith::MaxUIOp>([](auto) { return arith::AtomicRMWKind::maxu; })
          .Case<arith::MinSIOp>([](auto) { return arith::AtomicRMWKind::mins; })
          .Case<arith::MinUIOp>([](auto) { return arith::AtomicRMWKind::minu; })
          .Case<arith::AndIOp>([](auto) { return arith::AtomicRMWKind::andi; })
          .Case<arith::OrIOp>([](auto) { return arith::AtomicRMWKind::ori; })
          .Default([](auto) { return arith::AtomicRMWKind::xori; });
  if (kind == arith::AtomicRMWKind::xori)
    return e.getZeroAttr(type);
  return arith::getIdentityValueAttr(kind, type, e, op.getLoc());
}

} // namespace nova::host
