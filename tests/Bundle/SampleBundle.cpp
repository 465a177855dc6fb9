//===- SampleBundle.cpp - A small host bundle made by hand ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleBundle.h"

#include "nova/Support/File.h"
#include "nova/Support/Hash.h"

#include <bit>
#include <cstdio>
#include <cstdlib>

using namespace nova;
using namespace nova::bundle;

namespace {

TensorDesc tensor(std::string name, std::string role, std::string dtype,
                  std::vector<int64_t> shape,
                  std::optional<std::vector<int64_t>> strides = {}) {
  TensorDesc t;
  t.name = std::move(name);
  t.role = std::move(role);
  t.path = t.role == "parameter" || t.role == "update" ? "model." + t.name : "";
  t.dtype = std::move(dtype);
  t.strides = strides ? *strides : contiguousStrides(shape);
  t.shape = std::move(shape);
  t.bytes = *tensorBytes(t.dtype, t.shape, t.strides);
  return t;
}

OutputDesc output(TensorDesc t, std::optional<uint32_t> updates = {}) {
  OutputDesc o;
  static_cast<TensorDesc &>(o) = std::move(t);
  o.updates = updates;
  return o;
}

Kernel kernel(const char *name, uint64_t points, std::vector<ParamKind> kinds) {
  Kernel k;
  k.name = std::string(name) + "_00000000";
  k.symbol = name;
  k.grid = {points, 1, 1};
  for (ParamKind kind : kinds)
    k.params.push_back({kind, kind == ParamKind::Scalar ? 4u : 8u,
                        kind == ParamKind::Scalar ? 4u : 8u});
  k.schedule = {{"tile", AttrValue(std::vector<AttrValue>{1})},
                {"vector", 8},
                {"reason", "one row each"}};
  return k;
}

Launch launch(uint32_t kernel, std::vector<LaunchArg> args,
              std::vector<uint32_t> after, std::vector<std::string> nodes) {
  Launch l;
  l.kernel = kernel;
  l.args = std::move(args);
  l.after = std::move(after);
  l.nodes = std::move(nodes);
  return l;
}

Launch transfer(LaunchKind kind, std::vector<LaunchArg> args,
                std::string node) {
  Launch l;
  l.kind = kind;
  l.args = std::move(args);
  l.nodes = {std::move(node)};
  return l;
}

std::string floatBytes(float value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}

} // namespace

bundle::Bundle test::sampleBundle(std::string hostObject) {
  Bundle b;
  Manifest &m = b.manifest;
  m.name = "least_squares";
  m.graphDigest = "sha256:" + sha256Hex("least_squares");
  m.producer.novac = "0.1.0";
  m.producer.llvm = "22.1.8";
  m.producer.options = {{"precision", "f32"}, {"fusion", true}};
  m.inputs = {tensor("w", "parameter", "float32", {5}),
              tensor("m", "state", "float32", {5}),
              tensor("lr", "scalar", "float32", {}),
              tensor("count", "scalar", "int64", {}),
              tensor("x", "input", "float32", {7, 5}, {{8, 1}}),
              tensor("t", "input", "float32", {7})};
  m.inputs[3].advance = hexFloat(1);
  m.outputs = {output(tensor("loss", "loss", "float32", {})),
               output(tensor("g", "gradient", "float32", {5})),
               output(tensor("w_new", "update", "float32", {5}), 0),
               output(tensor("m_new", "update", "float32", {5}), 1),
               output(tensor("seen", "output", "int64", {})),
               output(tensor("threes", "output", "uint8", {16}))};
  m.buckets = {{20, {1}}};

  Target t;
  t.name = "host";
  t.device = "x86-64-v3";
  uint32_t code = b.addBlob(kMediaHost, std::move(hostObject));
  // The constant is in the middle of its blob, as in a pool of constants.
  uint32_t data = b.addBlob(kMediaData, "pool" + floatBytes(1.0f / 7));
  t.constants = {{data, 4, 4}};
  const ParamKind P = ParamKind::Pointer, S = ParamKind::Scalar;
  t.kernels = {
      kernel("predict", 7, {P, P, P}), kernel("residual", 1, {P, P, P, P, P}),
      kernel("gradient", 5, {P, P, S, P}), kernel("momentum", 5, {P, P, P, P})};
  for (Kernel &k : t.kernels)
    k.blob = code;
  uint64_t scale = std::bit_cast<uint32_t>(2.0f / 7);
  t.launches = {
      launch(0, {InputRef{4, 0}, InputRef{0, 0}, BufferRef{0, 0}}, {}, {"mm"}),
      launch(1,
             {BufferRef{0, 0}, InputRef{5, 0}, ConstantRef{0, 0},
              BufferRef{1, 0}, OutputRef{0, 0}},
             {0}, {"sub", "pow", "mean"}),
      launch(2,
             {InputRef{4, 0}, BufferRef{1, 0}, Immediate{scale, "float32"},
              OutputRef{1, 0}},
             {1}, {"mm_1"}),
      // w and m by the outputs that update them: the same memory.
      launch(
          3,
          {OutputRef{2, 0}, OutputRef{3, 0}, OutputRef{1, 0}, InputRef{2, 0}},
          {0, 2}, {"add", "mul"}),
      transfer(LaunchKind::Copy,
               {OutputRef{4, 0}, InputRef{3, 0}, Immediate{8, "int64"}},
               "clone"),
      transfer(LaunchKind::Memset,
               {OutputRef{5, 0}, Immediate{3, "uint8"}, Immediate{16, "int64"}},
               "full")};
  // r takes the place of y.
  t.arena.size = 256;
  t.arena.lowerBound = 28;
  t.arena.buffers = {{0, 28, 0, 1, {}}, {0, 28, 1, 2, 0}};
  t.bucketReady = {2};
  m.targets = {t};
  return b;
}

std::string test::sampleHostObject() {
  Expected<std::string> bytes = readFile(NOVA_SAMPLE_HOST_OBJECT, "blob");
  if (!bytes) {
    std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
    std::abort();
  }
  return *bytes;
}
