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

// -----

// expected-error@+1 {{kernel 'k': expected attribute nova.space}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': result 0: expected nova.map with 1 entries}}
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': result 0: dimension 0 of extent 4 is bound to 0, which is no dimension of that extent}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 5>, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>}, tensor<4xf32> {nova.map = array<i64: 1>})
    attributes {nova.kernel, nova.space = array<i64: 4, 4>, nova.tile = array<i64: 4, 4>} {
  // expected-error@+1 {{kernel 'k': func.return: result 1: dimension 0 runs along the space's dimensions 0 and 1}}
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': expected attribute nova.local_tile with 1 entries}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: -1>})
    attributes {nova.kernel, nova.space = array<i64>, nova.tile = array<i64>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.local_tile holds 11, expected a power of two times 1, 3, 5 or 7}}
func.func private @k(%x: tensor<11xf32>) -> (tensor<11xf32> {nova.map = array<i64: -1>})
    attributes {nova.kernel, nova.space = array<i64>, nova.tile = array<i64>, nova.local_tile = array<i64: 11>} {
  return %x : tensor<11xf32>
}

// -----

// expected-error@+1 {{kernel 'k': needs a tile of rank 4, expected at most 3}}
func.func private @k(%x: tensor<2x2x2x2xf32>) -> (tensor<2x2x2x2xf32> {nova.map = array<i64: 0, 1, 2, 3>})
    attributes {nova.kernel, nova.space = array<i64: 2, 2, 2, 2>, nova.tile = array<i64: 2, 2, 2, 2>, nova.local_tile = array<i64>} {
  return %x : tensor<2x2x2x2xf32>
}

// -----

func.func private @k(%x: tensor<4x6xf32>) -> (tensor<6x4xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 6, 4>, nova.tile = array<i64: 4, 4>, nova.local_tile = array<i64>} {
  // expected-error@+1 {{kernel 'k': tensor.expand_shape: an operation that has no tile program}}
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [4, 6, 1] : tensor<4x6xf32> into tensor<4x6x1xf32>
  %1 = tensor.empty() : tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

func.func private @k(%x: tensor<9xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>, nova.local_tile = array<i64>} {
  %0 = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{kernel 'k': linalg.generic: indexing map affine_map<(d0) -> (d0 * 2)>, expected dimensions and zeros}}
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i * 2)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<9xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4x4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>}, tensor<4x4xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 4, 4>, nova.tile = array<i64: 4, 4>, nova.local_tile = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4x4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  %2 = tensor.empty() : tensor<4xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{kernel 'k': linalg.generic: reduces along dimension 1 of the space}}
  %4 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%1 : tensor<4x4xf32>) outs(%3 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %5 = arith.addf %a, %out : f32
    linalg.yield %5 : f32
  } -> tensor<4xf32>
  return %4, %1 : tensor<4xf32>, tensor<4x4xf32>
}

// -----

func.func private @k(%x: tensor<4x8xf32>) -> (tensor<4x4xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>, nova.local_tile = array<i64: 8>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%0 : tensor<4x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  %2 = tensor.empty() : tensor<4x4xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // expected-error@+1 {{kernel 'k': linalg.generic: loops along one axis of extent 4 twice}}
  %4 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%1, %1 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%3 : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %5 = arith.mulf %a, %b : f32
    %6 = arith.addf %out, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': reads the diagonal of argument 0, which no tile is}}
func.func private @k(%x: tensor<4x4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>, nova.local_tile = array<i64>} {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4x4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>, nova.local_tile = array<i64>} {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    // expected-error@+1 {{kernel 'k': tensor.extract: reads a value that is no kernel argument}}
    %2 = tensor.extract %0[%i] : tensor<4xf32>
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>, nova.local_tile = array<i64>} {
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.constant true
    // expected-error@+1 {{kernel 'k': scf.if: expected arithmetic on scalars}}
    %2 = scf.if %c -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %out : f32
    }
    linalg.yield %2 : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func private @k() -> (tensor<2xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 2>, nova.tile = array<i64: 2>, nova.local_tile = array<i64>} {
  // expected-error@+1 {{kernel 'k': arith.constant: elements that differ, expected one constant for all}}
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func private @k(%x: tensor<8x64xf32>) -> (tensor<8x64xf32> {nova.map = array<i64: -1, -1>})
    attributes {nova.kernel, nova.space = array<i64>, nova.tile = array<i64>, nova.local_tile = array<i64: 4, 16>} {
  // expected-error@+1 {{kernel 'k': nova.cumsum: a running sum of 8 elements in tiles of 4, in a loop along another axis}}
  %0 = nova.cumsum %x {dim = 0 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = nova.cumsum %0 {dim = 1 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// -----

func.func private @k(%x: tensor<4x8xf32>, %at: tensor<3x2xi64>) -> (tensor<4x8xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>, nova.local_tile = array<i64: 8>} {
  %0 = tensor.empty() : tensor<3x2xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<3x2xi64>) outs(%0 : tensor<3x2xf32>) {
  ^bb0(%a: i64, %out: f32):
    %2 = arith.sitofp %a : i64 to f32
    linalg.yield %2 : f32
  } -> tensor<3x2xf32>
  // expected-error@+1 {{kernel 'k': nova.scatter: computed positions that are fewer than the result's along dimension 0}}
  %3 = nova.scatter %x, %at, %1 {dim = 1 : i64} : (tensor<4x8xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// Each row of a sum has a segment of its own.
// expected-error@+1 {{kernel 'k': nova.tile holds 8 for dimension 0 of the space, along which elements are taken one by one: expected 1}}
func.func private @k(%init: tensor<15x20xf32>, %updates: tensor<60x20xf32>, %order: tensor<64xi64>, %bounds: tensor<16xi32>)
    -> (tensor<15x20xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 15, 20>, nova.tile = array<i64: 8, 16>, nova.local_tile = array<i64>} {
  %0 = nova.segment_sum %init, %updates, %order, %bounds {rows = 1 : i64} : (tensor<15x20xf32>, tensor<60x20xf32>, tensor<64xi64>, tensor<16xi32>) -> tensor<15x20xf32>
  return %0 : tensor<15x20xf32>
}
