// RUN: split-file %s %t
// RUN: tc-opt %t/softmax.mlir --imap-schedule --allow-unregistered-dialect | FileCheck %t/softmax.mlir
// RUN: tc-opt %t/softmax.mlir --print-schedules -o /dev/null | FileCheck %t/softmax.mlir --check-prefix=PRINT
// RUN: tc-opt %t/softmax.mlir --print-schedules -o /dev/null > %t/printed
// RUN: tc-opt %t/softmax.mlir --schedule=%t/printed --print-schedules -o /dev/null | FileCheck %t/softmax.mlir --check-prefix=PRINT
// RUN: tc-opt %t/softmax.mlir --schedule=%t/by-line --print-schedules -o /dev/null | FileCheck %t/softmax.mlir --check-prefix=LINE
// RUN: tc-opt %t/steps.mlir --imap-schedule --imap-tile | FileCheck %t/steps.mlir
// RUN: tc-opt %t/steps.mlir --imap-schedule --imap-tile --convert-results-to-destinations -o /dev/null
// RUN: tc-opt %t/sizes.mlir --tile=i=4,k=16 | FileCheck %t/sizes.mlir
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/no-match 2>&1 | FileCheck %t/no-match
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/no-step 2>&1 | FileCheck %t/no-step
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/no-attribute 2>&1 | FileCheck %t/no-attribute
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/twice 2>&1 | FileCheck %t/twice
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/itself 2>&1 | FileCheck %t/itself
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/no-tiles 2>&1 | FileCheck %t/no-tiles
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/no-name 2>&1 | FileCheck %t/no-name
// RUN: not tc-opt %t/softmax.mlir --schedule=%t/missing 2>&1 | FileCheck %t/no-name --check-prefix=MISSING
// RUN: not tc-opt %t/softmax.mlir --tile=i 2>&1 | FileCheck %t/no-name --check-prefix=SIZE
// RUN: not tc-opt %t/softmax.mlir --tile=i=4,i=5 2>&1 | FileCheck %t/no-name --check-prefix=TWO-SIZES
// RUN: not tc-opt %t/softmax.mlir --tile=i=4,q=4 2>&1 | FileCheck %t/no-name --check-prefix=UNKNOWN
// RUN: not tc-opt %t/softmax.mlir --tile 2>&1 | FileCheck %t/no-name --check-prefix=VALUE
// RUN: tc-opt %t/wrong.mlir --imap-tile --split-input-file --verify-diagnostics -o /dev/null
// RUN: tc-opt %t/syntax.mlir --split-input-file --verify-diagnostics -o /dev/null

//--- no-match
// A comment.
main.7: #imap.schedule<tile [i = 4]>
// CHECK-NOT: error:
// CHECK: {{.*}}no-match:2:1: error: no operation matches 'main.7'; expected FILE:LINE or one of softmax.0, softmax.1
// CHECK-NOT: error:

//--- no-step
softmax.0: #imap.schedule<stages [i = 4]>
// CHECK-NOT: error:
// CHECK: no-step:1:27: error: 'stages' is no step; expected 'tile', 'forall', 'pack', 'order' or 'vector'
// CHECK-NOT: error:

//--- no-attribute
  softmax.0: 5 // a number
// CHECK: no-attribute:1:14: error: expected a schedule, such as #imap.schedule<tile [i = 4]>

//--- twice
softmax.0: #imap.schedule<tile [i = 4]>

softmax.*: #imap.schedule<tile [i = 8]>
// CHECK: twice:3:1: error: line 1 has 'softmax.0' already; an operation has one schedule, remove one of the two

//--- no-tiles
// CHECK: no-tiles:2:43: error: a group is computed in tiles; expected a step 'tile' or 'forall'
softmax.1: #imap.schedule<pack in 0> with softmax.0

//--- itself
softmax.1: #imap.schedule<tile [i = 4]> with softmax.0, softmax.1
// CHECK: itself:1:57: error: 'softmax.1' is the root of the group; remove it here

