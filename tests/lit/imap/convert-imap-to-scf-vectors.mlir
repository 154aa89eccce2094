// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(convert-imap-to-scf{vector-bits=512}),canonicalize)' | FileCheck %s

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
  imap.generic <(m, n)[k] -> (), domain: m in [0, 4], n in [0, 10], k in [0, 6]>
    ins(%a, %b : memref<5x7xf64>, memref<7x11xf64>) outs(%c : memref<5x11xf64>)
    maps [#imap.map<(m, n)[k] -> (m, k)>, #imap.map<(m, n)[k] -> (k, n)>, #imap.map<(m, n)[k] -> (m, n)>]
    combine [#imap.combiner<add from identity>] {
  ^bb0(%x: f64, %y: f64):
    %p = arith.mulf %x, %y : f64
    imap.yield %p : f64
  }
  return
}

// A padded convolution reads %x across its rows: it is copied first, where it exists.
// CHECK-LABEL: func.func @padded_convolution(
// CHECK:         memref.alloc() {{.*}} : memref<3x16x32xf32>
// CHECK-NOT:     vector.load %arg0
// CHECK:         scf.if
// CHECK:           memref.load %{{.*}} : memref<32x16xf32>
// CHECK:           memref.store %{{.*}} : memref<3x16x32xf32>
func.func @padded_convolution(%x: memref<32x16xf32>, %w: memref<3x16x64xf32>, %o: memref<64x32xf32>) {
  imap.generic <(c, i)[k, s] -> (), domain: c in [0, 63], i in [0, 31], k in [0, 2], s in [0, 15], i + k in [1, 32]>
    ins(%x, %w : memref<32x16xf32>, memref<3x16x64xf32>) outs(%o : memref<64x32xf32>)
    maps [#imap.map<(c, i)[k, s] -> (i + k - 1, s)>, #imap.map<(c, i)[k, s] -> (k, s, c)>, #imap.map<(c, i)[k, s] -> (c, i)>]
    combine [#imap.combiner<add from identity>] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}

// What an `assign` stores is not done in blocks if constraints exclude points.
// CHECK-LABEL: func.func @constrained_transposition(
// CHECK-NOT:     vector.store
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}} : memref<64x64xf32>
func.func @constrained_transposition(%x: memref<64x64xf32>, %o: memref<64x64xf32>) {
  imap.generic <(b, i, j) -> (), domain: b in [0, 0], i in [0, 63], j in [0, 63], i - j in [0, 63]>
    ins(%x : memref<64x64xf32>) outs(%o : memref<64x64xf32>)
    maps [#imap.map<(b, i, j) -> (j, i)>, #imap.map<(b, i, j) -> (i, j)>] combine [#imap.combiner<assign>] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}
