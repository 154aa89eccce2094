// RUN: split-file %s %t
// RUN: tc-opt %t/open.mlir --imap-tile --split-input-file | FileCheck %t/open.mlir
// RUN: tc-opt %t/pack.mlir --imap-tile --split-input-file | FileCheck %t/pack.mlir
// RUN: tc-opt %t/choose.mlir --imap-schedule=tile-bytes=40000 --split-input-file | FileCheck %t/choose.mlir
// RUN: tc-opt %t/wrong.mlir --imap-tile --split-input-file --verify-diagnostics -o /dev/null

//--- open.mlir
// The starts are written, tiles of the range accumulate in the destination, and the epilogue follows.
// CHECK-LABEL: func.func @epilogue
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<8x5xf32>)
// CHECK: %[[OUT:.*]] = tensor.extract_slice %[[C]]
// CHECK: %[[INIT:.*]] = imap.generic (i, n) {{.*}} outs(%[[OUT]][i, n] : tensor<4x5xf32>) {
// CHECK: arith.constant 0.0
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[INIT]]) -> (tensor<4x5xf32>)
// CHECK: %[[PART:.*]] = imap.generic (i, n)[k] {{.*}} ins(%{{.*}}[i, k], %{{.*}}[k, n] : tensor<4x16xf32>, tensor<16x5xf32>) outs(%[[ACC]][i, n] : tensor<4x5xf32>) fold [add f32 from outs 0] {
// CHECK: scf.yield %[[PART]]
// CHECK: imap.generic (i, n) {{.*}} ins(%[[SUM]][i, n], %{{.*}}[n] : {{.*}}) outs(%[[SUM]][i, n] : tensor<4x5xf32>) {
// CHECK: arith.addf
func.func @epilogue(%x: tensor<8x64xf32>, %y: tensor<64x5xf32>, %b: tensor<5xf32>) -> tensor<8x5xf32> {
  %e = tensor.empty() : tensor<8x5xf32>
  %r = imap.generic (i, n)[k] domain: i in [0, 7], n in [0, 4], k in [0, 63]
      ins(%x[i, k], %y[k, n], %b[n] : tensor<8x64xf32>, tensor<64x5xf32>, tensor<5xf32>)
      outs(%e[i, n] : tensor<8x5xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<tile [i = 4], tile [k = 16]>} {
  ^bb0(%a: f32, %c: f32, %d: f32):
    %p = arith.mulf %a, %c : f32
    imap.yield %p : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32, %c: f32, %d: f32):
    %q = arith.addf %s, %d : f32
    imap.yield %q : f32
  } -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}

// -----

// The destination runs backwards: the last tile is short, and each operation counts from its end.
// CHECK-LABEL: func.func @backwards
// CHECK: %[[SUM:.*]] = scf.for {{.*}} -> (tensor<?xf64>)
// CHECK: imap.generic (i){i_size} {{.*}} ins(%[[SUM]][i_size - i - 1] : tensor<?xf64>) outs(%{{.*}}[i_size - i - 1] : tensor<?xf32>)
// CHECK: arith.truncf
func.func @backwards(%x: tensor<33x32xf64>) -> tensor<33xf32> {
  %e = tensor.empty() : tensor<33xf32>
  %r = imap.generic (i)[k] domain: i in [0, 32], k in [0, 31], i - k in [0, 32] ins(%x[i, k] : tensor<33x32xf64>)
      outs(%e[32 - i] : tensor<33xf32>) fold [maximumf f64] attributes {imap.schedule = #imap.schedule<tile [i = 7], tile [k = 8]>} {
  ^bb0(%a: f64):
    imap.yield %a : f64
  } epilogue {
  ^bb0(%m: f64, %a: f64):
    %f = arith.truncf %m : f64 to f32
    imap.yield %f : f32
  } -> tensor<33xf32>
  return %r : tensor<33xf32>
}

// -----

