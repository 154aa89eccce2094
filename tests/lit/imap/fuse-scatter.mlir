// RUN: tc-opt --imap-fuse %s | FileCheck %s
// RUN: tc-opt --imap-fuse --remarks-filter=imap-fuse %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A scatter computes its updates itself. Neighbours of a graph are read where they are added.
// CHECK-LABEL: func.func @gathered
// CHECK-NOT:     imap.generic
// CHECK:         imap.scatter (e, c){to, from} {{.*}} ins(%arg0[from, c] : tensor<9x4xf32>) outs(%arg3[to, c]
// REMARK: remark: [Passed] fused | Category:imap-fuse | Function=gathered | As=producer
func.func @gathered(%x: tensor<9x4xf32>, %from: tensor<20xi32>, %to: tensor<20xi32>, %y: tensor<9x4xf32>) -> tensor<9x4xf32> {
  %e = tensor.empty() : tensor<20x4xf32>
  %m = imap.generic (e, c){from} domain: e in [0, 19], c in [0, 3], from in [0, 8] runtime(%from[e] : tensor<20xi32>) ins(%x[from, c] : tensor<9x4xf32>) outs(%e[e, c] : tensor<20x4xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<20x4xf32>
  %r = imap.scatter (e, c){to} domain: e in [0, 19], c in [0, 3], to in [0, 8] runtime(%to[e] : tensor<20xi32>) ins(%m[e, c] : tensor<20x4xf32>) outs(%y[to, c] : tensor<9x4xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<9x4xf32>
  return %r : tensor<9x4xf32>
}

// Functions take vectors, which the updates of one element each do not have.
// CHECK-LABEL: func.func @exponentials
// CHECK:         imap.generic
// REMARK: remark: [Missed] apart | Category:imap-fuse | Function=exponentials {{.*}}Reason="the updates of a scatter would compute 8 operations each, without vectors"
func.func @exponentials(%x: tensor<20xf32>, %to: tensor<20xi32>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<20xf32>
  %m = imap.generic (e) domain: e in [0, 19] ins(%x[e] : tensor<20xf32>) outs(%e[e] : tensor<20xf32>) {
  ^bb0(%a: f32):
    %v = math.exp %a : f32
    imap.yield %v : f32
  } -> tensor<20xf32>
  %r = imap.scatter (e){to} domain: e in [0, 19], to in [0, 8] runtime(%to[e] : tensor<20xi32>) ins(%m[e] : tensor<20xf32>) outs(%y[to] : tensor<9xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<9xf32>
  return %r : tensor<9xf32>
}

// The old elements are read before any update.
// CHECK-LABEL: func.func @updated
// CHECK:         imap.generic
// REMARK: remark: [Missed] apart | Category:imap-fuse | Function=updated {{.*}}Reason="the scatter updates a tensor that the producer reads"
func.func @updated(%from: tensor<20xi32>, %to: tensor<20xi32>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<20xf32>
  %m = imap.generic (e){from} domain: e in [0, 19], from in [0, 8] runtime(%from[e] : tensor<20xi32>) ins(%y[from] : tensor<9xf32>) outs(%e[e] : tensor<20xf32>) {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<20xf32>
  %r = imap.scatter (e){to} domain: e in [0, 19], to in [0, 8] runtime(%to[e] : tensor<20xi32>) ins(%m[e] : tensor<20xf32>) outs(%y[to] : tensor<9xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<9xf32>
  return %r : tensor<9xf32>
}

// CHECK-LABEL: func.func @sums
// CHECK:         imap.generic
// REMARK: remark: [Missed] apart | Category:imap-fuse | Function=sums {{.*}}Reason="the producer is a reduction, and the consumer a scatter"
func.func @sums(%x: tensor<20x4xf32>, %to: tensor<20xi32>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<20xf32>
  %m = imap.generic (e)[c] domain: e in [0, 19], c in [0, 3] ins(%x[e, c] : tensor<20x4xf32>) outs(%e[e] : tensor<20xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<20xf32>
  %r = imap.scatter (e){to} domain: e in [0, 19], to in [0, 8] runtime(%to[e] : tensor<20xi32>) ins(%m[e] : tensor<20xf32>) outs(%y[to] : tensor<9xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<9xf32>
  return %r : tensor<9xf32>
}

// CHECK-LABEL: func.func @running
// CHECK:         imap.generic
// REMARK: remark: [Missed] apart | Category:imap-fuse | Function=running {{.*}}Reason="a scan reads its values from a tensor"
func.func @running(%x: tensor<20xf32>) -> tensor<20xf32> {
  %e = tensor.empty() : tensor<20xf32>
  %m = imap.generic (i) domain: i in [0, 19] ins(%x[i] : tensor<20xf32>) outs(%e[i] : tensor<20xf32>) {
  ^bb0(%a: f32):
    %v = arith.negf %a : f32
    imap.yield %v : f32
  } -> tensor<20xf32>
  %r = imap.scan (i) domain: i in [0, 19] scan i inclusive ins(%m[i] : tensor<20xf32>) outs(%e[i] : tensor<20xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<20xf32>
  return %r : tensor<20xf32>
}
