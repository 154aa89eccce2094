// RUN: tc-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-imap-to-gpu{block-size=128},canonicalize,cse)))' | FileCheck %s

// A thread takes every n-th group of four neighbours, which are one vector.
// CHECK-LABEL: gpu.func @points
// CHECK-SAME:    %[[X:[^:]*]]: memref<8x100xf32>, %[[B:[^:]*]]: memref<8xf32>, %[[Y:[^:]*]]: memref<8x100xf32>) kernel
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK-DAG:     %[[SIZE:.*]] = arith.constant 128
// CHECK-DAG:     %[[TOTAL:.*]] = arith.constant 200
// CHECK-DAG:     %[[ROW:.*]] = arith.constant 25
// CHECK-DAG:     %[[FOUR:.*]] = arith.constant 4
// CHECK:         %[[FIRST:.*]] = arith.addi %{{.*}}, %thread_id_x
// CHECK:         %[[STEP:.*]] = arith.muli %grid_dim_x, %[[SIZE]]
// CHECK:         scf.for %[[AT:.*]] = %[[FIRST]] to %[[TOTAL]] step %[[STEP]] {
// CHECK:           %[[QUARTER:.*]] = arith.remui %[[AT]], %[[ROW]]
// CHECK:           %[[I:.*]] = arith.divui %[[AT]], %[[ROW]]
// CHECK:           %[[J:.*]] = arith.muli %[[QUARTER]], %[[FOUR]]
// CHECK:           vector.load %[[X]][%[[I]], %[[J]]] {alignment = 16 : i64} : memref<8x100xf32>, vector<4xf32>
// CHECK:           memref.load %[[B]][%[[I]]]
// CHECK:           arith.addf
// CHECK:           %[[V:.*]] = vector.from_elements
// CHECK-NEXT:      vector.store %[[V]], %[[Y]][%[[I]], %[[J]]] {alignment = 16 : i64} : memref<8x100xf32>, vector<4xf32>
// CHECK-NOT:       memref.store
gpu.module @kernels {
  gpu.func @points(%x: memref<8x100xf32>, %b: memref<8xf32>, %y: memref<8x100xf32>) kernel {
    imap.generic (i, j) domain: i in [0, 7], j in [0, 99]
        ins(%x[i, j], %b[i] : memref<8x100xf32>, memref<8xf32>) outs(%y[i, j] : memref<8x100xf32>) {
    ^bb0(%a: f32, %c: f32):
      %v = arith.addf %a, %c : f32
      imap.yield %v : f32
    }
    gpu.return
  }
}

// -----

