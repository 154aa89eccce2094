// Maximum and sum of exponentials of long rows are one fold.
//
// RUN: tc-opt %s --imap-fuse="max-row=64" --canonicalize --split-input-file | FileCheck %s
// RUN: tc-opt %s --imap-fuse --split-input-file | FileCheck %s --check-prefix=SHORT
// RUN: tc-opt %s --imap-fuse="max-row=64 strict-fp=true" --split-input-file | FileCheck %s --check-prefix=SHORT
// RUN: tc-opt %s --imap-fuse="max-row=64" --split-input-file --remarks-filter='.*' -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// Softmax: a row and its exponentials have 128 bytes. The last operation computes the exponentials again.
// CHECK-LABEL: func.func @softmax(
// CHECK: %[[S:.*]]:2 = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%arg0[i, j] : tensor<8x16xf32>) outs({{.*}}) fold [f32 identity 0xFF800000, f32 identity 0.000000e+00] {
// CHECK: imap.yield %{{.*}}, %cst : f32, f32
// CHECK: combine {
// CHECK: ^bb0(%[[M0:.*]]: f32, %[[S0:.*]]: f32, %[[M1:.*]]: f32, %[[S1:.*]]: f32):
// CHECK-DAG: %[[M:.*]] = arith.maximumf %[[M0]], %[[M1]]
// CHECK-DAG: %[[FIRST:.*]] = arith.cmpf oge, %[[M0]], %[[M1]]
// CHECK-DAG: %[[EQUAL:.*]] = arith.cmpf oeq, %[[M0]], %[[M1]]
// CHECK: %[[LEAST:.*]] = arith.select %[[FIRST]], %[[M1]], %[[M0]]
// CHECK: %[[D:.*]] = arith.subf %[[LEAST]], %[[M]]
// CHECK: %[[E:.*]] = math.exp %[[D]]
// CHECK: %[[SCALE:.*]] = arith.select %[[EQUAL]], %{{.*}}, %[[E]]
// CHECK-DAG: %[[KEPT:.*]] = arith.select %[[FIRST]], %[[S0]], %[[S1]]
// CHECK-DAG: %[[OTHER:.*]] = arith.select %[[FIRST]], %[[S1]], %[[S0]]
// CHECK: %[[P:.*]] = arith.mulf %[[OTHER]], %[[SCALE]]
// CHECK: %[[SUM:.*]] = arith.addf %[[KEPT]], %[[P]]
// CHECK: imap.yield %[[M]], %[[SUM]]
// CHECK: } epilogue {
// CHECK: imap.generic (i, j) {{.*}} ins(%arg0[i, j], %[[S]]#0[i], %[[S]]#1[i]
// CHECK: math.exp
// CHECK: arith.divf
// CHECK-NOT: imap.generic
// SHORT-LABEL: func.func @softmax(
// SHORT-COUNT-4: imap.generic
// REMARK: [Passed] rescaled | Category:imap-fuse | Function=softmax
func.func @softmax(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %w = tensor.empty() : tensor<8x16xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %p = imap.generic (i, j) domain: i in [0, 7], j in [0, 15] ins(%x[i, j], %m[i] : tensor<8x16xf32>, tensor<8xf32>) outs(%w[i, j] : tensor<8x16xf32>) {
  ^bb0(%v: f32, %n: f32):
    %d = arith.subf %v, %n : f32
    %r = math.exp %d : f32
    imap.yield %r : f32
  } -> tensor<8x16xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%p[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %y = imap.generic (i, j) domain: i in [0, 7], j in [0, 15] ins(%p[i, j], %s[i] : tensor<8x16xf32>, tensor<8xf32>) outs(%w[i, j] : tensor<8x16xf32>) {
  ^bb0(%v: f32, %t: f32):
    %q = arith.divf %v, %t : f32
    imap.yield %q : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// A row of 64 bytes fits in a tile.
// CHECK-LABEL: func.func @fits(
// CHECK-COUNT-2: imap.generic
// REMARK-NOT: rescaled | Category:imap-fuse | Function=fits
func.func @fits(%x: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j], %m[i] : tensor<8x16xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32, %n: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } -> tensor<8xf32>
  return %m, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// The logarithm of the sum, with a shift of 0 where the maximum is not finite. Epilogues go along; a dimension of one index
// needs no place in the maximum.
// CHECK-LABEL: func.func @logsumexp(
// CHECK: imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%arg0[i, j], %arg1[i] : tensor<8x32xf32>, tensor<8xf32>) outs(%{{.*}}[i, 0] : tensor<8x1xf32>)
// CHECK: } epilogue {
// CHECK: ^bb0(%[[M:.*]]: f32, %[[S:.*]]: f32, %{{.*}}: f32, %[[B:.*]]: f32):
// CHECK: %[[SHIFT:.*]] = arith.select
// CHECK: %[[D:.*]] = arith.subf %[[M]], %[[SHIFT]]
// CHECK: %[[E:.*]] = imap.builtin "exp"(%[[D]])
// CHECK: %[[SUM:.*]] = arith.mulf %[[S]], %[[E]]
// CHECK: %[[L:.*]] = math.log %[[SUM]]
// CHECK: %[[T:.*]] = arith.addf %[[L]], %[[SHIFT]]
// CHECK: %[[R:.*]] = arith.addf %[[T]], %[[B]]
// CHECK: imap.yield %[[R]] : f32
// CHECK-NOT: imap.generic
// REMARK: [Passed] rescaled | Category:imap-fuse | Function=logsumexp
func.func @logsumexp(%x: tensor<8x32xf32>, %b: tensor<8xf32>) -> tensor<8x1xf32> {
  %inf = arith.constant 0x7F800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %g = tensor.empty() : tensor<8x1xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j] : tensor<8x32xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } epilogue {
  ^bb0(%n: f32, %v: f32):
    %a = math.absf %n : f32
    %c = arith.cmpf olt, %a, %inf : f32
    %r = arith.select %c, %n, %zero : f32
    imap.yield %r : f32
  } -> tensor<8xf32>
  %s = imap.generic (i, k)[j] domain: i in [0, 7], k in [0, 0], j in [0, 31] ins(%x[i, j], %m[i], %b[i] : tensor<8x32xf32>, tensor<8xf32>, tensor<8xf32>) outs(%g[i, k] : tensor<8x1xf32>) fold [add f32] {
  ^bb0(%v: f32, %n: f32, %w: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } epilogue {
  ^bb0(%t: f32, %v: f32, %n: f32, %w: f32):
    %l = math.log %t : f32
    %r = arith.addf %l, %n : f32
    %q = arith.addf %r, %w : f32
    imap.yield %q : f32
  } -> tensor<8x1xf32>
  return %s : tensor<8x1xf32>
}

// -----

// The exponentials are those of values that both operations compute.
// CHECK-LABEL: func.func @computed(
// CHECK: imap.generic {{.*}} fold [f32 identity 0xFF800000, f32 identity 0.000000e+00] {
// CHECK: arith.mulf
// CHECK: combine {
// REMARK: [Passed] rescaled | Category:imap-fuse | Function=computed
func.func @computed(%x: tensor<8x32xf32>, %t: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j], %t[] : tensor<8x32xf32>, tensor<f32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32, %c: f32):
    %a = arith.mulf %v, %c : f32
    imap.yield %a : f32
  } -> tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%m[i], %t[], %x[i, j] : tensor<8xf32>, tensor<f32>, tensor<8x32xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%n: f32, %c: f32, %v: f32):
    %a = arith.mulf %v, %c : f32
    %d = arith.subf %a, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } -> tensor<8xf32>
  return %m, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// Left as they are, with the reason.
