// RUN: nova-opt %s --nova-lower-tiles-to-threads --split-input-file --verify-diagnostics

#l = #tile.layout<core = [32], outer = [1], registers = [], lanes = [1, 2, 4, 8, 16], warps = []>
func.func @unknown(%a: memref<32xf32>) attributes {tile.warps = 1 : i64} {
  // expected-error @below {{'tensor.empty' op is not known to the lowering of tile programs}}
  %x = tensor.empty() : tensor<32xf32, #l>
  return
}

// -----

#l = #tile.layout<core = [2], outer = [1], registers = [1], lanes = [0, 0, 0, 0, 0], warps = []>
func.func @constant() attributes {tile.warps = 1 : i64} {
  // expected-error @below {{a tile constant with one value expected}}
  %x = arith.constant dense<[1.0, 2.0]> : tensor<2xf32, #l>
  return
}

// -----

func.func @narrow(%a: memref<32xbf16, strided<[2]>>) attributes {tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %b = tile.alloc : !tile.buffer<2, [32], bf16, 1, 1>
  // expected-error @below {{copies 2 bytes at a time: 4, 8 or 16 can be asynchronous}}
  %t = tile.async_load %a[%c0] into %b[%c0] along [0] bounds [0] : memref<32xbf16, strided<[2]>>, !tile.buffer<2, [32], bf16, 1, 1>
  return
}

// -----

#l = #tile.layout<core = [2, 16], outer = [1, 1], registers = [], lanes = [1, 2, 4, 8, 16], warps = []>
#s = #tile.layout<core = [2], outer = [3], registers = [1], lanes = [0, 0, 0, 0, 0], warps = []>
func.func @region(%c: i1) attributes {tile.warps = 1 : i64} {
  // expected-error @below {{'scf.execute_region' op is not known to the lowering of tile programs}}
  scf.execute_region {
    scf.yield
  }
  return
}
