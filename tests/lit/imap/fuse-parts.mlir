// RUN: tc-opt %s --imap-fuse --split-input-file | FileCheck %s
// RUN: tc-opt %s --imap-fuse --split-input-file --remarks-filter=imap-fuse -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// The halves of a row change places: the reader becomes two operations, which read the halves themselves.
// CHECK-LABEL: func.func @halves(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4x8xf32>, %[[W:[a-z0-9]+]]: tensor<8xf32>)
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK:         %[[F:.*]] = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 3] ins(%[[X]][d0, d1 + 4], %[[W]][d1] : tensor<4x8xf32>, tensor<8xf32>) outs(%[[E]][d0, d1] :
// CHECK:           arith.negf
// CHECK:         %[[G:.*]] = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [4, 7] ins(%[[X]][d0, d1 - 4], %[[W]][d1] : tensor<4x8xf32>, tensor<8xf32>) outs(%[[F]][d0, d1] :
// CHECK-NOT:       arith.negf
// CHECK:         return %[[G]] :
// REMARK: remark: [Passed] divided | Category:imap-fuse | Function=halves | Parts=2
func.func @halves(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 3]
      ins(%x[d0, d1 + 4] : tensor<4x8xf32>) outs(%e[d0, d1] : tensor<4x8xf32>) {
  ^bb0(%0: f32):
    %n = arith.negf %0 : f32
    imap.yield %n : f32
  } -> tensor<4x8xf32>
  %t = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 3]
      ins(%x[d0, d1] : tensor<4x8xf32>) outs(%a[d0, d1 + 4] : tensor<4x8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<4x8xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 7]
      ins(%t[d0, d1], %w[d1] : tensor<4x8xf32>, tensor<8xf32>) outs(%e[d0, d1] : tensor<4x8xf32>) {
  ^bb0(%0: f32, %1: f32):
    %p = arith.mulf %0, %1 : f32
    imap.yield %p : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Neighbours in a ring: each read has a border of its own, so there are three parts.
// CHECK-LABEL: func.func @ring(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<32xf32>)
// CHECK:         domain: i in [0, 0] ins(%[[X]][31], %[[X]][1] : tensor<32xf32>, tensor<32xf32>)
// CHECK:         domain: i in [1, 30] ins(%[[X]][i - 1], %[[X]][i + 1] : tensor<32xf32>, tensor<32xf32>)
// CHECK:         domain: i in [31, 31] ins(%[[X]][30], %[[X]][0] : tensor<32xf32>, tensor<32xf32>)
// CHECK-NOT:     imap.generic
func.func @ring(%x: tensor<32xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<34xf32>
  %f = tensor.empty() : tensor<32xf32>
  %a = imap.generic (i) domain: i in [0, 0] ins(%x[i + 31] : tensor<32xf32>) outs(%e[i] : tensor<34xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<34xf32>
  %b = imap.generic (i) domain: i in [0, 31] ins(%x[i] : tensor<32xf32>) outs(%a[i + 1] : tensor<34xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<34xf32>
  %t = imap.generic (i) domain: i in [0, 0] ins(%x[i] : tensor<32xf32>) outs(%b[i + 33] : tensor<34xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<34xf32>
  %y = imap.generic (i) domain: i in [0, 31]
      ins(%t[i], %t[i + 2] : tensor<34xf32>, tensor<34xf32>) outs(%f[i] : tensor<32xf32>) {
  ^bb0(%0: f32, %1: f32):
    %p = arith.addf %0, %1 : f32
    imap.yield %p : f32
  } -> tensor<32xf32>
  return %y : tensor<32xf32>
}

// -----

// A reader of a reader keeps its operands valid: both read the tensor.
// CHECK-LABEL: func.func @readers(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4x8xf32>, %[[S:[a-z0-9]+]]: tensor<4xf32>)
// CHECK:         %[[A:.*]] = imap.generic {{.*}} d1 in [0, 3] ins(%[[X]][d0, d1 + 4] :
// CHECK:         %[[B:.*]] = imap.generic {{.*}} d1 in [4, 7] ins(%[[X]][d0, d1 - 4] : tensor<4x8xf32>) outs(%[[A]][d0, d1] :
// CHECK:         imap.generic {{.*}} d1 in [0, 3] ins(%[[X]][d0, d1 + 4], %[[B]][d0, -d1 + 7] :
// CHECK:         imap.generic {{.*}} d1 in [4, 7] ins(%[[X]][d0, d1 - 4], %[[B]][d0, -d1 + 7] :
// CHECK-NOT:     imap.generic
func.func @readers(%x: tensor<4x8xf32>, %s: tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 3]
      ins(%x[d0, d1 + 4] : tensor<4x8xf32>) outs(%e[d0, d1] : tensor<4x8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<4x8xf32>
  %t = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 3]
      ins(%x[d0, d1] : tensor<4x8xf32>) outs(%a[d0, d1 + 4] : tensor<4x8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<4x8xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 7]
      ins(%t[d0, d1] : tensor<4x8xf32>) outs(%e[d0, d1] : tensor<4x8xf32>) {
  ^bb0(%0: f32):
    %p = math.exp %0 : f32
    imap.yield %p : f32
  } -> tensor<4x8xf32>
  %z = imap.generic (d0, d1) domain: d0 in [0, 3], d1 in [0, 7]
      ins(%t[d0, d1], %y[d0, -d1 + 7] : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e[d0, d1] : tensor<4x8xf32>) {
  ^bb0(%0: f32, %1: f32):
    %p = arith.mulf %0, %1 : f32
    imap.yield %p : f32
  } -> tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Tensors stay that a fold reads, that are returned, of which a part is missing or written twice, and whose parts are
// single elements of a row.
// CHECK-LABEL: func.func @kept(
// CHECK-COUNT-15: imap.generic
// CHECK-NOT:   imap.generic
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=kept | Reason="a reader of the parts is no operation on elements of which each point sees a known part"
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=kept | Reason="a reader of the parts is no operation on elements of which each point sees a known part"
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=kept | Reason="parts of the reader would have single elements of rows, without vectors"
func.func @kept(%x: tensor<4xf32>) -> (tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x2xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %a = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %folded = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%a[i + 4] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %f = tensor.empty() : tensor<f32>
  %s = imap.generic ()[j] domain: j in [0, 7] ins(%folded[j] : tensor<8xf32>) outs(%f[] : tensor<f32>) fold [add f32] {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<f32>

  %b = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %returned = imap.generic (i) domain: i in [0, 3] ins(%x[-i + 3] : tensor<4xf32>) outs(%b[i + 4] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %r = imap.generic (i) domain: i in [0, 7] ins(%returned[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    %n = math.exp %0 : f32
    imap.yield %n : f32
  } -> tensor<8xf32>

  %c = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %missing = imap.generic (i) domain: i in [0, 2] ins(%x[i] : tensor<4xf32>) outs(%c[i + 5] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %m = imap.generic (i) domain: i in [0, 7] ins(%missing[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    %n = math.sin %0 : f32
    imap.yield %n : f32
  } -> tensor<8xf32>

  %d = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %twice = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%d[i + 3] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %w = imap.generic (i) domain: i in [0, 7] ins(%twice[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    %n = math.cos %0 : f32
    imap.yield %n : f32
  } -> tensor<8xf32>

  %g = tensor.empty() : tensor<4x2xf32>
  %h = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%g[i, 0] : tensor<4x2xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<4x2xf32>
  %columns = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%h[i, 1] : tensor<4x2xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<4x2xf32>
  %k = imap.generic (i, j) domain: i in [0, 3], j in [0, 1] ins(%columns[i, j] : tensor<4x2xf32>) outs(%g[i, j] : tensor<4x2xf32>) {
  ^bb0(%0: f32):
    %n = arith.negf %0 : f32
    imap.yield %n : f32
  } -> tensor<4x2xf32>
  return %s, %returned, %r, %m, %w, %k : tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x2xf32>
}

// -----

// The work of a part is not repeated for each column, for each reader, or for each of many reads.
// CHECK-LABEL: func.func @work(
// CHECK-COUNT-10: imap.generic
// CHECK-NOT:   imap.generic
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=work | Reason="each element would be computed again for every value of 'j'"
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=work | Reason="the result of the producer has several consumers"
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=work | Reason="3 reads of a body with 8 operations exceed max-recompute=16"
func.func @work(%x: tensor<4xf32>) -> (tensor<8x8xf32>, tensor<8xf32>, tensor<6xf32>, tensor<6xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %g = tensor.empty() : tensor<8x8xf32>
  %h = tensor.empty() : tensor<6xf32>
  %a = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    %1 = math.exp %0 : f32
    imap.yield %1 : f32
  } -> tensor<8xf32>
  %columns = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%a[i + 4] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %y = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%columns[i] : tensor<8xf32>) outs(%g[i, j] : tensor<8x8xf32>) {
  ^bb0(%0: f32):
    %j = imap.index dim 1
    %k = arith.index_cast %j : index to i32
    %f = arith.sitofp %k : i32 to f32
    %p = arith.mulf %0, %f : f32
    imap.yield %p : f32
  } -> tensor<8x8xf32>

  %b = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    %1 = math.sin %0 : f32
    imap.yield %1 : f32
  } -> tensor<8xf32>
  %readers = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%b[i + 4] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %r = imap.generic (i) domain: i in [0, 7] ins(%readers[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    %n = math.exp %0 : f32
    imap.yield %n : f32
  } -> tensor<8xf32>
  %s = imap.generic (i) domain: i in [0, 5] ins(%readers[i + 2] : tensor<8xf32>) outs(%h[i] : tensor<6xf32>) {
  ^bb0(%0: f32):
    %n = math.cos %0 : f32
    imap.yield %n : f32
  } -> tensor<6xf32>

  %c = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%0: f32):
    %1 = math.cos %0 : f32
    imap.yield %1 : f32
  } -> tensor<8xf32>
  %reads = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%c[i + 4] : tensor<8xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<8xf32>
  %t = imap.generic (i) domain: i in [0, 5]
      ins(%reads[i], %reads[i + 1], %reads[i + 2] : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%h[i] : tensor<6xf32>) {
  ^bb0(%0: f32, %1: f32, %2: f32):
    %p = arith.addf %0, %1 : f32
    %q = arith.addf %p, %2 : f32
    imap.yield %q : f32
  } -> tensor<6xf32>
  return %y, %r, %s, %t : tensor<8x8xf32>, tensor<8xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Many reads see many combinations of parts, and borders leave a rest of each row.
// CHECK-LABEL: func.func @borders(
// CHECK-COUNT-6: imap.generic
// CHECK-NOT:   imap.generic
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=borders | Reason="a reader would become 5 operations for 2 parts"
// REMARK:      remark: [Missed] undivided | Category:imap-fuse | Function=borders | Reason="the rest of each row would compute functions without vectors"
func.func @borders(%x: tensor<32xf32>) -> (tensor<29xf32>, tensor<32xf32>) {
  %e = tensor.empty() : tensor<32xf32>
  %f = tensor.empty() : tensor<29xf32>
  %a = imap.generic (i) domain: i in [0, 15] ins(%x[i + 16] : tensor<32xf32>) outs(%e[i] : tensor<32xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<32xf32>
  %reads = imap.generic (i) domain: i in [0, 15] ins(%x[i] : tensor<32xf32>) outs(%a[i + 16] : tensor<32xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<32xf32>
  %y = imap.generic (i) domain: i in [0, 28]
      ins(%reads[i], %reads[i + 1], %reads[i + 2], %reads[i + 3] : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
      outs(%f[i] : tensor<29xf32>) {
  ^bb0(%0: f32, %1: f32, %2: f32, %3: f32):
    %p = arith.addf %0, %1 : f32
    %q = arith.addf %p, %2 : f32
    %r = arith.addf %q, %3 : f32
    imap.yield %r : f32
  } -> tensor<29xf32>

  %b = imap.generic (i) domain: i in [0, 0] ins(%x[i + 31] : tensor<32xf32>) outs(%e[i] : tensor<32xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<32xf32>
  %rest = imap.generic (i) domain: i in [0, 30] ins(%x[i] : tensor<32xf32>) outs(%b[i + 1] : tensor<32xf32>) {
  ^bb0(%0: f32):
    imap.yield %0 : f32
  } -> tensor<32xf32>
  %z = imap.generic (i) domain: i in [0, 31] ins(%rest[i] : tensor<32xf32>) outs(%e[i] : tensor<32xf32>) {
  ^bb0(%0: f32):
    %p = math.exp %0 : f32
    imap.yield %p : f32
  } -> tensor<32xf32>
  return %y, %z : tensor<29xf32>, tensor<32xf32>
}
