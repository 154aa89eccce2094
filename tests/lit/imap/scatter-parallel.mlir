// RUN: tc-opt %s -imap-schedule-loops -convert-imap-to-scf="parallel=true parallel-threshold=1" -canonicalize | FileCheck %s

// Strips of the contiguous variable are updated in parallel, each in the order of the rows.
// CHECK-LABEL: func.func @strips(
// CHECK:         scf.parallel (%[[START:.*]]) = (%c0) to (%c64) step (%c16)
// CHECK:           scf.for %[[B:.*]] =
// CHECK:             memref.load %{{.*}}[%[[B]]] : memref<31xi32>
// CHECK:             scf.if
// CHECK:               scf.for %[[D:.*]] = %c0 to %c16
// CHECK:                 arith.addi %[[START]], %[[D]] overflow<nsw>
func.func @strips(%ids: memref<31xi32>, %u: memref<31x64xf32>, %y: memref<10x64xf32>) {
  imap.scatter (b, d){r} domain: b in [0, 30], d in [0, 63] runtime(%ids[b] : memref<31xi32>)
    ins(%u[b, d] : memref<31x64xf32>) outs(%y[r, d] where r in [0, 9] : memref<10x64xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// Of two variables that are plain subscripts, the outer one moves to the front.
// CHECK-LABEL: func.func @images(
// CHECK:         scf.parallel (%[[H:.*]]) = (%c0) to (%c20) step (%c1)
// CHECK:           scf.for %[[B:.*]] =
// CHECK:             memref.load %{{.*}}[%[[B]]] : memref<31xi32>
// CHECK:               scf.for
func.func @images(%ids: memref<31xi32>, %u: memref<31x20x64xf32>, %y: memref<10x20x64xf32>) {
  imap.scatter (b, h, d){r} domain: b in [0, 30], h in [0, 19], d in [0, 63] runtime(%ids[b] : memref<31xi32>)
    ins(%u[b, h, d] : memref<31x20x64xf32>) outs(%y[r, h, d] where r in [0, 9] : memref<10x20x64xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// No element is updated twice.
// CHECK-LABEL: func.func @unique(
// CHECK:         scf.parallel (%[[B:.*]]) = (%c0) to (%c31) step (%c1)
// CHECK:           memref.load %{{.*}}[%[[B]]] : memref<31xi32>
// CHECK:           scf.if
// CHECK-NEXT:        scf.for
func.func @unique(%ids: memref<31xi32>, %u: memref<31x64xf32>, %y: memref<40x64xf32>) {
  imap.scatter unique (b, d){r} domain: b in [0, 30], d in [0, 63] runtime(%ids[b] : memref<31xi32>)
    ins(%u[b, d] : memref<31x64xf32>) outs(%y[r, d] where r in [0, 39] : memref<40x64xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// Updates of one element must not run at once.
// CHECK-LABEL: func.func @histogram(
// CHECK-NOT:     scf.parallel
func.func @histogram(%ids: memref<31xi32>, %y: memref<10xi32>) {
  imap.scatter (b){r} domain: b in [0, 30] runtime(%ids[b] : memref<31xi32>) outs(%y[r] where r in [0, 9] : memref<10xi32>) fold [add i32] {
    %one = arith.constant 1 : i32
    imap.yield %one : i32
  }
  return
}
