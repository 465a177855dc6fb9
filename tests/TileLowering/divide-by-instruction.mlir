// RUN: nova-opt %s --nova-divide-by-instruction | FileCheck %s

// CHECK-LABEL: llvm.func @f32
// CHECK: %[[Q:.*]] = llvm.call_intrinsic "llvm.nvvm.div.full"(%arg0, %arg1) : (f32, f32) -> f32
// CHECK: %[[R:.*]] = llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%[[Q]]) : (f32) -> f32
// CHECK: llvm.return %[[R]]
llvm.func @f32(%a: f32, %b: f32) -> f32 {
  %q = arith.divf %a, %b : f32
  %r = math.sqrt %q : f32
  llvm.return %r : f32
}

// Other types have no such instructions.
// CHECK-LABEL: llvm.func @f64
// CHECK: arith.divf
// CHECK: math.sqrt
llvm.func @f64(%a: f64, %b: f64) -> f64 {
  %q = arith.divf %a, %b : f64
  %r = math.sqrt %q : f64
  llvm.return %r : f64
}
