// RUN: tc-run %s --entry constraint --check
// RUN: tc-run %s --entry guard --check
// RUN: tc-opt %s --one-shot-bufferize=bufferize-function-boundaries --convert-imap-to-scf | FileCheck %s

// The greatest number is a lower bound like others: only infinity on its own side is none.

// CHECK-LABEL: func.func @constraint(
// CHECK:         arith.cmpi sge
func.func @constraint(%u: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %g = imap.generic (b) domain: b in [0, 3], b * 2 in [9223372036854775807, inf]
      ins(%u[b] : tensor<4xf32>) outs(%y[b] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// CHECK-LABEL: func.func @guard(
// CHECK:         arith.cmpi sge
// CHECK:         arith.cmpi sle
func.func @guard(%u: tensor<4xf32>, %y: tensor<10xf32>) -> tensor<10xf32> {
  %ids = arith.constant dense<[-1, 2, -5, 3]> : tensor<4xi32>
  %g = imap.scatter (b){r} domain: b in [0, 3] runtime(%ids[b] : tensor<4xi32>) ins(%u[b] : tensor<4xf32>)
      outs(%y[r] where r in [9223372036854775807, 9] : tensor<10xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<10xf32>
  return %g : tensor<10xf32>
}
