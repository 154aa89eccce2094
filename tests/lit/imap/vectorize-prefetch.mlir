// RUN: tc-opt %s --imap-vectorize="vector-bits=256 cache-bytes=65536" --canonicalize | FileCheck %s
// RUN: tc-opt %s --imap-vectorize="vector-bits=256" | FileCheck %s --check-prefix=NONE
// RUN: tc-opt %s --imap-vectorize="vector-bits=256 cache-bytes=1000000" | FileCheck %s --check-prefix=NONE

// A panel of %y is read by 16 blocks of 4 rows. Each of them fetches 8 of the 128 rows of the next panel per strip, with
// one line of 16 floats each.
// NONE-NOT: memref.prefetch

// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[X:[^:]*]]: memref<64x256xf32>, %[[Y:[^:]*]]: memref<8x256x16xf32>
// CHECK-DAG:     %[[LAST_PANEL:.*]] = arith.constant 7 : index
// CHECK:         scf.for %[[P:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           scf.for %[[M:.*]] = %{{.*}} to %{{.*}} step
// CHECK:             scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step
// CHECK:               %[[BLOCK:.*]] = arith.divui %[[M]], %{{.*}} : index
// CHECK:               %[[OFFSET:.*]] = arith.muli %[[BLOCK]], %{{.*}} : index
// CHECK:               %[[NEXT:.*]] = arith.minsi %{{.*}}, %[[LAST_PANEL]] : index
// CHECK-COUNT-8:       memref.prefetch %[[Y]][%[[NEXT]], %{{.*}}, %{{.*}}], read, locality<2>, data : memref<8x256x16xf32>
// CHECK-NOT:           memref.prefetch
// CHECK:               scf.for
func.func @product(%x: memref<64x256xf32>, %y: memref<8x256x16xf32>, %z: memref<64x128xf32>) {
  imap.generic (m, p, n)[k] domain: m in [0, 63], p in [0, 7], n in [0, 15], k in [0, 255] ins(%x[m, k], %y[p, k, n] : memref<64x256xf32>, memref<8x256x16xf32>)
      outs(%z[m, p * 16 + n] : memref<64x128xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<order [p, m, k, n], vector [m = 4, n = 16] lanes n>} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  }
  return
}

// The rows of %y are read by one block only.
// CHECK-LABEL: func.func @one_block(
// CHECK-NOT:     memref.prefetch
func.func @one_block(%x: memref<4x256xf32>, %y: memref<8x256x16xf32>, %z: memref<4x128xf32>) {
  imap.generic (m, p, n)[k] domain: m in [0, 3], p in [0, 7], n in [0, 15], k in [0, 255] ins(%x[m, k], %y[p, k, n] : memref<4x256xf32>, memref<8x256x16xf32>)
      outs(%z[m, p * 16 + n] : memref<4x128xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<order [p, m, k, n], vector [m = 4, n = 16] lanes n>} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  }
  return
}
