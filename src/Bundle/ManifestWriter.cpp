//===- ManifestWriter.cpp - The canonical text of a manifest --------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format is specified in Manifest.h. nlohmann's objects are ordered maps of
// byte strings, which is the key order of the canonical text.
//
//===----------------------------------------------------------------------===//

#include "nova/Bundle/Manifest.h"

#include <nlohmann/json.hpp>

using namespace nova;
using namespace nova::bundle;
using Json = nlohmann::json;

namespace {

// One overload of json() per struct of Manifest.h. Declared here because the
// templates below look them up by name before they are defined.
Json json(const AttrValue &attr);
Json json(const TensorDesc &t);
Json json(const OutputDesc &o);
Json json(const Blob &b);
Json json(const Bucket &b);
Json json(const Param &p);
Json json(const Kernel &k);
Json json(const LaunchArg &arg);
Json json(const Launch &l);
Json json(const ArenaBuffer &b);
Json json(const Constant &c);
Json json(const Target &t);

Json json(const Attributes &attrs) {
  Json out = Json::object();
  for (const auto &[key, value] : attrs)
    out[key] = json(value);
  return out;
}

Json json(const AttrValue &attr) {
  if (const auto *list = std::get_if<std::vector<AttrValue>>(&attr.value)) {
    Json out = Json::array();
    for (const AttrValue &value : *list)
      out.push_back(json(value));
    return out;
  }
  if (const auto *attrs = std::get_if<Attributes>(&attr.value))
    return json(*attrs);
  if (const auto *text = std::get_if<std::string>(&attr.value))
    return *text;
  if (const auto *flag = std::get_if<bool>(&attr.value))
    return *flag;
  return std::get<int64_t>(attr.value);
}

template <typename T> Json orNull(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T> Json array(const std::vector<T> &list) {
  Json out = Json::array();
  for (const T &element : list)
    out.push_back(json(element));
  return out;
}

Json json(const TensorDesc &t) {
  Json out = {{"name", t.name},   {"role", t.role},
              {"path", t.path},   {"dtype", t.dtype},
              {"shape", t.shape}, {"strides", t.strides},
              {"bytes", t.bytes}, {"alignment", t.alignment}};
  if (t.advance)
    out["advance"] = *t.advance;
  return out;
}

Json json(const OutputDesc &o) {
  Json out = json(static_cast<const TensorDesc &>(o));
  out["updates"] = orNull(o.updates);
  return out;
}

Json json(const Blob &b) {
  return {{"digest", b.digest}, {"size", b.size}, {"media_type", b.mediaType}};
}

Json json(const Bucket &b) {
  return {{"bytes", b.bytes}, {"gradients", b.gradients}};
}

Json json(const Param &p) {
  const char *kind = p.kind == ParamKind::Pointer     ? "pointer"
                     : p.kind == ParamKind::TensorMap ? "tensormap"
                     : p.kind == ParamKind::Pointers  ? "pointers"
                                                      : "scalar";
  return {{"kind", kind}, {"size", p.size}, {"alignment", p.alignment}};
}

Json json(const Kernel &k) {
  return {{"name", k.name},
          {"symbol", k.symbol},
          {"blob", k.blob},
          {"ptx_blob", orNull(k.ptxBlob)},
          {"grid", k.grid},
          {"block", k.block},
          {"cluster", k.cluster},
          {"dynamic_shared_bytes", k.dynamicSharedBytes},
          {"static_shared_bytes", k.staticSharedBytes},
          {"registers", k.registers},
          {"spill_bytes", k.spillBytes},
          {"schedule", json(k.schedule)},
          {"flops", k.flops},
          {"bytes", k.bytes},
          {"predicted_ns", k.predictedNs},
          {"params", array(k.params)}};
}

Json json(const BufferRef &r) {
  return {{"buffer", r.buffer}, {"offset", r.offset}};
}
Json json(const InputRef &r) {
  return {{"input", r.input}, {"offset", r.offset}};
}
Json json(const OutputRef &r) {
  return {{"output", r.output}, {"offset", r.offset}};
}
Json json(const ConstantRef &r) {
  return {{"constant", r.constant}, {"offset", r.offset}};
}
Json json(const Immediate &i) {
  return {{"immediate", i.bits}, {"type", i.type}};
}
Json json(const TensorMap &t) {
  Json memory = std::visit([](const auto &r) { return json(r); }, t.memory);
  return {{"tensormap",
           {{"memory", memory},
            {"element_type", t.elementType},
            {"rank", t.rank},
            {"sizes", t.sizes},
            {"strides", t.strides},
            {"box", t.box},
            {"element_strides", t.elementStrides},
            {"interleave", t.interleave},
            {"swizzle", t.swizzle},
            {"l2_promotion", t.l2Promotion},
            {"fill", t.fill}}}};
}
Json json(const LaunchArg &arg) {
  return std::visit([](const auto &a) { return json(a); }, arg);
}

Json json(const Launch &l) {
  const char *kind = l.kind == LaunchKind::Kernel   ? "kernel"
                     : l.kind == LaunchKind::Memset ? "memset"
                                                    : "copy";
  return {{"kind", kind},
          {"kernel", orNull(l.kernel)},
          {"args", array(l.args)},
          {"after", l.after},
          {"nodes", l.nodes}};
}

Json json(const ArenaBuffer &b) {
  Json out = {{"offset", b.offset},
              {"size", b.size},
              {"first", b.first},
              {"last", b.last}};
  if (b.alias)
    out["alias"] = *b.alias;
  return out;
}

Json json(const Constant &c) {
  return {{"blob", c.blob}, {"offset", c.offset}, {"size", c.size}};
}

Json json(const Target &t) {
  return {{"name", t.name},
          {"device", t.device},
          {"min_driver", t.minDriver},
          {"ptx_version", t.ptxVersion},
          {"kernels", array(t.kernels)},
          {"launches", array(t.launches)},
          {"arena",
           {{"size", t.arena.size},
            {"alignment", t.arena.alignment},
            {"lower_bound", t.arena.lowerBound},
            {"buffers", array(t.arena.buffers)}}},
          {"bucket_ready", t.bucketReady},
          {"constants", array(t.constants)}};
}

Json json(const Manifest &m) {
  Json numerics = {{"matmul", m.numerics.matmul},
                   {"deterministic", m.numerics.deterministic},
                   {"fast_math", m.numerics.fastMath}};
  if (m.numerics.graph16bit)
    numerics["graph_16bit"] = true;
  return {{"schema_version", m.schemaVersion},
          {"features", m.features},
          {"name", m.name},
          {"graph_digest", m.graphDigest},
          {"producer",
           {{"novac", m.producer.novac},
            {"llvm", m.producer.llvm},
            {"ptxas", m.producer.ptxas},
            {"options", json(m.producer.options)}}},
          {"numerics", numerics},
          {"inputs", array(m.inputs)},
          {"outputs", array(m.outputs)},
          {"blobs", array(m.blobs)},
          {"targets", array(m.targets)},
          {"buckets", array(m.buckets)}};
}

/// Text that is no UTF-8 becomes U+FFFD instead of an exception: names come
/// from JSON, so it cannot happen to a compiler, and the reader would refuse
/// it.
std::string dump(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace

std::string nova::bundle::writeManifest(const Manifest &manifest) {
  const Json root = json(manifest);
  std::string out = "{";
  for (const auto &[key, value] : root.items()) {
    if (out.size() > 1)
      out += ',';
    out += dump(Json(key));
    out += ':';
    if (!value.is_array()) {
      out += dump(value);
      continue;
    }
    out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      out += dump(value[i]);
      out += i + 1 < value.size() ? ",\n" : "\n";
    }
    out += ']';
  }
  return out + "}\n";
}
