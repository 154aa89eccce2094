// A domain without points keeps its variables: it round-trips, is verified, and runs.

// RUN: rm -rf %t && split-file %s %t && cd %t
// RUN: tc-opt zero.mlir | FileCheck %s
// RUN: tc-opt zero.mlir | tc-opt | FileCheck %s
// RUN: tc-opt zero.mlir --canonicalize --imap-fuse | tc-opt
// RUN: tc-compile zero.mlir -o zero.o
// RUN: clang -Wall -Wextra -Werror main.c zero.o -o main && ./main | FileCheck %s --check-prefix=VALUES

// CHECK: imap.generic (j)[i] domain: j in [0, 3], i in [0, -1]
// CHECK: imap.generic (i, j) domain: i in [0, -1], j in [0, 3]
// CHECK: imap.generic (j)[i] domain: j in [0, 3], i in [5, 2]

// The largest of no numbers is the least one, and the other way around.
// VALUES:      -inf -inf -inf -inf
// VALUES-NEXT: 2147483647 2147483647 2147483647 2147483647
// VALUES-NEXT: untouched

// RUN: not tc-opt rank.mlir 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: rank.mlir:3:8: error: 'imap.generic' op map 0 has 2 results, but its operand has 1 dimensions

//--- zero.mlir
func.func @zero(%x: tensor<0x4xf32> {tc.name="x"}, %w: tensor<4xf32> {tc.name="w"}) -> (tensor<4xf32> {tc.name="y"}, tensor<0x4xf32> {tc.name="z"}, tensor<4xi32> {tc.name="q"}) {
  %e = tensor.empty() : tensor<4xf32>
  %s = imap.generic (j)[i] domain: j in [0, 3], i in [0, -1] ins(%x[i, j] : tensor<0x4xf32>) outs(%e[j] : tensor<4xf32>) fold [maxf f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4xf32>
  %y = imap.generic (j) domain: j in [0, 3] ins(%s[j], %w[3 - j] : tensor<4xf32>, tensor<4xf32>) outs(%e[j] : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    imap.yield %m : f32
  } -> tensor<4xf32>
  %ez = tensor.empty() : tensor<0x4xf32>
  %z = imap.generic (i, j) domain: i in [0, -1], j in [0, 3] ins(%x[i, j], %w[j] : tensor<0x4xf32>, tensor<4xf32>) outs(%ez[i, j] : tensor<0x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    imap.yield %m : f32
  } -> tensor<0x4xf32>
  %ei = tensor.empty() : tensor<4xi32>
  %q = imap.generic (j)[i] domain: j in [0, 3], i in [5, 2] outs(%ei[j] : tensor<4xi32>) fold [mins i32] {
    %c = arith.constant 7 : i32
    imap.yield %c : i32
  } -> tensor<4xi32>
  return %y, %z, %q : tensor<4xf32>, tensor<0x4xf32>, tensor<4xi32>
}
//--- main.c
#include "zero.h"
#include <stdio.h>
int main(void) {
  const float w[4] = {1, 2, 3, 4};
  float y[4], z[1] = {5};
  int32_t q[4];
  if (zero(z, w, y, z, q) != 0)
    return 1;
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  printf("%d %d %d %d\n", q[0], q[1], q[2], q[3]);
  puts(z[0] == 5 ? "untouched" : "written");
  return 0;
}
//--- rank.mlir
func.func @f(%x: tensor<0xf32>) -> tensor<0xf32> {
  %e = tensor.empty() : tensor<0xf32>
  %r = imap.generic (i) domain: i in [0, -1] ins(%x[i, i] : tensor<0xf32>) outs(%e[i] : tensor<0xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<0xf32>
  return %r : tensor<0xf32>
}
