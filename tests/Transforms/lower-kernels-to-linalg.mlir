// RUN: nova-opt %s --nova-lower-kernels-to-linalg --split-input-file | FileCheck %s
// What kernels compute is tested in lower_kernels_to_linalg_test.cpp; here is
// what the pass decides: which generics there are, and how they read.

// Broadcasting and views become maps, constants scalars, chains one generic.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1, 0)>
// CHECK-LABEL: func private @chain
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<3x5xf32>
// CHECK: %[[G:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]]]
// CHECK-SAME: ins(%arg0, %arg1 : {{.*}}) outs(%[[EMPTY]]
// CHECK: arith.addf
// CHECK: arith.constant 2.0
// CHECK: arith.mulf
// CHECK: math.exp
// CHECK-NOT: linalg.generic
// CHECK: return %[[G]]
func.func private @chain(%x: tensor<3x5xf32>, %y: tensor<5x1xf32>) -> (tensor<3x5xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 3, 5>} {
  %two = nova.constant dense<2.0> : tensor<f32>
  %t = nova.reshape %y : (tensor<5x1xf32>) -> tensor<5xf32>
  %a = nova.add %x, %t : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  %m = nova.mul %a, %two : (tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %e = nova.exp %m : (tensor<3x5xf32>) -> tensor<3x5xf32>
  return %e : tensor<3x5xf32>
}

// -----

// A value read twice and returned: one generic with two results.
// CHECK-LABEL: func private @shared
// CHECK: %[[G:.*]]:2 = linalg.generic
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: return %[[G]]#0, %[[G]]#1
func.func private @shared(%x: tensor<7xf32>) -> (tensor<7xf32> {nova.map = array<i64: 0>}, tensor<7xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 7>} {
  %e = nova.exp %x : (tensor<7xf32>) -> tensor<7xf32>
  %n = nova.neg %e : (tensor<7xf32>) -> tensor<7xf32>
  %a = nova.add %n, %e : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
  return %e, %a : tensor<7xf32>, tensor<7xf32>
}

// -----

// The deviation is cheap: computed where the variance sums it, and again where
// the result is; never stored.
// CHECK-LABEL: func private @variance
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]{{.*}} ins(%arg0, %[[MEAN:[0-9]+]] :
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]{{.*}} ins(%arg0, %[[MEAN]], %{{.*}} :
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
func.func private @variance(%x: tensor<6x48xf32>) -> (tensor<6x48xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 6>} {
  %mean = nova.sum %x {dims = array<i64: 1>, keepdims} : (tensor<6x48xf32>) -> tensor<6x1xf32>
  %c = nova.sub %x, %mean : (tensor<6x48xf32>, tensor<6x1xf32>) -> tensor<6x48xf32>
  %sq = nova.mul %c, %c : (tensor<6x48xf32>, tensor<6x48xf32>) -> tensor<6x48xf32>
  %var = nova.sum %sq {dims = array<i64: 1>, keepdims} : (tensor<6x48xf32>) -> tensor<6x1xf32>
  %y = nova.mul %c, %var : (tensor<6x48xf32>, tensor<6x1xf32>) -> tensor<6x48xf32>
  return %y : tensor<6x48xf32>
}

// -----

// An exponential that a sum and its reader need is computed once.
// CHECK-LABEL: func private @softmax
// CHECK: arith.maximumf
// CHECK: %[[E:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%[[E]] :
// CHECK: linalg.generic {{.*}} ins(%[[E]], %{{.*}} :
// CHECK: arith.divf
// CHECK-NOT: math.exp
func.func private @softmax(%x: tensor<6x48xf32>) -> (tensor<6x48xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 6>} {
  %m = nova.max %x {dims = array<i64: 1>, keepdims} : (tensor<6x48xf32>) -> tensor<6x1xf32>
  %c = nova.sub %x, %m : (tensor<6x48xf32>, tensor<6x1xf32>) -> tensor<6x48xf32>
  %e = nova.exp %c : (tensor<6x48xf32>) -> tensor<6x48xf32>
  %s = nova.sum %e {dims = array<i64: 1>, keepdims} : (tensor<6x48xf32>) -> tensor<6x1xf32>
  %y = nova.div %e, %s : (tensor<6x48xf32>, tensor<6x1xf32>) -> tensor<6x48xf32>
  return %y : tensor<6x48xf32>
}

// -----

// Two sums over the same rows are one generic. What a row needs once is not
// computed per element.
// CHECK-LABEL: func private @sums
// CHECK: math.rsqrt
// CHECK: %[[S:.*]]:2 = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: return %[[S]]#0, %[[S]]#1
func.func private @sums(%x: tensor<6x48xf32>, %v: tensor<6x1xf32>) -> (tensor<6xf32> {nova.map = array<i64: 0>}, tensor<6xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 6>} {
  %r = nova.rsqrt %v : (tensor<6x1xf32>) -> tensor<6x1xf32>
  %h = nova.mul %x, %r : (tensor<6x48xf32>, tensor<6x1xf32>) -> tensor<6x48xf32>
  %s0 = nova.sum %x {dims = array<i64: 1>} : (tensor<6x48xf32>) -> tensor<6xf32>
  %s1 = nova.sum %h {dims = array<i64: 1>} : (tensor<6x48xf32>) -> tensor<6xf32>
  return %s0, %s1 : tensor<6xf32>, tensor<6xf32>
}

// -----

// Transposes are maps of the contraction; its body stays a product and a sum;
// bias and activation follow in one generic.
// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func private @matmul
// CHECK: %[[ZERO:.*]] = linalg.fill
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[A]], #[[B]], #[[C]]], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%arg0, %arg1 : {{.*}}) outs(%[[ZERO]]
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 :
// CHECK: arith.addf
// CHECK: math.tanh
// CHECK-NOT: linalg.generic
func.func private @matmul(%x: tensor<7x5xf32>, %w: tensor<9x7xf32>, %b: tensor<9xf32>) -> (tensor<5x9xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 5, 9>} {
  %m = nova.matmul %x, %w {transpose_lhs, transpose_rhs} : (tensor<7x5xf32>, tensor<9x7xf32>) -> tensor<5x9xf32>
  %s = nova.add %m, %b : (tensor<5x9xf32>, tensor<9xf32>) -> tensor<5x9xf32>
  %t = nova.tanh %s : (tensor<5x9xf32>) -> tensor<5x9xf32>
  return %t : tensor<5x9xf32>
}

