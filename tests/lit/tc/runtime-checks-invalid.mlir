// RUN: not tc-opt %s --tc-runtime-checks=kind=some 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: tc-opt %s --tc-runtime-checks --split-input-file --verify-diagnostics

// KIND: error: expected 'kind' to be 'shape', 'bounds' or 'all', but found 'some'
tc.def @ranges_first(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})
    -> (tensor<?xf32> {tc.name = "O"}) {
  // expected-error @+2 {{'tc.comprehension' op has no domain yet}}
  // expected-note @+1 {{try running 'tc-infer-ranges' first}}
  %0 = tc.comprehension "O" ["i"] <assign> {
  ^bb0(%i: index):
    %1 = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %1 : f32
  } : tensor<?xf32>
  tc.return %0 : tensor<?xf32>
}

// -----

tc.def @sizes_of_another(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})
    -> (tensor<?xf32> {tc.name = "O"}) {
  // expected-error @+1 {{has a domain with 2 runtime variables, but its function has 1 size variables}}
  %0 = tc.comprehension "O" ["i"] <assign> domain <(i){N, M} -> (i), domain: i in [0, M - 1], N in [1, 9], M in [1, 9]> {
  ^bb0(%i: index):
    %1 = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %1 : f32
  } : tensor<?xf32>
  tc.return %0 : tensor<?xf32>
}

// -----

tc.def @no_bound(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})
    -> (tensor<?xf32> {tc.name = "O"}) {
  // expected-error @+1 {{expects bounds on both sides of every variable of its domain}}
  %0 = tc.comprehension "O" ["i"] <assign> domain <(i){N} -> (i), domain: N in [1, 9]> {
  ^bb0(%i: index):
    %1 = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %1 : f32
  } : tensor<?xf32>
  tc.return %0 : tensor<?xf32>
}

// -----

tc.def @in_a_loop(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})
    -> (tensor<?xf32> {tc.name = "O"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tc.size "N"
  %0 = tc.comprehension "O" ["i"] <assign> domain <(i){N} -> (i), domain: i in [0, N - 1], N in [1, 2147483647]> {
  ^bb0(%i: index):
    %zero = arith.constant 0.0 : f32
    %1 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> f32 {
      // expected-error @+1 {{'tc.read' op stands in 'scf.for': expected only 'scf.if' around what is checked}}
      %2 = tc.read %A[%k] : tensor<?xf32> -> f32
      %3 = arith.addf %sum, %2 : f32
      scf.yield %3 : f32
    }
    tc.yield %1 : f32
  } : tensor<?xf32>
  tc.return %0 : tensor<?xf32>
}
