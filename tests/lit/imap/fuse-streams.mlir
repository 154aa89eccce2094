// RUN: tc-opt --imap-fuse=max-streams=4 %s | FileCheck %s
// RUN: tc-opt --imap-fuse=max-streams=4 --remarks-filter=imap-fuse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// An epilogue may read as many tensors as an operation may access at each point.
// REMARK: remark: [Passed] fused | Category:imap-fuse | Function=few
// REMARK: remark: [Missed] apart | Category:imap-fuse | Function=many {{.*}}the operation would access 5 tensors at each point, more than 4
// CHECK-LABEL: func.func @few
// CHECK-COUNT-1: imap.generic
// CHECK-LABEL: func.func @many
// CHECK-COUNT-2: imap.generic
func.func @few(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %p = imap.generic (i, j)[k] domain: i in [0, 3], j in [0, 3], k in [0, 7] ins(%a[i, k], %b[k, j] : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e[i, j] : tensor<4x4xf32>) fold [add f32] {
  ^bb0(%u: f32, %v: f32):
    %m = arith.mulf %u, %v : f32
    imap.yield %m : f32
  } -> tensor<4x4xf32>
  %r = imap.generic (i, j) domain: i in [0, 3], j in [0, 3] ins(%p[i, j], %x[i, j], %y[j, i] : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) outs(%e[i, j] : tensor<4x4xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %s = arith.addf %u, %v : f32
    %t = arith.addf %s, %w : f32
    imap.yield %t : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func @many(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %p = imap.generic (i, j)[k] domain: i in [0, 3], j in [0, 3], k in [0, 7] ins(%a[i, k], %b[k, j] : tensor<4x8xf32>, tensor<8x4xf32>) outs(%e[i, j] : tensor<4x4xf32>) fold [add f32] {
  ^bb0(%u: f32, %v: f32):
    %m = arith.mulf %u, %v : f32
    imap.yield %m : f32
  } -> tensor<4x4xf32>
  %r = imap.generic (i, j) domain: i in [0, 3], j in [0, 3] ins(%p[i, j], %x[i, j], %x[j, i], %y[j, i] : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) outs(%e[i, j] : tensor<4x4xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %z: f32):
    %s = arith.addf %u, %v : f32
    %t = arith.addf %s, %w : f32
    %q = arith.addf %t, %z : f32
    imap.yield %q : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
