// RUN: tc-opt %s --canonicalize --cse --split-input-file | FileCheck %s

// imap.apply of constants folds; division rounds down.
// CHECK-LABEL: func.func @apply_constants
// CHECK-DAG:     %[[DIV:.*]] = arith.constant -4 : index
// CHECK-DAG:     %[[MOD:.*]] = arith.constant 1 : index
// CHECK-NOT:     imap.apply
// CHECK:         return %[[DIV]], %[[MOD]] : index, index
func.func @apply_constants() -> (index, index) {
  %i = arith.constant -7 : index
  %0:2 = imap.apply #imap.map<(d0) -> (d0 floordiv 2, d0 mod 2)>(%i) : index, index
  return %0#0, %0#1 : index, index
}

// -----

// What has no value is left: a division by zero, and what exceeds 64 bits.
// CHECK-LABEL: func.func @apply_undefined
// CHECK-DAG:     imap.apply <(d0){rt0} -> (d0 / rt0)>
// CHECK-DAG:     imap.apply <(d0) -> (d0 * 2)>
func.func @apply_undefined() -> (index, index) {
  %zero = arith.constant 0 : index
  %large = arith.constant 9223372036854775807 : index
  %0 = imap.apply #imap.map<(d0){rt0} -> (d0 floordiv rt0)>(%large, %zero) : index
  %1 = imap.apply #imap.map<(d0) -> (d0 * 2)>(%large) : index
  return %0, %1 : index, index
}

// -----

// Equal values are computed once, unused ones not at all; a check stays.
// CHECK-LABEL: func.func @pure(
// CHECK-SAME:    %[[I:.*]]: index, %[[X:.*]]: f32, %[[C:.*]]: i1)
// CHECK-NEXT:    %[[J:.*]] = imap.apply <(d0) -> (d0 + 1)>(%[[I]]) : index
// CHECK-NEXT:    %[[Y:.*]] = imap.builtin "exp"(%[[X]]) : f32
// CHECK-NEXT:    imap.check %[[C]], "I < J"
// CHECK-NEXT:    return %[[J]], %[[J]], %[[Y]], %[[Y]] :
func.func @pure(%i: index, %x: f32, %c: i1) -> (index, index, f32, f32) {
  %0 = imap.apply #imap.map<(d0) -> (d0 + 1)>(%i) : index
  %1 = imap.apply #imap.map<(d0) -> (d0 + 1)>(%i) : index
  %unused = imap.apply #imap.map<(d0) -> (d0 + 2)>(%i) : index
  %2 = imap.builtin "exp"(%x) : f32
  %3 = imap.builtin "exp"(%x) : f32
  imap.check %c, "I < J"
  return %0, %1, %2, %3 : index, index, f32, f32
}

// -----

// A generic on tensors has no effects of its own: unused, it goes.
// CHECK-LABEL: func.func @unused_generic
// CHECK-NEXT:    return
func.func @unused_generic(%a: tensor<4xf32>) {
  %0 = imap.generic #imap.map<(i) -> (), domain: i in [0, 3]>
      ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>)
      maps [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>]
      combine [#imap.combiner<assign>] {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    imap.yield %y : f32
  } -> tensor<4xf32>
  return
}

// -----

// One on buffers writes.
// CHECK-LABEL: func.func @buffers
// CHECK:         imap.generic
func.func @buffers(%a: memref<4xf32>, %b: memref<4xf32>) {
  imap.generic #imap.map<(i) -> (), domain: i in [0, 3]>
      ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
      maps [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>]
      combine [#imap.combiner<assign>] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// -----

// Values from outside and equal values inside of a body.
// CHECK-LABEL: func.func @body
// CHECK:         ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT:      %[[Y:.*]] = imap.builtin "tanh"(%[[X]]) : f32
// CHECK-NEXT:      %[[Z:.*]] = arith.addf %[[Y]], %[[Y]] : f32
// CHECK-NEXT:      imap.yield %[[Z]] : f32
func.func @body(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = imap.generic #imap.map<(i) -> (), domain: i in [0, 3]>
      ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>)
      maps [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>]
      combine [#imap.combiner<assign>] {
  ^bb0(%x: f32):
    %y = imap.builtin "tanh"(%x) : f32
    %z = imap.builtin "tanh"(%x) : f32
    %s = arith.addf %y, %z : f32
    imap.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A cast of an operand becomes part of an operation, with and without an epilogue.
// CHECK-LABEL: func.func @casts(
// CHECK:         imap.generic {{.*}} runtime(%[[R:.*]] : tensor<1xi32>) ins(%[[X:.*]] : tensor<4xf32>) outs(%[[I:.*]] : tensor<4xf32>)
// CHECK:         imap.generic {{.*}} ins(%{{.*}} : tensor<4xf32>) outs(%[[O:.*]] : tensor<4xf32>)
// CHECK:         } epilogue {
// CHECK:         return %{{.*}} : tensor<4xf32>
func.func @casts(%r: tensor<1xi32>, %x: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %rd = tensor.cast %r : tensor<1xi32> to tensor<?xi32>
  %xd = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  %initd = tensor.cast %init : tensor<4xf32> to tensor<?xf32>
  %0 = imap.generic #imap.map<(i){r} -> (), domain: i in [0, 3], r in [0, 0]> runtime(%rd : tensor<?xi32>) ins(%xd : tensor<?xf32>) outs(%initd : tensor<?xf32>)
    maps [#imap.map<(i){r} -> (i + r)>, #imap.map<(i){r} -> (i)>, #imap.map<(i){r} -> (0)>] combine [#imap.combiner<assign>] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<?xf32>
  %1 = imap.generic #imap.map<(i) -> (), domain: i in [0, 3]> ins(%0 : tensor<?xf32>) outs(%initd : tensor<?xf32>)
    maps [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>] combine [#imap.combiner<add>] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32):
    imap.yield %s : f32
  } -> tensor<?xf32>
  %2 = tensor.cast %1 : tensor<?xf32> to tensor<4xf32>
  return %2 : tensor<4xf32>
}
