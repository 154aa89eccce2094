// A fold along the lanes of vectors, whose epilogue calls a function: the results are finished by loops of their own.
//
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=256},imap-vectorize{vector-bits=256},convert-imap-to-scf{vector-bits=256}),canonicalize)' | FileCheck %s

// CHECK-LABEL: func.func @detached(
// CHECK:         vector.reduction <add>
// CHECK-NOT:     imap.builtin
// CHECK:         scf.for
// CHECK:           %[[Y:.*]] = memref.load %{{.*}} : memref<32xf32>
// CHECK:           %[[B:.*]] = memref.load %{{.*}} : memref<32xf32>
// CHECK:           %[[S:.*]] = arith.addf %[[Y]], %[[B]]
// CHECK:           %[[T:.*]] = imap.builtin "tanh"(%[[S]])
// CHECK:           memref.store %[[T]]
func.func @detached(%a: memref<32x64xf32>, %x: memref<64xf32>, %y: memref<32xf32> {llvm.noalias}, %b: memref<32xf32> {llvm.noalias})
    attributes {tc.checks = []} {
  imap.generic (i)[k] domain: i in [0, 31], k in [0, 63]
    ins(%a[i, k], %x[k], %b[i] : memref<32x64xf32>, memref<64xf32>, memref<32xf32>) outs(%y[i] : memref<32xf32>) fold [add f32] {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %m = arith.mulf %p, %q : f32
    imap.yield %m : f32
  } epilogue {
  ^bb0(%s: f32, %p: f32, %q: f32, %r: f32):
    %t = arith.addf %s, %r : f32
    %u = imap.builtin "tanh"(%t) : f32
    imap.yield %u : f32
  }
  return
}

// The epilogue reads memory that the fold may overwrite.
// CHECK-LABEL: func.func @overlaps(
// CHECK:         %[[R:.*]] = vector.reduction <add>
// CHECK:         %[[B:.*]] = memref.load %arg3
// CHECK:         arith.addf %[[R]], %[[B]]
// CHECK:         imap.builtin "tanh"
// CHECK:         vector.reduction <add>
func.func @overlaps(%a: memref<2x64xf32>, %x: memref<64xf32>, %y: memref<2xf32>, %b: memref<2xf32>) {
  imap.generic (i)[k] domain: i in [0, 1], k in [0, 63]
    ins(%a[i, k], %x[k], %b[i] : memref<2x64xf32>, memref<64xf32>, memref<2xf32>) outs(%y[i] : memref<2xf32>) fold [add f32] {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %m = arith.mulf %p, %q : f32
    imap.yield %m : f32
  } epilogue {
  ^bb0(%s: f32, %p: f32, %q: f32, %r: f32):
    %t = arith.addf %s, %r : f32
    %u = imap.builtin "tanh"(%t) : f32
    imap.yield %u : f32
  }
  return
}
