// RUN: tc-opt %s --hoist-invariants --canonicalize --split-input-file | FileCheck %s
// RUN: tc-opt %s --hoist-invariants=max-bytes=64 --canonicalize --split-input-file | FileCheck %s --check-prefix=SMALL

// The sum does not change. Its broadcast is computed where it is read.
// CHECK-LABEL: func.func @fold(
// CHECK: %[[S:.*]] = imap.generic {{.*}} fold [add f32]
// CHECK: scf.for
// CHECK: %[[B:.*]] = imap.generic (i, j) {{.*}} ins(%[[S]][i] :
// CHECK: imap.generic (i, j) {{.*}} ins(%{{.*}}[i, j], %[[B]][i, j] :
// CHECK-NOT: imap.generic
func.func @fold(%a: tensor<8x8xf32>, %x0: tensor<8x8xf32>, %n: index) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %x0) -> (tensor<8x8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %f = tensor.empty() : tensor<8x8xf32>
    %s = imap.generic (i)[j] domain: i in [0, 7], j in [0, 7] ins(%a[i, j] : tensor<8x8xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
    ^bb0(%p: f32):
      imap.yield %p : f32
    } -> tensor<8xf32>
    %b = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%s[i] : tensor<8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32):
      imap.yield %p : f32
    } -> tensor<8x8xf32>
    %y = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%x[i, j], %b[i, j] : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32):
      %z = arith.addf %p, %q : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    scf.yield %y : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

// A division moves with a copy of the broadcast that it reads, and the operation that takes the place of its result moves too.
// The division of numbers that are few is kept if the result is large.
// CHECK-LABEL: func.func @division(
// CHECK: imap.generic (i, j)
// CHECK: arith.divf
// CHECK: imap.generic (i, j)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK: imap.generic (i, j)
// CHECK: arith.divf
// CHECK: scf.for
// CHECK-NOT: arith.divf
// CHECK: arith.subf
// CHECK: arith.addf
// CHECK: arith.addf
// CHECK-NOT: arith.divf
// CHECK: return
// SMALL-LABEL: func.func @division(
// SMALL: arith.divf
// SMALL: scf.for
// SMALL: arith.divf
// SMALL: return
func.func @division(%a: tensor<8x8xf32>, %v: tensor<8xf32>, %x0: tensor<8x8xf32>, %n: index) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %x0) -> (tensor<8x8xf32>) {
    %f = tensor.empty() : tensor<8x8xf32>
    %b = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%v[j] : tensor<8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32):
      %z = arith.negf %p : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    %d = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%a[i, j], %b[i, j] : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32):
      %z = arith.divf %p, %q : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    %h = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%d[i, j] : tensor<8x8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32):
      %z = arith.mulf %p, %p : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    %w = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%v[i], %v[j] : tensor<8xf32>, tensor<8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32):
      %z = arith.divf %p, %q : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    %m = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%a[i, j] : tensor<8x8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32):
      %z = arith.subf %p, %p : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    %y = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%x[i, j], %h[i, j], %w[i, j], %b[i, j], %m[i, j] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32, %t: f32, %u: f32):
      %z = arith.addf %p, %q : f32
      %z1 = arith.addf %z, %s : f32
      %z2 = arith.addf %z1, %t : f32
      %z3 = arith.addf %z2, %u : f32
      imap.yield %z3 : f32
    } -> tensor<8x8xf32>
    scf.yield %y : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

// A factor of a product cannot be computed where it is read.
// CHECK-LABEL: func.func @factor(
// CHECK: arith.mulf
// CHECK: scf.while
// CHECK: fold [add f32]
func.func @factor(%a: tensor<8x8xf32>, %x0: tensor<8x8xf32>, %n: i32) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.while (%k = %c0, %x = %x0) : (i32, tensor<8x8xf32>) -> (i32, tensor<8x8xf32>) {
    %more = arith.cmpi slt, %k, %n : i32
    scf.condition(%more) %k, %x : i32, tensor<8x8xf32>
  } do {
  ^bb0(%k: i32, %x: tensor<8x8xf32>):
    %f = tensor.empty() : tensor<8x8xf32>
    %b = imap.generic (i, j) domain: i in [0, 7], j in [0, 7] ins(%a[i, j] : tensor<8x8xf32>) outs(%f[i, j] : tensor<8x8xf32>) {
    ^bb0(%p: f32):
      %z = arith.mulf %p, %p : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    %y = imap.generic (i, j)[k] domain: i in [0, 7], j in [0, 7], k in [0, 7] ins(%x[i, k], %b[k, j] : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f[i, j] : tensor<8x8xf32>) fold [add f32] {
    ^bb0(%p: f32, %q: f32):
      %z = arith.mulf %p, %q : f32
      imap.yield %z : f32
    } -> tensor<8x8xf32>
    %next = arith.addi %k, %c1 : i32
    scf.yield %next, %y : i32, tensor<8x8xf32>
  }
  return %r#1 : tensor<8x8xf32>
}

