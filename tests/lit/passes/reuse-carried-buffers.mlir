// RUN: tc-opt %s --reuse-carried-buffers --canonicalize | FileCheck %s
// RUN: tc-opt %s --reuse-carried-buffers --remarks-filter=reuse-carried-buffers 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Analysis] buffers | Category:reuse-carried-buffers | Function=elements | Reused=1
// CHECK-LABEL: func.func @elements(
// CHECK:         scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}})
// CHECK-NOT:       tensor.empty
// CHECK:           imap.generic {{.*}} ins(%[[X]][{{.*}}] : tensor<8xf32>) outs(%[[X]][{{.*}}] : tensor<8xf32>)
func.func @elements(%init: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %y = imap.generic (d0) domain: d0 in [0, 7] ins(%x[d0] : tensor<8xf32>) outs(%e[d0] : tensor<8xf32>) {
    ^bb0(%a: f32):
      %b = arith.addf %a, %a : f32
      imap.yield %b : f32
    } -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// The old value is read at other elements by the operation that writes.
// CHECK-LABEL: func.func @reversed(
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         imap.generic {{.*}} outs(%[[E]][{{.*}}] : tensor<8xf32>)
func.func @reversed(%init: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %y = imap.generic (d0) domain: d0 in [0, 7] ins(%x[7 - d0] : tensor<8xf32>) outs(%e[d0] : tensor<8xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    } -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// The old value is read after the new one is written: two carried tensors change places.
// CHECK-LABEL: func.func @pair(
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         imap.generic {{.*}} outs(%[[E]][{{.*}}] : tensor<8xf32>)
func.func @pair(%u: tensor<8xf32>, %v: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %u, %z = %v) -> (tensor<8xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %y = imap.generic (d0) domain: d0 in [0, 7] ins(%x[d0], %z[d0] : tensor<8xf32>, tensor<8xf32>) outs(%e[d0] : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      imap.yield %c : f32
    } -> tensor<8xf32>
    scf.yield %y, %x : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
}

// Through the loop inside, whose result starts from the tensor that the first operation writes.
// CHECK-LABEL: func.func @nested(
// CHECK:         scf.while (%{{.*}} = %{{.*}}) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK:         ^bb0(%[[X:.*]]: tensor<8xf32>):
// CHECK:           %[[Y:.*]] = imap.generic {{.*}} outs(%[[X]][{{.*}}] : tensor<8xf32>)
// CHECK:           scf.for {{.*}} iter_args(%[[Z:.*]] = %[[Y]])
// CHECK:             imap.generic {{.*}} outs(%[[Z]][{{.*}}] : tensor<8xf32>)
func.func private @goes_on(tensor<8xf32>) -> i1
func.func @nested(%init: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.while (%x = %init) : (tensor<8xf32>) -> tensor<8xf32> {
    %c = func.call @goes_on(%x) : (tensor<8xf32>) -> i1
    scf.condition(%c) %x : tensor<8xf32>
  } do {
  ^bb0(%x: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %y = imap.generic (d0) domain: d0 in [0, 7] ins(%x[d0] : tensor<8xf32>) outs(%e[d0] : tensor<8xf32>) {
    ^bb0(%a: f32):
      %b = arith.addf %a, %a : f32
      imap.yield %b : f32
    } -> tensor<8xf32>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%z = %y) -> (tensor<8xf32>) {
      %f = tensor.empty() : tensor<8xf32>
      %w = imap.generic (d0) domain: d0 in [0, 7] ins(%z[d0] : tensor<8xf32>) outs(%f[d0] : tensor<8xf32>) {
      ^bb0(%a: f32):
        %b = arith.mulf %a, %a : f32
        imap.yield %b : f32
      } -> tensor<8xf32>
      scf.yield %w : tensor<8xf32>
    }
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// What reads the old value later, or other elements of it, gets a copy. The carried tensor keeps its buffer.
// CHECK-LABEL: func.func @neighbours(
// CHECK:         ^bb0(%[[X:.*]]: tensor<8xf32>):
// CHECK:           %[[OLD:.*]] = bufferization.alloc_tensor() copy(%[[X]]) : tensor<8xf32>
// CHECK:           %[[Y:.*]] = imap.generic {{.*}} ins(%[[OLD]][(d0 + 1) mod 8] : tensor<8xf32>) outs(%[[X]][d0] : tensor<8xf32>)
// CHECK:           imap.generic {{.*}} ins(%[[OLD]][{{.*}}], %[[Y]][{{.*}}] : {{.*}}) outs(%{{.*}}[] : tensor<f32>)
func.func @neighbours(%init: tensor<8xf32>) -> tensor<8xf32> {
  %far = arith.constant 1.0 : f32
  %r:2 = scf.while (%x = %init, %d = %far) : (tensor<8xf32>, f32) -> (tensor<8xf32>, f32) {
    %c = arith.cmpf ogt, %d, %far : f32
    scf.condition(%c) %x, %d : tensor<8xf32>, f32
  } do {
  ^bb0(%x: tensor<8xf32>, %d: f32):
    %e = tensor.empty() : tensor<8xf32>
    %y = imap.generic (d0) domain: d0 in [0, 7] ins(%x[(d0 + 1) mod 8] : tensor<8xf32>) outs(%e[d0] : tensor<8xf32>) {
    ^bb0(%a: f32):
      %b = arith.addf %a, %a : f32
      imap.yield %b : f32
    } -> tensor<8xf32>
    %f = tensor.empty() : tensor<f32>
    %s = imap.generic ()[k] domain: k in [0, 7] ins(%x[k], %y[k] : tensor<8xf32>, tensor<8xf32>) outs(%f[] : tensor<f32>) fold [maximumf f32] {
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      imap.yield %c : f32
    } -> tensor<f32>
    %n = tensor.extract %s[] : tensor<f32>
    scf.yield %y, %n : tensor<8xf32>, f32
  }
  return %r#0 : tensor<8xf32>
}

// In scf.for, a new buffer per iteration costs less than a copy.
// CHECK-LABEL: func.func @counted(
// CHECK-NOT:     bufferization.alloc_tensor
func.func @counted(%init: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %y = imap.generic (d0) domain: d0 in [0, 7] ins(%x[(d0 + 1) mod 8] : tensor<8xf32>) outs(%e[d0] : tensor<8xf32>) {
    ^bb0(%a: f32):
      imap.yield %a : f32
    } -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
