// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-split-folds{parts=64 min-size=100},canonicalize))' --remarks-filter=imap-split-folds 2>&1 | FileCheck %s
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-split-folds{parts=64 min-size=100 strict-fp=true}))' --remarks-filter=imap-split-folds 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: not tc-opt %s --pass-pipeline='builtin.module(func.func(imap-split-folds{parts=0}))' 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: 'func.func' op 'parts' expects a positive number

// CHECK: [Passed] split | Category:imap-split-folds | Function=sum | Parts=64
// STRICT: [Missed] not split | Category:imap-split-folds | Function=sum | Reason="strict-fp keeps the order"
// CHECK: [Passed] split | Category:imap-split-folds | Function=prefix | Parts=50
// STRICT: [Missed] not split | Category:imap-split-folds | Function=prefix | Reason="strict-fp keeps the order"
// CHECK: [Missed] not split | Category:imap-split-folds | Function=prime | Reason="no number of parts divides its length"

// A part has the same length as the others, and the second fold has start and epilogue.
// CHECK-LABEL: func.func @sum
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<64xf32>
// CHECK:         %[[P:.*]] = imap.generic (d0)[k] domain: d0 in [0, 63], k in [0, 15624]
// CHECK-SAME:        ins(%{{.*}}[d0 * 15625 + k] : tensor<1000000xf32>) outs(%[[E]][d0] : tensor<64xf32>) fold [add f32] {
// CHECK:         imap.generic ()[s0] domain: s0 in [0, 63] ins(%[[P]][s0], %{{.*}}[] : tensor<64xf32>, tensor<f32>)
// CHECK-SAME:        outs(%{{.*}}[] : tensor<f32>) fold [add f32 from 2.0
// CHECK:         } epilogue {
// CHECK:           arith.divf
func.func @sum(%x: tensor<1000000xf32>, %n: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %s = imap.generic ()[k] domain: k in [0, 999999] ins(%x[k], %n[] : tensor<1000000xf32>, tensor<f32>)
      outs(%e[] : tensor<f32>) fold [add f32 from 2.0] {
  ^bb0(%a: f32, %b: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%sum: f32, %a: f32, %b: f32):
    %r = arith.divf %sum, %b : f32
    imap.yield %r : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// A prime number of rows has a shorter last part. The index is that of the whole range.
// CHECK-LABEL: func.func @argmax
// CHECK:         %{{.*}}:2 = imap.generic (i, d1)[k] domain: i in [0, 2], d1 in [0, 9], k in [0, 100], d1 * 101 + k in [-inf, 1008]
// CHECK-SAME:        ins(%{{.*}}[i, d1 * 101 + k] : tensor<3x1009xf32>)
// CHECK-SAME:        outs(%{{.*}}[i, d1], %{{.*}}[i, d1] : tensor<3x10xf32>, tensor<3x10xi32>)
// CHECK:           imap.index dim 1
// CHECK:         imap.generic (i)[s0]
// CHECK-SAME:        outs(%{{.*}}[i] : tensor<3xi32>)
func.func @argmax(%x: tensor<3x1009xf32>) -> tensor<3xi32> {
  %e = tensor.empty() : tensor<3xi32>
  %s = imap.generic (i)[k] domain: i in [0, 2], k in [0, 1008] ins(%x[i, k] : tensor<3x1009xf32>)
      outs(%e[i] : tensor<3xi32>) fold [f32 identity 0xFF800000, i32 identity 0] {
  ^bb0(%a: f32):
    %j = imap.index range 0
    %k = arith.index_cast %j : index to i32
    imap.yield %a, %k : f32, i32
  } combine {
  ^bb0(%v0: f32, %i0: i32, %v1: f32, %i1: i32):
    %left = arith.cmpf oge, %v0, %v1 : f32
    %v = arith.select %left, %v0, %v1 : f32
    %i = arith.select %left, %i0, %i1 : i32
    imap.yield %v, %i : f32, i32
  } epilogue {
  ^bb0(%v: f32, %i: i32, %a: f32):
    imap.yield %i : i32
  } -> tensor<3xi32>
  return %s : tensor<3xi32>
}

// There are enough results, or parts would be too short.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-2: imap.generic
// CHECK-NOT:     imap.generic
// CHECK:         return
func.func @kept(%x: tensor<64x1000xf32>, %y: tensor<150xf32>) -> (tensor<64xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<64xf32>
  %s = imap.generic (i)[k] domain: i in [0, 63], k in [0, 999] ins(%x[i, k] : tensor<64x1000xf32>)
      outs(%e[i] : tensor<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<64xf32>
  %f = tensor.empty() : tensor<f32>
  %t = imap.generic ()[k] domain: k in [0, 149] ins(%y[k] : tensor<150xf32>)
      outs(%f[] : tensor<f32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<f32>
  return %s, %t : tensor<64xf32>, tensor<f32>
}

// A scan has a fold of the parts, an exclusive scan of their results with the start, and a scan of the parts, whose
// epilogue combines both. The index is that of the whole dimension.
// CHECK-LABEL: func.func @prefix
// CHECK:         %[[TOTAL:.*]] = imap.generic (i, t)[s0] domain: i in [0, 0], t in [0, 49], s0 in [0, 99]
// CHECK-SAME:        ins(%{{.*}}[i, t * 100 + s0] : tensor<1x5000xf32>) outs(%{{.*}}[i, t] : tensor<1x50xf32>) fold [add f32] {
// CHECK:         %[[BEFORE:.*]] = imap.scan (i, t) domain: i in [0, 0], t in [0, 49] scan t exclusive
// CHECK-SAME:        ins(%[[TOTAL]][i, t] : tensor<1x50xf32>) outs(%{{.*}}[i, t] : tensor<1x50xf32>) fold [add f32 from 2.0
// CHECK:         imap.scan (i, t, d2) domain: i in [0, 0], t in [0, 99], d2 in [0, 49] scan t inclusive
// CHECK-SAME:        ins(%{{.*}}[i, d2 * 100 + t], %[[BEFORE]][i, d2] : tensor<1x5000xf32>, tensor<1x50xf32>)
// CHECK-SAME:        outs(%{{.*}}[i, d2 * 100 + t] : tensor<1x5000xf32>) fold [add f32] {
// CHECK:         } epilogue {
// CHECK-NEXT:    ^bb0(%[[ALL:.*]]: f32, %{{.*}}: f32, %[[B:.*]]: f32):
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %[[B]], %[[ALL]]
// CHECK-DAG:       %[[PART:.*]] = imap.index dim 2
// CHECK-DAG:       %[[PLACE:.*]] = imap.index dim 1
// CHECK-DAG:       %[[FIRST:.*]] = arith.muli %[[PART]], %c100
// CHECK:           arith.addi %{{.*}}, %[[PLACE]]
// CHECK:           arith.divf %[[SUM]], %{{.*}}
func.func @prefix(%x: tensor<1x5000xf32>) -> tensor<1x5000xf32> {
  %e = tensor.empty() : tensor<1x5000xf32>
  %s = imap.scan (i, t) domain: i in [0, 0], t in [0, 4999] scan t inclusive ins(%x[i, t] : tensor<1x5000xf32>)
      outs(%e[i, t] : tensor<1x5000xf32>) fold [add f32 from 2.0] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%sum: f32, %a: f32):
    %j = imap.index dim 1
    %k = arith.index_cast %j : index to i32
    %n = arith.sitofp %k : i32 to f32
    %r = arith.divf %sum, %n : f32
    imap.yield %r : f32
  } -> tensor<1x5000xf32>
  return %s : tensor<1x5000xf32>
}

func.func @prime(%x: tensor<5003xf32>) -> tensor<5003xf32> {
  %e = tensor.empty() : tensor<5003xf32>
  %s = imap.scan (t) domain: t in [0, 5002] scan t inclusive ins(%x[t] : tensor<5003xf32>)
      outs(%e[t] : tensor<5003xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<5003xf32>
  return %s : tensor<5003xf32>
}

// With two loads per value, half as many values are worth two parts.
// CHECK-LABEL: func.func @two_tensors
// CHECK:         imap.generic ({{.*}})[{{.*}}] domain: {{.*}} outs(%{{.*}} : tensor<2xf32>) fold [maximumf f32]
func.func @two_tensors(%x: tensor<160xf32>, %y: tensor<160xf32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %m = imap.generic ()[s] domain: s in [0, 159] ins(%x[s], %y[s] : tensor<160xf32>, tensor<160xf32>) outs(%e[] : tensor<f32>) fold [maximumf f32] {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    imap.yield %d : f32
  } -> tensor<f32>
  return %m : tensor<f32>
}
