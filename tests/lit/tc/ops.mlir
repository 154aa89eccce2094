// RUN: tc-opt %s | FileCheck %s
// The generic form and bytecode hold the same.
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | FileCheck %s
// RUN: tc-opt %s --emit-bytecode | tc-opt | FileCheck %s

// CHECK-LABEL: tc.def @matmul(
// CHECK-SAME:    %[[A:.*]]: tensor<?x?xf32> {tc.name = "A", tc.sizes = ["M", "K"]},
// CHECK-SAME:    %[[B:.*]]: tensor<?x?xf32> {tc.name = "B", tc.sizes = ["K", "N"]})
// CHECK-SAME:    -> (tensor<?x?xf32> {tc.name = "C"}) {
// CHECK-NEXT:    %[[C:.*]] = tc.comprehension "C" ["m", "n"] reduce ["r_k"] <add from identity> {
// CHECK-NEXT:    ^bb0(%[[M:.*]]: index, %[[N:.*]]: index, %[[K:.*]]: index):
// CHECK-NEXT:      %[[X:.*]] = tc.read %[[A]][%[[M]], %[[K]]] : tensor<?x?xf32> -> f32
// CHECK-NEXT:      %[[Y:.*]] = tc.read %[[B]][%[[K]], %[[N]]] {text = "B(r_k, n)"} : tensor<?x?xf32> -> f32
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT:      tc.yield %[[P]] : f32
// CHECK-NEXT:    } : tensor<?x?xf32>
// CHECK-NEXT:    tc.return %[[C]] : tensor<?x?xf32>
tc.def @matmul(%A: tensor<?x?xf32> {tc.name = "A", tc.sizes = ["M", "K"]},
               %B: tensor<?x?xf32> {tc.name = "B", tc.sizes = ["K", "N"]})
    -> (tensor<?x?xf32> {tc.name = "C"}) {
  %C = tc.comprehension "C"["m", "n"] reduce ["r_k"] #imap.combiner<add from identity> {
  ^bb0(%m: index, %n: index, %r_k: index):
    %a = tc.read %A[%m, %r_k] : tensor<?x?xf32> -> f32
    %b = tc.read %B[%r_k, %n] {text = "B(r_k, n)"} : tensor<?x?xf32> -> f32
    %p = arith.mulf %a, %b : f32
    tc.yield %p : f32
  } : tensor<?x?xf32>
  tc.return %C : tensor<?x?xf32>
}

// Everything that a statement may have, and an output that starts from an argument.
// CHECK-LABEL: tc.def private @all(
// CHECK-SAME:    %[[A:.*]]: tensor<?x4xui8> {tc.name = "A", tc.sizes = ["N", 4]},
// CHECK-SAME:    %[[O:.*]]: tensor<?xui8> {tc.inout, tc.name = "O"})
// CHECK-SAME:    -> (tensor<?xui8> {tc.name = "O", tc.sizes = ["N"]}) attributes {preconditions = []} {
// CHECK-NEXT:    %[[N:.*]] = tc.size "N"
// CHECK-NEXT:    %[[FOUR:.*]] = tc.extent %[[A]], 1 : tensor<?x4xui8>
// CHECK:         %[[R:.*]] = tc.comprehension "O" ["i"] reduce ["k"] <maxu>
// CHECK-SAME:      outs(%[[O]] : tensor<?xui8>) where [0, 1] in(%{{.*}}, %[[N]], %{{.*}}, %[[FOUR]])
// CHECK-SAME:      domain <(i)[k]{N} -> (i - 1), domain: i in [1, N - 1], k in [1, 3], N in [2, 2147483647]>
// CHECK-SAME:      attributes {equivalent = "library"} {
// CHECK-NEXT:    ^bb0(%[[I:.*]]: index, %[[K:.*]]: index):
// CHECK:           tc.yield %{{.*}} : i8
// CHECK-NEXT:    } exists {
// CHECK-NEXT:    ^bb0(%[[I2:.*]]: index, %[[K2:.*]]: index):
// CHECK-NEXT:      %[[X:.*]] = tc.read %[[A]][%[[I2]], %[[K2]]] : tensor<?x4xui8> -> i8
// CHECK-NEXT:      tc.yield %[[X]] : i8
// CHECK-NEXT:    } : tensor<?xui8>
tc.def private @all(%A: tensor<?x4xui8> {tc.name = "A", tc.sizes = ["N", 4]},
                    %O: tensor<?xui8> {tc.name = "O", tc.inout})
    -> (tensor<?xui8> {tc.name = "O", tc.sizes = ["N"]}) attributes {preconditions = []} {
  %n = tc.size "N"
  %four = tc.extent %A, 1 : tensor<?x4xui8>
  %one = arith.constant 1 : index
  %R = tc.comprehension "O"["i"] reduce ["k"] <maxu> outs(%O : tensor<?xui8>)
      where [0, 1] in (%one, %n, %one, %four)
      domain <(i)[k]{N} -> (i - 1), domain: i in [1, N - 1], k in [1, 3], N in [2, 2147483647]>
      attributes {equivalent = "library"} {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%i, %k] : tensor<?x4xui8> -> i8
    tc.yield %x : i8
  } exists {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%i, %k] : tensor<?x4xui8> -> i8
    tc.yield %x : i8
  } : tensor<?xui8>
  tc.return %R : tensor<?xui8>
}

