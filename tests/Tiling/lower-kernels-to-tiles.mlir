// RUN: nova-opt %s --nova-lower-kernels-to-tiles | FileCheck %s

// The last dimension of the space runs fastest; what tiles do not divide is
// bounded; an argument that repeats along an axis is loaded without it.
// CHECK-LABEL: func.func private @elements(
// CHECK-SAME: %[[X:.*]]: memref<6x40xf32>, %[[B:.*]]: memref<40xf32>, %[[S:.*]]: memref<f32>, %[[Y:.*]]: memref<6x40xf32>)
// CHECK-SAME: tile.grid = 9 : i64, tile.warps = 4 : i64
// CHECK: %[[P:.*]] = tile.point
// CHECK: %[[COL:.*]] = arith.remui %[[P]], %c3
// CHECK: %[[ROW:.*]] = arith.divui %[[P]], %c3
// CHECK: %[[I:.*]] = arith.muli %[[ROW]], %c2
// CHECK: %[[J:.*]] = arith.muli %[[COL]], %c16
// CHECK: %[[XT:.*]] = tile.load %[[X]][%[[I]], %[[J]]] along [0, 1] bounds [0, 1] : memref<6x40xf32> -> tensor<2x16xf32>
// CHECK: %[[BT:.*]] = tile.load %[[B]][%[[J]]] along [0] bounds [1]
// CHECK: %[[BB:.*]] = tile.broadcast %[[BT]] dims [1] : tensor<16xf32> -> tensor<2x16xf32>
// CHECK: arith.addf %[[XT]], %[[BB]] : tensor<2x16xf32>
// CHECK: tile.load %[[S]][] along [] bounds [] : memref<f32> -> tensor<f32>
// CHECK: tile.scalar
// CHECK: tile.splat
// CHECK: tile.store %{{.*}}, %[[Y]][%[[I]], %[[J]]] along [0, 1] bounds [0, 1]
func.func private @elements(%x: tensor<6x40xf32>, %b: tensor<40xf32>, %s: tensor<f32>)
    -> (tensor<6x40xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 6, 40>, nova.tile = array<i64: 2, 16>, nova.local_tile = array<i64>} {
  %0 = tensor.empty() : tensor<6x40xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %b, %s : tensor<6x40xf32>, tensor<40xf32>, tensor<f32>) outs(%0 : tensor<6x40xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %out: f32):
    %2 = arith.addf %a, %c : f32
    %3 = arith.mulf %2, %d : f32
    linalg.yield %3 : f32
  } -> tensor<6x40xf32>
  return %1 : tensor<6x40xf32>
}

// A resident axis of which a part is outside: computed values are replaced by
// the identity; loaded zeros are sums' identity already.
// CHECK-LABEL: func.func private @rows(
// CHECK: %[[T:.*]] = tile.load {{.*}} along [0, 1] bounds [0, 1] : memref<8x20xf32> -> tensor<4x24xf32>
// CHECK: tile.reduce %[[T]] along 1
// CHECK: %[[E:.*]] = math.exp
// CHECK: %[[IN:.*]] = arith.cmpi ult
// CHECK: %[[M:.*]] = tile.broadcast %[[IN]] dims [1]
// CHECK: %[[V:.*]] = arith.select %[[M]], %[[E]], %{{.*}} : tensor<4x24xi1>, tensor<4x24xf32>
// CHECK: tile.reduce %[[V]] along 1
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: arith.addf %[[A]], %[[B]]
func.func private @rows(%x: tensor<8x20xf32>)
    -> (tensor<8xf32> {nova.map = array<i64: 0>}, tensor<8xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 8>, nova.tile = array<i64: 4>, nova.local_tile = array<i64: 24>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<8xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x20xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %4 = arith.addf %out, %a : f32
    linalg.yield %4 : f32
  } -> tensor<8xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x20xf32>) outs(%1 : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %4 = math.exp %a : f32
    %5 = arith.addf %out, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}

// A product with a streamed depth, and what follows it.
// CHECK-LABEL: func.func private @product(
// CHECK: %[[ACC:.*]] = scf.for %[[K:.*]] = %c0{{.*}} to %c100{{.*}} step %c32{{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<16x16xf32>)
// CHECK: %[[A:.*]] = tile.load {{.*}} along [0, 1] bounds [0, 1] : memref<32x100xf32> -> tensor<16x32xf32>
// CHECK: %[[B:.*]] = tile.load {{.*}} along [1, 0] bounds [1, 0] : memref<32x100xf32> -> tensor<32x16xf32>
// CHECK: tile.dot %[[A]], %[[B]], %[[C]]{{ +}}f32
// CHECK: arith.negf %[[ACC]] : tensor<16x16xf32>
func.func private @product(%x: tensor<32x100xf32>, %w: tensor<32x100xf32>)
    -> (tensor<32x32xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 32, 32>, nova.tile = array<i64: 16, 16>, nova.local_tile = array<i64: 32>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<32x32xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x100xf32>, tensor<32x100xf32>) outs(%1 : tensor<32x32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %4 = arith.mulf %a, %b : f32
    %5 = arith.addf %out, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<32x32xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<32x32xf32>) outs(%0 : tensor<32x32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %4 = arith.negf %a : f32
    linalg.yield %4 : f32
  } -> tensor<32x32xf32>
  return %3 : tensor<32x32xf32>
}
