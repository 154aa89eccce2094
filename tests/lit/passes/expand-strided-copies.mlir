// RUN: tc-opt %s --expand-strided-copies | FileCheck %s
// RUN: tc-opt %s --expand-strided-copies --remarks-filter=expand-.* 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @strided(
// CHECK-SAME:    %[[A:.*]]: memref<?x3xf32, strided<[?, 2]>>, %[[B:.*]]: memref<?x3xf32>)
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1
// CHECK-DAG:     %[[DIM:.*]] = memref.dim %[[A]], %
// CHECK-DAG:     %[[THREE:.*]] = arith.constant 3
// CHECK:         scf.for %[[I:.*]] = %[[ZERO]] to %[[DIM]] step %[[ONE]] {
// CHECK-NEXT:      scf.for %[[J:.*]] = %[[ZERO]] to %[[THREE]] step %[[ONE]] {
// CHECK-NEXT:        %[[X:.*]] = memref.load %[[A]][%[[I]], %[[J]]]
// CHECK-NEXT:        memref.store %[[X]], %[[B]][%[[I]], %[[J]]]
// CHECK-NOT:     memref.copy
// REMARK: expand-strided-copies{{.*}}strided{{.*}}Expanded=1
func.func @strided(%a: memref<?x3xf32, strided<[?, 2]>>, %b: memref<?x3xf32>) {
  memref.copy %a, %b : memref<?x3xf32, strided<[?, 2]>> to memref<?x3xf32>
  return
}

// A buffer without dimensions that has an offset is contiguous.
// CHECK-LABEL: func.func @contiguous(
// CHECK-COUNT-4: memref.copy
// CHECK-NOT:     scf.for
func.func @contiguous(
    %a: memref<?x3xf32>, %b: memref<2x3xf32, strided<[3, 1], offset: 6>>, %c: memref<2x3xf32>,
    %d: memref<f32, strided<[], offset: ?>>, %e: memref<f32>, %f: memref<*xf32>, %g: memref<*xf32>) {
  memref.copy %a, %a : memref<?x3xf32> to memref<?x3xf32>
  memref.copy %b, %c : memref<2x3xf32, strided<[3, 1], offset: 6>> to memref<2x3xf32>
  memref.copy %d, %e : memref<f32, strided<[], offset: ?>> to memref<f32>
  memref.copy %f, %g : memref<*xf32> to memref<*xf32>
  return
}

// The extent may be 0: memrefCopy would be called for the type.
// CHECK-LABEL: func.func @empty(
// CHECK-NOT:     memref.copy
// CHECK:         scf.for
func.func @empty(%a: memref<0x3xf32, strided<[3, 1], offset: 6>>, %b: memref<0x3xf32>) {
  memref.copy %a, %b : memref<0x3xf32, strided<[3, 1], offset: 6>> to memref<0x3xf32>
  return
}
