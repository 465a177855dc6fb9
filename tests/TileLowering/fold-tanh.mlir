// RUN: nova-opt %s --nova-fold-tanh --split-input-file | FileCheck %s

// GELU's gradient: both from one exponential and one quotient.
// CHECK-LABEL: func.func @gelu
// CHECK: %[[X:.*]] = tile.load %arg0
// CHECK-NOT: math.tanh
// CHECK: %[[SCALED:.*]] = arith.mulf %[[X]], %{{.*}}
// CHECK: %[[E:.*]] = math.exp2 %[[SCALED]] fastmath<afn>
// CHECK: %[[SUM:.*]] = arith.addf %[[ONE:.*]], %[[E]]
// CHECK: %[[S:.*]] = arith.divf %[[ONE]], %[[SUM]] fastmath<arcp>
// CHECK: %[[TWICE:.*]] = arith.addf %[[S]], %[[S]]
// CHECK: %[[REST:.*]] = arith.subf %[[ONE]], %[[S]]
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[S]], %[[REST]]
// CHECK: %[[FOUR:.*]] = arith.mulf %[[PRODUCT]], %{{.*}}
// CHECK: arith.mulf %[[TWICE]], %[[FOUR]]
func.func @gelu(%a: memref<8x32xf32>, %c: memref<8x32xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<8x32xf32> -> tensor<8x32xf32>
  %one = arith.constant dense<1.0> : tensor<8x32xf32>
  %t = math.tanh %x : tensor<8x32xf32>
  %sum = arith.addf %t, %one : tensor<8x32xf32>
  %square = arith.mulf %t, %t : tensor<8x32xf32>
  %slope = arith.subf %one, %square : tensor<8x32xf32>
  %y = arith.mulf %sum, %slope : tensor<8x32xf32>
  tile.store %y, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<8x32xf32>, memref<8x32xf32>
  return
}

// -----

// Somebody else needs the tangent: near zero a sum with one would leave nothing of it.
// CHECK-LABEL: func.func @used
// CHECK: math.tanh
// CHECK-NOT: exp2
func.func @used(%a: memref<8x32xf32>, %c: memref<8x32xf32>) attributes {tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] along [0, 1] bounds [0, 0] : memref<8x32xf32> -> tensor<8x32xf32>
  %one = arith.constant dense<1.0> : tensor<8x32xf32>
  %t = math.tanh %x : tensor<8x32xf32>
  %sum = arith.addf %t, %one : tensor<8x32xf32>
  %y = arith.mulf %sum, %t : tensor<8x32xf32>
  tile.store %y, %c[%c0, %c0] along [0, 1] bounds [0, 0] : tensor<8x32xf32>, memref<8x32xf32>
  return
}
