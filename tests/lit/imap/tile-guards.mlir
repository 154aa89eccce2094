// RUN: tc-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s
//
// Guards and conditions in tiles. A test of the CPU backend compares the values.

module attributes {transform.with_named_sequence} {

// Guards and imap.inside refer to the offsets of the tile.
// CHECK-LABEL: func.func @padded(
// CHECK: scf.for %[[I:.*]] = %c0 to %c12 step %c5
// CHECK: scf.for %[[J:.*]] = %c0 to %c25 step %c8
// CHECK: imap.generic (i, j){i_offset, i_size, j_offset, j_size}
// CHECK-SAME: runtime(%[[I]], %{{[^,]*}}, %[[J]], %{{[^,]*}} :
// CHECK-SAME: ins(%{{.*}}[i + i_offset - 2, j + j_offset - 3] where i + i_offset in [2, 10] and j + j_offset in [3, 21] else 7 :
// CHECK: imap.inside (d0 + d1 + rt0 + rt2 in [4, inf]) : i1
func.func @padded(%x: tensor<9x19xi32>) -> tensor<12x25xi32> {
  %e = tensor.empty() : tensor<12x25xi32>
  %r = imap.generic (i, j) domain: i in [0, 11], j in [0, 24]
      ins(%x[i - 2, j - 3] where i in [2, 10] and j in [3, 21] else 7 : tensor<9x19xi32>) outs(%e[i, j] : tensor<12x25xi32>) attributes {padded} {
  ^bb0(%a: i32):
    %one = arith.constant 1 : i32
    %in = imap.inside (d0 + d1 in [4, inf]) : i1
    %s = arith.select %in, %a, %one : i32
    imap.yield %s : i32
  } -> tensor<12x25xi32>
  return %r : tensor<12x25xi32>
}

// The guard bounds the subscript, so that the tile of the producer is clamped to it.
// CHECK-LABEL: func.func @padded_fused(
// CHECK: scf.for
// CHECK: %[[P:.*]] = imap.generic
// CHECK: imap.generic {{.*}} where {{.*}} else -1 :
func.func @padded_fused(%x: tensor<9x19xi32>) -> tensor<12x25xi32> {
  %d = tensor.empty() : tensor<9x19xi32>
  %p = imap.generic (i, j) domain: i in [0, 8], j in [0, 18]
      ins(%x[i, j] : tensor<9x19xi32>) outs(%d[i, j] : tensor<9x19xi32>) {
  ^bb0(%a: i32):
    %s = arith.muli %a, %a : i32
    imap.yield %s : i32
  } -> tensor<9x19xi32>
  %e = tensor.empty() : tensor<12x25xi32>
  %r = imap.generic (i, j) domain: i in [0, 11], j in [0, 24]
      ins(%p[i - 2, j - 3] where i - 2 in [0, 8] and j - 3 in [0, 18] else -1 : tensor<9x19xi32>) outs(%e[i, j] : tensor<12x25xi32>) attributes {padded_fused} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<12x25xi32>
  return %r : tensor<12x25xi32>
}

// CHECK-LABEL: func.func @masked(
// CHECK: scf.for %[[T:.*]] = %c0 to %c23 step %c6
// CHECK: imap.generic (t, d){t_offset, t_size, r}
// CHECK-SAME: where t + t_offset in [1, 20] else 3 :
// CHECK-SAME: where r in [0, 5] :
// CHECK: imap.inside (rt2 in [2, 9]) : i1
func.func @masked(%table: tensor<6x11xi32>, %ids: tensor<23xi32>) -> tensor<23x11xi32> {
  %e = tensor.empty() : tensor<23x11xi32>
  %r = imap.generic (t, d){r} domain: t in [0, 22], d in [0, 10]
      runtime(%ids[t] where t in [1, 20] else 3 : tensor<23xi32>)
      ins(%table[r, d] where r in [0, 5] : tensor<6x11xi32>) outs(%e[t, d] : tensor<23x11xi32>) attributes {masked} {
  ^bb0(%a: i32):
    %one = arith.constant 1 : i32
    %in = imap.inside (rt0 in [2, 9]) : i1
    %s = arith.select %in, %a, %one : i32
    imap.yield %s : i32
  } -> tensor<23x11xi32>
  return %r : tensor<23x11xi32>
}

// A reduction in parts: ranges become dimensions, in guards and conditions, too. The epilogue keeps its own.
// CHECK-LABEL: func.func @parts(
// CHECK: scf.for %[[J:.*]] = %c0 to %c37 step %c8
// CHECK: imap.generic (i, j)
// CHECK-SAME: where i + j + j_offset in [2, 40] else 5 :
// CHECK: imap.inside (d1 + rt0 in [3, inf]) : i1
// CHECK: imap.generic (i)[j]
// CHECK-SAME: %{{.*}}[i - 2] where i in [2, inf] else 4 :
// CHECK: imap.inside (d0 in [-inf, 4]) : i1
func.func @parts(%x: tensor<6x37xi32>, %b: tensor<4xi32>, %y: tensor<6xi32>) -> tensor<6xi32> {
  %r = imap.generic (i)[j] domain: i in [0, 5], j in [0, 36]
      ins(%x[i, j] where i + j in [2, 40] else 5, %b[i - 2] where i in [2, inf] else 4 : tensor<6x37xi32>, tensor<4xi32>)
      outs(%y[i] : tensor<6xi32>) fold [add i32 from outs 0] attributes {parts} {
  ^bb0(%a: i32, %c: i32):
    %one = arith.constant 1 : i32
    %in = imap.inside (s0 in [3, inf]) : i1
    %s = arith.select %in, %a, %one : i32
    imap.yield %s : i32
  } epilogue {
  ^bb0(%s: i32, %a: i32, %c: i32):
    %in = imap.inside (d0 in [-inf, 4]) : i1
    %t = arith.addi %s, %c : i32
    %u = arith.select %in, %t, %s : i32
    imap.yield %u : i32
  } -> tensor<6xi32>
  return %r : tensor<6xi32>
}

// A guard that holds in the tile goes, and the constant with it.
// CHECK-LABEL: func.func @held(
// CHECK: scf.for
// CHECK: imap.generic (i) domain: i in [0, 3] ins(%{{.*}}[i] : tensor<4xi32>)
func.func @held(%x: tensor<16xi32>) -> tensor<16xi32> {
  %e = tensor.empty() : tensor<16xi32>
  %r = imap.generic (i) domain: i in [0, 15]
      ins(%x[i] where i in [0, 20] else 3 : tensor<16xi32>) outs(%e[i] : tensor<16xi32>) attributes {held} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<16xi32>
  return %r : tensor<16xi32>
}

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %padded = transform.structured.match attributes {padded} in %root : (!transform.any_op) -> !transform.any_op
  %padded_tile, %padded_loops:2 = transform.structured.tile_using_for %padded tile_sizes [5, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %padded_fused = transform.structured.match attributes {padded_fused} in %root : (!transform.any_op) -> !transform.any_op
  %padded_fused_tile, %padded_fused_loops = transform.structured.fuse %padded_fused tile_sizes [5, 0] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %masked = transform.structured.match attributes {masked} in %root : (!transform.any_op) -> !transform.any_op
  %masked_tile, %masked_loops = transform.structured.tile_using_for %masked tile_sizes [6] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %held = transform.structured.match attributes {held} in %root : (!transform.any_op) -> !transform.any_op
  %held_tile, %held_loops = transform.structured.tile_using_for %held tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %parts = transform.structured.match attributes {parts} in %root : (!transform.any_op) -> !transform.any_op
  %parts_parts:4 = transform.structured.tile_reduction_using_for %parts by tile_sizes = [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

}
