// Remarks are about the function that runs.
// RUN: tc-run %s --entry twice --check 2>&1 | FileCheck %s
// RUN: tc-run %s --entry difference --check 2>&1 | FileCheck %s --check-prefix=KEPT
// CHECK-NOT: linalg
// CHECK:     agrees with the interpreter
// KEPT:      linalg-entry.mlir:[[#@LINE+7]]:8: remark: 'linalg.reduce' stays in linalg

func.func @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.addf %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @difference(%a: tensor<4x5xf32>, %sum: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce { arith.subf } ins(%a : tensor<4x5xf32>) outs(%sum : tensor<4xf32>) dimensions = [1]
  return %r : tensor<4xf32>
}
