// RUN: nova-opt %s --nova-assign-tile-layouts --nova-specialize-tiles --split-input-file | FileCheck %s

// Both operands have k inside: one channel, which one thread fills, and descriptors
// read the slots as they are.
// CHECK-LABEL: func.func @nt
// CHECK-DAG: %[[CHANNEL:.*]] = tile.channel : <3>
// CHECK-DAG: %[[A:.*]] = tile.alloc : <3, [128, 32], f32, 1, 8, panels = true>
// CHECK-DAG: %[[B:.*]] = tile.alloc : <3, [64, 32], f32, 1, 8, panels = true>
// CHECK: tile.role of 4 single {
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[SLOT:.*]] = {{.*}}, %[[PHASE:.*]] = %false
// CHECK: tile.acquire %[[CHANNEL]][%[[SLOT]], %[[PHASE]]] bytes 24576
// CHECK: tile.bulk_load %arg0[{{.*}}, %[[K]]] into %[[A]][%[[SLOT]]] through %[[CHANNEL]] along [0, 1] bounds [0, 0] tf32
// CHECK: tile.bulk_load %arg1[{{.*}}, %[[K]]] into %[[B]][%[[SLOT]]] through %[[CHANNEL]] along [0, 1] bounds [1, 0] tf32
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: %[[T:.*]] = tile.await %[[CHANNEL]][%[[READ:.*]], %{{.*}}]
// CHECK: tile.local_load %[[A]][%[[READ]]] after %[[T]] dims [0, 1]
// CHECK: tile.local_load %[[B]][%[[READ]]] after %[[T]] dims [1, 0]
// CHECK: tile.dot {{.*}} tf32 by warpgroup
// CHECK: tile.release %[[CHANNEL]][%[[READ]]]
// CHECK-NOT: tile.load
func.func @nt(%a: memref<128x192xf32>, %b: memref<60x192xf32>, %c: memref<128x60xf32>) attributes {tile.warps = 4 : i64, tile.stages = 3 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %acc = scf.for %k = %c0 to %c192 step %c32 iter_args(%s = %zero) -> tensor<128x64xf32> {
    %x = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<128x192xf32> -> tensor<128x32xf32>
    %y = tile.load %b[%c0, %k] along [0, 1] bounds [1, 0] : memref<60x192xf32> -> tensor<64x32xf32>
    %t = tile.broadcast %y dims [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %t, %s tf32 : tensor<128x32xf32>, tensor<32x64xf32> -> tensor<128x64xf32>
    scf.yield %d : tensor<128x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 1] : tensor<128x64xf32>, memref<128x60xf32>
  return
}

// -----

// The right operand has k outside: it becomes the left one, in registers. A loop of
// two iterations has two slots.
// CHECK-LABEL: func.func @nn
// CHECK: tile.channel : <2>
// CHECK: tile.role of 4 single
// CHECK-NOT: tile.role
// CHECK: tile.dot {{.*}} tf32 by flipped_warpgroup
func.func @nn(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 4 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %c64 step %c32 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x64xf32> -> tensor<64x32xf32>
    %y = tile.load %b[%k, %c0] along [0, 1] bounds [0, 0] : memref<64x64xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %y, %s tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// -----

// Both have k outside: a second role turns the one on the right and sends it on.
// CHECK-LABEL: func.func @tn
// CHECK-DAG: %[[TURNED:.*]] = tile.alloc : <2, [64, 32], f32, 1, 8, panels = true>
// CHECK: tile.role of 4 single
// CHECK: tile.role of 4 {
// CHECK: tile.await %[[RAW:.*]][
// CHECK: %[[TILE:.*]] = tile.local_load
// CHECK: tile.acquire %[[ON:.*]][%[[SLOT:[^,]*]], %{{.*}}] :
// CHECK: tile.local_store %[[TILE]], %[[TURNED]][%[[SLOT]]] dims [1, 0]
// CHECK: tile.send %[[ON]][%[[SLOT]]]
// CHECK: tile.release %[[RAW]]
// CHECK: tile.local_load %[[TURNED]]{{.*}} dims [1, 0]
// CHECK: tile.dot {{.*}} tf32 by warpgroup
func.func @tn(%a: memref<192x64xf32>, %b: memref<192x64xf32>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 3 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c192 = arith.constant 192 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %c192 step %c32 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%k, %c0] along [0, 1] bounds [0, 0] : memref<192x64xf32> -> tensor<32x64xf32>
    %t = tile.broadcast %x dims [1, 0] : tensor<32x64xf32> -> tensor<64x32xf32>
    %y = tile.load %b[%k, %c0] along [0, 1] bounds [0, 0] : memref<192x64xf32> -> tensor<32x64xf32>
    %d = tile.dot %t, %y, %s tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// -----

// Rows of 50 floats are no multiple of 16 bytes, no tensor map describes them: that
// operand is read by the warps that multiply. The other one, outside of any loop, has
// one slot and is never released.
// CHECK-LABEL: func.func @mixed
// CHECK: tile.channel : <1>
// CHECK: tile.bulk_load %arg1
// CHECK-NOT: tile.bulk_load
// CHECK: tile.load %arg0
// CHECK: tile.await
// CHECK-NOT: tile.release
// CHECK: tile.dot {{.*}} by warpgroup
func.func @mixed(%a: memref<64x50xf32>, %b: memref<64x32xf32>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 3 : i64, tile.asynchronous} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x50xf32> -> tensor<64x32xf32>
  %y = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x32xf32> -> tensor<64x32xf32>
  %t = tile.broadcast %y dims [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %d = tile.dot %x, %t, %zero tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  tile.store %d, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}
