//===- ManifestText.cpp - Parts of a manifest for people ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ManifestText.h"

#include <cstdio>

using namespace nova;
using namespace nova::bundle;

std::string driver::text(const AttrValue &value) {
  struct Print {
    std::string operator()(int64_t v) { return std::to_string(v); }
    std::string operator()(bool v) { return v ? "true" : "false"; }
    std::string operator()(const std::string &v) { return v; }
    std::string operator()(const std::vector<AttrValue> &v) {
      std::string out;
      for (const AttrValue &element : v)
        out += (out.empty() ? "" : ",") + text(element);
      return "[" + out + "]";
    }
    std::string operator()(const Attributes &v) {
      std::string out;
      for (const auto &[name, element] : v)
        out += (out.empty() ? "" : " ") + name + "=" + text(element);
      return out;
    }
  };
  return std::visit(Print(), value.value);
}

std::string driver::timeText(uint64_t ns) {
  static constexpr const char *units[] = {"ns", "us", "ms", "s"};
  double value = static_cast<double>(ns);
  unsigned unit = 0;
  for (; value >= 999.5 && unit < 3; ++unit)
    value /= 1000;
  char out[32];
  int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(out, sizeof out, "%.*f %s", digits, value, units[unit]);
  return out;
}

std::string driver::scheduleText(const Attributes &schedule) {
  std::string out;
  auto add = [&](const std::string &part) {
    out += (out.empty() ? "" : ", ") + part;
  };
  if (auto it = schedule.find("tile"); it != schedule.end())
    add("tile " + text(it->second));
  if (const auto *local = find<std::vector<AttrValue>>(schedule, "local_tile");
      local && !local->empty())
    add("inside " + text(*local));
  if (const auto *warps = find<int64_t>(schedule, "warps"))
    add(std::to_string(*warps) + " warps");
  if (const auto *teams = find<int64_t>(schedule, "teams"); teams && *teams > 1)
    add(std::to_string(*teams) + " teams");
  if (const auto *stages = find<int64_t>(schedule, "stages");
      stages && *stages > 1)
    add(std::to_string(*stages) + " stages");
  if (const auto *family = find<std::string>(schedule, "family");
      family && *family != "portable")
    add(*family);
  return out;
}

std::string driver::candidatesText(const Attributes &schedule,
                                   const std::string &indent) {
  std::string out;
  auto line = [&](std::string state, const std::string &words) {
    state.resize(10, ' ');
    out += indent + state + words + "\n";
  };
  if (const auto *list = find<std::vector<AttrValue>>(schedule, "candidates"))
    for (const AttrValue &value : *list) {
      const auto *candidate = std::get_if<Attributes>(&value.value);
      if (!candidate)
        continue;
      const auto *state = find<std::string>(*candidate, "state");
      const auto *why = find<std::string>(*candidate, "why");
      const auto *ns = find<int64_t>(*candidate, "predicted_ns");
      std::string words = scheduleText(*candidate);
      if (ns)
        words += ": " + timeText(*ns);
      if (why)
        words += "; " + *why;
      line(state ? *state : "", words);
    }
  if (const auto *dropped = find<std::vector<AttrValue>>(schedule, "dropped"))
    for (const AttrValue &value : *dropped)
      line("dropped", text(value));
  return out;
}
