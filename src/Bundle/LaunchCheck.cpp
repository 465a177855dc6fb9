//===- LaunchCheck.cpp - One launch and its arguments ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

#include <algorithm>
#include <type_traits>

using namespace nova;
using namespace nova::bundle;

namespace {

class LaunchChecker {
public:
  LaunchChecker(Checker &c, const Manifest &m, const Target &t, size_t index)
      : c(c), m(m), t(t), index(index) {}

  void run(const std::string &path) {
    const Launch &l = t.launches[index];
    for (size_t i = 0; i < l.after.size(); ++i)
      if (l.after[i] >= index)
        return c.fail(Checker::at(path + ".after", i), l.after[i],
                      "an earlier launch, less than " + std::to_string(index));
    if (l.kernel.has_value() != (l.kind == LaunchKind::Kernel))
      return c.fail(
          path + ".kernel", l.kernel ? std::to_string(*l.kernel) : "null",
          l.kernel ? "null for a launch that is no kernel" : "a kernel index");
    if (l.kind != LaunchKind::Kernel)
      return transfer(l, path);
    if (*l.kernel >= t.kernels.size())
      return c.fail(path + ".kernel", *l.kernel,
                    Checker::below(t.kernels.size(), "kernel"));
    const Kernel &k = t.kernels[*l.kernel];
    uint64_t expected = 0;
    for (const Param &param : k.params)
      expected += param.arguments();
    if (l.args.size() != expected)
      return c.fail(
          path + ".args", "a list of " + std::to_string(l.args.size()),
          std::to_string(expected) + ", one per parameter of kernel " +
              Checker::quote(k.name));
    size_t i = 0;
    for (const Param &param : k.params)
      for (uint64_t n = param.arguments(); n-- > 0 && !c.failed(); ++i)
        argument(l.args[i], param, Checker::at(path + ".args", i));
  }

private:
  /// Bytes that `ref` points to from its offset on; fails when out of range.
  uint64_t reach(const MemoryRef &ref, const std::string &path) {
    uint64_t offset = 0, size = 0;
    auto place = [&](const char *kind, uint64_t which, uint64_t count) {
      if (which < count)
        return true;
      c.fail(path + "." + kind, which, Checker::below(count, kind));
      return false;
    };
    if (const auto *b = std::get_if<BufferRef>(&ref)) {
      if (!place("buffer", b->buffer, t.arena.buffers.size()))
        return 0;
      const ArenaBuffer &buffer = t.arena.buffers[b->buffer];
      if (index < buffer.first || index > buffer.last) {
        c.fail(path + ".buffer", b->buffer,
               "a buffer alive at launch " + std::to_string(index) +
                   ", it is from " + std::to_string(buffer.first) + " to " +
                   std::to_string(buffer.last));
        return 0;
      }
      offset = b->offset, size = buffer.size;
    } else if (const auto *i = std::get_if<InputRef>(&ref)) {
      if (!place("input", i->input, m.inputs.size()))
        return 0;
      offset = i->offset, size = m.inputs[i->input].bytes;
    } else if (const auto *o = std::get_if<OutputRef>(&ref)) {
      if (!place("output", o->output, m.outputs.size()))
        return 0;
      offset = o->offset, size = m.outputs[o->output].bytes;
    } else if (const auto *k = std::get_if<ConstantRef>(&ref)) {
      if (!place("constant", k->constant, t.constants.size()))
        return 0;
      offset = k->offset, size = t.constants[k->constant].size;
    }
    if (offset > size || (offset == size && size > 0)) {
      c.fail(path + ".offset", offset,
             "less than the " + std::to_string(size) + " bytes there");
      return 0;
    }
    return size - offset;
  }

  static std::optional<MemoryRef> memoryOf(const LaunchArg &arg) {
    return std::visit(
        [](const auto &a) -> std::optional<MemoryRef> {
          if constexpr (std::is_constructible_v<MemoryRef, decltype(a)>)
            return MemoryRef(a);
          return std::nullopt;
        },
        arg);
  }

  void argument(const LaunchArg &arg, const Param &param,
                const std::string &path) {
    auto expect = [&](ParamKind kind, const char *got) {
      bool isMemory =
          param.kind == ParamKind::Pointer || param.kind == ParamKind::Pointers;
      if (param.kind == kind || (isMemory && kind == ParamKind::Pointer))
        return true;
      const char *wanted = isMemory ? "memory"
                           : param.kind == ParamKind::TensorMap
                               ? "a tensormap"
                               : "an immediate";
      c.fail(path, got,
             std::string(wanted) + ", as that parameter of the kernel");
      return false;
    };
    if (std::optional<MemoryRef> ref = memoryOf(arg)) {
      if (expect(ParamKind::Pointer, "memory"))
        reach(*ref, path);
    } else if (const auto *immediate = std::get_if<Immediate>(&arg)) {
      if (expect(ParamKind::Scalar, "an immediate") &&
          dtypeBytes(immediate->type) == 0)
        c.fail(path + ".type", Checker::quote(immediate->type), "a dtype");
    } else if (expect(ParamKind::TensorMap, "a tensormap")) {
      const auto &map = std::get<TensorMap>(arg);
      checkTensorMap(
          c, map,
          [&](const std::string &memory) { return reach(map.memory, memory); },
          path + ".tensormap");
    }
  }

  void transfer(const Launch &l, const std::string &path) {
    bool memset = l.kind == LaunchKind::Memset;
    std::string form = memset ? "destination, immediate uint8, immediate int64"
                              : "destination, source, immediate int64";
    auto immediate = [&](size_t i, const char *type) {
      const auto *value = std::get_if<Immediate>(&l.args[i]);
      return value && value->type == type ? value : nullptr;
    };
    std::optional<MemoryRef> to, from;
    if (l.args.size() == 3) {
      to = memoryOf(l.args[0]);
      from = memoryOf(l.args[1]);
    }
    if (!to || !immediate(2, "int64") ||
        (memset ? !immediate(1, "uint8") : !from))
      return c.fail(path + ".args", "arguments of other kinds", form);
    uint64_t count = immediate(2, "int64")->bits;
    uint64_t room = reach(*to, Checker::at(path + ".args", 0));
    if (!memset)
      room = std::min(room, reach(*from, Checker::at(path + ".args", 1)));
    if (!c.failed() && count > room)
      return c.fail(Checker::at(path + ".args", 2) + ".immediate", count,
                    "at most the " + std::to_string(room) + " bytes there");
    if (memset && !c.failed() && immediate(1, "uint8")->bits > 255)
      c.fail(Checker::at(path + ".args", 1) + ".immediate",
             immediate(1, "uint8")->bits, "a byte");
  }

  Checker &c;
  const Manifest &m;
  const Target &t;
  size_t index; ///< Of the launch.
};

} // namespace

void bundle::checkLaunch(Checker &c, const Manifest &m, const Target &t,
                         size_t index, const std::string &path) {
  LaunchChecker(c, m, t, index).run(path);
}
