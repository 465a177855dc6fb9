// RUN: nova-opt %s --nova-assign-layouts --split-input-file | FileCheck %s

// A chain with a strided form stays a chain of views.
// CHECK-LABEL: func @strided
// CHECK-NOT: nova.copy
// CHECK: return
func.func @strided(%x: tensor<3x40x144xf32>) -> tensor<3x3x40xf32> {
  %s = nova.slice %x {offsets = array<i64: 0, 0, 48>, sizes = array<i64: 3, 40, 48>, strides = array<i64: 1, 1, 1>} : (tensor<3x40x144xf32>) -> tensor<3x40x48xf32>
  %r = nova.reshape %s : (tensor<3x40x48xf32>) -> tensor<3x40x3x16xf32>
  %t = nova.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : (tensor<3x40x3x16xf32>) -> tensor<3x3x40x16xf32>
  %y = nova.sum %t {dims = array<i64: 3>} : (tensor<3x3x40x16xf32>) -> tensor<3x3x40xf32>
  return %y : tensor<3x3x40xf32>
}

// -----
// A transpose whose dimensions a reshape merges: the transposed value is what
// is stored, and the other reader looks at it through the inverse.
// CHECK-LABEL: func @merged
// CHECK: %[[E:.*]] = nova.exp %arg0
// CHECK: %[[T:.*]] = nova.transpose %[[E]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK: %[[C:.*]] = nova.copy %[[T]]
// CHECK: %[[BACK:.*]] = nova.transpose %[[C]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK: %[[R:.*]] = nova.reshape %[[C]]
// CHECK: nova.neg %[[R]]
// CHECK: nova.sum %[[BACK]]
func.func @merged(%x: tensor<2x3x5x4xf32>) -> (tensor<2x5x12xf32>, tensor<2x3x5xf32>) {
  %e = nova.exp %x : (tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32>
  %t = nova.transpose %e {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x5x4xf32>) -> tensor<2x5x3x4xf32>
  %r = nova.reshape %t : (tensor<2x5x3x4xf32>) -> tensor<2x5x12xf32>
  %n = nova.neg %r : (tensor<2x5x12xf32>) -> tensor<2x5x12xf32>
  %s = nova.sum %e {dims = array<i64: 3>} : (tensor<2x3x5x4xf32>) -> tensor<2x3x5xf32>
  return %n, %s : tensor<2x5x12xf32>, tensor<2x3x5xf32>
}

// -----
// Two readers that want one value two ways: both copies, no chase.
// CHECK-LABEL: func @two_ways
// CHECK-COUNT-2: nova.copy
// CHECK-NOT: nova.copy
// CHECK: return
func.func @two_ways(%x: tensor<4x6xf32>) -> (tensor<24xf32>, tensor<24xf32>) {
  %e = nova.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %t = nova.transpose %e {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %r = nova.reshape %t : (tensor<6x4xf32>) -> tensor<24xf32>
  %f = nova.reshape %e : (tensor<4x6xf32>) -> tensor<24xf32>
  %a = nova.neg %r : (tensor<24xf32>) -> tensor<24xf32>
  %b = nova.neg %f : (tensor<24xf32>) -> tensor<24xf32>
  return %a, %b : tensor<24xf32>, tensor<24xf32>
}

// -----
// Results have memory of their own: an argument, a constant, a view that is not
// contiguous and a value returned twice are copied; a reshape is not.
// CHECK-LABEL: func @results
// CHECK: %[[E:.*]] = nova.exp %arg0
// CHECK: %[[R:.*]] = nova.reshape %[[E]]
// CHECK: %[[A:.*]] = nova.copy %{{.*}} : (tensor<2x3xf32>)
// CHECK: nova.copy
// CHECK: nova.copy
// CHECK: nova.copy
// CHECK-NOT: nova.copy
// CHECK: return %[[R]]
func.func @results(%x: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<6xf32>)
    attributes {nova.graph = "g"} {
  %c = nova.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = nova.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = nova.reshape %e : (tensor<2x3xf32>) -> tensor<6xf32>
  %n = nova.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %t = nova.transpose %n {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %r, %x, %c, %t, %r : tensor<6xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<6xf32>
}

// -----
// An update of an input that lies transposed is stored transposed.
// CHECK-LABEL: func @transposed_input
// CHECK: %[[N:.*]] = nova.neg %arg0
// CHECK: %[[T:.*]] = nova.transpose %[[N]] {permutation = array<i64: 1, 0>}
// CHECK: %[[C:.*]] = nova.copy %[[T]]
// CHECK: %[[BACK:.*]] = nova.transpose %[[C]] {permutation = array<i64: 1, 0>}
// CHECK: return %[[BACK]]
func.func @transposed_input(%x: tensor<3x4xf32> {nova.strides = array<i64: 1, 3>}) -> (tensor<3x4xf32> {nova.updates = 0 : i64})
    attributes {nova.graph = "g"} {
  %n = nova.neg %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %n : tensor<3x4xf32>
}

// -----
// Positions are computed by who reads them, unless a view reorders them.
// CHECK-LABEL: func @positions
// CHECK: %[[I:.*]] = nova.iota
// CHECK: %[[U:.*]] = nova.reshape %[[I]]
// CHECK: nova.neg %[[U]]
// CHECK: %[[C:.*]] = nova.copy %[[I]]
// CHECK: nova.slice %[[C]]
func.func @positions() -> (tensor<6x1xi64>, tensor<2xi64>) {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<6xi64>
  %u = nova.reshape %i : (tensor<6xi64>) -> tensor<6x1xi64>
  %a = nova.neg %u : (tensor<6x1xi64>) -> tensor<6x1xi64>
  %s = nova.slice %i {offsets = array<i64: 2>, sizes = array<i64: 2>, strides = array<i64: 1>} : (tensor<6xi64>) -> tensor<2xi64>
  %b = nova.neg %s : (tensor<2xi64>) -> tensor<2xi64>
  return %a, %b : tensor<6x1xi64>, tensor<2xi64>
}
