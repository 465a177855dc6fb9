// RUN: nova-opt %s --nova-decompose-composites | FileCheck %s

// CHECK-LABEL: func @softmax
// CHECK: %[[MAX:.*]] = nova.max %arg0 {dims = array<i64: 2>, keepdims}{{.*}} -> tensor<2x3x1xf32>
// CHECK: %[[SHIFTED:.*]] = nova.sub %arg0, %[[MAX]]
// CHECK: %[[E:.*]] = nova.exp %[[SHIFTED]]
// CHECK: %[[SUM:.*]] = nova.sum %[[E]] {dims = array<i64: 2>, keepdims}
// CHECK: %[[Y:.*]] = nova.div %[[E]], %[[SUM]]
// CHECK: return %[[Y]]
func.func @softmax(%x: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  %y = nova.softmax %x {dim = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// Narrow floats are widened once, and the result rounded once.
// CHECK-LABEL: func @log_softmax_bf16
// CHECK: %[[X:.*]] = nova.cast %arg0 : (tensor<3x5xbf16>) -> tensor<3x5xf32>
// CHECK: %[[MAX:.*]] = nova.max %[[X]]
// CHECK: %[[SHIFTED:.*]] = nova.sub %[[X]], %[[MAX]]
// CHECK: %[[E:.*]] = nova.exp %[[SHIFTED]]
// CHECK: %[[SUM:.*]] = nova.sum %[[E]]
// CHECK: %[[LOG:.*]] = nova.log %[[SUM]]
// CHECK: %[[Y:.*]] = nova.sub %[[SHIFTED]], %[[LOG]]
// CHECK: nova.cast %[[Y]] : (tensor<3x5xf32>) -> tensor<3x5xbf16>
func.func @log_softmax_bf16(%x: tensor<3x5xbf16>) -> tensor<3x5xbf16> {
  %y = nova.log_softmax %x {dim = 1 : i64} : (tensor<3x5xbf16>) -> tensor<3x5xbf16>
  return %y : tensor<3x5xbf16>
}

// CHECK-LABEL: func @softmax_backward
// CHECK: %[[P:.*]] = nova.mul %arg0, %arg1
// CHECK: %[[SUM:.*]] = nova.sum %[[P]] {dims = array<i64: 1>, keepdims}
// CHECK: %[[D:.*]] = nova.sub %arg0, %[[SUM]]
// CHECK: nova.mul %arg1, %[[D]]
func.func @softmax_backward(%g: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %d = nova.softmax_backward %g, %y {dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %d : tensor<3x5xf32>
}

// CHECK-LABEL: func @log_softmax_backward
// CHECK: %[[SUM:.*]] = nova.sum %arg0 {dims = array<i64: 1>, keepdims}
// CHECK: %[[P:.*]] = nova.exp %arg1
// CHECK: %[[D:.*]] = nova.mul %[[P]], %[[SUM]]
// CHECK: nova.sub %arg0, %[[D]]
func.func @log_softmax_backward(%g: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %d = nova.log_softmax_backward %g, %y {dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %d : tensor<3x5xf32>
}

// CHECK-LABEL: func @layer_norm
// CHECK-DAG: %[[D:.*]] = nova.constant dense<2.000000e+01> : tensor<f32>
// CHECK: %[[SUM:.*]] = nova.sum %arg0 {dims = array<i64: 1, 2>, keepdims}{{.*}} -> tensor<3x1x1xf32>
// CHECK: %[[MEAN:.*]] = nova.div %[[SUM]], %[[D]]
// CHECK: %[[DEV:.*]] = nova.sub %arg0, %[[MEAN]]
// CHECK: %[[SQ:.*]] = nova.mul %[[DEV]], %[[DEV]]
// CHECK: %[[SQS:.*]] = nova.sum %[[SQ]]
// CHECK: %[[VAR:.*]] = nova.div %[[SQS]], %[[D]]
// CHECK: %[[SHIFTED:.*]] = nova.add %[[VAR]]
// CHECK: %[[RSTD:.*]] = nova.rsqrt %[[SHIFTED]]
// CHECK: %[[H:.*]] = nova.mul %[[DEV]], %[[RSTD]]
// CHECK: %[[HW:.*]] = nova.mul %[[H]], %arg1
// CHECK: %[[Y:.*]] = nova.add %[[HW]], %arg2
// CHECK: return %[[Y]], %[[MEAN]], %[[RSTD]]
func.func @layer_norm(%x: tensor<3x4x5xf32>, %w: tensor<4x5xf32>, %b: tensor<4x5xf32>)
    -> (tensor<3x4x5xf32>, tensor<3x1x1xf32>, tensor<3x1x1xf32>) {
  %y, %m, %r = nova.layer_norm %x, %w, %b {axes = 2 : i64, eps = 1.0e-5 : f64, operandSegmentSizes = array<i32: 1, 1, 1>}
    : (tensor<3x4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<3x4x5xf32>, tensor<3x1x1xf32>, tensor<3x1x1xf32>)
  return %y, %m, %r : tensor<3x4x5xf32>, tensor<3x1x1xf32>, tensor<3x1x1xf32>
}

// Only the gradient of the bias is used: nothing else is computed.
// CHECK-LABEL: func @layer_norm_backward_bias
// CHECK-NEXT: %[[B:.*]] = nova.sum %arg0 {dims = array<i64: 0, 1>}{{.*}} -> tensor<5xf32>
// CHECK-NEXT: return %[[B]]
func.func @layer_norm_backward_bias(%g: tensor<2x3x5xf32>, %x: tensor<2x3x5xf32>, %m: tensor<2x3x1xf32>,
                                    %r: tensor<2x3x1xf32>) -> tensor<5xf32> {
  %dx, %dw, %db = nova.layer_norm_backward %g, %x, %m, %r {axes = 1 : i64}
    : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>)
      -> (tensor<2x3x5xf32>, tensor<5xf32>, tensor<5xf32>)
  return %db : tensor<5xf32>
}

// CHECK-LABEL: func @layer_norm_backward
// CHECK: %[[DEV:.*]] = nova.sub %arg1, %arg2
// CHECK: %[[H:.*]] = nova.mul %[[DEV]], %arg3
// CHECK: %[[G:.*]] = nova.mul %arg0, %arg4
// CHECK: nova.sum %[[G]] {dims = array<i64: 2>, keepdims}
// CHECK: %[[GH:.*]] = nova.mul %[[G]], %[[H]]
// CHECK: nova.sum %[[GH]] {dims = array<i64: 2>, keepdims}
// CHECK: %[[DX:.*]] = nova.mul %arg3,
// CHECK: %[[GRADH:.*]] = nova.mul %arg0, %[[H]]
// CHECK: %[[DW:.*]] = nova.sum %[[GRADH]] {dims = array<i64: 0, 1>}
// CHECK: return %[[DX]], %[[DW]]
func.func @layer_norm_backward(%g: tensor<2x3x5xf32>, %x: tensor<2x3x5xf32>, %m: tensor<2x3x1xf32>,
                               %r: tensor<2x3x1xf32>, %w: tensor<5xf32>) -> (tensor<2x3x5xf32>, tensor<5xf32>) {
  %dx, %dw, %db = nova.layer_norm_backward %g, %x, %m, %r, %w {axes = 1 : i64}
    : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<5xf32>)
      -> (tensor<2x3x5xf32>, tensor<5xf32>, tensor<5xf32>)
  return %dx, %dw : tensor<2x3x5xf32>, tensor<5xf32>
}

// CHECK-LABEL: func @nll_loss_weighted_mean
// CHECK: %[[L:.*]] = nova.reshape %arg1 : (tensor<4xi64>) -> tensor<4x1xi64>
// CHECK: %[[COUNTS:.*]] = nova.compare %[[L]], %{{.*}} {predicate = {{.*}}ne{{.*}}}
// CHECK: %[[SAFE:.*]] = nova.select %[[COUNTS]], %[[L]]
// CHECK: %[[W:.*]] = nova.index %arg2, %[[SAFE]] {dims = array<i64: 0>}
// CHECK: %[[WC:.*]] = nova.select %[[COUNTS]], %[[W]]
// CHECK: %[[TOTAL:.*]] = nova.sum %[[WC]] {dims = array<i64: 0, 1>}{{.*}} -> tensor<f32>
// CHECK: %[[P:.*]] = nova.gather %arg0, %[[SAFE]] {dim = 1 : i64}
// CHECK: %[[N:.*]] = nova.neg %[[P]]
// CHECK: %[[NW:.*]] = nova.mul %[[N]], %[[W]]
// CHECK: %[[ROW:.*]] = nova.select %[[COUNTS]], %[[NW]]
// CHECK: %[[SUM:.*]] = nova.sum %[[ROW]] {dims = array<i64: 0, 1>}
// CHECK: %[[LOSS:.*]] = nova.div %[[SUM]], %[[TOTAL]]
// CHECK: return %[[LOSS]], %[[TOTAL]]
func.func @nll_loss_weighted_mean(%x: tensor<4x7xf32>, %l: tensor<4xi64>, %w: tensor<7xf32>) -> (tensor<f32>, tensor<f32>) {
  %loss, %total = nova.nll_loss %x, %l, %w {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<4x7xf32>, tensor<4xi64>, tensor<7xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss, %total : tensor<f32>, tensor<f32>
}

// An ignored label that i32 cannot hold is compared in i64.
// CHECK-LABEL: func @nll_loss_none
// CHECK: %[[WIDE:.*]] = nova.cast %arg1 : (tensor<4xi32>) -> tensor<4xi64>
// CHECK: %[[L:.*]] = nova.reshape %[[WIDE]]
// CHECK: %[[R:.*]] = nova.reshape %{{.*}} : (tensor<4x1xf32>) -> tensor<4xf32>
// CHECK: return %[[R]]
func.func @nll_loss_none(%x: tensor<4x7xf32>, %l: tensor<4xi32>) -> tensor<4xf32> {
  %loss, %total = nova.nll_loss %x, %l {reduction = #nova<loss_reduction none>, ignore_index = 4294967295 : i64}
    : (tensor<4x7xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<f32>)
  return %loss : tensor<4xf32>
}

// CHECK-LABEL: func @nll_loss_backward
// CHECK: %[[SCALE:.*]] = nova.div %arg0, %arg3
// CHECK: %[[NEG:.*]] = nova.neg %[[SCALE]]
// CHECK: %[[ROW:.*]] = nova.select %{{.*}}, %[[NEG]], {{.*}} -> tensor<4x1xf32>
// CHECK: %[[COLUMNS:.*]] = nova.reshape %{{.*}} : (tensor<7xi64>) -> tensor<1x7xi64>
// CHECK: %[[HOT:.*]] = nova.compare %[[COLUMNS]], %{{.*}} {predicate = {{.*}}eq{{.*}}}{{.*}} -> tensor<4x7xi1>
// CHECK: nova.select %[[HOT]], %[[ROW]]
func.func @nll_loss_backward(%g: tensor<f32>, %x: tensor<4x7xf32>, %l: tensor<4xi64>, %t: tensor<f32>) -> tensor<4x7xf32> {
  %d = nova.nll_loss_backward %g, %x, %l, %t {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<f32>, tensor<4x7xf32>, tensor<4xi64>, tensor<f32>) -> tensor<4x7xf32>
  return %d : tensor<4x7xf32>
}

// CHECK-LABEL: func @sce
// CHECK: %[[COUNTS:.*]] = nova.compare
// CHECK: %[[MAX:.*]] = nova.max %arg0 {dims = array<i64: 1>, keepdims}
// CHECK: %[[LOG:.*]] = nova.log
// CHECK: %[[LSE:.*]] = nova.add %[[MAX]], %[[LOG]]
// CHECK: %[[COUNT:.*]] = nova.sum
// CHECK: %[[P:.*]] = nova.gather %arg0
// CHECK: %[[D:.*]] = nova.sub %[[LSE]], %[[P]]
// CHECK: %[[ROW:.*]] = nova.select %[[COUNTS]], %[[D]]
// CHECK: %[[SUM:.*]] = nova.sum %[[ROW]]
// CHECK: %[[LOSS:.*]] = nova.div %[[SUM]], %[[COUNT]]
// CHECK: %[[LSE1:.*]] = nova.reshape %[[LSE]] : (tensor<4x1xf32>) -> tensor<4xf32>
// CHECK: return %[[LOSS]], %[[LSE1]], %[[COUNT]]
func.func @sce(%x: tensor<4x7xf32>, %l: tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>) {
  %loss, %lse, %count = nova.sce %x, %l {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  return %loss, %lse, %count : tensor<f32>, tensor<4xf32>, tensor<f32>
}

// CHECK-LABEL: func @sce_backward
// CHECK: %[[S:.*]] = nova.div %arg0, %arg4
// CHECK: %[[SCALE:.*]] = nova.select %{{.*}}, %[[S]], {{.*}} -> tensor<4x1xf32>
// CHECK: %[[LSE:.*]] = nova.reshape %arg3 : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK: %[[D:.*]] = nova.sub %arg1, %[[LSE]]
// CHECK: %[[P:.*]] = nova.exp %[[D]]
// CHECK: %[[HOT:.*]] = nova.cast %{{.*}} : (tensor<4x7xi1>) -> tensor<4x7xf32>
// CHECK: %[[DIFF:.*]] = nova.sub %[[P]], %[[HOT]]
// CHECK: nova.mul %[[SCALE]], %[[DIFF]]
func.func @sce_backward(%g: tensor<f32>, %x: tensor<4x7xf32>, %l: tensor<4xi64>, %lse: tensor<4xf32>, %c: tensor<f32>) -> tensor<4x7xf32> {
  %d = nova.sce_backward %g, %x, %l, %lse, %c {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<f32>, tensor<4x7xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>) -> tensor<4x7xf32>
  return %d : tensor<4x7xf32>
}

// CHECK-LABEL: func @attention_backward
// CHECK: %[[DQ:.*]], %[[DELTA:.*]] = nova.attention_backward_query %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 {causal, scale = 2.500000e-01 : f64}
// CHECK: %[[DK:.*]], %[[DV:.*]] = nova.attention_backward_key_value %arg0, %arg1, %arg2, %arg3, %arg5, %[[DELTA]] {causal, scale = 2.500000e-01 : f64}
// CHECK: return %[[DQ]], %[[DK]], %[[DV]]
!t = tensor<2x3x5x4xf32>
func.func @attention_backward(%g: !t, %q: !t, %k: !t, %v: !t, %o: !t, %lse: tensor<2x3x5xf32>) -> (!t, !t, !t) {
  %dq, %dk, %dv = nova.attention_backward %g, %q, %k, %v, %o, %lse {scale = 0.25 : f64, causal}
    : (!t, !t, !t, !t, !t, tensor<2x3x5xf32>) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

// Without a gradient of the query, delta is summed here.
// CHECK-LABEL: func @attention_backward_value
// CHECK-NOT: attention_backward_query
// CHECK: %[[P:.*]] = nova.mul %arg0, %arg4
// CHECK: %[[DELTA:.*]] = nova.sum %[[P]] {dims = array<i64: 3>}
// CHECK: nova.attention_backward_key_value %arg0, %arg1, %arg2, %arg3, %arg5, %[[DELTA]]
func.func @attention_backward_value(%g: !t, %q: !t, %k: !t, %v: !t, %o: !t, %lse: tensor<2x3x5xf32>) -> !t {
  %dq, %dk, %dv = nova.attention_backward %g, %q, %k, %v, %o, %lse {scale = 0.25 : f64}
    : (!t, !t, !t, !t, !t, tensor<2x3x5xf32>) -> (!t, !t, !t)
  return %dv : !t
}

// Elementwise composites are fusion's own vocabulary.
// CHECK-LABEL: func @pointwise_stays
// CHECK: nova.gelu
func.func @pointwise_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nova.gelu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @narrow_scatter
// CHECK: %[[PART:.*]] = nova.slice %arg0 {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 2, 10, 3>, strides = array<i64: 1, 1, 1>}
// CHECK: %[[S:.*]] = nova.scatter %[[PART]], %arg1, %arg2 {accumulate, dim = 1 : i64}
// CHECK: %[[BELOW:.*]] = nova.slice %arg0 {offsets = array<i64: 2, 0, 0>, sizes = array<i64: 2, 10, 3>, strides = array<i64: 1, 1, 1>}
// CHECK: %[[ROWS:.*]] = nova.concat %[[S]], %[[BELOW]] {dim = 0 : i64}
// CHECK: %[[RIGHT:.*]] = nova.slice %arg0 {offsets = array<i64: 0, 0, 3>, sizes = array<i64: 4, 10, 4>, strides = array<i64: 1, 1, 1>}
// CHECK: %[[ALL:.*]] = nova.concat %[[ROWS]], %[[RIGHT]] {dim = 2 : i64}
// CHECK: return %[[ALL]]
func.func @narrow_scatter(%x: tensor<4x10x7xf32>, %i: tensor<2x5x3xi64>, %u: tensor<2x5x3xf32>) -> tensor<4x10x7xf32> {
  %y = nova.scatter %x, %i, %u {dim = 1 : i64, accumulate}
    : (tensor<4x10x7xf32>, tensor<2x5x3xi64>, tensor<2x5x3xf32>) -> tensor<4x10x7xf32>
  return %y : tensor<4x10x7xf32>
}

// CHECK-LABEL: func @scatter_of_nothing
// CHECK-NEXT: return %arg0
func.func @scatter_of_nothing(%x: tensor<10x7xf32>, %i: tensor<5x0xi64>, %u: tensor<5x0xf32>) -> tensor<10x7xf32> {
  %y = nova.scatter %x, %i, %u {dim = 0 : i64} : (tensor<10x7xf32>, tensor<5x0xi64>, tensor<5x0xf32>) -> tensor<10x7xf32>
  return %y : tensor<10x7xf32>
}
