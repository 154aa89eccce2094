// RUN: tc-opt %s --split-input-file --verify-diagnostics

// The comments name the constraints as tc.td numbers them.

// tc.def C1: arguments have names
// expected-error @below {{'tc.def' op expects the attribute 'tc.name' on argument 0}}
tc.def @f(%A: tensor<?xf32> {tc.sizes = ["N"]}) {
  tc.return
}

// -----

// tc.def C1: an empty name is none
// expected-error @below {{'tc.def' op expects the attribute 'tc.name' on argument 0}}
tc.def @f(%A: tensor<?xf32> {tc.name = "", tc.sizes = ["N"]}) {
  tc.return
}

// -----

// tc.def C1: results have names
// expected-error @below {{'tc.def' op expects the attribute 'tc.name' on every result}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> tensor<?xf32> {
  tc.return %A : tensor<?xf32>
}

// -----

// tc.def C1: names of arguments are unique
// expected-error @below {{'tc.def' op has two arguments named 'A'}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]},
          %B: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) {
  tc.return
}

// -----

// tc.def C1: names of results are unique
// expected-error @below {{'tc.def' op has two outputs of the same name}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})
    -> (tensor<?xf32> {tc.name = "B"}, tensor<?xf32> {tc.name = "B"}) {
  tc.return %A, %A : tensor<?xf32>, tensor<?xf32>
}

// -----

// tc.def C1: only an argument that an output starts from has its name
// expected-error @below {{'tc.def' op expects an argument to be marked 'tc.inout' exactly if an output has its name, 'A'}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})
    -> (tensor<?xf32> {tc.name = "A"}) {
  tc.return %A : tensor<?xf32>
}

// -----

// tc.def C2: a dynamic dimension has a name
// expected-error @below {{'tc.def' op expects 'tc.sizes' of argument 0 to have one entry per dimension of 'tensor<?xf32>': the extent (1 to 2147483647) of a static one, a name for a dynamic one}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = [4]}) {
  tc.return
}

// -----

// tc.def C2: a static dimension has its extent
// expected-error @below {{'tc.def' op expects 'tc.sizes' of argument 1 to have one entry per dimension of 'tensor<4xf32>'}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]},
          %B: tensor<4xf32> {tc.name = "B", tc.sizes = [5]}) {
  tc.return
}

// -----

// tc.def C2: one entry per dimension
// expected-error @below {{'tc.def' op expects 'tc.sizes' of argument 0 to have one entry per dimension of 'tensor<?x?xf32>'}}
tc.def @f(%A: tensor<?x?xf32> {tc.name = "A", tc.sizes = ["N"]}) {
  tc.return
}

// -----

// tc.def C2: an extent is at least 1
// expected-error @below {{'tc.def' op expects 'tc.sizes' of argument 0 to have one entry per dimension of 'tensor<0xf32>'}}
tc.def @f(%A: tensor<0xf32> {tc.name = "A", tc.sizes = [0]}) {
  tc.return
}

// -----

// tc.def C2: what an output holds before has the sizes that inference gives it
// expected-error @below {{'tc.def' op expects no 'tc.sizes' on argument 0, which is 'tc.inout'}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"], tc.inout})
    -> (tensor<?xf32> {tc.name = "A"}) {
  tc.return %A : tensor<?xf32>
}

// -----

// tc.def: tensors only
// expected-error @below {{'tc.def' op expects argument 0 to be a ranked tensor, but found 'f32'}}
tc.def @f(%A: f32 {tc.name = "A"}) {
  tc.return
}

// -----

// tc.def: one block
// expected-error @below {{'tc.def' op expects one block}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) {
  tc.return
^bb1:
  tc.return
}

// -----

// tc.def: a body
// expected-error @below {{'tc.def' op expects one block}}
tc.def @f(tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})

// -----

// tc.def: an end
// expected-error @below {{'tc.def' op expects its body to end in 'tc.return'}}
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) {
  %0 = arith.constant 1 : i32
}

// -----

// tc.return: the types of the results
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]})
    -> (tensor<?x?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.return' op expects operands of the types of the results of its 'tc.def'}}
  tc.return %A : tensor<?xf32>
}

// -----

// tc.return: in a tc.def
func.func @f() {
  // expected-error @below {{'tc.return' op expects parent op 'tc.def'}}
  tc.return
}

// -----

// tc.comprehension C1: one argument per variable
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects the body to have one 'index' argument per variable, 1 in all}}
  %B = tc.comprehension "B" ["i"] <assign> {
    %x = arith.constant 0.0 : f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C1: arguments of the region 'exists'
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects the 'exists' region to have one 'index' argument per variable, 1 in all}}
  %B = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } exists {
    tc.yield
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C1: one value of the element type
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf64> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects the body to yield one 'f64'}}
  %B = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf64>
  tc.return %B : tensor<?xf64>
}

// -----

// tc.comprehension C1: a terminator
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects the body to end in 'tc.yield'}}
  %B = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C1: distinct variables
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects distinct names of its variables}}
  %B = tc.comprehension "B" ["i"] reduce ["i"] <add from identity> {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C2: a combiner that reads the destination needs one
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects 'outs', from which its combiner starts}}
  %B = tc.comprehension "B" ["i"] <add> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C2: and one that does not has none
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op has 'outs', but its combiner does not start from it}}
  %B = tc.comprehension "B" ["i"] <add from identity> outs(%A : tensor<?xf32>) {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C2: of the type of the result
tc.def @f(%A: tensor<4xf32> {tc.name = "A", tc.sizes = [4]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects 'outs' to have the type of the result}}
  %B = tc.comprehension "B" ["i"] <add> outs(%A : tensor<4xf32>) {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<4xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C2: a combiner of the element type
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op the combiner 'and' does not work on 'f32'}}
  %B = tc.comprehension "B" ["i"] <and from identity> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C3
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<f32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op has reduction variables, but its combiner is 'assign'}}
  %B = tc.comprehension "B" [] reduce ["k"] <assign> {
  ^bb0(%k: index):
    %x = tc.read %A[%k] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<f32>
  tc.return %B : tensor<f32>
}

