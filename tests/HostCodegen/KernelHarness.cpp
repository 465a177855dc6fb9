//===- KernelHarness.cpp - Kernel text, compiled, run and compared --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelHarness.h"

#include "nova/IR/Nova.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace nova::test {

MLIRContext &context() {
  static MLIRContext *instance = [] {
    auto *made = new MLIRContext;
    loadHostCodegenDialects(*made);
    return made;
  }();
  return *instance;
}

OwningOpRef<ModuleOp> parse(const std::string &text) {
  auto module = parseSourceString<ModuleOp>(text, &context());
  EXPECT_TRUE(module) << text;
  return module;
}

func::FuncOp kernelOf(ModuleOp module) {
  for (auto func : module.getOps<func::FuncOp>())
    if (func->hasAttr(attr::kernel))
      return func;
  return {};
}

std::string fill(std::string text,
                 const std::map<std::string, std::string> &values) {
  // Longest names first: $MN before $M.
  std::vector<std::pair<std::string, std::string>> sorted(values.begin(),
                                                          values.end());
  std::sort(sorted.begin(), sorted.end(),
            [](auto &a, auto &b) { return a.first.size() > b.first.size(); });
  for (auto &[name, value] : sorted)
    for (size_t at; (at = text.find("$" + name)) != std::string::npos;)
      text.replace(at, name.size() + 1, value);
  return text;
}

LoadedObject::LoadedObject(const std::string &bytes) {
  int fd = memfd_create("kernel", 0);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  close(fd);
}

LoadedObject::~LoadedObject() {
  if (handle)
    dlclose(handle);
}

KernelFunction LoadedObject::get(const std::string &symbol) {
  void *address = handle ? dlsym(handle, symbol.c_str()) : nullptr;
  EXPECT_NE(address, nullptr) << "no symbol " << symbol;
  return reinterpret_cast<KernelFunction>(address);
}

namespace {

uint16_t toBits16(double value, Type type) {
  APFloat f(value);
  bool lost;
  f.convert(cast<FloatType>(type).getFloatSemantics(),
            APFloat::rmNearestTiesToEven, &lost);
  return static_cast<uint16_t>(f.bitcastToAPInt().getZExtValue());
}

double fromBits16(uint16_t bits, Type type) {
  APFloat f(cast<FloatType>(type).getFloatSemantics(), APInt(16, bits));
  bool lost;
  f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  return f.convertToDouble();
}

/// Memory behind a strided tensor, between two guard zones.
struct Buffer {
  static constexpr size_t kGuard = 256;
  static constexpr unsigned char kFill = 0xA5;

  Type type;
  std::vector<int64_t> shape, strides;
  std::vector<unsigned char> bytes;
  size_t offset;

  Buffer(RankedTensorType tensor, ArrayRef<int64_t> strideList)
      : type(tensor.getElementType()), shape(tensor.getShape()),
        strides(strideList) {
    int64_t span = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      span += (shape[d] - 1) * strides[d];
    if (tensor.getNumElements() == 0)
      span = 0;
    bytes.assign(span * elementBytes(type) + 2 * kGuard + 64, kFill);
    // As little alignment as an element has.
    offset = kGuard + 64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64 +
             elementBytes(type) % 64;
  }

  void *data() { return bytes.data() + offset; }
  unsigned char *at(const std::vector<int64_t> &index) {
    int64_t element = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      element += index[d] * strides[d];
    return bytes.data() + offset + element * elementBytes(type);
  }

  void write(const Tensor &tensor) {
    forEachIndex(shape, [&](const std::vector<int64_t> &index) {
      const Scalar &s = tensor.elements[tensor.linear(index)];
      if (type.isF32()) {
        float f = static_cast<float>(s.f);
        std::memcpy(at(index), &f, 4);
      } else if (type.isF64()) {
        std::memcpy(at(index), &s.f, 8);
      } else if (isa<FloatType>(type)) {
        uint16_t bits = toBits16(s.f, type);
        std::memcpy(at(index), &bits, 2);
      } else {
        std::memcpy(at(index), &s.i, elementBytes(type)); // Little endian.
      }
    });
  }

