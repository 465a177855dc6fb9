// RUN: nova-opt %s --nova-raise-composites | FileCheck %s

//===----------------------------------------------------------------------===//
// Cross entropy
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @cross_entropy
// CHECK-NEXT: %[[LOSS:.*]], %[[LSE:.*]], %[[COUNT:.*]] = nova.sce %arg0, %arg1 {ignore_index = -100 : i64, reduction = #nova<loss_reduction mean>}
// CHECK-NEXT: %[[DX:.*]] = nova.sce_backward %arg2, %arg0, %arg1, %[[LSE]], %[[COUNT]] {ignore_index = -100 : i64, reduction = #nova<loss_reduction mean>}
// CHECK-NEXT: return %[[LOSS]], %[[DX]]
func.func @cross_entropy(%x: tensor<4x7xf32>, %l: tensor<4xi64>, %g: tensor<f32>) -> (tensor<f32>, tensor<4x7xf32>) {
  %lp = nova.log_softmax %x {dim = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %loss, %total = nova.nll_loss %lp, %l {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  %d = nova.nll_loss_backward %g, %lp, %l, %total {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<f32>, tensor<4x7xf32>, tensor<4xi64>, tensor<f32>) -> tensor<4x7xf32>
  %dx = nova.log_softmax_backward %d, %lp {dim = 1 : i64} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  return %loss, %dx : tensor<f32>, tensor<4x7xf32>
}

// Without a reduction nll_loss calls its total 0.
// CHECK-LABEL: func @cross_entropy_none
// CHECK-DAG: %[[ZERO:.*]] = nova.constant dense<0.000000e+00> : tensor<f32>
// CHECK-DAG: %[[LOSS:.*]], %{{.*}}, %{{.*}} = nova.sce %arg0, %arg1 {{.*}}loss_reduction none
// CHECK: return %[[LOSS]], %[[ZERO]]
func.func @cross_entropy_none(%x: tensor<4x7xf32>, %l: tensor<4xi64>) -> (tensor<4xf32>, tensor<f32>) {
  %lp = nova.log_softmax %x {dim = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %loss, %total = nova.nll_loss %lp, %l {reduction = #nova<loss_reduction none>, ignore_index = -100 : i64}
    : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<4xf32>, tensor<f32>)
  return %loss, %total : tensor<4xf32>, tensor<f32>
}

// The log-probabilities are an output: raising would compute them twice.
// CHECK-LABEL: func @log_probs_used
// CHECK-NOT: nova.sce
// CHECK: nova.nll_loss
func.func @log_probs_used(%x: tensor<4x7xf32>, %l: tensor<4xi64>) -> (tensor<f32>, tensor<4x7xf32>) {
  %lp = nova.log_softmax %x {dim = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %loss, %total = nova.nll_loss %lp, %l {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %loss, %lp : tensor<f32>, tensor<4x7xf32>
}

// CHECK-LABEL: func @class_weights
// CHECK-NOT: nova.sce
// CHECK: nova.nll_loss
func.func @class_weights(%x: tensor<4x7xf32>, %l: tensor<4xi64>, %w: tensor<7xf32>) -> tensor<f32> {
  %lp = nova.log_softmax %x {dim = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %loss, %total = nova.nll_loss %lp, %l, %w {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<4x7xf32>, tensor<4xi64>, tensor<7xf32>) -> (tensor<f32>, tensor<f32>)
  return %loss : tensor<f32>
}

// CHECK-LABEL: func @other_dim
// CHECK-NOT: nova.sce
// CHECK: nova.nll_loss
func.func @other_dim(%x: tensor<4x7xf32>, %l: tensor<4xi64>) -> tensor<f32> {
  %lp = nova.log_softmax %x {dim = 0 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %loss, %total = nova.nll_loss %lp, %l {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
    : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %loss : tensor<f32>
}

// The decomposed spelling: what is gathered, and the exponential of it.
// CHECK-LABEL: func @gathered_log_softmax
// CHECK: %[[L:.*]] = nova.reshape %arg1 : (tensor<4x1xi64>) -> tensor<4xi64>
// CHECK: %[[LOSS:.*]], %[[LSE:.*]], %{{.*}} = nova.sce %arg0, %[[L]] {{.*}}loss_reduction none
// CHECK: %[[NEG:.*]] = nova.neg %[[LOSS]]
// CHECK: %[[P:.*]] = nova.reshape %[[NEG]] : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK: %[[LSE1:.*]] = nova.reshape %[[LSE]] : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK: %[[D:.*]] = nova.sub %arg0, %[[LSE1]]
// CHECK: %[[E:.*]] = nova.exp %[[D]]
// CHECK: return %[[P]], %[[E]]
func.func @gathered_log_softmax(%x: tensor<4x7xf32>, %i: tensor<4x1xi64>) -> (tensor<4x1xf32>, tensor<4x7xf32>) {
  %lp = nova.log_softmax %x {dim = 1 : i64} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %p = nova.gather %lp, %i {dim = 1 : i64} : (tensor<4x7xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %e = nova.exp %lp : (tensor<4x7xf32>) -> tensor<4x7xf32>
  return %p, %e : tensor<4x1xf32>, tensor<4x7xf32>
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @scatter_one_per_row
// CHECK: %[[IOTA:.*]] = nova.iota 0 : i64, 1 : i64 : tensor<7xi64>
// CHECK: %[[HERE:.*]] = nova.compare %[[IOTA]], %arg1 {predicate = #nova<predicate eq>} : (tensor<7xi64>, tensor<4x1xi64>) -> tensor<4x7xi1>
// CHECK: %[[R:.*]] = nova.select %[[HERE]], %arg2, %arg0
// CHECK: return %[[R]]
func.func @scatter_one_per_row(%init: tensor<4x7xf32>, %i: tensor<4x1xi64>, %u: tensor<4x1xf32>) -> tensor<4x7xf32> {
  %r = nova.scatter %init, %i, %u {dim = 1 : i64} : (tensor<4x7xf32>, tensor<4x1xi64>, tensor<4x1xf32>) -> tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}

// CHECK-LABEL: func @scatter_stays
// CHECK: nova.scatter %arg0, %arg1, %arg2 {accumulate
// CHECK: nova.scatter %arg0, %arg3
// CHECK: nova.scatter %arg0, %arg5
func.func @scatter_stays(%init: tensor<4x7xf32>, %i: tensor<4x1xi64>, %u: tensor<4x1xf32>,
                         %i2: tensor<4x2xi64>, %u2: tensor<4x2xf32>, %i3: tensor<3x1xi64>, %u3: tensor<3x1xf32>)
    -> (tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>) {
  %0 = nova.scatter %init, %i, %u {dim = 1 : i64, accumulate} : (tensor<4x7xf32>, tensor<4x1xi64>, tensor<4x1xf32>) -> tensor<4x7xf32>
  %1 = nova.scatter %init, %i2, %u2 {dim = 1 : i64} : (tensor<4x7xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x7xf32>
  %2 = nova.scatter %init, %i3, %u3 {dim = 1 : i64} : (tensor<4x7xf32>, tensor<3x1xi64>, tensor<3x1xf32>) -> tensor<4x7xf32>
  return %0, %1, %2 : tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @linear_keeps_shape
// CHECK-NEXT: %[[Y:.*]] = nova.linear %arg0, %arg1, %arg2 : (tensor<2x3x5xf32>, tensor<5x7xf32>, tensor<7xf32>) -> tensor<2x3x7xf32>
// CHECK-NEXT: return %[[Y]]
func.func @linear_keeps_shape(%x: tensor<2x3x5xf32>, %w: tensor<5x7xf32>, %b: tensor<7xf32>) -> tensor<2x3x7xf32> {
  %0 = nova.reshape %x : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %1 = nova.linear %0, %w, %b : (tensor<6x5xf32>, tensor<5x7xf32>, tensor<7xf32>) -> tensor<6x7xf32>
  %2 = nova.reshape %1 : (tensor<6x7xf32>) -> tensor<2x3x7xf32>
  return %2 : tensor<2x3x7xf32>
}

// CHECK-LABEL: func @matmul_keeps_shape
// CHECK-NEXT: %[[Y:.*]] = nova.matmul %arg0, %arg1 {transpose_rhs} : (tensor<2x3x5xf32>, tensor<7x5xf32>) -> tensor<2x3x7xf32>
// CHECK-NEXT: %[[R:.*]] = nova.reshape %[[Y]]
// CHECK-NEXT: return %[[R]]
func.func @matmul_keeps_shape(%x: tensor<2x3x5xf32>, %w: tensor<7x5xf32>) -> tensor<6x7xf32> {
  %0 = nova.reshape %x : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %1 = nova.matmul %0, %w {transpose_rhs} : (tensor<6x5xf32>, tensor<7x5xf32>) -> tensor<6x7xf32>
  return %1 : tensor<6x7xf32>
}

// A weight gradient contracts over the rows: there is nothing to keep.
// CHECK-LABEL: func @weight_gradient
// CHECK: nova.matmul %{{.*}}, %arg1 {transpose_lhs} : (tensor<6x5xf32>, tensor<6x7xf32>)
func.func @weight_gradient(%x: tensor<2x3x5xf32>, %g: tensor<6x7xf32>) -> tensor<5x7xf32> {
  %0 = nova.reshape %x : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %1 = nova.matmul %0, %g {transpose_lhs} : (tensor<6x5xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  return %1 : tensor<5x7xf32>
}

// Heads merged on the way in: the shape is that of the readers.
// CHECK-LABEL: func @merged_heads
// CHECK: %[[X:.*]] = nova.reshape %{{.*}} : (tensor<2x3x4x5xf32>) -> tensor<2x3x20xf32>
// CHECK: %[[Y:.*]] = nova.linear %[[X]], {{.*}} -> tensor<2x3x7xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_heads(%x: tensor<2x4x3x5xf32>, %w: tensor<20x7xf32>, %b: tensor<7xf32>) -> tensor<2x3x7xf32> {
  %0 = nova.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x5xf32>) -> tensor<2x3x4x5xf32>
  %1 = nova.reshape %0 : (tensor<2x3x4x5xf32>) -> tensor<6x20xf32>
  %2 = nova.linear %1, %w, %b : (tensor<6x20xf32>, tensor<20x7xf32>, tensor<7xf32>) -> tensor<6x7xf32>
  %3 = nova.reshape %2 : (tensor<6x7xf32>) -> tensor<2x3x7xf32>
  return %3 : tensor<2x3x7xf32>
}

// CHECK-LABEL: func @result_shape
// CHECK: %[[X:.*]] = nova.reshape %{{.*}} : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
// CHECK: %[[Y:.*]] = nova.matmul %[[X]], {{.*}} -> tensor<2x3x7xf32>
// CHECK-NEXT: return %[[Y]]
func.func @result_shape(%x: tensor<6x5xf32>, %w: tensor<5x7xf32>) -> tensor<2x3x7xf32> {
  %0 = nova.matmul %x, %w : (tensor<6x5xf32>, tensor<5x7xf32>) -> tensor<6x7xf32>
  %1 = nova.reshape %0 : (tensor<6x7xf32>) -> tensor<2x3x7xf32>
  return %1 : tensor<2x3x7xf32>
}

// Transposed heads, flattened for a batched product: both stay as they are.
// CHECK-LABEL: func @batches
// CHECK-NEXT: %[[Q:.*]] = nova.transpose %arg0
// CHECK-NEXT: %[[S:.*]] = nova.matmul %[[Q]], %arg1 {transpose_rhs} : (tensor<2x4x3x5xf32>, tensor<2x4x3x5xf32>) -> tensor<2x4x3x3xf32>
// CHECK-NEXT: %[[E:.*]] = nova.exp %[[S]] : (tensor<2x4x3x3xf32>)
// CHECK-NEXT: %[[V:.*]] = nova.reshape %arg2 : (tensor<8x3x5xf32>) -> tensor<2x4x3x5xf32>
// CHECK-NEXT: %[[O:.*]] = nova.matmul %[[E]], %[[V]] : (tensor<2x4x3x3xf32>, tensor<2x4x3x5xf32>)
// CHECK-NEXT: return %[[O]]
func.func @batches(%x: tensor<2x3x4x5xf32>, %y: tensor<2x4x3x5xf32>, %v: tensor<8x3x5xf32>) -> tensor<2x4x3x5xf32> {
  %0 = nova.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
  %1 = nova.reshape %0 : (tensor<2x4x3x5xf32>) -> tensor<8x3x5xf32>
  %2 = nova.reshape %y : (tensor<2x4x3x5xf32>) -> tensor<8x3x5xf32>
  %3 = nova.matmul %1, %2 {transpose_rhs} : (tensor<8x3x5xf32>, tensor<8x3x5xf32>) -> tensor<8x3x3xf32>
  %4 = nova.exp %3 : (tensor<8x3x3xf32>) -> tensor<8x3x3xf32>
  %5 = nova.matmul %4, %v : (tensor<8x3x3xf32>, tensor<8x3x5xf32>) -> tensor<8x3x5xf32>
  %6 = nova.reshape %5 : (tensor<8x3x5xf32>) -> tensor<2x4x3x5xf32>
  return %6 : tensor<2x4x3x5xf32>
}

// CHECK-LABEL: func @unit_dims
// CHECK: nova.sum %arg0 {dims = array<i64: 1>, keepdims} : (tensor<4x7xf32>) -> tensor<4x1xf32>
// CHECK: nova.max %arg0 {dims = array<i64: 0>} : (tensor<4x7xf32>) -> tensor<7xf32>
// CHECK: nova.sum %arg0 {dims = array<i64: 0>} : (tensor<4x7xf32>) -> tensor<7xf32>
// CHECK: nova.reshape %{{.*}} -> tensor<7x1xf32>
func.func @unit_dims(%x: tensor<4x7xf32>) -> (tensor<4x1xf32>, tensor<7xf32>, tensor<7x1xf32>) {
  %0 = nova.sum %x {dims = array<i64: 1>} : (tensor<4x7xf32>) -> tensor<4xf32>
  %1 = nova.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = nova.max %x {dims = array<i64: 0>, keepdims} : (tensor<4x7xf32>) -> tensor<1x7xf32>
  %3 = nova.reshape %2 : (tensor<1x7xf32>) -> tensor<7xf32>
  %4 = nova.sum %x {dims = array<i64: 0>} : (tensor<4x7xf32>) -> tensor<7xf32>
  %5 = nova.reshape %4 : (tensor<7xf32>) -> tensor<7x1xf32>
  return %1, %3, %5 : tensor<4x1xf32>, tensor<7xf32>, tensor<7x1xf32>
}

// The bias's gradient: over the rows as they were before they were flattened.
// CHECK-LABEL: func @flattened_rows
// CHECK-NEXT: %[[S:.*]] = nova.sum %arg0 {dims = array<i64: 0, 1>} : (tensor<2x3x7xf32>) -> tensor<7xf32>
// CHECK-NEXT: %[[T:.*]] = nova.max %arg0 {dims = array<i64: 0, 1, 2>} : (tensor<2x3x7xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[S]], %[[T]]
func.func @flattened_rows(%x: tensor<2x3x7xf32>) -> (tensor<7xf32>, tensor<f32>) {
  %0 = nova.reshape %x : (tensor<2x3x7xf32>) -> tensor<6x7xf32>
  %1 = nova.sum %0 {dims = array<i64: 0>} : (tensor<6x7xf32>) -> tensor<7xf32>
  %2 = nova.max %0 {dims = array<i64: 0, 1>} : (tensor<6x7xf32>) -> tensor<f32>
  return %1, %2 : tensor<7xf32>, tensor<f32>
}

// CHECK-LABEL: func @implicit_broadcast
// CHECK-NEXT: nova.mul %arg0, %arg1 : (tensor<4x7xf32>, tensor<4x1xf32>)
// CHECK-NEXT: nova.add %arg0, %arg2 : (tensor<4x7xf32>, tensor<7xf32>)
// CHECK-NEXT: %[[WIDE:.*]] = nova.broadcast
// CHECK-NEXT: nova.add %[[WIDE]], %arg2
func.func @implicit_broadcast(%x: tensor<4x7xf32>, %c: tensor<4x1xf32>, %r: tensor<7xf32>)
    -> (tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>) {
  %0 = nova.broadcast %c : (tensor<4x1xf32>) -> tensor<4x7xf32>
  %1 = nova.mul %x, %0 : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %2 = nova.reshape %r : (tensor<7xf32>) -> tensor<1x7xf32>
  %3 = nova.add %x, %2 : (tensor<4x7xf32>, tensor<1x7xf32>) -> tensor<4x7xf32>
  // Nothing else has the four rows: the broadcast stays.
  %4 = nova.broadcast %r : (tensor<7xf32>) -> tensor<4x7xf32>
  %5 = nova.add %4, %2 : (tensor<4x7xf32>, tensor<1x7xf32>) -> tensor<4x7xf32>
  return %1, %3, %5 : tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>
}

// The flattened stretch between two products takes their shape.
// CHECK-LABEL: func @sink_reshape
// CHECK-NEXT: %[[HALF:.*]] = nova.constant dense<5.000000e-01> : tensor<2x3x7xf32>
// CHECK-NEXT: %[[Y:.*]] = nova.linear
// CHECK-NEXT: %[[G:.*]] = nova.gelu %[[Y]] {{.*}}tensor<2x3x7xf32>
// CHECK-NEXT: %[[S:.*]] = nova.mul %[[G]], %[[HALF]]
// CHECK-NEXT: %[[A:.*]] = nova.add %[[S]], %arg3 : (tensor<2x3x7xf32>, tensor<7xf32>)
// CHECK-NEXT: %[[M:.*]] = nova.matmul %[[A]], %arg4 : (tensor<2x3x7xf32>, tensor<7x5xf32>)
// CHECK-NEXT: return %[[M]]
func.func @sink_reshape(%x: tensor<2x3x5xf32>, %w: tensor<5x7xf32>, %b: tensor<7xf32>, %v: tensor<7xf32>,
                        %w2: tensor<7x5xf32>) -> tensor<2x3x5xf32> {
  %half = nova.constant dense<0.5> : tensor<6x7xf32>
  %0 = nova.reshape %x : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %1 = nova.linear %0, %w, %b : (tensor<6x5xf32>, tensor<5x7xf32>, tensor<7xf32>) -> tensor<6x7xf32>
  %2 = nova.gelu %1 : (tensor<6x7xf32>) -> tensor<6x7xf32>
  %3 = nova.mul %2, %half : (tensor<6x7xf32>, tensor<6x7xf32>) -> tensor<6x7xf32>
  %4 = nova.add %3, %v : (tensor<6x7xf32>, tensor<7xf32>) -> tensor<6x7xf32>
  %5 = nova.matmul %4, %w2 : (tensor<6x7xf32>, tensor<7x5xf32>) -> tensor<6x5xf32>
  %6 = nova.reshape %5 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
  return %6 : tensor<2x3x5xf32>
}

// An operand that is really flat keeps the operation flat.
// CHECK-LABEL: func @flat_operand
// CHECK: nova.add %{{.*}}, %arg3 : (tensor<6x7xf32>, tensor<6x7xf32>)
func.func @flat_operand(%x: tensor<2x3x5xf32>, %w: tensor<5x7xf32>, %b: tensor<7xf32>, %flat: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %0 = nova.linear %x, %w, %b : (tensor<2x3x5xf32>, tensor<5x7xf32>, tensor<7xf32>) -> tensor<2x3x7xf32>
  %1 = nova.reshape %0 : (tensor<2x3x7xf32>) -> tensor<6x7xf32>
  %2 = nova.add %1, %flat : (tensor<6x7xf32>, tensor<6x7xf32>) -> tensor<6x7xf32>
  return %2 : tensor<6x7xf32>
}
