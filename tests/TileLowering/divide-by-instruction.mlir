// RUN: nova-opt %s --nova-divide-by-instruction | FileCheck %s

// CHECK-LABEL: llvm.func @f32
// CHECK: %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%arg0, %arg1) : (f32, f32) -> f32
// CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%[[Q]]) : (f32) -> f32
// CHECK: llvm.return %[[R]]
llvm.func @f32(%a: f32, %b: f32) -> f32 {
  %q = arith.divf %a, %b : f32
  %r = math.sqrt %q : f32
  llvm.return %r : f32
}

// Other types have no such instructions.
// CHECK-LABEL: llvm.func @f64
// CHECK: arith.divf
// CHECK: math.sqrt
llvm.func @f64(%a: f64, %b: f64) -> f64 {
  %q = arith.divf %a, %b : f64
  %r = math.sqrt %q : f64
  llvm.return %r : f64
}

// Nor have tiles: they are divided by a lane's elements once these are known.
// CHECK-LABEL: func.func @tiles
// CHECK: arith.divf {{.*}} : tensor<8x32xf32>
// CHECK: math.sqrt {{.*}} : tensor<8x32xf32>
func.func @tiles(%a: memref<8x32xf32>, %b: memref<8x32xf32>, %c: memref<8x32xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<8x32xf32> -> tensor<8x32xf32>
  %y = tile.load %b[%c0, %c0] along [0, 1] bounds [0, 0] : memref<8x32xf32> -> tensor<8x32xf32>
  %q = arith.divf %x, %y : tensor<8x32xf32>
  %r = math.sqrt %q : tensor<8x32xf32>
  tile.store %r, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<8x32xf32>, memref<8x32xf32>
  return
}
