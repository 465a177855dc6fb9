//===- ManifestReader.cpp - From text to a Manifest, strictly -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys and types only; what they mean together is ManifestCheck.cpp's.
//
//===----------------------------------------------------------------------===//

#include "StrictJson.h"
#include "nova/Bundle/Manifest.h"

using namespace nova;
using namespace nova::bundle;
using Json = nlohmann::json;

namespace {

class ManifestDecoder : public Decoder {
public:
  using Decoder::Decoder;

  Manifest manifest(const Json &root) {
    JsonNode top{&root, nullptr, nullptr, 0};
    Manifest m;
    // The version first: it decides whether other keys may be unknown.
    if (!root.is_object())
      fail(top, "an object");
    else if (!root.contains("schema_version"))
      object(top, {"schema_version"});
    JsonNode version = field(top, "schema_version");
    m.schemaVersion = size(version);
    if (!failed() && m.schemaVersion < 1)
      fail(version, "at least 1");
    tolerateUnknown = m.schemaVersion > kSchemaVersion;

    object(top,
           {"schema_version", "features", "name", "graph_digest", "producer",
            "numerics", "inputs", "outputs", "blobs", "targets", "buckets"});
    m.features = texts(field(top, "features"));
    m.name = text(field(top, "name"));
    m.graphDigest = text(field(top, "graph_digest"));

    JsonNode producer = field(top, "producer");
    object(producer, {"novac", "llvm", "ptxas", "options"});
    m.producer.novac = text(field(producer, "novac"));
    m.producer.llvm = text(field(producer, "llvm"));
    m.producer.ptxas = text(field(producer, "ptxas"));
    m.producer.options = attributes(field(producer, "options"));

    JsonNode numerics = field(top, "numerics");
    object(numerics, {"matmul", "deterministic", "fast_math"}, {"graph_16bit"});
    m.numerics.matmul = text(field(numerics, "matmul"));
    m.numerics.deterministic = boolean(field(numerics, "deterministic"));
    m.numerics.fastMath = texts(field(numerics, "fast_math"));
    if (has(numerics, "graph_16bit"))
      m.numerics.graph16bit = boolean(field(numerics, "graph_16bit"));

    array(field(top, "inputs"), [&](const JsonNode &n) {
      object(n,
             {"name", "role", "path", "dtype", "shape", "strides", "bytes",
              "alignment"},
             {"advance"});
      m.inputs.push_back(tensor(n));
      if (has(n, "advance"))
        m.inputs.back().advance = text(field(n, "advance"));
    });
    array(field(top, "outputs"), [&](const JsonNode &n) {
      object(n, {"name", "role", "path", "dtype", "shape", "strides", "bytes",
                 "alignment", "updates"});
      m.outputs.push_back({tensor(n), maybeIndex(field(n, "updates"))});
    });
    array(field(top, "blobs"), [&](const JsonNode &n) {
      object(n, {"digest", "size", "media_type"});
      m.blobs.push_back({text(field(n, "digest")), number(field(n, "size")),
                         text(field(n, "media_type"))});
    });
    array(field(top, "targets"),
          [&](const JsonNode &n) { m.targets.push_back(target(n)); });
    array(field(top, "buckets"), [&](const JsonNode &n) {
      object(n, {"bytes", "gradients"});
      m.buckets.push_back(
          {number(field(n, "bytes")), indices(field(n, "gradients"))});
    });
    return m;
  }

private:
  std::vector<std::string> texts(const JsonNode &node) {
    std::vector<std::string> out;
    array(node, [&](const JsonNode &n) { out.push_back(text(n)); });
    return out;
  }
  std::vector<uint32_t> indices(const JsonNode &node) {
    std::vector<uint32_t> out;
    array(node, [&](const JsonNode &n) { out.push_back(index(n)); });
    return out;
  }
  std::vector<uint64_t> numbers(const JsonNode &node) {
    std::vector<uint64_t> out;
    array(node, [&](const JsonNode &n) { out.push_back(number(n)); });
    return out;
  }
  std::vector<int64_t> sizes(const JsonNode &node) {
    std::vector<int64_t> out;
    array(node, [&](const JsonNode &n) { out.push_back(size(n)); });
    return out;
  }
  std::optional<uint32_t> maybeIndex(const JsonNode &node) {
    if (failed() || !node.value || node.value->is_null())
      return std::nullopt;
    return index(node);
  }
  std::array<uint64_t, 3> triple(const JsonNode &node) {
    std::vector<uint64_t> list = numbers(node);
    if (failed() || !node.value)
      return {1, 1, 1};
    if (list.size() != 3) {
      fail(node, "a list of 3 integers");
      return {1, 1, 1};
    }
    return {list[0], list[1], list[2]};
  }

