//===- Interpreter.cpp - Kernel functions, the slow and obvious way -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Interpreter.h"

#include "nova/IR/NovaKernelOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <cstdlib>
#include <map>

using namespace mlir;

namespace nova::test {

int64_t Tensor::linear(const std::vector<int64_t> &index) const {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    at = at * shape[d] + index[d];
  return at;
}

void forEachIndex(
    const std::vector<int64_t> &shape,
    const std::function<void(const std::vector<int64_t> &)> &visit) {
  for (int64_t size : shape)
    if (size == 0)
      return;
  std::vector<int64_t> index(shape.size(), 0);
  for (;;) {
    visit(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

namespace {

[[noreturn]] void unknown(Operation *op) {
  llvm::errs() << "the interpreter does not know " << *op << "\n";
  abort();
}

Scalar fromAttribute(Attribute attribute) {
  Scalar s;
  if (auto f = dyn_cast<FloatAttr>(attribute))
    s.f = f.getValueAsDouble();
  else if (auto b = dyn_cast<IntegerAttr>(attribute))
    s.i = b.getType().isInteger(1) ? b.getValue().getZExtValue() : b.getInt();
  return s;
}

/// Rounds to the precision of a short float type.
double rounded(double value, Type type) {
  if (type.isF64() || !std::isfinite(value))
    return value;
  APFloat f(value);
  bool lost;
  f.convert(cast<FloatType>(type).getFloatSemantics(),
            APFloat::rmNearestTiesToEven, &lost);
  f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return f.convertToDouble();
}

int64_t wrapped(int64_t value, Type type) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  return width == 64 ? value : (value << (64 - width)) >> (64 - width);
}

bool compare(arith::CmpFPredicate p, double a, double b) {
  switch (p) {
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return a < b || a > b;
  case arith::CmpFPredicate::UNE:
    return a != b;
  case arith::CmpFPredicate::UGT:
    return !(a <= b);
  case arith::CmpFPredicate::UNO:
    return std::isnan(a) || std::isnan(b);
  case arith::CmpFPredicate::ORD:
    return !std::isnan(a) && !std::isnan(b);
  default:
    abort();
  }
}

bool compare(arith::CmpIPredicate p, int64_t a, int64_t b) {
  switch (p) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return uint64_t(a) < uint64_t(b);
  case arith::CmpIPredicate::ule:
    return uint64_t(a) <= uint64_t(b);
  case arith::CmpIPredicate::ugt:
    return uint64_t(a) > uint64_t(b);
  case arith::CmpIPredicate::uge:
    return uint64_t(a) >= uint64_t(b);
  }
  abort();
}

/// An integer without its sign: what the bits say alone.
uint64_t withoutSign(int64_t value, Type type) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return width == 64 ? value : value & ((uint64_t(1) << width) - 1);
}

/// One op of a generic's body that is not linalg's or tensor's.
Scalar evaluate(Operation *op, const std::vector<Scalar> &x) {
  Type type = op->getResult(0).getType();
  Scalar r;
  Attribute constant;
  if (x.empty() && matchPattern(op, m_Constant(&constant)))
    return fromAttribute(constant);
  double a = x.size() > 0 ? x[0].f : 0, b = x.size() > 1 ? x[1].f : 0;
  int64_t i = x.size() > 0 ? x[0].i : 0, j = x.size() > 1 ? x[1].i : 0;
  if (isa<arith::AddFOp, arith::MulFOp>(op) && type.isF32()) {
    r.f = isa<arith::AddFOp>(op) ? a + b : a * b; // Most of the work.
    return r;
  }
  StringRef name = op->getName().getStringRef();
  if (name == "arith.addf")
    r.f = a + b;
  else if (name == "arith.subf")
    r.f = a - b;
  else if (name == "arith.mulf")
    r.f = a * b;
  else if (name == "arith.divf")
    r.f = a / b;
  else if (name == "arith.negf")
    r.f = -a;
  else if (name == "arith.maximumf")
    r.f = std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  else if (name == "arith.minimumf")
    r.f = std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
  else if (name == "arith.maxnumf")
    r.f = std::fmax(a, b);
  else if (name == "arith.minnumf")
    r.f = std::fmin(a, b);
  else if (name == "math.exp")
    r.f = std::exp(a);
  else if (name == "math.log")
    r.f = std::log(a);
  else if (name == "math.sin")
    r.f = std::sin(a);
  else if (name == "math.cos")
    r.f = std::cos(a);
  else if (name == "math.powf")
    r.f = std::pow(a, b);
  else if (name == "math.tanh")
    r.f = std::tanh(a);
  else if (name == "math.erf")
    r.f = std::erf(a);
  else if (name == "math.sqrt")
    r.f = std::sqrt(a);
  else if (name == "math.rsqrt")
    r.f = 1 / std::sqrt(a);
  else if (name == "math.absf")
    r.f = std::fabs(a);
  else if (name == "arith.addi")
    r.i = i + j;
  else if (name == "arith.subi")
    r.i = i - j;
  else if (name == "arith.muli")
    r.i = i * j;
  else if (name == "arith.andi")
    r.i = i & j;
  else if (name == "arith.ori")
    r.i = i | j;
  else if (name == "arith.xori")
    r.i = i ^ j;
  else if (name == "arith.maxsi")
    r.i = std::max(i, j);
  else if (name == "arith.minsi")
    r.i = std::min(i, j);
  else if (name == "arith.divsi")
    r.i = i / j;
  else if (name == "arith.remsi")
    r.i = i % j;
  else if (name == "arith.divui")
    r.i = withoutSign(i, type) / withoutSign(j, type);
  else if (name == "arith.remui")
    r.i = withoutSign(i, type) % withoutSign(j, type);
  else if (name == "arith.maxui")
    r.i = std::max(withoutSign(i, type), withoutSign(j, type));
  else if (name == "arith.minui")
    r.i = std::min(withoutSign(i, type), withoutSign(j, type));
  else if (name == "arith.shli")
    r.i = int64_t(withoutSign(i, type) << j);
  else if (name == "arith.shrui")
    r.i = withoutSign(i, type) >> j;
  else if (name == "arith.shrsi")
    r.i = i >> j;
  else if (auto cmpf = dyn_cast<arith::CmpFOp>(op))
    r.i = compare(cmpf.getPredicate(), a, b);
  else if (auto cmpi = dyn_cast<arith::CmpIOp>(op))
    r.i = compare(cmpi.getPredicate(), i, j);
  else if (name == "arith.select")
    r = x[0].i ? x[1] : x[2];
  else if (name == "arith.index_cast" || name == "arith.index_castui" || name == "arith.extsi" ||
           name == "arith.extui" || name == "arith.trunci") {
    r.i = i;
    if (name == "arith.extsi" && op->getOperand(0).getType().isInteger(1))
      r.i = -i;
    else if (name == "arith.extui" || name == "arith.index_castui")
      r.i = withoutSign(i, op->getOperand(0).getType());
  } else if (name == "arith.sitofp" || name == "arith.uitofp")
    r.f = i;
  else if (name == "arith.fptosi")
    r.i = static_cast<int64_t>(a);
  else if (name == "arith.extf" || name == "arith.truncf")
    r.f = rounded(a, type);
  else
    unknown(op);
  if (isa<FloatType>(type) && !type.isF32())
    r.f = rounded(r.f, type);
  if (type.isIntOrIndex())
    r.i = wrapped(r.i, type);
  return r;
}

class Run {
public:
  Run(func::FuncOp kernel, const std::vector<Tensor> &arguments) {
    for (size_t i = 0; i < arguments.size(); ++i)
      tensors[kernel.getArgument(i)] = arguments[i];
  }

  Tensor &get(Value value) {
    auto it = tensors.find(value);
    if (it != tensors.end())
      return it->second;
    DenseElementsAttr elements;
    if (!matchPattern(value, m_Constant(&elements)))
      unknown(value.getDefiningOp());
    Tensor t(cast<RankedTensorType>(value.getType()));
    std::fill(t.elements.begin(), t.elements.end(),
              fromAttribute(elements.getSplatValue<Attribute>()));
    return tensors[value] = t;
  }

  void generic(linalg::GenericOp op) {
    std::vector<Tensor> results;
    for (Value init : op.getOutputs())
      results.push_back(get(init));
    auto extents = op.getStaticLoopRanges();
    std::vector<int64_t> shape(extents.begin(), extents.end());
    // Linear offset of every operand: constant, then a factor per dimension.
    std::vector<std::vector<int64_t>> forms;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = op.getMatchingIndexingMap(&operand);
      std::vector<int64_t> form(shape.size() + 1, 0);
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      for (size_t d = 0; type && d <= shape.size(); ++d) {
        std::vector<int64_t> point(shape.size(), 0);
        if (d < shape.size())
          point[d] = 1;
        int64_t linear = 0;
        for (auto [size, index] :
             llvm::zip(type.getShape(), map.compose(point)))
          linear = linear * size + index;
        form[d] = linear;
      }
      for (size_t d = 0; d < shape.size(); ++d)
        form[d] -= form[shape.size()];
      forms.push_back(form);
    }
    auto at = [&](OpOperand &operand, const std::vector<int64_t> &loops) {
      const std::vector<int64_t> &form = forms[operand.getOperandNumber()];
      int64_t linear = form.back();
      for (size_t d = 0; d < loops.size(); ++d)
        linear += form[d] * loops[d];
      return linear;
    };
    // Every value of the body has a slot; constants are filled in once.
    Block *body = op.getBody();
    llvm::DenseMap<Value, unsigned> slotOf;
    std::vector<Scalar> slots;
    auto slot = [&](Value v) {
      auto [it, inserted] = slotOf.try_emplace(v, slots.size());
      if (inserted) {
        slots.emplace_back();
        Attribute constant;
        if (matchPattern(v, m_Constant(&constant)))
          slots.back() = fromAttribute(constant);
        else if (v.getParentBlock() != body)
          unknown(v.getDefiningOp());
      }
      return it->second;
    };
    struct Step {
      Operation *op;
      std::vector<unsigned> operands;
      unsigned result;
    };
    std::vector<Step> steps;
    std::vector<const Tensor *> inputs;
    for (OpOperand *input : op.getDpsInputOperands()) {
      unsigned at = slot(body->getArgument(input->getOperandNumber()));
      bool tensor = isa<RankedTensorType>(input->get().getType());
      inputs.push_back(tensor ? &get(input->get()) : nullptr);
      Attribute constant;
      if (!tensor && matchPattern(input->get(), m_Constant(&constant)))
        slots[at] = fromAttribute(constant);
    }
    for (unsigned r = 0; r < results.size(); ++r)
      slot(body->getArgument(inputs.size() + r));
    for (Operation &inner : body->without_terminator()) {
      Step step{&inner, {}, 0};
      for (Value v : inner.getOperands())
        if (!isa<RankedTensorType>(v.getType()))
          step.operands.push_back(slot(v));
      step.result = slot(inner.getResult(0));
      if (!inner.hasTrait<OpTrait::ConstantLike>())
        steps.push_back(step);
    }
    std::vector<unsigned> yielded;
    for (Value v : body->getTerminator()->getOperands())
      yielded.push_back(slot(v));

    std::vector<Scalar> operands;
    forEachIndex(shape, [&](const std::vector<int64_t> &loops) {
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i])
          slots[i] = inputs[i]->elements[at(op->getOpOperand(i), loops)];
      for (size_t r = 0; r < results.size(); ++r)
        slots[inputs.size() + r] =
            results[r].elements[at(op->getOpOperand(inputs.size() + r), loops)];
      for (const Step &step : steps) {
        operands.clear();
        for (unsigned operand : step.operands)
          operands.push_back(slots[operand]);
        if (auto index = dyn_cast<linalg::IndexOp>(step.op)) {
          slots[step.result] = {0, loops[index.getDim()]};
        } else if (auto extract = dyn_cast<tensor::ExtractOp>(step.op)) {
          std::vector<int64_t> where;
          for (const Scalar &index : operands)
            where.push_back(index.i);
          Tensor &t = get(extract.getTensor());
          slots[step.result] = t.elements[t.linear(where)];
        } else {
          slots[step.result] = evaluate(step.op, operands);
        }
      }
      for (size_t r = 0; r < results.size(); ++r)
        results[r].elements[at(op->getOpOperand(inputs.size() + r), loops)] =
            slots[yielded[r]];
    });
    for (auto [r, value] : llvm::enumerate(op.getResults()))
      tensors[value] = results[r];
  }

  void run(Operation *op) {
    if (op->hasTrait<OpTrait::ConstantLike>())
      return;
    if (auto generic = dyn_cast<linalg::GenericOp>(op))
      return this->generic(generic);
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Tensor out(type);
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      Attribute constant;
      matchPattern(fill.getInputs()[0], m_Constant(&constant));
      std::fill(out.elements.begin(), out.elements.end(),
                fromAttribute(constant));
    } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
      int64_t offset = 0;
      for (Value input : concat.getInputs()) {
        Tensor &t = get(input);
        forEachIndex(t.shape, [&](std::vector<int64_t> index) {
          Scalar value = t.elements[t.linear(index)];
          index[concat.getDim()] += offset;
          out.elements[out.linear(index)] = value;
        });
        offset += t.shape[concat.getDim()];
      }
    } else if (auto cumsum = dyn_cast<CumsumOp>(op)) {
      Tensor &t = get(cumsum.getInput());
      int64_t d = cumsum.getDim();
      forEachIndex(t.shape, [&](std::vector<int64_t> index) {
        Scalar x = t.elements[t.linear(index)];
        int64_t at = out.linear(index);
        if (index[d] > 0) {
          --index[d];
          x.f += out.elements[out.linear(index)].f;
          x.i += out.elements[out.linear(index)].i;
        }
        out.elements[at] = x;
      });
    } else if (auto scatter = dyn_cast<ScatterOp>(op)) {
      out = get(scatter.getInit());
      Tensor &index = get(scatter.getIndex()),
             &updates = get(scatter.getUpdates());
      int64_t d = scatter.getDim();
      forEachIndex(index.shape, [&](std::vector<int64_t> at) {
        Scalar u = updates.elements[updates.linear(at)];
        at[d] = index.elements[index.linear(at)].i;
        if (at[d] >= 0 && at[d] < out.shape[d])
          put(out.elements[out.linear(at)], u, scatter.getAccumulate());
      });
    } else if (auto indexPut = dyn_cast<IndexPutOp>(op)) {
      out = get(indexPut.getInit());
      Tensor &updates = get(indexPut.getUpdates());
      size_t rank = get(indexPut.getIndices()[0]).shape.size();
      forEachIndex(updates.shape, [&](const std::vector<int64_t> &at) {
        std::vector<int64_t> where, lead(at.begin(), at.begin() + rank);
        bool inside = true;
        for (Value v : indexPut.getIndices()) {
          Tensor &index = get(v);
          int64_t i = index.elements[index.linear(lead)].i,
                  size = out.shape[where.size()];
          i += i < 0 ? size : 0;
          inside &= i >= 0 && i < size;
          where.push_back(i);
        }
        where.insert(where.end(), at.begin() + rank, at.end());
        if (inside)
          put(out.elements[out.linear(where)],
              updates.elements[updates.linear(at)], indexPut.getAccumulate());
      });
    } else if (auto sum = dyn_cast<SegmentSumOp>(op)) {
      out = get(sum.getInit());
      Tensor &updates = get(sum.getUpdates()), &order = get(sum.getOrder()),
             &bounds = get(sum.getBounds());
      int64_t inner = 1;
      for (int64_t d = sum.getRows(); d < (int64_t)out.shape.size(); ++d)
        inner *= out.shape[d];
      for (size_t r = 0; r + 1 < bounds.elements.size(); ++r)
        for (int64_t j = bounds.elements[r].i; j < bounds.elements[r + 1].i; ++j)
          for (int64_t b = 0; b < inner; ++b)
            put(out.elements[r * inner + b],
                updates.elements[(order.elements[j].i & UINT32_MAX) * inner + b],
                true);
    } else if (!isa<tensor::EmptyOp>(op)) {
      unknown(op);
    }
    tensors[op->getResult(0)] = out;
  }

private:
  static void put(Scalar &to, Scalar value, bool accumulate) {
    to.f = accumulate ? to.f + value.f : value.f;
    to.i = accumulate ? to.i + value.i : value.i;
  }

  struct Less {
    bool operator()(Value a, Value b) const {
      return a.getAsOpaquePointer() < b.getAsOpaquePointer();
    }
  };
  std::map<Value, Tensor, Less> tensors;
};

} // namespace

std::vector<Tensor> interpret(func::FuncOp kernel,
                              const std::vector<Tensor> &arguments) {
  Run run(kernel, arguments);
  for (Operation &op : kernel.front().without_terminator())
    run.run(&op);
  std::vector<Tensor> results;
  for (Value value : kernel.front().getTerminator()->getOperands())
    results.push_back(run.get(value));
  return results;
}

} // namespace nova::test
