//===- KernelModel.cpp - What a kernel function computes, where, and how
//---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelModel.h"

#include "nova/IR/Nova.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace nova::host {

int64_t KernelModel::tiles(int64_t dim) const {
  return (space[dim] + tile[dim] - 1) / tile[dim];
}

int64_t KernelModel::gridPoints() const {
  int64_t points = 1;
  for (size_t s = 0; s < space.size(); ++s)
    points *= tiles(s);
  return points;
}

int64_t spannedElements(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  int64_t span = 1;
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    if (size == 0)
      return 0;
    span += (size - 1) * stride;
  }
  return span;
}

OpFoldResult splatValue(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    Attribute constant;
    if (matchPattern(fill.getInputs()[0], m_Constant(&constant)))
      return constant;
    return fill.getInputs()[0];
  }
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<Attribute>();
  return {};
}

Binding iterationBinding(const KernelModel &model, linalg::GenericOp op) {
  Binding loops(op.getNumLoops(), kLocal);
  for (auto [result, init] :
       llvm::zip_equal(op.getResults(), op.getDpsInitsMutable())) {
    auto it = model.values.find(result);
    if (it == model.values.end())
      continue;
    AffineMap map = op.getMatchingIndexingMap(&init);
    for (auto [expr, space] :
         llvm::zip_equal(map.getResults(), it->second.binding))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (space != kLocal)
          loops[dim.getPosition()] = space;
  }
  return loops;
}

InFlightDiagnostic refuse(func::FuncOp func, Operation *op) {
  return op->emitError() << "kernel '" << func.getSymName() << "': ";
}

namespace {

std::string spell(ArrayRef<int64_t> values) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(values, os);
  os << "]";
  return text;
}

bool isSupportedElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() &&
           llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

/// Sums of dimensions and constants, with constant factors.
bool isLinear(AffineExpr expr) {
  bool linear = true;
  expr.walk([&](AffineExpr inner) {
    linear &=
        !llvm::is_contained({AffineExprKind::FloorDiv, AffineExprKind::CeilDiv,
                             AffineExprKind::Mod},
                            inner.getKind());
  });
  return linear && expr.isPureAffine();
}

/// A generic's body may hold these.
bool isSupportedBodyOp(Operation &op) {
  if (isa<linalg::IndexOp, linalg::YieldOp, tensor::ExtractOp>(op))
    return true;
  if (op.getNumRegions() != 0)
    return false;
  return op.hasTrait<OpTrait::ConstantLike>() ||
         (OpTrait::hasElementwiseMappableTraits(&op) &&
          isa<arith::ArithDialect, math::MathDialect>(op.getDialect()));
}

/// Builds a KernelModel: attributes, then bindings from the results backward;
/// planStorage does the rest.
class Modeler {
public:
  explicit Modeler(func::FuncOp func) { model.func = func; }
  FailureOr<KernelModel> build();

private:
  LogicalResult readSpace();
  LogicalResult checkTypes();
  LogicalResult readResults();
  LogicalResult readAliases();
  LogicalResult bindBody();
  LogicalResult bindGeneric(linalg::GenericOp op);
  LogicalResult bindGenericBody(linalg::GenericOp op);
  LogicalResult bindLikeResult(Operation *op, ValueRange same,
                               int64_t localDim);
  LogicalResult bindScatter(ScatterOp op);
  LogicalResult bindIndexPut(IndexPutOp op);
  /// Asks that `value` be bound as `binding`; `reader` is who needs it so.
  LogicalResult request(Value value, const Binding &binding, Operation *reader);
  bool isPlanned(Operation *op) {
    return llvm::any_of(op->getResults(),
                        [&](Value v) { return model.values.contains(v); });
  }
  /// `binding` with dims of extent-1 space dimensions made local.
  Binding normalise(ArrayRef<int64_t> binding) {
    Binding out(binding);
    for (int64_t &s : out)
      if (s != kLocal && model.space[s] == 1)
        s = kLocal;
    return out;
  }

