// RUN: tc-opt %s --separate-entry-blocks | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    llvm.br ^bb1
// CHECK-NEXT:  ^bb1:
// CHECK-NEXT:    %[[C:.*]] = arith.constant
// CHECK-NEXT:    return %[[C]]
func.func @f(%a: memref<4xf32>) -> index {
  %c = arith.constant 0 : index
  return %c : index
}

// A declaration has no blocks.
// CHECK: func.func private @declared(memref<4xf32>)
func.func private @declared(memref<4xf32>)
