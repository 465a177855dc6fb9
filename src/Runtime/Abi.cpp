//===- Abi.cpp - The C ABI of libnova_rt ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments are checked here; what the functions do is in the other files. The
// only exported symbols are these and AbiDevice.cpp's (nova_rt.map).
//
//===----------------------------------------------------------------------===//

#include "AbiSupport.h"
#include "nova/Support/Version.h"

#include <cstring>
#include <string>

using namespace nova;
using namespace nova::rt;

namespace {

nova_rt_tensor_t describe(const bundle::TensorDesc &t, int64_t updates) {
  nova_rt_tensor_t out;
  std::memset(&out, 0, sizeof out);
  out.name = t.name.c_str();
  out.role = t.role.c_str();
  out.path = t.path.c_str();
  out.dtype = t.dtype.c_str();
  out.rank = static_cast<uint32_t>(t.shape.size());
  out.shape = t.shape.data();
  out.strides = t.strides.data();
  out.bytes = t.bytes;
  out.alignment = t.alignment;
  out.updates = updates;
  if (t.advance) {
    out.has_advance = 1;
    out.advance = *bundle::parseHexFloat(*t.advance);
  }
  return out;
}

nova_rt_status_t outOfRange(const char *what, uint32_t index, size_t count) {
  return fail({ErrorCode::Usage,
               std::string(what) + " " + std::to_string(index) +
                   ", the bundle has " + std::to_string(count),
               {}});
}

} // namespace

int32_t nova_rt_abi_version(void) { return NOVA_RT_ABI_VERSION; }
const char *nova_rt_version(void) { return versionString(); }
const char *nova_rt_error_message(void) { return lastError().message.c_str(); }
const char *nova_rt_error_hint(void) { return lastError().hint.c_str(); }

nova_rt_status_t nova_rt_bundle_open(const char *path,
                                     nova_rt_bundle_t **bundle) {
  return guarded([&] {
    if (!path || !bundle)
      return failUsage("nova_rt_bundle_open: a null argument");
    auto opened = OpenedBundle::open(path);
    if (!opened)
      return fail(opened.error());
    *bundle = new nova_rt_bundle_t{std::move(*opened)};
    return nova_rt_status_t(NOVA_RT_OK);
  });
}

void nova_rt_bundle_close(nova_rt_bundle_t *bundle) { delete bundle; }

nova_rt_status_t nova_rt_bundle_verify(const nova_rt_bundle_t *bundle) {
  return guarded([&] {
    if (!bundle)
      return failUsage("nova_rt_bundle_verify: a null bundle");
    return statusOf(bundle->bundle->verify());
  });
}

nova_rt_status_t nova_rt_bundle_info(const nova_rt_bundle_t *bundle,
                                     nova_rt_bundle_info_t *info) {
  return guarded([&] {
    if (!bundle)
      return failUsage("nova_rt_bundle_info: a null bundle");
    const bundle::Manifest &m = bundle->bundle->manifest;
    nova_rt_bundle_info_t out;
    std::memset(&out, 0, sizeof out);
    out.name = m.name.c_str();
    out.graph_digest = m.graphDigest.c_str();
    out.matmul = m.numerics.matmul.c_str();
    out.graph_16bit = m.numerics.graph16bit;
    out.inputs = static_cast<uint32_t>(m.inputs.size());
    out.outputs = static_cast<uint32_t>(m.outputs.size());
    out.targets = static_cast<uint32_t>(m.targets.size());
    out.blobs = static_cast<uint32_t>(m.blobs.size());
    return fill(info, out, sizeof(nova_rt_bundle_info_t));
  });
}

nova_rt_status_t nova_rt_bundle_input(const nova_rt_bundle_t *bundle,
                                      uint32_t index,
                                      nova_rt_tensor_t *tensor) {
  return guarded([&] {
    if (!bundle)
      return failUsage("nova_rt_bundle_input: a null bundle");
    const auto &inputs = bundle->bundle->manifest.inputs;
    if (index >= inputs.size())
      return outOfRange("input", index, inputs.size());
    return fill(tensor, describe(inputs[index], -1), sizeof(nova_rt_tensor_t));
  });
}

nova_rt_status_t nova_rt_bundle_output(const nova_rt_bundle_t *bundle,
                                       uint32_t index,
                                       nova_rt_tensor_t *tensor) {
  return guarded([&] {
    if (!bundle)
      return failUsage("nova_rt_bundle_output: a null bundle");
    const auto &outputs = bundle->bundle->manifest.outputs;
    if (index >= outputs.size())
      return outOfRange("output", index, outputs.size());
    const bundle::OutputDesc &o = outputs[index];
    return fill(tensor, describe(o, o.updates ? int64_t(*o.updates) : -1),
                sizeof(nova_rt_tensor_t));
  });
}

