// RUN: tc-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// DIALECTS: Available Dialects:
// DIALECTS-SAME: affine
// DIALECTS-SAME: hlo
// DIALECTS-SAME: imap
// DIALECTS-SAME: linalg
// DIALECTS-SAME: tc

// RUN: tc-opt --list-passes | FileCheck %s --check-prefix=PASSES
// PASSES-DAG: imap-fuse
// PASSES-DAG: tc-infer-ranges
// PASSES-DAG: one-shot-bufferize

// The help shows examples, our passes with their options, and our options.
// RUN: tc-opt --help | FileCheck %s --check-prefix=HELP
// HELP:     OVERVIEW: MLIR optimizer driver with the hlo, tc, tml, axon and imap dialects
// HELP:       tc-opt matmul.tc --infer-ranges
// HELP-DAG:   --imap-fuse {{ *}}- {{ *}}Fuse producers into consumers by composing indexing maps
// HELP-DAG:     --max-recompute=<string> {{ *}}- The most operations per element that may be computed again
// HELP-DAG:   --export-hlo {{ *}}- Write the module as HLO text
// HELP-DAG:   --explain-ranges {{ *}}- {{ *}}Infer ranges and print the rounds of the inference
// HELP-DAG:   --relaxed {{ *}}- Accept the spellings of the TC documentation
