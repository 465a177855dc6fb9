// RUN: nova-opt %s --nova-split-reductions --split-input-file | FileCheck %s

// Column sums over two loops: the longer one is cut into as many parts as give
// each 32 values. The launch sees the loop as two dimensions of the same memory,
// here of a transposed argument that starts at an odd place. Both launches of the
// kernel become two, and what the body does before it adds is done in the parts.
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = nova.launch @columns.parts0(%arg0) views [#nova.view<5, [48, 1536, 384, 1]>] nodes ["sum"] : (tensor<64x8x48xf32>) -> tensor<16x48xf32>
// CHECK: %[[S:.*]] = nova.launch @columns(%[[A]]) views [#nova.view<0, [48, 1]>] nodes ["sum"] : (tensor<16x48xf32>) -> tensor<48xf32>
// CHECK: %[[B:.*]] = nova.launch @columns.parts0(%arg1) views [#nova.view<0, [48, 1536, 384, 1]>] nodes ["sum_1"]
// CHECK: %[[T:.*]] = nova.launch @columns(%[[B]])
// CHECK: return %[[S]], %[[T]]
// CHECK: func.func private @columns.parts0(%arg0: tensor<8x16x4x48xf32> {nova.strides = array<i64: 48, 1536, 384, 1>}) -> (tensor<16x48xf32> {nova.map = array<i64: 0, 1>})
// CHECK-SAME: nova.kernel, nova.role = "column_sums_parts", nova.space = array<i64: 16, 48>
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: linalg.generic {indexing_maps = [#[[READ:.*]], #[[WRITE:.*]]], iterator_types = ["parallel", "reduction", "reduction", "parallel"]} ins(%arg0
// CHECK: arith.mulf %{{.*}}, %[[TWO]]
// CHECK: arith.addf
// CHECK: func.func private @columns(%arg0: tensor<16x48xf32>) -> (tensor<48xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.role = "column_sums", nova.space = array<i64: 48>}
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg0
// CHECK-NOT: arith.mulf
// CHECK: arith.addf %[[ACC:out.*]], %in
// CHECK: return
func.func @step(%x: tensor<64x8x48xf32>, %y: tensor<64x8x48xf32>) -> (tensor<48xf32>, tensor<48xf32>) attributes {nova.graph = "g"} {
  %a = nova.launch @columns(%x) views [#nova.view<5, [48, 384, 1]>] nodes ["sum"] : (tensor<64x8x48xf32>) -> tensor<48xf32>
  %b = nova.launch @columns(%y) views [#nova.view<0, [48, 384, 1]>] nodes ["sum_1"] : (tensor<64x8x48xf32>) -> tensor<48xf32>
  return %a, %b : tensor<48xf32>, tensor<48xf32>
}
func.func private @columns(%x: tensor<8x64x48xf32> {nova.strides = array<i64: 48, 384, 1>}) -> (tensor<48xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "column_sums", nova.space = array<i64: 48>} {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<48xf32>) -> tensor<48xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, c) -> (i, j, c)>, affine_map<(i, j, c) -> (c)>],
                       iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%x : tensor<8x64x48xf32>) outs(%f : tensor<48xf32>) {
  ^bb0(%v: f32, %s: f32):
    %d = arith.mulf %v, %two : f32
    %t = arith.addf %s, %d : f32
    linalg.yield %t : f32
  } -> tensor<48xf32>
  return %r : tensor<48xf32>
}

// -----

// Reductions with equal parts and loops share one kernel of parts and read the
// argument once; what the kernel does with their results, it still does. An
// argument that only the parts read is none of the kernel's any more.
// CHECK-LABEL: func.func @shared
// CHECK: %[[P:.*]]:2 = nova.launch @sums.parts0(%arg0, %arg1) views [#nova.view<0, [256, 8, 1]>, #nova.view<0, [256, 8, 1]>] {{.*}} -> (tensor<32x8xf32>, tensor<32x8xf32>)
// CHECK: nova.launch @sums(%arg2, %[[P]]#0, %[[P]]#1) views [#nova.view<0, [1]>, #nova.view<0, [8, 1]>, #nova.view<0, [8, 1]>]
// CHECK: func.func private @sums.parts0(%arg0: tensor<32x32x8xf32>, %arg1: tensor<32x32x8xf32>) -> (tensor<32x8xf32> {nova.map = array<i64: 0, 1>}, tensor<32x8xf32> {nova.map = array<i64: 0, 1>})
// CHECK-COUNT-2: linalg.generic
// CHECK: func.func private @sums(%arg0: tensor<8xf32>, %arg1: tensor<32x8xf32>, %arg2: tensor<32x8xf32>)
// CHECK: ins(%arg1 :
// CHECK: arith.addf
// CHECK: ins(%arg2 :
// CHECK: arith.maximumf
// CHECK: linalg.generic
// CHECK: arith.mulf
func.func @shared(%x: tensor<1024x8xf32>, %y: tensor<1024x8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> attributes {nova.graph = "g"} {
  %a = nova.launch @sums(%x, %y, %w) views [#nova.view<0, [8, 1]>, #nova.view<0, [8, 1]>, #nova.view<0, [1]>] nodes [] : (tensor<1024x8xf32>, tensor<1024x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %a : tensor<8xf32>
}
func.func private @sums(%x: tensor<1024x8xf32>, %y: tensor<1024x8xf32>, %w: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 8>} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %g = linalg.fill ins(%low : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<1024x8xf32>, tensor<1024x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%v: f32, %u: f32, %s: f32):
    %p = arith.mulf %v, %u : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1024x8xf32>) outs(%g : tensor<8xf32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.maximumf %v, %s : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>, affine_map<(c) -> (c)>, affine_map<(c) -> (c)>, affine_map<(c) -> (c)>], iterator_types = ["parallel"]}
      ins(%r, %m, %w : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %c : f32
    linalg.yield %q : f32
  } -> tensor<8xf32>
  return %o : tensor<8xf32>
}

