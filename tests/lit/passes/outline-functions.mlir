// RUN: tc-opt %s --imap-outline-functions=max-operations=3 | FileCheck %s
// RUN: tc-opt %s --imap-outline-functions | FileCheck %s --check-prefix=FEW
// RUN: tc-opt %s --imap-outline-functions=max-operations=3 --remarks-filter=imap-outline-functions 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: tc-opt %s --imap-outline-functions="max-operations=3 max-loops=1" | FileCheck %s --check-prefix=ENTER
// RUN: not tc-opt %s --imap-outline-functions=max-operations=some 2>&1 | FileCheck %s --check-prefix=WRONG

// FEW-NOT: call @f_
// REMARK: remark: [Passed] operations | Category:imap-outline-functions | Function=f | Functions=3, Outlined=4
// WRONG: error: 'builtin.module' op 'max-operations' expects a number

// The name of the first function is taken.
func.func private @f_0()

// The second nest does what the first one does, with other buffers.
// CHECK:      func.func private @f_0_(%[[N:.*]]: index, %[[A:.*]]: memref<8xf32> {llvm.noalias}, %[[B:.*]]: memref<8xf32> {llvm.noalias})
// CHECK-SAME:   attributes {llvm.bareptr, llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"], tc.outlined}
// CHECK-DAG:    %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:    %[[C1:.*]] = arith.constant 1 : index
// CHECK:        scf.for %[[I:.*]] = %[[C0]] to %[[N]] step %[[C1]] {
// CHECK-NEXT:     %[[X:.*]] = memref.load %[[A]][%[[I]]]
// CHECK-NEXT:     memref.store %[[X]], %[[B]][%[[I]]]
// CHECK:      func.func private @f_1(%{{.*}}: index, %{{.*}}: memref<4xf32, strided<[1], offset: 2>>, %{{.*}}: memref<8xf32>) -> f32
// CHECK:        %[[SUM:.*]] = scf.for
// CHECK:        return %[[SUM]] : f32
// The buffer that is chosen at run time may be the other one.
// CHECK:      func.func private @f_2(%{{.*}}: index, %{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32>)
// CHECK:      func.func @f(%[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>, %[[N:.*]]: index, %[[P:.*]]: i1) -> f32
// CHECK:        %[[T:.*]] = memref.alloc()
// CHECK:        call @f_0_(%[[N]], %[[A]], %[[T]])
// CHECK:        call @f_0_(%[[N]], %[[T]], %[[B]])
// CHECK:        %[[SUM:.*]] = call @f_1(%[[N]], %{{.*}}, %[[B]])
// CHECK:        %[[CHOSEN:.*]] = arith.select %[[P]], %[[T]], %[[B]]
// CHECK:        call @f_2(%[[N]], %[[CHOSEN]], %[[B]])
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

// Operations of `imap`. Buffers with open sizes are no pointers. A view at a place that is computed is copied, and so is
// a small constant. A large one is passed.
// CHECK:      func.func private @g_[[COPY:[0-9]+]](%[[A:.*]]: memref<16xf32> {llvm.noalias}, %[[I:.*]]: index, %[[B:.*]]: memref<4xf32> {llvm.noalias})
// CHECK-NEXT:   %[[PART:.*]] = memref.subview %[[A]][%[[I]]] [4] [1]
// CHECK-NEXT:   imap.generic (d) domain: d in [0, 3] ins(%[[PART]][d] : {{.*}}) outs(%[[B]][d] : memref<4xf32>)
// CHECK:      func.func private @g_[[FILL:[0-9]+]](%[[LARGE:.*]]: memref<65xf32> {llvm.noalias}, %{{.*}}: memref<4xf32> {llvm.noalias})
// CHECK-NEXT:   %[[SMALL:.*]] = memref.get_global @small
// CHECK-NEXT:   imap.generic (d) domain: d in [0, 3] ins(%[[SMALL]][], %[[LARGE]][d] : {{.*}})
// CHECK:      func.func private @g_[[OPEN:[0-9]+]](%{{.*}}: index, %{{.*}}: memref<4xf32> {llvm.noalias}, %{{.*}}: memref<?xf32> {llvm.noalias}) attributes {llvm.linkage
// CHECK-NEXT:   imap.generic (d){n}
// CHECK:      func.func @g(
// CHECK:        call @g_[[COPY]](
// CHECK:        call @g_[[COPY]](
// CHECK:        call @g_[[FILL]](
// CHECK:        call @g_[[OPEN]](
memref.global "private" constant @small : memref<f32> = dense<1.0>
memref.global "private" constant @large : memref<65xf32> = dense<2.0>
func.func @g(%a: memref<16xf32>, %b: memref<4xf32>, %c: memref<4xf32>, %open: memref<?xf32>, %i: index) {
  %small = memref.get_global @small : memref<f32>
  %large = memref.get_global @large : memref<65xf32>
  %part = memref.subview %a[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
  imap.generic (d) domain: d in [0, 3] ins(%part[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%b[d] : memref<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  imap.generic (d) domain: d in [0, 3] ins(%part[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%c[d] : memref<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  imap.generic (d) domain: d in [0, 3] ins(%small[], %large[d] : memref<f32>, memref<65xf32>) outs(%b[d] : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    imap.yield %z : f32
  }
  imap.generic (d){n} domain: d in [0, n - 1] runtime(%i : index) ins(%b[0] : memref<4xf32>) outs(%open[d] : memref<?xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// Tiles stay together: their loops are outlined as a whole, however many operations these contain, if they are parallel.
// CHECK:      func.func private @h_[[TILES:[0-9]+]](
// CHECK:        scf.parallel
// CHECK-COUNT-2:  imap.generic
// CHECK:      func.func @h(
// CHECK-COUNT-4: call @h_[[TILES]](
// CHECK-NOT:    imap.generic
// ENTER:      func.func private @h_[[TILES:[0-9]+]](
// ENTER:        scf.parallel
// ENTER-COUNT-2:  imap.generic
// ENTER:      func.func @h(
// ENTER-COUNT-4: call @h_[[TILES]](
func.func @h(%a: memref<16xf32>, %b: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.parallel (%i) = (%c0) to (%c16) step (%c4) {
    %x = memref.subview %a[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %y = memref.subview %b[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    imap.generic (d) domain: d in [0, 3] ins(%x[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%y[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    imap.generic (d) domain: d in [0, 3] ins(%y[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%x[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
  }
  scf.parallel (%i) = (%c0) to (%c16) step (%c4) {
    %x = memref.subview %a[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %y = memref.subview %b[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    imap.generic (d) domain: d in [0, 3] ins(%x[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%y[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    imap.generic (d) domain: d in [0, 3] ins(%y[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%x[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
  }
  scf.parallel (%i) = (%c0) to (%c16) step (%c4) {
    %x = memref.subview %a[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %y = memref.subview %b[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    imap.generic (d) domain: d in [0, 3] ins(%x[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%y[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    imap.generic (d) domain: d in [0, 3] ins(%y[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%x[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
  }
  scf.parallel (%i) = (%c0) to (%c16) step (%c4) {
    %x = memref.subview %a[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    %y = memref.subview %b[%i] [4] [1] : memref<16xf32> to memref<4xf32, strided<[1], offset: ?>>
    imap.generic (d) domain: d in [0, 3] ins(%x[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%y[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
    imap.generic (d) domain: d in [0, 3] ins(%y[d] : memref<4xf32, strided<[1], offset: ?>>) outs(%x[d] : memref<4xf32, strided<[1], offset: ?>>) {
    ^bb0(%v: f32):
      imap.yield %v : f32
    }
  }
  return
}
