// RUN: nova-opt %s --nova-expand-math --split-input-file --verify-diagnostics

// Every op without an expansion is named, not only the first.
func.func @unknown(%x: f32, %v: vector<4xf64>) -> (f32, vector<4xf64>) {
  // expected-error@+1 {{'math.atan' on 'f32' has no expansion; it would take a math library}}
  %a = math.atan %x : f32
  // expected-error@+1 {{'math.cbrt' on 'vector<4xf64>' has no expansion; it would take a math library}}
  %b = math.cbrt %v : vector<4xf64>
  %c = math.exp %a : f32
  return %c, %b : f32, vector<4xf64>
}

// -----

func.func @wide(%x: f128) -> f128 {
  // expected-error@+1 {{'math.exp' on 'f128' has no expansion; it would take a math library}}
  %a = math.exp %x : f128
  return %a : f128
}

// -----

// Tensors are taken apart before this pass.
func.func @tensor(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'math.exp' on 'tensor<4xf32>' has no expansion; it would take a math library}}
  %a = math.exp %x : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @exponents(%x: f32, %n: i64) -> (f32, i64) {
  // An i64 exponent need not be exact as a double.
  // expected-error@+1 {{'math.fpowi' on 'f32' has no expansion; it would take a math library}}
  %a = math.fpowi %x, %n : f32, i64
  // expected-error@+1 {{'math.ipowi' on 'i64' has no expansion; it would take a math library}}
  %b = math.ipowi %n, %n : i64
  return %a, %b : f32, i64
}
