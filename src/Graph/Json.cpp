//===- Json.cpp - JSON as the graph reader wants it -----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"
#include "GraphText.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace nova;
using namespace nova::graph;

namespace {

constexpr size_t depthCap = 64;
// Above this an object's keys are compared through a sorted copy.
constexpr size_t linearKeys = 16;

/// Builds the tree; the stack of open containers is also the path for errors.
class Builder : public nlohmann::json_sax<nlohmann::json> {
public:
  Json root;
  std::string message;

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add({value}); }
  bool number_integer(number_integer_t value) override {
    return add({static_cast<int64_t>(value)});
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return tooLarge(std::to_string(value));
    return add({static_cast<int64_t>(value)});
  }
  bool number_float(number_float_t value, const string_t &spelled) override {
    // nlohmann falls back to floating for an integer that has no 64-bit value.
    if (spelled.find_first_of(".eE") == std::string::npos)
      return tooLarge(spelled);
    return add({value});
  }
  bool string(string_t &value) override { return add({std::move(value)}); }
  bool binary(binary_t &) override { return false; }
  bool start_object(size_t) override { return open({Json::Object()}); }
  bool start_array(size_t) override { return open({Json::Array()}); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    auto &members = std::get<Json::Object>(stack.back()->data);
    members.emplace_back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    const auto &members = std::get<Json::Object>(stack.back()->data);
    if (const std::string *twice = duplicate(members))
      return fail("the key " + quotedText(*twice) + " is there twice");
    return close();
  }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &error) override {
    // "[json.exception.parse_error.101] parse error at line 1, ...": the text
    // after the tag is the reader's business.
    std::string what = error.what();
    if (size_t end = what.find("] "); what.front() == '[' && end != what.npos)
      what.erase(0, end + 2);
    return fail(what);
  }

private:
  static const std::string *duplicate(const Json::Object &members) {
    if (members.size() <= linearKeys) {
      for (size_t i = 0; i < members.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (members[i].key == members[j].key)
            return &members[i].key;
      return nullptr;
    }
    std::vector<const std::string *> keys;
    for (const auto &member : members)
      keys.push_back(&member.key);
    std::sort(keys.begin(), keys.end(),
              [](auto *a, auto *b) { return *a < *b; });
    for (size_t i = 1; i < keys.size(); ++i)
      if (*keys[i] == *keys[i - 1])
        return keys[i];
    return nullptr;
  }

  /// Where the next value goes.
  Json *place() {
    if (stack.empty())
      return &root;
    Json &top = *stack.back();
    if (auto *list = std::get_if<Json::Array>(&top.data))
      return &list->emplace_back();
    return &std::get<Json::Object>(top.data).back().value;
  }
  bool add(Json value) {
    *place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (stack.size() == depthCap)
      return fail("nested deeper than " + std::to_string(depthCap));
    // Stable: a container grows only after its last element was closed.
    Json *where = place();
    *where = std::move(value);
    stack.push_back(where);
    return true;
  }
  bool close() {
    stack.pop_back();
    return true;
  }
  bool tooLarge(const std::string &spelled) {
    return fail("got " + spelled +
                    ", expected an integer of 64 bits (write it with '.' or an "
                    "exponent if it is floating)",
                /*next=*/true);
  }
  /// `next`: the value that fails is not in the tree yet.
  bool fail(const std::string &what, bool next = false) {
    std::string path;
    for (size_t i = 0; i < stack.size(); ++i) {
      bool innermost = i + 1 == stack.size();
      if (innermost && !next)
        break;
      if (const auto *list = stack[i]->as<Json::Array>()) {
        size_t index = list->size() - (innermost ? 0 : 1);
        path += "[" + std::to_string(index) + "]";
      } else {
        const auto &members = *stack[i]->as<Json::Object>();
        if (!members.empty())
          path += (path.empty() ? "" : ".") + members.back().key;
      }
    }
    message = (path.empty() ? "" : path + ": ") + what;
    return false;
  }

  std::vector<Json *> stack;
};

void print(const Json &json, std::string &out, size_t limit) {
  if (out.size() > limit)
    return;
  if (json.isNull())
    out += "null";
  else if (const bool *b = json.as<bool>())
    out += *b ? "true" : "false";
  else if (const int64_t *i = json.as<int64_t>())
    out += std::to_string(*i);
  else if (const double *d = json.as<double>())
    out += floatText(*d);
  else if (const auto *s = json.as<std::string>())
    out += quotedText(*s);
  else if (const auto *list = json.as<Json::Array>()) {
    out += '[';
    for (size_t i = 0; i < list->size() && out.size() <= limit; ++i) {
      if (i)
        out += ',';
      print((*list)[i], out, limit);
    }
    out += ']';
  } else {
    out += '{';
    const auto &members = *json.as<Json::Object>();
    for (size_t i = 0; i < members.size() && out.size() <= limit; ++i) {
      out += (i ? "," : "") + quotedText(members[i].key) + ":";
      print(members[i].value, out, limit);
    }
    out += '}';
  }
}

} // namespace

const Json *Json::find(std::string_view key) const {
  if (const auto *members = as<Object>())
    for (const auto &member : *members)
      if (member.key == key)
        return &member.value;
  return nullptr;
}

std::string Json::text(size_t limit) const {
  std::string out;
  print(*this, out, limit);
  return cutText(out, limit);
}

std::string JsonPath::text() const {
  std::string before = parent ? parent->text() : "";
  if (index >= 0)
    return before + "[" + std::to_string(index) + "]";
  if (key.empty())
    return before;
  return before + (before.empty() ? "" : ".") + std::string(key);
}

Expected<Json> nova::graph::parseJson(std::string_view text) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return badInput(builder.message);
  return std::move(builder.root);
}
