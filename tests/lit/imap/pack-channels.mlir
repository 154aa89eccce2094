// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-pack{vector-bits=256}))' | FileCheck %s

// Rows of an image are padded, channels are not: results along the channels need no masks.
// CHECK-LABEL: func.func @padded(
// CHECK-SAME:    %[[X:.*]]: tensor<2x32x20x20xf32>, %[[K:.*]]: tensor<32x32x3x3xf32>
// CHECK:         %[[P:.*]] = imap.generic {{.*}} ins(%[[X]][d0, d3, d1, d2] : {{.*}} outs({{.*}}[d0, d1, d2, d3] : tensor<2x20x20x32xf32>) attributes {imap.scratch}
// CHECK:         %[[W:.*]] = imap.generic {{.*}} ins(%[[K]][d0 * 16 + d4, d3, d1, d2] :
// CHECK:         %[[T:.*]] = imap.generic (n, o, h, w, d4)[c, r, s] {{.*}} ins(%[[P]][n, h + r - 1, w + s - 1, c], %[[W]][d4, r, s, c, o] :
// CHECK-SAME:      outs({{.*}}[n, h, w, o + d4 * 16] : tensor<2x20x20x32xf32>) fold [add f32] attributes {imap.scratch}
// CHECK:         %[[Y:.*]] = imap.generic (n, o, h, w) {{.*}} ins(%[[T]][n, h, w, o] : {{.*}} outs({{.*}}[n, o, h, w] : tensor<2x32x20x20xf32>) {
// CHECK:         return %[[Y]]
func.func @padded(%x: tensor<2x32x20x20xf32>, %k: tensor<32x32x3x3xf32>) -> tensor<2x32x20x20xf32> {
  %e = tensor.empty() : tensor<2x32x20x20xf32>
  %y = imap.generic (n, o, h, w)[c, r, s]
      domain: n in [0, 1], o in [0, 31], h in [0, 19], w in [0, 19], c in [0, 31], r in [0, 2], s in [0, 2],
              h + r - 1 in [0, 19], w + s - 1 in [0, 19]
      ins(%x[n, c, h + r - 1, w + s - 1], %k[o, c, r, s] : tensor<2x32x20x20xf32>, tensor<32x32x3x3xf32>)
      outs(%e[n, o, h, w] : tensor<2x32x20x20xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<2x32x20x20xf32>
  return %y : tensor<2x32x20x20xf32>
}
// The epilogue reads what it reads in its own order.
// CHECK-LABEL: func.func @epilogue(
// CHECK-SAME:    %[[Z:[a-z0-9]+]]: tensor<2x32x20x20xf32>) ->
// CHECK:         fold [add f32]
// CHECK-NOT:     epilogue
// CHECK:         imap.generic (n, o, h, w) {{.*}} ins(%{{.*}}[n, h, w, o], %[[Z]][n, o, h, w] :
// CHECK:           arith.addf
func.func @epilogue(%x: tensor<2x32x20x20xf32>, %k: tensor<32x32x3x3xf32>, %z: tensor<2x32x20x20xf32>) -> tensor<2x32x20x20xf32> {
  %e = tensor.empty() : tensor<2x32x20x20xf32>
  %y = imap.generic (n, o, h, w)[c, r, s]
      domain: n in [0, 1], o in [0, 31], h in [0, 19], w in [0, 19], c in [0, 31], r in [0, 2], s in [0, 2],
              h + r - 1 in [0, 19], w + s - 1 in [0, 19]
      ins(%x[n, c, h + r - 1, w + s - 1], %k[o, c, r, s], %z[n, o, h, w]
        : tensor<2x32x20x20xf32>, tensor<32x32x3x3xf32>, tensor<2x32x20x20xf32>)
      outs(%e[n, o, h, w] : tensor<2x32x20x20xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32, %u: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } epilogue {
  ^bb0(%sum: f32, %a: f32, %b: f32, %u: f32):
    %t = arith.addf %sum, %u : f32
    imap.yield %t : f32
  } -> tensor<2x32x20x20xf32>
  return %y : tensor<2x32x20x20xf32>
}

// Without padding, vectors along the rows need no masks.
// CHECK-LABEL: func.func @unpadded(
// CHECK-NOT:     tensor<2x18x18x32xf32>
func.func @unpadded(%x: tensor<2x32x20x20xf32>, %k: tensor<32x32x3x3xf32>) -> tensor<2x32x18x18xf32> {
  %e = tensor.empty() : tensor<2x32x18x18xf32>
  %y = imap.generic (n, o, h, w)[c, r, s]
      domain: n in [0, 1], o in [0, 31], h in [0, 17], w in [0, 17], c in [0, 31], r in [0, 2], s in [0, 2]
      ins(%x[n, c, h + r, w + s], %k[o, c, r, s] : tensor<2x32x20x20xf32>, tensor<32x32x3x3xf32>)
      outs(%e[n, o, h, w] : tensor<2x32x18x18xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<2x32x18x18xf32>
  return %y : tensor<2x32x18x18xf32>
}

// Of three channels, a fold has not a vector's worth.
// CHECK-LABEL: func.func @few_channels(
// CHECK-NOT:     tensor<2x20x20x3xf32>
func.func @few_channels(%x: tensor<2x3x20x20xf32>, %k: tensor<32x3x5x5xf32>) -> tensor<2x32x20x20xf32> {
  %e = tensor.empty() : tensor<2x32x20x20xf32>
  %y = imap.generic (n, o, h, w)[c, r, s]
      domain: n in [0, 1], o in [0, 31], h in [0, 19], w in [0, 19], c in [0, 2], r in [0, 4], s in [0, 4],
              h + r - 2 in [0, 19], w + s - 2 in [0, 19]
      ins(%x[n, c, h + r - 2, w + s - 2], %k[o, c, r, s] : tensor<2x3x20x20xf32>, tensor<32x3x5x5xf32>)
      outs(%e[n, o, h, w] : tensor<2x32x20x20xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<2x32x20x20xf32>
  return %y : tensor<2x32x20x20xf32>
}

// What stands in the destination is added: it stays where it is.
// CHECK-LABEL: func.func @accumulated(
// CHECK-NOT:     tensor<2x20x20x32xf32>
func.func @accumulated(%x: tensor<2x32x20x20xf32>, %k: tensor<32x32x3x3xf32>, %e: tensor<2x32x20x20xf32>)
    -> tensor<2x32x20x20xf32> {
  %y = imap.generic (n, o, h, w)[c, r, s]
      domain: n in [0, 1], o in [0, 31], h in [0, 19], w in [0, 19], c in [0, 31], r in [0, 2], s in [0, 2],
              h + r - 1 in [0, 19], w + s - 1 in [0, 19]
      ins(%x[n, c, h + r - 1, w + s - 1], %k[o, c, r, s] : tensor<2x32x20x20xf32>, tensor<32x32x3x3xf32>)
      outs(%e[n, o, h, w] : tensor<2x32x20x20xf32>) fold [add f32 from outs 0] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<2x32x20x20xf32>
  return %y : tensor<2x32x20x20xf32>
}
// A batch of three comes last, and fills less than half of a vector.
// CHECK-LABEL: func.func @short(
// CHECK-SAME:    %[[X:.*]]: tensor<3x20x24xf32>, %[[K:.*]]: tensor<3x24x40xf32>
// CHECK:         %[[T:.*]] = imap.generic (i, j, b)[s] {{.*}} ins(%[[X]][b, i, s], %[[K]][b, s, j] :
// CHECK-SAME:      outs({{.*}}[i, b, j] : tensor<20x3x40xf32>) fold [add f32] attributes {imap.scratch}
// CHECK:         imap.generic (i, j, b) {{.*}} ins(%[[T]][i, b, j] : {{.*}} outs({{.*}}[i, j, b] : tensor<20x40x3xf32>) {
func.func @short(%x: tensor<3x20x24xf32>, %k: tensor<3x24x40xf32>) -> tensor<20x40x3xf32> {
  %e = tensor.empty() : tensor<20x40x3xf32>
  %y = imap.generic (i, j, b)[s] domain: i in [0, 19], j in [0, 39], b in [0, 2], s in [0, 23]
      ins(%x[b, i, s], %k[b, s, j] : tensor<3x20x24xf32>, tensor<3x24x40xf32>)
      outs(%e[i, j, b] : tensor<20x40x3xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<20x40x3xf32>
  return %y : tensor<20x40x3xf32>
}

// An image of three colors: its results are next to each other along a row instead, and so is what the windows read. The copy
// of an image is read by windows of 3 x 3 for each color.
// CHECK-LABEL: func.func @colors(
// CHECK-SAME:    %[[X:.*]]: tensor<20x20x32xf32>, %[[K:.*]]: tensor<3x3x32x3xf32>
// CHECK:         %[[P:.*]] = imap.generic {{.*}} ins(%[[X]][d0, d2, d1] : {{.*}} outs({{.*}}[d0, d1, d2] : tensor<20x32x20xf32>)
// CHECK:         %[[T:.*]] = imap.generic (h, w, o)[r, s, c] {{.*}} ins(%[[P]][h + r - 1, c, w + s - 1], %[[K]][r, s, c, o] :
// CHECK-SAME:      outs({{.*}}[h, o, w] : tensor<20x3x20xf32>) fold [add f32] attributes {imap.scratch}
// CHECK:         imap.generic (h, w, o) {{.*}} ins(%[[T]][h, o, w] : {{.*}} outs({{.*}}[h, w, o] : tensor<20x20x3xf32>) {
func.func @colors(%x: tensor<20x20x32xf32>, %k: tensor<3x3x32x3xf32>) -> tensor<20x20x3xf32> {
  %e = tensor.empty() : tensor<20x20x3xf32>
  %y = imap.generic (h, w, o)[r, s, c] domain: h in [0, 19], w in [0, 19], o in [0, 2], r in [0, 2], s in [0, 2],
              c in [0, 31], h + r - 1 in [0, 19], w + s - 1 in [0, 19]
      ins(%x[h + r - 1, w + s - 1, c], %k[r, s, c, o] : tensor<20x20x32xf32>, tensor<3x3x32x3xf32>)
      outs(%e[h, w, o] : tensor<20x20x3xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<20x20x3xf32>
  return %y : tensor<20x20x3xf32>
}
