// RUN: nova-opt %s --pass-pipeline='builtin.module(func.func(nova-bind-results))' --split-input-file | FileCheck %s

// The dimension that is concatenated along, and the rows of a table that updates
// are added to, are as parallel as any other: they become the space's.
// CHECK-LABEL: func.func private @concat
// CHECK-SAME: nova.map = array<i64: 0, 1>
// CHECK-SAME: nova.space = array<i64: 3, 11>
func.func private @concat(%x: tensor<3x5xf32>, %y: tensor<3x2xf32>, %z: tensor<3x4xf32>) -> (tensor<3x11xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 3>} {
  %c = tensor.concat dim(1) %x, %y, %z : (tensor<3x5xf32>, tensor<3x2xf32>, tensor<3x4xf32>) -> tensor<3x11xf32>
  return %c : tensor<3x11xf32>
}

// CHECK-LABEL: func.func private @embedding
// CHECK-SAME: nova.map = array<i64: 0, 1>
// CHECK-SAME: nova.space = array<i64: 6, 5>
// CHECK: nova.index_put
func.func private @embedding(%i: tensor<9xi64>, %u: tensor<9x5xf32>) -> (tensor<6x5xf32> {nova.map = array<i64: -1, 0>})
    attributes {nova.kernel, nova.space = array<i64: 5>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x5xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5xf32>) -> tensor<6x5xf32>
  %y = nova.index_put %z, %i, %u {accumulate} : (tensor<6x5xf32>, tensor<9xi64>, tensor<9x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// A running sum needs what came before it: its dimension stays local, the other
// becomes the space's.
// CHECK-LABEL: func.func private @scan
// CHECK-SAME: nova.map = array<i64: 0, -1>
// CHECK-SAME: nova.space = array<i64: 4>
func.func private @scan(%x: tensor<4x7xf32>) -> (tensor<4x7xf32> {nova.map = array<i64: -1, -1>}) attributes {nova.kernel, nova.space = array<i64>} {
  %y = nova.cumsum %x {dim = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  return %y : tensor<4x7xf32>
}

// -----

// Points of the grid along the row would each sum the row.
// CHECK-LABEL: func.func private @reduces
// CHECK-SAME: nova.map = array<i64: 0, -1>
// CHECK-SAME: nova.space = array<i64: 4>
func.func private @reduces(%x: tensor<4x7xf32>) -> (tensor<4x7xf32> {nova.map = array<i64: 0, -1>}) attributes {nova.kernel, nova.space = array<i64: 4>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x7xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %g = tensor.empty() : tensor<4x7xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<4x7xf32>, tensor<4xf32>) outs(%g : tensor<4x7xf32>) {
  ^bb0(%v: f32, %m: f32, %s: f32):
    %t = arith.divf %v, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x7xf32>
  return %n : tensor<4x7xf32>
}

// -----

// With two results, or a dimension of the space that the result lacks, nothing
// moves.
// CHECK-LABEL: func.func private @two
// CHECK-SAME: nova.map = array<i64: -1>
// CHECK-SAME: nova.map = array<i64: -1>
// CHECK-SAME: nova.space = array<i64>
func.func private @two(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<8xf32> {nova.map = array<i64: -1>}, tensor<8xf32> {nova.map = array<i64: -1>})
    attributes {nova.kernel, nova.space = array<i64>} {
  %c = tensor.concat dim(0) %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = tensor.concat dim(0) %y, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %c, %d : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func private @lacks
// CHECK-SAME: nova.map = array<i64: -1>
// CHECK-SAME: nova.space = array<i64: 3>
func.func private @lacks(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<8xf32> {nova.map = array<i64: -1>}) attributes {nova.kernel, nova.space = array<i64: 3>} {
  %c = tensor.concat dim(0) %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----

// No kernel, no change.
// CHECK-LABEL: func.func @step
// CHECK: tensor.concat
func.func @step(%x: tensor<4xf32>) -> tensor<8xf32> {
  %c = tensor.concat dim(0) %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
