// RUN: tc-opt %s | tc-opt --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-run %s --entry argmax --check
// RUN: tc-run %s --entry variance --check
// RUN: tc-run %s --entry from_destination --check
// RUN: tc-run %s --entry exchanged --check

// The largest element of a row and its index.
// CHECK-LABEL: func.func @argmax(
// CHECK:         fold [f32 identity 0xFF800000, i32 identity 0] {
// CHECK:         } combine {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: f32, %{{.*}}: i32):
// CHECK:         } -> tensor<3xf32>, tensor<3xi32>
func.func @argmax(%x: tensor<3x5xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %e0 = tensor.empty() : tensor<3xf32>
  %e1 = tensor.empty() : tensor<3xi32>
  %v:2 = imap.generic (i)[j] domain: i in [0, 2], j in [0, 4]
    ins(%x[i, j] : tensor<3x5xf32>) outs(%e0[i], %e1[i] : tensor<3xf32>, tensor<3xi32>)
    fold [f32 identity 0xFF800000, i32 identity 0] {
  ^bb0(%a: f32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    imap.yield %a, %k : f32, i32
  } combine {
  ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
    %gt = arith.cmpf ogt, %v0, %v1 : f32
    %nan = arith.cmpf uno, %v0, %v0 : f32
    %first = arith.ori %gt, %nan : i1
    %eq = arith.cmpf oeq, %v0, %v1 : f32
    %less = arith.cmpi slt, %i0, %i1 : i32
    %tie = arith.andi %eq, %less : i1
    %left = arith.ori %first, %tie : i1
    %v = arith.select %first, %v0, %v1 : f32
    %i = arith.select %left, %i0, %i1 : i32
    imap.yield %v, %i : f32, i32
  } -> tensor<3xf32>, tensor<3xi32>
  return %v#0, %v#1 : tensor<3xf32>, tensor<3xi32>
}

// Welford's variance: three accumulators and one result.
// CHECK-LABEL: func.func @variance(
// CHECK:         fold [f32 identity 0.000000e+00, f32 identity 0.000000e+00, f32 identity 0.000000e+00] {
// CHECK:         } combine {
// CHECK:         } epilogue {
func.func @variance(%x: tensor<4x9xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %v = imap.generic (i)[j] domain: i in [0, 3], j in [0, 8]
    ins(%x[i, j] : tensor<4x9xf32>) outs(%e[i] : tensor<4xf32>)
    fold [f32 identity 0.0, f32 identity 0.0, f32 identity 0.0] {
  ^bb0(%a: f32):
    imap.yield %a, %zero, %one : f32, f32, f32
  } combine {
  ^bb0(%m0: f32, %s0: f32, %n0: f32, %m1: f32, %s1: f32, %n1: f32):
    %n = arith.addf %n0, %n1 : f32
    %d = arith.subf %m1, %m0 : f32
    %many = arith.maximumf %n, %one : f32
    %r = arith.divf %n1, %many : f32
    %dr = arith.mulf %d, %r : f32
    %mean = arith.addf %m0, %dr : f32
    %dn = arith.mulf %dr, %d : f32
    %dnn = arith.mulf %dn, %n0 : f32
    %s = arith.addf %s0, %s1 : f32
    %m2 = arith.addf %s, %dnn : f32
    imap.yield %mean, %m2, %n : f32, f32, f32
  } epilogue {
  ^bb0(%mean: f32, %m2: f32, %n: f32, %a: f32):
    %q = arith.divf %m2, %n : f32
    imap.yield %q : f32
  } -> tensor<4xf32>
  return %v : tensor<4xf32>
}

// A start that is there, and a constraint.
func.func @from_destination(%x: tensor<4x9xi32>, %s: tensor<4xi32>) -> tensor<4xi32> {
  %v = imap.generic (i)[j] domain: i in [0, 3], j in [0, 8], j - i in [0, 4]
    ins(%x[i, j] : tensor<4x9xi32>) outs(%s[i] : tensor<4xi32>) fold [i32 identity 1 from outs 0] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } combine {
  ^bb0(%p: i32, %q: i32):
    %r = arith.muli %p, %q : i32
    imap.yield %r : i32
  } -> tensor<4xi32>
  return %v : tensor<4xi32>
}

// Each accumulator starts from the destination of the other one, in rows that are folded in memory.
func.func @exchanged(%x: tensor<9x400xi32>, %p: tensor<400xi32>, %q: tensor<400xi32>) -> (tensor<400xi32>, tensor<400xi32>) {
  %r:2 = imap.generic (i)[j] domain: i in [0, 399], j in [0, 8]
    ins(%x[j, i] : tensor<9x400xi32>) outs(%p[i], %q[i] : tensor<400xi32>, tensor<400xi32>)
    fold [i32 identity 0 from outs 1, i32 identity 1 from outs 0] {
  ^bb0(%a: i32):
    imap.yield %a, %a : i32, i32
  } combine {
  ^bb0(%s0: i32, %p0: i32, %s1: i32, %p1: i32):
    %s = arith.addi %s0, %s1 : i32
    %t = arith.muli %p0, %p1 : i32
    imap.yield %s, %t : i32, i32
  } -> tensor<400xi32>, tensor<400xi32>
  return %r#0, %r#1 : tensor<400xi32>, tensor<400xi32>
}
