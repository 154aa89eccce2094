// RUN: tc-opt %s --pass-pipeline="builtin.module(func.func(parallelize-loops{parallel-threshold=1000}))" | FileCheck %s

// The outermost loop with several iterations is shared; each thread has the memory of an iteration.
// CHECK-LABEL: func.func @rows(
// CHECK:         scf.for
// CHECK:           scf.parallel (%[[I:.*]]) = (%c0) to (%c64) step (%c1) {
// CHECK-NEXT:        memref.alloc()
// CHECK:             scf.for
// CHECK:             } {imap.independent}
// CHECK:           } {imap.independent}
func.func @rows(%x: memref<1x64x32xf32>, %y: memref<1x64x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %b = %c0 to %c1 step %c1 {
    scf.for %i = %c0 to %c64 step %c1 {
      %line = memref.alloc() {imap.scratch} : memref<32xf32>
      scf.for %j = %c0 to %c32 step %c1 {
        %v = memref.load %x[%b, %i, %j] : memref<1x64x32xf32>
        memref.store %v, %line[%j] : memref<32xf32>
      } {imap.independent}
      scf.for %j = %c0 to %c32 step %c1 {
        %v = memref.load %line[%j] : memref<32xf32>
        memref.store %v, %y[%b, %i, %j] : memref<1x64x32xf32>
      } {imap.independent}
    } {imap.independent}
  } {imap.independent}
  return
}

// A short loop, one of unknown length, and one whose iterations depend on each other stay.
// CHECK-LABEL: func.func @stay(
// CHECK-NOT:     scf.parallel
func.func @stay(%x: memref<2000xf32>, %y: memref<2000xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c2000 = arith.constant 2000 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i] : memref<2000xf32>
    memref.store %v, %y[%i] : memref<2000xf32>
  } {imap.independent}
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<2000xf32>
    memref.store %v, %y[%i] : memref<2000xf32>
  } {imap.independent}
  scf.for %i = %c0 to %c2000 step %c1 {
    %v = memref.load %x[%i] : memref<2000xf32>
    memref.store %v, %y[%c0] : memref<2000xf32>
  }
  return
}
