// RUN: tc-opt %s --hoist-divisions | FileCheck %s

// The divisor is at least 1: the division leaves both the branch and the loops.
// CHECK-LABEL: func.func @size(
// CHECK-SAME:    %[[K:.*]]: index, %[[N:.*]]: index,
// CHECK:         %[[DIVISOR:.*]] = arith.maxsi %[[N]],
// CHECK:         %[[SUM:.*]] = arith.addi %[[K]], %[[N]]
// CHECK:         %[[R:.*]] = arith.remsi %[[SUM]], %[[DIVISOR]]
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK-NEXT:        memref.store %[[R]]
func.func @size(%k: index, %n: index, %p: memref<?xi1>, %o: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %condition = memref.load %p[%j] : memref<?xi1>
      scf.if %condition {
        %divisor = arith.maxsi %n, %c1 : index
        %sum = arith.addi %k, %n : index
        %r = arith.remsi %sum, %divisor : index
        memref.store %r, %o[%j] : memref<?xindex>
      }
    }
  }
  return
}

// Division as TC does it, by numbers that may be 0 or -1, out of the inner loop.
// CHECK-LABEL: func.func @value(
// CHECK:         scf.for
// CHECK:           memref.load
// CHECK:           arith.select
// CHECK:           arith.floordivsi
// CHECK:           scf.for
// CHECK-NOT:         arith.floordivsi
// CHECK:         return
func.func @value(%n: index, %s: i32, %a: memref<?xi32>, %p: memref<?xi1>, %o: memref<?x?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %minus_one = arith.constant -1 : i32
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %a[%i] : memref<?xi32>
    scf.for %j = %c0 to %n step %c1 {
      %condition = memref.load %p[%j] : memref<?xi1>
      %v = scf.if %condition -> (i32) {
        %is_zero = arith.cmpi eq, %s, %zero : i32
        %is_minus_one = arith.cmpi eq, %s, %minus_one : i32
        %special = arith.ori %is_zero, %is_minus_one : i1
        %divisor = arith.select %special, %one, %s : i32
        %q = arith.floordivsi %x, %divisor : i32
        scf.yield %q : i32
      } else {
        scf.yield %one : i32
      }
      memref.store %v, %o[%i, %j] : memref<?x?xi32>
    }
  }
  return
}

// What may trap, or changes in the loop, stays.
// CHECK-LABEL: func.func @stays(
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             arith.divsi
// CHECK:             arith.divui
// CHECK:             arith.remsi
// CHECK:             arith.divsi
func.func @stays(%n: index, %s: i32, %p: memref<?xi1>, %a: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 {
    %condition = memref.load %p[%i] : memref<?xi1>
    scf.if %condition {
      %x = memref.load %a[%i] : memref<?xi32>
      %trap = arith.divsi %one, %s : i32
      %unsigned = arith.divui %one, %s : i32
      %at_least_one = arith.maxsi %s, %one : i32
      %changes = arith.remsi %x, %at_least_one : i32
      %is_zero = arith.cmpi eq, %s, %zero : i32
      %divisor = arith.select %is_zero, %one, %s : i32
      %overflows = arith.divsi %one, %divisor : i32
      %ab = arith.addi %trap, %unsigned : i32
      %cd = arith.addi %changes, %overflows : i32
      %all = arith.addi %ab, %cd : i32
      memref.store %all, %a[%i] : memref<?xi32>
    }
  }
  return
}
