// RUN: not tc-run %s --entry twice --check 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not tc-run %s --entry backwards --check 2>&1 | FileCheck %s --check-prefix=BACKWARDS
// RUN: tc-run %s --entry overlapping_rows --check
// RUN: tc-opt %s | tc-opt --mlir-print-op-generic | tc-opt | FileCheck %s

// TWICE: scatter-promises.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'imap.scatter' op promises 'unique', but updates element [0] twice (at i = 3)
func.func @twice(%y: tensor<3xi32>) -> tensor<3xi32> {
  %g = imap.scatter unique (i) domain: i in [0, 3] outs(%y[i mod 3] : tensor<3xi32>) {
    %one = arith.constant 1 : i32
    imap.yield %one : i32
  } -> tensor<3xi32>
  return %g : tensor<3xi32>
}

// BACKWARDS: scatter-promises.mlir:[[#@LINE+3]]:{{[0-9]+}}: error: 'imap.scatter' op promises 'sorted', but updates element [1] after element [2] (at i = 2)
func.func @backwards(%y: tensor<4xi32>) -> tensor<4xi32> {
  %ids = arith.constant dense<[0, 2, 1]> : tensor<3xi32>
  %g = imap.scatter sorted (i){r} domain: i in [0, 2] runtime(%ids[i] : tensor<3xi32>) outs(%y[r] where r in [0, 3] : tensor<4xi32>) {
    %one = arith.constant 1 : i32
    imap.yield %one : i32
  } -> tensor<4xi32>
  return %g : tensor<4xi32>
}

// Rows are in order, although each of them begins before the one before it ends.
func.func @overlapping_rows(%y: tensor<6xi32>) -> tensor<6xi32> {
  %ids = arith.constant dense<[0, 1, 1, 3]> : tensor<4xi32>
  %g = imap.scatter sorted (i, w){r} domain: i in [0, 3], w in [0, 2] runtime(%ids[i] : tensor<4xi32>)
    outs(%y[r + w] where r in [0, 3] : tensor<6xi32>) fold [add i32] {
    %w = imap.index dim 1
    %v = arith.index_cast %w : index to i32
    imap.yield %v : i32
  } -> tensor<6xi32>
  return %g : tensor<6xi32>
}

// CHECK-LABEL: func.func @both(
// CHECK:         imap.scatter unique sorted (i){r}
func.func @both(%ids: tensor<9xi32>, %y: tensor<10xi32>) -> tensor<10xi32> {
  %g = imap.scatter unique sorted (i){r} domain: i in [0, 8] runtime(%ids[i] : tensor<9xi32>)
    outs(%y[r] where r in [0, 9] : tensor<10xi32>) {
    %one = arith.constant 1 : i32
    imap.yield %one : i32
  } -> tensor<10xi32>
  return %g : tensor<10xi32>
}
