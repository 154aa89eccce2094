// RUN: tc-opt %s --pass-pipeline='builtin.module(imap-schedule{min-bytes=1 tile-bytes=32768 min-points=256 min-strip=8 blocks=true})' | FileCheck %s
// RUN: tc-opt %s --pass-pipeline='builtin.module(imap-schedule{min-bytes=1 tile-bytes=32768 min-points=256 blocks=true})' \
// RUN:   | FileCheck %s --check-prefix=NONE

// A fold along the rows: tiles of whole rows have only a part of what it folds, and tiles of columns all of it.
// CHECK-LABEL: func.func @columns
// CHECK:         fold [maximumf f32]{{.*}} attributes {imap.group = 0 : i64}
// CHECK:         schedule = #imap.schedule<forall [j = 8]>
// The outer dimension is the same for all operations.
// CHECK-LABEL: func.func @batch
// CHECK:         schedule = #imap.schedule<forall [b = 1, j = 8]>
// Rows of 7 have no part of 8 elements.
// CHECK-LABEL: func.func @short
// CHECK-NOT:     #imap.schedule
// NONE-NOT:      #imap.schedule
func.func @columns(%x: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %e = tensor.empty() : tensor<128xf32>
  %m = imap.generic (j)[i] domain: j in [0, 127], i in [0, 255] ins(%x[i, j] : tensor<256x128xf32>)
      outs(%e[j] : tensor<128xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<128xf32>
  %f = tensor.empty() : tensor<256x128xf32>
  %y = imap.generic (i, j) domain: i in [0, 255], j in [0, 127] ins(%x[i, j], %m[j] : tensor<256x128xf32>, tensor<128xf32>)
      outs(%f[i, j] : tensor<256x128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    imap.yield %d : f32
  } -> tensor<256x128xf32>
  return %y : tensor<256x128xf32>
}

func.func @batch(%x: tensor<4x256x128xf32>) -> tensor<4x256x128xf32> {
  %e = tensor.empty() : tensor<4x128xf32>
  %m = imap.generic (b, j)[i] domain: b in [0, 3], j in [0, 127], i in [0, 255] ins(%x[b, i, j] : tensor<4x256x128xf32>)
      outs(%e[b, j] : tensor<4x128xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4x128xf32>
  %f = tensor.empty() : tensor<4x256x128xf32>
  %y = imap.generic (b, i, j) domain: b in [0, 3], i in [0, 255], j in [0, 127]
      ins(%x[b, i, j], %m[b, j] : tensor<4x256x128xf32>, tensor<4x128xf32>) outs(%f[b, i, j] : tensor<4x256x128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    imap.yield %d : f32
  } -> tensor<4x256x128xf32>
  return %y : tensor<4x256x128xf32>
}

func.func @short(%x: tensor<256x7xf32>) -> tensor<256x7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %m = imap.generic (j)[i] domain: j in [0, 6], i in [0, 255] ins(%x[i, j] : tensor<256x7xf32>)
      outs(%e[j] : tensor<7xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<7xf32>
  %f = tensor.empty() : tensor<256x7xf32>
  %y = imap.generic (i, j) domain: i in [0, 255], j in [0, 6] ins(%x[i, j], %m[j] : tensor<256x7xf32>, tensor<7xf32>)
      outs(%f[i, j] : tensor<256x7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    imap.yield %d : f32
  } -> tensor<256x7xf32>
  return %y : tensor<256x7xf32>
}
