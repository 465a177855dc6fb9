//===- AbiDevice.cpp - The C ABI: devices, their memory, streams, time ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that ABI 2 added.
//
//===----------------------------------------------------------------------===//

#include "AbiSupport.h"
#include "Cuda/CudaDevice.h"

#include <cstring>

using namespace nova;
using namespace nova::rt;

namespace {

/// Runs `body` when none of the pointers is null.
template <typename F, typename... P>
nova_rt_status_t withArguments(const char *function, F body, P *...pointers) {
  return guarded([&]() -> nova_rt_status_t {
    if (((pointers == nullptr) || ...))
      return fail(
          {ErrorCode::Usage, std::string(function) + ": a null argument", {}});
    return body();
  });
}

/// A result into where the caller wants it, which a failure leaves alone.
template <typename T> nova_rt_status_t give(Expected<T> result, T *to) {
  if (!result)
    return fail(result.error());
  *to = std::move(*result);
  return NOVA_RT_OK;
}

} // namespace

nova_rt_status_t nova_rt_device_info(int32_t device, nova_rt_device_t *info) {
  return withArguments(
      "nova_rt_device_info",
      [&]() -> nova_rt_status_t {
        if (device < 0)
          return fail({ErrorCode::Usage,
                       "device " + std::to_string(device) +
                           ", expected the ordinal of a GPU",
                       {}});
        Expected<const cuda::Driver *> driver = cuda::Driver::open();
        if (!driver)
          return fail(driver.error());
        Expected<cuda::DeviceFacts> facts = cuda::deviceFacts(**driver, device);
        if (!facts)
          return fail(facts.error());
        nova_rt_device_t out;
        std::memset(&out, 0, sizeof out);
        facts->name.copy(out.name, sizeof out.name - 1);
        out.major = facts->major;
        out.minor = facts->minor;
        out.driver_version = facts->driverVersion;
        out.total_bytes = facts->totalBytes;
        out.shared_bytes_per_block = facts->sharedBytesPerBlock;
        out.devices = facts->devices;
        return fill(info, out, sizeof out);
      },
      info);
}

nova_rt_status_t
nova_rt_bundle_choose_for(const nova_rt_bundle_t *bundle,
                          const nova_rt_choose_options_t *given,
                          uint32_t *target) {
  return withArguments(
      "nova_rt_bundle_choose_for",
      [&]() -> nova_rt_status_t {
        auto options = optionsOf(given);
        if (!options)
          return fail(options.error());
        return give(
            bundle->bundle->choose(options->device, options->allow_jit != 0),
            target);
      },
      bundle, given, target);
}

nova_rt_status_t nova_rt_bundle_check(const nova_rt_bundle_t *bundle,
                                      uint32_t target,
                                      const nova_rt_choose_options_t *given) {
  return withArguments(
      "nova_rt_bundle_check",
      [&]() -> nova_rt_status_t {
        auto options = optionsOf(given);
        if (!options)
          return fail(options.error());
        return statusOf(bundle->bundle->check(target, options->device,
                                              options->allow_jit != 0));
      },
      bundle, given);
}

nova_rt_status_t nova_rt_program_info(const nova_rt_program_t *program,
                                      nova_rt_program_info_t *info) {
  return withArguments(
      "nova_rt_program_info",
      [&] {
        const Program &p = *program->program;
        nova_rt_program_info_t out;
        std::memset(&out, 0, sizeof out);
        out.target =
            static_cast<uint32_t>(p.target - p.bundle->manifest.targets.data());
        out.device = p.device();
        out.device_name = p.deviceName().c_str();
        out.jit = p.jit();
        return fill(info, out, sizeof out);
      },
      program, info);
}

nova_rt_status_t nova_rt_instance_bind(nova_rt_instance_t *instance,
                                       void *const *inputs, size_t input_count,
                                       void *const *outputs,
                                       size_t output_count) {
  return withArguments(
      "nova_rt_instance_bind",
      [&] {
        return statusOf(instance->instance->bindAll(inputs, input_count,
                                                    outputs, output_count));
      },
      instance);
}

