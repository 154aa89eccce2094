// RUN: tc-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-imap-to-gpu{block-size=128},canonicalize,cse)))' | FileCheck %s

// A warp scans a row in tiles of 32 points, and carries the sum of the tiles before.
// CHECK-LABEL: gpu.func @warp
// CHECK-NOT:     workgroup
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           scf.for %[[TILE:.*]] = %c0 to %c300 step %c32 iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (i32)
// CHECK:             %[[AT:.*]] = arith.addi %[[TILE]], %{{.*}}
// CHECK:             %[[INSIDE:.*]] = arith.cmpi slt, %[[AT]], %c300
// CHECK-COUNT-5:     gpu.shuffle up
// CHECK:             %[[ALL:.*]], %{{.*}} = gpu.shuffle idx
// CHECK:             gpu.shuffle up
// CHECK:             scf.if %[[INSIDE]] {
// CHECK:               memref.store %{{.*}}, %{{.*}}[%[[I]], %[[AT]]]
// CHECK:             %[[NEXT:.*]] = arith.addi %[[CARRIED]], %[[ALL]]
// CHECK-NEXT:        scf.yield %[[NEXT]]
// Warps exchange their sums in shared memory. The barriers stand outside of branches.
// CHECK-LABEL: gpu.func @block
// CHECK-SAME:    workgroup(%[[SHARED:.*]] : memref<4xi32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             gpu.barrier
// CHECK:               memref.store %{{.*}}, %[[SHARED]]
// CHECK:             gpu.barrier
// CHECK:               memref.load %[[SHARED]]
// Neighbouring threads scan neighbouring columns.
// CHECK-LABEL: gpu.func @columns
// CHECK-NOT:     gpu.shuffle
// CHECK:         scf.for %[[J:.*]] =
// CHECK:           scf.for %[[I:.*]] = %c0 to %c300 step %c1
// CHECK:             memref.load %{{.*}}[%[[I]], %[[J]]]
gpu.module @kernels {
  gpu.func @warp(%x: memref<8x300xi32>, %y: memref<8x300xi32>) kernel {
    imap.scan (i, j) domain: i in [0, 7], j in [0, 299] scan j inclusive
        ins(%x[i, j] : memref<8x300xi32>) outs(%y[i, j] : memref<8x300xi32>) fold [add i32] {
    ^bb0(%a: i32):
      imap.yield %a : i32
    }
    gpu.return
  }
  gpu.func @block(%x: memref<8x3000xi32>, %y: memref<8x3000xi32>) kernel {
    imap.scan (i, j) domain: i in [0, 7], j in [0, 2999] scan j exclusive
        ins(%x[i, j] : memref<8x3000xi32>) outs(%y[i, j] : memref<8x3000xi32>) fold [add i32] {
    ^bb0(%a: i32):
      imap.yield %a : i32
    }
    gpu.return
  }
  gpu.func @columns(%x: memref<300x64xi32>, %y: memref<300x64xi32>) kernel {
    imap.scan (i, j) domain: i in [0, 299], j in [0, 63] scan i inclusive
        ins(%x[i, j] : memref<300x64xi32>) outs(%y[i, j] : memref<300x64xi32>) fold [add i32] {
    ^bb0(%a: i32):
      imap.yield %a : i32
    }
    gpu.return
  }
}

// -----

