// RUN: tc-opt %s --unshare-empty-tensors --canonicalize | FileCheck %s
// RUN: tc-opt %s --unshare-empty-tensors | FileCheck %s --check-prefix=SLICES

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

// A tile of which the last one is smaller is a slice.
// SLICES-LABEL: func.func @slices(
// SLICES:         imap.generic {{.*}} outs(
// SLICES:         %[[EMPTY:.*]] = tensor.empty() : tensor<8xf32>
// SLICES:         %[[B:.*]] = tensor.extract_slice %[[EMPTY]]
// SLICES:         imap.generic {{.*}} outs(%[[B]][{{.*}}] :
func.func @slices(%x: tensor<?xf32>, %n: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %empty = tensor.empty() : tensor<8xf32>
  %slice = tensor.extract_slice %empty[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
  %a = imap.generic (d0){n} domain: d0 in [0, n - 1], n in [1, 8] runtime(%n : index) ins(%x[d0] : tensor<?xf32>) outs(%slice[d0] : tensor<?xf32>) {
  ^bb0(%in: f32):
    %v = arith.negf %in : f32
    imap.yield %v : f32
  } -> tensor<?xf32>
  %b = imap.generic (d0){n} domain: d0 in [0, n - 1], n in [1, 8] runtime(%n : index) ins(%a[d0] : tensor<?xf32>) outs(%slice[d0] : tensor<?xf32>) {
  ^bb0(%in: f32):
    %v = arith.addf %in, %in : f32
    imap.yield %v : f32
  } -> tensor<?xf32>
  return %a, %b : tensor<?xf32>, tensor<?xf32>
}
