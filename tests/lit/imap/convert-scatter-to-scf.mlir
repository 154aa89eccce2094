// RUN: tc-opt %s -convert-imap-to-scf -canonicalize | FileCheck %s

// Each row has one load of its index and one test.
// CHECK-LABEL: func.func @add_rows(
// CHECK:         scf.for %[[B:.*]] =
// CHECK-NEXT:      memref.load %{{.*}}[%[[B]]] : memref<31xi32>
// CHECK-NOT:       memref.load
// CHECK:           scf.if
// CHECK-NEXT:        scf.for
// CHECK-NOT:           scf.if
// CHECK:               arith.addf
func.func @add_rows(%ids: memref<31xi32>, %u: memref<31x17xf32>, %y: memref<10x17xf32>) {
  imap.scatter (b, d){r} domain: b in [0, 30], d in [0, 16] runtime(%ids[b] : memref<31xi32>)
    ins(%u[b, d] : memref<31x17xf32>) outs(%y[r, d] where r in [0, 9] : memref<10x17xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}
