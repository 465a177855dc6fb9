// RUN: nova-opt %s --nova-lower-kernels-to-linalg --split-input-file --verify-diagnostics

func.func private @k1(%x: tensor<4x6xf32>) -> tensor<24xf32> attributes {nova.kernel} {
  // expected-error @+1 {{kernel 'k1': 'nova.reshape' from 'tensor<4x6xf32>' to 'tensor<24xf32>', expected it to add or drop dimensions of size 1 only}}
  %y = nova.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
  return %y : tensor<24xf32>
}

// -----

func.func private @k2(%x: tensor<4xf32>) -> tensor<2xf32> attributes {nova.kernel} {
  // expected-error @+1 {{kernel 'k2': 'nova.slice' is not expected in a kernel at this stage}}
  %y = nova.slice %x {offsets = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func private @k3(%x: tensor<2xf32>) -> tensor<2xf32> attributes {nova.kernel} {
  // expected-error @+1 {{kernel 'k3': 'nova.constant' of type 'tensor<2xf32>' is not a splat; expected it to be an argument of the kernel}}
  %c = nova.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = nova.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func private @k4(%x: tensor<2xui8>) -> tensor<2xui8> attributes {nova.kernel} {
  // expected-error @+1 {{kernel 'k4': 'nova.add' has a value of type 'tensor<2xui8>', expected no unsigned element type in a kernel}}
  %y = nova.add %x, %x : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  return %y : tensor<2xui8>
}

// -----

// expected-error @+1 {{kernel 'k5': expected a body of one block}}
func.func private @k5(tensor<2xf32>) -> tensor<2xf32> attributes {nova.kernel}

// -----

// What is no kernel is left alone.
func.func @step(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %y = nova.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
  return %y : tensor<24xf32>
}
