//===- Json.h - JSON as the graph reader wants it -------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A document tree built from SAX events, because the default tree of
// nlohmann/json loses what the format depends on: duplicate keys (the last one
// wins silently), integers beyond 64 bits (they become floating) and whether a
// number was written with '.' or an exponent.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_GRAPH_JSON_H
#define NOVA_SRC_GRAPH_JSON_H

#include "nova/Support/Error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nova::graph {

struct JsonMember;

struct Json {
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;
  std::variant<std::monostate, bool, int64_t, double, std::string, Array,
               Object>
      data;

  template <typename T> const T *as() const { return std::get_if<T>(&data); }
  bool isNull() const { return data.index() == 0; }
  /// The member of an object; null where there is none.
  const Json *find(std::string_view key) const;
  /// As compact JSON, cut after about `limit` characters: for messages.
  std::string text(size_t limit = 60) const;
};

struct JsonMember {
  std::string key;
  Json value;
};

/// Where a value stands, as a chain on the stack: text is made on errors only.
struct JsonPath {
  const JsonPath *parent = nullptr;
  std::string_view key; ///< a member, or
  int64_t index = -1;   ///< an element
  std::string text() const;
};

/// Parses text. Fails, naming the JSON path, on: syntax, bad UTF-8, a key
/// twice in an object, nesting deeper than 64, an integer outside 64 bits,
/// a number too large for a double, anything after the value.
Expected<Json> parseJson(std::string_view text);

} // namespace nova::graph

#endif // NOVA_SRC_GRAPH_JSON_H
