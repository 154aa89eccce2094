// RUN: tc-opt %s '--pass-pipeline=builtin.module(func.func(double-buffer-loops))' --split-input-file | FileCheck %s

// The last of four iterations writes to the first buffer, which is a result of the function then.
// CHECK-LABEL: func.func @even(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8xf32>, %[[OUT:[a-z0-9]+]]: memref<8xf32> {tc.output = 0 : i64})
// CHECK:         memref.copy %[[X]], %[[OUT]]
// CHECK:         %[[B:.*]] = memref.alloc()
// CHECK:         scf.for %{{.*}} iter_args(%[[S:.*]] = %false) -> (i1) {
// CHECK-NEXT:      %[[OLD:.*]] = arith.select %[[S]], %[[B]], %[[OUT]] : memref<8xf32>
// CHECK-NEXT:      %[[NEW:.*]] = arith.select %[[S]], %[[OUT]], %[[B]] : memref<8xf32>
// CHECK-NEXT:      imap.generic (i) {{.*}} ins(%[[OLD]][-i + 7] : memref<8xf32>) outs(%[[NEW]][i] : memref<8xf32>)
// CHECK:           %[[NEXT:.*]] = arith.xori %[[S]], %true
// CHECK-NEXT:      scf.yield %[[NEXT]] : i1
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @even(%x: memref<8xf32>, %out: memref<8xf32> {tc.output = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<8xf32>
  memref.copy %x, %a : memref<8xf32> to memref<8xf32>
  %r = scf.for %n = %c0 to %c4 step %c1 iter_args(%y = %a) -> (memref<8xf32>) {
    %z = memref.alloc() : memref<8xf32>
    imap.generic (i) domain: i in [0, 7] ins(%y[-i + 7] : memref<8xf32>) outs(%z[i] : memref<8xf32>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    scf.yield %z : memref<8xf32>
  }
  memref.copy %r, %out : memref<8xf32> to memref<8xf32>
  return
}

// -----

// After three iterations the last value is in the second one.
// CHECK-LABEL: func.func @odd(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8xf32>, %[[OUT:[a-z0-9]+]]: memref<8xf32> {tc.output = 0 : i64})
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         memref.copy %[[X]], %[[A]]
// CHECK:           arith.select %{{.*}}, %[[OUT]], %[[A]] : memref<8xf32>
// CHECK-NEXT:      arith.select %{{.*}}, %[[A]], %[[OUT]] : memref<8xf32>
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @odd(%x: memref<8xf32>, %out: memref<8xf32> {tc.output = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %n = %c0 to %c5 step %c2 iter_args(%y = %x) -> (memref<8xf32>) {
    %z = memref.alloc() : memref<8xf32>
    imap.generic (i) domain: i in [0, 7] ins(%y[-i + 7] : memref<8xf32>) outs(%z[i] : memref<8xf32>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    scf.yield %z : memref<8xf32>
  }
  memref.copy %r, %out : memref<8xf32> to memref<8xf32>
  return
}

// -----

// A loop after the copy writes to the last value: the result needs a buffer of its own.
// CHECK-LABEL: func.func @written(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8xf32>, %[[OUT:[a-z0-9]+]]: memref<8xf32> {tc.output = 0 : i64}, %[[END:.*]]: memref<8xf32>)
// CHECK:         memref.copy %[[X]], %[[A:.*]] :
// CHECK-NEXT:    %[[B:.*]] = memref.alloc()
// CHECK:         memref.copy %[[B]], %[[OUT]]
// CHECK:           memref.store %{{.*}}, %[[B]]
// CHECK:         memref.copy %[[B]], %[[END]]
func.func @written(%x: memref<8xf32>, %out: memref<8xf32> {tc.output = 0 : i64}, %end: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %n = %c0 to %c3 step %c1 iter_args(%y = %x) -> (memref<8xf32>) {
    %z = memref.alloc() : memref<8xf32>
    imap.generic (i) domain: i in [0, 7] ins(%y[-i + 7] : memref<8xf32>) outs(%z[i] : memref<8xf32>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    scf.yield %z : memref<8xf32>
  }
  memref.copy %r, %out : memref<8xf32> to memref<8xf32>
  scf.for %n = %c0 to %c3 step %c1 {
    memref.store %zero, %r[%n] : memref<8xf32>
  }
  memref.copy %r, %end : memref<8xf32> to memref<8xf32>
  return
}

// -----

// The program knows how many iterations there are, and which buffer is the last one.
// CHECK-LABEL: func.func @unknown(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<8xf32>
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         memref.copy %[[X]], %[[A]]
// CHECK:         %[[B:.*]] = memref.alloc()
// CHECK:         %[[R:.*]] = scf.for
// CHECK:         %[[LAST:.*]] = arith.select %[[R]], %[[B]], %[[A]] : memref<8xf32>
// CHECK-NEXT:    memref.load %[[LAST]]
func.func @unknown(%x: memref<8xf32>, %count: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %n = %c0 to %count step %c1 iter_args(%y = %x) -> (memref<8xf32>) {
    %z = memref.alloc() : memref<8xf32>
    imap.generic (i) domain: i in [0, 7] ins(%y[-i + 7] : memref<8xf32>) outs(%z[i] : memref<8xf32>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    scf.yield %z : memref<8xf32>
  }
  %last = memref.load %r[%c0] : memref<8xf32>
  return %last : f32
}

// -----

// The old value lives on as another one, and so does a part of it; sizes that are not known stay.
// CHECK-LABEL: func.func @kept(
// CHECK-NOT:     arith.select
// CHECK:         return
func.func @kept(%x: memref<8xf32>, %d: memref<?xf32>, %count: index) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p:2 = scf.for %n = %c0 to %count step %c1 iter_args(%y = %x, %before = %x) -> (memref<8xf32>, memref<8xf32>) {
    %z = memref.alloc() : memref<8xf32>
    memref.copy %y, %z : memref<8xf32> to memref<8xf32>
    scf.yield %z, %y : memref<8xf32>, memref<8xf32>
  }
  %s = memref.subview %x[0][4][1] : memref<8xf32> to memref<4xf32, strided<[1]>>
  %q:2 = scf.for %n = %c0 to %count step %c1 iter_args(%y = %x, %part = %s) -> (memref<8xf32>, memref<4xf32, strided<[1]>>) {
    %z = memref.alloc() : memref<8xf32>
    memref.copy %y, %z : memref<8xf32> to memref<8xf32>
    %t = memref.subview %y[0][4][1] : memref<8xf32> to memref<4xf32, strided<[1]>>
    scf.yield %z, %t : memref<8xf32>, memref<4xf32, strided<[1]>>
  }
  %r = scf.for %n = %c0 to %count step %c1 iter_args(%y = %d) -> (memref<?xf32>) {
    %z = memref.alloc(%count) : memref<?xf32>
    memref.copy %y, %z : memref<?xf32> to memref<?xf32>
    scf.yield %z : memref<?xf32>
  }
  %0 = memref.load %p#0[%c0] : memref<8xf32>
  %1 = memref.load %q#0[%c0] : memref<8xf32>
  %2 = memref.load %r[%c0] : memref<?xf32>
  return %0, %1, %2 : f32, f32, f32
}
