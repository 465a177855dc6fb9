// RUN: nova-opt %s --nova-name-kernels | FileCheck %s
// The same bytes in, the same names out.
// RUN: nova-opt %s --nova-name-kernels > %t.1
// RUN: nova-opt %s --nova-name-kernels > %t.2
// RUN: diff %t.1 %t.2

// Kernels follow the step in the order of their first launch. @a and @c are
// equal but for names and locations; @b has the body of @a and another role;
// @d differs from @a in an attribute of its body. @unused keeps its place last.

// CHECK-LABEL: func @step
// CHECK: nova.launch @pointwise_[[NEG:[0-9a-f]{8}]](%arg0)
// CHECK: nova.launch @rowwise_[[ROW:[0-9a-f]{8}]](%0)
// CHECK: nova.launch @pointwise_[[NEG]](%1)
// CHECK: nova.launch @kernel_[[POW:[0-9a-f]{8}]](%2)
// CHECK: func private @pointwise_[[NEG]]
// CHECK-NEXT: nova.neg
// CHECK: func private @rowwise_[[ROW]]
// CHECK: func private @kernel_[[POW]]
// CHECK: func private @pointwise_
// CHECK-NEXT: nova.abs
// CHECK-NOT: func

func.func private @unused(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 4>} {
  %y = nova.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @d(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>} {
  %y = nova.threshold_backward %x, %x {threshold = 0.5} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @c(%other: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 4>} {
  %z = nova.neg %other : (tensor<4xf32>) -> tensor<4xf32> loc("elsewhere")
  return %z : tensor<4xf32>
}
func.func private @b(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "rowwise", nova.space = array<i64: 4>} {
  %y = nova.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @a(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 4>} {
  %y = nova.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nova.graph = "g"} {
  %0 = nova.launch @a(%x) views [#nova.view<0, [1]>] nodes ["n0"] : (tensor<4xf32>) -> tensor<4xf32>
  %1 = nova.launch @b(%0) views [#nova.view<0, [1]>] nodes ["n1"] : (tensor<4xf32>) -> tensor<4xf32>
  %2 = nova.launch @c(%1) views [#nova.view<0, [1]>] nodes ["n2"] : (tensor<4xf32>) -> tensor<4xf32>
  %3 = nova.launch @d(%2) views [#nova.view<0, [1]>] nodes ["n3"] : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
