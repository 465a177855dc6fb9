//===- Checker.h - Keeps the first rule that a manifest breaks ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Bundle.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_BUNDLE_CHECKER_H
#define NOVA_BUNDLE_CHECKER_H

#include "nova/Bundle/Manifest.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace nova::bundle {

class Checker {
public:
  explicit Checker(std::string_view what) : what(what) {}

  bool failed() const { return error.has_value(); }
  Error takeError() { return std::move(*error); }

  /// Keeps the first "WHAT: PATH: VALUE, expected EXPECTATION".
  void fail(const std::string &path, const std::string &value,
            const std::string &expectation) {
    if (!error)
      error = badInput(std::string(what) + ": " + path + ": " + value +
                       ", expected " + expectation);
  }
  void fail(const std::string &path, uint64_t value,
            const std::string &expectation) {
    fail(path, std::to_string(value), expectation);
  }

  static std::string at(const std::string &list, size_t index) {
    return list + "[" + std::to_string(index) + "]";
  }
  static std::string quote(const std::string &text) {
    return "\"" + (text.size() > 90 ? text.substr(0, 87) + "..." : text) + "\"";
  }
  template <typename List> static std::string list(const List &values) {
    std::string out = "[";
    for (size_t i = 0; i < values.size() && i < 16; ++i)
      out += (i ? "," : "") + std::to_string(values[i]);
    return out + (values.size() > 16 ? ",...]" : "]");
  }
  /// "an index below 3 (there are 3 inputs)".
  static std::string below(uint64_t count, const std::string &kind) {
    return "an index less than " + std::to_string(count) + ", the number of " +
           kind + (kind == "launch" ? "es" : "s");
  }

private:
  std::string_view what;
  std::optional<Error> error;
};

/// The rules of one target's arena: ArenaCheck.cpp.
void checkArena(Checker &checker, const Target &target,
                const std::string &path);

/// The rules of launch `index` of a target whose arena, kernels and constants
/// have passed: LaunchCheck.cpp.
void checkLaunch(Checker &checker, const Manifest &manifest,
                 const Target &target, size_t index, const std::string &path);

/// Launches that touch the same bytes, one of them writing, are ordered by `after`:
/// OrderCheck.cpp. All launches have passed checkLaunch.
void checkOrder(Checker &checker, const Manifest &manifest,
                const Target &target, const std::string &path);

/// The rules of a tensormap: TensorMapCheck.cpp. `reach` is asked once, for the
/// bytes from the map's memory on, with the path of that.
void checkTensorMap(Checker &checker, const TensorMap &map,
                    const std::function<uint64_t(const std::string &)> &reach,
                    const std::string &path);

} // namespace nova::bundle

#endif // NOVA_BUNDLE_CHECKER_H
