// RUN: tc-opt %s --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-imap-to-gpu)))'
// RUN: not tc-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-imap-to-gpu{block-size=100})))' 2>&1 \
// RUN:     | FileCheck %s
// CHECK: convert-imap-to-gpu-invalid.mlir:[[# @LINE + 3]]:3: error: 'gpu.func' op 'block-size' expects a multiple of 32, at most 1024

gpu.module @kernels {
  gpu.func @scan(%x: memref<8xf32>, %y: memref<8xf32>) kernel {
    // expected-error @below {{'imap.scan' op is not supported on GPUs; only 'imap.generic' is}}
    imap.scan (t) domain: t in [0, 7] scan t inclusive
        ins(%x[t] : memref<8xf32>) outs(%y[t] : memref<8xf32>) fold [add f32] {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
}

gpu.module @others {
  gpu.func @two(%x: memref<8xf32>, %y: memref<8xf32>) kernel {
    imap.generic (i) domain: i in [0, 7] ins(%x[i] : memref<8xf32>) outs(%y[i] : memref<8xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    // expected-error @below {{'imap.generic' op is a second operation of this kernel, whose blocks do not wait for each other; give it a kernel of its own}}
    imap.generic (i) domain: i in [0, 7] ins(%y[7 - i] : memref<8xf32>) outs(%x[i] : memref<8xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
}
