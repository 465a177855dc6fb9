//===- read_graph_test.cpp - Every rule of the format, one by one ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphTestUtils.h"

#include <chrono>
#include <cmath>

using namespace nova;
using namespace nova::graph;

//===----------------------------------------------------------------------===//
// What is read
//===----------------------------------------------------------------------===//

TEST(ReadGraph, ReadsEveryPart) {
  auto graph = parseGraph(smallGraph());
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->name, "small");
  ASSERT_EQ(graph->inputs.size(), 3u);
  EXPECT_EQ(graph->inputs[0].role, InputRole::Parameter);
  EXPECT_EQ(graph->inputs[0].path, "net.w");
  EXPECT_EQ(graph->inputs[1].advance, 1);
  EXPECT_EQ(*graph->inputs[2].strides, (std::vector<int64_t>{1, 3}));
  const Node &b = graph->nodes[1];
  EXPECT_EQ(*b.args[0].as<Ref>(), (Ref{Ref::Kind::Node, 0, 0}));
  EXPECT_EQ(*b.args[1].as<int64_t>(), 0);
  EXPECT_EQ(*b.args[2].as<bool>(), false);
  const ValueList &k = *b.kwargs[0].second.as<ValueList>();
  EXPECT_TRUE(k[0].isNull());
  EXPECT_EQ(*k[2].as<std::string>(), "s");
  EXPECT_EQ(*k[3].as<double>(), 1.0);
  EXPECT_EQ(*k[4].as<DType>(), DType::Bool);
  EXPECT_EQ(k[5].as<EnumName>()->name, "cuda:0");
  EXPECT_TRUE(std::isnan(*k[6].as<double>()));
  EXPECT_FALSE(b.results[2]);
  EXPECT_EQ(graph->outputs[0].value, (Ref{Ref::Kind::Node, 1, 1}));
  EXPECT_EQ(graph->outputs[1].updates, 0u);
}

TEST(ReadGraph, AnExponentOrAPointMakesANumberFloating) {
  for (const char *spelled : {"1.0", "1e0", "1E0", "-0.0", "10e-1"}) {
    auto graph = parseGraph(
        edited(smallGraph(), ",0,false]", "," + std::string(spelled) + "]"));
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_TRUE(graph->nodes[1].args[1].as<double>()) << spelled;
  }
  for (const char *spelled :
       {"1", "-1", "0", "9223372036854775807", "-9223372036854775808"}) {
    auto graph = parseGraph(
        edited(smallGraph(), ",0,false]", "," + std::string(spelled) + "]"));
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_TRUE(graph->nodes[1].args[1].as<int64_t>()) << spelled;
  }
}

TEST(ReadGraph, ContiguousStridesSayNothing) {
  auto graph = parseGraph(edited(smallGraph(), "[1,3]", "[4,1]"));
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_FALSE(graph->inputs[2].strides);
}

TEST(ReadGraph, ReadsTheGraphsOfTheRepository) {
  struct {
    const char *name;
    size_t nodes;
  } graphs[] = {{"format_corners", 14},
                {"gpt2_124m_b8", 4217},
                {"gpt2_tiny", 827},
                {"gpt2_tiny_core", 938},
                {"gpt2_tiny_eagerattn", 1015},
                {"lm_head_small", 29},
                {"mlp_mnist", 41},
                {"mlp_mnist_adamw_core", 138}};
  for (const auto &[name, nodes] : graphs) {
    auto start = std::chrono::steady_clock::now();
    auto graph = readGraph(std::string(NOVA_GRAPHS_DIR) + "/" + name + ".json");
    std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_EQ(graph->nodes.size(), nodes) << name;
    // 20 ms on one core of 2024; the bound is for loaded machines.
    EXPECT_LT(took.count(), 500) << name;
  }
}

//===----------------------------------------------------------------------===//
// JSON itself
//===----------------------------------------------------------------------===//

TEST(ReadGraph, RefusesDuplicateKeys) {
  expectEditError(R"("op":"aten.sub.Tensor")",
                  R"("op":"aten.sub.Tensor","name":"e")",
                  R"(nodes[2]: the key "name" is there twice)");
  expectEditError(R"("version": 1)", R"("version": 1, "version": 1)",
                  R"(the key "version" is there twice)");
}

TEST(ReadGraph, RefusesDeepNesting) {
  std::string deep(100, '['), close(100, ']');
  auto graph = parseGraph(edited(smallGraph(), "[{\"ref\":\"w\"}", deep));
  ASSERT_FALSE(graph);
  EXPECT_NE(graph.error().message.find("nested deeper than 64"),
            std::string::npos)
      << graph.error().message;
  // Without recursion: a megabyte of brackets must not exhaust the stack.
  auto bomb = parseGraph(std::string(1 << 20, '['));
  ASSERT_FALSE(bomb);
}