// A left-hand index that is computed.
// CHECK-LABEL: tc.def @addressed(
// CHECK:         %[[R:.*]] = tc.comprehension "H" ["i", "H.1"] addressed [1] reduce ["k"] <add from identity>
// CHECK-SAME:      domain <(i, j)[k]{N} -> (i, j), domain: i in [0, N - 1], j in [0, 7], k in [0, N - 1], N in [1, 4]>
// CHECK-SAME:      attributes {text = "H(i, A(k))"} {
// CHECK-NEXT:    ^bb0(%{{.*}}: index, %{{.*}}: index, %[[K:.*]]: index):
// CHECK-NEXT:      %[[X:.*]] = tc.read %{{.*}}[%[[K]]] : tensor<?xi32> -> i32
// CHECK-NEXT:      %[[P:.*]] = arith.index_cast %[[X]] : i32 to index
// CHECK-NEXT:      tc.yield %[[X]], %[[P]] : i32, index
// CHECK-NEXT:    } : tensor<?x?xi32>
tc.def @addressed(%A: tensor<?xi32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?x?xi32> {tc.name = "H"}) {
  %R = tc.comprehension "H"["i", "H.1"] addressed [1] reduce ["k"] <add from identity>
      domain <(i, j)[k]{N} -> (i, j), domain: i in [0, N - 1], j in [0, 7], k in [0, N - 1], N in [1, 4]>
      attributes {text = "H(i, A(k))"} {
  ^bb0(%i: index, %j: index, %k: index):
    %x = tc.read %A[%k] : tensor<?xi32> -> i32
    %p = arith.index_cast %x : i32 to index
    tc.yield %x, %p : i32, index
  } : tensor<?x?xi32>
  tc.return %R : tensor<?x?xi32>
}

// A scalar, and a function of nothing.
// CHECK-LABEL: tc.def @scalar()
// CHECK-NEXT:    tc.comprehension "s" [] <assign> {
// CHECK-NEXT:      %{{.*}} = arith.constant
// CHECK-NEXT:      tc.yield
// CHECK-NEXT:    } : tensor<f64>
tc.def @scalar() -> (tensor<f64> {tc.name = "s"}) {
  %s = tc.comprehension "s" [] <assign> {
    %x = arith.constant 1.0 : f64
    tc.yield %x : f64
  } : tensor<f64>
  tc.return %s : tensor<f64>
}

// CHECK-LABEL: func.func @integers(
// CHECK-NEXT:    tc.div %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    tc.div unsigned %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    tc.rem %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    tc.rem unsigned %{{.*}}, %{{.*}} : i8
func.func @integers(%x: i32, %y: index, %z: i8) {
  %0 = tc.div %x, %x : i32
  %1 = tc.div unsigned %x, %x : i32
  %2 = tc.rem %y, %y : index
  %3 = tc.rem unsigned %z, %z : i8
  return
}
