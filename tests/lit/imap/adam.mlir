// RUN: tc-opt %s | tc-opt --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-opt %s --imap-fuse --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFERS
// RUN: tc-run %s --check

// Adam's step: one operation with three results in the place of three of its inputs, each read and written at the
// same element.
// CHECK-LABEL: func.func @step(
// CHECK:         imap.generic (i) domain: i in [0, 999]
// CHECK-SAME:      outs(%{{.*}}[i], %{{.*}}[i], %{{.*}}[i] : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) {
// CHECK:           imap.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// BUFFERS-LABEL: func.func @step(
// BUFFERS-NOT:     memref.alloc
// BUFFERS-NOT:     memref.copy
// BUFFERS:         imap.generic
func.func @step(%p: tensor<1000xf32> {bufferization.writable = true}, %g: tensor<1000xf32>,
                %m: tensor<1000xf32> {bufferization.writable = true}, %v: tensor<1000xf32> {bufferization.writable = true},
                %c1: tensor<f32>, %c2: tensor<f32>) -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) {
  %r:3 = imap.generic (i) domain: i in [0, 999]
      ins(%p[i], %g[i], %m[i], %v[i], %c1[], %c2[] : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>, tensor<f32>, tensor<f32>)
      outs(%p[i], %m[i], %v[i] : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) {
  ^bb0(%p0: f32, %g0: f32, %m0: f32, %v0: f32, %b1: f32, %b2: f32):
    %d1 = arith.constant 0.9 : f32
    %e1 = arith.constant 0.1 : f32
    %d2 = arith.constant 0.999 : f32
    %e2 = arith.constant 0.001 : f32
    %rate = arith.constant 0.01 : f32
    %epsilon = arith.constant 1.0e-8 : f32
    %m1 = arith.mulf %m0, %d1 : f32
    %m2 = arith.mulf %g0, %e1 : f32
    %m3 = arith.addf %m1, %m2 : f32
    %g1 = arith.mulf %g0, %g0 : f32
    %v1 = arith.mulf %v0, %d2 : f32
    %v2 = arith.mulf %g1, %e2 : f32
    %v3 = arith.addf %v1, %v2 : f32
    %m4 = arith.mulf %m3, %b1 : f32
    %v4 = arith.mulf %v3, %b2 : f32
    %v5 = math.absf %v4 : f32
    %v6 = math.sqrt %v5 : f32
    %v7 = arith.addf %v6, %epsilon : f32
    %u0 = arith.divf %m4, %v7 : f32
    %u1 = arith.mulf %u0, %rate : f32
    %p1 = arith.subf %p0, %u1 : f32
    imap.yield %p1, %m3, %v3 : f32, f32, f32
  } -> tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>
  return %r#0, %r#1, %r#2 : tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>
}