// -----

// A matrix that the kernel itself computes is not fused into the product.
// CHECK-LABEL: func private @computed_operand
// CHECK: %[[N:.*]] = linalg.generic
// CHECK: arith.negf
// CHECK: linalg.generic {{.*}} ins(%[[N]], %arg1 :
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
func.func private @computed_operand(%x: tensor<5x7xf32>, %w: tensor<7x9xf32>) -> (tensor<5x9xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 5>} {
  %n = nova.neg %x : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = nova.matmul %n, %w : (tensor<5x7xf32>, tensor<7x9xf32>) -> tensor<5x9xf32>
  return %m : tensor<5x9xf32>
}

// -----

// 16-bit operands accumulate in float32 and are rounded once.
// CHECK-LABEL: func private @narrow
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<5x9xf32>)
// CHECK: arith.extf
// CHECK: arith.extf
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.truncf
func.func private @narrow(%x: tensor<5x7xbf16>, %w: tensor<7x9xbf16>) -> (tensor<5x9xbf16> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 5, 9>} {
  %m = nova.matmul %x, %w : (tensor<5x7xbf16>, tensor<7x9xbf16>) -> tensor<5x9xbf16>
  return %m : tensor<5x9xbf16>
}

// -----

// Attention: scores, their maximum and exponentials, the product with values.
// CHECK-LABEL: func private @attention
// CHECK: %[[S:.*]] = linalg.generic {{.*}}"reduction"]{{.*}} ins(%arg0, %arg1 :
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: linalg.generic {{.*}}"reduction"]{{.*}} ins(%[[S]] :
// CHECK: linalg.index 2
// CHECK: linalg.index 3
// CHECK: arith.maximumf
// CHECK: %[[P:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}"reduction"]{{.*}} ins(%[[P]], %arg2 :
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: arith.divf
// CHECK: math.log
func.func private @attention(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x7x4xf32>, %v: tensor<2x3x7x6xf32>)
    -> (tensor<2x3x5x6xf32> {nova.map = array<i64: 0, 1, 2, -1>}, tensor<2x3x5xf32> {nova.map = array<i64: 0, 1, 2>})
    attributes {nova.kernel, nova.space = array<i64: 2, 3, 5>} {
  %o, %l = nova.attention %q, %k, %v {scale = 0.5 : f64, causal} : (tensor<2x3x5x4xf32>, tensor<2x3x7x4xf32>, tensor<2x3x7x6xf32>) -> (tensor<2x3x5x6xf32>, tensor<2x3x5xf32>)
  return %o, %l : tensor<2x3x5x6xf32>, tensor<2x3x5xf32>
}

// -----

// Of 16 bits: operands go into products as they are, and what products take of scores is
// rounded once; all between, and the log-sum-exp, is float32.
// CHECK-LABEL: func private @attention_bf16
// CHECK: linalg.generic {{.*}}"reduction"]{{.*}} ins(%arg0, %arg1 : tensor<2x3x5x4xbf16>, tensor<2x3x7x4xbf16>) outs({{.*}}xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: math.exp {{.*}} : f32
// CHECK: arith.truncf
// CHECK: linalg.generic {{.*}}"reduction"]{{.*}} ins(%{{.*}}, %arg2 : tensor<2x3x5x7xbf16>, tensor<2x3x7x6xbf16>) outs({{.*}}xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
// CHECK: math.log {{.*}} : f32
func.func private @attention_bf16(%q: tensor<2x3x5x4xbf16>, %k: tensor<2x3x7x4xbf16>, %v: tensor<2x3x7x6xbf16>)
    -> (tensor<2x3x5x6xbf16> {nova.map = array<i64: 0, 1, 2, -1>}, tensor<2x3x5xf32> {nova.map = array<i64: 0, 1, 2>})
    attributes {nova.kernel, nova.space = array<i64: 2, 3, 5>} {
  %o, %l = nova.attention %q, %k, %v {scale = 0.5 : f64, causal} : (tensor<2x3x5x4xbf16>, tensor<2x3x7x4xbf16>, tensor<2x3x7x6xbf16>) -> (tensor<2x3x5x6xbf16>, tensor<2x3x5xf32>)
  return %o, %l : tensor<2x3x5x6xbf16>, tensor<2x3x5xf32>
}

// -----

// An element of what is computed in the kernel is computed by itself, of what memory has.
// CHECK-LABEL: func private @element
// CHECK: %[[RAW:.*]] = tensor.extract %arg0[%{{.*}}, %{{.*}}] : tensor<6x33xbf16>
// CHECK: %[[WIDE:.*]] = arith.extf %[[RAW]] : bf16 to f32
// CHECK: arith.select %{{.*}}, %[[WIDE]], %{{.*}} : f32
func.func private @element(%x: tensor<6x33xbf16>, %i: tensor<6x1xi64>) -> (tensor<6x1xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 6>} {
  %c = nova.cast %x : (tensor<6x33xbf16>) -> tensor<6x33xf32>
  %s = nova.sum %c {dims = array<i64: 1>, keepdims} : (tensor<6x33xf32>) -> tensor<6x1xf32>
  %g = nova.gather %c, %i {dim = 1 : i64} : (tensor<6x33xf32>, tensor<6x1xi64>) -> tensor<6x1xf32>
  %r = nova.sub %s, %g : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32>
  return %r : tensor<6x1xf32>
}

// -----

// A look-up is clamped before it reads, and joins its readers.
// CHECK-LABEL: func private @embedding
// CHECK: linalg.generic
// CHECK: arith.cmpi ult
// CHECK: %[[AT:.*]] = arith.select {{.*}} : index
// CHECK: %[[ELEMENT:.*]] = tensor.extract %arg0[%[[AT]], %{{.*}}]
// CHECK: arith.select %{{.*}}, %[[ELEMENT]], %{{.*}} : f32
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
func.func private @embedding(%w: tensor<17x12xf32>, %t: tensor<2x5xi64>, %p: tensor<5x12xf32>) -> (tensor<2x5x12xf32> {nova.map = array<i64: 0, 1, -1>})
    attributes {nova.kernel, nova.space = array<i64: 2, 5>} {
  %e = nova.index %w, %t {dims = array<i64: 0>} : (tensor<17x12xf32>, tensor<2x5xi64>) -> tensor<2x5x12xf32>
  %h = nova.add %e, %p : (tensor<2x5x12xf32>, tensor<5x12xf32>) -> tensor<2x5x12xf32>
  return %h : tensor<2x5x12xf32>
}

// -----

// What stays keeps its operation; its operands are tensors of their own.
// CHECK-LABEL: func private @stays
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<6x5xf32>
// CHECK-DAG: %[[N:.*]] = linalg.generic
// CHECK: nova.index_put %[[ZERO]], %arg0, %[[N]] {accumulate}
// CHECK-NOT: nova.constant
func.func private @stays(%i: tensor<9xi64>, %u: tensor<9x5xf32>) -> (tensor<6x5xf32> {nova.map = array<i64: -1, 0>})
    attributes {nova.kernel, nova.space = array<i64: 5>} {
  %z = nova.constant dense<0.0> : tensor<6x5xf32>
  %n = nova.neg %u : (tensor<9x5xf32>) -> tensor<9x5xf32>
  %y = nova.index_put %z, %i, %n {accumulate} : (tensor<6x5xf32>, tensor<9xi64>, tensor<9x5xf32>) -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// -----

// Side by side; operands that are views are stored first.
// CHECK-LABEL: func private @side_by_side
// CHECK: %[[T:.*]] = linalg.generic
// CHECK: tensor.concat dim(1) %arg0, %[[T]]
func.func private @side_by_side(%x: tensor<3x5xf32>, %y: tensor<2x3xf32>) -> (tensor<3x7xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 3>} {
  %t = nova.transpose %y {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %c = nova.concat %x, %t {dim = 1 : i64} : (tensor<3x5xf32>, tensor<3x2xf32>) -> tensor<3x7xf32>
  return %c : tensor<3x7xf32>
}

// -----

// A product stored transposed is written so.
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0, 0, d2)>
// CHECK-LABEL: func private @transposed_product
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<4x3x1x9xf32>
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[OUT]]]
// CHECK-SAME: outs(%[[ZERO]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[P]]
func.func private @transposed_product(%x: tensor<3x4x7xf32>, %w: tensor<7x9xf32>) -> (tensor<4x3x1x9xf32> {nova.map = array<i64: 1, 0, -1, 2>})
    attributes {nova.kernel, nova.space = array<i64: 3, 4, 9>} {
  %m = nova.matmul %x, %w : (tensor<3x4x7xf32>, tensor<7x9xf32>) -> tensor<3x4x9xf32>
  %t = nova.transpose %m {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x9xf32>) -> tensor<4x3x9xf32>
  %r = nova.reshape %t : (tensor<4x3x9xf32>) -> tensor<4x3x1x9xf32>
  return %r : tensor<4x3x1x9xf32>
}
