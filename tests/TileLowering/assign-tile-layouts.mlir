// RUN: nova-opt %s --nova-assign-tile-layouts --split-input-file | FileCheck %s

// Neighbouring lanes on neighbouring addresses, four elements a thread; the
// store to a transposed memory gets a layout of its own.
// CHECK-LABEL: func.func @transpose
// CHECK: tile.load {{.*}} -> tensor<32x64xf32, #tile.layout<core = [32, 64], outer = [1, 1], registers = [1, 2, 512, 1024], lanes = [4, 8, 16, 32, 64], warps = [128, 256]>>
// CHECK: %[[C:.*]] = tile.convert {{.*}} -> tensor<32x64xf32, #tile.layout<core = [32, 64], outer = [1, 1], registers = [64, 128, 16, 32], lanes = [256, 512, 1024, 1, 2], warps = [4, 8]>>
// CHECK: tile.store %[[C]]
func.func @transpose(%a: memref<32x64xf32>, %b: memref<64x32xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<32x64xf32> -> tensor<32x64xf32>
  tile.store %x, %b[%c0, %c0] along [1, 0] bounds [0, 0] : tensor<32x64xf32>, memref<64x32xf32>
  return
}

// -----

// The accumulator's fragment reaches the bias as a slice; operands are converted.
// CHECK-LABEL: func.func @product
// CHECK-DAG: #tile.layout<core = [64, 64], outer = [1, 1], registers = [1, 512, 16, 32, 2048], lanes = [2, 4, 64, 128, 256], warps = [1024, 8]>
// CHECK: %[[A:.*]] = tile.convert {{.*}} -> tensor<64x32xf32, #tile.layout<core = [64, 32], outer = [1, 1], registers = [256, 4, 8, 16, 1024], lanes = [1, 2, 32, 64, 128], warps = [512, 0]>>
// CHECK: %[[B:.*]] = tile.convert {{.*}} -> tensor<32x64xf32, #tile.layout<core = [32, 64], outer = [1, 1], registers = [256, 512, 1024, 16, 32], lanes = [64, 128, 1, 2, 4], warps = [0, 8]>>
// CHECK: tile.dot %[[A]], %[[B]]
// CHECK: tile.load %arg2{{.*}} -> tensor<64xf32, #tile.layout<core = [64], outer = [1], registers = [1, 16, 32], lanes = [2, 4, 0, 0, 0], warps = [0, 8]>>
// CHECK-NOT: tile.convert
func.func @product(%a: memref<64x32xf32>, %b: memref<32x64xf32>, %bias: memref<64xf32>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x32xf32> -> tensor<64x32xf32>
  %y = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<32x64xf32> -> tensor<32x64xf32>
  %d = tile.dot %x, %y, %zero tf32 : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
  %v = tile.load %bias[%c0] along [0] bounds [0] : memref<64xf32> -> tensor<64xf32>
  %w = tile.broadcast %v dims [1] : tensor<64xf32> -> tensor<64x64xf32>
  %r = arith.addf %d, %w : tensor<64x64xf32>
  tile.store %r, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// -----

// Rows that are combined stay in one warp: all four warps are along the rows. A
// row sum is laid out as the slice.
// CHECK-LABEL: func.func @row_sums
// CHECK: tile.dot {{.*}} warps = [1024, 2048]>>
// CHECK: tile.reduce
// CHECK: tile.store {{.*}} #tile.layout<core = [64], outer = [1], registers = [8], lanes = [0, 0, 1, 2, 4], warps = [16, 32]>
func.func @row_sums(%a: memref<64x32xbf16>, %b: memref<32x64xbf16>, %c: memref<64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x32xbf16> -> tensor<64x32xbf16>
  %y = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<32x64xbf16> -> tensor<32x64xbf16>
  %d = tile.dot %x, %y, %zero f32 : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
  %s = tile.reduce %d along 1 : tensor<64x64xf32> -> tensor<64xf32> {
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    tile.yield %t : f32
  }
  tile.store %s, %c[%c0] along [0] bounds [0] : tensor<64xf32>, memref<64xf32>
  return
}

// -----

// Float32 that must not be rounded multiplies by FMA.
// CHECK-LABEL: func.func @exact
// CHECK: tile.dot {{.*}} f32 by fma
func.func @exact(%a: memref<64x8xf32>, %b: memref<8x64xf32>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<64x8xf32> -> tensor<64x8xf32>
  %y = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<8x64xf32> -> tensor<8x64xf32>
  %d = tile.dot %x, %y, %zero f32 : tensor<64x8xf32>, tensor<8x64xf32> -> tensor<64x64xf32>
  tile.store %d, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// -----

// CHECK-LABEL: func.func @not_a_program
// CHECK: arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK-NOT: tile.layout
func.func @not_a_program() -> tensor<4xf32> {
  %x = arith.constant dense<0.0> : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

// What is reduced was loaded from a transposed memory, in a layout of its own: the
// sum is a slice of what the conversion gives.
// CHECK-LABEL: func.func @sum_of_a_converted_load
// CHECK: tile.load %arg1
// CHECK: %[[X:.*]] = tile.convert {{.*}} -> tensor<32x64xf32, #[[L:.*]]>
// CHECK: tile.reduce %[[X]] along 1 : tensor<32x64xf32, #[[L]]> -> tensor<32xf32, #
func.func @sum_of_a_converted_load(%a: memref<32x64xf32>, %b: memref<64x32xf32>, %c: memref<32x64xf32>, %d: memref<32xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<32x64xf32> -> tensor<32x64xf32>
  %y = tile.load %b[%c0, %c0] along [1, 0] bounds [0, 0] : memref<64x32xf32> -> tensor<32x64xf32>
  %s = tile.reduce %y along 1 : tensor<32x64xf32> -> tensor<32xf32> {
  ^bb0(%p: f32, %q: f32):
    %t = arith.addf %p, %q : f32
    tile.yield %t : f32
  }
  %z = arith.addf %x, %y : tensor<32x64xf32>
  tile.store %z, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<32x64xf32>, memref<32x64xf32>
  tile.store %s, %d[%c0] along [0] bounds [0] : tensor<32xf32>, memref<32xf32>
  return
}
