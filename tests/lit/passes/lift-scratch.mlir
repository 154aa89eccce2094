// RUN: tc-opt %s --lift-scratch | FileCheck %s

// Each caller allocates the memory of the function, and frees it after the call.
// CHECK:      func.func private @f_0(%{{.*}}: memref<8xf32>, %[[T:.*]]: memref<8xf32> {llvm.noalias}) attributes {tc.outlined}
// CHECK-NEXT:   memref.copy %{{.*}}, %[[T]]
// CHECK-NEXT:   return
func.func private @f_0(%a: memref<8xf32>) attributes {tc.outlined} {
  %t = memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
  memref.copy %a, %t : memref<8xf32> to memref<8xf32>
  memref.dealloc %t {bufferization.manual_deallocation} : memref<8xf32>
  return
}

// A function that computes the size of its memory is inlined, and one that gives a value with it.
// CHECK-NOT:  @f_1
func.func private @f_1(%a: memref<8xf32>, %n: index) -> f32 attributes {tc.outlined} {
  %t = memref.alloc(%n) {bufferization.manual_deallocation} : memref<?xf32>
  %x = memref.load %t[%n] : memref<?xf32>
  memref.dealloc %t {bufferization.manual_deallocation} : memref<?xf32>
  return %x : f32
}

// Threads of a loop must not share memory.
// CHECK-NOT:  @f_2
func.func private @f_2(%n: index) attributes {tc.outlined} {
  scf.parallel (%i) = (%n) to (%n) step (%n) {
    %t = memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
    memref.dealloc %t {bufferization.manual_deallocation} : memref<8xf32>
  }
  return
}

// CHECK:      func.func @f(%[[A:.*]]: memref<8xf32>, %[[N:.*]]: index) -> f32
// CHECK-NEXT:   %[[T:.*]] = memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
// CHECK-NEXT:   call @f_0(%[[A]], %[[T]])
// CHECK-NEXT:   memref.dealloc %[[T]] {bufferization.manual_deallocation}
// CHECK-NEXT:   %[[OPEN:.*]] = memref.alloc(%[[N]])
// CHECK-NEXT:   %[[X:.*]] = memref.load %[[OPEN]][%[[N]]]
// CHECK-NEXT:   memref.dealloc %[[OPEN]]
// CHECK-NEXT:   scf.parallel
// CHECK:        return %[[X]] : f32
func.func @f(%a: memref<8xf32>, %n: index) -> f32 {
  call @f_0(%a) : (memref<8xf32>) -> ()
  %x = call @f_1(%a, %n) : (memref<8xf32>, index) -> f32
  call @f_2(%n) : (index) -> ()
  return %x : f32
}
