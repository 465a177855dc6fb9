// RUN: nova-opt %s --nova-assign-tile-layouts --nova-pipeline-tiles --split-input-file | FileCheck %s

// Two copies start before the loop; each iteration waits for its slot, starts the
// copy two iterations ahead, and reads.
// CHECK-LABEL: func.func @ahead
// CHECK-DAG: %[[A:.*]] = tile.alloc : <3, [64, 32], f32, 1, 8>
// CHECK-DAG: %[[B:.*]] = tile.alloc : <3, [32, 64], f32, 1, 8>
// CHECK-COUNT-2: tile.commit
// CHECK: scf.for
// CHECK-NEXT: %[[T:.*]] = tile.wait 1
// CHECK: tile.async_load {{.*}} into %[[A]][%[[FILL:.*]]] when %[[IN:.*]] along [0, 1] bounds [0, 0]
// CHECK: tile.async_load {{.*}} into %[[B]][%[[FILL]]] when %[[IN]] along [0, 1] bounds [0, 1]
// CHECK: tile.commit
// CHECK: tile.local_load %[[A]][%[[READ:.*]]] after %[[T]] dims [0, 1]
// CHECK: tile.local_load %[[B]][%[[READ]]] after %[[T]] dims [0, 1]
// CHECK: tile.dot
// CHECK: tile.wait 0
func.func @ahead(%a: memref<64x96xf32>, %b: memref<96x60xf32>, %c: memref<64x60xf32>) attributes {tile.warps = 4 : i64, tile.stages = 3 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %c96 step %c32 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x96xf32> -> tensor<64x32xf32>
    %y = tile.load %b[%k, %c0] along [0, 1] bounds [0, 1] : memref<96x60xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %y, %s tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 1] : tensor<64x64xf32>, memref<64x60xf32>
  return
}

// -----

// A transpose is a way to read the slot. An operand that is computed, and one
// whose rows of 33 bfloat16 allow copies of 2 bytes only, stay as they are.
// CHECK-LABEL: func.func @which
// CHECK: scf.for
// CHECK: tile.load %arg1
// CHECK: tile.local_load {{.*}} dims [1, 0] : <2, [64, 32], bf16, 2, 4>
// CHECK-NOT: tile.local_load
// CHECK: tile.load %arg2
// CHECK-NOT: tile.local_load
// CHECK: return
func.func @which(%a: memref<64x96xbf16>, %b: memref<64x96xbf16>, %odd: memref<96x33xbf16>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %c96 step %c32 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %y0 = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x96xbf16> -> tensor<64x32xbf16>
    %y = tile.broadcast %y0 dims [1, 0] : tensor<64x32xbf16> -> tensor<32x64xbf16>
    %x = tile.load %b[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x96xbf16> -> tensor<64x32xbf16>
    %n = arith.negf %x : tensor<64x32xbf16>
    %d = tile.dot %n, %y, %s f32 : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
    %z = tile.load %odd[%k, %c0] along [0, 1] bounds [0, 1] : memref<96x33xbf16> -> tensor<32x64xbf16>
    %e = tile.dot %n, %z, %d f32 : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
    scf.yield %e : tensor<64x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}
