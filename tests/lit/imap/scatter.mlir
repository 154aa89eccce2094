// RUN: tc-opt %s | tc-opt --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-run %s --entry add_rows --check
// RUN: tc-run %s --entry last_wins --check
// RUN: tc-run %s --entry by_region --check
// RUN: tc-run %s --entry add_rows --check --threads 2

// The gradient of an embedding: rows whose index is out of bounds are left out.
// CHECK-LABEL: func.func @add_rows(
// CHECK:         imap.scatter (b, d){r} domain: b in [0, 30], d in [0, 16] runtime(%{{.*}}[b] : tensor<31xi32>) ins(%{{.*}}[b, d] : tensor<31x17xf32>) outs(%{{.*}}[r, d] where r in [0, 9] : tensor<10x17xf32>) fold [add f32] {
func.func @add_rows(%ids: tensor<31xi32>, %u: tensor<31x17xf32>, %y: tensor<10x17xf32>) -> tensor<10x17xf32> {
  %g = imap.scatter (b, d){r} domain: b in [0, 30], d in [0, 16] runtime(%ids[b] : tensor<31xi32>)
    ins(%u[b, d] : tensor<31x17xf32>) outs(%y[r, d] where r in [0, 9] : tensor<10x17xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<10x17xf32>
  return %g : tensor<10x17xf32>
}

// Of several updates of one element the last wins.
// CHECK-LABEL: func.func @last_wins(
// CHECK:         imap.scatter (i) domain: i in [0, 30], i mod 3 in [0, 1] outs(%{{.*}}[i mod 7] : tensor<10xi32>) {
func.func @last_wins(%y: tensor<10xi32>) -> tensor<10xi32> {
  %g = imap.scatter (i) domain: i in [0, 30], i mod 3 in [0, 1] outs(%y[i mod 7] : tensor<10xi32>) {
    %i = imap.index dim 0
    %v = arith.index_cast %i : index to i32
    imap.yield %v : i32
  } -> tensor<10xi32>
  return %g : tensor<10xi32>
}

// Two destinations are combined by a region that is no sum.
// CHECK-LABEL: func.func @by_region(
// CHECK:         imap.scatter (i){r}
// CHECK:         } combine {
// CHECK-NEXT:    ^bb0(%{{.*}}: i32, %{{.*}}: f32, %{{.*}}: i32, %{{.*}}: f32):
func.func @by_region(%ids: tensor<9xi32>, %u: tensor<9xf32>, %n: tensor<10xi32>, %y: tensor<10xf32>) -> (tensor<10xi32>, tensor<10xf32>) {
  %g:2 = imap.scatter (i){r} domain: i in [0, 8] runtime(%ids[i] : tensor<9xi32>)
    ins(%u[i] : tensor<9xf32>)
    outs(%n[r] where r in [0, 9], %y[r] where r in [0, 9] : tensor<10xi32>, tensor<10xf32>) {
  ^bb0(%x: f32):
    %one = arith.constant 1 : i32
    imap.yield %one, %x : i32, f32
  } combine {
  ^bb0(%n0: i32, %y0: f32, %n1: i32, %y1: f32):
    %m = arith.addi %n0, %n1 : i32
    %half = arith.constant 0.5 : f32
    %s = arith.mulf %y0, %half : f32
    %t = arith.addf %s, %y1 : f32
    imap.yield %m, %t : i32, f32
  } -> tensor<10xi32>, tensor<10xf32>
  return %g#0, %g#1 : tensor<10xi32>, tensor<10xf32>
}
