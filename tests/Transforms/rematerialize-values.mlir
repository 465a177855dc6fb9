// RUN: nova-opt %s --nova-rematerialize-values --split-input-file | FileCheck %s

// The product stores its result for the sum over rows anyway; the scaled value
// is made again by the kernel that reduces it.
// CHECK-LABEL: func @factor
// CHECK: %[[Y:.*]] = nova.matmul
// CHECK: nova.sum %[[Y]] {dims = array<i64: 0>}
// CHECK: %[[AGAIN:.*]] = nova.mul %[[Y]], %arg2 {nova.recompute}
// CHECK: nova.sum %[[AGAIN]] {dims = array<i64: 1>}
func.func @factor(%x: tensor<512x256xf32>, %w: tensor<256x512xf32>, %s: tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>)
    attributes {nova.graph = "g"} {
  %y = nova.matmul %x, %w : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32>
  %z = nova.mul %y, %s : (tensor<512x512xf32>, tensor<512xf32>) -> tensor<512x512xf32>
  %a = nova.sum %y {dims = array<i64: 0>} : (tensor<512x512xf32>) -> tensor<512xf32>
  %b = nova.sum %z {dims = array<i64: 1>} : (tensor<512x512xf32>) -> tensor<512xf32>
  return %a, %b : tensor<512xf32>, tensor<512xf32>
}

// -----

// What is stored is the smaller type, though a reshape that no kernel computes behind
// stands between the cast and its readers.
// CHECK-LABEL: func @widened
// CHECK: %[[Y:.*]] = nova.matmul {{.*}} -> tensor<4x128x512xbf16>
// CHECK-DAG: %[[ROWS:.*]] = nova.reshape %[[Y]] : (tensor<4x128x512xbf16>) -> tensor<512x512xbf16>
// CHECK-DAG: nova.cast %[[ROWS]] {nova.recompute}
// CHECK: return
func.func @widened(%x: tensor<4x128x256xbf16>, %w: tensor<256x512xbf16>) -> (tensor<512xf32>, tensor<512xf32>)
    attributes {nova.graph = "g"} {
  %y = nova.matmul %x, %w : (tensor<4x128x256xbf16>, tensor<256x512xbf16>) -> tensor<4x128x512xbf16>
  %c = nova.cast %y : (tensor<4x128x512xbf16>) -> tensor<4x128x512xf32>
  %r = nova.reshape %c : (tensor<4x128x512xf32>) -> tensor<512x512xf32>
  %a = nova.sum %r {dims = array<i64: 0>} : (tensor<512x512xf32>) -> tensor<512xf32>
  %b = nova.max %r {dims = array<i64: 1>} : (tensor<512x512xf32>) -> tensor<512xf32>
  return %a, %b : tensor<512xf32>, tensor<512xf32>
}

// -----
// Three values kept for a later kernel come from one that is not kept: keeping
// that one instead saves two.
// CHECK-LABEL: func @common_input
// CHECK: %[[Y:.*]] = nova.matmul %arg0, %arg1
// CHECK: nova.matmul
// CHECK-DAG: nova.mul %[[Y]], %[[Y]] {nova.recompute}
// CHECK-DAG: nova.neg %[[Y]] {nova.recompute}
// CHECK-DAG: nova.tanh %[[Y]] {nova.recompute}
func.func @common_input(%x: tensor<512x256xf32>, %w: tensor<256x512xf32>) -> tensor<512x512xf32> attributes {nova.graph = "g"} {
  %y = nova.matmul %x, %w : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32>
  %a = nova.mul %y, %y : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = nova.neg %y : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %t = nova.tanh %y : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %s = nova.add %t, %a : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %g = nova.matmul %s, %s : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %c = nova.mul %g, %a : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %d = nova.mul %c, %b : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %e = nova.mul %d, %t : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %e : tensor<512x512xf32>
}

// -----
// An operand of a contraction comes from memory: it stays.
// CHECK-LABEL: func @operand
// CHECK-NOT: nova.recompute
func.func @operand(%x: tensor<512x256xf32>, %w: tensor<256x512xf32>, %s: tensor<512xf32>) -> tensor<512x512xf32>
    attributes {nova.graph = "g"} {
  %y = nova.matmul %x, %w : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32>
  %z = nova.mul %y, %s : (tensor<512x512xf32>, tensor<512xf32>) -> tensor<512x512xf32>
  %g = nova.matmul %z, %z : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %g : tensor<512x512xf32>
}
