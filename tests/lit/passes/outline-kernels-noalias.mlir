// RUN: tc-opt %s --imap-outline-kernels | FileCheck %s

// A kernel that may get one of two buffers shares no memory with a third one.
// CHECK: imap.launch @kernels::@f_0 threads(%{{.*}}) args(%[[A:.*]], %arg2 :
// CHECK: imap.launch @kernels::@f_1 threads(%{{.*}}) args(%[[A]], %arg0, %arg2 :
// CHECK: imap.launch @kernels::@f_2 threads(%{{.*}}) args(%[[X:.*]], %arg2 :
// CHECK: gpu.func @f_0(%{{.*}}: memref<8xf32> {llvm.noalias}, %{{.*}}: memref<8xf32> {llvm.noalias}) kernel
// CHECK: gpu.func @f_1(%{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32> {llvm.noalias}) kernel
// CHECK: gpu.func @f_2(%{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32>) kernel
func.func @f(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>, %c: i1, %n: index) {
  %a = scf.if %c -> memref<8xf32> {
    scf.yield %x : memref<8xf32>
  } else {
    scf.yield %y : memref<8xf32>
  }
  imap.generic (i) domain: i in [0, 7] ins(%a[i] : memref<8xf32>) outs(%z[i] : memref<8xf32>) {
  ^bb0(%p: f32):
    %q = arith.negf %p : f32
    imap.yield %q : f32
  }
  imap.generic (i) domain: i in [0, 7] ins(%a[i], %x[i] : memref<8xf32>, memref<8xf32>) outs(%z[i] : memref<8xf32>) {
  ^bb0(%p: f32, %r: f32):
    %q = arith.addf %p, %r : f32
    imap.yield %q : f32
  }
  // The buffers change places, so that the carried one may be the third one.
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 iter_args(%p = %x, %q = %z) -> (memref<8xf32>, memref<8xf32>) {
    imap.generic (i) domain: i in [0, 7] ins(%p[i] : memref<8xf32>) outs(%z[i] : memref<8xf32>) {
    ^bb0(%v: f32):
      %w = arith.negf %v : f32
      imap.yield %w : f32
    }
    scf.yield %q, %p : memref<8xf32>, memref<8xf32>
  }
  return
}
