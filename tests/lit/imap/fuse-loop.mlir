// Operations in the body of a loop are fused with each other, and not with what is calculated once
// before the loop.
//
// RUN: tc-opt --imap-fuse %s | FileCheck %s

// CHECK-LABEL: func.func @loop
// CHECK: %[[BEFORE:.*]] = imap.generic
// CHECK: math.exp
// CHECK: scf.for {{.*}} iter_args(%[[STATE:.*]] = %{{.*}})
// CHECK: imap.generic
// CHECK-SAME: ins(%[[STATE]][i], %[[BEFORE]][i]
// CHECK: math.tanh
// CHECK: arith.addf
// CHECK-NOT: imap.generic
// CHECK: scf.yield
func.func @loop(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %init = tensor.empty() : tensor<8xf32>
  %before = imap.generic (i) domain: i in [0, 7] ins(%x[i] : tensor<8xf32>) outs(%init[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    %b = math.exp %a : f32
    imap.yield %b : f32
  } -> tensor<8xf32>
  %result = scf.for %step = %c0 to %n step %c1 iter_args(%state = %x) -> (tensor<8xf32>) {
    %t = imap.generic (i) domain: i in [0, 7] ins(%state[i] : tensor<8xf32>) outs(%init[i] : tensor<8xf32>) {
    ^bb0(%a: f32):
      %b = math.tanh %a : f32
      imap.yield %b : f32
    } -> tensor<8xf32>
    %s = imap.generic (i) domain: i in [0, 7] ins(%t[i], %before[i] : tensor<8xf32>, tensor<8xf32>) outs(%init[i] : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      imap.yield %c : f32
    } -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %result : tensor<8xf32>
}
