// RUN: nova-opt %s --nova-configure-kernels=device=abacus --verify-diagnostics

// expected-error @+1 {{no device 'abacus' to configure kernels for; known: x86-64-v3}}
module {
}
