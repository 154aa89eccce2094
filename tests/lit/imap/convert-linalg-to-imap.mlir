// RUN: tc-opt %s --convert-linalg-to-imap --canonicalize --cse --remarks-filter=convert-linalg-to-imap -o %t.mlir 2> %t.remarks
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// And back.
// RUN: tc-opt %t.mlir --convert-imap-to-linalg | FileCheck %s --check-prefix=BACK
// BACK-DAG: #[[INPUT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (0, d1 * 2 + d4, d2 * 3 + d5, d3)>
// BACK-DAG: #[[OUTPUT:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
// BACK-DAG: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>

// A fill with the identity becomes the start of the fold. Sizes are runtime variables.
// CHECK-LABEL: func.func @matmul(
// CHECK:         %[[M:.*]] = tensor.dim %arg0, %c0
// CHECK:         %[[N:.*]] = tensor.dim %arg1, %c1
// CHECK:         %[[EMPTY:.*]] = tensor.empty(%[[M]], %[[N]])
// CHECK:         %[[K:.*]] = tensor.dim %arg0, %c1
// CHECK-NOT:     linalg
// CHECK:         imap.generic {{.*}} d0 in [0, rt0 - 1], d1 in [0, rt1 - 1], s0 in [0, rt2 - 1]
// CHECK-SAME:    (%[[M]], %[[N]], %[[K]] : index, index, index)
// CHECK-SAME:    outs(%[[EMPTY]][{{.*}}] : tensor<?x?xf32>)
// CHECK-SAME:    fold [add f32]
// CHECK:         arith.mulf
// CHECK-NOT:     arith.addf
// CHECK:         return
func.func @matmul(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %A, %c0 : tensor<?x?xf32>
  %n = tensor.dim %B, %c1 : tensor<?x?xf32>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %C = linalg.matmul ins(%A, %B : tensor<?x?xf32>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %C : tensor<?x?xf32>
}

// Another value, or one that is read elsewhere too, is stored.
// CHECK-LABEL: func.func @start(
// CHECK:         %[[ONES:.*]] = imap.generic
// CHECK:           imap.yield %cst
// CHECK:         %[[ZEROS:.*]] = imap.generic
// CHECK:           imap.yield %cst_0
// CHECK:         imap.generic {{.*}} outs(%[[ONES]][{{.*}}] : tensor<3xf32>) fold [add f32 from outs 0]
// CHECK:         %[[SUM:.*]] = imap.generic {{.*}}fold [add f32] {
// CHECK:         return %{{.*}}, %[[SUM]], %[[ZEROS]]
func.func @start(%a: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<3xf32>) -> tensor<3xf32>
  %r = linalg.reduce { arith.addf } ins(%a : tensor<3x4xf32>) outs(%ones : tensor<3xf32>) dimensions = [1]
  %s = linalg.reduce { arith.addf } ins(%a : tensor<3x4xf32>) outs(%zeros : tensor<3xf32>) dimensions = [1]
  return %r, %s, %zeros : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// The window of a pooling has extents only.
// CHECK-LABEL: func.func @pooling(
// CHECK:         imap.generic {{.*}} s0 in [0, 1], s1 in [0, 2]
// CHECK-SAME:    ins(%arg0[0, d1 * 2 + s0, d2 * 3 + s1, d3] : {{.*}}) outs(%arg2[0, d1, d2, d3] : {{.*}})
// CHECK-SAME:    fold [maximumf f32 from outs 0]
// BACK-LABEL:  func.func @pooling(
// BACK:          %[[EMPTY:.*]] = tensor.empty() : tensor<2x3xi1>
// BACK:          linalg.generic {indexing_maps = [#[[INPUT]], #[[WINDOW]], #[[OUTPUT]]]
// BACK-SAME:     ins(%arg0, %[[EMPTY]] :
func.func @pooling(%x: tensor<1x9x9x3xf32>, %window: tensor<2x3xf32>, %init: tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> {
  %r = linalg.pooling_nhwc_max {strides = dense<[2, 3]> : vector<2xi64>} ins(%x, %window : tensor<1x9x9x3xf32>, tensor<2x3xf32>)
      outs(%init : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %r : tensor<1x4x3x3xf32>
}

// Without reductions, the body may use the elements of the destination in any way. Scalars stay outside.
// CHECK-LABEL: func.func @update(
// CHECK:         imap.generic {{.*}} ins(%arg0[{{.*}}], %arg2[{{.*}}] : tensor<4x5xi32>, tensor<5x4xi32>) outs(%arg2[{{.*}}] : tensor<5x4xi32>)
// CHECK:         ^bb0(%[[A:.*]]: i32, %[[OLD:.*]]: i32):
// CHECK:           %[[I:.*]] = imap.index dim 1
// CHECK:           %[[J:.*]] = arith.index_cast %[[I]]
// CHECK:           arith.muli %[[A]], %arg1
// CHECK:           arith.subi %[[OLD]]
func.func @update(%a: tensor<4x5xi32>, %s: i32, %init: tensor<5x4xi32>) -> tensor<5x4xi32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %s : tensor<4x5xi32>, i32) outs(%init : tensor<5x4xi32>) {
  ^bb0(%x: i32, %factor: i32, %old: i32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %p = arith.muli %x, %factor : i32
    %q = arith.addi %p, %j : i32
    %v = arith.subi %old, %q : i32
    linalg.yield %v : i32
  } -> tensor<5x4xi32>
  return %r : tensor<5x4xi32>
}

// Several folds, one of them over the loop that comes first.
// CHECK-LABEL: func.func @folds(
// CHECK:         imap.generic (d0)[s0] domain: d0 in [0, 4], s0 in [0, 3]
// CHECK-SAME:    fold [maxs {{.*}} from outs 0, add {{.*}} from outs 1]
// CHECK:         ^bb0(%[[A:.*]]: i32):
// CHECK:           %[[I:.*]] = imap.index range 0
// CHECK:           %[[J:.*]] = arith.index_cast %[[I]]
// CHECK:           imap.yield %[[A]], %[[J]]
func.func @folds(%a: tensor<4x5xi32>, %m: tensor<5xi32>, %s: tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>) {
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]}
      ins(%a : tensor<4x5xi32>) outs(%m, %s : tensor<5xi32>, tensor<5xi32>) {
  ^bb0(%x: i32, %max: i32, %sum: i32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %v = arith.maxsi %x, %max : i32
    %w = arith.addi %sum, %j : i32
    linalg.yield %v, %w : i32, i32
  } -> (tensor<5xi32>, tensor<5xi32>)
  return %r#0, %r#1 : tensor<5xi32>, tensor<5xi32>
}

// A destination that is only overwritten does not keep its producer from being fused.
// CHECK-LABEL: func.func @overwritten(
// CHECK:         %[[DIM:.*]] = tensor.dim %arg1
// CHECK:         %[[EXP:.*]] = imap.generic {{.*}} outs(%arg1[
// CHECK:         %[[EMPTY:.*]] = tensor.empty(%[[DIM]])
// CHECK:         imap.generic {{.*}} ins(%[[EXP]][{{.*}} outs(%[[EMPTY]][
func.func @overwritten(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %e = linalg.exp ins(%a : tensor<?xf32>) outs(%b : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.negf ins(%e : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// Operations that stay.

// CHECK-LABEL: func.func @not_a_combiner(
// CHECK:         linalg.reduce
// REMARK: convert-linalg-to-imap.mlir:[[#@LINE+2]]:8: remark: [Missed] linalg | Category:convert-linalg-to-imap | Function=not_a_combiner | Advice="yield the addf, {{.*}} of the element and a value; {{.*}}", Operation=linalg.reduce, Reason="its body does not fold one value into the element of each destination by a combiner"
func.func @not_a_combiner(%a: tensor<4x5xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce { arith.subf } ins(%a : tensor<4x5xf32>) outs(%o : tensor<4xf32>) dimensions = [1]
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @used_twice(
// CHECK:         linalg.reduce
// REMARK: Function=used_twice {{.*}} Reason="its body does not fold one value into the element of each destination by a combiner"
func.func @used_twice(%a: tensor<4x5xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce ins(%a : tensor<4x5xf32>) outs(%o : tensor<4xf32>) dimensions = [1] (%x: f32, %sum: f32) {
    %p = arith.mulf %x, %sum : f32
    %s = arith.addf %p, %sum : f32
    linalg.yield %s : f32
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @buffers(
// CHECK:         linalg.exp
// REMARK: Function=buffers {{.*}}Advice="convert it before bufferization", Operation=linalg.exp, Reason="it works on buffers"
func.func @buffers(%a: memref<4xf32>, %b: memref<4xf32>) {
  linalg.exp ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  return
}

// CHECK-LABEL: func.func @complex(
// CHECK:         linalg.add
// REMARK: Function=complex {{.*}}Reason="it has elements of type 'complex<f32>'"
func.func @complex(%a: tensor<4xcomplex<f32>>, %b: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %r = linalg.add ins(%a, %a : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) outs(%b : tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @softmax(
// CHECK:         linalg.softmax
// REMARK: Function=softmax {{.*}}Reason="it has no indexing maps"
func.func @softmax(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r = linalg.softmax dimension(1) ins(%a : tensor<2x3xf32>) outs(%b : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @diagonal(
// CHECK:         linalg.generic
// REMARK: Function=diagonal {{.*}}Reason="the parallel loops are not the subscripts of each destination, in some order"
func.func @diagonal(%a: tensor<4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<4xf32>) outs(%b : tensor<4x4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @memory(
// CHECK:         linalg.map
// REMARK: Function=memory {{.*}}Reason="its body contains 'memref.load'"
func.func @memory(%a: tensor<4xf32>, %m: memref<f32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.map ins(%a : tensor<4xf32>) outs(%b : tensor<4xf32>) (%x: f32, %old: f32) {
    %f = memref.load %m[] : memref<f32>
    %y = arith.mulf %x, %f : f32
    linalg.yield %y : f32
  }
  return %r : tensor<4xf32>
}

// A body that begins with several indices.
// CHECK-LABEL: func.func @indices(
// CHECK:         imap.index dim 0
// CHECK:         imap.index dim 1
// BACK-LABEL:  func.func @indices(
// BACK:          linalg.index 0
// BACK:          linalg.index 1
func.func @indices(%y: tensor<8x4xi32>) -> tensor<8x4xi32> {
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%y : tensor<8x4xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %v = arith.index_cast %s : index to i32
    linalg.yield %v : i32
  } -> tensor<8x4xi32>
  return %r : tensor<8x4xi32>
}
