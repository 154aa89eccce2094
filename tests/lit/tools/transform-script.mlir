// The example of a transform script in docs/src/tools.md.
// RUN: tc-opt %examples/tc/matmul.tc --infer-ranges --fuse --transform-preload-library=transform-library-paths=%s --transform-interpreter --canonicalize --cse -o %t.affine.mlir
// RUN: tc-run %t.affine.mlir --size M=50,K=30,N=41 | FileCheck %s
// RUN: not tc-run %t.affine.mlir --size M=50,K=30,N=41 --check 2>&1 | FileCheck %s --check-prefix=AFFINE
// RUN: tc-opt %t.affine.mlir --lower-affine -o %t.mlir
// RUN: tc-run %t.mlir --size M=50,K=30,N=41 --check | FileCheck %s --check-prefixes=CHECK,AGREES
// CHECK: C: float32(50, 41)
// AGREES: C agrees with the interpreter on 2050 elements
// AFFINE: 'affine.min' op is not supported by the interpreter
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %C = transform.structured.match ops{["imap.generic"]} in %root : (!transform.any_op) -> !transform.any_op
    %tile, %loops:2 = transform.structured.tile_using_for %C tile_sizes [16, 20]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
