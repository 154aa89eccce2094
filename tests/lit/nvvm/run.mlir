// RUN: tc-run %s --target=nvvm:sm_90a --device=emulator --size x.0=37 --check | FileCheck %s
// CHECK: out0 agrees with the interpreter on 37 elements
func.func @halves(%x: tensor<?xf32> {tc.name = "x"}) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %init = tensor.empty(%n) : tensor<?xf32>
  %y = imap.generic (i){N} domain: i in [0, N - 1] runtime(%n : index)
      ins(%x[i] : tensor<?xf32>) outs(%init[i] : tensor<?xf32>) {
  ^bb0(%a: f32):
    %half = arith.constant 0.5 : f32
    %r = arith.mulf %a, %half : f32
    imap.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