nova_rt_status_t nova_rt_bundle_target(const nova_rt_bundle_t *bundle,
                                       uint32_t index,
                                       nova_rt_target_t *target) {
  return guarded([&] {
    if (!bundle)
      return failUsage("nova_rt_bundle_target: a null bundle");
    const auto &targets = bundle->bundle->manifest.targets;
    if (index >= targets.size())
      return outOfRange("target", index, targets.size());
    const bundle::Target &t = targets[index];
    nova_rt_target_t out;
    std::memset(&out, 0, sizeof out);
    out.name = t.name.c_str();
    out.device = t.device.c_str();
    out.kernels = static_cast<uint32_t>(t.kernels.size());
    out.launches = static_cast<uint32_t>(t.launches.size());
    out.arena_bytes = t.arena.size;
    out.arena_lower_bound = t.arena.lowerBound;
    for (const bundle::Constant &c : t.constants)
      out.constant_bytes += c.size;
    return fill(target, out, sizeof(nova_rt_target_t));
  });
}

nova_rt_status_t nova_rt_bundle_choose(const nova_rt_bundle_t *bundle,
                                       int32_t device, uint32_t *target) {
  return guarded([&] {
    if (!bundle || !target)
      return failUsage("nova_rt_bundle_choose: a null argument");
    Expected<uint32_t> chosen = bundle->bundle->choose(device, false);
    if (!chosen)
      return fail(chosen.error());
    *target = *chosen;
    return nova_rt_status_t(NOVA_RT_OK);
  });
}

nova_rt_status_t nova_rt_program_load(const nova_rt_bundle_t *bundle,
                                      uint32_t target,
                                      const nova_rt_load_options_t *given,
                                      nova_rt_program_t **program) {
  return guarded([&] {
    if (!bundle || !program)
      return failUsage("nova_rt_program_load: a null argument");
    auto options = optionsOf(given);
    if (!options)
      return fail(options.error());
    LoadOptions load;
    load.allowJit = options->allow_jit != 0;
    load.context = options->context;
    load.device = options->device;
    load.callerBytes = options->caller_bytes;
    auto loaded = Program::load(bundle->bundle, target, load);
    if (!loaded)
      return fail(loaded.error());
    *program = new nova_rt_program_t{std::move(*loaded)};
    return nova_rt_status_t(NOVA_RT_OK);
  });
}

void nova_rt_program_close(nova_rt_program_t *program) { delete program; }

nova_rt_status_t
nova_rt_instance_create(const nova_rt_program_t *program,
                        const nova_rt_instance_options_t *given,
                        nova_rt_instance_t **instance) {
  return guarded([&] {
    if (!program || !instance)
      return failUsage("nova_rt_instance_create: a null argument");
    auto options = optionsOf(given);
    if (!options)
      return fail(options.error());
    InstanceOptions create;
    create.threads = options->threads;
    if (options->launch < NOVA_RT_LAUNCH_GRAPH ||
        options->launch > NOVA_RT_LAUNCH_PLAIN)
      return fail({ErrorCode::Usage,
                   "launch: " + std::to_string(options->launch) +
                       ", expected one of NOVA_RT_LAUNCH_...",
                   {}});
    create.mode = static_cast<LaunchMode>(options->launch);
    auto created = program->program->instantiate(create);
    if (!created)
      return fail(created.error());
    *instance = new nova_rt_instance_t{std::move(*created)};
    return nova_rt_status_t(NOVA_RT_OK);
  });
}

void nova_rt_instance_close(nova_rt_instance_t *instance) { delete instance; }

nova_rt_status_t nova_rt_instance_bind_input(nova_rt_instance_t *instance,
                                             uint32_t index, void *address) {
  return guarded([&] {
    if (!instance)
      return failUsage("nova_rt_instance_bind_input: a null instance");
    return statusOf(instance->instance->bindInput(index, address));
  });
}

nova_rt_status_t nova_rt_instance_bind_output(nova_rt_instance_t *instance,
                                              uint32_t index, void *address) {
  return guarded([&] {
    if (!instance)
      return failUsage("nova_rt_instance_bind_output: a null instance");
    return statusOf(instance->instance->bindOutput(index, address));
  });
}

nova_rt_status_t nova_rt_instance_launch(nova_rt_instance_t *instance,
                                         void *stream) {
  return guarded([&] {
    if (!instance)
      return failUsage("nova_rt_instance_launch: a null instance");
    return statusOf(instance->instance->launch(stream));
  });
}

nova_rt_status_t nova_rt_instance_advance(nova_rt_instance_t *instance,
                                          void *stream) {
  return guarded([&] {
    if (!instance)
      return failUsage("nova_rt_instance_advance: a null instance");
    return statusOf(instance->instance->advance(stream));
  });
}

uint32_t nova_rt_instance_threads(const nova_rt_instance_t *instance) {
  return instance ? instance->instance->threads() : 0;
}
