// RUN: tc-opt %s --canonicalize --cse --split-input-file | FileCheck %s

// imap.apply of constants folds; division rounds down.
// CHECK-LABEL: func.func @apply_constants
// CHECK-DAG:     %[[DIV:.*]] = arith.constant -4 : index
// CHECK-DAG:     %[[MOD:.*]] = arith.constant 1 : index
// CHECK-NOT:     imap.apply
// CHECK:         return %[[DIV]], %[[MOD]] : index, index
func.func @apply_constants() -> (index, index) {
  %i = arith.constant -7 : index
  %0:2 = imap.apply #imap.map<(d0) -> (d0 floordiv 2, d0 mod 2)>(%i) : index, index
  return %0#0, %0#1 : index, index
}

// -----

// What has no value is left: a division by zero, and what exceeds 64 bits.
// CHECK-LABEL: func.func @apply_undefined
// CHECK-DAG:     imap.apply <(d0){rt0} -> (d0 / rt0)>
// CHECK-DAG:     imap.apply <(d0) -> (d0 * 2)>
func.func @apply_undefined() -> (index, index) {
  %zero = arith.constant 0 : index
  %large = arith.constant 9223372036854775807 : index
  %0 = imap.apply #imap.map<(d0){rt0} -> (d0 floordiv rt0)>(%large, %zero) : index
  %1 = imap.apply #imap.map<(d0) -> (d0 * 2)>(%large) : index
  return %0, %1 : index, index
}

// -----

// Equal values are computed once, unused ones not at all; a check stays.
// CHECK-LABEL: func.func @pure(
// CHECK-SAME:    %[[I:.*]]: index, %[[X:.*]]: f32, %[[C:.*]]: i1)
// CHECK-NEXT:    %[[J:.*]] = imap.apply <(d0) -> (d0 + 1)>(%[[I]]) : index
// CHECK-NEXT:    %[[Y:.*]] = imap.builtin "exp"(%[[X]]) : f32
// CHECK-NEXT:    imap.check %[[C]], "I < J"
// CHECK-NEXT:    return %[[J]], %[[J]], %[[Y]], %[[Y]] :
func.func @pure(%i: index, %x: f32, %c: i1) -> (index, index, f32, f32) {
  %0 = imap.apply #imap.map<(d0) -> (d0 + 1)>(%i) : index
  %1 = imap.apply #imap.map<(d0) -> (d0 + 1)>(%i) : index
  %unused = imap.apply #imap.map<(d0) -> (d0 + 2)>(%i) : index
  %2 = imap.builtin "exp"(%x) : f32
  %3 = imap.builtin "exp"(%x) : f32
  imap.check %c, "I < J"
  return %0, %1, %2, %3 : index, index, f32, f32
}

// -----

// A generic on tensors has no effects of its own: unused, it goes.
// CHECK-LABEL: func.func @unused_generic
// CHECK-NEXT:    return
func.func @unused_generic(%a: tensor<4xf32>) {
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    imap.yield %y : f32
  } -> tensor<4xf32>
  return
}

// -----

// One on buffers writes.
// CHECK-LABEL: func.func @buffers
// CHECK:         imap.generic
func.func @buffers(%a: memref<4xf32>, %b: memref<4xf32>) {
  imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : memref<4xf32>) outs(%b[i] : memref<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  }
  return
}

// -----

