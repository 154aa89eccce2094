// RUN: tc-opt %s --limit-vectorization=max-conditional-ops=2 | FileCheck %s
// RUN: tc-opt %s --limit-vectorization | FileCheck %s --check-prefix=DEFAULT
// RUN: tc-opt %s --limit-vectorization=max-conditional-ops=2 --convert-scf-to-cf --convert-cf-to-llvm \
// RUN:   --mlir-print-op-generic | FileCheck %s --check-prefix=LLVM

// Only the innermost loop, and only if its branches are long.
// CHECK-LABEL: func.func @branches(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK:           } {loop_annotation = #[[ANNOTATION:.*]]}
// CHECK-NEXT:      scf.for
// CHECK:             scf.if
// CHECK:             }
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// DEFAULT:       #[[VECTORIZE:.*]] = #llvm.loop_vectorize<disable = true>
// DEFAULT-DAG:   #[[UNROLL:.*]] = #llvm.loop_annotation<unroll = #{{[a-z_]*}}>
// DEFAULT-DAG:   #[[BOTH:.*]] = #llvm.loop_annotation<vectorize = #[[VECTORIZE]], unroll = #{{[a-z_]*}}>
// DEFAULT-LABEL: func.func @branches(
// DEFAULT-NOT:     loop_annotation
// A property of the branch, that is, what the translation to LLVM IR reads.
// LLVM: "llvm.br"{{.*}} <{loop_annotation =
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

// A loop with a minimum or maximum of floats is not unrolled; with many, not vectorized either.
// Integers and vectors are no trouble.
// DEFAULT-LABEL: func.func @extrema(
// DEFAULT:         arith.maxnumf
// DEFAULT:         {loop_annotation = #[[UNROLL]]}
// DEFAULT:         arith.maxsi
// DEFAULT:         arith.maxnumf
// DEFAULT-NOT:     loop_annotation
// DEFAULT-LABEL: func.func @many(
// DEFAULT:         {loop_annotation = #[[BOTH]]}
func.func @extrema(%n: index, %a: f32, %i: i32, %v: vector<4xf32>, %o: memref<?xf32>,
                   %p: memref<?xi32>, %q: memref<?xvector<4xf32>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %n step %c1 {
    %old = memref.load %o[%j] : memref<?xf32>
    %max = arith.maxnumf %old, %a : f32
    memref.store %max, %o[%j] : memref<?xf32>
  }
  scf.for %j = %c0 to %n step %c1 {
    %old = memref.load %p[%j] : memref<?xi32>
    %max = arith.maxsi %old, %i : i32
    memref.store %max, %p[%j] : memref<?xi32>
  }
  scf.for %j = %c0 to %n step %c1 {
    %old = memref.load %q[%j] : memref<?xvector<4xf32>>
    %max = arith.maxnumf %old, %v : vector<4xf32>
    memref.store %max, %q[%j] : memref<?xvector<4xf32>>
  }
  return
}

func.func @many(%n: index, %a: f32, %o: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %n step %c1 {
    %0 = memref.load %o[%j] : memref<?xf32>
    %1 = arith.maxnumf %0, %a : f32
    %2 = arith.minnumf %1, %a : f32
    %3 = arith.maximumf %2, %a : f32
    %4 = arith.minimumf %3, %a : f32
    %5 = arith.maxnumf %4, %a : f32
    %6 = arith.minnumf %5, %a : f32
    %7 = arith.maximumf %6, %a : f32
    %8 = arith.minimumf %7, %a : f32
    %9 = arith.maxnumf %8, %a : f32
    memref.store %9, %o[%j] : memref<?xf32>
  }
  return
}
