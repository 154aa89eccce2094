// RUN: tc-opt %s --imap-fuse --split-input-file | FileCheck %s
// RUN: tc-opt %s --imap-fuse --split-input-file --remarks-filter='.*' -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

// Two folds of one tensor read it once.
// CHECK-LABEL: func.func @moments(
// CHECK: %[[S:.*]]:2 = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31] ins(%arg0[i, j] : tensor<64x32xf32>) outs({{.*}}) fold [add f32, add f32] {
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK-NEXT: imap.yield %[[X]], %[[Q]] : f32, f32
// CHECK: return %[[S]]#0, %[[S]]#1
// REMARK: fuse-merge.mlir:[[#@LINE+8]]:8: remark: [Passed] merged | Category:imap-fuse | Function=moments | Results=2
func.func @moments(%x: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %s = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31]
      ins(%x[i, j] : tensor<64x32xf32>) outs(%e[i] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %q = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31]
      ins(%x[i, j] : tensor<64x32xf32>) outs(%e[i] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    %p = arith.mulf %a, %a : f32
    imap.yield %p : f32
  } -> tensor<64xf32>
  return %s, %q : tensor<64xf32>, tensor<64xf32>
}

// -----

// The result of the first operation is returned, and the second one takes it from a register. The variables of the second
// one have other numbers.
// CHECK-LABEL: func.func @step(
// CHECK: %[[R:.*]]:2 = imap.generic (i, j) domain: i in [0, 63], j in [0, 31] ins(%arg0[i, j], %arg1[i, j], %arg2[i, j] : {{.*}}) outs(%{{.*}}[i, j], %{{.*}}[i, j] :
// CHECK-NEXT: ^bb0(%[[M:.*]]: f32, %[[G:.*]]: f32, %[[P:.*]]: f32):
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[M]], %[[G]] : f32
// CHECK-NEXT: %[[O:.*]] = arith.subf %[[P]], %[[N]] : f32
// CHECK-NEXT: imap.yield %[[N]], %[[O]] : f32, f32
// CHECK: return %[[R]]#1, %[[R]]#0
func.func @step(%m: tensor<64x32xf32>, %g: tensor<64x32xf32>, %p: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %e = tensor.empty() : tensor<64x32xf32>
  %n = imap.generic (i, j) domain: i in [0, 63], j in [0, 31]
      ins(%m[i, j], %g[i, j] : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e[i, j] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    imap.yield %c : f32
  } -> tensor<64x32xf32>
  %o = imap.generic (j, i) domain: j in [0, 31], i in [0, 63]
      ins(%p[i, j], %n[i, j] : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e[i, j] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    imap.yield %c : f32
  } -> tensor<64x32xf32>
  return %o, %n : tensor<64x32xf32>, tensor<64x32xf32>
}

// -----

// A fold that is returned, and its only other reader: the reader becomes a part of the epilogue.
// CHECK-LABEL: func.func @mean(
// CHECK: %[[R:.*]]:2 = imap.generic (i)[j]
// CHECK: } epilogue {
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %{{.*}}: f32, %[[N:.*]]: f32):
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[S]], %[[N]] : f32
// CHECK-NEXT: imap.yield %[[S]], %[[M]] : f32, f32
func.func @mean(%x: tensor<64x32xf32>, %n: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %s = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31]
      ins(%x[i, j] : tensor<64x32xf32>) outs(%e[i] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %m = imap.generic (i) domain: i in [0, 63] ins(%s[i], %n[i] : tensor<64xf32>, tensor<64xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    imap.yield %c : f32
  } -> tensor<64xf32>
  return %s, %m : tensor<64xf32>, tensor<64xf32>
}

// -----

// The first fold is read in front of the second one, so both stand at the place of the first one. What the second one
// needs is moved in front of it.
// CHECK-LABEL: func.func @interleaved(
// CHECK: math.exp
// CHECK: imap.generic (i)[j] {{.*}} fold [add f32, maximumf f32]
// CHECK: tensor.extract %{{.*}}#0
func.func @interleaved(%x: tensor<64x32xf32>, %c: tensor<64x32xf32>) -> (f32, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<64xf32>
  %s = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31]
      ins(%x[i, j] : tensor<64x32xf32>) outs(%e[i] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %v = tensor.extract %s[%c0] : tensor<64xf32>
  %w = imap.generic (i)[k] domain: i in [0, 63], k in [0, 31]
      ins(%c[i, k] : tensor<64x32xf32>) outs(%e[i] : tensor<64xf32>) fold [mul f32] {
  ^bb0(%a: f32):
    %z = math.exp %a : f32
    imap.yield %z : f32
  } -> tensor<64xf32>
  %m = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31]
      ins(%x[i, j], %w[i] : tensor<64x32xf32>, tensor<64xf32>) outs(%e[i] : tensor<64xf32>) fold [maximumf f32] {
  ^bb0(%a: f32, %b: f32):
    %z = arith.mulf %a, %b : f32
    imap.yield %z : f32
  } -> tensor<64xf32>
  return %v, %m : f32, tensor<64xf32>
}

