// RUN: tc-opt %s --canonicalize --cse --symbol-dce | FileCheck %s

// Nothing refers to it.
// CHECK-NOT: @unused
hlo.computation private @unused(%a: tensor<f32>) -> tensor<f32> {
  hlo.return %a : tensor<f32>
}
// CHECK: hlo.computation private @used
hlo.computation private @used(%a: tensor<f32>) -> tensor<f32> {
  %b = hlo.negate %a : tensor<f32>
  hlo.return %b : tensor<f32>
}

// What differs in name and metadata only is one; what nothing uses is dropped, unless it has
// effects. Random numbers are drawn as often as the text says.
// CHECK-LABEL: hlo.computation @main
// CHECK-DAG:     %one = hlo.constant dense<1.000000e+00> : tensor<f32>
// CHECK:         %a = hlo.add %{{.*}}, %one : tensor<f32> metadata "{op_name=\22a\22}"
// CHECK-NEXT:    hlo.call %a {to_apply = @used}
// CHECK-NEXT:    hlo.custom_call %a {custom_call_has_side_effect = true
// CHECK-NEXT:    %r = hlo.rng
// CHECK-NEXT:    %s = hlo.rng
// CHECK-NEXT:    %t = hlo.tuple %a, %a, %r, %s
// CHECK-NEXT:    hlo.return %t
hlo.computation @main(%x: tensor<f32>) -> tuple<tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>> {
  %one = hlo.constant dense<1.0> : tensor<f32>
  %uno = hlo.constant dense<1.0> : tensor<f32>
  %a = hlo.add %x, %one : tensor<f32> metadata "{op_name=\22a\22}"
  %b = hlo.add %x, %uno : tensor<f32> metadata "{op_name=\22b\22}"
  %dead = hlo.negate %a : tensor<f32>
  %call = hlo.call %a {to_apply = @used} : (tensor<f32>) -> tensor<f32>
  %seen = hlo.custom_call %a {custom_call_has_side_effect = true, custom_call_target = "\22f\22"} : (tensor<f32>) -> tensor<f32>
  %unseen = hlo.custom_call %a {custom_call_target = "\22f\22"} : (tensor<f32>) -> tensor<f32>
  %r = hlo.rng %x, %one {distribution = "rng_uniform"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %s = hlo.rng %x, %one {distribution = "rng_uniform"} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %t = hlo.tuple %a, %b, %r, %s : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tuple<tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>>
  hlo.return %t : tuple<tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>>
}
