// RUN: nova-opt %s --nova-assign-tile-layouts --nova-pipeline-tiles --nova-lower-tiles-to-threads --split-input-file | FileCheck %s

// 1024 elements over 128 threads: two accesses of 16 bytes each way; a whole tile
// needs no predicate.
// CHECK-LABEL: llvm.func @whole
// CHECK-SAME: nova.shared_bytes = 0 : i64
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.reqntid = array<i32: 128, 1, 1>
// CHECK-COUNT-2: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-2: "st.global.v4.b32 [$0], {$1, $2, $3, $4};"
// CHECK: llvm.return
func.func @whole(%a: memref<2048xf32>, %b: memref<2048xf32>) attributes {tile.warps = 4 : i64} {
  %p = tile.point
  %c1024 = arith.constant 1024 : index
  %i = arith.muli %p, %c1024 : index
  %x = tile.load %a[%i] along [0] bounds [0] : memref<2048xf32> -> tensor<1024xf32>
  %y = arith.addf %x, %x : tensor<1024xf32>
  tile.store %y, %b[%i] along [0] bounds [0] : tensor<1024xf32>, memref<2048xf32>
  return
}

// -----

// Over an edge at an odd place accesses are single and predicated, and what is
// outside reads as the fill.
// CHECK-LABEL: llvm.func @edge
// CHECK: %[[FILL:.*]] = arith.constant 0xFF800000 : f32
// CHECK: "@$1 ld.global.b32 $0, [$2];", "=r,b,l,0"
// CHECK: "@$0 st.global.b32 [$1], $2;", "b,l,r"
func.func @edge(%a: memref<2047xf32>, %b: memref<2047xf32>) attributes {tile.warps = 4 : i64} {
  %p = tile.point
  %c1024 = arith.constant 1024 : index
  %low = arith.constant 0xFF800000 : f32
  %i = arith.muli %p, %c1024 : index
  %x = tile.load %a[%i] along [0] bounds [1] fill %low : f32 : memref<2047xf32> -> tensor<1024xf32>
  tile.store %x, %b[%i] along [0] bounds [1] : tensor<1024xf32>, memref<2047xf32>
  return
}

// -----

// A row of 256 over two warps: registers, lanes, then the warps through shared
// memory; copies are not written twice.
// CHECK-LABEL: llvm.func @row
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: llvm.store {{.*}} !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-2: llvm.load {{.*}} !llvm.ptr<3>
// CHECK: "@$0 st.global.b32
func.func @row(%a: memref<256xf32>, %b: memref<f32>) attributes {tile.warps = 2 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0] along [0] bounds [0] : memref<256xf32> -> tensor<256xf32>
  %s = tile.reduce %x along 0 : tensor<256xf32> -> tensor<f32> {
  ^bb0(%p: f32, %q: f32):
    %t = arith.maximumf %p, %q : f32
    tile.yield %t : f32
  }
  tile.store %s, %b[] along [] bounds [] : tensor<f32>, memref<f32>
  return
}

// -----

// CHECK-LABEL: llvm.func @products
// CHECK: nvvm.cp.async.shared.global {{.*}} 16
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.barrier
// CHECK: "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: "ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: nvvm.mma.sync {{.*}}#nvvm.shape<m = 16, n = 8, k = 16>
func.func @products(%a: memref<64x96xbf16>, %b: memref<96x64xbf16>, %c: memref<64x64xf32>) attributes {tile.warps = 4 : i64, tile.stages = 2 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %acc = scf.for %k = %c0 to %c96 step %c32 iter_args(%s = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%c0, %k] along [0, 1] bounds [0, 0] : memref<64x96xbf16> -> tensor<64x32xbf16>
    %y = tile.load %b[%k, %c0] along [0, 1] bounds [0, 0] : memref<96x64xbf16> -> tensor<32x64xbf16>
    %d = tile.dot %x, %y, %s f32 : tensor<64x32xbf16>, tensor<32x64xbf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %acc, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// -----

// Float32 as it is: FMA. TF32: rounded to nearest on the way in.
// CHECK-LABEL: llvm.func @fma
// CHECK: llvm.intr.fma
// CHECK-LABEL: llvm.func @tf32
// CHECK: "cvt.rna.tf32.f32 $0, $1;"
// CHECK: nvvm.mma.sync {{.*}}#nvvm.shape<m = 16, n = 8, k = 8>
func.func @fma(%a: memref<16x8xf32>, %b: memref<8x16xf32>, %c: memref<16x16xf32>) attributes {tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<16x8xf32> -> tensor<16x8xf32>
  %y = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<8x16xf32> -> tensor<8x16xf32>
  %d = tile.dot %x, %y, %zero f32 : tensor<16x8xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
  tile.store %d, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<16x16xf32>, memref<16x16xf32>
  return
}
func.func @tf32(%a: memref<16x8xf32>, %b: memref<8x16xf32>, %c: memref<16x16xf32>) attributes {tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<16x8xf32> -> tensor<16x8xf32>
  %y = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<8x16xf32> -> tensor<8x16xf32>
  %d = tile.dot %x, %y, %zero tf32 : tensor<16x8xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
  tile.store %d, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<16x16xf32>, memref<16x16xf32>
  return
}

// -----

// A tile may span any distance: what is no part of an access is added in 64 bits.
// CHECK-LABEL: llvm.func @far(
// CHECK: %[[FAR:.*]] = arith.constant 68719476736 : i64
// CHECK: llvm.getelementptr %{{.*}}[%[[FAR]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK-NEXT: llvm.load
// CHECK: %[[TO:.*]] = arith.constant 68719476736 : i64
// CHECK: llvm.getelementptr %{{.*}}[%[[TO]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK: st.global
func.func @far(%a: memref<64xf32, strided<[536870912]>>, %b: memref<64xf32, strided<[536870912]>>) attributes {tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0] along [0] bounds [0] : memref<64xf32, strided<[536870912]>> -> tensor<64xf32>
  tile.store %x, %b[%c0] along [0] bounds [0] : tensor<64xf32>, memref<64xf32, strided<[536870912]>>
  return
}

