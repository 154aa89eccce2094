// RUN: tc-opt %s --pin-carried-buffers --split-input-file --verify-diagnostics | FileCheck %s

// Both buffers change in each iteration: what is passed on is copied before the other one is written.
// CHECK-LABEL: func.func @rotate(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4xf32>, %{{.*}}: memref<4xf32>
// CHECK:         %[[P:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         memref.copy %[[X]], %[[P]]
// CHECK:         %[[Q:.*]] = memref.alloc() : memref<4xf32>
// CHECK:         memref.copy %[[Y]], %[[Q]]
// CHECK:         scf.for
// CHECK:           %[[NEW:.*]] = memref.alloc() : memref<4xf32>
// CHECK:           memref.copy %[[P]], %[[NEW]]
// CHECK:           %[[OLD:.*]] = memref.alloc() : memref<4xf32>
// CHECK:           memref.copy %[[Q]], %[[OLD]]
// CHECK:           memref.copy %[[OLD]], %[[P]]
// CHECK:           memref.copy %[[NEW]], %[[Q]]
// CHECK:           scf.yield %[[P]], %[[Q]]
// CHECK:         memref.copy %[[P]], %{{.*}}
func.func @rotate(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x, %q = %y) -> (memref<4xf32>, memref<4xf32>) {
    %a = memref.alloc() : memref<4xf32>
    memref.copy %p, %a : memref<4xf32> to memref<4xf32>
    scf.yield %q, %a : memref<4xf32>, memref<4xf32>
  }
  memref.copy %r#0, %z : memref<4xf32> to memref<4xf32>
  return
}

// -----

// What stays the same needs no buffer of its own.
// CHECK-LABEL: func.func @same(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         scf.while
// CHECK:           memref.store %{{.*}}, %[[X]]
// CHECK:           scf.yield %[[X]]
// CHECK:         memref.load %[[X]]
func.func @same(%x: memref<4xf32>, %v: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %r = scf.while (%p = %x) : (memref<4xf32>) -> memref<4xf32> {
    %e = memref.load %p[%c0] : memref<4xf32>
    %c = arith.cmpf olt, %e, %v : f32
    scf.condition(%c) %p : memref<4xf32>
  } do {
  ^bb0(%p: memref<4xf32>):
    memref.store %v, %p[%c0] : memref<4xf32>
    scf.yield %p : memref<4xf32>
  }
  %s = memref.load %r[%c0] : memref<4xf32>
  return %s : f32
}

// -----

func.func @grows(%x: memref<?xf32>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{carries a buffer of which dimension 0 may change; give it a size that does not depend on the iteration}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> (memref<?xf32>) {
    %a = memref.alloc(%i) : memref<?xf32>
    scf.yield %a : memref<?xf32>
  }
  %d = memref.dim %r, %c0 : memref<?xf32>
  return %d : index
}

// -----

// Dimensions of one name are the same.
// CHECK-LABEL: func.func @named(
// CHECK:         %[[P:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK:         scf.for
// CHECK:           scf.yield %[[P]]
func.func @named(%x: memref<?xf32> {tc.sizes = ["N"]}, %y: memref<?xf32> {tc.sizes = ["N"]}, %n: index) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.dim %x, %c0 : memref<?xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %y) -> (memref<?xf32>) {
    %a = memref.alloc(%d) : memref<?xf32>
    memref.copy %p, %a : memref<?xf32> to memref<?xf32>
    scf.yield %a : memref<?xf32>
  }
  return %r : memref<?xf32>
}