// Sums are atomic instructions, products are exchanged.
// CHECK-LABEL: gpu.func @atomic
// CHECK:         scf.for %[[AT:.*]] = %{{.*}} to %c300 step
// CHECK:           scf.if
// CHECK:             memref.atomic_rmw addf %{{.*}}, %{{.*}}[%{{.*}}]
// CHECK:             memref.generic_atomic_rmw %{{.*}}[%{{.*}}] : memref<9xf32> {
// CHECK-NEXT:        ^bb0(%[[HELD:.*]]: f32):
// CHECK-NEXT:          %[[NEW:.*]] = arith.mulf %[[HELD]], %{{.*}} : f32
// CHECK-NEXT:          memref.atomic_yield %[[NEW]]
// The last of several updates that replace an element wins: a thread takes a column in order.
// CHECK-LABEL: gpu.func @replace
// CHECK:         scf.for %[[D:.*]] = %{{.*}} to %c40 step
// CHECK:           scf.for %[[B:.*]] = %c0 to %c300 step %c1
// CHECK:             memref.store %{{.*}}, %{{.*}}[%{{.*}}, %[[D]]]
// CHECK-LABEL: gpu.func @unique
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c12000 step
// CHECK-NOT:     scf.for
// CHECK:         memref.store
gpu.module @kernels {
  gpu.func @atomic(%ids: memref<300xi32>, %x: memref<300xf32>, %y: memref<9xf32>, %z: memref<9xf32>) kernel {
    imap.scatter (b){r} domain: b in [0, 299] runtime(%ids[b] : memref<300xi32>) ins(%x[b] : memref<300xf32>)
        outs(%y[r] where r in [0, 8], %z[r] where r in [0, 8] : memref<9xf32>, memref<9xf32>) fold [add f32, mul f32] {
    ^bb0(%a: f32):
      imap.yield %a, %a : f32, f32
    }
    gpu.return
  }
  gpu.func @replace(%ids: memref<300xi32>, %x: memref<300x40xf32>, %y: memref<9x40xf32>) kernel {
    imap.scatter (b, d){r} domain: b in [0, 299], d in [0, 39] runtime(%ids[b] : memref<300xi32>)
        ins(%x[b, d] : memref<300x40xf32>) outs(%y[r, d] where r in [0, 8] : memref<9x40xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
  gpu.func @unique(%ids: memref<300xi32>, %x: memref<300x40xf32>, %y: memref<900x40xf32>) kernel {
    imap.scatter unique (b, d){r} domain: b in [0, 299], d in [0, 39] runtime(%ids[b] : memref<300xi32>)
        ins(%x[b, d] : memref<300x40xf32>) outs(%y[r, d] where r in [0, 899] : memref<900x40xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
}

// -----

// A thread sorts a row of a few items.
// CHECK-LABEL: gpu.func @few
// CHECK-NOT:     gpu.barrier
// The items of a row, and where they stood, are sorted in shared memory. The first ones are kept.
// CHECK-LABEL: gpu.func @shared
// CHECK-SAME:    workgroup(%[[KEYS:.*]] : memref<100xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %[[PLACES:.*]] : memref<100xi32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:         gpu.barrier
// CHECK:         memref.store %{{.*}}, %[[KEYS]]
// CHECK:         gpu.barrier
// CHECK:         scf.while
// CHECK:           gpu.barrier
// CHECK:           scf.while
// CHECK:             gpu.barrier
// CHECK:         scf.for {{.*}} to %c5 step %c128
// CHECK:           memref.load %[[KEYS]]
// CHECK:           memref.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : memref<7x5xf32>
// A row that shared memory cannot hold is sorted in the destination.
// CHECK-LABEL: gpu.func @destination
// CHECK-NOT:     workgroup
// CHECK:         scf.while
// CHECK:           memref.load %{{.*}} : memref<100000xf32>
gpu.module @kernels {
  gpu.func @few(%x: memref<7x9xf32>, %y: memref<7x9xf32>) kernel {
    imap.sort dim = 1 stable ins(%x : memref<7x9xf32>) outs(%y : memref<7x9xf32>) {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf olt, %a, %b : f32
      imap.yield %less : i1
    }
    gpu.return
  }
  gpu.func @shared(%x: memref<7x100xf32>, %y: memref<7x5xf32>) kernel {
    imap.sort dim = 1 stable ins(%x : memref<7x100xf32>) outs(%y : memref<7x5xf32>) {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf olt, %a, %b : f32
      imap.yield %less : i1
    }
    gpu.return
  }
  gpu.func @destination(%x: memref<100000xf32>, %y: memref<100000xf32>) kernel {
    imap.sort dim = 0 ins(%x : memref<100000xf32>) outs(%y : memref<100000xf32>) {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf olt, %a, %b : f32
      imap.yield %less : i1
    }
    gpu.return
  }
}
