// The tools convert operations of linalg to imap operations and fuse these, and say which ones stay.
// RUN: tc-opt %s --fuse --remarks-filter=imap-fuse -o %t.mlir 2>&1 | FileCheck %s --check-prefix=FUSE
// FUSE: linalg.mlir:[[#@LINE+14]]:8: remark: [Missed] linalg | Category:imap-fuse | Function=f | Advice="run 'convert-linalg-to-imap' first", Operation=linalg.exp, Reason="linalg operations are not fused with imap operations"

// RUN: tc-compile %s --emit=imap 2>&1 | FileCheck %s
// RUN: tc-run %s --check 2>&1 | FileCheck %s --check-prefix=VALUES
// CHECK:      linalg.mlir:[[#@LINE+12]]:8: remark: 'linalg.reduce' stays in linalg: its body does not fold one value into the element of each destination by a combiner
// CHECK-NEXT: %d = linalg.reduce
// CHECK:      note: yield the addf, {{.*}} of the element and a value; as it is, MLIR's lowering of linalg compiles it, and it is not fused
// CHECK:      imap.generic
// CHECK-NOT:  imap.generic
// CHECK:      linalg.reduce
// VALUES: out0 agrees with the interpreter on 4 elements

func.func @f(%a: tensor<4x5xf32>, %sum: tensor<4xf32>) -> tensor<4xf32> {
  %init = tensor.empty() : tensor<4x5xf32>
  %b = linalg.exp ins(%a : tensor<4x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  %c = linalg.add ins(%b, %a : tensor<4x5xf32>, tensor<4x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  %d = linalg.reduce { arith.subf } ins(%c : tensor<4x5xf32>) outs(%sum : tensor<4xf32>) dimensions = [1]
  return %d : tensor<4xf32>
}
