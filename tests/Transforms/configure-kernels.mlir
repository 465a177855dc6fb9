// RUN: nova-opt %s --nova-configure-kernels | FileCheck %s
// RUN: nova-opt %s --nova-configure-kernels=device=h200 | FileCheck %s --check-prefix=GPU

// Candidates, the best first, which the kernel has; then what was dropped.
// GPU: func.func private @product
// GPU-SAME: nova.candidates = [{nova.family = "{{portable|hopper}}", nova.local_tile = array<i64: {{[0-9]+}}>, nova.persistent_blocks = {{[0-9]+}} : i64, nova.predicted_ns = {{[0-9]+}} : i64, nova.raster_rows = {{[0-9]+}} : i64
// GPU-SAME: nova.reason = "products of tiles: tile {{[0-9]+ [0-9]+ [0-9]+}}, {{[0-9]+}} warps{{[^:]*}}: {{[0-9]+}} blocks, {{[0-9]+}} at once on each of 132 SMs; {{[0-9.]+}} us, bound by {{[^"]+}}"
// GPU-SAME: nova.stages = [[STAGES:[0-9]+]] : i64, nova.teams = {{[0-9]+}} : i64, nova.tile = array<i64: [[TILE:[0-9]+, [0-9]+]]>, nova.warps = [[WARPS:[0-9]+]] : i64}, {
// GPU-SAME: nova.dropped = [
// GPU-SAME: nova.kernel, nova.local_tile = array<i64: {{[0-9]+}}>
// GPU-SAME: nova.stages = [[STAGES]] : i64, nova.teams = {{[0-9]+}} : i64, nova.tile = array<i64: [[TILE]]>, nova.warps = [[WARPS]] : i64

// CHECK: func.func private @product
// CHECK-SAME: nova.reason = "tile {{[0-9]+x[0-9]+}}: {{[0-9]+}} points over 8 cores
// CHECK-SAME: nova.tile = array<i64: {{[0-9]+}}, {{[0-9]+}}>
func.func private @product(%a: tensor<64x32xf32>, %b: tensor<32x48xf32>) -> (tensor<64x48xf32> {nova.map = array<i64: 0, 1>})
    attributes {nova.kernel, nova.space = array<i64: 64, 48>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>) {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<64x48xf32>
  return %r : tensor<64x48xf32>
}

// A short row: many rows at one grid point.
// CHECK: func.func private @rows
// CHECK-SAME: nova.tile = array<i64: 1000>
func.func private @rows(%a: tensor<1000x8xf32>) -> (tensor<1000xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.space = array<i64: 1000>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1000xf32>) -> tensor<1000xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<1000x8xf32>) outs(%f : tensor<1000xf32>) {
  ^bb0(%x: f32, %s: f32):
    %t = arith.addf %s, %x : f32
    linalg.yield %t : f32
  } -> tensor<1000xf32>
  return %r : tensor<1000xf32>
}
