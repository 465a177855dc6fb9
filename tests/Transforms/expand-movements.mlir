// RUN: nova-opt %s --pass-pipeline='builtin.module(func.func(nova-expand-movements))' --split-input-file | FileCheck %s

// Each element of the result selects among the parts, the last of which it is in:
// one extraction each, at a place that is always inside. A part without elements
// has none.
// CHECK-LABEL: func.func private @concat
// CHECK-NOT: tensor.concat
// CHECK: linalg.generic {indexing_maps = [#{{.*}}], iterator_types = ["parallel", "parallel"]} outs(
// CHECK-DAG: %[[ROW:.*]] = linalg.index 0
// CHECK-DAG: %[[COLUMN:.*]] = linalg.index 1
// CHECK: %[[C5:.*]] = arith.constant 5 : index
// CHECK: %[[IN_X:.*]] = arith.cmpi ult, %[[COLUMN]], %[[C5]]
// CHECK: %[[AT_X:.*]] = arith.select %[[IN_X]], %[[COLUMN]], %{{.*}} : index
// CHECK: %[[X:.*]] = tensor.extract %arg0[%[[ROW]], %[[AT_X]]]
// CHECK: %[[OF_Y:.*]] = arith.subi %[[COLUMN]], %{{.*}}
// CHECK: %[[IN_Y:.*]] = arith.cmpi ult, %[[OF_Y]]
// CHECK: %[[Y:.*]] = tensor.extract %arg1[%[[ROW]],
// CHECK: %[[XY:.*]] = arith.select %[[IN_Y]], %[[Y]], %[[X]] : f32
// CHECK: arith.constant 7 : index
// CHECK: %[[Z:.*]] = tensor.extract %arg3[%[[ROW]],
// CHECK: arith.select %{{.*}}, %[[Z]], %[[XY]] : f32
// CHECK-NOT: tensor.extract
// CHECK: return
func.func private @concat(%x: tensor<3x5xf32>, %y: tensor<3x2xf32>, %none: tensor<3x0xf32>, %z: tensor<3x4xf32>) -> (tensor<3x11xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 3, 11>} {
  %c = tensor.concat dim(1) %x, %y, %none, %z : (tensor<3x5xf32>, tensor<3x2xf32>, tensor<3x0xf32>, tensor<3x4xf32>) -> tensor<3x11xf32>
  return %c : tensor<3x11xf32>
}

// -----

// A part that the kernel computes has no memory to select from.
// CHECK-LABEL: func.func private @computed
// CHECK: tensor.concat
func.func private @computed(%x: tensor<4xf32>) -> (tensor<8xf32> {nova.map = array<i64: -1>}) attributes {nova.kernel, nova.space = array<i64>} {
  %e = tensor.empty() : tensor<4xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.negf %v : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %c = tensor.concat dim(0) %x, %n : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----

// An embedding's gradient: a sum over positions, of the updates whose index names
// the row (counted from the end where it is negative). The rows of the table,
// which no dimension of the space was, become one.
// CHECK: #[[INDEX:.*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK: #[[UPDATE:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK: #[[RESULT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func private @embedding
// CHECK-SAME: -> (tensor<6x5xf32> {nova.map = array<i64: 0, 1>})
// CHECK-SAME: nova.space = array<i64: 6, 5>
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK-NOT: nova.index_put
// CHECK: linalg.generic {indexing_maps = [#[[INDEX]], #[[UPDATE]], #[[RESULT]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : {{.*}}) outs(%[[ZEROS]]
// CHECK: ^bb0(%[[I:.*]]: i64, %[[U:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: %[[NUMBER:.*]] = arith.index_cast %[[I]] : i64 to index
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[NUMBER]]
// CHECK: %[[WRAPPED:.*]] = arith.addi %[[NUMBER]]
// CHECK: %[[AT:.*]] = arith.select %[[BELOW]], %[[WRAPPED]], %[[NUMBER]]
// CHECK: %[[HERE:.*]] = arith.cmpi eq, %[[AT]], %{{.*}} : index
// CHECK: %[[ADDED:.*]] = arith.select %[[HERE]], %[[U]], %{{.*}} : f32
// CHECK: arith.addf %[[ACC]], %[[ADDED]]
func.func private @embedding(%i: tensor<9xi64>, %u: tensor<9x5xf32>) -> (tensor<6x5xf32> {nova.map = array<i64: -1, 0>}) attributes {nova.kernel, nova.space = array<i64: 5>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %y = nova.index_put %z, %i, %u {accumulate} : (tensor<6x5xf32>, tensor<9xi64>, tensor<9x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// -----

// Two index tensors of rank two name an element together; integers are added as
// such, to what was there.
// CHECK-LABEL: func.func private @two
// CHECK-SAME: nova.map = array<i64: 0, 1>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%arg1, %arg2, %arg3 : {{.*}}) outs(%arg0
// CHECK: %[[A:.*]] = arith.cmpi eq
// CHECK: %[[B:.*]] = arith.cmpi eq
// CHECK: arith.andi %[[A]], %[[B]] : i1
// CHECK: arith.addi %{{.*}} : i32
func.func private @two(%x: tensor<6x5xi32>, %i: tensor<2x3xi64>, %j: tensor<2x3xi64>, %u: tensor<2x3xi32>) -> (tensor<6x5xi32> {nova.map = array<i64: -1, -1>}) attributes {nova.kernel, nova.space = array<i64>} {
  %y = nova.index_put %x, %i, %j, %u {accumulate} : (tensor<6x5xi32>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi32>) -> tensor<6x5xi32>
  return %y : tensor<6x5xi32>
}

// -----

// The kernel has a second result, or goes on with the sum: the space stays.
// CHECK-LABEL: func.func private @goes_on
// CHECK-SAME: nova.space = array<i64: 5>
// CHECK-NOT: nova.index_put
func.func private @goes_on(%x: tensor<6x5xf32>, %i: tensor<9xi64>, %u: tensor<9x5xf32>) -> (tensor<6x5xf32> {nova.map = array<i64: -1, 0>}) attributes {nova.kernel, nova.space = array<i64: 5>} {
  %y = nova.index_put %x, %i, %u {accumulate} : (tensor<6x5xf32>, tensor<9xi64>, tensor<9x5xf32>) -> tensor<6x5xf32>
  %e = tensor.empty() : tensor<6x5xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<6x5xf32>) outs(%e : tensor<6x5xf32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.negf %v : f32
    linalg.yield %t : f32
  } -> tensor<6x5xf32>
  return %n : tensor<6x5xf32>
}

// -----

// The last write wins: no sum says that.
// CHECK-LABEL: func.func private @last
// CHECK-SAME: nova.map = array<i64: -1, 0>
// CHECK-SAME: nova.space = array<i64: 5>
// CHECK: nova.index_put
func.func private @last(%x: tensor<6x5xf32>, %i: tensor<9xi64>, %u: tensor<9x5xf32>) -> (tensor<6x5xf32> {nova.map = array<i64: -1, 0>}) attributes {nova.kernel, nova.space = array<i64: 5>} {
  %y = nova.index_put %x, %i, %u : (tensor<6x5xf32>, tensor<9xi64>, tensor<9x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// -----

// No kernel, no change.
// CHECK-LABEL: func.func @step
// CHECK: tensor.concat
func.func @step(%x: tensor<4xf32>) -> tensor<8xf32> {
  %c = tensor.concat dim(0) %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
