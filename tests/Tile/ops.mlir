// What is printed is read back the same, as text and as bytecode.
// RUN: nova-opt %s | nova-opt | FileCheck %s
// RUN: nova-opt %s --emit-bytecode | nova-opt | FileCheck %s
// RUN: nova-opt %s --mlir-print-op-generic | nova-opt | FileCheck %s

#rows = #tile.layout<core = [4, 32], outer = [1, 3], registers = [1, 2], lanes = [4, 8, 16, 32, 64], warps = [0]>
#columns = #tile.layout<core = [4, 32], outer = [1, 3], registers = [32, 64], lanes = [1, 2, 4, 8, 16], warps = [0]>
#row = #tile.layout<core = [32], outer = [3], registers = [1, 2], lanes = [4, 8, 16, 0, 0], warps = [0]>
#scalar = #tile.layout<core = [], outer = [], registers = [], lanes = [0, 0, 0, 0, 0], warps = []>

// CHECK-LABEL: func @values
func.func @values(%x: f32, %t: tensor<4x8xf32>, %m: tensor<4x8xi1>, %s: tensor<f32>) attributes {nova.kernel, tile.warps = 4 : i64, tile.grid = 9 : i64} {
  // CHECK: tile.point
  %p = tile.point
  // CHECK: tile.range %{{.*}} : tensor<8xindex>
  %r = tile.range %p : tensor<8xindex>
  // CHECK: tile.splat %{{.*}} : f32 -> tensor<4x8xf32>
  %a = tile.splat %x : f32 -> tensor<4x8xf32>
  // CHECK: tile.broadcast %{{.*}} dims [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %b = tile.broadcast %t dims [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: tile.broadcast %{{.*}} dims [] : tensor<f32> -> tensor<2xf32>
  %c = tile.broadcast %s dims [] : tensor<f32> -> tensor<2xf32>
  // CHECK: tile.any %{{.*}} : tensor<4x8xi1>
  %d = tile.any %m : tensor<4x8xi1>
  // CHECK: tile.scan %{{.*}} along 1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %e = tile.scan %t along 1 : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: tile.scalar %{{.*}} : tensor<f32> -> f32
  %f = tile.scalar %s : tensor<f32> -> f32
  return
}

// CHECK-LABEL: func @members
func.func @members(%a: memref<4x8xf32>, %b: memref<6x8xf32>, %s: memref<4x8xf32, strided<[8, 1]>>) {
  %p = tile.point
  // CHECK: %[[M:.*]], %{{.*}} = tile.member %0 starts [0, 2]
  %member, %local = tile.member %p starts [0, 2]
  // CHECK: tile.select %[[M]] of %arg0, %arg1 : memref<4x8xf32>, memref<6x8xf32> -> memref<?x8xf32, strided<[8, 1]>>
  %m = tile.select %member of %a, %b : memref<4x8xf32>, memref<6x8xf32> -> memref<?x8xf32, strided<[8, 1]>>
  // CHECK: tile.select %[[M]] of %arg0, %arg2 : memref<4x8xf32>, memref<4x8xf32, strided<[8, 1]>> -> memref<4x8xf32, strided<[8, 1]>>
  %n = tile.select %member of %a, %s : memref<4x8xf32>, memref<4x8xf32, strided<[8, 1]>> -> memref<4x8xf32, strided<[8, 1]>>
  %x = tile.load %m[%local, %p] along [1] bounds [0] : memref<?x8xf32, strided<[8, 1]>> -> tensor<8xf32>
  return
}

