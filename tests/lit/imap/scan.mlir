// RUN: tc-opt %s | tc-opt --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-run %s --entry rows --check
// RUN: tc-run %s --entry columns --check
// RUN: tc-run %s --entry reversed --check
// RUN: tc-run %s --entry largest --check
// RUN: tc-run %s --entry masked --check
// RUN: tc-run %s --entry linear --check
// RUN: tc-run %s --entry columns --check --threads 2
// RUN: tc-run %s --entry rows --check --strict-fp

// Sums along rows, in vectors.
// CHECK-LABEL: func.func @rows(
// CHECK:         imap.scan (i, t) domain: i in [0, 36], t in [0, 700] scan t inclusive ins(%{{.*}}[i, t] : tensor<37x701xf32>) outs(%{{.*}}[i, t] : tensor<37x701xf32>) fold [add f32] {
func.func @rows(%x: tensor<37x701xf32>) -> tensor<37x701xf32> {
  %e = tensor.empty() : tensor<37x701xf32>
  %y = imap.scan (i, t) domain: i in [0, 36], t in [0, 700] scan t inclusive
    ins(%x[i, t] : tensor<37x701xf32>) outs(%e[i, t] : tensor<37x701xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<37x701xf32>
  return %y : tensor<37x701xf32>
}

// Products along columns, which begin with 2, without the element itself, in another type.
// CHECK-LABEL: func.func @columns(
// CHECK:         scan t exclusive
// CHECK-SAME:    fold [mul f32 from 2.000000e+00]
// CHECK:         } epilogue {
func.func @columns(%x: tensor<5x1031xf32>) -> tensor<5x1031xf64> {
  %e = tensor.empty() : tensor<5x1031xf64>
  %y = imap.scan (t, i) domain: t in [0, 4], i in [0, 1030] scan t exclusive
    ins(%x[t, i] : tensor<5x1031xf32>) outs(%e[t, i] : tensor<5x1031xf64>) fold [mul f32 from 2.0] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%p: f32, %a: f32):
    %s = arith.addf %p, %a : f32
    %w = arith.extf %s : f32 to f64
    imap.yield %w : f64
  } -> tensor<5x1031xf64>
  return %y : tensor<5x1031xf64>
}

// From the last element to the first, in place.
// CHECK-LABEL: func.func @reversed(
// CHECK:         scan t exclusive ins(%{{.*}}[-t + 98]
func.func @reversed(%x: tensor<99xi32>) -> tensor<99xi32> {
  %y = imap.scan (t) domain: t in [0, 98] scan t exclusive
    ins(%x[98 - t] : tensor<99xi32>) outs(%x[98 - t] : tensor<99xi32>) fold [add i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<99xi32>
  return %y : tensor<99xi32>
}

// The largest element so far and its place: the combiner is a region.
// CHECK-LABEL: func.func @largest(
// CHECK:         } combine {
func.func @largest(%x: tensor<3x40xf32>) -> (tensor<3x40xf32>, tensor<3x40xi32>) {
  %e = tensor.empty() : tensor<3x40xf32>
  %f = tensor.empty() : tensor<3x40xi32>
  %y:2 = imap.scan (i, t) domain: i in [0, 2], t in [0, 39] scan t inclusive
    ins(%x[i, t] : tensor<3x40xf32>) outs(%e[i, t], %f[i, t] : tensor<3x40xf32>, tensor<3x40xi32>)
    fold [f32 identity 0xFF800000, i32 identity 0] {
  ^bb0(%a: f32):
    %t = imap.index dim 1
    %k = arith.index_cast %t : index to i32
    imap.yield %a, %k : f32, i32
  } combine {
  ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
    %first = arith.cmpf oge, %v0, %v1 : f32
    %v = arith.select %first, %v0, %v1 : f32
    %i = arith.select %first, %i0, %i1 : i32
    imap.yield %v, %i : f32, i32
  } -> tensor<3x40xf32>, tensor<3x40xi32>
  return %y#0, %y#1 : tensor<3x40xf32>, tensor<3x40xi32>
}

// Only even places count; a runtime variable gives the length.
// CHECK-LABEL: func.func @masked(
func.func @masked(%x: tensor<1300xi32>) -> tensor<1300xi32> {
  %n = arith.constant 1300 : index
  %e = tensor.empty() : tensor<1300xi32>
  %y = imap.scan (t){n} domain: t in [0, n - 1], n in [1, 1300], t mod 2 in [0, 0] scan t inclusive
    runtime(%n : index) ins(%x[t] : tensor<1300xi32>) outs(%e[t] : tensor<1300xi32>) fold [add i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<1300xi32>
  return %y : tensor<1300xi32>
}

// A linear recurrence y = a * y + b, whose combiner does not commute.
// CHECK-LABEL: func.func @linear(
func.func @linear(%a: tensor<70x9xf32>, %b: tensor<70x9xf32>) -> tensor<70x9xf32> {
  %e = tensor.empty() : tensor<70x9xf32>
  %y = imap.scan (t, i) domain: t in [0, 69], i in [0, 8] scan t inclusive
    ins(%a[t, i], %b[t, i] : tensor<70x9xf32>, tensor<70x9xf32>) outs(%e[t, i] : tensor<70x9xf32>)
    fold [f32 identity 1.0, f32 identity 0.0] {
  ^bb0(%u: f32, %v: f32):
    imap.yield %u, %v : f32, f32
  } combine {
  ^bb0(%a0: f32, %b0: f32, %a1: f32, %b1: f32):
    %p = arith.mulf %a0, %a1 : f32
    %q = arith.mulf %a1, %b0 : f32
    %r = arith.addf %q, %b1 : f32
    imap.yield %p, %r : f32, f32
  } epilogue {
  ^bb0(%p: f32, %r: f32, %u: f32, %v: f32):
    imap.yield %r : f32
  } -> tensor<70x9xf32>
  return %y : tensor<70x9xf32>
}
