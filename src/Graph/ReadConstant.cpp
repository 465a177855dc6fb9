//===- ReadConstant.cpp - Constants: inline values, or a file beside ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphText.h"
#include "Reader.h"
#include "nova/Graph/NearestNames.h"

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include <stdlib.h>

using namespace nova;
using namespace nova::graph;

static_assert(std::endian::native == std::endian::little,
              "constants are kept little-endian");

namespace {

struct FloatFormat {
  int mantissaBits; // stored
  int exponentBits;
};
constexpr FloatFormat bfloat16Format{7, 8}, float16Format{10, 5};

/// Rounds to nearest even in a 16-bit format, straight from double (through
/// float would round twice). Infinite where the format is too small.
uint16_t roundTo16(double value, FloatFormat format) {
  int bias = (1 << (format.exponentBits - 1)) - 1;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t infinity = static_cast<uint16_t>(((1 << format.exponentBits) - 1)
                                            << format.mantissaBits);
  if (std::isnan(value))
    return infinity | static_cast<uint16_t>(1 << (format.mantissaBits - 1));
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | infinity;
  if (magnitude == 0)
    return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // In units of the last place of that exponent; nearbyint rounds to even.
  double units =
      std::nearbyint(std::ldexp(magnitude, format.mantissaBits - exponent));
  // A carry out of the mantissa moves into the exponent by itself.
  auto field =
      static_cast<int64_t>(units) +
      (static_cast<int64_t>(exponent + bias - 1) << format.mantissaBits);
  return sign | static_cast<uint16_t>(std::min<int64_t>(field, infinity));
}

template <typename T> void store(T value, char *out) {
  std::memcpy(out, &value, sizeof value);
}

template <typename T> bool storeInteger(int64_t value, char *out) {
  if (value < std::numeric_limits<T>::min() ||
      value > std::numeric_limits<T>::max())
    return false;
  store(static_cast<T>(value), out);
  return true;
}

bool storeInteger(int64_t value, DType dtype, char *out) {
  switch (dtype) {
  case DType::Int64:
    return storeInteger<int64_t>(value, out);
  case DType::Int32:
    return storeInteger<int32_t>(value, out);
  case DType::Int16:
    return storeInteger<int16_t>(value, out);
  case DType::Int8:
    return storeInteger<int8_t>(value, out);
  default:
    return storeInteger<uint8_t>(value, out);
  }
}

/// False when a finite value became infinite.
bool storeFloat(double value, DType dtype, char *out) {
  bool fits = true;
  if (dtype == DType::Float64) {
    store(value, out);
  } else if (dtype == DType::Float32) {
    auto narrow = static_cast<float>(value);
    fits = std::isfinite(value) == std::isfinite(narrow);
    store(narrow, out);
  } else {
    FloatFormat format =
        dtype == DType::BFloat16 ? bfloat16Format : float16Format;
    uint16_t bits = roundTo16(value, format);
    int exponentMask = ((1 << format.exponentBits) - 1) << format.mantissaBits;
    fits = !std::isfinite(value) || (bits & exponentMask) != exponentMask;
    store(bits, out);
  }
  return fits;
}

} // namespace

bool Reader::readConstant(const Json &json, const JsonPath &path,
                          Constant &out) {
  if (!object(json, path,
              {{"name", true},
               {"dtype", true},
               {"shape", true},
               {"strides", false},
               {"values", false},
               {"file", false},
               {"key", false}}) ||
      !text(*json.find("name"), {&path, "name"}, out.name) ||
      !tensor(json, path, out))
    return false;
  bool values = json.find("values"), file = json.find("file"),
       key = json.find("key");
  if (values && !file && !key)
    return constantValues(json, path, out);
  if (!values && file && key)
    return constantFile(json, path, out);
  return fail(path, "expected either values, or file and key");
}

bool Reader::constantValues(const Json &json, const JsonPath &path,
                            Constant &out) {
  const Json::Array *list;
  JsonPath valuesPath{&path, "values"};
  if (!array(*json.find("values"), valuesPath, "elements", list))
    return false;
  // Compared before anything of that size is allocated.
  int64_t count = out.elementCount();
  if (static_cast<uint64_t>(count) != list->size())
    return fail(valuesPath, "got " + std::to_string(list->size()) +
                                " elements, expected " + std::to_string(count) +
                                " for shape " + shapeText(out.shape));
  size_t width = dtypeBytes(out.dtype);
  out.bytes.resize(list->size() * width);
  for (size_t i = 0; i < list->size(); ++i)
    if (!constantElement((*list)[i], {&valuesPath, {}, static_cast<int64_t>(i)},
                         out.dtype, out.bytes.data() + i * width))
      return false;
  return true;
}

