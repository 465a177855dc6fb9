//===- ApplyElements.h - One elementwise operation on vectors -------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_TILE_APPLYELEMENTS_H
#define NOVA_TESTS_TILE_APPLYELEMENTS_H

#include "TileProgram.h"

namespace nova::test {

/// A program that loads %a, %b, ... (tiles of `count` elements of `types`),
/// defines %r by `op` (an operation, or operations one of which defines it) and
/// stores it as a tile of `result`. "T:x" in `op` is the type of such a tile of
/// x.
inline std::string elementsText(std::string op, const std::string &result,
                                const std::vector<std::string> &types,
                                size_t count) {
  std::string extent = std::to_string(count) + "x";
  std::string parameters, body = "%c0 = arith.constant 0 : index\n";
  const std::string at = "[%c0] along [0] bounds [0] : ";
  for (size_t i = 0; i < types.size(); ++i) {
    std::string name(1, char('a' + i)), type = extent + types[i] + ">";
    parameters += "%m" + name + ": memref<" + type + ", ";
    body += "%" + name + " = tile.load %m" + name + at + "memref<" + type +
            " -> tensor<" + type + "\n";
  }
  for (size_t mark; (mark = op.find("T:")) != std::string::npos;) {
    size_t end =
        op.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789", mark + 2);
    end = std::min(end, op.size());
    op.replace(mark, end - mark,
               "tensor<" + extent + op.substr(mark + 2, end - mark - 2) + ">");
  }
  if (op.find("%r = ") == std::string::npos)
    op = "%r = " + op;
  body += op + "\ntile.store %r, %out" + at + "tensor<" + extent + result +
          ">, memref<" + extent + result + ">";
  return programText(parameters + "%out: memref<" + extent + result + ">",
                     body);
}

/// The results of `op` on these vectors.
template <typename R, typename First, typename... Rest>
std::vector<R> apply(const std::string &op, const std::string &result,
                     const std::vector<std::string> &types,
                     std::vector<First> first, std::vector<Rest>... rest) {
  std::vector<R> out(first.size());
  EXPECT_EQ(runProgram(elementsText(op, result, types, first.size()),
                       {first.data(), rest.data()..., out.data()}),
            "")
      << op;
  return out;
}

/// Applies `op` and expects an error with this text.
template <typename First, typename... Rest>
void applyFails(const std::string &why, const std::string &op,
                const std::string &result,
                const std::vector<std::string> &types, std::vector<First> first,
                std::vector<Rest>... rest) {
  std::vector<int64_t> out(first.size());
  std::string error = runProgram(elementsText(op, result, types, first.size()),
                                 {first.data(), rest.data()..., out.data()});
  EXPECT_NE(error.find(why), std::string::npos)
      << op << ": '" << error << "', expected: '" << why << "'";
}

} // namespace nova::test

#endif // NOVA_TESTS_TILE_APPLYELEMENTS_H
