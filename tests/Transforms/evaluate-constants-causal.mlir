// RUN: nova-opt %s --nova-evaluate-constants | FileCheck %s
// RUN: nova-opt %s --nova-evaluate-constants --remarks-filter=.* --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

!q = tensor<2x3x4x5xf32>
!lse = tensor<2x3x4xf32>

// Arithmetic on positions, one mask for all batches and heads.
// CHECK-LABEL: func @causal
// CHECK-NEXT: nova.attention %arg0, %arg1, %arg2 {causal, scale = 5.000000e-01 : f64} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>)
// CHECK-NEXT: nova.attention_backward %arg0, %arg0, %arg1, %arg2, %{{.*}}, %{{.*}} {causal, scale = 5.000000e-01 : f64}
// CHECK-NEXT: return
// REMARK: remark: [Passed] attention-bias | Category:nova-evaluate-constants {{.*}}bias proves the attention causal: dropped
// REMARK: remark: [Passed] attention-bias {{.*}}bias proves the attention causal: dropped
func.func @causal(%q: !q, %k: !q, %v: !q) -> (!q, !q) {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<4xi64>
  %column = nova.reshape %i : (tensor<4xi64>) -> tensor<4x1xi64>
  %seen = nova.compare %i, %column {predicate = #nova<predicate le>} : (tensor<4xi64>, tensor<4x1xi64>) -> tensor<4x4xi1>
  %zero = nova.constant dense<0.0> : tensor<f32>
  %inf = nova.constant dense<0xFF800000> : tensor<f32>
  %mask = nova.select %seen, %zero, %inf : (tensor<4x4xi1>, tensor<f32>, tensor<f32>) -> tensor<4x4xf32>
  %bias = nova.broadcast %mask : (tensor<4x4xf32>) -> tensor<2x3x4x4xf32>
  %o, %lse = nova.attention %q, %k, %v, %bias {scale = 0.5 : f64} : (!q, !q, !q, tensor<2x3x4x4xf32>) -> (!q, !lse)
  %dq, %dk, %dv = nova.attention_backward %q, %q, %k, %v, %bias, %o, %lse {scale = 0.5 : f64}
    : (!q, !q, !q, !q, tensor<2x3x4x4xf32>, !q, !lse) -> (!q, !q, !q)
  return %o, %dq : !q, !q
}

// The lowest finite value of f16 masks as well.
// CHECK-LABEL: func @causal_lowest
// CHECK-NEXT: nova.attention %arg0, %arg0, %arg0 {causal,
// REMARK: proves the attention causal
func.func @causal_lowest(%q: tensor<1x1x2x5xf16>) -> tensor<1x1x2x5xf16> {
  %bias = nova.constant dense<[[0.0, -65504.0], [0.0, 0.0]]> : tensor<2x2xf16>
  %o, %lse = nova.attention %q, %q, %q, %bias {scale = 0.5 : f64}
    : (tensor<1x1x2x5xf16>, tensor<1x1x2x5xf16>, tensor<1x1x2x5xf16>, tensor<2x2xf16>) -> (tensor<1x1x2x5xf16>, tensor<1x1x2xf32>)
  return %o : tensor<1x1x2x5xf16>
}

// CHECK-LABEL: func @zeros
// CHECK-NEXT: nova.attention %arg0, %arg1, %arg2 {scale
// REMARK: bias adds nothing: dropped
func.func @zeros(%q: !q, %k: !q, %v: !q) -> !q {
  %bias = nova.constant dense<0.0> : tensor<4x4xf32>
  %o, %lse = nova.attention %q, %k, %v, %bias {scale = 0.5 : f64} : (!q, !q, !q, tensor<4x4xf32>) -> (!q, !lse)
  return %o : !q
}

// Where the attention is causal by itself, above the diagonal anything goes.
// CHECK-LABEL: func @already_causal
// CHECK-NEXT: nova.attention %arg0, %arg0, %arg0 {causal,
// REMARK: bias adds nothing: dropped
func.func @already_causal(%q: tensor<1x1x2x5xf32>) -> tensor<1x1x2x5xf32> {
  %bias = nova.constant dense<[[0.0, 3.0], [0.0, 0.0]]> : tensor<2x2xf32>
  %o, %lse = nova.attention %q, %q, %q, %bias {scale = 0.5 : f64, causal}
    : (tensor<1x1x2x5xf32>, tensor<1x1x2x5xf32>, tensor<1x1x2x5xf32>, tensor<2x2xf32>) -> (tensor<1x1x2x5xf32>, tensor<1x1x2xf32>)
  return %o : tensor<1x1x2x5xf32>
}

// One head of one batch is not like the others.
// CHECK-LABEL: func @one_head_differs
// CHECK: %[[BIAS:.*]] = nova.constant
// CHECK: nova.attention %arg0, %arg0, %arg0, %[[BIAS]] {scale
// REMARK: [Missed] attention-bias {{.*}}bias is neither zero nor causal: bias[0, 1, 1, 0] is -1
func.func @one_head_differs(%q: tensor<1x2x2x5xf32>) -> tensor<1x2x2x5xf32> {
  %bias = nova.constant dense<[[[[0.0, 0xFF800000], [0.0, 0.0]], [[0.0, 0xFF800000], [-1.0, 0.0]]]]> : tensor<1x2x2x2xf32>
  %o, %lse = nova.attention %q, %q, %q, %bias {scale = 0.5 : f64}
    : (tensor<1x2x2x5xf32>, tensor<1x2x2x5xf32>, tensor<1x2x2x5xf32>, tensor<1x2x2x2xf32>) -> (tensor<1x2x2x5xf32>, tensor<1x2x2xf32>)
  return %o : tensor<1x2x2x5xf32>
}

// Some of the keys above the diagonal are seen: neither.
// CHECK-LABEL: func @window
// CHECK: nova.attention %arg0, %arg0, %arg0, %{{.*}} {scale
// REMARK: bias is neither zero nor causal: bias[0, 0, 0, 2] is -inf
func.func @window(%q: tensor<1x1x3x5xf32>) -> tensor<1x1x3x5xf32> {
  %bias = nova.constant dense<[[0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %o, %lse = nova.attention %q, %q, %q, %bias {scale = 0.5 : f64}
    : (tensor<1x1x3x5xf32>, tensor<1x1x3x5xf32>, tensor<1x1x3x5xf32>, tensor<3x3xf32>) -> (tensor<1x1x3x5xf32>, tensor<1x1x3xf32>)
  return %o : tensor<1x1x3x5xf32>
}

// A mask over keys alone (padding) is a row for every query.
// CHECK-LABEL: func @key_mask
// CHECK: nova.attention %arg0, %arg0, %arg0, %{{.*}} {scale
// REMARK: bias is neither zero nor causal: bias[0, 0, 1, 1] is -inf
func.func @key_mask(%q: tensor<1x1x2x5xf32>) -> tensor<1x1x2x5xf32> {
  %bias = nova.constant dense<[[0.0, 0xFF800000]]> : tensor<1x2xf32>
  %o, %lse = nova.attention %q, %q, %q, %bias {scale = 0.5 : f64}
    : (tensor<1x1x2x5xf32>, tensor<1x1x2x5xf32>, tensor<1x1x2x5xf32>, tensor<1x2xf32>) -> (tensor<1x1x2x5xf32>, tensor<1x1x2xf32>)
  return %o : tensor<1x1x2x5xf32>
}

// CHECK-LABEL: func @unknown
// CHECK: nova.attention %arg0, %arg0, %arg0, %arg1 {scale
// REMARK: [Missed] attention-bias {{.*}}bias is not known at compile time: it stays an operand
func.func @unknown(%q: tensor<1x1x2x5xf32>, %bias: tensor<2x2xf32>) -> tensor<1x1x2x5xf32> {
  %o, %lse = nova.attention %q, %q, %q, %bias {scale = 0.5 : f64}
    : (tensor<1x1x2x5xf32>, tensor<1x1x2x5xf32>, tensor<1x1x2x5xf32>, tensor<2x2xf32>) -> (tensor<1x1x2x5xf32>, tensor<1x1x2xf32>)
  return %o : tensor<1x1x2x5xf32>
}