  AttrValue attribute(const JsonNode &node) {
    if (failed() || !node.value)
      return {};
    const Json &v = *node.value;
    if (v.is_boolean())
      return v.get<bool>();
    if (v.is_string())
      return v.get<std::string>();
    if (v.is_object())
      return attributes(node);
    if (v.is_array()) {
      std::vector<AttrValue> list;
      array(node, [&](const JsonNode &n) { list.push_back(attribute(n)); });
      return list;
    }
    if (v.is_number_integer() &&
        !(v.is_number_unsigned() && v.get<uint64_t>() > INT64_MAX))
      return v.get<int64_t>();
    fail(node, "a signed 64-bit integer, true, false, a string, a list or an "
               "object");
    return {};
  }
  Attributes attributes(const JsonNode &node) {
    Attributes out;
    if (failed() || !node.value)
      return out;
    if (!node.value->is_object()) {
      fail(node, "an object");
      return out;
    }
    for (const auto &[key, value] : node.value->items())
      out[key] = attribute(JsonNode{&value, &node, key.c_str(), 0});
    return out;
  }

  TensorDesc tensor(const JsonNode &node) {
    TensorDesc t;
    t.name = text(field(node, "name"));
    t.role = text(field(node, "role"));
    t.path = text(field(node, "path"));
    t.dtype = text(field(node, "dtype"));
    t.shape = sizes(field(node, "shape"));
    t.strides = sizes(field(node, "strides"));
    t.bytes = number(field(node, "bytes"));
    t.alignment = number(field(node, "alignment"));
    return t;
  }

  /// One of `names`, as its position.
  template <typename Enum>
  Enum choice(const JsonNode &node, std::initializer_list<const char *> names) {
    std::string name = text(node);
    int i = 0;
    std::string list;
    for (const char *known : names) {
      if (name == known)
        return static_cast<Enum>(i);
      list += (i++ ? " " : "") + std::string(known);
    }
    fail(node, "one of " + list);
    return {};
  }

  Kernel kernel(const JsonNode &node) {
    object(node, {"name", "symbol", "blob", "ptx_blob", "grid", "block",
                  "cluster", "dynamic_shared_bytes", "static_shared_bytes",
                  "registers", "spill_bytes", "schedule", "flops", "bytes",
                  "predicted_ns", "params"});
    Kernel k;
    k.name = text(field(node, "name"));
    k.symbol = text(field(node, "symbol"));
    k.blob = index(field(node, "blob"));
    k.ptxBlob = maybeIndex(field(node, "ptx_blob"));
    k.grid = triple(field(node, "grid"));
    k.block = triple(field(node, "block"));
    k.cluster = triple(field(node, "cluster"));
    k.dynamicSharedBytes = number(field(node, "dynamic_shared_bytes"));
    k.staticSharedBytes = number(field(node, "static_shared_bytes"));
    k.registers = number(field(node, "registers"));
    k.spillBytes = number(field(node, "spill_bytes"));
    k.schedule = attributes(field(node, "schedule"));
    k.flops = number(field(node, "flops"));
    k.bytes = number(field(node, "bytes"));
    k.predictedNs = number(field(node, "predicted_ns"));
    array(field(node, "params"), [&](const JsonNode &n) {
      object(n, {"kind", "size", "alignment"});
      k.params.push_back({choice<ParamKind>(field(n, "kind"),
                                            {"pointer", "tensormap", "scalar", "pointers"}),
                          number(field(n, "size")),
                          number(field(n, "alignment"))});
    });
    return k;
  }

  LaunchArg argument(const JsonNode &node) {
    if (has(node, "immediate")) {
      object(node, {"immediate", "type"});
      return Immediate{number(field(node, "immediate"), UINT64_MAX),
                       text(field(node, "type"))};
    }
    if (has(node, "tensormap")) {
      object(node, {"tensormap"});
      return tensorMap(field(node, "tensormap"));
    }
    return std::visit([](const auto &r) { return LaunchArg(r); }, memory(node));
  }

