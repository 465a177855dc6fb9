// RUN: nova-opt %s --nova-fold-exponents --split-input-file | FileCheck %s

// What a product of 16 bits takes: 2^x of one multiply-add, the factor folded into it.
// The maximum, under its mask of minus infinity, is taken before the factor is applied.
// CHECK-LABEL: func.func @scores
// CHECK: %[[S:.*]] = tile.load %arg0
// CHECK: %[[MASKED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[S]] : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: %[[MAX:.*]] = tile.reduce %[[MASKED]] along 1
// CHECK: %[[SCALED:.*]] = arith.mulf %[[MAX]], %{{.*}} : tensor<64xf32>
// CHECK-DAG: arith.constant 0.180336878 : f32
// CHECK-DAG: arith.constant -1.44269502 : f32
// CHECK: %[[ROW:.*]] = arith.mulf %[[SCALED]], %{{.*}} : tensor<64xf32>
// CHECK: %[[ROWS:.*]] = tile.broadcast %[[ROW]] dims [0]
// CHECK: %[[X:.*]] = math.fma %[[MASKED]], %{{.*}}, %[[ROWS]]
// CHECK: math.exp2 %[[X]] fastmath<afn>
// CHECK-NOT: math.exp %
func.func @scores(%a: memref<64x64xf32>, %b: memref<64x64xbf16>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %s = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xf32> -> tensor<64x64xf32>
  %v = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xbf16> -> tensor<64x64xbf16>
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tile.range %c0 : tensor<64xindex>
  %i = tile.broadcast %range dims [0] : tensor<64xindex> -> tensor<64x64xindex>
  %j = tile.broadcast %range dims [1] : tensor<64xindex> -> tensor<64x64xindex>
  %hides = arith.cmpi ugt, %j, %i : tensor<64x64xindex>
  %scale = arith.constant dense<1.250000e-01> : tensor<64x64xf32>
  %low = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %x = arith.mulf %s, %scale : tensor<64x64xf32>
  %masked = arith.select %hides, %low, %x : tensor<64x64xi1>, tensor<64x64xf32>
  %max = tile.reduce %masked along 1 : tensor<64x64xf32> -> tensor<64xf32> {
  ^bb0(%l: f32, %r: f32):
    %m = arith.maximumf %l, %r : f32
    tile.yield %m : f32
  }
  %maxs = tile.broadcast %max dims [0] : tensor<64xf32> -> tensor<64x64xf32>
  %y = arith.subf %masked, %maxs : tensor<64x64xf32>
  %e = math.exp %y : tensor<64x64xf32>
  %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
  %d = tile.dot %p, %v, %acc f32 : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %d, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// -----

// A product in float32 rounds nothing, and neither does what enters none.
// CHECK-LABEL: func.func @exact
// CHECK-NOT: exp2
// CHECK-COUNT-2: math.exp %
func.func @exact(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %s = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xf32> -> tensor<64x64xf32>
  %v = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xf32> -> tensor<64x64xf32>
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %e = math.exp %s : tensor<64x64xf32>
  %d = tile.dot %e, %v, %acc f32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %f = math.exp %d : tensor<64x64xf32>
  tile.store %f, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// -----

// A negative factor would turn the maximum into a minimum: it stays where it is.
// CHECK-LABEL: func.func @negative
// CHECK: %[[S:.*]] = tile.load %arg0
// CHECK: %[[X:.*]] = arith.mulf %[[S]]
// CHECK: tile.reduce %[[X]] along 1
// CHECK: math.fma %[[X]]
func.func @negative(%a: memref<64x64xf32>, %b: memref<64x64xbf16>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %s = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xf32> -> tensor<64x64xf32>
  %v = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x64xbf16> -> tensor<64x64xbf16>
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %scale = arith.constant dense<-1.250000e-01> : tensor<64x64xf32>
  %x = arith.mulf %s, %scale : tensor<64x64xf32>
  %max = tile.reduce %x along 1 : tensor<64x64xf32> -> tensor<64xf32> {
  ^bb0(%l: f32, %r: f32):
    %m = arith.maximumf %l, %r : f32
    tile.yield %m : f32
  }
  %maxs = tile.broadcast %max dims [0] : tensor<64xf32> -> tensor<64x64xf32>
  %y = arith.subf %x, %maxs : tensor<64x64xf32>
  %e = math.exp %y : tensor<64x64xf32>
  %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
  %d = tile.dot %p, %v, %acc f32 : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %d, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}
