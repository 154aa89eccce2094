// Functions on tensors that are written by hand: names and sizes have defaults.
// RUN: tc-run %s --entry add --size arg0.0=3,arg0.1=4 --check --outputs %t | FileCheck %s
// CHECK:      out0: float32(3, 4)
// CHECK-NEXT: out0 agrees with the interpreter on 12 elements
// RUN: ls %t | FileCheck %s --check-prefix=FILES
// FILES: out0.npy
// RUN: not tc-run %s --entry add 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: tc-run: error: the size of arg0.0, arg0.1 is not known; try '--size arg0.0=64,arg0.1=64'

// The extents of a result that no attribute gives are computed. A size may be 0.
// RUN: tc-run %s --entry head --size x.0=10,n=4 --check | FileCheck %s --check-prefix=HEAD
// HEAD:      y: float32(5)
// HEAD-NEXT: y agrees with the interpreter on 5 elements
// RUN: tc-run %s --entry head --size x.0=0,n=-1 --check | FileCheck %s --check-prefix=EMPTY
// EMPTY:     y: float32(0)
// An access out of bounds is an error of the interpreter, before compiled code runs.
// RUN: not tc-run %s --entry head --size x.0=4,n=4 --check 2>&1 | FileCheck %s --check-prefix=BOUNDS
// BOUNDS:    tc-run: error: the interpreter: {{.*}}tc-run-imap.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'imap.generic' op is out of bounds

// A file of an array without dimensions gives a scalar.
// RUN: rm -rf %t.in && mkdir %t.in && python3 -c "import struct; h = \"{'descr': '<i8', 'fortran_order': False, 'shape': (), }\"; h = h.ljust(117) + chr(10); open('%t.in/n.npy', 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(h)) + h.encode() + struct.pack('<q', 2))"
// RUN: tc-run %s --entry head --size x.0=10 --inputs %t.in --check | FileCheck %s --check-prefix=FILE
// FILE:      y: float32(3)

// Loops.
// RUN: tc-run %s --entry count --print-ir --no-fuse | FileCheck %s --check-prefix=COUNT
// COUNT:     scf.for
// COUNT:     c: int32()

// Two results of one name have a file each.
// RUN: echo 'func.func @f(%%x: tensor<4xf32>) -> (tensor<4xf32> {tc.name = "y"}, tensor<4xf32> {tc.name = "y"}) { return %%x, %%x : tensor<4xf32>, tensor<4xf32> }' | tc-run - -x mlir --outputs %t && ls %t/y.npy %t/y_.npy

// A name may not lead out of the folder of the results, nor be empty.
// RUN: echo 'func.func @f(%%x: tensor<4xf32>) -> (tensor<4xf32> {tc.name = "../x"}) { return %%x : tensor<4xf32> }' | not tc-run - -x mlir --outputs %t 2>&1 | FileCheck %s --check-prefix=PATH
// PATH:      tc-run: error: {{.*}}../x.npy: error: the program's name is no file name; rename it
// RUN: echo 'func.func @f(%%x: tensor<4xf32>) -> (tensor<4xf32> {tc.name = ""}) { return %%x : tensor<4xf32> }' | tc-run - -x mlir | FileCheck %s --check-prefix=UNNAMED
// UNNAMED:   out0: float32(4)

// RUN: echo 'func.func @f(%%x: f32) -> f32 { return %%x : f32 }' | not tc-run - -x mlir 2>&1 | FileCheck %s --check-prefix=SCALAR
// SCALAR:    error: 'func.func' op expected every result to be a tensor, found 'f32'
// RUN: echo 'func.func private @f(tensor<4xf32>)' | not tc-run - -x mlir 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING:   tc-run: error: the file has no function to compile; expected 'tc.def' or 'func.func' operations

func.func @add(%a: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf32>
  %n = tensor.dim %a, %c1 : tensor<?x?xf32>
  %init = tensor.empty(%m, %n) : tensor<?x?xf32>
  %b = imap.generic (i, j){M, N} domain: i in [0, M - 1], j in [0, N - 1] runtime(%m, %n : index, index)
      ins(%a[i, j] : tensor<?x?xf32>) outs(%init[i, j] : tensor<?x?xf32>) {
  ^bb0(%x: f32):
    %y = arith.addf %x, %x : f32
    imap.yield %y : f32
  } -> tensor<?x?xf32>
  return %b : tensor<?x?xf32>
}

// The first n + 1 elements.
func.func @head(%x: tensor<?xf32> {tc.name = "x"}, %n: index {tc.name = "n"}) -> (tensor<?xf32> {tc.name = "y"}) {
  %c1 = arith.constant 1 : index
  %m = arith.addi %n, %c1 : index
  %init = tensor.empty(%m) : tensor<?xf32>
  %y = imap.generic (i){M} domain: i in [0, M - 1] runtime(%m : index)
      ins(%x[i] : tensor<?xf32>) outs(%init[i] : tensor<?xf32>) {
  ^bb0(%e: f32):
    imap.yield %e : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

func.func @count(%start: tensor<i32> {tc.name = "start"}) -> (tensor<i32> {tc.name = "c"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c = scf.for %i = %c0 to %c10 step %c1 iter_args(%sum = %start) -> (tensor<i32>) {
    %s = tensor.extract %sum[] : tensor<i32>
    %n = arith.index_cast %i : index to i32
    %t = arith.addi %s, %n : i32
    %next = tensor.from_elements %t : tensor<i32>
    scf.yield %next : tensor<i32>
  }
  return %c : tensor<i32>
}
