// RUN: tc-opt %s --canonicalize --split-input-file | FileCheck %s

// A combiner folds the value with the index. Nothing uses the value: it has no destination.
// CHECK-LABEL: func.func @argmax_without_value
// CHECK:         %[[R:.*]] = imap.generic (i)[j] domain: i in [0, 63], j in [0, 999] ins(%{{.*}}[i, j] : tensor<64x1000xf32>) outs(%{{.*}}[i] : tensor<64xi32>) fold [f32 identity 0xFF800000, i32 identity 0] {
// CHECK:         } combine {
// CHECK:         } epilogue {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %[[I:.*]]: i32, %{{.*}}: f32):
// CHECK-NEXT:      imap.yield %[[I]] : i32
// CHECK-NEXT:    } -> tensor<64xi32>
// CHECK-NEXT:    return %[[R]] : tensor<64xi32>
func.func @argmax_without_value(%x: tensor<64x1000xf32>) -> tensor<64xi32> {
  %e = tensor.empty() : tensor<64xf32>
  %f = tensor.empty() : tensor<64xi32>
  %r:2 = imap.generic (i)[j] domain: i in [0, 63], j in [0, 999]
      ins(%x[i, j] : tensor<64x1000xf32>) outs(%e[i], %f[i] : tensor<64xf32>, tensor<64xi32>)
      fold [f32 identity 0xFF800000, i32 identity 0] {
  ^bb0(%a: f32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    imap.yield %a, %k : f32, i32
  } combine {
  ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
    %gt = arith.cmpf ogt, %v0, %v1 : f32
    %v = arith.select %gt, %v0, %v1 : f32
    %i = arith.select %gt, %i0, %i1 : i32
    imap.yield %v, %i : f32, i32
  } -> tensor<64xf32>, tensor<64xi32>
  return %r#1 : tensor<64xi32>
}

// -----

// Accumulators with names, and the inputs that only they read.
// CHECK-LABEL: func.func @named_accumulators
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<4x8xf32>)
// CHECK:         imap.generic (i)[j] domain: i in [0, 3], j in [0, 7] ins(%[[Y]][i, j] : tensor<4x8xf32>) outs(%{{.*}}[i] : tensor<4xf32>) fold [add f32] attributes {tag} {
// CHECK-NEXT:    ^bb0(%[[B:.*]]: f32):
// CHECK-NEXT:      imap.yield %[[B]] : f32
// CHECK-NEXT:    } -> tensor<4xf32>
func.func @named_accumulators(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %r:2 = imap.generic (i)[j] domain: i in [0, 3], j in [0, 7]
      ins(%x[i, j], %y[i, j] : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e[i], %f[i] : tensor<4xf32>, tensor<4xf32>)
      fold [maximumf f32, add f32] attributes {tag} {
  ^bb0(%a: f32, %b: f32):
    imap.yield %a, %b : f32, f32
  } -> tensor<4xf32>, tensor<4xf32>
  return %r#1 : tensor<4xf32>
}

// -----

// A destination that another accumulator starts from stays, with a new number.
// CHECK-LABEL: func.func @start_of_another
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32>, %{{.*}}: tensor<f32>, %[[B:.*]]: tensor<f32>, %[[C:.*]]: tensor<f32>)
// CHECK:         %[[R:.*]]:2 = imap.generic ()[j] domain: j in [0, 7] ins(%[[X]][j] : tensor<8xf32>) outs(%[[B]][], %[[C]][] : tensor<f32>, tensor<f32>) fold [add f32, mul f32 from outs 0] {
// CHECK:         return %[[R]]#1 : tensor<f32>
func.func @start_of_another(%x: tensor<8xf32>, %a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>) -> tensor<f32> {
  %r:3 = imap.generic ()[j] domain: j in [0, 7]
      ins(%x[j] : tensor<8xf32>) outs(%a[], %b[], %c[] : tensor<f32>, tensor<f32>, tensor<f32>)
      fold [minimumf f32, add f32, mul f32 from outs 1] {
  ^bb0(%v: f32):
    imap.yield %v, %v, %v : f32, f32, f32
  } -> tensor<f32>, tensor<f32>, tensor<f32>
  return %r#2 : tensor<f32>
}

// -----

