// RUN: tc-opt %s --transform-interpreter --split-input-file --verify-diagnostics

module attributes {transform.with_named_sequence} {
func.func @identity(%x: tensor<6x40xi32>) -> tensor<6xi32> {
  %e = tensor.empty() : tensor<6xi32>
  // expected-error @below {{cannot tile range 'j': an accumulator does not start from its destination, so that every tile would give a final value; fold from the destination and make the epilogue an operation of its own}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r = imap.generic (i)[j] domain: i in [0, 5], j in [0, 39]
      ins(%x[i, j] : tensor<6x40xi32>) outs(%e[i] : tensor<6xi32>) fold [add i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<6xi32>
  return %r : tensor<6xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

module attributes {transform.with_named_sequence} {
func.func @other_destination(%x: tensor<6x40xi32>, %p: tensor<6xi32>, %q: tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>) {
  // expected-error @below {{cannot tile range 'j': an accumulator does not start from its destination}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r:2 = imap.generic (i)[j] domain: i in [0, 5], j in [0, 39]
      ins(%x[i, j] : tensor<6x40xi32>) outs(%p[i], %q[i] : tensor<6xi32>, tensor<6xi32>)
      fold [add i32 from outs 1, maxs i32 from outs 0] {
  ^bb0(%a: i32):
    imap.yield %a, %a : i32, i32
  } -> tensor<6xi32>, tensor<6xi32>
  return %r#0, %r#1 : tensor<6xi32>, tensor<6xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

module attributes {transform.with_named_sequence} {
func.func @epilogue(%x: tensor<6x40xi32>, %y: tensor<6xi32>) -> tensor<6xi32> {
  // expected-error @below {{cannot tile range 'j': there is an epilogue, so that every tile would give a final value}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r = imap.generic (i)[j] domain: i in [0, 5], j in [0, 39]
      ins(%x[i, j] : tensor<6x40xi32>) outs(%y[i] : tensor<6xi32>) fold [add i32 from outs 0] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } epilogue {
  ^bb0(%s: i32, %a: i32):
    %d = arith.addi %s, %s : i32
    imap.yield %d : i32
  } -> tensor<6xi32>
  return %r : tensor<6xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

module attributes {transform.with_named_sequence} {
func.func @ragged(%x: tensor<17x6xi32>, %len: tensor<17xi8>, %y: tensor<17xi32>) -> tensor<17xi32> {
  // expected-error @below {{cannot tile 'j': its bounds depend on data}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r = imap.generic (i)[j]{n} domain: i in [0, 16], j in [0, n - 1], n in [0, 6]
      runtime(%len[i] : tensor<17xi8>) ins(%x[i, j] : tensor<17x6xi32>) outs(%y[i] : tensor<17xi32>) fold [add i32 from outs 0] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<17xi32>
  return %r : tensor<17xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [0, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

// Two tiles along j store the same elements.
module attributes {transform.with_named_sequence} {
func.func @sequential(%x: tensor<8x3xi32>, %y: tensor<10xi32>) -> tensor<10xi32> {
  // expected-warning @below {{tiling is not thread safe at axis #1}}
  %r = imap.generic (i, j) domain: i in [0, 7], j in [0, 2]
      ins(%x[i, j] : tensor<8x3xi32>) outs(%y[i + j] : tensor<10xi32>) fold [add i32 from outs 0] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<10xi32>
  return %r : tensor<10xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_forall %g tile_sizes [0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

module attributes {transform.with_named_sequence} {
func.func @buffers(%x: memref<8xi32>, %y: memref<8xi32>) {
  // expected-error @below {{cannot tile an operation on buffers; tile before bufferization}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  imap.generic (i) domain: i in [0, 7]
      ins(%x[i] : memref<8xi32>) outs(%y[i] : memref<8xi32>) {
  ^bb0(%a: i32):
    imap.yield %a : i32
  }
  return
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.generic"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

module attributes {transform.with_named_sequence} {
func.func @scanned(%x: tensor<6x40xi32>) -> tensor<6x40xi32> {
  %e = tensor.empty() : tensor<6x40xi32>
  // expected-error @below {{cannot tile 't': the scan goes along it; tile other dimensions}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r = imap.scan (i, t) domain: i in [0, 5], t in [0, 39] scan t inclusive
      ins(%x[i, t] : tensor<6x40xi32>) outs(%e[i, t] : tensor<6x40xi32>) fold [add i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<6x40xi32>
  return %r : tensor<6x40xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.scan"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

// In tiles of 'j', the updates of one element would be done in the order of 'j' first.
module attributes {transform.with_named_sequence} {
func.func @reordered(%x: tensor<6x40xi32>, %y: tensor<45xi32>) -> tensor<45xi32> {
  // expected-error @below {{cannot tile 'j': updates of one element would change their order; tile plain subscripts of the destinations, or the first of the other variables}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r = imap.scatter (i, j) domain: i in [0, 5], j in [0, 39]
      ins(%x[i, j] : tensor<6x40xi32>) outs(%y[i + j] : tensor<45xi32>) {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<45xi32>
  return %r : tensor<45xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.scatter"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}

// -----

module attributes {transform.with_named_sequence} {
func.func @sorted(%x: tensor<6x40xi32>) -> tensor<6x40xi32> {
  %e = tensor.empty() : tensor<6x40xi32>
  // expected-error @below {{cannot tile dimension 1: the sort goes along it; tile other dimensions}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %r = imap.sort dim = 1 ins(%x : tensor<6x40xi32>) outs(%e : tensor<6x40xi32>) {
  ^bb0(%a: i32, %b: i32):
    %less = arith.cmpi slt, %a, %b : i32
    imap.yield %less : i1
  } -> tensor<6x40xi32>
  return %r : tensor<6x40xi32>
}
transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %g = transform.structured.match ops{["imap.sort"]} in %root : (!transform.any_op) -> !transform.any_op
  %t, %l = transform.structured.tile_using_for %g tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}
}