TEST(ReadGraph, NamesIntegersThatDoNotFit) {
  for (const char *spelled :
       {"9223372036854775808", "-9223372036854775809", "18446744073709551616",
        "100000000000000000000000"})
    expectEditError(
        ",0,false]", "," + std::string(spelled) + "]",
        "nodes[1].args[1]: got " + std::string(spelled) +
            ", expected an integer of 64 bits (write it with '.' or an "
            "exponent if it is floating)");
}

TEST(ReadGraph, RefusesNumbersThatDoNotFitADouble) {
  auto graph = parseGraph(edited(smallGraph(), ",0,false]", ",1e999]"));
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message,
            "nodes[1].args: number overflow parsing '1e999'");
}

TEST(ReadGraph, RefusesWhatIsNotOneJsonObject) {
  expectError("[]", "got [], expected one object");
  for (const std::string &text :
       {std::string(), std::string("{"), smallGraph() + "x",
        smallGraph() + "{}", std::string("{\"a\":\"\xff\"}"),
        std::string("{\"a\":01}"), std::string("{\"a\":NaN}"),
        std::string("{'a':1}"), std::string("{\"a\":1,}")})
    EXPECT_FALSE(parseGraph(text)) << text;
}

TEST(ReadGraph, EveryPrefixIsRefused) {
  const std::string &text = smallGraph();
  for (size_t end = 0; end < text.size(); ++end)
    ASSERT_FALSE(parseGraph(text.substr(0, end))) << end;
}

//===----------------------------------------------------------------------===//
// The header, fields
//===----------------------------------------------------------------------===//

TEST(ReadGraph, RefusesOtherFormatsAndVersions) {
  expectEditError("nova.graph", "onnx",
                  R"(format: got "onnx", expected "nova.graph")");
  expectEditError(R"("version": 1)", R"("version": 2)",
                  "version: got 2, expected 1");
  expectEditError(R"("version": 1)", R"("version": 1.0)",
                  "version: got 1.0, expected 1");
  expectError("{}", R"(format: missing, expected "nova.graph")");
}

TEST(ReadGraph, RefusesUnknownFields) {
  expectEditError(R"("name": "small")", R"("name": "small", "nmae": 1)",
                  "nmae: unknown field, expected one of format, version, name, "
                  "producer, inputs, constants, nodes, outputs");
  expectEditError(R"("op":"aten.mul.Tensor")",
                  R"("op":"aten.mul.Tensor","x":1)",
                  "nodes[0].x: unknown field, expected one of name, op, args, "
                  "kwargs, results");
  expectEditError(R"({"ref":"x"})", R"({"ref":"x","role":"y"})",
                  "nodes[0].args[0].role: unknown field, expected one of ref, "
                  "result");
  expectEditError(R"("dtype":"int64","shape":[4])",
                  R"("dtype":"int64","shape":[4],"name":"q")",
                  "nodes[1].results[1].name: unknown field, expected one of "
                  "dtype, shape, strides");
}

TEST(ReadGraph, NamesMissingFields) {
  expectEditError(R"("role":"parameter",)", "", "inputs[0].role: missing");
  expectEditError(R"("op":"aten.mul.Tensor",)", "", "nodes[0].op: missing");
  expectEditError(R"("constants")", R"("producer2")",
                  "producer2: unknown field, expected one of format, version, "
                  "name, producer, inputs, constants, nodes, outputs");
}

