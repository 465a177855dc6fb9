//===- lower_kernels_to_linalg_test.cpp - What lowered kernels compute
//-----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelSemantics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nova::test {
namespace {

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// A kernel of one unary operation over 5 x 19.
std::string unary(const std::string &op, const std::string &type,
                  const std::string &attributes = "") {
  return kernelText(replaced("(%x: tensor<5x19xT>) -> (tensor<5x19xT> "
                             "{nova.map = array<i64: 0, 1>})",
                             "T", type),
                    "5, 19", "2, 19",
                    replaced("%y = " + op + " %x " + attributes +
                                 " : (tensor<5x19xT>) -> tensor<5x19xT>\n"
                                 "return %y : tensor<5x19xT>",
                             "xT>", "x" + type + ">"));
}

std::string binary(const std::string &op, const std::string &type,
                   const std::string &lhs = "5x19x",
                   const std::string &rhs = "5x19x",
                   const std::string &attributes = "",
                   const std::string &resultType = "") {
  std::string text =
      kernelText("(%x: tensor<L>, %y: tensor<R>) -> (tensor<5x19xO> {nova.map "
                 "= array<i64: 0, 1>})",
                 "5, 19", "3, 19",
                 "%z = " + op + " %x, %y " + attributes +
                     " : (tensor<L>, tensor<R>) -> tensor<5x19xO>\nreturn %z : "
                     "tensor<5x19xO>");
  text = replaced(replaced(text, "<L>", "<" + lhs + type + ">"), "<R>",
                  "<" + rhs + type + ">");
  return replaced(text, "xO>",
                  "x" + (resultType.empty() ? type : resultType) + ">");
}

TEST(LowerKernelsToLinalg, UnaryFloat) {
  SemanticsOptions specials;
  specials.specials = true;
  for (const char *op :
       {"neg", "abs", "exp", "log", "sqrt", "rsqrt", "reciprocal", "tanh",
        "sigmoid", "erf", "relu", "gelu"})
    checkSemantics(unary(std::string("nova.") + op, "f32"), specials);
  checkSemantics(unary("nova.sin", "f32"));
  checkSemantics(unary("nova.cos", "f32"));
  checkSemantics(unary("nova.gelu", "f32", "{form = #nova<gelu_form tanh>}"));
}

TEST(LowerKernelsToLinalg, UnaryOtherTypes) {
  SemanticsOptions specials;
  specials.specials = true;
  for (const char *type : {"f64", "bf16", "f16"})
    for (const char *op : {"neg", "exp", "relu", "sigmoid"})
      checkSemantics(unary(std::string("nova.") + op, type), specials);
  for (const char *type : {"i64", "i32", "i16", "i8"})
    for (const char *op : {"neg", "abs", "relu", "not"})
      checkSemantics(unary(std::string("nova.") + op, type));
  checkSemantics(unary("nova.not", "i1"));
}

TEST(LowerKernelsToLinalg, BinaryFloat) {
  SemanticsOptions specials;
  specials.specials = true;
  for (const char *op : {"add", "sub", "mul", "div", "maximum", "minimum"}) {
    checkSemantics(binary(std::string("nova.") + op, "f32"), specials);
    checkSemantics(binary(std::string("nova.") + op, "bf16"), specials);
  }
  // Quotients far from an integer, so that float32 and double round alike.
  SemanticsOptions quotients;
  quotients.values[0] = {7.3, -7.3, 0.4, -0.4, 100.6};
  quotients.values[1] = {2.0, -2.0, 0.75, 4.0};
  for (const char *op : {"floor_div", "trunc_div", "remainder"})
    checkSemantics(binary(std::string("nova.") + op, "f32"), quotients);
  SemanticsOptions powers;
  powers.values[0] = {2, 0.5, 0, -2, 1, INFINITY, NAN, -0.0, 3.7};
  powers.values[1] = {3, -2, 0, 0.5, NAN, 2};
  powers.tolerance = 1e-5;
  checkSemantics(binary("nova.pow", "f32"), powers);
}

TEST(LowerKernelsToLinalg, Backwards) {
  checkSemantics(binary("nova.gelu_backward", "f32"));
  checkSemantics(binary("nova.gelu_backward", "f32", "5x19x", "5x19x",
                        "{form = #nova<gelu_form tanh>}"));
  checkSemantics(binary("nova.tanh_backward", "f32"));
  checkSemantics(binary("nova.sigmoid_backward", "f32"));
  SemanticsOptions specials;
  specials.specials = true;
  checkSemantics(binary("nova.threshold_backward", "f32", "5x19x", "5x19x",
                        "{threshold = 0.25 : f64}"),
                 specials);
}

TEST(LowerKernelsToLinalg, BinaryInteger) {
  SemanticsOptions small;
  small.range[1] = {-3, 3};
  for (const char *type : {"i64", "i32", "i8"})
    for (const char *op :
         {"add", "sub", "mul", "floor_div", "trunc_div", "remainder", "maximum",
          "minimum", "and", "or", "xor", "pow"})
      checkSemantics(binary(std::string("nova.") + op, type), small);
  // No trap where the quotient overflows or does not exist.
  SemanticsOptions overflow;
  overflow.range[0] = {-128, -127};
  overflow.range[1] = {-1, 0};
  for (const char *op : {"floor_div", "trunc_div", "remainder"})
    checkSemantics(binary(std::string("nova.") + op, "i8"), overflow);
}

TEST(LowerKernelsToLinalg, BinaryBool) {
  for (const char *op :
       {"add", "sub", "mul", "maximum", "minimum", "and", "or", "xor"})
    checkSemantics(binary(std::string("nova.") + op, "i1"));
}

TEST(LowerKernelsToLinalg, CompareAndSelect) {
  SemanticsOptions specials;
  specials.specials = true;
  specials.range[0] = specials.range[1] = {-1, 1};
  for (const char *predicate : {"eq", "ne", "lt", "le", "gt", "ge"})
    for (const char *type : {"f32", "bf16", "i64", "i8", "i1"})
      checkSemantics(binary("nova.compare", type, "5x19x", "5x19x",
                            std::string("{predicate = #nova<predicate ") +
                                predicate + ">}",
                            "i1"),
                     specials);
  checkSemantics(kernelText("(%c: tensor<5x1xi1>, %x: tensor<19xf32>, %y: "
                            "tensor<f32>) -> (tensor<5x19xf32> {nova.map = "
                            "array<i64: 0, 1>})",
                            "5, 19", "5, 8",
                            "%z = nova.select %c, %x, %y : (tensor<5x1xi1>, "
                            "tensor<19xf32>, tensor<f32>) -> "
                            "tensor<5x19xf32>\nreturn %z : tensor<5x19xf32>"));
}

TEST(LowerKernelsToLinalg, Broadcasting) {
  const std::pair<const char *, const char *> shapes[] = {
      {"5x19x", "19x"}, {"5x1x", "19x"},   {"1x19x", "5x1x"},
      {"", "5x19x"},    {"5x19x", "1x1x"}, {"1x", "5x19x"}};
  for (auto [lhs, rhs] : shapes)
    checkSemantics(binary("nova.sub", "f32", lhs, rhs));
}

TEST(LowerKernelsToLinalg, Casts) {
  SemanticsOptions options;
  options.values[0] = {0, 1, -1, 2.5, -2.5, 100.7, 0.3, -0.3, 1.00390625};
  const char *types[] = {"f64", "f32", "bf16", "f16", "i64",
                         "i32", "i16", "i8",   "i1"};
  for (std::string from : types)
    for (std::string to : types)
      if (from != to) {
        SemanticsOptions used = options;
        if (from == "i1")
          used.values.clear();
        checkSemantics(kernelText("(%x: tensor<37x" + from +
                                      ">) -> (tensor<37x" + to +
                                      "> {nova.map = array<i64: 0>})",
                                  "37", "37",
                                  "%y = nova.cast %x : (tensor<37x" + from +
                                      ">) -> tensor<37x" + to +
                                      ">\nreturn %y : tensor<37x" + to + ">"),
                       used);
      }
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Over a 3 x 5 x 7 tensor; `dims` are local.
std::string reduction(const std::string &op, const std::string &type,
                      const std::string &dims, bool keep,
                      const std::string &shape, const std::string &map,
                      const std::string &space,
                      const std::string &second = "") {
  std::string result = "tensor<" + shape + type + ">",
              input = "tensor<3x5x7x" + type + ">";
  std::string attributes = " {" + dims + (keep ? ", keepdims}" : "}");
  std::string mapped =
      " {nova.map = array<i64" + (map.empty() ? "" : ": " + map) + ">}";
  std::string results = result + mapped, types = result, values = "%y";
  if (!second.empty()) {
    results += ", tensor<" + shape + "i64>" + mapped;
    types += ", tensor<" + shape + "i64>";
    values += ", %i";
  }
  return kernelText("(%x: " + input + ") -> (" + results + ")", space, space,
                    values + " = nova." + op + " %x" + attributes + " : (" +
                        input + ") -> " +
                        (second.empty() ? types : "(" + types + ")") +
                        "\nreturn " + values + " : " + types);
}

TEST(LowerKernelsToLinalg, Reductions) {
  SemanticsOptions plain, specials;
  specials.specials = true;
  for (const char *type : {"f32", "f64", "bf16", "i64", "i32", "i8", "i1"})
    for (const char *op : {"sum", "max", "min"}) {
      const SemanticsOptions &options =
          std::string(op) == "sum" ? plain : specials;
      checkSemantics(reduction(op, type, "dims = array<i64: 2>", false, "3x5x",
                               "0, 1", "3, 5"),
                     options);
      checkSemantics(reduction(op, type, "dims = array<i64: 0, 2>", true,
                               "1x5x1x", "-1, 0, -1", "5"),
                     options);
      checkSemantics(
          reduction(op, type, "dims = array<i64: 0, 1, 2>", false, "", "", ""),
          options);
    }
}

TEST(LowerKernelsToLinalg, ArgReductions) {
  SemanticsOptions specials, ties;
  specials.specials = true;
  ties.values[0] = {-INFINITY};
  for (const char *type : {"f32", "bf16", "i64", "i1"})
    for (const char *op : {"argmax", "argmin"}) {
      checkSemantics(reduction(op, type, "dim = 2 : i64", false, "3x5x", "0, 1",
                               "3, 5", "i"),
                     specials);
      checkSemantics(reduction(op, type, "dim = 0 : i64", true, "1x5x7x",
                               "-1, 0, 1", "5, 7", "i"),
                     specials);
    }
  checkSemantics(reduction("argmax", "f32", "dim = 2 : i64", false, "3x5x",
                           "0, 1", "3, 5", "i"),
                 ties);
}

TEST(LowerKernelsToLinalg, ReductionOfWhatIsRepeated) {
  // No operand of the reduction runs along it: the sum must still count.
  checkSemantics(kernelText(
      "(%x: tensor<5x1xf32>) -> (tensor<5xf32> {nova.map = array<i64: 0>})",
      "5", "2", R"(
      %b = nova.broadcast %x : (tensor<5x1xf32>) -> tensor<5x9xf32>
      %s = nova.sum %b {dims = array<i64: 1>} : (tensor<5x9xf32>) -> tensor<5xf32>
      return %s : tensor<5xf32>)"));
  checkSemantics(kernelText(
      "(%x: tensor<5xf32>) -> (tensor<5xf32> {nova.map = array<i64: 0>})", "5",
      "2", R"(
      %c = nova.constant dense<0.5> : tensor<5x9xf32>
      %s = nova.sum %c {dims = array<i64: 1>} : (tensor<5x9xf32>) -> tensor<5xf32>
      %y = nova.add %s, %x : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      return %y : tensor<5xf32>)"));
  checkSemantics(kernelText(
      "(%x: tensor<5xf32>) -> (tensor<5xf32> {nova.map = array<i64: 0>})", "5",
      "2", R"(
      %i = nova.iota 1.0 : f32, 0.5 : f32 : tensor<9xf32>
      %b = nova.broadcast %i : (tensor<9xf32>) -> tensor<5x9xf32>
      %s = nova.sum %b {dims = array<i64: 1>} : (tensor<5x9xf32>) -> tensor<5xf32>
      %y = nova.add %s, %x : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
      return %y : tensor<5xf32>)"));
}

TEST(LowerKernelsToLinalg, LayerNorm) {
  checkSemantics(kernelText("(%x: tensor<6x48xf32>, %w: tensor<48xf32>, %b: "
                            "tensor<48xf32>) -> (tensor<6x48xf32> "
                            "{nova.map = array<i64: 0, -1>}, tensor<6x1xf32> "
                            "{nova.map = array<i64: 0, -1>}, "
                            "tensor<6x1xf32> {nova.map = array<i64: 0, -1>})",
                            "6", "4", R"(
  %d = nova.constant dense<48.0> : tensor<f32>
  %eps = nova.constant dense<1.0e-5> : tensor<f32>
  %s = nova.sum %x {dims = array<i64: 1>, keepdims} : (tensor<6x48xf32>) -> tensor<6x1xf32>
  %mean = nova.div %s, %d : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
  %c = nova.sub %x, %mean : (tensor<6x48xf32>, tensor<6x1xf32>) -> tensor<6x48xf32>
  %sq = nova.mul %c, %c : (tensor<6x48xf32>, tensor<6x48xf32>) -> tensor<6x48xf32>
  %vs = nova.sum %sq {dims = array<i64: 1>, keepdims} : (tensor<6x48xf32>) -> tensor<6x1xf32>
  %var = nova.div %vs, %d : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
  %ve = nova.add %var, %eps : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
  %rstd = nova.rsqrt %ve : (tensor<6x1xf32>) -> tensor<6x1xf32>
  %n = nova.mul %c, %rstd : (tensor<6x48xf32>, tensor<6x1xf32>) -> tensor<6x48xf32>
  %nw = nova.mul %n, %w : (tensor<6x48xf32>, tensor<48xf32>) -> tensor<6x48xf32>
  %y = nova.add %nw, %b : (tensor<6x48xf32>, tensor<48xf32>) -> tensor<6x48xf32>
  return %y, %mean, %rstd : tensor<6x48xf32>, tensor<6x1xf32>, tensor<6x1xf32>)"));
}

TEST(LowerKernelsToLinalg, SoftmaxOfMaskedRows) {
  SemanticsOptions options;
  options.values[0] = {0.5, -INFINITY, 2, -1, -INFINITY};
  checkSemantics(kernelText("(%x: tensor<6x35xf32>) -> (tensor<6x35xf32> "
                            "{nova.map = array<i64: 0, -1>})",
                            "6", "4", R"(
  %m = nova.max %x {dims = array<i64: 1>, keepdims} : (tensor<6x35xf32>) -> tensor<6x1xf32>
  %c = nova.sub %x, %m : (tensor<6x35xf32>, tensor<6x1xf32>) -> tensor<6x35xf32>
  %e = nova.exp %c : (tensor<6x35xf32>) -> tensor<6x35xf32>
  %s = nova.sum %e {dims = array<i64: 1>, keepdims} : (tensor<6x35xf32>) -> tensor<6x1xf32>
  %y = nova.div %e, %s : (tensor<6x35xf32>, tensor<6x1xf32>) -> tensor<6x35xf32>
  return %y : tensor<6x35xf32>)"),
                 options);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

TEST(LowerKernelsToLinalg, Matmul) {
  for (bool tl : {false, true})
    for (bool tr : {false, true})
      for (bool batched : {false, true})
        for (std::string type : {"f32", "bf16", "f64"}) {
          std::string lhs =
              "tensor<2x" + std::string(tl ? "19x11x" : "11x19x") + type + ">";
          std::string rhs = std::string("tensor<") + (batched ? "2x" : "") +
                            (tr ? "13x19x" : "19x13x") + type + ">";
          std::string out = "tensor<2x11x13x" + type + ">";
          std::string flags = std::string("{") + (tl ? "transpose_lhs" : "") +
                              (tl && tr ? ", " : "") +
                              (tr ? "transpose_rhs" : "") + "}";
          checkSemantics(kernelText(
              "(%a: " + lhs + ", %b: " + rhs + ") -> (" + out +
                  " {nova.map = array<i64: 0, 1, 2>})",
              "2, 11, 13", "1, 8, 13",
              "%c = nova.matmul %a, %b " + flags + " : (" + lhs + ", " + rhs +
                  ") -> " + out + "\nreturn %c : " + out));
        }
}

TEST(LowerKernelsToLinalg, LinearWithEpilogue) {
  const char *text = R"(
  %l = nova.linear %x, %w, %b FLAG : (tensor<3x5x7xf32>, tensor<WxEf32>, tensor<9xf32>) -> tensor<3x5x9xf32>
  %g = nova.gelu %l : (tensor<3x5x9xf32>) -> tensor<3x5x9xf32>
  %a = nova.add %g, %r : (tensor<3x5x9xf32>, tensor<3x5x9xf32>) -> tensor<3x5x9xf32>
  %t = nova.transpose %a {permutation = array<i64: 0, 2, 1>} : (tensor<3x5x9xf32>) -> tensor<3x9x5xf32>
  return %t, %l : tensor<3x9x5xf32>, tensor<3x5x9xf32>)";
  for (bool transposed : {false, true}) {
    std::string weight = transposed ? "tensor<9x7xf32>" : "tensor<7x9xf32>";
    std::string body = replaced(replaced(text, "tensor<WxEf32>", weight),
                                "FLAG", transposed ? "{transpose_weight}" : "");
    checkSemantics(
        kernelText("(%x: tensor<3x5x7xf32>, %w: " + weight +
                       ", %b: tensor<9xf32>, %r: tensor<3x5x9xf32>) -> "
                       "(tensor<3x9x5xf32> {nova.map = array<i64: 0, 2, 1>}, "
                       "tensor<3x5x9xf32> {nova.map = "
                       "array<i64: 0, 1, 2>})",
                   "3, 5, 9", "1, 4, 9", body));
  }
}

TEST(LowerKernelsToLinalg, ProductsAndSumsStoredRearranged) {
  checkSemantics(kernelText("(%x: tensor<3x4x7xf32>, %w: tensor<7x9xf32>) -> "
                            "(tensor<4x3x1x9xf32> {nova.map = array<i64: "
                            "1, 0, -1, 2>})",
                            "3, 4, 9", "2, 3, 9", R"(
  %m = nova.matmul %x, %w : (tensor<3x4x7xf32>, tensor<7x9xf32>) -> tensor<3x4x9xf32>
  %t = nova.transpose %m {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x9xf32>) -> tensor<4x3x9xf32>
  %r = nova.reshape %t : (tensor<4x3x9xf32>) -> tensor<4x3x1x9xf32>
  return %r : tensor<4x3x1x9xf32>)"));
  checkSemantics(kernelText("(%x: tensor<3x4x7xf32>) -> (tensor<4x1x3xf32> "
                            "{nova.map = array<i64: 1, -1, 0>})",
                            "3, 4", "3, 2", R"(
  %s = nova.sum %x {dims = array<i64: 2>, keepdims} : (tensor<3x4x7xf32>) -> tensor<3x4x1xf32>
  %t = nova.transpose %s {permutation = array<i64: 1, 2, 0>} : (tensor<3x4x1xf32>) -> tensor<4x1x3xf32>
  return %t : tensor<4x1x3xf32>)"));
  // Repeated, it is stored first and copied.
  checkSemantics(kernelText("(%x: tensor<3x4x7xf32>) -> (tensor<3x4x5xf32> "
                            "{nova.map = array<i64: 0, 1, -1>})",
                            "3, 4", "3, 2", R"(
  %s = nova.sum %x {dims = array<i64: 2>, keepdims} : (tensor<3x4x7xf32>) -> tensor<3x4x1xf32>
  %b = nova.broadcast %s : (tensor<3x4x1xf32>) -> tensor<3x4x5xf32>
  return %b : tensor<3x4x5xf32>)"));
}

TEST(LowerKernelsToLinalg, LinearOfVectorInBf16) {
  checkSemantics(kernelText("(%x: tensor<7xbf16>, %w: tensor<7x9xbf16>, %b: "
                            "tensor<9xbf16>) -> (tensor<9xbf16> "
                            "{nova.map = array<i64: 0>})",
                            "9", "9",
                            "%l = nova.linear %x, %w, %b : (tensor<7xbf16>, "
                            "tensor<7x9xbf16>, tensor<9xbf16>) -> "
                            "tensor<9xbf16>\nreturn %l : tensor<9xbf16>"));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct AttentionCase {
  std::string bias; ///< Shape, or empty for none.
  bool causal;
  std::string type = "f32";
};

const AttentionCase kAttentionCases[] = {
    {"", false},         {"", true},
    {"5x7x", false},     {"2x1x1x7x", true},
    {"1x3x5x7x", false}, {"5x1x", true},
    {"", true, "bf16"},  {"5x7x", false, "f64"}};

/// -inf in every third element, so that rows of [.., 7] are partly masked.
const std::vector<double> kMaskBias = {0.5, -INFINITY, 0.25, -INFINITY, 0, 1};

void checkAttention(const AttentionCase &c, const std::string &op,
                    const std::string &operands,
                    const std::vector<std::string> &shapes,
                    const std::string &results,
                    const std::vector<std::string> &resultShapes,
                    const std::vector<std::string> &maps,
                    const std::string &space, const std::string &tile,
                    unsigned biasPosition, SemanticsOptions options) {
  // Statistics of rows, [B, H, T], are float32 at least.
  auto tensor = [&](const std::string &shape) {
    bool ofRows = std::count(shape.begin(), shape.end(), 'x') == 3;
    return "tensor<" + shape + (ofRows && c.type == "bf16" ? "f32" : c.type) + ">";
  };
  std::string arguments, types, names, outTypes, outs;
  std::vector<std::string> all = shapes;
  if (!c.bias.empty()) {
    all.insert(all.begin() + biasPosition, c.bias);
    options.values[biasPosition] = kMaskBias;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::string comma = i ? ", " : "", name = "%a" + std::to_string(i);
    arguments += comma + name + ": " + tensor(all[i]);
    types += comma + tensor(all[i]);
    names += comma + name;
  }
  for (size_t i = 0; i < resultShapes.size(); ++i) {
    std::string comma = i ? ", " : "";
    outTypes += comma + tensor(resultShapes[i]);
    outs += comma + tensor(resultShapes[i]) +
            " {nova.map = array<i64: " + maps[i] + ">}";
  }
  std::string causal = c.causal ? ", causal" : "";
  checkSemantics(kernelText("(" + arguments + ") -> (" + outs + ")", space,
                            tile,
                            results + " = nova." + op + " " + names +
                                " {scale = 0.5 : f64" + causal + "} : (" +
                                types + ") -> (" + outTypes + ")\nreturn " +
                                results + " : " + outTypes),
                 options);
}

TEST(LowerKernelsToLinalg, Attention) {
  for (const AttentionCase &c : kAttentionCases)
    for (const char *tile : {"1, 1, 5", "1, 2, 3"})
      checkAttention(c, "attention", "", {"2x3x5x4x", "2x3x7x4x", "2x3x7x6x"},
                     "%o, %l", {"2x3x5x6x", "2x3x5x"},
                     {"0, 1, 2, -1", "0, 1, 2"}, "2, 3, 5", tile, 3, {});
}

TEST(LowerKernelsToLinalg, AttentionOfRowsThatSeeNothing) {
  // Query 1 and 3 see no key: out and lse are 0.
  SemanticsOptions options;
  options.values[3] = {0, -INFINITY, 0.5, -INFINITY, 1};
  checkSemantics(
      kernelText("(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x7x4xf32>, %v: "
                 "tensor<1x2x7x6xf32>, %b: "
                 "tensor<5x1xf32>) -> (tensor<1x2x5x6xf32> {nova.map = "
                 "array<i64: 0, 1, 2, -1>}, "
                 "tensor<1x2x5xf32> {nova.map = array<i64: 0, 1, 2>})",
                 "1, 2, 5", "1, 1, 2", R"(
  %o, %l = nova.attention %q, %k, %v, %b {scale = 0.7 : f64} : (tensor<1x2x5x4xf32>, tensor<1x2x7x4xf32>, tensor<1x2x7x6xf32>, tensor<5x1xf32>) -> (tensor<1x2x5x6xf32>, tensor<1x2x5xf32>)
  return %o, %l : tensor<1x2x5x6xf32>, tensor<1x2x5xf32>)"),
      options);
}

TEST(LowerKernelsToLinalg, AttentionBackwardQuery) {
  for (const AttentionCase &c : kAttentionCases)
    checkAttention(
        c, "attention_backward_query", "",
        {"2x3x5x6x", "2x3x5x4x", "2x3x7x4x", "2x3x7x6x", "2x3x5x6x", "2x3x5x"},
        "%d, %l", {"2x3x5x4x", "2x3x5x"}, {"0, 1, 2, -1", "0, 1, 2"}, "2, 3, 5",
        "1, 1, 3", 4, {});
}

TEST(LowerKernelsToLinalg, AttentionBackwardKeyValue) {
  for (const AttentionCase &c : kAttentionCases)
    checkAttention(
        c, "attention_backward_key_value", "",
        {"2x3x5x6x", "2x3x5x4x", "2x3x7x4x", "2x3x7x6x", "2x3x5x", "2x3x5x"},
        "%dk, %dv", {"2x3x7x4x", "2x3x7x6x"}, {"0, 1, 2, -1", "0, 1, 2, -1"},
        "2, 3, 7", "1, 1, 4", 4, {});
}

//===----------------------------------------------------------------------===//
// Gathers, rearrangements and what stays
//===----------------------------------------------------------------------===//

TEST(LowerKernelsToLinalg, Index) {
  SemanticsOptions wild;
  wild.range[1] = wild.range[2] = {-9, 9};
  checkSemantics(
      kernelText("(%x: tensor<6x5x4xf32>, %i: tensor<3x2xi64>) -> "
                 "(tensor<3x2x5x4xf32> {nova.map = array<i64: "
                 "0, 1, -1, -1>})",
                 "3, 2", "2, 2",
                 "%y = nova.index %x, %i {dims = array<i64: 0>} : "
                 "(tensor<6x5x4xf32>, tensor<3x2xi64>) -> "
                 "tensor<3x2x5x4xf32>\nreturn %y : tensor<3x2x5x4xf32>"),
      wild);
  checkSemantics(
      kernelText(
          "(%x: tensor<6x5x4x3xi32>, %i: tensor<7xi32>, %j: tensor<7xi32>) -> "
          "(tensor<6x7x3xi32> "
          "{nova.map = array<i64: 0, 1, 2>})",
          "6, 7, 3", "2, 7, 3",
          "%y = nova.index %x, %i, %j {dims = array<i64: 1, 2>} : "
          "(tensor<6x5x4x3xi32>, tensor<7xi32>, "
          "tensor<7xi32>) -> tensor<6x7x3xi32>\nreturn %y : tensor<6x7x3xi32>"),
      wild);
}

TEST(LowerKernelsToLinalg, EmbeddingPlusPositions) {
  SemanticsOptions tokens;
  tokens.range[0] = {0, 16};
  checkSemantics(
      kernelText("(%t: tensor<2x5xi64>, %w: tensor<17x12xf32>, %p: "
                 "tensor<5x12xf32>) -> (tensor<2x5x12xf32> "
                 "{nova.map = array<i64: 0, 1, -1>}, tensor<2x5x1xf32> "
                 "{nova.map = array<i64: 0, 1, -1>})",
                 "2, 5", "1, 3", R"(
  %e = nova.index %w, %t {dims = array<i64: 0>} : (tensor<17x12xf32>, tensor<2x5xi64>) -> tensor<2x5x12xf32>
  %h = nova.add %e, %p : (tensor<2x5x12xf32>, tensor<5x12xf32>) -> tensor<2x5x12xf32>
  %s = nova.sum %h {dims = array<i64: 2>, keepdims} : (tensor<2x5x12xf32>) -> tensor<2x5x1xf32>
  return %h, %s : tensor<2x5x12xf32>, tensor<2x5x1xf32>)"),
      tokens);
}

TEST(LowerKernelsToLinalg, Gather) {
  SemanticsOptions wild;
  wild.range[1] = {-2, 8};
  checkSemantics(kernelText("(%x: tensor<6x7xf32>, %i: tensor<5x9xi64>) -> "
                            "(tensor<5x9xf32> {nova.map = array<i64: 0, "
                            "1>})",
                            "5, 9", "2, 9",
                            "%y = nova.gather %x, %i {dim = 1 : i64} : "
                            "(tensor<6x7xf32>, tensor<5x9xi64>) -> "
                            "tensor<5x9xf32>\nreturn %y : tensor<5x9xf32>"),
                 wild);
  // Through a view of the argument.
  checkSemantics(
      kernelText(
          "(%x: tensor<7x6xf32>, %i: tensor<5x9xi64>) -> (tensor<5x9xf32> "
          "{nova.map = array<i64: 0, "
          "1>})",
          "5, 9", "2, 9",
          "%t = nova.transpose %x {permutation = array<i64: 1, 0>} : "
          "(tensor<7x6xf32>) -> "
          "tensor<6x7xf32>\n%y = nova.gather %t, %i {dim = 1 : i64} : "
          "(tensor<6x7xf32>, "
          "tensor<5x9xi64>) -> tensor<5x9xf32>\nreturn %y : tensor<5x9xf32>"),
      wild);
}

TEST(LowerKernelsToLinalg, Pad) {
  checkSemantics(kernelText(
      "(%x: tensor<3x5xf32>) -> (tensor<6x9xf32> {nova.map = array<i64: 0, "
      "1>})",
      "6, 9", "4, 9",
      "%y = nova.pad %x {low = array<i64: 1, 0>, high = array<i64: 2, 4>, "
      "value = 0.5 : f32} : "
      "(tensor<3x5xf32>) -> tensor<6x9xf32>\nreturn %y : tensor<6x9xf32>"));
  // What the kernel computes itself, then pads.
  checkSemantics(kernelText("(%x: tensor<3x5xf32>) -> (tensor<3x9xf32> "
                            "{nova.map = array<i64: 0, -1>})",
                            "3", "2", R"(
      %e = nova.exp %x : (tensor<3x5xf32>) -> tensor<3x5xf32>
      %y = nova.pad %e {low = array<i64: 0, 1>, high = array<i64: 0, 3>, value = 0.5 : f32} : (tensor<3x5xf32>) -> tensor<3x9xf32>
      return %y : tensor<3x9xf32>)"));
}

TEST(LowerKernelsToLinalg, ConcatCumsumIota) {
  checkSemantics(kernelText("(%x: tensor<3x5xf32>, %y: tensor<2x3xf32>) -> "
                            "(tensor<3x7xf32> {nova.map = array<i64: 0, "
                            "-1>})",
                            "3", "2", R"(
      %t = nova.transpose %y {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
      %c = nova.concat %x, %t {dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x2xf32>) -> tensor<3x7xf32>
      %n = nova.neg %c : (tensor<3x7xf32>) -> tensor<3x7xf32>
      return %n : tensor<3x7xf32>)"));
  checkSemantics(kernelText("(%x: tensor<3x8xi64>) -> (tensor<3x8xi64> "
                            "{nova.map = array<i64: 0, -1>})",
                            "3", "2", R"(
      %i = nova.iota 5 : i64, -2 : i64 : tensor<8xi64>
      %a = nova.add %x, %i : (tensor<3x8xi64>, tensor<8xi64>) -> tensor<3x8xi64>
      %s = nova.cumsum %a {dim = 1 : i64} : (tensor<3x8xi64>) -> tensor<3x8xi64>
      return %s : tensor<3x8xi64>)"));
}

TEST(LowerKernelsToLinalg, ScatterAndIndexPut) {
  SemanticsOptions wild;
  wild.range[1] = {-2, 6};
  checkSemantics(kernelText("(%x: tensor<4x6xf32>, %i: tensor<4x9xi64>, %u: "
                            "tensor<4x9xf32>) -> (tensor<4x6xf32> "
                            "{nova.map = array<i64: 0, -1>})",
                            "4", "2", R"(
      %n = nova.neg %u : (tensor<4x9xf32>) -> tensor<4x9xf32>
      %y = nova.scatter %x, %i, %n {dim = 1 : i64, accumulate} : (tensor<4x6xf32>, tensor<4x9xi64>, tensor<4x9xf32>) -> tensor<4x6xf32>
      return %y : tensor<4x6xf32>)"),
                 wild);
  SemanticsOptions rows;
  rows.range[0] = {-7, 7};
  checkSemantics(kernelText("(%i: tensor<9xi64>, %u: tensor<9x5xf32>) -> "
                            "(tensor<6x5xf32> {nova.map = array<i64: -1, "
                            "0>})",
                            "5", "3", R"(
      %z = nova.constant dense<0.0> : tensor<6x5xf32>
      %y = nova.index_put %z, %i, %u {accumulate} : (tensor<6x5xf32>, tensor<9xi64>, tensor<9x5xf32>) -> tensor<6x5xf32>
      return %y : tensor<6x5xf32>)"),
                 rows);
}

TEST(LowerKernelsToLinalg, ReturnedViewsAndConstants) {
  checkSemantics(kernelText("(%x: tensor<3x5xf32>) -> (tensor<5x3xf32> "
                            "{nova.map = array<i64: 1, 0>}, tensor<3x1x5xf32> "
                            "{nova.map = array<i64: 0, -1, 1>}, "
                            "tensor<3x5xf32> {nova.map = array<i64: 0, 1>}, "
                            "tensor<3x5xf32> {nova.map = array<i64: 0, 1>})",
                            "3, 5", "2, 5", R"(
      %t = nova.transpose %x {permutation = array<i64: 1, 0>} : (tensor<3x5xf32>) -> tensor<5x3xf32>
      %e = nova.exp %x : (tensor<3x5xf32>) -> tensor<3x5xf32>
      %r = nova.reshape %e : (tensor<3x5xf32>) -> tensor<3x1x5xf32>
      %c = nova.constant dense<2.5> : tensor<3x5xf32>
      return %t, %r, %c, %e : tensor<5x3xf32>, tensor<3x1x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>)"));
}

//===----------------------------------------------------------------------===//
// Fused chains
//===----------------------------------------------------------------------===//

TEST(LowerKernelsToLinalg, AdamW) {
  // Three results that read each other, and scalars computed once.
  checkSemantics(
      kernelText("(%p: tensor<37xf32>, %g: tensor<37xf32>, %m: tensor<37xf32>, "
                 "%v: tensor<37xf32>, %t: "
                 "tensor<f32>) -> (tensor<37xf32> {nova.map = array<i64: 0>}, "
                 "tensor<37xf32> {nova.map = "
                 "array<i64: 0>}, tensor<37xf32> {nova.map = array<i64: 0>})",
                 "37", "16", R"(
  %b1 = nova.constant dense<0.9> : tensor<f32>
  %b2 = nova.constant dense<0.99> : tensor<f32>
  %c1 = nova.constant dense<0.1> : tensor<f32>
  %c2 = nova.constant dense<0.01> : tensor<f32>
  %one = nova.constant dense<1.0> : tensor<f32>
  %m0 = nova.mul %m, %b1 : (tensor<37xf32>, tensor<f32>) -> tensor<37xf32>
  %g1 = nova.mul %g, %c1 : (tensor<37xf32>, tensor<f32>) -> tensor<37xf32>
  %m1 = nova.add %m0, %g1 : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  %av = nova.abs %v : (tensor<37xf32>) -> tensor<37xf32>
  %v0 = nova.mul %av, %b2 : (tensor<37xf32>, tensor<f32>) -> tensor<37xf32>
  %gg = nova.mul %g, %g : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  %g2 = nova.mul %gg, %c2 : (tensor<37xf32>, tensor<f32>) -> tensor<37xf32>
  %v1 = nova.add %v0, %g2 : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  %at = nova.abs %t : (tensor<f32>) -> tensor<f32>
  %pw = nova.pow %b1, %at : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %bc = nova.sub %one, %pw : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %mh = nova.div %m1, %bc : (tensor<37xf32>, tensor<f32>) -> tensor<37xf32>
  %sq = nova.sqrt %v1 : (tensor<37xf32>) -> tensor<37xf32>
  %de = nova.add %sq, %c2 : (tensor<37xf32>, tensor<f32>) -> tensor<37xf32>
  %up = nova.div %mh, %de : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  %p1 = nova.sub %p, %up : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  return %p1, %m1, %v1 : tensor<37xf32>, tensor<37xf32>, tensor<37xf32>)"));
}

TEST(LowerKernelsToLinalg, RowStatisticsBackward) {
  // Two sums over the same rows, and what reads both.
  checkSemantics(kernelText("(%g: tensor<6x40xf32>, %x: tensor<6x40xf32>, %mu: "
                            "tensor<6x1xf32>, %rs: tensor<6x1xf32>, "
                            "%w: tensor<40xf32>) -> (tensor<6x40xf32> "
                            "{nova.map = array<i64: 0, -1>})",
                            "6", "4", R"(
  %d = nova.constant dense<40.0> : tensor<f32>
  %c = nova.sub %x, %mu : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
  %h = nova.mul %c, %rs : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
  %gw = nova.mul %g, %w : (tensor<6x40xf32>, tensor<40xf32>) -> tensor<6x40xf32>
  %gh = nova.mul %gw, %h : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %s1 = nova.sum %gw {dims = array<i64: 1>, keepdims} : (tensor<6x40xf32>) -> tensor<6x1xf32>
  %s2 = nova.sum %gh {dims = array<i64: 1>, keepdims} : (tensor<6x40xf32>) -> tensor<6x1xf32>
  %m1 = nova.div %s1, %d : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
  %m2 = nova.div %s2, %d : (tensor<6x1xf32>, tensor<f32>) -> tensor<6x1xf32>
  %a = nova.sub %gw, %m1 : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
  %b = nova.mul %h, %m2 : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
  %e = nova.sub %a, %b : (tensor<6x40xf32>, tensor<6x40xf32>) -> tensor<6x40xf32>
  %dx = nova.mul %e, %rs : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
  return %dx : tensor<6x40xf32>)"));
}

TEST(LowerKernelsToLinalg, Bf16RoundsWhereTheGraphDoes) {
  checkSemantics(kernelText("(%x: tensor<5x19xbf16>, %y: tensor<19xbf16>) -> "
                            "(tensor<5x19xf32> {nova.map = array<i64: 0, "
                            "1>})",
                            "5, 19", "5, 19", R"(
  %s = nova.add %x, %y : (tensor<5x19xbf16>, tensor<19xbf16>) -> tensor<5x19xbf16>
  %m = nova.mul %s, %x : (tensor<5x19xbf16>, tensor<5x19xbf16>) -> tensor<5x19xbf16>
  %f = nova.cast %m : (tensor<5x19xbf16>) -> tensor<5x19xf32>
  return %f : tensor<5x19xf32>)"));
}

} // namespace
} // namespace nova::test
