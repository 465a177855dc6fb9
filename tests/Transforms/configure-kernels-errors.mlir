// RUN: nova-opt %s --nova-configure-kernels=device=abacus --verify-diagnostics

// expected-error @+1 {{no device 'abacus' to configure kernels for; known: x86-64-v3 h200 h100 a100 rtx3060 rtx6000-ada rtx4090 b200 rtx5090}}
module {
}
