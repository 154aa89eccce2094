// RUN: tc-opt %s --raise-while-to-for | FileCheck %s
// RUN: tc-opt %s --raise-while-to-for --remarks-filter=raise-while-to-for 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Analysis] loops | Category:raise-while-to-for | Function=count | Raised=1, While=1
// CHECK-LABEL: func.func @count(
// CHECK-SAME:    %[[S:.*]]: i32, %[[N:.*]]: i32, %[[X:.*]]: tensor<8xf32>
// CHECK-DAG:     %[[LB:.*]] = arith.index_cast %[[S]] : i32 to index
// CHECK-DAG:     %[[UB:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK:         %[[R:.*]] = scf.for %[[K:.*]] = %[[LB]] to %[[UB]] step %{{.*}} iter_args(%[[A:.*]] = %[[X]]) -> (tensor<8xf32>) {
// CHECK:           %[[I:.*]] = arith.index_cast %[[K]] : index to i32
// CHECK:           %[[B:.*]] = func.call @step(%[[I]], %[[A]])
// CHECK:           scf.yield %[[B]] : tensor<8xf32>
// CHECK:         %[[LAST:.*]] = arith.maxsi %[[LB]], %[[UB]] : index
// CHECK:         %[[J:.*]] = arith.index_cast %[[LAST]] : index to i32
// CHECK:         return %[[J]], %[[R]]
func.func private @step(i32, tensor<8xf32>) -> tensor<8xf32>
func.func @count(%s: i32, %n: i32, %x: tensor<8xf32>) -> (i32, tensor<8xf32>) {
  %one = arith.constant 1 : i32
  %r:2 = scf.while (%i = %s, %a = %x) : (i32, tensor<8xf32>) -> (i32, tensor<8xf32>) {
    %less = arith.cmpi slt, %i, %n : i32
    scf.condition(%less) %i, %a : i32, tensor<8xf32>
  } do {
  ^bb0(%i: i32, %a: tensor<8xf32>):
    %b = func.call @step(%i, %a) : (i32, tensor<8xf32>) -> tensor<8xf32>
    %next = arith.addi %i, %one : i32
    scf.yield %next, %b : i32, tensor<8xf32>
  }
  return %r#0, %r#1 : i32, tensor<8xf32>
}

// A larger step between constants: 1, 4, 7 and 10 at the end.
// CHECK-LABEL: func.func @steps(
// CHECK:         scf.for %{{.*}} = %c1 to %c9 step %c3
// CHECK:         %[[LAST:.*]] = arith.constant 10 : index
// CHECK:         return %[[LAST]]
func.func private @use(index)
func.func @steps() -> index {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %r = scf.while (%i = %c1) : (index) -> index {
    %more = arith.cmpi sgt, %c9, %i : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    func.call @use(%i) : (index) -> ()
    %next = arith.addi %c3, %i : index
    scf.yield %next : index
  }
  return %r : index
}

// The counter wraps: 100 + 100 is not an i8.
// CHECK-LABEL: func.func @wraps(
// CHECK:         scf.while
func.func @wraps() -> i8 {
  %c0 = arith.constant 0 : i8
  %step = arith.constant 100 : i8
  %bound = arith.constant 101 : i8
  %r = scf.while (%i = %c0) : (i8) -> i8 {
    %less = arith.cmpi slt, %i, %bound : i8
    scf.condition(%less) %i : i8
  } do {
  ^bb0(%i: i8):
    %next = arith.addi %i, %step : i8
    scf.yield %next : i8
  }
  return %r : i8
}

// A larger step to an unknown bound, a negative step, a bound that the loop carries, another condition,
// and a first region that computes.
// CHECK-LABEL: func.func @left(
// CHECK-COUNT-5: scf.while
func.func @left(%n: i32) -> (i32, i32, i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %minus = arith.constant -1 : i32
  %a = scf.while (%i = %c0) : (i32) -> i32 {
    %less = arith.cmpi slt, %i, %n : i32
    scf.condition(%less) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c2 : i32
    scf.yield %next : i32
  }
  %b = scf.while (%i = %c0) : (i32) -> i32 {
    %less = arith.cmpi slt, %i, %n : i32
    scf.condition(%less) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %minus : i32
    scf.yield %next : i32
  }
  %c:2 = scf.while (%i = %c0, %m = %n) : (i32, i32) -> (i32, i32) {
    %less = arith.cmpi slt, %i, %m : i32
    scf.condition(%less) %i, %m : i32, i32
  } do {
  ^bb0(%i: i32, %m: i32):
    %next = arith.addi %i, %c1 : i32
    %smaller = arith.addi %m, %minus : i32
    scf.yield %next, %smaller : i32, i32
  }
  %d = scf.while (%i = %c0) : (i32) -> i32 {
    %differs = arith.cmpi ne, %i, %n : i32
    scf.condition(%differs) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  %e = scf.while (%i = %c0) : (i32) -> i32 {
    %double = arith.addi %i, %i : i32
    %less = arith.cmpi slt, %double, %n : i32
    scf.condition(%less) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  return %a, %b, %c#0, %d, %e : i32, i32, i32, i32, i32
}

// A counter of 128 bits does not fit an index.
// CHECK-LABEL: func.func @wide(
// CHECK:         scf.while
func.func @wide(%s: i128, %n: i128) -> i128 {
  %one = arith.constant 1 : i128
  %r = scf.while (%i = %s) : (i128) -> i128 {
    %less = arith.cmpi slt, %i, %n : i128
    scf.condition(%less) %i : i128
  } do {
  ^bb0(%i: i128):
    %next = arith.addi %i, %one : i128
    scf.yield %next : i128
  }
  return %r : i128
}
