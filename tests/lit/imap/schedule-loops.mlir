// RUN: tc-opt %s --imap-schedule-loops="vector-bits=256 vector-registers=16" | FileCheck %s
// RUN: tc-opt %s --imap-schedule-loops="vector-bits=0" | FileCheck %s --check-prefix=SCALAR

// A product: n is contiguous in two operands, so it is the row, and a block has two vectors along it.
// CHECK-LABEL: func.func @product(
// CHECK: attributes {imap.schedule = #imap.schedule<vector [m = 6, n = 16] lanes n>}
// SCALAR-LABEL: func.func @product(
// SCALAR: attributes {imap.schedule = #imap.schedule<order [m, k, n]>}
func.func @product(%a: memref<60x64xf32>, %b: memref<64x96xf32>, %c: memref<60x96xf32>) {
  imap.generic (m, n)[k] domain: m in [0, 59], n in [0, 95], k in [0, 63] ins(%a[m, k], %b[k, n] : memref<60x64xf32>, memref<64x96xf32>) outs(%c[m, n] : memref<60x96xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  }
  return
}

// Dot products of rows: the lanes are the range.
// CHECK-LABEL: func.func @rows(
// CHECK: attributes {imap.schedule = #imap.schedule<vector [m = 4, n = 3, k = 8] lanes k>}
// SCALAR-LABEL: func.func @rows(
// SCALAR-NOT: imap.schedule
func.func @rows(%a: memref<60x64xf32>, %b: memref<96x64xf32>, %c: memref<60x96xf32>) {
  imap.generic (m, n)[k] domain: m in [0, 59], n in [0, 95], k in [0, 63] ins(%a[m, k], %b[n, k] : memref<60x64xf32>, memref<96x64xf32>) outs(%c[m, n] : memref<60x96xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  }
  return
}

// A block of a transposition is square.
// SCALAR-LABEL: func.func @transpose(
// CHECK-LABEL: func.func @transpose(
// CHECK: attributes {imap.schedule = #imap.schedule<vector [i = 8, j = 8] lanes j>}
func.func @transpose(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  imap.generic (i, j) domain: i in [0, 63], j in [0, 63] ins(%x[j, i] : memref<64x64xf32>) outs(%y[i, j] : memref<64x64xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// What moves farthest is outermost.
// CHECK-LABEL: func.func @columns(
// CHECK: attributes {imap.schedule = #imap.schedule<order [j, i]>}
func.func @columns(%x: memref<64x65xf32>, %y: memref<64x65xf32>) {
  imap.generic (i, j) domain: i in [0, 64], j in [0, 63] ins(%x[j, i] : memref<64x65xf32>) outs(%y[j, i] : memref<64x65xf32>) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    %i = imap.index dim 0
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %s = arith.addf %n, %f : f32
    imap.yield %s : f32
  }
  return
}

// Two variables that walk through memory as one are one.
// CHECK-LABEL: func.func @collapse(
// CHECK: memref.collapse_shape
// CHECK: memref.collapse_shape
// CHECK: imap.generic (i, j) domain: i in [0, 2047], j in [0, 0]
// CHECK-SAME: ins(%{{.*}}[i] : memref<2048xf32>) outs(%{{.*}}[i] : memref<2048xf32>)
func.func @collapse(%x: memref<32x64xf32>, %y: memref<32x64xf32>) {
  imap.generic (i, j) domain: i in [0, 31], j in [0, 63] ins(%x[i, j] : memref<32x64xf32>) outs(%y[i, j] : memref<32x64xf32>) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    imap.yield %n : f32
  }
  return
}

