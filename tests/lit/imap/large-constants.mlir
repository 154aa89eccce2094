// Merged divisions have constants whose sum with a variable may leave 64 bits. Multiples of the divisor stay
// outside.
// RUN: tc-opt %s --one-shot-bufferize=bufferize-function-boundaries --convert-imap-to-scf | FileCheck %s
// RUN: tc-run %s --check | FileCheck %s --check-prefix=VALUES
// VALUES: y agrees with the interpreter on 9 elements

// CHECK-LABEL: func.func @merged(
// CHECK-NOT:     9223372036854775806
// CHECK:         arith.constant 4611686018427387902 : index
// CHECK:         arith.divui
func.func @merged(%x: tensor<4xf32>) -> (tensor<9xf32> {tc.name = "y"}) {
  %e = tensor.empty() : tensor<9xf32>
  %r = imap.generic (i) domain: i in [0, 8]
      ins(%x[(i / 2 + 4611686018427387903) / 2305843009213693952] : tensor<4xf32>) outs(%e[i] : tensor<9xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<9xf32>
  return %r : tensor<9xf32>
}