// In map form, equal reads become one; reads under another condition do not.
// CHECK-LABEL: func.func @equal_reads
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32>)
// CHECK:         imap.generic (i) domain: i in [0, 7] ins(%[[X]][i], %[[X]][i - 1] where i in [1, 7] : tensor<8xf32>, tensor<8xf32>) outs(%{{.*}}[i] : tensor<8xf32>) {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[A]], %[[A]] : f32
// CHECK-NEXT:      %[[T:.*]] = arith.addf %[[S]], %[[B]] : f32
// CHECK-NEXT:      imap.yield %[[T]] : f32
func.func @equal_reads(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %r:2 = imap.generic (i) domain: i in [0, 7]
      ins(%x[i], %x[i], %x[i - 1] where i in [1, 7], %x[7 - i] : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
      outs(%e[i], %f[i] : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.addf %a, %b : f32
    %t = arith.addf %s, %c : f32
    imap.yield %d, %t : f32, f32
  } -> tensor<8xf32>, tensor<8xf32>
  return %r#1 : tensor<8xf32>
}

// -----

// On buffers only inputs go; an accumulator that the epilogue does not use goes, too.
// CHECK-LABEL: func.func @buffers
// CHECK-SAME:    %[[X:.*]]: memref<8xf32>, %[[Y:.*]]: memref<f32>)
// CHECK-NEXT:    imap.generic ()[j] domain: j in [0, 7] ins(%[[X]][j] : memref<8xf32>) outs(%[[Y]][] : memref<f32>) fold [add f32] {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32):
// CHECK-NEXT:      imap.yield %[[A]] : f32
// CHECK-NEXT:    } epilogue {
// CHECK-NEXT:    ^bb0(%[[S:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      imap.yield %[[S]] : f32
// CHECK-NEXT:    }
func.func @buffers(%x: memref<8xf32>, %y: memref<f32>) {
  imap.generic ()[j] domain: j in [0, 7]
      ins(%x[j], %x[7 - j] : memref<8xf32>, memref<8xf32>) outs(%y[] : memref<f32>) fold [maximumf f32, add f32] {
  ^bb0(%a: f32, %b: f32):
    imap.yield %b, %a : f32, f32
  } epilogue {
  ^bb0(%m: f32, %s: f32, %a: f32, %b: f32):
    imap.yield %s : f32
  }
  return
}

// -----

// A tensor of one constant number is that number, but not where a guard reads another one.
// CHECK-LABEL: func.func @constants(
// CHECK-DAG:     %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-DAG:     %[[TABLE:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-DAG:     %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<2xf32>
// CHECK:         imap.generic (i) domain: i in [0, 3] ins(%{{.*}}[i], %[[TABLE]][i / 2], %[[ONES]][i] where i in [0, 1] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
// CHECK-NEXT:      arith.mulf %[[A]], %[[HALF]]
func.func @constants(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = arith.constant dense<0.5> : tensor<f32>
  %table = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %ones = arith.constant dense<1.0> : tensor<2xf32>
  %e = tensor.empty() : tensor<4xf32>
  %y = imap.generic (i) domain: i in [0, 3] ins(%x[i], %half[], %table[i floordiv 2], %ones[i] where i in [0, 1] : tensor<4xf32>, tensor<f32>, tensor<2xf32>, tensor<2xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32, %h: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %h : f32
    %1 = arith.addf %0, %b : f32
    %2 = arith.addf %1, %c : f32
    imap.yield %2 : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A copy of a tensor is the tensor.
// CHECK-LABEL: func.func @copy
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32>)
// CHECK:         %[[N:.*]] = imap.generic (i, j) domain: i in [0, 3], j in [0, 7] ins(%[[X]][i, j] : tensor<4x8xf32>) outs(%{{.*}}[i, j] : tensor<4x8xf32>) {
// CHECK:         return %[[X]], %[[N]], %[[X]] :
func.func @copy(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %r:2 = imap.generic (i, j) domain: i in [0, 3], j in [0, 7]
      ins(%x[i, j] : tensor<4x8xf32>) outs(%e[i, j], %e[i, j] : tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    imap.yield %a, %n : f32, f32
  } -> tensor<4x8xf32>, tensor<4x8xf32>
  %c = imap.generic (i, j) domain: i in [0, 3], j in [0, 7]
      ins(%x[i, j] : tensor<4x8xf32>) outs(%e[i, j] : tensor<4x8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4x8xf32>
  return %r#0, %r#1, %c : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Copies of a part, to another place, in a tensor that is there, of unknown size, and under a guard stay.
// CHECK-LABEL: func.func @no_copy
// CHECK-COUNT-5: imap.generic
func.func @no_copy(%x: tensor<4xf32>, %y: tensor<4xf32>, %d: tensor<?xf32>, %n: index)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<?xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %part = imap.generic (i) domain: i in [0, 2] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %back = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[-i + 3] : tensor<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %into = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%y[i] : tensor<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %f = tensor.empty(%n) : tensor<?xf32>
  %dynamic = imap.generic (i){N} domain: i in [0, N - 1] runtime(%n : index) ins(%d[i] : tensor<?xf32>) outs(%f[i] : tensor<?xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<?xf32>
  %guarded = imap.generic (i) domain: i in [0, 3] ins(%x[i] where i in [1, 2] else 0.5 : tensor<4xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  return %part, %back, %into, %dynamic, %guarded : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<?xf32>, tensor<4xf32>
}
