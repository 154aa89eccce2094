// RUN: tc-opt %s --split-input-file --remarks-filter=imap-tile 2>%t.remarks \
// RUN:   --pass-pipeline='builtin.module(imap-schedule{min-bytes=1024 shared-bytes=1024 min-points=128},func.func(imap-tile),cse)' | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: tc-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(imap-schedule{min-bytes=1024 shared-bytes=1024 min-points=128 parallel=true parallel-threshold=8000},func.func(imap-tile),cse)' \
// RUN:   | FileCheck %s --check-prefix=THREADS
// RUN: tc-opt %s --split-input-file --pass-pipeline='builtin.module(imap-schedule{tile-bytes=32768},func.func(imap-tile))' \
// RUN:   | FileCheck %s --check-prefix=BLOCK
// RUN: not tc-opt %s --pass-pipeline='builtin.module(imap-schedule{min-bytes=x},func.func(imap-tile))' --split-input-file 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OPTION
// OPTION: error: 'builtin.module' op 'min-bytes' expects a number
// RUN: not tc-opt %s --pass-pipeline='builtin.module(func.func(fuse-outer-dimensions))' 2>&1 | FileCheck %s --check-prefix=REMOVED
// REMOVED: tc-opt: error: the pass 'fuse-outer-dimensions' was removed; use 'imap-tile'
// A file may have the name of a removed pass.
// RUN: mkdir -p %t.d && cp %s %t.d/fuse-outer-dimensions.mlir
// RUN: tc-opt %t.d/fuse-outer-dimensions.mlir --split-input-file -o /dev/null

// REMARK:     remark: [Passed] group | Category:imap-tile | Function=softmax | Operations=4, Sizes="4, 0"
// REMARK:     remark: [Passed] group | Category:imap-tile | Function=escapes | Operations=2, Sizes="4, 0"
// REMARK:     remark: [Passed] group | Category:imap-tile | Function=columns | Operations=2, Sizes=128
// REMARK:     remark: [Passed] group | Category:imap-tile | Function=batch | Operations=3, Sizes="2, 0, 0"
// REMARK:     remark: [Passed] group | Category:imap-tile | Function=rows | Operations=2, Sizes="16, 0"
// REMARK:     remark: [Passed] group | Category:imap-tile | Function=row_values | Operations=4, Sizes="2, 0"
// REMARK:     remark: [Passed] group | Category:imap-tile | Function=updated | Operations=2, Sizes="2, 0"
// REMARK-NOT: remark

