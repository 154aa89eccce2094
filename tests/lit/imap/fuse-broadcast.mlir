// RUN: tc-opt %s --imap-fuse | FileCheck %s

// A broadcast with two readers is computed by both.
// CHECK-LABEL: func.func @readers(
// CHECK-SAME:    %[[S:.*]]: tensor<4xf32>, %[[X:.*]]: tensor<4x8xf32>
// CHECK:         imap.generic (i, j) domain: i in [0, 3], j in [0, 7] ins(%[[X]][i, j], %[[S]][i] :
// CHECK-SAME:      outs(%{{.*}}[i, j] :
// CHECK:         imap.generic (i)[j] domain: i in [0, 3], j in [0, 7] ins(%[[X]][i, j], %[[S]][i] :
// CHECK-NOT:     imap.generic
// CHECK:         return
func.func @readers(%s: tensor<4xf32>, %x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %b = imap.generic (i, j) domain: i in [0, 3], j in [0, 7] ins(%s[i] : tensor<4xf32>) outs(%e[i, j] : tensor<4x8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4x8xf32>
  %y = imap.generic (i, j) domain: i in [0, 3], j in [0, 7] ins(%x[i, j], %b[i, j] : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e[i, j] : tensor<4x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %d = arith.subf %a, %c : f32
    imap.yield %d : f32
  } -> tensor<4x8xf32>
  %f = tensor.empty() : tensor<4xf32>
  %z = imap.generic (i)[j] domain: i in [0, 3], j in [0, 7] ins(%x[i, j], %b[i, j] : tensor<4x8xf32>, tensor<4x8xf32>) outs(%f[i] : tensor<4xf32>) fold [add f32] {
  ^bb0(%a: f32, %c: f32):
    %d = arith.mulf %a, %c : f32
    imap.yield %d : f32
  } -> tensor<4xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4xf32>
}

// A broadcast that is a result is stored, and still computed by its reader.
// CHECK-LABEL: func.func @returned(
// CHECK-SAME:    %[[S:.*]]: tensor<f32>, %[[X:.*]]: tensor<4xf32>
// CHECK:         %[[B:.*]] = imap.generic {{.*}} ins(%[[S]][{{.*}}] : tensor<f32>)
// CHECK:         %[[Y:.*]] = imap.generic {{.*}} ins(%[[X]][{{.*}}], %[[S]][{{.*}}] : tensor<4xf32>, tensor<f32>)
// CHECK:         return %[[B]], %[[Y]]
func.func @returned(%s: tensor<f32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %b = imap.generic (i) domain: i in [0, 3] ins(%s[] : tensor<f32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %y = imap.generic (i) domain: i in [0, 3] ins(%x[i], %b[i] : tensor<4xf32>, tensor<4xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32, %c: f32):
    %d = arith.addf %a, %c : f32
    imap.yield %d : f32
  } -> tensor<4xf32>
  return %b, %y : tensor<4xf32>, tensor<4xf32>
}

// A transposition reads as many elements as it writes: it is stored once for its readers, which become one operation.
// CHECK-LABEL: func.func @transposition(
// CHECK: imap.generic (i, j) {{.*}} ins(%arg0[j, i]
// CHECK: :2 = imap.generic
// CHECK-NOT: imap.generic
// CHECK: return
func.func @transposition(%x: tensor<8x4xf32>, %v: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %t = imap.generic (i, j) domain: i in [0, 3], j in [0, 7] ins(%x[j, i] : tensor<8x4xf32>) outs(%e[i, j] : tensor<4x8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4x8xf32>
  %y = imap.generic (i, j) domain: i in [0, 3], j in [0, 7] ins(%v[i, j], %t[i, j] : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e[i, j] : tensor<4x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %d = arith.subf %a, %c : f32
    imap.yield %d : f32
  } -> tensor<4x8xf32>
  %z = imap.generic (i, j) domain: i in [0, 3], j in [0, 7] ins(%v[i, j], %t[i, j] : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e[i, j] : tensor<4x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %d = arith.mulf %a, %c : f32
    imap.yield %d : f32
  } -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
