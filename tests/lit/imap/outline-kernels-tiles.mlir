// RUN: tc-opt %s --imap-outline-kernels="block-size=64" --canonicalize | FileCheck %s
// RUN: tc-opt %s --imap-outline-kernels="block-size=64 max-blocks=3" --canonicalize | FileCheck %s --check-prefix=FEW

// Independent loops over tiles are one kernel, with a block per tile. Two operations read the rows of %x, which are
// copied; one reads the rows of %w. What threads exchange in memory is not declared to be theirs alone.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[X:[^:]*]]: memref<10x300xf32>, %[[W:[^:]*]]: memref<10x300xf32>, %[[Y:[^:]*]]: memref<10x300xf32>)
// CHECK-NEXT:    %[[THREADS:.*]] = arith.constant 640 : index
// CHECK-NEXT:    imap.launch @kernels::@rows_0 threads(%[[THREADS]]) args(%[[X]], %[[W]], %[[Y]] :
// CHECK-NEXT:    return
// CHECK:       gpu.func @rows_0(%[[X:.*]]: memref<10x300xf32> {llvm.noalias}, %[[W:.*]]: memref<10x300xf32> {llvm.noalias}, %[[Y:[^:]*]]: memref<10x300xf32>) kernel
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK:           %[[ROW:.*]] = memref.subview %[[X]][%[[I]], 0]
// CHECK:           %[[OTHER:.*]] = memref.subview %[[W]][%[[I]], 0]
// CHECK:           %[[COPY:.*]] = memref.alloc() {{.*}} : memref<1x300xf32>
// CHECK:           imap.generic (d0, d1) {{.*}} ins(%[[ROW]][0, d1] : {{.*}}) outs(%[[COPY]][0, d1] :
// CHECK:           imap.generic {{.*}} ins(%[[COPY]][i, j] : memref<1x300xf32>) {{.*}} fold [add f32]
// CHECK:           imap.generic {{.*}} ins(%[[COPY]][i, j], %{{.*}}[i], %[[OTHER]][i, j] :
// CHECK:         gpu.return
// FEW:         arith.constant 192 : index
func.func @rows(%x: memref<10x300xf32>, %w: memref<10x300xf32>, %y: memref<10x300xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  scf.parallel (%i) = (%c0) to (%c10) step (%c1) {
    %row = memref.subview %x[%i, 0] [1, 300] [1, 1] : memref<10x300xf32> to memref<1x300xf32, strided<[300, 1], offset: ?>>
    %other = memref.subview %w[%i, 0] [1, 300] [1, 1] : memref<10x300xf32> to memref<1x300xf32, strided<[300, 1], offset: ?>>
    %out = memref.subview %y[%i, 0] [1, 300] [1, 1] : memref<10x300xf32> to memref<1x300xf32, strided<[300, 1], offset: ?>>
    %sum = memref.alloc() : memref<1xf32>
    imap.generic (i)[j] domain: i in [0, 0], j in [0, 299]
        ins(%row[i, j] : memref<1x300xf32, strided<[300, 1], offset: ?>>) outs(%sum[i] : memref<1xf32>) fold [add f32] {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    imap.generic (i, j) domain: i in [0, 0], j in [0, 299]
        ins(%row[i, j], %sum[i], %other[i, j] : memref<1x300xf32, strided<[300, 1], offset: ?>>, memref<1xf32>, memref<1x300xf32, strided<[300, 1], offset: ?>>)
        outs(%out[i, j] : memref<1x300xf32, strided<[300, 1], offset: ?>>) {
    ^bb0(%a: f32, %s: f32, %b: f32):
      %q = arith.divf %a, %s : f32
      %r = arith.mulf %q, %b : f32
      imap.yield %r : f32
    }
    scf.reduce
  }
  return
}
