// RUN: nova-opt %s --nova-assign-tile-layouts --nova-persist-tiles --split-input-file | FileCheck %s
// RUN: nova-opt %s --nova-assign-tile-layouts --nova-persist-tiles --nova-specialize-tiles --split-input-file | FileCheck %s --check-prefix=ROLES

// Two of eight points to a block, in turns for two teams: whoever multiplies waits for
// the turn that the point before hands on, and hands it on behind its loop.
// CHECK-LABEL: func.func @teams
// CHECK-SAME: tile.grid = 4 : i64
// CHECK: %[[TURN:.*]] = tile.channel : <2>
// CHECK: %[[FIRST:.*]] = tile.point
// CHECK: scf.for %[[POINT:.*]] = %[[FIRST]] to %c8{{.*}} step %c4
// CHECK: %[[GONE:.*]] = arith.subi %[[POINT]], %[[FIRST]]
// CHECK: %[[N:.*]] = arith.divui %[[GONE]], %c4
// CHECK: %[[ROW:.*]] = arith.muli %[[POINT]], %c128
// CHECK: %[[LATER:.*]] = arith.cmpi ne, %[[N]], %c0
// CHECK: scf.if %[[LATER]]
// CHECK: tile.await %[[TURN]]
// CHECK: tile.release %[[TURN]]
// CHECK: scf.for
// CHECK: tile.load %arg0[%[[ROW]],
// CHECK: tile.acquire %[[TURN]]
// CHECK: tile.send %[[TURN]]
// CHECK: tile.store %{{.*}}, %arg2[%[[ROW]],
// CHECK: {tile.dealt}

// The copier goes through the same points; the ring runs on from one to the next: six
// steps each, four slots.
// ROLES-LABEL: func.func @teams
// ROLES: tile.role of 4 single
// ROLES: %[[FIRST:.*]] = tile.point
// ROLES: scf.for %[[POINT:.*]] = %[[FIRST]] to %c8{{.*}} step %c4
// ROLES: %[[N:.*]] = arith.divui %{{.*}}, %c4
// ROLES: %[[STEPS:.*]] = arith.muli %[[N]], %c6
// ROLES: arith.divui %[[STEPS]], %[[SLOTS:c4[_0-9]*]]
// ROLES: %[[SLOT:.*]] = arith.remui %[[STEPS]], %c4
// ROLES: scf.for {{.*}} iter_args(%{{.*}} = %[[SLOT]],
// ROLES: tile.bulk_load %arg0
// ROLES: scf.for
// ROLES: {tile.dealt}
func.func @teams(%a: memref<1024x192xf32>, %b: memref<64x192xf32>, %c: memref<1024x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 4 : i64, tile.asynchronous, tile.grid = 8 : i64, tile.persistent_blocks = 4 : i64, tile.teams = 2 : i64} {
  %p = tile.point
  %c128 = arith.constant 128 : index
  %row = arith.muli %p, %c128 : index
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %acc = scf.for %k = %c0 to %c192 step %c32 iter_args(%s = %zero) -> tensor<128x64xf32> {
    %x = tile.load %a[%row, %k] along [0, 1] bounds [0, 0] : memref<1024x192xf32> -> tensor<128x32xf32>
    %y = tile.load %b[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x192xf32> -> tensor<64x32xf32>
    %t = tile.broadcast %y dims [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %t, %s tf32 : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %acc, %c[%row, %c0] along [0, 1] bounds [0, 0] : tensor<128x64xf32>, memref<1024x64xf32>
  return
}

// -----

// A loop whose length depends on the point: rings could not be counted.
// CHECK-LABEL: func.func @unknown_length
// CHECK-SAME: tile.grid = 8 : i64
// CHECK-NOT: tile.dealt
func.func @unknown_length(%a: memref<1024x192xf32>, %b: memref<64x192xf32>, %c: memref<1024x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 4 : i64, tile.asynchronous, tile.grid = 8 : i64, tile.persistent_blocks = 4 : i64} {
  %p = tile.point
  %c128 = arith.constant 128 : index
  %row = arith.muli %p, %c128 : index
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %end = arith.minui %row, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %acc = scf.for %k = %c0 to %end step %c32 iter_args(%s = %zero) -> tensor<128x64xf32> {
    %x = tile.load %a[%row, %k] along [0, 1] bounds [0, 0] : memref<1024x192xf32> -> tensor<128x32xf32>
    %y = tile.load %b[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x192xf32> -> tensor<64x32xf32>
    %t = tile.broadcast %y dims [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %t, %s tf32 : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %acc, %c[%row, %c0] along [0, 1] bounds [0, 0] : tensor<128x64xf32>, memref<1024x64xf32>
  return
}

// -----

// As many blocks as points: each has one.
// CHECK-LABEL: func.func @enough_blocks
// CHECK-NOT: tile.dealt
func.func @enough_blocks(%a: memref<512x192xf32>, %b: memref<64x192xf32>, %c: memref<512x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 4 : i64, tile.asynchronous, tile.grid = 4 : i64, tile.persistent_blocks = 4 : i64} {
  %p = tile.point
  %c128 = arith.constant 128 : index
  %row = arith.muli %p, %c128 : index
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %acc = scf.for %k = %c0 to %c192 step %c32 iter_args(%s = %zero) -> tensor<128x64xf32> {
    %x = tile.load %a[%row, %k] along [0, 1] bounds [0, 0] : memref<512x192xf32> -> tensor<128x32xf32>
    %y = tile.load %b[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x192xf32> -> tensor<64x32xf32>
    %t = tile.broadcast %y dims [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %t, %s tf32 : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %acc, %c[%row, %c0] along [0, 1] bounds [0, 0] : tensor<128x64xf32>, memref<512x64xf32>
  return
}
