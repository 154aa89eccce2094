// RUN: tc-opt %s --imap-vectorize="vector-bits=256 cache-bytes=65536" --canonicalize | FileCheck %s
// RUN: tc-opt %s --imap-vectorize="vector-bits=256 cache-bytes=65536 parallel=true parallel-threshold=1" --canonicalize \
// RUN:   | FileCheck %s --check-prefix=THREADS
// RUN: tc-opt %s --imap-vectorize="vector-bits=256" | FileCheck %s --check-prefix=NONE
// RUN: tc-opt %s --imap-vectorize="vector-bits=256 cache-bytes=1000000" | FileCheck %s --check-prefix=NONE

// A panel of %y is read by 16 blocks of 4 rows. Each of them fetches 32 neighbouring lines of the next panel: one per step
// of eight values, which LLVM unrolls.
// NONE-NOT: memref.prefetch

// CHECK:         #[[UNROLL:.*]] = #llvm.loop_unroll<full = true>
// CHECK:         #[[INNER:.*]] = #llvm.loop_annotation<unroll = #[[UNROLL]]>
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[X:[^:]*]]: memref<64x256xf32>, %[[Y:[^:]*]]: memref<8x256x16xf32>
// CHECK-DAG:     %[[LAST_PANEL:.*]] = arith.constant 7 : index
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 255 : index
// CHECK-DAG:     %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[STEPS:.*]] = arith.constant 32 : index
// CHECK:         scf.for %[[P:[^ ]*]] = %{{.*}} to %{{.*}} step
// CHECK:           scf.for %[[M:[^ ]*]] = %{{.*}} to %{{.*}} step
// CHECK:             scf.for %[[STRIP:[^ ]*]] = %{{.*}} to %{{.*}} step
// CHECK:               scf.for %[[STEP:[^ ]*]] = %[[STRIP]] to %{{.*}} step %[[EIGHT]]
// CHECK:                 %[[BLOCK:.*]] = arith.divui %[[M]], %[[FOUR]] : index
// CHECK:                 %[[BEFORE:.*]] = arith.muli %[[BLOCK]], %[[STEPS]] : index
// CHECK:                 %[[NUMBER:.*]] = arith.divui %[[STEP]], %[[EIGHT]] : index
// CHECK:                 %[[LINE:.*]] = arith.addi %[[BEFORE]], %[[NUMBER]] : index
// CHECK:                 %[[NEXT:.*]] = arith.minsi %{{.*}}, %[[LAST_PANEL]] : index
// CHECK:                 %[[ROW:.*]] = arith.minsi %[[LINE]], %[[LAST]] : index
// CHECK:                 memref.prefetch %[[Y]][%[[NEXT]], %[[ROW]], %{{.*}}], read, locality<2>, data : memref<8x256x16xf32>
// CHECK-NOT:             memref.prefetch
// CHECK:                 scf.for %[[K:[^ ]*]] = %{{.*}} to %[[EIGHT]] step
// CHECK:                   arith.addi %[[STEP]], %[[K]] overflow<nsw> : index
// CHECK:                 } {loop_annotation = #[[INNER]]}
// CHECK-NOT:         scf.for
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

// Strips of 125 values: the last five of each are no step. A value has two lines, of which a block fetches one.
// CHECK-LABEL: func.func @rest(
// CHECK-SAME:    %[[X:[^:]*]]: memref<64x250xf32>, %[[Y:[^:]*]]: memref<8x250x32xf32>
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[FLOATS:.*]] = arith.constant 16 : index
// CHECK:             %{{.*}} = scf.for %[[STRIP:[^ ]*]] = %{{.*}} to %{{.*}} step
// CHECK:               %[[LENGTH:.*]] = arith.subi %[[END:.*]], %[[STRIP]] : index
// CHECK:               %[[REST:.*]] = arith.remui %[[LENGTH]], %[[EIGHT]] : index
// CHECK:               %[[EVEN:.*]] = arith.subi %[[END]], %[[REST]] : index
// CHECK:               scf.for %[[STEP:[^ ]*]] = %[[STRIP]] to %[[EVEN]] step %[[EIGHT]]
// CHECK:                 %[[COLUMN:.*]] = arith.remui %[[LINE:.*]], %[[TWO]] : index
// CHECK:                 arith.muli %[[COLUMN]], %[[FLOATS]] : index
// CHECK:                 memref.prefetch %[[Y]]
// CHECK-NOT:             memref.prefetch
// CHECK:               scf.for %{{.*}} = %[[EVEN]] to %[[END]] step %[[ONE]]
func.func @rest(%x: memref<64x250xf32>, %y: memref<8x250x32xf32>, %z: memref<64x256xf32>) {
  imap.generic (m, p, n)[k] domain: m in [0, 63], p in [0, 7], n in [0, 31], k in [0, 249] ins(%x[m, k], %y[p, k, n] : memref<64x250xf32>, memref<8x250x32xf32>)
      outs(%z[m, p * 32 + n] : memref<64x256xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<order [p, m, k, n], vector [m = 4, n = 32] lanes n>} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  }
  return
}

// Threads divide the panels among themselves, so a thread reads the next one, too.
// THREADS-LABEL: func.func @threads(
// THREADS:         scf.parallel
// THREADS:           memref.prefetch
func.func @threads(%x: memref<64x256xf32>, %y: memref<8x256x16xf32>, %z: memref<64x128xf32>) {
  imap.generic (m, p, n)[k] domain: m in [0, 63], p in [0, 7], n in [0, 15], k in [0, 255] ins(%x[m, k], %y[p, k, n] : memref<64x256xf32>, memref<8x256x16xf32>)
      outs(%z[m, p * 16 + n] : memref<64x128xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<order [p, m, k, n], vector [m = 4, n = 16] lanes n>} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  }
  return
}
