// RUN: tc-opt %s --unshare-empty-tensors --canonicalize | FileCheck %s

// In a branch, the empty tensor stands in the branch.
// CHECK-LABEL: func.func @two(
// CHECK:         %[[A:.*]] = tensor.empty() : tensor<4xf32>
// CHECK:         imap.generic {{.*}} outs(%[[A]][{{.*}}] :
// CHECK:         scf.if
// CHECK:           %[[B:.*]] = tensor.empty() : tensor<4xf32>
// CHECK:           imap.generic {{.*}} outs(%[[B]][{{.*}}] :
func.func @two(%x: tensor<4xf32>, %p: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %empty = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%empty[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    %v = arith.negf %in : f32
    imap.yield %v : f32
  } -> tensor<4xf32>
  %b = scf.if %p -> (tensor<4xf32>) {
    %c = imap.generic (d0) domain: d0 in [0, 3] ins(%x[d0] : tensor<4xf32>) outs(%empty[d0] : tensor<4xf32>) {
    ^bb0(%in: f32):
      %v = arith.addf %in, %in : f32
      imap.yield %v : f32
    } -> tensor<4xf32>
    scf.yield %c : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