  KernelModel model;
  /// Who fixed a value's binding, for the message of a disagreement.
  llvm::DenseMap<Value, Operation *> boundBy;
};

LogicalResult Modeler::readSpace() {
  func::FuncOp func = model.func;
  auto space = func->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  auto tile = func->getAttrOfType<DenseI64ArrayAttr>(attr::tile);
  if (!space || !tile)
    return refuse(func, func) << "expected attributes nova.space and nova.tile";
  if (space.size() != tile.size())
    return refuse(func, func)
           << "nova.tile " << spell(tile) << " has " << tile.size()
           << " entries, expected " << space.size() << " as in nova.space";
  for (auto [s, extents] :
       llvm::enumerate(llvm::zip(space.asArrayRef(), tile.asArrayRef()))) {
    auto [extent, size] = extents;
    if (extent < 0 || size < 1 || size > std::max<int64_t>(extent, 1))
      return refuse(func, func)
             << "nova.tile[" << s << "] is " << size << ", expected 1 to "
             << extent << " (nova.space[" << s << "])";
  }
  model.space.assign(space.asArrayRef().begin(), space.asArrayRef().end());
  model.tile.assign(tile.asArrayRef().begin(), tile.asArrayRef().end());
  return success();
}

LogicalResult Modeler::checkTypes() {
  func::FuncOp func = model.func;
  auto check = [&](Type type, Operation *op) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success();
    if (!tensor.hasStaticShape() ||
        !isSupportedElement(tensor.getElementType()))
      return refuse(func, op)
             << "type " << type << " is not supported; expected a static shape "
             << "of f16, bf16, f32, f64, i1, i8, i16, i32 or i64";
    return success();
  };
  for (Type type : func.getArgumentTypes()) {
    if (!isa<RankedTensorType>(type))
      return refuse(func, func)
             << "argument of type " << type << ", expected a tensor";
    if (failed(check(type, func)))
      return failure();
  }
  for (Operation &op : func.front())
    for (Type type : op.getResultTypes())
      if (failed(check(type, &op)))
        return failure();
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    ValuePlan plan;
    plan.storage = Storage::Argument;
    plan.index = i;
    auto type = cast<RankedTensorType>(func.getArgument(i).getType());
    plan.binding.assign(type.getRank(), kLocal);
    auto strides = func.getArgAttrOfType<DenseI64ArrayAttr>(i, attr::strides);
    if (strides && strides.size() != type.getRank())
      return refuse(func, func)
             << "nova.strides of argument " << i << " has " << strides.size()
             << " entries, expected " << type.getRank();
    if (strides)
      plan.strides.assign(strides.asArrayRef().begin(),
                          strides.asArrayRef().end());
    else
      plan.strides = contiguousStrides(type.getShape());
    if (llvm::any_of(plan.strides, [](int64_t s) { return s < 0; }))
      return refuse(func, func)
             << "nova.strides of argument " << i << " is "
             << spell(plan.strides) << ", expected no negative stride";
    model.values[func.getArgument(i)] = plan;
  }
  return success();
}

