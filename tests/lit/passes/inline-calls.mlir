// RUN: tc-opt %s --inline-calls | FileCheck %s
// RUN: not tc-opt %s --inline-calls=max-operations=9 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not tc-opt %s --inline-calls=max-operations=x 2>&1 | FileCheck %s --check-prefix=OPTION

// Private functions are built where they are called, from the inside out. A public one may have other callers.
// LIMIT: error: 'func.call' op more than 9 operations are needed once calls are built in place
// OPTION: 'max-operations' expects a number
// CHECK-NOT:   func.func private
// CHECK-LABEL: func.func @f(
// CHECK:         scf.if
// CHECK:           arith.addf
// CHECK-NEXT:      arith.mulf
// CHECK:         arith.addf
// CHECK:         call @public
func.func @f(%x: f32, %c: i1) -> f32 {
  %y = scf.if %c -> f32 {
    %y = func.call @outer(%x) : (f32) -> f32
    scf.yield %y : f32
  } else {
    scf.yield %x : f32
  }
  %z = func.call @inner(%y) : (f32) -> f32
  %w = func.call @public(%z) : (f32) -> f32
  return %w : f32
}

func.func private @outer(%x: f32) -> f32 {
  %y = func.call @inner(%x) : (f32) -> f32
  %z = arith.mulf %y, %x : f32
  return %z : f32
}

func.func private @inner(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}

func.func @public(%x: f32) -> f32 {
  return %x : f32
}
