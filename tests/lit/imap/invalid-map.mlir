// RUN: not tc-opt %s --split-input-file 2>&1 | FileCheck %s

// An error stands at the token of the map that is wrong.

// CHECK: invalid-map.mlir:[[#@LINE+1]]:27: error: expected a variable, found 'd1'
#map = #imap.map<(d0) -> (d1)>

// -----

// CHECK: invalid-map.mlir:[[#@LINE+1]]:23: error: variable 'd0' is declared twice
#map = #imap.map<(d0, d0) -> ()>

// -----

// CHECK: invalid-map.mlir:[[#@LINE+1]]:31: error: expected an indexing map, or '>' after it
#map = #imap.map<(d0) -> (d0) = >

// -----

// CHECK: invalid-map.mlir:[[#@LINE+1]]:27: error: expected a number of at most 64 bits, found '99999999999999999999'
#map = #imap.map<(d0) -> (99999999999999999999)>

// -----

// CHECK: invalid-map.mlir:[[#@LINE+1]]:68: error: expected a bound over runtime variables, found 'd0' in it
#map = #imap.map<(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, d0]>

// -----

// CHECK: invalid-map.mlir:[[#@LINE+1]]:18: error: expected '(', found the end
#map = #imap.map<>

// -----

// CHECK: invalid-map.mlir:[[#@LINE+2]]:539: error: expected at most 512 nested parentheses
// CHECK-NOT: error
#map = #imap.map<(d0) -> (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((d0)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))>

// -----

// The end of the file inside of a map.
// CHECK: invalid-map.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: unbalanced '(' character
#map = #imap.map<(d0) -> (d0

// -----

// CHECK: invalid-map.mlir:[[#@LINE+1]]:18: error: expected a divisor that is not 0
#map = #imap.map<(d0) -> (d0 / 0), domain: d0 in [0, 9]>
