// RUN: nova-opt %s --nova-form-kernels --split-input-file | FileCheck %s
// RUN: nova-opt %s --nova-form-kernels=no-fusion --split-input-file | FileCheck %s --check-prefix=APART

// Chains over one shape that meet are one kernel with several results: an
// optimizer's update. Scalars are another.
// CHECK-LABEL: func @optimizer
// CHECK: nova.launch @kernel_0(%arg3)
// CHECK: nova.launch @kernel_1(%arg1, %arg2, %{{.*}}, %arg0)
// CHECK-NOT: nova.launch
// APART-LABEL: func @optimizer
// APART-COUNT-6: nova.launch
func.func @optimizer(%w: tensor<4x6xf32>, %m: tensor<4x6xf32>, %g: tensor<4x6xf32>, %lr: tensor<f32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
    attributes {nova.graph = "g"} {
  %b = nova.constant dense<0.9> : tensor<f32>
  %c = nova.constant dense<0.1> : tensor<f32>
  %n = nova.neg %lr : (tensor<f32>) -> tensor<f32>
  %m1 = nova.mul %m, %b : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %g1 = nova.mul %g, %c : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %mn = nova.add %m1, %g1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %s = nova.mul %mn, %n : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %wn = nova.add %w, %s : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %wn, %mn : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----
// The reductions of a row and what is between them: one kernel, rows in
// parallel, the row local.
// CHECK-LABEL: func @softmax
// CHECK-COUNT-1: nova.launch
// CHECK-NOT: nova.launch
// CHECK: func.func private @kernel_0(%{{.*}}: tensor<3x5x7xf32>) -> (tensor<3x5x7xf32> {nova.map = array<i64: 0, 1, -1>})
// CHECK-SAME: nova.role = "rowwise", nova.space = array<i64: 3, 5>
func.func @softmax(%x: tensor<3x5x7xf32>) -> tensor<3x5x7xf32> attributes {nova.graph = "g"} {
  %m = nova.max %x {dims = array<i64: 2>, keepdims} : (tensor<3x5x7xf32>) -> tensor<3x5x1xf32>
  %s = nova.sub %x, %m : (tensor<3x5x7xf32>, tensor<3x5x1xf32>) -> tensor<3x5x7xf32>
  %e = nova.exp %s : (tensor<3x5x7xf32>) -> tensor<3x5x7xf32>
  %t = nova.sum %e {dims = array<i64: 2>, keepdims} : (tensor<3x5x7xf32>) -> tensor<3x5x1xf32>
  %y = nova.div %e, %t : (tensor<3x5x7xf32>, tensor<3x5x1xf32>) -> tensor<3x5x7xf32>
  return %y : tensor<3x5x7xf32>
}

// -----
// A contraction takes its elementwise epilogue, not a reduction of its result,
// and no producer: operands come from memory.
// CHECK-LABEL: func @epilogue
// CHECK: %[[X:.*]] = nova.launch @kernel_0(%arg0) {{.*}} nodes ["prologue"]
// CHECK: %[[Y:.*]]:2 = nova.launch @kernel_1(%[[X]], %arg1, %arg2) {{.*}} nodes ["product", "bias", "act"]
// CHECK: nova.launch @kernel_2(%[[Y]]#1)
// CHECK: nova.role = "pointwise"
// CHECK: nova.role = "matmul", nova.space = array<i64: 4, 6>
// CHECK: nova.role = "columnwise", nova.space = array<i64: 6>
func.func @epilogue(%x: tensor<4x5xf32>, %w: tensor<5x6xf32>, %b: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>)
    attributes {nova.graph = "g"} {
  %p = nova.exp %x : (tensor<4x5xf32>) -> tensor<4x5xf32> loc("prologue")
  %y = nova.matmul %p, %w : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32> loc("product")
  %z = nova.add %y, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32> loc("bias")
  %a = nova.tanh %z : (tensor<4x6xf32>) -> tensor<4x6xf32> loc("act")
  %s = nova.sum %a {dims = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<6xf32> loc("columns")
  return %z, %s : tensor<4x6xf32>, tensor<6xf32>
}

// -----
// A dependence through something outside keeps operations apart: the sum needs
// all of the exponentials before the product may start.
// CHECK-LABEL: func @cycle
// CHECK-COUNT-4: nova.launch
// CHECK-NOT: nova.launch
func.func @cycle(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {nova.graph = "g"} {
  %e = nova.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %p = nova.matmul %e, %e : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = nova.sum %p {dims = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
  %y = nova.mul %e, %s : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----
// Views cost nothing: they become offset and strides of the operand, equal
// views one argument. Equal kernels are outlined once.
// CHECK-LABEL: func @views
// CHECK: nova.launch @kernel_0(%arg0) views [#nova.view<0, [1, 8]>]
// CHECK: nova.launch @kernel_0(%arg0) views [#nova.view<2, [1, 8]>]
// CHECK: func.func private @kernel_0(%{{.*}}: tensor<2x3xf32> {nova.strides = array<i64: 1, 8>})
// CHECK-NOT: func.func
func.func @views(%x: tensor<3x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {nova.graph = "g"} {
  %a = nova.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 3, 2>, strides = array<i64: 1, 1>} : (tensor<3x8xf32>) -> tensor<3x2xf32>
  %b = nova.slice %x {offsets = array<i64: 0, 2>, sizes = array<i64: 3, 2>, strides = array<i64: 1, 1>} : (tensor<3x8xf32>) -> tensor<3x2xf32>
  %at = nova.transpose %a {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %bt = nova.transpose %b {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %p = nova.mul %at, %at : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %q = nova.mul %bt, %bt : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %p, %q : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----
// A reader of an argument runs before the kernel that replaces it, though the
// graph names it later.
// CHECK-LABEL: func @readers_first
// CHECK: nova.launch {{.*}} nodes ["reader"]
// CHECK: nova.launch {{.*}} nodes ["update"]
func.func @readers_first(%w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32> {nova.updates = 0 : i64}, tensor<f32>)
    attributes {nova.graph = "g"} {
  %n = nova.add %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("update")
  %s = nova.sum %w {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32> loc("reader")
  return %n, %s : tensor<4xf32>, tensor<f32>
}

// -----
// A column beside its own transpose: every element of the square needs two
// elements of the column, and no grid point has both.
// CHECK-LABEL: func @square
// CHECK-COUNT-2: nova.launch
// CHECK-NOT: nova.launch
func.func @square(%x: tensor<4x6xf32>) -> tensor<4x4xf32> attributes {nova.graph = "g"} {
  %s = nova.sum %x {dims = array<i64: 1>, keepdims} : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %t = nova.reshape %s : (tensor<4x1xf32>) -> tensor<1x4xf32>
  %y = nova.add %s, %t : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----
// An element of rows that are computed from memory alone is computed where it is
// needed, with the sum of its row.
// CHECK-LABEL: func @element
// CHECK: nova.launch {{.*}} nodes ["wide", "total", "element", "rest"]
// CHECK-NOT: nova.launch
func.func @element(%x: tensor<6x33xbf16>, %i: tensor<6x1xi64>) -> tensor<6x1xf32> attributes {nova.graph = "g"} {
  %c = nova.cast %x : (tensor<6x33xbf16>) -> tensor<6x33xf32> loc("wide")
  %s = nova.sum %c {dims = array<i64: 1>, keepdims} : (tensor<6x33xf32>) -> tensor<6x1xf32> loc("total")
  %g = nova.gather %c, %i {dim = 1 : i64} : (tensor<6x33xf32>, tensor<6x1xi64>) -> tensor<6x1xf32> loc("element")
  %r = nova.sub %s, %g : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32> loc("rest")
  return %r : tensor<6x1xf32>
}

// -----
// One that a reduction takes part in is read from memory, by a kernel of its own.
// CHECK-LABEL: func @element_of_reduced
// CHECK: nova.launch {{.*}} nodes ["most", "less", "total"]
// CHECK: nova.launch {{.*}} nodes ["element", "rest"]
func.func @element_of_reduced(%x: tensor<6x33xf32>, %i: tensor<6x1xi64>) -> tensor<6x1xf32> attributes {nova.graph = "h"} {
  %m = nova.max %x {dims = array<i64: 1>, keepdims} : (tensor<6x33xf32>) -> tensor<6x1xf32> loc("most")
  %d = nova.sub %x, %m : (tensor<6x33xf32>, tensor<6x1xf32>) -> tensor<6x33xf32> loc("less")
  %s = nova.sum %d {dims = array<i64: 1>, keepdims} : (tensor<6x33xf32>) -> tensor<6x1xf32> loc("total")
  %g = nova.gather %d, %i {dim = 1 : i64} : (tensor<6x33xf32>, tensor<6x1xi64>) -> tensor<6x1xf32> loc("element")
  %r = nova.sub %s, %g : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32> loc("rest")
  return %r : tensor<6x1xf32>
}
