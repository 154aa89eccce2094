// Folds of folds.
//
// RUN: tc-opt %s --imap-fuse --split-input-file | FileCheck %s
// RUN: tc-opt %s --imap-fuse="strict-fp=true" --split-input-file | FileCheck %s --check-prefix=STRICT
// RUN: tc-opt %s --imap-fuse --split-input-file --remarks-filter='.*' -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// A sum of sums is one sum. Its epilogue stays, and an index of the inner fold is the second range.
// CHECK-LABEL: func.func @sums(
// CHECK: imap.generic (i)[j, k] domain: i in [0, 7], j in [0, 15], k in [0, 31] ins(%arg0[i, k, j] : tensor<8x32x16xf32>) outs(%{{.*}}[i] : tensor<8xf32>) fold [add f32] {
// CHECK: imap.index range 1
// CHECK: } epilogue {
// CHECK-NOT: imap.generic
// STRICT-LABEL: func.func @sums(
// STRICT-COUNT-2: imap.generic
// REMARK: [Passed] fused | Category:imap-fuse | Function=sums | As=fold
func.func @sums(%x: tensor<8x32x16xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<16x8xf32>
  %a = imap.generic (j, i)[k] domain: j in [0, 15], i in [0, 7], k in [0, 31] ins(%x[i, k, j] : tensor<8x32x16xf32>) outs(%e[j, i] : tensor<16x8xf32>) fold [add f32] {
  ^bb0(%v: f32):
    %k = imap.index range 0
    %n = arith.index_cast %k : index to i32
    %f = arith.sitofp %n : i32 to f32
    %w = arith.mulf %v, %f : f32
    imap.yield %w : f32
  } -> tensor<16x8xf32>
  %g = tensor.empty() : tensor<8xf32>
  %b = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%a[j, i] : tensor<16x8xf32>) outs(%g[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } epilogue {
  ^bb0(%s: f32, %v: f32):
    %n = arith.negf %s : f32
    imap.yield %n : f32
  } -> tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----

// Maxima do not round.
// CHECK-LABEL: func.func @maxima(
// CHECK: imap.generic ()[i, j] domain: i in [0, 7], j in [0, 15]
// CHECK-NOT: imap.generic
// STRICT-LABEL: func.func @maxima(
// STRICT: imap.generic ()[i, j]
func.func @maxima(%x: tensor<8x16xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %g = tensor.empty() : tensor<f32>
  %b = imap.generic ()[i] domain: i in [0, 7] ins(%a[i] : tensor<8xf32>) outs(%g[] : tensor<f32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<f32>
  return %b : tensor<f32>
}

// -----

// Another fold, a body that computes, and a product.
// CHECK-LABEL: func.func @refused(
// CHECK-COUNT-6: imap.generic
// REMARK: [Missed] apart | Category:imap-fuse | Function=refused{{.*}}Reason="both are reductions"
// REMARK: [Missed] apart | Category:imap-fuse | Function=refused{{.*}}Reason="both are reductions"
// REMARK: [Missed] apart | Category:imap-fuse | Function=refused{{.*}}Reason="a product keeps its registers for one result"
func.func @refused(%x: tensor<8x16xf32>, %y: tensor<16x4xf32>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %g = tensor.empty() : tensor<f32>
  %b = imap.generic ()[i] domain: i in [0, 7] ins(%a[i] : tensor<8xf32>) outs(%g[] : tensor<f32>) fold [add f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<f32>
  %c = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [mul f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %d = imap.generic ()[i] domain: i in [0, 7] ins(%c[i] : tensor<8xf32>) outs(%g[] : tensor<f32>) fold [mul f32] {
  ^bb0(%v: f32):
    %n = arith.negf %v : f32
    imap.yield %n : f32
  } -> tensor<f32>
  %h = tensor.empty() : tensor<8x4xf32>
  %p = imap.generic (m, n)[k] domain: m in [0, 7], n in [0, 3], k in [0, 15] ins(%x[m, k], %y[k, n] : tensor<8x16xf32>, tensor<16x4xf32>) outs(%h[m, n] : tensor<8x4xf32>) fold [add f32] {
  ^bb0(%v: f32, %w: f32):
    %q = arith.mulf %v, %w : f32
    imap.yield %q : f32
  } -> tensor<8x4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %s = imap.generic (n)[m] domain: n in [0, 3], m in [0, 7] ins(%p[m, n] : tensor<8x4xf32>) outs(%f[n] : tensor<4xf32>) fold [add f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<4xf32>
  return %b, %d, %s : tensor<f32>, tensor<f32>, tensor<4xf32>
}

// -----

// Each index of the outer fold has another number of inner values, which is read from a tensor.
// CHECK-LABEL: func.func @read_bounds(
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] apart | Category:imap-fuse | Function=read_bounds | {{.*}}the bounds of the producer's ranges are read from a tensor
func.func @read_bounds(%x: tensor<8x16xi32>, %n: tensor<8xi32>) -> tensor<i32> {
  %e = tensor.empty() : tensor<8xi32>
  %a = imap.generic (i)[j]{r} domain: i in [0, 7], j in [0, r], r in [0, 15] runtime(%n[i] : tensor<8xi32>) ins(%x[i, j] : tensor<8x16xi32>) outs(%e[i] : tensor<8xi32>) fold [add i32] {
  ^bb0(%v: i32):
    imap.yield %v : i32
  } -> tensor<8xi32>
  %g = tensor.empty() : tensor<i32>
  %b = imap.generic ()[i] domain: i in [0, 7] ins(%a[i] : tensor<8xi32>) outs(%g[] : tensor<i32>) fold [add i32] {
  ^bb0(%v: i32):
    imap.yield %v : i32
  } -> tensor<i32>
  return %b : tensor<i32>
}
