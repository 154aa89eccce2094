// RUN: tc-opt %s --outline-parallel-loops --split-input-file | FileCheck %s
// RUN: not tc-opt %s --pass-pipeline='builtin.module(func.func(hoist-thread-memory))' 2>&1 | FileCheck %s --check-prefix=REMOVED
// REMOVED: tc-opt: error: the pass 'hoist-thread-memory' was removed; use 'outline-parallel-loops'

// A single loop keeps its index. Stack memory is allocated once per thread.
// CHECK-LABEL: func.func private @scratch_part(
// CHECK-SAME:    %[[FIRST:.*]]: index, %[[END:.*]]: index
// CHECK-SAME:    %[[BUFFER:[^ ]*]]: memref<8xf32> {llvm.noalias}
// CHECK-SAME:    attributes {llvm.bareptr, {{.*}}passthrough = ["noinline"]
// CHECK:         scf.for %[[I:.*]] = %[[FIRST]] to %[[END]] step %{{.*}} {
// CHECK:           scf.for
// CHECK:             memref.store %{{.*}}, %[[BUFFER]]
// CHECK:         } {loop_annotation = #{{.*}}}
// CHECK-LABEL: func.func @scratch(
// CHECK-DAG:     %[[C20:.*]] = arith.constant 20 : index
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK:         omp.parallel {
// CHECK:           %[[T32:.*]] = func.call @omp_get_thread_num() : () -> i32
// CHECK:           %[[T:.*]] = arith.index_castui %[[T32]]
// CHECK:           %[[N32:.*]] = func.call @omp_get_num_threads() : () -> i32
// CHECK:           %[[N:.*]] = arith.index_castui %[[N32]]
// CHECK:           %[[LENGTH:.*]] = arith.ceildivui %{{.*}}, %[[N]]
// CHECK:           %[[BEGIN:.*]] = arith.muli %[[T]], %[[LENGTH]]
// CHECK:           %[[SUM:.*]] = arith.addi %[[BEGIN]], %[[LENGTH]]
// CHECK:           %[[LAST:.*]] = arith.minui %[[SUM]], %{{.*}}
// CHECK:           %[[STACK:.*]] = memref.alloca() : memref<8xf32>
// CHECK:           %[[FROM:.*]] = arith.muli %[[BEGIN]], %[[C2]]
// CHECK:           %[[TO:.*]] = arith.muli %[[LAST]], %[[C2]]
// CHECK:           func.call @scratch_part(%[[FROM]], %[[TO]]
// CHECK:           omp.terminator
func.func @scratch(%x: memref<40x8xf32>, %y: memref<40x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%i) = (%c0) to (%c40) step (%c2) {
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

// -----

// Threads divide the iterations of several loops, whose bounds may be computed.
// CHECK-LABEL: func.func private @two_part(
// CHECK-SAME:    %[[FIRST:.*]]: index, %[[END:.*]]: index, %[[COUNT:.*]]: index, %[[LOWER:.*]]: index
// CHECK-NOT:     llvm.bareptr
// CHECK:         scf.for %[[NUMBER:.*]] = %[[FIRST]] to %[[END]] step %{{.*}} {
// CHECK:           %[[REST:.*]] = arith.remui %[[NUMBER]], %[[COUNT]]
// CHECK:           %[[I:.*]] = arith.divui %[[NUMBER]], %[[COUNT]]
// CHECK:           %[[J:.*]] = arith.addi %[[LOWER]], %[[REST]] overflow<nsw>
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// CHECK:         }
// CHECK-NOT:     loop_annotation
// CHECK-LABEL: func.func @two(
// CHECK:         %[[DISTANCE:.*]] = arith.subi
// CHECK:         %[[STEPS:.*]] = arith.ceildivsi %[[DISTANCE]]
// CHECK:         %[[COUNT:.*]] = arith.maxsi %[[STEPS]]
// CHECK:         %[[TOTAL:.*]] = arith.muli %{{.*}}, %[[COUNT]]
// CHECK:         omp.parallel {
// CHECK:           arith.ceildivui %[[TOTAL]]
func.func @two(%x: memref<?x?xf32>, %v: f32, %lower: index, %upper: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.parallel (%i, %j) = (%c0, %lower) to (%c5, %upper) step (%c1, %c1) {
    memref.store %v, %x[%i, %j] : memref<?x?xf32>
    scf.reduce
  }
  return
}

// -----

// An inner parallel loop has threads of its own, and a reduction stays.
// CHECK-LABEL: func.func private @nested_part(
// CHECK:         memref.store
// CHECK-LABEL: func.func private @nested_part_(
// CHECK:         omp.parallel {
// CHECK:           func.call @nested_part(
// CHECK-LABEL: func.func @nested(
// CHECK:         omp.parallel {
// CHECK:           func.call @nested_part_(
// CHECK:         scf.parallel
// CHECK:           scf.reduce(
func.func @nested(%x: memref<40x8xf32>, %v: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%i) = (%c0) to (%c40) step (%c1) {
    scf.parallel (%j) = (%c0) to (%c8) step (%c1) {
      memref.store %v, %x[%i, %j] : memref<40x8xf32>
      scf.reduce
    }
    scf.reduce
  }
  %sum = scf.parallel (%i) = (%c0) to (%c40) step (%c1) init (%v) -> f32 {
    %y = memref.load %x[%i, %c0] : memref<40x8xf32>
    scf.reduce(%y : f32) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }
  return %sum : f32
}
