// Variables that subscripts divide become two variables.
//
// RUN: tc-opt %s --split-input-file --remarks-filter=imap-split-variables 2>%t.remarks \
// RUN:   --pass-pipeline='builtin.module(func.func(imap-split-variables))' | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks

// The heads of an attention, merged and multiplied: a range.
// CHECK-LABEL: func.func @merged
// CHECK: imap.generic (d0, d1)[s0, s1] domain: d0 in [0, 4], d1 in [0, 6], s0 in [0, 7], s1 in [0, 2]
// CHECK-SAME: ins(%{{.*}}[s1, d0, s0], %{{.*}}[s0 + s1 * 8, d1]
// REMARK: remark: [Passed] split {{.*}} Function=merged | By=8
func.func @merged(%x: tensor<3x5x8xf32>, %w: tensor<24x7xf32>) -> tensor<5x7xf32> {
  %e = tensor.empty() : tensor<5x7xf32>
  %r = imap.generic (d0, d1)[s0] domain: d0 in [0, 4], d1 in [0, 6], s0 in [0, 23]
      ins(%x[s0 / 8, d0, s0 mod 8], %w[s0, d1] : tensor<3x5x8xf32>, tensor<24x7xf32>)
      outs(%e[d0, d1] : tensor<5x7xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    imap.yield %m : f32
  } -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}

// -----

// A dimension, twice, and its index in the body.
// CHECK-LABEL: func.func @twice
// CHECK: imap.generic (d0, d1, d2) domain: d0 in [0, 1], d1 in [0, 5], d2 in [0, 1]
// CHECK-SAME: ins(%{{.*}}[d1, d2, d0]
// CHECK-SAME: outs(%{{.*}}[d0 + d1 * 4 + d2 * 2]
// CHECK-COUNT-3: imap.index dim
func.func @twice(%x: tensor<6x2x2xindex>) -> tensor<24xindex> {
  %e = tensor.empty() : tensor<24xindex>
  %r = imap.generic (d0) domain: d0 in [0, 23]
      ins(%x[d0 / 4, d0 mod 4 / 2, d0 mod 2] : tensor<6x2x2xindex>)
      outs(%e[d0] : tensor<24xindex>) {
  ^bb0(%a: index):
    %i = imap.index dim 0
    %m = arith.addi %a, %i : index
    imap.yield %m : index
  } -> tensor<24xindex>
  return %r : tensor<24xindex>
}

// -----