LogicalResult Modeler::readResults() {
  func::FuncOp func = model.func;
  auto *terminator = func.front().getTerminator();
  for (unsigned r = 0; r < func.getNumResults(); ++r) {
    auto type = cast<RankedTensorType>(func.getResultTypes()[r]);
    auto map = func.getResultAttrOfType<DenseI64ArrayAttr>(r, attr::map);
    if (!map || map.size() != type.getRank())
      return refuse(func, func)
             << "result " << r << " of type " << type << " has nova.map with "
             << (map ? map.size() : 0) << " entries, expected "
             << type.getRank();
    llvm::SmallDenseMap<int64_t, unsigned> seen;
    for (auto [dim, s] : llvm::enumerate(map.asArrayRef())) {
      if (s == kLocal)
        continue;
      if (s < 0 || s >= static_cast<int64_t>(model.space.size()))
        return refuse(func, func)
               << "nova.map[" << dim << "] of result " << r << " is " << s
               << ", expected -1 or a dimension of nova.space "
               << spell(model.space);
      if (model.space[s] != type.getDimSize(dim))
        return refuse(func, func)
               << "nova.map[" << dim << "] of result " << r
               << " names space dimension " << s << " of extent "
               << model.space[s] << ", but the result's dimension is "
               << type.getDimSize(dim);
      if (model.space[s] != 1 && !seen.insert({s, dim}).second)
        return refuse(func, func) << "nova.map of result " << r
                                  << " names space dimension " << s << " twice";
    }
    model.resultBinding.push_back(normalise(map.asArrayRef()));
    model.resultStrides.push_back(contiguousStrides(type.getShape()));
    if (failed(request(terminator->getOperand(r), model.resultBinding[r],
                       terminator)))
      return failure();
  }
  return success();
}

LogicalResult Modeler::readAliases() {
  func::FuncOp func = model.func;
  model.argumentAliases.assign(func.getNumArguments(), false);
  model.resultAliases.assign(func.getNumResults(), false);
  auto pairs = func->getAttrOfType<ArrayAttr>(attr::inplace);
  if (!pairs)
    return success();
  for (Attribute attribute : pairs) {
    auto pair = dyn_cast<DenseI64ArrayAttr>(attribute);
    if (!pair || pair.size() != 2 || pair[0] < 0 ||
        pair[0] >= func.getNumArguments() || pair[1] < 0 ||
        pair[1] >= func.getNumResults())
      return refuse(func, func)
             << "nova.inplace holds " << attribute
             << ", expected [argument, result] of " << func.getNumArguments()
             << " arguments and " << func.getNumResults() << " results";
    model.inplace.emplace_back(pair[0], pair[1]);
    model.argumentAliases[pair[0]] = true;
    model.resultAliases[pair[1]] = true;
  }
  return success();
}

LogicalResult Modeler::request(Value value, const Binding &binding,
                               Operation *reader) {
  if (isa<BlockArgument>(value))
    return success();
  Operation *def = value.getDefiningOp();
  // Values without memory of their own may be read in any way.
  bool storageless = def->hasTrait<OpTrait::ConstantLike>() ||
                     isa<linalg::FillOp, tensor::EmptyOp>(def);
  auto [it, inserted] = model.values.try_emplace(value);
  if (inserted) {
    it->second.binding = binding;
    boundBy[value] = reader;
    return success();
  }
  if (storageless || it->second.binding == binding)
    return success();
  InFlightDiagnostic diag =
      refuse(model.func, reader)
      << "'" << reader->getName() << "' reads the result of '" << def->getName()
      << "' with dimensions bound to space " << spell(binding)
      << ", but another reader has " << spell(it->second.binding)
      << "; all readers of an in-kernel value must agree";
  diag.attachNote(def->getLoc()) << "the value";
  diag.attachNote(boundBy[value]->getLoc()) << "the other reader";
  return diag;
}

LogicalResult Modeler::bindGenericBody(linalg::GenericOp op) {
  for (Operation &inner : op.getBody()->getOperations()) {
    if (!isSupportedBodyOp(inner))
      return refuse(model.func, &inner)
             << "'" << inner.getName()
             << "' is not supported in the body of a linalg.generic";
    for (Value operand : inner.getOperands()) {
      if (operand.getParentBlock() == op.getBody())
        continue;
      if (isa<RankedTensorType>(operand.getType())) {
        if (!isa<tensor::ExtractOp>(inner))
          return refuse(model.func, &inner)
                 << "'" << inner.getName() << "' uses a whole tensor in a body";
        Binding whole(cast<RankedTensorType>(operand.getType()).getRank(),
                      kLocal);
        if (failed(request(operand, whole, op)))
          return failure();
      } else if (!matchPattern(operand, m_Constant())) {
        return refuse(model.func, &inner) << "'" << inner.getName()
                                          << "' uses a scalar from outside the "
                                             "body that is not a constant";
      }
    }
  }
  return success();
}

