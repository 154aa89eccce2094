// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=512},imap-vectorize{vector-bits=512},convert-imap-to-scf{vector-bits=512}),canonicalize)' | FileCheck %s

// What is left of known length takes vectors that are no wider than it needs: eleven elements one of
// eight lanes, and one of four with a mask.
// CHECK-LABEL: func.func @ends(
// CHECK:         %[[MASK:.*]] = vector.constant_mask [3] : vector<4xi1>
// CHECK:         scf.for
// CHECK:           vector.load %{{.*}} : memref<7x11xf64>, vector<8xf64>
// CHECK:           vector.maskedload %{{.*}}, %[[MASK]], %{{.*}} into vector<4xf64>
// CHECK:         vector.store %{{.*}} : memref<5x11xf64>, vector<8xf64>
// CHECK:         vector.maskedstore %{{.*}}, %[[MASK]], %{{.*}} : memref<5x11xf64>, vector<4xi1>, vector<4xf64>
func.func @ends(%a: memref<5x7xf64>, %b: memref<7x11xf64>, %c: memref<5x11xf64>) {
  imap.generic (m, n)[k] domain: m in [0, 4], n in [0, 10], k in [0, 6]
    ins(%a[m, k], %b[k, n] : memref<5x7xf64>, memref<7x11xf64>) outs(%c[m, n] : memref<5x11xf64>) fold [add f64] {
  ^bb0(%x: f64, %y: f64):
    %p = arith.mulf %x, %y : f64
    imap.yield %p : f64
  }
  return
}

