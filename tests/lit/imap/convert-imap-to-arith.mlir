// RUN: tc-opt %s --convert-imap-to-arith | FileCheck %s

// Maps become arithmetic with rounding toward negative infinity, built-ins calls.
// CHECK-LABEL: func.func @apply(
// CHECK-NOT:     imap.apply
// CHECK:         arith.muli
// CHECK-NOT:     imap.builtin
// CHECK:         call @tc_erfinv_f32
func.func @apply(%i: index, %k: index, %x: f32) -> (index, f32) {
  %e = imap.apply <(d0, d1) -> (d0 * 3 + d1)>(%i, %k) : index
  %y = imap.builtin "erfinv"(%x) : f32
  return %e, %y : index, f32
}
