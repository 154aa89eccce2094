// RUN: tc-opt %s --transform-interpreter --canonicalize --cse | FileCheck %s
//
// Tiling and fusion of imap.generic by the transform dialect. A test of the CPU backend compiles the
// tiled functions and compares their values with those of the interpreter on the untiled ones.

module attributes {transform.with_named_sequence} {

// The range is cut too: each tile adds to what the destination holds.
// CHECK-LABEL: func.func @matmul_round(
// CHECK-SAME:  %[[A:[^:]*]]: tensor{{[^%]*}}, %[[B:[^:]*]]: tensor{{[^%]*}}, %[[C:[^:]*]]: tensor
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c64 step %c16 iter_args(%[[ACC:.*]] = %[[C]])
// CHECK: %[[LOOP2:.*]] = scf.for %[[J:.*]] = %c0 to %c48 step %c24 iter_args(%[[ACC2:.*]] = %[[ACC]])
// CHECK: %[[LOOP3:.*]] = scf.for %[[K:.*]] = %c0 to %c32 step %c8 iter_args(%[[ACC3:.*]] = %[[ACC2]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][%[[I]], %[[K]]] [16, 8] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[B]][%[[K]], %[[J]]] [8, 24] [1, 1]
// CHECK: %[[S3:.*]] = tensor.extract_slice %[[ACC3]][%[[I]], %[[J]]] [16, 24] [1, 1]
// CHECK: %[[R:.*]] = imap.generic (m, n)[k] domain: m in [0, 15], n in [0, 23], k in [0, 7]
// CHECK-SAME: ins(%[[S]][m, k], %[[S2]][k, n] :
// CHECK-SAME: outs(%[[S3]][m, n] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
// CHECK: tensor.insert_slice %[[R]] into %[[ACC3]][%[[I]], %[[J]]] [16, 24] [1, 1]
func.func @matmul_round(%A: tensor<64x32xi32>, %B: tensor<32x48xi32>, %C: tensor<64x48xi32>) -> tensor<64x48xi32> {
  %r = imap.generic (m, n)[k] domain: m in [0, 63], n in [0, 47], k in [0, 31]
      ins(%A[m, k], %B[k, n] : tensor<64x32xi32>, tensor<32x48xi32>) outs(%C[m, n] : tensor<64x48xi32>) fold [add i32 from outs 0] attributes {matmul_round} {
  ^bb0(%a: i32, %b: i32):
    %p = arith.muli %a, %b : i32
    imap.yield %p : i32
  } -> tensor<64x48xi32>
  return %r : tensor<64x48xi32>
}

// The size of a tile at the end is a runtime variable with bounds.
// CHECK-LABEL: func.func @matmul_odd(
// CHECK-SAME:  %[[A:[^:]*]]: tensor{{[^%]*}}, %[[B:[^:]*]]: tensor{{[^%]*}}, %[[C:[^:]*]]: tensor
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c50 step %c16 iter_args(%[[ACC:.*]] = %[[C]])
// CHECK: %[[LOOP2:.*]] = scf.for %[[J:.*]] = %c0 to %c41 step %c20 iter_args(%[[ACC2:.*]] = %[[ACC]])
// CHECK: %[[LOOP3:.*]] = scf.for %[[K:.*]] = %c0 to %c30 step %c8 iter_args(%[[ACC3:.*]] = %[[ACC2]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[SIZE2:.*]] = affine.min {{.*}}(%[[J]])
// CHECK: %[[SIZE3:.*]] = affine.min {{.*}}(%[[K]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][%[[I]], %[[K]]] [%[[SIZE]], %[[SIZE3]]] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[B]][%[[K]], %[[J]]] [%[[SIZE3]], %[[SIZE2]]] [1, 1]
// CHECK: %[[S3:.*]] = tensor.extract_slice %[[ACC3]][%[[I]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
// CHECK: %[[R:.*]] = imap.generic (m, n)[k]{m_size, n_size, k_size} domain: m in [0, m_size - 1], n in [0, n_size - 1], k in [0, k_size - 1], m_size in [2, 16], n_size in [1, 20], k_size in [6, 8]
// CHECK-SAME: runtime(%[[SIZE]], %[[SIZE2]], %[[SIZE3]] :
// CHECK-SAME: ins(%[[S]][m, k], %[[S2]][k, n] :
// CHECK-SAME: outs(%[[S3]][m, n] :
// CHECK-SAME: fold [add {{.*}} from outs 0]
// CHECK: tensor.insert_slice %[[R]] into %[[ACC3]][%[[I]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
func.func @matmul_odd(%A: tensor<50x30xi32>, %B: tensor<30x41xi32>, %C: tensor<50x41xi32>) -> tensor<50x41xi32> {
  %r = imap.generic (m, n)[k] domain: m in [0, 49], n in [0, 40], k in [0, 29]
      ins(%A[m, k], %B[k, n] : tensor<50x30xi32>, tensor<30x41xi32>) outs(%C[m, n] : tensor<50x41xi32>) fold [add i32 from outs 0] attributes {matmul_odd} {
  ^bb0(%a: i32, %b: i32):
    %p = arith.muli %a, %b : i32
    imap.yield %p : i32
  } -> tensor<50x41xi32>
  return %r : tensor<50x41xi32>
}

// Extents are runtime variables. A loop without a tile size keeps its bounds.
// CHECK-LABEL: func.func @matmul_dynamic(
// CHECK-SAME:  %[[A:[^:]*]]: tensor{{[^%]*}}, %[[B:[^:]*]]: tensor
// CHECK: %[[DIM:.*]] = tensor.dim %[[A]], %{{.*}}
// CHECK: %[[DIM2:.*]] = tensor.dim %[[A]], %{{.*}}
// CHECK: %[[DIM3:.*]] = tensor.dim %[[B]], %{{.*}}
// CHECK: %[[EMPTY:.*]] = tensor.empty(%[[DIM]], %[[DIM3]]) : tensor<?x?xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %[[DIM]] step %c16 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[LOOP2:.*]] = scf.for %[[J:.*]] = %c0 to %[[DIM3]] step %c20 iter_args(%[[ACC2:.*]] = %[[ACC]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])[%[[DIM]]]
// CHECK: %[[SIZE2:.*]] = affine.min {{.*}}(%[[J]])[%[[DIM3]]]
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][%[[I]], 0] [%[[SIZE]], %[[DIM2]]] [1, 1]
// CHECK: %[[DIM4:.*]] = tensor.dim %[[B]], %{{.*}}
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[B]][0, %[[J]]] [%[[DIM4]], %[[SIZE2]]] [1, 1]
// CHECK: %[[S3:.*]] = tensor.extract_slice %[[ACC2]][%[[I]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
// CHECK: %[[R:.*]] = imap.generic (m, n)[k]{K, m_size, n_size} domain: m in [0, m_size - 1], n in [0, n_size - 1], k in [0, K - 1], K in [0, inf], m_size in [1, 16], n_size in [1, 20]
// CHECK-SAME: runtime(%[[DIM2]], %[[SIZE]], %[[SIZE2]] :
// CHECK-SAME: ins(%[[S]][m, k], %[[S2]][k, n] :
// CHECK-SAME: outs(%[[S3]][m, n] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: tensor.insert_slice %[[R]] into %[[ACC2]][%[[I]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
func.func @matmul_dynamic(%A: tensor<?x?xi32> {tc.sizes = ["M", "K"]}, %B: tensor<?x?xi32> {tc.sizes = ["K", "N"]}) -> (tensor<?x?xi32> {tc.sizes = ["M", "N"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = tensor.dim %A, %c0 : tensor<?x?xi32>
  %K = tensor.dim %A, %c1 : tensor<?x?xi32>
  %N = tensor.dim %B, %c1 : tensor<?x?xi32>
  %e = tensor.empty(%M, %N) : tensor<?x?xi32>
  %r = imap.generic (m, n)[k]{M, K, N} domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1], M in [0, inf], K in [0, inf], N in [0, inf]
      runtime(%M, %K, %N : index, index, index)
      ins(%A[m, k], %B[k, n] : tensor<?x?xi32>, tensor<?x?xi32>) outs(%e[m, n] : tensor<?x?xi32>) fold [add i32] attributes {matmul_dynamic} {
  ^bb0(%a: i32, %b: i32):
    %p = arith.muli %a, %b : i32
    imap.yield %p : i32
  } -> tensor<?x?xi32>
  return %r : tensor<?x?xi32>
}

// The epilogue is in each tile, because a tile holds all of the range.
// CHECK-LABEL: func.func @matmul_forall(
// CHECK-SAME:  %[[A:[^:]*]]: tensor{{[^%]*}}, %[[B:[^:]*]]: tensor{{[^%]*}}, %[[BIAS:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<50x41xi32>
// CHECK: %[[LOOP:.*]] = scf.forall (%[[I:.*]], %[[J:.*]]) in (4, 3) shared_outs(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[OFFSET:.*]] = affine.apply {{.*}}(%[[I]])
// CHECK: %[[OFFSET2:.*]] = affine.apply {{.*}}(%[[J]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[SIZE2:.*]] = affine.min {{.*}}(%[[J]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][%[[OFFSET]], 0] [%[[SIZE]], 30] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[B]][0, %[[OFFSET2]]] [30, %[[SIZE2]]] [1, 1]
// CHECK: %[[S3:.*]] = tensor.extract_slice %[[BIAS]][%[[OFFSET2]]] [%[[SIZE2]]] [1]
// CHECK: %[[S4:.*]] = tensor.extract_slice %[[ACC]][%[[OFFSET]], %[[OFFSET2]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
// CHECK: %[[R:.*]] = imap.generic (m, n)[k]{m_size, n_size} domain: m in [0, m_size - 1], n in [0, n_size - 1], k in [0, 29], m_size in [2, 16], n_size in [1, 20]
// CHECK-SAME: runtime(%[[SIZE]], %[[SIZE2]] :
// CHECK-SAME: ins(%[[S]][m, k], %[[S2]][k, n], %[[S3]][n] :
// CHECK-SAME: outs(%[[S4]][m, n] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: } epilogue {
// CHECK: tensor.parallel_insert_slice %[[R]] into %[[ACC]][%[[OFFSET]], %[[OFFSET2]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
func.func @matmul_forall(%A: tensor<50x30xi32>, %B: tensor<30x41xi32>, %bias: tensor<41xi32>) -> tensor<50x41xi32> {
  %e = tensor.empty() : tensor<50x41xi32>
  %r = imap.generic (m, n)[k] domain: m in [0, 49], n in [0, 40], k in [0, 29]
      ins(%A[m, k], %B[k, n], %bias[n] : tensor<50x30xi32>, tensor<30x41xi32>, tensor<41xi32>) outs(%e[m, n] : tensor<50x41xi32>) fold [add i32] attributes {matmul_forall} {
  ^bb0(%a: i32, %w: i32, %c: i32):
    %p = arith.muli %a, %w : i32
    imap.yield %p : i32
  } epilogue {
  ^bb0(%acc: i32, %a: i32, %w: i32, %c: i32):
    %s = arith.addi %acc, %c : i32
    imap.yield %s : i32
  } -> tensor<50x41xi32>
  return %r : tensor<50x41xi32>
}

// A group: all temporaries have the size of a tile.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<63x100xf32>
// CHECK: %[[LOOP:.*]] = scf.forall (%[[I:.*]]) = (0) to (63) step (4) shared_outs(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [%[[SIZE]], 100] [1, 1]
// CHECK: %[[EMPTY2:.*]] = tensor.empty(%[[SIZE]]) : tensor<?xf32>
// CHECK: %[[R:.*]] = imap.generic (i)[j]{i_size} domain: i in [0, i_size - 1], j in [0, 99], i_size in [3, 4]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[EMPTY2]][i] :
// CHECK-SAME: fold [maximumf {{.*}}]
// CHECK: %[[EMPTY3:.*]] = tensor.empty(%[[SIZE]]) : tensor<?x100xf32>
// CHECK: %[[R2:.*]] = imap.generic (i, j){i_size} domain: i in [0, i_size - 1], j in [0, 99], i_size in [3, 4]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j], %[[R]][i] :
// CHECK-SAME: outs(%[[EMPTY3]][i, j] :
// CHECK: %[[R3:.*]] = imap.generic (i)[j]{i_size} domain: i in [0, i_size - 1], j in [0, 99], i_size in [3, 4]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[R2]][i, j] :
// CHECK-SAME: outs(%[[EMPTY2]][i] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[I]], 0] [%[[SIZE]], 100] [1, 1]
// CHECK: %[[R4:.*]] = imap.generic (i, j){i_size} domain: i in [0, i_size - 1], j in [0, 99], i_size in [3, 4]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[R2]][i, j], %[[R3]][i] :
// CHECK-SAME: outs(%[[S2]][i, j] :
// CHECK: tensor.parallel_insert_slice %[[R4]] into %[[ACC]][%[[I]], 0] [%[[SIZE]], 100] [1, 1]
func.func @softmax(%x: tensor<63x100xf32>) -> tensor<63x100xf32> {
  %e0 = tensor.empty() : tensor<63xf32>
  %e1 = tensor.empty() : tensor<63x100xf32>
  %m = imap.generic (i)[j] domain: i in [0, 62], j in [0, 99]
      ins(%x[i, j] : tensor<63x100xf32>) outs(%e0[i] : tensor<63xf32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<63xf32>
  %p = imap.generic (i, j) domain: i in [0, 62], j in [0, 99]
      ins(%x[i, j], %m[i] : tensor<63x100xf32>, tensor<63xf32>) outs(%e1[i, j] : tensor<63x100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    %v = math.exp %d : f32
    imap.yield %v : f32
  } -> tensor<63x100xf32>
  %s = imap.generic (i)[j] domain: i in [0, 62], j in [0, 99]
      ins(%p[i, j] : tensor<63x100xf32>) outs(%e0[i] : tensor<63xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<63xf32>
  %y = imap.generic (i, j) domain: i in [0, 62], j in [0, 99]
      ins(%p[i, j], %s[i] : tensor<63x100xf32>, tensor<63xf32>) outs(%e1[i, j] : tensor<63x100xf32>) attributes {softmax} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<63x100xf32>
  return %y : tensor<63x100xf32>
}

// The tile has the exact size in the group of static rows; mean and variance have epilogues.
// CHECK-LABEL: func.func @layernorm(
// CHECK-SAME:  %[[X:[^:]*]]: tensor{{[^%]*}}, %[[G:[^:]*]]: tensor{{[^%]*}}, %[[B:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<24x50xf32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c24 step %c4 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [4, 50] [1, 1]
// CHECK: %[[EMPTY2:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: %[[R:.*]] = imap.generic (i)[j] domain: i in [0, 3], j in [0, 49]
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[EMPTY2]][i] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: } epilogue {
// CHECK: %[[R2:.*]] = imap.generic (i)[j] domain: i in [0, 3], j in [0, 49]
// CHECK-SAME: ins(%[[S]][i, j], %[[R]][i] :
// CHECK-SAME: outs(%[[EMPTY2]][i] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: } epilogue {
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[I]], 0] [4, 50] [1, 1]
// CHECK: %[[R3:.*]] = imap.generic (i, j) domain: i in [0, 3], j in [0, 49]
// CHECK-SAME: ins(%[[S]][i, j], %[[R]][i], %[[R2]][i], %[[G]][j], %[[B]][j] :
// CHECK-SAME: outs(%[[S2]][i, j] :
// CHECK: tensor.insert_slice %[[R3]] into %[[ACC]][%[[I]], 0] [4, 50] [1, 1]
func.func @layernorm(%x: tensor<24x50xf32>, %g: tensor<50xf32>, %b: tensor<50xf32>) -> tensor<24x50xf32> {
  %e0 = tensor.empty() : tensor<24xf32>
  %e1 = tensor.empty() : tensor<24x50xf32>
  %n = arith.constant 0.02 : f32
  %eps = arith.constant 1.0e-5 : f32
  %mean = imap.generic (i)[j] domain: i in [0, 23], j in [0, 49]
      ins(%x[i, j] : tensor<24x50xf32>) outs(%e0[i] : tensor<24xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32):
    %m = arith.mulf %s, %n : f32
    imap.yield %m : f32
  } -> tensor<24xf32>
  %var = imap.generic (i)[j] domain: i in [0, 23], j in [0, 49]
      ins(%x[i, j], %mean[i] : tensor<24x50xf32>, tensor<24xf32>) outs(%e0[i] : tensor<24xf32>) fold [add f32] {
  ^bb0(%a: f32, %m: f32):
    %d = arith.subf %a, %m : f32
    %q = arith.mulf %d, %d : f32
    imap.yield %q : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32, %m: f32):
    %v = arith.mulf %s, %n : f32
    imap.yield %v : f32
  } -> tensor<24xf32>
  %y = imap.generic (i, j) domain: i in [0, 23], j in [0, 49]
      ins(%x[i, j], %mean[i], %var[i], %g[j], %b[j] : tensor<24x50xf32>, tensor<24xf32>, tensor<24xf32>, tensor<50xf32>, tensor<50xf32>) outs(%e1[i, j] : tensor<24x50xf32>) attributes {layernorm} {
  ^bb0(%a: f32, %m: f32, %v: f32, %s: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %w = arith.addf %v, %eps : f32
    %r = math.rsqrt %w : f32
    %u = arith.mulf %d, %r : f32
    %t = arith.mulf %u, %s : f32
    %z = arith.addf %t, %o : f32
    imap.yield %z : f32
  } -> tensor<24x50xf32>
  return %y : tensor<24x50xf32>
}