// What an `assign` stores is not done in blocks if constraints exclude points.
// CHECK-LABEL: func.func @constrained_transposition(
// CHECK-NOT:     vector.store
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}} : memref<64x64xf32>
func.func @constrained_transposition(%x: memref<64x64xf32>, %o: memref<64x64xf32>) {
  imap.generic (b, i, j) domain: b in [0, 0], i in [0, 63], j in [0, 63], i - j in [0, 63]
    ins(%x[j, i] : memref<64x64xf32>) outs(%o[i, j] : memref<64x64xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// A constraint on the lanes is a mask, except where it holds for the whole block. Where it holds for no
// lane, nothing is read.
// CHECK-LABEL: func.func @padded_row(
// CHECK:         %[[SUM:.*]] = scf.for
// CHECK:           scf.if
// CHECK-NOT:         vector.maskedload
// CHECK:             vector.load %{{.*}} : memref<16xf32>, vector<16xf32>
// CHECK:           } else {
// CHECK:             scf.if
// CHECK:               %[[MASK:.*]] = arith.andi %{{.*}} : vector<16xi1>
// CHECK:               vector.maskedload %{{.*}}, %[[MASK]], %{{.*}} : memref<16xf32>
// CHECK:               arith.select %[[MASK]], %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK:             } else {
// CHECK-NEXT:          scf.yield
// CHECK:         vector.store %[[SUM]], %{{.*}} : memref<16xf32>, vector<16xf32>
func.func @padded_row(%x: memref<16xf32>, %w: memref<3xf32>, %o: memref<16xf32>) {
  imap.generic (i)[s] domain: i in [0, 15], s in [0, 2], i + s in [1, 16]
    ins(%x[i + s - 1], %w[s] : memref<16xf32>, memref<3xf32>) outs(%o[i] : memref<16xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}

// The row of a batch is an element of rank 0: it is read once, before all loops.
// CHECK-LABEL: func.func @chosen_batch(
// CHECK:         %[[ELEMENT:.*]] = memref.load %arg0[] : memref<i32>
// CHECK:         %[[CAST:.*]] = arith.index_cast %[[ELEMENT]]
// CHECK:         %[[CLAMPED:.*]] = arith.maxsi %[[CAST]], %c0
// CHECK:         %[[ROW:.*]] = arith.minsi %[[CLAMPED]], %c7
// CHECK:         vector.load %arg1[%[[ROW]], {{.*}}
// CHECK-NOT:     memref.load %arg0
// CHECK:         return
func.func @chosen_batch(%n: memref<i32>, %q: memref<8x256x64xf32>, %k: memref<8x256x64xf32>, %o: memref<256x256xf32>) {
  imap.generic (i, j)[s]{r} domain: i in [0, 255], j in [0, 255], s in [0, 63] runtime(%n[] : memref<i32>)
    ins(%q[min(max(r, 0), 7), i, s], %k[min(max(r, 0), 7), j, s] : memref<8x256x64xf32>, memref<8x256x64xf32>)
    outs(%o[i, j] : memref<256x256xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  }
  return
}

// Padding: in the interior, where no value of %k reads outside, blocks of rows: seven of 8, and one of 6; single rows at
// both ends.
// CHECK-LABEL: func.func @interior(
// CHECK:         scf.for %{{.*}} = %c1 to %c3 step %c1
// CHECK:         scf.for %{{.*}} = %c1 to %c57 step %c8 {
// CHECK:           scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args({{.*}}) -> ({{(vector<8xf32>(, )?){8,8} *}})
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args({{.*}}) -> ({{(vector<8xf32>(, )?){6,6} *}})
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args({{.*}}) -> (vector<8xf32>)
func.func @interior(%x: memref<64x16xf32>, %w: memref<3x16x8xf32>, %o: memref<64x8xf32>) {
  imap.generic (i, c)[k, s] domain: i in [0, 63], c in [0, 7], k in [0, 2], s in [0, 15], i + k in [1, 64]
    ins(%x[i + k - 1, s], %w[k, s, c] : memref<64x16xf32>, memref<3x16x8xf32>) outs(%o[i, c] : memref<64x8xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}

// The lanes are a short range that the constraint is about: no blocks.
// CHECK-LABEL: func.func @padded_lanes(
// CHECK-NOT:     vector
func.func @padded_lanes(%x: memref<6xf32>, %w: memref<3x2xf32>, %o: memref<3x4xf32>) {
  imap.generic (c, i)[k] domain: c in [0, 2], i in [0, 3], k in [0, 1], i * 2 + k in [1, 6]
    ins(%x[i * 2 + k - 1], %w[c, k] : memref<6xf32>, memref<3x2xf32>) outs(%o[c, i] : memref<3x4xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}

// The number of rows is unknown, so no number of rows per block divides it.
// CHECK-LABEL: func.func @unknown_rows(
// CHECK-NOT:     step %c8
// CHECK:         return
func.func @unknown_rows(%x: memref<?x16xf32>, %w: memref<3x16x8xf32>, %o: memref<?x8xf32>, %n: index) {
  imap.generic (i, c)[k, s]{N}
    domain: i in [0, N - 1], c in [0, 7], k in [0, 2], s in [0, 15], N in [1, 1402], i + k in [1, 1402]
    runtime(%n : index) ins(%x[i + k - 1, s], %w[k, s, c] : memref<?x16xf32>, memref<3x16x8xf32>)
    outs(%o[i, c] : memref<?x8xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}

// Rows that blocks of 8 do not divide end in smaller ones of one size: 170 are twenty of 8 and two of 5.
// CHECK-LABEL: func.func @tail(
// CHECK:         scf.for %{{.*}} = %c0 to %c160 step %c8 {
// CHECK:         scf.for %{{.*}} = %c160 to %c170 step %c5 {
// CHECK-NOT:     step %c{{[1-4]}} {
// CHECK:         return
func.func @tail(%x: memref<170x16xf32>, %w: memref<16x8xf32>, %o: memref<170x8xf32>) {
  imap.generic (i, c)[s] domain: i in [0, 169], c in [0, 7], s in [0, 15]
    ins(%x[i, s], %w[s, c] : memref<170x16xf32>, memref<16x8xf32>) outs(%o[i, c] : memref<170x8xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}
