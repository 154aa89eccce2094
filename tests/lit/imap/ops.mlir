// RUN: tc-opt %s | FileCheck %s
// The generic form and bytecode hold the same.
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-opt %s --emit-bytecode | tc-opt | FileCheck %s

// A matrix product of dynamic sizes.
// CHECK-LABEL: func.func @matmul(
// CHECK:       imap.generic (m, n)[k]{M, N, K} domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1], M in [1, 2147483647], N in [1, 2147483647], K in [1, 2147483647]
// CHECK-SAME:    runtime(%{{.*}}, %{{.*}}, %{{.*}} : index, index, index)
// CHECK-SAME:    ins(%{{.*}}[m, k], %{{.*}}[k, n] : tensor<?x?xf32>, tensor<?x?xf32>)
// CHECK-SAME:    outs(%{{.*}}[m, n] : tensor<?x?xf32>)
// CHECK-SAME:    fold [add f32] {
// CHECK-NEXT:  ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:    imap.yield %[[P]] : f32
// CHECK-NEXT:  } -> tensor<?x?xf32>
func.func @matmul(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>, %init: tensor<?x?xf32>, %M: index,
                  %N: index, %K: index) -> tensor<?x?xf32> {
  %c = imap.generic (m, n)[k]{M, N, K} domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1], M in [1, 2147483647], N in [1, 2147483647], K in [1, 2147483647]
    runtime(%M, %N, %K : index, index, index)
    ins(%A[m, k], %B[k, n] : tensor<?x?xf32>, tensor<?x?xf32>)
    outs(%init[m, n] : tensor<?x?xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<?x?xf32>
  return %c : tensor<?x?xf32>
}

// Two results, an epilogue, attributes, and neither inputs nor runtime variables.
// CHECK-LABEL: func.func @epilogue(
// CHECK:       imap.generic (i)[k] domain: i in [0, 3], k in [0, 7], i + k in [0, 5]
// CHECK-SAME:    outs(%{{.*}}, %{{.*}} : tensor<4xi32>, tensor<4xf64>)
// CHECK-SAME:    fold [maxs i32 from outs 0, mul f64]
// CHECK-SAME:    attributes {note = "kept"} {
// CHECK-NEXT:    %[[K:.*]] = imap.index range 0
// CHECK-NEXT:    %[[I:.*]] = imap.index dim 0
// CHECK:       } epilogue {
// CHECK-NEXT:  ^bb0(%[[MAX:.*]]: i32, %[[PRODUCT:.*]]: f64):
// CHECK-NEXT:    %[[ROOT:.*]] = imap.builtin "sqrt"(%[[PRODUCT]]) : f64
// CHECK-NEXT:    imap.yield %[[MAX]], %[[ROOT]] : i32, f64
// CHECK-NEXT:  } -> tensor<4xi32>, tensor<4xf64>
func.func @epilogue(%a: tensor<4xi32>, %b: tensor<4xf64>) -> (tensor<4xi32>, tensor<4xf64>) {
  %0:2 = imap.generic (i)[k] domain: i in [0, 3], k in [0, 7], i + k in [0, 5]
    outs(%a[i], %b[i] : tensor<4xi32>, tensor<4xf64>) fold [maxs i32 from outs 0, mul f64] attributes {note = "kept"} {
    %k = imap.index range 0
    %i = imap.index dim 0
    %s = arith.addi %i, %k : index
    %x = arith.index_cast %s : index to i32
    %y = arith.sitofp %x : i32 to f64
    imap.yield %x, %y : i32, f64
  } epilogue {
  ^bb0(%max: i32, %product: f64):
    %root = imap.builtin "sqrt"(%product) : f64
    imap.yield %max, %root : i32, f64
  } -> tensor<4xi32>, tensor<4xf64>
  return %0#0, %0#1 : tensor<4xi32>, tensor<4xf64>
}

