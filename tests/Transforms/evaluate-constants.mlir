// RUN: nova-opt %s --nova-evaluate-constants | FileCheck %s

//===----------------------------------------------------------------------===//
// What becomes a constant, and what does not
//===----------------------------------------------------------------------===//

// Only the value that is read from outside is written down.
// CHECK-LABEL: func @chain
// CHECK-NEXT: %[[C:.*]] = nova.constant dense<[false, true, true, true]> : tensor<4xi1>
// CHECK-NEXT: nova.select %[[C]], %arg0, %arg1
func.func @chain(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<4xi64>
  %one = nova.constant dense<1> : tensor<i64>
  %j = nova.mul %i, %i : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %c = nova.compare %j, %one {predicate = #nova<predicate ge>} : (tensor<4xi64>, tensor<i64>) -> tensor<4xi1>
  %r = nova.select %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// Positions and views of them cost nothing as they are.
// CHECK-LABEL: func @iota_stays
// CHECK-NEXT: %[[I:.*]] = nova.iota
// CHECK-NEXT: %[[R:.*]] = nova.reshape %[[I]]
// CHECK-NEXT: nova.compare %[[R]], %arg0
func.func @iota_stays(%x: tensor<3x1xi64>) -> tensor<3x4xi1> {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<4xi64>
  %r = nova.reshape %i : (tensor<4xi64>) -> tensor<1x4xi64>
  %c = nova.compare %r, %x {predicate = #nova<predicate eq>} : (tensor<1x4xi64>, tensor<3x1xi64>) -> tensor<3x4xi1>
  return %c : tensor<3x4xi1>
}

// What only repeats is kept once, whatever the path it came by.
// CHECK-LABEL: func @repeated
// CHECK-NEXT: %[[C:.*]] = nova.constant dense<{{\[\[\[}}true, false, false], [true, true, false]]]> : tensor<1x2x3xi1>
// CHECK-NEXT: %[[B:.*]] = nova.broadcast %[[C]] : (tensor<1x2x3xi1>) -> tensor<5x2x3xi1>
// CHECK-NEXT: return %[[B]]
func.func @repeated() -> tensor<5x2x3xi1> {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<2xi64>
  %j = nova.iota 0 : i64, 1 : i64 : tensor<3xi64>
  %i1 = nova.reshape %i : (tensor<2xi64>) -> tensor<1x2x1xi64>
  %i2 = nova.broadcast %i1 : (tensor<1x2x1xi64>) -> tensor<5x2x1xi64>
  %c = nova.compare %j, %i2 {predicate = #nova<predicate le>} : (tensor<3xi64>, tensor<5x2x1xi64>) -> tensor<5x2x3xi1>
  return %c : tensor<5x2x3xi1>
}

// CHECK-LABEL: func @splat
// CHECK-NEXT: %[[C:.*]] = nova.constant dense<5> : tensor<100x100xi64>
// CHECK-NEXT: return %[[C]]
func.func @splat() -> tensor<100x100xi64> {
  %a = nova.constant dense<2> : tensor<100x1xi64>
  %b = nova.constant dense<3> : tensor<1x100xi64>
  %c = nova.add %a, %b : (tensor<100x1xi64>, tensor<1x100xi64>) -> tensor<100x100xi64>
  return %c : tensor<100x100xi64>
}

// A slice throws elements away: its result is stored, not its input.
// CHECK-LABEL: func @slice
// CHECK-NEXT: %[[C:.*]] = nova.constant dense<[3, 5]> : tensor<2xi64>
// CHECK-NEXT: return %[[C]]
func.func @slice() -> tensor<2xi64> {
  %i = nova.iota 1 : i64, 1 : i64 : tensor<8xi64>
  %s = nova.slice %i {offsets = array<i64: 2>, sizes = array<i64: 2>, strides = array<i64: 2>} : (tensor<8xi64>) -> tensor<2xi64>
  return %s : tensor<2xi64>
}

// Transcendental functions are the kernels': their bits must not depend on
// whether an operand is constant. Float reductions likewise.
// CHECK-LABEL: func @approximations_stay
// CHECK: nova.exp
// CHECK: nova.sum
func.func @approximations_stay() -> (tensor<2xf32>, tensor<f32>) {
  %c = nova.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = nova.exp %c : (tensor<2xf32>) -> tensor<2xf32>
  %s = nova.sum %c {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  return %e, %s : tensor<2xf32>, tensor<f32>
}

//===----------------------------------------------------------------------===//
// Integer and boolean arithmetic
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @division
// CHECK-DAG: %[[F:.*]] = nova.constant dense<[-4, -4, 3, 3, 0, -9223372036854775808]> : tensor<6xi64>
// CHECK-DAG: %[[T:.*]] = nova.constant dense<[-3, -3, 3, 3, 0, -9223372036854775808]> : tensor<6xi64>
// CHECK-DAG: %[[R:.*]] = nova.constant dense<[1, -1, 1, -1, 0, 0]> : tensor<6xi64>
// CHECK: return %[[F]], %[[T]], %[[R]]
func.func @division() -> (tensor<6xi64>, tensor<6xi64>, tensor<6xi64>) {
  %a = nova.constant dense<[-7, 7, 7, -7, 5, -9223372036854775808]> : tensor<6xi64>
  %b = nova.constant dense<[2, -2, 2, -2, 0, -1]> : tensor<6xi64>
  %f = nova.floor_div %a, %b : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  %t = nova.trunc_div %a, %b : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  %r = nova.remainder %a, %b : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  return %f, %t, %r : tensor<6xi64>, tensor<6xi64>, tensor<6xi64>
}

// CHECK-LABEL: func @wraps
// CHECK-DAG: %[[A:.*]] = nova.constant dense<[-128, 44]> : tensor<2xi8>
// CHECK-DAG: %[[U:.*]] = nova.constant dense<[0, 44]> : tensor<2xui8>
// CHECK-DAG: %[[P:.*]] = nova.constant dense<[-8, 0, 1, -1]> : tensor<4xi32>
// CHECK-DAG: %[[N:.*]] = nova.constant dense<[-1, -128]> : tensor<2xi8>
// CHECK: return %[[A]], %[[U]], %[[P]], %[[N]]
func.func @wraps() -> (tensor<2xi8>, tensor<2xui8>, tensor<4xi32>, tensor<2xi8>) {
  %a = nova.constant dense<[127, 100]> : tensor<2xi8>
  %b = nova.constant dense<[1, -56]> : tensor<2xi8>
  %0 = nova.add %a, %b : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %ua = nova.constant dense<[255, 200]> : tensor<2xui8>
  %ub = nova.constant dense<[1, 100]> : tensor<2xui8>
  %1 = nova.add %ua, %ub : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %base = nova.constant dense<[-2, 2, -1, -1]> : tensor<4xi32>
  %power = nova.constant dense<[3, -1, -2, -3]> : tensor<4xi32>
  %2 = nova.pow %base, %power : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %n = nova.constant dense<[1, -128]> : tensor<2xi8>
  %3 = nova.neg %n : (tensor<2xi8>) -> tensor<2xi8>
  return %0, %1, %2, %3 : tensor<2xi8>, tensor<2xui8>, tensor<4xi32>, tensor<2xi8>
}

// CHECK-LABEL: func @bools
// CHECK-DAG: %[[ADD:.*]] = nova.constant dense<[false, true, true, true]> : tensor<4xi1>
// CHECK-DAG: %[[MUL:.*]] = nova.constant dense<[false, false, false, true]> : tensor<4xi1>
// CHECK-DAG: %[[NOT:.*]] = nova.constant dense<[true, true, false, false]> : tensor<4xi1>
// CHECK-DAG: %[[BITS:.*]] = nova.constant dense<[-1, -8]> : tensor<2xi64>
// CHECK: return %[[ADD]], %[[MUL]], %[[NOT]], %[[BITS]]
func.func @bools() -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<2xi64>) {
  %a = nova.constant dense<[false, false, true, true]> : tensor<4xi1>
  %b = nova.constant dense<[false, true, false, true]> : tensor<4xi1>
  %0 = nova.add %a, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %1 = nova.mul %a, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %2 = nova.not %a : (tensor<4xi1>) -> tensor<4xi1>
  %i = nova.constant dense<[0, 7]> : tensor<2xi64>
  %3 = nova.not %i : (tensor<2xi64>) -> tensor<2xi64>
  return %0, %1, %2, %3 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<2xi64>
}

//===----------------------------------------------------------------------===//
// Floats and casts
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @floats
// CHECK-DAG: %[[MAX:.*]] = nova.constant dense<[1.000000e+00, 0x7FC00000, 0.000000e+00]> : tensor<3xf32>
// CHECK-DAG: %[[LT:.*]] = nova.constant dense<[true, false, false]> : tensor<3xi1>
// CHECK-DAG: %[[NE:.*]] = nova.constant dense<[true, true, false]> : tensor<3xi1>
// CHECK-DAG: %[[SUM:.*]] = nova.constant dense<0x4B800000> : tensor<f32>
// CHECK: return %[[MAX]], %[[LT]], %[[NE]], %[[SUM]]
func.func @floats() -> (tensor<3xf32>, tensor<3xi1>, tensor<3xi1>, tensor<f32>) {
  %a = nova.constant dense<[0.0, 0x7FC00000, -0.0]> : tensor<3xf32>
  %b = nova.constant dense<[1.0, 1.0, 0.0]> : tensor<3xf32>
  %0 = nova.maximum %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = nova.compare %a, %b {predicate = #nova<predicate lt>} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %2 = nova.compare %a, %b {predicate = #nova<predicate ne>} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %big = nova.constant dense<16777216.0> : tensor<f32>
  %one = nova.constant dense<1.0> : tensor<f32>
  %3 = nova.add %big, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0, %1, %2, %3 : tensor<3xf32>, tensor<3xi1>, tensor<3xi1>, tensor<f32>
}

// CHECK-LABEL: func @casts
// CHECK-DAG: %[[I:.*]] = nova.constant dense<[-1, 1, 0]> : tensor<3xi32>
// CHECK-DAG: %[[B:.*]] = nova.constant dense<[true, true, false]> : tensor<3xi1>
// CHECK-DAG: %[[H:.*]] = nova.constant dense<[1.000000e+00, 1.015630e+00]> : tensor<2xbf16>
// CHECK-DAG: %[[N:.*]] = nova.constant dense<[-1, 44]> : tensor<2xi8>
// CHECK-DAG: %[[F:.*]] = nova.constant dense<0x4B800000> : tensor<f32>
// CHECK: return %[[I]], %[[B]], %[[H]], %[[N]]
func.func @casts() -> (tensor<3xi32>, tensor<3xi1>, tensor<2xbf16>, tensor<2xi8>, tensor<f32>) {
  %a = nova.constant dense<[-1.9, 1.9, 0.0]> : tensor<3xf32>
  %0 = nova.cast %a : (tensor<3xf32>) -> tensor<3xi32>
  %1 = nova.cast %a : (tensor<3xf32>) -> tensor<3xi1>
  // Halfway between two bf16: to even; above halfway: up.
  %h = nova.constant dense<[1.00390625, 1.01171875]> : tensor<2xf32>
  %2 = nova.cast %h : (tensor<2xf32>) -> tensor<2xbf16>
  %l = nova.constant dense<[-1, 300]> : tensor<2xi64>
  %3 = nova.cast %l : (tensor<2xi64>) -> tensor<2xi8>
  %t = nova.constant dense<16777217> : tensor<i64>
  %4 = nova.cast %t : (tensor<i64>) -> tensor<f32>
  return %0, %1, %2, %3, %4 : tensor<3xi32>, tensor<3xi1>, tensor<2xbf16>, tensor<2xi8>, tensor<f32>
}

// No integer is NaN or 1e30: the cast is left as it is.
// CHECK-LABEL: func @cast_outside
// CHECK-COUNT-2: nova.cast
func.func @cast_outside() -> (tensor<i32>, tensor<i64>) {
  %a = nova.constant dense<0x7FC00000> : tensor<f32>
  %0 = nova.cast %a : (tensor<f32>) -> tensor<i32>
  %b = nova.constant dense<1.0e30> : tensor<f32>
  %1 = nova.cast %b : (tensor<f32>) -> tensor<i64>
  return %0, %1 : tensor<i32>, tensor<i64>
}

//===----------------------------------------------------------------------===//
// Rearranging, look-ups, scans, reductions
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @rearranging
// CHECK-DAG: %[[CAT:.*]] = nova.constant dense<{{\[\[}}9, 0, 1, 2], [9, 3, 4, 5]]> : tensor<2x4xi64>
// CHECK-DAG: %[[PAD:.*]] = nova.constant dense<{{\[\[}}7, 7, 7, 7], [7, 0, 1, 2], [7, 3, 4, 5]]> : tensor<3x4xi64>
// CHECK-DAG: %[[FLAT:.*]] = nova.constant dense<[0, 3, 1, 4, 2, 5]> : tensor<6xi64>
// CHECK: return %[[CAT]], %[[PAD]], %[[FLAT]]
func.func @rearranging() -> (tensor<2x4xi64>, tensor<3x4xi64>, tensor<6xi64>) {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<6xi64>
  %x = nova.reshape %i : (tensor<6xi64>) -> tensor<2x3xi64>
  %nine = nova.constant dense<9> : tensor<2x1xi64>
  %0 = nova.concat %nine, %x {dim = 1 : i64} : (tensor<2x1xi64>, tensor<2x3xi64>) -> tensor<2x4xi64>
  %1 = nova.pad %x {low = array<i64: 1, 1>, high = array<i64: 0, 0>, value = 7 : i64} : (tensor<2x3xi64>) -> tensor<3x4xi64>
  %t = nova.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xi64>) -> tensor<3x2xi64>
  %2 = nova.reshape %t : (tensor<3x2xi64>) -> tensor<6xi64>
  return %0, %1, %2 : tensor<2x4xi64>, tensor<3x4xi64>, tensor<6xi64>
}

// Negative indices count from the end in nova.index (in nova.gather they are
// outside); outside is NaN, 0 for integers.
// CHECK-LABEL: func @lookups
// CHECK-DAG: %[[I:.*]] = nova.constant dense<[12, 11, 0, 0]> : tensor<4xi64>
// CHECK-DAG: %[[F:.*]] = nova.constant dense<[3.000000e+00, 2.000000e+00, 0x7FC00000, 0x7FC00000]> : tensor<4xf32>
// CHECK-DAG: %[[G:.*]] = nova.constant dense<{{\[\[}}0, 0], [4, 0]]> : tensor<2x2xi64>
// CHECK-DAG: %[[P:.*]] = nova.constant dense<[1, 5]> : tensor<2xi64>
// CHECK: return %[[I]], %[[F]], %[[G]], %[[P]]
func.func @lookups() -> (tensor<4xi64>, tensor<4xf32>, tensor<2x2xi64>, tensor<2xi64>) {
  %x = nova.constant dense<[10, 11, 12]> : tensor<3xi64>
  %f = nova.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %at = nova.constant dense<[-1, 1, 3, -4]> : tensor<4xi64>
  %0 = nova.index %x, %at {dims = array<i64: 0>} : (tensor<3xi64>, tensor<4xi64>) -> tensor<4xi64>
  %1 = nova.index %f, %at {dims = array<i64: 0>} : (tensor<3xf32>, tensor<4xi64>) -> tensor<4xf32>
  %i = nova.iota 0 : i64, 1 : i64 : tensor<6xi64>
  %m = nova.reshape %i : (tensor<6xi64>) -> tensor<2x3xi64>
  %g = nova.constant dense<[[0, -1], [1, 5]]> : tensor<2x2xi64>
  %2 = nova.gather %m, %g {dim = 1 : i64} : (tensor<2x3xi64>, tensor<2x2xi64>) -> tensor<2x2xi64>
  %row = nova.constant dense<[0, 1]> : tensor<2xi64>
  %column = nova.constant dense<[1, 2]> : tensor<2xi64>
  %3 = nova.index %m, %row, %column {dims = array<i64: 0, 1>} : (tensor<2x3xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return %0, %1, %2, %3 : tensor<4xi64>, tensor<4xf32>, tensor<2x2xi64>, tensor<2xi64>
}

// CHECK-LABEL: func @scans
// CHECK-DAG: %[[C:.*]] = nova.constant dense<{{\[\[}}0, 1, 3], [3, 7, 12]]> : tensor<2x3xi64>
// CHECK-DAG: %[[S:.*]] = nova.constant dense<[3, 12]> : tensor<2xi64>
// CHECK-DAG: %[[M:.*]] = nova.constant dense<{{\[\[}}3, 4, 5]]> : tensor<1x3xi64>
// A sum over what repeats counts it as often.
// CHECK-DAG: %[[R:.*]] = nova.constant dense<28> : tensor<i64>
// CHECK: return %[[C]], %[[S]], %[[M]], %[[R]]
func.func @scans() -> (tensor<2x3xi64>, tensor<2xi64>, tensor<1x3xi64>, tensor<i64>) {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<6xi64>
  %x = nova.reshape %i : (tensor<6xi64>) -> tensor<2x3xi64>
  %0 = nova.cumsum %x {dim = 1 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %1 = nova.sum %x {dims = array<i64: 1>} : (tensor<2x3xi64>) -> tensor<2xi64>
  %2 = nova.max %x {dims = array<i64: 0>, keepdims} : (tensor<2x3xi64>) -> tensor<1x3xi64>
  %seven = nova.constant dense<7> : tensor<4xi64>
  %3 = nova.sum %seven {dims = array<i64: 0>} : (tensor<4xi64>) -> tensor<i64>
  return %0, %1, %2, %3 : tensor<2x3xi64>, tensor<2xi64>, tensor<1x3xi64>, tensor<i64>
}

// The mask of a padded batch: looked up in rows that are all alike, it is alike
// for every row.
// CHECK-LABEL: func @lookup_in_repeated
// CHECK-NEXT: %[[C:.*]] = nova.constant dense<{{\[\[}}0, 1, 3, 6]]> : tensor<1x4xi64>
// CHECK-NEXT: %[[B:.*]] = nova.broadcast %[[C]] : (tensor<1x4xi64>) -> tensor<3x4xi64>
// CHECK-NEXT: return %[[B]]
func.func @lookup_in_repeated() -> tensor<3x4xi64> {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<4xi64>
  %b = nova.broadcast %i : (tensor<4xi64>) -> tensor<3x4xi64>
  %c = nova.cumsum %b {dim = 1 : i64} : (tensor<3x4xi64>) -> tensor<3x4xi64>
  %row = nova.iota 0 : i64, 1 : i64 : tensor<3xi64>
  %row1 = nova.reshape %row : (tensor<3xi64>) -> tensor<3x1xi64>
  %row2 = nova.broadcast %row1 : (tensor<3x1xi64>) -> tensor<3x4xi64>
  %column = nova.broadcast %i : (tensor<4xi64>) -> tensor<3x4xi64>
  %r = nova.index %c, %row2, %column {dims = array<i64: 0, 1>} : (tensor<3x4xi64>, tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi64>
  return %r : tensor<3x4xi64>
}

// CHECK-LABEL: func @empty
// CHECK: return
func.func @empty() -> (tensor<0xi64>, tensor<i64>) {
  %e = nova.constant dense<> : tensor<0xi64>
  %a = nova.add %e, %e : (tensor<0xi64>, tensor<0xi64>) -> tensor<0xi64>
  %s = nova.sum %a {dims = array<i64: 0>} : (tensor<0xi64>) -> tensor<i64>
  return %a, %s : tensor<0xi64>, tensor<i64>
}
