// RUN: tc-run %s --entry fold --check
// RUN: tc-run %s --entry index --size arg0=0 --check
// RUN: tc-run %s --entry index --size arg0=1 --check
// RUN: tc-run %s --entry map --size arg0=0 --check
// RUN: tc-run %s --entry scatter --size arg0=0 --check
// RUN: tc-opt %s --one-shot-bufferize=bufferize-function-boundaries --convert-imap-to-scf --canonicalize | FileCheck %s

// A variable whose bounds may cross has one value at most, or none: it keeps its loop.

// CHECK-LABEL: func.func @fold(
// CHECK:         scf.for
// CHECK:           scf.for
func.func @fold(%x: tensor<2xf32>) -> tensor<4xf32> {
  %n = arith.constant dense<[1, 0, 1, 0]> : tensor<4xi8>
  %e = tensor.empty() : tensor<4xf32>
  %r = imap.generic (j)[p]{r} domain: j in [0, 3], p in [0, r - 1], r in [0, 1] runtime(%n[j] : tensor<4xi8>)
      ins(%x[p] : tensor<2xf32>) outs(%e[j] : tensor<4xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

func.func @index(%n: index, %x: tensor<2xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = imap.generic (j)[p]{r} domain: j in [0, 3], p in [1, r], r in [0, 1] runtime(%n : index)
      ins(%x[p] : tensor<2xf32>) outs(%e[j] : tensor<4xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

func.func @map(%n: index, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %r = imap.generic (j){r} domain: j in [0, r - 1], r in [0, 1] runtime(%n : index)
      ins(%x[j] : tensor<2xf32>) outs(%y[j] : tensor<2xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}

func.func @scatter(%n: index, %x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %r = imap.scatter (j){r} domain: j in [0, r - 1], r in [0, 1] runtime(%n : index)
      ins(%x[j] : tensor<2xf32>) outs(%y[j] : tensor<2xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}
