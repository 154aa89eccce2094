// RUN: not tc-opt %s --split-input-file 2>&1 | FileCheck %s

func.func @no_dimension(%a: tensor<4xf32>) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.scan' expected 'scan' and the scanned variable
  imap.scan (t) domain: t in [0, 3] ins(%a[t] : tensor<4xf32>) outs(%a[t] : tensor<4xf32>) fold [add f32] {}
}

// -----

func.func @unknown_dimension(%a: tensor<4xf32>) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:42: error: custom op 'imap.scan' expected a variable, found 'u'
  imap.scan (t) domain: t in [0, 3] scan u inclusive ins(%a[t] : tensor<4xf32>) outs(%a[t] : tensor<4xf32>) fold [add f32] {}
}

// -----

func.func @runtime_variable(%a: tensor<4xf32>, %n: index) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.scan' 'n' is no dimension variable
  imap.scan (t){n} domain: t in [0, 3], n in [0, 9] scan n inclusive runtime(%n : index) ins(%a[t] : tensor<4xf32>) outs(%a[t] : tensor<4xf32>) fold [add f32] {}
}

// -----

func.func @no_direction(%a: tensor<4xf32>) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: custom op 'imap.scan' expected 'inclusive' or 'exclusive'
  imap.scan (t) domain: t in [0, 3] scan t reverse ins(%a[t] : tensor<4xf32>) outs(%a[t] : tensor<4xf32>) fold [add f32] {}
}

// -----

func.func @ranges(%a: tensor<4xf32>) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scan' op has range variables; only a dimension variable can be scanned
  imap.scan (t)[k] domain: t in [0, 3], k in [0, 1] scan t inclusive ins(%a[t] : tensor<4xf32>) outs(%a[t] : tensor<4xf32>) fold [add f32] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
}

// -----

func.func @no_fold(%a: tensor<4xf32>) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scan' op expected a 'fold'
  imap.scan (t) domain: t in [0, 3] scan t inclusive ins(%a[t] : tensor<4xf32>) outs(%a[t] : tensor<4xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
}

// -----

func.func @start(%a: tensor<4xf32>) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scan' op accumulator 0 starts from a destination, which a scan overwrites; combine the start in the epilogue
  imap.scan (t) domain: t in [0, 3] scan t inclusive ins(%a[t] : tensor<4xf32>) outs(%a[t] : tensor<4xf32>) fold [add f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<4xf32>
}

// -----

func.func @number(%a: tensor<4xf32>) {
  // CHECK: invalid-scan.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: 'imap.scan' op scans dimension variable 2, but the domain has 1
  %0 = "imap.scan"(%a, %a) <{accumulators = [#imap.acc<add f32>], dim = 2, domain = #imap.map<(i) -> (), domain: i in [0, 3]>, maps = [#imap.map<(i) -> (i)>, #imap.map<(i) -> (i)>], operandSegmentSizes = array<i32: 0, 1, 1>}> ({
  ^bb0(%x: f32):
    imap.yield %x : f32
  }) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
}
