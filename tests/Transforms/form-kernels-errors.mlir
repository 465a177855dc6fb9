// RUN: nova-opt %s --nova-form-kernels --verify-diagnostics

// expected-error @+1 {{holds no step: no function with the attribute 'nova.graph'}}
module {
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
