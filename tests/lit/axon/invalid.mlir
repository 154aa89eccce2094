// RUN: tc-opt %s --split-input-file --verify-diagnostics

// axon.program C1
// expected-error @below {{'axon.program' op expects its body to end in 'axon.return'}}
axon.program {
  %0 = axon.number 1 : !axon.any
}

// -----

// axon.program C2
axon.program {
  %0 = axon.number 1 : !axon.any
  // expected-error @below {{'axon.def' op expects an identifier of Axon as name, found '2x'}}
  %1 = axon.def "2x" %0 : !axon.any
  axon.return
}

// -----

// axon.fn C1
axon.program {
  // expected-error @below {{'axon.fn' op expects a name for each of 2 arguments, found 1}}
  %0 = axon.fn ["x"](%x: !axon.any, %y: !axon.any) {
    axon.return %x : !axon.any
  } : !axon.any
  axon.return
}

// -----

// axon.fn C1
axon.program {
  // expected-error @below {{'axon.fn' op expects an annotation for each of 1 arguments, found 2}}
  %0 = axon.fn ["x"](%x: !axon.any) attributes {annotations = ["t", "t"]} {
    axon.return %x : !axon.any
  } : !axon.any
  axon.return
}

// -----

// axon.fn C2
axon.program {
  // expected-error @below {{'axon.fn' op expects 'axon.return' with one value}}
  %0 = axon.fn ["x"](%x: !axon.any) {
    axon.return
  } : !axon.any
  axon.return
}

// -----

// axon.fn C3
axon.program {
  // expected-error @below {{'axon.fn' op expects the type (!axon.any) -> !axon.any or '!axon.any', found () -> !axon.any}}
  %0 = axon.fn ["x"](%x: !axon.any) {
    axon.return %x : !axon.any
  } : () -> !axon.any
  axon.return
}

// -----

// axon.use C1
axon.program {
  %0 = axon.number 1 : !axon.any
  // expected-error @below {{'axon.use' op expects the result of an 'axon.def'}}
  %1 = axon.use %0 : !axon.any -> !axon.any
  axon.return
}

// -----

// axon.builtin C1
axon.program {
  // expected-error @below {{'axon.builtin' op expects the name of a function, found 'sine'}}
  %0 = axon.builtin "sine" : !axon.any
  axon.return
}

// -----

// axon.number C1
axon.program {
  // expected-error @below {{'axon.number' op expects a number of type i64, ui64 or f64, found 1 : i8}}
  %0 = "axon.number"() {value = 1 : i8} : () -> !axon.any
  axon.return
}

// -----

// axon.unpack C1
axon.program {
  %0 = axon.number 1 : !axon.any
  // expected-error @below {{'axon.unpack' op expects at least two parts}}
  %1 = axon.unpack %0 : (!axon.any) -> !axon.any
  axon.return
}

// -----

// axon.call C1
axon.program {
  %0 = axon.builtin "exp" : (!axon.tensor<f32, s>) -> !axon.tensor<f32, s>
  %1 = axon.number 1.0 : !axon.tensor<f32, [2]>
  // expected-error @below {{'axon.call' op expects arguments and result of (!axon.tensor<f32, s>) -> !axon.tensor<f32, s>, found (!axon.tensor<f32, [2]>) -> !axon.any}}
  %2 = axon.call %0(%1) : (!axon.tensor<f32, s>) -> !axon.tensor<f32, s>, (!axon.tensor<f32, [2]>) -> !axon.any
  axon.return
}

// -----

// expected-error @below {{expected '+', '-', '*' or '/'}}
func.func private @shape(!axon.tensor<f32, [(n 1)]>)

// -----

// axon.fn C4
axon.program {
  // expected-error @below {{'axon.fn' op expects types of Axon as annotations, found 't) { x }'}}
  %0 = axon.fn ["x"](%x: !axon.any) attributes {annotations = ["t) { x }"]} {
    axon.return %x : !axon.any
  } : !axon.any
  axon.return
}

// -----

// Options of built-in functions.
axon.program {
  %0 = axon.number 1 : !axon.any
  // expected-error @below {{'axon.reshape' op expects a dimension or a shape as 'shape', found '[2] + 1'}}
  %1 = axon.reshape(%0) {shape = "[2] + 1"} : (!axon.any) -> !axon.any
  axon.return
}

// -----

// Calls of built-in functions C1.
axon.program {
  %0 = axon.number 1 : !axon.any
  // expected-error @below {{'axon.matmul' op expects 2 operands, found 1}}
  %1 = axon.matmul(%0) : (!axon.any) -> !axon.any
  axon.return
}
