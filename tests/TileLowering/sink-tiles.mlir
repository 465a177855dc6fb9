// RUN: nova-opt %s --nova-sink-tiles --split-input-file | FileCheck %s

// What the loop does not use is read behind it, and before the store, which may write
// the same memory.
// CHECK-LABEL: func.func @behind
// CHECK-NOT: tile.load %arg1
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: %[[P:.*]] = tile.load %arg1
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[P]], %[[P]]
// CHECK-NEXT: arith.addf %{{.*}}, %[[Q]]
// CHECK: tile.load %arg2
// CHECK: tile.store
func.func @behind(%a: memref<64xf32>, %p: memref<64xf32>, %m: memref<64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %t = tile.load %p[%c0] along [0] bounds [0] : memref<64xf32> -> tensor<64xf32>
  %q = arith.mulf %t, %t : tensor<64xf32>
  %n = tile.load %m[%c0] along [0] bounds [0] : memref<64xf32> -> tensor<64xf32>
  %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%s = %zero) -> tensor<64xf32> {
    %x = tile.load %a[%c0] along [0] bounds [0] : memref<64xf32> -> tensor<64xf32>
    %d = arith.addf %s, %x : tensor<64xf32>
    scf.yield %d : tensor<64xf32>
  }
  %r = arith.addf %sum, %q : tensor<64xf32>
  tile.store %r, %p[%c0] along [0] bounds [0] : tensor<64xf32>, memref<64xf32>
  %u = arith.addf %n, %r : tensor<64xf32>
  tile.store %u, %m[%c0] along [0] bounds [0] : tensor<64xf32>, memref<64xf32>
  return
}

// -----

// What the loop uses stays before it.
// CHECK-LABEL: func.func @inside
// CHECK: tile.load
// CHECK: scf.for
func.func @inside(%p: memref<64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = tile.load %p[%c0] along [0] bounds [0] : memref<64xf32> -> tensor<64xf32>
  %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%s = %t) -> tensor<64xf32> {
    %d = arith.addf %s, %t : tensor<64xf32>
    scf.yield %d : tensor<64xf32>
  }
  tile.store %sum, %p[%c0] along [0] bounds [0] : tensor<64xf32>, memref<64xf32>
  return
}