  Tensor read(RankedTensorType tensor) {
    Tensor out(tensor);
    forEachIndex(shape, [&](const std::vector<int64_t> &index) {
      Scalar &s = out.elements[out.linear(index)];
      if (type.isF32()) {
        float f;
        std::memcpy(&f, at(index), 4);
        s.f = f;
      } else if (type.isF64()) {
        std::memcpy(&s.f, at(index), 8);
      } else if (isa<FloatType>(type)) {
        uint16_t bits;
        std::memcpy(&bits, at(index), 2);
        s.f = fromBits16(bits, type);
      } else {
        size_t size = elementBytes(type);
        std::memcpy(&s.i, at(index), size);
        if (type.getIntOrFloatBitWidth() > 1)
          s.i = (s.i << (64 - 8 * size)) >> (64 - 8 * size);
      }
    });
    return out;
  }
};

double epsilon(Type type) {
  return type.isBF16()  ? 1.0 / 256
         : type.isF16() ? 1.0 / 2048
         : type.isF64() ? 1e-15
                        : 1.2e-7;
}

void compare(const Tensor &ours, const Tensor &reference, double tolerance,
             unsigned result) {
  double largest = 0;
  for (const Scalar &s : reference.elements)
    if (std::isfinite(s.f))
      largest = std::max(largest, std::fabs(s.f));
  unsigned shown = 0;
  for (size_t i = 0; i < ours.elements.size() && shown < 5; ++i) {
    const Scalar &a = ours.elements[i], &b = reference.elements[i];
    bool same = a.i == b.i;
    if (isa<FloatType>(ours.elementType)) {
      double eps = epsilon(ours.elementType);
      double bound =
          std::max(tolerance, eps) * largest + 2 * eps * std::fabs(b.f);
      if (std::isnan(b.f))
        same = std::isnan(a.f);
      else if (std::isinf(b.f))
        same = a.f == b.f;
      else
        same = std::fabs(a.f - b.f) <= bound;
    }
    if (!same) {
      ++shown;
      ADD_FAILURE() << "result " << result << " element " << i << ": got "
                    << a.f << " / " << a.i << ", expected " << b.f << " / "
                    << b.i;
    }
  }
}

} // namespace