LogicalResult Modeler::bindGeneric(linalg::GenericOp op) {
  if (op.getNumResults() != op.getNumDpsInits())
    return refuse(model.func, op)
           << "linalg.generic on memrefs is not supported";
  // Output maps: a permutation of parallel dimensions with constant 0 between.
  for (OpOperand &init : op.getDpsInitsMutable()) {
    llvm::SmallDenseSet<unsigned> seen;
    for (AffineExpr expr : op.getMatchingIndexingMap(&init).getResults()) {
      auto constant = dyn_cast<AffineConstantExpr>(expr);
      auto dim = dyn_cast<AffineDimExpr>(expr);
      bool fine = (constant && constant.getValue() == 0) ||
                  (dim && seen.insert(dim.getPosition()).second &&
                   op.getIteratorTypesArray()[dim.getPosition()] ==
                       utils::IteratorType::parallel);
      if (!fine)
        return refuse(model.func, op)
               << "output map "
               << AffineMapAttr::get(op.getMatchingIndexingMap(&init))
               << " is not supported; expected distinct parallel dimensions or "
                  "0";
    }
  }
  Binding loops = iterationBinding(model, op);
  for (auto [result, init] :
       llvm::zip_equal(op.getResults(), op.getDpsInitsMutable())) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    Binding binding;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      binding.push_back(dim ? loops[dim.getPosition()] : kLocal);
    }
    // A result nobody reads follows the others.
    bool dead = !model.values.contains(result);
    if (failed(request(result, binding, op)))
      return failure();
    if (dead)
      boundBy.erase(result);
    if (failed(request(init.get(), binding, op)))
      return failure();
    bool reads = op.getMatchingBlockArgument(&init).use_empty() == false;
    if (reads && init.get().getDefiningOp<tensor::EmptyOp>())
      return refuse(model.func, op)
             << "the body reads an init that is tensor.empty";
  }
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isa<RankedTensorType>(input->get().getType())) {
      if (!matchPattern(input->get(), m_Constant()))
        return refuse(model.func, op)
               << "scalar operand that is not a constant";
      continue;
    }
    bool inKernel = !isa<BlockArgument>(input->get());
    Binding binding;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (!dim && inKernel && !isa<AffineConstantExpr>(expr))
        return refuse(model.func, op)
               << "map " << AffineMapAttr::get(map)
               << " of an in-kernel value is not supported; expected "
               << "dimensions or constants";
      if (!isLinear(expr))
        return refuse(model.func, op)
               << "map " << AffineMapAttr::get(map) << " is not linear";
      binding.push_back(dim ? loops[dim.getPosition()] : kLocal);
    }
    if (inKernel && input->get().getDefiningOp<tensor::EmptyOp>())
      return refuse(model.func, op) << "reads tensor.empty, which has no value";
    if (inKernel && failed(request(input->get(), binding, op)))
      return failure();
  }
  return bindGenericBody(op);
}

LogicalResult Modeler::bindLikeResult(Operation *op, ValueRange same,
                                      int64_t localDim) {
  Binding binding = model.plan(op->getResult(0)).binding;
  if (localDim < 0 || localDim >= static_cast<int64_t>(binding.size()))
    return refuse(model.func, op)
           << "'" << op->getName() << "' along dimension " << localDim
           << " of a value of rank " << binding.size();
  if (binding[localDim] != kLocal)
    return refuse(model.func, op)
           << "'" << op->getName() << "' works along dimension " << localDim
           << ", which is bound to space dimension " << binding[localDim]
           << "; it must be local";
  for (Value operand : same)
    if (failed(request(operand, binding, op)))
      return failure();
  return success();
}

