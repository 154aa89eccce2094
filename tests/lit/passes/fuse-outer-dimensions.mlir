// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(fuse-outer-dimensions{min-bytes=1024}))' --split-input-file \
// RUN:   --remarks-filter=fuse-outer-dimensions 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: not tc-opt %s --pass-pipeline='builtin.module(func.func(fuse-outer-dimensions{min-bytes=x}))' --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OPTION
// OPTION: error: 'func.func' op 'min-bytes' expects a number
// REMARK:     remark: [Passed] fused | Category:fuse-outer-dimensions | Function=chain | BytesAfter=512, BytesBefore=2048, Operations=2
// REMARK-NOT: remark

// What is between two operations and does not depend on the first stands before the loop.
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    %[[M:[a-z0-9]+]]: memref<8x8xf64>, %[[U:[a-z0-9]+]]: memref<4x8x8xf64>, %[[V:[a-z0-9]+]]: memref<4x8x8xf64>, %[[N:[a-z0-9]+]]: memref<8x8xf64>
// CHECK:         %[[T:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x8xf64>
// CHECK:         imap.generic {{.*}} ins(%[[M]][{{.*}}] : memref<8x8xf64>) outs(%[[N]]
// CHECK:         scf.for %[[E:.*]] = %{{.*}} to %c4
// CHECK:           imap.generic (d0, d1)[s0]{rt0} domain: d0 in [0, 7], d1 in [0, 7], s0 in [0, 7], rt0 in [0, 3]
// CHECK-SAME:        runtime(%[[E]]
// CHECK-SAME:        ins(%[[M]][d0, s0], %[[U]][rt0, s0, d1]
// CHECK-SAME:        outs(%[[T]][d0, d1] : memref<8x8xf64>)
// CHECK:           imap.generic {{.*}} ins(%[[T]][{{.*}}], %[[N]]
// CHECK-SAME:        outs(%[[V]][{{.*}}] : memref<4x8x8xf64>)
// CHECK-NOT:     imap.generic
func.func @chain(%m: memref<8x8xf64>, %u: memref<4x8x8xf64>, %v: memref<4x8x8xf64>, %n: memref<8x8xf64>)
    attributes {tc.checks = []} {
  %t = memref.alloc() {alignment = 64 : i64} : memref<4x8x8xf64>
  imap.generic (d0, d1, d2)[s0] domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 7], s0 in [0, 7]
      ins(%m[d1, s0], %u[d0, s0, d2] : memref<8x8xf64>, memref<4x8x8xf64>) outs(%t[d0, d1, d2] : memref<4x8x8xf64>) fold [add f64] {
  ^bb0(%a: f64, %b: f64):
    %p = arith.mulf %a, %b : f64
    imap.yield %p : f64
  }
  imap.generic (d0, d1) domain: d0 in [0, 7], d1 in [0, 7]
      ins(%m[d1, d0] : memref<8x8xf64>) outs(%n[d0, d1] : memref<8x8xf64>) {
  ^bb0(%a: f64):
    imap.yield %a : f64
  }
  imap.generic (d0, d1, d2) domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 7]
      ins(%t[d0, d2, d1], %n[d1, d2] : memref<4x8x8xf64>, memref<8x8xf64>) outs(%v[d0, d1, d2] : memref<4x8x8xf64>) {
  ^bb0(%a: f64, %b: f64):
    %p = arith.mulf %a, %b : f64
    imap.yield %p : f64
  }
  return
}

// -----

// The second operation needs all that the first one gives.
// CHECK-LABEL: func.func @across
// CHECK-NOT:     scf.for
func.func @across(%u: memref<8x8x8xf64>, %v: memref<8x8x8xf64>) attributes {tc.checks = []} {
  %t = memref.alloc() : memref<8x8x8xf64>
  imap.generic (d0, d1, d2) domain: d0 in [0, 7], d1 in [0, 7], d2 in [0, 7]
      ins(%u[d0, d1, d2] : memref<8x8x8xf64>) outs(%t[d0, d1, d2] : memref<8x8x8xf64>) {
  ^bb0(%a: f64):
    imap.yield %a : f64
  }
  imap.generic (d0, d1, d2) domain: d0 in [0, 7], d1 in [0, 7], d2 in [0, 7]
      ins(%t[d1, d0, d2] : memref<8x8x8xf64>) outs(%v[d0, d1, d2] : memref<8x8x8xf64>) {
  ^bb0(%a: f64):
    imap.yield %a : f64
  }
  return
}
