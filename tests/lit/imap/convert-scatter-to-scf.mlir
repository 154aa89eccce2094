// RUN: tc-opt %s -imap-schedule-loops -convert-imap-to-scf -canonicalize | FileCheck %s

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

// The channels are contiguous, and go inside of the rows that are found by their indices.
// CHECK-LABEL: func.func @channels_first(
// CHECK:         scf.for %[[B:.*]] =
// CHECK-NEXT:      memref.load %{{.*}}[%[[B]]] : memref<31xi32>
// CHECK:           scf.for %[[D:.*]] = %{{.*}} to %c17
// CHECK-NOT:         scf.if
// CHECK:             memref.store %{{.*}}, %{{.*}}[%{{.*}}, %[[D]]]
func.func @channels_first(%ids: memref<31xi32>, %u: memref<31x17xf32>, %y: memref<10x17xf32>) {
  imap.scatter (d, b){r} domain: d in [0, 16], b in [0, 30] runtime(%ids[b] : memref<31xi32>)
    ins(%u[b, d] : memref<31x17xf32>) outs(%y[r, d] where r in [0, 9] : memref<10x17xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// Updates of one element stay in order: of 'i' and 'j', neither is a plain subscript.
// CHECK-LABEL: func.func @in_order(
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %c30
// CHECK:           scf.for %[[I:.*]] = %{{.*}} to %c40
// CHECK:             memref.load %{{.*}}[%[[I]], %[[J]]]
func.func @in_order(%u: memref<40x30xf32>, %y: memref<70xf32>) {
  imap.scatter (j, i) domain: j in [0, 29], i in [0, 39] ins(%u[i, j] : memref<40x30xf32>) outs(%y[i + j] : memref<70xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// The windows do not overlap, so that both variables are free.
// CHECK-LABEL: func.func @windows(
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %c40
// CHECK:           scf.for %[[J:.*]] = %{{.*}} to %c30
// CHECK:             memref.load %{{.*}}[%[[I]], %[[J]]]
func.func @windows(%u: memref<40x30xf32>, %y: memref<1200xf32>) {
  imap.scatter (j, i) domain: j in [0, 29], i in [0, 39] ins(%u[i, j] : memref<40x30xf32>) outs(%y[i * 30 + j] : memref<1200xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// A condition on the innermost variable narrows its loop.
// CHECK-LABEL: func.func @narrowed(
// CHECK:         scf.for %[[B:.*]] =
// CHECK:           %[[LOWER:.*]] = arith.maxsi
// CHECK:           %[[UPPER:.*]] = arith.minsi
// CHECK:           scf.for %{{.*}} = %[[LOWER]] to %[[UPPER]]
// CHECK-NOT:         scf.if
// CHECK:             memref.store
func.func @narrowed(%ids: memref<31xi32>, %u: memref<31x17xf32>, %y: memref<100xf32>) {
  imap.scatter (b, d){r} domain: b in [0, 30], d in [0, 16] runtime(%ids[b] : memref<31xi32>)
    ins(%u[b, d] : memref<31x17xf32>) outs(%y[r + d] where r + d in [0, 99] : memref<100xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}
