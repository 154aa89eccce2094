// RUN: split-file %s %t
// RUN: not tc-opt %t/foreign.mlir --export-hlo 2>&1 | FileCheck %s --check-prefix=FOREIGN
// RUN: not tc-opt %t/empty.mlir --export-hlo 2>&1 | FileCheck %s --check-prefix=EMPTY

//--- foreign.mlir
// FOREIGN: foreign.mlir:5:1: error: 'func.func' op cannot be part of an HLO module
hlo.computation @main(%x: tensor<f32>) -> tensor<f32> {
  hlo.return %x : tensor<f32>
}
func.func private @f()
//--- empty.mlir
// EMPTY: error: 'builtin.module' op expected a computation
