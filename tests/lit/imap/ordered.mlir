// RUN: tc-opt %s --split-input-file --verify-diagnostics | tc-opt --split-input-file --mlir-print-op-generic | tc-opt --split-input-file | FileCheck %s
// RUN: tc-opt %s --split-input-file --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --imap-schedule-loops="vector-bits=256" --imap-vectorize="vector-bits=256" --convert-imap-to-scf="vector-bits=256" | FileCheck %s --check-prefix=LOOPS
// RUN: tc-opt %s --split-input-file --convert-imap-to-linalg | FileCheck %s --check-prefix=LINALG

// The last element that is not zero. The region does not commute, so the loops keep the order of the
// ranges, though the elements of a column lie apart.
// CHECK-LABEL: func.func @last_in_columns(
// CHECK:         fold [i32 identity 0] ordered {
// CHECK:         } combine {
// LOOPS-LABEL: func.func @last_in_columns(
// LOOPS-NOT:     vector
// LOOPS:         scf.for %[[J:.*]] = %{{.*}} to %{{.*}}
// LOOPS:           scf.for %[[I:.*]] = %{{.*}} to %{{.*}}
// LOOPS:             memref.load %{{.*}}[%[[I]], %[[J]]]
// LINALG-LABEL: func.func @last_in_columns(
// LINALG:         imap.generic
func.func @last_in_columns(%x: tensor<50x60xi32>) -> tensor<i32> {
  %e = tensor.empty() : tensor<i32>
  %y = imap.generic ()[j, i] domain: j in [0, 59], i in [0, 49]
      ins(%x[i, j] : tensor<50x60xi32>) outs(%e[] : tensor<i32>) fold [i32 identity 0] ordered {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } combine {
  ^bb0(%old: i32, %new: i32):
    %zero = arith.constant 0 : i32
    %none = arith.cmpi eq, %new, %zero : i32
    %r = arith.select %none, %old, %new : i32
    imap.yield %r : i32
  } -> tensor<i32>
  return %y : tensor<i32>
}

// -----

// A sum of floats has one accumulator, and no vector of them.
// CHECK-LABEL: func.func @sum(
// CHECK:         fold [add f32] ordered {
// LOOPS-LABEL: func.func @sum(
// LOOPS-NOT:     vector
// LOOPS-NOT:     reassoc
// LOOPS:         scf.for %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32)
// LOOPS:           arith.addf %[[SUM]], %{{.*}} fastmath<contract>
func.func @sum(%x: tensor<1000xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %y = imap.generic ()[i] domain: i in [0, 999]
      ins(%x[i] : tensor<1000xf32>) outs(%e[] : tensor<f32>) fold [add f32] ordered {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// The order of integers does not show: rows and columns are one loop.
// LOOPS-LABEL: func.func @integers(
// LOOPS:         memref.collapse_shape
// LOOPS:         scf.for %{{.*}} = %{{.*}} to %c3000
// LINALG-LABEL: func.func @integers(
// LINALG:         linalg.generic
func.func @integers(%x: tensor<50x60xi32>) -> tensor<i32> {
  %e = tensor.empty() : tensor<i32>
  %y = imap.generic ()[j, i] domain: j in [0, 59], i in [0, 49]
      ins(%x[i, j] : tensor<50x60xi32>) outs(%e[] : tensor<i32>) fold [add i32] ordered {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<i32>
  return %y : tensor<i32>
}
