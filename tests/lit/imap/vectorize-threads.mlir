// RUN: tc-opt %s --imap-vectorize="vector-bits=256 parallel=true parallel-threshold=57344" | FileCheck %s
// RUN: tc-opt %s --imap-vectorize="vector-bits=256 parallel=true parallel-threshold=57345" | FileCheck %s --check-prefix=LESS

// A multiplication and its addition are one operation in a block that loads inputs once for several results. 32768 of
// them, 2048 loads and 1024 stores, each of the time of eight operations, are 57344 operations.
// CHECK-LABEL: func.func @product(
// CHECK:         scf.parallel
// LESS-LABEL:  func.func @product(
// LESS-NOT:      scf.parallel
// LESS:          scf.for
func.func @product(%x: memref<32x32xf32>, %y: memref<32x32xf32>, %z: memref<32x32xf32>) {
  imap.generic (m, n)[k] domain: m in [0, 31], n in [0, 31], k in [0, 31] ins(%x[m, k], %y[k, n] : memref<32x32xf32>, memref<32x32xf32>)
      outs(%z[m, n] : memref<32x32xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<order [m, k, n], vector [m = 4, n = 16] lanes n>} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  }
  return
}

// Each element of %x is loaded for one result: additions count as well. 5632 products and sums, 5696 loads and 88 stores
// are 57536 operations.
// CHECK-LABEL: func.func @rows(
// CHECK:         scf.parallel
// LESS-LABEL:  func.func @rows(
// LESS:          scf.parallel
func.func @rows(%x: memref<88x64xf32>, %y: memref<64xf32>, %z: memref<88xf32>) {
  imap.generic (m)[k] domain: m in [0, 87], k in [0, 63] ins(%x[m, k], %y[k] : memref<88x64xf32>, memref<64xf32>)
      outs(%z[m] : memref<88xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<order [m, k], vector [m = 4, k = 8] lanes k>} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  }
  return
}
