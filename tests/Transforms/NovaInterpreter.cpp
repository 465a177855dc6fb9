//===- NovaInterpreter.cpp - Kernels of nova operations, the obvious way
//---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "NovaInterpreter.h"

#include "nova/IR/Nova.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace nova::test {

using Index = std::vector<int64_t>;

double roundTo(double value, Type type) {
  if (!isa<FloatType>(type) || type.isF64())
    return value;
  APFloat f(value);
  bool lost;
  f.convert(cast<FloatType>(type).getFloatSemantics(),
            APFloat::rmNearestTiesToEven, &lost);
  f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return f.convertToDouble();
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Interpreter {
public:
  std::vector<Tensor> run(func::FuncOp kernel,
                          const std::vector<Tensor> &arguments);

private:
  using Elementwise = std::function<Scalar(const Index &)>;

  RankedTensorType typeOf(Value v) {
    return cast<RankedTensorType>(v.getType());
  }
  const Tensor &get(Value v) { return values.find(v)->second; }
  const Scalar &at(Value v, const Index &index) {
    const Tensor &t = get(v);
    return t.elements[t.linear(index)];
  }
  /// The element of `v` that stands at `index` of a shape it broadcasts to.
  const Scalar &broadcastAt(Value v, const Index &index);
  void define(Value result, const Elementwise &element);
  void defineDims(Value result, Value source, const Index &sourceDims);
  void runOp(Operation *op);
  Scalar pointwise(Operation *op, const std::vector<Scalar> &in);
  void reduce(Operation *op, ArrayRef<int64_t> dims, bool keep);
  void argReduce(Operation *op, int64_t dim, bool keep);
  void matmul(Value result, Value lhs, Value rhs, bool tl, bool tr, Value bias);
  void attention(AttentionOp op);
  template <typename Op> void attentionBackward(Op op, Value delta);
  double score(Value q, Value k, Value bias, double scale, bool causal,
               const Index &at);

  llvm::DenseMap<Value, Tensor> values;
};

const Scalar &Interpreter::broadcastAt(Value v, const Index &index) {
  ArrayRef<int64_t> shape = typeOf(v).getShape();
  Index own(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    own[i] = shape[i] == 1 ? 0 : index[index.size() - shape.size() + i];
  return at(v, own);
}

int64_t wrap(int64_t value, Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  return (int64_t)((uint64_t)value << (64 - width)) >> (64 - width);
}

void Interpreter::define(Value result, const Elementwise &element) {
  Tensor out(typeOf(result));
  forEachIndex(out.shape, [&](const Index &index) {
    Scalar s = element(index);
    if (isa<FloatType>(out.elementType)) {
      if (out.elementType.getIntOrFloatBitWidth() < 32)
        s.f = roundTo(s.f, out.elementType);
    } else {
      s.i = wrap(s.i, out.elementType);
    }
    out.elements[out.linear(index)] = s;
  });
  values[result] = out;
}

double gelu(double x, GeluForm form) {
  if (form == GeluForm::erf)
    return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
  return 0.5 * x *
         (1 +
          std::tanh(M_SQRT2 * M_2_SQRTPI * 0.5 * (x + 0.044715 * x * x * x)));
}

/// By central differences in long double: nothing shared with the formula.
double geluSlope(double x, GeluForm form) {
  auto f = [&](long double v) -> long double {
    if (form == GeluForm::erf)
      return 0.5L * v * (1 + erfl(v * M_SQRT1_2));
    return 0.5L * v *
           (1 +
            tanhl(M_SQRT2 * M_2_SQRTPI * 0.5L * (v + 0.044715L * v * v * v)));
  };
  const long double h = 1e-5L;
  return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h);
}

Scalar real(double f) { return {f, 0}; }
Scalar integer(int64_t i) { return {0, i}; }

int64_t power(int64_t x, int64_t n) {
  if (n < 0)
    return x == 1 ? 1 : x == -1 ? (n % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (int64_t i = 0; i < n; ++i)
    result *= static_cast<uint64_t>(x);
  return static_cast<int64_t>(result);
}

template <typename T> bool compares(ComparePredicate p, T x, T y) {
  switch (p) {
  case ComparePredicate::eq:
    return x == y;
  case ComparePredicate::ne:
    return x != y;
  case ComparePredicate::lt:
    return x < y;
  case ComparePredicate::le:
    return x <= y;
  case ComparePredicate::gt:
    return x > y;
  case ComparePredicate::ge:
    return x >= y;
  }
  return false;
}

Scalar Interpreter::pointwise(Operation *op, const std::vector<Scalar> &in) {
  Type from = typeOf(op->getOperand(0)).getElementType();
  Type to = typeOf(op->getResult(0)).getElementType();
  bool floating = isa<FloatType>(from), isBool = from.isInteger(1);
  const Scalar &x = in[0], &y = in[in.size() > 1 ? 1 : 0];
  auto pick = [&](double f, int64_t i) {
    return floating ? real(f) : integer(i);
  };
  auto floorDiv = [](int64_t a, int64_t b) {
    return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0));
  };
  return llvm::TypeSwitch<Operation *, Scalar>(op)
      .Case<CopyOp>([&](auto) { return x; })
      .Case<NegOp>([&](auto) { return pick(-x.f, -x.i); })
      .Case<AbsOp>([&](auto) { return pick(std::fabs(x.f), std::abs(x.i)); })
      .Case<ExpOp>([&](auto) { return real(std::exp(x.f)); })
      .Case<LogOp>([&](auto) { return real(std::log(x.f)); })
      .Case<SqrtOp>([&](auto) { return real(std::sqrt(x.f)); })
      .Case<RsqrtOp>([&](auto) { return real(1 / std::sqrt(x.f)); })
      .Case<ReciprocalOp>([&](auto) { return real(1 / x.f); })
      .Case<TanhOp>([&](auto) { return real(std::tanh(x.f)); })
      .Case<SigmoidOp>([&](auto) { return real(1 / (1 + std::exp(-x.f))); })
      .Case<ErfOp>([&](auto) { return real(std::erf(x.f)); })
      .Case<SinOp>([&](auto) { return real(std::sin(x.f)); })
      .Case<CosOp>([&](auto) { return real(std::cos(x.f)); })
      .Case<ReluOp>(
          [&](auto) { return pick(x.f < 0 ? 0 : x.f, x.i < 0 ? 0 : x.i); })
      .Case<NotOp>([&](auto) { return integer(~x.i); })
      .Case<GeluOp>([&](GeluOp g) { return real(gelu(x.f, g.getForm())); })
      .Case<GeluBackwardOp>([&](GeluBackwardOp g) {
        return real(x.f * geluSlope(y.f, g.getForm()));
      })
      .Case<TanhBackwardOp>([&](auto) { return real(x.f * (1 - y.f * y.f)); })
      .Case<SigmoidBackwardOp>(
          [&](auto) { return real(x.f * y.f * (1 - y.f)); })
      .Case<ThresholdBackwardOp>([&](ThresholdBackwardOp t) {
        return real(y.f <= t.getThreshold().convertToDouble() ? 0 : x.f);
      })
      .Case<AddOp>(
          [&](auto) { return pick(x.f + y.f, isBool ? x.i | y.i : x.i + y.i); })
      .Case<SubOp>([&](auto) { return pick(x.f - y.f, x.i - y.i); })
      .Case<MulOp>([&](auto) { return pick(x.f * y.f, x.i * y.i); })
      .Case<DivOp>([&](auto) { return real(x.f / y.f); })
      .Case<FloorDivOp>(
          [&](auto) { return pick(std::floor(x.f / y.f), floorDiv(x.i, y.i)); })
      .Case<TruncDivOp>([&](auto) {
        return pick(std::trunc(x.f / y.f), y.i == 0 ? 0 : x.i / y.i);
      })
      .Case<RemainderOp>([&](auto) {
        return pick(x.f - std::floor(x.f / y.f) * y.f,
                    y.i == 0 ? x.i - floorDiv(x.i, 1)
                             : x.i - floorDiv(x.i, y.i) * y.i);
      })
      .Case<PowOp>([&](auto) {
        return pick(std::pow(x.f, y.f), floating ? 0 : power(x.i, y.i));
      })
      .Case<MaximumOp>([&](auto) {
        bool nan = std::isnan(x.f) || std::isnan(y.f);
        return pick(nan ? kNaN : std::max(x.f, y.f), std::max(x.i, y.i));
      })
      .Case<MinimumOp>([&](auto) {
        bool nan = std::isnan(x.f) || std::isnan(y.f);
        return pick(nan ? kNaN : std::min(x.f, y.f), std::min(x.i, y.i));
      })
      .Case<AndOp>([&](auto) { return integer(x.i & y.i); })
      .Case<OrOp>([&](auto) { return integer(x.i | y.i); })
      .Case<XorOp>([&](auto) { return integer(x.i ^ y.i); })
      .Case<CompareOp>([&](CompareOp c) {
        return integer(floating ? compares(c.getPredicate(), x.f, y.f)
                                : compares(c.getPredicate(), x.i, y.i));
      })
      .Case<SelectOp>([&](auto) { return x.i ? in[1] : in[2]; })
      .Case<CastOp>([&](auto) {
        if (isa<FloatType>(to))
          return real(floating ? (from.isF64() && !to.isF64()
                                      ? static_cast<float>(x.f)
                                      : x.f)
                               : static_cast<double>(x.i));
        if (to.isInteger(1))
          return integer(floating ? x.f != 0 : x.i != 0);
        return integer(floating ? static_cast<int64_t>(x.f) : x.i);
      })
      .Default([](Operation *unknown) -> Scalar {
        unknown->dump();
        llvm::report_fatal_error("unknown pointwise operation");
      });
}

