// RUN: tc-opt %s --allow-unregistered-dialect --imap-assign-buffers="allocate=true" | FileCheck %s

// Two buffers that live at the same time have places of their own, a third one that of the first.
// CHECK-LABEL: func.func @places(
// CHECK:         %[[W:.*]] = memref.alloc() {{.*}} : memref<256xi8>
// CHECK:         %[[FIRST:.*]] = arith.constant 0 : index
// CHECK:         %[[A:.*]] = memref.view %[[W]][%[[FIRST]]][] : memref<256xi8> to memref<32xf32>
// CHECK:         %[[SECOND:.*]] = arith.constant 128 : index
// CHECK:         memref.view %[[W]][%[[SECOND]]][] : memref<256xi8> to memref<16x2xf32>
// CHECK:         %[[THIRD:.*]] = arith.constant 0 : index
// CHECK:         memref.view %[[W]][%[[THIRD]]][] : memref<256xi8> to memref<3xf64>
// CHECK:         memref.dealloc %[[W]]
// CHECK-NOT:     memref.dealloc
func.func @places() {
  %a = memref.alloc() : memref<32xf32>
  %b = memref.alloc() : memref<16x2xf32>
  "test.use"(%a, %b) : (memref<32xf32>, memref<16x2xf32>) -> ()
  memref.dealloc %a : memref<32xf32>
  %c = memref.alloc() : memref<3xf64>
  "test.use"(%b, %c) : (memref<16x2xf32>, memref<3xf64>) -> ()
  memref.dealloc %b : memref<16x2xf32>
  memref.dealloc %c : memref<3xf64>
  return
}

// A result is memory until its first use.
// CHECK-LABEL: func.func @result(
// CHECK-SAME:    %[[Y:[a-z0-9]+]]: memref<8x8xf32> {tc.output
// CHECK-NOT:     memref.alloc
// CHECK:         %[[A:.*]] = memref.reinterpret_cast %[[Y]] to offset: [0], sizes: [32], strides: [1]
// CHECK:         "test.use"(%[[A]])
// CHECK-NOT:     memref.dealloc
func.func @result(%y: memref<8x8xf32> {tc.output = 0}) {
  %a = memref.alloc() : memref<32xf32>
  "test.use"(%a) : (memref<32xf32>) -> ()
  memref.dealloc %a : memref<32xf32>
  "test.use"(%y) : (memref<8x8xf32>) -> ()
  return
}

// In a loop that writes a result, it is not.
// CHECK-LABEL: func.func @result_in_loop(
// CHECK:         memref.alloc() : memref<32xf32>
func.func @result_in_loop(%y: memref<8x8xf32> {tc.output = 0}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.alloc() : memref<32xf32>
    "test.use"(%a) : (memref<32xf32>) -> ()
    memref.dealloc %a : memref<32xf32>
    "test.use"(%y) : (memref<8x8xf32>) -> ()
  }
  return
}

// Threads, dynamic sizes, and what another block frees have memory of their own. Scratch is apart.
// CHECK-LABEL: func.func @apart(
// CHECK:         memref.alloc() {alignment = 64 : i64} : memref<128xi8>
// CHECK:         memref.alloc() {alignment = 64 : i64, imap.scratch} : memref<128xi8>
// CHECK-COUNT-4: memref.view
// CHECK:         memref.alloc() : memref<4xf32>
// CHECK:         memref.alloc({{.*}}) : memref<?xf32>
// CHECK:         memref.alloc() : memref<8xf32>
func.func @apart(%n: index, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  %c = memref.alloc() {imap.scratch} : memref<16xf32>
  %d = memref.alloc() {imap.scratch} : memref<16xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %e = memref.alloc() : memref<4xf32>
    "test.use"(%a, %b, %c, %d, %e)
      : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<4xf32>) -> ()
    memref.dealloc %e : memref<4xf32>
  }
  memref.dealloc %a : memref<16xf32>
  memref.dealloc %b : memref<16xf32>
  memref.dealloc %c : memref<16xf32>
  memref.dealloc %d : memref<16xf32>
  %f = memref.alloc(%n) : memref<?xf32>
  %g = memref.alloc() : memref<8xf32>
  "test.use"(%f, %g) : (memref<?xf32>, memref<8xf32>) -> ()
  memref.dealloc %f : memref<?xf32>
  scf.if %p {
    memref.dealloc %g : memref<8xf32>
  }
  return
}
