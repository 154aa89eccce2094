// Each part is verified, run and printed on its own; errors name lines of the whole file.
// RUN: tc-opt %s --split-input-file --infer-ranges --verify-diagnostics | FileCheck %s
// RUN: not tc-opt %s --split-input-file --infer-ranges 2>&1 | FileCheck %s --check-prefix=LINES

// CHECK-LABEL: tc.def @first
// CHECK:         domain <(i){N} -> (i)
tc.def @first(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  %B = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

tc.def @second(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // LINES: split-input-file.mlir:[[#@LINE+5]]:8: error: cannot infer the range of index variable 'i'
  // expected-error @+4 {{cannot infer the range of index variable 'i'}}
  // expected-note @+3 {{no access is indexed by 'i'}}
  // expected-note @+2 {{try a range for it: 'where i in 0:I'}}
  %B = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%i: index):
    %x = arith.constant 1.0 : f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @third
func.func @third() {
  return
}
