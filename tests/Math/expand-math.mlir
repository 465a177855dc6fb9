// RUN: nova-opt %s --nova-expand-math | FileCheck %s
// RUN: nova-opt %s --nova-expand-math | FileCheck %s --check-prefix=GONE

// What may remain of the math dialect is inline on every target.
// GONE-NOT: math.{{exp|log|tanh|erf|sin|cos|pow|rsqrt|fpowi|ipowi}}

//===----------------------------------------------------------------------===//
// exp: one range reduction, a polynomial of degree 6, the scale in two halves
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @exp
// CHECK-SAME: %[[X:.*]]: vector<8xf32>
// The clamps let a NaN pass: they are selects, not maximumf.
// CHECK: %[[LOW:.*]] = arith.constant dense<-1.040000e+02> : vector<8xf32>
// CHECK: %[[C:.*]] = arith.cmpf ogt, %[[LOW]], %[[X]]
// CHECK: arith.select %[[C]], %[[LOW]], %[[X]]
// CHECK: arith.cmpf olt
// CHECK: arith.select
// Rounding, then x - n ln2 in two steps and the polynomial.
// CHECK: math.fma
// CHECK: arith.subf
// CHECK-COUNT-8: math.fma
// CHECK: arith.bitcast %{{.*}} : vector<8xf32> to vector<8xi32>
// CHECK: arith.shrui
// CHECK-COUNT-2: arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-COUNT-2: arith.mulf
// CHECK-NOT: math.
// CHECK: return
func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  return %y : vector<8xf32>
}

//===----------------------------------------------------------------------===//
// Types: scalars, any shape, scalable, narrow floats through f32
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @scalar
// CHECK: math.fma %{{.*}} : f32
// CHECK-NOT: vector
// CHECK: return %{{.*}} : f32
func.func @scalar(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  return %y : f32
}

// CHECK-LABEL: func @shapes
// CHECK: math.fma %{{.*}} : vector<2x3x4xf32>
// CHECK: math.fma %{{.*}} : vector<[4]xf32>
// CHECK: math.fma %{{.*}} : vector<f32>
func.func @shapes(%a: vector<2x3x4xf32>, %b: vector<[4]xf32>, %c: vector<f32>)
    -> (vector<2x3x4xf32>, vector<[4]xf32>, vector<f32>) {
  %x = math.log %a : vector<2x3x4xf32>
  %y = math.erf %b : vector<[4]xf32>
  %z = math.sin %c : vector<f32>
  return %x, %y, %z : vector<2x3x4xf32>, vector<[4]xf32>, vector<f32>
}

// CHECK-LABEL: func @narrow
// CHECK: arith.extf %{{.*}} : vector<4xbf16> to vector<4xf32>
// CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @narrow(%a: vector<4xbf16>, %b: f16) -> (vector<4xbf16>, f16) {
  %x = math.exp %a : vector<4xbf16>
  %y = math.rsqrt %b : f16
  return %x, %y : vector<4xbf16>, f16
}

// CHECK-LABEL: func @double
// CHECK-NOT: f32
// CHECK: return
func.func @double(%a: f64) -> f64 {
  %x = math.expm1 %a : f64
  %y = math.log1p %x : f64
  %z = math.powf %y, %a : f64
  %w = math.cos %z : f64
  return %w : f64
}

//===----------------------------------------------------------------------===//
// Single instructions stay
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @rsqrt
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.0
// CHECK-DAG: %[[S:.*]] = math.sqrt %{{.*}} : f32
// CHECK: arith.divf %[[ONE]], %[[S]] : f32
func.func @rsqrt(%x: f32) -> f32 {
  %y = math.rsqrt %x : f32
  return %y : f32
}

// CHECK-LABEL: func @inline
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.absf
// CHECK-NEXT: math.floor
// CHECK-NEXT: math.roundeven
// CHECK-NEXT: math.copysign
// CHECK-NEXT: return
func.func @inline(%x: f32) -> f32 {
  %a = math.sqrt %x : f32
  %b = math.absf %a : f32
  %c = math.floor %b : f32
  %d = math.roundeven %c : f32
  %e = math.copysign %d, %x : f32
  return %e : f32
}

//===----------------------------------------------------------------------===//
// Powers
//===----------------------------------------------------------------------===//

// The cube of tanh's GELU, with its constant as a splat.
// CHECK-LABEL: func @cube
// CHECK-SAME: %[[X:.*]]: vector<8xf32>
// CHECK: %[[S:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: %[[R:.*]] = arith.mulf %[[S]], %[[X]]
// CHECK-NEXT: return %[[R]]
func.func @cube(%x: vector<8xf32>) -> vector<8xf32> {
  %n = arith.constant dense<3.0> : vector<8xf32>
  %y = math.powf %x, %n : vector<8xf32>
  return %y : vector<8xf32>
}

// CHECK-LABEL: func @square_root
// CHECK: arith.cmpf oeq
// CHECK: arith.select
// CHECK: math.sqrt
// CHECK: arith.addf
// CHECK: return
func.func @square_root(%x: f32) -> f32 {
  %n = arith.constant 0.5 : f32
  %y = math.powf %x, %n : f32
  return %y : f32
}

// In doubles.
// CHECK-LABEL: func @power
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK: arith.truncf %{{.*}} : f64 to f32
func.func @power(%x: f32, %y: f32) -> f32 {
  %z = math.powf %x, %y : f32
  return %z : f32
}

// CHECK-LABEL: func @integer_exponent
// CHECK: %[[S:.*]] = arith.mulf %[[X:.*]], %[[X]]
// CHECK: arith.sitofp %{{.*}} : i32 to f64
func.func @integer_exponent(%x: f32, %n: i32) -> (f32, f32) {
  %two = arith.constant 2 : i32
  %y = math.fpowi %x, %two : f32, i32
  %z = math.fpowi %x, %n : f32, i32
  return %y, %z : f32, f32
}

// x^5 = x * (x^2)^2.
// CHECK-LABEL: func @integer_power
// CHECK-SAME: %[[X:.*]]: i64
// CHECK: %[[S:.*]] = arith.muli %[[X]], %[[X]]
// CHECK: %[[Q:.*]] = arith.muli %[[S]], %[[S]]
// CHECK: arith.muli %[[X]], %[[Q]]
func.func @integer_power(%x: i64) -> i64 {
  %n = arith.constant 5 : i64
  %y = math.ipowi %x, %n : i64
  return %y : i64
}

//===----------------------------------------------------------------------===//
// Inside other ops
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func @in_linalg
// CHECK: linalg.generic
// CHECK: math.fma
// CHECK: linalg.yield
func.func @in_linalg(%x: tensor<5xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]} ins(%x : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %y = math.exp2 %a : f32
    linalg.yield %y : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
