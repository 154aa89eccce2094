// RUN: tc-opt %s --copy-shared-destinations | FileCheck %s

// Returned as well: the sum needs memory of its own.
// CHECK-LABEL: func.func @read_later(
// CHECK:         %[[A:.*]] = imap.generic
// CHECK:         %[[C:.*]] = bufferization.alloc_tensor() copy(%[[A]])
// CHECK:         imap.generic {{.*}} outs(%[[C]][{{.*}}] :
func.func @read_later(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%empty[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %b = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%a[d0] : tensor<4xf32>) fold [add f32 from outs 0] {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @read_before(
// CHECK-NOT:     alloc_tensor
// CHECK:         return
func.func @read_before(%x: tensor<4xf32>) -> (f32, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %empty = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%empty[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %first = tensor.extract %a[%c0] : tensor<4xf32>
  %b = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%a[d0] : tensor<4xf32>) fold [add f32 from outs 0] {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  return %first, %b : f32, tensor<4xf32>
}

// An operation that stores all elements without reading any gets a new destination.
// CHECK-LABEL: func.func @overwritten(
// CHECK:         %[[A:.*]] = imap.generic
// CHECK-NOT:     alloc_tensor
// CHECK:         %[[EMPTY:.*]] = tensor.empty(%{{.*}})
// CHECK:         imap.generic {{.*}} outs(%[[EMPTY]][{{.*}}] :
func.func @overwritten(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?xf32>
  %a = imap.generic (i){N} domain: i in [0, N - 1], N in [0, inf] runtime(%N : index) outs(%x[i] : tensor<?xf32>) {
    %one = arith.constant 1.0 : f32
    imap.yield %one : f32
  } -> tensor<?xf32>
  %M = tensor.dim %a, %c0 : tensor<?xf32>
  %b = imap.generic (i){M} domain: i in [0, M - 1], M in [0, inf] runtime(%M : index) ins(%x[i] : tensor<?xf32>) outs(%a[i] : tensor<?xf32>) fold [add f32] {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<?xf32>
  return %a, %b : tensor<?xf32>, tensor<?xf32>
}

// The tensor that one branch passes on is read later, and the other branch computes one in its place.
// CHECK-LABEL: func.func @passed_on(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>
// CHECK:         scf.if
// CHECK:           %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[X]])
// CHECK:           scf.yield %[[COPY]]
func.func @passed_on(%x: tensor<4xf32>, %p: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = scf.if %p -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    %empty = tensor.empty() : tensor<4xf32>
    %c = imap.generic (d0) domain: d0 in [0, 3] ins(%x[3 - d0] : tensor<4xf32>) outs(%empty[d0] : tensor<4xf32>) {
    ^bb0(%in: f32):
      imap.yield %in : f32
    } -> tensor<4xf32>
    scf.yield %c : tensor<4xf32>
  }
  return %r, %x : tensor<4xf32>, tensor<4xf32>
}

// One branch yields a tensor twice, and the other one two tensors: the results have a buffer each.
// CHECK-LABEL: func.func @twice(
// CHECK:         scf.if
// CHECK:           %[[C:.*]] = imap.generic
// CHECK:           %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[C]])
// CHECK:           scf.yield %[[COPY]], %[[C]]
func.func @twice(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = scf.if %p -> (tensor<4xf32>, tensor<4xf32>) {
    %empty = tensor.empty() : tensor<4xf32>
    %c = imap.generic (d0) domain: d0 in [0, 3] ins(%x[3 - d0] : tensor<4xf32>) outs(%empty[d0] : tensor<4xf32>) {
    ^bb0(%in: f32):
      imap.yield %in : f32
    } -> tensor<4xf32>
    scf.yield %c, %c : tensor<4xf32>, tensor<4xf32>
  } else {
    scf.yield %x, %y : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// A loop updates what it starts from, which is returned as well.
// CHECK-LABEL: func.func @carried(
// CHECK:         %[[A:.*]] = imap.generic
// CHECK:         %[[C:.*]] = bufferization.alloc_tensor() copy(%[[A]])
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[C]])
func.func @carried(%x: tensor<4xf32>, %n: index) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%empty[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> tensor<4xf32> {
    %b = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%t[d0] : tensor<4xf32>) fold [add f32 from outs 0] {
    ^bb0(%in: f32):
      imap.yield %in : f32
    } -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %a, %r : tensor<4xf32>, tensor<4xf32>
}