void checkKernel(const std::string &text, const CheckOptions &options) {
  SCOPED_TRACE(text);
  auto module = parse(text);
  if (!module)
    return;
  func::FuncOp kernel = kernelOf(*module);
  auto object = compileKernel(kernel, "kernel_under_test");
  ASSERT_TRUE(static_cast<bool>(object)) << object.error().message;
  auto shared = linkSharedObject({*object});
  ASSERT_TRUE(static_cast<bool>(shared)) << shared.error().message;
  LoadedObject loaded(*shared);
  KernelFunction function = loaded.get("kernel_under_test");
  ASSERT_NE(function, nullptr);

  std::mt19937 random(options.seed);
  std::normal_distribution<double> normal;
  std::vector<Tensor> arguments;
  std::vector<RankedTensorType> types;
  std::vector<std::vector<int64_t>> strides;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto type = cast<RankedTensorType>(kernel.getArgument(i).getType());
    types.push_back(type);
    auto attribute =
        kernel.getArgAttrOfType<DenseI64ArrayAttr>(i, attr::strides);
    auto list = attribute ? SmallVector<int64_t>(attribute.asArrayRef())
                          : contiguousStrides(type.getShape());
    strides.emplace_back(list.begin(), list.end());
    auto it = options.range.find(i);
    std::pair<int64_t, int64_t> range =
        it != options.range.end() ? it->second
                                  : std::make_pair<int64_t, int64_t>(0, 7);
    std::uniform_int_distribution<int64_t> integer(range.first, range.second);
    // Through memory, so that what strides make one element is one.
    Tensor tensor(type);
    for (Scalar &s : tensor.elements) {
      s.f = normal(random) * options.scale;
      s.i = type.getElementType().isInteger(1) ? integer(random) & 1
                                               : integer(random);
    }
    Buffer buffer(type, list);
    buffer.write(tensor);
    arguments.push_back(buffer.read(type));
  }
  std::vector<Tensor> reference = interpret(kernel, arguments);

  std::vector<std::pair<int64_t, int64_t>> pairs;
  if (auto inplace = kernel->getAttrOfType<ArrayAttr>(attr::inplace))
    for (Attribute pair : inplace)
      pairs.emplace_back(cast<DenseI64ArrayAttr>(pair)[0],
                         cast<DenseI64ArrayAttr>(pair)[1]);

  const int64_t points = kernelGridPoints(kernel);
  std::vector<std::vector<unsigned char>> firstBits;
  for (bool inPlace : {false, true}) {
    if (inPlace && pairs.empty())
      continue;
    for (int cut = 0; cut < 3; ++cut) {
      std::vector<Buffer> inputs, outputs;
      std::vector<void *> pointers;
      for (unsigned i = 0; i < arguments.size(); ++i) {
        inputs.emplace_back(types[i], strides[i]);
        inputs.back().write(arguments[i]);
      }
      for (Type type : kernel.getResultTypes()) {
        auto tensor = cast<RankedTensorType>(type);
        outputs.emplace_back(tensor, contiguousStrides(tensor.getShape()));
      }
      std::vector<Buffer *> where;
      for (Buffer &output : outputs)
        where.push_back(&output);
      if (inPlace)
        for (auto [argument, result] : pairs)
          where[result] = &inputs[argument];
      for (Buffer &input : inputs)
        pointers.push_back(input.data());
      for (Buffer *output : where)
        pointers.push_back(output->data());
      std::vector<Buffer> before = inputs;

      if (cut == 0) {
        function(pointers.data(), 0, points);
      } else if (cut == 1) {
        for (int64_t p = points; p-- > 0;)
          function(pointers.data(), p, p + 1);
      } else {
        for (int64_t at = 0; at < points;) {
          int64_t next = std::min<int64_t>(points, at + 1 + random() % 5);
          function(pointers.data(), at, next);
          at = next;
        }
      }

      for (unsigned i = 0; i < inputs.size(); ++i) {
        bool written = false;
        for (auto [argument, result] : pairs)
          written |= inPlace && argument == static_cast<int64_t>(i);
        if (!written) {
          EXPECT_EQ(inputs[i].bytes, before[i].bytes)
              << "argument " << i << " was written";
        }
      }
      std::vector<std::vector<unsigned char>> bits;
      for (unsigned r = 0; r < where.size(); ++r) {
        auto tensor = cast<RankedTensorType>(kernel.getResultTypes()[r]);
        size_t length =
            tensor.getNumElements() * elementBytes(tensor.getElementType());
        const auto &bytes = where[r]->bytes;
        auto begin = bytes.begin() + where[r]->offset;
        bits.emplace_back(begin, begin + length);
        for (size_t b = 0; b < bytes.size(); ++b)
          if (b < where[r]->offset || b >= where[r]->offset + length) {
            ASSERT_EQ(bytes[b], Buffer::kFill)
                << "result " << r << ": byte beside it was written";
          }
        if (firstBits.empty())
          compare(where[r]->read(tensor), reference[r], options.tolerance, r);
      }
      if (firstBits.empty())
        firstBits = bits;
      EXPECT_EQ(firstBits, bits)
          << "cut " << cut << (inPlace ? " in place" : "");
      if (::testing::Test::HasFailure())
        return;
    }
  }
}

std::string compileError(const std::string &text) {
  auto module = parse(text);
  if (!module)
    return "";
  auto object = compileKernel(kernelOf(*module), "kernel_under_test");
  if (object)
    return "it compiled";
  return object.error().message;
}

} // namespace nova::test
