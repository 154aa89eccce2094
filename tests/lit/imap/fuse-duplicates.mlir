// RUN: tc-opt %s --imap-fuse --split-input-file | FileCheck %s

// Both readers subtract the mean themselves: the result would be stored and loaded twice.
// CHECK-LABEL: func.func @variance
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<64x32xf32>, %[[M:[a-z0-9]+]]: tensor<64xf32>
// CHECK:         %[[V:.*]] = imap.generic (d0)[s0] {{.*}} ins(%[[X]][d0, s0], %[[M]][d0] {{.*}} fold [add f32]
// CHECK:         imap.generic (d0, d1) {{.*}} ins(%[[X]][d0, d1], %[[M]][d0], %[[V]][d0] :
// CHECK-NOT:     imap.generic
func.func @variance(%x: tensor<64x32xf32>, %m: tensor<64xf32>) -> tensor<64x32xf32> {
  %e1 = tensor.empty() : tensor<64x32xf32>
  %d = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%x[d0, d1], %m[d0] : tensor<64x32xf32>, tensor<64xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    imap.yield %s : f32
  } -> tensor<64x32xf32>
  %e0 = tensor.empty() : tensor<64xf32>
  %v = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 31]
      ins(%d[d0, s0] : tensor<64x32xf32>) outs(%e0[d0] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    %p = arith.mulf %a, %a : f32
    imap.yield %p : f32
  } -> tensor<64xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%d[d0, d1], %v[d0] : tensor<64x32xf32>, tensor<64xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// -----

// A product reads each element often: nothing is computed in it.
// CHECK-LABEL: func.func @product
// CHECK-COUNT-3: imap.generic
func.func @product(%x: tensor<64x32xf32>, %w: tensor<32x16xf32>) -> (tensor<64x16xf32>, tensor<64x32xf32>) {
  %e1 = tensor.empty() : tensor<64x32xf32>
  %d = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%x[d0, d1] : tensor<64x32xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    imap.yield %s : f32
  } -> tensor<64x32xf32>
  %e0 = tensor.empty() : tensor<64x16xf32>
  %v = imap.generic (d0, d1)[s0] domain: d0 in [0, 63], d1 in [0, 15], s0 in [0, 31]
      ins(%d[d0, s0], %w[s0, d1] : tensor<64x32xf32>, tensor<32x16xf32>)
      outs(%e0[d0, d1] : tensor<64x16xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<64x16xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%d[d0, d1] : tensor<64x32xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32):
    %q = math.exp %a : f32
    imap.yield %q : f32
  } -> tensor<64x32xf32>
  return %v, %y : tensor<64x16xf32>, tensor<64x32xf32>
}

// -----

// More work than a load: the consumers become one operation, which computes it once.
// CHECK-LABEL: func.func @work
// CHECK: :2 = imap.generic
// CHECK: arith.divf
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.negf
// CHECK-NOT: imap.generic
// CHECK: return
func.func @work(%x: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %e1 = tensor.empty() : tensor<64x32xf32>
  %d = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%x[d0, d1] : tensor<64x32xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32):
    %s = arith.divf %a, %a : f32
    imap.yield %s : f32
  } -> tensor<64x32xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%d[d0, d1] : tensor<64x32xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32):
    %q = math.exp %a : f32
    imap.yield %q : f32
  } -> tensor<64x32xf32>
  %z = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%d[d0, d1] : tensor<64x32xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32):
    %q = arith.negf %a : f32
    imap.yield %q : f32
  } -> tensor<64x32xf32>
  return %y, %z : tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

// A fold with a factor per column reads each difference once: it computes it, and so does the other reader.
// CHECK-LABEL: func.func @differences
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<64x32xf32>, %[[M:[a-z0-9]+]]: tensor<64xf32>, %[[W:[a-z0-9]+]]: tensor<32xf32>)
// CHECK:         imap.generic (d0)[s0] {{.*}} ins(%[[X]][d0, s0], %[[M]][d0], %[[W]][s0] :
// CHECK:         imap.generic (d0, d1) {{.*}} ins(%[[X]][d0, d1], %[[M]][d0] :
// CHECK-NOT:     imap.generic
func.func @differences(%x: tensor<64x32xf32>, %m: tensor<64xf32>, %w: tensor<32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>) {
  %e1 = tensor.empty() : tensor<64x32xf32>
  %d = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%x[d0, d1], %m[d0] : tensor<64x32xf32>, tensor<64xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    imap.yield %s : f32
  } -> tensor<64x32xf32>
  %e0 = tensor.empty() : tensor<64xf32>
  %v = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 31]
      ins(%d[d0, s0], %w[s0] : tensor<64x32xf32>, tensor<32xf32>) outs(%e0[d0] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<64xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%d[d0, d1] : tensor<64x32xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32):
    %q = math.exp %a : f32
    imap.yield %q : f32
  } -> tensor<64x32xf32>
  return %v, %y : tensor<64xf32>, tensor<64x32xf32>
}

// -----

