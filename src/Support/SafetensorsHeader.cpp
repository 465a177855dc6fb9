//===- SafetensorsHeader.cpp - The strict parser of the header ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Support/Safetensors.h"

#include "SafetensorsInternal.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

using namespace nova;
using namespace nova::safetensors;

namespace {

// A rank nobody has, so that a hostile header cannot make huge shape lists.
constexpr size_t rankCap = 64;

/// The JSON of a header and nothing more: an object whose values are objects of
/// strings, or of one string and two lists of non-negative integers.
class HeaderParser {
public:
  HeaderParser(std::string_view text) : text(text) {}

  bool fail(std::string what) {
    if (message.empty())
      message =
          std::move(what) + " at byte " + std::to_string(at) + " of the header";
    return false;
  }
  void skip() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' ||
                                text[at] == '\t' || text[at] == '\r'))
      ++at;
  }
  bool peek(char c) {
    skip();
    return at < text.size() && text[at] == c;
  }
  bool take(char c) {
    if (!peek(c))
      return false;
    ++at;
    return true;
  }
  bool expect(char c) {
    return take(c) || fail(std::string("expected '") + c + "'");
  }
  bool string(std::string &out);
  bool integer(uint64_t &out);
  bool integers(std::vector<uint64_t> &out, size_t cap);
  /// key ':' -> body(key), for each member.
  template <typename Body> bool object(Body body) {
    std::set<std::string> seen;
    if (!expect('{'))
      return false;
    if (take('}'))
      return true;
    do {
      std::string key;
      if (!string(key))
        return false;
      if (!seen.insert(key).second)
        return fail("the key \"" + key + "\" is there twice");
      if (!expect(':') || !body(key))
        return false;
    } while (take(','));
    return expect('}');
  }
  bool end() {
    skip();
    return at == text.size() || fail("expected the end of the header");
  }

  std::string message;

private:
  bool hex4(uint32_t &out);
  bool utf8(std::string &out);

  std::string_view text;
  size_t at = 0;
};

bool HeaderParser::hex4(uint32_t &out) {
  out = 0;
  if (text.size() - at < 4)
    return fail("cut \\u escape");
  for (int i = 0; i < 4; ++i) {
    char c = text[at++];
    uint32_t digit;
    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if (c >= 'a' && c <= 'f')
      digit = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F')
      digit = c - 'A' + 10;
    else
      return fail("bad \\u escape");
    out = out * 16 + digit;
  }
  return true;
}

void appendUtf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// One multi-byte UTF-8 sequence: shortest form, no surrogates.
bool HeaderParser::utf8(std::string &out) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  uint8_t lead = byte(0);
  size_t count = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  uint32_t least = count == 4 ? 0x10000 : count == 3 ? 0x800 : 0x80;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < count)
    return fail("the text is not UTF-8");
  uint32_t c = lead & (0x7F >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return fail("the text is not UTF-8");
    c = (c << 6) | (byte(i) & 0x3F);
  }
  if (c < least || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
    return fail("the text is not UTF-8");
  out.append(text.substr(at, count));
  at += count;
  return true;
}

bool HeaderParser::string(std::string &out) {
  if (!expect('"'))
    return false;
  while (true) {
    if (at == text.size())
      return fail("unterminated string");
    char c = text[at];
    if (static_cast<uint8_t>(c) >= 0x80) {
      if (!utf8(out))
        return false;
      continue;
    }
    ++at;
    if (c == '"')
      return true;
    if (static_cast<uint8_t>(c) < 0x20)
      return fail("control character in a string");
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at == text.size())
      return fail("unterminated string");
    c = text[at++];
    static constexpr char plain[] = "\"\\/bfnrt", value[] = "\"\\/\b\f\n\r\t";
    if (const char *hit = c ? std::strchr(plain, c) : nullptr) {
      out += value[hit - plain];
      continue;
    }
    uint32_t code, low;
    if (c != 'u')
      return fail("unknown escape");
    if (!hex4(code))
      return false;
    if (code >= 0xD800 && code < 0xDC00) {
      if (text.substr(at, 2) != "\\u")
        return fail("lone surrogate");
      at += 2;
      if (!hex4(low))
        return false;
      if (low < 0xDC00 || low >= 0xE000)
        return fail("lone surrogate");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return fail("lone surrogate");
    }
    appendUtf8(out, code);
  }
}

