// RUN: tc-opt %s | FileCheck %s
// The generic form and bytecode hold the same.
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-opt %s --emit-bytecode | tc-opt | FileCheck %s
// RUN: tc-run %s --entry pad --check
// RUN: tc-run %s --entry pad_bools --check
// RUN: tc-run %s --entry embedding --check
// RUN: tc-run %s --entry table --check
// RUN: tc-run %s --entry max_pool --check
// RUN: tc-run %s --entry epilogue --check
// RUN: tc-run %s --entry band --check
// RUN: tc-run %s --entry products --check
// RUN: tc-run %s --entry bags --check
// RUN: tc-run %s --entry halo --check --size N=37
// RUN: tc-run %s --entry halo --check --size N=1

// CHECK-LABEL: func.func @pad(
// CHECK:       ins(%{{.*}}[i - 1, j * 2 - 3] where i - 1 in [0, 7] and j * 2 - 3 in [0, 19] else 5.000000e-01 : tensor<8x20xf32>)
func.func @pad(%x: tensor<8x20xf32>) -> tensor<10x13xf32> {
  %e = tensor.empty() : tensor<10x13xf32>
  %y = imap.generic (i, j) domain: i in [0, 9], j in [0, 12]
      ins(%x[i - 1, j * 2 - 3] where i - 1 in [0, 7] and j * 2 - 3 in [0, 19] else 0.5 : tensor<8x20xf32>)
      outs(%e[i, j] : tensor<10x13xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<10x13xf32>
  return %y : tensor<10x13xf32>
}

// CHECK-LABEL: func.func @pad_bools(
// CHECK:       where i - 1 in [0, 7] else true : tensor<8xi1>)
func.func @pad_bools(%x: tensor<8xi1>) -> tensor<10xi1> {
  %e = tensor.empty() : tensor<10xi1>
  %y = imap.generic (i) domain: i in [0, 9]
      ins(%x[i - 1] where i - 1 in [0, 7] else true : tensor<8xi1>) outs(%e[i] : tensor<10xi1>) {
  ^bb0(%a: i1):
    imap.yield %a : i1
  } -> tensor<10xi1>
  return %y : tensor<10xi1>
}

// A row of zeros where an index is out of bounds.
// CHECK-LABEL: func.func @embedding(
// CHECK:       runtime(%{{.*}}[t] : tensor<40xi32>) ins(%{{.*}}[r, d] where r in [0, 2] : tensor<3x19xf32>)
func.func @embedding(%table: tensor<3x19xf32>, %ids: tensor<40xi32>) -> tensor<40x19xf32> {
  %e = tensor.empty() : tensor<40x19xf32>
  %y = imap.generic (t, d){r} domain: t in [0, 39], d in [0, 18]
      runtime(%ids[t] : tensor<40xi32>) ins(%table[r, d] where r in [0, 2] : tensor<3x19xf32>)
      outs(%e[t, d] : tensor<40x19xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<40x19xf32>
  return %y : tensor<40x19xf32>
}

// A runtime variable has the constant, too, and conditions use runtime variables.
// CHECK-LABEL: func.func @table(
// CHECK:       runtime(%{{.*}}[i - 1] where i in [1, 4] else 5, %{{.*}}[min(max(p, 0), 3)] where p in [-inf, 4] else -1 : tensor<4xi32>, tensor<4xi32>)
// CHECK:       where q + k in [0, 7] and q in [0, inf] else 0xFF800000 : tensor<8xf32>)
// CHECK:       imap.inside (d0 + s0 - rt0 in [-inf, 3], d0 - 1 in [0, 7]) : i1
func.func @table(%x: tensor<8xf32>, %t: tensor<4xi32>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<6xf32>
  %y = imap.generic (i)[k]{p, q} domain: i in [0, 5], k in [0, 2]
      runtime(%t[i - 1] where i in [1, 4] else 5, %t[min(max(p, 0), 3)] where p in [-inf, 4] else -1 : tensor<4xi32>, tensor<4xi32>)
      ins(%x[q + k] where q in [0, inf] and q + k in [0, 7] else 0xFF800000 : tensor<8xf32>)
      outs(%e[i] : tensor<6xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    %in = imap.inside (d0 - 1 in [0, 7], d0 + s0 - rt0 in [-inf, 3]) : i1
    %zero = arith.constant 0.0 : f32
    %b = arith.select %in, %a, %zero : f32
    imap.yield %b : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// CHECK-LABEL: func.func @max_pool(
// CHECK:       where h * 2 + p - 1 in [0, 10] and w * 2 + q - 1 in [0, 18] else 0xFF800000 : tensor<11x19xf32>)
func.func @max_pool(%x: tensor<11x19xf32>) -> tensor<6x10xf32> {
  %e = tensor.empty() : tensor<6x10xf32>
  %y = imap.generic (h, w)[p, q] domain: h in [0, 5], w in [0, 9], p in [0, 2], q in [0, 2]
      ins(%x[h * 2 + p - 1, w * 2 + q - 1] where h * 2 + p - 1 in [0, 10] and w * 2 + q - 1 in [0, 18] else 0xFF800000 : tensor<11x19xf32>)
      outs(%e[h, w] : tensor<6x10xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<6x10xf32>
  return %y : tensor<6x10xf32>
}

// CHECK-LABEL: func.func @epilogue(
// CHECK:       ins(%{{.*}}[i, k], %{{.*}}[i - 3] where i in [3, 8] else 2.000000e+00 : tensor<9x40xf32>, tensor<6xf32>)
// CHECK:       imap.inside (d0 in [2, inf]) : i1
func.func @epilogue(%x: tensor<9x40xf32>, %b: tensor<6xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %y = imap.generic (i)[k] domain: i in [0, 8], k in [0, 39]
      ins(%x[i, k], %b[i - 3] where i in [3, 8] else 2.0 : tensor<9x40xf32>, tensor<6xf32>)
      outs(%e[i] : tensor<9xf32>) fold [add f32] {
  ^bb0(%a: f32, %c: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32, %c: f32):
    %in = imap.inside (d0 in [2, inf]) : i1
    %d = arith.addf %s, %c : f32
    %r = arith.select %in, %d, %s : f32
    imap.yield %r : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// The end of the guard is a size. Bounds that are expressions become two conditions.
// CHECK-LABEL: func.func @halo(
// CHECK:       ins(%{{.*}}[i - 1] where N - i in [0, inf] and i - 1 in [0, inf], %{{.*}}[i] : tensor<?xf32>, tensor<?xf32>)
func.func @halo(%x: tensor<?xf32> {tc.name = "X", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "Y", tc.sizes = ["N"]}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 2147483647]
      runtime(%n : index)
      ins(%x[i - 1] where i - 1 in [0, N - 1], %x[i] : tensor<?xf32>, tensor<?xf32>)
      outs(%e[i] : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    imap.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// Lanes along a dimension, masked per value of the range.
func.func @band(%x: tensor<40x50xf32>, %w: tensor<9xf32>) -> tensor<40x67xf32> {
  %e = tensor.empty() : tensor<40x67xf32>
  %y = imap.generic (i, j)[k] domain: i in [0, 39], j in [0, 66], k in [0, 8]
      ins(%x[i, j + k - 9] where j + k - 9 in [0, 49] and i + k in [3, 40] else 2.0, %w[k] : tensor<40x50xf32>, tensor<9xf32>)
      outs(%e[i, j] : tensor<40x67xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    imap.yield %m : f32
  } -> tensor<40x67xf32>
  return %y : tensor<40x67xf32>
}

// Lanes along the range.
func.func @products(%x: tensor<37x100xf32>, %w: tensor<19x120xf32>) -> tensor<37x19xf32> {
  %e = tensor.empty() : tensor<37x19xf32>
  %y = imap.generic (i, j)[k] domain: i in [0, 36], j in [0, 18], k in [0, 119]
      ins(%x[i, k - 5] where k in [5, 104] and i - k in [-80, 20] else 0.5, %w[j, k] : tensor<37x100xf32>, tensor<19x120xf32>)
      outs(%e[i, j] : tensor<37x19xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    %in = imap.inside (d0 - s0 in [-100, 10], d1 in [1, 17]) : i1
    %n = arith.select %in, %m, %a : f32
    imap.yield %n : f32
  } -> tensor<37x19xf32>
  return %y : tensor<37x19xf32>
}

// Sums of rows of a table.
func.func @bags(%table: tensor<30x70xf32>, %ids: tensor<64x9xi32>) -> tensor<64x70xf32> {
  %e = tensor.empty() : tensor<64x70xf32>
  %y = imap.generic (t, d)[k]{r} domain: t in [0, 63], d in [0, 69], k in [0, 8]
      runtime(%ids[t, k] : tensor<64x9xi32>) ins(%table[r, d] where r in [0, 29] else 1.0 : tensor<30x70xf32>)
      outs(%e[t, d] : tensor<64x70xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64x70xf32>
  return %y : tensor<64x70xf32>
}
