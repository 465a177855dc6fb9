// RUN: nova-opt %s --nova-sort-updates=fewest=4 --split-input-file | FileCheck %s

// Two lists of 3x700 positions: entries, padded to a power of two; runs of 1024 sorted
// by counting; two merges; the bounds of 4 * 5 rows. The kernel takes the order and
// the bounds instead of the lists.
// CHECK-LABEL: func.func @step
// CHECK: %[[E:.*]] = nova.launch @put.entries(%arg0, %arg1) views [#nova.view<0, [700, 1]>, #nova.view<7, [1, 3]>] nodes ["put"] : (tensor<3x700xi64>, tensor<3000xi32>) -> tensor<4096xi64>
// CHECK: %[[R:.*]] = nova.launch @put.ranks(%[[E]], %[[E]]) views [#nova.view<0, [1024, 1]>, #nova.view<0, [1024, 1]>] nodes ["put"] : (tensor<4096xi64>, tensor<4096xi64>) -> tensor<4x1024xi32>
// CHECK: %[[S:.*]] = nova.launch @put.runs(%[[E]], %[[R]]) {{.*}} -> tensor<4x1024xi64>
// CHECK: %[[M:.*]] = nova.launch @put.merge1024(%[[S]]) views [#nova.view<0, [1]>]
// CHECK: %[[O:.*]] = nova.launch @put.merge2048(%[[M]])
// CHECK: %[[B:.*]] = nova.launch @put.bounds(%[[O]]) {{.*}} -> tensor<21xi32>
// CHECK: %[[P:.*]] = nova.launch @put(%arg2, %[[O]], %[[B]]) views [#nova.view<0, [4200, 6, 1]>, #nova.view<0, [1]>, #nova.view<0, [1]>]
// CHECK: return %[[P]]
// CHECK: func.func private @put.entries(%arg0: tensor<3x700xi64>, %arg1: tensor<3x700xi32> {nova.strides = array<i64: 1, 3>}) -> (tensor<4096xi64> {nova.map = array<i64: 0>})
// CHECK-SAME: nova.role = "table_entries", nova.space = array<i64: 4096>
// CHECK: tensor.extract %arg0
// CHECK: func.func private @put.ranks
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: func.func private @put.bounds
// CHECK: func.func private @put(%arg0: tensor<3x700x6xf32>, %arg1: tensor<4096xi64>, %arg2: tensor<21xi32>)
// CHECK: nova.segment_sum %{{.*}}, %arg0, %arg1, %arg2 {rows = 2 : i64}
func.func @step(%i: tensor<3x700xi64>, %j: tensor<3000xi32>, %u: tensor<3x700x6xf32>) -> tensor<4x5x6xf32> attributes {nova.graph = "g"} {
  %a = nova.launch @put(%i, %j, %u) views [#nova.view<0, [700, 1]>, #nova.view<7, [1, 3]>, #nova.view<0, [4200, 6, 1]>] nodes ["put"]
    : (tensor<3x700xi64>, tensor<3000xi32>, tensor<3x700x6xf32>) -> tensor<4x5x6xf32>
  return %a : tensor<4x5x6xf32>
}
func.func private @put(%i: tensor<3x700xi64>, %j: tensor<3x700xi32> {nova.strides = array<i64: 1, 3>}, %u: tensor<3x700x6xf32>)
    -> (tensor<4x5x6xf32> {nova.map = array<i64: 0, 1, 2>})
    attributes {nova.kernel, nova.role = "table", nova.space = array<i64: 4, 5, 6>} {
  %z = arith.constant dense<0.0> : tensor<4x5x6xf32>
  %y = nova.index_put %z, %i, %j, %u {accumulate} : (tensor<4x5x6xf32>, tensor<3x700xi64>, tensor<3x700xi32>, tensor<3x700x6xf32>) -> tensor<4x5x6xf32>
  return %y : tensor<4x5x6xf32>
}

// -----

// What does not add keeps the last, and few positions are looked at as they are.
// CHECK-NOT: nova.segment_sum
func.func private @write(%i: tensor<9xi64>, %u: tensor<9x5xf32>) -> (tensor<6x5xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 6, 5>} {
  %z = arith.constant dense<0.0> : tensor<6x5xf32>
  %y = nova.index_put %z, %i, %u : (tensor<6x5xf32>, tensor<9xi64>, tensor<9x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
func.func private @few(%i: tensor<3xi64>, %u: tensor<3x5xf32>) -> (tensor<6x5xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 6, 5>} {
  %z = arith.constant dense<0.0> : tensor<6x5xf32>
  %y = nova.index_put %z, %i, %u {accumulate} : (tensor<6x5xf32>, tensor<3xi64>, tensor<3x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}
