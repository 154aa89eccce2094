// Operations of MLIR's own dialects: an object that needs no library, or an error where the operation
// stands. What they compute is tested in crates/backends/tests/upstream.rs.

// RUN: rm -rf %t && split-file %s %t && cd %t
// RUN: tc-compile run.mlir -o run.o
// RUN: llvm-nm --undefined-only run.o | FileCheck %s --check-prefix=SYMBOLS --allow-empty
// SYMBOLS-NOT: U {{[^mf_]}}
// SYMBOLS-NOT: U memref
// RUN: clang -Wall -Wextra -Werror main.c run.o -o main && ./main | FileCheck %s --check-prefix=VALUES
// VALUES:      pad: 9 1 2 3 4 9
// VALUES-NEXT: slice: 1 3
// VALUES-NEXT: softmax: 0.5 0.5 0.5 0.5
// VALUES-NEXT: product: -3 4
// VALUES-NEXT: sum: 10

// RUN: not tc-compile tosa.mlir -o x.o 2>&1 | FileCheck %s --check-prefix=TOSA
// TOSA:      tosa.mlir:2:8: error: 'tosa.exp' op is not supported: the compiler does not lower the dialect 'tosa'
// TOSA-NEXT: {{^}}  %r = tosa.exp
// RUN: not tc-compile gather.mlir -o x.o 2>&1 | FileCheck %s --check-prefix=GATHER
// GATHER: gather.mlir:2:8: error: 'tensor.gather' op is not supported; use 'tensor.generate' and 'tensor.extract'
// RUN: not tc-compile call.mlir -o x.o 2>&1 | FileCheck %s --check-prefix=CALL
// CALL: call.mlir:4:8: error: the program needs 'puts', which it does not define
// RUN: not tc-compile unranked.mlir -o x.o 2>&1 | FileCheck %s --check-prefix=UNRANKED
// UNRANKED: unranked.mlir:6:3: error: the program needs 'memrefCopy'
// RUN: not tc-compile narrow.mlir -o x.o 2>&1 | FileCheck %s --check-prefix=NARROW
// NARROW: narrow.mlir:4:8: error: 'arith.truncf' op is not supported on 'f32': no pass lowers it
// RUN: not tc-compile shape.mlir -o x.o 2>&1 | FileCheck %s --check-prefix=SHAPE
// SHAPE: shape.mlir:2:8: error: 'shape.shape_of' op uses the type '!shape.shape', which is not supported

//--- run.mlir
func.func @pad(%x: tensor<4xf32>) -> tensor<6xf32> {
  %c = arith.constant 9.0 : f32
  %r = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %c : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %r : tensor<6xf32>
}
func.func @slice(%x: tensor<4xf32>) -> tensor<2xf32> {
  %r = tensor.extract_slice %x[0] [2] [2] : tensor<4xf32> to tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func @softmax(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %e = tensor.empty() : tensor<2x2xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
// (1 + 2i)^2 = -3 + 4i
func.func @product(%x: tensor<4xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.extract %x[%c0] : tensor<4xf32>
  %b = tensor.extract %x[%c1] : tensor<4xf32>
  %z = complex.create %a, %b : complex<f32>
  %p = complex.mul %z, %z : complex<f32>
  %u = complex.re %p : complex<f32>
  %v = complex.im %p : complex<f32>
  %r = tensor.from_elements %u, %v : tensor<2xf32>
  return %r : tensor<2xf32>
}
func.func @sum(%x: tensor<4xf32>) -> tensor<1xf32> {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0], %f0 : tensor<4xf32>, vector<4xf32>
  %m = vector.shape_cast %v : vector<4xf32> to vector<2x2xf32>
  %s = vector.multi_reduction <add>, %m, %f0 [0, 1] : vector<2x2xf32> to f32
  %r = tensor.from_elements %s : tensor<1xf32>
  return %r : tensor<1xf32>
}

//--- main.c
#include "run.h"
#include <stdio.h>
int main(void) {
  const float x[4] = {1, 2, 3, 4}, equal[4] = {5, 5, 5, 5};
  float y[6];
  pad(x, y);
  printf("pad: %g %g %g %g %g %g\n", y[0], y[1], y[2], y[3], y[4], y[5]);
  slice(x, y);
  printf("slice: %g %g\n", y[0], y[1]);
  softmax(equal, y);
  printf("softmax: %g %g %g %g\n", y[0], y[1], y[2], y[3]);
  product(x, y);
  printf("product: %g %g\n", y[0], y[1]);
  sum(x, y);
  printf("sum: %g\n", y[0]);
  return 0;
}

//--- tosa.mlir
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = tosa.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
//--- gather.mlir
func.func @f(%x: tensor<8x4xf32>, %i: tensor<3x1xindex>) -> tensor<3x1x4xf32> {
  %r = tensor.gather %x[%i] gather_dims([0]) : (tensor<8x4xf32>, tensor<3x1xindex>) -> tensor<3x1x4xf32>
  return %r : tensor<3x1x4xf32>
}
//--- call.mlir
llvm.func @puts(i32) -> i32
func.func @f(%x: tensor<1xi32>) -> tensor<1xi32> {
  %a = arith.constant 1 : i32
  %b = llvm.call @puts(%a) : (i32) -> i32
  %r = tensor.from_elements %b : tensor<1xi32>
  return %r : tensor<1xi32>
}
//--- unranked.mlir
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %m = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>
  %n = memref.alloc() : memref<4xf32>
  %a = memref.cast %m : memref<4xf32> to memref<*xf32>
  %b = memref.cast %n : memref<4xf32> to memref<*xf32>
  memref.copy %a, %b : memref<*xf32> to memref<*xf32>
  %r = bufferization.to_tensor %n restrict : memref<4xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}
//--- narrow.mlir
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %a = tensor.extract %x[] : tensor<f32>
  // f6 has no conversions.
  %b = arith.truncf %a : f32 to f6E3M2FN
  %c = arith.extf %b : f6E3M2FN to f32
  %r = tensor.from_elements %c : tensor<f32>
  return %r : tensor<f32>
}
//--- shape.mlir
func.func @f(%x: tensor<4xindex>) -> tensor<1xindex> {
  %s = shape.shape_of %x : tensor<4xindex> -> !shape.shape
  %n = shape.num_elements %s : !shape.shape -> !shape.size
  %i = shape.size_to_index %n : !shape.size
  %r = tensor.from_elements %i : tensor<1xindex>
  return %r : tensor<1xindex>
}
