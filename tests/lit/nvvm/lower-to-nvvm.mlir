// RUN: tc-opt %s --lower-to-nvvm | FileCheck %s
// RUN: tc-opt %s --lower-to-nvvm=index-bitwidth=64 | FileCheck %s --check-prefix=WIDE

// Indices have 32 bits, shared memory is a variable, shuffles and barriers are intrinsics, and functions are
// calls of built-ins.
// CHECK-DAG:   llvm.func @tc_exp_f32(f32) -> f32
// CHECK-DAG:   llvm.func @erff(f32) -> f32
// CHECK-DAG:   llvm.mlir.global internal @{{.*}}() {addr_space = 3 : i32{{.*}}} : !llvm.array<8 x f32>
// CHECK-LABEL: llvm.func @block(%arg0: !llvm.ptr, %arg1: !llvm.ptr)
// CHECK-SAME:    nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>
// CHECK:         nvvm.read.ptx.sreg.tid.x range <i32, 0, 256> : i32
// CHECK:         llvm.getelementptr inbounds|nuw %arg0[%{{.*}}] : (!llvm.ptr, i32) -> !llvm.ptr, f32
// CHECK:         llvm.call @tc_exp_f32
// CHECK:         nvvm.shfl.sync bfly
// CHECK:         nvvm.barrier
// CHECK:         llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK:         llvm.call @erff
// CHECK-NOT:     __nv_
// WIDE:        llvm.getelementptr inbounds|nuw %arg0[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
gpu.module @kernels {
  gpu.func @block(%x: memref<2x5000xf32>, %y: memref<2xf32>) kernel {
    imap.generic (i)[j] domain: i in [0, 1], j in [0, 4999]
        ins(%x[i, j] : memref<2x5000xf32>) outs(%y[i] : memref<2xf32>) fold [add f32] {
    ^bb0(%a: f32):
      %e = imap.builtin "exp"(%a) : f32
      imap.yield %e : f32
    } epilogue {
    ^bb0(%sum: f32, %a: f32):
      %r = math.erf %sum : f32
      imap.yield %r : f32
    }
    gpu.return
  }
}
