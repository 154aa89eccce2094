// RUN: tc-opt %s --convert-results-to-destinations --split-input-file --verify-diagnostics

func.func private @declared(tensor<8xf32>) -> tensor<8xf32>
func.func @no_body(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{calls a function that has no body; inline it, for instance with 'tc-opt --inline --symbol-dce'}}
  %r = func.call @declared(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func @public(%a: tensor<8xf32>) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
func.func @not_private(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{calls a function that is not private}}
  %r = func.call @public(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

func.func private @open(%a: tensor<?xf32>) -> tensor<?xf32> {
  return %a : tensor<?xf32>
}
func.func @open_result(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{calls a function that gives results other than tensors of constant shapes}}
  %r = func.call @open(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

func.func private @checked(%a: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  imap.check %c, "c holds"
  return %a : tensor<8xf32>
}
func.func @check_inside(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c = arith.constant true
  // expected-error@+1 {{calls a function that has an 'imap.check'}}
  %r = func.call @checked(%a, %c) : (tensor<8xf32>, i1) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// expected-error@+1 {{calls itself, directly or through others; use a loop}}
func.func private @recursive(%a: tensor<8xf32>) -> tensor<8xf32> {
  %r = func.call @recursive(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
