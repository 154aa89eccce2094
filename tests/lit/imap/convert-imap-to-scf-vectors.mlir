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
