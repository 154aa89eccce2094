// RUN: tc-opt %s --limit-vectorization=max-conditional-ops=2 | FileCheck %s
// RUN: tc-opt %s --limit-vectorization | FileCheck %s --check-prefix=DEFAULT

// Only the innermost loop, and only if its branches are long.
// CHECK-LABEL: func.func @branches(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK:           } {llvm.loop_annotation = #[[ANNOTATION:.*]]}
// CHECK-NEXT:      scf.for
// CHECK:             scf.if
// CHECK:             }
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// DEFAULT-NOT: llvm.loop_annotation
func.func @branches(%n: index, %p: memref<?xi1>, %o: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %condition = memref.load %p[%j] : memref<?xi1>
      scf.if %condition {
        %sum = arith.addi %i, %j : index
        %product = arith.muli %sum, %j : index
        memref.store %product, %o[%j] : memref<?xindex>
      }
    }
    scf.for %j = %c0 to %n step %c1 {
      %condition = memref.load %p[%j] : memref<?xi1>
      scf.if %condition {
        memref.store %i, %o[%j] : memref<?xindex>
      }
    }
  }
  return
}
