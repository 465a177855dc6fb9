//===- OrderCheck.cpp - Launches that share memory, one after another -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device may run two launches at once unless a path of `after` leads from one to
// the other. Launches are looked at in their order; of every byte the last writer
// and the readers since are known, and a launch that touches it must come after
// the writer, one that writes it after those readers, too. Whoever wrote before
// has been checked against the last writer then: paths go on.
//
// A launch touches all of a buffer, input or output that an argument of a kernel
// points into, because strides say what it touches and no manifest has them; a
// copy or a memset touches the bytes that it counts.
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace nova;
using namespace nova::bundle;

bool bundle::writesArgument(const Manifest &m, const Target &t,
                            uint32_t launch, size_t position) {
  const Launch &l = t.launches[launch];
  if (!l.kernel)
    return position == 0;
  const Kernel &k = t.kernels[*l.kernel];
  const LaunchArg &arg = l.args[position];
  if (std::holds_alternative<TensorMap>(arg) ||
      std::holds_alternative<ConstantRef>(arg) ||
      std::holds_alternative<Immediate>(arg))
    return false;
  if (auto found = k.schedule.find("results"); found != k.schedule.end())
    if (const auto *count = std::get_if<int64_t>(&found->second.value)) {
      // Tensor maps follow the results.
      size_t pointers = l.args.size();
      while (pointers && std::holds_alternative<TensorMap>(l.args[pointers - 1]))
        --pointers;
      return static_cast<int64_t>(position) >=
             static_cast<int64_t>(pointers) - *count;
    }
  if (std::holds_alternative<OutputRef>(arg))
    return true;
  if (const auto *b = std::get_if<BufferRef>(&arg))
    return t.arena.buffers[b->buffer].first == launch;
  uint32_t input = std::get<InputRef>(arg).input;
  for (size_t k = position + 1; k < l.args.size(); ++k)
    if (const auto *later = std::get_if<InputRef>(&l.args[k]))
      if (later->input == input)
        return false;
  return std::any_of(m.outputs.begin(), m.outputs.end(),
                     [&](const OutputDesc &o) { return o.updates == input; });
}

namespace {

/// A memory of its own: the arena, an input, or an output that updates none.
struct Space {
  enum Kind { Arena, Input, Output } kind = Arena;
  uint32_t index = 0;
  auto operator<=>(const Space &) const = default;
};

/// What one launch does to one range of a space.
struct Access {
  Space space;
  uint64_t begin = 0, end = 0;
  uint32_t buffer = 0; ///< Of the arena.
  bool reads = false, writes = false;
};

/// Bytes of a space between two neighbouring ends of accesses.
struct Segment {
  int64_t writer = -1;
  std::vector<uint32_t> readers; ///< Since the writer.
};

/// For each launch those that must be over before it starts, as bits.
class Ancestors {
public:
  explicit Ancestors(const std::vector<Launch> &launches)
      : words((launches.size() + 63) / 64), bits(words * launches.size()) {
    for (size_t i = 0; i < launches.size(); ++i)
      for (uint32_t before : launches[i].after) {
        for (size_t w = 0; w < words; ++w)
          bits[i * words + w] |= bits[before * words + w];
        bits[i * words + before / 64] |= uint64_t(1) << before % 64;
      }
  }
  bool before(uint32_t earlier, uint32_t later) const {
    return bits[later * words + earlier / 64] >> earlier % 64 & 1;
  }

private:
  size_t words;
  std::vector<uint64_t> bits;
};

class OrderChecker {
public:
  OrderChecker(Checker &c, const Manifest &m, const Target &t,
               const std::string &path)
      : c(c), m(m), t(t), path(path), ancestors(t.launches) {}

  void run() {
    for (uint32_t i = 0; i < t.launches.size(); ++i)
      accesses.push_back(accessesOf(i));
    for (const auto &list : accesses)
      for (const Access &a : list) {
        ends[a.space].push_back(a.begin);
        ends[a.space].push_back(a.end);
      }
    for (auto &[space, list] : ends) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
      segments[space].resize(list.size());
    }
    for (uint32_t i = 0; i < t.launches.size() && !c.failed(); ++i) {
      std::optional<Missing> missing;
      for (const Access &a : accesses[i])
        check(i, a, missing);
      if (missing)
        fail(i, *missing);
      // Only then: a launch is not ordered against itself.
      for (const Access &a : accesses[i])
        touch(i, a);
    }
  }

private:
  std::vector<Access> accessesOf(uint32_t launch) const {
    const Launch &l = t.launches[launch];
    std::map<std::tuple<Space, uint64_t, uint64_t>, Access> found;
    for (size_t k = 0; k < l.args.size(); ++k) {
      const LaunchArg *arg = &l.args[k];
      LaunchArg memory;
      if (const auto *map = std::get_if<TensorMap>(arg)) {
        std::visit([&](const auto &ref) { memory = ref; }, map->memory);
        arg = &memory;
      }
      Access a;
      uint64_t offset = 0;
      if (const auto *b = std::get_if<BufferRef>(arg)) {
        const ArenaBuffer &buffer = t.arena.buffers[b->buffer];
        a.buffer = b->buffer;
        a.begin = buffer.offset;
        a.end = buffer.offset + buffer.size;
        offset = b->offset;
      } else if (const auto *i = std::get_if<InputRef>(arg)) {
        a.space = {Space::Input, i->input};
        a.end = m.inputs[i->input].bytes;
        offset = i->offset;
      } else if (const auto *o = std::get_if<OutputRef>(arg)) {
        const OutputDesc &output = m.outputs[o->output];
        a.space = output.updates ? Space{Space::Input, *output.updates}
                                 : Space{Space::Output, o->output};
        a.end = output.bytes;
        offset = o->offset;
      } else {
        continue; // constants are never written
      }
      if (!l.kernel) {
        a.begin += offset;
        a.end = a.begin + std::get<Immediate>(l.args[2]).bits;
      }
      if (a.begin == a.end)
        continue;
      bool writes = writesArgument(m, t, launch, k);
      Access &known =
          found.try_emplace({a.space, a.begin, a.end}, a).first->second;
      (writes ? known.writes : known.reads) = true;
    }
    std::vector<Access> list;
    for (const auto &[key, a] : found)
      list.push_back(a);
    return list;
  }

