// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=128},imap-vectorize{vector-bits=128},convert-imap-to-scf{vector-bits=128}),canonicalize,cse)' | FileCheck %s

// The largest element of each row and its index. The region folds vectors. Lanes along the range end in a
// fold of the upper half of the lanes into the lower half, twice.
// CHECK-LABEL: func.func @along_the_range(
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<0xFF800000> : vector<4xf32>
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0> : vector<4xi32>
// CHECK:         scf.for %{{.*}} iter_args(%{{.*}} = %[[LEAST]], %{{.*}} = %[[ZERO]]
// CHECK:           vector.load %{{.*}} : memref<64x4096xf32>, vector<4xf32>
// CHECK:           %[[LANES:.*]] = vector.step : vector<4xindex>
// CHECK:           arith.addi %{{.*}}, %[[LANES]] : vector<4xindex>
// CHECK:           arith.index_cast %{{.*}} : vector<4xindex> to vector<4xi32>
// CHECK:           arith.cmpf ogt, %{{.*}} : vector<4xf32>
// CHECK:           arith.select %{{.*}} : vector<4xi1>, vector<4xi32>
// CHECK:         vector.shuffle %{{.*}} [0, 1] : vector<4xf32>, vector<4xf32>
// CHECK:         vector.shuffle %{{.*}} [2, 3] : vector<4xf32>, vector<4xf32>
// CHECK:         arith.cmpf ogt, %{{.*}} : vector<2xf32>
// CHECK:         arith.cmpf ogt, %{{.*}} : vector<1xf32>
// CHECK:         vector.extract %{{.*}}[0] : i32 from vector<1xi32>
func.func @along_the_range(%x: memref<64x4096xf32>, %v: memref<64xf32>, %p: memref<64xi32>) {
  imap.generic (i)[j] domain: i in [0, 63], j in [0, 4095]
    ins(%x[i, j] : memref<64x4096xf32>) outs(%v[i], %p[i] : memref<64xf32>, memref<64xi32>)
    fold [f32 identity 0xFF800000, i32 identity 0] {
  ^bb0(%a: f32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    imap.yield %a, %k : f32, i32
  } combine {
  ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
    %more = arith.cmpf ogt, %v0, %v1 : f32
    %w = arith.select %more, %v0, %v1 : f32
    %i = arith.select %more, %i0, %i1 : i32
    imap.yield %w, %i : f32, i32
  }
  return
}

// Lanes along the results: an index is the same in all of them.
// CHECK-LABEL: func.func @along_the_results(
// CHECK-NOT:     vector.step
// CHECK:         arith.index_cast %{{.*}} : index to i32
// CHECK:         vector.broadcast %{{.*}} : i32 to vector<4xi32>
// CHECK:         arith.cmpf ogt, %{{.*}} : vector<4xf32>
// CHECK:         vector.store %{{.*}} : memref<4096xi32>, vector<4xi32>
func.func @along_the_results(%x: memref<64x4096xf32>, %v: memref<4096xf32>, %p: memref<4096xi32>) {
  imap.generic (i)[j] domain: i in [0, 4095], j in [0, 63]
    ins(%x[j, i] : memref<64x4096xf32>) outs(%v[i], %p[i] : memref<4096xf32>, memref<4096xi32>)
    fold [f32 identity 0xFF800000, i32 identity 0] {
  ^bb0(%a: f32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    imap.yield %a, %k : f32, i32
  } combine {
  ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
    %more = arith.cmpf ogt, %v0, %v1 : f32
    %w = arith.select %more, %v0, %v1 : f32
    %i = arith.select %more, %i0, %i1 : i32
    imap.yield %w, %i : f32, i32
  }
  return
}
