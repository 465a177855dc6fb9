//===- Session.cpp - A bundle with buffers, ready to step -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include "Stopwatch.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ostream>
#include <thread>

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
  out.alignment = t.alignment;
  out.elements = 1;
  for (int64_t extent : out.shape)
    out.elements *= static_cast<uint64_t>(extent);
  if (t.updates >= 0)
    out.updates = static_cast<uint32_t>(t.updates);
  if (t.has_advance)
    out.advance = t.advance;
  return out;
}

Expected<int32_t> launchOf(const std::string &text) {
  if (text.empty() || text == "graph")
    return NOVA_RT_LAUNCH_GRAPH;
  if (text == "chain")
    return NOVA_RT_LAUNCH_CHAIN;
  if (text == "plain")
    return NOVA_RT_LAUNCH_PLAIN;
  return usage("launch \"" + text + "\", expected graph, chain or plain");
}

} // namespace

Expected<int32_t> run::deviceOf(const std::string &text) {
  if (text == "host")
    return NOVA_RT_DEVICE_HOST;
  int32_t ordinal = -1;
  auto end = std::from_chars(text.data(), text.data() + text.size(), ordinal);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() ||
      ordinal < 0)
    return usage("device \"" + text +
                 "\", expected host or the number of a GPU");
  return ordinal;
}

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

Expected<std::unique_ptr<Session>> Session::open(const SessionOptions &options,
                                                 std::ostream &log) {
  std::unique_ptr<Session> session(new Session);
  if (Status s = session->start(options, log); !s)
    return s.error();
  return session;
}

Session::~Session() {
  // The GPU may still be at work on the buffers after a failure.
  if (queue)
    nova_rt_stream_synchronize(program, queue);
  nova_rt_instance_close(instance);
  if (onGpu && program)
    for (std::vector<Tensor> *tensors : {&inputs, &outputs})
      for (const Tensor &t : *tensors)
        nova_rt_memory_free(program, t.device);
  if (queue)
    nova_rt_stream_destroy(program, queue);
  nova_rt_program_close(program);
  nova_rt_bundle_close(bundle);
}

Status Session::choose(const SessionOptions &options, int32_t &device,
                       uint32_t &target) {
  nova_rt_bundle_info_t info = {};
  info.struct_size = sizeof info;
  if (nova_rt_status_t status = nova_rt_bundle_info(bundle, &info))
    return abiError(status);
  bool hasHost = false;
  for (uint32_t i = 0; i < info.targets; ++i) {
    nova_rt_target_t t = {};
    t.struct_size = sizeof t;
    if (nova_rt_status_t status = nova_rt_bundle_target(bundle, i, &t))
      return abiError(status);
    hasHost |= std::string_view(t.name) == "host";
  }
  if (options.device.empty()) {
    device = hasHost || !info.targets ? NOVA_RT_DEVICE_HOST : 0;
  } else {
    Expected<int32_t> ordinal = deviceOf(options.device);
    if (!ordinal)
      return ordinal.error();
    device = *ordinal;
  }
  nova_rt_choose_options_t how = {};
  how.struct_size = sizeof how;
  how.device = device;
  how.allow_jit = options.allowJit;
  nova_rt_status_t status =
      options.target ? nova_rt_bundle_check(bundle, *options.target, &how)
                     : nova_rt_bundle_choose_for(bundle, &how, &target);
  if (status)
    return abiError(status);
  if (options.target)
    target = *options.target;
  return Status::ok();
}

Status Session::start(const SessionOptions &options, std::ostream &log) {
  Expected<int32_t> launch = launchOf(options.launch);
  if (!launch)
    return launch.error();
  int32_t asked = NOVA_RT_DEVICE_HOST;
  if (!options.device.empty()) {
    Expected<int32_t> ordinal = deviceOf(options.device);
    if (!ordinal)
      return ordinal.error();
    asked = *ordinal;
  }
  Stopwatch watch;
  // Starting the driver takes longer than reading the manifest: meanwhile. What
  // is wrong with it is asked for again, and said, when a target is chosen.
  std::thread driver;
  if (asked >= 0)
    driver = std::thread([asked] {
      nova_rt_device_t device = {};
      device.struct_size = sizeof device;
      nova_rt_device_info(asked, &device);
    });
  nova_rt_status_t status =
      nova_rt_bundle_open(options.bundle.c_str(), &bundle);
  double opened = watch.lap();
  if (driver.joinable())
    driver.join();
  if (status)
    return abiError(status);
  times.open = opened;
  if (options.simulate)
    return openSimulated(options);
  int32_t device = NOVA_RT_DEVICE_HOST;
  uint32_t target = 0;
  if (Status s = choose(options, device, target); !s)
    return s;
  if (Status s = readSignature(); !s)
    return s;
  times.choose = watch.lap();

  onGpu = device >= 0;
  nova_rt_load_options_t load = {};
  load.struct_size = sizeof load;
  load.allow_jit = options.allowJit;
  load.device = onGpu ? device : 0;
  for (const std::vector<Tensor> *tensors : {&inputs, &outputs})
    for (const Tensor &t : *tensors)
      if (onGpu && !t.updates)
        load.caller_bytes += t.bytes;
  if ((status = nova_rt_program_load(bundle, target, &load, &program)))
    return abiError(status);
  nova_rt_program_info_t loaded = {};
  loaded.struct_size = sizeof loaded;
  nova_rt_target_t described = {};
  described.struct_size = sizeof described;
  if ((status = nova_rt_program_info(program, &loaded)) ||
      (status = nova_rt_bundle_target(bundle, target, &described)))
    return abiError(status);
  targetName = described.name;
  targetDevice = described.device;
  deviceName = loaded.device_name;
  times.load = watch.lap();
  if (loaded.jit)
    log << "the driver compiled the PTX of target " << targetName << " ("
        << targetDevice << ") for " << deviceName << '\n';

  nova_rt_instance_options_t create = {};
  create.struct_size = sizeof create;
  create.threads = options.threads;
  create.launch = *launch;
  if ((status = nova_rt_instance_create(program, &create, &instance)) ||
      (status = nova_rt_stream_create(program, &queue)))
    return abiError(status);
  times.create = watch.lap();
  if (Status s = giveBuffers(); !s)
    return s;
  times.bind = watch.lap();
  return Status::ok();
}