// -----

// A loss: all of a tensor to one value. Then a mean of another: of other parts, so
// of a kernel of its own. The argument that both the parts and the rest of the
// kernel read stays.
// CHECK-LABEL: func.func @scalars
// CHECK: %[[P:.*]] = nova.launch @loss.parts0(%arg0) views [#nova.view<0, [32, 1]>] {{.*}} : (tensor<4096xf32>) -> tensor<128xf32>
// CHECK: %[[Q:.*]] = nova.launch @loss.parts1(%arg1) views [#nova.view<0, [50, 1]>] {{.*}} : (tensor<250xf32>) -> tensor<5xf32>
// CHECK: nova.launch @loss(%arg1, %[[P]], %[[Q]])
// CHECK: func.func private @loss.parts0(%arg0: tensor<128x32xf32>) -> (tensor<128xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 128>}
// CHECK: func.func private @loss.parts1(%arg0: tensor<5x50xf32>) -> (tensor<5xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 5>}
// CHECK: func.func private @loss(%arg0: tensor<250xf32>, %arg1: tensor<128xf32>, %arg2: tensor<5xf32>) -> (tensor<f32> {nova.map = array<i64>}, tensor<f32> {nova.map = array<i64>}, tensor<250xf32> {nova.map = array<i64: -1>})
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%arg1
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%arg2
func.func @scalars(%x: tensor<4096xf32>, %y: tensor<250xf32>) -> (tensor<f32>, tensor<f32>, tensor<250xf32>) attributes {nova.graph = "g"} {
  %a:3 = nova.launch @loss(%x, %y) views [#nova.view<0, [1]>, #nova.view<0, [1]>] nodes [] : (tensor<4096xf32>, tensor<250xf32>) -> (tensor<f32>, tensor<f32>, tensor<250xf32>)
  return %a#0, %a#1, %a#2 : tensor<f32>, tensor<f32>, tensor<250xf32>
}
func.func private @loss(%x: tensor<4096xf32>, %y: tensor<250xf32>)
    -> (tensor<f32> {nova.map = array<i64>}, tensor<f32> {nova.map = array<i64>}, tensor<250xf32> {nova.map = array<i64: -1>}) attributes {nova.kernel, nova.space = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4096xf32>) outs(%f : tensor<f32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %q = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%y : tensor<250xf32>) outs(%f : tensor<f32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  %g = tensor.empty() : tensor<250xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%y, %q : tensor<250xf32>, tensor<f32>) outs(%g : tensor<250xf32>) {
  ^bb0(%v: f32, %m: f32, %s: f32):
    %t = arith.subf %v, %m : f32
    linalg.yield %t : f32
  } -> tensor<250xf32>
  return %r, %q, %n : tensor<f32>, tensor<f32>, tensor<250xf32>
}

// -----

