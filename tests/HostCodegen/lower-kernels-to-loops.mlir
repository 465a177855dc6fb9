// RUN: nova-opt %s --nova-lower-kernels-to-loops --canonicalize --cse | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>

// Flat memory that spans the strides; lanes along the contiguous dimension of
// the result, one access per lane where the argument is strided; the rest of a
// row by scalars. Tiles of 2 out of 5 rows: the last one is cut.

// CHECK-LABEL: func.func private @bias.body(
// CHECK-SAME:    %[[X:.*]]: memref<185xf32> {llvm.noalias, llvm.readonly}, %[[B:.*]]: memref<37xf32> {llvm.noalias, llvm.readonly},
// CHECK-SAME:    %[[Y:.*]]: memref<185xf32> {llvm.noalias}, %[[FIRST:.*]]: index, %[[LAST:.*]]: index)
// CHECK:         scf.for %[[POINT:.*]] = %[[FIRST]] to %[[LAST]] step %c1
// CHECK:           arith.subi %c5
// CHECK:           %[[ROWS:.*]] = arith.minsi {{.*}}, %c2
// CHECK:           scf.for {{.*}} = %c0 to %[[ROWS]] step %c1
// CHECK:             scf.for {{.*}} = %c0 to %c32 step %c8
// CHECK-COUNT-8:       memref.load %[[X]]
// CHECK:               vector.from_elements
// CHECK:               vector.load %[[B]]
// CHECK:               arith.addf {{.*}} fastmath<contract> : vector<8xf32>
// CHECK:               vector.store {{.*}}, %[[Y]]
// CHECK:             scf.for {{.*}} = %c32 to %c37 step %c1
// CHECK:               memref.store {{.*}}, %[[Y]]
func.func private @bias(%x: tensor<5x37xf32> {nova.strides = array<i64: 1, 5>}, %b: tensor<37xf32>)
    -> (tensor<5x37xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 5>, nova.tile = array<i64: 2>} {
  %e = tensor.empty() : tensor<5x37xf32>
  %y = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<5x37xf32>, tensor<37xf32>) outs(%e : tensor<5x37xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %0 = arith.addf %in, %bias : f32
    linalg.yield %0 : f32
  } -> tensor<5x37xf32>
  return %y : tensor<5x37xf32>
}

// A value inside the kernel is a stack buffer of one tile (3 of 6 rows); a row's
// sum runs in vector accumulators, then is folded in a fixed order.

// CHECK-LABEL: func.func private @center.body(
// CHECK-SAME:    %[[X:[^:]*]]: memref<384xf32>
// CHECK:         %[[SUM:.*]] = memref.alloca() {alignment = 64 : i64} : memref<3xf32>
// CHECK:         scf.for
// CHECK:           scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK:             vector.load %[[X]]
// CHECK-COUNT-2:     vector.shuffle
// CHECK:             memref.store {{.*}}, %[[SUM]]
// CHECK:             memref.load %[[SUM]]
// CHECK:             arith.subf {{.*}} : vector<8xf32>
func.func private @center(%x: tensor<6x64xf32>) -> (tensor<6x64xf32> {nova.map = array<i64: 0, -1>})
    attributes {nova.kernel, nova.space = array<i64: 6>, nova.tile = array<i64: 3>} {
  %zero = arith.constant dense<0.0> : tensor<6xf32>
  %e = tensor.empty() : tensor<6x64xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x64xf32>) outs(%zero : tensor<6xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %0 = arith.addf %in, %acc : f32
    linalg.yield %0 : f32
  } -> tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<6x64xf32>, tensor<6xf32>) outs(%e : tensor<6x64xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %0 = arith.subf %in, %s : f32
    linalg.yield %0 : f32
  } -> tensor<6x64xf32>
  return %y : tensor<6x64xf32>
}

// Booleans are bytes in memory; a row of them is loaded as i8.

// CHECK-LABEL: func.func private @not.body(
// CHECK-SAME:    %[[X:[^:]*]]: memref<16xi8>
// CHECK:         %[[BYTES:.*]] = vector.load %[[X]]{{.*}} : memref<16xi8>, vector<8xi8>
// CHECK:         arith.trunci %[[BYTES]] : vector<8xi8> to vector<8xi1>
// CHECK:         arith.extui {{.*}} : vector<8xi1> to vector<8xi8>
// CHECK:         vector.store {{.*}} : memref<16xi8>, vector<8xi8>
func.func private @not(%x: tensor<16xi1>) -> (tensor<16xi1> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 16>, nova.tile = array<i64: 16>} {
  %e = tensor.empty() : tensor<16xi1>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<16xi1>) outs(%e : tensor<16xi1>) {
  ^bb0(%in: i1, %out: i1):
    %true = arith.constant true
    %0 = arith.xori %in, %true : i1
    linalg.yield %0 : i1
  } -> tensor<16xi1>
  return %y : tensor<16xi1>
}

// In place, but read by a later op after the result is computed: the result is
// staged on the stack and copied at the end. The pair is not noalias.

// CHECK-LABEL: func.func private @staged.body(
// CHECK-SAME:    %[[P:[^:]*]]: memref<64xf32>, %[[Q:[^:]*]]: memref<64xf32>, %[[R:[^:]*]]: memref<64xf32> {llvm.noalias}
// CHECK:         %[[STAGE:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK:         vector.store {{.*}}, %[[STAGE]]
// CHECK:         vector.store {{.*}}, %[[R]]
// CHECK:         vector.load %[[STAGE]]
// CHECK:         vector.store {{.*}}, %[[Q]]
func.func private @staged(%p: tensor<64xf32>)
    -> (tensor<64xf32> {nova.map = array<i64: 0>}, tensor<64xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 64>, nova.tile = array<i64: 8>, nova.inplace = [array<i64: 0, 0>]} {
  %e = tensor.empty() : tensor<64xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%p : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%p, %q : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%in: f32, %neg: f32, %out: f32):
    %0 = arith.mulf %in, %neg : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %q, %r : tensor<64xf32>, tensor<64xf32>
}

// A product of matrices: B in packed panels, a register tile of 6 x 16.

// CHECK-LABEL: func.func private @matmul.body(
// CHECK-SAME:    %[[A:[^:]*]]: memref<6144xf32>
// CHECK:         %[[PACKED:.*]] = memref.alloca() {alignment = 64 : i64} : memref<2048xf32>
// CHECK:         vector.store {{.*}}, %[[PACKED]]
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           vector.load %[[PACKED]]
// CHECK:           memref.load %[[A]]
// CHECK-COUNT-12:  vector.fma
func.func private @matmul(%a: tensor<96x64xf32>, %b: tensor<64x96xf32>) -> (tensor<96x96xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 96, 96>, nova.tile = array<i64: 48, 32>} {
  %zero = arith.constant dense<0.0> : tensor<96x96xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<96x64xf32>, tensor<64x96xf32>) outs(%zero : tensor<96x96xf32>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<96x96xf32>
  return %c : tensor<96x96xf32>
}
