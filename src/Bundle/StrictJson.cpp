//===- StrictJson.cpp - JSON with nothing forgiven ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StrictJson.h"

#include <algorithm>
#include <vector>

using namespace nova;
using namespace nova::bundle;
using Json = nlohmann::json;

namespace {

std::string withPrefix(std::string_view what, const std::string &message) {
  std::string out(what);
  out += ": ";
  return out += message;
}

/// Bytes that may be no UTF-8 as \xHH: the message quotes what was read.
std::string printable(const std::string &text) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (unsigned char c : text) {
    if (c < 0x80) {
      out += static_cast<char>(c);
      continue;
    }
    out += "\\x";
    out += digits[c >> 4];
    out += digits[c & 15];
  }
  return out;
}

/// Builds the tree, refusing on the way what a tree can no longer show.
class TreeBuilder : public nlohmann::json_sax<Json> {
public:
  TreeBuilder(std::string_view what, unsigned maxNesting)
      : what(what), maxNesting(maxNesting) {}

  Json root;
  std::optional<Error> error;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t, const string_t &raw) override {
    // Also what an integer of more than 64 bits arrives as.
    return fail(path() + ": " + raw.substr(0, 60) +
                ", expected an integer of at most 64 bits (a real number is a "
                "string in hexadecimal float notation)");
  }
  bool string(string_t &value) override { return add(std::move(value)); }
  bool binary(binary_t &) override { return fail("binary data in JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &value) override {
    if (stack.back()->contains(value))
      return fail(path(/*whole=*/true) + ": the key \"" + value.substr(0, 60) +
                  "\" appears twice, expected once");
    keys.back() = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &e) override {
    if (error)
      return false;
    // nlohmann's own text without its "[json.exception....] ".
    std::string message = e.what();
    size_t bracket = message.find("] ");
    if (bracket != std::string::npos)
      message.erase(0, bracket + 2);
    return fail("not JSON at byte " + std::to_string(position) + ": " +
                printable(message));
  }

private:
  bool fail(const std::string &message) {
    if (!error)
      error = badInput(withPrefix(what, message));
    return false;
  }
  /// The way to the value in progress, or with `whole` to the container on top.
  std::string path(bool whole = false) const {
    std::string out;
    for (size_t i = 0; i < stack.size(); ++i) {
      bool top = i + 1 == stack.size();
      if (top && whole)
        break;
      // A container in progress is already the last element of its parent.
      if (stack[i]->is_array())
        out += "[" + std::to_string(stack[i]->size() - !top) + "]";
      else if (!out.empty())
        out += "." + keys[i];
      else
        out += keys[i];
    }
    return out.empty() ? "top level" : out;
  }
  Json *place(Json value) {
    if (stack.empty()) {
      root = std::move(value);
      return &root;
    }
    Json &top = *stack.back();
    if (top.is_array()) {
      top.push_back(std::move(value));
      return &top.back();
    }
    Json &slot = top[keys.back()];
    slot = std::move(value);
    return &slot;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (stack.size() >= maxNesting)
      return fail(path() + ": nested deeper than the limit of " +
                  std::to_string(maxNesting) + " levels");
    // References into an array stay good: it grows only while it is on top.
    stack.push_back(place(std::move(value)));
    keys.emplace_back();
    return true;
  }
  bool close() {
    stack.pop_back();
    keys.pop_back();
    return true;
  }

  std::string_view what;
  unsigned maxNesting;
  std::vector<Json *> stack;
  std::vector<std::string> keys; ///< Parallel to stack: the key in progress.
};

} // namespace

Expected<Json> bundle::parseStrictJson(std::string_view text,
                                       std::string_view what,
                                       unsigned maxNesting) {
  TreeBuilder builder(what, maxNesting);
  bool good = Json::sax_parse(text.begin(), text.end(), &builder,
                              Json::input_format_t::json, /*strict=*/true);
  if (builder.error)
    return *builder.error;
  if (!good)
    return badInput(withPrefix(what, "not JSON"));
  return std::move(builder.root);
}

std::string JsonNode::path() const {
  if (!parent)
    return "top level";
  std::string prefix = parent->parent ? parent->path() : std::string();
  if (!key)
    return prefix + "[" + std::to_string(index) + "]";
  return prefix.empty() ? std::string(key) : prefix + "." + key;
}

std::string bundle::excerpt(const Json &value) {
  if (value.is_array())
    return "a list of " + std::to_string(value.size());
  if (value.is_object())
    return "an object";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text;
}

void Decoder::fail(const JsonNode &node, const std::string &expectation) {
  if (error || !node.value)
    return;
  error = badInput(withPrefix(what, node.path() + ": " + excerpt(*node.value) +
                                        ", expected " + expectation));
}

void Decoder::object(const JsonNode &node,
                     std::initializer_list<const char *> required,
                     std::initializer_list<const char *> optional) {
  if (failed() || !node.value)
    return;
  if (!node.value->is_object())
    return fail(node, "an object");
  auto missing = [&](const char *key) { return !node.value->contains(key); };
  auto it = std::find_if(required.begin(), required.end(), missing);
  if (it != required.end()) {
    error = badInput(
        withPrefix(what, node.path() + ": the key \"" + *it + "\" is missing"));
    return;
  }
  if (tolerateUnknown)
    return;
  for (const auto &[key, value] : node.value->items()) {
    auto same = [&key = key](const char *known) { return key == known; };
    if (std::any_of(required.begin(), required.end(), same) ||
        std::any_of(optional.begin(), optional.end(), same))
      continue;
    std::string list;
    for (const auto &keys : {required, optional})
      for (const char *known : keys)
        list += (list.empty() ? "" : " ") + std::string(known);
    error = badInput(withPrefix(what, node.path() + ": unknown key \"" +
                                          key.substr(0, 60) +
                                          "\", expected one of " + list));
    return;
  }
}

JsonNode Decoder::field(const JsonNode &node, const char *key) const {
  if (failed() || !node.value)
    return {};
  auto it = node.value->find(key);
  return {it == node.value->end() ? nullptr : &*it, &node, key, 0};
}

bool Decoder::has(const JsonNode &node, const char *key) const {
  return !failed() && node.value && node.value->contains(key);
}

std::string Decoder::text(const JsonNode &node) {
  if (failed() || !node.value)
    return {};
  if (!node.value->is_string()) {
    fail(node, "a string");
    return {};
  }
  return node.value->get<std::string>();
}

bool Decoder::boolean(const JsonNode &node) {
  if (failed() || !node.value)
    return false;
  if (!node.value->is_boolean()) {
    fail(node, "true or false");
    return false;
  }
  return node.value->get<bool>();
}

uint64_t Decoder::number(const JsonNode &node, uint64_t most) {
  if (failed() || !node.value)
    return 0;
  if (!node.value->is_number_unsigned() || node.value->get<uint64_t>() > most) {
    fail(node, "an integer from 0 to " + std::to_string(most));
    return 0;
  }
  return node.value->get<uint64_t>();
}