// Stride 2, padding 1. The input stays whole, because its hull may stick out; the offset remains in
// its subscript and in the constraint that some tile may violate.
// CHECK-LABEL: func.func @convolution(
// CHECK-SAME:  %[[X:[^:]*]]: tensor{{[^%]*}}, %[[K:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<5x11x10xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c11 step %c4 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[ACC]][0, %[[I]], 0] [5, %[[SIZE]], 10] [1, 1, 1]
// CHECK: %[[R:.*]] = imap.generic (f, h, w)[c, p, q]{h_offset, h_size} domain: f in [0, 4], h in [0, h_size - 1], w in [0, 9], c in [0, 2], p in [0, 2], q in [0, 2], h_offset in [0, 8], h_size in [3, 4], (h + h_offset) * 2 + p in [1, 21], w * 2 + q in [1, 19]
// CHECK-SAME: runtime(%[[I]], %[[SIZE]] :
// CHECK-SAME: ins(%[[X]][c, (h + h_offset) * 2 + p - 1, w * 2 + q - 1], %[[K]][f, c, p, q] :
// CHECK-SAME: outs(%[[S]][f, h, w] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: tensor.insert_slice %[[R]] into %[[ACC]][0, %[[I]], 0] [5, %[[SIZE]], 10] [1, 1, 1]
func.func @convolution(%x: tensor<3x21x19xi32>, %k: tensor<5x3x3x3xi32>) -> tensor<5x11x10xi32> {
  %e = tensor.empty() : tensor<5x11x10xi32>
  %y = imap.generic (f, h, w)[c, p, q] domain: f in [0, 4], h in [0, 10], w in [0, 9], c in [0, 2], p in [0, 2], q in [0, 2], h * 2 + p in [1, 21], w * 2 + q in [1, 19]
      ins(%x[c, h * 2 + p - 1, w * 2 + q - 1], %k[f, c, p, q] : tensor<3x21x19xi32>, tensor<5x3x3x3xi32>) outs(%e[f, h, w] : tensor<5x11x10xi32>) fold [add i32] attributes {convolution} {
  ^bb0(%a: i32, %b: i32):
    %v = arith.muli %a, %b : i32
    imap.yield %v : i32
  } -> tensor<5x11x10xi32>
  return %y : tensor<5x11x10xi32>
}

