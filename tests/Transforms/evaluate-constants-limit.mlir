// RUN: nova-opt %s --nova-evaluate-constants=max-elements=6 | FileCheck %s

// Twelve different elements are too many; six, repeated, are not.
// CHECK-LABEL: func @limit
// CHECK-DAG: nova.constant dense<{{\[\[}}1, 2, 3]]> : tensor<1x3xi64>
// CHECK-DAG: nova.add %{{.*}}, %{{.*}} : (tensor<4x1xi64>, tensor<3xi64>) -> tensor<4x3xi64>
func.func @limit() -> (tensor<4x3xi64>, tensor<4x3xi64>) {
  %i = nova.iota 0 : i64, 1 : i64 : tensor<4xi64>
  %j = nova.iota 0 : i64, 1 : i64 : tensor<3xi64>
  %c = nova.reshape %i : (tensor<4xi64>) -> tensor<4x1xi64>
  %0 = nova.add %c, %j : (tensor<4x1xi64>, tensor<3xi64>) -> tensor<4x3xi64>
  %b = nova.broadcast %j : (tensor<3xi64>) -> tensor<4x3xi64>
  %one = nova.constant dense<1> : tensor<i64>
  %1 = nova.add %b, %one : (tensor<4x3xi64>, tensor<i64>) -> tensor<4x3xi64>
  return %0, %1 : tensor<4x3xi64>, tensor<4x3xi64>
}