bool HeaderParser::integer(uint64_t &out) {
  skip();
  size_t begin = at;
  out = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    uint64_t digit = text[at] - '0';
    if (__builtin_mul_overflow(out, uint64_t{10}, &out) ||
        __builtin_add_overflow(out, digit, &out) ||
        out > static_cast<uint64_t>(INT64_MAX))
      return fail("an integer above 2^63-1");
    ++at;
  }
  if (at == begin || (text[begin] == '0' && at - begin > 1))
    return fail("expected a non-negative integer");
  return true;
}

bool HeaderParser::integers(std::vector<uint64_t> &out, size_t cap) {
  if (!expect('['))
    return false;
  if (take(']'))
    return true;
  do {
    if (out.size() == cap)
      return fail("a list of more than " + std::to_string(cap) + " numbers");
    if (!integer(out.emplace_back()))
      return false;
  } while (take(','));
  return expect(']');
}

} // namespace

Expected<std::vector<SafetensorsEntry>> nova::parseSafetensorsHeader(
    std::string_view header, uint64_t dataSize,
    std::vector<std::pair<std::string, std::string>> *metadata) {
  if (header.empty() || header.front() != '{')
    return badInput("the header does not begin with '{'");
  HeaderParser p(header);
  std::vector<SafetensorsEntry> entries;
  bool good = p.object([&](const std::string &key) {
    if (key == "__metadata__")
      return p.object([&](const std::string &name) {
        std::string value;
        if (!p.string(value))
          return false;
        if (metadata)
          metadata->emplace_back(name, std::move(value));
        return true;
      });
    SafetensorsEntry entry;
    entry.name = key;
    bool dtype = false, shape = false, offsets = false;
    std::vector<uint64_t> range;
    bool parsed = p.object([&](const std::string &field) {
      if (field == "dtype") {
        dtype = true;
        return p.string(entry.dtype);
      }
      if (field == "shape") {
        std::vector<uint64_t> extents;
        shape = true;
        if (!p.integers(extents, rankCap))
          return false;
        entry.shape.assign(extents.begin(), extents.end());
        return true;
      }
      if (field == "data_offsets") {
        offsets = true;
        return p.integers(range, 2);
      }
      return p.fail("tensor \"" + key + "\" has an unknown field \"" + field +
                    "\"; known are dtype, shape, data_offsets");
    });
    if (!parsed)
      return false;
    if (!dtype || !shape || !offsets || range.size() != 2)
      return p.fail("tensor \"" + key +
                    "\" needs dtype, shape and two data_offsets");
    if (!safetensorsElementBytes(entry.dtype))
      return p.fail("tensor \"" + key + "\" has the unknown dtype \"" +
                    entry.dtype + "\"");
    std::optional<uint64_t> bytes = denseBytes(entry.dtype, entry.shape);
    if (!bytes)
      return p.fail("tensor \"" + key + "\" of shape " +
                    shapeText(entry.shape) + " is larger than 2^64 bytes");
    if (range[1] < range[0] || range[1] - range[0] != *bytes)
      return p.fail("tensor \"" + key + "\" has data_offsets [" +
                    std::to_string(range[0]) + "," + std::to_string(range[1]) +
                    "], expected " + std::to_string(*bytes) + " bytes for " +
                    entry.dtype + " " + shapeText(entry.shape));
    entry.offset = range[0];
    entry.size = *bytes;
    entries.push_back(std::move(entry));
    return true;
  });
  if (!good || !p.end())
    return badInput(p.message);

  // An empty tensor sorts before a full one at the same offset.
  std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
    return std::tie(a.offset, a.size, a.name) <
           std::tie(b.offset, b.size, b.name);
  });
  uint64_t covered = 0;
  for (const SafetensorsEntry &entry : entries) {
    if (entry.offset != covered)
      return badInput("tensor \"" + entry.name + "\" begins at byte " +
                      std::to_string(entry.offset) + " of the data, expected " +
                      std::to_string(covered) + " (" +
                      (entry.offset < covered ? "an overlap)" : "a hole)"));
    covered += entry.size; // cannot overflow: offset + size was read as int64
  }
  if (covered != dataSize)
    return badInput("the tensors cover " + std::to_string(covered) +
                    " bytes of data, the file has " + std::to_string(dataSize));
  return entries;
}
