// RUN: tc-opt %s --copy-shared-destinations | FileCheck %s

// Returned as well: the sum needs memory of its own.
// CHECK-LABEL: func.func @read_later(
// CHECK:         %[[A:.*]] = imap.generic
// CHECK:         %[[C:.*]] = bufferization.alloc_tensor() copy(%[[A]])
// CHECK:         imap.generic {{.*}} outs(%[[C]] :
func.func @read_later(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %a = imap.generic <(d0) -> (), domain: d0 in [0, 3]> ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) maps [#imap.map<(d0) -> (d0)>, #imap.map<(d0) -> (d0)>] combine [#imap.combiner<assign>] {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %b = imap.generic <(d0) -> (), domain: d0 in [0, 3]> ins(%x : tensor<4xf32>) outs(%a : tensor<4xf32>) maps [#imap.map<(d0) -> (d0)>, #imap.map<(d0) -> (d0)>] combine [#imap.combiner<add>] {
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
  %a = imap.generic <(d0) -> (), domain: d0 in [0, 3]> ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) maps [#imap.map<(d0) -> (d0)>, #imap.map<(d0) -> (d0)>] combine [#imap.combiner<assign>] {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %first = tensor.extract %a[%c0] : tensor<4xf32>
  %b = imap.generic <(d0) -> (), domain: d0 in [0, 3]> ins(%x : tensor<4xf32>) outs(%a : tensor<4xf32>) maps [#imap.map<(d0) -> (d0)>, #imap.map<(d0) -> (d0)>] combine [#imap.combiner<add>] {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  return %first, %b : f32, tensor<4xf32>
}
