//===- StrictJson.h - JSON with nothing forgiven, and a cursor with a path ===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Bundle. parseStrictJson() refuses duplicate keys, numbers that
// are no 64-bit integers, deep nesting, and anything after the value. Decoder
// reads the tree: the first error sticks, and later reads return defaults, so
// decoding code is straight lines without a check after each.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_BUNDLE_STRICTJSON_H
#define NOVA_BUNDLE_STRICTJSON_H

#include "nova/Support/Error.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace nova::bundle {

/// BadInput "WHAT: ..." with the byte offset or the JSON path.
Expected<nlohmann::json> parseStrictJson(std::string_view text,
                                         std::string_view what,
                                         unsigned maxNesting);

/// A value with the way to it. `value` is null after an error.
struct JsonNode {
  const nlohmann::json *value = nullptr;
  const JsonNode *parent = nullptr;
  const char *key = nullptr; ///< In an object; else null and `index` counts.
  size_t index = 0;

  /// "targets[0].launches[3].kind"; "the manifest" style names are the
  /// caller's.
  std::string path() const;
};

/// At most 60 bytes of a value, for an error.
std::string excerpt(const nlohmann::json &value);

class Decoder {
public:
  explicit Decoder(std::string_view what) : what(what) {}

  bool failed() const { return error.has_value(); }
  Error takeError() { return std::move(*error); }
  /// Keeps the first "WHAT: PATH: VALUE, expected EXPECTATION".
  void fail(const JsonNode &node, const std::string &expectation);

  /// Checks that `node` is an object with all of `required`, and, unless
  /// tolerateUnknown, with no key but those and `optional`.
  void object(const JsonNode &node,
              std::initializer_list<const char *> required,
              std::initializer_list<const char *> optional = {});
  bool tolerateUnknown = false;

  /// The child of that name: a null node where object() was not satisfied.
  JsonNode field(const JsonNode &node, const char *key) const;
  bool has(const JsonNode &node, const char *key) const;

  std::string text(const JsonNode &node);
  bool boolean(const JsonNode &node);
  /// A non-negative integer of at most `most`.
  uint64_t number(const JsonNode &node,
                  uint64_t most = std::numeric_limits<int64_t>::max());
  uint32_t index(const JsonNode &node) {
    return static_cast<uint32_t>(number(node, UINT32_MAX));
  }
  int64_t size(const JsonNode &node) {
    return static_cast<int64_t>(number(node));
  }

  /// Calls `each(child)` for every element of an array.
  template <typename F> void array(const JsonNode &node, F each) {
    if (failed() || !node.value)
      return;
    if (!node.value->is_array())
      return fail(node, "a list");
    for (size_t i = 0; i < node.value->size() && !failed(); ++i)
      each(JsonNode{&(*node.value)[i], &node, nullptr, i});
  }

private:
  std::string_view what;
  std::optional<Error> error;
};

} // namespace nova::bundle

#endif // NOVA_BUNDLE_STRICTJSON_H
