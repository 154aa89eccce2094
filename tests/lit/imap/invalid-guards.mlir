// RUN: tc-opt %s --split-input-file --verify-diagnostics

// The comments name the constraints as imap.td numbers them.

// imap.generic C8
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the access of destination 0 has a guard; write the condition as a constraint of the domain}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] where i in [1, 2] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C8: runtime variables in order
func.func @f(%a: tensor<4xf32>, %t: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the guard of runtime variable 0 uses a runtime variable that is not before it}}
  %0 = imap.generic (i){r} domain: i in [0, 3] runtime(%t[i] where r in [0, 2] : tensor<4xi32>)
      ins(%a[r] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C9: only with a guard
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op input 0 has an 'else', but no 'where' before it}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] else 1.0 : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C9: the type of the elements
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op input 0 has elements of 'f32', but '1 : i32' after 'else'}}
  %0 = "imap.generic"(%a, %a) <{domain = #imap.map<(i) -> (), domain: i in [0, 3]>, fills = [1 : i32, unit], maps = [#imap.map<(i) -> (i), domain: i in [-inf, inf], i in [1, 2]>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C9: one per map
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected one fill per map, 2 in all, but found 1}}
  %0 = "imap.generic"(%a, %a) <{domain = #imap.map<(i) -> (), domain: i in [0, 3]>, fills = [1.0 : f32], maps = [#imap.map<(i) -> (i), domain: i in [-inf, inf], i in [1, 2]>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C9: numbers
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected a number or 'unit' per map in 'fills', but found '"one"'}}
  %0 = "imap.generic"(%a, %a) <{domain = #imap.map<(i) -> (), domain: i in [0, 3]>, fills = ["one", unit], maps = [#imap.map<(i) -> (i), domain: i in [-inf, inf], i in [1, 2]>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C9: the bounds of a runtime variable
func.func @f(%a: tensor<4xf32>, %t: tensor<4xi8>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op runtime variable 0 is 0 where its guard fails, outside of its bounds [1, 3]; write another number after 'else'}}
  %0 = imap.generic (i){r} domain: i in [0, 3], r in [1, 3] runtime(%t[i] where i in [0, 2] : tensor<4xi8>)
      ins(%a[r] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic: elements that are no numbers
func.func @f(%a: tensor<4xvector<2xf32>>) -> tensor<4xvector<2xf32>> {
  // expected-error @below {{'imap.generic' op input 0 has a guard and elements of 'vector<2xf32>'; expected numbers}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] where i in [0, 2] : tensor<4xvector<2xf32>>) outs(%a[i] : tensor<4xvector<2xf32>>) {
  ^bb0(%x: vector<2xf32>):
    imap.yield %x : vector<2xf32>
  } -> tensor<4xvector<2xf32>>
  return %0 : tensor<4xvector<2xf32>>
}

// -----

// imap.generic: of complex numbers, what is read where the guard fails is zero
func.func @f(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error @+2 {{expected a number of type 'complex<f32>'}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] where i in [0, 2] else 1.0 : tensor<4xcomplex<f32>>) outs(%a[i] : tensor<4xcomplex<f32>>) {
  ^bb0(%x: complex<f32>):
    imap.yield %x : complex<f32>
  } -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

