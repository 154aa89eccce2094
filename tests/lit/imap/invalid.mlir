// RUN: tc-opt %s --split-input-file --verify-diagnostics

// The comments name the constraints as imap.td numbers them.

// imap.generic C1: the variables of the domain
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op map 0 has 2 dimension, 0 range and 0 runtime variables, but the domain has 1 dimension, 0 range and 0 runtime variables}}
  %0 = "imap.generic"(%a, %a) <{accumulators = [], domain = #imap.map<(i) -> (), domain: i in [0, 3]>, maps = [#imap.map<(i, j) -> (i)>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C1: one result per dimension
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op map 1 has 2 results, but its operand has 1 dimensions}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i, i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C1: one map per operand
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected one map per input, destination and runtime tensor, 2 in all, but found 1}}
  %0 = "imap.generic"(%a, %a) <{accumulators = [], domain = #imap.map<(i) -> (), domain: i in [0, 3]>, maps = [#imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C1: maps only
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op attribute 'maps' failed to satisfy constraint: indexing maps}}
  %0 = "imap.generic"(%a, %a) <{accumulators = [], domain = #imap.map<(i) -> (), domain: i in [0, 3]>, maps = [affine_map<(i) -> (i)>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C2: one operand per runtime variable
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the domain has 1 runtime variables, but 0 operands are given for them}}
  %0 = imap.generic (i){N} domain: i in [0, N - 1], N in [1, 4]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C2: integers
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op runtime variable 0 is read from a 'tensor<4xf32>'; expected a tensor of integers}}
  %0 = imap.generic (i){o} domain: i in [0, 3], o in [0, 3]
      runtime(%a[i] : tensor<4xf32>) ins(%a[o] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C2: a table is read at runtime variables before its own
func.func @f(%a: tensor<4xf32>, %t: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the map of runtime variable 0 uses a runtime variable that is not before it}}
  %0 = imap.generic (i){o} domain: i in [0, 3], o in [0, 3]
      runtime(%t[o] : tensor<4xi32>) ins(%a[o] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C3
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the map of destination 0 uses a range variable}}
  %0 = imap.generic ()[k] domain: k in [0, 3]
      ins(%a[k] : tensor<4xf32>) outs(%a[k] : tensor<4xf32>) fold [add f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: accumulators without an epilogue
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op has accumulators of (f32, f32) and destinations of (f32); an epilogue must map the one to the other}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [add f32, add f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x, %x : f32, f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: a region combines
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op has accumulators without a combiner; expected a region 'combine'}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [f32 identity 0.0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: combiners with names and without
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected all accumulators to name a combiner, or none}}
  %0:2 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i], %a[i] : tensor<4xf32>, tensor<4xf32>) fold [f32 identity 0.0, add f32] {
  ^bb0(%x: f32):
    imap.yield %x, %x : f32, f32
  } combine {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32):
    imap.yield %p, %q : f32, f32
  } -> tensor<4xf32>, tensor<4xf32>
  return %0#0 : tensor<4xf32>
}

// -----

