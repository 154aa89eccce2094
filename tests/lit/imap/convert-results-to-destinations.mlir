// RUN: tc-opt %s --convert-results-to-destinations | FileCheck %s

// A result becomes a trailing buffer, and the function returns 0, or the number of the
// first check that failed.
// CHECK-LABEL: func.func @copy(
// CHECK-SAME:    %{{.*}}: memref<?xf32{{.*}}> {tc.name = "A"}, %{{.*}}: memref<?xf32{{.*}}> {tc.name = "O", tc.output = 0 : i64}) -> i32
// CHECK-SAME:    tc.checks = ["N is small"]
// CHECK:         bufferization.materialize_in_destination
func.func @copy(%a: tensor<?xf32> {tc.name = "A"}) -> (tensor<?xf32> {tc.name = "O"}) {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %small = arith.cmpi slt, %n, %c9 : index
  imap.check %small, "N is small"
  %e = tensor.empty(%n) : tensor<?xf32>
  %o = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 2147483647] runtime(%n : index) ins(%a[i] : tensor<?xf32>) outs(%e[i] : tensor<?xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<?xf32>
  return %o : tensor<?xf32>
}

// A private function is called with memory for its results, which nothing else refers to.
// CHECK-LABEL: func.func private @double(
// CHECK-SAME:    %{{.*}}: memref<8xf32> {llvm.noalias}, %{{.*}}: memref<8xf32> {llvm.noalias}) -> i32
// CHECK-SAME:    llvm.bareptr
// CHECK-SAME:    tc.callee
// CHECK-NOT:     tc.checks
func.func private @double(%a: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %o = imap.generic (i) domain: i in [0, 7] ins(%a[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%x: f32):
    %y = arith.addf %x, %x : f32
    imap.yield %y : f32
  } -> tensor<8xf32>
  return %o : tensor<8xf32>
}

// CHECK-LABEL: func.func @calls(
// CHECK:         %[[IN:.*]] = bufferization.to_buffer %{{.*}} read_only : tensor<8xf32> to memref<8xf32>
// CHECK-NEXT:    %[[OUT:.*]] = memref.alloc()
// CHECK-NEXT:    call @double(%[[IN]], %[[OUT]]) : (memref<8xf32>, memref<8xf32>) -> i32
// CHECK-NEXT:    bufferization.to_tensor %[[OUT]] restrict writable
func.func @calls(%a: tensor<8xf32>) -> tensor<8xf32> {
  %r = func.call @double(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// An argument that is another result, too, is copied before it is overwritten.
// CHECK-LABEL: func.func @swap(
// CHECK-SAME:    %[[X:.*]]: memref<4xf32{{.*}}> {tc.inout, tc.name = "x", tc.output = 0 : i64}, %[[Y:.*]]: memref<4xf32{{.*}}> {tc.inout
// CHECK:         %[[OLD_X:.*]] = bufferization.to_tensor %[[X]]
// CHECK:         %[[OLD_Y:.*]] = bufferization.to_tensor %[[Y]]
// CHECK-DAG:     %[[NEW_Y:.*]] = bufferization.alloc_tensor() copy(%[[OLD_X]])
// CHECK-DAG:     %[[NEW_X:.*]] = bufferization.alloc_tensor() copy(%[[OLD_Y]])
// CHECK:         bufferization.materialize_in_destination %[[NEW_X]] in %[[OLD_X]]
// CHECK:         bufferization.materialize_in_destination %[[NEW_Y]] in %[[OLD_Y]]
func.func @swap(%x: tensor<4xf32> {tc.inout, tc.name = "x"}, %y: tensor<4xf32> {tc.inout, tc.name = "y"}) -> (tensor<4xf32> {tc.name = "x"}, tensor<4xf32> {tc.name = "y"}) {
  return %y, %x : tensor<4xf32>, tensor<4xf32>
}

// An argument that is its own result is only read.
// CHECK-LABEL: func.func @keep(
// CHECK-NOT:     alloc_tensor
// CHECK:         %[[KEPT:.*]] = bufferization.to_tensor
// CHECK:         bufferization.materialize_in_destination %[[KEPT]] in restrict writable
func.func @keep(%x: tensor<4xf32> {tc.inout, tc.name = "x"}) -> (tensor<4xf32> {tc.name = "x"}, tensor<4xf32> {tc.name = "y"}) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// A branch that yields a tensor from outside copies it, so that both branches can have the destination of the result.
// CHECK-LABEL: func.func @branches(
// CHECK-SAME:    %[[X:[^:]*]]: memref
// CHECK:         %[[OLD:.*]] = bufferization.to_tensor %[[X]]
// CHECK:         %[[CHOSEN:.*]] = scf.if
// CHECK:           %[[NEGATED:.*]] = imap.generic
// CHECK:           scf.yield %[[NEGATED]]
// CHECK:           %[[E:.*]] = tensor.empty() : tensor<4xf32>
// CHECK:           %[[COPY:.*]] = imap.generic (d0) domain: d0 in [0, 3] ins(%[[OLD]][d0] : tensor<4xf32>) outs(%[[E]][d0] : tensor<4xf32>)
// CHECK:           scf.yield %[[COPY]]
// CHECK:         bufferization.materialize_in_destination %[[CHOSEN]] in
func.func @branches(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %is_negated = tensor.extract %c[] : tensor<i1>
  %r = scf.if %is_negated -> tensor<4xf32> {
    %e = tensor.empty() : tensor<4xf32>
    %n = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xf32>) outs(%e[i] : tensor<4xf32>) {
    ^bb0(%in: f32):
      %out = arith.negf %in : f32
      imap.yield %out : f32
    } -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// An empty buffer is not passed as a pointer: LLVM 22 does not convert all of them.
// CHECK-LABEL: func.func private @nothing(
// CHECK-NOT:     llvm.bareptr
// CHECK-SAME:    tc.callee
func.func private @nothing(%a: tensor<8x0xf32>) -> tensor<8x0xf32> {
  return %a : tensor<8x0xf32>
}

// CHECK-LABEL: func.func @calls_nothing(
func.func @calls_nothing(%a: tensor<8x0xf32>) -> tensor<8x0xf32> {
  %r = func.call @nothing(%a) : (tensor<8x0xf32>) -> tensor<8x0xf32>
  return %r : tensor<8x0xf32>
}
