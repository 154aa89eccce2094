// RUN: tc-opt %s --imap-fuse --remarks-filter=imap-fuse 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// REMARK: remark: [Passed] narrowed | Category:imap-fuse | Function=product | Map="(d0, d1) -> (d1)"

// A product with a constant has the same value in each row: one row is computed.
// CHECK-LABEL: func.func @product
// CHECK-SAME:    %[[W:[a-z0-9]+]]: tensor<64x32xf32>, %[[B:[a-z0-9]+]]: tensor<16x64xf32>
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<64xf32>
// CHECK:         %[[R:.*]] = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 31]
// CHECK-SAME:        ins({{.*}}%[[W]][d0, s0]{{.*}} outs(%[[E]][d0] : tensor<64xf32>) fold [add f32] {
// CHECK-NOT:       epilogue
// CHECK:         imap.generic (d0, d1) domain: d0 in [0, 15], d1 in [0, 63]
// CHECK-SAME:        ins(%[[R]][d1], %[[B]][d0, d1] :
// CHECK:           arith.addf
// CHECK-NOT:     imap.generic
func.func @product(%w: tensor<64x32xf32>, %b: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %c = arith.constant dense<5.0> : tensor<f32>
  %e0 = tensor.empty() : tensor<16x32xf32>
  %r = imap.generic (d0, d1) domain: d0 in [0, 15], d1 in [0, 31]
      ins(%c[] : tensor<f32>) outs(%e0[d0, d1] : tensor<16x32xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<16x64xf32>
  %p = imap.generic (d0, d1)[s0] domain: d0 in [0, 15], d1 in [0, 63], s0 in [0, 31]
      ins(%r[d0, s0], %w[d1, s0] : tensor<16x32xf32>, tensor<64x32xf32>)
      outs(%e1[d0, d1] : tensor<16x64xf32>) fold [add f32] {
  ^bb0(%l: f32, %m: f32):
    %q = arith.mulf %l, %m : f32
    imap.yield %q : f32
  } -> tensor<16x64xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 15], d1 in [0, 63]
      ins(%p[d0, d1], %b[d0, d1] : tensor<16x64xf32>, tensor<16x64xf32>) outs(%e1[d0, d1] : tensor<16x64xf32>) {
  ^bb0(%l: f32, %m: f32):
    %q = arith.addf %l, %m : f32
    imap.yield %q : f32
  } -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// The index of a row is in the value.
// CHECK-LABEL: func.func @index
// CHECK:         imap.generic (d0, d1)[s0]
// CHECK-NOT:     imap.generic
func.func @index(%w: tensor<64x32xi32>) -> tensor<16x64xi32> {
  %e1 = tensor.empty() : tensor<16x64xi32>
  %p = imap.generic (d0, d1)[s0] domain: d0 in [0, 15], d1 in [0, 63], s0 in [0, 31]
      ins(%w[d1, s0] : tensor<64x32xi32>) outs(%e1[d0, d1] : tensor<16x64xi32>) fold [add i32] {
  ^bb0(%m: i32):
    %i = imap.index dim 0
    %k = arith.index_cast %i : index to i32
    %q = arith.muli %k, %m : i32
    imap.yield %q : i32
  } -> tensor<16x64xi32>
  return %p : tensor<16x64xi32>
}
