// RUN: tc-opt %s | tc-opt | FileCheck %s
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | FileCheck %s

// CHECK-LABEL: tml.program @all(%a: tensor<2x3xf64> {tml.name = "a"}, %s: tensor<f64> {tml.inout, tml.name = "s"}) -> (tensor<f64> {tml.name = "s"})
tml.program @all(%a: tensor<2x3xf64> {tml.name = "a"}, %s: tensor<f64> {tml.inout, tml.name = "s"})
    -> (tensor<f64> {tml.name = "s"}) {
  // CHECK-NEXT: %[[U:.*]] = tml.undef "u" : tensor<2x3xf64>
  %u = tml.undef "u" : tensor<2x3xf64>
  // CHECK-NEXT: tml.add %{{.*}}, %{{.*}} : tensor<2x3xf64>
  %0 = tml.add %a, %u : tensor<2x3xf64>
  // CHECK-NEXT: tml.sub
  %1 = tml.sub %0, %a : tensor<2x3xf64>
  // CHECK-NEXT: tml.mul
  %2 = tml.mul %1, %a : tensor<2x3xf64>
  // CHECK-NEXT: tml.div
  %3 = tml.div %2, %a : tensor<2x3xf64>
  // CHECK-NEXT: tml.smul %{{.*}}, %{{.*}} : tensor<f64>, tensor<2x3xf64>
  %4 = tml.smul %s, %3 : tensor<f64>, tensor<2x3xf64>
  // CHECK-NEXT: tml.sdiv %{{.*}}, %{{.*}} : tensor<2x3xf64>, tensor<f64>
  %5 = tml.sdiv %4, %s : tensor<2x3xf64>, tensor<f64>
  // CHECK-NEXT: tml.transpose %{{.*}} [0, 1] : tensor<2x3xf64> -> tensor<3x2xf64>
  %6 = tml.transpose %5 [0, 1] : tensor<2x3xf64> -> tensor<3x2xf64>
  // CHECK-NEXT: tml.product %{{.*}}, %{{.*}} : tensor<2x3xf64>, tensor<3x2xf64> -> tensor<2x3x3x2xf64>
  %7 = tml.product %a, %6 : tensor<2x3xf64>, tensor<3x2xf64> -> tensor<2x3x3x2xf64>
  // CHECK-NEXT: tml.contract %{{.*}} [1, 2] : tensor<2x3x3x2xf64> -> tensor<2x2xf64>
  %8 = tml.contract %7 [1, 2] : tensor<2x3x3x2xf64> -> tensor<2x2xf64>
  %9 = tml.contract %8 [0, 1] : tensor<2x2xf64> -> tensor<f64>
  // CHECK: tml.assign "s" %{{.*}} : tensor<f64>
  %10 = tml.assign "s" %9 : tensor<f64>
  // CHECK-NEXT: tml.return %{{.*}} : tensor<f64>
  tml.return %10 : tensor<f64>
}

// CHECK-LABEL: tml.program @padded
// CHECK-SAME:    attributes {vector_length = 4 : i64}
tml.program @padded(%a: tensor<4x8xf32> {tml.name = "a", tml.extents = array<i64: 3, 5>})
    attributes {vector_length = 4} {
  tml.return
}
