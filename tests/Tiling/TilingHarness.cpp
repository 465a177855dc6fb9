//===- TilingHarness.cpp - Kernels as tile programs, run and compared ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TilingHarness.h"

#include "nova/Import/Import.h"
#include "nova/Tile/Interpreter.h"
#include "nova/Tile/Tile.h"
#include "nova/Tiling/Passes.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;

namespace nova::test {

MLIRContext &context() {
  static MLIRContext *instance = [] {
    auto *made = new MLIRContext;
    loadGraphDialects(*made);
    made->loadDialect<arith::ArithDialect, func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                      memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect, NovaDialect, tile::TileDialect>();
    return made;
  }();
  return *instance;
}

std::string filled(std::string text, const std::map<std::string, std::string> &values) {
  // Longest names first: $TILE before $T.
  std::vector<std::pair<std::string, std::string>> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto &a, const auto &b) { return a.first.size() > b.first.size(); });
  for (auto &[name, value] : sorted)
    for (size_t at; (at = text.find("$" + name)) != std::string::npos;)
      text.replace(at, name.size() + 1, value);
  return text;
}

int64_t referenceWork(func::FuncOp kernel) {
  int64_t work = 0;
  kernel.walk([&](linalg::GenericOp op) {
    int64_t iterations = op.getBody()->getOperations().size();
    for (int64_t extent : op.getStaticLoopRanges())
      iterations *= extent;
    work += iterations;
  });
  for (TypeRange types : {kernel.getArgumentTypes(), kernel.getResultTypes()})
    for (Type type : types)
      work += 8 * cast<RankedTensorType>(type).getNumElements();
  return work;
}

namespace {
/// The memory behind a memref, found through its strides.
struct Memory {
  Memory(MemRefType type) : type(type), shape(type.getShape()) {
    int64_t offset;
    EXPECT_TRUE(succeeded(type.getStridesAndOffset(strides, offset)));
    int64_t span = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      span += (shape[d] - 1) * strides[d];
    bytes.assign(span * elementBytes(type.getElementType()), 0xA5);
  }

  char *at(const std::vector<int64_t> &index) {
    int64_t element = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      element += index[d] * strides[d];
    return bytes.data() + element * elementBytes(type.getElementType());
  }

  void write(const std::vector<int64_t> &index, const Scalar &s) {
    Type element = type.getElementType();
    if (auto floating = dyn_cast<FloatType>(element)) {
      APFloat value(s.f);
      bool lost;
      value.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
      uint64_t bits = value.bitcastToAPInt().getZExtValue(); // Little endian.
      std::memcpy(at(index), &bits, elementBytes(element));
    } else {
      std::memcpy(at(index), &s.i, elementBytes(element));
    }
  }

  Scalar read(const std::vector<int64_t> &index) {
    Type element = type.getElementType();
    unsigned size = elementBytes(element);
    uint64_t bits = 0;
    std::memcpy(&bits, at(index), size);
    Scalar s;
    if (auto floating = dyn_cast<FloatType>(element)) {
      APFloat value(floating.getFloatSemantics(), APInt(floating.getWidth(), bits));
      bool lost;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      s.f = value.convertToDouble();
    } else {
      s.i = element.isInteger(1) ? bits : int64_t(bits << (64 - 8 * size)) >> (64 - 8 * size);
    }
    return s;
  }