bool Reader::constantElement(const Json &json, const JsonPath &path,
                             DType dtype, char *out) {
  if (dtype == DType::Bool) {
    const bool *value = json.as<bool>();
    if (!value)
      return got(path, json, "true or false");
    *out = *value;
    return true;
  }
  std::string name(dtypeName(dtype));
  if (!isFloating(dtype)) {
    const int64_t *value = json.as<int64_t>();
    if (!value)
      return got(path, json, "an integer for " + name);
    return storeInteger(*value, dtype, out) ||
           got(path, json, "a value in the range of " + name);
  }
  double value;
  if (const int64_t *i = json.as<int64_t>())
    value = static_cast<double>(*i);
  else if (const double *d = json.as<double>())
    value = *d;
  else if (const Json *word = json.find("float")) {
    if (!object(json, path, {{"float", true}}) ||
        !floatWord(*word, {&path, "float"}, value))
      return false;
  } else
    return got(path, json, "a number or {\"float\": ...} for " + name);
  return storeFloat(value, dtype, out) ||
         got(path, json, "a value in the range of " + name);
}

/// The file behind a relative name, links followed, inside the folder.
bool Reader::resolveFile(const JsonPath &path, const std::string &file,
                         std::string &out) {
  std::string shown = "got " + quotedText(file) + ", ";
  if (folder.empty())
    return fail(path, shown + "expected none: this graph has no folder");
  if (file.front() == '/')
    return fail(path, shown + "expected a path relative to the graph's folder");
  if (file.find('\0') != std::string::npos)
    return fail(path, shown + "expected a path without a zero byte");
  for (size_t at = 0; at <= file.size();) {
    size_t end = std::min(file.find('/', at), file.size());
    if (file.substr(at, end - at) == "..")
      return fail(path, shown + "expected a path without ..");
    at = end + 1;
  }
  using Text = std::unique_ptr<char, decltype(&::free)>;
  Text base(::realpath(folder.c_str(), nullptr), &::free);
  if (!base)
    return fail(path, shown + "the graph's folder: " + std::strerror(errno));
  Text real(::realpath((folder + "/" + file).c_str(), nullptr), &::free);
  if (!real)
    return fail(path, shown + "expected a file beside the graph: " +
                          std::strerror(errno));
  std::string prefix = base.get();
  if (prefix.back() != '/')
    prefix += '/';
  out = real.get();
  if (out.compare(0, prefix.size(), prefix) != 0)
    return fail(path, shown + "expected a file inside the graph's folder; the "
                              "link leaves it");
  return true;
}

bool Reader::constantFile(const Json &json, const JsonPath &path,
                          Constant &out) {
  std::string name, key, real;
  JsonPath filePath{&path, "file"}, keyPath{&path, "key"};
  if (!text(*json.find("file"), filePath, name) ||
      !text(*json.find("key"), keyPath, key) ||
      !resolveFile(filePath, name, real))
    return false;
  auto open = files.find(real);
  if (open == files.end()) {
    auto file = SafetensorsFile::open(real);
    if (!file)
      return fail(filePath, file.error().message);
    open = files.emplace(real, std::move(*file)).first;
  }
  const SafetensorsFile &file = open->second;
  const SafetensorsEntry *entry = file.find(key);
  if (!entry) {
    std::vector<std::string_view> known;
    for (const SafetensorsEntry &each : file.entries())
      known.push_back(each.name);
    std::string near;
    for (const std::string &each : nearestNames(key, known))
      near += (near.empty() ? "; nearest: " : ", ") + each;
    return fail(keyPath, "got " + quotedText(key) +
                             ", expected the name of one of the " +
                             std::to_string(known.size()) + " tensors of " +
                             name + near);
  }
  if (entry->dtype != safetensorsDtypeOf(dtypeName(out.dtype)) ||
      entry->shape != out.shape)
    return fail(keyPath,
                quotedText(key) + " is " + entry->dtype + " " +
                    shapeText(entry->shape) + " in " + name + ", expected " +
                    std::string(safetensorsDtypeOf(dtypeName(out.dtype))) +
                    " " + shapeText(out.shape));
  auto bytes = file.read(*entry);
  if (!bytes)
    return fail(filePath, bytes.error().message);
  out.bytes = std::move(*bytes);
  out.file = name;
  if (out.dtype == DType::Bool)
    for (size_t i = 0; i < out.bytes.size(); ++i)
      if (static_cast<uint8_t>(out.bytes[i]) > 1)
        return fail(keyPath,
                    "element " + std::to_string(i) + " of the bool " +
                        quotedText(key) + " is the byte " +
                        std::to_string(static_cast<uint8_t>(out.bytes[i])) +
                        ", expected 0 or 1");
  return true;
}
