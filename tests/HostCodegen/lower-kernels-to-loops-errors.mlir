// RUN: nova-opt %s --nova-lower-kernels-to-loops=scratch-limit=4096 --split-input-file --verify-diagnostics

// expected-error@+1 {{kernel 'k': expected attributes nova.space and nova.tile}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.tile [4, 1] has 2 entries, expected 1 as in nova.space}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4, 1>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.tile[0] is 5, expected 1 to 4 (nova.space[0])}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 5>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': type 'tensor<?xf32>' is not supported; expected a static shape of f16, bf16, f32, f64, i1, i8, i16, i32 or i64}}
func.func private @k(%x: tensor<?xf32>) -> (tensor<?xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<?xf32>
}

// -----

// expected-error@+1 {{kernel 'k': argument of type 'f32', expected a tensor}}
func.func private @k(%x: tensor<4xf32>, %s: f32) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.strides of argument 0 has 2 entries, expected 1}}
func.func private @k(%x: tensor<4xf32> {nova.strides = array<i64: 4, 1>}) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.strides of argument 0 is [-1], expected no negative stride}}
func.func private @k(%x: tensor<4xf32> {nova.strides = array<i64: -1>}) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': result 0 of type 'tensor<4xf32>' has nova.map with 0 entries, expected 1}}
func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.map[0] of result 0 is 1, expected -1 or a dimension of nova.space [4]}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 1>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.map[0] of result 0 names space dimension 0 of extent 5, but the result's dimension is 4}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 5>, nova.tile = array<i64: 5>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.map of result 0 names space dimension 0 twice}}
func.func private @k(%x: tensor<4x4xf32>) -> (tensor<4x4xf32> {nova.map = array<i64: 0, 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  return %x : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': nova.inplace holds array<i64: 1, 0>, expected [argument, result] of 1 arguments and 1 results}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>, nova.inplace = [array<i64: 1, 0>]} {
  return %x : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  // expected-error@+1 {{kernel 'k': 'arith.negf' is not supported in a kernel; expected linalg.generic, linalg.fill, tensor.concat, tensor.empty, arith.constant, nova.cumsum, nova.scatter or nova.index_put}}
  %y = arith.negf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  // expected-error@+1 {{kernel 'k': constant 'tensor<4xf32>' is not a splat; it must be an argument of the kernel}}
  %y = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 4>} {
  %y = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{kernel 'k': returns tensor.empty, which has no value}}
  return %y : tensor<4xf32>
}

// -----

// One reader wants a tile of the value, another all of it.

