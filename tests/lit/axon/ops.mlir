// RUN: tc-opt %s | tc-opt | FileCheck %s
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | FileCheck %s

// CHECK-LABEL: axon.program {
axon.program {
  // CHECK: %[[FN:.*]] = axon.fn ["x", "y"](%[[X:.*]]: !axon.tensor<t, [2, (+ n 1), *] ++ s>, %[[Y:.*]]: tuple<!axon.any, !axon.var<"S">>) attributes {annotations = ["t [2,n + 1,*]@s", ""], result_annotation = "t"} {
  %f = axon.fn ["x", "y"](%x: !axon.tensor<t, [2, (+ n 1), *] ++ s>, %y: tuple<!axon.any, !axon.var<"S">>) attributes {annotations = ["t [2,n + 1,*]@s", ""], result_annotation = "t"} {
    // CHECK: %[[PARTS:.*]]:2 = axon.unpack %[[Y]] : (tuple<!axon.any, !axon.var<"S">>) -> (!axon.any, !axon.var<"S">)
    %a, %b = axon.unpack %y : (tuple<!axon.any, !axon.var<"S">>) -> (!axon.any, !axon.var<"S">)
    // CHECK: axon.number 3 : !axon.tensor<t, []>
    %number = axon.number 3 : !axon.tensor<t, []>
    // CHECK: axon.number -2.500000e+00 : !axon.tensor<f32, s>
    %float = axon.number -2.5 : !axon.tensor<f32, s>
    // CHECK: axon.number -inf : !axon.any
    %infinity = axon.number -inf : !axon.any
    // CHECK: axon.builtin "max" : !axon.any
    %max = axon.builtin "max" : !axon.any
    // CHECK: axon.reduce(%{{.*}}, %{{.*}}, %{{.*}}) : (!axon.any, !axon.any, !axon.any) -> !axon.any
    %r = axon.reduce(%max, %infinity, %a) : (!axon.any, !axon.any, !axon.any) -> !axon.any
    // CHECK: axon.conv(%{{.*}}, %{{.*}}) {padding = "1", stride = "[2,n]"} : (!axon.any, !axon.any) -> !axon.any
    %c = axon.conv(%r, %a) {padding = "1", stride = "[2,n]"} : (!axon.any, !axon.any) -> !axon.any
    axon.return %number : !axon.tensor<t, []>
  // CHECK: } : (!axon.tensor<t, [2, (+ n 1), *] ++ s>, tuple<!axon.any, !axon.var<"S">>) -> !axon.tensor<t, []>
  } : (!axon.tensor<t, [2, (+ n 1), *] ++ s>, tuple<!axon.any, !axon.var<"S">>) -> !axon.tensor<t, []>
  // CHECK: %[[DEF:.*]] = axon.def "f" %[[FN]] {conditions = ["(+ n 1) = 8"]}
  %def = axon.def "f" %f {conditions = ["(+ n 1) = 8"]} : (!axon.tensor<t, [2, (+ n 1), *] ++ s>, tuple<!axon.any, !axon.var<"S">>) -> !axon.tensor<t, []>
  // CHECK: axon.use %[[DEF]] : {{.*}} -> !axon.any
  %use = axon.use %def : (!axon.tensor<t, [2, (+ n 1), *] ++ s>, tuple<!axon.any, !axon.var<"S">>) -> !axon.tensor<t, []> -> !axon.any
  // CHECK: axon.call %{{.*}}(%{{.*}}) : !axon.any, (!axon.any) -> !axon.any
  %call = axon.call %use(%use) : !axon.any, (!axon.any) -> !axon.any
  // CHECK: axon.tuple(%{{.*}}, %{{.*}}) : (!axon.any, !axon.any) -> !axon.any
  %tuple = axon.tuple(%use, %call) : (!axon.any, !axon.any) -> !axon.any
  // CHECK: axon.return %{{.*}} : !axon.any
  axon.return %tuple : !axon.any
}
