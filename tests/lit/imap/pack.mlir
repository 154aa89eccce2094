// Operands of products become panels.
//
// RUN: tc-opt %s --split-input-file --remarks-filter=imap-pack 2>%t.remarks \
// RUN:   --pass-pipeline='builtin.module(func.func(imap-pack{vector-bits=256 cache-bytes=4096}))' | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.remarks
// RUN: tc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(imap-pack{vector-bits=0}))' \
// RUN:   | FileCheck %s --check-prefix=SCALAR
// SCALAR-NOT: attributes {imap.scratch}
// RUN: not tc-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(imap-pack{vector-bits=x}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OPTION
// OPTION: error: 'func.func' op 'vector-bits' expects a number

// Rows of %b are far apart: panels of two vectors.
// CHECK-LABEL: func.func @product
// CHECK-SAME:    (%[[A:[a-z0-9]+]]: tensor<96x64xf32>, %[[B:[a-z0-9]+]]: tensor<64x256xf32>)
// CHECK:         %[[P:.*]] = imap.generic (d0, d1, d2) domain: d0 in [0, 15], d1 in [0, 63], d2 in [0, 15]
// CHECK-SAME:      ins(%[[B]][d1, d0 * 16 + d2] {{.*}} outs(%{{.*}}[d0, d1, d2] : tensor<16x64x16xf32>) attributes {imap.scratch}
// CHECK:         imap.generic (m, n, d2)[k] domain: m in [0, 95], n in [0, 15], d2 in [0, 15], k in [0, 63]
// CHECK-SAME:      ins(%[[A]][m, k], %[[P]][d2, k, n] {{.*}} outs(%{{.*}}[m, n + d2 * 16] : tensor<96x256xf32>) fold [add f32]
// REMARK: remark: [Passed] packed {{.*}} Function=product
func.func @product(%a: tensor<96x64xf32>, %b: tensor<64x256xf32>) -> tensor<96x256xf32> {
  %e = tensor.empty() : tensor<96x256xf32>
  %r = imap.generic (m, n)[k] domain: m in [0, 95], n in [0, 255], k in [0, 63]
      ins(%a[m, k], %b[k, n] : tensor<96x64xf32>, tensor<64x256xf32>) outs(%e[m, n] : tensor<96x256xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<96x256xf32>
  return %r : tensor<96x256xf32>
}

// -----

// Fewer rows of the result than a copy takes. Few rows of %d, which are close together.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     imap.scratch
// REMARK-NOT: Function=kept
func.func @kept(%a: tensor<95x64xf32>, %b: tensor<64x256xf32>, %c: tensor<96x64xf32>, %d: tensor<64x32xf32>)
    -> (tensor<95x256xf32>, tensor<96x32xf32>) {
  %e = tensor.empty() : tensor<95x256xf32>
  %r = imap.generic (m, n)[k] domain: m in [0, 94], n in [0, 255], k in [0, 63]
      ins(%a[m, k], %b[k, n] : tensor<95x64xf32>, tensor<64x256xf32>) outs(%e[m, n] : tensor<95x256xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<95x256xf32>
  %f = tensor.empty() : tensor<96x32xf32>
  %s = imap.generic (m, n)[k] domain: m in [0, 95], n in [0, 31], k in [0, 63]
      ins(%c[m, k], %d[k, n] : tensor<96x64xf32>, tensor<64x32xf32>) outs(%f[m, n] : tensor<96x32xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<96x32xf32>
  return %r, %s : tensor<95x256xf32>, tensor<96x32xf32>
}

// -----

// A factor that is not contiguous in the columns: one panel, since no panel of two vectors divides 24 columns.
// CHECK-LABEL: func.func @transposed
// CHECK:         %[[P:.*]] = imap.generic (d0, d1) domain: d0 in [0, 15], d1 in [0, 23]
// CHECK-SAME:      ins(%arg1[d1, d0] {{.*}} outs(%{{.*}}[d0, d1] : tensor<16x24xf32>) attributes {imap.scratch}
// CHECK:         imap.generic (m, n)[k] {{.*}} ins(%arg0[m, k], %[[P]][k, n]
func.func @transposed(%a: tensor<32x16xf32>, %b: tensor<24x16xf32>) -> tensor<32x24xf32> {
  %e = tensor.empty() : tensor<32x24xf32>
  %r = imap.generic (m, n)[k] domain: m in [0, 31], n in [0, 23], k in [0, 15]
      ins(%a[m, k], %b[n, k] : tensor<32x16xf32>, tensor<24x16xf32>) outs(%e[m, n] : tensor<32x24xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<32x24xf32>
  return %r : tensor<32x24xf32>
}

// -----

// Heads: a batch, and a dimension of the result that one factor has in the middle.
// CHECK-LABEL: func.func @heads
// CHECK:         %[[P:.*]] = imap.generic (d0, d1, d2, d3, d4) domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3], d3 in [0, 31], d4 in [0, 15]
// CHECK-SAME:      ins(%arg1[d0, d2 * 16 + d4, d1, d3]
// CHECK-SAME:      outs(%{{.*}}[d0, d1, d2, d3, d4] : tensor<2x3x4x32x16xf32>)
// CHECK:         imap.generic (d0, d1, d2, d3, d4)[s0]
// CHECK-SAME:      ins(%arg0[d0, d2, d1, s0], %[[P]][d0, d1, d4, s0, d3]
// CHECK-SAME:      outs(%{{.*}}[d0, d1, d2, d3 + d4 * 16] : tensor<2x3x64x64xf32>)
func.func @heads(%q: tensor<2x64x3x32xf32>, %k: tensor<2x64x3x32xf32>) -> tensor<2x3x64x64xf32> {
  %e = tensor.empty() : tensor<2x3x64x64xf32>
  %r = imap.generic (d0, d1, d2, d3)[s0]
      domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 63], d3 in [0, 63], s0 in [0, 31]
      ins(%q[d0, d2, d1, s0], %k[d0, d3, d1, s0] : tensor<2x64x3x32xf32>, tensor<2x64x3x32xf32>)
      outs(%e[d0, d1, d2, d3] : tensor<2x3x64x64xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<2x3x64x64xf32>
  return %r : tensor<2x3x64x64xf32>
}

// -----

// Narrow factors are converted once: %b in its panels, %a as it is.
// CHECK-LABEL: func.func @narrow
// CHECK:         %[[P:.*]] = imap.generic {{.*}} ins(%arg1[d1, d0 * 16 + d2] {{.*}} outs(%{{.*}}[d0, d1, d2] : tensor<16x64x16xf32>)
// CHECK-NEXT:    ^bb0(%{{.*}}: bf16):
// CHECK-NEXT:      arith.extf
// CHECK:         %[[W:.*]] = imap.generic {{.*}} ins(%arg0[d0, d1] {{.*}} outs(%{{.*}}[d0, d1] : tensor<96x64xf32>)
// CHECK:         imap.generic {{.*}} ins(%[[W]][m, k], %[[P]][d2, k, n]
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32):
// CHECK-NEXT:      arith.mulf %[[X]], %[[Y]] : f32
func.func @narrow(%a: tensor<96x64xbf16>, %b: tensor<64x256xbf16>) -> tensor<96x256xf32> {
  %e = tensor.empty() : tensor<96x256xf32>
  %r = imap.generic (m, n)[k] domain: m in [0, 95], n in [0, 255], k in [0, 63]
      ins(%a[m, k], %b[k, n] : tensor<96x64xbf16>, tensor<64x256xbf16>) outs(%e[m, n] : tensor<96x256xf32>) fold [add f32] {
  ^bb0(%x: bf16, %y: bf16):
    %u = arith.extf %x : bf16 to f32
    %v = arith.extf %y : bf16 to f32
    %p = arith.mulf %u, %v : f32
    imap.yield %p : f32
  } -> tensor<96x256xf32>
  return %r : tensor<96x256xf32>
}

// -----

// A padded convolution reads %x across its rows: it is copied first, where it exists. It adds to its destination, so its
// lanes stay (pack-channels.mlir).
// CHECK-LABEL: func.func @padded
// CHECK:         %[[P:.*]] = imap.generic (d0, d1, d2, d3) domain: {{.*}} d0 * 16 + d3 + d1 in [1, 32]
// CHECK-SAME:      ins(%arg0[d0 * 16 + d3 + d1 - 1, d2]
// CHECK-SAME:      outs(%{{.*}}[d0, d1, d2, d3] : tensor<2x3x16x16xf32>)
// CHECK:         imap.generic {{.*}} ins(%[[P]]
func.func @padded(%x: tensor<32x16xf32>, %w: tensor<3x16x64xf32>, %e: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %r = imap.generic (c, i)[k, s]
      domain: c in [0, 63], i in [0, 31], k in [0, 2], s in [0, 15], i + k in [1, 32]
      ins(%x[i + k - 1, s], %w[k, s, c] : tensor<32x16xf32>, tensor<3x16x64xf32>)
      outs(%e[c, i] : tensor<64x32xf32>) fold [add f32 from outs 0] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}

// -----

// The row of a batch is an element of rank 0: the copy has it, too.
// CHECK-LABEL: func.func @chosen
// CHECK:         %[[P:.*]] = imap.generic {{.*}} runtime(%arg0[] : tensor<i32>) ins(%arg2[
// CHECK:         imap.generic {{.*}} runtime(%arg0[] : tensor<i32>) ins(%arg1[{{.*}}, %[[P]][
func.func @chosen(%n: tensor<i32>, %q: tensor<8x64x16xf32>, %k: tensor<8x64x16xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %r = imap.generic (i, j)[s]{r} domain: i in [0, 63], j in [0, 63], s in [0, 15] runtime(%n[] : tensor<i32>)
      ins(%q[min(max(r, 0), 7), i, s], %k[min(max(r, 0), 7), j, s] : tensor<8x64x16xf32>, tensor<8x64x16xf32>)
      outs(%e[i, j] : tensor<64x64xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// No element is read.
// CHECK-LABEL: func.func @empty
// CHECK-NOT:     imap.scratch
func.func @empty(%a: tensor<32x0xf32>, %b: tensor<24x0xf32>) -> tensor<32x24xf32> {
  %e = tensor.empty() : tensor<32x24xf32>
  %r = imap.generic (m, n)[k] domain: m in [0, 31], n in [0, 23], k in [0, -1]
      ins(%a[m, k], %b[n, k] : tensor<32x0xf32>, tensor<24x0xf32>) outs(%e[m, n] : tensor<32x24xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<32x24xf32>
  return %r : tensor<32x24xf32>
}

// -----

// Windows with stride 2: even elements of each row, then odd ones. No element is copied twice.
// CHECK-LABEL: func.func @strided
// CHECK-SAME:    (%[[X:[a-z0-9]+]]: tensor<8x16x33xf32>, %[[K:[a-z0-9]+]]: tensor<64x16x3xf32>)
// CHECK:         %[[P:.*]] = imap.generic (d0, d1, d2, d3) domain: d0 in [0, 7], d1 in [0, 15], d2 in [0, 1], d3 in [0, 16], d3 * 2 + d2 in [0, 32]
// CHECK-SAME:      ins(%[[X]][d0, d1, d3 * 2 + d2] {{.*}} outs(%{{.*}}[d0, d1, d2, d3] : tensor<8x16x2x17xf32>) attributes {imap.scratch}
// CHECK:         imap.generic (n, f, w)[c, q]
// CHECK-SAME:      ins(%[[P]][n, c, q mod 2, w + q / 2], %[[K]][f, c, q]
func.func @strided(%x: tensor<8x16x33xf32>, %k: tensor<64x16x3xf32>) -> tensor<8x64x16xf32> {
  %e = tensor.empty() : tensor<8x64x16xf32>
  %r = imap.generic (n, f, w)[c, q] domain: n in [0, 7], f in [0, 63], w in [0, 15], c in [0, 15], q in [0, 2]
      ins(%x[n, c, 2 * w + q], %k[f, c, q] : tensor<8x16x33xf32>, tensor<64x16x3xf32>) outs(%e[n, f, w] : tensor<8x64x16xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<8x64x16xf32>
  return %r : tensor<8x64x16xf32>
}

// -----

// Results with stride 2 are computed as neighbours, and copied to their places.
// CHECK-LABEL: func.func @interleaved
// CHECK:         %[[T:.*]] = imap.generic (f, i, r)[s, k]
// CHECK-SAME:      outs(%{{.*}}[f, r, i] : tensor<8x2x16xf32>) fold [add f32]
// CHECK:         %[[Y:.*]] = imap.generic (d0, d1, d2) domain: d0 in [0, 7], d1 in [0, 1], d2 in [0, 15]
// CHECK-SAME:      ins(%[[T]][d0, d1, d2] : tensor<8x2x16xf32>) outs(%{{.*}}[d0, d2 * 2 + d1] : tensor<8x32xf32>) {
// CHECK:         return %[[Y]]
func.func @interleaved(%x: tensor<64x18xf32>, %w: tensor<3x64x8xf32>) -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8x32xf32>
  %r = imap.generic (f, i, r)[s, k] domain: f in [0, 7], i in [0, 15], r in [0, 1], s in [0, 2], k in [0, 63], (r + s) mod 2 in [0, 0]
      ins(%x[k, i + (r + s) floordiv 2], %w[s, k, f] : tensor<64x18xf32>, tensor<3x64x8xf32>) outs(%e[f, 2 * i + r] : tensor<8x32xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// -----

// A schedule by hand stays with the operation that reads panels.
// CHECK-LABEL: func.func @scheduled
// CHECK:         imap.generic (m, n, d2)[k] {{.*}} attributes {imap.schedule = #imap.schedule<tile [m = 24]>}
func.func @scheduled(%a: tensor<96x64xf32>, %b: tensor<64x256xf32>) -> tensor<96x256xf32> {
  %e = tensor.empty() : tensor<96x256xf32>
  %r = imap.generic (m, n)[k] domain: m in [0, 95], n in [0, 255], k in [0, 63]
      ins(%a[m, k], %b[k, n] : tensor<96x64xf32>, tensor<64x256xf32>) outs(%e[m, n] : tensor<96x256xf32>)
      fold [add f32] attributes {imap.schedule = #imap.schedule<tile [m = 24]>} {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<96x256xf32>
  return %r : tensor<96x256xf32>
}

// -----

// A schedule that names the lane is for the operation as it is.
// CHECK-LABEL: func.func @lane
// CHECK:         imap.generic (m, n)[k] {{.*}} attributes {imap.schedule = #imap.schedule<tile [n = 64]>}
func.func @lane(%a: tensor<96x64xf32>, %b: tensor<64x256xf32>) -> tensor<96x256xf32> {
  %e = tensor.empty() : tensor<96x256xf32>
  %r = imap.generic (m, n)[k] domain: m in [0, 95], n in [0, 255], k in [0, 63]
      ins(%a[m, k], %b[k, n] : tensor<96x64xf32>, tensor<64x256xf32>) outs(%e[m, n] : tensor<96x256xf32>)
      fold [add f32] attributes {imap.schedule = #imap.schedule<tile [n = 64]>} {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<96x256xf32>
  return %r : tensor<96x256xf32>
}

// -----

// The rows of a factor are anywhere: a table has their places. The panels have them in order.
// CHECK-LABEL: func.func @gathered
// CHECK:         %[[P:.*]] = imap.generic (d0, d1, d2){r} {{.*}} runtime(%arg0[d0 * 16 + d2] : tensor<64xi32>) ins(%arg2[r, d1] : {{.*}} outs(%{{.*}}[d0, d1, d2] : tensor<4x16x16xf32>)
// CHECK:         imap.generic (i, j, d2)[s]{r} {{.*}} ins(%arg1[i, s], %[[P]][d2, s, j] :
// CHECK-SAME:      fold [add f32]
func.func @gathered(%n: tensor<64xi32>, %q: tensor<64x16xf32>, %k: tensor<99x16xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %r = imap.generic (i, j)[s]{r} domain: i in [0, 63], j in [0, 63], s in [0, 15], r in [0, 98] runtime(%n[j] : tensor<64xi32>)
      ins(%q[i, s], %k[r, s] : tensor<64x16xf32>, tensor<99x16xf32>)
      outs(%e[i, j] : tensor<64x64xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
