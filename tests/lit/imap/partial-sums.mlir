// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=256},imap-vectorize{vector-bits=256},convert-imap-to-scf{vector-bits=256}),canonicalize,cse)' | FileCheck %s
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=256 strict-fp=true},imap-vectorize{vector-bits=256 strict-fp=true},convert-imap-to-scf{vector-bits=256 strict-fp=true}),canonicalize,cse)' | FileCheck %s --check-prefix=STRICT

// A sum of at most 16 strips is one block: strips of 100 rows are added from zero.
// CHECK-LABEL: func.func @columns(
// CHECK-DAG:     %[[STRIP:.*]] = arith.constant 100 : index
// CHECK:         %[[SUM:.*]] = scf.for %[[FIRST:.*]] = %{{.*}} to %{{.*}} step %[[STRIP]] iter_args(%[[BLOCK:.*]] = %{{.*}}) -> (vector<8xf32>) {
// CHECK:           %[[ROWS:.*]] = scf.for %{{.*}} = %[[FIRST]] to %{{.*}} iter_args(%{{.*}} = %cst{{.*}}) -> (vector<8xf32>) {
// CHECK:             arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : vector<8xf32>
// CHECK:           }
// CHECK:           %[[NEXT:.*]] = arith.addf %[[BLOCK]], %[[ROWS]] : vector<8xf32>
// CHECK:           scf.yield %[[NEXT]] : vector<8xf32>
// CHECK:         }
// CHECK:         %[[LAST:.*]] = arith.addf %[[SUM]], %cst : vector<8xf32>
// CHECK:         vector.store %[[LAST]]

// STRICT-LABEL: func.func @columns(
// STRICT:         scf.for
// STRICT-NOT:       scf.for
// STRICT:             arith.addf %{{.*}}, %{{.*}} : vector<8xf32>
// STRICT-NOT:     scf.for
// STRICT:       }
func.func @columns(%a: memref<1000x8xf32>, %s: memref<8xf32>) {
  imap.generic (n)[m] domain: n in [0, 7], m in [0, 999]
    ins(%a[m, n] : memref<1000x8xf32>) outs(%s[n] : memref<8xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// Of several blocks the rounding errors are added as well, each 16 strips. A sum that is not
// finite has no error.
// CHECK-LABEL: func.func @blocks(
// CHECK:         scf.for
// CHECK:           %[[STRIP:.*]] = scf.for
// CHECK:           %[[BLOCK:.*]] = arith.addf %{{.*}}, %[[STRIP]] : vector<8xf32>
// CHECK:           %[[IS_FULL:.*]] = arith.cmpi eq, %{{.*}}, %c0 : index
// CHECK:           arith.select %[[IS_FULL]], %cst, %[[BLOCK]] : vector<8xf32>
// CHECK:           scf.if %[[IS_FULL]] -> (vector<8xf32>, vector<8xf32>) {
// CHECK:             %[[TOTAL:.*]] = arith.addf %[[SUM:.*]], %[[BLOCK]] : vector<8xf32>
// CHECK:             %[[ADDED:.*]] = arith.subf %[[TOTAL]], %[[SUM]] : vector<8xf32>
// CHECK:             %[[KEPT:.*]] = arith.subf %[[TOTAL]], %[[ADDED]] : vector<8xf32>
// CHECK-DAG:         %[[LOST:.*]] = arith.subf %[[SUM]], %[[KEPT]] : vector<8xf32>
// CHECK-DAG:         arith.subf %[[BLOCK]], %[[ADDED]] : vector<8xf32>
// CHECK:         scf.yield
// CHECK:         scf.yield
// CHECK:         scf.yield
// CHECK:         %[[IS_NUMBER:.*]] = arith.cmpf ord, %[[ERROR:.*]], %[[ERROR]] : vector<8xf32>
// CHECK:         arith.select %[[IS_NUMBER]], %{{.*}} : vector<8xi1>, vector<8xf32>
func.func @blocks(%a: memref<10000x8xf32>, %s: memref<8xf32>) {
  imap.generic (n)[m] domain: n in [0, 7], m in [0, 9999]
    ins(%a[m, n] : memref<10000x8xf32>) outs(%s[n] : memref<8xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// Loops of unknown length are one strip until they have 64 terms together.
// CHECK-LABEL: func.func @dynamic(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:             %[[IS_LONG:.*]] = arith.cmpi sge, %{{.*}}, %c64 : index
// CHECK:             scf.if %[[IS_LONG]]
func.func @dynamic(%a: memref<?x?x8xf32>, %s: memref<8xf32>, %m: index, %k: index) {
  imap.generic (n)[i, j]{M, K} domain: n in [0, 7], i in [0, M - 1], j in [0, K - 1], M in [1, 100000], K in [1, 100000]
    runtime(%m, %k : index, index)
    ins(%a[i, j, n] : memref<?x?x8xf32>) outs(%s[n] : memref<8xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// Sums of integers are exact, and short sums stay as they are.
// CHECK-LABEL: func.func @others(
// CHECK:         scf.for %{{.*}} = %c0 to %c1000
// CHECK-NOT:     scf.for
// CHECK:         }
// CHECK:         scf.for %{{.*}} = %c0 to %c128
// CHECK-NOT:     scf.for
// CHECK:       }
func.func @others(%a: memref<1000x8xi32>, %s: memref<8xi32>, %b: memref<128x8xf32>, %t: memref<8xf32>) {
  imap.generic (n)[m] domain: n in [0, 7], m in [0, 999]
    ins(%a[m, n] : memref<1000x8xi32>) outs(%s[n] : memref<8xi32>) fold [add i32] {
  ^bb0(%x: i32):
    imap.yield %x : i32
  }
  imap.generic (n)[m] domain: n in [0, 7], m in [0, 127]
    ins(%b[m, n] : memref<128x8xf32>) outs(%t[n] : memref<8xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}
