// RUN: tc-opt %s --split-input-file --verify-diagnostics

hlo.computation @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  // expected-error @below {{'hlo.add' op 'add': expected operands of the same shape, found f32[2] and f32[3]}}
  %z = hlo.add %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  hlo.return %z : tensor<2xf32>
}

// -----

hlo.computation @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error @below {{'hlo.negate' op 'negate': expected shape f32[2] from operands and attributes, found f32[3]}}
  %z = hlo.negate %x : (tensor<2xf32>) -> tensor<3xf32>
  hlo.return %z : tensor<3xf32>
}

// -----

hlo.computation @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'hlo.slice' op 'slice' is "{[0:2": expected ']' at the end of a range, found end of text}}
  %z = hlo.slice %x {slice = "{[0:2"} : (tensor<2xf32>) -> tensor<2xf32>
  hlo.return %z : tensor<2xf32>
}

// -----

hlo.computation @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'hlo.compare' op 'direction' is "SO": expected 'direction' to be one of EQ, NE, GE, GT, LE, LT, found 'SO'}}
  %z = hlo.compare %x, %x {direction = "SO"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  hlo.return %x : tensor<2xf32>
}

// -----

hlo.computation @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'hlo.broadcast' op attribute 'dimensions' failed to satisfy constraint: i64 dense array attribute}}
  %z = hlo.broadcast %x {dimensions = "{0}"} : tensor<2xf32>
  hlo.return %z : tensor<2xf32>
}

// -----

hlo.computation @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'hlo.call' op '@f' is no computation of this module}}
  %z = hlo.call %x {to_apply = @f} : (tensor<2xf32>) -> tensor<2xf32>
  hlo.return %z : tensor<2xf32>
}

// -----

// expected-error @below {{'hlo.computation' op refers to '@main', which leads back to it}}
hlo.computation @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %z = hlo.call %x {to_apply = @main} : (tensor<2xf32>) -> tensor<2xf32>
  hlo.return %z : tensor<2xf32>
}

// -----

hlo.computation @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error @below {{'hlo.return' op returns tensor<2xf32>, which is not the result's type}}
  hlo.return %x : tensor<2xf32>
}

// -----

hlo.computation @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'arith.negf' op is no instruction of HLO}}
  %z = arith.negf %x : tensor<2xf32>
  hlo.return %z : tensor<2xf32>
}

// -----

// expected-error @below {{'hlo.computation' op parameter 0: expected an array, a tuple or a token of HLO, but found index}}
hlo.computation @main(%x: index) -> tensor<f32> {
  %z = hlo.constant dense<0.0> : tensor<f32>
  hlo.return %z : tensor<f32>
}

// -----

// expected-error @below {{'hlo.computation' op parameter 0: expected a layout of 1 dimensions, but found #hlo.layout<[0, 1]>}}
hlo.computation @main(%x: tensor<2xf32, #hlo.layout<[0, 1]>>) -> tensor<f32> {
  %z = hlo.constant dense<0.0> : tensor<f32>
  hlo.return %z : tensor<f32>
}

// -----

// expected-error @below {{'builtin.module' op '@gone' is no computation of this module}}
module attributes {hlo.entry = @gone} {
  hlo.computation @main(%x: tensor<f32>) -> tensor<f32> {
    hlo.return %x : tensor<f32>
  }
}

// -----

module attributes {hlo.entry_computation_layout = (tensor<f32>) -> tensor<2xf32>} {
  // expected-error @below {{'entry_computation_layout' gives the result the shape f32[2], but computation 'main' gives f32[]}}
  hlo.computation @main(%x: tensor<f32>) -> tensor<f32> {
    hlo.return %x : tensor<f32>
  }
}

// -----

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{'hlo.negate' op expects parent op 'hlo.computation'}}
  %z = hlo.negate %x : tensor<f32>
  return %z : tensor<f32>
}

// -----

hlo.computation @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{expected the types of 2 operands and one result}}
  %z = hlo.add %x, %x : (tensor<f32>) -> tensor<f32>
  hlo.return %z : tensor<f32>
}

// -----

hlo.computation @main(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{expected 'value' to be the elements of an array, or a list of such for a tuple}}
  %z = hlo.constant unit
  hlo.return %x : tensor<f32>
}