// The input is computed per tile: its slice is clamped to the operand.
// CHECK-LABEL: func.func @convolution_fused(
// CHECK-SAME:  %[[X:[^:]*]]: tensor{{[^%]*}}, %[[K:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<5x11x10xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c11 step %c4 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[APPLY:.*]] = imap.apply <(){rt0} -> (min(max(rt0 * 2 - 1, 0), 21))>(%[[I]])
// CHECK: %[[APPLY2:.*]] = imap.apply <(){rt0, rt1} -> (max(min((rt0 + rt1) * 2 - 1, 20) - min(max(rt0 * 2 - 1, 0), 21) + 1, 0))>(%[[I]], %[[SIZE]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, %[[APPLY]], 0] [3, %[[APPLY2]], 19] [1, 1, 1]
// CHECK: %[[EMPTY2:.*]] = tensor.empty(%[[APPLY2]]) : tensor<3x?x19xi32>
// CHECK: %[[R:.*]] = imap.generic (c, h, w){h_size} domain: c in [0, 2], h in [0, h_size - 1], w in [0, 18], h_size in [0, 21]
// CHECK-SAME: runtime(%[[APPLY2]] :
// CHECK-SAME: ins(%[[S]][c, h, w] :
// CHECK-SAME: outs(%[[EMPTY2]][c, h, w] :
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][0, %[[I]], 0] [5, %[[SIZE]], 10] [1, 1, 1]
// CHECK: %[[R2:.*]] = imap.generic (f, h, w)[c, p, q]{h_offset, h_size, first} domain: f in [0, 4], h in [0, h_size - 1], w in [0, 9], c in [0, 2], p in [0, 2], q in [0, 2], h_offset in [0, 8], h_size in [3, 4], first in [0, 21], (h + h_offset) * 2 + p in [1, 21], w * 2 + q in [1, 19]
// CHECK-SAME: runtime(%[[I]], %[[SIZE]], %[[APPLY]] :
// CHECK-SAME: ins(%[[R]][c, (h + h_offset) * 2 + p - first - 1, w * 2 + q - 1], %[[K]][f, c, p, q] :
// CHECK-SAME: outs(%[[S2]][f, h, w] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: tensor.insert_slice %[[R2]] into %[[ACC]][0, %[[I]], 0] [5, %[[SIZE]], 10] [1, 1, 1]
func.func @convolution_fused(%x: tensor<3x21x19xi32>, %k: tensor<5x3x3x3xi32>) -> tensor<5x11x10xi32> {
  %e0 = tensor.empty() : tensor<3x21x19xi32>
  %e = tensor.empty() : tensor<5x11x10xi32>
  %s = imap.generic (c, h, w) domain: c in [0, 2], h in [0, 20], w in [0, 18]
      ins(%x[c, h, w] : tensor<3x21x19xi32>) outs(%e0[c, h, w] : tensor<3x21x19xi32>) {
  ^bb0(%a: i32):
    %v = arith.muli %a, %a : i32
    imap.yield %v : i32
  } -> tensor<3x21x19xi32>
  %y = imap.generic (f, h, w)[c, p, q] domain: f in [0, 4], h in [0, 10], w in [0, 9], c in [0, 2], p in [0, 2], q in [0, 2], h * 2 + p in [1, 21], w * 2 + q in [1, 19]
      ins(%s[c, h * 2 + p - 1, w * 2 + q - 1], %k[f, c, p, q] : tensor<3x21x19xi32>, tensor<5x3x3x3xi32>) outs(%e[f, h, w] : tensor<5x11x10xi32>) fold [add i32] attributes {convolution_fused} {
  ^bb0(%a: i32, %b: i32):
    %v = arith.muli %a, %b : i32
    imap.yield %v : i32
  } -> tensor<5x11x10xi32>
  return %y : tensor<5x11x10xi32>
}

