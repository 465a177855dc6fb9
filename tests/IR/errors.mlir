// RUN: nova-opt %s --split-input-file --verify-diagnostics

func.func @broadcast(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+2 {{nova.add: shapes do not broadcast: 'tensor<2x3xf32>' and 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %c = "nova.add"(%a, %b) : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----
func.func @elements(%a: tensor<2xf32>, %b: tensor<2xi64>) {
  // expected-error @+2 {{nova.mul: element types differ: 'tensor<2xf32>' and 'tensor<2xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %c = "nova.mul"(%a, %b) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----
func.func @result(%a: tensor<2xf32>) {
  // expected-error @+2 {{'nova.exp' op inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %c = "nova.exp"(%a) : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----
func.func @permutation(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{nova.transpose: [0, 0] is no permutation of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %c = "nova.transpose"(%a) {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----
func.func @slice(%a: tensor<4xf32>) {
  // expected-error @+2 {{nova.slice: dimension 0: offset 2, size 2, stride 2 leaves the size 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %c = "nova.slice"(%a) {offsets = array<i64: 2>, sizes = array<i64: 2>, strides = array<i64: 2>} : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----
func.func @reshape(%a: tensor<4xf32>) {
  // expected-error @+1 {{changes the number of elements: 'tensor<4xf32>' has 4, 'tensor<5xf32>' has 5}}
  %c = nova.reshape %a : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @reduce(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{nova.sum: dimension 2 is outside [0, 2)}}
  // expected-error @+1 {{failed to infer returned types}}
  %c = "nova.sum"(%a) {dims = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----
func.func @matmul(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+2 {{nova.matmul: cannot multiply 'tensor<2x3xf32>' by 'tensor<4x5xf32>': inner sizes 3 and 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %c = "nova.matmul"(%a, %b) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----
func.func @attention(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x5x6xf32>) {
  // expected-error @+2 {{do not agree; expected [B,H,T,D], [B,H,S,D], [B,H,S,E]}}
  // expected-error @+1 {{failed to infer returned types}}
  %o:2 = "nova.attention"(%q, %k, %k) {scale = 1.0 : f64} : (tensor<1x2x3x4xf32>, tensor<1x2x5x6xf32>, tensor<1x2x5x6xf32>) -> (tensor<1x2x3x6xf32>, tensor<1x2x3xf32>)
  return
}

// -----
func.func @launch(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{launches 'nowhere', which is no function here}}
  %r = nova.launch @nowhere(%x) views [#nova.view<0, [1]>] nodes [] : (tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// -----
func.func @views(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{has 1 operands and 0 views}}
  %r = nova.launch @k(%x) views [] nodes [] : (tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
func.func private @k(%x: tensor<3xf32>) -> tensor<3xf32> attributes {nova.kernel}

// -----
func.func @segments(%t: tensor<4x5x6xf32>, %u: tensor<9x6xf32>, %o: tensor<9xi64>, %b: tensor<20xi32>) {
  // expected-error @+2 {{nova.segment_sum: bounds are 'tensor<20xi32>', expected shape [21]}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = "nova.segment_sum"(%t, %u, %o, %b) {rows = 2 : i64} : (tensor<4x5x6xf32>, tensor<9x6xf32>, tensor<9xi64>, tensor<20xi32>) -> tensor<4x5x6xf32>
  return
}

// -----
func.func @segments(%t: tensor<4x6xf32>, %u: tensor<9x5xf32>, %o: tensor<9xi64>, %b: tensor<5xi32>) {
  // expected-error @+2 {{nova.segment_sum: updates are 'tensor<9x5xf32>', expected the dimensions of 'tensor<4x6xf32>' behind its 1 of rows}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = "nova.segment_sum"(%t, %u, %o, %b) {rows = 1 : i64} : (tensor<4x6xf32>, tensor<9x5xf32>, tensor<9xi64>, tensor<5xi32>) -> tensor<4x6xf32>
  return
}

// -----
func.func @segments(%t: tensor<4x6xf32>, %u: tensor<9x6xf32>, %o: tensor<3x3xi64>, %b: tensor<5xi32>) {
  // expected-error @+2 {{nova.segment_sum: order is 'tensor<3x3xi64>', expected rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %r = "nova.segment_sum"(%t, %u, %o, %b) {rows = 1 : i64} : (tensor<4x6xf32>, tensor<9x6xf32>, tensor<3x3xi64>, tensor<5xi32>) -> tensor<4x6xf32>
  return
}
