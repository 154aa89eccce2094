// RUN: tc-opt %s | tc-opt | FileCheck %s --check-prefix=ROUND
// RUN: tc-opt %s --one-shot-bufferize=bufferize-function-boundaries | FileCheck %s --check-prefix=BUF
// RUN: tc-opt %s --one-shot-bufferize=bufferize-function-boundaries --convert-imap-to-scf --canonicalize | FileCheck %s --check-prefix=LOOPS
// RUN: tc-opt %s --one-shot-bufferize=bufferize-function-boundaries --convert-imap-to-scf="parallel=true parallel-threshold=1" --canonicalize | FileCheck %s --check-prefix=PARALLEL

// ROUND-LABEL: func.func @pairs
// ROUND:         imap.sort dim = 1 stable ins(%{{.*}}, %{{.*}} : tensor<3x5xf32>, tensor<3x5xi32>) outs(%{{.*}}, %{{.*}} : tensor<3x5xf32>, tensor<3x5xi32>) {
// ROUND-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32):
// ROUND:           imap.yield %{{.*}} : i1
// ROUND:         } -> tensor<3x5xf32>, tensor<3x5xi32>
// BUF-LABEL:   func.func @pairs
// BUF:           imap.sort dim = 1 stable ins(%{{.*}}, %{{.*}} : memref<3x5xf32, {{.*}}>, memref<3x5xi32, {{.*}}>) outs(%{{.*}}, %{{.*}} : memref<3x5xf32>, memref<3x5xi32>) {
// BUF-NOT:       ->
func.func @pairs(%k: tensor<3x5xf32>, %v: tensor<3x5xi32>) -> (tensor<3x5xf32>, tensor<3x5xi32>) {
  %a = tensor.empty() : tensor<3x5xf32>
  %b = tensor.empty() : tensor<3x5xi32>
  %r:2 = imap.sort dim = 1 stable ins(%k, %v : tensor<3x5xf32>, tensor<3x5xi32>) outs(%a, %b : tensor<3x5xf32>, tensor<3x5xi32>) {
  ^bb0(%k0: f32, %k1: f32, %v0: i32, %v1: i32):
    %less = arith.cmpf olt, %k0, %k1 : f32
    imap.yield %less : i1
  } -> tensor<3x5xf32>, tensor<3x5xi32>
  return %r#0, %r#1 : tensor<3x5xf32>, tensor<3x5xi32>
}

// What is dead afterwards is sorted in its own buffer, and what the destination held is not read.
// BUF-LABEL:   func.func @in_place(
// BUF-SAME:        %[[X:.*]]: memref<?xi32
// BUF-NOT:       memref.alloc
// BUF-NOT:       memref.copy
// BUF:           imap.sort dim = 0 ins(%[[X]] : {{.*}}) outs(%[[X]] : {{.*}}) attributes {tag} {
func.func @in_place(%x: tensor<?xi32>) -> tensor<?xi32> {
  %r = imap.sort dim = 0 ins(%x : tensor<?xi32>) outs(%x : tensor<?xi32>) attributes {tag} {
  ^bb0(%a: i32, %b: i32):
    %less = arith.cmpi slt, %a, %b : i32
    imap.yield %less : i1
  } -> tensor<?xi32>
  return %r : tensor<?xi32>
}

// Two of many: each item that is greater than the last one kept is inserted into the destination. Whether
// one is, is asked for a vector of them first.
// LOOPS-LABEL: func.func @insertion(
// LOOPS-NOT:     memref.alloc
// LOOPS:         scf.for
// LOOPS:           scf.for %{{.*}} = %{{.*}} to %c2
// LOOPS:             scf.while
// LOOPS:           scf.for %{{.*}} = %c2 to %c98 step %c16
// LOOPS:             %[[ANY:[0-9]+]] = scf.for
// LOOPS:               arith.cmpi sgt
// LOOPS:               arith.ori
// LOOPS:             scf.if %[[ANY]]
// LOOPS:             arith.cmpi sgt
// LOOPS:             scf.if
// LOOPS-NOT:     imap.
func.func @insertion(%x: memref<4x99xi32>, %v: memref<4x2xi32>, %n: memref<4x2xi32>) {
  imap.sort dim = 1 stable ins(%x : memref<4x99xi32>) outs(%v, %n : memref<4x2xi32>, memref<4x2xi32>) {
  ^bb0(%a: i32, %b: i32):
    %greater = arith.cmpi sgt, %a, %b : i32
    imap.yield %greater : i1
  }
  return
}

// All items: in the destination and one row of memory, two passes of merging per iteration.
// LOOPS-LABEL: func.func @merging(
// LOOPS:         memref.alloc() {alignment = 64 : i64, imap.scratch} : memref<99xi32>
// LOOPS-NOT:     memref.alloc
// LOOPS-NOT:     imap.
func.func @merging(%x: memref<4x99xi32>, %y: memref<4x99xi32>) {
  imap.sort dim = 1 ins(%x : memref<4x99xi32>) outs(%y : memref<4x99xi32>) {
  ^bb0(%a: i32, %b: i32):
    %less = arith.cmpi slt, %a, %b : i32
    imap.yield %less : i1
  }
  return
}

// Some items: twice as many at a time, in memory of their own.
// LOOPS-LABEL: func.func @batches(
// LOOPS:         memref.alloc() {alignment = 64 : i64, imap.scratch} : memref<20xi32>
// LOOPS:         memref.alloc() {alignment = 64 : i64, imap.scratch} : memref<20xi32>
// LOOPS-NOT:     memref.alloc
// LOOPS-NOT:     imap.
func.func @batches(%x: memref<99x4xi32>, %y: memref<10x4xi32>) {
  imap.sort dim = 0 ins(%x : memref<99x4xi32>) outs(%y : memref<10x4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %less = arith.cmpi slt, %a, %b : i32
    imap.yield %less : i1
  }
  return
}

// Threads share no row of memory.
// PARALLEL-LABEL: func.func @batches(
// PARALLEL:         memref.alloc() {alignment = 64 : i64, imap.scratch} : memref<4x20xi32>
// PARALLEL:         scf.parallel
