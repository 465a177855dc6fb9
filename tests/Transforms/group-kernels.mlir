// RUN: nova-opt %s --nova-group-kernels --split-input-file | FileCheck %s
// RUN: nova-opt %s --nova-group-kernels=parameter-bytes=72 --split-input-file | FileCheck %s --check-prefix=SMALL

// Three updates differ in size (a matrix is its rows one after the other): one launch,
// the largest first, with the rate as one argument of all. What is read and where the
// results go stays; the kernel holds what each did.
// CHECK-LABEL: func.func @step
// CHECK: %[[G:.*]] = nova.launch @make
// CHECK: %[[R:.*]]:3 = nova.launch @group_0(%arg4, %arg1, %[[G]], %arg0, %arg3, %arg2, %arg3) views [#nova.view<0>, #nova.view<0, [24, 1]>, #nova.view<0, [24, 1]>, #nova.view<0, [1]>, #nova.view<0, [1]>, #nova.view<0, [1]>, #nova.view<8, [1]>] nodes ["b", "a", "c"]
// CHECK: return %[[R]]#1, %[[R]]#0, %[[R]]#2
// CHECK-NOT: @update
// CHECK: func.func private @group_0(%arg0: tensor<f32>, %arg1: tensor<4x24xf32>, %arg2: tensor<4x24xf32>, %arg3: tensor<8xf32>, %arg4: tensor<8xf32>, %arg5: tensor<8xf32>, %arg6: tensor<8xf32>)
// CHECK-SAME: -> (tensor<4x24xf32> {nova.map = array<i64: 0, 1>}, tensor<8xf32> {nova.map = array<i64: 2>}, tensor<8xf32> {nova.map = array<i64: 3>})
// CHECK-SAME: nova.group = {members = 3 : i64, shared = 1 : i64}, nova.kernel, nova.role = "pointwise_group", nova.space = array<i64: 4, 24, 8, 8>
// CHECK: linalg.generic {{.*}} ins(%arg1, %arg2, %arg0
// CHECK: linalg.generic {{.*}} ins(%arg3, %arg4, %arg0
// CHECK: linalg.generic {{.*}} ins(%arg5, %arg6, %arg0

