// RUN: tc-opt %s --one-shot-bufferize="bufferize-function-boundaries" --canonicalize --cse --canonicalize | FileCheck %s

// A destination that is stored completely is not read: it needs memory, but not its contents.
// CHECK-LABEL: func.func @assigned(
// CHECK-SAME:    %[[X:.*]]: memref<8xf32{{.*}}>, %[[P:.*]]: memref<8xf32
// CHECK:         %[[NEW:.*]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK-NOT:     memref.copy
// CHECK:         imap.generic {{.*}} ins(%[[X]][{{.*}}] : {{.*}}) outs(%[[NEW]][{{.*}}] :
// CHECK:         return %[[NEW]], %[[P]]
func.func @assigned(%x: tensor<8xf32>, %p: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = imap.generic (i) domain: i in [0, 7]
      ins(%x[i] : tensor<8xf32>) outs(%p[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    imap.yield %n : f32
  } -> tensor<8xf32>
  return %r, %p : tensor<8xf32>, tensor<8xf32>
}

// A fold from the identity stores where constraints exclude values too.
// CHECK-LABEL: func.func @folded(
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @folded(%x: tensor<8x8xf32>, %p: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = imap.generic (i)[j] domain: i in [0, 7], j in [0, 7], i - j in [0, 7]
      ins(%x[i, j] : tensor<8x8xf32>) outs(%p[i] : tensor<8xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r, %p : tensor<8xf32>, tensor<8xf32>
}

// A fold from the destination reads it.
// CHECK-LABEL: func.func @accumulated(
// CHECK:         memref.copy
func.func @accumulated(%x: tensor<8xf32>, %p: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = imap.generic (i) domain: i in [0, 7]
      ins(%x[i] : tensor<8xf32>) outs(%p[i] : tensor<8xf32>) fold [add f32 from outs 0] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r, %p : tensor<8xf32>, tensor<8xf32>
}

// Elements that are not stored keep their values: by the map, or by a constraint.
// CHECK-LABEL: func.func @strided(
// CHECK:         memref.copy
func.func @strided(%x: tensor<4xf32>, %p: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = imap.generic (i) domain: i in [0, 3]
      ins(%x[i] : tensor<4xf32>) outs(%p[i * 2] : tensor<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r, %p : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @constrained(
// CHECK:         memref.copy
func.func @constrained(%x: tensor<8xf32>, %p: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r = imap.generic (i) domain: i in [0, 7], i mod 2 in [0, 0]
      ins(%x[i] : tensor<8xf32>) outs(%p[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %r, %p : tensor<8xf32>, tensor<8xf32>
}

// A tile of the destination is a view of it.
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME:    %[[X:.*]]: memref<16xf32{{.*}}>, %[[Y:.*]]: memref<16xf32
// CHECK-NOT:     memref.alloc
// CHECK-NOT:     memref.copy
// CHECK:         scf.for %[[I:.*]] = %c0 to %c16 step %c4
// CHECK:           %[[TX:.*]] = memref.subview %[[X]][%[[I]]] [4] [1]
// CHECK:           %[[TY:.*]] = memref.subview %[[Y]][%[[I]]] [4] [1]
// CHECK:           imap.generic {{.*}} ins(%[[TX]][{{.*}}] : {{.*}}) outs(%[[TY]][{{.*}}] :
// CHECK-NOT:       memref.copy
// CHECK:         return
func.func @tiles(%x: tensor<16xf32>, %y: tensor<16xf32> {bufferization.writable = true}) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %r = scf.for %i = %c0 to %c16 step %c4 iter_args(%acc = %y) -> (tensor<16xf32>) {
    %xt = tensor.extract_slice %x[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %yt = tensor.extract_slice %acc[%i] [4] [1] : tensor<16xf32> to tensor<4xf32>
    %t = imap.generic (i) domain: i in [0, 3]
        ins(%xt[i] : tensor<4xf32>) outs(%yt[i] : tensor<4xf32>) fold [add f32 from outs 0] {
    ^bb0(%a: f32):
      imap.yield %a : f32
    } -> tensor<4xf32>
    %n = tensor.insert_slice %t into %acc[%i] [4] [1] : tensor<4xf32> into tensor<16xf32>
    scf.yield %n : tensor<16xf32>
  }
  return %r : tensor<16xf32>
}
