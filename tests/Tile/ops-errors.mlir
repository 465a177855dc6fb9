// RUN: nova-opt %s --split-input-file --verify-diagnostics

// Layouts.

// expected-error @+1 {{layout: core extent 3 is not a power of two}}
func.func private @core(tensor<3xf32, #tile.layout<core = [3], outer = [1], registers = [], lanes = [0, 0, 0, 0, 0], warps = []>>)

// -----
// expected-error @+1 {{layout: 1 positive outer factors expected}}
func.func private @outer_count(tensor<2xf32, #tile.layout<core = [2], outer = [], registers = [1], lanes = [0, 0, 0, 0, 0], warps = []>>)

// -----
// expected-error @+1 {{layout: 1 positive outer factors expected}}
func.func private @outer_sign(tensor<2xf32, #tile.layout<core = [2], outer = [0], registers = [1], lanes = [0, 0, 0, 0, 0], warps = []>>)

// -----
// expected-error @+1 {{layout: 5 lane bases expected, got 2}}
func.func private @lanes(tensor<2xf32, #tile.layout<core = [2], outer = [1], registers = [1], lanes = [0, 0], warps = []>>)

// -----
// expected-error @+1 {{layout: basis 2 is outside the core of 2 elements}}
func.func private @basis(tensor<2xf32, #tile.layout<core = [2], outer = [1], registers = [1], lanes = [2, 0, 0, 0, 0], warps = []>>)

// -----
// expected-error @+1 {{layout: no thread holds some of the elements}}
func.func private @holes(tensor<4xf32, #tile.layout<core = [4], outer = [1], registers = [1], lanes = [1, 0, 0, 0, 0], warps = []>>)

// -----
// expected-error @+1 {{layout: two registers of a thread hold one element}}
func.func private @twice(tensor<4xf32, #tile.layout<core = [4], outer = [1], registers = [1, 2, 3], lanes = [0, 0, 0, 0, 0], warps = []>>)

// -----
// expected-error @+1 {{layout: of a tile of shape [4], expected [8]}}
func.func private @shape(tensor<8xf32, #tile.layout<core = [4], outer = [1], registers = [1, 2], lanes = [0, 0, 0, 0, 0], warps = []>>)

// -----
// Access to memory: the same for load, store and async_load.

func.func @dynamic(%m: memref<?xf32>, %i: index) {
  // expected-error @+1 {{'tile.load' op memory of static shape expected, got 'memref<?xf32>'}}
  %a = tile.load %m[%i] along [0] bounds [0] : memref<?xf32> -> tensor<8xf32>
  return
}

// -----
func.func @offsets(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'tile.load' op 2 offsets expected, got 1}}
  %a = tile.load %m[%i] along [0] bounds [0] : memref<8x8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @along_count(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'tile.load' op the tile has rank 1: as many entries of along and bounds expected}}
  %a = tile.load %m[%i, %i] along [0, 1] bounds [0] : memref<8x8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @bounds_count(%m: memref<8x8xf32>, %i: index, %t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.store' op the tile has rank 1: as many entries of along and bounds expected}}
  tile.store %t, %m[%i, %i] along [0] bounds [] : tensor<8xf32>, memref<8x8xf32>
  return
}

// -----
func.func @along_range(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'tile.load' op along: 2 is no memory dimension or repeated}}
  %a = tile.load %m[%i, %i] along [2] bounds [0] : memref<8x8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @along_twice(%m: memref<8x8xf32>, %i: index, %t: tensor<8x8xf32>) {
  // expected-error @+1 {{'tile.store' op along: 1 is no memory dimension or repeated}}
  tile.store %t, %m[%i, %i] along [1, 1] bounds [0, 0] : tensor<8x8xf32>, memref<8x8xf32>
  return
}

// -----
func.func @bounds(%m: memref<8xf32>, %i: index) {
  %ring = tile.alloc : !tile.buffer<2, [8], f32, 1, 1>
  // expected-error @+1 {{'tile.async_load' op bounds: 0, 1 or 2 expected, got 3}}
  %a = tile.async_load %m[%i] into %ring[%i] along [0] bounds [3] : memref<8xf32>, !tile.buffer<2, [8], f32, 1, 1>
  return
}

// -----
func.func @elements(%m: memref<8xf32>, %i: index) {
  // expected-error @+1 {{'tile.load' op element types differ: 'f64' and 'f32'}}
  %a = tile.load %m[%i] along [0] bounds [0] : memref<8xf32> -> tensor<8xf64>
  return
}

// -----
func.func @fill(%m: memref<8xf32>, %i: index, %x: f64) {
  // expected-error @+1 {{'tile.load' op fill is not of the element type}}
  %a = tile.load %m[%i] along [0] bounds [0] fill %x : f64 : memref<8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @gather_memory(%m: memref<?xf32>, %i: index) {
  // expected-error @+1 {{'tile.gather' op memory of static shape expected, got 'memref<?xf32>'}}
  %a = tile.gather %m[%i : index] : memref<?xf32> -> tensor<8xf32>
  return
}

// -----
func.func @gather_count(%m: memref<8x8xf32>, %i: index) {
  // expected-error @+1 {{'tile.gather' op 2 indices expected, got 1}}
  %a = tile.gather %m[%i : index] : memref<8x8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @gather_elements(%m: memref<8xf32>, %i: index) {
  // expected-error @+1 {{'tile.gather' op element types differ}}
  %a = tile.gather %m[%i : index] : memref<8xf32> -> tensor<8xf64>
  return
}

// -----
func.func @gather_index(%m: memref<8xf32>, %i: tensor<4xindex>) {
  // expected-error @+1 {{'tile.gather' op an index is neither a scalar nor a tile of index like the result: 'tensor<4xindex>'}}
  %a = tile.gather %m[%i : tensor<4xindex>] : memref<8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @gather_mask(%m: memref<8xf32>, %i: index, %w: tensor<8xi8>) {
  // expected-error @+1 {{'tile.gather' op the mask is not a tile of i1 like the result}}
  %a = tile.gather %m[%i : index] mask %w : tensor<8xi8> : memref<8xf32> -> tensor<8xf32>
  return
}

// -----
// Values.

func.func @range(%i: index) {
  // expected-error @+1 {{'tile.range' op a tile of rank 1 of index expected, got 'tensor<8xi64>'}}
  %a = tile.range %i : tensor<8xi64>
  return
}

// -----
func.func @splat(%x: f32) {
  // expected-error @+1 {{'tile.splat' op the value is not of the element type}}
  %a = tile.splat %x : f32 -> tensor<8xf64>
  return
}

// -----
func.func @broadcast_count(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.broadcast' op 1 dims expected}}
  %a = tile.broadcast %t dims [0, 1] : tensor<8xf32> -> tensor<8x8xf32>
  return
}

// -----
func.func @broadcast_dim(%t: tensor<8x8xf32>) {
  // expected-error @+1 {{'tile.broadcast' op dims: 0 is no dimension of the result or repeated}}
  %a = tile.broadcast %t dims [0, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  return
}

// -----
func.func @broadcast_extent(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.broadcast' op dims: extents 8 and 4 differ}}
  %a = tile.broadcast %t dims [0] : tensor<8xf32> -> tensor<4x8xf32>
  return
}

// -----
func.func @broadcast_elements(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.broadcast' op element types differ}}
  %a = tile.broadcast %t dims [0] : tensor<8xf32> -> tensor<8x4xf64>
  return
}

// -----
func.func @any(%t: tensor<8xi8>) {
  // expected-error @+1 {{'tile.any' op a tile of i1 expected}}
  %a = tile.any %t : tensor<8xi8>
  return
}

// -----
func.func @scan_dim(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.scan' op a tile that has the dimension, and the same type again, expected}}
  %a = tile.scan %t along 1 : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @scan_negative(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.scan' op a tile that has the dimension, and the same type again, expected}}
  %a = tile.scan %t along -1 : tensor<8xf32> -> tensor<8xf32>
  return
}

// -----
func.func @scan_type(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.scan' op a tile that has the dimension, and the same type again, expected}}
  %a = tile.scan %t along 0 : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----
func.func @scalar(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.scalar' op a tile of rank 0 of the result's type expected}}
  %a = tile.scalar %t : tensor<8xf32> -> f32
  return
}

// -----
func.func @convert(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.convert' op types may differ in their layout only}}
  %a = tile.convert %t : tensor<8xf32> -> tensor<8xf64>
  return
}

// -----
func.func @dot_shapes(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) {
  // expected-error @+1 {{'tile.dot' op shapes MxK, KxN -> MxN expected, got 'tensor<4x8xf32>', 'tensor<4x8xf32>' -> 'tensor<4x8xf32>'}}
  %d = tile.dot %a, %b, %c f32 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----
func.func @dot_elements(%a: tensor<4x8xf64>, %b: tensor<8x4xf64>, %c: tensor<4x4xf32>) {
  // expected-error @+1 {{'tile.dot' op float operands of equal types and an f32 (f64 for f64) accumulator expected}}
  %d = tile.dot %a, %b, %c f32 : tensor<4x8xf64>, tensor<8x4xf64> -> tensor<4x4xf32>
  return
}

// -----
// Reductions.

func.func @reduce_results(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.reduce' op as many results as operands expected, at least one}}
  %a:2 = tile.reduce %t along 0 : tensor<8xf32> -> tensor<f32>, tensor<f32> {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x : f32
  }
  return
}

// -----
func.func @reduce_arguments(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.reduce' op a combiner of 2 scalars expected}}
  %a = tile.reduce %t along 0 : tensor<8xf32> -> tensor<f32> {
  ^bb0(%x: f32):
    tile.yield %x : f32
  }
  return
}

// -----
func.func @reduce_yield(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.reduce' op a combiner that yields 1 scalars expected}}
  %a = tile.reduce %t along 0 : tensor<8xf32> -> tensor<f32> {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x, %y : f32, f32
  }
  return
}

// -----
func.func @reduce_empty(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.reduce' op expects a non-empty block}}
  %a = tile.reduce %t along 0 : tensor<8xf32> -> tensor<f32> {
  ^bb0(%x: f32, %y: f32):
  }
  return
}

// -----
func.func @reduce_dim(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.reduce' op operands differ in shape or lack the dimension}}
  %a = tile.reduce %t along 1 : tensor<8xf32> -> tensor<f32> {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x : f32
  }
  return
}

// -----
func.func @reduce_negative(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.reduce' op operands differ in shape or lack the dimension}}
  %a = tile.reduce %t along -1 : tensor<8xf32> -> tensor<f32> {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x : f32
  }
  return
}

// -----
func.func @reduce_shapes(%t: tensor<8xf32>, %u: tensor<4xf32>) {
  // expected-error @+1 {{'tile.reduce' op operands differ in shape or lack the dimension}}
  %a:2 = tile.reduce %t, %u along 0 : tensor<8xf32>, tensor<4xf32> -> tensor<f32>, tensor<f32> {
  ^bb0(%x: f32, %z: f32, %y: f32, %w: f32):
    tile.yield %x, %y : f32, f32
  }
  return
}

// -----
func.func @reduce_result(%t: tensor<4x8xf32>) {
  // expected-error @+1 {{'tile.reduce' op a result is not the operand less its dimension}}
  %a = tile.reduce %t along 0 : tensor<4x8xf32> -> tensor<4xf32> {
  ^bb0(%x: f32, %y: f32):
    tile.yield %x : f32
  }
  return
}

// -----
func.func @reduce_combiner(%t: tensor<8xf32>) {
  // expected-error @+1 {{'tile.reduce' op the combiner's types are not the element types}}
  %a = tile.reduce %t along 0 : tensor<8xf32> -> tensor<f32> {
  ^bb0(%x: f32, %y: f64):
    tile.yield %x : f32
  }
  return
}

// -----
// Rings.

// expected-error @+1 {{buffer: at least one slot expected, got 0}}
func.func private @slots(!tile.buffer<0, [8], f32, 1, 1>)

// -----
// expected-error @+1 {{buffer: extent 0 of a slot is not positive}}
func.func private @slot_shape(!tile.buffer<1, [0], f32, 1, 1>)

// -----
// expected-error @+1 {{buffer: perPhase 1 and phases 3 are not both powers of two}}
func.func private @phases(!tile.buffer<1, [8], f32, 1, 3>)

// -----
func.func @wait() {
  // expected-error @+1 {{'tile.wait' op pending is negative}}
  %a = tile.wait -1
  return
}

// -----
func.func @local_load_count(%ring: !tile.buffer<2, [8], f32, 1, 1>, %i: index, %w: !tile.token) {
  // expected-error @+1 {{'tile.local_load' op one entry of dims for each dimension expected}}
  %a = tile.local_load %ring[%i] after %w dims [] : !tile.buffer<2, [8], f32, 1, 1> -> tensor<8xf32>
  return
}

// -----
func.func @local_load_extent(%ring: !tile.buffer<2, [8, 4], f32, 1, 1>, %i: index, %w: !tile.token) {
  // expected-error @+1 {{'tile.local_load' op dims do not map the slot's shape to the tile's}}
  %a = tile.local_load %ring[%i] after %w dims [1, 0] : !tile.buffer<2, [8, 4], f32, 1, 1> -> tensor<8x4xf32>
  return
}

// -----
func.func @local_load_repeated(%ring: !tile.buffer<2, [8, 8], f32, 1, 1>, %i: index, %w: !tile.token) {
  // expected-error @+1 {{'tile.local_load' op dims do not map the slot's shape to the tile's}}
  %a = tile.local_load %ring[%i] after %w dims [0, 0] : !tile.buffer<2, [8, 8], f32, 1, 1> -> tensor<8x8xf32>
  return
}

// -----
func.func @local_load_elements(%ring: !tile.buffer<2, [8], f32, 1, 1>, %i: index, %w: !tile.token) {
  // expected-error @+1 {{'tile.local_load' op element types differ}}
  %a = tile.local_load %ring[%i] after %w dims [0] : !tile.buffer<2, [8], f32, 1, 1> -> tensor<8xf64>
  return
}

// -----
func.func @local_store_repeated(%v: tensor<8x8xf32>, %ring: !tile.buffer<2, [8, 8], f32, 1, 1>, %i: index) {
  // expected-error @+1 {{'tile.local_store' op dims do not map the slot's shape to the tile's}}
  tile.local_store %v, %ring[%i] dims [1, 1] : tensor<8x8xf32>, !tile.buffer<2, [8, 8], f32, 1, 1>
  return
}

// -----
// Panels.

// expected-error @+1 {{buffer: panels are of matrices, with perPhase 1 and phases 8}}
func.func private @panels(!tile.buffer<2, [8, 32], f32, 1, 4, panels = true>)

// -----
// expected-error @+1 {{channel: at least one slot expected, got 0}}
func.func private @channel(!tile.channel<0>)

// -----
// Roles.
func.func @slots(%m: memref<8xf32>, %ring: !tile.buffer<2, [8], f32, 1, 1>, %ch: !tile.channel<3>, %i: index) {
  tile.role of 4 single {
    // expected-error @+1 {{'tile.bulk_load' op ring and channel differ in their number of slots}}
    tile.bulk_load %m[%i] into %ring[%i] through %ch along [0] bounds [0] : memref<8xf32>, !tile.buffer<2, [8], f32, 1, 1>, !tile.channel<3>
  }
  return
}

// -----
func.func @rounding(%m: memref<8xbf16>, %ring: !tile.buffer<2, [8], bf16, 1, 1>, %ch: !tile.channel<2>, %i: index) {
  tile.role of 4 single {
    // expected-error @+1 {{'tile.bulk_load' op tf32 is a rounding of float32, the ring holds 'bf16'}}
    tile.bulk_load %m[%i] into %ring[%i] through %ch along [0] bounds [0] tf32 : memref<8xbf16>, !tile.buffer<2, [8], bf16, 1, 1>, !tile.channel<2>
  }
  return
}

// -----
func.func @outside(%m: memref<8xf32>, %ring: !tile.buffer<2, [8], f32, 1, 1>, %ch: !tile.channel<2>, %i: index) {
  // expected-error @+1 {{'tile.bulk_load' op copies through a channel are for a role of their own}}
  tile.bulk_load %m[%i] into %ring[%i] through %ch along [0] bounds [0] : memref<8xf32>, !tile.buffer<2, [8], f32, 1, 1>, !tile.channel<2>
  return
}

// -----
func.func @nobody() {
  // expected-error @+1 {{'tile.role' op at least one warp expected}}
  tile.role of 0 {
  }
  return
}

// -----
func.func @busy(%m: memref<8xf32>, %v: tensor<8xf32>, %i: index) {
  tile.role of 4 {
    // expected-error @+1 {{is not for a role of its own: loops, scalars and the operations of channels are}}
    tile.store %v, %m[%i] along [0] bounds [0] : tensor<8xf32>, memref<8xf32>
  }
  return
}

// -----
// Members.

func.func @starts_at(%p: index) {
  // expected-error @+1 {{'tile.member' op starts: 0 expected first}}
  %m, %l = tile.member %p starts [1, 2]
  return
}

// -----
func.func @starts_ascend(%p: index) {
  // expected-error @+1 {{'tile.member' op starts: 2 after 2, expected ascending numbers}}
  %m, %l = tile.member %p starts [0, 2, 2]
  return
}

// -----
func.func @select_elements(%n: index, %a: memref<4xf32>, %b: memref<4xf64>) {
  // expected-error @+1 {{'tile.select' op memories of static shape, equal element types and equal strides expected}}
  %m = tile.select %n of %a, %b : memref<4xf32>, memref<4xf64> -> memref<4xf32, strided<[1]>>
  return
}

// -----
func.func @select_strides(%n: index, %a: memref<4x4xf32>, %b: memref<4x8xf32>) {
  // expected-error @+1 {{'tile.select' op memories of static shape, equal element types and equal strides expected}}
  %m = tile.select %n of %a, %b : memref<4x4xf32>, memref<4x8xf32> -> memref<4x?xf32>
  return
}

// -----
func.func @select_type(%n: index, %a: memref<4xf32>, %b: memref<8xf32>) {
  // expected-error @+1 {{'tile.select' op a result of type 'memref<?xf32, strided<[1]>>' expected, got 'memref<8xf32>'}}
  %m = tile.select %n of %a, %b : memref<4xf32>, memref<8xf32> -> memref<8xf32>
  return
}

// -----
func.func @select_parameters(%n: index, %a: memref<4xf32>, %b: memref<8xf32>) {
  %m = tile.select %n of %a, %b : memref<4xf32>, memref<8xf32> -> memref<?xf32, strided<[1]>>
  // expected-error @+1 {{'tile.select' op memories of static shape, equal element types and equal strides expected}}
  %o = tile.select %n of %m, %m : memref<?xf32, strided<[1]>>, memref<?xf32, strided<[1]>> -> memref<?xf32, strided<[1]>>
  return
}

// -----
func.func @select_own(%n: index) {
  %a = memref.alloc() : memref<4xf32>
  // expected-error @+1 {{'tile.select' op parameters of the program expected}}
  %m = tile.select %n of %a : memref<4xf32> -> memref<4xf32, strided<[1]>>
  return
}
