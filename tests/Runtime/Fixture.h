//===- Fixture.h - The sample bundle in a folder, and its reference -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_RUNTIME_FIXTURE_H
#define NOVA_TESTS_RUNTIME_FIXTURE_H

#include "Bundle/SampleBundle.h"
#include "nova/Support/Safetensors.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace nova::test {

/// One step of least squares with momentum, in double.
struct Reference {
  std::vector<double> w, m, x, t, g; ///< x dense, [7,5]
  double lr = 0, loss = 0;

  void step() {
    std::vector<double> r(7);
    loss = 0;
    for (int i = 0; i < 7; ++i) {
      double y = 0;
      for (int j = 0; j < 5; ++j)
        y += x[5 * i + j] * w[j];
      r[i] = y - t[i];
      loss += r[i] * r[i] / 7;
    }
    g.assign(5, 0);
    for (int j = 0; j < 5; ++j) {
      for (int i = 0; i < 7; ++i)
        g[j] += 2.0 / 7 * r[i] * x[5 * i + j];
      m[j] = 0.75 * m[j] + g[j];
      w[j] -= lr * m[j];
    }
  }

  /// Some inputs that are exact in float.
  static Reference start() {
    Reference s;
    for (int i = 0; i < 35; ++i)
      s.x.push_back((i * 7 % 11 - 5) / 4.0);
    for (int i = 0; i < 7; ++i)
      s.t.push_back((i * 5 % 7 - 3) / 2.0);
    for (int j = 0; j < 5; ++j) {
      s.w.push_back((j - 2) / 8.0);
      s.m.push_back((j % 3 - 1) / 16.0);
    }
    s.lr = 0.125;
    return s;
  }
};

/// Named tensors on their way into a safetensors file.
class TensorFile {
public:
  void add(const std::string &name, const std::string &dtype,
           std::vector<int64_t> shape, std::string bytes) {
    data[name] = {dtype, std::move(shape), std::move(bytes)};
  }
  void floats(const std::string &name, std::vector<int64_t> shape,
              const std::vector<double> &values) {
    std::string bytes;
    for (double v : values) {
      float f = static_cast<float>(v);
      bytes.append(reinterpret_cast<const char *>(&f), sizeof f);
    }
    add(name, "F32", std::move(shape), bytes);
  }
  void int64(const std::string &name, int64_t value) {
    add(name, "I64", {},
        std::string(reinterpret_cast<const char *>(&value), sizeof value));
  }
  void remove(const std::string &name) { data.erase(name); }
  std::string &bytes(const std::string &name) { return data[name].bytes; }
  void write(const std::string &path) const {
    std::vector<SafetensorsTensor> list;
    for (const auto &[name, t] : data)
      list.push_back({name, t.dtype, t.shape, t.bytes.data(), t.bytes.size()});
    Status s = writeSafetensors(path, list);
    ASSERT_TRUE(static_cast<bool>(s)) << s.error().message;
  }

private:
  struct Item {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Item> data;
};

/// A temporary folder with the sample bundle as `bundle`.
class SampleTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "nova-rt-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
    bundle = root + "/sample.nova";
    publish(sampleBundle(sampleHostObject()));
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void publish(const bundle::Bundle &b) {
    auto r = bundle::publishBundle(bundle, b, "{}\n");
    ASSERT_TRUE(static_cast<bool>(r)) << r.error().message;
  }

  /// in/ and out/ of one step from Reference::start().
  static TensorFile dataFile() {
    Reference s = Reference::start();
    TensorFile file;
    file.floats("in/w", {5}, s.w);
    file.floats("in/m", {5}, s.m);
    file.floats("in/lr", {}, {s.lr});
    file.int64("in/count", 41);
    file.floats("in/x", {7, 5}, s.x);
    file.floats("in/t", {7}, s.t);
    s.step();
    file.floats("out/0", {}, {s.loss});
    file.floats("out/1", {5}, s.g);
    file.floats("out/2", {5}, s.w);
    file.floats("out/3", {5}, s.m);
    file.int64("out/4", 41);
    file.add("out/5", "U8", {16}, std::string(16, '\3'));
    return file;
  }

  std::string root, bundle;
};

} // namespace nova::test

#endif // NOVA_TESTS_RUNTIME_FIXTURE_H