// Any number of readers read a slice from its tensor, factors of products as well; a sum of rows is no slice.
// CHECK-LABEL: func.func @slice
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<64x32xf32>, %[[W:[a-z0-9]+]]: tensor<16x8xf32>)
// CHECK-NOT:     tensor<64x16xf32>) {
// CHECK:         imap.generic {{.*}} ins(%[[X]][d0, s0 + 16], %[[W]][s0, d1] :
// CHECK:         imap.generic {{.*}} ins(%[[X]][d0, s0 + 16] :
// CHECK:         imap.generic {{.*}} outs({{.*}} fold [add f32]
// CHECK:         imap.generic
// CHECK-NOT:     fold
// CHECK:         return
func.func @slice(%x: tensor<64x32xf32>, %w: tensor<16x8xf32>) -> (tensor<64x8xf32>, tensor<64xf32>, tensor<1x64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64x16xf32>
  %f = tensor.empty() : tensor<64x8xf32>
  %g = tensor.empty() : tensor<64xf32>
  %h = tensor.empty() : tensor<1x64xf32>
  %s = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 15]
      ins(%x[d0, d1 + 16] : tensor<64x32xf32>) outs(%e[d0, d1] : tensor<64x16xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64x16xf32>
  %p = imap.generic (d0, d1)[s0] domain: d0 in [0, 63], d1 in [0, 7], s0 in [0, 15]
      ins(%s[d0, s0], %w[s0, d1] : tensor<64x16xf32>, tensor<16x8xf32>) outs(%f[d0, d1] : tensor<64x8xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    imap.yield %c : f32
  } -> tensor<64x8xf32>
  %m = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 15]
      ins(%s[d0, s0] : tensor<64x16xf32>) outs(%g[d0] : tensor<64xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %t = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 31]
      ins(%x[d0, s0] : tensor<64x32xf32>) outs(%g[d0] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %u = imap.generic (d0, d1) domain: d0 in [0, 0], d1 in [0, 63]
      ins(%t[-d1 + 63] : tensor<64xf32>) outs(%h[d0, d1] : tensor<1x64xf32>) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    imap.yield %n : f32
  } -> tensor<1x64xf32>
  return %p, %m, %u, %t : tensor<64x8xf32>, tensor<64xf32>, tensor<1x64xf32>, tensor<64xf32>
}

// -----

// Pairs of neighbours are read where they are as well: a row of the copy is a part of a row.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<64xf32>)
// CHECK:         imap.generic {{.*}} ins(%[[X]][d0 * 2], %[[X]][d0 * 2 + 1] :
// CHECK:         imap.generic {{.*}} ins(%[[X]][d0 * -2 + 62], %[[X]][d0 * -2 + 63] :
// CHECK-NOT:     imap.generic
func.func @pairs(%x: tensor<64xf32>) -> (tensor<32xf32>, tensor<1x32xf32>) {
  %e = tensor.empty() : tensor<32x2xf32>
  %f = tensor.empty() : tensor<32xf32>
  %g = tensor.empty() : tensor<1x32xf32>
  %s = imap.generic (d0, d1) domain: d0 in [0, 31], d1 in [0, 1]
      ins(%x[d0 * 2 + d1] : tensor<64xf32>) outs(%e[d0, d1] : tensor<32x2xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<32x2xf32>
  %p = imap.generic (d0) domain: d0 in [0, 31]
      ins(%s[d0, 0], %s[d0, 1] : tensor<32x2xf32>, tensor<32x2xf32>) outs(%f[d0] : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    imap.yield %c : f32
  } -> tensor<32xf32>
  %q = imap.generic (d0) domain: d0 in [0, 31]
      ins(%s[-d0 + 31, 0], %s[-d0 + 31, 1] : tensor<32x2xf32>, tensor<32x2xf32>) outs(%g[0, d0] : tensor<1x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    imap.yield %c : f32
  } -> tensor<1x32xf32>
  return %p, %q : tensor<32xf32>, tensor<1x32xf32>
}

// The readers of a reshaped tensor compute it again: its elements are neighbours along the same variable.
// CHECK-LABEL: func.func @reshaped
// CHECK:         imap.generic (d0, d1)[s0, s1] {{.*}} ins(%arg0[d0, s0, d1 * 8 + s1], %arg1[d1]
// CHECK:           arith.subf
// CHECK:         imap.generic (d0, d1, d2) {{.*}} ins(%arg0[d0, d1, d2], %arg1[d2 / 8]
// CHECK:           arith.subf
// CHECK-NOT:     imap.generic
func.func @reshaped(%x: tensor<4x28x64xf32>, %m: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x28x64xf32>) {
  %e0 = tensor.empty() : tensor<4x28x8x8xf32>
  %c = imap.generic (d0, d1, d2, d3) domain: d0 in [0, 3], d1 in [0, 27], d2 in [0, 7], d3 in [0, 7]
      ins(%x[d0, d1, d2 * 8 + d3], %m[d2] : tensor<4x28x64xf32>, tensor<8xf32>)
      outs(%e0[d0, d1, d2, d3] : tensor<4x28x8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    imap.yield %s : f32
  } -> tensor<4x28x8x8xf32>
  %e1 = tensor.empty() : tensor<4x8xf32>
  %v = imap.generic (d0, d1)[s0, s1] domain: d0 in [0, 3], d1 in [0, 7], s0 in [0, 27], s1 in [0, 7]
      ins(%c[d0, s0, d1, s1] : tensor<4x28x8x8xf32>) outs(%e1[d0, d1] : tensor<4x8xf32>) fold [add f32] {
  ^bb0(%a: f32):
    %p = arith.mulf %a, %a : f32
    imap.yield %p : f32
  } -> tensor<4x8xf32>
  %e2 = tensor.empty() : tensor<4x28x64xf32>
  %y = imap.generic (d0, d1, d2) domain: d0 in [0, 3], d1 in [0, 27], d2 in [0, 63]
      ins(%c[d0, d1, d2 floordiv 8, d2 mod 8] : tensor<4x28x8x8xf32>) outs(%e2[d0, d1, d2] : tensor<4x28x64xf32>) {
  ^bb0(%a: f32):
    %t = math.absf %a : f32
    imap.yield %t : f32
  } -> tensor<4x28x64xf32>
  return %v, %y : tensor<4x8xf32>, tensor<4x28x64xf32>
}
