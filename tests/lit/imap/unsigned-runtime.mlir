// RUN: tc-run %s --check
// RUN: tc-opt %s --canonicalize | FileCheck %s

// A runtime variable whose lower bound is at least 0 is read as an unsigned number: -1 and -128 are 255 and 128.
// CHECK-LABEL: func.func @gather(
func.func @gather(%x: tensor<256xf32>) -> tensor<3xf32> {
  %ids = arith.constant dense<[-1, 5, -128]> : tensor<3xi8>
  %e = tensor.empty() : tensor<3xf32>
  // CHECK: imap.generic (i){r}
  %y = imap.generic (i){r} domain: i in [0, 2], r in [0, 255] runtime(%ids[i] : tensor<3xi8>)
      ins(%x[r] : tensor<256xf32>) outs(%e[i] : tensor<3xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<3xf32>
  return %y : tensor<3xf32>
}