// CHECK-LABEL: func.func @other_values(
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] not rescaled | Category:imap-fuse | Function=other_values | Reason="the maximum is that of other values"
func.func @other_values(%x: tensor<8x32xf32>, %y: tensor<8x32xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j] : tensor<8x32xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%y[i, j], %m[i] : tensor<8x32xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32, %n: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } -> tensor<8xf32>
  return %m, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @other_row(
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] not rescaled | Category:imap-fuse | Function=other_row | Reason="the consumer reads other elements of the result than the one of its own point"
func.func @other_row(%x: tensor<8x32xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j] : tensor<8x32xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j], %m[7 - i] : tensor<8x32xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32, %n: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } -> tensor<8xf32>
  return %m, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @other_points(
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] not rescaled | Category:imap-fuse | Function=other_points | Reason="the operations have different points"
func.func @other_points(%x: tensor<8x32xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j] : tensor<8x32xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 30] ins(%x[i, j], %m[i] : tensor<8x32xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32, %n: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } -> tensor<8xf32>
  return %m, %s : tensor<8xf32>, tensor<8xf32>
}

// -----

// The epilogue of the sum needs a tensor that is computed from the maximum.
// CHECK-LABEL: func.func @later(
// CHECK: fold [maximumf f32]
// CHECK: fold [add f32]
// REMARK: [Missed] not rescaled | Category:imap-fuse | Function=later | Reason="an operation between the two needs the first and is needed by the second"
func.func @later(%x: tensor<8x32xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j] : tensor<8x32xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %h = imap.generic (i) domain: i in [0, 7] ins(%m[7 - i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j], %m[i], %h[i] : tensor<8x32xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32, %n: f32, %w: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } epilogue {
  ^bb0(%t: f32, %v: f32, %n: f32, %w: f32):
    %q = arith.addf %t, %w : f32
    imap.yield %q : f32
  } -> tensor<8xf32>
  return %m, %h, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A product reads each exponential for several results, and reads them from memory.
