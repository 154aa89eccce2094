// RUN: tc-opt %s --pass-pipeline="builtin.module(func.func(update-in-place))" | FileCheck %s

// The last reader of a buffer writes to it.
// CHECK-LABEL: func.func @last(
// CHECK:         %[[B:.*]] = memref.alloc()
// CHECK:         outs(%[[B]][i] : memref<8xf32>)
// CHECK-NOT:     memref.alloc()
// CHECK:         ins(%[[B]][i] : memref<8xf32>) outs(%[[B]][i] : memref<8xf32>)
// CHECK:         memref.load %[[B]][
func.func @last(%x: memref<8xf32>, %i: index) -> f32 {
  %b = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  %c = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%b[i] : memref<8xf32>) outs(%c[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    imap.yield %s : f32
  }
  %r = memref.load %c[%i] : memref<8xf32>
  return %r : f32
}

// A result of the function takes the place of the buffer. A copy goes.
// CHECK-LABEL: func.func @result(
// CHECK-SAME:    %[[Y:[a-z0-9]+]]: memref<8xf32> {tc.output
// CHECK-NOT:     memref.alloc()
// CHECK:         outs(%[[Y]][i] : memref<8xf32>)
// CHECK-NOT:     memref.copy
func.func @result(%x: memref<8xf32>, %y: memref<8xf32> {tc.output = 0}) {
  %b = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  memref.copy %b, %y : memref<8xf32> to memref<8xf32>
  return
}

// The result has a value already, which the function reads.
// CHECK-LABEL: func.func @inout(
// CHECK:         memref.alloc()
// CHECK:         memref.copy
func.func @inout(%x: memref<8xf32>, %y: memref<8xf32> {tc.output = 0, tc.inout}) {
  %b = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  memref.copy %b, %y : memref<8xf32> to memref<8xf32>
  return
}

// The elements are those of other points.
// CHECK-LABEL: func.func @reversed(
// CHECK-COUNT-2: memref.alloc()
func.func @reversed(%x: memref<8xf32>, %i: index) -> f32 {
  %b = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  %c = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%b[-i + 7] : memref<8xf32>) outs(%c[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  %r = memref.load %c[%i] : memref<8xf32>
  return %r : f32
}

// Something reads the old value later, here through a view.
// CHECK-LABEL: func.func @later(
// CHECK-COUNT-2: memref.alloc()
func.func @later(%x: memref<8xf32>, %i: index) -> (f32, f32) {
  %b = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  %part = memref.subview %b[4] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 4>>
  %c = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%b[i] : memref<8xf32>) outs(%c[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    imap.yield %s : f32
  }
  %r = memref.load %c[%i] : memref<8xf32>
  %old = memref.load %part[%i] : memref<4xf32, strided<[1], offset: 4>>
  return %r, %old : f32, f32
}

// A fold reads each element several times.
// CHECK-LABEL: func.func @fold(
// CHECK-COUNT-2: memref.alloc()
func.func @fold(%x: memref<8xf32>, %w: memref<8x8xf32>, %i: index) -> f32 {
  %b = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  %c = memref.alloc() : memref<8xf32>
  imap.generic (i)[k] domain: i in [0, 7], k in [0, 7] ins(%b[i], %w[i, k] : memref<8xf32>, memref<8x8xf32>)
      outs(%c[i] : memref<8xf32>) fold [add f32] {
  ^bb0(%a: f32, %v: f32):
    %p = arith.mulf %a, %v : f32
    imap.yield %p : f32
  }
  %r = memref.load %c[%i] : memref<8xf32>
  return %r : f32
}

// The body loads another element than the one of its point.
// CHECK-LABEL: func.func @body(
// CHECK-COUNT-2: memref.alloc()
func.func @body(%x: memref<8xf32>, %i: index) -> f32 {
  %b = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%b[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  %c = memref.alloc() : memref<8xf32>
  imap.generic (i) domain: i in [0, 7] ins(%b[i] : memref<8xf32>) outs(%c[i] : memref<8xf32>) {
  ^bb0(%a: f32):
    %o = memref.load %b[%i] : memref<8xf32>
    %s = arith.addf %a, %o : f32
    imap.yield %s : f32
  }
  %r = memref.load %c[%i] : memref<8xf32>
  return %r : f32
}
