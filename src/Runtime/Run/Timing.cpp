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

/// A second buffer for everything, in one piece of device memory: all of them
/// can be moved at once to addresses that were not used before. Only integers
/// have values there, zeros, for they may be indices: it is the CPU's time that
/// is measured.
class SecondSet {
public:
  explicit SecondSet(Session &session) : session(session) {}
  ~SecondSet() { nova_rt_memory_free(session.loaded(), memory); }

  /// False without memory for it.
  bool allocate() {
    for (auto *tensors : {&session.outputs, &session.inputs})
      for (Tensor &t : *tensors)
        unit = std::max(unit, t.alignment);
    uint64_t total = 0;
    for (auto *tensors : {&session.outputs, &session.inputs})
      for (Tensor &t : *tensors) {
        if (t.updates)
          continue;
        // Integers have room of their own at all addresses.
        uint64_t bytes = (t.bytes + unit - 1) / unit * unit;
        bool own = total == 0 || !rt::isFloat(t.dtype);
        uint64_t begin = total;
        total += bytes + (own ? kMoves * unit : 0);
        places.push_back({&t, total - bytes, begin, total});
      }
    return !nova_rt_memory_alloc(session.loaded(), total, &memory);
  }
  Status fill() {
    for (const Place &p : places) {
      if (rt::isFloat(p.tensor->dtype))
        continue;
      std::string zeros(p.end - p.begin, '\0');
      if (auto status = nova_rt_memory_write(
              session.loaded(), static_cast<char *>(memory) + p.begin,
              zeros.data(), zeros.size(), session.stream()))
        return abiError(status);
    }
    return Status::ok();
  }
  /// From now on all addresses here are others.
  void move() { moves = (moves + 1) % kMoves; }
  /// All addresses, outputs and then inputs, as bind takes them; `count` of
  /// them here, spread over the signature, the rest the session's own.
  void addresses(size_t count, std::vector<void *> (&to)[2]) const {
    to[0].clear(), to[1].clear();
    size_t seen = 0, all = places.size();
    for (bool isInput : {false, true})
      for (Tensor &t : isInput ? session.inputs : session.outputs) {
        if (t.updates) {
          to[isInput].push_back(nullptr);
          continue;
        }
        size_t i = seen++;
        bool here = (i + 1) * count / all != i * count / all;
        to[isInput].push_back(here ? static_cast<char *>(memory) +
                                         places[i].offset - unit * moves
                                   : t.device);
      }
  }
  size_t size() const { return places.size(); }

private:
  static constexpr uint64_t kMoves = 256;
  struct Place {
    const Tensor *tensor;
    uint64_t offset;     ///< Before it is moved.
    uint64_t begin, end; ///< Its room.
  };

  Session &session;
  std::vector<Place> places;
  void *memory = nullptr;
  uint64_t unit = 256; ///< Bytes: every alignment divides it.
  uint64_t moves = 0;
};

/// Binds and launches, and times that.
class BindTimer {
public:
  BindTimer(Session &session, SecondSet &second, bool idle)
      : session(session), second(second), idle(idle) {}

  Status all(Timings::Binding &b) {
    size_t all = second.size();
    Status s = samples(all, true, b.all);
    if (s)
      s = samples(std::min<size_t>(1, all), true, b.one);
    if (s)
      s = samples(std::min<size_t>(16, all), true, b.sixteen);
    for (int i = 0; i < kBindings + 4 && s; ++i)
      s = sample(i % 2 ? 0 : all, false, i < 4 ? nullptr : &b.alternating);
    if (s)
      s = session.synchronize();
    // Last, with the session's own buffers.
    return s ? samples(0, false, b.unchanged) : s;
  }

private:
  /// `count` buffers are at other addresses than the session's own; at new ones
  /// with `fresh`.
  Status sample(size_t count, bool fresh, std::vector<double> *samples) {
    if (fresh)
      second.move();
    second.addresses(count, to);
    if (idle)
      if (Status s = session.synchronize(); !s)
        return s;
    Stopwatch watch;
    auto status =
        nova_rt_instance_bind(session.handle(), to[1].data(), to[1].size(),
                              to[0].data(), to[0].size());
    if (!status)
      status = nova_rt_instance_launch(session.handle(), session.stream());
    double microseconds = watch.lap() * 1000;
    if (samples)
      samples->push_back(microseconds);
    return status ? Status(abiError(status)) : Status::ok();
  }
  /// kBindings of them, after two that warm up.
  Status samples(size_t count, bool fresh, std::vector<double> &to) {
    for (int i = -2; i < kBindings; ++i)
      if (Status s = sample(count, fresh, i < 0 ? nullptr : &to); !s)
        return s;
    return session.synchronize();
  }

  Session &session;
  SecondSet &second;
  bool idle;
  std::vector<void *> to[2];
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
  SecondSet second(session);
  if (!second.allocate())
    return Status::ok(); // no room: not measured
  if (Status s = second.fill(); !s)
    return s;
  Status s = BindTimer(session, second, true).all(timings.idle.emplace());
  return s ? BindTimer(session, second, false).all(timings.loop.emplace()) : s;
}

nlohmann::json run::toJson(const Timings &t, const Session &session) {
  nova_rt_instance_info_t info = {};
  info.struct_size = sizeof info;
  nova_rt_instance_info(session.handle(), &info);
  const OpenTimes &open = session.times;
  auto binding = [](const std::optional<Timings::Binding> &b) {
    return b ? nlohmann::json{{"unchanged", statistics(b->unchanged)},
                              {"alternating", statistics(b->alternating)},
                              {"1_new", statistics(b->one)},
                              {"16_new", statistics(b->sixteen)},
                              {"all_new", statistics(b->all)}}
             : nlohmann::json();
  };
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
          {"bind_launch_us", binding(t.loop)},
          {"bind_launch_idle_us", binding(t.idle)},
          {"graph_builds", info.graph_builds},
          {"graph_nodes", info.graph_nodes}};
}
