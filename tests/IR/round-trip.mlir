// What is printed is read back the same, as text and as bytecode.
// RUN: nova-opt %s | nova-opt | FileCheck %s
// RUN: nova-opt %s --emit-bytecode | nova-opt | FileCheck %s

// The step of the paper's section 3.1, at a small size.
// CHECK-LABEL: func @fused_training_step
// CHECK: nova.linear %arg0, %arg1, %arg2 : (tensor<8x16x24xf32>, tensor<24x40xf32>, tensor<40xf32>) -> tensor<8x16x40xf32>
// CHECK: nova.gelu %{{.*}} {form = #nova<gelu_form tanh>}
// CHECK: nova.sce %{{.*}}, %arg3 {ignore_index = -100 : i64, reduction = #nova<loss_reduction mean>}
// CHECK: nova.sce_backward
// CHECK: nova.gelu_backward
// CHECK: nova.matmul %{{.*}}, %{{.*}} {transpose_rhs}
func.func @fused_training_step(%act: tensor<8x16x24xf32>, %weight: tensor<24x40xf32>, %bias: tensor<40xf32>,
                               %labels: tensor<128xi64>) -> (tensor<f32>, tensor<8x16x24xf32>) {
  %y = nova.linear %act, %weight, %bias : (tensor<8x16x24xf32>, tensor<24x40xf32>, tensor<40xf32>) -> tensor<8x16x40xf32>
  %g = nova.gelu %y {form = #nova<gelu_form tanh>} : (tensor<8x16x40xf32>) -> tensor<8x16x40xf32>
  %rows = nova.reshape %g : (tensor<8x16x40xf32>) -> tensor<128x40xf32>
  %loss, %lse, %count = nova.sce %rows, %labels {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
      : (tensor<128x40xf32>, tensor<128xi64>) -> (tensor<f32>, tensor<128xf32>, tensor<f32>)
  %one = nova.constant dense<1.0> : tensor<f32>
  %d = nova.sce_backward %one, %rows, %labels, %lse, %count {reduction = #nova<loss_reduction mean>, ignore_index = -100 : i64}
      : (tensor<f32>, tensor<128x40xf32>, tensor<128xi64>, tensor<128xf32>, tensor<f32>) -> tensor<128x40xf32>
  %d3 = nova.reshape %d : (tensor<128x40xf32>) -> tensor<8x16x40xf32>
  %dy = nova.gelu_backward %d3, %y {form = #nova<gelu_form tanh>} : (tensor<8x16x40xf32>, tensor<8x16x40xf32>) -> tensor<8x16x40xf32>
  %dx = nova.matmul %dy, %weight {transpose_rhs} : (tensor<8x16x40xf32>, tensor<24x40xf32>) -> tensor<8x16x24xf32>
  return %loss, %dx : tensor<f32>, tensor<8x16x24xf32>
}

// CHECK-LABEL: func @rearranging
// CHECK: nova.iota 0 : i64, 1 : i64 : tensor<5xi64>
// CHECK: nova.slice %{{.*}} {offsets = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 2>} : (tensor<5xi64>) -> tensor<2xi64>
// CHECK: nova.pad %{{.*}} {high = array<i64: 1>, low = array<i64: 0>, undefined, value = 0 : i64}
func.func @rearranging() -> tensor<3xi64> {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<5xi64>
  %s = nova.slice %i {offsets = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 2>} : (tensor<5xi64>) -> tensor<2xi64>
  %p = nova.pad %s {low = array<i64: 0>, high = array<i64: 1>, value = 0 : i64, undefined} : (tensor<2xi64>) -> tensor<3xi64>
  return %p : tensor<3xi64>
}

// CHECK-LABEL: func @launches
// CHECK: nova.launch @k(%arg0) views [#nova.view<2, [0, 1]>] nodes ["n"] {nova.places = [#nova.place<input, 0, 8>, #nova.place<arena, 0, 0>]}
// CHECK: nova.transfer <input, 0, 0> from <arena, 0, 0> bytes 12
func.func private @k(%x: tensor<2x3xf32> {nova.strides = array<i64: 0, 1>}) -> (tensor<2x3xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel} {
  return %x : tensor<2x3xf32>
}
func.func @launches(%x: tensor<9xf32>) -> tensor<2x3xf32>
    attributes {nova.graph = "g", nova.arena = {buffers = [#nova.buffer<offset = 0, size = 24, first = 0, last = 1, alias = -1>]}} {
  %r = nova.launch @k(%x) views [#nova.view<2, [0, 1]>] nodes ["n"]
      {nova.places = [#nova.place<input, 0, 8>, #nova.place<arena, 0, 0>]} : (tensor<9xf32>) -> tensor<2x3xf32>
  nova.transfer <input, 0, 0> from <arena, 0, 0> bytes 12
  return %r : tensor<2x3xf32>
}
