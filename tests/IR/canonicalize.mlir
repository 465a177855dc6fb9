// RUN: nova-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func @identities
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0
func.func @identities(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %one = nova.constant dense<1.0> : tensor<f32>
  %zero = nova.constant dense<0.0> : tensor<f32>
  %a = nova.mul %x, %one : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %b = nova.sub %x, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %c = nova.transpose %x {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %d = nova.cast %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %a, %b, %c, %d : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----
// x + 0.0 turns -0.0 into 0.0: it is not x. Nor is x - (-0.0). Integers are exact.
// CHECK-LABEL: func @not_identities
// CHECK: %[[A:.*]] = nova.add
// CHECK: %[[B:.*]] = nova.sub
// CHECK: return %[[A]], %[[B]], %arg1
func.func @not_identities(%x: tensor<2xf32>, %i: tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi64>) {
  %zero = nova.constant dense<0.0> : tensor<f32>
  %minus = nova.constant dense<-0.0> : tensor<f32>
  %none = nova.constant dense<0> : tensor<i64>
  %a = nova.add %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %b = nova.sub %x, %minus : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %c = nova.add %i, %none : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xi64>
}

// -----
// CHECK-LABEL: func @powers
// CHECK: %[[SQUARE:.*]] = nova.mul %arg0, %arg0
// CHECK: %[[CUBE:.*]] = nova.mul %[[SQUARE2:.*]], %arg0
// CHECK: nova.sqrt %arg0
// CHECK: nova.reciprocal %arg0
// CHECK: nova.pow %arg0
func.func @powers(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %e2 = nova.constant dense<2.0> : tensor<f32>
  %e3 = nova.constant dense<3.0> : tensor<f32>
  %eh = nova.constant dense<0.5> : tensor<f32>
  %em = nova.constant dense<-1.0> : tensor<f32>
  %e7 = nova.constant dense<0.7> : tensor<f32>
  %a = nova.pow %x, %e2 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %b = nova.pow %x, %e3 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %c = nova.pow %x, %eh : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %d = nova.pow %x, %em : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %e = nova.pow %x, %e7 : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %a, %b, %c, %d, %e : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----
// CHECK-LABEL: func @views_compose
// CHECK: %[[T:.*]] = nova.transpose %arg0 {permutation = array<i64: 1, 2, 0>}
// CHECK: %[[R:.*]] = nova.reshape %arg0 : (tensor<2x3x4xf32>) -> tensor<24xf32>
// CHECK: return %[[T]], %[[R]], %arg1
func.func @views_compose(%x: tensor<2x3x4xf32>, %y: tensor<5xf32>) -> (tensor<3x4x2xf32>, tensor<24xf32>, tensor<5xf32>) {
  %a = nova.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %b = nova.transpose %a {permutation = array<i64: 2, 0, 1>} : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  %c = nova.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %d = nova.reshape %c : (tensor<6x4xf32>) -> tensor<24xf32>
  %p = nova.pad %y {low = array<i64: 0>, high = array<i64: 3>, value = 0.0 : f32, undefined} : (tensor<5xf32>) -> tensor<8xf32>
  %q = nova.slice %p {offsets = array<i64: 0>, sizes = array<i64: 5>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<5xf32>
  return %b, %d, %q : tensor<3x4x2xf32>, tensor<24xf32>, tensor<5xf32>
}

// -----
// A transposed operand becomes how the operand is read; twice is not at all.
// CHECK-LABEL: func @products
// CHECK: nova.matmul %arg0, %arg1 {transpose_lhs, transpose_rhs}
// CHECK: nova.matmul %arg1, %arg0 :
// CHECK: nova.linear %arg2, %arg0, %arg3 {transpose_weight}
func.func @products(%a: tensor<4x6xf32>, %b: tensor<5x4xf32>, %x: tensor<2x6xf32>, %bias: tensor<4xf32>)
    -> (tensor<6x5xf32>, tensor<5x6xf32>, tensor<2x4xf32>) {
  %at = nova.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %bt = nova.transpose %b {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %p = nova.matmul %at, %bt : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %q = nova.matmul %b, %at {transpose_rhs} : (tensor<5x4xf32>, tensor<6x4xf32>) -> tensor<5x6xf32>
  %l = nova.linear %x, %at, %bias : (tensor<2x6xf32>, tensor<6x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %p, %q, %l : tensor<6x5xf32>, tensor<5x6xf32>, tensor<2x4xf32>
}