// -----

// Copies behind the program's back, too: rows that are a GiB apart.
// CHECK-LABEL: llvm.func @far_copy
// CHECK: nvvm.cp.async.shared.global
// CHECK: %[[ROWS:.*]] = arith.constant 8589934592 : i64
// CHECK: %[[FROM:.*]] = llvm.getelementptr %{{.*}}[%[[ROWS]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %[[FROM]]
func.func @far_copy(%a: memref<16x16xf32, strided<[268435456, 1]>>) attributes {tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %b = tile.alloc : !tile.buffer<1, [16, 16], f32, 1, 1>
  %t = tile.async_load %a[%c0, %c0] into %b[%c0] along [0, 1] bounds [0, 0] : memref<16x16xf32, strided<[268435456, 1]>>, !tile.buffer<1, [16, 16], f32, 1, 1>
  return
}

// -----

// Members: one table of pointers is all the parameters. Whose a block is: comparisons
// with constants; among members of one size a quotient. Pointers are loads from the
// table, where every member has them at one distance; the extent is a choice between
// constants, and where it is a multiple of four, accesses are wide.
// CHECK-LABEL: llvm.func @members(%arg0: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<7 x ptr<1>>, nvvm.grid_constant})
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr<1>
// CHECK: arith.cmpi ult, %[[BLOCK:.*]], %c4_i32
// CHECK: scf.if
// CHECK: arith.divui
// CHECK-NOT: scf.if
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr<1>
// CHECK: scf.if
// CHECK-DAG: arith.constant 4096 : i64
// CHECK-DAG: arith.constant 1000 : i64
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr<1>
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-COUNT-2: st.global.v4.b32
func.func @members(%s: memref<f32>, %a: memref<4096xf32>, %b: memref<1000xf32>, %c: memref<1000xf32>, %x: memref<4096xf32>, %y: memref<1000xf32>, %z: memref<1000xf32>)
    attributes {tile.grid = 6 : i64, tile.warps = 4 : i64} {
  %p = tile.point
  %c1024 = arith.constant 1024 : index
  %member, %local = tile.member %p starts [0, 4, 5]
  %from = tile.select %member of %a, %b, %c : memref<4096xf32>, memref<1000xf32>, memref<1000xf32> -> memref<?xf32, strided<[1]>>
  %to = tile.select %member of %x, %y, %z : memref<4096xf32>, memref<1000xf32>, memref<1000xf32> -> memref<?xf32, strided<[1]>>
  %i = arith.muli %local, %c1024 : index
  %f = tile.load %s[] along [] bounds [] : memref<f32> -> tensor<f32>
  %g = tile.scalar %f : tensor<f32> -> f32
  %h = tile.splat %g : f32 -> tensor<1024xf32>
  %t = tile.load %from[%i] along [0] bounds [1] : memref<?xf32, strided<[1]>> -> tensor<1024xf32>
  %u = arith.addf %t, %h : tensor<1024xf32>
  tile.store %u, %to[%i] along [0] bounds [1] : tensor<1024xf32>, memref<?xf32, strided<[1]>>
  return
}

// -----

// LLVM may join loads up to the alignment of an argument, the last ones with what lies
// behind the memory: it is told no more than divides that.
// CHECK-LABEL: llvm.func @three
// CHECK-SAME: %arg0: !llvm.ptr<1> {llvm.align = 4 : i64}, %arg1: !llvm.ptr<1> {llvm.align = 16 : i64}
func.func @three(%a: memref<3xf32>, %b: memref<8xf32>) attributes {tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0] along [] bounds [] : memref<3xf32> -> tensor<f32>
  tile.store %x, %b[%c0] along [] bounds [] : tensor<f32>, memref<8xf32>
  return
}