// A start that is a constant, and accumulators that the epilogue maps to another type.
// CHECK-LABEL: func.func @mean(
// CHECK:       imap.generic (i)[k] domain: i in [0, 3], k in [0, 7] ins(%{{.*}}[i, k] : tensor<4x8xf32>) outs(%{{.*}}[i] : tensor<4xbf16>) fold [add f32 from 5.000000e-01, add i32] {
// CHECK:       } epilogue {
// CHECK-NEXT:  ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: f32):
// CHECK:       } -> tensor<4xbf16>
func.func @mean(%x: tensor<4x8xf32>, %e: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = imap.generic (i)[k] domain: i in [0, 3], k in [0, 7]
      ins(%x[i, k] : tensor<4x8xf32>) outs(%e[i] : tensor<4xbf16>) fold [add f32 from 0.5, add i32] {
  ^bb0(%a: f32):
    %one = arith.constant 1 : i32
    imap.yield %a, %one : f32, i32
  } epilogue {
  ^bb0(%sum: f32, %count: i32, %a: f32):
    %n = arith.sitofp %count : i32 to f32
    %mean = arith.divf %sum, %n : f32
    %half = arith.truncf %mean : f32 to bf16
    imap.yield %half : bf16
  } -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// On buffers there are no results; a look-up table is a runtime variable with a map.
// CHECK-LABEL: func.func @lookup(
// CHECK:       imap.generic (i){row} domain: i in [0, 3], row in [0, 9]
// CHECK-SAME:    runtime(%{{.*}}[i] : memref<4xi32>) ins(%{{.*}}[row] : memref<10xf32>) outs(%{{.*}}[i] : memref<4xf32, strided<[2], offset: ?>>)
// CHECK:         imap.yield %{{.*}} : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  return
func.func @lookup(%rows: memref<4xi32>, %table: memref<10xf32>,
                  %out: memref<4xf32, strided<[2], offset: ?>>) {
  imap.generic (i){row} domain: i in [0, 3], row in [0, 9]
    runtime(%rows[i] : memref<4xi32>) ins(%table[row] : memref<10xf32>)
    outs(%out[i] : memref<4xf32, strided<[2], offset: ?>>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// CHECK-LABEL: func.func @scalars(
// CHECK:         %{{.*}}:2 = imap.apply <(d0)[s0]{rt0} -> ((d0 + s0 * 2) / 3, rt0 mod 4)>(%{{.*}}, %{{.*}}, %{{.*}}) : index, index
// CHECK:         imap.apply <() -> ()>()
// CHECK:         imap.builtin "fma"(%{{.*}}, %{{.*}}, %{{.*}}) : f16
// CHECK:         imap.check %{{.*}}, "N <= M"
func.func @scalars(%i: index, %j: index, %n: index, %x: f16, %c: i1) -> (index, index, f16) {
  %0:2 = imap.apply #imap.map<(d0)[s0]{rt0} -> ((d0 + s0 * 2) floordiv 3, rt0 mod 4)>(%i, %j, %n) : index, index
  imap.apply #imap.map<() -> ()>()
  %y = imap.builtin "fma"(%x, %x, %x) : f16
  imap.check %c, "N <= M"
  return %0#0, %0#1, %y : index, index, f16
}

// Maps are printed in canonical form: `floordiv` as XLA does, needless parentheses not at all.
// CHECK-LABEL: func.func private @maps()
// CHECK-SAME:    combiner = #imap.combiner<minu>
// CHECK-SAME:    constraint = #imap.map<(i)[k] -> (i + k), domain: i in [0, 9], k in [0, 2], i + k in [1, 8]>
// CHECK-SAME:    division = #imap.map<(d0) -> ((d0 + 1) / 2, d0 mod 3)>
// CHECK-SAME:    empty = #imap.map<() -> ()>
// CHECK-SAME:    kind = #imap<variable range>
// CHECK-SAME:    negative = #imap.map<(d0) -> (-d0 - 7), domain: d0 in [-10, -1]>
func.func private @maps() attributes {
  constraint = #imap.map<(i)[k] -> ((i + k)), domain: i in [0, 9], k in [0, 2], i + k in [1, 8]>,
  division = #imap.map<(d0) -> ((d0 + 1) floordiv 2, d0 mod 3)>,
  negative = #imap.map<(d0) -> (-d0 - 7), domain: d0 in [-10, -1]>,
  empty = #imap.map<() -> ()>,
  combiner = #imap.combiner<minu>,
  kind = #imap<variable range>}
