// RUN: nova-opt %s --nova-group-kernels=device=abacus --verify-diagnostics

// expected-error @below {{no GPU 'abacus' to group kernels for; known: h200 h100 a100}}
module {
}
