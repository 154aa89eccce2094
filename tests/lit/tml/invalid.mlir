// RUN: tc-opt %s --split-input-file --verify-diagnostics

// The comments name the constraints as tml.td numbers them.

// tml.program C1
// expected-error @below {{'tml.program' op expects the attribute 'tml.name' on argument 0}}
tml.program @f(%a: tensor<2xf64>) {
  tml.return
}

// -----

// tml.program C1
// expected-error @below {{'tml.program' op has two arguments named 'a'}}
tml.program @f(%a: tensor<2xf64> {tml.name = "a"}, %b: tensor<2xf64> {tml.name = "a"}) {
  tml.return
}

// -----

// tml.program C2
// expected-error @below {{'tml.program' op expects an argument to be marked 'tml.inout' exactly if a result has its name, 'a'}}
tml.program @f(%a: tensor<2xf64> {tml.name = "a"}) -> (tensor<2xf64> {tml.name = "a"}) {
  tml.return %a : tensor<2xf64>
}

// -----

// tml.program C2
// expected-error @below {{'tml.program' op expects the argument and the result 'a' to have one type, found 'tensor<2xf64>' and 'tensor<f64>'}}
tml.program @f(%a: tensor<2xf64> {tml.name = "a", tml.inout}, %b: tensor<f64> {tml.name = "b"}) -> (tensor<f64> {tml.name = "a"}) {
  tml.return %b : tensor<f64>
}

// -----

// tml.program C3
// expected-error @below {{'tml.program' op expects 'a' to be a tensor of f32 or f64 with positive static extents, found 'tensor<?xf64>'}}
tml.program @f(%a: tensor<?xf64> {tml.name = "a"}) {
  tml.return
}

// -----

// tml.program C3
// expected-error @below {{'tml.program' op expects 'a' to be a tensor of f32 or f64 with positive static extents, found 'tensor<2xi32>'}}
tml.program @f(%a: tensor<2xi32> {tml.name = "a"}) {
  tml.return
}

// -----

// tml.program C4
// expected-error @below {{'tml.program' op expects the extents of 'a' to be its 'tml.extents' rounded up to multiples of 4, found [3] and 'tensor<8xf64>'}}
tml.program @f(%a: tensor<8xf64> {tml.name = "a", tml.extents = array<i64: 3>}) attributes {vector_length = 4} {
  tml.return
}

// -----

tml.program @f(%a: tensor<2xf64> {tml.name = "a"}) -> (tensor<3xf64> {tml.name = "b"}) {
  // expected-error @below {{'tml.return' op expects operands of the types that the program returns}}
  tml.return %a : tensor<2xf64>
}

// -----

// tml.smul C1
tml.program @f(%a: tensor<2xf64> {tml.name = "a"}) {
  // expected-error @below {{'tml.smul' op expects a scalar of the element type of 'tensor<2xf64>', found 'tensor<2xf64>'}}
  %0 = tml.smul %a, %a : tensor<2xf64>, tensor<2xf64>
  tml.return
}

// -----

// tml.sdiv C1
tml.program @f(%a: tensor<2xf64> {tml.name = "a"}, %s: tensor<f32> {tml.name = "s"}) {
  // expected-error @below {{'tml.sdiv' op expects a scalar of the element type of 'tensor<2xf64>', found 'tensor<f32>'}}
  %0 = tml.sdiv %a, %s : tensor<2xf64>, tensor<f32>
  tml.return
}

// -----

// tml.product C1
tml.program @f(%a: tensor<2xf64> {tml.name = "a"}, %b: tensor<3xf64> {tml.name = "b"}) {
  // expected-error @below {{'tml.product' op expects a result of type 'tensor<2x3xf64>', found 'tensor<3x2xf64>'}}
  %0 = tml.product %a, %b : tensor<2xf64>, tensor<3xf64> -> tensor<3x2xf64>
  tml.return
}

// -----

// tml.contract C1
tml.program @f(%a: tensor<2x3xf64> {tml.name = "a"}) {
  // expected-error @below {{'tml.contract' op expects 'dims' to be two dimensions of one extent of 'tensor<2x3xf64>', in ascending order}}
  %0 = tml.contract %a [0, 1] : tensor<2x3xf64> -> tensor<f64>
  tml.return
}

// -----

// tml.contract C1
tml.program @f(%a: tensor<2x2xf64> {tml.name = "a"}) {
  // expected-error @below {{'tml.contract' op expects 'dims' to be two dimensions of one extent of 'tensor<2x2xf64>', in ascending order}}
  %0 = tml.contract %a [1, 0] : tensor<2x2xf64> -> tensor<f64>
  tml.return
}

// -----

// tml.contract C2
tml.program @f(%a: tensor<2x2xf64> {tml.name = "a"}) {
  // expected-error @below {{'tml.contract' op expects a result of type 'tensor<f64>', found 'tensor<2xf64>'}}
  %0 = tml.contract %a [0, 1] : tensor<2x2xf64> -> tensor<2xf64>
  tml.return
}

// -----

// tml.transpose C1
tml.program @f(%a: tensor<2x3xf64> {tml.name = "a"}) {
  // expected-error @below {{'tml.transpose' op expects 'dims' to be two dimensions of 'tensor<2x3xf64>'}}
  %0 = tml.transpose %a [0, 2] : tensor<2x3xf64> -> tensor<3x2xf64>
  tml.return
}

// -----

// tml.transpose C2
tml.program @f(%a: tensor<2x3xf64> {tml.name = "a"}) {
  // expected-error @below {{'tml.transpose' op expects a result of type 'tensor<3x2xf64>', found 'tensor<2x3xf64>'}}
  %0 = tml.transpose %a [0, 1] : tensor<2x3xf64> -> tensor<2x3xf64>
  tml.return
}
