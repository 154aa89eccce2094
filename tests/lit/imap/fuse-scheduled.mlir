// RUN: tc-opt --imap-fuse %s | FileCheck %s
// RUN: tc-opt --imap-fuse --remarks-filter=imap-fuse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// An operation with a schedule stays as it is.

// CHECK-LABEL: func.func @producer
// CHECK:         imap.generic
// CHECK:         imap.generic {{.*}} attributes {imap.schedule = #imap.schedule<tile [i = 8]>}
// REMARK: remark: [Missed] apart {{.*}}Reason="an operation has a schedule"
func.func @producer(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %a = imap.generic (i) domain: i in [0, 63] ins(%x[i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%p: f32):
    %n = arith.negf %p : f32
    imap.yield %n : f32
  } -> tensor<64xf32>
  %b = imap.generic (i) domain: i in [0, 63] ins(%a[i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>)
      attributes {imap.schedule = #imap.schedule<tile [i = 8]>} {
  ^bb0(%p: f32):
    %n = math.absf %p : f32
    imap.yield %n : f32
  } -> tensor<64xf32>
  return %b : tensor<64xf32>
}

// Operations on the same points.
// CHECK-LABEL: func.func @siblings
// CHECK:         imap.generic {{.*}} attributes {imap.schedule = #imap.schedule<tile [i = 8]>}
// CHECK:         imap.generic
// REMARK: remark: [Missed] unmerged {{.*}}Reason="an operation has a schedule"
func.func @siblings(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %a = imap.generic (i) domain: i in [0, 63] ins(%x[i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>)
      attributes {imap.schedule = #imap.schedule<tile [i = 8]>} {
  ^bb0(%p: f32):
    %n = arith.negf %p : f32
    imap.yield %n : f32
  } -> tensor<64xf32>
  %b = imap.generic (i) domain: i in [0, 63] ins(%x[i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%p: f32):
    %n = math.absf %p : f32
    imap.yield %n : f32
  } -> tensor<64xf32>
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}

// A fold of one value.
// CHECK-LABEL: func.func @one_value
// CHECK:         fold [add f32] attributes {imap.schedule = #imap.schedule<tile [i = 8]>}
func.func @one_value(%x: tensor<64x1xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %a = imap.generic (i)[k] domain: i in [0, 63], k in [0, 0] ins(%x[i, k] : tensor<64x1xf32>) outs(%e[i] : tensor<64xf32>)
      fold [add f32] attributes {imap.schedule = #imap.schedule<tile [i = 8]>} {
  ^bb0(%p: f32):
    imap.yield %p : f32
  } -> tensor<64xf32>
  return %a : tensor<64xf32>
}

// A reader of a concatenation.
// CHECK-LABEL: func.func @parts
// CHECK:         imap.generic {{.*}} domain: i in [0, 63] {{.*}} attributes {imap.schedule = #imap.schedule<tile [i = 8]>}
// REMARK: remark: [Missed] undivided {{.*}}Reason="an operation has a schedule"
func.func @parts(%x: tensor<32xf32>, %y: tensor<32xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %a = imap.generic (i) domain: i in [0, 31] ins(%x[i] : tensor<32xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%p: f32):
    imap.yield %p : f32
  } -> tensor<64xf32>
  %b = imap.generic (i) domain: i in [0, 31] ins(%y[i] : tensor<32xf32>) outs(%a[i + 32] : tensor<64xf32>) {
  ^bb0(%p: f32):
    imap.yield %p : f32
  } -> tensor<64xf32>
  %c = imap.generic (i) domain: i in [0, 63] ins(%b[i] : tensor<64xf32>) outs(%f[i] : tensor<64xf32>)
      attributes {imap.schedule = #imap.schedule<tile [i = 8]>} {
  ^bb0(%p: f32):
    %n = math.absf %p : f32
    imap.yield %n : f32
  } -> tensor<64xf32>
  return %c : tensor<64xf32>
}
