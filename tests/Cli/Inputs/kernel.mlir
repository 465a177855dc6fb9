// A step at the stage `fused`, with a kernel of its own.
module {
func.func @step(%x: tensor<70x300xf32> {nova.name = "x", nova.role = "input", nova.path = "x"},
                %y: tensor<300xf32> {nova.name = "y", nova.role = "input", nova.path = "y"})
    -> (tensor<70xf32> {nova.role = "gradient"}) attributes {nova.graph = "linalg"} {
  %r = nova.launch @distance(%x, %y) views [#nova.view<0, [300, 1]>, #nova.view<0, [1]>] nodes ["distance"]
      : (tensor<70x300xf32>, tensor<300xf32>) -> tensor<70xf32>
  return %r : tensor<70xf32>
}
func.func private @distance(%x: tensor<70x300xf32>, %y: tensor<300xf32>) -> (tensor<70xf32> {nova.map = array<i64: 0>})
    attributes {nova.kernel, nova.role = "rowwise", nova.space = array<i64: 70>} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<70xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<70xf32>) -> tensor<70xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %y : tensor<70x300xf32>, tensor<300xf32>) outs(%f : tensor<70xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %d = arith.subf %a, %b : f32
    %n = math.absf %d : f32
    %p = math.absf %a : f32
    %s = arith.addf %p, %one : f32
    %v = arith.divf %n, %s : f32
    %next = arith.addf %sum, %v : f32
    linalg.yield %next : f32
  } -> tensor<70xf32>
  return %r : tensor<70xf32>
}
}