TEST(ReadGraph, SymbolicSizesAreNotSupported) {
  expectEditError(R"("name": "small")",
                  R"("name": "small", "dims": {"B": {"min": 1, "max": 64}})",
                  R"(dims: symbolic sizes are not supported; got )"
                  R"({"B":{"min":1,"max":64}})");
  expectEditError(R"("shape":[3,4],"strides")", R"("shape":["B",4],"strides")",
                  R"(inputs[2].shape[0]: symbolic sizes are not supported; )"
                  R"(got "B")");
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

TEST(ReadGraph, RefusesUnknownDtypes) {
  expectEditError(R"("dtype":"int64")", R"("dtype":"complex64")",
                  R"(nodes[1].results[1].dtype: got "complex64", expected )"
                  "float64, float32, bfloat16, float16, int64, int32, int16, "
                  "int8, uint8 or bool");
}

TEST(ReadGraph, RefusesBadSizes) {
  expectEditError(R"("shape":[3,4],"strides")", R"("shape":[-3,4],"strides")",
                  "inputs[2].shape[0]: got -3, expected an integer that is not "
                  "negative");
  expectEditError(R"("shape":[3,4],"strides")", R"("shape":[3.0,4],"strides")",
                  "inputs[2].shape[0]: got 3.0, expected an integer that is "
                  "not negative");
  expectEditError(
      R"("shape":[3,4],"strides")",
      R"("shape":[4294967296,4294967296],"strides")",
      "inputs[2].shape: got [4294967296,4294967296], expected less than 2^63 "
      "bytes");
  // A size of zero does not excuse the others.
  expectEditError(
      R"("shape":[3,4],"strides")",
      R"("shape":[0,9223372036854775807],"strides")",
      "inputs[2].shape: got [0,9223372036854775807], expected less than 2^63 "
      "bytes");
}

TEST(ReadGraph, RefusesBadStrides) {
  expectEditError("[1,3]", "[1]",
                  "inputs[2].strides: got [1], expected 2 strides for shape "
                  "[3,4]");
  expectEditError("[1,3]", "[1,-3]",
                  "inputs[2].strides[1]: got -3, expected an integer that is "
                  "not negative");
  expectEditError("[1,3]", "[1,3074457345618258602]",
                  "inputs[2].strides: got [1,3074457345618258602], expected a "
                  "reach of less than 2^63 bytes");
}

TEST(ReadGraph, RefusesBadInputs) {
  expectEditError(R"("role":"parameter")", R"("role":"weight")",
                  R"(inputs[0].role: got "weight", expected parameter, state, )"
                  "buffer, scalar or input");
  expectEditError(R"("shape":[],"advance":1)", R"("shape":[1],"advance":1)",
                  "inputs[1].shape: got [1], expected [] for a scalar");
  expectEditError(R"("shape":[4]})", R"("shape":[4],"advance":2})",
                  "inputs[0].advance: got 2, expected none: only a scalar "
                  "advances");
  expectEditError(R"("advance":1)", R"("advance":"1")",
                  R"(inputs[1].advance: got "1", expected a number)");
  expectEditError(R"("float32","shape":[],"advance":1)",
                  R"("int64","shape":[],"advance":0.5)",
                  "inputs[1].advance: got 0.5, expected an integer for int64");
  expectEditError(R"("name":"w")", R"("name":"")",
                  R"(inputs[0].name: got "", expected a string that is not )"
                  "empty");
  for (const char *bad : {"\\u0000", "\\n", "\\u001f", "\\u007f"}) {
    auto graph = parseGraph(edited(smallGraph(), R"("name": "small")",
                                   R"("name": "sm)" + std::string(bad) +
                                       R"(all")"));
    ASSERT_FALSE(graph) << bad;
    EXPECT_NE(graph.error().message.find(
                  "expected a string without control characters"),
              std::string::npos)
        << graph.error().message;
  }
}

TEST(ReadGraph, WhatNoMemoryHoldsIsNotGiven) {
  auto input = [](const std::string &shape, const std::string &more) {
    return R"({"format":"nova.graph","version":1,"name":"g","constants":[],)"
           R"("inputs":[{"name":"x","role":"input","dtype":"float32","shape":)" +
           shape + more +
           R"(}],"nodes":[],"outputs":[{"ref":"x","role":"output"}]})";
  };
  EXPECT_TRUE(parseGraph(input("[274877906944]", ""))); // 2^40 bytes
  EXPECT_TRUE(parseGraph(input("[0,4398046511104]", "")));
  auto graph = parseGraph(input("[1048576,262145]", ""));
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message,
            "inputs[0].shape: got float32 [1048576,262145] of 1099515822080 "
            "bytes, expected at most 1099511627776: no device holds more");
  graph = parseGraph(input("[3,2]", R"(,"strides":[274877906944,1])"));
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message,
            "inputs[0].shape: got float32 [3,2] of 2199023255560 bytes, "
            "expected at most 1099511627776: no device holds more");
}

//===----------------------------------------------------------------------===//
// Names and references
//===----------------------------------------------------------------------===//

TEST(ReadGraph, RefusesDuplicateNames) {
  expectEditError(R"("name":"d")", R"("name":"a")",
                  R"(nodes[2].name: "a" is the name of nodes[0] already)");
  expectEditError(R"("name":"a")", R"("name":"w")",
                  R"(nodes[0].name: "w" is the name of inputs[0] already)");
  expectEditError(R"("name":"c")", R"("name":"x")",
                  R"(constants[0].name: "x" is the name of inputs[2] already)");
}

TEST(ReadGraph, RefusesUndefinedNames) {
  expectEditError(R"({"ref":"b"}],"results")", R"({"ref":"bb"}],"results")",
                  R"(nodes[2].args[1].ref: undefined name "bb"; nearest: b, )"
                  "a, c");
  expectEditError(R"([{"ref":"a"},0)", R"([[{"ref":"nowhere"}],0)",
                  R"(nodes[1].args[0][0].ref: undefined name "nowhere")");
  expectEditError(R"({"ref":"b","result":1)", R"({"ref":"none","result":1)",
                  R"(outputs[0].ref: undefined name "none")");
}

