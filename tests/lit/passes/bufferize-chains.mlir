// RUN: tc-opt %s --split-input-file --allow-unregistered-dialect --bufferize-chains=max-readers=0 | FileCheck %s
// RUN: tc-opt %s --split-input-file --allow-unregistered-dialect --bufferize-chains=max-readers=3 | FileCheck %s --check-prefix=SMALL
// RUN: tc-opt %s --split-input-file --allow-unregistered-dialect --bufferize-chains=max-readers=0 \
// RUN:     --remarks-filter=bufferize-chains 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Passed] chains | Category:bufferize-chains | Function=chain | Bufferized=3

// A chain has one buffer. The first and the last reader of another tensor get one each.
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    %[[X:.*]]: tensor<2xf32>, %[[I:.*]]: index
// CHECK:         %[[M:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK-NEXT:    %[[FIRST:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK-NEXT:    imap.generic {{.*}} ins(%[[FIRST]][{{.*}}] : memref<2xf32>) outs(%[[M]][{{.*}}] : memref<4xf32>)
// CHECK:         %[[ELEMENT:.*]] = memref.load %[[M]][%[[I]]]
// CHECK:         imap.generic {{.*}} ins(%[[FIRST]][{{.*}}] : memref<2xf32>) outs(%[[M]][{{.*}}] : memref<4xf32>)
// CHECK:         %[[LAST:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK-NEXT:    imap.generic {{.*}} ins(%[[LAST]][{{.*}}] : memref<2xf32>) outs(%[[M]][{{.*}}] : memref<4xf32>)
// CHECK:         %[[R:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK:         return %[[ELEMENT]], %[[R]]
// SMALL-LABEL: func.func @chain
// SMALL:         memref.alloc
// SMALL:       func.func @small
// SMALL-NOT:     memref.alloc
func.func @chain(%x: tensor<2xf32>, %i: index) -> (f32, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3]
    ins(%x[d0 floordiv 2] : tensor<2xf32>) outs(%e[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %element = tensor.extract %a[%i] : tensor<4xf32>
  %b = imap.generic (d0) domain: d0 in [0, 1]
    ins(%x[d0] : tensor<2xf32>) outs(%a[d0 + 1] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %c = imap.generic (d0) domain: d0 in [0, 1]
    ins(%x[d0] : tensor<2xf32>) outs(%b[d0 + 2] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  return %element, %c : f32, tensor<4xf32>
}

func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3]
    ins(%x[d0] : tensor<4xf32>) outs(%e[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// A destination that is read later is copied, and so is one that its operation reads elsewhere.
// CHECK-LABEL: func.func @read_later
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         imap.generic {{.*}} outs(%[[A]][{{.*}}] : memref<4xf32>)
// CHECK:         %[[B:.*]] = memref.alloc()
// CHECK-NEXT:    memref.copy %[[A]], %[[B]]
// CHECK:         imap.generic {{.*}} ins(%[[A]][{{.*}}] : memref<4xf32>) outs(%[[B]][{{.*}}] : memref<4xf32>)
// CHECK:         memref.load %[[A]]
func.func @read_later(%x: tensor<4xf32>, %i: index) -> (f32, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3]
    ins(%x[d0] : tensor<4xf32>) outs(%e[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %b = imap.generic (d0) domain: d0 in [0, 2]
    ins(%a[d0] : tensor<4xf32>) outs(%a[d0 + 1] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %element = tensor.extract %a[%i] : tensor<4xf32>
  return %element, %b : f32, tensor<4xf32>
}

// -----

// An operation that reads the element that it writes works in place.
// CHECK-LABEL: func.func @same_element
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK-NOT:     memref.alloc
// CHECK:         imap.generic {{.*}} ins(%[[A]][{{.*}}] : memref<4xf32>) outs(%[[A]][{{.*}}] : memref<4xf32>)
func.func @same_element(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3]
    ins(%x[d0] : tensor<4xf32>) outs(%e[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %b = imap.generic (d0) domain: d0 in [0, 3]
    ins(%a[d0] : tensor<4xf32>) outs(%a[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    %y = arith.negf %in : f32
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// The buffer of a chain is the result of the function that it is stored to.
// CHECK-LABEL: func.func @stored
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[OUT:.*]]: memref<4xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         imap.generic {{.*}} outs(%[[OUT]][{{.*}}] : memref<4xf32>)
// CHECK-NOT:     materialize_in_destination
func.func @stored(%x: tensor<4xf32>, %out: memref<4xf32>) {
  %o = bufferization.to_tensor %out restrict writable : memref<4xf32> to tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3]
    ins(%x[d0] : tensor<4xf32>) outs(%e[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %r = bufferization.materialize_in_destination %a in %o : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

// What other operations use stays a tensor; whether a chain may overwrite any other tensor is left to
// bufferization, with the write before the reads of its first operation.
// CHECK-LABEL: func.func @other_uses
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>
// CHECK:         %[[M:.*]] = bufferization.to_buffer %[[X]] : tensor<4xf32> to memref<4xf32>
// CHECK-NEXT:    %[[IN:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK-NEXT:    imap.generic {{.*}} ins(%[[IN]][{{.*}}] : memref<4xf32>) outs(%[[M]][{{.*}}] : memref<4xf32>)
// CHECK:         %[[A:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT:    "test.use"(%[[A]])
func.func @other_uses(%x: tensor<4xf32>) {
  %a = imap.generic (d0) domain: d0 in [0, 2]
    ins(%x[d0] : tensor<4xf32>) outs(%x[d0 + 1] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  "test.use"(%a) : (tensor<4xf32>) -> ()
  return
}

// -----

// Elements that a loop reads come from a buffer from before the loop, unless the loop writes tensors. The
// last operation of a region on an empty tensor stays.
// CHECK-LABEL: func.func @loops
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>
// CHECK:         %[[BEFORE:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      memref.load %[[BEFORE]]
// CHECK:         scf.for
// CHECK:           imap.generic {{.*}} ins(%{{.*}} : tensor<4xf32>) outs(%{{.*}} : tensor<4xf32>)
// CHECK:           %[[INSIDE:.*]] = bufferization.to_buffer %[[X]] read_only
// CHECK-NEXT:      memref.load %[[INSIDE]]
// CHECK:           scf.yield
func.func @loops(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %element = tensor.extract %x[%i] : tensor<4xf32>
    "test.use"(%element) : (f32) -> ()
  }
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %a = imap.generic (d0) domain: d0 in [0, 3]
      ins(%y[d0] : tensor<4xf32>) outs(%e[d0] : tensor<4xf32>) {
    ^bb0(%in: f32):
      imap.yield %in : f32
    } -> tensor<4xf32>
    %element = tensor.extract %x[%i] : tensor<4xf32>
    "test.use"(%element) : (f32) -> ()
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A copy of a destination becomes a copy of its buffer.
// CHECK-LABEL: func.func @copied
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         imap.generic {{.*}} outs(%[[A]][{{.*}}] : memref<4xf32>)
// CHECK:         %[[B:.*]] = memref.alloc()
// CHECK-NEXT:    memref.copy %[[A]], %[[B]]
// CHECK-NOT:     bufferization.alloc_tensor
// CHECK:         imap.generic {{.*}} outs(%[[B]][{{.*}}] : memref<4xf32>)
// CHECK:         memref.load %[[A]]
func.func @copied(%x: tensor<4xf32>, %i: index) -> (f32, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %a = imap.generic (d0) domain: d0 in [0, 3]
    ins(%x[d0] : tensor<4xf32>) outs(%e[d0] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %c = bufferization.alloc_tensor() copy(%a) : tensor<4xf32>
  %b = imap.generic (d0) domain: d0 in [0, 2]
    ins(%x[d0] : tensor<4xf32>) outs(%c[d0 + 1] : tensor<4xf32>) {
  ^bb0(%in: f32):
    imap.yield %in : f32
  } -> tensor<4xf32>
  %element = tensor.extract %a[%i] : tensor<4xf32>
  return %element, %b : f32, tensor<4xf32>
}

// -----

// What a loop yields has the buffer of the tensor that the loop carries.
// CHECK-LABEL: func.func @carried
// CHECK:         scf.for {{.*}} iter_args(%[[Y:.*]] = %{{.*}})
// CHECK:           %[[M:.*]] = bufferization.to_buffer %[[Y]] : tensor<4xf32> to memref<4xf32>
// CHECK:           imap.generic {{.*}} outs(%[[M]][{{.*}}] : memref<4xf32>)
// CHECK:           %[[A:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT:      %[[R:.*]] = bufferization.materialize_in_destination %[[A]] in %[[Y]]
// CHECK-NEXT:      scf.yield %[[R]]
func.func @carried(%x: tensor<4xf32>, %u: tensor<2xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    %a = imap.generic (d0) domain: d0 in [0, 1]
      ins(%u[d0] : tensor<2xf32>) outs(%y[d0 + 1] : tensor<4xf32>) {
    ^bb0(%in: f32):
      imap.yield %in : f32
    } -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// An operation reads the elements that it overwrites from the buffer of both, and a loop inside of the loop
// goes on with it. An element elsewhere is read from a buffer of its own.
// CHECK-LABEL: func.func @own_element
// CHECK:         scf.for {{.*}} iter_args(%[[Y:.*]] = %{{.*}})
// CHECK:           %[[M:.*]] = bufferization.to_buffer %[[Y]] : tensor<4xf32> to memref<4xf32>
// CHECK-NEXT:      imap.generic {{.*}} ins(%[[M]][{{.*}}] : memref<4xf32>) outs(%[[M]][{{.*}}] : memref<4xf32>)
// CHECK:           %[[A:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT:      %[[R:.*]] = bufferization.materialize_in_destination %[[A]] in %[[Y]]
// CHECK-NEXT:      scf.for {{.*}} iter_args(%[[Z:.*]] = %[[R]])
// CHECK-DAG:         %[[W:.*]] = bufferization.to_buffer %[[Z]] : tensor<4xf32> to memref<4xf32>
// CHECK-DAG:         %[[READ:.*]] = bufferization.to_buffer %[[Z]] read_only
// CHECK:             imap.generic {{.*}} ins(%[[READ]][{{.*}}] : memref<4xf32>) outs(%[[W]][{{.*}}] : memref<4xf32>)
func.func @own_element(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<4xf32> {
    %a = imap.generic (d0) domain: d0 in [0, 3]
      ins(%y[d0] : tensor<4xf32>) outs(%y[d0] : tensor<4xf32>) {
    ^bb0(%in: f32):
      %b = arith.addf %in, %in : f32
      imap.yield %b : f32
    } -> tensor<4xf32>
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%z = %a) -> tensor<4xf32> {
      %c = imap.generic (d0) domain: d0 in [0, 2]
        ins(%z[d0 + 1] : tensor<4xf32>) outs(%z[d0] : tensor<4xf32>) {
      ^bb0(%in: f32):
        imap.yield %in : f32
      } -> tensor<4xf32>
      scf.yield %c : tensor<4xf32>
    }
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// The other operations with destinations are parts of chains, too.
// SMALL: func.func @siblings
// CHECK-LABEL: func.func @siblings
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4xf32>, %[[IDS:[^:]*]]: tensor<3xi32>
// CHECK:         %[[M:.*]] = memref.alloc()
// CHECK:         imap.scan {{.*}} outs(%[[M]][{{.*}}] : memref<4xf32>)
// CHECK:         imap.scatter {{.*}} outs(%[[M]][r] where {{.*}} : memref<4xf32>)
// CHECK:         imap.scatter {{.*}} outs(%[[M]][r] where {{.*}} : memref<4xf32>)
// CHECK:         %[[S:.*]] = memref.alloc()
// CHECK:         imap.sort dim = 0 ins(%[[M]] : memref<4xf32>) outs(%[[S]] : memref<4xf32>)
// CHECK:         %[[R:.*]] = bufferization.to_tensor %[[S]] restrict writable
// CHECK:         return %[[R]]
func.func @siblings(%x: tensor<4xf32>, %ids: tensor<3xi32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %sums = imap.scan (t) domain: t in [0, 3] scan t inclusive
      ins(%x[t] : tensor<4xf32>) outs(%e[t] : tensor<4xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %once = imap.scatter (i){r} domain: i in [0, 2] runtime(%ids[i] : tensor<3xi32>)
      ins(%x[i] : tensor<4xf32>) outs(%sums[r] where r in [0, 3] : tensor<4xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %twice = imap.scatter (i){r} domain: i in [0, 2] runtime(%ids[i] : tensor<3xi32>)
      ins(%x[i] : tensor<4xf32>) outs(%once[r] where r in [0, 3] : tensor<4xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %sorted = imap.sort dim = 0 ins(%twice : tensor<4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    imap.yield %less : i1
  } -> tensor<4xf32>
  return %sorted : tensor<4xf32>
}

// One-shot bufferization knows slices: operations on them, and those that overwrite their results, stay.
// CHECK-LABEL: func.func @tiles(
// CHECK:         scf.forall
// CHECK:           %[[SLICE:.*]] = tensor.extract_slice
// CHECK:           %[[FIRST:.*]] = imap.generic {{.*}} outs(%[[SLICE]][d0] : tensor<16xf32>)
// CHECK:           %[[SECOND:.*]] = imap.generic {{.*}} outs(%[[FIRST]][d0] : tensor<16xf32>)
// CHECK:           tensor.parallel_insert_slice %[[SECOND]]
func.func @tiles(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %r = scf.forall (%i) = (0) to (64) step (16) shared_outs(%o = %e) -> (tensor<64xf32>) {
    %s = tensor.extract_slice %o[%i] [16] [1] : tensor<64xf32> to tensor<16xf32>
    %c = arith.constant dense<1.0> : tensor<f32>
    %f = imap.generic (d0) domain: d0 in [0, 15] ins(%c[] : tensor<f32>) outs(%s[d0] : tensor<16xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    } -> tensor<16xf32>
    %t = imap.generic (d0) domain: d0 in [0, 7] ins(%c[] : tensor<f32>) outs(%f[d0] : tensor<16xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    } -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [16] [1] : tensor<16xf32> into tensor<64xf32>
    }
  }
  return %r : tensor<64xf32>
}
