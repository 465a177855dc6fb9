//===- micro_kernels_test.cpp - The simulator beside a device -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "MicroKernels.h"
#include "Truth.h"

#include "nova/Simulator/Simulator.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

using namespace nova;
using namespace micro;

namespace {

const std::map<std::string, Truth> &truths() {
  static const auto read = readTruth(NOVA_TRUTH);
  return read;
}

double valueOf(char format, uint64_t bits) {
  switch (format) {
  case 'd':
    return std::bit_cast<double>(bits);
  case 's':
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  case 'b':
    return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
  default: {
    double magnitude =
        (bits & 0x7c00) == 0x7c00 ? ((bits & 0x3ff) ? NAN : INFINITY)
        : (bits & 0x7c00)         ? std::ldexp(double(0x400 | (bits & 0x3ff)),
                                               int(bits >> 10 & 31) - 25)
                                  : std::ldexp(double(bits & 0x3ff), -24);
    return (bits & 0x8000) ? -magnitude : magnitude;
  }
  }
}

double ulpOf(char format, double v) {
  int significand = format == 'd'   ? 52
                    : format == 's' ? 23
                    : format == 'b' ? 7
                                    : 10;
  int least = format == 'd' ? -1022 : format == 'h' ? -14 : -126;
  return std::ldexp(1.0, std::max(v == 0 ? least : std::ilogb(v), least) -
                             significand);
}

/// `input` is the first operand.
bool near(const Tolerance &t, uint64_t got, uint64_t expected, double input) {
  double a = valueOf(t.format, got), e = valueOf(t.format, expected);
  if (std::isnan(a) || std::isnan(e))
    return std::isnan(a) && std::isnan(e);
  if (a == e)
    return true;
  if (std::isinf(a) || std::isinf(e))
    return false;
  double difference = std::fabs(a - e);
  switch (t.kind) {
  case Tolerance::Ulps:
    return difference <= t.amount * ulpOf(t.format, e);
  case Tolerance::Relative:
    return difference <=
           std::ldexp(std::max(std::fabs(e), 0x1p-126), -int(t.amount));
  case Tolerance::Absolute:
    // Where the ISA documents no error (large arguments of sin) none is held.
    return std::fabs(input) > 300 ||
           difference <=
               std::ldexp(std::max(std::fabs(e), 1.0), -int(t.amount));
  default:
    return false;
  }
}

class MicroKernels : public testing::TestWithParam<size_t> {};

TEST_P(MicroKernels, AgreesWithTheDevice) {
  const Case &c = cases()[GetParam()];
  SCOPED_TRACE(c.name);
  Expected<sim::Kernel> kernel = sim::Kernel::load(c.ptx, "micro", c.name);
  ASSERT_TRUE(bool(kernel)) << kernel.error().message;
  std::vector<uint64_t> in = c.in, out(size_t(c.blocks) * kThreads * c.outputs);
  std::vector<sim::Argument> arguments(2);
  auto memory = [](std::vector<uint64_t> &words, const char *name) {
    sim::Memory m;
    m.name = name;
    m.data = reinterpret_cast<uint8_t *>(words.data());
    m.size = words.size() * 8;
    return m;
  };
  arguments[0].memory = memory(in, "in");
  arguments[1].memory = memory(out, "out");
  for (const Map &m : c.maps) {
    sim::TensorMap map;
    map.memory = *arguments[m.onOut].memory;
    map.offset = m.offset;
    map.sizes = m.sizes;
    map.strides = m.strides;
    map.box = m.box;
    map.elementStrides = m.elementStrides;
    map.elementType = m.type;
    map.swizzle = m.swizzle;
    map.fill = m.fill;
    arguments.emplace_back();
    arguments.back().map = std::move(map);
  }
  sim::Shape shape;
  shape.block = {kThreads, 1, 1};
  shape.grid = shape.cluster = {c.blocks, 1, 1};
  sim::Options options;
  options.threads = 1;
  Expected<sim::Outcome> outcome = kernel->launch(shape, arguments, options);
  ASSERT_TRUE(bool(outcome)) << outcome.error().message;
  ASSERT_FALSE(outcome->fault) << outcome->fault->text();
  auto truth = truths().find(c.name);
  if (truth == truths().end())
    GTEST_SKIP() << "runs without a fault; no results of a device yet";
  ASSERT_EQ(truth->second.digest, digestOf(c)) << "results of another kernel";
  ASSERT_FALSE(truth->second.words.empty()) << "the device refused it";
  unsigned wrong = 0;
  for (size_t k = 0; k < out.size(); ++k) {
    uint64_t expected = truth->second.words[k];
    bool good = out[k] == expected;
    const uint64_t *words = &c.in[k / c.outputs * c.inputs];
    if (!good && c.tolerance.kind != Tolerance::Exact)
      good = near(c.tolerance, out[k], expected,
                  valueOf(c.tolerance.format, words[0]));
    if (good || ++wrong > 3)
      continue;
    std::string inputs;
    char text[64];
    for (unsigned i = 0; i < c.inputs; ++i) {
      std::snprintf(text, sizeof text, " %llx", (unsigned long long)words[i]);
      inputs += text;
    }
    std::snprintf(text, sizeof text, "got %llx, expected %llx",
                  (unsigned long long)out[k], (unsigned long long)expected);
    ADD_FAILURE() << "thread " << k / c.outputs << " output " << k % c.outputs
                  << ": " << text << ", inputs" << inputs;
  }
  EXPECT_EQ(wrong, 0u) << "of " << out.size();
}

INSTANTIATE_TEST_SUITE_P(All, MicroKernels,
                         testing::Range<size_t>(0, cases().size()),
                         [](const testing::TestParamInfo<size_t> &info) {
                           std::string name;
                           for (char ch : cases()[info.param].name)
                             name +=
                                 std::isalnum(static_cast<unsigned char>(ch))
                                     ? ch
                                     : '_';
                           return name + "_" + std::to_string(info.param);
                         });

} // namespace
