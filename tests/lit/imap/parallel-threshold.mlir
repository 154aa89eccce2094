// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=0},convert-imap-to-scf{parallel=true parallel-threshold=17000 vector-bits=0}),canonicalize,cse)' | FileCheck %s
// RUN: not tc-opt %s --convert-imap-to-scf='vector-bits=many' 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: 'func.func' op 'vector-bits' expects a number

// 1000 points of a negation, and of a load and a store that count as eight operations each, are enough work; 999 are not.
// CHECK-LABEL: func.func @enough(
// CHECK:         scf.parallel
// CHECK-NOT:     scf.if
func.func @enough(%a: memref<1000xf32>, %o: memref<1000xf32>) {
  imap.generic (i) domain: i in [0, 999] ins(%a[i] : memref<1000xf32>) outs(%o[i] : memref<1000xf32>) {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    imap.yield %y : f32
  }
  return
}

// CHECK-LABEL: func.func @too_little(
// CHECK-NOT:     scf.parallel
// CHECK:         scf.for
func.func @too_little(%a: memref<999xf32>, %o: memref<999xf32>) {
  imap.generic (i) domain: i in [0, 998] ins(%a[i] : memref<999xf32>) outs(%o[i] : memref<999xf32>) {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    imap.yield %y : f32
  }
  return
}

// A vector holds four times as many bytes as floats.
// CHECK-LABEL: func.func @bytes(
// CHECK-NOT:     scf.parallel
// CHECK:         scf.for
func.func @bytes(%a: memref<3999xi8>, %o: memref<3999xi8>) {
  imap.generic (i) domain: i in [0, 3998] ins(%a[i] : memref<3999xi8>) outs(%o[i] : memref<3999xi8>) {
  ^bb0(%x: i8):
    %y = arith.addi %x, %x : i8
    imap.yield %y : i8
  }
  return
}

// Functions are more work than negations.
// CHECK-LABEL: func.func @function(
// CHECK:         scf.parallel
func.func @function(%a: memref<370xf32>, %o: memref<370xf32>) {
  imap.generic (i) domain: i in [0, 369] ins(%a[i] : memref<370xf32>) outs(%o[i] : memref<370xf32>) {
  ^bb0(%x: f32):
    %y = math.exp %x : f32
    imap.yield %y : f32
  }
  return
}

// Work that depends on sizes is compared when the program runs.
// CHECK-LABEL: func.func @dynamic(
// CHECK-DAG:     %[[THRESHOLD:.*]] = arith.constant 6.800000e+04 : f64
// CHECK-DAG:     %[[KNOWN:.*]] = arith.constant 6.800000e+01 : f64
// CHECK:         %[[POINTS:.*]] = arith.sitofp %{{.*}} : i64 to f64
// CHECK:         %[[WORK:.*]] = arith.mulf %[[POINTS]], %[[KNOWN]] : f64
// CHECK:         %[[IS_ENOUGH:.*]] = arith.cmpf oge, %[[WORK]], %[[THRESHOLD]] : f64
// CHECK:         scf.if %[[IS_ENOUGH]] {
// CHECK:           scf.parallel
// CHECK:         } else {
// CHECK-NOT:       scf.parallel
// CHECK:           scf.for
// CHECK:         }
func.func @dynamic(%a: memref<?x8xf32>, %o: memref<?x8xf32>, %m: index) {
  imap.generic (i, j){M} domain: i in [0, M - 1], j in [0, 7], M in [1, 2147483647]
    runtime(%m : index) ins(%a[i, j] : memref<?x8xf32>) outs(%o[i, j] : memref<?x8xf32>) {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    imap.yield %y : f32
  }
  return
}

// What is read again comes from the first cache, next to other operations: 2048 products and sums, 512 loads and 64
// stores are 8704 operations.
// CHECK-LABEL: func.func @again(
// CHECK-NOT:     scf.parallel
func.func @again(%a: memref<8x32xf32>, %b: memref<32x8xf32>, %o: memref<8x8xf32>) {
  imap.generic (i, j)[k] domain: i in [0, 7], j in [0, 7], k in [0, 31] ins(%a[i, k], %b[k, j] : memref<8x32xf32>, memref<32x8xf32>)
      outs(%o[i, j] : memref<8x8xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    imap.yield %z : f32
  }
  return
}