// -----

// The sum of squared differences needs the mean first.
// CHECK-LABEL: func.func @path(
// CHECK-COUNT-3: imap.generic
// REMARK: remark: [Missed] unmerged | Category:imap-fuse | {{.*}}Reason="an operation between the two needs the first and is needed by the second"
func.func @path(%x: tensor<64x32xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %s = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31]
      ins(%x[i, j] : tensor<64x32xf32>) outs(%e[i] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %r = imap.generic (i) domain: i in [0, 63] ins(%s[63 - i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%a: f32):
    %z = math.exp %a : f32
    imap.yield %z : f32
  } -> tensor<64xf32>
  %q = imap.generic (i)[j] domain: i in [0, 63], j in [0, 31]
      ins(%x[i, j], %r[i] : tensor<64x32xf32>, tensor<64xf32>) outs(%e[i] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<64xf32>
  return %q : tensor<64xf32>
}

// -----

// Other elements than those of the own point.
// CHECK-LABEL: func.func @shifted(
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] unmerged | Category:imap-fuse | {{.*}}Reason="the consumer reads other elements of the result than the one of its own point"
func.func @shifted(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %s = imap.generic (i) domain: i in [0, 63] ins(%x[i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%a: f32):
    %z = math.exp %a : f32
    imap.yield %z : f32
  } -> tensor<64xf32>
  %r = imap.generic (i) domain: i in [0, 63] ins(%s[63 - i], %x[i] : tensor<64xf32>, tensor<64xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %z = arith.addf %a, %b : f32
    imap.yield %z : f32
  } -> tensor<64xf32>
  return %s, %r : tensor<64xf32>, tensor<64xf32>
}

// -----

// Fewer points.
// CHECK-LABEL: func.func @points(
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] unmerged | Category:imap-fuse | {{.*}}Reason="the operations have different points"
func.func @points(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<32xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %h = tensor.empty() : tensor<32xf32>
  %s = imap.generic (i) domain: i in [0, 63] ins(%x[i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>) {
  ^bb0(%a: f32):
    %z = math.exp %a : f32
    imap.yield %z : f32
  } -> tensor<64xf32>
  %r = imap.generic (i) domain: i in [0, 31] ins(%x[i] : tensor<64xf32>) outs(%h[i] : tensor<32xf32>) {
  ^bb0(%a: f32):
    %z = math.sqrt %a : f32
    imap.yield %z : f32
  } -> tensor<32xf32>
  return %s, %r : tensor<64xf32>, tensor<32xf32>
}

// -----

// A product that is returned, and its reader.
// CHECK-LABEL: func.func @products(
// CHECK-COUNT-2: imap.generic
// REMARK: [Missed] unmerged | Category:imap-fuse | {{.*}}Reason="a product keeps its registers for one result"
func.func @products(%x: tensor<64x32xf32>, %u: tensor<32x32xf32>, %v: tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %e = tensor.empty() : tensor<64x32xf32>
  %s = imap.generic (i, j)[k] domain: i in [0, 63], j in [0, 31], k in [0, 31]
      ins(%x[i, k], %u[k, j] : tensor<64x32xf32>, tensor<32x32xf32>) outs(%e[i, j] : tensor<64x32xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %z = arith.mulf %a, %b : f32
    imap.yield %z : f32
  } -> tensor<64x32xf32>
  %r = imap.generic (i, j) domain: i in [0, 63], j in [0, 31]
      ins(%s[i, j], %v[i, j] : tensor<64x32xf32>, tensor<64x32xf32>) outs(%e[i, j] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %z = arith.mulf %a, %b : f32
    imap.yield %z : f32
  } -> tensor<64x32xf32>
  return %s, %r : tensor<64x32xf32>, tensor<64x32xf32>
}
