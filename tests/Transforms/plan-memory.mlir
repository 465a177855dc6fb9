// RUN: nova-opt %s --nova-plan-memory --split-input-file | FileCheck %s

#id = affine_map<(d0) -> (d0)>

// In place where the kernel may: the intermediate takes over its operand's
// memory, the update is written over its input. One arena buffer's worth.
// CHECK-LABEL: func @in_place
// CHECK-SAME: buffers = [#nova.buffer<offset = 0, size = 4096, first = 0, last = 1, alias = -1>, #nova.buffer<offset = 0, size = 4096, first = 1, last = 2, alias = 0>]
// CHECK-SAME: lower_bound = 4096 : i64, size = 4096 : i64
// CHECK: nova.launch @negate(%arg0) {{.*}}nova.after = array<i64>, nova.places = [#nova.place<input, 0, 0>, #nova.place<arena, 0, 0>]
// CHECK: nova.launch @negate({{.*}}nova.after = array<i64: 0>, nova.places = [#nova.place<arena, 0, 0>, #nova.place<arena, 1, 0>]
// CHECK: nova.launch @add(%{{.*}}, %arg0) {{.*}}nova.after = array<i64: 1>, nova.places = [#nova.place<arena, 1, 0>, #nova.place<input, 0, 0>, #nova.place<input, 0, 0>]
// CHECK-NOT: nova.transfer
// CHECK: @negate({{.*}} attributes {nova.inplace = [array<i64: 0, 0>], nova.kernel
// CHECK: @add({{.*}} attributes {nova.inplace = [array<i64: 1, 0>], nova.kernel
func.func @in_place(%w: tensor<1024xf32>) -> (tensor<1024xf32> {nova.updates = 0 : i64}) attributes {nova.graph = "g"} {
  %a = nova.launch @negate(%w) views [#nova.view<0, [1]>] nodes [] : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = nova.launch @negate(%a) views [#nova.view<0, [1]>] nodes [] : (tensor<1024xf32>) -> tensor<1024xf32>
  %c = nova.launch @add(%b, %w) views [#nova.view<0, [1]>, #nova.view<0, [1]>] nodes [] : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %c : tensor<1024xf32>
}
func.func private @negate(%x: tensor<1024xf32>) -> (tensor<1024xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 1024>} {
  %e = tensor.empty() : tensor<1024xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<1024xf32>
  return %r : tensor<1024xf32>
}
func.func private @add(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> (tensor<1024xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 1024>} {
  %e = tensor.empty() : tensor<1024xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.addf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<1024xf32>
  return %r : tensor<1024xf32>
}

// -----
#id = affine_map<(d0) -> (d0)>

// A later reader still wants the old value: computed aside, moved at the end,
// after that reader.
// CHECK-LABEL: func @aside
// CHECK: nova.launch @negate(%arg0) {{.*}}nova.places = [#nova.place<input, 0, 0>, #nova.place<arena, 0, 0>]
// CHECK: nova.launch @negate(%arg0) {{.*}}nova.after = array<i64>, nova.places = [#nova.place<input, 0, 0>, #nova.place<output, 1, 0>]
// CHECK: nova.transfer <input, 0, 0> from <arena, 0, 0> bytes 4096 {nova.after = array<i64: 0, 1>}
func.func @aside(%w: tensor<1024xf32>) -> (tensor<1024xf32> {nova.updates = 0 : i64}, tensor<1024xf32>) attributes {nova.graph = "g"} {
  %a = nova.launch @negate(%w) views [#nova.view<0, [1]>] nodes [] : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = nova.launch @negate(%w) views [#nova.view<0, [1]>] nodes [] : (tensor<1024xf32>) -> tensor<1024xf32>
  return %a, %b : tensor<1024xf32>, tensor<1024xf32>
}
func.func private @negate(%x: tensor<1024xf32>) -> (tensor<1024xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 1024>} {
  %e = tensor.empty() : tensor<1024xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<1024xf32>
  return %r : tensor<1024xf32>
}

// -----
// A kernel that reads elsewhere than it writes is never in place, nor one whose
// operand comes twice.
// CHECK-LABEL: func @elsewhere
// CHECK-SAME: alias = -1>, #nova.buffer<{{.*}}alias = -1>
// CHECK: nova.transfer
// CHECK: @reverse({{.*}} attributes {nova.kernel
func.func @elsewhere(%w: tensor<1024xf32>) -> (tensor<1024xf32> {nova.updates = 0 : i64}, tensor<1024xf32>) attributes {nova.graph = "g"} {
  %a = nova.launch @reverse(%w) views [#nova.view<0, [1]>] nodes [] : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = nova.launch @reverse(%a) views [#nova.view<0, [1]>] nodes [] : (tensor<1024xf32>) -> tensor<1024xf32>
  %c = nova.launch @reverse(%b) views [#nova.view<0, [1]>] nodes [] : (tensor<1024xf32>) -> tensor<1024xf32>
  return %a, %c : tensor<1024xf32>, tensor<1024xf32>
}
func.func private @reverse(%x: tensor<1024xf32>) -> (tensor<1024xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 1024>} {
  %e = tensor.empty() : tensor<1024xf32>
  %c = arith.constant 1023 : index
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<1024xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = arith.subi %c, %i : index
    %v = tensor.extract %x[%j] : tensor<1024xf32>
    linalg.yield %v : f32
  } -> tensor<1024xf32>
  return %r : tensor<1024xf32>
}

// -----
#id = affine_map<(d0) -> (d0)>

// What divides the address of an argument in every launch: 16 bytes unless a
// view starts at another place in some. Here one launch reads from byte 4 * 2,
// another from byte 4 * 6, the third from 4 * 4; the other argument is at its
// start everywhere.
// CHECK-LABEL: func @alignment
// CHECK: nova.places = [#nova.place<input, 0, 8>, #nova.place<input, 1, 0>
// CHECK: nova.places = [#nova.place<input, 0, 24>, #nova.place<input, 1, 0>
// CHECK: nova.places = [#nova.place<input, 0, 16>, #nova.place<input, 1, 0>
// CHECK: func.func private @add(%arg0: tensor<8xf32> {nova.alignment = 8 : i64}, %arg1: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>})
// CHECK: func.func private @negate(%arg0: tensor<8xf32> {nova.alignment = 4 : i64})
// CHECK: func.func private @even(%arg0: tensor<8xf32>)
func.func @alignment(%x: tensor<32xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {nova.graph = "g"} {
  %a = nova.launch @add(%x, %y) views [#nova.view<2, [1]>, #nova.view<0, [1]>] nodes [] : (tensor<32xf32>, tensor<8xf32>) -> tensor<8xf32>
  %b = nova.launch @add(%x, %y) views [#nova.view<6, [1]>, #nova.view<0, [1]>] nodes [] : (tensor<32xf32>, tensor<8xf32>) -> tensor<8xf32>
  %c = nova.launch @add(%x, %y) views [#nova.view<4, [1]>, #nova.view<0, [1]>] nodes [] : (tensor<32xf32>, tensor<8xf32>) -> tensor<8xf32>
  %d = nova.launch @negate(%x) views [#nova.view<7, [1]>] nodes [] : (tensor<32xf32>) -> tensor<8xf32>
  %e = nova.launch @even(%x) views [#nova.view<8, [1]>] nodes [] : (tensor<32xf32>) -> tensor<8xf32>
  return %a, %b, %c, %d, %e : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func private @add(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 8>} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.addf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @negate(%x: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 8>} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func private @even(%x: tensor<8xf32>) -> (tensor<8xf32> {nova.map = array<i64: 0>}) attributes {nova.kernel, nova.space = array<i64: 8>} {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.absf %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
