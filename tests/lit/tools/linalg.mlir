// Operations of linalg are not fused with imap operations, and the tools say so.
// RUN: tc-opt %s --fuse --remarks-filter=imap-fuse -o %t.mlir 2>&1 | FileCheck %s --check-prefix=FUSE
// FUSE: linalg.mlir:[[#@LINE+10]]:8: remark: [Missed] linalg | Category:imap-fuse | Function=f | Advice="write the operation as 'imap.generic', or fuse linalg operations with each other first, by 'tc-opt --linalg-fuse-elementwise-ops'", Operation=linalg.exp, Reason="linalg operations are not fused with imap operations"

// RUN: tc-compile %s --emit=imap 2>&1 | FileCheck %s --check-prefix=TOOL
// RUN: bash -c 'tc-run %s 2>&1; true' | FileCheck %s --check-prefix=TOOL
// TOOL:      linalg.mlir:[[#@LINE+6]]:8: remark: 'linalg.exp': linalg operations are not fused with imap operations (the program has 1 more)
// TOOL-NEXT: %b = linalg.exp
// TOOL:      note: write the operation as 'imap.generic', or fuse linalg operations with each other first, by 'tc-opt --linalg-fuse-elementwise-ops'

func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %init = tensor.empty() : tensor<4xf32>
  %b = linalg.exp ins(%a : tensor<4xf32>) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  %c = linalg.add ins(%b, %a : tensor<4xf32>, tensor<4xf32>) outs(%init : tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}
