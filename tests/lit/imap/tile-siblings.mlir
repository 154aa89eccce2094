// RUN: tc-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s
//
// Tiles of imap.scan, imap.scatter and imap.sort. A test of the CPU backend compiles the tiled functions and
// compares their values with those of the interpreter on the untiled ones.

module attributes {transform.with_named_sequence} {

// Rows are scanned apart from each other.
// CHECK-LABEL: func.func @scan_rows(
// CHECK: scf.forall (%[[I:.*]]) in (5)
// CHECK: imap.scan (i, t){{.*}} t in [0, 29]{{.*}} scan t exclusive{{.*}} fold [add i32]
// CHECK: tensor.parallel_insert_slice
func.func @scan_rows(%x: tensor<18x30xi32>) -> tensor<18x30xi32> {
  %e = tensor.empty() : tensor<18x30xi32>
  %y = imap.scan (i, t) domain: i in [0, 17], t in [0, 29] scan t exclusive
      ins(%x[i, 29 - t] : tensor<18x30xi32>) outs(%e[i, t] : tensor<18x30xi32>) fold [add i32] attributes {scan_rows} {
  ^bb0(%a: i32):
    %i = imap.index dim 0
    %n = arith.index_cast %i : index to i32
    %v = arith.addi %a, %n : i32
    imap.yield %v : i32
  } -> tensor<18x30xi32>
  return %y : tensor<18x30xi32>
}

// The first dimension is scanned. A consumer is tiled, and the scan becomes a part of its loop.
// CHECK-LABEL: func.func @scan_fused(
// CHECK: scf.for
// CHECK:   imap.scan (t, j){{.*}} t in [0, 17]{{.*}} scan t inclusive
// CHECK:   imap.generic (t, j)
func.func @scan_fused(%x: tensor<18x30xi32>) -> tensor<18x30xi32> {
  %e = tensor.empty() : tensor<18x30xi32>
  %s = imap.scan (t, j) domain: t in [0, 17], j in [0, 29], t - j in [-20, 9] scan t inclusive
      ins(%x[t, j] : tensor<18x30xi32>) outs(%e[t, j] : tensor<18x30xi32>) fold [maxs i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } epilogue {
  ^bb0(%m: i32, %a: i32):
    %v = arith.subi %m, %a : i32
    imap.yield %v : i32
  } -> tensor<18x30xi32>
  %f = tensor.empty() : tensor<18x30xi32>
  %y = imap.generic (t, j) domain: t in [0, 17], j in [0, 29]
      ins(%s[t, j] : tensor<18x30xi32>) outs(%f[t, j] : tensor<18x30xi32>) attributes {scan_fused} {
  ^bb0(%a: i32):
    %v = arith.addi %a, %a : i32
    imap.yield %v : i32
  } -> tensor<18x30xi32>
  return %y : tensor<18x30xi32>
}

// Columns of the table are updated apart from each other. Their rows stay whole.
// CHECK-LABEL: func.func @scatter_columns(
// CHECK: scf.forall (%[[J:.*]]) in (3) shared_outs(%[[Y:.*]] =
// CHECK: %[[S:.*]] = tensor.extract_slice %[[Y]][0, %{{.*}}] [10, %{{.*}}] [1, 1]
// CHECK: imap.scatter (b, d){{.*}} b in [0, 30]{{.*}} outs(%[[S]][r, d] where r in [0, 9] :
// CHECK: tensor.parallel_insert_slice %{{.*}} into %[[Y]][0, %{{.*}}] [10, %{{.*}}] [1, 1]
func.func @scatter_columns(%ids: tensor<31xi32>, %u: tensor<31x17xi32>, %y: tensor<10x17xi32>) -> tensor<10x17xi32> {
  %g = imap.scatter (b, d){r} domain: b in [0, 30], d in [0, 16] runtime(%ids[b] : tensor<31xi32>)
      ins(%u[b, d] : tensor<31x17xi32>) outs(%y[r, d] where r in [0, 9] : tensor<10x17xi32>) attributes {scatter_columns} {
  ^bb0(%x: i32):
    %d = imap.index dim 1
    %n = arith.index_cast %d : index to i32
    %v = arith.addi %x, %n : i32
    imap.yield %v : i32
  } -> tensor<10x17xi32>
  return %g : tensor<10x17xi32>
}

// Blocks of updates are done one after the other, so that the last update wins. What makes the updates is
// computed for each block.
// CHECK-LABEL: func.func @scatter_blocks(
// CHECK: scf.for {{.*}} iter_args(%[[Y:.*]] =
// CHECK:   %[[U:.*]] = imap.generic (b, d)
// CHECK:   imap.scatter (b, d){{.*}} ins(%[[U]][b, d] :{{.*}} outs(%[[Y]][r, d] where r in [0, 9] :
func.func @scatter_blocks(%ids: tensor<31xi32>, %u: tensor<31x17xi32>, %y: tensor<10x17xi32>) -> tensor<10x17xi32> {
  %e = tensor.empty() : tensor<31x17xi32>
  %v = imap.generic (b, d) domain: b in [0, 30], d in [0, 16]
      ins(%u[b, d] : tensor<31x17xi32>) outs(%e[b, d] : tensor<31x17xi32>) {
  ^bb0(%x: i32):
    %s = arith.muli %x, %x : i32
    imap.yield %s : i32
  } -> tensor<31x17xi32>
  %g = imap.scatter (b, d){r} domain: b in [0, 30], d in [0, 16] runtime(%ids[b] : tensor<31xi32>)
      ins(%v[b, d] : tensor<31x17xi32>) outs(%y[r, d] where r in [0, 9] : tensor<10x17xi32>) attributes {scatter_blocks} {
  ^bb0(%x: i32):
    imap.yield %x : i32
  } -> tensor<10x17xi32>
  return %g : tensor<10x17xi32>
}

// The region that combines is copied.
// CHECK-LABEL: func.func @scatter_region(
// CHECK: scf.for
// CHECK:   imap.scatter unique (i, j)
// CHECK:   } combine {
func.func @scatter_region(%u: tensor<12x9xi32>, %y: tensor<108xi32>) -> tensor<108xi32> {
  %g = imap.scatter unique (i, j) domain: i in [0, 11], j in [0, 8], i + j in [1, 18]
      ins(%u[i, j] : tensor<12x9xi32>) outs(%y[i * 9 + j] : tensor<108xi32>) attributes {scatter_region} {
  ^bb0(%x: i32):
    imap.yield %x : i32
  } combine {
  ^bb0(%old: i32, %new: i32):
    %v = arith.subi %old, %new : i32
    imap.yield %v : i32
  } -> tensor<108xi32>
  return %g : tensor<108xi32>
}

// Whole rows are sorted; the first items of each are kept, and their places.
// CHECK-LABEL: func.func @top_rows(
// CHECK: scf.forall
// CHECK: %[[X:.*]] = tensor.extract_slice %{{.*}} [%{{.*}}, 25] [1, 1]
// CHECK: %[[V:.*]] = tensor.extract_slice %{{.*}} [%{{.*}}, 8] [1, 1]
// CHECK: %[[N:.*]] = tensor.extract_slice %{{.*}} [%{{.*}}, 8] [1, 1]
// CHECK: imap.sort dim = 1 stable ins(%[[X]] :{{.*}} outs(%[[V]], %[[N]] :
func.func @top_rows(%x: tensor<14x25xi32>) -> (tensor<14x8xi32>, tensor<14x8xi32>) {
  %v = tensor.empty() : tensor<14x8xi32>
  %n = tensor.empty() : tensor<14x8xi32>
  %s:2 = imap.sort dim = 1 stable ins(%x : tensor<14x25xi32>) outs(%v, %n : tensor<14x8xi32>, tensor<14x8xi32>) attributes {top_rows} {
  ^bb0(%a: i32, %b: i32):
    %less = arith.cmpi slt, %a, %b : i32
    imap.yield %less : i1
  } -> tensor<14x8xi32>, tensor<14x8xi32>
  return %s#0, %s#1 : tensor<14x8xi32>, tensor<14x8xi32>
}

// Columns are sorted in the loop of a consumer.
// CHECK-LABEL: func.func @sort_fused(
// CHECK: scf.for
// CHECK:   imap.sort dim = 0 stable
// CHECK:   imap.generic
func.func @sort_fused(%x: tensor<14x25xi32>) -> tensor<14x25xi32> {
  %e = tensor.empty() : tensor<14x25xi32>
  %s = imap.sort dim = 0 stable ins(%x : tensor<14x25xi32>) outs(%e : tensor<14x25xi32>) {
  ^bb0(%a: i32, %b: i32):
    %less = arith.cmpi sgt, %a, %b : i32
    imap.yield %less : i1
  } -> tensor<14x25xi32>
  %f = tensor.empty() : tensor<14x25xi32>
  %y = imap.generic (i, j) domain: i in [0, 13], j in [0, 24]
      ins(%s[i, j] : tensor<14x25xi32>) outs(%f[i, j] : tensor<14x25xi32>) attributes {sort_fused} {
  ^bb0(%a: i32):
    %v = arith.addi %a, %a : i32
    imap.yield %v : i32
  } -> tensor<14x25xi32>
  return %y : tensor<14x25xi32>
}

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %scan_rows = transform.structured.match attributes {scan_rows} in %root : (!transform.any_op) -> !transform.any_op
  %scan_rows_tile, %scan_rows_loops = transform.structured.tile_using_forall %scan_rows tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %scan_fused = transform.structured.match attributes {scan_fused} in %root : (!transform.any_op) -> !transform.any_op
  %scan_fused_tile, %scan_fused_loops = transform.structured.fuse %scan_fused tile_sizes [0, 8] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %scatter_columns = transform.structured.match attributes {scatter_columns} in %root : (!transform.any_op) -> !transform.any_op
  %scatter_columns_tile, %scatter_columns_loops = transform.structured.tile_using_forall %scatter_columns tile_sizes [0, 7] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %scatter_blocks = transform.structured.match attributes {scatter_blocks} in %root : (!transform.any_op) -> !transform.any_op
  %scatter_blocks_tile, %scatter_blocks_loops = transform.structured.fuse %scatter_blocks tile_sizes [8, 0] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %scatter_region = transform.structured.match attributes {scatter_region} in %root : (!transform.any_op) -> !transform.any_op
  %scatter_region_tile, %scatter_region_loops:2 = transform.structured.tile_using_for %scatter_region tile_sizes [5, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %top_rows = transform.structured.match attributes {top_rows} in %root : (!transform.any_op) -> !transform.any_op
  %top_rows_tile, %top_rows_loops = transform.structured.tile_using_forall %top_rows tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %sort_fused = transform.structured.match attributes {sort_fused} in %root : (!transform.any_op) -> !transform.any_op
  %sort_fused_tile, %sort_fused_loops = transform.structured.fuse %sort_fused tile_sizes [0, 6] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

}
