// RUN: not tc-opt %s --split-input-file 2>&1 | FileCheck %s

func.func @ranges(%a: tensor<4xf32>) {
  // CHECK: invalid-scatter.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scatter' op has range variables; all variables of a scatter are dimensions
  imap.scatter (i)[k] domain: i in [0, 3], k in [0, 1] ins(%a[i] : tensor<4xf32>) outs(%a[k] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
}

// -----

func.func @start(%a: tensor<4xf32>) {
  // CHECK: invalid-scatter.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scatter' op accumulator 0 starts from the destination; expected an operation and a type
  imap.scatter (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[3 - i] : tensor<4xf32>) fold [add f32 from 1.0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
}

// -----

func.func @epilogue(%a: tensor<4xf32>) {
  // CHECK: invalid-scatter.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scatter' op expected a region 'combine' or a 'fold', and no epilogue
  imap.scatter (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[3 - i] : tensor<4xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } epilogue {
  ^bb0(%s: f32, %x: f32):
    imap.yield %s : f32
  } -> tensor<4xf32>
}

// -----

func.func @guards(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // CHECK: invalid-scatter.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scatter' op expected all destinations to have the same guard
  imap.scatter (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[3 - i], %b[i] where i in [1, 3] : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x, %x : f32, f32
  } -> tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @fill(%a: tensor<4xf32>) {
  // CHECK: invalid-scatter.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scatter' op destination 0 has an 'else', but nothing is read there
  imap.scatter (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[3 - i] where i in [1, 3] else 1.0 : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
}

// -----

func.func @types(%a: tensor<4xf32>) {
  // CHECK: invalid-scatter.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scatter' op has accumulators of (f64) and destinations of (f32)
  imap.scatter (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[3 - i] : tensor<4xf32>) fold [add f64] {
  ^bb0(%x: f32):
    %y = arith.extf %x : f32 to f64
    imap.yield %y : f64
  } -> tensor<4xf32>
}
