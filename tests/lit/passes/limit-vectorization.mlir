// RUN: tc-opt %s --limit-vectorization=max-conditional-ops=2 | FileCheck %s
// RUN: tc-opt %s --limit-vectorization | FileCheck %s --check-prefix=DEFAULT
// RUN: tc-opt %s --limit-vectorization=max-conditional-ops=2 --convert-scf-to-cf --convert-cf-to-llvm \
// RUN:   --mlir-print-op-generic | FileCheck %s --check-prefix=LLVM
// RUN: tc-opt %s --limit-vectorization=max-copied-ops=5 | FileCheck %s --check-prefix=COPIES

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

// LLVM would copy the inner loops of these: the loop carries a value between them, or has many operations.
// COPIES-LABEL: func.func @around(
// COPIES:         scf.for {{.*}} iter_args
// COPIES-NEXT:      scf.for
// COPIES-NOT:         loop_annotation
// COPIES:           }
// COPIES-NEXT:      scf.yield
// COPIES-NEXT:    } {loop_annotation = #[[ANNOTATION:.*]]}
// COPIES-NEXT:    scf.for
// COPIES:         arith.subf
// COPIES:         } {loop_annotation = #[[ANNOTATION]]}
// The inner loop has few iterations, or there is little to copy.
// COPIES-NEXT:    scf.for {{.*}} iter_args
// COPIES-NOT:     loop_annotation
// COPIES:         return
func.func @around(%x: memref<64xf32>, %y: memref<64xf32>, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %c4 step %c2 iter_args(%all = %zero) -> (f32) {
    %part = scf.for %j = %i to %n step %c1 iter_args(%a = %all) -> (f32) {
      %v = memref.load %x[%j] : memref<64xf32>
      %s = arith.addf %a, %v : f32
      scf.yield %s : f32
    }
    scf.yield %part : f32
  }
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %v = memref.load %x[%j] : memref<64xf32>
      %d = arith.subf %v, %sum : f32
      %e = arith.mulf %d, %d : f32
      memref.store %e, %y[%j] : memref<64xf32>
    }
  }
  %few = scf.for %i = %c0 to %c4 step %c2 iter_args(%all = %zero) -> (f32) {
    %part = scf.for %j = %c0 to %c4 step %c1 iter_args(%a = %all) -> (f32) {
      %v = memref.load %x[%j] : memref<64xf32>
      %s = arith.addf %a, %v : f32
      scf.yield %s : f32
    }
    scf.yield %part : f32
  }
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      memref.store %sum, %y[%j] : memref<64xf32>
    }
  }
  return %sum, %few : f32, f32
}
