// RUN: tc-opt %s --deallocate-local-buffers | FileCheck %s
// RUN: tc-opt %s --deallocate-local-buffers --ownership-based-buffer-deallocation | FileCheck %s --check-prefix=NEXT
// RUN: tc-opt %s --deallocate-local-buffers --remarks-filter=deallocate-local-buffers 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Analysis] buffers | Category:deallocate-local-buffers | Function=views | Freed=1

// A use of a view, in a loop too, is a use of the buffer.
// CHECK-LABEL: func.func @views
// CHECK:         %[[A:.*]] = memref.alloc() {bufferization.manual_deallocation}
// CHECK-NEXT:    %[[V:.*]] = memref.subview %[[A]]
// CHECK-NEXT:    scf.for
// CHECK:           memref.load %[[V]]
// CHECK:         }
// CHECK-NEXT:    memref.dealloc %[[A]] {bufferization.manual_deallocation}
// CHECK-NEXT:    memref.copy
// NEXT-LABEL:  func.func @views
// NEXT:          memref.dealloc
// NEXT-NOT:      bufferization.dealloc (%alloc
func.func @views(%n: index, %out: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<8xf32>
  %v = memref.subview %a[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %v[%i] : memref<4xf32, strided<[1], offset: 2>>
    memref.store %x, %out[%i] : memref<4xf32>
  }
  memref.copy %out, %out : memref<4xf32> to memref<4xf32>
  return
}

// One of two buffers is used as long as the chosen one is.
// CHECK-LABEL: func.func @chosen
// CHECK:         %[[A:.*]] = memref.alloc() {bufferization.manual_deallocation}
// CHECK-NEXT:    %[[S:.*]] = arith.select %{{.*}}, %[[A]], %{{.*}} : memref<8xf32>
// CHECK-NEXT:    memref.copy %[[S]]
// CHECK-NEXT:    memref.dealloc %[[A]] {bufferization.manual_deallocation}
func.func @chosen(%condition: i1, %b: memref<8xf32>, %out: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  %s = arith.select %condition, %a, %b : memref<8xf32>
  memref.copy %s, %out : memref<8xf32> to memref<8xf32>
  return
}

// A buffer that leaves its block, or may, stays as it is.
// CHECK-LABEL: func.func @leaves
// CHECK-NOT:     memref.dealloc
func.func @leaves(%condition: i1, %b: memref<8xf32>) -> memref<8xf32> {
  %a = memref.alloc() : memref<8xf32>
  %s = arith.select %condition, %a, %b : memref<8xf32>
  %q = scf.if %condition -> memref<8xf32> {
    scf.yield %s : memref<8xf32>
  } else {
    scf.yield %b : memref<8xf32>
  }
  %r = scf.if %condition -> memref<8xf32> {
    %c = memref.alloc() : memref<8xf32>
    scf.yield %c : memref<8xf32>
  } else {
    %c = memref.alloc() : memref<8xf32>
    %v = memref.cast %c : memref<8xf32> to memref<8xf32>
    scf.yield %v : memref<8xf32>
  }
  memref.copy %q, %r : memref<8xf32> to memref<8xf32>
  return %r : memref<8xf32>
}

// A buffer of a parallel loop goes on the stack, but not one of a loop in it.
// CHECK-LABEL: func.func @threads
// CHECK:         scf.parallel
// CHECK:           memref.alloca() {{.*}} : memref<8xf32>
// CHECK:           scf.for
// CHECK:             memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
// CHECK:             memref.dealloc
func.func @threads(%x: memref<8xf32>, %y: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %a = memref.alloc() : memref<8xf32>
    memref.copy %x, %a : memref<8xf32> to memref<8xf32>
    scf.for %j = %c0 to %n step %c1 {
      %b = memref.alloc() : memref<8xf32>
      memref.copy %a, %b : memref<8xf32> to memref<8xf32>
      memref.copy %b, %y : memref<8xf32> to memref<8xf32>
    }
    scf.reduce
  }
  return
}