// CHECK-LABEL: func.func @weighted(
// CHECK: fold [f32 identity 0xFF800000, f32 identity 0.000000e+00]
// CHECK: %[[P:.*]] = imap.generic (i, j)
// CHECK: imap.builtin "exp"
// CHECK: imap.generic (i, k)[j] {{.*}} ins(%[[P]][i, j], %arg1[j, k]
// REMARK: [Passed] rescaled | Category:imap-fuse | Function=weighted
func.func @weighted(%x: tensor<8x16xf32>, %v: tensor<16x4xf32>) -> (tensor<8xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %w = tensor.empty() : tensor<8x16xf32>
  %u = tensor.empty() : tensor<8x4xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %p = imap.generic (i, j) domain: i in [0, 7], j in [0, 15] ins(%x[i, j], %m[i] : tensor<8x16xf32>, tensor<8xf32>) outs(%w[i, j] : tensor<8x16xf32>) {
  ^bb0(%a: f32, %n: f32):
    %d = arith.subf %a, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } -> tensor<8x16xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%p[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %y = imap.generic (i, k)[j] domain: i in [0, 7], k in [0, 3], j in [0, 15] ins(%p[i, j], %v[j, k] : tensor<8x16xf32>, tensor<16x4xf32>) outs(%u[i, k] : tensor<8x4xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<8x4xf32>
  return %s, %y : tensor<8xf32>, tensor<8x4xf32>
}

// -----

// A fold that reads each exponential once computes them again, too.
// CHECK-LABEL: func.func @weighted_sum(
// CHECK: %[[S:.*]]:2 = imap.generic (i)[j] {{.*}} fold [f32 identity 0xFF800000, f32 identity 0.000000e+00]
// CHECK: imap.generic (i)[j] {{.*}} ins(%arg0[i, j], %[[S]]#0[i], %arg1[i, j]
// CHECK: imap.builtin "exp"
// CHECK-NOT: imap.generic
// REMARK: [Passed] rescaled | Category:imap-fuse | Function=weighted_sum
func.func @weighted_sum(%x: tensor<8x16xf32>, %v: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %w = tensor.empty() : tensor<8x16xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%x[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %p = imap.generic (i, j) domain: i in [0, 7], j in [0, 15] ins(%x[i, j], %m[i] : tensor<8x16xf32>, tensor<8xf32>) outs(%w[i, j] : tensor<8x16xf32>) {
  ^bb0(%a: f32, %n: f32):
    %d = arith.subf %a, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } -> tensor<8x16xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%p[i, j] : tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %y = imap.generic (i)[j] domain: i in [0, 7], j in [0, 15] ins(%p[i, j], %v[i, j] : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<8xf32>
  return %m, %s, %y : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A tensor that the epilogue of the sum needs moves in front of the fold.
// CHECK-LABEL: func.func @between(
// CHECK: %[[H:.*]] = imap.generic (i) {{.*}} ins(%arg1[i]
// CHECK: imap.generic (i)[j] {{.*}} ins(%arg0[i, j], %[[H]][i] {{.*}} fold [f32 identity 0xFF800000, f32 identity 0.000000e+00]
// CHECK-NOT: imap.generic
// REMARK: [Passed] rescaled | Category:imap-fuse | Function=between
func.func @between(%x: tensor<8x32xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %m = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j] : tensor<8x32xf32>) outs(%e[i] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<8xf32>
  %h = imap.generic (i) domain: i in [0, 7] ins(%b[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%v: f32):
    %r = arith.negf %v : f32
    imap.yield %r : f32
  } -> tensor<8xf32>
  %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 31] ins(%x[i, j], %m[i], %h[i] : tensor<8x32xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%v: f32, %n: f32, %w: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin "exp"(%d) : f32
    imap.yield %r : f32
  } epilogue {
  ^bb0(%t: f32, %v: f32, %n: f32, %w: f32):
    %q = arith.addf %t, %w : f32
    imap.yield %q : f32
  } -> tensor<8xf32>
  return %m, %h, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