nova_rt_status_t nova_rt_instance_info(const nova_rt_instance_t *instance,
                                       nova_rt_instance_info_t *info) {
  return withArguments(
      "nova_rt_instance_info",
      [&] {
        const Instance &i = *instance->instance;
        InstanceCounts counts = i.counts();
        nova_rt_instance_info_t out;
        std::memset(&out, 0, sizeof out);
        out.threads = i.threads();
        out.launch = static_cast<int32_t>(i.mode());
        out.launches = counts.launches;
        out.graph_builds = counts.graphBuilds;
        out.graph_nodes = counts.graphNodes;
        out.node_updates = counts.nodeUpdates;
        return fill(info, out, sizeof out);
      },
      instance, info);
}

nova_rt_status_t nova_rt_memory_alloc(const nova_rt_program_t *program,
                                      uint64_t bytes, void **address) {
  return withArguments(
      "nova_rt_memory_alloc",
      [&] { return give(program->program->allocate(bytes), address); }, program,
      address);
}

nova_rt_status_t nova_rt_memory_free(const nova_rt_program_t *program,
                                     void *address) {
  return withArguments(
      "nova_rt_memory_free",
      [&] {
        return address ? statusOf(program->program->release(address))
                       : nova_rt_status_t(NOVA_RT_OK);
      },
      program);
}

nova_rt_status_t nova_rt_memory_write(const nova_rt_program_t *program,
                                      void *to, const void *from,
                                      uint64_t bytes, void *stream) {
  return withArguments(
      "nova_rt_memory_write",
      [&] {
        return statusOf(program->program->write(to, from, bytes, stream));
      },
      program, to, from);
}

nova_rt_status_t nova_rt_memory_read(const nova_rt_program_t *program, void *to,
                                     const void *from, uint64_t bytes,
                                     void *stream) {
  return withArguments(
      "nova_rt_memory_read",
      [&] { return statusOf(program->program->read(to, from, bytes, stream)); },
      program, to, from);
}

nova_rt_status_t nova_rt_stream_create(const nova_rt_program_t *program,
                                       void **stream) {
  return withArguments(
      "nova_rt_stream_create",
      [&] { return give(program->program->createStream(), stream); }, program,
      stream);
}

nova_rt_status_t nova_rt_stream_destroy(const nova_rt_program_t *program,
                                        void *stream) {
  return withArguments(
      "nova_rt_stream_destroy",
      [&] {
        return stream ? statusOf(program->program->destroyStream(stream))
                      : nova_rt_status_t(NOVA_RT_OK);
      },
      program);
}

nova_rt_status_t nova_rt_stream_synchronize(const nova_rt_program_t *program,
                                            void *stream) {
  return withArguments(
      "nova_rt_stream_synchronize",
      [&] { return statusOf(program->program->synchronize(stream)); }, program);
}

nova_rt_status_t nova_rt_timer_create(const nova_rt_program_t *program,
                                      nova_rt_timer_t **timer) {
  return withArguments(
      "nova_rt_timer_create",
      [&]() -> nova_rt_status_t {
        auto created = program->program->createTimer();
        if (!created)
          return fail(created.error());
        *timer = new nova_rt_timer_t{std::move(*created)};
        return NOVA_RT_OK;
      },
      program, timer);
}

nova_rt_status_t nova_rt_timer_start(nova_rt_timer_t *timer, void *stream) {
  return withArguments(
      "nova_rt_timer_start",
      [&] { return statusOf(timer->timer->start(stream)); }, timer);
}

nova_rt_status_t nova_rt_timer_stop(nova_rt_timer_t *timer, void *stream) {
  return withArguments(
      "nova_rt_timer_stop",
      [&] { return statusOf(timer->timer->stop(stream)); }, timer);
}

nova_rt_status_t nova_rt_timer_milliseconds(nova_rt_timer_t *timer,
                                            double *milliseconds) {
  return withArguments(
      "nova_rt_timer_milliseconds",
      [&] { return give(timer->timer->milliseconds(), milliseconds); }, timer,
      milliseconds);
}

void nova_rt_timer_close(nova_rt_timer_t *timer) { delete timer; }