// Two results, one of them transposed.
// CHECK-LABEL: func.func @two_results(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<20x30xi32>
// CHECK: %[[EMPTY2:.*]] = tensor.empty() : tensor<30x20xi32>
// CHECK: %[[LOOP:.*]]:2 = scf.forall (%[[I:.*]], %[[J:.*]]) in (3, 3) shared_outs(%[[ACC:.*]] = %[[EMPTY]], %[[ACC2:.*]] = %[[EMPTY2]])
// CHECK: %[[OFFSET:.*]] = affine.apply {{.*}}(%[[I]])
// CHECK: %[[OFFSET2:.*]] = affine.apply {{.*}}(%[[J]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[OFFSET]], %[[OFFSET2]]] [%[[SIZE]], 10] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[OFFSET]], %[[OFFSET2]]] [%[[SIZE]], 10] [1, 1]
// CHECK: %[[S3:.*]] = tensor.extract_slice %[[ACC2]][%[[OFFSET2]], %[[OFFSET]]] [10, %[[SIZE]]] [1, 1]
// CHECK: %[[R:.*]]:2 = imap.generic (i, j){i_size} domain: i in [0, i_size - 1], j in [0, 9], i_size in [4, 8]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i, j], %[[S3]][j, i] :
// CHECK: tensor.parallel_insert_slice %[[R]]#0 into %[[ACC]][%[[OFFSET]], %[[OFFSET2]]] [%[[SIZE]], 10] [1, 1]
// CHECK: tensor.parallel_insert_slice %[[R]]#1 into %[[ACC2]][%[[OFFSET2]], %[[OFFSET]]] [10, %[[SIZE]]] [1, 1]
func.func @two_results(%x: tensor<20x30xi32>) -> (tensor<20x30xi32>, tensor<30x20xi32>) {
  %e0 = tensor.empty() : tensor<20x30xi32>
  %e1 = tensor.empty() : tensor<30x20xi32>
  %y:2 = imap.generic (i, j) domain: i in [0, 19], j in [0, 29]
      ins(%x[i, j] : tensor<20x30xi32>) outs(%e0[i, j], %e1[j, i] : tensor<20x30xi32>, tensor<30x20xi32>) attributes {two_results} {
  ^bb0(%a: i32):
    %v = arith.muli %a, %a : i32
    imap.yield %v, %a : i32, i32
  } -> tensor<20x30xi32>, tensor<30x20xi32>
  return %y#0, %y#1 : tensor<20x30xi32>, tensor<30x20xi32>
}

