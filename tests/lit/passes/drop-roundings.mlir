// RUN: tc-opt %s --drop-roundings --remarks-filter=drop-roundings 2>&1 | FileCheck %s

// CHECK: [Passed] dropped | Category:drop-roundings | Function=chain | Roundings=1
// CHECK-NOT: Function=kept

// CHECK-LABEL: func.func @chain(
// CHECK:         ^bb0(%[[A:.*]]: bf16):
// CHECK:           %[[X:.*]] = arith.extf %[[A]]
// CHECK:           %[[Y:.*]] = arith.addf %[[X]], %[[X]] : f32
// CHECK:           %[[Z:.*]] = arith.mulf %[[Y]], %[[Y]] : f32
// CHECK:           %[[R:.*]] = arith.truncf %[[Z]] : f32 to bf16
// CHECK:           imap.yield %[[R]] : bf16
func.func @chain(%x: tensor<8xbf16>, %e: tensor<8xbf16>) -> tensor<8xbf16> {
  %r = imap.generic (i) domain: i in [0, 7] ins(%x[i] : tensor<8xbf16>) outs(%e[i] : tensor<8xbf16>) {
  ^bb0(%a: bf16):
    %w = arith.extf %a : bf16 to f32
    %s = arith.addf %w, %w : f32
    %n = arith.truncf %s : f32 to bf16
    %v = arith.extf %n : bf16 to f32
    %p = arith.mulf %v, %v : f32
    %q = arith.truncf %p : f32 to bf16
    imap.yield %q : bf16
  } -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// Another type than before the rounding, and the opposite order.
// CHECK-LABEL: func.func @kept(
// CHECK:         arith.truncf
// CHECK:         arith.extf
// CHECK:         arith.extf
// CHECK:         arith.truncf
func.func @kept(%x: f32, %y: bf16) -> (f64, bf16) {
  %n = arith.truncf %x : f32 to bf16
  %v = arith.extf %n : bf16 to f64
  %w = arith.extf %y : bf16 to f32
  %m = arith.truncf %w : f32 to bf16
  return %v, %m : f64, bf16
}