// Rows of a softmax: four operations, one loop.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<64x32xf32>
// CHECK:         scf.for %[[I:.*]] = %c0 to %c64 step %c4 iter_args(%[[O:.*]] = %{{.*}}) -> (tensor<64x32xf32>)
// CHECK:           %[[XT:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [4, 32] [1, 1]
// CHECK:           %[[M:.*]] = imap.generic (d0)[s0] {{.*}} ins(%[[XT]][d0, s0] {{.*}} fold [maximumf f32]
// CHECK:           %[[P:.*]] = imap.generic (d0, d1) {{.*}} ins(%[[XT]][d0, d1], %[[M]][d0] : {{.*}} : tensor<4x32xf32>) {
// CHECK:           %[[S:.*]] = imap.generic (d0)[s0] {{.*}} ins(%[[P]][d0, s0] {{.*}} fold [add f32]
// CHECK:           %[[OT:.*]] = tensor.extract_slice %[[O]][%[[I]], 0] [4, 32] [1, 1]
// CHECK:           %[[Y:.*]] = imap.generic (d0, d1) {{.*}} ins(%[[P]][d0, d1], %[[S]][d0] {{.*}} outs(%[[OT]][d0, d1]
// CHECK:           tensor.insert_slice %[[Y]] into %[[O]][%[[I]], 0] [4, 32] [1, 1]
// CHECK-NOT:     imap.generic
// THREADS-LABEL: func.func @softmax
// THREADS:         scf.forall (%[[I:.*]]) = (0) to (64) step (4) shared_outs(%[[O:.*]] = %{{.*}}) -> (tensor<64x32xf32>)
// THREADS-COUNT-4:   imap.generic
// THREADS:           tensor.parallel_insert_slice %{{.*}} into %[[O]][%[[I]], 0] [4, 32] [1, 1]
func.func @softmax(%x: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %e0 = tensor.empty() : tensor<64xf32>
  %m = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 31]
      ins(%x[d0, s0] : tensor<64x32xf32>) outs(%e0[d0] : tensor<64xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %e1 = tensor.empty() : tensor<64x32xf32>
  %p = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%x[d0, d1], %m[d0] : tensor<64x32xf32>, tensor<64xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    imap.yield %e : f32
  } -> tensor<64x32xf32>
  %s = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 31]
      ins(%p[d0, s0] : tensor<64x32xf32>) outs(%e0[d0] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%p[d0, d1], %s[d0] : tensor<64x32xf32>, tensor<64xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// -----

// An operation after the group reads a member: the loop gives both.
// CHECK-LABEL: func.func @escapes
// CHECK:         %[[R:.*]]:2 = scf.for
// CHECK-COUNT-2:   imap.generic
// CHECK:           scf.yield %{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64x32xf32>
// CHECK:         imap.generic {{.*}} ins(%[[R]]#1[d1, d0], 
// CHECK-NOT:     imap.generic
// Too little work for threads.
// THREADS-LABEL: func.func @escapes
// THREADS:         scf.for
func.func @escapes(%x: tensor<64x32xf32>, %z: tensor<32x64xf32>) -> (tensor<64xf32>, tensor<32x64xf32>) {
  %e1 = tensor.empty() : tensor<64x32xf32>
  %p = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%x[d0, d1] : tensor<64x32xf32>) outs(%e1[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    imap.yield %e : f32
  } -> tensor<64x32xf32>
  %e0 = tensor.empty() : tensor<64xf32>
  %s = imap.generic (d0)[s0] domain: d0 in [0, 63], s0 in [0, 31]
      ins(%p[d0, s0] : tensor<64x32xf32>) outs(%e0[d0] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %e2 = tensor.empty() : tensor<32x64xf32>
  %t = imap.generic (d0, d1) domain: d0 in [0, 31], d1 in [0, 63]
      ins(%p[d1, d0], %z[d0, d1] : tensor<64x32xf32>, tensor<32x64xf32>) outs(%e2[d0, d1] : tensor<32x64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.mulf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<32x64xf32>
  return %s, %t : tensor<64xf32>, tensor<32x64xf32>
}

// -----

// Columns of a fold are contiguous: tiles have at least 'min-row' of them.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.for %[[I:.*]] = %c0 to %c256 step %c128
// CHECK:           tensor.extract_slice %{{.*}}[0, %[[I]]] [32, 128] [1, 1]
// CHECK-COUNT-2:   imap.generic
// CHECK:         }
// CHECK:         imap.generic
func.func @columns(%x: tensor<32x256xf32>) -> tensor<32x256xf32> {
  %e0 = tensor.empty() : tensor<256xf32>
  %s = imap.generic (d0)[s0] domain: d0 in [0, 255], s0 in [0, 31]
      ins(%x[s0, d0] : tensor<32x256xf32>) outs(%e0[d0] : tensor<256xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<256xf32>
  %q = imap.generic (d0) domain: d0 in [0, 255] ins(%s[d0] : tensor<256xf32>) outs(%e0[d0] : tensor<256xf32>) {
  ^bb0(%a: f32):
    %r = math.sqrt %a : f32
    imap.yield %r : f32
  } -> tensor<256xf32>
  %e1 = tensor.empty() : tensor<32x256xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 31], d1 in [0, 255]
      ins(%x[d0, d1], %q[d1] : tensor<32x256xf32>, tensor<256xf32>) outs(%e1[d0, d1] : tensor<32x256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.divf %a, %b : f32
    imap.yield %r : f32
  } -> tensor<32x256xf32>
  return %y : tensor<32x256xf32>
}

// -----

// The second product needs all rows of the first one: only the batch is tiled. The memory of the first one is not
// reused.
// CHECK-LABEL: func.func @batch
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c2
// CHECK-COUNT-3:   imap.generic
// CHECK-NOT:     imap.generic
func.func @batch(%a: tensor<64x8x8xf32>, %b: tensor<8x8xf32>) -> tensor<64x8x8xf32> {
  %e = tensor.empty() : tensor<64x8x8xf32>
  %p = imap.generic (d0, d1, d2)[s0] domain: d0 in [0, 63], d1 in [0, 7], d2 in [0, 7], s0 in [0, 7]
      ins(%a[d0, d1, s0], %b[s0, d2] : tensor<64x8x8xf32>, tensor<8x8xf32>)
      outs(%e[d0, d1, d2] : tensor<64x8x8xf32>) fold [add f32] {
  ^bb0(%l: f32, %r: f32):
    %m = arith.mulf %l, %r : f32
    imap.yield %m : f32
  } -> tensor<64x8x8xf32>
  %q = imap.generic (d0, d1, d2)[s0] domain: d0 in [0, 63], d1 in [0, 7], d2 in [0, 7], s0 in [0, 7]
      ins(%b[s0, d1], %p[d0, s0, d2] : tensor<8x8xf32>, tensor<64x8x8xf32>)
      outs(%e[d0, d1, d2] : tensor<64x8x8xf32>) fold [add f32] {
  ^bb0(%l: f32, %r: f32):
    %m = arith.mulf %l, %r : f32
    imap.yield %m : f32
  } -> tensor<64x8x8xf32>
  %v = imap.generic (d0, d1, d2) domain: d0 in [0, 63], d1 in [0, 7], d2 in [0, 7]
      ins(%q[d0, d2, d1] : tensor<64x8x8xf32>) outs(%p[d0, d1, d2] : tensor<64x8x8xf32>) {
  ^bb0(%l: f32):
    imap.yield %l : f32
  } -> tensor<64x8x8xf32>
  return %v : tensor<64x8x8xf32>
}

// -----

// A product has at least 16 rows in a tile, which read the table again.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c16
// CHECK:           imap.generic {{.*}} : tensor<16x32xf32>, tensor<32x32xf32>) {{.*}} fold [add f32]
// CHECK:           imap.generic
func.func @rows(%a: tensor<64x32xf32>, %t: tensor<32x32xf32>) -> tensor<64x32xf32> {
  %e = tensor.empty() : tensor<64x32xf32>
  %p = imap.generic (d0, d1)[s0] domain: d0 in [0, 63], d1 in [0, 31], s0 in [0, 31]
      ins(%a[d0, s0], %t[s0, d1] : tensor<64x32xf32>, tensor<32x32xf32>)
      outs(%e[d0, d1] : tensor<64x32xf32>) fold [add f32] {
  ^bb0(%l: f32, %r: f32):
    %m = arith.mulf %l, %r : f32
    imap.yield %m : f32
  } -> tensor<64x32xf32>
  %y = imap.generic (d0, d1) domain: d0 in [0, 63], d1 in [0, 31]
      ins(%p[d0, d1] : tensor<64x32xf32>) outs(%e[d0, d1] : tensor<64x32xf32>) {
  ^bb0(%l: f32):
    %m = math.exp %l : f32
    imap.yield %m : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// -----

// Each row would read the whole table again.
// CHECK-LABEL: func.func @shared
// CHECK-NOT:     scf.for
func.func @shared(%a: tensor<64x8x64xf32>, %t: tensor<8x64xf32>) -> tensor<64x8x64xf32> {
  %e = tensor.empty() : tensor<64x8x64xf32>
  %p = imap.generic (d0, d1, d2) domain: d0 in [0, 63], d1 in [0, 7], d2 in [0, 63]
      ins(%a[d0, d1, d2], %t[d1, d2] : tensor<64x8x64xf32>, tensor<8x64xf32>)
      outs(%e[d0, d1, d2] : tensor<64x8x64xf32>) {
  ^bb0(%l: f32, %r: f32):
    %m = arith.mulf %l, %r : f32
    imap.yield %m : f32
  } -> tensor<64x8x64xf32>
  %y = imap.generic (d0, d1, d2) domain: d0 in [0, 63], d1 in [0, 7], d2 in [0, 63]
      ins(%p[d0, 7 - d1, d2] : tensor<64x8x64xf32>) outs(%e[d0, d1, d2] : tensor<64x8x64xf32>) {
  ^bb0(%l: f32):
    %m = math.exp %l : f32
    imap.yield %m : f32
  } -> tensor<64x8x64xf32>
  return %y : tensor<64x8x64xf32>
}

// -----

// A product alone: so many rows that those of the first factor stay in cache. Not of one whose rows overlap.
// BLOCK-LABEL: func.func @block
// BLOCK:         scf.for %{{.*}} = %c0 to %c512 step %c64
// BLOCK:           tensor.extract_slice %{{.*}} [64, 256] [1, 1]
// BLOCK-LABEL: func.func @windows
// BLOCK-NOT:     scf.for
func.func @block(%a: tensor<512x256xf32>, %b: tensor<256x64xf32>) -> tensor<512x64xf32> {
  %e = tensor.empty() : tensor<512x64xf32>
  %p = imap.generic (d0, d1)[s0] domain: d0 in [0, 511], d1 in [0, 63], s0 in [0, 255]
      ins(%a[d0, s0], %b[s0, d1] : tensor<512x256xf32>, tensor<256x64xf32>)
      outs(%e[d0, d1] : tensor<512x64xf32>) fold [add f32] {
  ^bb0(%l: f32, %r: f32):
    %m = arith.mulf %l, %r : f32
    imap.yield %m : f32
  } -> tensor<512x64xf32>
  return %p : tensor<512x64xf32>
}
func.func @windows(%a: tensor<514x256xf32>, %b: tensor<3x256x64xf32>) -> tensor<512x64xf32> {
  %e = tensor.empty() : tensor<512x64xf32>
  %p = imap.generic (d0, d1)[s0, s1] domain: d0 in [0, 511], d1 in [0, 63], s0 in [0, 2], s1 in [0, 255]
      ins(%a[d0 + s0, s1], %b[s0, s1, d1] : tensor<514x256xf32>, tensor<3x256x64xf32>)
      outs(%e[d0, d1] : tensor<512x64xf32>) fold [add f32] {
  ^bb0(%l: f32, %r: f32):
    %m = arith.mulf %l, %r : f32
    imap.yield %m : f32
  } -> tensor<512x64xf32>
  return %p : tensor<512x64xf32>
}

// -----

// A fold that belongs to no group is tiled for threads. Its domain starts at 1, and its body asks for the row.
// THREADS-LABEL: func.func @index
// THREADS:         scf.forall (%[[I:.*]]) = (0) to (64) step (2)
// THREADS:           %[[T:.*]] = imap.generic (d0)[s0]
// THREADS:             %[[D:.*]] = imap.index dim 0
// THREADS:             arith.addi %[[D]], %{{.*}} : index
func.func @index(%x: tensor<66x64xi32>) -> tensor<66xi32> {
  %e = tensor.empty() : tensor<66xi32>
  %s = imap.generic (d0)[s0] domain: d0 in [1, 64], s0 in [0, 63]
      ins(%x[d0, s0] : tensor<66x64xi32>) outs(%e[d0] : tensor<66xi32>) fold [add i32] {
  ^bb0(%a: i32):
    %i = imap.index dim 0
    %k = arith.index_cast %i : index to i32
    %q = arith.muli %k, %a : i32
    imap.yield %q : i32
  } -> tensor<66xi32>
  return %s : tensor<66xi32>
}

// -----

// The root has fewer rows than the operation whose result is returned, too: its loop would not compute all of them.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: scf.for
// CHECK: return
func.func @whole(%x: tensor<512x64xf32>) -> (tensor<512x64xf32>, tensor<256xf32>) {
  %e = tensor.empty() : tensor<512x64xf32>
  %p = imap.generic (d0, d1) domain: d0 in [0, 511], d1 in [0, 63]
      ins(%x[d0, d1] : tensor<512x64xf32>) outs(%e[d0, d1] : tensor<512x64xf32>) {
  ^bb0(%a: f32):
    %q = math.exp %a : f32
    imap.yield %q : f32
  } -> tensor<512x64xf32>
  %f = tensor.empty() : tensor<256xf32>
  %s = imap.generic (d0)[s0] domain: d0 in [0, 255], s0 in [0, 63]
      ins(%p[d0, s0] : tensor<512x64xf32>) outs(%f[d0] : tensor<256xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<256xf32>
  return %p, %s : tensor<512x64xf32>, tensor<256xf32>
}

// -----

// The value per row that another fold and the result need is computed in the tile of its row.
// BLOCK-LABEL: func.func @row_values
// CHECK-LABEL: func.func @row_values
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = imap.generic (i)[j]
// CHECK:           %[[R:.*]] = imap.generic (i) {{.*}} ins(%[[S]][i]
// CHECK:           imap.generic (i)[j] {{.*}} %[[R]][i]
// CHECK:           imap.generic (i, j) {{.*}} %[[R]][i]
func.func @row_values(%x: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %e = tensor.empty() : tensor<512xf32>
  %s = imap.generic (i)[j] domain: i in [0, 511], j in [0, 63] ins(%x[i, j] : tensor<512x64xf32>)
      outs(%e[i] : tensor<512xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<512xf32>
  %f = tensor.empty() : tensor<512xf32>
  %r = imap.generic (i) domain: i in [0, 511] ins(%s[i] : tensor<512xf32>) outs(%f[i] : tensor<512xf32>) {
  ^bb0(%a: f32):
    %q = math.rsqrt %a : f32
    imap.yield %q : f32
  } -> tensor<512xf32>
  %g = tensor.empty() : tensor<512xf32>
  %t = imap.generic (i)[j] domain: i in [0, 511], j in [0, 63] ins(%x[i, j], %r[i] : tensor<512x64xf32>, tensor<512xf32>)
      outs(%g[i] : tensor<512xf32>) fold [maximumf f32] {
  ^bb0(%a: f32, %b: f32):
    %q = arith.subf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<512xf32>
  %h = tensor.empty() : tensor<512x64xf32>
  %y = imap.generic (i, j) domain: i in [0, 511], j in [0, 63]
      ins(%x[i, j], %r[i], %t[i] : tensor<512x64xf32>, tensor<512xf32>, tensor<512xf32>) outs(%h[i, j] : tensor<512x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.subf %p, %c : f32
    imap.yield %q : f32
  } -> tensor<512x64xf32>
  return %y : tensor<512x64xf32>
}

// -----

// What writes a part of a tensor stays outside: each tile would begin as a copy of the other part.
// BLOCK-LABEL: func.func @updated
// CHECK-LABEL: func.func @updated
// CHECK:         imap.generic
// CHECK:         %[[U:.*]] = imap.generic
// CHECK:         scf.for
// CHECK-NEXT:      tensor.extract_slice %[[U]]
func.func @updated(%x: tensor<512x32xf32>, %z: tensor<512x32xf32>) -> tensor<512x64xf32> {
  %e = tensor.empty() : tensor<512x64xf32>
  %a = imap.generic (i, j) domain: i in [0, 511], j in [0, 31] ins(%x[i, j] : tensor<512x32xf32>)
      outs(%e[i, j] : tensor<512x64xf32>) {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<512x64xf32>
  %u = imap.generic (i, j) domain: i in [0, 511], j in [0, 31] ins(%z[i, j] : tensor<512x32xf32>)
      outs(%a[i, j + 32] : tensor<512x64xf32>) {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<512x64xf32>
  %f = tensor.empty() : tensor<512xf32>
  %s = imap.generic (i)[j] domain: i in [0, 511], j in [0, 63] ins(%u[i, j] : tensor<512x64xf32>)
      outs(%f[i] : tensor<512xf32>) fold [add f32] {
  ^bb0(%v: f32):
    imap.yield %v : f32
  } -> tensor<512xf32>
  %g = tensor.empty() : tensor<512x64xf32>
  %y = imap.generic (i, j) domain: i in [0, 511], j in [0, 63]
      ins(%u[i, j], %s[i] : tensor<512x64xf32>, tensor<512xf32>) outs(%g[i, j] : tensor<512x64xf32>) {
  ^bb0(%v: f32, %w: f32):
    %q = arith.mulf %v, %w : f32
    imap.yield %q : f32
  } -> tensor<512x64xf32>
  return %y : tensor<512x64xf32>
}