void Interpreter::reduce(Operation *op, ArrayRef<int64_t> dims, bool keep) {
  Value input = op->getOperand(0), result = op->getResult(0);
  Type element = typeOf(input).getElementType();
  bool floating = isa<FloatType>(element), isBool = element.isInteger(1);
  Tensor out(typeOf(result));
  std::vector<bool> started(out.elements.size());
  forEachIndex(get(input).shape, [&](const Index &index) {
    Index target;
    for (size_t d = 0; d < index.size(); ++d)
      if (!llvm::is_contained(dims, (int64_t)d))
        target.push_back(index[d]);
      else if (keep)
        target.push_back(0);
    int64_t at = out.linear(target);
    Scalar &acc = out.elements[at];
    const Scalar &x = this->at(input, index);
    if (isa<SumOp>(op)) {
      acc.f += x.f;
      acc.i = isBool ? acc.i | x.i : wrap(acc.i + x.i, element);
    } else if (!started[at]) {
      acc = x;
    } else {
      bool largest = isa<MaxOp>(op),
           nan = floating && (std::isnan(acc.f) || std::isnan(x.f));
      acc.f = nan       ? kNaN
              : largest ? std::max(acc.f, x.f)
                        : std::min(acc.f, x.f);
      acc.i = largest ? std::max(acc.i, x.i) : std::min(acc.i, x.i);
    }
    started[at] = true;
  });
  values[result] = out;
  define(result, [&, copy = out](const Index &index) {
    return copy.elements[copy.linear(index)];
  });
}