// The divisor does not divide the extent; an ordered fold keeps the order of its ranges.
// CHECK-LABEL: func.func @kept
// CHECK: imap.generic (d0) domain: d0 in [0, 22]
// CHECK: imap.generic ()[s0] domain: s0 in [0, 23]
// REMARK-NOT: Function=kept
func.func @kept(%x: tensor<6x4xf32>) -> (tensor<23xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<23xf32>
  %f = tensor.empty() : tensor<f32>
  %r = imap.generic (d0) domain: d0 in [0, 22]
      ins(%x[d0 / 4, d0 mod 4] : tensor<6x4xf32>) outs(%e[d0] : tensor<23xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<23xf32>
  %s = imap.generic ()[s0] domain: s0 in [0, 23]
      ins(%x[s0 / 4, s0 mod 4] : tensor<6x4xf32>) outs(%f[] : tensor<f32>) fold [add f32] ordered {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<f32>
  return %r, %s : tensor<23xf32>, tensor<f32>
}

// A transposed convolution: the columns of results become steps and residues, and the constraint names the residue only.
// CHECK-LABEL: func.func @transposed
// CHECK: imap.generic (i, d1)[s, k] domain: i in [0, 1], d1 in [0, 15], s in [0, 2], k in [0, 63], (i + s) mod 2 in [0, 0]
// CHECK-SAME: ins(%arg0[k, d1 + (i + s) / 2], %arg1[s, k]
// CHECK-SAME: outs(%{{.*}}[i + d1 * 2] : tensor<32xf32>)
func.func @transposed(%x: tensor<64x18xf32>, %w: tensor<3x64xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<32xf32>
  %r = imap.generic (i)[s, k] domain: i in [0, 31], s in [0, 2], k in [0, 63], (i + s) mod 2 in [0, 0]
      ins(%x[k, (i + s) floordiv 2], %w[s, k] : tensor<64x18xf32>, tensor<3x64xf32>) outs(%e[i] : tensor<32xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<32xf32>
  return %r : tensor<32xf32>
}

// An odd number of results: one more is computed from nothing, and left out.
// CHECK-LABEL: func.func @odd
// CHECK: %[[R:.*]] = imap.generic (i, d1)[s, k] domain: i in [0, 1], d1 in [0, 15], s in [0, 2], k in [0, 63], (i + s) mod 2 in [0, 0], i + d1 * 2 in [0, 30]
// CHECK-SAME: outs(%{{.*}}[i + d1 * 2] : tensor<32xf32>)
// CHECK: imap.generic (d0) domain: d0 in [0, 30] ins(%[[R]][d0] : tensor<32xf32>) outs(%{{.*}}[d0] : tensor<31xf32>)
func.func @odd(%x: tensor<64x18xf32>, %w: tensor<3x64xf32>) -> tensor<31xf32> {
  %e = tensor.empty() : tensor<31xf32>
  %r = imap.generic (i)[s, k] domain: i in [0, 30], s in [0, 2], k in [0, 63], (i + s) mod 2 in [0, 0]
      ins(%x[k, (i + s) floordiv 2], %w[s, k] : tensor<64x18xf32>, tensor<3x64xf32>) outs(%e[i] : tensor<31xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<31xf32>
  return %r : tensor<31xf32>
}

// An odd number of results in a longer row: the others are not computed at all.
// CHECK-LABEL: func.func @part_of_a_row
// CHECK: imap.generic (i)[s, k]
// CHECK-NOT: imap.generic
func.func @part_of_a_row(%x: tensor<64x18xf32>, %w: tensor<3x64xf32>) -> tensor<33xf32> {
  %e = tensor.empty() : tensor<33xf32>
  %r = imap.generic (i)[s, k] domain: i in [0, 30], s in [0, 2], k in [0, 63], (i + s) mod 2 in [0, 0]
      ins(%x[k, (i + s) floordiv 2], %w[s, k] : tensor<64x18xf32>, tensor<3x64xf32>) outs(%e[i] : tensor<33xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<33xf32>
  return %r : tensor<33xf32>
}

// A table has a place for each of the odd number of results, and for no more.
// CHECK-LABEL: func.func @table
// CHECK: imap.generic (i)[s, k]
// CHECK-NOT: imap.generic
func.func @table(%x: tensor<64x18xf32>, %w: tensor<3x64xf32>, %t: tensor<31xi32>) -> tensor<31xf32> {
  %e = tensor.empty() : tensor<31xf32>
  %r = imap.generic (i)[s, k]{r} domain: i in [0, 30], s in [0, 2], k in [0, min(r, 63)], r in [0, 63], (i + s) mod 2 in [0, 0] runtime(%t[i] : tensor<31xi32>)
      ins(%x[k, (i + s) floordiv 2], %w[s, k] : tensor<64x18xf32>, tensor<3x64xf32>) outs(%e[i] : tensor<31xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<31xf32>
  return %r : tensor<31xf32>
}

// -----

// A transposed convolution of channels-last images: a block of pixels has one remainder.
// CHECK-LABEL: func.func @rows(
// CHECK: imap.generic (i, j, d2)[s, k] domain: i in [0, 2], j in [0, 31], d2 in [0, 19], s in [0, 4], k in [0, 47], (i + s) mod 3 in [0, 0], i + d2 * 3 + s - 3 in [0, 57]
// CHECK-SAME: ins(%{{.*}}[d2 + (i + s) / 3 - 1, k], %{{.*}}[s, k, j] : {{.*}}) outs(%{{.*}}[i + d2 * 3, j] : tensor<60x32xf32>)
func.func @rows(%x: tensor<20x48xf32>, %w: tensor<5x48x32xf32>) -> tensor<60x32xf32> {
  %e = tensor.empty() : tensor<60x32xf32>
  %r = imap.generic (i, j)[s, k] domain: i in [0, 59], j in [0, 31], s in [0, 4], k in [0, 47], (i + s - 3) mod 3 in [0, 0], i + s - 3 in [0, 57]
      ins(%x[(i + s) floordiv 3 - 1, k], %w[s, k, j] : tensor<20x48xf32>, tensor<5x48x32xf32>) outs(%e[i, j] : tensor<60x32xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    imap.yield %m : f32
  } -> tensor<60x32xf32>
  return %r : tensor<60x32xf32>
}

// -----

// Only rows can become longer: five values of `i` stay as they are, although the last dimension has five as well.
// CHECK-LABEL: func.func @odd_rows(
// CHECK: imap.generic (i, j)[s, k] {{.*}} outs(%{{.*}}[i, -j + 4] : tensor<5x5xf32>)
// CHECK-NOT: imap.generic
func.func @odd_rows(%x: tensor<3x4xf32>, %w: tensor<3x4x5xf32>) -> tensor<5x5xf32> {
  %e = tensor.empty() : tensor<5x5xf32>
  %r = imap.generic (i, j)[s, k] domain: i in [0, 4], j in [0, 4], s in [0, 2], k in [0, 3], (i + s) mod 2 in [0, 0], i + s in [0, 5]
      ins(%x[(i + s) floordiv 2, k], %w[s, k, j] : tensor<3x4xf32>, tensor<3x4x5xf32>) outs(%e[i, 4 - j] : tensor<5x5xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    imap.yield %m : f32
  } -> tensor<5x5xf32>
  return %r : tensor<5x5xf32>
}
