// RUN: tc-opt %s --imap-permute-results --remarks-filter=imap-permute-results 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// REMARK: remark: [Passed] permuted | Category:imap-permute-results | Function=weights | From=tensor<32x8xf32>, To=tensor<8x32xf32>
// REMARK: remark: [Passed] permuted | Category:imap-permute-results | Function=weights | From=tensor<32x8xf32>, To=tensor<8x32xf32>
// REMARK-NOT: remark

// Weights of attention, normalized along columns: the last product contracts the dimension along which others fold.
// CHECK-LABEL: func.func @weights
// CHECK:         %[[S:.*]] = imap.generic (i, j)[k] {{.*}} outs(%{{.*}}[j, i] : tensor<8x32xf32>)
// CHECK:         %[[M:.*]] = imap.generic (j)[i] {{.*}} ins(%[[S]][j, i] : tensor<8x32xf32>)
// CHECK:         %[[P:.*]] = imap.generic (i, j) {{.*}} ins(%[[S]][j, i], %[[M]][j] : {{.*}}) outs(%{{.*}}[j, i] : tensor<8x32xf32>)
// CHECK:         imap.generic (j, d)[i] {{.*}} ins(%[[P]][j, i], %{{.*}}[i, d] : tensor<8x32xf32>, tensor<32x4xf32>)
func.func @weights(%key: tensor<32x16xf32>, %query: tensor<8x16xf32>, %value: tensor<32x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<32x8xf32>
  %s = imap.generic (i, j)[k] domain: i in [0, 31], j in [0, 7], k in [0, 15] ins(%key[i, k], %query[j, k] : tensor<32x16xf32>, tensor<8x16xf32>) outs(%e[i, j] : tensor<32x8xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %v = arith.mulf %a, %b : f32
    imap.yield %v : f32
  } -> tensor<32x8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %m = imap.generic (j)[i] domain: j in [0, 7], i in [0, 31] ins(%s[i, j] : tensor<32x8xf32>) outs(%f[j] : tensor<8xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  %p = imap.generic (i, j) domain: i in [0, 31], j in [0, 7] ins(%s[i, j], %m[j] : tensor<32x8xf32>, tensor<8xf32>) outs(%e[i, j] : tensor<32x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %v = arith.subf %a, %b : f32
    imap.yield %v : f32
  } -> tensor<32x8xf32>
  %g = tensor.empty() : tensor<8x4xf32>
  %r = imap.generic (j, d)[i] domain: j in [0, 7], d in [0, 3], i in [0, 31] ins(%p[i, j], %value[i, d] : tensor<32x8xf32>, tensor<32x4xf32>) outs(%g[j, d] : tensor<8x4xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %v = arith.mulf %a, %b : f32
    imap.yield %v : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// The result of the first product is contiguous along the columns of a factor, as in a convolution: it stays.
// CHECK-LABEL: func.func @contiguous
// CHECK:         imap.generic (i, j)[k] {{.*}} outs(%{{.*}}[i, j] : tensor<32x8xf32>)
func.func @contiguous(%a: tensor<32x16xf32>, %b: tensor<16x8xf32>, %c: tensor<32x4xf32>) -> (tensor<8xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<32x8xf32>
  %s = imap.generic (i, j)[k] domain: i in [0, 31], j in [0, 7], k in [0, 15] ins(%a[i, k], %b[k, j] : tensor<32x16xf32>, tensor<16x8xf32>) outs(%e[i, j] : tensor<32x8xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %v = arith.mulf %x, %y : f32
    imap.yield %v : f32
  } -> tensor<32x8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %m = imap.generic (j)[i] domain: j in [0, 7], i in [0, 31] ins(%s[i, j] : tensor<32x8xf32>) outs(%f[j] : tensor<8xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<8xf32>
  %g = tensor.empty() : tensor<8x4xf32>
  %r = imap.generic (j, d)[i] domain: j in [0, 7], d in [0, 3], i in [0, 31] ins(%s[i, j], %c[i, d] : tensor<32x8xf32>, tensor<32x4xf32>) outs(%g[j, d] : tensor<8x4xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %v = arith.mulf %x, %y : f32
    imap.yield %v : f32
  } -> tensor<8x4xf32>
  return %m, %r : tensor<8xf32>, tensor<8x4xf32>
}