LogicalResult Modeler::bindScatter(ScatterOp op) {
  Binding binding = model.plan(op.getResult()).binding;
  if (failed(request(op.getInit(), binding, op)))
    return failure();
  // Positions of index and updates follow the result but along dim, where the
  // whole index is scanned and a tile takes what falls into it.
  auto type = cast<RankedTensorType>(op.getIndex().getType());
  auto resultType = cast<RankedTensorType>(op.getResult().getType());
  for (int64_t i = 0; i < type.getRank(); ++i) {
    if (i == static_cast<int64_t>(op.getDim()))
      binding[i] = kLocal;
    else if (binding[i] != kLocal &&
             type.getDimSize(i) != resultType.getDimSize(i))
      return refuse(model.func, op)
             << "'nova.scatter' has dimension " << i
             << " bound to space dimension " << binding[i]
             << ", but the index has " << type.getDimSize(i) << " of "
             << resultType.getDimSize(i) << " positions there";
  }
  if (failed(request(op.getIndex(), binding, op)))
    return failure();
  return request(op.getUpdates(), binding, op);
}

LogicalResult Modeler::bindIndexPut(IndexPutOp op) {
  Binding binding = model.plan(op.getResult()).binding;
  if (failed(request(op.getInit(), binding, op)))
    return failure();
  size_t indexed = op.getIndices().size();
  int64_t indexRank = 0;
  for (Value index : op.getIndices()) {
    indexRank = cast<RankedTensorType>(index.getType()).getRank();
    if (failed(request(index, Binding(indexRank, kLocal), op)))
      return failure();
  }
  Binding updates(indexRank, kLocal);
  updates.append(binding.begin() + indexed, binding.end());
  return request(op.getUpdates(), updates, op);
}

LogicalResult Modeler::bindBody() {
  SmallVector<Operation *> reversed;
  for (Operation &op : llvm::reverse(model.func.front().without_terminator())) {
    if (isa<tensor::EmptyOp, linalg::FillOp>(op) ||
        op.hasTrait<OpTrait::ConstantLike>())
      continue;
    bool known = isa<linalg::GenericOp, tensor::ConcatOp, CumsumOp, ScatterOp,
                     IndexPutOp>(op);
    if (!known)
      return refuse(model.func, &op)
             << "'" << op.getName()
             << "' is not supported in a kernel; expected linalg.generic, "
             << "linalg.fill, tensor.concat, tensor.empty, arith.constant, "
                "nova.cumsum, "
             << "nova.scatter or nova.index_put";
    if (!isPlanned(&op))
      continue; // Nobody needs it.
    LogicalResult bound = success();
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      bound = bindGeneric(generic);
    else if (auto concat = dyn_cast<tensor::ConcatOp>(op))
      bound = bindLikeResult(concat, concat.getInputs(), concat.getDim());
    else if (auto cumsum = dyn_cast<CumsumOp>(op))
      bound = bindLikeResult(cumsum, cumsum.getInput(), cumsum.getDim());
    else if (auto scatter = dyn_cast<ScatterOp>(op))
      bound = bindScatter(scatter);
    else
      bound = bindIndexPut(cast<IndexPutOp>(op));
    if (failed(bound))
      return failure();
    reversed.push_back(&op);
  }
  model.work.assign(reversed.rbegin(), reversed.rend());
  return success();
}

FailureOr<KernelModel> Modeler::build() {
  func::FuncOp func = model.func;
  if (func.isExternal() || !llvm::hasSingleElement(func.getBody()))
    return refuse(func, func) << "expected a body of one block", failure();
  if (failed(readSpace()) || failed(checkTypes()) || failed(readResults()) ||
      failed(readAliases()) || failed(bindBody()) || failed(planStorage(model)))
    return failure();
  return std::move(model);
}

} // namespace

FailureOr<KernelModel> modelKernel(func::FuncOp func) {
  return Modeler(func).build();
}

} // namespace nova::host