// A reversed subscript reverses the tiles and stays reversed in each.
// CHECK-LABEL: func.func @reversal(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<21x8xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c21 step %c8 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[LOOP2:.*]] = scf.for %[[J:.*]] = %c0 to %c8 step %c3 iter_args(%[[ACC2:.*]] = %[[ACC]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[SIZE2:.*]] = affine.min {{.*}}(%[[J]])
// CHECK: %[[APPLY:.*]] = imap.apply <(){rt0, rt1} -> (-rt0 - rt1 + 21)>(%[[I]], %[[SIZE]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[APPLY]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
// CHECK: %[[APPLY2:.*]] = imap.apply <(){rt0, rt1} -> (-rt0 - rt1 + 8)>(%[[J]], %[[SIZE2]])
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC2]][%[[I]], %[[APPLY2]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
// CHECK: %[[R:.*]] = imap.generic (i, j){i_size, j_size} domain: i in [0, i_size - 1], j in [0, j_size - 1], i_size in [5, 8], j_size in [2, 3]
// CHECK-SAME: runtime(%[[SIZE]], %[[SIZE2]] :
// CHECK-SAME: ins(%[[S]][i_size - i - 1, j] :
// CHECK-SAME: outs(%[[S2]][i, j_size - j - 1] :
// CHECK: tensor.insert_slice %[[R]] into %[[ACC2]][%[[I]], %[[APPLY2]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
func.func @reversal(%x: tensor<21x8xi32>) -> tensor<21x8xi32> {
  %e = tensor.empty() : tensor<21x8xi32>
  %y = imap.generic (i, j) domain: i in [0, 20], j in [0, 7]
      ins(%x[20 - i, j] : tensor<21x8xi32>) outs(%e[i, 7 - j] : tensor<21x8xi32>) attributes {reversal} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<21x8xi32>
  return %y : tensor<21x8xi32>
}

// The indices are sliced, and the table stays whole.
// CHECK-LABEL: func.func @gather(
// CHECK-SAME:  %[[TABLE:[^:]*]]: tensor{{[^%]*}}, %[[IDS:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<33x8xi32>
// CHECK: %[[LOOP:.*]] = scf.forall (%[[I:.*]]) in (5) shared_outs(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[OFFSET:.*]] = affine.apply {{.*}}(%[[I]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[ACC]][%[[OFFSET]], 0] [%[[SIZE]], 8] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[IDS]][%[[OFFSET]]] [%[[SIZE]]] [1]
// CHECK: %[[R:.*]] = imap.generic (i, j){i_size, r} domain: i in [0, i_size - 1], j in [0, 7], i_size in [1, 8], r in [-2147483648, 2147483647]
// CHECK-SAME: runtime(%[[SIZE]], %[[S2]][i] :
// CHECK-SAME: ins(%[[TABLE]][min(max(r, 0), 9), j] :
// CHECK-SAME: outs(%[[S]][i, j] :
// CHECK: tensor.parallel_insert_slice %[[R]] into %[[ACC]][%[[OFFSET]], 0] [%[[SIZE]], 8] [1, 1]
func.func @gather(%table: tensor<10x8xi32>, %ids: tensor<33xi32>) -> tensor<33x8xi32> {
  %e = tensor.empty() : tensor<33x8xi32>
  %y = imap.generic (i, j){r} domain: i in [0, 32], j in [0, 7], r in [-2147483648, 2147483647]
      runtime(%ids[i] : tensor<33xi32>) ins(%table[min(max(r, 0), 9), j] : tensor<10x8xi32>) outs(%e[i, j] : tensor<33x8xi32>) attributes {gather} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<33x8xi32>
  return %y : tensor<33x8xi32>
}

// A tile is the hull of the elements that it stores; the others keep their values.
// CHECK-LABEL: func.func @strided_destination(
// CHECK-SAME:  %[[X:[^:]*]]: tensor{{[^%]*}}, %[[Y:[^:]*]]: tensor
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c13 step %c5 iter_args(%[[ACC:.*]] = %[[Y]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[I]]] [%[[SIZE]]] [1]
// CHECK: %[[APPLY:.*]] = imap.apply <(){rt0} -> (rt0 * 2 + 1)>(%[[I]])
// CHECK: %[[APPLY2:.*]] = imap.apply <(){rt0} -> (rt0 * 2 - 1)>(%[[SIZE]])
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[APPLY]]] [%[[APPLY2]]] [1]
// CHECK: %[[R:.*]] = imap.generic (i){i_size} domain: i in [0, i_size - 1], i_size in [3, 5]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i] :
// CHECK-SAME: outs(%[[S2]][i * 2] :
// CHECK: tensor.insert_slice %[[R]] into %[[ACC]][%[[APPLY]]] [%[[APPLY2]]] [1]
func.func @strided_destination(%x: tensor<13xi32>, %y: tensor<26xi32>) -> tensor<26xi32> {
  %r = imap.generic (i) domain: i in [0, 12]
      ins(%x[i] : tensor<13xi32>) outs(%y[i * 2 + 1] : tensor<26xi32>) attributes {strided_destination} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<26xi32>
  return %r : tensor<26xi32>
}

