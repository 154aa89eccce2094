// RUN: tc-opt %s --note-work --mlir-print-debuginfo | FileCheck %s --check-prefix=NOTE
// RUN: tc-opt %s --note-work --imap-outline-functions=max-operations=0 --time-kernels | FileCheck %s
// RUN: tc-opt %s --imap-outline-functions --time-kernels | FileCheck %s --check-prefix=FEW

// 8 additions, and 8 elements that are read and written; the bounds of the second operation are not constant.
// NOTE-DAG: tc.schedules = ["", "tile [d0 = 4], pack in 0", ""]
// NOTE-DAG: loc(fused<array<i64: 0, 8, 64>>[#loc{{[0-9]+}}])
// NOTE-DAG: loc(fused<array<i64: 1, -1, -1>>[#loc{{[0-9]+}}])
// NOTE-DAG: loc(fused<array<i64: 2, 8, 64>>[#loc{{[0-9]+}}])

// The operation in the loop and the one after it share a function. The nest of loops has no noted work.
// CHECK-NOT:  tc.schedules
// CHECK:      module attributes {tc.kernels = [
// CHECK-SAME:   {bytes = array<i64: 64>, flops = array<i64: 8>, lines = array<i64: [[#@LINE+26]], [[#@LINE+38]]>, name = "f_0"},
// CHECK-SAME:   {lines = array<i64: [[#@LINE+31]]>, name = "f_1", schedule = "tile [d0 = 4], pack in 0"},
// CHECK-SAME:   {bytes = array<i64: 32>, flops = array<i64: 0>, lines = array<i64: [[#@LINE+41]]>, name = "f_2"}]}
// CHECK:      func.func private @tc_profile_begin(i64)
// CHECK:      func.func private @tc_profile_end(i64)
// CHECK:      func.func private @f_0
// CHECK:      func.func @f
// CHECK:        scf.for
// CHECK-NEXT:     %[[FIRST:.*]] = arith.constant 0 : i64
// CHECK-NEXT:     call @tc_profile_begin(%[[FIRST]])
// CHECK-NEXT:     call @f_0
// CHECK-NEXT:     call @tc_profile_end(%[[FIRST]])
// CHECK:        call @f_1
// CHECK:        call @f_0
// CHECK:        %[[THIRD:.*]] = arith.constant 2 : i64
// CHECK-NEXT:   call @tc_profile_begin(%[[THIRD]])
// CHECK-NEXT:   call @f_2
// CHECK-NEXT:   call @tc_profile_end(%[[THIRD]])

// FEW-NOT: tc_profile
// FEW-NOT: tc.kernels
func.func @f(%a: memref<8xf32>, %b: memref<8xf32>, %n: index, %zero: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c1 {
    imap.generic (d0) domain: d0 in [0, 7] ins(%a[d0] : memref<8xf32>) outs(%b[d0] : memref<8xf32>) {
    ^bb0(%x: f32):
      %y = arith.addf %x, %x : f32
      imap.yield %y : f32
    }
  }
  imap.generic (d0){n} domain: d0 in [0, n - 1], n in [1, 8]
    runtime(%n : index) ins(%a[d0] : memref<8xf32>) outs(%b[d0] : memref<8xf32>) attributes {imap.schedule = #imap.schedule<tile [d0 = 4], pack in 0>} {
  ^bb0(%x: f32):
    %y = arith.mulf %x, %x : f32
    imap.yield %y : f32
  }
  imap.generic (d0) domain: d0 in [0, 7] ins(%b[d0] : memref<8xf32>) outs(%a[d0] : memref<8xf32>) {
  ^bb0(%x: f32):
    %y = arith.addf %x, %x : f32
    imap.yield %y : f32
  }
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %zero, %b[%i] : memref<8xf32>
  }
  return
}
