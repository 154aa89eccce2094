// RUN: tc-opt %s --canonicalize --cse | FileCheck %s

// Reads of the same element, sizes and extents are pure: one of each is left, and none
// of what nothing uses. A statement whose result is not used goes too.
// CHECK-LABEL: tc.def @f
// CHECK-SAME:    %[[A:.*]]: tensor<?xf32>
// CHECK-NOT:     "unused"
// CHECK:         tc.comprehension "B" ["i"] <assign> {
// CHECK-NEXT:    ^bb0(%[[I:.*]]: index):
// CHECK-NEXT:      %[[X:.*]] = tc.read %[[A]][%[[I]]] : tensor<?xf32> -> f32
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[X]], %[[X]] : f32
// CHECK-NEXT:      tc.yield %[[S]] : f32
// CHECK-NOT:     tc.size
// CHECK-NOT:     tc.extent
// CHECK:         tc.return
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  %n = tc.size "N"
  %e = tc.extent %A, 0 : tensor<?xf32>
  %unused = tc.comprehension "unused" ["i"] <assign> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  %B = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    %y = tc.read %A[%i] : tensor<?xf32> -> f32
    %q = tc.div %i, %e : index
    %s = arith.addf %x, %y : f32
    tc.yield %s : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}
