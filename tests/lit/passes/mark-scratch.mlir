// The memory of panels is marked; other memory is not.
//
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(mark-scratch))' | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK:         memref.alloc() {imap.scratch} : memref<4xf32>
// CHECK:         memref.alloc() : memref<4xf32>
// CHECK-NOT:     attributes
func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
  %p = memref.alloc() : memref<4xf32>
  %t = memref.alloc() : memref<4xf32>
  imap.generic (i) domain: i in [0, 3] ins(%x[i] : memref<4xf32>) outs(%p[i] : memref<4xf32>) attributes {imap.scratch} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  imap.generic (i) domain: i in [0, 3] ins(%p[i] : memref<4xf32>) outs(%t[i] : memref<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  imap.generic (i) domain: i in [0, 3] ins(%t[i] : memref<4xf32>) outs(%y[i] : memref<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}
