//===- split_reductions_test.cpp - Two stages compute what one does --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small steps at stage `fused`, as they are and after nova-split-reductions, both
// compiled for the CPU, launched one after another and compared.
//
//===----------------------------------------------------------------------===//
#include "../HostCodegen/KernelHarness.h"

#include "nova/Import/Import.h"
#include "nova/Pipelines/Pipelines.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace nova;
using namespace nova::test;

namespace {

using Bytes = std::vector<unsigned char>;

int64_t elementsOf(Type type) { return cast<RankedTensorType>(type).getNumElements(); }
int64_t sizeOf(Type type) {
  return elementsOf(type) * elementBytes(cast<RankedTensorType>(type).getElementType());
}

/// One input of a step, by its type: floats about as large as one, integers from
/// -8 to 7.
Bytes randomBytes(Type type, std::mt19937 &random) {
  Bytes bytes(sizeOf(type));
  Type element = cast<RankedTensorType>(type).getElementType();
  std::normal_distribution<float> normal;
  for (int64_t i = 0, e = elementsOf(type); i < e; ++i) {
    float f = normal(random);
    int64_t n = (int64_t)(random() % 16) - 8;
    std::memcpy(&bytes[i * elementBytes(element)], element.isF32() ? (void *)&f : (void *)&n, elementBytes(element));
  }
  return bytes;
}

struct SplitReductionsOnHost : testing::Test {
  SplitReductionsOnHost() {
    loadGraphDialects(context);
    loadHostCodegenDialects(context);
  }

  OwningOpRef<ModuleOp> fused(const std::string &text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    PassManager manager(&context);
    buildStage(manager, {}, Stage::Simplified);
    buildStage(manager, {}, Stage::Fused);
    EXPECT_TRUE(succeeded(manager.run(*module))) << text;
    return module;
  }

  /// Runs the step of a fused module; its results.
  std::vector<Bytes> run(ModuleOp module, const std::vector<Bytes> &inputs) {
    PassManager manager(&context);
    buildStage(manager, {}, Stage::Configured);
    EXPECT_TRUE(succeeded(manager.run(module)));
    std::vector<std::string> objects;
    for (auto kernel : module.getOps<func::FuncOp>())
      if (isKernel(kernel)) {
        auto object = compileKernel(kernel, kernel.getSymName());
        EXPECT_TRUE(static_cast<bool>(object)) << object.error().message;
        objects.push_back(object ? *object : "");
      }
    auto shared = linkSharedObject(objects);
    EXPECT_TRUE(static_cast<bool>(shared)) << shared.error().message;
    LoadedObject loaded(*shared);

    func::FuncOp step = findStep(module);
    llvm::DenseMap<Value, Bytes> memory;
    for (auto [argument, bytes] : llvm::zip_equal(step.getArguments(), inputs))
      memory[argument] = bytes;
    for (auto launch : step.getBody().front().getOps<LaunchOp>()) {
      for (Value result : launch.getResults())
        memory[result] = Bytes(sizeOf(result.getType()), 0xA5);
      std::vector<void *> pointers;
      for (auto [operand, view] : llvm::zip_equal(launch.getInputs(), launch.getViews())) {
        Type element = cast<RankedTensorType>(operand.getType()).getElementType();
        pointers.push_back(memory.at(operand).data() + cast<ViewAttr>(view).getOffset() * elementBytes(element));
      }
      for (Value result : launch.getResults())
        pointers.push_back(memory[result].data());
      auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(launch, launch.getKernelAttr());
      loaded.get(launch.getKernel().str())(pointers.data(), 0, kernelGridPoints(kernel));
    }
    std::vector<Bytes> results;
    for (Value result : step.getBody().front().getTerminator()->getOperands())
      results.push_back(memory.at(result));
    return results;
  }

  /// Both ways, on the same inputs. Returns how many kernels more there are.
  int64_t check(const std::string &text, const char *device = "h200", unsigned seed = 1) {
    SCOPED_TRACE(text);
    OwningOpRef<ModuleOp> plain = fused(text);
    OwningOpRef<ModuleOp> changed = plain->clone();
    PassManager manager(&context);
    SplitReductionsOptions split;
    split.device = device;
    manager.addPass(createSplitReductions(split));
    manager.addPass(createNameKernels());
    EXPECT_TRUE(succeeded(manager.run(*changed)));
    func::FuncOp step = findStep(*plain);
    std::mt19937 random(seed);
    std::vector<Bytes> inputs;
    for (Type type : step.getArgumentTypes())
      inputs.push_back(randomBytes(type, random));
    auto count = [](ModuleOp module) { return llvm::range_size(module.getOps<func::FuncOp>()); };
    int64_t more = (int64_t)count(*changed) - (int64_t)count(*plain);
    std::vector<Bytes> want = run(*plain, inputs), got = run(*changed, inputs);
    for (auto [r, type] : llvm::enumerate(step.getResultTypes()))
      compare(cast<RankedTensorType>(type), got[r], want[r], r);
    return more;
  }

  void compare(RankedTensorType type, const Bytes &got, const Bytes &want, unsigned result) {
    if (!type.getElementType().isF32()) {
      EXPECT_EQ(got, want) << "result " << result;
      return;
    }
    auto floats = [&](const Bytes &bytes) {
      std::vector<float> values(bytes.size() / 4);
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    };
    std::vector<float> a = floats(got), b = floats(want);
    float largest = 0;
    for (float value : b)
      largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-4 * largest + 1e-6) << "result " << result << " element " << i;
  }

  MLIRContext context;
};

