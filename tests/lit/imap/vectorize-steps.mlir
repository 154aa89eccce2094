// RUN: split-file %s %t
// RUN: tc-opt %t/steps.mlir --imap-vectorize="vector-bits=256" --convert-imap-to-scf --canonicalize | FileCheck %t/steps.mlir
// RUN: tc-opt %t/tiled.mlir --imap-tile --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --imap-vectorize="vector-bits=256" | FileCheck %t/tiled.mlir
// RUN: tc-opt %t/wrong.mlir --split-input-file --verify-diagnostics --imap-vectorize="vector-bits=256" --convert-imap-to-scf -o /dev/null

//--- steps.mlir
// Loops in the order of the step: k outside, i inside, in memory.
// CHECK-LABEL: func.func @order(
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[C16]]
// CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %[[C8]]
// CHECK: arith.addf
func.func @order(%x: memref<16x8xf32>, %y: memref<8xf32>) {
  imap.generic (i)[k] domain: i in [0, 7], k in [0, 15] ins(%x[k, i] : memref<16x8xf32>) outs(%y[i] : memref<8xf32>) fold [add f32 from outs 0] attributes {imap.schedule = #imap.schedule<order [k, i]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// A block of two rows and two vectors.
// CHECK-LABEL: func.func @product(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for %{{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
func.func @product(%a: memref<60x64xf32>, %b: memref<64x96xf32>, %c: memref<60x96xf32>) {
  imap.generic (m, n)[k] domain: m in [0, 59], n in [0, 95], k in [0, 63] ins(%a[m, k], %b[k, n] : memref<60x64xf32>, memref<64x96xf32>) outs(%c[m, n] : memref<60x96xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<vector [m = 2, n = 16] lanes n>} {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  }
  return
}

// An operation on elements, in vectors of four lanes.
// CHECK-LABEL: func.func @elements(
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK: math.sqrt {{.*}} vector<4xf32>
// CHECK: vector.store {{.*}} vector<4xf32>
func.func @elements(%x: memref<64xf32>, %y: memref<64xf32>) {
  imap.generic (i) domain: i in [0, 63] ins(%x[i] : memref<64xf32>) outs(%y[i] : memref<64xf32>) attributes {imap.schedule = #imap.schedule<vector [i = 4] lanes i>} {
  ^bb0(%a: f32):
    %r = math.sqrt %a : f32
    imap.yield %r : f32
  }
  return
}

//--- tiled.mlir
// The steps behind the last tile stay on the operation of a tile, through bufferization.
// CHECK-LABEL: func.func @tiled(
// CHECK: scf.for
// CHECK: memref.subview
// CHECK: vector<8xf32>
func.func @tiled(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = imap.generic (m, n)[k] domain: m in [0, 63], n in [0, 63], k in [0, 63] ins(%a[m, k], %b[k, n] : tensor<64x64xf32>, tensor<64x64xf32>) outs(%c[m, n] : tensor<64x64xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<tile [m = 16], vector [m = 4, n = 8] lanes n>} {
  ^bb0(%x: f32, %y: f32):
    %p = arith.mulf %x, %y : f32
    imap.yield %p : f32
  } -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

//--- wrong.mlir
func.func @large(%x: memref<1000x64xf32>, %y: memref<64x16xf32>, %z: memref<1000x16xf32>) {
  // expected-error @below {{the block has 2000 vectors, and 256 are the most}}
  imap.generic (m, n)[k] domain: m in [0, 999], n in [0, 15], k in [0, 63] ins(%x[m, k], %y[k, n] : memref<1000x64xf32>, memref<64x16xf32>)
      outs(%z[m, n] : memref<1000x16xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<vector [m = 1000, n = 16] lanes n>} {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  }
  return
}

// -----

func.func @no_variable(%x: memref<64xf32>, %y: memref<64xf32>) {
  // expected-error @+1 {{cannot be computed by 'vector [j = 8] lanes j': the schedule names 'j', and the operation has i}}
  imap.generic (i) domain: i in [0, 63] ins(%x[i] : memref<64xf32>) outs(%y[i] : memref<64xf32>) attributes {imap.schedule = #imap.schedule<vector [j = 8] lanes j>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

func.func @odd(%x: memref<64xf32>, %y: memref<64xf32>) {
  // expected-error @+1 {{the size of the lanes, 12, is no power of two from 2 to 8 and no multiple of 8}}
  imap.generic (i) domain: i in [0, 63] ins(%x[i] : memref<64xf32>) outs(%y[i] : memref<64xf32>) attributes {imap.schedule = #imap.schedule<vector [i = 12] lanes i>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

func.func @call(%x: memref<64xf32>, %y: memref<64xf32>) {
  // expected-error @+1 {{the body has an operation that works on single elements only}}
  imap.generic (i) domain: i in [0, 63] ins(%x[i] : memref<64xf32>) outs(%y[i] : memref<64xf32>) attributes {imap.schedule = #imap.schedule<vector [i = 8] lanes i>} {
  ^bb0(%a: f32):
    %r = imap.builtin "tanh"(%a) : f32
    imap.yield %r : f32
  }
  return
}

// -----

func.func @not_innermost(%a: memref<8x64xf32>, %c: memref<8xf32>) {
  // expected-error @+1 {{the loop over the lanes 'm' is not the innermost one}}
  imap.generic (m)[k] domain: m in [0, 7], k in [0, 63] ins(%a[m, k] : memref<8x64xf32>) outs(%c[m] : memref<8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<order [m, k], vector [m = 8] lanes m>} {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// -----

func.func @strided(%a: memref<8x64xf32>, %c: memref<8xf32>) {
  // expected-error @+1 {{an operand is not contiguous along the lanes}}
  imap.generic (m)[k] domain: m in [0, 7], k in [0, 63] ins(%a[m, k] : memref<8x64xf32>) outs(%c[m] : memref<8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<vector [m = 8] lanes m>} {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// -----

func.func @kept_order(%a: memref<8x64xf32>, %c: memref<8xf32>) {
  // expected-error @+1 {{the lanes are a range, and the fold keeps the order of its ranges}}
  imap.generic (m)[k] domain: m in [0, 7], k in [0, 63] ins(%a[m, k] : memref<8x64xf32>) outs(%c[m] : memref<8xf32>) fold [add f32] ordered attributes {imap.schedule = #imap.schedule<vector [k = 8] lanes k>} {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// -----

func.func @not_square(%x: memref<64x64xf32>, %y: memref<64x64xf32>) {
  // expected-error @+1 {{an input is not contiguous along the lanes, and the block is no square of at most 16}}
  imap.generic (i, j) domain: i in [0, 63], j in [0, 63] ins(%x[j, i] : memref<64x64xf32>) outs(%y[i, j] : memref<64x64xf32>) attributes {imap.schedule = #imap.schedule<vector [i = 4, j = 8] lanes j>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

func.func @scan(%x: memref<64xf32>, %y: memref<64xf32>) {
  // expected-error @+1 {{only an imap.generic has register blocks}}
  imap.scan (t) domain: t in [0, 63] scan t inclusive ins(%x[t] : memref<64xf32>) outs(%y[t] : memref<64xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<vector [t = 8] lanes t>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

func.func @missing(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  // expected-error @+1 {{the order has no j}}
  imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%x[i, j] : memref<8x8xf32>) outs(%y[i, j] : memref<8x8xf32>) attributes {imap.schedule = #imap.schedule<order [i]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

func.func @two_rows(%x: memref<8x8x8xf32>, %y: memref<8x8xf32>) {
  // expected-error @+1 {{the order has dimensions behind ranges; only its last variable may be one}}
  imap.generic (i, j)[k] domain: i in [0, 7], j in [0, 7], k in [0, 7] ins(%x[i, j, k] : memref<8x8x8xf32>) outs(%y[i, j] : memref<8x8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<order [k, i, j]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

func.func @late_bound(%n: memref<8xi32>, %x: memref<8x8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{the bounds of 'k' need 'i', which comes later}}
  imap.generic (i)[k]{r} domain: i in [0, 7], k in [0, r], r in [0, 7] runtime(%n[i] : memref<8xi32>) ins(%x[i, k] : memref<8x8xf32>) outs(%y[i] : memref<8xf32>) fold [add f32] attributes {imap.schedule = #imap.schedule<order [k, i]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

func.func @on_tensors(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  // expected-error @+1 {{'tile [i = 4]' is executed by imap-tile, on tensors}}
  imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%x[i, j] : memref<8x8xf32>) outs(%y[i, j] : memref<8x8xf32>) attributes {imap.schedule = #imap.schedule<tile [i = 4]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}
