//===- GpuKernelText.cpp - A compiled GPU kernel as bytes, and back --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GpuKernelText.h"

#include "nova/Pipelines/KernelStore.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace nova {

KeyBuilder kernelKey(mlir::func::FuncOp kernel, const char *code) {
  std::string text;
  raw_string_ostream os(text);
  kernel->print(
      os, mlir::OpPrintingFlags().printGenericOpForm().useLocalScope());
  KeyBuilder key;
  key.section("kernel", text).section("code", code);
  return key;
}

static json::Array numbers(ArrayRef<uint64_t> list) {
  json::Array array;
  for (uint64_t number : list)
    array.push_back(number);
  return array;
}

std::vector<std::string> writeGpuKernel(const GpuKernelCode &code) {
  json::Array rejections, maps, warnings;
  for (const Rejection &rejection : code.rejections)
    rejections.push_back(json::Object{{"candidate", uint64_t(rejection.candidate)},
                                      {"why", json::fixUTF8(rejection.why)}});
  for (const TensorMapParam &map : code.tensorMaps)
    maps.push_back(json::Object{{"argument", uint64_t(map.argument)},
                                {"element", map.element},
                                {"sizes", numbers(map.sizes)},
                                {"strides", numbers(map.strides)},
                                {"box", numbers(map.box)}});
  for (const AssemblerWarning &warning : code.warnings)
    warnings.push_back(json::Object{{"code", json::fixUTF8(warning.code)},
                                    {"text", json::fixUTF8(warning.text)}});
  json::Value rest = json::Object{
      {"candidate", uint64_t(code.candidate)},
      {"rejections", std::move(rejections)},
      {"trouble", json::fixUTF8(code.trouble)},
      {"threads", uint64_t(code.threads)},
      {"blocks", code.blocks},
      {"cluster", numbers({code.cluster[0], code.cluster[1], code.cluster[2]})},
      {"registers", code.registers},
      {"spill_bytes", code.spillBytes},
      {"stack_bytes", code.stackBytes},
      {"static_shared_bytes", code.staticSharedBytes},
      {"dynamic_shared_bytes", code.dynamicSharedBytes},
      {"tensor_maps", std::move(maps)},
      {"warnings", std::move(warnings)}};
  std::string text;
  raw_string_ostream(text) << rest;
  return {code.ptx, code.cubin, text};
}

namespace {
/// Reads fields; one that is not there, or something else, makes all of it bad.
struct Fields {
  const json::Object *object;
  bool &good;

  uint64_t number(StringRef name) {
    const json::Value *value = object ? object->get(name) : nullptr;
    auto number = value ? value->getAsUINT64() : std::nullopt;
    good &= number.has_value();
    return number.value_or(0);
  }
  std::string text(StringRef name) {
    auto value = object ? object->getString(name) : std::nullopt;
    good &= value.has_value();
    return value.value_or("").str();
  }
  std::vector<uint64_t> numbers(StringRef name) {
    std::vector<uint64_t> list;
    const json::Array *array = object ? object->getArray(name) : nullptr;
    good &= array != nullptr;
    for (size_t i = 0; array && i < array->size(); ++i) {
      auto number = (*array)[i].getAsUINT64();
      good &= number.has_value();
      list.push_back(number.value_or(0));
    }
    return list;
  }
  std::vector<Fields> objects(StringRef name) {
    std::vector<Fields> list;
    const json::Array *array = object ? object->getArray(name) : nullptr;
    good &= array != nullptr;
    for (size_t i = 0; array && i < array->size(); ++i)
      list.push_back({(*array)[i].getAsObject(), good});
    return list;
  }
};
} // namespace

std::optional<GpuKernelCode> readGpuKernel(std::vector<std::string> parts,
                                           size_t candidates) {
  if (parts.size() != 3)
    return std::nullopt;
  llvm::Expected<json::Value> value = json::parse(parts[2]);
  if (!value) {
    consumeError(value.takeError());
    return std::nullopt;
  }
  bool good = true;
  Fields fields{value->getAsObject(), good};
  GpuKernelCode code;
  code.ptx = std::move(parts[0]);
  code.cubin = std::move(parts[1]);
  code.candidate = fields.number("candidate");
  code.trouble = fields.text("trouble");
  code.threads = fields.number("threads");
  code.blocks = fields.number("blocks");
  code.registers = fields.number("registers");
  code.spillBytes = fields.number("spill_bytes");
  code.stackBytes = fields.number("stack_bytes");
  code.staticSharedBytes = fields.number("static_shared_bytes");
  code.dynamicSharedBytes = fields.number("dynamic_shared_bytes");
  std::vector<uint64_t> cluster = fields.numbers("cluster");
  good &= cluster.size() == 3;
  for (size_t i = 0; good && i < 3; ++i)
    code.cluster[i] = cluster[i];
  for (Fields &rejection : fields.objects("rejections"))
    code.rejections.push_back(
        {rejection.number("candidate"), rejection.text("why")});
  for (Fields &map : fields.objects("tensor_maps"))
    code.tensorMaps.push_back({unsigned(map.number("argument")),
                               map.text("element"), map.numbers("sizes"),
                               map.numbers("strides"), map.numbers("box")});
  for (Fields &warning : fields.objects("warnings"))
    code.warnings.push_back({warning.text("code"), warning.text("text")});
  // Numbers that index the kernel's candidates.
  size_t count = std::max<size_t>(candidates, 1);
  good &= code.candidate < count;
  for (const Rejection &rejection : code.rejections)
    good &= rejection.candidate < count;
  return good ? std::optional(std::move(code)) : std::nullopt;
}

} // namespace nova
