//===- Timing.cpp - How long steps take -----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Timing.h"

#include "Stopwatch.h"
#include "Text.h"

#include <algorithm>
#include <numeric>

using namespace nova;
using namespace nova::run;

namespace {

/// Steps in flight whose time is not read yet: enough that reading an old one
/// never makes the GPU wait.
constexpr size_t kTimers = 64;
constexpr int kBindings = 20;

struct CloseTimer {
  void operator()(nova_rt_timer_t *timer) const { nova_rt_timer_close(timer); }
};
using TimerHandle = std::unique_ptr<nova_rt_timer_t, CloseTimer>;

double median(std::vector<double> values) {
  size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + ptrdiff_t(middle),
                   values.end());
  double upper = values[middle];
  if (values.size() % 2)
    return upper;
  return (upper + *std::max_element(values.begin(),
                                    values.begin() + ptrdiff_t(middle))) /
         2;
}

nlohmann::json statistics(const std::vector<double> &values) {
  if (values.empty())
    return nullptr;
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"count", values.size()},
          {"min", *least},
          {"median", median(values)},
          {"mean", std::accumulate(values.begin(), values.end(), 0.0) /
                       double(values.size())},
          {"max", *most}};
}

/// Buffers on the device that are freed.
class SecondSet {
public:
  explicit SecondSet(const nova_rt_program_t *program) : program(program) {}
  ~SecondSet() {
    for (auto &side : addresses)
      for (void *address : side)
        nova_rt_memory_free(program, address);
  }
  std::vector<void *> addresses[2]; ///< Outputs, inputs.

private:
  const nova_rt_program_t *program;
};

} // namespace

std::string run::summary(std::vector<double> values) {
  if (values.empty())
    return "not measured";
  auto text = [](double v) {
    return numberText(rt::DType::F32, std::round(v * 1000) / 1000);
  };
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::string range = " (min " + text(*least) + ", max " + text(*most) + ")";
  return "median " + text(median(values)) + range;
}

Expected<Timings> run::timeSteps(Session &session, uint64_t steps) {
  Timings timings;
  std::vector<TimerHandle> timers;
  for (size_t i = 0; i < std::min<uint64_t>(steps, kTimers); ++i) {
    nova_rt_timer_t *timer = nullptr;
    if (auto status = nova_rt_timer_create(session.loaded(), &timer))
      return abiError(status);
    timers.emplace_back(timer);
  }
  auto read = [&](uint64_t step) {
    double milliseconds = 0;
    nova_rt_status_t status =
        nova_rt_timer_milliseconds(timers[step % kTimers].get(), &milliseconds);
    timings.step.push_back(milliseconds);
    return status;
  };
  if (Status s = session.upload(); !s)
    return s.error();
  void *stream = session.stream();
  for (uint64_t step = 0; step < steps; ++step) {
    if (step >= kTimers)
      if (auto status = read(step - kTimers))
        return abiError(status);
    nova_rt_timer_t *timer = timers[step % kTimers].get();
    if (auto status = nova_rt_timer_start(timer, stream))
      return abiError(status);
    Stopwatch watch;
    if (Status s = session.step(); !s)
      return s.error();
    double milliseconds = watch.lap();
    if (auto status = nova_rt_timer_stop(timer, stream))
      return abiError(status);
    if (step == 0)
      timings.firstLaunch = milliseconds;
    timings.launch.push_back(milliseconds * 1000);
    if (Status s = session.advance(); !s)
      return s.error();
  }
  for (uint64_t step = steps - std::min<uint64_t>(steps, kTimers); step < steps;
       ++step)
    if (auto status = read(step))
      return abiError(status);
  // The first one warms up.
  if (steps > 1) {
    timings.step.erase(timings.step.begin());
    timings.launch.erase(timings.launch.begin());
  }
  if (Status s = session.synchronize(); !s)
    return s.error();
  return timings;
}

Status run::timeBinding(Session &session, Timings &timings) {
  if (!session.onGpu)
    return Status::ok();
  const nova_rt_program_t *program = session.loaded();
  std::vector<void *> first[2];
  SecondSet second(program);
  for (bool isInput : {true, false})
    for (Tensor &t : isInput ? session.inputs : session.outputs) {
      first[isInput].push_back(t.device);
      void *address = nullptr;
      if (!t.updates && nova_rt_memory_alloc(program, t.bytes, &address))
        return Status::ok(); // no room: not measured
      second.addresses[isInput].push_back(address);
      // The same values, so that the step does what it did.
      if (t.updates || !t.bytes)
        continue;
      if (Status s = session.fetch(t); !s)
        return s;
      if (auto status = nova_rt_memory_write(program, address, t.data(),
                                             t.bytes, session.stream()))
        return abiError(status);
    }
  timings.unchanged.emplace();
  timings.rebound.emplace();
  // Last to the session's own buffers.
  for (int i = 0; i < 2 * kBindings; ++i) {
    auto &to = i % 2 ? first : second.addresses;
    for (auto *samples : {&*timings.rebound, &*timings.unchanged}) {
      if (Status s = session.synchronize(); !s)
        return s;
      Stopwatch watch;
      auto status =
          nova_rt_instance_bind(session.handle(), to[1].data(), to[1].size(),
                                to[0].data(), to[0].size());
      if (!status)
        status = nova_rt_instance_launch(session.handle(), session.stream());
      samples->push_back(watch.lap() * 1000);
      if (status)
        return abiError(status);
    }
  }
  return session.synchronize();
}

nlohmann::json run::toJson(const Timings &t, const Session &session) {
  nova_rt_instance_info_t info = {};
  info.struct_size = sizeof info;
  nova_rt_instance_info(session.handle(), &info);
  const OpenTimes &open = session.times;
  return {{"open_ms",
           {{"manifest", open.open},
            {"choose", open.choose},
            {"load", open.load},
            {"arena", open.create},
            {"buffers", open.bind}}},
          {"first_launch_ms", t.firstLaunch},
          {"open_to_first_launch_ms", open.total() + t.firstLaunch},
          {"step_ms", statistics(t.step)},
          {"launch_us", statistics(t.launch)},
          {"bind_unchanged_launch_us",
           t.unchanged ? statistics(*t.unchanged) : nlohmann::json()},
          {"bind_all_changed_launch_us",
           t.rebound ? statistics(*t.rebound) : nlohmann::json()},
          {"graph_nodes", info.graph_nodes}};
}
