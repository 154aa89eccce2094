// RUN: not tc-opt %s --split-input-file 2>&1 | FileCheck %s

// An error stands at the token that is wrong.

// CHECK: invalid-assembly.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: custom op 'imap.generic' expected '(' and the dimension variables; the variables stand here, and subscripts at the operands
func.func @old_domain(%a: tensor<4xf32>) {
  imap.generic #imap.map<(i) -> (), domain: i in [0, 3]> ins(%a : tensor<4xf32>) outs(%a : tensor<4xf32>)
    maps [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>] combine [#imap.combiner<assign>] {}
}

// -----

func.func @old_combiner(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' 'maps' and 'combine' were replaced: write subscripts at the operands, 'fold [add f32]' for 'combine [add from identity]', 'fold [add f32 from outs 0]' for 'combine [add]', and nothing for 'assign'
  imap.generic (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) combine [#imap.combiner<add>] {}
}

// -----

func.func @no_subscripts(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' expected the subscripts of the operand, '[]' if it has no dimensions
  imap.generic (i) domain: i in [0, 3] ins(%a : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {}
}

// -----

func.func @unknown_variable(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{47}}: error: custom op 'imap.generic' expected a variable, found 'j'
  imap.generic (i) domain: i in [0, 3] ins(%a[j] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {}
}

// -----

func.func @open_subscripts(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' expected an index expression or ']'
  imap.generic (i) domain: i in [0, 3] ins(%a[i : tensor<4xf32>]) outs(%a[i] : tensor<4xf32>) {}
}

// -----

func.func @no_interval(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' expected an index expression and 'in' after it
  imap.generic (i) domain: i = 3 ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {}
}

// -----

func.func @twice(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:20: error: custom op 'imap.generic' variable 'i' is declared twice
  imap.generic (i, i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) {}
}

// -----

func.func @no_accumulator(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' expected at least one accumulator
  imap.generic (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [] {}
}

// -----

func.func @destination_number(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' expected the number of a destination
  imap.generic (i) domain: i in [0, 3] ins(%a[i] : tensor<4xf32>) outs(%a[i] : tensor<4xf32>) fold [add f32 from outs -1] {}
}

// -----

func.func @wrong_brackets(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' expected ']'
  imap.generic (i) domain: i in [0, 3] ins(%a[i) : tensor<4xf32>] outs(%a[i] : tensor<4xf32>) {}
}

// -----

func.func @quoted_names(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:17: error: custom op 'imap.generic' expected an index expression or ')'
  imap.generic ("i") domain: "i" in [0, 3] ins(%a["i"] : tensor<4xf32>) outs(%a["i"] : tensor<4xf32>) {}
}

// -----

func.func @keyword_as_name(%a: tensor<4xf32>) {
  // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:17: error: custom op 'imap.generic' expected the name of a variable, found 'in'
  imap.generic (in) domain: in in [0, 3] ins(%a[in] : tensor<4xf32>) outs(%a[in] : tensor<4xf32>) {}
}

// -----

func.func @repeated(%x: tensor<4x5xf32>, %e: tensor<4xf32>) {
  %y = imap.generic (i)[j] domain: i in [0, 3], j in [0, 4]
      ins(%x[i, j] : tensor<4x5xf32>) outs(%e[i] : tensor<4xf32>) fold [add f32]
      // CHECK: invalid-assembly.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.generic' 'accumulators' is no attribute to be listed: the text of the operation says it before 'attributes'
      attributes {accumulators = [#imap.acc<mul f32>]} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
}
