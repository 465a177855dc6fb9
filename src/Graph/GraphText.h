//===- GraphText.h - Spelling values in messages and canonical text -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_GRAPH_GRAPHTEXT_H
#define NOVA_SRC_GRAPH_GRAPHTEXT_H

#include <string>
#include <string_view>

namespace nova::graph {

/// A JSON string literal.
std::string quotedText(std::string_view raw);
/// The shortest decimal that reads back as `value`, always with '.' or an
/// exponent, so that it stays floating; "inf", "-inf", "nan" for those.
std::string floatText(double value);
/// At most about `limit` characters, whole UTF-8 sequences, "..." where cut.
std::string cutText(std::string text, size_t limit);

} // namespace nova::graph

#endif // NOVA_SRC_GRAPH_GRAPHTEXT_H