// An element of a buffer of rank 0 is read once, in front.
// CHECK-LABEL: func.func @scalar(
// CHECK: %[[LOAD:.*]] = memref.load
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[LOAD]]
// CHECK: runtime(%[[INDEX]] : index)
func.func @scalar(%n: memref<i32>, %x: memref<64xf32>, %y: memref<32xf32>) {
  imap.generic (i){r} domain: i in [0, 31], r in [-1, 32] runtime(%n[] : memref<i32>) ins(%x[min(max(r, 0), 32) + i] : memref<64xf32>) outs(%y[i] : memref<32xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// A scan runs along the contiguous variable inside.
// CHECK-LABEL: func.func @scan(
// CHECK: attributes {imap.schedule = #imap.schedule<order [t, i]>}
func.func @scan(%x: memref<64x32xf32>, %y: memref<64x32xf32>) {
  imap.scan (t, i) domain: t in [0, 63], i in [0, 31] scan t inclusive ins(%x[t, i] : memref<64x32xf32>) outs(%y[t, i] : memref<64x32xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// A schedule by hand stays.
// CHECK-LABEL: func.func @by_hand(
// CHECK: attributes {imap.schedule = #imap.schedule<order [k, m, n]>}
func.func @by_hand(%a: memref<60x64xf32>, %c: memref<60x96xf32>) {
  imap.generic (m, n, k) domain: m in [0, 59], n in [0, 95], k in [0, 0] ins(%a[m, k] : memref<60x64xf32>) outs(%c[m, n] : memref<60x96xf32>) attributes {imap.schedule = #imap.schedule<order [k, m, n]>} {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// A constraint on lanes that are a range bounds their loop.
// CHECK-LABEL: func.func @bounded_lanes(
// CHECK: attributes {imap.schedule = #imap.schedule<order [c, f, q, k], vector [c = 4, f = 3, k = 8] lanes k>}
func.func @bounded_lanes(%x: memref<8x130xf32>, %g: memref<16x128xf32>, %y: memref<16x8x3xf32>) {
  imap.generic (f, c, q)[k] domain: f in [0, 15], c in [0, 7], q in [0, 2], k in [0, 127], q + k in [1, 128]
      ins(%x[c, q + k], %g[f, k] : memref<8x130xf32>, memref<16x128xf32>) outs(%y[f, c, q] : memref<16x8x3xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}

// The operation on the results of an ordered fold is not ordered.
// CHECK-LABEL: func.func @ordered_epilogue(
// CHECK: imap.generic {{.*}} fold [add f32] ordered {
// CHECK: imap.generic (i) domain: i in [0, 7] ins(%arg1[i] : memref<8xf32>) outs(%arg1[i] : memref<8xf32>) {
// CHECK: imap.builtin "tanh"
func.func @ordered_epilogue(%x: memref<8x3xf32>, %y: memref<8xf32>) {
  imap.generic (i)[k] domain: i in [0, 7], k in [0, 2] ins(%x[i, k] : memref<8x3xf32>) outs(%y[i] : memref<8xf32>) fold [add f32] ordered {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32):
    %t = imap.builtin "tanh"(%s) : f32
    imap.yield %t : f32
  }
  return
}

// The epilogue alone reads across rows, so rows of results are still next to each other for the fold.
// CHECK-LABEL: func.func @strided_epilogue(
// CHECK: attributes {imap.schedule = #imap.schedule<vector [m = 6, n = 16] lanes n>}
func.func @strided_epilogue(%a: memref<64x48xf32>, %b: memref<48x80xf32>, %c: memref<80x64xf32>, %y: memref<64x80xf32>) {
  imap.generic (m, n)[k] domain: m in [0, 63], n in [0, 79], k in [0, 47]
      ins(%a[m, k], %b[k, n], %c[n, m] : memref<64x48xf32>, memref<48x80xf32>, memref<80x64xf32>) outs(%y[m, n] : memref<64x80xf32>) fold [add f32] {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.mulf %p, %q : f32
    imap.yield %s : f32
  } epilogue {
  ^bb0(%t: f32, %p: f32, %q: f32, %r: f32):
    %u = arith.addf %t, %r : f32
    imap.yield %u : f32
  }
  return
}

// A window slides along a row: lanes along the results need no sum across them. Windows that do not overlap in this way,
// and few results, have lanes along the range.
// CHECK-LABEL: func.func @window
// CHECK:         schedule = #imap.schedule<vector [j = {{[0-9]+}}] lanes j>
// CHECK-LABEL: func.func @few_windows
// CHECK-NOT:     lanes j
func.func @window(%x: memref<64x300xf32>, %y: memref<64x281xf32>) {
  imap.generic (i, j)[k] domain: i in [0, 63], j in [0, 280], k in [0, 19]
      ins(%x[i, j + k] : memref<64x300xf32>) outs(%y[i, j] : memref<64x281xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}
func.func @few_windows(%x: memref<64x300xf32>, %y: memref<64x6xf32>) {
  imap.generic (i, j)[k] domain: i in [0, 63], j in [0, 5], k in [0, 294]
      ins(%x[i, j + k] : memref<64x300xf32>) outs(%y[i, j] : memref<64x6xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}
