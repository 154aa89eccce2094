// RUN: tc-opt %s --imap-outline-functions="max-operations=1 max-loops=8" | FileCheck %s

// The loop of a whole program, with more than 8 loops inside: these are outlined, all to one function.
// CHECK:      func.func private @program_0(%{{.*}}: index, %{{.*}}: memref<8xf32> {llvm.noalias}, %{{.*}}: memref<8xf32> {llvm.noalias}, %{{.*}}: index)
// CHECK:      func.func @program(
// CHECK:        scf.for %[[I:.*]] =
// CHECK-COUNT-9:  func.call @program_0(%{{.*}}, %{{.*}}, %{{.*}}, %[[I]])
// CHECK-NOT:      scf.for
// CHECK:        return
func.func @program(%a: memref<8xf32>, %b: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j0 = %c0 to %n step %c1 {
      %v0 = memref.load %a[%j0] : memref<8xf32>
      memref.store %v0, %b[%i] : memref<8xf32>
    }
    scf.for %j1 = %c0 to %n step %c1 {
      %v1 = memref.load %a[%j1] : memref<8xf32>
      memref.store %v1, %b[%i] : memref<8xf32>
    }
    scf.for %j2 = %c0 to %n step %c1 {
      %v2 = memref.load %a[%j2] : memref<8xf32>
      memref.store %v2, %b[%i] : memref<8xf32>
    }
    scf.for %j3 = %c0 to %n step %c1 {
      %v3 = memref.load %a[%j3] : memref<8xf32>
      memref.store %v3, %b[%i] : memref<8xf32>
    }
    scf.for %j4 = %c0 to %n step %c1 {
      %v4 = memref.load %a[%j4] : memref<8xf32>
      memref.store %v4, %b[%i] : memref<8xf32>
    }
    scf.for %j5 = %c0 to %n step %c1 {
      %v5 = memref.load %a[%j5] : memref<8xf32>
      memref.store %v5, %b[%i] : memref<8xf32>
    }
    scf.for %j6 = %c0 to %n step %c1 {
      %v6 = memref.load %a[%j6] : memref<8xf32>
      memref.store %v6, %b[%i] : memref<8xf32>
    }
    scf.for %j7 = %c0 to %n step %c1 {
      %v7 = memref.load %a[%j7] : memref<8xf32>
      memref.store %v7, %b[%i] : memref<8xf32>
    }
    scf.for %j8 = %c0 to %n step %c1 {
      %v8 = memref.load %a[%j8] : memref<8xf32>
      memref.store %v8, %b[%i] : memref<8xf32>
    }
  }
  return
}
