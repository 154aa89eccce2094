// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-split-folds{parts=2 min-size=64 row=16}))' | FileCheck %s

// One processor computes sixteen columns in the lanes of vectors, so that the rows are divided.
// CHECK-LABEL: func.func @columns
// CHECK:         imap.generic (i, d1)[k] domain: i in [0, 15], d1 in [0, 1], k in [0, 63]
// CHECK:         imap.generic (i)[s0]
func.func @columns(%x: tensor<128x16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %s = imap.generic (i)[k] domain: i in [0, 15], k in [0, 127] ins(%x[k, i] : tensor<128x16xf32>)
      outs(%e[i] : tensor<16xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}

// The values of a row fill vectors, so that each processor computes eight rows.
// CHECK-LABEL: func.func @rows
// CHECK:         imap.generic (i)[k] domain: i in [0, 15], k in [0, 127]
// CHECK-NOT:     imap.generic
func.func @rows(%x: tensor<16x128xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %s = imap.generic (i)[k] domain: i in [0, 15], k in [0, 127] ins(%x[i, k] : tensor<16x128xf32>)
      outs(%e[i] : tensor<16xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}

// Of three rows, one processor would compute two.
// CHECK-LABEL: func.func @few_rows
// CHECK:         imap.generic (i, d1)[k] domain: i in [0, 2], d1 in [0, 1], k in [0, 63]
// CHECK:         imap.generic (i)[s0]
func.func @few_rows(%x: tensor<3x128xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %s = imap.generic (i)[k] domain: i in [0, 2], k in [0, 127] ins(%x[i, k] : tensor<3x128xf32>)
      outs(%e[i] : tensor<3xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<3xf32>
  return %s : tensor<3xf32>
}