  std::pair<size_t, size_t> rangeOf(const Access &a) const {
    const std::vector<uint64_t> &list = ends.at(a.space);
    return {std::lower_bound(list.begin(), list.end(), a.begin) - list.begin(),
            std::lower_bound(list.begin(), list.end(), a.end) - list.begin()};
  }

  /// A dependence that a launch lacks.
  struct Missing {
    uint32_t earlier;
    bool wrote; ///< The earlier one.
    const Access *access;
    size_t segment; ///< The first of the access that both touch.
  };

  /// Of all that is missing, the latest launch: others may come by it.
  void check(uint32_t launch, const Access &a,
             std::optional<Missing> &missing) const {
    auto [from, to] = rangeOf(a);
    const std::vector<Segment> &list = segments.at(a.space);
    auto require = [&](uint32_t earlier, bool wrote, size_t s) {
      if (!ancestors.before(earlier, launch) &&
          (!missing || missing->earlier < earlier))
        missing = Missing{earlier, wrote, &a, s};
    };
    for (size_t s = from; s < to; ++s) {
      if (list[s].writer >= 0)
        require(static_cast<uint32_t>(list[s].writer), true, s);
      if (a.writes)
        for (uint32_t reader : list[s].readers)
          require(reader, false, s);
    }
  }

  void fail(uint32_t launch, const Missing &missing) {
    const Access &a = *missing.access;
    auto [earlier, wrote, access, s] = missing;
    // All of what both touch, from there on.
    const std::vector<uint64_t> &list = ends.at(a.space);
    size_t last = s;
    while (list[last + 1] < a.end && touchedBy(a.space, last + 1, earlier, wrote))
      ++last;
    c.fail(Checker::at(path, launch) + ".after",
           Checker::list(t.launches[launch].after),
           "a path to launch " + std::to_string(earlier) + " (" +
               nameOf(earlier) + "), which " + (wrote ? "writes" : "reads") +
               " bytes " + std::to_string(list[s]) + " to " +
               std::to_string(list[last + 1] - 1) + " of " +
               nameOf(a.space, earlier, list[s]) + "; this launch (" +
               nameOf(launch) + ") " + (a.writes ? "writes" : "reads") +
               " them" +
               (a.space.kind == Space::Arena
                    ? " as buffer " + std::to_string(a.buffer)
                    : ""));
  }

  bool touchedBy(Space space, size_t s, uint32_t launch, bool wrote) const {
    const Segment &segment = segments.at(space)[s];
    if (wrote)
      return segment.writer == launch;
    return std::find(segment.readers.begin(), segment.readers.end(), launch) !=
           segment.readers.end();
  }

  void touch(uint32_t launch, const Access &a) {
    auto [from, to] = rangeOf(a);
    for (size_t s = from; s < to; ++s) {
      Segment &segment = segments.at(a.space)[s];
      if (a.writes) {
        segment.writer = launch;
        segment.readers.clear();
      } else if (segment.writer != launch) {
        segment.readers.push_back(launch);
      }
    }
  }

  std::string nameOf(uint32_t launch) const {
    const Launch &l = t.launches[launch];
    if (l.kernel)
      return "kernel " + Checker::quote(t.kernels[*l.kernel].name);
    return l.kind == LaunchKind::Memset ? "a memset" : "a copy";
  }
  std::string nameOf(Space space, uint32_t launch, uint64_t byte) const {
    if (space.kind == Space::Arena) {
      auto held = std::find_if(
          accesses[launch].begin(), accesses[launch].end(),
          [&](const Access &a) {
            return a.space == space && a.begin <= byte && byte < a.end;
          });
      return "the arena (buffer " + std::to_string(held->buffer) + ")";
    }
    const TensorDesc &tensor = space.kind == Space::Input
                                   ? m.inputs[space.index]
                                   : m.outputs[space.index];
    return (space.kind == Space::Input ? "input " : "output ") +
           std::to_string(space.index) + " (" +
           Checker::quote(tensor.path.empty() ? tensor.name : tensor.path) +
           ")";
  }

  Checker &c;
  const Manifest &m;
  const Target &t;
  const std::string &path;
  Ancestors ancestors;
  std::vector<std::vector<Access>> accesses; ///< Of each launch.
  std::map<Space, std::vector<uint64_t>> ends; ///< Sorted, each once.
  /// As many as ends; the last one is empty.
  std::map<Space, std::vector<Segment>> segments;
};

} // namespace

void bundle::checkOrder(Checker &c, const Manifest &m, const Target &t,
                        const std::string &path) {
  if (c.failed())
    return;
  if (t.launches.size() > kMaxLaunches)
    return c.fail(path, "a list of " + std::to_string(t.launches.size()),
                  "at most " + std::to_string(kMaxLaunches));
  OrderChecker(c, m, t, path).run();
}