// CHECK-LABEL: func @reductions
func.func @reductions(%t: tensor<4x8xf32>, %i: tensor<4x8xindex>) {
  // CHECK: tile.reduce %arg0 along 1 : tensor<4x8xf32> -> tensor<4xf32> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK: tile.yield %{{.*}} : f32
  %a = tile.reduce %t along 1 : tensor<4x8xf32> -> tensor<4xf32> {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    tile.yield %s : f32
  }
  // CHECK: tile.reduce %arg0, %arg1 along 0 : tensor<4x8xf32>, tensor<4x8xindex> -> tensor<8xf32>, tensor<8xindex> {
  // CHECK: tile.yield %{{.*}}, %{{.*}} : f32, index
  %b:2 = tile.reduce %t, %i along 0 : tensor<4x8xf32>, tensor<4x8xindex> -> tensor<8xf32>, tensor<8xindex> {
  ^bb0(%x: f32, %ix: index, %y: f32, %iy: index):
    %g = arith.cmpf ogt, %y, %x : f32
    %v = arith.select %g, %y, %x : f32
    %at = arith.select %g, %iy, %ix : index
    tile.yield %v, %at : f32, index
  }
  return
}

// CHECK-LABEL: func @products
func.func @products(%a: tensor<16x8xf32>, %b: tensor<8x32xf32>, %c: tensor<16x32xf32>) {
  // CHECK: tile.dot %arg0, %arg1, %arg2 f32 : tensor<16x8xf32>, tensor<8x32xf32> -> tensor<16x32xf32>
  %x = tile.dot %a, %b, %c f32 : tensor<16x8xf32>, tensor<8x32xf32> -> tensor<16x32xf32>
  // CHECK: tile.dot %{{.*}} tf32 :
  %y = tile.dot %a, %b, %x tf32 : tensor<16x8xf32>, tensor<8x32xf32> -> tensor<16x32xf32>
  // CHECK: tile.dot %{{.*}} bf16 :
  %z = tile.dot %a, %b, %y bf16 : tensor<16x8xf32>, tensor<8x32xf32> -> tensor<16x32xf32>
  return
}

// CHECK-LABEL: func @memory
func.func @memory(%m: memref<2x120x48xf32, strided<[0, 48, 1]>>, %i: index, %x: f32, %at: tensor<16xindex>, %where: tensor<16xi1>) {
  // CHECK: tile.load %arg0[%arg1, %arg1, %arg1] along [2, 1] bounds [0, 1] : memref<2x120x48xf32, strided<[0, 48, 1]>> -> tensor<16x32xf32>
  %a = tile.load %m[%i, %i, %i] along [2, 1] bounds [0, 1] : memref<2x120x48xf32, strided<[0, 48, 1]>> -> tensor<16x32xf32>
  // CHECK: tile.load %{{.*}} along [1] bounds [2] fill %arg2 : f32 : memref<
  %b = tile.load %m[%i, %i, %i] along [1] bounds [2] fill %x : f32 : memref<2x120x48xf32, strided<[0, 48, 1]>> -> tensor<16xf32>
  // CHECK: tile.load %{{.*}} along [] bounds [] : memref<{{.*}} -> tensor<f32>
  %c = tile.load %m[%i, %i, %i] along [] bounds [] : memref<2x120x48xf32, strided<[0, 48, 1]>> -> tensor<f32>
  // CHECK: tile.store %{{.*}}, %arg0[%arg1, %arg1, %arg1] along [1] bounds [1] : tensor<16xf32>, memref<2x120x48xf32, strided<[0, 48, 1]>>
  tile.store %b, %m[%i, %i, %i] along [1] bounds [1] : tensor<16xf32>, memref<2x120x48xf32, strided<[0, 48, 1]>>
  // CHECK: tile.gather %arg0[%arg1, %arg3, %arg1 : index, tensor<16xindex>, index] : memref<{{.*}} -> tensor<16xf32>
  %d = tile.gather %m[%i, %at, %i : index, tensor<16xindex>, index] : memref<2x120x48xf32, strided<[0, 48, 1]>> -> tensor<16xf32>
  // CHECK: tile.gather %{{.*}} mask %arg4 : tensor<16xi1> : memref<
  %e = tile.gather %m[%i, %at, %i : index, tensor<16xindex>, index] mask %where : tensor<16xi1> : memref<2x120x48xf32, strided<[0, 48, 1]>> -> tensor<16xf32>
  return
}

