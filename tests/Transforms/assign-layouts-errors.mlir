// RUN: nova-opt %s --nova-assign-layouts --verify-diagnostics

// expected-error @+1 {{result 0 updates an input whose strides [8, 1] leave gaps or overlap; novac can replace only dense tensors}}
func.func @gaps(%x: tensor<3x4xf32> {nova.strides = array<i64: 8, 1>}) -> (tensor<3x4xf32> {nova.updates = 0 : i64}) {
  %n = nova.neg %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %n : tensor<3x4xf32>
}
