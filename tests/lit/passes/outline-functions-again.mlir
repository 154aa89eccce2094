// RUN: tc-opt %s --imap-outline-functions="max-operations=1 max-loops=8" | FileCheck %s

// A function that the pass has made is divided: its operations are functions, and equal ones are one. They are called by
// threads, so that they have no parallel loops of their own. Arguments may be one buffer, as before.
// CHECK:      func.func private @f_0_0(%{{.*}}: memref<8x4xf32>, %[[I:.*]]: index, %{{.*}}: memref<4xf32>)
// CHECK-SAME:   tc.in_thread, tc.outlined
// CHECK:        memref.subview %{{.*}}[%[[I]], 0] [1, 4] [1, 1]
// CHECK:        imap.generic
// CHECK-NOT:  imap.generic
// CHECK:      func.func private @f_0(
// CHECK:        scf.parallel (%[[I:.*]]) =
// CHECK:          call @f_0_0(%[[A:.*]], %[[I]], %[[T:.*]])
// CHECK:          call @f_0_0(%[[B:.*]], %[[I]], %[[T]])
func.func private @f_0(%a: memref<8x4xf32>, %b: memref<8x4xf32>, %t: memref<4xf32>) attributes {tc.outlined} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {
    %x = memref.subview %a[%i, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : memref<4xf32, strided<[1], offset: ?>>) outs(%t[d0] : memref<4xf32>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    %y = memref.subview %b[%i, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    imap.generic (d0) domain: d0 in [0, 3] ins(%y[d0] : memref<4xf32, strided<[1], offset: ?>>) outs(%t[d0] : memref<4xf32>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    scf.reduce
  }
  return
}

// A nest of one operation stays whole.
// CHECK-LABEL: func.func private @g_0(
// CHECK:         scf.for
// CHECK:           imap.generic
func.func private @g_0(%a: memref<8xf32>, %b: memref<8xf32>) attributes {tc.outlined} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    imap.generic (d0) domain: d0 in [0, 7] ins(%a[d0] : memref<8xf32>) outs(%b[d0] : memref<8xf32>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
  }
  return
}
