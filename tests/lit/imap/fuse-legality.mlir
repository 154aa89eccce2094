// RUN: tc-opt --imap-fuse %s | FileCheck %s
// RUN: tc-opt --imap-fuse --remarks-filter=imap-fuse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Bounds of runtime variables are renumbered with the variables.
// CHECK-LABEL: func.func @runtime_bounds
// CHECK:         imap.generic (i){m, n, r} domain: i in [0, 3], m in [0, 9], n in [m, 10], r in [0, n - 1]
// CHECK-SAME:      runtime(%{{.*}}, %{{.*}}, %{{.*}} : tensor<i32>, tensor<i32>, tensor<4xi32>)
// CHECK-NOT:     imap.generic
func.func @runtime_bounds(%x: tensor<10xf32>, %w: tensor<10xf32>, %m: tensor<i32>, %n: tensor<i32>, %idx: tensor<4xi32>) -> tensor<4xf32> {
  %init = tensor.empty() : tensor<4xf32>
  %a = imap.generic (i){n, m, r} domain: i in [0, 3], n in [m, 10], m in [0, 9], r in [0, n - 1] runtime(%n[], %m[], %idx[i] : tensor<i32>, tensor<i32>, tensor<4xi32>) ins(%x[r] : tensor<10xf32>) outs(%init[i] : tensor<4xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<4xf32>
  %c = imap.generic (i){m} domain: i in [0, 3], m in [0, 9] runtime(%m[] : tensor<i32>) ins(%a[i], %w[m] : tensor<4xf32>, tensor<10xf32>) outs(%init[i] : tensor<4xf32>) {
  ^bb0(%q: f32, %v: f32):
    %b = arith.addf %q, %v : f32
    imap.yield %b : f32
  } -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// A runtime variable that only a bound uses stays, and one that nothing uses goes.
// CHECK-LABEL: func.func @used_in_bounds
// CHECK:         imap.generic (i){n, r} domain: i in [0, 3], n in [1, 10], r in [0, n - 1]
// CHECK-NOT:     imap.generic
func.func @used_in_bounds(%x: tensor<10xf32>, %w: tensor<4xf32>, %u: tensor<4xi32>, %n: tensor<i32>, %idx: tensor<4xi32>) -> tensor<4xf32> {
  %init = tensor.empty() : tensor<4xf32>
  %p = imap.generic (i) domain: i in [0, 3] ins(%w[i] : tensor<4xf32>) outs(%init[i] : tensor<4xf32>) {
  ^bb0(%q: f32):
    imap.yield %q : f32
  } -> tensor<4xf32>
  %a = imap.generic (i){u, n, r} domain: i in [0, 3], u in [0, 0], n in [1, 10], r in [0, n - 1] runtime(%u[i], %n[], %idx[i] : tensor<4xi32>, tensor<i32>, tensor<4xi32>) ins(%x[r], %p[i] : tensor<10xf32>, tensor<4xf32>) outs(%init[i] : tensor<4xf32>) {
  ^bb0(%z: f32, %q: f32):
    %s = arith.addf %z, %q : f32
    imap.yield %s : f32
  } -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// The bounds of a runtime variable decide whether an element is signed: equal tensors with other
// bounds are read twice.
// CHECK-LABEL: func.func @signs
// CHECK:         imap.generic (i){r, rt1} domain: i in [0, 3], r in [-128, 127], rt1 in [0, 255]
// CHECK-SAME:      runtime(%arg2[i], %arg2[i] : tensor<4xi8>, tensor<4xi8>)
func.func @signs(%x: tensor<256xf32>, %w: tensor<256xf32>, %idx: tensor<4xi8>) -> tensor<4xf32> {
  %init = tensor.empty() : tensor<4xf32>
  %a = imap.generic (i){r} domain: i in [0, 3], r in [0, 255] runtime(%idx[i] : tensor<4xi8>) ins(%x[r] : tensor<256xf32>) outs(%init[i] : tensor<4xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<4xf32>
  %c = imap.generic (i){r} domain: i in [0, 3], r in [-128, 127] runtime(%idx[i] : tensor<4xi8>) ins(%a[i], %w[r + 128] : tensor<4xf32>, tensor<256xf32>) outs(%init[i] : tensor<4xf32>) {
  ^bb0(%q: f32, %v: f32):
    %b = arith.addf %q, %v : f32
    imap.yield %b : f32
  } -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// An offset that is read from a tensor, after a table that is read at the shifted position.
// CHECK-LABEL: func.func @offset_after_table
// CHECK:         imap.generic (i){n, q} domain: i in [0, 1], n in [0, 2], q in [0, 9]
// CHECK-SAME:      runtime(%{{.*}}[], %{{.*}}[i - n + 2] :
// CHECK-SAME:      ins(%{{.*}}[q] :
// CHECK-SAME:      outs(%{{.*}}[i] :
func.func @offset_after_table(%x: tensor<10xf32>, %n: tensor<i32>, %table: tensor<4xi32>) -> tensor<2xf32> {
  %init = tensor.empty() : tensor<6xf32>
  %a = imap.generic (i){q, n} domain: i in [0, 3], q in [0, 9], n in [0, 2] runtime(%table[i], %n[] : tensor<4xi32>, tensor<i32>) ins(%x[q] : tensor<10xf32>) outs(%init[i + n] : tensor<6xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<6xf32>
  %out = tensor.empty() : tensor<2xf32>
  %c = imap.generic (i) domain: i in [0, 1] ins(%a[i + 2] : tensor<6xf32>) outs(%out[i] : tensor<2xf32>) {
  ^bb0(%q: f32):
    %b = arith.negf %q : f32
    imap.yield %b : f32
  } -> tensor<2xf32>
  return %c : tensor<2xf32>
}

// An offset that depends on data and differs between points cannot be inverted.
// CHECK-LABEL:   func.func @data_offset
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] apart {{.*}} Function=data_offset {{.*}} Reason="the producer's map to its result is not a permutation with offsets that are the same for all points"
func.func @data_offset(%x: tensor<4xf32>, %idx: tensor<4xi32>) -> tensor<4xf32> {
  %init = tensor.empty() : tensor<4xf32>
  %a = imap.generic (i){r} domain: i in [0, 3], r in [-3, 3] runtime(%idx[i] : tensor<4xi32>) ins(%x[i] : tensor<4xf32>) outs(%init[i + r] : tensor<4xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<4xf32>
  %c = imap.generic (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%init[i] : tensor<4xf32>) {
  ^bb0(%q: f32):
    %b = arith.addf %q, %q : f32
    imap.yield %b : f32
  } -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// The producer uses its index, which is the position less an offset that is read from a tensor.
// CHECK-LABEL:   func.func @index_with_data_offset
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] apart {{.*}} Function=index_with_data_offset {{.*}} Reason="the body of the producer uses an index that is read from a tensor"
func.func @index_with_data_offset(%n: tensor<i32>) -> tensor<2xi32> {
  %init = tensor.empty() : tensor<6xi32>
  %a = imap.generic (i){n} domain: i in [0, 3], n in [0, 2] runtime(%n[] : tensor<i32>) outs(%init[i + n] : tensor<6xi32>) {
    %i = imap.index dim 0
    %z = arith.index_cast %i : index to i32
    imap.yield %z : i32
  } -> tensor<6xi32>
  %out = tensor.empty() : tensor<2xi32>
  %c = imap.generic (i) domain: i in [0, 1] ins(%a[i + 2] : tensor<6xi32>) outs(%out[i] : tensor<2xi32>) {
  ^bb0(%q: i32):
    imap.yield %q : i32
  } -> tensor<2xi32>
  return %c : tensor<2xi32>
}

// Memory that is written between the producer and the consumer.
// CHECK-LABEL:   func.func @written_between
// CHECK-COUNT-3: imap.generic
// REMARK: [Missed] apart {{.*}} Function=written_between {{.*}} Reason="memory that the producer reads may change before the consumer"
func.func @written_between(%n: tensor<8xf32>, %m: memref<8xf32>) -> tensor<8xf32> {
  %init = tensor.empty() : tensor<8xf32>
  %a = imap.generic (i) domain: i in [0, 7] ins(%m[i] : memref<8xf32>) outs(%init[i] : tensor<8xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%n[i] : tensor<8xf32>) outs(%m[i] : memref<8xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  }
  %c = imap.generic (i) domain: i in [0, 7] ins(%a[i] : tensor<8xf32>) outs(%init[i] : tensor<8xf32>) {
  ^bb0(%q: f32):
    %b = arith.negf %q : f32
    imap.yield %b : f32
  } -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// The body reads memory, which is written before the consumer.
// CHECK-LABEL:   func.func @read_in_body
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] apart {{.*}} Function=read_in_body {{.*}} Reason="memory that the producer reads may change before the consumer"
func.func @read_in_body(%m: memref<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %init = tensor.empty() : tensor<8xf32>
  %a = imap.generic (i) domain: i in [0, 7] outs(%init[i] : tensor<8xf32>) {
    %z = memref.load %m[%c0] : memref<8xf32>
    imap.yield %z : f32
  } -> tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %m[%c0] : memref<8xf32>
  %c = imap.generic (i) domain: i in [0, 7] ins(%a[i] : tensor<8xf32>) outs(%init[i] : tensor<8xf32>) {
  ^bb0(%q: f32):
    %b = arith.negf %q : f32
    imap.yield %b : f32
  } -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// Memory that nothing writes is read later. A runtime variable may be read from it.
// CHECK-LABEL: func.func @unchanged
// CHECK:         imap.generic {{.*}} runtime(%arg1[i] : memref<8xi32>)
// CHECK-NOT:     imap.generic
func.func @unchanged(%x: tensor<9xf32>, %m: memref<8xi32>, %other: tensor<8xf32>) -> tensor<8xf32> {
  %init = tensor.empty() : tensor<8xf32>
  %a = imap.generic (i){r} domain: i in [0, 7], r in [0, 8] runtime(%m[i] : memref<8xi32>) ins(%x[r] : tensor<9xf32>) outs(%init[i] : tensor<8xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<8xf32>
  %c0 = arith.constant 0 : index
  %first = tensor.extract %other[%c0] : tensor<8xf32>
  %c = imap.generic (i) domain: i in [0, 7] ins(%a[i] : tensor<8xf32>) outs(%init[i] : tensor<8xf32>) {
  ^bb0(%q: f32):
    %b = arith.mulf %q, %first : f32
    imap.yield %b : f32
  } -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// The consumer also reads elements that the producer does not write.
// CHECK-LABEL:   func.func @partly_written
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] apart {{.*}} Function=partly_written {{.*}} Reason="the consumer may read elements that the producer does not write"
func.func @partly_written(%x: tensor<4xf32>, %mask: tensor<9xi1>) -> tensor<9xf32> {
  %init = tensor.empty() : tensor<9xf32>
  %a = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%init[i] : tensor<9xf32>) {
  ^bb0(%z: f32):
    %s = arith.addf %z, %z : f32
    imap.yield %s : f32
  } -> tensor<9xf32>
  %c = imap.generic (i) domain: i in [0, 8] ins(%a[i], %mask[i] : tensor<9xf32>, tensor<9xi1>) outs(%init[i] : tensor<9xf32>) {
  ^bb0(%q: f32, %m: i1):
    %zero = arith.constant 0.0 : f32
    %b = arith.select %m, %q, %zero : f32
    imap.yield %b : f32
  } -> tensor<9xf32>
  return %c : tensor<9xf32>
}

// Another row than the producer writes.
// CHECK-LABEL:   func.func @other_row
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] apart {{.*}} Function=other_row {{.*}} Reason="the consumer may read elements that the producer does not write"
func.func @other_row(%x: tensor<4xf32>, %init: tensor<2x4xf32>) -> tensor<4xf32> {
  %a = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%init[0, i] : tensor<2x4xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<2x4xf32>
  %out = tensor.empty() : tensor<4xf32>
  %c = imap.generic (i) domain: i in [0, 3] ins(%a[1, i] : tensor<2x4xf32>) outs(%out[i] : tensor<4xf32>) {
  ^bb0(%q: f32):
    imap.yield %q : f32
  } -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// The elements that are written are enough, of any destination.
// CHECK-LABEL: func.func @same_row
// CHECK:         imap.generic (i){N} domain: i in [1, N - 1], N in [1, 2147483647] runtime(%{{.*}} : index) ins(%arg0[{{.*}}] : tensor<?xf32>)
// CHECK-NOT:     imap.generic
func.func @same_row(%x: tensor<?xf32>, %init: tensor<2x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?xf32>
  %a = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 2147483647] runtime(%N : index) ins(%x[i] : tensor<?xf32>) outs(%init[1, i + 1] : tensor<2x?xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<2x?xf32>
  %out = tensor.empty(%N) : tensor<?xf32>
  %c = imap.generic (i){N} domain: i in [1, N - 1], N in [1, 2147483647] runtime(%N : index) ins(%a[1, i] : tensor<2x?xf32>) outs(%out[i] : tensor<?xf32>) {
  ^bb0(%q: f32):
    imap.yield %q : f32
  } -> tensor<?xf32>
  return %c : tensor<?xf32>
}

// Dimensions of one element do not matter: a producer.
// CHECK-LABEL: func.func @unit_dimensions
// CHECK:         imap.generic (a, b, i) domain: a in [0, 0], b in [0, 0], i in [0, 7] ins(%arg0[i] : tensor<8xf32>)
// CHECK-SAME:      outs(%{{.*}}[0, i] :
// CHECK-NOT:     imap.generic
func.func @unit_dimensions(%x: tensor<8xf32>) -> tensor<1x8xf32> {
  %init = tensor.empty() : tensor<1x1x8x1xf32>
  %a = imap.generic (a, i, b) domain: a in [0, 0], i in [0, 7], b in [3, 3] ins(%x[i] : tensor<8xf32>) outs(%init[0, b - 3, i, 0] : tensor<1x1x8x1xf32>) {
  ^bb0(%z: f32):
    %s = arith.mulf %z, %z : f32
    imap.yield %s : f32
  } -> tensor<1x1x8x1xf32>
  %out = tensor.empty() : tensor<1x8xf32>
  %c = imap.generic (a, b, i) domain: a in [0, 0], b in [0, 0], i in [0, 7] ins(%a[a, b, i, 0] : tensor<1x1x8x1xf32>) outs(%out[b, i] : tensor<1x8xf32>) {
  ^bb0(%q: f32):
    %s = arith.negf %q : f32
    imap.yield %s : f32
  } -> tensor<1x8xf32>
  return %c : tensor<1x8xf32>
}

// The same for a reduction with an epilogue.
// CHECK-LABEL: func.func @unit_dimensions_of_reduction
// CHECK:         imap.generic (a, i)[k] domain: a in [0, 0], i in [0, 7], k in [0, 15]
// CHECK:         epilogue
// CHECK-NOT:     imap.generic
func.func @unit_dimensions_of_reduction(%x: tensor<8x16xf32>) -> tensor<1x8xf32> {
  %init = tensor.empty() : tensor<8x1xf32>
  %a = imap.generic (i, b)[k] domain: i in [0, 7], b in [0, 0], k in [0, 15] ins(%x[i, k] : tensor<8x16xf32>) outs(%init[i, b] : tensor<8x1xf32>) fold [add f32] {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<8x1xf32>
  %out = tensor.empty() : tensor<1x8xf32>
  %c = imap.generic (a, i) domain: a in [0, 0], i in [0, 7] ins(%a[i, 0] : tensor<8x1xf32>) outs(%out[a, i] : tensor<1x8xf32>) {
  ^bb0(%q: f32):
    %s = arith.negf %q : f32
    imap.yield %s : f32
  } -> tensor<1x8xf32>
  return %c : tensor<1x8xf32>
}

// A fold stores where the constraint does not hold, too: the map of its destination is not
// simplified by the constraint.
// CHECK-LABEL: func.func @constrained_fold
// CHECK:         ins(%{{.*}}[i] : {{.*}}) outs(%{{.*}}[i + (i / 4) * 4] : {{.*}}) fold [add f32]
// CHECK-NOT:     imap.generic
func.func @constrained_fold(%x: tensor<8xf32>) -> tensor<12xf32> {
  %init = tensor.empty() : tensor<8xf32>
  %a = imap.generic (i) domain: i in [0, 7] ins(%x[i] : tensor<8xf32>) outs(%init[i] : tensor<8xf32>) {
  ^bb0(%z: f32):
    imap.yield %z : f32
  } -> tensor<8xf32>
  %out = tensor.empty() : tensor<12xf32>
  %c = imap.generic (i) domain: i in [0, 7], i in [0, 3] ins(%a[i] : tensor<8xf32>) outs(%out[i + (i floordiv 4) * 4] : tensor<12xf32>) fold [add f32] {
  ^bb0(%q: f32):
    %s = arith.negf %q : f32
    imap.yield %s : f32
  } -> tensor<12xf32>
  return %c : tensor<12xf32>
}