// CHECK-LABEL: func @layouts
// CHECK-SAME: tensor<4x96xf32, [[ROWS:#tile.layout<core = \[4, 32\], outer = \[1, 3\], registers = \[1, 2\], lanes = \[4, 8, 16, 32, 64\], warps = \[0\]>]]>
// CHECK-SAME: tensor<f32, [[SCALAR:#tile.layout<core = \[\], outer = \[\], registers = \[\], lanes = \[0, 0, 0, 0, 0\], warps = \[\]>]]>
func.func @layouts(%t: tensor<4x96xf32, #rows>, %s: tensor<f32, #scalar>) {
  // CHECK: tile.convert %arg0 : tensor<4x96xf32, [[ROWS]]> -> tensor<4x96xf32, [[COLUMNS:#tile.layout<core = \[4, 32\], outer = \[1, 3\], registers = \[32, 64\], lanes = \[1, 2, 4, 8, 16\], warps = \[0\]>]]>
  %a = tile.convert %t : tensor<4x96xf32, #rows> -> tensor<4x96xf32, #columns>
  // CHECK: arith.addf %{{.*}} : tensor<4x96xf32, [[COLUMNS]]>
  %b = arith.addf %a, %a : tensor<4x96xf32, #columns>
  // CHECK: tile.reduce %arg0 along 0 : tensor<4x96xf32, [[ROWS]]> -> tensor<96xf32, #tile.layout<core = [32], outer = [3], registers = [1, 2], lanes = [4, 8, 16, 0, 0], warps = [0]>> {
  %c = tile.reduce %t along 0 : tensor<4x96xf32, #rows> -> tensor<96xf32, #row> {
  ^bb0(%x: f32, %y: f32):
    %sum = arith.addf %x, %y : f32
    tile.yield %sum : f32
  }
  // CHECK: tile.scalar %arg1 : tensor<f32, [[SCALAR]]> -> f32
  %d = tile.scalar %s : tensor<f32, #scalar> -> f32
  return
}

// CHECK-LABEL: func @asynchronous
func.func @asynchronous(%m: memref<120x48xbf16>, %i: index, %more: i1) {
  // CHECK: %[[RING:.*]] = tile.alloc : <3, [64, 32], bf16, 2, 4>
  %ring = tile.alloc : !tile.buffer<3, [64, 32], bf16, 2, 4>
  // CHECK: tile.async_load %arg0[%arg1, %arg1] into %[[RING]][%arg1] along [0, 1] bounds [1, 0] : memref<120x48xbf16>, <3, [64, 32], bf16, 2, 4>
  %t = tile.async_load %m[%i, %i] into %ring[%i] along [0, 1] bounds [1, 0] : memref<120x48xbf16>, !tile.buffer<3, [64, 32], bf16, 2, 4>
  // CHECK: tile.async_load %{{.*}} when %arg2 along
  %u = tile.async_load %m[%i, %i] into %ring[%i] when %more along [0, 1] bounds [1, 0] : memref<120x48xbf16>, !tile.buffer<3, [64, 32], bf16, 2, 4>
  // CHECK: tile.commit[%{{.*}}, %{{.*}}]{{$}}
  %g = tile.commit[%t, %u]
  // CHECK: tile.commit[]{{$}}
  %empty = tile.commit[]
  // CHECK: %[[WAIT:.*]] = tile.wait 1
  %w = tile.wait 1
  // CHECK: tile.local_load %[[RING]][%arg1] after %[[WAIT]] dims [1, 0] : <3, [64, 32], bf16, 2, 4> -> tensor<32x64xbf16>
  %v = tile.local_load %ring[%i] after %w dims [1, 0] : !tile.buffer<3, [64, 32], bf16, 2, 4> -> tensor<32x64xbf16>
  return
}