void Interpreter::argReduce(Operation *op, int64_t dim, bool keep) {
  Value input = op->getOperand(0);
  bool floating = isa<FloatType>(typeOf(input).getElementType()),
       largest = isa<ArgMaxOp>(op);
  Tensor best(typeOf(op->getResult(0))), where(typeOf(op->getResult(1)));
  std::vector<bool> started(best.elements.size());
  forEachIndex(get(input).shape, [&](const Index &index) {
    Index target = index;
    if (keep)
      target[dim] = 0;
    else
      target.erase(target.begin() + dim);
    int64_t t = best.linear(target);
    const Scalar &x = at(input, index), &acc = best.elements[t];
    bool better = !started[t];
    if (!better && floating)
      better = !std::isnan(acc.f) &&
               (std::isnan(x.f) || (largest ? x.f > acc.f : x.f < acc.f));
    else if (!better)
      better = largest ? x.i > acc.i : x.i < acc.i;
    if (better) {
      best.elements[t] = x;
      where.elements[t].i = index[dim];
    }
    started[t] = true;
  });
  values[op->getResult(0)] = best;
  values[op->getResult(1)] = where;
}

void Interpreter::matmul(Value result, Value lhs, Value rhs, bool tl, bool tr,
                         Value bias) {
  int64_t lhsRank = typeOf(lhs).getRank(), rhsRank = typeOf(rhs).getRank();
  int64_t depth = typeOf(rhs).getDimSize(tr ? rhsRank - 1 : rhsRank - 2);
  define(result, [&](const Index &index) {
    Index l(index), r(index.end() - rhsRank, index.end());
    double sum = bias ? at(bias, {index.back()}).f : 0;
    for (int64_t k = 0; k < depth; ++k) {
      if (lhsRank == 1) {
        l = {k};
      } else {
        l[lhsRank - 2] = tl ? k : index[lhsRank - 2];
        l[lhsRank - 1] = tl ? index[lhsRank - 2] : k;
      }
      r[rhsRank - 2] = tr ? index.back() : k;
      r[rhsRank - 1] = tr ? k : index.back();
      sum += at(lhs, l).f * at(rhs, r).f;
    }
    return real(sum);
  });
}