// -----

// tc.comprehension C4: two operands per variable
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  %n = tc.size "N"
  // expected-error @below {{'tc.comprehension' op expects 'where' to have two operands per variable, and each variable once}}
  %B = tc.comprehension "B" ["i"] <assign> where [0] in (%n) {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C4: each variable once
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  %n = tc.size "N"
  // expected-error @below {{'tc.comprehension' op expects 'where' to have two operands per variable, and each variable once}}
  %B = tc.comprehension "B" ["i"] <assign> where [0, 0] in (%n, %n, %n, %n) {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C4: a variable that there is
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  %n = tc.size "N"
  // expected-error @below {{'tc.comprehension' op expects 'where' to have two operands per variable, and each variable once}}
  %B = tc.comprehension "B" ["i"] <assign> where [1] in (%n, %n) {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C5: rank
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?x?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op has 1 left-hand indices, but its result has 2 dimensions}}
  %B = tc.comprehension "B" ["i"] <assign> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?x?xf32>
  tc.return %B : tensor<?x?xf32>
}

// -----

// tc.comprehension C5: variables of the domain
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects 'domain' to have the variables of the statement and one result per left-hand index}}
  %B = tc.comprehension "B" ["i"] <assign> domain <(i, j){N} -> (i), domain: i in [0, N - 1], j in [0, 1], N in [1, 4]> {
  ^bb0(%i: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C1: one index per entry of 'addressed'
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects the body to yield one 'f32' and 1 'index'}}
  %B = tc.comprehension "B" ["i"] addressed [0] reduce ["k"] <add from identity> {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%k] : tensor<?xf32> -> f32
    tc.yield %x : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C6: ascending numbers
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects 'addressed' to have ascending numbers of left-hand indices}}
  %B = tc.comprehension "B" ["i"] addressed [0, 0] reduce ["k"] <add from identity> {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%k] : tensor<?xf32> -> f32
    tc.yield %x, %k, %k : f32, index, index
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C6: of left-hand indices
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op expects 'addressed' to have ascending numbers of left-hand indices}}
  %B = tc.comprehension "B" ["i"] addressed [1] reduce ["k"] <add from identity> {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%k] : tensor<?xf32> -> f32
    tc.yield %x, %k : f32, index
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C6: no uses of the argument
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op uses an 'addressed' index in its body}}
  %B = tc.comprehension "B" ["i"] addressed [0] reduce ["k"] <add from identity> {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %x, %k : f32, index
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.comprehension C6: a combiner
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) -> (tensor<?xf32> {tc.name = "B"}) {
  // expected-error @below {{'tc.comprehension' op has 'addressed' indices, but its combiner is 'assign'}}
  %B = tc.comprehension "B" ["i"] addressed [0] reduce ["k"] <assign> {
  ^bb0(%i: index, %k: index):
    %x = tc.read %A[%k] : tensor<?xf32> -> f32
    tc.yield %x, %k : f32, index
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}

// -----

// tc.size: of the function
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}) {
  // expected-error @below {{'tc.size' op 'M' is not a size variable of 'f'}}
  %0 = tc.size "M"
  tc.return
}

// -----

// tc.size: in a tc.def
func.func @f() {
  // expected-error @below {{'tc.size' op expects to stand in a 'tc.def'}}
  %0 = tc.size "M"
  return
}

// -----

// tc.extent: of a dimension that there is
func.func @f(%A: tensor<?xf32>) {
  // expected-error @below {{'tc.extent' op asks for dimension 1 of a tensor with 1 dimensions}}
  %0 = tc.extent %A, 1 : tensor<?xf32>
  return
}

// -----

// tc.extent: by a number that is not negative
func.func @f(%A: tensor<?xf32>) {
  // expected-error @below {{'tc.extent' op attribute 'dim' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = tc.extent %A, -1 : tensor<?xf32>
  return
}

// -----

// tc.read: one index per dimension
func.func @f(%A: tensor<?xf32>, %i: index) {
  // expected-error @below {{'tc.read' op has 2 indices, but the tensor has 1 dimensions}}
  %0 = tc.read %A[%i, %i] : tensor<?xf32> -> f32
  return
}

// -----

// tc.read: the signless element type
func.func @f(%A: tensor<?xui8>, %i: index) {
  // expected-error @below {{'tc.read' op expects a result of 'i8', but found 'ui8'}}
  %0 = tc.read %A[%i] : tensor<?xui8> -> ui8
  return
}

// -----

// tc.div: integers
func.func @f(%x: f32) {
  // expected-error @below {{'tc.div' op operand #0 must be signless-integer-like, but got 'f32'}}
  %0 = tc.div %x, %x : f32
  return
}

// -----

// tc.rem: the same type everywhere
func.func @f(%x: i32, %y: i64) {
  // expected-error @below {{'tc.rem' op requires the same type for all operands and results}}
  %0 = "tc.rem"(%x, %y) : (i32, i64) -> i32
  return
}

// -----

// tc.yield: in a comprehension
func.func @f() {
  // expected-error @below {{'tc.yield' op expects parent op 'tc.comprehension'}}
  tc.yield
}