std::string input(const std::string &name, const std::string &type) {
  return "%" + name + ": " + type + " {nova.name = \"" + name + "\", nova.path = \"" + name + "\", nova.role = \"input\"}";
}
std::string output(const std::string &name, const std::string &type) {
  return type + " {nova.name = \"" + name + "\", nova.role = \"output\"}";
}
std::string step(const std::string &inputs, const std::string &outputs, const std::string &body) {
  return "func.func @step(" + inputs + ") -> (" + outputs + ") attributes {nova.graph = \"g\"} {\n" + body + "}\n";
}

} // namespace

/// A layer's bias and weight gradients and a mean squared loss.
TEST_F(SplitReductionsOnHost, GradientsAndALossInTwoStages) {
  std::string text = step(
      input("x", "tensor<2048x24xf32>") + ", " + input("g", "tensor<2048x40xf32>"),
      output("bias", "tensor<40xf32>") + ", " + output("weight", "tensor<24x40xf32>") + ", " + output("loss", "tensor<f32>"),
      R"mlir(
  %b = nova.sum %g {dims = array<i64: 0>} : (tensor<2048x40xf32>) -> tensor<40xf32>
  %w = nova.matmul %x, %g {transpose_lhs} : (tensor<2048x24xf32>, tensor<2048x40xf32>) -> tensor<24x40xf32>
  %q = nova.mul %x, %x : (tensor<2048x24xf32>, tensor<2048x24xf32>) -> tensor<2048x24xf32>
  %l = nova.sum %q {dims = array<i64: 0, 1>} : (tensor<2048x24xf32>) -> tensor<f32>
  return %b, %w, %l : tensor<40xf32>, tensor<24x40xf32>, tensor<f32>
)mlir");
  EXPECT_GT(check(text), 0);
}

/// Elements of a launch's views: a transposed slice, reduced along what was cut.
TEST_F(SplitReductionsOnHost, ReductionsOfStridedViews) {
  std::string text = step(input("x", "tensor<48x300xf32>"), output("s", "tensor<40xf32>") + ", " + output("m", "tensor<40xf32>"),
                          R"mlir(
  %t = nova.transpose %x {permutation = array<i64: 1, 0>} : (tensor<48x300xf32>) -> tensor<300x48xf32>
  %c = nova.slice %t {offsets = array<i64: 7, 3>, sizes = array<i64: 256, 40>, strides = array<i64: 1, 1>} : (tensor<300x48xf32>) -> tensor<256x40xf32>
  %s = nova.sum %c {dims = array<i64: 0>} : (tensor<256x40xf32>) -> tensor<40xf32>
  %m = nova.max %c {dims = array<i64: 0>} : (tensor<256x40xf32>) -> tensor<40xf32>
  return %s, %m : tensor<40xf32>, tensor<40xf32>
)mlir");
  EXPECT_GT(check(text), 0);
}

/// Random shapes, elementwise chains, permutations and reductions.
TEST_F(SplitReductionsOnHost, RandomReductionsInTwoStages) {
  std::mt19937 random(11);
  auto pick = [&](auto... values) {
    std::array list{values...};
    return list[random() % list.size()];
  };
  int64_t more = 0;
  for (int round = 0; round < 24; ++round) {
    std::string body, outputs, values, types;
    SmallVector<int64_t> shape;
    size_t rank = 1 + random() % 3;
    for (size_t d = 0; d < rank; ++d)
      shape.push_back(rank == 1 ? pick(4096, 640, 130) : pick(1, 3, 16, 32, 48, 64));
    auto typeOf = [](ArrayRef<int64_t> sizes, const std::string &element) {
      std::string text = "tensor<";
      for (int64_t size : sizes)
        text += std::to_string(size) + "x";
      return text + element + ">";
    };
    std::string element = pick("f32", "f32", "i32");
    std::string type = typeOf(shape, element);
    std::string inputs = input("a", type) + ", " + input("b", type);
    std::string value = "%a";
    if (random() % 2) {
      body += "  %p = nova." + std::string(pick("mul", "add", "maximum")) + " %a, %b : (" + type + ", " + type + ") -> " + type + "\n";
      value = "%p";
    }
    if (random() % 2) {
      SmallVector<int64_t> order, permuted;
      for (size_t d = 0; d < rank; ++d)
        order.push_back(d);
      std::shuffle(order.begin(), order.end(), random);
      std::string list;
      for (int64_t d : order) {
        permuted.push_back(shape[d]);
        list += (list.empty() ? "" : ", ") + std::to_string(d);
      }
      body += "  %t = nova.transpose " + value + " {permutation = array<i64: " + list + ">} : (" + type + ") -> " + typeOf(permuted, element) + "\n";
      shape = permuted;
      type = typeOf(shape, element);
      value = "%t";
    }
    for (int r = 0, count = 1 + random() % 3; r < count; ++r) {
      std::string dims;
      SmallVector<int64_t> left;
      for (size_t d = 0; d < rank; ++d)
        if (random() % 3 || (d + 1 == rank && dims.empty()))
          dims += (dims.empty() ? "" : ", ") + std::to_string(d);
        else
          left.push_back(shape[d]);
      std::string name = "r" + std::to_string(r), reduced = typeOf(left, element);
      body += "  %" + name + " = nova." + std::string(pick("sum", "max", "min")) + " " + value + " {dims = array<i64: " + dims + ">} : (" + type + ") -> " + reduced + "\n";
      outputs += (r ? ", " : "") + output(name, reduced);
      values += (r ? ", %" : "%") + name;
      types += (r ? ", " : "") + reduced;
    }
    more += check(step(inputs, outputs, body + "  return " + values + " : " + types + "\n"), pick("h200", "rtx3060", "rtx5090"), round);
    if (HasFailure())
      return;
  }
  EXPECT_GT(more, 8);
}
