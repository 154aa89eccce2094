// RUN: tc-opt --imap-fuse --split-input-file %s | FileCheck %s
// RUN: tc-opt --imap-fuse --split-input-file --remarks-filter=imap-fuse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Heads in groups, as one dimension: quotient and remainder read each element of the product once.
// REMARK: [Passed] fused | Category:imap-fuse | Function=heads | As=epilogue
// CHECK-LABEL: func.func @heads
// CHECK:         imap.generic (i, h, j)[k] domain: i in [0, 6], h in [0, 7], j in [0, 15], k in [0, 31]
// CHECK-SAME:        ins(%{{.*}}[h / 4, h mod 4, i, k], %{{.*}}[h / 4, k, j] : {{.*}}) outs(%{{.*}}[i, h, j] : tensor<7x8x16xf32>)
// CHECK:         } epilogue {
// CHECK:           arith.mulf
func.func @heads(%p: tensor<2x4x7x32xf32>, %v: tensor<2x32x16xf32>) -> tensor<7x8x16xf32> {
  %e = tensor.empty() : tensor<2x16x4x7xf32>
  %a = imap.generic (b, j, g, i)[k] domain: b in [0, 1], j in [0, 15], g in [0, 3], i in [0, 6], k in [0, 31] ins(%p[b, g, i, k], %v[b, k, j] : tensor<2x4x7x32xf32>, tensor<2x32x16xf32>) outs(%e[b, j, g, i] : tensor<2x16x4x7xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    %m = arith.mulf %x, %y : f32
    imap.yield %m : f32
  } -> tensor<2x16x4x7xf32>
  %f = tensor.empty() : tensor<7x8x16xf32>
  %r = imap.generic (i, h, j) domain: i in [0, 6], h in [0, 7], j in [0, 15] ins(%a[h floordiv 4, j, h mod 4, i] : tensor<2x16x4x7xf32>) outs(%f[i, h, j] : tensor<7x8x16xf32>) {
  ^bb0(%x: f32):
    %m = arith.mulf %x, %x : f32
    imap.yield %m : f32
  } -> tensor<7x8x16xf32>
  return %r : tensor<7x8x16xf32>
}

// -----

// A part of the digits leaves numbers that read the same element.
// REMARK: [Missed] apart | Category:imap-fuse | Function=one_digit | {{.*}}Reason="the consumer does not read each element of the reduction once"
func.func @one_digit(%p: tensor<2x7x32xf32>) -> tensor<7x8xf32> {
  %e = tensor.empty() : tensor<2x7xf32>
  %a = imap.generic (b, i)[k] domain: b in [0, 1], i in [0, 6], k in [0, 31] ins(%p[b, i, k] : tensor<2x7x32xf32>) outs(%e[b, i] : tensor<2x7xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<2x7xf32>
  %f = tensor.empty() : tensor<7x8xf32>
  %r = imap.generic (i, h) domain: i in [0, 6], h in [0, 7] ins(%a[h floordiv 4, i] : tensor<2x7xf32>) outs(%f[i, h] : tensor<7x8xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<7x8xf32>
  return %r : tensor<7x8xf32>
}

// -----

// Neighbouring results would be parts of two dimensions.
// REMARK: [Missed] apart | Category:imap-fuse | Function=neighbours | {{.*}}Reason="the consumer divides 'h', along which its results are neighbours"
func.func @neighbours(%p: tensor<2x4x7x32xf32>) -> tensor<7x8xf32> {
  %e = tensor.empty() : tensor<2x4x7xf32>
  %a = imap.generic (b, g, i)[k] domain: b in [0, 1], g in [0, 3], i in [0, 6], k in [0, 31] ins(%p[b, g, i, k] : tensor<2x4x7x32xf32>) outs(%e[b, g, i] : tensor<2x4x7xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<2x4x7xf32>
  %f = tensor.empty() : tensor<7x8xf32>
  %r = imap.generic (i, h) domain: i in [0, 6], h in [0, 7] ins(%a[h floordiv 4, h mod 4, i] : tensor<2x4x7xf32>) outs(%f[i, h] : tensor<7x8xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<7x8xf32>
  return %r : tensor<7x8xf32>
}