  MemoryRef memory(const JsonNode &node) {
    if (failed() || !node.value)
      return BufferRef{};
    if (!node.value->is_object()) {
      fail(node, "an object");
      return BufferRef{};
    }
    if (has(node, "buffer")) {
      object(node, {"buffer", "offset"});
      return BufferRef{index(field(node, "buffer")),
                       number(field(node, "offset"))};
    }
    if (has(node, "input")) {
      object(node, {"input", "offset"});
      return InputRef{index(field(node, "input")),
                      number(field(node, "offset"))};
    }
    if (has(node, "output")) {
      object(node, {"output", "offset"});
      return OutputRef{index(field(node, "output")),
                       number(field(node, "offset"))};
    }
    if (has(node, "constant")) {
      object(node, {"constant", "offset"});
      return ConstantRef{index(field(node, "constant")),
                         number(field(node, "offset"))};
    }
    fail(node, "one with the key buffer, input, output, constant, immediate or "
               "tensormap");
    return BufferRef{};
  }

  TensorMap tensorMap(const JsonNode &node) {
    object(node, {"memory", "element_type", "rank", "sizes", "strides", "box",
                  "element_strides", "interleave", "swizzle", "l2_promotion",
                  "fill"});
    TensorMap t;
    t.memory = memory(field(node, "memory"));
    t.elementType = text(field(node, "element_type"));
    t.rank = index(field(node, "rank"));
    t.sizes = numbers(field(node, "sizes"));
    t.strides = numbers(field(node, "strides"));
    t.box = numbers(field(node, "box"));
    t.elementStrides = numbers(field(node, "element_strides"));
    t.interleave = text(field(node, "interleave"));
    t.swizzle = text(field(node, "swizzle"));
    t.l2Promotion = text(field(node, "l2_promotion"));
    t.fill = text(field(node, "fill"));
    return t;
  }

  Launch launch(const JsonNode &node) {
    object(node, {"kind", "kernel", "args", "after", "nodes"});
    Launch l;
    l.kind =
        choice<LaunchKind>(field(node, "kind"), {"kernel", "memset", "copy"});
    l.kernel = maybeIndex(field(node, "kernel"));
    array(field(node, "args"),
          [&](const JsonNode &n) { l.args.push_back(argument(n)); });
    l.after = indices(field(node, "after"));
    l.nodes = texts(field(node, "nodes"));
    return l;
  }

  Target target(const JsonNode &node) {
    object(node, {"name", "device", "min_driver", "ptx_version", "kernels",
                  "launches", "arena", "bucket_ready", "constants"});
    Target t;
    t.name = text(field(node, "name"));
    t.device = text(field(node, "device"));
    t.minDriver = number(field(node, "min_driver"));
    t.ptxVersion = number(field(node, "ptx_version"));
    array(field(node, "kernels"),
          [&](const JsonNode &n) { t.kernels.push_back(kernel(n)); });
    array(field(node, "launches"),
          [&](const JsonNode &n) { t.launches.push_back(launch(n)); });
    JsonNode arena = field(node, "arena");
    object(arena, {"size", "alignment", "lower_bound", "buffers"});
    t.arena.size = number(field(arena, "size"));
    t.arena.alignment = number(field(arena, "alignment"));
    t.arena.lowerBound = number(field(arena, "lower_bound"));
    array(field(arena, "buffers"), [&](const JsonNode &n) {
      object(n, {"offset", "size", "first", "last"}, {"alias"});
      ArenaBuffer b;
      b.offset = number(field(n, "offset"));
      b.size = number(field(n, "size"));
      b.first = index(field(n, "first"));
      b.last = index(field(n, "last"));
      if (has(n, "alias"))
        b.alias = index(field(n, "alias"));
      t.arena.buffers.push_back(b);
    });
    t.bucketReady = indices(field(node, "bucket_ready"));
    array(field(node, "constants"), [&](const JsonNode &n) {
      object(n, {"blob", "offset", "size"});
      t.constants.push_back({index(field(n, "blob")),
                             number(field(n, "offset")),
                             number(field(n, "size"))});
    });
    return t;
  }
};

} // namespace

Expected<Manifest> bundle::readManifest(std::string_view text,
                                        std::string_view what) {
  if (text.size() > kMaxManifestBytes)
    return badInput(std::string(what) + ": " + std::to_string(text.size()) +
                    " bytes, the limit is " +
                    std::to_string(kMaxManifestBytes));
  Expected<Json> root = parseStrictJson(text, what, kMaxNesting);
  if (!root)
    return root.error();
  ManifestDecoder decoder(what);
  Manifest manifest = decoder.manifest(*root);
  if (decoder.failed())
    return decoder.takeError();
  if (Status s = checkManifest(manifest, what); !s)
    return s.error();
  return manifest;
}