  MemRefType type;
  std::vector<int64_t> shape;
  SmallVector<int64_t> strides;
  std::vector<char> bytes;
};

double epsilon(Type type) {
  return type.isBF16() ? 1.0 / 128 : type.isF16() ? 1.0 / 1024 : type.isF64() ? 1e-13 : 2.4e-7;
}

void compare(Memory &ours, const Tensor &reference, double tolerance, unsigned result) {
  Type type = reference.elementType;
  double largest = 0;
  for (const Scalar &s : reference.elements)
    if (std::isfinite(s.f))
      largest = std::max(largest, std::fabs(s.f));
  unsigned shown = 0;
  forEachIndex(reference.shape, [&](const std::vector<int64_t> &index) {
    const Scalar &b = reference.elements[reference.linear(index)];
    Scalar a = ours.read(index);
    bool same = a.i == b.i;
    if (isa<FloatType>(type)) {
      if (std::isnan(b.f))
        same = std::isnan(a.f);
      else if (std::isinf(b.f))
        same = a.f == b.f;
      else
        same = std::fabs(a.f - b.f) <= std::max(tolerance, epsilon(type)) * largest + epsilon(type) * std::fabs(b.f);
    }
    if (same || ++shown > 5)
      return;
    std::string place;
    for (int64_t i : index)
      place += " " + std::to_string(i);
    ADD_FAILURE() << "result " << result << " at" << place << ": got " << a.f << " / " << a.i << ", expected " << b.f
                  << " / " << b.i;
  });
}
} // namespace

void checkTiles(func::FuncOp kernel, const TilingOptions &options) {
  std::string name = kernel.getSymName().str();
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  module->getBody()->push_back(kernel->clone());
  PassManager passes(&context());
  if (!kernel->hasAttr(attr::localTile)) {
    ConfigureKernelsOptions configure;
    configure.device = "h200";
    passes.addPass(createConfigureKernels(configure));
  }
  passes.addPass(createLowerKernelsToTiles());
  std::string errors;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) { errors += diagnostic.str() + "\n"; });
  ASSERT_TRUE(succeeded(passes.run(*module))) << errors;
  auto program = cast<func::FuncOp>(module->getBody()->front());
  std::string text;
  llvm::raw_string_ostream(text) << program;
  SCOPED_TRACE(text);

  std::mt19937 random(options.seed);
  std::uniform_real_distribution<double> real(options.floats.first, options.floats.second);
  std::vector<Memory> memories;
  std::vector<Tensor> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto range = options.range.count(i) ? options.range.at(i) : options.integers;
    std::uniform_int_distribution<int64_t> integer(range.first, range.second);
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> strides = argumentStrides(kernel, i);
    Memory &memory = memories.emplace_back(MemRefType::get(
        tensor.getShape(), tensor.getElementType(), StridedLayoutAttr::get(&context(), 0, strides)));
    Tensor &argument = arguments.emplace_back(tensor);
    forEachIndex(argument.shape, [&](const std::vector<int64_t> &index) {
      Scalar s;
      s.f = real(random);
      s.i = integer(random);
      if (options.specials && random() % options.specials == 0)
        s.f = std::array{NAN, -INFINITY, INFINITY}[random() % 3];
      if (tensor.getElementType().isInteger(1))
        s.i &= 1;
      memory.write(index, s);
    });
    if (options.sorted.count(i)) {
      std::vector<int64_t> values;
      forEachIndex(argument.shape, [&](const std::vector<int64_t> &index) { values.push_back(memory.read(index).i); });
      std::sort(values.begin(), values.end());
      for (size_t place = 0; place < values.size(); ++place) {
        Scalar s;
        s.i = values[place];
        memory.write({(int64_t)place}, s);
      }
    }
    // Through memory, so that what strides make one element is one.
    forEachIndex(argument.shape, [&](const std::vector<int64_t> &index) {
      argument.elements[argument.linear(index)] = memory.read(index);
    });
  }
  std::vector<Tensor> expected = interpret(kernel, arguments);
  for (Type type : kernel.getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    memories.emplace_back(MemRefType::get(tensor.getShape(), tensor.getElementType()));
  }
  SmallVector<void *> pointers;
  for (Memory &memory : memories)
    pointers.push_back(memory.bytes.data());
  if (llvm::Error error = tile::interpret(program, pointers)) {
    FAIL() << llvm::toString(std::move(error));
  }
  for (unsigned r = 0; r < expected.size(); ++r)
    compare(memories[arguments.size() + r], expected[r], options.tolerance, r);
}

void checkTiles(const std::string &text, const TilingOptions &options) {
  SCOPED_TRACE(text);
  auto module = parseSourceString<ModuleOp>(text, &context());
  ASSERT_TRUE(module);
  checkTiles(*module->getOps<func::FuncOp>().begin(), options);
}

} // namespace nova::test
