// RUN: tc-opt %s --outline-loops=max-loops=3 | FileCheck %s
// RUN: tc-opt %s --outline-loops | FileCheck %s --check-prefix=FEW
// RUN: tc-opt %s --outline-loops=max-loops=3 --remarks-filter=outline-loops 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: not tc-opt %s --outline-loops=max-loops=some 2>&1 | FileCheck %s --check-prefix=WRONG

// FEW-NOT: call @f_loop
// REMARK: remark: [Passed] loops | Category:outline-loops | Function=f | Functions=3, Outlined=4
// WRONG: error: 'builtin.module' op 'max-loops' expects a number

// The name of the first function is taken.
func.func private @f_loop_0()

// The second nest does what the first one does, with other buffers.
// CHECK:      func.func private @f_loop_0_(%[[N:.*]]: index, %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>)
// CHECK-SAME:   attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline", ["tc.noalias", "11"]]}
// CHECK-DAG:    %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:    %[[C1:.*]] = arith.constant 1 : index
// CHECK:        scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %[[C1]] {
// CHECK-NEXT:     %[[X:.*]] = memref.load %[[A]][%[[I]]]
// CHECK-NEXT:     memref.store %[[X]], %[[B]][%[[I]]]
// CHECK:      func.func private @f_loop_1(%{{.*}}: index, %{{.*}}: memref<4xf32, strided<[1], offset: 2>>, %{{.*}}: memref<8xf32>) -> f32
// CHECK-SAME:   ["tc.noalias", "00"]
// CHECK:        %[[SUM:.*]] = scf.for
// CHECK:        return %[[SUM]] : f32
// The buffer that is chosen at run time may be the other one.
// CHECK:      func.func private @f_loop_2(
// CHECK-SAME:   passthrough = ["noinline", ["tc.noalias", "00"]]}
// CHECK:      func.func @f(%[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>, %[[N:.*]]: index, %[[P:.*]]: i1) -> f32
// CHECK:        %[[T:.*]] = memref.alloc()
// CHECK:        call @f_loop_0_(%[[N]], %[[A]], %[[T]])
// CHECK:        call @f_loop_0_(%[[N]], %[[T]], %[[B]])
// CHECK:        %[[SUM:.*]] = call @f_loop_1(%[[N]], %{{.*}}, %[[B]])
// CHECK:        %[[CHOSEN:.*]] = arith.select %[[P]], %[[T]], %[[B]]
// CHECK:        call @f_loop_2(%[[N]], %[[CHOSEN]], %[[B]])
// CHECK:        return %[[SUM]]
func.func @f(%a: memref<8xf32>, %b: memref<8xf32>, %n: index, %p: i1) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<8xf32>
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %a[%i] : memref<8xf32>
    memref.store %x, %t[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %t[%i] : memref<8xf32>
    memref.store %x, %b[%i] : memref<8xf32>
  }
  %part = memref.subview %b[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {
    %x = memref.load %part[%i] : memref<4xf32, strided<[1], offset: 2>>
    %next = arith.addf %s, %x : f32
    memref.store %next, %b[%i] : memref<8xf32>
    scf.yield %next : f32
  }
  %chosen = arith.select %p, %t, %b : memref<8xf32>
  scf.if %p {
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %c0 to %i step %c1 {
        %x = memref.load %chosen[%j] : memref<8xf32>
        memref.store %x, %b[%i] : memref<8xf32>
      }
    }
  }
  memref.dealloc %t : memref<8xf32>
  return %sum : f32
}
