// RUN: tc-opt %s --imap-fuse --split-input-file | FileCheck %s

// A fold of one value per point becomes a part of its consumer. A sum of floats keeps its start: it is never -0.0.
// CHECK-LABEL: func.func @sum(
// CHECK: imap.generic (i) domain: i in [0, 7] ins(%arg0[i, 0] : tensor<8x1xf32>) outs(%{{.*}}[i] : tensor<8xf32>) {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT: %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[Z]], %[[X]] : f32
// CHECK-NEXT: %[[E:.*]] = math.exp %[[S]] : f32
// CHECK-NEXT: imap.yield %[[E]] : f32
// CHECK-NOT: imap.generic
func.func @sum(%x: tensor<8x1xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 0] ins(%x[i, j] : tensor<8x1xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %y = imap.generic (i) domain: i in [0, 7] ins(%s[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    %z = math.exp %a : f32
    imap.yield %z : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A constant start, an epilogue, and no start that changes nothing.
// CHECK-LABEL: func.func @starts(
// CHECK: ^bb0(%[[X:.*]]: i32, %[[Y:.*]]: i32):
// CHECK-NEXT: %[[C:.*]] = arith.constant 5 : i32
// CHECK-NEXT: %[[M:.*]] = arith.maxsi %[[C]], %[[X]] : i32
// CHECK-NEXT: %[[S:.*]] = arith.subi %[[M]], %[[Y]] : i32
// CHECK-NEXT: imap.yield %[[S]], %[[X]] : i32, i32
func.func @starts(%x: tensor<8xi32>, %y: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %e = tensor.empty() : tensor<8xi32>
  %s:2 = imap.generic (i)[j] domain: i in [0, 7], j in [3, 3] ins(%x[i + j - 3], %y[i] : tensor<8xi32>, tensor<8xi32>)
      outs(%e[i], %e[i] : tensor<8xi32>, tensor<8xi32>) fold [maxs i32 from 5, add i32] {
  ^bb0(%a: i32, %b: i32):
    imap.yield %a, %a : i32, i32
  } epilogue {
  ^bb0(%m: i32, %t: i32, %a: i32, %b: i32):
    %z = arith.subi %m, %b : i32
    imap.yield %z, %t : i32, i32
  } -> tensor<8xi32>, tensor<8xi32>
  return %s#0, %s#1 : tensor<8xi32>, tensor<8xi32>
}

// -----

// A constraint may leave nothing to fold, and a destination may be the start.
// CHECK-LABEL: func.func @kept(
// CHECK-COUNT-2: fold [
func.func @kept(%x: tensor<8xi32>, %y: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %e = tensor.empty() : tensor<8xi32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 0], i + j in [0, 3] ins(%x[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>) fold [add i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  %t = imap.generic (i)[j] domain: i in [0, 7], j in [0, 0] ins(%x[i] : tensor<8xi32>) outs(%y[i] : tensor<8xi32>) fold [add i32 from outs 0] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  return %s, %t : tensor<8xi32>, tensor<8xi32>
}

// -----

// A NaN loses against the start of such a minimum.
// CHECK-LABEL: func.func @least(
// CHECK: %[[I:.*]] = arith.constant 0x7F800000 : f32
// CHECK-NEXT: %[[M:.*]] = arith.minnumf %[[I]], %{{.*}} : f32
// CHECK-NEXT: imap.yield %[[M]] : f32
func.func @least(%x: tensor<8x1xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 0] ins(%x[i, j] : tensor<8x1xf32>) outs(%e[i] : tensor<8xf32>) fold [minf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}
