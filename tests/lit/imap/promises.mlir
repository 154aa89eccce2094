// RUN: not tc-run %s --entry twice --check 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not tc-run %s --entry identity --check 2>&1 | FileCheck %s --check-prefix=IDENTITY
// RUN: tc-run %s --entry kept --check
// RUN: not tc-run %s --entry unnamed --size arg0=4 --check 2>&1 | FileCheck %s --check-prefix=UNNAMED
// RUN: tc-run %s --entry unnamed --size arg0=1 --check
// RUN: tc-run %s --entry rounded --check

// The interpreter checks the promises that the verifier cannot see.

// Two points store one element.
// TWICE: promises.mlir:[[#@LINE+3]]:{{[0-9]+}}: error: 'imap.generic' op stores element [1] of 'outs' number 0 at two points; {{.*}} ('imap.scatter' takes any) (at i = 1, j = 0)
func.func @twice(%x: tensor<3x3xi32>) -> tensor<5xi32> {
  %e = tensor.empty() : tensor<5xi32>
  %y = imap.generic (i, j) domain: i in [0, 2], j in [0, 2] ins(%x[i, j] : tensor<3x3xi32>)
      outs(%e[i + j] : tensor<5xi32>) {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<5xi32>
  return %y : tensor<5xi32>
}

// IDENTITY: promises.mlir:[[#@LINE+3]]:{{[0-9]+}}: error: 'imap.generic' op promises the identity 1, which as the first argument of the combiner turns
func.func @identity(%x: tensor<4x3xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %y = imap.generic (i)[j] domain: i in [0, 3], j in [0, 2] ins(%x[i, j] : tensor<4x3xi32>)
      outs(%e[i] : tensor<4xi32>) fold [i32 identity 1] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } combine {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    imap.yield %s : i32
  } -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// The identity need not be neutral for every tuple: it is enough that it does not change what is folded.
func.func @kept(%x: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<6xf32>) {
  %e0 = tensor.empty() : tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xi32>
  %y:2 = imap.generic (i)[j] domain: i in [0, 3], j in [0, 2] ins(%x[i, j] : tensor<4x3xf32>)
      outs(%e0[i], %e1[i] : tensor<4xf32>, tensor<4xi32>) fold [f32 identity 0xFF800000, i32 identity 0] {
  ^bb0(%a: f32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    imap.yield %a, %k : f32, i32
  } combine {
  ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
    %gt = arith.cmpf ogt, %v0, %v1 : f32
    %eq = arith.cmpf oeq, %v0, %v1 : f32
    %less = arith.cmpi slt, %i0, %i1 : i32
    %tie = arith.andi %eq, %less : i1
    %left = arith.ori %gt, %tie : i1
    %v = arith.select %left, %v0, %v1 : f32
    %n = arith.select %left, %i0, %i1 : i32
    imap.yield %v, %n : f32, i32
  } -> tensor<4xf32>, tensor<4xi32>
  %e2 = tensor.empty() : tensor<6xf32>
  %z = imap.generic (i, j) domain: i in [0, 2], j in [0, 1] ins(%x[i, j] : tensor<4x3xf32>)
      outs(%e2[i * 2 + j] : tensor<6xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<6xf32>
  return %y#0, %y#1, %z : tensor<4xf32>, tensor<4xi32>, tensor<6xf32>
}

// The destination does not name k, which may have several values.
// UNNAMED: error: 'imap.generic' op stores element [0] of 'outs' number 0 at two points;
func.func @unnamed(%n: index, %y: tensor<3xi32>) -> tensor<3xi32> {
  %r = imap.generic (i, k){N} domain: i in [0, 2], k in [0, N - 1], N in [1, 5] runtime(%n : index)
      outs(%y[i] : tensor<3xi32>) {
    %k = imap.index dim 1
    %v = arith.index_cast %k : index to i32
    imap.yield %v : i32
  } -> tensor<3xi32>
  return %r : tensor<3xi32>
}

// A combiner may round: the order of the fold decides what.
func.func @rounded(%x: tensor<5x300xbf16>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %y = imap.generic (i)[j] domain: i in [0, 4], j in [0, 299] ins(%x[i, j] : tensor<5x300xbf16>)
      outs(%e[i] : tensor<5xf32>) fold [f32 identity 0.0] {
  ^bb0(%a: bf16):
    %v = arith.extf %a : bf16 to f32
    imap.yield %v : f32
  } combine {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    %c = arith.truncf %s : f32 to bf16
    %v = arith.extf %c : bf16 to f32
    imap.yield %v : f32
  } -> tensor<5xf32>
  return %y : tensor<5xf32>
}
