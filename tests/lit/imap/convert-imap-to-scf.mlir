// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(convert-imap-to-scf{vector-bits=0}))' | FileCheck %s
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(convert-imap-to-scf{vector-bits=0 parallel=true}))' | FileCheck %s --check-prefix=PARALLEL

// Folded values live in registers; the epilogue runs once per element.
// CHECK-LABEL: func.func @row_sums
// CHECK:         scf.for
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32)
// CHECK:             arith.addf
// CHECK:           arith.negf
// CHECK:           memref.store
// CHECK-NOT:     imap.generic
// PARALLEL-LABEL: func.func @row_sums
// PARALLEL:         scf.parallel
// PARALLEL:           scf.for
func.func @row_sums(%a: memref<800x600xf32>, %o: memref<800xf32>) {
  imap.generic (i)[k] domain: i in [0, 799], k in [0, 599] ins(%a[i, k] : memref<800x600xf32>) outs(%o[i] : memref<800xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } epilogue {
  ^bb0(%sum: f32, %x: f32):
    %y = arith.negf %sum : f32
    imap.yield %y : f32
  }
  return
}

// An accumulation of subscripts starts from the least one.
// CHECK-LABEL: func.func @subscripts(
// CHECK:         %[[LEAST:.*]] = arith.constant -9223372036854775808 : index
// CHECK:         scf.for {{.*}} iter_args(%[[MAX:.*]] = %[[LEAST]])
// CHECK:           arith.maxsi %[[MAX]],
func.func @subscripts(%a: memref<4xindex>, %b: memref<index>) {
  imap.generic ()[i] domain: i in [0, 3] ins(%a[i] : memref<4xindex>) outs(%b[] : memref<index>) fold [maxs index] {
  ^bb0(%x: index):
    imap.yield %x : index
  }
  return
}