double Interpreter::score(Value q, Value k, Value bias, double scale,
                          bool causal, const Index &p) {
  if (causal && p[3] > p[2])
    return -kInfinity;
  double sum = 0;
  for (int64_t d = 0; d < typeOf(q).getDimSize(3); ++d)
    sum += at(q, {p[0], p[1], p[2], d}).f * at(k, {p[0], p[1], p[3], d}).f;
  return scale * sum + (bias ? broadcastAt(bias, p).f : 0);
}

void Interpreter::attention(AttentionOp op) {
  int64_t keys = typeOf(op.getKey()).getDimSize(2);
  auto row = [&](const Index &p, double &lse) {
    std::vector<double> weights(keys);
    double largest = -kInfinity, sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      weights[j] = score(op.getQuery(), op.getKey(), op.getBias(),
                         op.getScale().convertToDouble(), op.getCausal(),
                         {p[0], p[1], p[2], j});
      largest = std::max(largest, weights[j]);
    }
    lse = 0;
    if (largest == -kInfinity)
      return std::vector<double>(keys);
    for (double &w : weights)
      sum += w = std::exp(w - largest);
    for (double &w : weights)
      w /= sum;
    lse = largest + std::log(sum);
    return weights;
  };
  define(op.getLse(), [&](const Index &p) {
    double lse;
    row(p, lse);
    return real(lse);
  });
  define(op.getResult(), [&](const Index &p) {
    double lse, sum = 0;
    std::vector<double> weights = row(p, lse);
    for (int64_t j = 0; j < keys; ++j)
      sum += weights[j] * at(op.getValue(), {p[0], p[1], j, p[3]}).f;
    return real(sum);
  });
}

/// Either half; `delta` is null where it is to be computed.
template <typename Op> void Interpreter::attentionBackward(Op op, Value delta) {
  int64_t queries = typeOf(op.getQuery()).getDimSize(2),
          keys = typeOf(op.getKey()).getDimSize(2);
  int64_t width = typeOf(op.getValue()).getDimSize(3);
  double scale = op.getScale().convertToDouble();
  auto weight = [&](const Index &p) {
    double s = score(op.getQuery(), op.getKey(), op.getBias(), scale,
                     op.getCausal(), p);
    return s == -kInfinity
               ? 0
               : std::exp(s - at(op.getLse(), {p[0], p[1], p[2]}).f);
  };
  auto deltaAt = [&](const Index &p) {
    if (delta)
      return at(delta, {p[0], p[1], p[2]}).f;
    double sum = 0;
    if constexpr (std::is_same_v<Op, AttentionBackwardQueryOp>)
      for (int64_t e = 0; e < width; ++e)
        sum += at(op.getGrad(), {p[0], p[1], p[2], e}).f *
               at(op.getOut(), {p[0], p[1], p[2], e}).f;
    return sum;
  };
  auto gradScore = [&](const Index &p) {
    double sum = 0;
    for (int64_t e = 0; e < width; ++e)
      sum += at(op.getGrad(), {p[0], p[1], p[2], e}).f *
             at(op.getValue(), {p[0], p[1], p[3], e}).f;
    return weight(p) * (sum - deltaAt(p));
  };
  if constexpr (std::is_same_v<Op, AttentionBackwardQueryOp>) {
    define(op.getDelta(), [&](const Index &p) { return real(deltaAt(p)); });
    define(op.getDQuery(), [&](const Index &p) {
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j)
        sum += gradScore({p[0], p[1], p[2], j}) *
               at(op.getKey(), {p[0], p[1], j, p[3]}).f;
      return real(scale * sum);
    });
  } else {
    define(op.getDKey(), [&](const Index &p) {
      double sum = 0;
      for (int64_t i = 0; i < queries; ++i)
        sum += gradScore({p[0], p[1], i, p[2]}) *
               at(op.getQuery(), {p[0], p[1], i, p[3]}).f;
      return real(scale * sum);
    });
    define(op.getDValue(), [&](const Index &p) {
      double sum = 0;
      for (int64_t i = 0; i < queries; ++i)
        sum += weight({p[0], p[1], i, p[2]}) *
               at(op.getGrad(), {p[0], p[1], i, p[3]}).f;
      return real(sum);
    });
  }
}

