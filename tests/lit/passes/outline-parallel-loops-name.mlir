// RUN: not tc-opt %s --outline-parallel-loops 2>&1 | FileCheck %s
// CHECK: outline-parallel-loops-name.mlir:[[#@LINE+1]]:1: error: 'func.func' op has the name of a function of OpenMP, 'omp_get_thread_num'; rename it
func.func private @omp_get_thread_num() -> i64

func.func @f(%x: memref<40xf32>, %v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  scf.parallel (%i) = (%c0) to (%c40) step (%c1) {
    memref.store %v, %x[%i] : memref<40xf32>
    scf.reduce
  }
  return
}
