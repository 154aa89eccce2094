// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(convert-imap-to-scf{vector-bits=0},canonicalize))' | FileCheck %s

// What the row decides is tested before the loop along it, which is split where the other condition
// begins and ceases to hold.
// CHECK-LABEL: func.func @pad
// CHECK-DAG:     %[[FILL:.*]] = arith.constant 5.000000e-01 : f32
// CHECK:         scf.for %[[I:.*]] = %c0 to %c10
// CHECK-DAG:       arith.cmpi sge, %[[I]], %c1
// CHECK-DAG:       arith.cmpi sle, %[[I]], %c8
// CHECK:           scf.if
// CHECK-NEXT:        scf.for %{{.*}} = %c0 to %c2 step
// CHECK-NEXT:          memref.store %[[FILL]]
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.for %{{.*}} = %c2 to %c42 step
// CHECK:               %[[A:.*]] = memref.load
// CHECK-NEXT:          memref.store %[[A]]
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.for %{{.*}} = %c42 to %c45 step
// CHECK-NEXT:          memref.store %[[FILL]]
// CHECK-NEXT:        }
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.for %{{.*}} = %c0 to %c45 step
// CHECK-NEXT:          memref.store %[[FILL]]
// CHECK-NEXT:        }
func.func @pad(%x: memref<8x40xf32>, %y: memref<10x45xf32>) {
  imap.generic (i, j) domain: i in [0, 9], j in [0, 44]
      ins(%x[i - 1, j - 2] where i in [1, 8] and j - 2 in [0, 39] else 0.5 : memref<8x40xf32>) outs(%y[i, j] : memref<10x45xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// One load of an index and one test per row.
// CHECK-LABEL: func.func @embedding
// CHECK:         scf.for %[[T:.*]] =
// CHECK:           memref.load %{{.*}}[%[[T]]] : memref<30xi32>
// CHECK-COUNT-2:   arith.cmpi
// CHECK:           scf.if
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          memref.load
// CHECK-NEXT:          memref.store
// CHECK-NEXT:        }
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          memref.store
// CHECK-NOT:       memref.load
func.func @embedding(%table: memref<9x64xf32>, %ids: memref<30xi32>, %y: memref<30x64xf32>) {
  imap.generic (t, d){r} domain: t in [0, 29], d in [0, 63] runtime(%ids[t] : memref<30xi32>)
      ins(%table[r, d] where r in [0, 8] : memref<9x64xf32>) outs(%y[t, d] : memref<30x64xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// Short loops test each element. The condition of the body is that of the guard.
// CHECK-LABEL: func.func @short
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK:             memref.load
// CHECK:           } else {
// CHECK-NEXT:        scf.yield
// CHECK:           %[[E:.*]] = math.exp %[[A]]
// CHECK-NEXT:      %[[R:.*]] = arith.select %{{.*}}, %[[E]],
// CHECK-NEXT:      memref.store %[[R]]
func.func @short(%x: memref<3xf32>, %y: memref<5xf32>) {
  imap.generic (i) domain: i in [0, 4]
      ins(%x[i - 1] where i in [1, 3] : memref<3xf32>) outs(%y[i] : memref<5xf32>) {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %e = math.exp %a : f32
    %in = imap.inside (d0 in [1, 3]) : i1
    %r = arith.select %in, %e, %one : f32
    imap.yield %r : f32
  }
  return
}
