// RUN: tc-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s
//
// Reductions in parts, split by the transform dialect. A test of the CPU backend compares the values.

module attributes {transform.with_named_sequence} {

// Partial sums are elements of a tensor that starts with the identity.
// CHECK-LABEL: func.func @sum_even(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<6xi32>
// CHECK: %[[EMPTY2:.*]] = tensor.empty() : tensor<6x8xi32>
// CHECK: %[[R:.*]] = imap.generic (d0, d1) domain: d0 in [0, 5], d1 in [0, 7]
// CHECK-SAME: outs(%[[EMPTY2]][d0, d1] :
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c40 step %c8 iter_args(%[[ACC:.*]] = %[[R]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, %[[I]]] [6, 8] [1, 1]
// CHECK: %[[R2:.*]] = imap.generic (i, j) domain: i in [0, 5], j in [0, 7]
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[ACC]][i, j] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
// CHECK: %[[R3:.*]] = imap.generic (i)[j] domain: i in [0, 5], j in [0, 7]
// CHECK-SAME: ins(%[[LOOP]][i, j] :
// CHECK-SAME: outs(%[[EMPTY]][i] :
// CHECK-SAME: fold [add {{.*}}]
func.func @sum_even(%x: tensor<6x40xi32>) -> tensor<6xi32> {
  %e = tensor.empty() : tensor<6xi32>
  %r = imap.generic (i)[j] domain: i in [0, 5], j in [0, 39]
      ins(%x[i, j] : tensor<6x40xi32>) outs(%e[i] : tensor<6xi32>) fold [add i32] attributes {sum_even} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<6xi32>
  return %r : tensor<6xi32>
}

// The last tile accumulates into a part of the partial sums. The merge starts from the destination.
// CHECK-LABEL: func.func @sum_odd(
// CHECK-SAME:  %[[X:[^:]*]]: tensor{{[^%]*}}, %[[Y:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<6x8xi32>
// CHECK: %[[R:.*]] = imap.generic (d0, d1) domain: d0 in [0, 5], d1 in [0, 7]
// CHECK-SAME: outs(%[[EMPTY]][d0, d1] :
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c37 step %c8 iter_args(%[[ACC:.*]] = %[[R]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, %[[I]]] [6, %[[SIZE]]] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][0, 0] [6, %[[SIZE]]] [1, 1]
// CHECK: %[[R2:.*]] = imap.generic (i, j){j_size} domain: i in [0, 5], j in [0, j_size - 1], j_size in [5, 8]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i, j] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
// CHECK: tensor.insert_slice %[[R2]] into %[[ACC]][0, 0] [6, %[[SIZE]]] [1, 1]
// CHECK: %[[R3:.*]] = imap.generic (i)[j] domain: i in [0, 5], j in [0, 7]
// CHECK-SAME: ins(%[[LOOP]][i, j] :
// CHECK-SAME: outs(%[[Y]][i] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
func.func @sum_odd(%x: tensor<6x37xi32>, %y: tensor<6xi32>) -> tensor<6xi32> {
  %r = imap.generic (i)[j] domain: i in [0, 5], j in [0, 36]
      ins(%x[i, j] : tensor<6x37xi32>) outs(%y[i] : tensor<6xi32>) fold [add i32 from outs 0] attributes {sum_odd} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<6xi32>
  return %r : tensor<6xi32>
}

// Extents are runtime variables.
// CHECK-LABEL: func.func @sum_dynamic(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[DIM:.*]] = tensor.dim %[[X]], %{{.*}}
// CHECK: %[[DIM2:.*]] = tensor.dim %[[X]], %{{.*}}
// CHECK: %[[EMPTY:.*]] = tensor.empty(%[[DIM]]) : tensor<?xi32>
// CHECK: %[[EMPTY2:.*]] = tensor.empty(%[[DIM]]) : tensor<?x8xi32>
// CHECK: %[[R:.*]] = imap.generic (d0, d1){rt0} domain: d0 in [0, rt0 - 1], d1 in [0, 7], rt0 in [0, inf]
// CHECK-SAME: runtime(%[[DIM]] :
// CHECK-SAME: outs(%[[EMPTY2]][d0, d1] :
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %[[DIM2]] step %c8 iter_args(%[[ACC:.*]] = %[[R]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])[%[[DIM2]]]
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, %[[I]]] [%[[DIM]], %[[SIZE]]] [1, 1]
// CHECK: %[[DIM3:.*]] = tensor.dim %[[ACC]], %{{.*}}
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][0, 0] [%[[DIM3]], %[[SIZE]]] [1, 1]
// CHECK: %[[R2:.*]] = imap.generic (i, j){M, j_size} domain: i in [0, M - 1], j in [0, j_size - 1], M in [0, inf], j_size in [1, 8]
// CHECK-SAME: runtime(%[[DIM]], %[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i, j] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
// CHECK: tensor.insert_slice %[[R2]] into %[[ACC]][0, 0] [%[[DIM]], %[[SIZE]]] [1, 1]
// CHECK: %[[R3:.*]] = imap.generic (i)[j]{M} domain: i in [0, M - 1], j in [0, 7], M in [0, inf]
// CHECK-SAME: runtime(%[[DIM]] :
// CHECK-SAME: ins(%[[LOOP]][i, j] :
// CHECK-SAME: outs(%[[EMPTY]][i] :
// CHECK-SAME: fold [add {{.*}}]
func.func @sum_dynamic(%x: tensor<?x?xi32> {tc.sizes = ["M", "N"]}) -> (tensor<?xi32> {tc.sizes = ["M"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = tensor.dim %x, %c0 : tensor<?x?xi32>
  %N = tensor.dim %x, %c1 : tensor<?x?xi32>
  %e = tensor.empty(%M) : tensor<?xi32>
  %r = imap.generic (i)[j]{M, N} domain: i in [0, M - 1], j in [0, N - 1], M in [0, inf], N in [0, inf]
      runtime(%M, %N : index, index) ins(%x[i, j] : tensor<?x?xi32>) outs(%e[i] : tensor<?xi32>) fold [add i32] attributes {sum_dynamic} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<?xi32>
  return %r : tensor<?xi32>
}

// Two results, each with its identity; the merge has the epilogue.
// CHECK-LABEL: func.func @extremes(
// CHECK-SAME:  %[[X:[^:]*]]: tensor{{[^%]*}}, %[[B:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<6xi32>
// CHECK: %[[EMPTY2:.*]] = tensor.empty() : tensor<6x8xi32>
// CHECK: %[[R:.*]] = imap.generic (d0, d1) domain: d0 in [0, 5], d1 in [0, 7]
// CHECK-SAME: outs(%[[EMPTY2]][d0, d1] :
// CHECK: %[[R2:.*]] = imap.generic (d0, d1) domain: d0 in [0, 5], d1 in [0, 7]
// CHECK-SAME: outs(%[[EMPTY2]][d0, d1] :
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[I:.*]] = %c0 to %c37 step %c8 iter_args(%[[ACC:.*]] = %[[R]], %[[ACC2:.*]] = %[[R2]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, %[[I]]] [6, %[[SIZE]]] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][0, 0] [6, %[[SIZE]]] [1, 1]
// CHECK: %[[S3:.*]] = tensor.extract_slice %[[ACC2]][0, 0] [6, %[[SIZE]]] [1, 1]
// CHECK: %[[R3:.*]]:2 = imap.generic (i, j){j_size} domain: i in [0, 5], j in [0, j_size - 1], j_size in [5, 8]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i, j], %[[S3]][i, j] :
// CHECK-SAME: fold [maxs {{.*}} from outs 0, add {{.*}} from outs 1]
// CHECK: tensor.insert_slice %[[R3]]#0 into %[[ACC]][0, 0] [6, %[[SIZE]]] [1, 1]
// CHECK: tensor.insert_slice %[[R3]]#1 into %[[ACC2]][0, 0] [6, %[[SIZE]]] [1, 1]
// CHECK: %[[R4:.*]]:2 = imap.generic (i)[j] domain: i in [0, 5], j in [0, 7]
// CHECK-SAME: ins(%[[LOOP]]#0[i, j], %[[LOOP]]#1[i, j], %[[B]][i] :
// CHECK-SAME: outs(%[[EMPTY]][i], %[[EMPTY]][i] :
// CHECK-SAME: fold [maxs {{.*}}, add {{.*}}]
// CHECK: } epilogue {
func.func @extremes(%x: tensor<6x37xi32>, %b: tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>) {
  %e = tensor.empty() : tensor<6xi32>
  %r:2 = imap.generic (i)[j] domain: i in [0, 5], j in [0, 36]
      ins(%x[i, j], %b[i] : tensor<6x37xi32>, tensor<6xi32>) outs(%e[i], %e[i] : tensor<6xi32>, tensor<6xi32>) fold [maxs i32, add i32] attributes {extremes} {
  ^bb0(%a: i32, %c: i32):
    imap.yield %a, %a : i32, i32
  } epilogue {
  ^bb0(%max: i32, %sum: i32, %a: i32, %c: i32):
    %m = arith.addi %max, %c : i32
    imap.yield %m, %sum : i32, i32
  } -> tensor<6xi32>, tensor<6xi32>
  return %r#0, %r#1 : tensor<6xi32>, tensor<6xi32>
}

// Each thread has a partial sum. A split range becomes a dimension for `imap.index` too.
// CHECK-LABEL: func.func @weighted(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<6xi32>
// CHECK: %[[EMPTY2:.*]] = tensor.empty() : tensor<6x5xi32>
// CHECK: %[[R:.*]] = imap.generic (d0, d1) domain: d0 in [0, 5], d1 in [0, 4]
// CHECK-SAME: outs(%[[EMPTY2]][d0, d1] :
// CHECK: %[[LOOP:.*]] = scf.forall (%[[I:.*]]) in (5) shared_outs(%[[ACC:.*]] = %[[R]])
// CHECK: %[[OFFSET:.*]] = affine.apply {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, %[[OFFSET]]] [6, 8] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][0, %[[I]]] [6, 1] [1, 1]
// CHECK: %[[R2:.*]] = imap.generic (i)[j] domain: i in [0, 5], j in [0, 7]
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i, 0] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
// CHECK: %[[X:.*]] = imap.index range 0
// CHECK: arith.addi %[[X]], %[[OFFSET]] : index
// CHECK: tensor.parallel_insert_slice %[[R2]] into %[[ACC]][0, %[[I]]] [6, 1] [1, 1]
// CHECK: %[[R3:.*]] = imap.generic (i)[j] domain: i in [0, 5], j in [0, 4]
// CHECK-SAME: ins(%[[LOOP]][i, j] :
// CHECK-SAME: outs(%[[EMPTY]][i] :
// CHECK-SAME: fold [add {{.*}}]
func.func @weighted(%x: tensor<6x40xi32>) -> tensor<6xi32> {
  %e = tensor.empty() : tensor<6xi32>
  %r = imap.generic (i)[j] domain: i in [0, 5], j in [0, 39]
      ins(%x[i, j] : tensor<6x40xi32>) outs(%e[i] : tensor<6xi32>) fold [add i32] attributes {weighted} {
  ^bb0(%a: i32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    %v = arith.muli %a, %k : i32
    imap.yield %v : i32
  } -> tensor<6xi32>
  return %r : tensor<6xi32>
}

// The same with a partial sum per element of a tile, below the diagonal.
// CHECK-LABEL: func.func @weighted_elements(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<40xi32>
// CHECK: %[[EMPTY2:.*]] = tensor.empty() : tensor<40x6xi32>
// CHECK: %[[R:.*]] = imap.generic (d0, d1) domain: d0 in [0, 39], d1 in [0, 5]
// CHECK-SAME: outs(%[[EMPTY2]][d0, d1] :
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c40 step %c6 iter_args(%[[ACC:.*]] = %[[R]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, %[[I]]] [40, %[[SIZE]]] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][0, 0] [40, %[[SIZE]]] [1, 1]
// CHECK: %[[R2:.*]] = imap.generic (i, j){j_offset, j_size} domain: i in [0, 39], j in [0, j_size - 1], j_offset in [0, 36], j_size in [4, 6], i - j - j_offset in [0, 39]
// CHECK-SAME: runtime(%[[I]], %[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i, j] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
// CHECK: %[[X:.*]] = imap.index dim 1
// CHECK: arith.addi %[[X]], %[[I]] : index
// CHECK: tensor.insert_slice %[[R2]] into %[[ACC]][0, 0] [40, %[[SIZE]]] [1, 1]
// CHECK: %[[R3:.*]] = imap.generic (i)[j] domain: i in [0, 39], j in [0, 5]
// CHECK-SAME: ins(%[[LOOP]][i, j] :
// CHECK-SAME: outs(%[[EMPTY]][i] :
// CHECK-SAME: fold [add {{.*}}]
func.func @weighted_elements(%x: tensor<40x40xi32>) -> tensor<40xi32> {
  %e = tensor.empty() : tensor<40xi32>
  %r = imap.generic (i)[j] domain: i in [0, 39], j in [0, 39], i - j in [0, 39]
      ins(%x[i, j] : tensor<40x40xi32>) outs(%e[i] : tensor<40xi32>) fold [add i32] attributes {weighted_elements} {
  ^bb0(%a: i32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    %v = arith.muli %a, %k : i32
    imap.yield %v : i32
  } -> tensor<40xi32>
  return %r : tensor<40xi32>
}

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %sum_even = transform.structured.match attributes {sum_even} in %root : (!transform.any_op) -> !transform.any_op
  %sum_even_parts:4 = transform.structured.tile_reduction_using_for %sum_even by tile_sizes = [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %sum_odd = transform.structured.match attributes {sum_odd} in %root : (!transform.any_op) -> !transform.any_op
  %sum_odd_parts:4 = transform.structured.tile_reduction_using_for %sum_odd by tile_sizes = [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %sum_dynamic = transform.structured.match attributes {sum_dynamic} in %root : (!transform.any_op) -> !transform.any_op
  %sum_dynamic_parts:4 = transform.structured.tile_reduction_using_for %sum_dynamic by tile_sizes = [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %extremes = transform.structured.match attributes {extremes} in %root : (!transform.any_op) -> !transform.any_op
  %extremes_parts:5 = transform.structured.tile_reduction_using_for %extremes by tile_sizes = [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %weighted = transform.structured.match attributes {weighted} in %root : (!transform.any_op) -> !transform.any_op
  %weighted_parts:4 = transform.structured.tile_reduction_using_forall %weighted by num_threads = [0, 5] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %weighted_elements = transform.structured.match attributes {weighted_elements} in %root : (!transform.any_op) -> !transform.any_op
  %weighted_elements_parts:4 = transform.structured.tile_reduction_using_for %weighted_elements by tile_sizes = [0, 6] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  transform.yield
}

}
