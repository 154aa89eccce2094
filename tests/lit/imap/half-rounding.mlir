// RUN: tc-run %s --check

// The constant lies above the middle of two numbers by less than an f64 shows in its upper half.
func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {
  %e = tensor.empty() : tensor<1xf32>
  %r = imap.generic (i) domain: i in [0, 0] ins(%x[i] : tensor<1xf32>) outs(%e[i] : tensor<1xf32>) {
  ^bb0(%a: f32):
    %c = arith.constant 0x3ED28001 : f32
    %t = arith.truncf %c : f32 to bf16
    %u = arith.extf %t : bf16 to f32
    imap.yield %u : f32
  } -> tensor<1xf32>
  return %r : tensor<1xf32>
}
