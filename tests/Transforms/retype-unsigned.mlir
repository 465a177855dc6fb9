// RUN: nova-opt %s --nova-retype-unsigned --split-input-file | FileCheck %s

// The bits stay; what is the same of both signs too.
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%arg0: tensor<4xi8> {nova.unsigned}, %arg1: tensor<4xf32>) -> (tensor<4xi8> {nova.unsigned})
// CHECK: %[[C:.*]] = nova.constant dense<-56> : tensor<i8>
// CHECK: %[[S:.*]] = nova.add %arg0, %[[C]] : (tensor<4xi8>, tensor<i8>) -> tensor<4xi8>
// CHECK: return %[[S]] : tensor<4xi8>
func.func @step(%a: tensor<4xui8>, %b: tensor<4xf32>) -> tensor<4xui8> {
  %c = nova.constant dense<200> : tensor<ui8>
  %s = nova.add %a, %c : (tensor<4xui8>, tensor<ui8>) -> tensor<4xui8>
  return %s : tensor<4xui8>
}

// -----

// Order, division and wider types are of the value.
// CHECK-LABEL: func.func @step
// CHECK: %[[W:.*]] = nova.cast %arg0 : (tensor<4xi8>) -> tensor<4xi32>
// CHECK: %[[M:.*]] = nova.constant dense<255> : tensor<i32>
// CHECK: %[[X:.*]] = nova.and %[[W]], %[[M]]
// CHECK: %[[Y:.*]] = nova.and
// CHECK: %[[D:.*]] = nova.floor_div %[[X]], %[[Y]] : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
// CHECK: %[[N:.*]] = nova.cast %[[D]] : (tensor<4xi32>) -> tensor<4xi8>
// CHECK: nova.compare %{{.*}}, %{{.*}} {predicate = #nova<predicate lt>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
// CHECK: %[[F:.*]] = nova.and
// CHECK: nova.cast %[[F]] : (tensor<4xi32>) -> tensor<4xf32>
// CHECK: %[[I:.*]] = nova.cast %arg2 : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: nova.cast %[[I]] : (tensor<4xi32>) -> tensor<4xi8>
func.func @step(%a: tensor<4xui8>, %b: tensor<4xui8>, %f: tensor<4xf32>)
    -> (tensor<4xui8>, tensor<4xi1>, tensor<4xf32>, tensor<4xui8>) {
  %q = nova.floor_div %a, %b : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %l = nova.compare %a, %q {predicate = #nova<predicate lt>} : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  %w = nova.cast %a : (tensor<4xui8>) -> tensor<4xf32>
  %u = nova.cast %f : (tensor<4xf32>) -> tensor<4xui8>
  return %q, %l, %w, %u : tensor<4xui8>, tensor<4xi1>, tensor<4xf32>, tensor<4xui8>
}

// -----

// Nothing unsigned, nothing changed.
// CHECK-LABEL: func.func @step(%arg0: tensor<4xi8>) -> tensor<4xi8>
func.func @step(%a: tensor<4xi8>) -> tensor<4xi8> {
  return %a : tensor<4xi8>
}