// -----

// Without iterations the subscripts may be out of bounds, and the divisor zero. The operation inside of both loops leaves both.
// CHECK-LABEL: func.func @kept(
// CHECK: math.exp
// CHECK: scf.for
// CHECK: scf.for
// CHECK: imap.generic {{.*}} fold [add f32]
// CHECK: arith.divsi
func.func @kept(%a: tensor<?xf32>, %i: tensor<8xi32>, %v: tensor<8xf32>, %x0: tensor<8xf32>, %n: index, %at: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%x = %x0, %y = %i) -> (tensor<8xf32>, tensor<8xi32>) {
    %s:2 = scf.for %l = %c0 to %n step %c1 iter_args(%x1 = %x, %y1 = %y) -> (tensor<8xf32>, tensor<8xi32>) {
      %e = tensor.empty() : tensor<8xf32>
      %ei = tensor.empty() : tensor<8xi32>
      %w = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
      ^bb0(%p: f32):
        %z = math.exp %p : f32
        imap.yield %z : f32
      } -> tensor<8xf32>
      %g = imap.generic (i)[j]{r} domain: i in [0, 7], j in [0, 3], r in [0, 99] runtime(%at[i] : tensor<8xi32>) ins(%a[r + j] : tensor<?xf32>) outs(%e[i] : tensor<8xf32>) fold [add f32] {
      ^bb0(%p: f32):
        imap.yield %p : f32
      } -> tensor<8xf32>
      %q = imap.generic (i) domain: i in [0, 7] ins(%i[i], %i[7 - i] : tensor<8xi32>, tensor<8xi32>) outs(%ei[i] : tensor<8xi32>) {
      ^bb0(%p: i32, %o: i32):
        %z = arith.divsi %p, %o : i32
        imap.yield %z : i32
      } -> tensor<8xi32>
      %t = imap.generic (i) domain: i in [0, 7] ins(%x1[i], %w[i], %g[i] : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
      ^bb0(%p: f32, %o: f32, %m: f32):
        %z = arith.addf %p, %o : f32
        %z1 = arith.addf %z, %m : f32
        imap.yield %z1 : f32
      } -> tensor<8xf32>
      %u = imap.generic (i) domain: i in [0, 7] ins(%y1[i], %q[i] : tensor<8xi32>, tensor<8xi32>) outs(%ei[i] : tensor<8xi32>) {
      ^bb0(%p: i32, %o: i32):
        %z = arith.addi %p, %o : i32
        imap.yield %z : i32
      } -> tensor<8xi32>
      scf.yield %t, %u : tensor<8xf32>, tensor<8xi32>
    }
    scf.yield %s#0, %s#1 : tensor<8xf32>, tensor<8xi32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xi32>
}

// -----

// A function of elements moves, a negation stays.
// CHECK-LABEL: func.func @builtin(
// CHECK: imap.builtin "exp"
// CHECK: scf.for
// CHECK-NOT: imap.builtin
// CHECK: arith.negf
func.func @builtin(%v: tensor<8xf32>, %x0: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%x = %x0) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %w = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
    ^bb0(%p: f32):
      %z = imap.builtin "exp"(%p) : f32
      imap.yield %z : f32
    } -> tensor<8xf32>
    %m = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
    ^bb0(%p: f32):
      %z = arith.negf %p : f32
      imap.yield %z : f32
    } -> tensor<8xf32>
    %t = imap.generic (i) domain: i in [0, 7] ins(%x[i], %w[i], %m[i] : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %z = arith.mulf %p, %q : f32
      %y = arith.addf %z, %o : f32
      imap.yield %y : f32
    } -> tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
