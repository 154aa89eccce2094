// RUN: tc-opt %s --convert-min-max-to-llvm | FileCheck %s

// CHECK-LABEL: func.func @all(
// CHECK-SAME:    %[[A:.*]]: f32, %[[B:.*]]: f32, %[[V:.*]]: vector<4xf64>)
// CHECK:         llvm.intr.maxnum(%[[A]], %[[B]]) : (f32, f32) -> f32
// CHECK:         llvm.intr.minnum(
// CHECK:         llvm.intr.maximum(
// CHECK:         llvm.intr.minimum(%[[V]], %[[V]]) : (vector<4xf64>, vector<4xf64>) -> vector<4xf64>
// CHECK-NOT:     arith.
func.func @all(%a: f32, %b: f32, %v: vector<4xf64>) -> (f32, vector<4xf64>) {
  %0 = arith.maxnumf %a, %b : f32
  %1 = arith.minnumf %0, %b : f32
  %2 = arith.maximumf %1, %b : f32
  %3 = arith.minimumf %v, %v : vector<4xf64>
  return %2, %3 : f32, vector<4xf64>
}