// A constraint between a dimension and a range refers to both offsets.
// CHECK-LABEL: func.func @scalar_constraint(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<23xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c23 step %c6 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [%[[SIZE]], 23] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[I]]] [%[[SIZE]]] [1]
// CHECK: %[[R:.*]] = imap.generic (i)[j]{i_offset, i_size} domain: i in [0, i_size - 1], j in [0, 22], i_offset in [0, 18], i_size in [5, 6], i - j + i_offset in [0, 22]
// CHECK-SAME: runtime(%[[I]], %[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: tensor.insert_slice %[[R]] into %[[ACC]][%[[I]]] [%[[SIZE]]] [1]
func.func @scalar_constraint(%x: tensor<23x23xi32>) -> tensor<23xi32> {
  %e = tensor.empty() : tensor<23xi32>
  %r = imap.generic (i)[j] domain: i in [0, 22], j in [0, 22], i - j in [0, 22]
      ins(%x[i, j] : tensor<23x23xi32>) outs(%e[i] : tensor<23xi32>) fold [add i32] attributes {scalar_constraint} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<23xi32>
  return %r : tensor<23xi32>
}

// `imap.index` counts in the untiled operation, in nested regions too.
// CHECK-LABEL: func.func @indices(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<9x11xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c9 step %c4 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[LOOP2:.*]] = scf.for %[[J:.*]] = %c0 to %c11 step %c4 iter_args(%[[ACC2:.*]] = %[[ACC]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[SIZE2:.*]] = affine.min {{.*}}(%[[J]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[I]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC2]][%[[I]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
// CHECK: %[[R:.*]] = imap.generic (i, j){i_size, j_size} domain: i in [0, i_size - 1], j in [0, j_size - 1], i_size in [1, 4], j_size in [3, 4]
// CHECK-SAME: runtime(%[[SIZE]], %[[SIZE2]] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i, j] :
// CHECK: %[[X:.*]] = imap.index dim 0
// CHECK: arith.addi %[[X]], %[[I]] : index
// CHECK: %[[X2:.*]] = imap.index dim 1
// CHECK: arith.addi %[[X2]], %[[J]] : index
// CHECK: tensor.insert_slice %[[R]] into %[[ACC2]][%[[I]], %[[J]]] [%[[SIZE]], %[[SIZE2]]] [1, 1]
func.func @indices(%x: tensor<9x11xi32>) -> tensor<9x11xi32> {
  %e = tensor.empty() : tensor<9x11xi32>
  %r = imap.generic (i, j) domain: i in [0, 8], j in [0, 10]
      ins(%x[i, j] : tensor<9x11xi32>) outs(%e[i, j] : tensor<9x11xi32>) attributes {indices} {
  ^bb0(%a: i32):
    %i = imap.index dim 0
    %c3 = arith.constant 3 : index
    %is = arith.cmpi ult, %i, %c3 : index
    %v = scf.if %is -> i32 {
      %j = imap.index dim 1
      %k = arith.index_cast %j : index to i32
      scf.yield %k : i32
    } else {
      scf.yield %a : i32
    }
    imap.yield %v : i32
  } -> tensor<9x11xi32>
  return %r : tensor<9x11xi32>
}

// An irregular subscript keeps its dimension whole, and the offset of the tile in it.
// CHECK-LABEL: func.func @reshape(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<30xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c30 step %c8 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[ACC]][%[[I]]] [%[[SIZE]]] [1]
// CHECK: %[[R:.*]] = imap.generic (i){i_offset, i_size} domain: i in [0, i_size - 1], i_offset in [0, 24], i_size in [6, 8]
// CHECK-SAME: runtime(%[[I]], %[[SIZE]] :
// CHECK-SAME: ins(%[[X]][(i + i_offset) / 5, (i + i_offset) mod 5] :
// CHECK-SAME: outs(%[[S]][i] :
// CHECK: tensor.insert_slice %[[R]] into %[[ACC]][%[[I]]] [%[[SIZE]]] [1]
func.func @reshape(%x: tensor<6x5xi32>) -> tensor<30xi32> {
  %e = tensor.empty() : tensor<30xi32>
  %r = imap.generic (i) domain: i in [0, 29]
      ins(%x[i floordiv 5, i mod 5] : tensor<6x5xi32>) outs(%e[i] : tensor<30xi32>) attributes {reshape} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<30xi32>
  return %r : tensor<30xi32>
}

