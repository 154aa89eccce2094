// RUN: tc-opt %s | FileCheck %s
// The generic form and bytecode hold the same.
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-opt %s --emit-bytecode | tc-opt | FileCheck %s

hlo.computation private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %c = hlo.add %a, %b : tensor<f32>
  hlo.return %c : tensor<f32>
}
hlo.computation private @more(%a: tensor<i32>) -> tensor<i1> {
  %limit = hlo.constant dense<9> : tensor<i32>
  %c = hlo.compare %a, %limit {direction = "LT"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  hlo.return %c : tensor<i1>
}
hlo.computation private @next(%a: tensor<i32>) -> tensor<i32> {
  %b = hlo.add %a, %a : tensor<i32>
  hlo.return %b : tensor<i32>
}

// The name of a value is the name of the instruction; a number is none.
// CHECK-LABEL: hlo.computation private @names
// CHECK-NEXT:    %sum.1 = hlo.add %{{.*}}, %{{.*}} : tensor<2xf32>{{$}}
// CHECK-NEXT:    %[[NUMBER:[0-9]+]] = hlo.add %sum.1, %sum.1 : tensor<2xf32>{{$}}
// CHECK-NEXT:    %[[NAMED:_0]] = hlo.add %[[NUMBER]], %[[NUMBER]] : tensor<2xf32> name "0" metadata "{op_name=\22n\22}"
// CHECK-NEXT:    %sum.1_0 = hlo.add %[[NAMED]], %[[NAMED]] : tensor<2xf32> name "sum.1"
hlo.computation private @names(%x: tensor<2xf32>) -> tensor<2xf32> {
  %sum.1 = hlo.add %x, %x : tensor<2xf32>
  %0 = hlo.add %sum.1, %sum.1 : tensor<2xf32>
  %1 = hlo.add %0, %0 : tensor<2xf32> name "0" metadata "{op_name=\22n\22}"
  %2 = hlo.add %1, %1 : tensor<2xf32> name "sum.1"
  hlo.return %2 : tensor<2xf32>
}

// CHECK-LABEL: hlo.computation private @elementwise
// CHECK-NEXT:    %a = hlo.exponential %{{.*}} {result_accuracy = "{mode=highest}"} : tensor<2x3xf32>
// CHECK-NEXT:    %b = hlo.negate %a : (tensor<2x3xf32>) -> tensor<2x3xf32, #hlo.layout<[0, 1]>>
// CHECK-NEXT:    %c = hlo.divide %a, %b : (tensor<2x3xf32>, tensor<2x3xf32, #hlo.layout<[0, 1]>>) -> tensor<2x3xf32>
// CHECK-NEXT:    %d = hlo.compare %a, %c {compare_type = "TOTALORDER", direction = "GE"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
// CHECK-NEXT:    %e = hlo.select %d, %a, %c : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %f = hlo.clamp %a, %e, %c : tensor<2x3xf32>
// CHECK-NEXT:    %g = hlo.convert %f : (tensor<2x3xf32>) -> tensor<2x3xui8>
hlo.computation private @elementwise(%x: tensor<2x3xf32>) -> tensor<2x3xui8> {
  %a = hlo.exponential %x {result_accuracy = "{mode=highest}"} : tensor<2x3xf32>
  %b = hlo.negate %a : (tensor<2x3xf32>) -> tensor<2x3xf32, #hlo.layout<[0, 1]>>
  %c = hlo.divide %a, %b : (tensor<2x3xf32>, tensor<2x3xf32, #hlo.layout<[0, 1]>>) -> tensor<2x3xf32>
  %d = hlo.compare %a, %c {compare_type = "TOTALORDER", direction = "GE"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %e = hlo.select %d, %a, %c : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %f = hlo.clamp %a, %e, %c : tensor<2x3xf32>
  %g = hlo.convert %f : (tensor<2x3xf32>) -> tensor<2x3xui8>
  hlo.return %g : tensor<2x3xui8>
}

// CHECK-LABEL: hlo.computation @main
// CHECK:         hlo.dot %{{.*}}, %{{.*}} {lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
// CHECK:         hlo.pad %{{.*}}, %{{.*}} {padding = "1_2x0_0_1"} : (tensor<2x4xf32>, tensor<f32>) -> tensor<5x7xf32>
// CHECK:         hlo.slice %{{.*}} {slice = "{[1:4:2], [0:3:1]}"} : (tensor<5x7xf32>) -> tensor<2x3xf32>
// CHECK:         hlo.reduce_window %{{.*}}, %{{.*}} {to_apply = @sum, window = "{size=2x1 pad=1_0x0_0}"} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK:         hlo.while %{{.*}} {body = @next, condition = @more} : (tensor<i32>) -> tensor<i32>
// CHECK:         hlo.rng %{{.*}}, %{{.*}} {distribution = "rng_uniform"} : (tensor<f32>, tensor<f32>) -> tensor<2x3xf32>
// CHECK:         hlo.custom_call %{{.*}} {called_computations = [@sum], custom_call_has_side_effect = true, custom_call_target = "\22f\22"} : (tensor<2x3xf32>) -> tuple<tensor<f32>, !hlo.token>
// CHECK:         hlo.return %{{.*}} : tensor<2x3xf32>
hlo.computation @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %n: tensor<i32>) -> tensor<2x3xf32> {
  %zero = hlo.constant dense<0.0> : tensor<f32>
  %a = hlo.dot %x, %y {lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %b = hlo.pad %a, %zero {padding = "1_2x0_0_1"} : (tensor<2x4xf32>, tensor<f32>) -> tensor<5x7xf32>
  %c = hlo.slice %b {slice = "{[1:4:2], [0:3:1]}"} : (tensor<5x7xf32>) -> tensor<2x3xf32>
  %d = hlo.reduce_window %c, %zero {to_apply = @sum, window = "{size=2x1 pad=1_0x0_0}"} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %e = hlo.while %n {body = @next, condition = @more} : (tensor<i32>) -> tensor<i32>
  %f = hlo.rng %zero, %zero {distribution = "rng_uniform"} : (tensor<f32>, tensor<f32>) -> tensor<2x3xf32>
  %g = hlo.custom_call %d {called_computations = [@sum], custom_call_has_side_effect = true, custom_call_target = "\22f\22"} : (tensor<2x3xf32>) -> tuple<tensor<f32>, !hlo.token>
  hlo.return %d : tensor<2x3xf32>
}