Scalar attributeScalar(Attribute attribute) {
  if (auto f = dyn_cast<FloatAttr>(attribute))
    return real(f.getValueAsDouble());
  return integer(cast<IntegerAttr>(attribute).getValue().getSExtValue());
}

void Interpreter::runOp(Operation *op) {
  if (op->hasTrait<Pointwise>()) {
    define(op->getResult(0), [&](const Index &index) {
      std::vector<Scalar> in;
      for (Value operand : op->getOperands())
        in.push_back(broadcastAt(operand, index));
      return pointwise(op, in);
    });
    return;
  }
  Value result = op->getResult(0);
  llvm::TypeSwitch<Operation *>(op)
      .Case<ConstantOp>([&](ConstantOp c) {
        auto elements = cast<DenseElementsAttr>(c.getValue());
        define(result, [&](const Index &) {
          return attributeScalar(elements.getSplatValue<Attribute>());
        });
      })
      .Case<IotaOp>([&](IotaOp iota) {
        Scalar start = attributeScalar(iota.getStart()),
               step = attributeScalar(iota.getStep());
        define(result, [&](const Index &index) {
          return Scalar{start.f + step.f * index[0],
                        start.i + step.i * index[0]};
        });
      })
      .Case<ReshapeOp>([&](ReshapeOp reshape) {
        Tensor out(typeOf(result));
        out.elements = get(reshape.getInput()).elements;
        values[result] = out;
      })
      .Case<BroadcastOp>([&](BroadcastOp b) {
        define(result, [&](const Index &index) {
          return broadcastAt(b.getInput(), index);
        });
      })
      .Case<TransposeOp>([&](TransposeOp t) {
        define(result, [&](const Index &index) {
          Index source(index.size());
          for (auto [i, p] : llvm::enumerate(t.getPermutation()))
            source[p] = index[i];
          return at(t.getInput(), source);
        });
      })
      .Case<SumOp, MaxOp, MinOp>(
          [&](auto r) { reduce(r, r.getDims(), r.getKeepdims()); })
      .Case<ArgMaxOp, ArgMinOp>(
          [&](auto r) { argReduce(r, r.getDim(), r.getKeepdims()); })
      .Case<CumsumOp>([&](CumsumOp c) {
        define(result, [&](const Index &index) {
          Scalar sum;
          Index source = index;
          for (source[c.getDim()] = 0; source[c.getDim()] <= index[c.getDim()];
               ++source[c.getDim()]) {
            sum.f += at(c.getInput(), source).f;
            sum.i += at(c.getInput(), source).i;
          }
          return sum;
        });
      })
      .Case<MatmulOp>([&](MatmulOp m) {
        matmul(result, m.getLhs(), m.getRhs(), m.getTransposeLhs(),
               m.getTransposeRhs(), {});
      })
      .Case<LinearOp>([&](LinearOp l) {
        matmul(result, l.getInput(), l.getWeight(), false,
               l.getTransposeWeight(), l.getBias());
      })
      .Case<AttentionOp>([&](AttentionOp a) { attention(a); })
      .Case<AttentionBackwardQueryOp>(
          [&](auto a) { attentionBackward(a, Value()); })
      .Case<AttentionBackwardKeyValueOp>(
          [&](auto a) { attentionBackward(a, a.getDelta()); })
      .Case<IndexOp>([&](IndexOp x) {
        ArrayRef<int64_t> dims = x.getDims();
        int64_t first = dims[0], rank = typeOf(x.getIndices()[0]).getRank();
        define(result, [&](const Index &index) {
          Index source(index.begin(), index.begin() + first);
          Index where(index.begin() + first, index.begin() + first + rank);
          for (auto [i, tensor] : llvm::enumerate(x.getIndices())) {
            int64_t size = typeOf(x.getInput()).getDimSize(dims[i]),
                    v = at(tensor, where).i;
            v = v < 0 ? v + size : v;
            if (v < 0 || v >= size)
              return Scalar{kNaN, 0};
            source.push_back(v);
          }
          source.insert(source.end(), index.begin() + first + rank,
                        index.end());
          return at(x.getInput(), source);
        });
      })
      .Case<GatherOp>([&](GatherOp g) {
        define(result, [&](const Index &index) {
          Index source = index;
          int64_t v = source[g.getDim()] = at(g.getIndex(), index).i;
          if (v < 0 || v >= typeOf(g.getInput()).getDimSize(g.getDim()))
            return Scalar{kNaN, 0};
          return at(g.getInput(), source);
        });
      })
      .Case<PadOp>([&](PadOp p) {
        define(result, [&](const Index &index) {
          Index source;
          for (auto [d, low] : llvm::enumerate(p.getLow())) {
            source.push_back(index[d] - low);
            if (source[d] < 0 ||
                source[d] >= typeOf(p.getInput()).getDimSize(d))
              return attributeScalar(p.getValue());
          }
          return at(p.getInput(), source);
        });
      })
      .Case<ConcatOp>([&](ConcatOp c) {
        define(result, [&](const Index &index) {
          Index source = index;
          for (Value input : c.getInputs()) {
            int64_t size = typeOf(input).getDimSize(c.getDim());
            if (source[c.getDim()] < size)
              return at(input, source);
            source[c.getDim()] -= size;
          }
          llvm::report_fatal_error("concat");
        });
      })
      .Case<ScatterOp>([&](ScatterOp s) {
        Tensor out = get(s.getInit());
        forEachIndex(get(s.getIndex()).shape, [&](const Index &index) {
          Index target = index;
          int64_t v = target[s.getDim()] = at(s.getIndex(), index).i;
          if (v < 0 || v >= typeOf(s.getInit()).getDimSize(s.getDim()))
            return;
          Scalar &element = out.elements[out.linear(target)];
          const Scalar &update = at(s.getUpdates(), index);
          element = s.getAccumulate()
                        ? Scalar{element.f + update.f, element.i + update.i}
                        : update;
        });
        values[result] = out;
      })
      .Case<IndexPutOp>([&](IndexPutOp p) {
        Tensor out = get(p.getInit());
        int64_t rank = typeOf(p.getIndices()[0]).getRank();
        forEachIndex(get(p.getUpdates()).shape, [&](const Index &index) {
          Index target, where(index.begin(), index.begin() + rank);
          for (auto [d, tensor] : llvm::enumerate(p.getIndices())) {
            int64_t size = out.shape[d], v = at(tensor, where).i;
            target.push_back(v < 0 ? v + size : v);
            if (target[d] < 0 || target[d] >= size)
              return;
          }
          target.insert(target.end(), index.begin() + rank, index.end());
          Scalar &element = out.elements[out.linear(target)];
          const Scalar &update = at(p.getUpdates(), index);
          element = p.getAccumulate()
                        ? Scalar{element.f + update.f, element.i + update.i}
                        : update;
        });
        values[result] = out;
      })
      .Default([](Operation *unknown) {
        unknown->dump();
        llvm::report_fatal_error("unknown operation");
      });
}

std::vector<Tensor> Interpreter::run(func::FuncOp kernel,
                                     const std::vector<Tensor> &arguments) {
  Block &block = kernel.getBody().front();
  for (auto [value, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[value] = tensor;
  for (Operation &op : block.without_terminator())
    runOp(&op);
  std::vector<Tensor> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(get(value));
  return results;
}

} // namespace

std::vector<Tensor> interpretNova(func::FuncOp kernel,
                                  const std::vector<Tensor> &arguments) {
  return Interpreter().run(kernel, arguments);
}

} // namespace nova::test