// A range with bounds that depend on data is whole.
// CHECK-LABEL: func.func @ragged(
// CHECK-SAME:  %[[X:[^:]*]]: tensor{{[^%]*}}, %[[LEN:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<17xi32>
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c17 step %c4 iter_args(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [%[[SIZE]], 6] [1, 1]
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[I]]] [%[[SIZE]]] [1]
// CHECK: %[[S3:.*]] = tensor.extract_slice %[[LEN]][%[[I]]] [%[[SIZE]]] [1]
// CHECK: %[[R:.*]] = imap.generic (i)[j]{i_size, n} domain: i in [0, i_size - 1], j in [0, n - 1], i_size in [1, 4], n in [0, 6]
// CHECK-SAME: runtime(%[[SIZE]], %[[S3]][i] :
// CHECK-SAME: ins(%[[S]][i, j] :
// CHECK-SAME: outs(%[[S2]][i] :
// CHECK-SAME: fold [add i32]
// CHECK: tensor.insert_slice %[[R]] into %[[ACC]][%[[I]]] [%[[SIZE]]] [1]
func.func @ragged(%x: tensor<17x6xi32>, %len: tensor<17xi8>) -> tensor<17xi32> {
  %e = tensor.empty() : tensor<17xi32>
  %r = imap.generic (i)[j]{n} domain: i in [0, 16], j in [0, n - 1], n in [0, 6]
      runtime(%len[i] : tensor<17xi8>) ins(%x[i, j] : tensor<17x6xi32>) outs(%e[i] : tensor<17xi32>) fold [add i32] attributes {ragged} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<17xi32>
  return %r : tensor<17xi32>
}

// Tiles of a window overlap in the source only.
// CHECK-LABEL: func.func @overlap(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<32xi32>
// CHECK: %[[LOOP:.*]] = scf.forall (%[[I:.*]]) in (4) shared_outs(%[[ACC:.*]] = %[[EMPTY]])
// CHECK: %[[OFFSET:.*]] = affine.apply {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][%[[OFFSET]]] [10] [1]
// CHECK: %[[EMPTY2:.*]] = tensor.empty() : tensor<10xi32>
// CHECK: %[[R:.*]] = imap.generic (i) domain: i in [0, 9]
// CHECK-SAME: ins(%[[S]][i] :
// CHECK-SAME: outs(%[[EMPTY2]][i] :
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[OFFSET]]] [8] [1]
// CHECK: %[[R2:.*]] = imap.generic (i)[k] domain: i in [0, 7], k in [0, 2]
// CHECK-SAME: ins(%[[R]][i + k] :
// CHECK-SAME: outs(%[[S2]][i] :
// CHECK-SAME: fold [add {{.*}}]
// CHECK: tensor.parallel_insert_slice %[[R2]] into %[[ACC]][%[[OFFSET]]] [8] [1]
func.func @overlap(%x: tensor<34xi32>) -> tensor<32xi32> {
  %e0 = tensor.empty() : tensor<34xi32>
  %e = tensor.empty() : tensor<32xi32>
  %s = imap.generic (i) domain: i in [0, 33]
      ins(%x[i] : tensor<34xi32>) outs(%e0[i] : tensor<34xi32>) attributes {overlap_producer} {
  ^bb0(%a: i32):
    %v = arith.muli %a, %a : i32
    imap.yield %v : i32
  } -> tensor<34xi32>
  %r = imap.generic (i)[k] domain: i in [0, 31], k in [0, 2]
      ins(%s[i + k] : tensor<34xi32>) outs(%e[i] : tensor<32xi32>) fold [add i32] attributes {overlap} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<32xi32>
  return %r : tensor<32xi32>
}

// Tiles read what earlier tiles overwrite, if nothing is copied.
// CHECK-LABEL: func.func @shift(
// CHECK-SAME:  %[[X:[^:]*]]: tensor
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<33xi32>
// CHECK: %[[R:.*]] = imap.generic (i) domain: i in [0, 32]
// CHECK-SAME: ins(%[[X]][i] :
// CHECK-SAME: outs(%[[EMPTY]][i] :
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %c0 to %c32 step %c5 iter_args(%[[ACC:.*]] = %[[R]])
// CHECK: %[[SIZE:.*]] = affine.min {{.*}}(%[[I]])
// CHECK: %[[S:.*]] = tensor.extract_slice %[[R]][%[[I]]] [%[[SIZE]]] [1]
// CHECK: %[[APPLY:.*]] = imap.apply <(){rt0} -> (rt0 + 1)>(%[[I]])
// CHECK: %[[S2:.*]] = tensor.extract_slice %[[ACC]][%[[APPLY]]] [%[[SIZE]]] [1]
// CHECK: %[[R2:.*]] = imap.generic (i){i_size} domain: i in [0, i_size - 1], i_size in [2, 5]
// CHECK-SAME: runtime(%[[SIZE]] :
// CHECK-SAME: ins(%[[S]][i] :
// CHECK-SAME: outs(%[[S2]][i] :
// CHECK: tensor.insert_slice %[[R2]] into %[[ACC]][%[[APPLY]]] [%[[SIZE]]] [1]
func.func @shift(%x: tensor<33xi32>) -> tensor<33xi32> {
  %e = tensor.empty() : tensor<33xi32>
  %s = imap.generic (i) domain: i in [0, 32]
      ins(%x[i] : tensor<33xi32>) outs(%e[i] : tensor<33xi32>) {
  ^bb0(%a: i32):
    %v = arith.muli %a, %a : i32
    imap.yield %v : i32
  } -> tensor<33xi32>
  %r = imap.generic (i) domain: i in [1, 32]
      ins(%s[i - 1] : tensor<33xi32>) outs(%s[i] : tensor<33xi32>) attributes {shift} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<33xi32>
  return %r : tensor<33xi32>
}

