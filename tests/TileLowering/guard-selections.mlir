// RUN: nova-opt %s --nova-guard-selections --split-input-file | FileCheck %s

// The diagonal: where the last column comes before the first row, nothing is hidden, and
// neither mask nor selection is computed.
// CHECK-LABEL: func.func @causal
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[LAST:.*]] = arith.addi %[[J]], %c63
// CHECK: %[[WHOLE:.*]] = arith.cmpi ule, %[[LAST]], %[[I:.*]] : index
// CHECK: %[[R:.*]] = scf.if %[[WHOLE]] -> (tensor<64x64xf32>) {
// CHECK-NEXT: scf.yield %[[X:.*]] : tensor<64x64xf32>
// CHECK-NEXT: } else {
// CHECK: tile.range
// CHECK: %[[MASKED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[X]]
// CHECK-NEXT: scf.yield %[[MASKED]]
// CHECK: tile.store %[[R]]
func.func @causal(%s: memref<64x256xf32>, %o: memref<64x256xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %p = tile.point
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  scf.for %j = %c0 to %c256 step %c64 {
    %x = tile.load %s[%c0, %j] along [0, 1] bounds [0, 0] : memref<64x256xf32> -> tensor<64x64xf32>
    %row = tile.range %p : tensor<64xindex>
    %column = tile.range %j : tensor<64xindex>
    %rows = tile.broadcast %row dims [0] : tensor<64xindex> -> tensor<64x64xindex>
    %columns = tile.broadcast %column dims [1] : tensor<64xindex> -> tensor<64x64xindex>
    %hides = arith.cmpi ugt, %columns, %rows : tensor<64x64xindex>
    %y = arith.select %hides, %low, %x : tensor<64x64xi1>, tensor<64x64xf32>
    tile.store %y, %o[%c0, %j] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x256xf32>
  }
  return
}

// -----

// What data says is not known of a whole tile, and a small one costs less than a branch.
// CHECK-LABEL: func.func @neither
// CHECK-NOT: scf.if
func.func @neither(%s: memref<64x256xf32>, %m: memref<64x256xi1>, %o: memref<64x256xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %few = arith.constant dense<0.0> : tensor<64xf32>
  scf.for %j = %c0 to %c256 step %c64 {
    %x = tile.load %s[%c0, %j] along [0, 1] bounds [0, 0] : memref<64x256xf32> -> tensor<64x64xf32>
    %hides = tile.load %m[%c0, %j] along [0, 1] bounds [0, 0] : memref<64x256xi1> -> tensor<64x64xi1>
    %y = arith.select %hides, %low, %x : tensor<64x64xi1>, tensor<64x64xf32>
    tile.store %y, %o[%c0, %j] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x256xf32>
    %column = tile.range %j : tensor<64xindex>
    %edge = tile.splat %c64 : index -> tensor<64xindex>
    %outside = arith.cmpi uge, %column, %edge : tensor<64xindex>
    %v = tile.load %s[%c0, %j] along [1] bounds [0] : memref<64x256xf32> -> tensor<64xf32>
    %w = arith.select %outside, %few, %v : tensor<64xi1>, tensor<64xf32>
    tile.store %w, %o[%c0, %j] along [1] bounds [0] : tensor<64xf32>, memref<64x256xf32>
  }
  return
}
