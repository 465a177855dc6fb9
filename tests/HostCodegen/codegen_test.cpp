//===- codegen_test.cpp - Objects: same bytes, no imports, clear errors ---===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

using namespace nova;
using namespace nova::test;

namespace {

/// A kernel of one elementwise op on `n` floats.
std::string unary(const std::string &op, int n,
                  const std::string &type = "f32") {
  return fill(R"(
    #id = affine_map<(d0) -> (d0)>
    func.func private @unary_$N(%x: tensor<$Nx$T>) -> (tensor<$Nx$T> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: $N>, nova.tile = array<i64: $N>} {
      %e = tensor.empty() : tensor<$Nx$T>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<$Nx$T>) outs(%e : tensor<$Nx$T>) {
      ^bb0(%a: $T, %out: $T):
        %0 = $OP : $T
        linalg.yield %0 : $T
      } -> tensor<$Nx$T>
      return %y : tensor<$Nx$T>
    })",
              {{"N", std::to_string(n)}, {"OP", op}, {"T", type}});
}

TEST(Codegen, ElementaryFunctions) {
  CheckOptions options;
  options.tolerance = 1e-6;
  for (const char *op :
       {"math.exp %a", "math.tanh %a", "math.erf %a", "math.sqrt %a",
        "math.rsqrt %a", "math.absf %a", "math.log %a"})
    for (int n : {5, 35})
      checkKernel(unary(op, n), options);
}

// Same bytes again, in any thread and any order; and bytes depend on nothing
// but kernel and symbol: another context and surrounding module change nothing.
TEST(Codegen, SameBytesFromManyThreads) {
  std::vector<std::string> texts;
  for (int n : {5, 64, 257})
    for (const char *op : {"math.exp %a", "arith.negf %a", "arith.mulf %a, %a"})
      texts.push_back(unary(op, n));
  std::string all;
  std::vector<std::string> alone;
  for (size_t i = 0; i < texts.size(); ++i) {
    auto module = parse(texts[i]);
    auto object = compileKernel(kernelOf(*module), "k" + std::to_string(i));
    ASSERT_TRUE(static_cast<bool>(object)) << object.error().message;
    alone.push_back(*object);
  }
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  for (const std::string &text : texts)
    modules.push_back(parse(text));
  std::vector<std::vector<std::string>> got(
      4, std::vector<std::string>(texts.size()));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < got.size(); ++t)
    threads.emplace_back([&, t] {
      for (size_t step = 0; step < texts.size(); ++step) {
        size_t i = t % 2 ? texts.size() - 1 - step : step;
        auto object =
            compileKernel(kernelOf(*modules[i]), "k" + std::to_string(i));
        got[t][i] = object ? *object : object.error().message;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &objects : got)
    EXPECT_EQ(objects, alone);

  // Linking is as steady, and from several threads too.
  auto shared = linkSharedObject(alone);
  ASSERT_TRUE(static_cast<bool>(shared)) << shared.error().message;
  std::vector<std::string> linked(2);
  std::thread one([&] { linked[0] = *linkSharedObject(alone); });
  std::thread two([&] { linked[1] = *linkSharedObject(alone); });
  one.join();
  two.join();
  EXPECT_EQ(linked[0], *shared);
  EXPECT_EQ(linked[1], *shared);
  LoadedObject loaded(*shared);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_NE(loaded.get("k" + std::to_string(i)), nullptr);
}

// An error in one thread is that thread's alone.
TEST(Codegen, ErrorsStayWithTheirThread) {
  auto good = parse(unary("arith.negf %a", 9));
  auto bad = parse(
      R"(func.func private @bad(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nova.kernel} {
    return %x : tensor<4xf32>
  })");
  std::vector<std::thread> threads;
  std::vector<std::string> said(8);
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        auto object = compileKernel(kernelOf(t % 2 ? *bad : *good), "k");
        said[t] = object ? "" : object.error().message;
      }
    });
  for (auto &thread : threads)
    thread.join();
  for (int t = 0; t < 8; ++t) {
    if (t % 2) {
      EXPECT_NE(
          said[t].find(
              "kernel 'bad': expected attributes nova.space and nova.tile"),
          std::string::npos)
          << said[t];
      EXPECT_EQ(said[t].find("bad"), said[t].rfind("bad")) << said[t];
    } else {
      EXPECT_EQ(said[t], "");
    }
  }
}

TEST(Codegen, ImportsAreRefused) {
  EXPECT_EQ(compileError(unary("arith.remf %a, %a", 4)),
            "kernel 'unary_4': its host code calls 'fmodf', which nothing "
            "defines (a host kernel "
            "imports nothing)");
}

TEST(Codegen, UnknownProcessor) {
  auto module = parse(unary("arith.negf %a", 4));
  HostCodegenOptions options;
  options.cpu = "z80";
  auto object = compileKernel(kernelOf(*module), "k", options);
  ASSERT_FALSE(static_cast<bool>(object));
  EXPECT_EQ(object.error().message, "unknown processor 'z80'");
  EXPECT_EQ(object.error().code, ErrorCode::Usage);
}

TEST(Codegen, LinkErrors) {
  auto garbage = linkSharedObject({std::string("not an object")});
  ASSERT_FALSE(static_cast<bool>(garbage));
  EXPECT_NE(garbage.error().message.find("linking 1 host objects failed"),
            std::string::npos);
  auto module = parse(unary("arith.negf %a", 4));
  auto object = compileKernel(kernelOf(*module), "k");
  ASSERT_TRUE(static_cast<bool>(object));
  auto twice = linkSharedObject({*object, *object});
  ASSERT_FALSE(static_cast<bool>(twice));
  EXPECT_NE(twice.error().message.find("duplicate symbol: k"),
            std::string::npos)
      << twice.error().message;
  // And a failed link leaves the linker usable.
  EXPECT_TRUE(static_cast<bool>(linkSharedObject({*object})));
}

// NaN and infinity pass through as IEEE says: nothing is assumed away.
TEST(Codegen, SpecialValues) {
  auto module = parse(R"(
    #id = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    func.func private @max(%x: tensor<2x19xf32>) -> (tensor<2xf32> {nova.map = array<i64: 0>})
        attributes {nova.kernel, nova.space = array<i64: 2>, nova.tile = array<i64: 1>} {
      %low = arith.constant dense<0xFF800000> : tensor<2xf32>
      %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<2x19xf32>) outs(%low : tensor<2xf32>) {
      ^bb0(%a: f32, %acc: f32):
        %0 = arith.maximumf %a, %acc : f32
        linalg.yield %0 : f32
      } -> tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  auto object = compileKernel(kernelOf(*module), "k");
  ASSERT_TRUE(static_cast<bool>(object)) << object.error().message;
  auto shared = linkSharedObject({*object});
  ASSERT_TRUE(static_cast<bool>(shared)) << shared.error().message;
  LoadedObject loaded(*shared);
  for (int at = 0; at < 19; ++at) {
    std::vector<float> x(38, -INFINITY), y(2);
    x[at] = NAN;
    x[19 + at] = INFINITY;
    void *pointers[] = {x.data(), y.data()};
    loaded.get("k")(pointers, 0, 2);
    EXPECT_TRUE(std::isnan(y[0])) << at;
    EXPECT_EQ(y[1], INFINITY) << at;
  }
}

} // namespace
