// RUN: tc-opt %s --imap-schedule --imap-print-fusion-plan -o /dev/null | FileCheck %s
// RUN: tc-opt %s --imap-schedule --imap-print-fusion-plan=format=dot -o /dev/null | FileCheck %s --check-prefix=DOT
// RUN: not tc-opt %s --imap-schedule --imap-print-fusion-plan=format=svg 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: tc-opt %examples/tc/matmul.tc --infer-ranges --print-fusion-plan -o /dev/null | FileCheck %s --check-prefix=TC
// RUN: tc-opt %conformance/hlo/mlp_forward/module.hlo --print-fusion-plan=format=dot -o /dev/null | FileCheck %s --check-prefix=HLO
// RUN: tc-opt %s --print-fusion-plan=target=nvvm:sm_90a -o /dev/null | FileCheck %s --check-prefix=GPU
// RUN: tc-opt %examples/tc/matmul.tc --print-fusion-plan -o /dev/null | FileCheck %s --check-prefix=TC
// RUN: tc-opt %examples/tml/trace.tml --print-fusion-plan -o /dev/null | FileCheck %s --check-prefix=TML
// RUN: tc-opt %examples/axon/attention.axon --print-fusion-plan=entry=attention -o /dev/null | FileCheck %s --check-prefix=AXON
// RUN: not tc-opt %examples/axon/attention.axon --print-schedules 2>&1 | FileCheck %s --check-prefix=SCHEDULES
// RUN: not tc-opt %s --print-fusion-plan=format=svg 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not tc-opt %s --print-fusion-plan=threads=0 2>&1 | FileCheck %s --check-prefix=THREADS
// RUN: not tc-opt %s --print-fusion-plan=target=mips 2>&1 | FileCheck %s --check-prefix=TARGET

// The groups are those of the target.
// GPU: func @softmax: 2 kernels
// GPU-NEXT: kernel 0: {{.*}} group 0
// TARGET: 'mips' is not a target; known targets: cpu, nvvm
// TML: func @trace: {{[0-9]+}} kernel
// AXON: func @attention: {{[0-9]+}} kernels
// SCHEDULES: attention.axon:{{.*}}: error: 'axon.program' op has no operations of imap to schedule; try '--convert-axon-to-imap
// OPTION-NOT: print-fusion-plan.mlir
// OPTION: error: 'format' expects 'text' or 'dot', found 'svg'
// THREADS: error: 'threads' expects a number from 1 to 4096
// FORMAT: error: 'format' expects 'text' or 'dot', found 'svg'

// TC: func @matmul: 1 kernel
// TC-NEXT: kernel 0: fold [add] (m ?, n ?)[r_k ?], 2*A.0*A.1*B.1 flops, {{.*}} bytes, from lines
// TC-NEXT: reads argument A: 4*A.0*A.1 bytes

// HLO: digraph "main" {
// HLO: ->

// The rows of a softmax: one group.
// CHECK: func @softmax: 2 kernels
// CHECK-NEXT: kernel 0: fold [add] (i 4096)[j 1024], 4194304 flops, 16793600 bytes, group 0, from lines [[#@LINE+15]]
// CHECK-NEXT: reads argument arg0: 16777216 bytes
// CHECK-NEXT: kernel 1: map (i 4096, j 1024), 4194304 flops, 33570816 bytes, group 0, from lines [[#@LINE+18]]
// CHECK-NEXT: reads argument arg0: 16777216 bytes
// CHECK-NEXT: reads kernel 0: 16384 bytes, apart: the reduction would be computed again for every element that uses it
// DOT: digraph "softmax" {
// DOT: n0 [shape=ellipse, label="arg0"];
// DOT: subgraph cluster_0 {
// DOT-NEXT: label="group 0"
// DOT-NEXT: n1 [label="0: fold [add] (i 4096)[j 1024]\n4194304 flops\n16793600 bytes", tooltip="lines {{[0-9]+}}"];
// DOT: n0 -> n1 [label="16777216 bytes", tooltip=""];
// DOT: n1 -> n2 [label="16384 bytes\n4194304 flops", tooltip="the reduction would be computed again for every element that uses it"];
// DOT: n2 -> n3 [label="16777216 bytes\n4194304 flops", tooltip=""];
func.func @softmax(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %s = imap.generic (i)[j] domain: i in [0, 4095], j in [0, 1023] ins(%x[i, j] : tensor<4096x1024xf32>) outs(%e[i] : tensor<4096xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4096xf32>
  %f = tensor.empty() : tensor<4096x1024xf32>
  %y = imap.generic (i, j) domain: i in [0, 4095], j in [0, 1023] ins(%x[i, j], %s[i] : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%f[i, j] : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// A kernel in a loop: the tensor goes around, and out of it. The names of arguments are those of the program.
// CHECK: func @loop: 1 kernel
// CHECK-NEXT: kernel 0: map (i ?), x.0 flops, 8*x.0 bytes, in scf.for, from lines
// CHECK-NEXT: reads argument x: 4*x.0 bytes
// DOT: digraph "loop" {
// DOT: in scf.for
// DOT: n{{[0-9]+}} -> n{{[0-9]+}} [label="4*x.0 bytes", tooltip=""];
// DOT: n{{[0-9]+}} -> n{{[0-9]+}} [label="4*x.0 bytes\nx.0 flops", tooltip=""];
func.func @loop(%x: tensor<?xf32> {tc.name = "x"}, %n: index {tc.name = "n"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %y = scf.for %t = %c0 to %c1 step %c1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %e = tensor.empty(%d) : tensor<?xf32>
    %z = imap.generic (i){m} domain: i in [0, m - 1] runtime(%d : index) ins(%a[i] : tensor<?xf32>) outs(%e[i] : tensor<?xf32>) {
    ^bb0(%v: f32):
      %w = arith.negf %v : f32
      imap.yield %w : f32
    } -> tensor<?xf32>
    scf.yield %z : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// A pair that could be fused.
// CHECK: func @fusible: 2 kernels
// CHECK: reads kernel 0: 32 bytes, apart: imap-fuse can fuse them as they are now
func.func @fusible(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = imap.generic (i) domain: i in [0, 7] ins(%x[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    imap.yield %n : f32
  } -> tensor<8xf32>
  %z = imap.generic (i) domain: i in [0, 7] ins(%y[i] : tensor<8xf32>) outs(%e[i] : tensor<8xf32>) {
  ^bb0(%a: f32):
    %n = arith.mulf %a, %a : f32
    imap.yield %n : f32
  } -> tensor<8xf32>
  return %z : tensor<8xf32>
}
