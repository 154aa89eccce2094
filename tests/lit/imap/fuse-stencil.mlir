// RUN: tc-opt --infer-ranges --fuse %s | FileCheck %s
// RUN: tc-opt --infer-ranges --fuse --remarks-filter=imap-fuse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A chain of three pointwise stencil stages becomes one operation that reads the input at
// seven offsets; both temporaries are gone.
// CHECK-LABEL: func.func @blur
// CHECK:         imap.generic (i){N} domain: i in [3, N - 4], N in [1, 2147483647]
// CHECK-SAME:      ins(%A[i - 3], %A[i - 2], %A[i - 1], %A[i], %A[i + 1], %A[i + 2], %A[i + 3] :
// CHECK-SAME:      outs(%{{.*}}[i - 3] :
// CHECK-NOT:     imap.generic
// REMARK:      [Analysis] temporaries {{.*}} BytesAfter=0, BytesBefore="8*N - 24", Fused=2, Generics=1
tc.def @blur(%arg0: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "D"}) {
  %0 = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%arg1: index):
    %3 = imap.apply <(d0) -> (d0 - 1)>(%arg1) : index
    %4 = tc.read %arg0[%3] {text = "A(i-1)"} : tensor<?xf32> -> f32
    %5 = tc.read %arg0[%arg1] {text = "A(i)"} : tensor<?xf32> -> f32
    %6 = arith.addf %4, %5 : f32
    %7 = imap.apply <(d0) -> (d0 + 1)>(%arg1) : index
    %8 = tc.read %arg0[%7] {text = "A(i+1)"} : tensor<?xf32> -> f32
    %9 = arith.addf %6, %8 : f32
    %cst = arith.constant 2.500000e-01 : f32
    %10 = arith.mulf %9, %cst : f32
    tc.yield %10 : f32
  } : tensor<?xf32>
  %1 = tc.comprehension "C" ["i"] <assign> {
  ^bb0(%arg1: index):
    %3 = imap.apply <(d0) -> (d0 - 1)>(%arg1) : index
    %4 = tc.read %0[%3] {text = "B(i-1)"} : tensor<?xf32> -> f32
    %5 = tc.read %0[%arg1] {text = "B(i)"} : tensor<?xf32> -> f32
    %6 = arith.addf %4, %5 : f32
    %7 = imap.apply <(d0) -> (d0 + 1)>(%arg1) : index
    %8 = tc.read %0[%7] {text = "B(i+1)"} : tensor<?xf32> -> f32
    %9 = arith.addf %6, %8 : f32
    %cst = arith.constant 2.500000e-01 : f32
    %10 = arith.mulf %9, %cst : f32
    tc.yield %10 : f32
  } : tensor<?xf32>
  %2 = tc.comprehension "D" ["i"] <assign> {
  ^bb0(%arg1: index):
    %3 = imap.apply <(d0) -> (d0 - 1)>(%arg1) : index
    %4 = tc.read %1[%3] {text = "C(i-1)"} : tensor<?xf32> -> f32
    %5 = tc.read %1[%arg1] {text = "C(i)"} : tensor<?xf32> -> f32
    %6 = arith.addf %4, %5 : f32
    %7 = imap.apply <(d0) -> (d0 + 1)>(%arg1) : index
    %8 = tc.read %1[%7] {text = "C(i+1)"} : tensor<?xf32> -> f32
    %9 = arith.addf %6, %8 : f32
    %cst = arith.constant 2.500000e-01 : f32
    %10 = arith.mulf %9, %cst : f32
    tc.yield %10 : f32
  } : tensor<?xf32>
  tc.return %2 : tensor<?xf32>
}
