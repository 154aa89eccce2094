// Locations in a program may name any file, line and column. Lines are shown only of regular files in
// the folder of the program or below.

// RUN: rm -rf %t %t-outside.tc && split-file %s %t && cp %t/sub/near.tc %t-outside.tc
// RUN: sed -e 's,FILE,%t-outside.tc,' %t/file.mlir > %t/outside.mlir
// RUN: sed -e 's,FILE,/dev/zero,' %t/file.mlir > %t/device.mlir
// RUN: sed -e 's,FILE,%t/sub/near.tc,' %t/file.mlir > %t/below.mlir
// RUN: sed -e 's,FILE,%t/sub,' %t/file.mlir > %t/folder.mlir

// RUN: not tc-opt %t/outside.mlir 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: not tc-compile %t/outside.mlir -o %t/x.o 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: not tc-opt %t/device.mlir 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: not tc-compile %t/device.mlir -o %t/x.o 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: not tc-opt %t/folder.mlir 2>&1 | FileCheck %s --check-prefix=HIDDEN
// RUN: not tc-compile %t/folder.mlir -o %t/x.o 2>&1 | FileCheck %s --check-prefix=HIDDEN
// HIDDEN:     {{^.*}}:1:3: error: {{.*}}frobnicate
// HIDDEN-NOT: secret

// RUN: not tc-opt %t/below.mlir 2>&1 | FileCheck %s --check-prefix=SHOWN
// RUN: not tc-compile %t/below.mlir -o %t/x.o 2>&1 | FileCheck %s --check-prefix=SHOWN
// SHOWN:      near.tc:1:3: error: {{.*}}frobnicate
// SHOWN-NEXT: {{^}}a secret of the neighbour

// A column beyond the line gets no caret.
// RUN: sed -e 's,"FILE":1:3,"%t/column.mlir":1:4294967295,' %t/file.mlir > %t/column.mlir
// RUN: not tc-opt %t/column.mlir 2>&1 | FileCheck %s --check-prefix=COLUMN
// RUN: not tc-compile %t/column.mlir -o %t/x.o 2>&1 | FileCheck %s --check-prefix=COLUMN
// COLUMN: column.mlir:1:4294967295: error: {{.*}}frobnicate

//--- sub/near.tc
a secret of the neighbour
//--- file.mlir
func.func @f(%x: f32) -> f32 {
  %y = imap.builtin "frobnicate"(%x) : f32 loc("FILE":1:3)
  return %y : f32
}
