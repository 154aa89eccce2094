// RUN: tc-opt %s --convert-scf-to-openmp --hoist-thread-memory --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @scratch(
// CHECK:         omp.parallel {
// CHECK-NEXT:      %[[BUFFER:.*]] = memref.alloca() : memref<8xf32>
// CHECK:           omp.loop_nest (%[[I:.*]]) :
// CHECK-NOT:         alloca
// CHECK:             scf.for
// CHECK:               memref.store %{{.*}}, %[[BUFFER]]
func.func @scratch(%x: memref<40x8xf32>, %y: memref<40x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%i) = (%c0) to (%c40) step (%c1) {
    %buffer = memref.alloca() : memref<8xf32>
    scf.for %j = %c0 to %c8 step %c1 {
      %v = memref.load %x[%i, %j] : memref<40x8xf32>
      memref.store %v, %buffer[%j] : memref<8xf32>
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %k = arith.subi %c7, %j : index
      %v = memref.load %buffer[%k] : memref<8xf32>
      memref.store %v, %y[%i, %j] : memref<40x8xf32>
    }
    scf.reduce
  }
  return
}

// Canonicalization keeps a scope with calls.
// CHECK-LABEL: func.func @calls(
// CHECK:         omp.parallel {
// CHECK-NOT:       alloca_scope
// CHECK:           func.call @callee
func.func private @callee(%x: memref<8xf32>)
func.func @calls(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%i) = (%c0) to (%c40) step (%c1) {
    func.call @callee(%x) : (memref<8xf32>) -> ()
    scf.reduce
  }
  return
}

// The memory of an inner parallel region is on the stacks of its own threads.
// CHECK-LABEL: func.func @nested(
// CHECK:         omp.parallel {
// CHECK-NOT:       alloca
// CHECK:           omp.parallel {
// CHECK-NEXT:        memref.alloca() : memref<8xf32>
// CHECK-NOT:       alloca_scope
// CHECK:         return
func.func @nested(%x: memref<40x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%i) = (%c0) to (%c40) step (%c1) {
    scf.for %k = %c0 to %c8 step %c1 {
      scf.parallel (%j) = (%c0) to (%c8) step (%c1) {
        %buffer = memref.alloca() : memref<8xf32>
        func.call @callee(%buffer) : (memref<8xf32>) -> ()
        scf.reduce
      }
    }
    scf.reduce
  }
  return
}
