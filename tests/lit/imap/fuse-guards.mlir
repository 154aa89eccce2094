// RUN: tc-opt --imap-fuse --canonicalize --cse %s | FileCheck %s
// RUN: tc-opt --imap-fuse --remarks-filter=imap-fuse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: tc-run %s --entry pad_of_map --check
// RUN: tc-run %s --entry map_of_pad --check
// RUN: tc-run %s --entry pad_of_pad --check
// RUN: tc-run %s --entry pads_of_other_constants --check
// RUN: tc-run %s --entry epilogue --check

// What is padded is computed from the constant where the guard fails, and not used.
// CHECK-LABEL: func.func @pad_of_map
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>)
// CHECK:         imap.generic (i) domain: i in [0, 9] ins(%[[X]][i - 1] where i in [1, 8] : tensor<8xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32):
// CHECK-NEXT:      %[[E:.*]] = math.exp %[[A]] : f32
// CHECK-NEXT:      %[[IN:.*]] = imap.inside (d0 in [1, 8]) : i1
// CHECK-NEXT:      %[[S:.*]] = arith.select %[[IN]], %[[E]], %{{.*}} : f32
// CHECK-NEXT:      imap.yield %[[S]] : f32
// CHECK-NOT:     imap.generic
func.func @pad_of_map(%x: tensor<8xf32>) -> tensor<10xf32> {
  %d = tensor.empty() : tensor<8xf32>
  %p = imap.generic (i) domain: i in [0, 7] ins(%x[i] : tensor<8xf32>) outs(%d[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    imap.yield %e : f32
  } -> tensor<8xf32>
  %e = tensor.empty() : tensor<10xf32>
  %y = imap.generic (i) domain: i in [0, 9] ins(%p[i - 1] where i in [1, 8] else 3.0 : tensor<8xf32>) outs(%e[i] : tensor<10xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<10xf32>
  return %y : tensor<10xf32>
}

// The guard of the producer, and what it tests, in the variables of the consumer.
// CHECK-LABEL: func.func @map_of_pad
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>, %[[Z:.*]]: tensor<4xf32>)
// CHECK:         imap.generic (i) domain: i in [0, 3] ins(%[[X]][i * 2 + 1] where i in [-1, 2] else 3.000000e+00, %[[Z]][i] :
// CHECK:           imap.inside (d0 in [2, 2]) : i1
// CHECK-NOT:     imap.generic
func.func @map_of_pad(%x: tensor<8xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %d = tensor.empty() : tensor<10xf32>
  %p = imap.generic (i) domain: i in [0, 9] ins(%x[i - 1] where i in [0, 7] and i in [1, 8] else 3.0 : tensor<8xf32>) outs(%d[i] : tensor<10xf32>) {
  ^bb0(%a: f32):
    %in = imap.inside (d0 in [5, 7]) : i1
    %n = arith.negf %a : f32
    %s = arith.select %in, %n, %a : f32
    imap.yield %s : f32
  } -> tensor<10xf32>
  %e = tensor.empty() : tensor<4xf32>
  %y = imap.generic (i) domain: i in [0, 3] ins(%p[i * 2 + 2], %z[i] : tensor<10xf32>, tensor<4xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    imap.yield %m : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @pad_of_pad
// CHECK:         imap.generic (i) domain: i in [0, 12] ins(%{{.*}}[i - 3] where i in [3, 10] : tensor<8xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32):
// CHECK-NEXT:      imap.yield %[[A]] : f32
func.func @pad_of_pad(%x: tensor<8xf32>) -> tensor<13xf32> {
  %d = tensor.empty() : tensor<10xf32>
  %p = imap.generic (i) domain: i in [0, 9] ins(%x[i - 1] where i in [1, 8] : tensor<8xf32>) outs(%d[i] : tensor<10xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<10xf32>
  %e = tensor.empty() : tensor<13xf32>
  %y = imap.generic (i) domain: i in [0, 12] ins(%p[i - 2] where i in [2, 11] : tensor<10xf32>) outs(%e[i] : tensor<13xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<13xf32>
  return %y : tensor<13xf32>
}

// The guard of the outer one goes into the body.
// CHECK-LABEL: func.func @pads_of_other_constants
// CHECK:         imap.generic (i) domain: i in [0, 12] ins(%{{.*}}[i - 3] where i in [3, 10] else 1.000000e+00 : tensor<8xf32>)
// CHECK:           imap.inside (d0 in [2, 11]) : i1
// CHECK-NOT:     imap.generic
func.func @pads_of_other_constants(%x: tensor<8xf32>) -> tensor<13xf32> {
  %d = tensor.empty() : tensor<10xf32>
  %p = imap.generic (i) domain: i in [0, 9] ins(%x[i - 1] where i in [1, 8] else 1.0 : tensor<8xf32>) outs(%d[i] : tensor<10xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<10xf32>
  %e = tensor.empty() : tensor<13xf32>
  %y = imap.generic (i) domain: i in [0, 12] ins(%p[i - 2] where i in [2, 11] else 2.0 : tensor<10xf32>) outs(%e[i] : tensor<13xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<13xf32>
  return %y : tensor<13xf32>
}

// A consumer with guards and conditions becomes an epilogue.
// CHECK-LABEL: func.func @epilogue
// CHECK:         imap.generic (i)[k] domain: i in [0, 5], k in [0, 7]
// CHECK-SAME:      %{{.*}}[i - 2] where i in [2, 5] else 4.000000e+00 :
// CHECK:           imap.inside (s0 in [1, 3]) : i1
// CHECK:         } epilogue {
// CHECK:           imap.inside (d0 in [1, 3]) : i1
// CHECK-NOT:     imap.generic
// CHECK-LABEL: func.func @reduction_of_pad
func.func @epilogue(%x: tensor<6x8xf32>, %b: tensor<4xf32>) -> tensor<6xf32> {
  %d = tensor.empty() : tensor<6xf32>
  %p = imap.generic (i)[k] domain: i in [0, 5], k in [0, 7] ins(%x[i, k] : tensor<6x8xf32>) outs(%d[i] : tensor<6xf32>) fold [add f32] {
  ^bb0(%a: f32):
    %in = imap.inside (s0 in [1, 3]) : i1
    %n = arith.negf %a : f32
    %s = arith.select %in, %n, %a : f32
    imap.yield %s : f32
  } -> tensor<6xf32>
  %e = tensor.empty() : tensor<6xf32>
  %y = imap.generic (i) domain: i in [0, 5] ins(%p[i], %b[i - 2] where i in [2, 5] else 4.0 : tensor<6xf32>, tensor<4xf32>) outs(%e[i] : tensor<6xf32>) {
  ^bb0(%a: f32, %c: f32):
    %in = imap.inside (d0 in [1, 3]) : i1
    %s = arith.select %in, %a, %c : f32
    imap.yield %s : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// REMARK-DAG: Function=reduction_of_pad{{.*}}Reason="the reduction would test the guards of the producer at each point"
func.func @reduction_of_pad(%x: tensor<8x64xf32>) -> tensor<66xf32> {
  %d = tensor.empty() : tensor<8x66xf32>
  %p = imap.generic (i, j) domain: i in [0, 7], j in [0, 65] ins(%x[i, j - 1] where j in [1, 64] : tensor<8x64xf32>) outs(%d[i, j] : tensor<8x66xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8x66xf32>
  %e = tensor.empty() : tensor<66xf32>
  %y = imap.generic (j)[i] domain: j in [0, 65], i in [0, 7] ins(%p[i, j] : tensor<8x66xf32>) outs(%e[j] : tensor<66xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<66xf32>
  return %y : tensor<66xf32>
}

// REMARK-DAG: Function=pad_of_reduction{{.*}}Reason="the consumer reads the reduction under a guard"
func.func @pad_of_reduction(%x: tensor<8x6xf32>) -> tensor<10xf32> {
  %d = tensor.empty() : tensor<8xf32>
  %p = imap.generic (i)[k] domain: i in [0, 7], k in [0, 5] ins(%x[i, k] : tensor<8x6xf32>) outs(%d[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %e = tensor.empty() : tensor<10xf32>
  %y = imap.generic (i) domain: i in [0, 9] ins(%p[i - 1] where i in [1, 8] : tensor<8xf32>) outs(%e[i] : tensor<10xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<10xf32>
  return %y : tensor<10xf32>
}

// REMARK-DAG: Function=pad_of_gather{{.*}}Reason="the producer reads indices, and the consumer reads it under a guard"
func.func @pad_of_gather(%x: tensor<9xf32>, %t: tensor<8xi32>) -> tensor<10xf32> {
  %d = tensor.empty() : tensor<8xf32>
  %p = imap.generic (i){r} domain: i in [0, 7], r in [0, 8] runtime(%t[i] : tensor<8xi32>) ins(%x[r] : tensor<9xf32>) outs(%d[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %e = tensor.empty() : tensor<10xf32>
  %y = imap.generic (i) domain: i in [0, 9] ins(%p[i - 1] where i in [1, 8] : tensor<8xf32>) outs(%e[i] : tensor<10xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<10xf32>
  return %y : tensor<10xf32>
}

// REMARK-DAG: Function=pad_of_quotient{{.*}}Reason="the body of the producer cannot run where the consumer does not read"
func.func @pad_of_quotient(%x: tensor<8xi32>, %z: tensor<8xi32>) -> tensor<10xi32> {
  %d = tensor.empty() : tensor<8xi32>
  %p = imap.generic (i) domain: i in [0, 7] ins(%x[i], %z[i] : tensor<8xi32>, tensor<8xi32>) outs(%d[i] : tensor<8xi32>) {
  ^bb0(%a: i32, %b: i32):
    %q = arith.divsi %a, %b : i32
    imap.yield %q : i32
  } -> tensor<8xi32>
  %e = tensor.empty() : tensor<10xi32>
  %y = imap.generic (i) domain: i in [0, 9] ins(%p[i - 1] where i in [1, 8] : tensor<8xi32>) outs(%e[i] : tensor<10xi32>) {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<10xi32>
  return %y : tensor<10xi32>
}