// With 9 pointers two members fit: 1 + 2 * 3.
// SMALL-LABEL: func.func @step
// SMALL: nova.launch @group_0(
// SMALL: nova.launch @update_8(
// SMALL: nova.group = {members = 2 : i64, shared = 1 : i64}
func.func @step(%a: tensor<8xf32> {nova.role = "parameter"}, %b: tensor<4x24xf32> {nova.role = "parameter"},
                %c: tensor<8xf32> {nova.role = "parameter"}, %g: tensor<16xf32>, %lr: tensor<f32>)
    -> (tensor<8xf32> {nova.role = "update", nova.updates = 0}, tensor<4x24xf32> {nova.role = "update", nova.updates = 1},
        tensor<8xf32> {nova.role = "update", nova.updates = 2}) attributes {nova.graph = "g"} {
  %x = nova.launch @update_8(%a, %g, %lr) views [#nova.view<0, [1]>, #nova.view<0, [1]>, #nova.view<0>] nodes ["a"] : (tensor<8xf32>, tensor<16xf32>, tensor<f32>) -> tensor<8xf32>
  %d = nova.launch @make(%b) views [#nova.view<0, [24, 1]>] nodes ["d"] : (tensor<4x24xf32>) -> tensor<4x24xf32>
  %y = nova.launch @update_4x24(%b, %d, %lr) views [#nova.view<0, [24, 1]>, #nova.view<0, [24, 1]>, #nova.view<0>] nodes ["b"] : (tensor<4x24xf32>, tensor<4x24xf32>, tensor<f32>) -> tensor<4x24xf32>
  %z = nova.launch @update_8(%c, %g, %lr) views [#nova.view<0, [1]>, #nova.view<8, [1]>, #nova.view<0>] nodes ["c"] : (tensor<8xf32>, tensor<16xf32>, tensor<f32>) -> tensor<8xf32>
  return %x, %y, %z : tensor<8xf32>, tensor<4x24xf32>, tensor<8xf32>
}
func.func private @make(%x: tensor<4x24xf32>) -> (tensor<4x24xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 4, 24>} {
  %e = tensor.empty() : tensor<4x24xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x24xf32>) outs(%e : tensor<4x24xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<4x24xf32>
  return %r : tensor<4x24xf32>
}
func.func private @update_8(%p: tensor<8xf32>, %g: tensor<8xf32>, %lr: tensor<f32>) -> (tensor<8xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 8>} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%p, %g, %lr : tensor<8xf32>, tensor<8xf32>, tensor<f32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %d: f32, %l: f32, %o: f32):
    %s = arith.mulf %d, %l : f32
    %n = arith.subf %v, %s : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @update_4x24(%p: tensor<4x24xf32>, %g: tensor<4x24xf32>, %lr: tensor<f32>) -> (tensor<4x24xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 4, 24>} {
  %e = tensor.empty() : tensor<4x24xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p, %g, %lr : tensor<4x24xf32>, tensor<4x24xf32>, tensor<f32>) outs(%e : tensor<4x24xf32>) {
  ^bb0(%v: f32, %d: f32, %l: f32, %o: f32):
    %s = arith.mulf %d, %l : f32
    %n = arith.subf %v, %s : f32
    linalg.yield %n : f32
  } -> tensor<4x24xf32>
  return %r : tensor<4x24xf32>
}

// -----

// One needs the other; a third is a gradient, which is not to wait. A fourth would come
// after its argument is overwritten. Of those that follow, one has an extent that no
// wide access divides, and one starts at an odd place.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-8: nova.launch @{{double|other}}
// CHECK-NOT: nova.group
func.func @apart(%a: tensor<8xf32>, %b: tensor<8xf32>, %o: tensor<10xf32>, %w: tensor<16xf32>)
    -> (tensor<8xf32> {nova.role = "output"}, tensor<8xf32> {nova.role = "gradient"}, tensor<8xf32> {nova.role = "update", nova.updates = 1},
        tensor<8xf32> {nova.role = "output"}, tensor<10xf32> {nova.role = "output"}, tensor<8xf32> {nova.role = "output"}) attributes {nova.graph = "g"} {
  %x = nova.launch @double(%b) views [#nova.view<0, [1]>] nodes ["a"] : (tensor<8xf32>) -> tensor<8xf32>
  %z = nova.launch @double(%a) views [#nova.view<0, [1]>] nodes ["c"] : (tensor<8xf32>) -> tensor<8xf32>
  %u = nova.launch @other(%a) views [#nova.view<0, [1]>] nodes ["d"] : (tensor<8xf32>) -> tensor<8xf32>
  %v = nova.launch @double(%u) views [#nova.view<0, [1]>] nodes ["e"] : (tensor<8xf32>) -> tensor<8xf32>
  %y = nova.launch @double(%v) views [#nova.view<0, [1]>] nodes ["b"] : (tensor<8xf32>) -> tensor<8xf32>
  %t = nova.launch @double_10(%o) views [#nova.view<0, [1]>] nodes ["f"] : (tensor<10xf32>) -> tensor<10xf32>
  %s = nova.launch @double(%w) views [#nova.view<1, [1]>] nodes ["g"] : (tensor<16xf32>) -> tensor<8xf32>
  %q = nova.launch @other(%x) views [#nova.view<0, [1]>] nodes ["h"] : (tensor<8xf32>) -> tensor<8xf32>
  return %q, %z, %u, %y, %t, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<10xf32>, tensor<8xf32>
}
func.func private @double(%x: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 8>} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.addf %v, %v : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @other(%x: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 8>} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.mulf %v, %v : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @double_10(%x: tensor<10xf32>) -> (tensor<10xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 10>} {
  %e = tensor.empty() : tensor<10xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<10xf32>) outs(%e : tensor<10xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.addf %v, %v : f32
    linalg.yield %n : f32
  } -> tensor<10xf32>
  return %r : tensor<10xf32>
}

// -----

// What the first update reads (1 MB) would be alive beside the two of the chain: more than
// ever is at one time.
// CHECK-LABEL: func.func @peak
// CHECK: nova.launch @update
// CHECK: nova.launch @negate
// CHECK: nova.launch @negate
// CHECK: nova.launch @update
// CHECK-NOT: nova.group
func.func @peak(%a: tensor<262144xf32>, %b: tensor<262144xf32>, %p: tensor<262144xf32>, %q: tensor<262144xf32>) -> (tensor<262144xf32>, tensor<262144xf32>) attributes {nova.graph = "g"} {
  %g = nova.launch @negate(%a) views [#nova.view<0, [1]>] nodes ["g"] : (tensor<262144xf32>) -> tensor<262144xf32>
  %u = nova.launch @update(%p, %g) views [#nova.view<0, [1]>, #nova.view<0, [1]>] nodes ["u"] : (tensor<262144xf32>, tensor<262144xf32>) -> tensor<262144xf32>
  %h = nova.launch @negate(%b) views [#nova.view<0, [1]>] nodes ["h"] : (tensor<262144xf32>) -> tensor<262144xf32>
  %i = nova.launch @negate(%h) views [#nova.view<0, [1]>] nodes ["i"] : (tensor<262144xf32>) -> tensor<262144xf32>
  %v = nova.launch @update(%q, %i) views [#nova.view<0, [1]>, #nova.view<0, [1]>] nodes ["v"] : (tensor<262144xf32>, tensor<262144xf32>) -> tensor<262144xf32>
  return %u, %v : tensor<262144xf32>, tensor<262144xf32>
}
func.func private @negate(%x: tensor<262144xf32>) -> (tensor<262144xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 262144>} {
  %e = tensor.empty() : tensor<262144xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<262144xf32>) outs(%e : tensor<262144xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<262144xf32>
  return %r : tensor<262144xf32>
}
func.func private @update(%p: tensor<262144xf32>, %g: tensor<262144xf32>) -> (tensor<262144xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 262144>} {
  %e = tensor.empty() : tensor<262144xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%p, %g : tensor<262144xf32>, tensor<262144xf32>) outs(%e : tensor<262144xf32>) {
  ^bb0(%v: f32, %d: f32, %o: f32):
    %n = arith.subf %v, %d : f32
    linalg.yield %n : f32
  } -> tensor<262144xf32>
  return %r : tensor<262144xf32>
}

// -----

// As much is alive anyway before, so the updates wait for one another where nothing of
// note runs between them; but not where what the first reads (12 MB) would have left the
// L2 cache by then, which costs more than a launch.
// CHECK-LABEL: func.func @cache
// CHECK: nova.launch @group_0({{.*}} nodes ["x", "y"]
// CHECK: nova.launch @pass({{.*}} nodes ["z"]
// CHECK: nova.launch @four
// CHECK: nova.launch @group_1({{.*}} nodes ["u", "v"]
// CHECK: nova.launch @pass
// CHECK: nova.launch @pass
// CHECK: nova.launch @update({{.*}} nodes ["t"]
func.func @cache(%a: tensor<3145728xf32>, %p: tensor<3145728xf32>, %q: tensor<3145728xf32>, %s: tensor<3145728xf32>)
    -> (tensor<3145728xf32>, tensor<3145728xf32>, tensor<3145728xf32>) attributes {nova.graph = "g"} {
  %x = nova.launch @pass(%a) views [#nova.view<0, [1]>] nodes ["x"] : (tensor<3145728xf32>) -> tensor<3145728xf32>
  %y = nova.launch @pass(%a) views [#nova.view<0, [1]>] nodes ["y"] : (tensor<3145728xf32>) -> tensor<3145728xf32>
  %z = nova.launch @pass(%y) views [#nova.view<0, [1]>] nodes ["z"] : (tensor<3145728xf32>) -> tensor<3145728xf32>
  %w = nova.launch @four(%x, %y, %z) views [#nova.view<0, [1]>, #nova.view<0, [1]>, #nova.view<0, [1]>] nodes ["w"] : (tensor<3145728xf32>, tensor<3145728xf32>, tensor<3145728xf32>) -> tensor<3145728xf32>
  %u = nova.launch @update(%p, %w) views [#nova.view<0, [1]>, #nova.view<0, [1]>] nodes ["u"] : (tensor<3145728xf32>, tensor<3145728xf32>) -> tensor<3145728xf32>
  %v = nova.launch @update(%q, %w) views [#nova.view<0, [1]>, #nova.view<0, [1]>] nodes ["v"] : (tensor<3145728xf32>, tensor<3145728xf32>) -> tensor<3145728xf32>
  %k = nova.launch @pass(%a) views [#nova.view<0, [1]>] nodes ["k"] : (tensor<3145728xf32>) -> tensor<3145728xf32>
  %l = nova.launch @pass(%k) views [#nova.view<0, [1]>] nodes ["l"] : (tensor<3145728xf32>) -> tensor<3145728xf32>
  %t = nova.launch @update(%s, %l) views [#nova.view<0, [1]>, #nova.view<0, [1]>] nodes ["t"] : (tensor<3145728xf32>, tensor<3145728xf32>) -> tensor<3145728xf32>
  return %u, %v, %t : tensor<3145728xf32>, tensor<3145728xf32>, tensor<3145728xf32>
}
func.func private @pass(%x: tensor<3145728xf32>) -> (tensor<3145728xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 3145728>} {
  %e = tensor.empty() : tensor<3145728xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<3145728xf32>) outs(%e : tensor<3145728xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<3145728xf32>
  return %r : tensor<3145728xf32>
}
func.func private @four(%x: tensor<3145728xf32>, %y: tensor<3145728xf32>, %z: tensor<3145728xf32>) -> (tensor<3145728xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 3145728>} {
  %e = tensor.empty() : tensor<3145728xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y, %z : tensor<3145728xf32>, tensor<3145728xf32>, tensor<3145728xf32>) outs(%e : tensor<3145728xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    %t = arith.addf %s, %c : f32
    linalg.yield %t : f32
  } -> tensor<3145728xf32>
  return %r : tensor<3145728xf32>
}
func.func private @update(%p: tensor<3145728xf32>, %g: tensor<3145728xf32>) -> (tensor<3145728xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "pointwise", nova.space = array<i64: 3145728>} {
  %e = tensor.empty() : tensor<3145728xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%p, %g : tensor<3145728xf32>, tensor<3145728xf32>) outs(%e : tensor<3145728xf32>) {
  ^bb0(%v: f32, %d: f32, %o: f32):
    %n = arith.subf %v, %d : f32
    linalg.yield %n : f32
  } -> tensor<3145728xf32>
  return %r : tensor<3145728xf32>
}
