// RUN: nova-opt %s --nova-lower-kernels-to-tiles --split-input-file --verify-diagnostics

// expected-error@+1 {{kernel 'k': expected attribute nova.tile with 1 entries}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.tile holds 9, expected a power of two times 1, 3, 5 or 7}}
func.func private @k(%x: tensor<9xf32>) -> (tensor<9xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 9>, nova.tile = array<i64: 9>} {
  return %x : tensor<9xf32>
}
