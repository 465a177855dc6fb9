// RUN: nova-opt %s --nova-assign-tile-layouts --nova-specialize-tiles --nova-overlap-products --split-input-file | FileCheck %s

// Both operands are read by descriptors: a step's products run on into the next one, its
// slot is released there, and the last one's behind the loop.
// CHECK-LABEL: func.func @nt
// CHECK: %[[CHANNEL:.*]] = tile.channel : <4>
// CHECK: tile.role
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[K:.*]] = %[[LOW:.*]] to {{.*}} iter_args(%{{.*}}, %[[SLOT:.*]] = {{.*}}, %{{.*}} = {{.*}})
// CHECK: tile.await %[[CHANNEL]][%[[SLOT]],
// CHECK: tile.dot {{.*}} by warpgroup in_flight
// CHECK: %[[LATER:.*]] = arith.cmpi ne, %[[K]], %[[LOW]]
// CHECK: scf.if %[[LATER]]
// CHECK: %[[BEFORE:.*]] = arith.select
// CHECK: tile.release %[[CHANNEL]][%[[BEFORE]]]
// CHECK: scf.yield
// CHECK: %[[SUMS:.*]] = tile.settle %[[LOOP]]#0
// CHECK: %[[LAST:.*]] = arith.select
// CHECK: tile.release %[[CHANNEL]][%[[LAST]]]
// CHECK: tile.store %[[SUMS]]
func.func @nt(%a: memref<128x192xf32>, %b: memref<64x192xf32>, %c: memref<128x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 4 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %acc = scf.for %k = %c0 to %c192 step %c32 iter_args(%s = %zero) -> tensor<128x64xf32> {
    %x = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<128x192xf32> -> tensor<128x32xf32>
    %y = tile.load %b[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x192xf32> -> tensor<64x32xf32>
    %t = tile.broadcast %y dims [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %t, %s tf32 : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<128x64xf32>, memref<128x64xf32>
  return
}

// -----

// Two slots are too few for that.
// CHECK-LABEL: func.func @two_slots
// CHECK-NOT: in_flight
func.func @two_slots(%a: memref<128x192xf32>, %b: memref<64x192xf32>, %c: memref<128x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 2 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %acc = scf.for %k = %c0 to %c192 step %c32 iter_args(%s = %zero) -> tensor<128x64xf32> {
    %x = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<128x192xf32> -> tensor<128x32xf32>
    %y = tile.load %b[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x192xf32> -> tensor<64x32xf32>
    %t = tile.broadcast %y dims [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %t, %s tf32 : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<128x64xf32>, memref<128x64xf32>
  return
}

// -----

// The left operand (of the transposed product) is read into registers: the next step's
// while this one's products run, which are then waited for.
// CHECK-LABEL: func.func @nn
// CHECK: %[[CHANNEL:.*]] = tile.channel : <4>
// CHECK: tile.role
// CHECK: %[[T0:.*]] = tile.await %[[CHANNEL]]
// CHECK: %[[FIRST:.*]] = tile.local_load {{.*}} after %[[T0]] dims
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[TILE:.*]] = %[[FIRST]], %[[TOKEN:.*]] = %[[T0]])
// CHECK: tile.local_load {{.*}} after %[[TOKEN]]
// CHECK: %[[D:.*]] = tile.dot %{{.*}}, %[[TILE]], {{.*}} by flipped_warpgroup in_flight
// CHECK: %[[NEXT:.*]]:2 = scf.if
// CHECK: %[[T:.*]] = tile.await %[[CHANNEL]]
// CHECK: tile.local_load {{.*}} after %[[T]]
// CHECK: else
// CHECK: %[[S:.*]] = tile.settle %[[D]]
// CHECK: tile.release %[[CHANNEL]]
// CHECK: scf.yield %[[S]], {{.*}}, %[[NEXT]]#0, %[[NEXT]]#1
func.func @nn(%a: memref<64x192xf32>, %b: memref<192x64xf32>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 4 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %c192 step %c32 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x192xf32> -> tensor<64x32xf32>
    %y = tile.load %b[%k, %c0] along [0, 1] bounds [0, 0] : memref<192x64xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %y, %s tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}