// The number is an element.
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected a number of type 'f32'; a float has a point, such as '1.0', or is its bits in hexadecimal}}
  %0 = imap.generic (i) domain: i in [0, 3] ins(%a[i] where i in [0, 2] else 1 : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%a: tensor<4xi8>) -> tensor<4xi8> {
  // expected-error @below {{expected a number of type 'i8'; a float has a point, such as '1.0', or is its bits in hexadecimal}}
  %0 = imap.generic (i) domain: i in [0, 3] ins(%a[i] where i in [0, 2] else 256 : tensor<4xi8>) outs(%a[i] : tensor<4xi8>) {
  ^bb0(%x: i8):
    imap.yield %x : i8
  } -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

func.func @f(%a: tensor<4xi8>) -> tensor<4xi8> {
  // expected-error @below {{expected a variable, found 'k'}}
  %0 = imap.generic (i) domain: i in [0, 3] ins(%a[i] where k in [0, 2] : tensor<4xi8>) outs(%a[i] : tensor<4xi8>) {
  ^bb0(%x: i8):
    imap.yield %x : i8
  } -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

func.func @f(%a: tensor<4xi8>) -> tensor<4xi8> {
  // expected-error @below {{expected an index expression and 'in' after it}}
  %0 = imap.generic (i) domain: i in [0, 3] ins(%a[i] where i : tensor<4xi8>) outs(%a[i] : tensor<4xi8>) {
  ^bb0(%x: i8):
    imap.yield %x : i8
  } -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

// An epilogue has no range variables.
func.func @f(%a: tensor<4x5xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the epilogue uses input 1, whose map uses a range variable}}
  %0 = imap.generic (i)[k] domain: i in [0, 3], k in [0, 4]
      ins(%a[i, k], %b[i] where k in [0, 2] : tensor<4x5xf32>, tensor<4xf32>) outs(%b[i] : tensor<4xf32>) fold [add f32] {
  ^bb0(%x: f32, %y: f32):
    imap.yield %x : f32
  } epilogue {
  ^bb0(%s: f32, %x: f32, %y: f32):
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%a: tensor<4x5xf32>, %b: tensor<4xf32>, %t: tensor<5xi32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the epilogue asks for a range variable, which has no value there}}
  %0 = imap.generic (i)[k]{r} domain: i in [0, 3], k in [0, 4] runtime(%t[k] : tensor<5xi32>)
      ins(%a[i, k] where r in [0, 2] : tensor<4x5xf32>) outs(%b[i] : tensor<4xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } epilogue {
  ^bb0(%s: f32, %x: f32):
    %in = imap.inside (rt0 in [0, 1]) : i1
    %y = arith.select %in, %s, %s : f32
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A combiner depends on what it combines alone.
func.func @f(%a: tensor<4x5xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the combiner depends on more than its arguments, in 'imap.inside'; only constants and its arguments are known there}}
  %0 = imap.generic (i)[k] domain: i in [0, 3], k in [0, 4]
      ins(%a[i, k] : tensor<4x5xf32>) outs(%b[i] : tensor<4xf32>) fold [f32 identity 0.0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } combine {
  ^bb0(%s: f32, %x: f32):
    %in = imap.inside (d0 in [0, 1]) : i1
    %y = arith.select %in, %s, %x : f32
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.inside
func.func @f() -> i1 {
  // expected-error @below {{'imap.inside' op expects to stand in an operation with variables, such as 'imap.generic'}}
  %in = imap.inside (d0 in [0, 1]) : i1
  return %in : i1
}

// -----

func.func @f(%a: tensor<4xi1>) -> tensor<4xi1> {
  %0 = imap.generic (i) domain: i in [0, 3] outs(%a[i] : tensor<4xi1>) {
    // expected-error @below {{'imap.inside' op uses dimension variable 1, but the domain has 1}}
    %in = imap.inside (d0 + d1 in [0, 1]) : i1
    imap.yield %in : i1
  } -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

func.func @f(%a: tensor<4xi1>) -> tensor<4xi1> {
  %0 = imap.generic (i) domain: i in [0, 3] outs(%a[i] : tensor<4xi1>) {
    // expected-error @below {{expected a variable, found 'i'}}
    %in = imap.inside (i in [0, 1]) : i1
    imap.yield %in : i1
  } -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

func.func @f(%a: tensor<4xi1>) -> tensor<4xi1> {
  %0 = imap.generic (i) domain: i in [0, 3] outs(%a[i] : tensor<4xi1>) {
    // expected-error @below {{'imap.inside' op expected a map of constraints, without results and bounds of variables}}
    %in = "imap.inside"() <{map = #imap.map<(d0) -> (d0)>}> : () -> i1
    imap.yield %in : i1
  } -> tensor<4xi1>
  return %0 : tensor<4xi1>
}
