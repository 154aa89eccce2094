// RUN: tc-opt %s --scalarize-tensors --canonicalize | FileCheck %s
// RUN: tc-opt %s --scalarize-tensors --remarks-filter=scalarize-tensors 2>&1 | FileCheck %s --check-prefix=REMARK

// The counter and the condition are scalars.
// REMARK: remark: [Analysis] scalars | Category:scalarize-tensors | Function=count | Captures=1, ControlFlow=1, Points=2
// CHECK-LABEL: func.func @count(
// CHECK-SAME:    %[[N:.*]]: tensor<i32>, %[[X:.*]]: tensor<8xi32>
// CHECK:         %[[LAST:.*]] = tensor.extract %[[N]][] : tensor<i32>
// CHECK:         %[[R:.*]]:2 = scf.while (%[[I:.*]] = %{{.*}}, %[[A:.*]] = %[[X]]) : (i32, tensor<8xi32>) -> (i32, tensor<8xi32>)
// CHECK:           %[[LESS:.*]] = arith.cmpi slt, %[[I]], %[[LAST]] : i32
// CHECK:           scf.condition(%[[LESS]]) %[[I]], %[[A]] : i32, tensor<8xi32>
// CHECK:         ^bb0(%[[J:.*]]: i32, %[[B:.*]]: tensor<8xi32>):
// CHECK:           %[[NEXT:.*]] = arith.addi %[[J]], %{{.*}} : i32
// CHECK:           %[[SUM:.*]] = imap.generic (d0) domain: d0 in [0, 7] ins(%[[B]][{{.*}}] : tensor<8xi32>)
// CHECK:           ^bb0(%[[E:.*]]: i32):
// CHECK:             arith.addi %[[E]], %[[J]] : i32
// CHECK:           scf.yield %[[NEXT]], %[[SUM]] : i32, tensor<8xi32>
// CHECK:         %[[OUT:.*]] = tensor.from_elements %[[R]]#0 : tensor<i32>
// CHECK:         return %[[OUT]], %[[R]]#1
func.func @count(%n: tensor<i32>, %x: tensor<8xi32>) -> (tensor<i32>, tensor<8xi32>) {
  %zero = arith.constant dense<0> : tensor<i32>
  %one = arith.constant dense<1> : tensor<i32>
  %r:2 = scf.while (%i = %zero, %a = %x) : (tensor<i32>, tensor<8xi32>) -> (tensor<i32>, tensor<8xi32>) {
    %e = tensor.empty() : tensor<i1>
    %c = imap.generic () ins(%i[], %n[] : tensor<i32>, tensor<i32>) outs(%e[] : tensor<i1>) {
    ^bb0(%p: i32, %q: i32):
      %less = arith.cmpi slt, %p, %q : i32
      imap.yield %less : i1
    } -> tensor<i1>
    %goes_on = tensor.extract %c[] : tensor<i1>
    scf.condition(%goes_on) %i, %a : tensor<i32>, tensor<8xi32>
  } do {
  ^bb0(%i: tensor<i32>, %a: tensor<8xi32>):
    %e = tensor.empty() : tensor<i32>
    %next = imap.generic () ins(%i[], %one[] : tensor<i32>, tensor<i32>) outs(%e[] : tensor<i32>) {
    ^bb0(%p: i32, %q: i32):
      %sum = arith.addi %p, %q : i32
      imap.yield %sum : i32
    } -> tensor<i32>
    %f = tensor.empty() : tensor<8xi32>
    %b = imap.generic (d0) domain: d0 in [0, 7] ins(%a[d0], %i[] : tensor<8xi32>, tensor<i32>) outs(%f[d0] : tensor<8xi32>) {
    ^bb0(%p: i32, %q: i32):
      %sum = arith.addi %p, %q : i32
      imap.yield %sum : i32
    } -> tensor<8xi32>
    scf.yield %next, %b : tensor<i32>, tensor<8xi32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<8xi32>
}

// A scalar that an epilogue uses.
// CHECK-LABEL: func.func @epilogue(
// CHECK-SAME:    %[[S:.*]]: f32,
// CHECK:         imap.generic {{.*}} ins(%{{.*}} : tensor<8xf32>) outs
// CHECK:         epilogue {
// CHECK:         ^bb0(%[[SUM:.*]]: f32, %{{.*}}: f32):
// CHECK:           arith.mulf %[[SUM]], %[[S]] : f32
func.func @epilogue(%s: f32, %x: tensor<8xf32>) -> tensor<f32> {
  %t = tensor.from_elements %s : tensor<f32>
  %e = tensor.empty() : tensor<f32>
  %r = imap.generic ()[s0] domain: s0 in [0, 7] ins(%t[], %x[s0] : tensor<f32>, tensor<8xf32>) outs(%e[] : tensor<f32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    imap.yield %b : f32
  } epilogue {
  ^bb0(%sum: f32, %a: f32, %b: f32):
    %v = arith.mulf %sum, %a : f32
    imap.yield %v : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// One element of a larger tensor, and a branch.
// CHECK-LABEL: func.func @branch(
// CHECK-SAME:    %[[P:.*]]: i1, %[[X:.*]]: tensor<4xf32>
// CHECK:         %[[V:.*]] = scf.if %[[P]] -> (f32) {
// CHECK:           %[[E:.*]] = tensor.extract %[[X]][%{{.*}}] : tensor<4xf32>
// CHECK:           %[[N:.*]] = arith.negf %[[E]] : f32
// CHECK:           scf.yield %[[N]] : f32
// CHECK:         %[[T:.*]] = tensor.from_elements %[[V]] : tensor<f32>
// CHECK:         return %[[T]]
func.func @branch(%p: i1, %x: tensor<4xf32>) -> tensor<f32> {
  %one = arith.constant dense<1.0> : tensor<f32>
  %r = scf.if %p -> (tensor<f32>) {
    %e = tensor.empty() : tensor<f32>
    %v = imap.generic () ins(%x[2] : tensor<4xf32>) outs(%e[] : tensor<f32>) {
    ^bb0(%a: f32):
      %n = arith.negf %a : f32
      imap.yield %n : f32
    } -> tensor<f32>
    scf.yield %v : tensor<f32>
  } else {
    scf.yield %one : tensor<f32>
  }
  return %r : tensor<f32>
}

// An operation with a range is no point, and elements of unsigned integers are left.
// CHECK-LABEL: func.func @left(
// CHECK:         imap.generic ()[s0]
// CHECK:         scf.for {{.*}} -> (tensor<ui32>)
func.func @left(%x: tensor<8xf32>, %u: tensor<ui32>, %n: index) -> (tensor<f32>, tensor<ui32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<f32>
  %r = imap.generic ()[s0] domain: s0 in [0, 7] ins(%x[s0] : tensor<8xf32>) outs(%e[] : tensor<f32>) fold [maximumf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<f32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%v = %u) -> (tensor<ui32>) {
    %f = tensor.empty() : tensor<ui32>
    %w = imap.generic () ins(%v[] : tensor<ui32>) outs(%f[] : tensor<ui32>) {
    ^bb0(%a: i32):
      %b = arith.addi %a, %a : i32
      imap.yield %b : i32
    } -> tensor<ui32>
    scf.yield %w : tensor<ui32>
  }
  return %r, %s : tensor<f32>, tensor<ui32>
}
