// RUN: nova-opt %s --nova-split-reductions=device=abacus --verify-diagnostics

// expected-error @below {{no GPU 'abacus' to split reductions for; known: h200 h100 a100}}
module {
}