// imap.generic C5: a combiner depends on what it combines alone
func.func @f(%a: tensor<4xf32>, %scale: f32) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the combiner depends on more than its arguments, in 'arith.mulf'; only constants and its arguments are known there}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [f32 identity 0.0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } combine {
  ^bb0(%p: f32, %q: f32):
    %r = arith.mulf %q, %scale : f32
    imap.yield %r : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: what is accumulated is a number
func.func @f(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error @below {{'imap.generic' op accumulator 0 has type 'complex<f32>'; expected a float, a signless integer or an index}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xcomplex<f32>>) outs(%a[i] : tensor<4xcomplex<f32>>) fold [add complex<f32>] {
  ^bb0(%x: complex<f32>):
    imap.yield %x : complex<f32>
  } -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

// imap.generic C4: an identity is a number
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op accumulator 0 needs a number of type 'f32'}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [f32 identity "x"] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } combine {
  ^bb0(%p: f32, %q: f32):
    imap.yield %p : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: ranges have no value in an epilogue
func.func @f(%a: tensor<4x3xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the epilogue asks for a range variable, which has no value there}}
  %0 = imap.generic (i)[k] domain: i in [0, 3], k in [0, 2]
      ins(%a[i, k] : tensor<4x3xf32>) outs(%e[i] : tensor<4xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } epilogue {
  ^bb0(%s: f32, %x: f32):
    %k = imap.index range 0
    %n = arith.index_cast %k : index to i32
    %f = arith.sitofp %n : i32 to f32
    %t = arith.addf %s, %f : f32
    imap.yield %t : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: the type of the start
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op accumulator 0 of 'f64' starts from destination 0 of 'f32'}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [add f64 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: two accumulators in one destination
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op two accumulators start from destination 0}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [add f32 from outs 0, mul f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x, %x : f32, f32
  } epilogue {
  ^bb0(%s: f32, %p: f32, %x: f32):
    imap.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: a destination that is there
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op accumulator 0 starts from destination 1, but there are 1}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [add f32 from outs 1] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: an epilogue needs a fold
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op has an epilogue, but no 'fold' before it}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } epilogue {
  ^bb0(%y: f32, %x: f32):
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: combiners only
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = imap.generic (i) domain: i in [0, 3]
      // expected-error @below {{'sub' is no combiner; expected 'add', 'mul', 'minf', 'maxf', 'minimumf', 'maximumf', 'mins', 'maxs', 'minu', 'maxu', 'and' or 'or', or a type and 'identity'}}
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [sub f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: map form has no range variables
func.func @f(%a: tensor<4x4xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op has range variables, but no 'fold' over them}}
  %0 = imap.generic (i)[k] domain: i in [0, 3], k in [0, 3]
      ins(%a[i, k] : tensor<4x4xf32>) outs(%e[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C4: a combiner of the element type
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the combiner 'maxs' does not work on 'f32'}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [maxs f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: arguments of the body
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected the arguments of the body to be (f32), but found (f64)}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f64):
    %y = arith.truncf %x : f64 to f32
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: what the body yields
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected the body to yield (f32), but found 'imap.yield' of (f32, f32)}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x, %x : f32, f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: how the body ends
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected the body to end in 'imap.yield'}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: arguments of the epilogue, folded values first
func.func @f(%a: tensor<4xf32>, %b: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected the arguments of the epilogue to be (f32, i32), but found (i32, f32)}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%b[i] : tensor<4xi32>) outs(%a[i] : tensor<4xf32>) fold [add f32 from outs 0] {
  ^bb0(%x: i32):
    %y = arith.sitofp %x : i32 to f32
    imap.yield %y : f32
  } epilogue {
  ^bb0(%x: i32, %y: f32):
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: the epilogue comes after the reduction
func.func @f(%a: tensor<4x4xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op the epilogue uses input 0, whose map uses a range variable}}
  %0 = imap.generic (i)[k] domain: i in [0, 3], k in [0, 3]
      ins(%a[i, k] : tensor<4x4xf32>) outs(%e[i] : tensor<4xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } epilogue {
  ^bb0(%s: f32, %x: f32):
    %y = arith.addf %s, %x : f32
    imap.yield %y : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C6: dimension variables
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op dimension variable 0 of the domain has no bounds}}
  %0 = imap.generic (i)
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C6: range variables, on both sides
func.func @f(%a: tensor<4xf32>, %e: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{'imap.generic' op range variable 0 of the domain has no bounds}}
  %0 = imap.generic ()[k] domain: k in [0, inf]
      ins(%a[k] : tensor<4xf32>) outs(%e[] : tensor<f32>) fold [add f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// imap.generic: a domain has no results
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'imap.generic' op expected a domain without results}}
  %0 = "imap.generic"(%a, %a) <{accumulators = [], domain = #imap.map<(i) -> (i), domain: i in [0, 3]>, maps = [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic: results have the types of the destinations
func.func @f(%a: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @below {{'imap.generic' op expected type of operand #1 ('tensor<4xf32>') to match type of corresponding result ('tensor<5xf32>')}}
  %0 = imap.generic (i) domain: i in [0, 3]
      ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// imap.generic C7: one value per element
func.func @f(%a: tensor<4xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @below {{'imap.generic' op the map of destination 0 does not use dimension variable 1, so that several values are meant for one element; make it a range variable}}
  %0 = imap.generic (i, j) domain: i in [0, 2], j in [0, 3]
      ins(%a[j] : tensor<4xf32>) outs(%b[i] : tensor<3xf32>) fold [add f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// imap.index: in an imap.generic
func.func @f() -> index {
  // expected-error @below {{'imap.index' op expects to stand in an operation with variables, such as 'imap.generic'}}
  %0 = imap.index dim 0
  return %0 : index
}

// -----

// imap.index: of a variable that there is
func.func @f(%a: tensor<4xindex>) -> tensor<4xindex> {
  %0 = imap.generic (i) domain: i in [0, 3]
      outs(%a[i] : tensor<4xindex>) {
    // expected-error @below {{'imap.index' op asks for range variable 0, but the domain has 0}}
    %i = imap.index range 0
    imap.yield %i : index
  } -> tensor<4xindex>
  return %0 : tensor<4xindex>
}

// -----

// imap.index: by a number that is not negative
func.func @f(%a: tensor<4xindex>) -> tensor<4xindex> {
  %0 = imap.generic (i) domain: i in [0, 3]
      outs(%a[i] : tensor<4xindex>) {
    // expected-error @below {{'imap.index' op attribute 'number' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
    %i = imap.index dim -1
    imap.yield %i : index
  } -> tensor<4xindex>
  return %0 : tensor<4xindex>
}

// -----

// imap.apply: one operand per variable
func.func @f(%i: index) -> index {
  // expected-error @below {{'imap.apply' op expected one operand per variable of the map, 2 in all, but found 1}}
  %0 = imap.apply #imap.map<(d0)[s0] -> (d0 + s0)>(%i) : index
  return %0 : index
}

// -----

// imap.apply: one result per result
func.func @f(%i: index) -> index {
  // expected-error @below {{'imap.apply' op expected one result per result of the map, 2 in all, but found 1}}
  %0 = imap.apply #imap.map<(d0) -> (d0, d0)>(%i) : index
  return %0 : index
}

// -----

// imap.builtin: a known name
func.func @f(%x: f32) -> f32 {
  // expected-error @below {{'imap.builtin' op there is no built-in function "frobnicate"}}
  %0 = imap.builtin "frobnicate"(%x) : f32
  return %0 : f32
}

// -----

// imap.builtin: as many operands as it has arguments
func.func @f(%x: f32) -> f32 {
  // expected-error @below {{'imap.builtin' op built-in function "pow" takes 2 arguments, but found 1}}
  %0 = imap.builtin "pow"(%x) : f32
  return %0 : f32
}

// -----

// imap.builtin: the same type everywhere
func.func @f(%x: f32) -> f32 {
  // expected-error @below {{'imap.builtin' op requires the same type for all operands and results}}
  %0 = "imap.builtin"(%x) {name = "sqrt"} : (f32) -> f64
  return %x : f32
}

// -----

// imap.check: a condition
// expected-note @below {{prior use here}}
func.func @f(%x: i32) {
  // expected-error @below {{use of value '%x' expects different type than prior uses: 'i1' vs 'i32'}}
  imap.check %x, "N <= M"
  return
}

// -----

// expected-error @+2 {{expected one of [assign, add, mul, minf, maxf, mins, maxs, minu, maxu, and, or, minimumf, maximumf, custom] for the operation of a combiner, got: sub}}
// expected-error @+1 {{failed to parse Imap_CombinerAttr parameter 'kind'}}
#combiner = #imap.combiner<sub>

// -----

// expected-error @+2 {{expected one of [outs, identity] for the start of an accumulation, got: zero}}
// expected-error @+1 {{failed to parse Imap_CombinerAttr parameter 'start'}}
#combiner = #imap.combiner<add from zero>

// -----

// expected-error @+2 {{expected one of [dim, range] for the kind of a variable, got: runtime}}
// expected-error @+1 {{failed to parse Imap_VariableKindAttr parameter 'value'}}
#variable = #imap<variable runtime>

// -----

func.func @two_epilogues(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected at most one epilogue, but found 2}}
  %0 = "imap.generic"(%x, %x) <{accumulators = [#imap.acc<add f32>], domain = #imap.map<(i) -> (), domain: i in [0, 3]>, maps = [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%a: f32):
    imap.yield %a : f32
  }, {
  ^bb0(%s: f32, %a: f32):
    imap.yield %s : f32
  }, {
  ^bb0(%s: f32, %a: f32):
    imap.yield %s : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @ordered_map(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is 'ordered', but has no 'fold'}}
  %0 = "imap.generic"(%x, %x) <{ordered, domain = #imap.map<(i) -> (), domain: i in [0, 3]>, maps = [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%a: f32):
    imap.yield %a : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic: bounds of runtime variables are known one after the other
func.func @circular_bounds(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  // expected-error @+1 {{the bounds of runtime variable 1 depend on each other in a circle; write them over other variables}}
  %0 = imap.generic (i){a, b, c} domain: i in [0, 3], a in [0, 3], b in [0, c], c in [a, b + 1]
      runtime(%n, %n, %n : index, index, index) ins(%x[i] : tensor<4xf32>) outs(%x[i] : tensor<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// imap.generic C5: no side effects
func.func @stores(%x: memref<4xf32>, %y: memref<f32>) {
  // expected-error @+1 {{the body has a side effect, in 'memref.store'; it may only compute values and read}}
  imap.generic (i) domain: i in [0, 3] ins(%x[i] : memref<4xf32>) outs(%x[i] : memref<4xf32>) {
  ^bb0(%a: f32):
    %positive = arith.cmpf ogt, %a, %a : f32
    scf.if %positive {
      memref.store %a, %y[] : memref<f32>
    }
    imap.yield %a : f32
  }
  return
}

// -----

// imap.scatter C5: neither in a region that combines
func.func @combines(%x: memref<4xf32>, %y: memref<f32>) {
  // expected-error @+1 {{the combiner has a side effect, in 'memref.store'; it may only compute values and read}}
  imap.scatter (i) domain: i in [0, 3] ins(%x[i] : memref<4xf32>) outs(%x[0] : memref<4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } combine {
  ^bb0(%p: f32, %q: f32):
    memref.store %q, %y[] : memref<f32>
    imap.yield %q : f32
  }
  return
}
