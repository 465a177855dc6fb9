// RUN: nova-opt %s --nova-plan-memory --verify-diagnostics

// expected-error @+1 {{holds no step to plan}}
module {
}
