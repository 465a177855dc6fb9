//===- ManifestCheck.cpp - What a manifest means together -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rule that a loader relies on before it touches a device. Arithmetic on
// sizes is checked; after this file passes, offset + size never overflows.
// The arena and the launches have files of their own: ArenaCheck.cpp,
// LaunchCheck.cpp and OrderCheck.cpp.
//
//===----------------------------------------------------------------------===//

#include "Checker.h"
#include "nova/Bundle/Manifest.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace nova;
using namespace nova::bundle;

namespace {

bool isPowerOfTwo(uint64_t v) { return v && !(v & (v - 1)); }

bool isDigest(std::string_view text) {
  constexpr std::string_view prefix = "sha256:";
  if (text.size() != prefix.size() + 64 || text.substr(0, 7) != prefix)
    return false;
  return std::all_of(text.begin() + 7, text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool isSymbol(std::string_view text) {
  auto first = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  auto other = [&](char c) {
    return first(c) || (c >= '0' && c <= '9') || c == '$';
  };
  return !text.empty() && first(text[0]) &&
         std::all_of(text.begin(), text.end(), other);
}

/// Features of schema 1 that this reader knows.
bool knownFeature(std::string_view name) {
  return name == kFeaturePointerTables;
}

class ManifestChecker : public Checker {
public:
  ManifestChecker(const Manifest &m, std::string_view what)
      : Checker(what), m(m), later(m.schemaVersion > kSchemaVersion) {}

  void run() {
    header();
    std::set<std::string_view> names;
    for (size_t i = 0; i < m.inputs.size() && !failed(); ++i)
      input(m.inputs[i], at("inputs", i), names);
    std::vector<int64_t> updater(m.inputs.size(), -1);
    for (size_t i = 0; i < m.outputs.size() && !failed(); ++i)
      output(m.outputs[i], i, at("outputs", i), updater);
    blobs();
    buckets();
    std::set<std::pair<std::string_view, std::string_view>> targets;
    for (size_t i = 0; i < m.targets.size() && !failed(); ++i) {
      const Target &t = m.targets[i];
      if (!targets.insert({t.name, t.device}).second)
        fail(at("targets", i), quote(t.name + " for " + t.device),
             "no target and device twice");
      target(t, at("targets", i));
    }
  }

private:
  void header() {
    if (m.schemaVersion < 1)
      return fail("schema_version", m.schemaVersion, "at least 1");
    for (size_t i = 0; i < m.features.size(); ++i)
      if (!knownFeature(m.features[i]))
        return fail(at("features", i), quote(m.features[i]),
                    "only features that this reader knows (" +
                        std::string(kFeaturePointerTables) +
                        "): a newer loader is needed");
    if (!isDigest(m.graphDigest))
      return fail("graph_digest", quote(m.graphDigest), digestForm);
    oneOf("numerics.matmul", m.numerics.matmul, {"f32", "tf32", "bf16"});
  }

  void oneOf(const std::string &path, const std::string &value,
             std::initializer_list<const char *> names) {
    std::string list;
    for (const char *name : names) {
      if (value == name)
        return;
      list += (list.empty() ? "" : " ") + std::string(name);
    }
    fail(path, quote(value), "one of " + list);
  }

  void tensor(const TensorDesc &t, const std::string &path) {
    if (t.name.empty())
      return fail(path + ".name", "\"\"", "a name");
    oneOf(path + ".dtype", t.dtype,
          {"float64", "float32", "bfloat16", "float16", "int64", "int32",
           "int16", "int8", "uint8", "bool"});
    if (failed())
      return;
    if (t.strides.size() != t.shape.size())
      return fail(path + ".strides", list(t.strides),
                  std::to_string(t.shape.size()) +
                      " strides, one per dimension of shape " + list(t.shape));
    std::optional<uint64_t> bytes = tensorBytes(t.dtype, t.shape, t.strides);
    if (!bytes)
      return fail(path + ".shape",
                  list(t.shape) + " with strides " + list(t.strides),
                  "sizes whose product fits in 63 bits");
    if (*bytes != t.bytes)
      return fail(path + ".bytes", t.bytes,
                  std::to_string(*bytes) + ": " + t.dtype + " " +
                      list(t.shape) + " with strides " + list(t.strides));
    if (!isPowerOfTwo(t.alignment) || t.alignment < kArgumentAlignment ||
        t.alignment > 4096)
      fail(path + ".alignment", t.alignment, "a power of two from 16 to 4096");
  }

  void input(const TensorDesc &t, const std::string &path,
             std::set<std::string_view> &names) {
    tensor(t, path);
    oneOf(path + ".role", t.role,
          {"parameter", "state", "buffer", "scalar", "input"});
    if (failed())
      return;
    if (!names.insert(t.name).second)
      return fail(path + ".name", quote(t.name), "no name twice");
    if (t.role == "scalar" && !t.shape.empty())
      return fail(path + ".shape", list(t.shape), "[] for a scalar");
    if (!t.advance)
      return;
    if (t.role != "scalar")
      return fail(path + ".advance", quote(*t.advance),
                  "none: only a scalar advances, this is a " + t.role);
    std::optional<double> value = parseHexFloat(*t.advance);
    if (!value || !std::isfinite(*value))
      fail(path + ".advance", quote(*t.advance),
           "a finite number in hexadecimal float notation, as \"0x1p+0\"");
  }

  void output(const OutputDesc &o, size_t index, const std::string &path,
              std::vector<int64_t> &updater) {
    tensor(o, path);
    oneOf(path + ".role", o.role, {"loss", "output", "gradient", "update"});
    if (failed())
      return;
    if (o.updates.has_value() != (o.role == "update"))
      return fail(path + ".updates",
                  o.updates ? std::to_string(*o.updates) : "null",
                  o.updates ? "null for role " + o.role
                            : "an input index for role update");
    if (!o.updates)
      return;
    if (*o.updates >= m.inputs.size())
      return fail(path + ".updates", *o.updates,
                  below(m.inputs.size(), "input"));
    const TensorDesc &in = m.inputs[*o.updates];
    if (o.dtype != in.dtype || o.shape != in.shape || !sameLayout(o, in))
      return fail(path,
                  o.dtype + " " + list(o.shape) + " with strides " +
                      list(o.strides),
                  in.dtype + " " + list(in.shape) + " with strides " +
                      list(in.strides) + ", as the input " + quote(in.name) +
                      " that it updates");
    int64_t &other = updater[*o.updates];
    if (other >= 0)
      return fail(path + ".updates", *o.updates,
                  "an input that outputs[" + std::to_string(other) +
                      "] does not update already");
    other = static_cast<int64_t>(index);
  }

  /// The strides of dimensions with one element mean nothing.
  static bool sameLayout(const TensorDesc &a, const TensorDesc &b) {
    if (a.bytes == 0)
      return true;
    for (size_t i = 0; i < a.shape.size(); ++i)
      if (a.shape[i] > 1 && a.strides[i] != b.strides[i])
        return false;
    return true;
  }

  void blobs() {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (size_t i = 0; i < m.blobs.size() && !failed(); ++i) {
      const Blob &b = m.blobs[i];
      std::string path = at("blobs", i);
      if (!isDigest(b.digest))
        return fail(path + ".digest", quote(b.digest), digestForm);
      if (!seen.insert({b.digest, b.mediaType}).second)
        return fail(path + ".digest", quote(b.digest),
                    "no digest and media type twice");
      // A later schema may bring media for targets that this reader never
      // loads; one that it must know comes as a feature.
      if (!later)
        oneOf(path + ".media_type", b.mediaType,
              {kMediaCubin, kMediaPtx, kMediaHost, kMediaData});
    }
  }

  void buckets() {
    for (size_t i = 0; i < m.buckets.size(); ++i) {
      const Bucket &b = m.buckets[i];
      std::string path = at("buckets", i);
      uint64_t sum = 0;
      for (size_t j = 0; j < b.gradients.size(); ++j) {
        uint32_t g = b.gradients[j];
        std::string where = at(path + ".gradients", j);
        if (g >= m.outputs.size())
          return fail(where, g, below(m.outputs.size(), "output"));
        if (m.outputs[g].role != "gradient")
          return fail(where, g,
                      "an output of role gradient, this is a " +
                          m.outputs[g].role);
        if (__builtin_add_overflow(sum, m.outputs[g].bytes, &sum))
          return fail(where, g, "gradients whose bytes add up in 64 bits");
      }
      if (b.bytes < sum)
        return fail(path + ".bytes", b.bytes,
                    "at least the " + std::to_string(sum) +
                        " bytes of its gradients");
    }
  }

  void target(const Target &t, const std::string &path) {
    if (t.name.empty())
      return fail(path + ".name", "\"\"", "a name");
    std::set<std::string_view> names;
    for (size_t i = 0; i < t.kernels.size() && !failed(); ++i) {
      std::string where = at(path + ".kernels", i);
      kernel(t, t.kernels[i], where);
      if (!failed() && !names.insert(t.kernels[i].name).second)
        fail(where + ".name", quote(t.kernels[i].name), "no name twice");
    }
    for (size_t i = 0; i < t.constants.size() && !failed(); ++i)
      constant(t.constants[i], at(path + ".constants", i));
    checkArena(*this, t, path + ".arena");
    for (size_t i = 0; i < t.launches.size() && !failed(); ++i)
      checkLaunch(*this, m, t, i, at(path + ".launches", i));
    checkOrder(*this, m, t, path + ".launches");
    if (failed())
      return;
    if (t.bucketReady.size() != m.buckets.size())
      return fail(path + ".bucket_ready",
                  "a list of " + std::to_string(t.bucketReady.size()),
                  std::to_string(m.buckets.size()) + ", one per bucket");
    for (size_t i = 0; i < t.bucketReady.size(); ++i)
      if (t.bucketReady[i] >= t.launches.size())
        return fail(at(path + ".bucket_ready", i), t.bucketReady[i],
                    below(t.launches.size(), "launch"));
  }

  void blobIndex(const std::string &path, uint32_t index,
                 std::string_view media) {
    if (index >= m.blobs.size())
      return fail(path, index, below(m.blobs.size(), "blob"));
    if (m.blobs[index].mediaType != media)
      fail(path, index,
           "a blob of media type " + std::string(media) + ", this is " +
               quote(m.blobs[index].mediaType));
  }

  void kernel(const Target &t, const Kernel &k, const std::string &path) {
    bool host = t.name == "host";
    if (k.name.empty())
      return fail(path + ".name", "\"\"", "a name");
    if (!isSymbol(k.symbol))
      return fail(path + ".symbol", quote(k.symbol),
                  "a letter or _, then letters, digits, _ or $");
    blobIndex(path + ".blob", k.blob, host ? kMediaHost : kMediaCubin);
    if (k.ptxBlob) {
      if (host)
        return fail(path + ".ptx_blob", *k.ptxBlob, "null for host");
      blobIndex(path + ".ptx_blob", *k.ptxBlob, kMediaPtx);
    }
    // CUDA's limits for every architecture; the loader checks the device's own.
    constexpr uint64_t many = INT32_MAX;
    if (host) {
      limits(path + ".grid", k.grid, 0, {INT64_MAX, 1, 1}, INT64_MAX);
      limits(path + ".block", k.block, 1, {1, 1, 1}, 1);
      limits(path + ".cluster", k.cluster, 1, {1, 1, 1}, 1);
    } else {
      limits(path + ".grid", k.grid, 1, {many, 65535, 65535}, INT64_MAX);
      limits(path + ".block", k.block, 1, {1024, 1024, 64}, 1024);
      limits(path + ".cluster", k.cluster, 1, {16, 16, 16}, 16);
    }
    if (failed())
      return;
    for (size_t i = 0; i < k.params.size(); ++i) {
      const Param &p = k.params[i];
      std::string where = at(path + ".params", i);
      if (p.kind == ParamKind::Pointers) {
        table(p, host, where);
        if (failed())
          return;
        continue;
      }
      uint64_t size = p.kind == ParamKind::Pointer     ? kPointerBytes
                      : p.kind == ParamKind::TensorMap ? 128
                                                       : p.size;
      if (p.size != size || p.size < 1 || p.size > 4096)
        return fail(where + ".size", p.size,
                    p.kind == ParamKind::Scalar ? "1 to 4096"
                                                : std::to_string(size));
      if (!isPowerOfTwo(p.alignment) || p.alignment > 256)
        return fail(where + ".alignment", p.alignment,
                    "a power of two up to 256");
    }
  }

  void table(const Param &p, bool host, const std::string &path) {
    if (host)
      return fail(path + ".kind", quote("pointers"),
                  "pointer, tensormap or scalar: kernels of the host have no "
                  "tables");
    if (std::find(m.features.begin(), m.features.end(),
                  kFeaturePointerTables) == m.features.end())
      return fail(path + ".kind", quote("pointers"),
                  "no such parameter without the feature " +
                      quote(kFeaturePointerTables));
    if (p.size < kPointerBytes || p.size % kPointerBytes ||
        p.size > kMaxParameterBytes)
      return fail(path + ".size", p.size,
                  "a multiple of 8 up to " +
                      std::to_string(kMaxParameterBytes));
    if (p.alignment != kPointerBytes)
      fail(path + ".alignment", p.alignment, "8");
  }

  void limits(const std::string &path, const std::array<uint64_t, 3> &value,
              uint64_t least, const std::array<uint64_t, 3> &most,
              uint64_t mostTogether) {
    uint64_t product = 1;
    for (int i = 0; i < 3; ++i) {
      if (value[i] < (i ? 1 : least) || value[i] > most[i])
        return fail(at(path, i), value[i],
                    std::to_string(i ? 1 : least) + " to " +
                        std::to_string(most[i]));
      if (__builtin_mul_overflow(product, value[i], &product) ||
          product > mostTogether)
        return fail(path, list(value),
                    "a product of at most " + std::to_string(mostTogether));
    }
  }

  void constant(const Constant &c, const std::string &path) {
    blobIndex(path + ".blob", c.blob, kMediaData);
    if (failed())
      return;
    uint64_t end;
    if (__builtin_add_overflow(c.offset, c.size, &end) ||
        end > m.blobs[c.blob].size)
      fail(path,
           "bytes " + std::to_string(c.offset) + " + " + std::to_string(c.size),
           "a range inside the blob of " +
               std::to_string(m.blobs[c.blob].size) + " bytes");
  }

  static constexpr const char *digestForm =
      "\"sha256:\" and 64 lower-case hexadecimal digits";
  const Manifest &m;
  bool later;
};

} // namespace

Status bundle::checkManifest(const Manifest &manifest, std::string_view what) {
  ManifestChecker checker(manifest, what);
  checker.run();
  if (checker.failed())
    return checker.takeError();
  return Status::ok();
}
