//===- Session.cpp - A bundle with buffers, ready to step -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include <algorithm>
#include <charconv>
#include <cstring>

using namespace nova;
using namespace nova::run;
using namespace nova::rt;

namespace {

Error usage(std::string message, std::string hint = {}) {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i)
      text += ',';
    text += std::to_string(shape[i]);
  }
  return text += ']';
}

Tensor tensorOf(const nova_rt_tensor_t &t) {
  Tensor out;
  out.name = t.name;
  out.role = t.role;
  out.path = t.path;
  out.dtypeName = t.dtype;
  out.dtype = *dtypeOf(t.dtype); // the library has checked the name
  out.shape.assign(t.shape, t.shape + t.rank);
  out.strides.assign(t.strides, t.strides + t.rank);
  out.bytes = t.bytes;
  out.elements = 1;
  for (int64_t extent : out.shape)
    out.elements *= static_cast<uint64_t>(extent);
  if (t.updates >= 0)
    out.updates = static_cast<uint32_t>(t.updates);
  if (t.has_advance)
    out.advance = t.advance;
  return out;
}

Expected<int32_t> deviceOf(const std::string &text) {
  if (text.empty() || text == "host")
    return NOVA_RT_DEVICE_HOST;
  int32_t ordinal = -1;
  auto end = std::from_chars(text.data(), text.data() + text.size(), ordinal);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() ||
      ordinal < 0)
    return usage("device \"" + text +
                 "\", expected host or the number of a GPU");
  return ordinal;
}

} // namespace

Error run::abiError(nova_rt_status_t status) {
  return {static_cast<ErrorCode>(status), nova_rt_error_message(),
          nova_rt_error_hint()};
}

std::string run::describe(const Tensor &t) {
  return t.dtypeName + " " + shapeText(t.shape);
}

std::string run::gather(const Tensor &t, const void *buffer) {
  unsigned size = bytesOf(t.dtype);
  std::string dense(t.elements * size, '\0');
  char *to = dense.data();
  forEachElement(t, [&](int64_t offset) {
    std::memcpy(to, static_cast<const char *>(buffer) + offset * size, size);
    to += size;
  });
  return dense;
}

bool run::scatter(const Tensor &t, std::string_view dense, void *buffer) {
  unsigned size = bytesOf(t.dtype);
  const char *from = dense.data();
  forEachElement(t, [&](int64_t offset) {
    std::memcpy(static_cast<char *>(buffer) + offset * size, from, size);
    from += size;
  });
  bool shared = std::count(t.strides.begin(), t.strides.end(), 0) != 0;
  return !shared || gather(t, buffer) == dense;
}

Expected<std::unique_ptr<Session>> Session::open(const std::string &bundle,
                                                 const std::string &device,
                                                 unsigned threads,
                                                 bool allowJit) {
  std::unique_ptr<Session> session(new Session);
  if (Status s = session->start(bundle, device, threads, allowJit); !s)
    return s.error();
  return session;
}

Session::~Session() {
  nova_rt_instance_close(instance);
  nova_rt_program_close(program);
  nova_rt_bundle_close(bundle);
}

Status Session::start(const std::string &path, const std::string &device,
                      unsigned threads, bool allowJit) {
  Expected<int32_t> ordinal = deviceOf(device);
  if (!ordinal)
    return ordinal.error();
  nova_rt_status_t status = nova_rt_bundle_open(path.c_str(), &bundle);
  if (status)
    return abiError(status);
  uint32_t target = 0;
  if ((status = nova_rt_bundle_choose(bundle, *ordinal, &target)))
    return abiError(status);
  nova_rt_load_options_t load = {};
  load.struct_size = sizeof load;
  load.allow_jit = allowJit;
  if ((status = nova_rt_program_load(bundle, target, &load, &program)))
    return abiError(status);
  nova_rt_instance_options_t create = {};
  create.struct_size = sizeof create;
  create.threads = threads;
  if ((status = nova_rt_instance_create(program, &create, &instance)))
    return abiError(status);

  nova_rt_bundle_info_t info = {};
  info.struct_size = sizeof info;
  nova_rt_target_t described = {};
  described.struct_size = sizeof described;
  if ((status = nova_rt_bundle_info(bundle, &info)) ||
      (status = nova_rt_bundle_target(bundle, target, &described)))
    return abiError(status);
  name = info.name;
  matmul = info.matmul;
  graph16bit = info.graph_16bit != 0;
  targetName = described.name;

  for (bool isInput : {true, false}) {
    uint32_t count = isInput ? info.inputs : info.outputs;
    for (uint32_t i = 0; i < count; ++i) {
      nova_rt_tensor_t t = {};
      t.struct_size = sizeof t;
      if ((status = isInput ? nova_rt_bundle_input(bundle, i, &t)
                            : nova_rt_bundle_output(bundle, i, &t)))
        return abiError(status);
      Tensor tensor = tensorOf(t);
      if (!tensor.updates) {
        Expected<Memory> memory =
            allocate(t.bytes, std::max<uint64_t>(t.alignment, 64), tensor.name);
        if (!memory)
          return memory.error();
        // Gaps between strides have a value too: runs repeat bit for bit.
        std::memset(memory->get(), 0, t.bytes);
        status = isInput
                     ? nova_rt_instance_bind_input(instance, i, memory->get())
                     : nova_rt_instance_bind_output(instance, i, memory->get());
        if (status)
          return abiError(status);
        tensor.memory = std::move(*memory);
      }
      (isInput ? inputs : outputs).push_back(std::move(tensor));
    }
  }
  return Status::ok();
}

