// RUN: tc-opt %s --split-input-file --imap-outline-kernels --canonicalize --cse | FileCheck %s
// RUN: tc-opt %s --split-input-file --hoist-scratch | FileCheck %s --check-prefix=CPU

// A block takes an iteration of the outer loop. Its threads divide each inner nest, with barriers between, and run the
// loop in order together. Each iteration has memory of its own, which a CPU allocates once.
func.func @by_blocks(%x: memref<4x6x10xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c10 = arith.constant 10 : index
  scf.for %b = %c0 to %c4 step %c1 {
    %s = memref.alloc() {imap.scratch} : memref<10xf32>
    scf.for %i = %c0 to %c6 step %c1 {
      %p = memref.load %x[%b, %i, %i] : memref<4x6x10xf32>
      %r = math.sqrt %p : f32
      memref.store %r, %x[%b, %i, %i] : memref<4x6x10xf32>
      scf.for %j = %c0 to %c10 step %c1 {
        %v = memref.load %x[%b, %i, %j] : memref<4x6x10xf32>
        %q = arith.divf %v, %r : f32
        memref.store %q, %s[%j] : memref<10xf32>
      } {imap.independent}
      scf.for %k = %c0 to %c6 step %c1 {
        %f = memref.load %s[%k] : memref<10xf32>
        scf.for %j = %c0 to %c10 step %c1 {
          %v = memref.load %s[%j] : memref<10xf32>
          %q = arith.mulf %v, %f : f32
          memref.store %q, %x[%b, %k, %j] : memref<4x6x10xf32>
        } {imap.independent}
      } {imap.independent}
    }
  } {imap.independent}
  return
}
// CHECK-LABEL: func.func @by_blocks(
// CHECK:         %[[S:.*]] = memref.alloc() {{.*}} : memref<4x10xf32>
// CHECK:         imap.launch @kernels::@by_blocks_0 threads(%c1024) args(%[[S]], %{{.*}} :
// CHECK-LABEL: gpu.func @by_blocks_0(
// CHECK-SAME:    %[[S:.*]]: memref<4x10xf32>, %[[X:.*]]: memref<4x6x10xf32>) kernel
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[BLOCK:.*]] = gpu.block_id x
// CHECK-DAG:     %[[BLOCKS:.*]] = gpu.grid_dim x
// CHECK:         scf.for %[[B:.*]] = %[[BLOCK]] to %c4 step %[[BLOCKS]] {
// CHECK:           %[[OWN:.*]] = memref.subview %[[S]][%[[B]], 0] [1, 10] [1, 1]
// CHECK:           scf.for %[[I:.*]] = %c0 to %c6 step %c1 {
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        memref.load %[[X]][%[[B]], %[[I]], %[[I]]]
// CHECK-NEXT:        %[[ROOT:.*]] = math.sqrt
// CHECK-NEXT:        gpu.barrier
// CHECK:             scf.if %{{.*}} {
// CHECK-NEXT:          memref.store %[[ROOT]], %[[X]][%[[B]], %[[I]], %[[I]]]
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        scf.for %[[J:.*]] = %[[THREAD]] to %c10 step %c256 {
// CHECK:               memref.store %{{.*}}, %[[OWN]][%[[J]]]
// CHECK-NEXT:        }
// CHECK-NEXT:        gpu.barrier
// CHECK-NEXT:        scf.for %[[POINT:.*]] = %[[THREAD]] to %c60 step %c256 {
// CHECK-NEXT:          %[[COLUMN:.*]] = arith.remui %[[POINT]], %c10
// CHECK-NEXT:          %[[ROW:.*]] = arith.divui %[[POINT]], %c10
// CHECK-NEXT:          memref.load %[[OWN]][%[[ROW]]]
// CHECK:               memref.store %{{.*}}, %[[X]][%[[B]], %[[ROW]], %[[COLUMN]]]
// CHECK-NEXT:        }
// CHECK-NEXT:      }

// CPU-LABEL: func.func @by_blocks(
// CPU:         memref.alloc() {imap.scratch}
// CPU-NEXT:    scf.for
// CPU-NOT:     memref.alloc

// -----

// A loop around others, whose bounds depend on it, is divided among warps.
func.func @by_warps(%x: memref<9x9xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %k = %c0 to %n step %c1 {
    scf.for %i = %c0 to %c9 step %c1 {
      %v = memref.load %x[%i, %k] : memref<9x9xf32>
      %r = math.sqrt %v : f32
      memref.store %r, %x[%i, %k] : memref<9x9xf32>
      scf.for %j = %c0 to %i step %c1 {
        %w = memref.load %x[%i, %j] : memref<9x9xf32>
        %q = arith.mulf %w, %r : f32
        memref.store %q, %x[%i, %j] : memref<9x9xf32>
      } {imap.independent}
    } {imap.independent}
  }
  return
}
// CHECK-LABEL: imap.launch @kernels::@by_warps_0 threads(%c256)
// CHECK-LABEL: gpu.func @by_warps_0(
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1 {
// CHECK-NEXT:      gpu.barrier
// CHECK-DAG:       %[[WARP:.*]] = arith.divui %[[THREAD]], %c32
// CHECK-DAG:       %[[LANE:.*]] = arith.remui %[[THREAD]], %c32
// CHECK:           scf.for %[[I:.*]] = %[[WARP]] to %c9 step %c8 {
// CHECK:             memref.load
// CHECK:             nvvm.bar.warp.sync
// CHECK:             scf.if
// CHECK-NEXT:          memref.store
// CHECK:             nvvm.bar.warp.sync
// CHECK:             scf.for %{{.*}} = %[[LANE]] to %{{.*}} step %c32 {

// -----

// All threads of the grid divide loops without others inside, and one thread runs loops in order.
func.func @by_threads(%x: memref<3x50xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c50 = arith.constant 50 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c50 step %c1 {
      memref.store %zero, %x[%i, %j] : memref<3x50xf32>
    } {imap.independent}
  } {imap.independent}
  scf.for %i = %c1 to %c3 step %c1 {
    %v = memref.load %x[%c0, %i] : memref<3x50xf32>
    memref.store %v, %x[%i, %c0] : memref<3x50xf32>
  }
  return
}
// CHECK-LABEL: func.func @by_threads(
// CHECK:         imap.launch @kernels::@by_threads_0 threads(%c150)
// CHECK:         imap.launch @kernels::@by_threads_1 threads(%c1)
// CHECK-LABEL: gpu.func @by_threads_0(
// CHECK:         %[[FIRST:.*]] = arith.addi
// CHECK:         scf.for %{{.*}} = %[[FIRST]] to %c150 step
// CHECK-NOT:     gpu.barrier
// CHECK-LABEL: gpu.func @by_threads_1(
// CHECK:         scf.if
// CHECK-NEXT:      scf.for

// -----

// What a loop gives and what depends on it is one kernel. The host reads only what it needs.
func.func @scalars(%x: memref<50xf32>, %y: memref<f32>, %z: memref<50xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %c50 step %c1 iter_args(%s = %zero) -> f32 {
    %v = memref.load %x[%i] : memref<50xf32>
    %t = arith.addf %s, %v : f32
    scf.yield %t : f32
  }
  %first = memref.load %y[] : memref<f32>
  %all = arith.addf %sum, %first : f32
  memref.store %all, %y[] : memref<f32>
  scf.for %i = %c0 to %c50 step %c1 {
    %v = memref.load %x[%i] : memref<50xf32>
    %q = arith.divf %v, %all : f32
    memref.store %q, %z[%i] : memref<50xf32>
  } {imap.independent}
  %found = memref.load %z[%c0] : memref<50xf32>
  return %found : f32
}
// CHECK-LABEL: func.func @scalars(
// CHECK-NOT:     memref.load
// CHECK:         imap.launch @kernels::@scalars_0 threads(%c256)
// CHECK-NEXT:    memref.load
// CHECK-LABEL: gpu.func @scalars_0(
// CHECK:         %[[SUM:.*]] = scf.for
// CHECK:         %[[ALL:.*]] = arith.addf %[[SUM]], %{{.*}}
// CHECK-NEXT:    gpu.barrier
// CHECK:         scf.if
// CHECK-NEXT:      memref.store %[[ALL]]
// CHECK:         scf.for
// CHECK:           arith.divf %{{.*}}, %[[ALL]]
