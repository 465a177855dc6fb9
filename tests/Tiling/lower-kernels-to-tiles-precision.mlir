// RUN: nova-opt %s --nova-lower-kernels-to-tiles=precision=fp8 --verify-diagnostics

// expected-error@+1 {{precision 'fp8', expected f32, tf32 or bf16}}
module {
}
