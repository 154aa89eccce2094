// RUN: tc-opt %s --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-imap-to-gpu{block-size=100})))'

gpu.module @kernels {
  // expected-error @below {{'block-size' expects a multiple of 32, at most 1024}}
  gpu.func @size(%x: memref<8xf32>) kernel {
    gpu.return
  }
}
