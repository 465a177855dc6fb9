// RUN: nova-opt %s --nova-order-points --split-input-file | FileCheck %s

// Of every four points the last has the longest loop: blocks take the last of each four
// first.
// CHECK-LABEL: func.func @rising
// CHECK: %[[BLOCK:.*]] = tile.point
// CHECK-DAG: %[[REPEAT:.*]] = arith.remui %[[BLOCK]], %{{.*}} : index
// CHECK-DAG: %[[PLACE:.*]] = arith.divui %[[BLOCK]], %{{.*}} : index
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %[[PLACE]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[REPEAT]], %{{.*}}
// CHECK: %[[POINT:.*]] = arith.addi %[[FIRST]], %[[LAST]]
// CHECK: arith.remui %[[POINT]]
func.func @rising(%a: memref<8x64xf32>, %o: memref<8x64xf32>) attributes {tile.grid = 8 : i64, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %p = tile.point
  %q = arith.remui %p, %c4 : index
  %end = arith.addi %q, %c1 : index
  %sum = scf.for %i = %c0 to %end step %c1 iter_args(%s = %zero) -> tensor<64xf32> {
    %x = tile.load %a[%i, %c0] along [1] bounds [0] : memref<8x64xf32> -> tensor<64xf32>
    %d = arith.addf %s, %x : tensor<64xf32>
    scf.yield %d : tensor<64xf32>
  }
  tile.store %sum, %o[%p, %c0] along [1] bounds [0] : tensor<64xf32>, memref<8x64xf32>
  return
}

// -----

// All alike: nothing to order.
// CHECK-LABEL: func.func @alike
// CHECK: tile.point
// CHECK-NOT: arith.remui
// CHECK: return
func.func @alike(%a: memref<8x64xf32>, %o: memref<8x64xf32>) attributes {tile.grid = 8 : i64, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %p = tile.point
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %zero) -> tensor<64xf32> {
    %x = tile.load %a[%i, %c0] along [1] bounds [0] : memref<8x64xf32> -> tensor<64xf32>
    %d = arith.addf %s, %x : tensor<64xf32>
    scf.yield %d : tensor<64xf32>
  }
  tile.store %sum, %o[%p, %c0] along [1] bounds [0] : tensor<64xf32>, memref<8x64xf32>
  return
}