Status Session::readSignature() {
  nova_rt_bundle_info_t info = {};
  info.struct_size = sizeof info;
  if (nova_rt_status_t status = nova_rt_bundle_info(bundle, &info))
    return abiError(status);
  name = info.name;
  matmul = info.matmul;
  graph16bit = info.graph_16bit != 0;
  for (bool isInput : {true, false}) {
    uint32_t count = isInput ? info.inputs : info.outputs;
    for (uint32_t i = 0; i < count; ++i) {
      nova_rt_tensor_t t = {};
      t.struct_size = sizeof t;
      if (nova_rt_status_t status = isInput
                                        ? nova_rt_bundle_input(bundle, i, &t)
                                        : nova_rt_bundle_output(bundle, i, &t))
        return abiError(status);
      (isInput ? inputs : outputs).push_back(tensorOf(t));
    }
  }
  return Status::ok();
}

Status Session::giveBuffers() {
  std::vector<void *> addresses[2];
  for (bool isInput : {true, false})
    for (Tensor &t : isInput ? inputs : outputs) {
      if (!t.updates) {
        // Gaps between strides have a value too: runs repeat bit for bit.
        Expected<ZeroedMemory> memory = ZeroedMemory::allocate(
            t.bytes, std::max<uint64_t>(t.alignment, 64), t.name);
        if (!memory)
          return memory.error();
        t.memory = std::move(*memory);
        if (!onGpu)
          t.device = t.data();
        else if (nova_rt_status_t status =
                     nova_rt_memory_alloc(program, t.bytes, &t.device))
          return abiError(status);
      }
      addresses[isInput].push_back(t.device);
    }
  if (simulated)
    return Status::ok();
  nova_rt_status_t status =
      nova_rt_instance_bind(instance, addresses[1].data(), addresses[1].size(),
                            addresses[0].data(), addresses[0].size());
  return status ? Status(abiError(status)) : Status::ok();
}

Status Session::upload() {
  if (!onGpu || uploaded)
    return Status::ok();
  for (const std::vector<Tensor> *tensors : {&inputs, &outputs})
    for (const Tensor &t : *tensors)
      if (!t.updates && t.bytes)
        if (nova_rt_status_t status = nova_rt_memory_write(
                program, t.device, t.data(), t.bytes, queue))
          return abiError(status);
  uploaded = true;
  return Status::ok();
}

Status Session::fetch(const Tensor &t) {
  if (!onGpu || !uploaded || !t.bytes)
    return Status::ok();
  nova_rt_status_t status =
      nova_rt_memory_read(program, t.data(), t.device, t.bytes, queue);
  return status ? Status(abiError(status)) : Status::ok();
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
  uploaded = false;
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
  uploaded = false;
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
  if (simulated)
    return simulateStep();
  if (Status s = upload(); !s)
    return s;
  nova_rt_status_t status = nova_rt_instance_launch(instance, queue);
  return status ? Status(abiError(status)) : Status::ok();
}

Status Session::advance() {
  nova_rt_status_t status = nova_rt_instance_advance(instance, queue);
  return status ? Status(abiError(status)) : Status::ok();
}

Status Session::synchronize() {
  nova_rt_status_t status = nova_rt_stream_synchronize(program, queue);
  return status ? Status(abiError(status)) : Status::ok();
}

Expected<std::string> Session::output(uint32_t index) {
  const Tensor &t = outputs[index];
  const Tensor &owner = t.updates ? inputs[*t.updates] : t;
  if (Status s = fetch(owner); !s)
    return s.error();
  return gather(t, owner.data());
}

Expected<std::string> Session::input(uint32_t index) {
  if (Status s = fetch(inputs[index]); !s)
    return s.error();
  return gather(inputs[index], inputs[index].data());
}

unsigned Session::threads() const { return nova_rt_instance_threads(instance); }