// Accumulators of another type than the destination have memory of their own.
// CHECK-LABEL: func.func @wide
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8xbf16>
// CHECK: %[[W:.*]] = tensor.empty() : tensor<8xf32>
// CHECK: imap.generic (i) {{.*}} outs(%[[W]][i] : tensor<8xf32>)
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: fold [add f32 from outs 0]
// CHECK: imap.generic (i) {{.*}} ins(%[[SUM]][i] : tensor<8xf32>) outs(%[[E]][i] : tensor<8xbf16>)
// CHECK: arith.truncf
func.func @wide(%x: tensor<8x64xf32>) -> tensor<8xbf16> {
  %e = tensor.empty() : tensor<8xbf16>
  %r = imap.generic (i)[k] domain: i in [0, 7], k in [0, 63] ins(%x[i, k] : tensor<8x64xf32>)
      outs(%e[i] : tensor<8xbf16>) fold [add f32] attributes {imap.schedule = #imap.schedule<tile [k = 10]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32):
    %q = arith.truncf %s : f32 to bf16
    imap.yield %q : bf16
  } -> tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// -----

// A fold from the destination without an epilogue is open. A tile that covers the range is none.
// CHECK-LABEL: func.func @is_open
// CHECK-COUNT-1: imap.generic
// CHECK-NOT: imap.generic
// CHECK-LABEL: func.func @covered
// CHECK-NOT: scf.for
// CHECK: fold [maximumf f32] {
func.func @is_open(%x: tensor<64xf32>, %y: tensor<f32>) -> tensor<f32> {
  %r = imap.generic ()[k] domain: k in [0, 63] ins(%x[k] : tensor<64xf32>) outs(%y[] : tensor<f32>)
      fold [maximumf f32 from outs 0] attributes {imap.schedule = #imap.schedule<tile [k = 16]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
func.func @covered(%x: tensor<64xf32>, %y: tensor<f32>) -> tensor<f32> {
  %r = imap.generic ()[k] domain: k in [0, 63] ins(%x[k] : tensor<64xf32>) outs(%y[] : tensor<f32>)
      fold [maximumf f32] attributes {imap.schedule = #imap.schedule<tile [k = 64]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

//--- pack.mlir
// Rows of the copy are a line longer than whole lines. The last tile is a part of the same memory.
// CHECK-LABEL: func.func @rows
// CHECK: scf.for
// CHECK: %[[M:.*]] = tensor.empty() : tensor<3x48xf32>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[M]][0, 0] [%{{.*}}, 32] [1, 1] : tensor<3x48xf32> to tensor<?x32xf32>
// CHECK: %[[C:.*]] = imap.generic (d0, d1){{.*}} outs(%[[S]][d0, d1] : tensor<?x32xf32>) attributes {imap.scratch} {
// CHECK: imap.generic (i, n)[k]{{.*}} ins(%[[C]][i, k], %{{.*}}
func.func @rows(%x: tensor<8x32xf32>, %y: tensor<32x5xf32>) -> tensor<8x5xf32> {
  %e = tensor.empty() : tensor<8x5xf32>
  %r = imap.generic (i, n)[k] domain: i in [0, 7], n in [0, 4], k in [0, 31]
      ins(%x[i, k], %y[k, n] : tensor<8x32xf32>, tensor<32x5xf32>) outs(%e[i, n] : tensor<8x5xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<tile [i = 3], pack in 0, order [i, k, n]>} {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %c : f32
    imap.yield %p : f32
  } -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}

// -----

// The last dimension with several elements is the row.
// CHECK-LABEL: func.func @unit
// CHECK: tensor.empty() : tensor<8x48x1xf32>
// CHECK: imap.generic (i)[k]
func.func @unit(%x: tensor<8x32x1xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = imap.generic (i)[k] domain: i in [0, 7], k in [0, 31] ins(%x[i, k, 0] : tensor<8x32x1xf32>)
      outs(%e[i] : tensor<8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<pack in 0>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

//--- choose.mlir
// 64 rows are enough for a panel of the other factor, though twice as many would fit.
// CHECK-LABEL: func.func @enough
// CHECK: #imap.schedule<tile [i = 64]>
func.func @enough(%x: tensor<1024x144xf32>, %y: tensor<144x128xf32>, %e: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
  %r = imap.generic (i, n)[k] domain: i in [0, 1023], n in [0, 127], k in [0, 143]
      ins(%x[i, k], %y[k, n] : tensor<1024x144xf32>, tensor<144x128xf32>)
      outs(%e[i, n] : tensor<1024x128xf32>) fold [add f32] {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %c : f32
    imap.yield %p : f32
  } -> tensor<1024x128xf32>
  return %r : tensor<1024x128xf32>
}

// -----

// Rows that are a page apart are copied, and rows that are a little more apart are not.
// CHECK-LABEL: func.func @aliased
// CHECK: #imap.schedule<tile [i = 16], pack in 0>
// CHECK-LABEL: func.func @apart
// CHECK: #imap.schedule<tile [i = 16]>
func.func @aliased(%x: tensor<32x1024xf32>, %y: tensor<4x1024x32xf32>, %e: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %r = imap.generic (i, n, j)[k] domain: i in [0, 31], n in [0, 31], j in [0, 3], k in [0, 1023]
      ins(%x[i, k], %y[j, k, n] : tensor<32x1024xf32>, tensor<4x1024x32xf32>)
      outs(%e[i, j * 32 + n] : tensor<32x128xf32>) fold [add f32] {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %c : f32
    imap.yield %p : f32
  } -> tensor<32x128xf32>
  return %r : tensor<32x128xf32>
}
func.func @apart(%x: tensor<32x1040xf32>, %y: tensor<4x1040x32xf32>, %e: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %r = imap.generic (i, n, j)[k] domain: i in [0, 31], n in [0, 31], j in [0, 3], k in [0, 1039]
      ins(%x[i, k], %y[j, k, n] : tensor<32x1040xf32>, tensor<4x1040x32xf32>)
      outs(%e[i, j * 32 + n] : tensor<32x128xf32>) fold [add f32] {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %c : f32
    imap.yield %p : f32
  } -> tensor<32x128xf32>
  return %r : tensor<32x128xf32>
}

// -----

// Long rows are cut. An ordered fold is cut along its first range only.
// CHECK-LABEL: func.func @long
// CHECK: #imap.schedule<tile [k = 1000], tile [i = 16]>
// CHECK-LABEL: func.func @ordered
// CHECK-NOT: tile [k
func.func @long(%x: tensor<32x5000xf32>, %y: tensor<5000x128xf32>, %e: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %r = imap.generic (i, n)[k] domain: i in [0, 31], n in [0, 127], k in [0, 4999]
      ins(%x[i, k], %y[k, n] : tensor<32x5000xf32>, tensor<5000x128xf32>)
      outs(%e[i, n] : tensor<32x128xf32>) fold [add f32] {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %c : f32
    imap.yield %p : f32
  } -> tensor<32x128xf32>
  return %r : tensor<32x128xf32>
}
func.func @ordered(%x: tensor<2x32x5000xf32>, %y: tensor<2x5000x128xf32>, %e: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %r = imap.generic (i, n)[b, k] domain: i in [0, 31], n in [0, 127], b in [0, 1], k in [0, 4999]
      ins(%x[b, i, k], %y[b, k, n] : tensor<2x32x5000xf32>, tensor<2x5000x128xf32>)
      outs(%e[i, n] : tensor<32x128xf32>) fold [add f32] ordered {
  ^bb0(%a: f32, %c: f32):
    %p = arith.mulf %a, %c : f32
    imap.yield %p : f32
  } -> tensor<32x128xf32>
  return %r : tensor<32x128xf32>
}

//--- wrong.mlir
func.func @shared(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error @below {{the fold cannot be computed in tiles of a range: several of its results may be stored in one element}}
  %r = imap.generic (i, j)[k] domain: i in [0, 3], j in [0, 3], k in [0, 63] ins(%x[i, k] : tensor<8x64xf32>)
      outs(%e[i + j] : tensor<8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<tile [k = 16]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @threads(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error @below {{cannot be computed by 'forall [i = 4, k = 16]': tiles along 'k' depend on each other; use 'tile'}}
  %r = imap.generic (i)[k] domain: i in [0, 7], k in [0, 63] ins(%x[i, k] : tensor<8x64xf32>)
      outs(%e[i] : tensor<8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<forall [i = 4, k = 16]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @scanned(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  // expected-error @below {{tiles along 'i' depend on each other; cut another dimension}}
  %r = imap.scan (i) domain: i in [0, 63] scan i inclusive ins(%x[i] : tensor<64xf32>) outs(%e[i] : tensor<64xf32>) fold [add f32]
      attributes {imap.schedule = #imap.schedule<forall [i = 8]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// -----

func.func @missing(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error @below {{the schedule packs input 1, and the operation has 1}}
  %r = imap.generic (i)[k] domain: i in [0, 7], k in [0, 63] ins(%x[i, k] : tensor<8x64xf32>)
      outs(%e[i] : tensor<8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<pack in 1>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @unbounded(%x: tensor<?xf32>, %n: index) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-error @below {{the schedule packs input 0, which is not known to have less than 16777216 elements; cut it by a step before}}
  %r = imap.generic (i) domain: i in [0, 7] ins(%x[i] : tensor<?xf32>) outs(%e[i] : tensor<8xf32>)
      attributes {imap.schedule = #imap.schedule<pack in 0>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
