// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(parallelize-copies{parallel-threshold=65536}))' | FileCheck %s
// RUN: not tc-opt %s --pass-pipeline='builtin.module(func.func(parallelize-copies{parallel-threshold=x}))' 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: 'func.func' op 'parallel-threshold' expects a number

// CHECK-LABEL: func.func @large(
// CHECK-SAME:      %[[A:.*]]: memref<64x64xf32>, %[[B:.*]]: memref<64x64xf32>
// CHECK:         imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 63] ins(%[[A]][d0, d1] : memref<64x64xf32>) outs(%[[B]][d0, d1] : memref<64x64xf32>)
// CHECK-NOT:     memref.copy
func.func @large(%a: memref<64x64xf32>, %b: memref<64x64xf32>) {
  memref.copy %a, %b : memref<64x64xf32> to memref<64x64xf32>
  return
}

// A small one, one of unknown size, and one of a thread.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-3: memref.copy
// CHECK-NOT:     imap.generic
func.func @others(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<?xf32>, %d: memref<?xf32>, %e: memref<64x64xf32>, %f: memref<64x64xf32>) {
  memref.copy %a, %b : memref<8xf32> to memref<8xf32>
  memref.copy %c, %d : memref<?xf32> to memref<?xf32>
  scf.forall (%i) in (2) {
    memref.copy %e, %f : memref<64x64xf32> to memref<64x64xf32>
  }
  return
}