Expected<std::string> run::readTensor(const SafetensorsFile &file,
                                      const std::string &key,
                                      const Tensor &tensor,
                                      const std::string &what) {
  const SafetensorsEntry *entry = file.find(key);
  if (!entry)
    return badInput("data file '" + file.path() + "' has no tensor \"" + key +
                        "\", expected " + describe(tensor) + " for " + what,
                    "is it the data of this graph?");
  if (graphDtypeOf(entry->dtype) != tensor.dtypeName ||
      entry->shape != tensor.shape)
    return badInput("data file '" + file.path() + "': tensor \"" + key +
                        "\" is " + entry->dtype + " " +
                        shapeText(entry->shape) + ", expected " +
                        std::string(safetensorsDtypeOf(tensor.dtypeName)) +
                        " " + shapeText(tensor.shape) + " for " + what,
                    "is it the data of this graph?");
  return file.read(*entry);
}

Status Session::loadInputs(const SafetensorsFile &file) {
  for (const SafetensorsEntry &entry : file.entries()) {
    if (entry.name.rfind("in/", 0) != 0)
      continue;
    auto same = [&](const Tensor &t) {
      return std::string_view(entry.name).substr(3) == t.name;
    };
    if (std::none_of(inputs.begin(), inputs.end(), same))
      return badInput("data file '" + file.path() + "': tensor \"" +
                          entry.name + "\" is for no input of \"" + name + "\"",
                      "is it the data of this graph?");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor &tensor = inputs[i];
    Expected<std::string> bytes = readTensor(file, "in/" + tensor.name, tensor,
                                             "input " + std::to_string(i));
    if (!bytes)
      return bytes.error();
    if (!scatter(tensor, *bytes, tensor.data()))
      return badInput("data file '" + file.path() + "': tensor \"in/" +
                      tensor.name +
                      "\" differs along a dimension of stride 0, expected "
                      "equal elements where they share memory");
  }
  return Status::ok();
}

Status Session::set(const std::string &assignment) {
  size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    return usage("\"" + assignment + "\", expected NAME=VALUE");
  std::string key = assignment.substr(0, equals);
  std::string text = assignment.substr(equals + 1);
  std::string scalars;
  Tensor *found = nullptr;
  // A name is unique, a path may not be: names first.
  for (bool byPath : {false, true})
    for (Tensor &t : inputs)
      if (!found && key == (byPath ? t.path : t.name))
        found = &t;
  for (const Tensor &t : inputs)
    if (t.role == "scalar") {
      if (!scalars.empty())
        scalars += ", ";
      scalars += t.name;
    }
  if (!found || found->role != "scalar")
    return usage(
        "\"" + key + "\" is no scalar input of \"" + name +
        "\", expected one of: " + (scalars.empty() ? "none" : scalars));
  const char *begin = text.data(), *end = begin + text.size();
  bool good;
  if (isFloat(found->dtype)) {
    double value = 0;
    auto r = std::from_chars(begin, end, value);
    good = r.ec == std::errc() && r.ptr == end;
    if (good)
      storeElement(found->dtype, found->data(), value);
  } else {
    int64_t value = 0;
    auto r = std::from_chars(begin, end, value);
    good = r.ec == std::errc() && r.ptr == end;
    if (good) {
      int64_t old = loadInteger(found->dtype, found->data());
      storeInteger(found->dtype, found->data(), value);
      good = loadInteger(found->dtype, found->data()) == value;
      if (!good)
        storeInteger(found->dtype, found->data(), old);
    }
  }
  if (!good)
    return usage("\"" + text + "\" for \"" + key + "\", expected a " +
                 found->dtypeName);
  return Status::ok();
}

Status Session::step() {
  nova_rt_status_t status = nova_rt_instance_launch(instance, nullptr);
  return status ? Status(abiError(status)) : Status::ok();
}

Status Session::advance() {
  nova_rt_status_t status = nova_rt_instance_advance(instance, nullptr);
  return status ? Status(abiError(status)) : Status::ok();
}

std::string Session::output(uint32_t index) const {
  const Tensor &t = outputs[index];
  return gather(t, t.updates ? inputs[*t.updates].data() : t.data());
}

std::string Session::input(uint32_t index) const {
  return gather(inputs[index], inputs[index].data());
}

unsigned Session::threads() const { return nova_rt_instance_threads(instance); }