// A destination that a loop carries has the extents of the one it starts from, so a constraint does not keep it whole.
// CHECK-LABEL: func.func @dynamic_destination
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[ACC:.*]] = {{.*}})
// CHECK: tensor.extract_slice %[[ACC]][%[[I]]] [%[[SIZE:.*]]] [1]
// CHECK: tensor.insert_slice {{.*}} into %[[ACC]][%[[I]]] [%[[SIZE]]] [1]
func.func @dynamic_destination(%x: tensor<?xi32> {tc.sizes = ["N"]}) -> (tensor<?xi32> {tc.sizes = ["N"]}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xi32>
  %r = imap.generic (i){n} domain: i in [0, n - 1], n in [0, 2147483648], i mod 3 in [0, 2]
      runtime(%n : index) ins(%x[i] : tensor<?xi32>) outs(%e[i] : tensor<?xi32>)
      attributes {dynamic_destination} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<?xi32>
  return %r : tensor<?xi32>
}

transform.named_sequence @__transform_main(%root: !transform.any_op) {
  %matmul_round = transform.structured.match attributes {matmul_round} in %root : (!transform.any_op) -> !transform.any_op
  %matmul_round_tile, %matmul_round_loops:3 = transform.structured.tile_using_for %matmul_round tile_sizes [16, 24, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %matmul_odd = transform.structured.match attributes {matmul_odd} in %root : (!transform.any_op) -> !transform.any_op
  %matmul_odd_tile, %matmul_odd_loops:3 = transform.structured.tile_using_for %matmul_odd tile_sizes [16, 20, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
  %matmul_dynamic = transform.structured.match attributes {matmul_dynamic} in %root : (!transform.any_op) -> !transform.any_op
  %matmul_dynamic_tile, %matmul_dynamic_loops:2 = transform.structured.tile_using_for %matmul_dynamic tile_sizes [16, 20] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %matmul_forall = transform.structured.match attributes {matmul_forall} in %root : (!transform.any_op) -> !transform.any_op
  %matmul_forall_tile, %matmul_forall_loops = transform.structured.tile_using_forall %matmul_forall tile_sizes [16, 20] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %softmax = transform.structured.match attributes {softmax} in %root : (!transform.any_op) -> !transform.any_op
  %softmax_tile, %softmax_loops = transform.structured.fuse %softmax tile_sizes [4, 0] {apply_cleanup, use_forall} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %layernorm = transform.structured.match attributes {layernorm} in %root : (!transform.any_op) -> !transform.any_op
  %layernorm_tile, %layernorm_loops = transform.structured.fuse %layernorm tile_sizes [4, 0] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %convolution = transform.structured.match attributes {convolution} in %root : (!transform.any_op) -> !transform.any_op
  %convolution_tile, %convolution_loops = transform.structured.tile_using_for %convolution tile_sizes [0, 4, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %convolution_fused = transform.structured.match attributes {convolution_fused} in %root : (!transform.any_op) -> !transform.any_op
  %convolution_fused_tile, %convolution_fused_loops = transform.structured.fuse %convolution_fused tile_sizes [0, 4, 0] {apply_cleanup} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %two_results = transform.structured.match attributes {two_results} in %root : (!transform.any_op) -> !transform.any_op
  %two_results_tile, %two_results_loops = transform.structured.tile_using_forall %two_results tile_sizes [8, 10] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %reversal = transform.structured.match attributes {reversal} in %root : (!transform.any_op) -> !transform.any_op
  %reversal_tile, %reversal_loops:2 = transform.structured.tile_using_for %reversal tile_sizes [8, 3] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %gather = transform.structured.match attributes {gather} in %root : (!transform.any_op) -> !transform.any_op
  %gather_tile, %gather_loops = transform.structured.tile_using_forall %gather tile_sizes [8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %strided_destination = transform.structured.match attributes {strided_destination} in %root : (!transform.any_op) -> !transform.any_op
  %strided_destination_tile, %strided_destination_loops = transform.structured.tile_using_for %strided_destination tile_sizes [5] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %scalar_constraint = transform.structured.match attributes {scalar_constraint} in %root : (!transform.any_op) -> !transform.any_op
  %scalar_constraint_tile, %scalar_constraint_loops = transform.structured.tile_using_for %scalar_constraint tile_sizes [6] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %indices = transform.structured.match attributes {indices} in %root : (!transform.any_op) -> !transform.any_op
  %indices_tile, %indices_loops:2 = transform.structured.tile_using_for %indices tile_sizes [4, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
  %reshape = transform.structured.match attributes {reshape} in %root : (!transform.any_op) -> !transform.any_op
  %reshape_tile, %reshape_loops = transform.structured.tile_using_for %reshape tile_sizes [8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %ragged = transform.structured.match attributes {ragged} in %root : (!transform.any_op) -> !transform.any_op
  %ragged_tile, %ragged_loops = transform.structured.tile_using_for %ragged tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %shift = transform.structured.match attributes {shift} in %root : (!transform.any_op) -> !transform.any_op
  %shift_tile, %shift_loops = transform.structured.tile_using_for %shift tile_sizes [5] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %overlap = transform.structured.match attributes {overlap} in %root : (!transform.any_op) -> !transform.any_op
  %overlap_tile, %overlap_loops = transform.structured.tile_using_forall %overlap tile_sizes [8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  %producer = transform.structured.match attributes {overlap_producer} in %root : (!transform.any_op) -> !transform.any_op
  %fused, %containing = transform.structured.fuse_into_containing_op %producer into %overlap_loops : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
  %dynamic_destination = transform.structured.match attributes {dynamic_destination} in %root : (!transform.any_op) -> !transform.any_op
  %dynamic_destination_tile, %dynamic_destination_loops = transform.structured.tile_using_for %dynamic_destination tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
  transform.yield
}

}