#id = affine_map<(d0, d1) -> (d0, d1)>
#id1 = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<4xf32>) -> (tensor<4x4xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e1 = tensor.empty() : tensor<4xf32>
  // expected-note@+1 {{the value}}
  %n = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e1 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  // expected-error@+2 {{kernel 'k': 'linalg.generic' reads the result of 'linalg.generic' with dimensions bound to space [-1], but another reader has [0]; all readers of an in-kernel value must agree}}
  // expected-note@+1 {{the other reader}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%n, %n : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  // expected-error@+1 {{kernel 'k': 'nova.cumsum' works along dimension 0, which is bound to space dimension 0; it must be local}}
  %y = "nova.cumsum"(%x) {dim = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @k(%i: tensor<4x3xi64>, %u: tensor<4x3xf32>, %x: tensor<4x5xf32>) -> (tensor<4x5xf32> {nova.map = array<i64: -1, 0>})
    attributes {nova.kernel, nova.space = array<i64: 5>, nova.tile = array<i64: 2>} {
  // expected-error@+1 {{kernel 'k': 'nova.scatter' has dimension 1 bound to space dimension 0, but the index has 3 of 5 positions there}}
  %y = "nova.scatter"(%x, %i, %u) {dim = 0 : i64} : (tensor<4x5xf32>, tensor<4x3xi64>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{kernel 'k': the body reads an init that is tensor.empty}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.addf %a, %out : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{kernel 'k': reads tensor.empty, which has no value}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%e : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %c = arith.cmpf ogt, %a, %z : f32
    // expected-error@+1 {{kernel 'k': 'scf.if' is not supported in the body of a linalg.generic}}
    %0 = scf.if %c -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %z : f32
    }
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{kernel 'k': output map affine_map<(d0, d1) -> (d1)> is not supported; expected distinct parallel dimensions or 0}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// In place, but a grid point reads what others write.

func.func private @k(%x: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 8>, nova.tile = array<i64: 2>, nova.inplace = [array<i64: 0, 0>]} {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error@+1 {{kernel 'k': result 0 cannot share memory with argument 0 (nova.inplace): a grid point reads elements that another one writes}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%e : tensor<8xf32>) {
  ^bb0(%out: f32):
    %c7 = arith.constant 7 : index
    %i = linalg.index 0 : index
    %j = arith.subi %c7, %i : index
    %v = tensor.extract %x[%j] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// expected-error@+1 {{kernel 'k': result 0 cannot share memory with argument 0 (nova.inplace): their types differ}}
func.func private @k(%x: tensor<8xf32>, %z: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>, nova.inplace = [array<i64: 0, 0>]} {
  return %z : tensor<4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': result 0 cannot share memory with argument 0 (nova.inplace): the argument is not contiguous}}
func.func private @k(%x: tensor<4x4xf32> {nova.strides = array<i64: 1, 4>}) -> (tensor<4x4xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 4, 4>, nova.tile = array<i64: 2, 2>, nova.inplace = [array<i64: 0, 0>]} {
  return %x : tensor<4x4xf32>
}

// -----

// expected-error@+1 {{kernel 'k': result 0 cannot share memory with argument 0 (nova.inplace): the result is not bound to space dimension 1}}
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4, 4>, nova.tile = array<i64: 2, 2>, nova.inplace = [array<i64: 0, 0>]} {
  return %x : tensor<4xf32>
}

// -----

// The row inside the kernel: 2 x 1024 floats.

#id = affine_map<(d0, d1) -> (d0, d1)>
// expected-error@+1 {{kernel 'k': values inside it take 8192 bytes of stack per grid point, the limit is 4096; smaller tiles (nova.tile) take less}}
func.func private @k(%x: tensor<8x1024xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 8>, nova.tile = array<i64: 2>} {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %e = tensor.empty() : tensor<8x1024xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x1024xf32>) outs(%e : tensor<8x1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x1024xf32>
  %y = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%n : tensor<8x1024xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<4xf32>
  %c0 = arith.constant 0 : index
  %s = tensor.extract %x[%c0] : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    // expected-error@+1 {{kernel 'k': 'arith.mulf' uses a scalar from outside the body that is not a constant}}
    %0 = arith.mulf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<4xf32>
  %c0 = arith.constant 0 : index
  %s = tensor.extract %x[%c0] : tensor<4xf32>
  // expected-error@+1 {{kernel 'k': scalar operand that is not a constant}}
  %y = linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>, #id], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<4xf32>, f32) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A window over an argument is fine; over a value inside the kernel it is not.

#id = affine_map<(d0) -> (d0)>
#window = affine_map<(d0, d1) -> (d0 + d1)>
func.func private @k(%x: tensor<6xf32>, %w: tensor<3xf32>) -> (tensor<4xf32> {nova.map = array<i64: -1>})
    attributes {nova.kernel, nova.space = array<i64>, nova.tile = array<i64>} {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %e = tensor.empty() : tensor<6xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> tensor<6xf32>
  // expected-error@+1 {{kernel 'k': map affine_map<(d0, d1) -> (d0 + d1)> of an in-kernel value is not supported; expected dimensions or constants}}
  %y = linalg.generic {indexing_maps = [#window, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%n, %w : tensor<6xf32>, tensor<3xf32>) outs(%zero : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>
func.func private @k(%x: tensor<4xf32>) -> (tensor<4xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 4>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{kernel 'k': map affine_map<(d0) -> (d0 floordiv 2)> is not linear}}
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 floordiv 2)>, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
