// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=0},convert-imap-to-scf{parallel=true parallel-threshold=1 vector-bits=0}),canonicalize,cse)' | FileCheck %s

// The 64 iterations of one loop are enough for all threads.
// CHECK-LABEL: func.func @one_loop(
// CHECK:         scf.parallel (%{{[^,]*}}) = (%c0) to (%c64) step (%c1)
// CHECK:           scf.for %{{.*}} = %c0 to %c16
// CHECK:             scf.for %{{.*}} = %c0 to %c8
func.func @one_loop(%a: memref<64x16x8xf32>, %o: memref<16x64x8xf32>) {
  imap.generic (i, j, k) domain: i in [0, 63], j in [0, 15], k in [0, 7] ins(%a[i, j, k] : memref<64x16x8xf32>) outs(%o[j, i, k] : memref<16x64x8xf32>) {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    imap.yield %y : f32
  }
  return
}

// CHECK-LABEL: func.func @two_loops(
// CHECK:         scf.parallel (%{{.*}}, %{{.*}}) = (%c0, %c0) to (%c63, %c16) step (%c1, %c1)
// CHECK:           scf.for %{{.*}} = %c0 to %c8
func.func @two_loops(%a: memref<63x16x8xf32>, %o: memref<16x63x8xf32>) {
  imap.generic (i, j, k) domain: i in [0, 62], j in [0, 15], k in [0, 7] ins(%a[i, j, k] : memref<63x16x8xf32>) outs(%o[j, i, k] : memref<16x63x8xf32>) {
  ^bb0(%x: f32):
    %y = math.absf %x : f32
    imap.yield %y : f32
  }
  return
}

// LLVM unrolls a short fold, and vectors hold neighbouring results: the loop over them stays whole.
// CHECK-LABEL: func.func @short_fold(
// CHECK:         scf.parallel (%{{[^,]*}}) = (%c0) to (%c64) step (%c1)
// CHECK:           scf.for %{{.*}} = %c0 to %c500
// CHECK:             scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args
func.func @short_fold(%a: memref<64x4xi32>, %b: memref<4x500xi32>, %o: memref<64x500xi32>) {
  imap.generic (i, j)[k] domain: i in [0, 63], j in [0, 499], k in [0, 3] ins(%a[i, k], %b[k, j] : memref<64x4xi32>, memref<4x500xi32>)
      outs(%o[i, j] : memref<64x500xi32>) fold [add i32] attributes {imap.schedule = #imap.schedule<order [i, j, k]>} {
  ^bb0(%x: i32, %y: i32):
    %z = arith.xori %x, %y : i32
    %n = math.ctpop %z : i32
    imap.yield %n : i32
  }
  return
}

// Few rows: threads share strips of the results.
// CHECK-LABEL: func.func @few_rows(
// CHECK:         scf.parallel (%{{.*}}, %{{.*}}) = (%c0, %c0) to (%c6, %c2000) step (%c1, %c512)
// CHECK:           scf.for
// CHECK:             scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args
func.func @few_rows(%a: memref<6x4xi32>, %b: memref<4x2000xi32>, %o: memref<6x2000xi32>) {
  imap.generic (i, j)[k] domain: i in [0, 5], j in [0, 1999], k in [0, 3] ins(%a[i, k], %b[k, j] : memref<6x4xi32>, memref<4x2000xi32>)
      outs(%o[i, j] : memref<6x2000xi32>) fold [add i32] attributes {imap.schedule = #imap.schedule<order [i, j, k]>} {
  ^bb0(%x: i32, %y: i32):
    %z = arith.xori %x, %y : i32
    %n = math.ctpop %z : i32
    imap.yield %n : i32
  }
  return
}