//--- no-name
softmax.0 tile [i = 4]
// CHECK: no-name:1:1: error: expected 'NAME: #imap.schedule<..>'
// MISSING: cannot read '{{.*}}missing'
// SIZE-NOT: softmax.mlir
// SIZE: 'tile' expects sizes such as i=4,j=16, found 'i'
// TWO-SIZES: 'tile' has two sizes of 'i'; remove one
// UNKNOWN: error: {{.*}}'tile' names 'q', and the operations have i, j
// VALUE: this option expects a value

//--- by-line
softmax.mlir:11: #imap.schedule<forall [i = 2]>

//--- softmax.mlir
// PRINT: softmax.1: #imap.schedule<tile [i = 8]> with softmax.0
// LINE: softmax.1: #imap.schedule<forall [i = 2]>{{$}}
// CHECK-LABEL: func.func @softmax(
// CHECK: fold [add f32] attributes {imap.group = 0 : i64} {
// CHECK: attributes {imap.group = 0 : i64, imap.schedule = #imap.schedule<tile [i = 8]>} {
func.func @softmax(%x: tensor<4096x1024xf32>, %e: tensor<4096xf32>, %f: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %s = imap.generic (i)[j] domain: i in [0, 4095], j in [0, 1023] ins(%x[i, j] : tensor<4096x1024xf32>) outs(%e[i] : tensor<4096xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4096xf32>
  %y = imap.generic (i, j) domain: i in [0, 4095], j in [0, 1023] ins(%x[i, j], %s[i] : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%f[i, j] : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

//--- steps.mlir
// Three steps by hand, for a group: threads take blocks of rows, of which tiles are computed. The fold has no column, so it
// stands in front of the innermost loop.
// CHECK-LABEL: func.func @steps(
// CHECK: scf.forall (%{{.*}}) = (0) to (4096) step (64)
// CHECK:   scf.for {{.*}} step %c8
// CHECK:     imap.generic (i)[j] domain: i in [0, 7], j in [0, 63]{{.*}} fold [add f32] {
// CHECK:     scf.for {{.*}} step %c32
// CHECK:       imap.generic (i, j) domain: i in [0, 7], j in [0, 31]
// CHECK-NOT: imap.schedule
// CHECK-NOT: imap.group
func.func @steps(%x: tensor<4096x1024xf32>, %z: tensor<4096x64xf32>) -> tensor<4096x1024xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %f = tensor.empty() : tensor<4096x1024xf32>
  %s = imap.generic (i)[j] domain: i in [0, 4095], j in [0, 63] ins(%z[i, j] : tensor<4096x64xf32>) outs(%e[i] : tensor<4096xf32>) fold [add f32]
      attributes {imap.group = 3 : i64} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<4096xf32>
  %y = imap.generic (i, j) domain: i in [0, 4095], j in [0, 1023] ins(%x[i, j], %s[i] : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%f[i, j] : tensor<4096x1024xf32>)
      attributes {imap.group = 3 : i64, imap.schedule = #imap.schedule<forall [i = 64], tile [i = 8], tile [j = 32]>} {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    imap.yield %q : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

//--- sizes.mlir
// Each operation has the sizes of the variables that it has. A fold from a destination is open: its range may be tiled.
// CHECK-LABEL: func.func @sizes(
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4
// CHECK:   scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16
// CHECK:     imap.generic (i, j)[k] domain: i in [0, 3], j in [0, 7], k in [0, 15]
// CHECK: imap.generic (q) domain: q in [0, 7]
func.func @sizes(%x: tensor<8x32xi32>, %w: tensor<32x8xi32>, %c: tensor<8x8xi32>, %v: tensor<8xi32>) -> (tensor<8x8xi32>, tensor<8xi32>) {
  %y = imap.generic (i, j)[k] domain: i in [0, 7], j in [0, 7], k in [0, 31] ins(%x[i, k], %w[k, j] : tensor<8x32xi32>, tensor<32x8xi32>) outs(%c[i, j] : tensor<8x8xi32>) fold [add i32 from outs 0] {
  ^bb0(%a: i32, %b: i32):
    %p = arith.muli %a, %b : i32
    imap.yield %p : i32
  } -> tensor<8x8xi32>
  %e = tensor.empty() : tensor<8xi32>
  %z = imap.generic (q) domain: q in [0, 7] ins(%v[q] : tensor<8xi32>) outs(%e[q] : tensor<8xi32>) {
  ^bb0(%a: i32):
    %p = arith.muli %a, %a : i32
    imap.yield %p : i32
  } -> tensor<8xi32>
  return %y, %z : tensor<8x8xi32>, tensor<8xi32>
}

// An operation without iterations has no tiles.
// CHECK-LABEL: func.func @nothing(
// CHECK-NOT: scf.for
// CHECK: imap.generic (i) domain: i in [0, -1] ins(%{{.*}}[i] : tensor<0xi32>) outs(%{{.*}}[i * 2] : tensor<0xi32>) {
func.func @nothing(%v: tensor<0xi32>) -> tensor<0xi32> {
  %e = tensor.empty() : tensor<0xi32>
  %z = imap.generic (i) domain: i in [0, -1] ins(%v[i] : tensor<0xi32>) outs(%e[i * 2] : tensor<0xi32>) {
  ^bb0(%a: i32):
    %p = arith.muli %a, %a : i32
    imap.yield %p : i32
  } -> tensor<0xi32>
  return %z : tensor<0xi32>
}

//--- wrong.mlir
func.func @name(%v: tensor<8xi32>, %e: tensor<8xi32>) -> tensor<8xi32> {
  // expected-error @+1 {{the schedule names 'j', and the operation has i}}
  %z = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>)
      attributes {imap.schedule = #imap.schedule<tile [j = 4]>} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  return %z : tensor<8xi32>
}

// -----

// An ordered sum is cut along its first range only.
func.func @ordered(%v: tensor<8x8x8xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+4 {{cannot tile range 'k': the fold is ordered; tile its first range only}}
  // expected-error @+3 {{tile operation}}
  // expected-error @+2 {{failed to generate tiling loops}}
  // expected-error @+1 {{cannot be computed by 'tile [k = 4]'}}
  %z = imap.generic (i)[j, k] domain: i in [0, 7], j in [0, 7], k in [0, 7] ins(%v[i, j, k] : tensor<8x8x8xf32>)
      outs(%e[i] : tensor<8xf32>) fold [add f32 from outs 0] ordered
      attributes {imap.schedule = #imap.schedule<tile [k = 4]>} {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// The reader needs all rows for each of its rows.
func.func @member(%v: tensor<8xi32>, %e: tensor<8xi32>) -> tensor<8xi32> {
  // expected-error @+1 {{is no member of group 0: its readers do not need one tile of it per tile}}
  %s = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>) attributes {imap.group = 0 : i64} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  %z = imap.generic (i)[k] domain: i in [0, 7], k in [0, 7] ins(%s[k] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>) fold [add i32]
      attributes {imap.group = 0 : i64, imap.schedule = #imap.schedule<tile [i = 4]>} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  return %z : tensor<8xi32>
}

// -----

func.func @no_root(%v: tensor<8xi32>, %e: tensor<8xi32>) -> tensor<8xi32> {
  // expected-error @+1 {{is in group 0, of which no operation of the block has a step 'tile' or 'forall'}}
  %z = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>) attributes {imap.group = 0 : i64} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  return %z : tensor<8xi32>
}

// -----

func.func @two_roots(%v: tensor<8xi32>, %e: tensor<8xi32>) -> tensor<8xi32> {
  %s = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>)
      attributes {imap.group = 0 : i64, imap.schedule = #imap.schedule<tile [i = 2]>} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  // expected-error @+1 {{is a second root of group 0; remove one of the two schedules}}
  %z = imap.generic (i) domain: i in [0, 7] ins(%s[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>)
      attributes {imap.group = 0 : i64, imap.schedule = #imap.schedule<tile [i = 4]>} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  return %z : tensor<8xi32>
}

//--- syntax.mlir
// expected-error @+1 {{a schedule has steps; expected 'tile', 'forall', 'pack', 'order' or 'vector'}}
func.func private @nothing() attributes {s = #imap.schedule<>}

// -----

// expected-error @+1 {{the size of 'i' has to be positive}}
func.func private @zero() attributes {s = #imap.schedule<tile [i = 0]>}

// -----

// expected-error @+1 {{'i' stands twice in the step}}
func.func private @twice() attributes {s = #imap.schedule<tile [i = 4, i = 8]>}

// -----

// expected-error @+1 {{'tile' expects sizes, such as [i = 4]}}
func.func private @empty() attributes {s = #imap.schedule<tile []>}

// -----

// expected-error @+1 {{'stages' is no step; expected 'tile', 'forall', 'pack', 'order' or 'vector'}}
func.func private @step() attributes {s = #imap.schedule<stages [i = 4]>}

// -----

// expected-error @+1 {{'order' expects variables, such as [i, j]}}
func.func private @no_order() attributes {s = #imap.schedule<order []>}

// -----

// expected-error @+1 {{the lanes 'k' have no size}}
func.func private @no_lanes() attributes {s = #imap.schedule<vector [i = 4] lanes k>}

// -----

// expected-error @+1 {{'tile' has to come before 'order' and 'vector'}}
func.func private @late() attributes {s = #imap.schedule<order [i, j], tile [i = 4]>}

// -----

// expected-error @+1 {{expected 'in' and the number of an input}}
func.func private @pack() attributes {s = #imap.schedule<pack [i = 4]>}

// -----

// expected-error @+1 {{the number of an input is not negative}}
func.func private @negative() attributes {s = #imap.schedule<pack in -1>}

// -----

// expected-error @+1 {{'pack' has to come before 'order' and 'vector'}}
func.func private @late_pack() attributes {s = #imap.schedule<order [i, j], pack in 0>}

// -----

// Each tile may copy a part of the copy.
func.func private @repack() attributes {s = #imap.schedule<pack in 0, tile [i = 4], pack in 0, pack in 1>}

// -----

// expected-error @+1 {{input 0 is packed twice; remove this step}}
func.func private @pack_twice() attributes {s = #imap.schedule<tile [i = 4], pack in 0, pack in 1, pack in 0>}

// -----

// expected-error @+1 {{'vector' stands twice in the schedule; remove one}}
func.func private @vector_twice() attributes {s = #imap.schedule<vector [i = 4] lanes i, order [i], vector [i = 8] lanes i>}

// -----

func.func @no_schedule(%v: tensor<8xi32>, %e: tensor<8xi32>) -> tensor<8xi32> {
  // expected-error @+1 {{expected 'imap.schedule' to be a schedule, such as #imap.schedule<tile [i = 4]>}}
  %z = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>) attributes {imap.schedule = 5 : i64} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  return %z : tensor<8xi32>
}

// -----

// expected-error @+1 {{'func.func' op has no variables that a schedule could name; remove 'imap.schedule'}}
func.func private @no_variables() attributes {imap.schedule = #imap.schedule<tile [i = 4]>}

// -----

// expected-error @+1 {{'func.func' op has an unknown attribute 'imap.shedule'; try 'imap.schedule' or 'imap.group'}}
func.func private @unknown() attributes {imap.shedule = #imap.schedule<tile [i = 4]>}

// -----

func.func @no_group(%v: tensor<8xi32>, %e: tensor<8xi32>) -> tensor<8xi32> {
  // expected-error @+1 {{expected 'imap.group' to be a number, such as 0 : i64}}
  %z = imap.generic (i) domain: i in [0, 7] ins(%v[i] : tensor<8xi32>) outs(%e[i] : tensor<8xi32>) attributes {imap.group = "a"} {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<8xi32>
  return %z : tensor<8xi32>
}
