// RUN: tc-opt %s --lower-to-kernels | FileCheck %s
// RUN: tc-opt %s --lower-to-kernels --convert-launch-to-calls | FileCheck %s --check-prefix=CALLS

// The function that computes the bytes of the workspace: two places of static size, and one slot of dynamic size.
// CHECK-LABEL: func.func @f.workspace(
// CHECK-SAME:    !llvm.ptr) -> i32
// CHECK-DAG:     %[[START:.*]] = arith.constant 512 : index
// CHECK-DAG:     %[[N:.*]] = memref.dim %arg0
// CHECK:         %[[BYTES:.*]] = arith.muli %{{.*}}, %[[N]]
// CHECK:         %[[END:.*]] = arith.addi %[[START]], %{{.*}}
// CHECK:         %[[WORD:.*]] = arith.index_cast %[[END]] : index to i64
// CHECK:         llvm.store %[[WORD]]

// Operations that do the same share a kernel, and buffers whose lifetimes do not overlap a place.
// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:[^:]*]]: memref<?xf32>, %[[Y:[^:]*]]: memref<8xf32>, %[[S:[^:]*]]: memref<f32>,
// CHECK-SAME:    %{{[^:]*}}: memref<?xf32>, %[[OUT:[^:]*]]: memref<8xf32>, %[[SPACE:[^:]*]]: memref<?xi8>) -> i32
// CHECK:         %[[SCALAR:.*]] = memref.load %[[S]][]
// CHECK:         %[[A:.*]] = memref.view %[[SPACE]][%c512][%[[SIZE:.*]]] : memref<?xi8> to memref<?xf32>
// CHECK:         %[[THREADS:.*]] = arith.minsi %[[SIZE]], %{{.*}}
// CHECK:         imap.launch @kernels::@f_0 threads(%[[THREADS]]) args(%[[SIZE]], %[[X]], %{{.*}}, %[[A]], %{{.*}}, %[[SCALAR]] : index, memref<?xf32>, index, memref<?xf32>, index, f32)
// CHECK:         imap.launch @kernels::@f_1 
// CHECK:         %[[C:.*]] = memref.view %[[SPACE]][%[[FIRST:.*]]][] : memref<?xi8> to memref<8xf32>
// CHECK:         imap.launch @kernels::@f_2 threads(%c8) args(%[[Y]], %[[C]] : memref<8xf32>, memref<8xf32>)
// CHECK:         %[[D:.*]] = memref.view %[[SPACE]][%c256{{.*}}][]
// CHECK:         imap.launch @kernels::@f_3 threads(%c8) args(%[[C]], %[[D]] :
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:         %[[G:.*]] = memref.view %[[SPACE]][%[[ZERO]]][]
// CHECK:         imap.launch @kernels::@f_2 threads(%c8) args(%[[D]], %[[G]] :
// CHECK:         imap.launch @kernels::@f_3 threads(%c8) args(%[[G]], %[[OUT]] :

// CHECK-LABEL: gpu.module @kernels
// CHECK:       gpu.func @f_0(%[[N:.*]]: i64, %[[X:.*]]: memref<f32> {llvm.noalias}, %[[SIZE:.*]]: i64, %{{.*}}: memref<f32> {llvm.noalias}, %{{.*}}: i64, %[[V:.*]]: f32) kernel
// CHECK:         %[[SIZE_:.*]] = arith.index_cast %[[SIZE]] : i64 to index
// CHECK:         %[[X_:.*]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [%[[SIZE_]]], strides: [1]
// CHECK:         imap.generic {{.*}} ins(%[[X_]][i] : memref<?xf32>)
// CHECK:           arith.addf %{{.*}}, %[[V]]
// CHECK:         gpu.return
// CHECK:       gpu.func @f_1(
// CHECK:       gpu.func @f_2(%{{.*}}: memref<8xf32> {llvm.noalias}, %{{.*}}: memref<8xf32> {llvm.noalias}) kernel
// CHECK:       gpu.func @f_3(
// CHECK-NOT:   gpu.func

// The scalar is read from the device, and launches get arrays of words.
// CALLS-LABEL: func.func @f(
// CALLS-SAME:    memref<?xi8>, %{{[^:]*}}: memref<?xi8>, %[[TABLE:[^:]*]]: !llvm.ptr) -> i32
// CALLS:         %[[PLACE:.*]] = llvm.getelementptr %[[TABLE]][0]
// CALLS:         %[[CONTEXT:.*]] = llvm.load %[[PLACE]]
// CALLS:         llvm.alloca %{{.*}} x i64
// CALLS:         llvm.call %{{.*}}(%[[CONTEXT]], {{.*}}) {tc.device_status} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, i64) -> i32
// CALLS-COUNT-6: llvm.call %{{.*}}(%[[CONTEXT]], {{.*}}) : !llvm.ptr, (!llvm.ptr, i32, i32, i32, i32, !llvm.ptr, i32) -> ()
// CALLS-NOT:     imap.launch
func.func @f(%x: tensor<?xf32>, %y: tensor<8xf32>, %s: tensor<f32>) -> (tensor<?xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %v = tensor.extract %s[] : tensor<f32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %a = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 99] runtime(%n : index)
      ins(%x[i] : tensor<?xf32>) outs(%e[i] : tensor<?xf32>) {
  ^bb0(%p: f32):
    %q = arith.addf %p, %v : f32
    imap.yield %q : f32
  } -> tensor<?xf32>
  %e1 = tensor.empty(%n) : tensor<?xf32>
  %b = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 99] runtime(%n : index)
      ins(%a[N - 1 - i] : tensor<?xf32>) outs(%e1[i] : tensor<?xf32>) {
  ^bb0(%p: f32):
    %q = arith.negf %p : f32
    imap.yield %q : f32
  } -> tensor<?xf32>
  %e2 = tensor.empty() : tensor<8xf32>
  %c = imap.generic (i) domain: i in [0, 7] ins(%y[i] : tensor<8xf32>) outs(%e2[i] : tensor<8xf32>) {
  ^bb0(%p: f32):
    %q = arith.negf %p : f32
    imap.yield %q : f32
  } -> tensor<8xf32>
  %e3 = tensor.empty() : tensor<8xf32>
  %d = imap.generic (i) domain: i in [0, 7] ins(%c[7 - i] : tensor<8xf32>) outs(%e3[i] : tensor<8xf32>) {
  ^bb0(%p: f32):
    %q = arith.mulf %p, %p : f32
    imap.yield %q : f32
  } -> tensor<8xf32>
  %e4 = tensor.empty() : tensor<8xf32>
  %g = imap.generic (i) domain: i in [0, 7] ins(%d[i] : tensor<8xf32>) outs(%e4[i] : tensor<8xf32>) {
  ^bb0(%p: f32):
    %q = arith.negf %p : f32
    imap.yield %q : f32
  } -> tensor<8xf32>
  %e5 = tensor.empty() : tensor<8xf32>
  %h = imap.generic (i) domain: i in [0, 7] ins(%g[7 - i] : tensor<8xf32>) outs(%e5[i] : tensor<8xf32>) {
  ^bb0(%p: f32):
    %q = arith.mulf %p, %p : f32
    imap.yield %q : f32
  } -> tensor<8xf32>
  return %b, %h : tensor<?xf32>, tensor<8xf32>
}