// Rows of 99 elements are not aligned: a thread takes one element at a time. Columns are summed by a thread each,
// because neighbouring threads then read neighbours.
// CHECK-LABEL: gpu.func @unaligned
// CHECK-NOT:     vector
// CHECK:         memref.store
// CHECK-LABEL: gpu.func @columns
// CHECK-NOT:     gpu.shuffle
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           scf.for %[[I:.*]] = {{.*}} iter_args
// CHECK:             memref.load %{{.*}}[%[[I]], %[[J]]]
gpu.module @kernels {
  gpu.func @unaligned(%x: memref<8x99xf32>, %y: memref<8x99xf32>) kernel {
    imap.generic (i, j) domain: i in [0, 7], j in [0, 98]
        ins(%x[i, j] : memref<8x99xf32>) outs(%y[i, j] : memref<8x99xf32>) {
    ^bb0(%a: f32):
      %v = arith.negf %a : f32
      imap.yield %v : f32
    }
    gpu.return
  }
  gpu.func @columns(%x: memref<12x99xf32>, %y: memref<99xf32>) kernel {
    imap.generic (j)[i] domain: j in [0, 98], i in [0, 11]
        ins(%x[i, j] : memref<12x99xf32>) outs(%y[j] : memref<99xf32>) fold [maximumf f32] {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
}

// -----

// Where some operand is not aligned, or has few bits, a thread takes one point: neighbouring threads read neighbours.
// Otherwise the widest elements decide how many it takes.
// CHECK-LABEL: gpu.func @shifted
// CHECK-NOT:     vector
// CHECK-LABEL: gpu.func @chosen
// CHECK-NOT:     vector
// CHECK-LABEL: gpu.func @narrowed
// CHECK:         vector.load {{.*}} vector<4xf32>
// CHECK:         vector.store {{.*}} {alignment = 8 : i64} {{.*}} vector<4xbf16>
gpu.module @kernels {
  gpu.func @shifted(%x: memref<8x101xf32>, %y: memref<8x100xf32>) kernel {
    imap.generic (i, j) domain: i in [0, 7], j in [0, 99]
        ins(%x[i, j + 1] : memref<8x101xf32>) outs(%y[i, j] : memref<8x100xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
  gpu.func @chosen(%m: memref<8x100xi1>, %x: memref<8x100xf32>, %y: memref<8x100xf32>) kernel {
    imap.generic (i, j) domain: i in [0, 7], j in [0, 99]
        ins(%m[i, j], %x[i, j] : memref<8x100xi1>, memref<8x100xf32>) outs(%y[i, j] : memref<8x100xf32>) {
    ^bb0(%c: i1, %a: f32):
      %n = arith.negf %a : f32
      %v = arith.select %c, %n, %a : f32
      imap.yield %v : f32
    }
    gpu.return
  }
  gpu.func @narrowed(%x: memref<8x100xf32>, %y: memref<8x100xbf16>) kernel {
    imap.generic (i, j) domain: i in [0, 7], j in [0, 99]
        ins(%x[i, j] : memref<8x100xf32>) outs(%y[i, j] : memref<8x100xbf16>) {
    ^bb0(%a: f32):
      %v = arith.truncf %a : f32 to bf16
      imap.yield %v : bf16
    }
    gpu.return
  }
}

// -----

// Eight threads fold a row of five elements, each one of them at most. The groups of a warp leave the loop together.
// CHECK-LABEL: gpu.func @short
// CHECK:         %[[LANE:.*]] = arith.remui %thread_id_x, %c8
// CHECK:         scf.for %[[AT:.*]] =
// CHECK:           %[[GROUP:.*]] = arith.divui %{{.*}}, %c8
// CHECK:           %[[FIRST:.*]] = arith.muli %[[AT]], %c4
// CHECK:           %[[I:.*]] = arith.addi %[[FIRST]], %[[GROUP]]
// CHECK:           %[[INSIDE:.*]] = arith.cmpi slt, %[[I]], %c9
// CHECK:           scf.if %[[INSIDE]] -> (f32) {
// CHECK:             scf.for %[[J:.*]] = %[[LANE]] to %c5 step %c8
// CHECK:               memref.load %{{.*}}[%[[I]], %[[J]]]
// CHECK-COUNT-3:   gpu.shuffle xor
// CHECK-NOT:       gpu.shuffle
// CHECK:           %[[IS_FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK:           %[[STORES:.*]] = arith.andi %[[IS_FIRST]], %[[INSIDE]]
// CHECK:           scf.if %[[STORES]] {
gpu.module @kernels {
  gpu.func @short(%x: memref<9x5xf32>, %y: memref<9xf32>) kernel {
    imap.generic (i)[j] domain: i in [0, 8], j in [0, 4]
        ins(%x[i, j] : memref<9x5xf32>) outs(%y[i] : memref<9xf32>) fold [add f32] {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
}

// -----

// A warp folds a row of a few hundred elements, and exchanges values in five steps.
// CHECK-LABEL: gpu.func @warp
// CHECK-NOT:     workgroup
// CHECK-DAG:     %[[WARP:.*]] = arith.divui %thread_id_x, %c32
// CHECK-DAG:     %[[LANE:.*]] = arith.remui %thread_id_x, %c32
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           %[[OWN:.*]] = scf.for %[[J:.*]] = %[[LANE]] to %c300 step %c32 iter_args(%{{.*}} = %c0_i64) -> (i64)
// CHECK:             memref.load %{{.*}}[%[[I]], %[[J]]]
// CHECK-COUNT-10:  gpu.shuffle xor {{.*}} : i32
// CHECK-NOT:       gpu.shuffle
// CHECK:           %[[IS_FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK:           scf.if %[[IS_FIRST]] {
// CHECK:             memref.load %[[Y:.*]][%[[I]]]
// CHECK:             memref.store %{{.*}}, %[[Y]][%[[I]]]
gpu.module @kernels {
  gpu.func @warp(%x: memref<8x300xi64>, %y: memref<8xi64>) kernel {
    imap.generic (i)[j] domain: i in [0, 7], j in [0, 299]
        ins(%x[i, j] : memref<8x300xi64>) outs(%y[i] : memref<8xi64>) fold [add i64 from outs 0] {
    ^bb0(%a: i64):
      imap.yield %a : i64
    }
    gpu.return
  }
}

// -----

// A block folds a long row. Its warps exchange values through shared memory, the first one combines them.
// CHECK-LABEL: gpu.func @block
// CHECK-SAME:    workgroup(%[[SHARED:.*]] : memref<4xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:         scf.for %[[I:.*]] = %block_id_x to %c2 step %grid_dim_x
// CHECK:           gpu.barrier
// CHECK:           memref.store %{{.*}}, %[[SHARED]][%{{.*}}]
// CHECK:           gpu.barrier
// CHECK:           scf.if %{{.*}} -> (f32) {
// CHECK:             memref.load %[[SHARED]]
// CHECK:           } else {
// CHECK:             scf.yield %cst
// CHECK:           gpu.shuffle xor %{{.*}}, %c2_i32
// CHECK:           gpu.shuffle xor %{{.*}}, %c1_i32
// CHECK:           math.sqrt
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[I]]]
gpu.module @kernels {
  gpu.func @block(%x: memref<2x5000xf32>, %y: memref<2xf32>) kernel {
    imap.generic (i)[j] domain: i in [0, 1], j in [0, 4999]
        ins(%x[i, j] : memref<2x5000xf32>) outs(%y[i] : memref<2xf32>) fold [add f32] {
    ^bb0(%a: f32):
      %s = arith.mulf %a, %a : f32
      imap.yield %s : f32
    } epilogue {
    ^bb0(%sum: f32, %a: f32):
      %r = math.sqrt %sum : f32
      imap.yield %r : f32
    }
    gpu.return
  }
}

// -----

// A block of 8 x 16 threads computes tiles of 64 rows and 64 columns, 8 x 4 of them per thread. Each step copies 16
// columns of one factor and 16 rows of the other one to shared memory. Zeros are outside of the matrices.
// CHECK-LABEL: gpu.func @product
// CHECK-SAME:    %[[X:[^:]*]]: memref<200x40xf32>, %[[Y:[^:]*]]: memref<40x100xf32>, %[[Z:[^:]*]]: memref<200x100xf32>)
// CHECK-SAME:    workgroup(%[[LEFT:.*]] : memref<1040xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:              %[[RIGHT:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[TILES:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[DEPTH:.*]] = arith.constant 16 : index
// CHECK-DAG:     %[[K:.*]] = arith.constant 40 : index
// CHECK:         scf.for %{{.*}} = %block_id_x to %[[TILES]] step %grid_dim_x {
// CHECK:           %[[SUMS:.*]]:32 = scf.for %[[K0:.*]] = %{{.*}} to %[[K]] step %[[DEPTH]] iter_args
// CHECK:             gpu.barrier
// CHECK:             scf.for
// CHECK:               scf.if
// CHECK:                 memref.load %[[X]]
// CHECK:               memref.store %{{.*}}, %[[LEFT]]
// CHECK:             scf.for
// CHECK:                 memref.load %[[Y]]
// CHECK:               memref.store %{{.*}}, %[[RIGHT]]
// CHECK:             gpu.barrier
// CHECK:             arith.minsi
// CHECK:             %[[PART:.*]]:32 = scf.for
// CHECK-COUNT-8:       memref.load %[[LEFT]]
// CHECK-COUNT-4:       memref.load %[[RIGHT]]
// CHECK-COUNT-32:      arith.mulf
// CHECK:             arith.addf %{{.*}}, %[[PART]]#0
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %[[Z]]
gpu.module @kernels {
  gpu.func @product(%x: memref<200x40xf32>, %y: memref<40x100xf32>, %z: memref<200x100xf32>) kernel {
    imap.generic (i, j)[k] domain: i in [0, 199], j in [0, 99], k in [0, 39]
        ins(%x[i, k], %y[k, j] : memref<200x40xf32>, memref<40x100xf32>) outs(%z[i, j] : memref<200x100xf32>)
        fold [add f32] {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %b : f32
      imap.yield %p : f32
    }
    gpu.return
  }
}

// -----

// A few rows, or few terms, are no tile.
// CHECK-LABEL: gpu.func @few_rows
// CHECK-NOT:     arith.minsi
// CHECK-LABEL: gpu.func @few_terms
// CHECK-NOT:     arith.minsi
gpu.module @kernels {
  gpu.func @few_rows(%x: memref<4x40xf32>, %y: memref<40x12xf32>, %z: memref<4x12xf32>) kernel {
    imap.generic (i, j)[k] domain: i in [0, 3], j in [0, 11], k in [0, 39]
        ins(%x[i, k], %y[k, j] : memref<4x40xf32>, memref<40x12xf32>) outs(%z[i, j] : memref<4x12xf32>)
        fold [add f32] {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %b : f32
      imap.yield %p : f32
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @few_terms(%x: memref<200x3xf32>, %y: memref<3x100xf32>, %z: memref<200x100xf32>) kernel {
    imap.generic (i, j)[k] domain: i in [0, 199], j in [0, 99], k in [0, 2]
        ins(%x[i, k], %y[k, j] : memref<200x3xf32>, memref<3x100xf32>) outs(%z[i, j] : memref<200x100xf32>)
        fold [add f32] {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %b : f32
      imap.yield %p : f32
    }
    gpu.return
  }
}

// -----

// Blocks share the tiles of independent loops. The memory of a tile is shared by the threads of its block, which wait for
// each other after each operation.
// CHECK-LABEL: gpu.func @tiles
// CHECK-SAME:    %[[X:[^:]*]]: memref<10x300xf32>, %[[Y:[^:]*]]: memref<10x300xf32>)
// CHECK-SAME:    workgroup(%[[SHARED:.*]] : memref<1xf32, #gpu.address_space<workgroup>> {llvm.align = 16
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 10 : index
// CHECK-DAG:     %[[SIZE:.*]] = arith.constant 128 : index
// CHECK:         scf.for %[[TILE:.*]] = %block_id_x to %[[ROWS]] step %grid_dim_x {
// CHECK:           %[[ROW:.*]] = memref.subview %[[X]][%[[TILE]], 0] [1, 300]
// CHECK:           %[[SUM:.*]] = memref.memory_space_cast %[[SHARED]]
// CHECK:             memref.load %[[ROW]]
// CHECK:             gpu.shuffle
// CHECK:             memref.store %{{.*}}, %[[SUM]]
// CHECK:           gpu.barrier
// CHECK:           %[[TOTAL:.*]] = memref.load %[[SUM]]
// CHECK:           scf.for %{{.*}} = %thread_id_x to %{{.*}} step %[[SIZE]] {
// CHECK:             arith.divf %{{.*}}, %[[TOTAL]]
// CHECK:             memref.store
// CHECK:           }
// CHECK:           gpu.barrier
gpu.module @kernels {
  gpu.func @tiles(%x: memref<10x300xf32>, %y: memref<10x300xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c10 = arith.constant 10 : index
    scf.parallel (%i) = (%c0) to (%c10) step (%c1) {
      %row = memref.subview %x[%i, 0] [1, 300] [1, 1] : memref<10x300xf32> to memref<1x300xf32, strided<[300, 1], offset: ?>>
      %out = memref.subview %y[%i, 0] [1, 300] [1, 1] : memref<10x300xf32> to memref<1x300xf32, strided<[300, 1], offset: ?>>
      %sum = memref.alloc() : memref<1xf32>
      imap.generic (i)[j] domain: i in [0, 0], j in [0, 299]
          ins(%row[i, j] : memref<1x300xf32, strided<[300, 1], offset: ?>>) outs(%sum[i] : memref<1xf32>) fold [add f32] {
      ^bb0(%a: f32):
        imap.yield %a : f32
      }
      imap.generic (i, j) domain: i in [0, 0], j in [0, 299]
          ins(%row[i, j], %sum[i] : memref<1x300xf32, strided<[300, 1], offset: ?>>, memref<1xf32>)
          outs(%out[i, j] : memref<1x300xf32, strided<[300, 1], offset: ?>>) {
      ^bb0(%a: f32, %s: f32):
        %q = arith.divf %a, %s : f32
        imap.yield %q : f32
      }
      scf.reduce
    }
    gpu.return
  }
}

// -----

// Few columns of many elements: four rows of 32 threads fold the elements of 32 columns, and then the four values of each
// column in shared memory.
// CHECK-LABEL: gpu.func @column_folds
// CHECK-SAME:    workgroup(%[[SHARED:.*]] : memref<128xf32, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[ROWS:.*]] = arith.constant 4 : index
// CHECK:         %[[ROW:.*]] = arith.divui %thread_id_x, %c32
// CHECK:         scf.if
// CHECK:           scf.for %[[I:.*]] = %[[ROW]] to %{{.*}} step %[[ROWS]]
// CHECK:             memref.load %{{.*}}[%[[I]], %{{.*}}] : memref<900x20xf32>
// CHECK:         gpu.barrier
// CHECK-NEXT:    memref.store %{{.*}}, %[[SHARED]][%thread_id_x]
// CHECK-COUNT-2: gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         memref.store %{{.*}} : memref<20xf32>
// An ordered fold keeps its order.
// CHECK-LABEL: gpu.func @ordered_columns
// CHECK-NOT:     gpu.barrier
gpu.module @kernels {
  gpu.func @column_folds(%x: memref<900x20xf32>, %y: memref<20xf32>) kernel {
    imap.generic (j)[i] domain: j in [0, 19], i in [0, 899]
        ins(%x[i, j] : memref<900x20xf32>) outs(%y[j] : memref<20xf32>) fold [add f32] {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
  gpu.func @ordered_columns(%x: memref<900x20xf32>, %y: memref<20xf32>) kernel {
    imap.generic (j)[i] domain: j in [0, 19], i in [0, 899]
        ins(%x[i, j] : memref<900x20xf32>) outs(%y[j] : memref<20xf32>) fold [add f32] ordered {
    ^bb0(%a: f32):
      imap.yield %a : f32
    }
    gpu.return
  }
}

// -----

// A convolution with padding is a product, too. Beside an element, shared memory holds whether it is inside: a value
// outside is not folded, even if a weight is infinite.
// CHECK-LABEL: gpu.func @padded
// CHECK-SAME:    workgroup(%[[X:[^ ]*]] : memref<1040xf32, {{.*}} %[[W:[^ ]*]] : memref<1024xf32, {{.*}} %[[MASK:[^ ]*]] : memref<1040xi8
// CHECK:         gpu.barrier
// CHECK:         memref.store %{{.*}}, %[[X]]
// CHECK-NEXT:    memref.store %{{.*}}, %[[MASK]]
// CHECK:         memref.store %{{.*}}, %[[W]]
// CHECK:         %[[BYTE:.*]] = memref.load %[[MASK]]
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ne, %[[BYTE]]
// CHECK:         %[[P:.*]] = arith.mulf
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[OLD:.*]], %[[P]]
// CHECK-NEXT:    arith.select %[[INSIDE]], %[[S]], %[[OLD]]
// Neighbouring elements of the result are to lie along the columns of a tile: those of the second factor.
// CHECK-LABEL: gpu.func @transposed_result
// CHECK-SAME:    %[[X:[^:]*]]: memref<64x32xf32>, %[[W:[^:]*]]: memref<32x64xf32>
// CHECK:         memref.load %[[W]]
// CHECK:         memref.load %[[X]]
gpu.module @kernels {
  gpu.func @padded(%x: memref<64x34xf32>, %w: memref<3x34x64xf32>, %y: memref<64x64xf32>) kernel {
    imap.generic (i, j)[t, k] domain: i in [0, 63], j in [0, 63], t in [0, 2], k in [0, 33], i + t - 1 in [0, 63]
        ins(%x[i + t - 1, k], %w[t, k, j] : memref<64x34xf32>, memref<3x34x64xf32>) outs(%y[i, j] : memref<64x64xf32>)
        fold [add f32] {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %b : f32
      imap.yield %p : f32
    }
    gpu.return
  }
  gpu.func @transposed_result(%x: memref<64x32xf32>, %w: memref<32x64xf32>, %y: memref<64x64xf32>) kernel {
    imap.generic (i, j)[k] domain: i in [0, 63], j in [0, 63], k in [0, 31]
        ins(%x[i, k], %w[k, j] : memref<64x32xf32>, memref<32x64xf32>) outs(%y[j, i] : memref<64x64xf32>)
        fold [add f32] {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %b : f32
      imap.yield %p : f32
    }
    gpu.return
  }
}

// -----

// Neighbouring elements of the result and of the first input lie along different variables: a square of the input goes
// through shared memory. Rows of 33 elements are in different banks.
// CHECK-LABEL: gpu.func @transposed
// CHECK-SAME:    %[[X:[^:]*]]: memref<100x64xf32>, %[[Y:[^:]*]]: memref<64x100xf32>, %[[Z:[^:]*]]: memref<64x100xf32>)
// CHECK-SAME:    workgroup(%[[SHARED:.*]] : memref<1056xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for %{{.*}} = %block_id_x
// CHECK:           gpu.barrier
// CHECK:           scf.for
// CHECK:             memref.load %[[X]]
// CHECK:             memref.store %{{.*}}, %[[SHARED]]
// CHECK:           gpu.barrier
// CHECK:           scf.for
// CHECK:             %[[A:.*]] = memref.load %[[SHARED]]
// CHECK:             %[[B:.*]] = memref.load %[[Y]]
// CHECK:             arith.addf %[[A]], %[[B]]
// CHECK:             memref.store %{{.*}}, %[[Z]]
// A side of 10 is short for that.
// CHECK-LABEL: gpu.func @narrow
// CHECK-NOT:     gpu.barrier
gpu.module @kernels {
  gpu.func @transposed(%x: memref<100x64xf32>, %y: memref<64x100xf32>, %z: memref<64x100xf32>) kernel {
    imap.generic (i, j) domain: i in [0, 63], j in [0, 99]
        ins(%x[j, i], %y[i, j] : memref<100x64xf32>, memref<64x100xf32>) outs(%z[i, j] : memref<64x100xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      imap.yield %s : f32
    }
    gpu.return
  }
  gpu.func @narrow(%x: memref<100x10xf32>, %z: memref<10x100xf32>) kernel {
    imap.generic (i, j) domain: i in [0, 9], j in [0, 99] ins(%x[j, i] : memref<100x10xf32>) outs(%z[i, j] : memref<10x100xf32>) {
    ^bb0(%a: f32):
      %s = arith.negf %a : f32
      imap.yield %s : f32
    }
    gpu.return
  }
}
