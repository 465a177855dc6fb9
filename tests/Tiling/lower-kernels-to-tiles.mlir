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

// A sum of exponentials relative to a maximum shares the maximum's loop: it is
// rescaled when the maximum grows. Rows that are all minus infinity have no sum.
// CHECK-LABEL: func.func private @online(
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[MAX:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (tensor<2xf32>, tensor<2x16xf32>)
// CHECK: tile.load
// CHECK: tile.reduce
// CHECK: %[[NEW:.*]] = arith.maximumf %[[MAX]], %{{.*}} : tensor<2xf32>
// CHECK: %[[D:.*]] = arith.subf %[[MAX]], %[[NEW]]
// CHECK: %[[F:.*]] = math.exp %[[D]]
// CHECK: arith.mulf %[[SUM]], %{{.*}} : tensor<2x16xf32>
// CHECK-NOT: tile.load
// CHECK: scf.yield %[[NEW]]
// CHECK-NOT: scf.for
// CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[R]]#0
// CHECK: arith.select %[[NONE]]
func.func private @online(%x: tensor<4x64xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>, nova.local_tile = array<i64: 16>} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.fill ins(%low : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x64xf32>) outs(%1 : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %5 = arith.maximumf %out, %a : f32
    linalg.yield %5 : f32
  } -> tensor<4xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%0 : tensor<4xf32>) -> tensor<4xf32>
  %4 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x, %2 : tensor<4x64xf32>, tensor<4xf32>) outs(%3 : tensor<4xf32>) {
  ^bb0(%a: f32, %m: f32, %out: f32):
    %5 = arith.subf %a, %m : f32
    %6 = math.exp %5 : f32
    %7 = arith.addf %out, %6 : f32
    linalg.yield %7 : f32
  } -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// Nothing is summed after position i: the loop ends with the tile's last.
// CHECK-LABEL: func.func private @triangle(
// CHECK: %[[I:.*]] = arith.muli %{{.*}}, %c16
// CHECK: %[[LAST:.*]] = arith.addi %[[I]], %c16
// CHECK: %[[MIN:.*]] = arith.minsi %[[LAST]], %c64
// CHECK: %[[END:.*]] = arith.maxsi %[[MIN]], %c0
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %[[END]] step
func.func private @triangle(%x: tensor<64x64xf32>) -> (tensor<64xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 64>, nova.tile = array<i64: 16>, nova.local_tile = array<i64: 16>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x64xf32>) outs(%1 : tensor<64xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %3 = arith.cmpi ugt, %j, %i : index
    %4 = arith.select %3, %zero, %a : f32
    %5 = arith.addf %out, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// Two products over the same chunks share a loop, and what both need.
// CHECK-LABEL: func.func private @shared(
// CHECK: scf.for {{.*}} -> (tensor<16x16xf32>, tensor<16x16xf32>)
// CHECK: %[[X:.*]] = tile.load
// CHECK: tile.dot %[[X]],
// CHECK: tile.dot %[[X]],
// CHECK-NOT: scf.for
// CHECK: return
func.func private @shared(%x: tensor<16x64xf32>, %a: tensor<64x16xf32>, %b: tensor<64x16xf32>)
    -> (tensor<16x16xf32> {nova.map = array<i64: 0, 1>}, tensor<16x16xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 16, 16>, nova.tile = array<i64: 16, 16>, nova.local_tile = array<i64: 32>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<16x16xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %a : tensor<16x64xf32>, tensor<64x16xf32>) outs(%1 : tensor<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %4 = arith.mulf %p, %q : f32
    %5 = arith.addf %out, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<16x16xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %b : tensor<16x64xf32>, tensor<64x16xf32>) outs(%1 : tensor<16x16xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %4 = arith.mulf %p, %q : f32
    %5 = arith.addf %out, %4 : f32
    linalg.yield %5 : f32
  } -> tensor<16x16xf32>
  return %2, %3 : tensor<16x16xf32>, tensor<16x16xf32>
}

// Short floats enter the product as they are.
// CHECK-LABEL: func.func private @short(
// CHECK: tile.dot {{.*}} : tensor<16x32xbf16>, tensor<32x16xbf16> -> tensor<16x16xf32>
func.func private @short(%x: tensor<16x32xbf16>, %a: tensor<32x16xbf16>)
    -> (tensor<16x16xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 16, 16>, nova.tile = array<i64: 16, 16>, nova.local_tile = array<i64: 32>} {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<16x16xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %a : tensor<16x32xbf16>, tensor<32x16xbf16>) outs(%1 : tensor<16x16xf32>) {
  ^bb0(%p: bf16, %q: bf16, %out: f32):
    %3 = arith.extf %p : bf16 to f32
    %4 = arith.extf %q : bf16 to f32
    %5 = arith.mulf %3, %4 : f32
    %6 = arith.addf %out, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}

// Integer division is arithmetic like any other, though it may not be speculated: the
// body sees to its divisor.
// CHECK-LABEL: func.func private @quotient
// CHECK: %[[D:.*]] = arith.select
// CHECK: arith.divsi %{{.*}}, %[[D]] : tensor<64xi64>
func.func private @quotient(%x: tensor<64xi64>, %y: tensor<64xi64>) -> (tensor<64xi64> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 64>, nova.tile = array<i64: 64>, nova.local_tile = array<i64>, nova.warps = 4 : i64} {
  %e = tensor.empty() : tensor<64xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<64xi64>, tensor<64xi64>) outs(%e : tensor<64xi64>) {
  ^bb0(%a: i64, %b: i64, %o: i64):
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.cmpi eq, %b, %zero : i64
    %d = arith.select %none, %one, %b : i64
    %q = arith.divsi %a, %d : i64
    linalg.yield %q : i64
  } -> tensor<64xi64>
  return %r : tensor<64xi64>
}