TEST(ReadGraph, RefusesLaterNodes) {
  expectEditError(R"([{"ref":"x"})", R"([{"ref":"d"})",
                  R"(nodes[0].args[0].ref: "d" is defined later, at nodes[2]; )"
                  "expected an earlier node");
  expectEditError(R"([{"ref":"x"})", R"([{"ref":"a"})",
                  R"(nodes[0].args[0].ref: "a" is defined later, at nodes[0]; )"
                  "expected an earlier node");
}

TEST(ReadGraph, RefusesResultsThatAreNotThere) {
  expectEditError(R"({"ref":"b","result":1)", R"({"ref":"b","result":3)",
                  R"(outputs[0].result: got 3, expected less than 3, the )"
                  R"(results of "b")");
  expectEditError(R"({"ref":"c","result":0})", R"({"ref":"c","result":1})",
                  R"(nodes[0].args[1].result: got 1, expected less than 1, )"
                  R"(the results of "c")");
  expectEditError(R"({"ref":"b","result":1)", R"({"ref":"b","result":-1)",
                  "outputs[0].result: got -1, expected an integer that is not "
                  "negative");
  expectEditError(R"({"ref":"b","result":1)", R"({"ref":"b","result":2)",
                  R"(outputs[0]: result 2 of "b" is null: nobody has it)");
}

TEST(ReadGraph, RefusesBadValues) {
  expectEditError(R"({"dtype":"bool"})", R"({"dtype":"complex32"})",
                  R"(nodes[1].kwargs.k[4].dtype: got "complex32", expected )"
                  "float64, float32, bfloat16, float16, int64, int32, int16, "
                  "int8, uint8 or bool");
  expectEditError(R"({"float":"nan"})", R"({"float":"NaN"})",
                  R"(nodes[1].kwargs.k[6].float: got "NaN", expected "inf", )"
                  R"("-inf" or "nan")");
  expectEditError(R"({"enum":"cuda:0"})", R"({"device":"cuda:0"})",
                  R"(nodes[1].kwargs.k[5]: got {"device":"cuda:0"}, expected )"
                  "a number, bool, string, null, list, or an object with ref, "
                  "float, dtype or enum");
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

TEST(ReadGraph, RefusesBadOutputs) {
  expectEditError(R"("role":"output")", R"("role":"logits")",
                  R"(outputs[0].role: got "logits", expected loss, output, )"
                  "gradient or update");
  expectEditError(R"(,"updates":"w")", "",
                  "outputs[1].updates: missing: an update names the input it "
                  "replaces");
  expectEditError(R"("role":"output")", R"("role":"output","updates":"w")",
                  R"(outputs[0].updates: got "w", expected none for the role )"
                  "output");
  expectError(R"({"format":"nova.graph","version":1,"name":"n","inputs":[],)"
              R"("constants":[],"nodes":[],"outputs":[]})",
              "outputs: got [], expected at least one output");
}

TEST(ReadGraph, UpdatesNameAnInputOfTheSameType) {
  expectEditError(R"("updates":"w")", R"("updates":"ww")",
                  R"(outputs[1].updates: got "ww", expected the name of an )"
                  "input; nearest: w, lr, x");
  expectEditError(R"("updates":"w")", R"("updates":"c")",
                  R"(outputs[1].updates: got "c", expected the name of an )"
                  "input; nearest: w, x, lr");
  expectEditError(R"("updates":"w")", R"("updates":"x")",
                  R"(outputs[1].updates: "x" is float32 [3,4], the value that )"
                  "replaces it is float32 [4]; expected the same");
  expectEditError(R"({"ref":"d","role":"update")",
                  R"({"ref":"b","result":1,"role":"update")",
                  R"(outputs[1].updates: "w" is float32 [4], the value that )"
                  "replaces it is int64 [4]; expected the same");
  expectEditError(R"({"ref":"b","result":1,"role":"output"})",
                  R"({"ref":"d","role":"update","updates":"w"})",
                  R"(outputs[1].updates: "w" is updated by outputs[0] )"
                  "already; expected one update");
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

TEST(ReadGraph, ErrorsOfAFileNameTheFile) {
  TemporaryFolder folder;
  folder.write("g.json", edited(smallGraph(), "nova.graph", "x"));
  auto graph = readGraph(folder.path + "/g.json");
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message,
            folder.path + R"(/g.json: format: got "x", expected "nova.graph")");
  EXPECT_FALSE(readGraph(folder.path + "/missing.json"));
}