// Values from outside and equal values inside of a body.
// CHECK-LABEL: func.func @body
// CHECK:         ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT:      %[[Y:.*]] = imap.builtin "tanh"(%[[X]]) : f32
// CHECK-NEXT:      %[[Z:.*]] = arith.addf %[[Y]], %[[Y]] : f32
// CHECK-NEXT:      imap.yield %[[Z]] : f32
func.func @body(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    %y = imap.builtin "tanh"(%x) : f32
    %z = imap.builtin "tanh"(%x) : f32
    %s = arith.addf %y, %z : f32
    imap.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A cast of an operand becomes part of an operation, with and without an epilogue.
// CHECK-LABEL: func.func @casts(
// CHECK:         imap.generic {{.*}} runtime(%[[R:.*]] : tensor<1xi32>) ins(%[[X:.*]][{{.*}}] : tensor<4xf32>) outs(%[[I:.*]][{{.*}}] : tensor<4xf32>)
// CHECK:         imap.generic {{.*}} ins(%{{.*}} : tensor<4xf32>) outs(%[[O:.*]][{{.*}}] : tensor<4xf32>)
// CHECK:         } epilogue {
// CHECK:         return %{{.*}} : tensor<4xf32>
func.func @casts(%r: tensor<1xi32>, %x: tensor<4xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  %rd = tensor.cast %r : tensor<1xi32> to tensor<?xi32>
  %xd = tensor.cast %x : tensor<4xf32> to tensor<?xf32>
  %initd = tensor.cast %init : tensor<4xf32> to tensor<?xf32>
  %0 = imap.generic (i){r} domain: i in [0, 3], r in [0, 0] runtime(%rd[0] : tensor<?xi32>) ins(%xd[i + r] : tensor<?xf32>) outs(%initd[i] : tensor<?xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<?xf32>
  %1 = imap.generic (i) domain: i in [0, 3] ins(%0[i] : tensor<?xf32>) outs(%initd[i] : tensor<?xf32>) fold [add f32 from outs 0] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32):
    imap.yield %s : f32
  } -> tensor<?xf32>
  %2 = tensor.cast %1 : tensor<?xf32> to tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A constant runtime variable becomes a part of bounds, constraints and subscripts. The others stay.
// CHECK-LABEL: func.func @constant_runtime(
// CHECK-SAME:    %[[X:.*]]: tensor<9xf32>, %[[Y:.*]]: tensor<7xf32>, %[[M:.*]]: index)
// CHECK:         imap.generic (i){M} domain: i in [0, 6], M in [0, 9], i + M - 5 in [2, 15]
// CHECK-SAME:    runtime(%[[M]] : index) ins(%[[X]][i + 2] :
// CHECK-SAME:    outs(%{{.*}}[i] :
func.func @constant_runtime(%x: tensor<9xf32>, %y: tensor<7xf32>, %m: index) -> tensor<7xf32> {
  %c7 = arith.constant 7 : index
  %c2 = arith.constant 2 : index
  %r = imap.generic (i){N, M, S} domain: i in [0, N - 1], N in [0, inf], M in [0, 9], S in [0, 3], i + M - N + S in [2, 15]
      runtime(%c7, %m, %c2 : index, index, index) ins(%x[i + S] : tensor<9xf32>) outs(%y[i] : tensor<7xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<7xf32>
  return %r : tensor<7xf32>
}

// -----

// The bounds of a tile size are those of the minimum; the offset is bounded by its loop.
// CHECK-LABEL: func.func @bounded_runtime(
// CHECK:         imap.generic (i){N, O} domain: i in [0, N - 1], N in [2, 4], O in [0, 8], i + O in [0, 8]
func.func @bounded_runtime(%x: tensor<10xf32>) -> tensor<10xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c10 = arith.constant 10 : index
  %r = scf.for %i = %c0 to %c10 step %c4 iter_args(%acc = %x) -> (tensor<10xf32>) {
    %size = affine.min affine_map<(d0) -> (-d0 + 10, 4)>(%i)
    %t = tensor.extract_slice %acc[%i] [%size] [1] : tensor<10xf32> to tensor<?xf32>
    %n = imap.generic (i){N, O} domain: i in [0, N - 1], N in [0, inf], O in [0, inf], i + O in [0, 8]
        runtime(%size, %i : index, index) outs(%t[i] : tensor<?xf32>) {
      %one = arith.constant 1.0 : f32
      imap.yield %one : f32
    } -> tensor<?xf32>
    %y = tensor.insert_slice %n into %acc[%i] [%size] [1] : tensor<?xf32> into tensor<10xf32>
    scf.yield %y : tensor<10xf32>
  }
  return %r : tensor<10xf32>
}

// -----

// A slice of an empty tensor is a smaller one.
// CHECK-LABEL: func.func @empty_slice(
// CHECK-SAME:    %[[I:.*]]: index)
// CHECK:         %[[EMPTY:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT:    imap.generic {{.*}} outs(%[[EMPTY]][{{.*}}] :
func.func @empty_slice(%i: index) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %t = tensor.extract_slice %e[%i, 0] [4, 8] [1, 1] : tensor<64x64xf32> to tensor<4x8xf32>
  %r = imap.generic (i, j) domain: i in [0, 3], j in [0, 7]
      outs(%t[i, j] : tensor<4x8xf32>) {
    %one = arith.constant 1.0 : f32
    imap.yield %one : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// A guard that the bounds prove goes, and so does its constant.
// CHECK-LABEL: func.func @guard_holds
// CHECK:         ins(%{{.*}}[i - 1], %{{.*}}[i] where i in [2, 3] : tensor<8xf32>, tensor<8xf32>)
func.func @guard_holds(%x: tensor<8xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = imap.generic (i) domain: i in [1, 4]
      ins(%x[i - 1] where i - 1 in [0, 7] else 1.0, %x[i] where i in [2, 3] and i in [0, 4] : tensor<8xf32>, tensor<8xf32>)
      outs(%e[i - 1] : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    imap.yield %s : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// One that never holds leaves the constant, in the epilogue, too, and of a runtime variable.
// CHECK-LABEL: func.func @guard_fails
// CHECK-SAME:    (%[[X:.*]]: tensor<8xf32>, %{{.*}}: tensor<8xi32>)
// CHECK:         %[[C:.*]] = arith.constant 2.500000e+00 : f32
// CHECK:         imap.generic (i)[k] domain: i in [0, 3], k in [0, 1] ins(%[[X]][i + 3] : tensor<8xf32>) outs
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32):
// CHECK-NEXT:      %[[M:.*]] = arith.mulf %[[A]], %[[C]] : f32
// CHECK-NEXT:      imap.yield %[[M]] : f32
// CHECK-NEXT:    } epilogue {
// CHECK-NEXT:    ^bb0(%[[S:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:      %[[R:.*]] = arith.addf %[[S]], %[[C]] : f32
// CHECK-NEXT:      imap.yield %[[R]] : f32
func.func @guard_fails(%x: tensor<8xf32>, %t: tensor<8xi32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = imap.generic (i)[k]{r} domain: i in [0, 3], k in [0, 1], r in [0, 3]
      runtime(%t[i] where i in [9, inf] else 3 : tensor<8xi32>)
      ins(%x[i] where i in [4, 7] else 2.5, %x[i + r] : tensor<8xf32>, tensor<8xf32>)
      outs(%e[i] : tensor<4xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %b, %a : f32
    imap.yield %m : f32
  } epilogue {
  ^bb0(%s: f32, %a: f32, %b: f32):
    %r = arith.addf %s, %a : f32
    imap.yield %r : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// imap.inside becomes a constant, or keeps what is open. Runtime variables that only it uses stay.
// CHECK-LABEL: func.func @inside
// CHECK:         %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         imap.generic (i){r} domain: i in [0, 3] runtime(%{{.*}}[i] : tensor<8xi32>) ins(%{{.*}}[i] : tensor<8xf32>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32):
// CHECK-NEXT:      %[[IN:.*]] = imap.inside (rt0 in [-1, 5]) : i1
// CHECK-NEXT:      %[[R:.*]] = arith.select %[[IN]], %[[A]], %[[ZERO]] : f32
// CHECK-NEXT:      imap.yield %[[R]] : f32
func.func @inside(%x: tensor<8xf32>, %t: tensor<8xi32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %c3 = arith.constant 3 : index
  %y = imap.generic (i){N, r} domain: i in [0, N], N in [0, 9]
      runtime(%c3, %t[i] : index, tensor<8xi32>)
      ins(%x[i] : tensor<8xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %always = imap.inside (d0 - rt0 in [-9, 0], d0 in [0, 7]) : i1
    %never = imap.inside (d0 in [0, 7], rt0 + d0 in [7, 9]) : i1
    %open = imap.inside (d0 in [0, 7], rt1 in [-1, 5]) : i1
    %b = arith.select %always, %a, %zero : f32
    %c = arith.select %never, %zero, %b : f32
    %d = arith.select %open, %c, %zero : f32
    imap.yield %d : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A loop gives its argument a layout that is not known. The buffer has one.
// CHECK-LABEL: func.func @buffer_cast(
// CHECK-NOT: memref.cast
// CHECK: imap.generic (i) {{.*}} ins(%arg0[i] : memref<8xf32>) outs(%arg1[i] : memref<8xf32>)
func.func @buffer_cast(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c = memref.cast %x : memref<8xf32> to memref<8xf32, strided<[?], offset: ?>>
  %d = memref.cast %y : memref<8xf32> to memref<8xf32, strided<[?], offset: ?>>
  imap.generic (i) domain: i in [0, 7] ins(%c[i] : memref<8xf32, strided<[?], offset: ?>>) outs(%d[i] : memref<8xf32, strided<[?], offset: ?>>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}

// -----

// An operation that stores one number gives it to its readers. What another destination holds is not known.
// CHECK-LABEL: func.func @stored(
// CHECK:         %[[HELD:.*]] = imap.generic
// CHECK:         imap.generic (i) domain: i in [0, 7] ins(%{{.*}}[i], %[[HELD]][i] : tensor<8xf32>, tensor<8xi1>)
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[H:.*]]: i1):
// CHECK-NEXT:      arith.select %[[H]], %[[A]],
func.func @stored(%x: tensor<8xf32>, %h: tensor<8xi1>) -> tensor<8xf32> {
  %true = arith.constant true
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<i1>
  %t = imap.generic () outs(%s[] : tensor<i1>) {
    imap.yield %true : i1
  } -> tensor<i1>
  %u = imap.generic (i) domain: i in [0, 3] outs(%h[i] : tensor<8xi1>) {
    imap.yield %true : i1
  } -> tensor<8xi1>
  %e = tensor.empty() : tensor<8xf32>
  %y = imap.generic (i) domain: i in [0, 7] ins(%x[i], %t[], %u[i] : tensor<8xf32>, tensor<i1>, tensor<8xi1>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%a: f32, %b: i1, %c: i1):
    %d = arith.select %b, %a, %zero : f32
    %f = arith.select %c, %d, %zero : f32
    imap.yield %f : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
