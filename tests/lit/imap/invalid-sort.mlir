// RUN: tc-opt %s --split-input-file --verify-diagnostics

// The comments name the constraints as imap.td numbers them.

// imap.sort S1: at least one input
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @below {{'imap.sort' op expected at least one input}}
  %r = "imap.sort"(%x) <{dim = 0 : i64, operandSegmentSizes = array<i32: 0, 1>}> ({
    %l = arith.constant false
    imap.yield %l : i1
  }) : (tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

// A sort has no schedule.
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @below {{'imap.sort' op has no variables that a schedule could name; remove 'imap.schedule'}}
  %r = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) attributes {imap.schedule = #imap.schedule<tile [i = 4]>} {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

// imap.sort S1: a destination per input, and at most one more
func.func @f(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  // expected-error @below {{'imap.sort' op has 1 inputs, but 3 destinations; expected one destination per input, and at most one more}}
  %r:3 = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%x, %x, %x : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
  return %r#0, %r#1, %r#2 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}

// -----

// imap.sort S1: the same element type
func.func @f(%x: tensor<4xi32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.sort' op destination 0 has elements of 'f32', but input 0 of 'i32'}}
  %r = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%y : tensor<4xf32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// imap.sort S1: places are integers
func.func @f(%x: tensor<4xi32>, %y: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xf32>) {
  // expected-error @below {{'imap.sort' op the last destination, for the places of the items, has elements of 'f32'; expected integers}}
  %r:2 = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%x, %y : tensor<4xi32>, tensor<4xf32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<4xi32>, tensor<4xf32>
  return %r#0, %r#1 : tensor<4xi32>, tensor<4xf32>
}

// -----

// imap.sort S2: a dimension of the inputs
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @below {{'imap.sort' op expected 'dim' to be one of the 1 dimensions of the inputs}}
  %r = imap.sort dim = 1 ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

// imap.sort S2: inputs of one shape
func.func @f(%x: tensor<4xi32>, %y: tensor<5xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  // expected-error @below {{'imap.sort' op input 1 has another shape than input 0}}
  %r:2 = imap.sort dim = 0 ins(%x, %y : tensor<4xi32>, tensor<5xi32>) outs(%x, %x : tensor<4xi32>, tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<4xi32>, tensor<4xi32>
  return %r#0, %r#1 : tensor<4xi32>, tensor<4xi32>
}

// -----

// imap.sort S2: destinations of one shape
func.func @f(%x: tensor<4xi32>, %y: tensor<3xi32>) -> (tensor<4xi32>, tensor<3xi32>) {
  // expected-error @below {{'imap.sort' op destination 1 has another shape than destination 0}}
  %r:2 = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%x, %y : tensor<4xi32>, tensor<3xi32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<4xi32>, tensor<3xi32>
  return %r#0, %r#1 : tensor<4xi32>, tensor<3xi32>
}

// -----

// imap.sort S2: other dimensions agree
func.func @f(%x: tensor<4x5xi32>, %y: tensor<3x5xi32>) -> tensor<3x5xi32> {
  // expected-error @below {{'imap.sort' op the destinations must have the shape of the inputs, except in dimension 1}}
  %r = imap.sort dim = 1 ins(%x : tensor<4x5xi32>) outs(%y : tensor<3x5xi32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<3x5xi32>
  return %r : tensor<3x5xi32>
}

// -----

// imap.sort S2: not longer
func.func @f(%x: tensor<4xi32>, %y: tensor<5xi32>) -> tensor<5xi32> {
  // expected-error @below {{'imap.sort' op the destinations hold 5 items per row, but the inputs have 4}}
  %r = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%y : tensor<5xi32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %b : i32
    imap.yield %l : i1
  } -> tensor<5xi32>
  return %r : tensor<5xi32>
}

// -----

// imap.sort S3: two elements per input
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @below {{'imap.sort' op expected the arguments of the comparator to be (i32, i32), but found (i32)}}
  %r = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) {
  ^bb0(%a: i32):
    %l = arith.cmpi slt, %a, %a : i32
    imap.yield %l : i1
  } -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

// imap.sort S3: one truth value
func.func @f(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @below {{'imap.sort' op expected the comparator to yield (i1), but found 'imap.yield' of (i32)}}
  %r = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    imap.yield %a : i32
  } -> tensor<4xi32>
  return %r : tensor<4xi32>
}

// -----

// imap.sort S3: nothing but the arguments
func.func @f(%x: tensor<4xi32>, %y: i32) -> tensor<4xi32> {
  // expected-error @below {{'imap.sort' op the comparator depends on more than its arguments, in 'arith.cmpi'; only constants and its arguments are known there}}
  %r = imap.sort dim = 0 ins(%x : tensor<4xi32>) outs(%x : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %l = arith.cmpi slt, %a, %y : i32
    imap.yield %l : i1
  } -> tensor<4xi32>
  return %r : tensor<4xi32>
}
