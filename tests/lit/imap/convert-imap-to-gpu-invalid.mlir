// RUN: tc-opt %s --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-imap-to-gpu)))'
// RUN: not tc-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-imap-to-gpu{block-size=100})))' 2>&1 \
// RUN:     | FileCheck %s
// CHECK: convert-imap-to-gpu-invalid.mlir:[[# @LINE + 3]]:3: error: 'gpu.func' op 'block-size' expects a multiple of 32, at most 1024

gpu.module @kernels {
  gpu.func @sort(%x: memref<20000xf32>, %y: memref<15000xf32>) kernel {
    // expected-error @below {{'imap.sort' op keeps 15000 of 20000 items per row, for which shared memory is too small; keep whole rows, and take a slice of them}}
    imap.sort dim = 0 ins(%x : memref<20000xf32>) outs(%y : memref<15000xf32>) {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf olt, %a, %b : f32
      imap.yield %less : i1
    }
    gpu.return
  }
  gpu.func @stable_sort(%x: memref<20000xf32>, %y: memref<20000xf32>) kernel {
    // expected-error @below {{'imap.sort' op sorts 20000 items per row, for whose places shared memory is too small; add a destination of 'i32' for them}}
    imap.sort dim = 0 stable ins(%x : memref<20000xf32>) outs(%y : memref<20000xf32>) {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf olt, %a, %b : f32
      imap.yield %less : i1
    }
    gpu.return
  }
}

gpu.module @others {
  gpu.func @vector(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
    // expected-error @below {{'imap.generic' op has the step 'vector [i = 8] lanes i', which the code of a GPU cannot obey}}
    imap.generic (i) domain: i in [0, 63] ins(%x[i] : memref<64xf32>) outs(%y[i] : memref<64xf32>) attributes {imap.schedule = #imap.schedule<vector [i = 8] lanes i>} {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
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