// A product of few tiles and great depth: both operands are cut along it.
// CHECK-LABEL: func.func @product
// CHECK: %[[P:.*]] = nova.launch @weights.parts0(%arg0, %arg1) views [#nova.view<0, [65536, 128, 1]>, #nova.view<0, [65536, 128, 1]>] {{.*}} -> tensor<16x128x128xf32>
// CHECK: nova.launch @weights(%[[P]])
// CHECK: func.func private @weights.parts0(%arg0: tensor<16x512x128xf32>, %arg1: tensor<16x512x128xf32>) -> (tensor<16x128x128xf32> {nova.map = array<i64: 0, 1, 2>})
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: func.func private @weights(%arg0: tensor<16x128x128xf32>)
// CHECK-NOT: arith.mulf
func.func @product(%x: tensor<8192x128xf32>, %y: tensor<8192x128xf32>) -> tensor<128x128xf32> attributes {nova.graph = "g"} {
  %a = nova.launch @weights(%x, %y) views [#nova.view<0, [128, 1]>, #nova.view<0, [128, 1]>] nodes [] : (tensor<8192x128xf32>, tensor<8192x128xf32>) -> tensor<128x128xf32>
  return %a : tensor<128x128xf32>
}
func.func private @weights(%x: tensor<8192x128xf32>, %y: tensor<8192x128xf32>) -> (tensor<128x128xf32> {nova.map = array<i64: 0, 1>}) attributes {nova.kernel, nova.space = array<i64: 128, 128>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<8192x128xf32>, tensor<8192x128xf32>) outs(%f : tensor<128x128xf32>) {
  ^bb0(%v: f32, %u: f32, %s: f32):
    %p = arith.mulf %v, %u : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}

// -----

// What is not split: a short one (too few values for four parts), one whose
// body looks at its place, one of an intermediate, one whose start is counted
// once (a sum that starts at one), one that subtracts, and two values that are
// reduced with a look at each other.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: .parts
func.func @whole(%x: tensor<96x8xf32>, %y: tensor<4096xf32>) -> tensor<f32> attributes {nova.graph = "g"} {
  %s = nova.launch @short(%x) views [#nova.view<0, [8, 1]>] nodes [] : (tensor<96x8xf32>) -> tensor<8xf32>
  %a = nova.launch @place(%y) views [#nova.view<0, [1]>] nodes [] : (tensor<4096xf32>) -> tensor<f32>
  %b = nova.launch @intermediate(%y) views [#nova.view<0, [1]>] nodes [] : (tensor<4096xf32>) -> tensor<f32>
  %c = nova.launch @start(%y) views [#nova.view<0, [1]>] nodes [] : (tensor<4096xf32>) -> tensor<f32>
  %d = nova.launch @difference(%y) views [#nova.view<0, [1]>] nodes [] : (tensor<4096xf32>) -> tensor<f32>
  %e:2 = nova.launch @running(%y) views [#nova.view<0, [1]>] nodes [] : (tensor<4096xf32>) -> (tensor<f32>, tensor<f32>)
  return %a : tensor<f32>
}
func.func private @short(%x: tensor<96x8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 8>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, i) -> (i, c)>, affine_map<(c, i) -> (c)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<96x8xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @place(%x: tensor<4096xf32>) -> (tensor<f32> {nova.map = array<i64>}) attributes {nova.kernel, nova.space = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %c = arith.constant 1000 : index
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4096xf32>) outs(%f : tensor<f32>) {
  ^bb0(%v: f32, %s: f32):
    %i = linalg.index 0 : index
    %b = arith.cmpi ult, %i, %c : index
    %u = arith.select %b, %v, %zero : f32
    %t = arith.addf %s, %u : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
func.func private @intermediate(%x: tensor<4096xf32>) -> (tensor<f32> {nova.map = array<i64>}) attributes {nova.kernel, nova.space = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<4096xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4096xf32>) outs(%g : tensor<4096xf32>) {
  ^bb0(%v: f32, %s: f32):
    %t = math.exp %v : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%n : tensor<4096xf32>) outs(%f : tensor<f32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
func.func private @start(%x: tensor<4096xf32>) -> (tensor<f32> {nova.map = array<i64>}) attributes {nova.kernel, nova.space = array<i64>} {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4096xf32>) outs(%f : tensor<f32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.addf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
func.func private @difference(%x: tensor<4096xf32>) -> (tensor<f32> {nova.map = array<i64>}) attributes {nova.kernel, nova.space = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4096xf32>) outs(%f : tensor<f32>) {
  ^bb0(%v: f32, %s: f32):
    %t = arith.subf %s, %v : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
func.func private @running(%x: tensor<4096xf32>) -> (tensor<f32> {nova.map = array<i64>}, tensor<f32> {nova.map = array<i64>}) attributes {nova.kernel, nova.space = array<i64>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4096xf32>) outs(%f, %f : tensor<f32>, tensor<f32>) {
  ^bb0(%v: f32, %m: f32, %s: f32):
    %n = arith.maximumf %m, %v : f32
    %t = arith.addf %s, %n : f32
    linalg.yield %n, %t : f32, f32
  } -> (tensor<f32>, tensor<f32>)
  return %r#0, %r#1 : tensor<f32>, tensor<f32>
}
