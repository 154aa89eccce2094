// RUN: tc-opt %s --expand-narrow-types --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// Operations on bits convert a float. Callers learn what the bytes are.
// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    %[[X:.*]]: tensor<4xi8> {tc.bits_of = "f8e5m2", tc.name = "x", tc.unsigned}) -> tensor<4xf32>
// CHECK:         ^bb0(%[[A:.*]]: i8):
// CHECK-NEXT:      arith.extui %[[A]] : i8 to i32
// CHECK:           %[[V:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK-NEXT:      imap.yield %[[V]] : f32
func.func @decode(%x: tensor<4xf8E5M2> {tc.name = "x"}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = imap.generic (i) domain: i in [0, 3]
    ins(%x[i] : tensor<4xf8E5M2>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f8E5M2):
    %v = arith.extf %a : f8E5M2 to f32
    imap.yield %v : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A float is rounded on the bits of f32. Arithmetic is that of f32, then rounded.
// CHECK-LABEL: func.func @add(
// CHECK-SAME:    tensor<4xi8> {tc.bits_of = "f8e4m3fn", tc.unsigned})
// CHECK-SAME:    -> (tensor<4xi8> {tc.bits_of = "f8e4m3fn", tc.unsigned})
// CHECK:         ^bb0(%{{.*}}: i8):
// CHECK:           %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK:           math.absf %[[SUM]] : f32
// CHECK:           %[[BITS:.*]] = arith.trunci %{{.*}} : i32 to i8
// CHECK-NEXT:      imap.yield %[[BITS]] : i8
func.func @add(%x: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
  %one = arith.constant 1.0 : f8E4M3FN
  %e = tensor.empty() : tensor<4xf8E4M3FN>
  %r = imap.generic (i) domain: i in [0, 3]
    ins(%x[i] : tensor<4xf8E4M3FN>) outs(%e[i] : tensor<4xf8E4M3FN>) {
  ^bb0(%a: f8E4M3FN):
    %v = arith.addf %a, %one : f8E4M3FN
    imap.yield %v : f8E4M3FN
  } -> tensor<4xf8E4M3FN>
  return %r : tensor<4xf8E4M3FN>
}

// -----

// Constants, and the constants of guards, are bytes.
// CHECK-LABEL: func.func @constants(
// CHECK-DAG:     %[[T:.*]] = arith.constant dense<[60, -68, 0]> : tensor<3xi8>
// CHECK:         imap.generic
// CHECK-SAME:      %[[T]][d0 - 1] where d0 in [1, 3] else 60 : tensor<3xi8>
func.func @constants() -> tensor<5xf8E5M2> {
  %t = arith.constant dense<[1.0, -1.0, 0.0]> : tensor<3xf8E5M2>
  %e = tensor.empty() : tensor<5xf8E5M2>
  %r = imap.generic (d0) domain: d0 in [0, 4]
    ins(%t[d0 - 1] where d0 in [1, 3] else 1.0 : tensor<3xf8E5M2>) outs(%e[d0] : tensor<5xf8E5M2>) {
  ^bb0(%a: f8E5M2):
    imap.yield %a : f8E5M2
  } -> tensor<5xf8E5M2>
  return %r : tensor<5xf8E5M2>
}

// -----

// Integers are computed in their own type and stored as bytes; results have copies of their sign.
// CHECK-LABEL: func.func @integers(
// CHECK-SAME:    %[[X:.*]]: tensor<?xi8>) -> tensor<?xi8>
// CHECK:         ^bb0(%[[A:.*]]: i8):
// CHECK:           %[[B:.*]] = arith.trunci %[[A]] : i8 to i4
// CHECK-NEXT:      %[[C:.*]] = arith.addi %[[B]], %[[B]] : i4
// CHECK-NEXT:      %[[D:.*]] = arith.extui %[[C]] : i4 to i8
// CHECK-NEXT:      imap.yield %[[D]] : i8
// CHECK:         ^bb0(%[[A:.*]]: i8):
// CHECK-NEXT:      %[[B:.*]] = arith.trunci %[[A]] : i8 to i4
// CHECK-NEXT:      %[[C:.*]] = arith.extsi %[[B]] : i4 to i8
// CHECK-NEXT:      imap.yield %[[C]] : i8
func.func @integers(%x: tensor<?xi4>) -> tensor<?xi4> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xi4>
  %e = tensor.empty(%n) : tensor<?xi4>
  %r = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 100]
    runtime(%n : index) ins(%x[i] : tensor<?xi4>) outs(%e[i] : tensor<?xi4>) {
  ^bb0(%a: i4):
    %v = arith.addi %a, %a : i4
    imap.yield %v : i4
  } -> tensor<?xi4>
  return %r : tensor<?xi4>
}

