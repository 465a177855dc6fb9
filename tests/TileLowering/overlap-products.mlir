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

// -----

// Several products of a step: they start as soon as what they multiply is there, what is
// needed first before the rest, and end where somebody needs what they make. Those that
// start later go on meanwhile. Rings of one depth share their turns.
// CHECK-LABEL: func.func @several
// CHECK: scf.for {{.*}} iter_args(%[[SUMS:.*]] = %{{.*}}, %[[SLOT:.*]] = %{{.*}}, %[[PHASE:.*]] = %{{.*}})
// CHECK: tile.await %[[KEYS:.*]][%[[SLOT]], %[[PHASE]]]
// CHECK: %[[S:.*]] = tile.dot {{.*}} in_flight
// CHECK: tile.await %[[VALUES:.*]][%[[SLOT]], %[[PHASE]]]
// CHECK: %[[G:.*]] = tile.dot {{.*}} in_flight
// CHECK: %[[ROWS:.*]] = tile.load %arg4
// CHECK: %[[SETTLED:.*]] = tile.settle %[[S]] {tile.pending = 1 : i64}
// CHECK: arith.subf %[[SETTLED]]
// CHECK: %[[GRADIENT:.*]] = tile.settle %[[G]] {tile.pending = 0 : i64}
// CHECK-NEXT: tile.release %[[VALUES]][%[[SLOT]]]
// CHECK: %[[W:.*]] = arith.mulf %{{.*}}, %[[GRADIENT]]
// CHECK: %[[O:.*]] = tile.dot {{.*}}, %[[SUMS]]
// CHECK-SAME: in_flight
// CHECK: tile.settle %[[O]] {tile.pending = 0 : i64}
// CHECK-NEXT: tile.release %[[KEYS]][%[[SLOT]]]
func.func @several(%q: memref<64x64xbf16>, %k: memref<256x64xbf16>, %v: memref<256x64xbf16>, %g: memref<64x64xbf16>, %l: memref<64xf32>, %o: memref<64x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 4 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %q[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xbf16> -> tensor<64x64xbf16>
  %b = tile.load %g[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xbf16> -> tensor<64x64xbf16>
  %sums = scf.for %j = %c0 to %c256 step %c64 iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %y = tile.load %v[%j, %c0] along [0, 1] bounds [0, 0] : memref<256x64xbf16> -> tensor<64x64xbf16>
    %yt = tile.broadcast %y dims [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %dp = tile.dot %b, %yt, %zero f32 : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %x = tile.load %k[%j, %c0] along [0, 1] bounds [0, 0] : memref<256x64xbf16> -> tensor<64x64xbf16>
    %xt = tile.broadcast %x dims [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %s = tile.dot %a, %xt, %zero f32 : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    %lse = tile.load %l[%c0] along [0] bounds [0] : memref<64xf32> -> tensor<64xf32>
    %rows = tile.broadcast %lse dims [0] : tensor<64xf32> -> tensor<64x64xf32>
    %d = arith.subf %s, %rows : tensor<64x64xf32>
    %e = math.exp %d : tensor<64x64xf32>
    %w = arith.mulf %e, %dp : tensor<64x64xf32>
    %h = arith.truncf %w : tensor<64x64xf32> to tensor<64x64xbf16>
    %next = tile.dot %h, %x, %acc f32 : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %sums, %o[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}