// -----

// The result has zeros above its bits.
// CHECK-LABEL: func.func @unsigned(
// CHECK:         arith.extui %{{.*}} : i4 to i8
func.func @unsigned(%x: tensor<3xi4>) -> (tensor<3xi4> {tc.unsigned}) {
  return %x : tensor<3xi4>
}

// -----

// The region of a scatter combines bytes.
// CHECK-LABEL: func.func @scatter(
// CHECK:         combine {
// CHECK-NEXT:    ^bb0(%{{.*}}: i8, %{{.*}}: i8):
// CHECK:           arith.maximumf %{{.*}}, %{{.*}} : f32
func.func @scatter(%x: tensor<9xf8E5M2>, %at: tensor<4xi32>, %u: tensor<4xf8E5M2>) -> tensor<9xf8E5M2> {
  %r = imap.scatter (i){k} domain: i in [0, 3], k in [0, 8]
    runtime(%at[i] : tensor<4xi32>) ins(%u[i] : tensor<4xf8E5M2>) outs(%x[k] : tensor<9xf8E5M2>) {
  ^bb0(%a: f8E5M2):
    imap.yield %a : f8E5M2
  } combine {
  ^bb0(%old: f8E5M2, %new: f8E5M2):
    %v = arith.maximumf %old, %new : f8E5M2
    imap.yield %v : f8E5M2
  } -> tensor<9xf8E5M2>
  return %r : tensor<9xf8E5M2>
}

// -----

// Two types of the same width are the same bytes.
// CHECK-LABEL: func.func @bits(
// CHECK-NOT:     arith.bitcast
func.func @bits(%x: f8E5M2) -> i8 {
  %y = arith.bitcast %x : f8E5M2 to i8
  return %y : i8
}

// -----

// CHECK-LABEL: func.func @nothing(
// CHECK-SAME:    %[[X:.*]]: tensor<4xbf16>) -> tensor<4xbf16>
// CHECK-NEXT:    return %[[X]]
func.func @nothing(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  return %x : tensor<4xbf16>
}

// -----

func.func @fold(%x: tensor<4xf8E5M2>) -> tensor<f8E5M2> {
  %e = tensor.empty() : tensor<f8E5M2>
  // expected-error @+1 {{'imap.generic' op folds in 'f8E5M2'; fold in a wider type, and truncate in the epilogue or afterwards}}
  %r = imap.generic ()[j] domain: j in [0, 3]
    ins(%x[j] : tensor<4xf8E5M2>) outs(%e[] : tensor<f8E5M2>) fold [add f8E5M2] {
  ^bb0(%a: f8E5M2):
    imap.yield %a : f8E5M2
  } -> tensor<f8E5M2>
  return %r : tensor<f8E5M2>
}

// -----

func.func @twice(%x: f64) -> f8E5M2 {
  // expected-error @+1 {{'arith.truncf' op rounds 'f64' to a narrow type; round it to 'f32' first}}
  %y = arith.truncf %x : f64 to f8E5M2
  return %y : f8E5M2
}

// -----

// expected-error @+1 {{uses 'vector<4xf8E5M2>', whose elements cannot be stored as bytes}}
func.func @vector(%x: vector<4xf8E5M2>) {
  return
}

// -----

// expected-error @+1 {{'func.func' op takes or returns 'memref<4xi4>'; use a tensor, or elements of 8 bits}}
func.func @memory(%x: memref<4xi4>) {
  return
}

// -----

func.func @runtime(%x: tensor<9xf32>, %at: tensor<4xi4>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @+1 {{'imap.generic' op reads runtime variables from 'tensor<4xi4>'; extend it to a wider type}}
  %r = imap.generic (i){k} domain: i in [0, 3], k in [0, 7]
    runtime(%at[i] : tensor<4xi4>) ins(%x[k] : tensor<9xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
