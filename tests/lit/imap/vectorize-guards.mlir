// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(imap-schedule-loops{vector-bits=512},imap-vectorize{vector-bits=512},convert-imap-to-scf{vector-bits=512}))' | FileCheck %s

// The lanes outside of the guard are the constant, and their elements are not touched. What does not
// depend on the lanes is the same in all of them.
// CHECK-LABEL: func.func @band
// CHECK-DAG:     %[[LAST:.*]] = vector.create_mask %{{.*}} : vector<16xi1>
// CHECK-DAG:     %[[BEFORE:.*]] = vector.create_mask %{{.*}} : vector<16xi1>
// CHECK:         %[[FROM:.*]] = arith.xori %{{.*}} : vector<16xi1>
// CHECK:         %[[IN:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<16xi1>
// CHECK:         %[[FILL:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK:         vector.maskedload %{{.*}}, %{{.*}}, %[[FILL]]
// CHECK:         vector.store
func.func @band(%x: memref<40x96xf32>, %w: memref<9xf32>, %y: memref<40x64xf32>) {
  imap.generic (i, j)[k] domain: i in [0, 39], j in [0, 63], k in [0, 8]
      ins(%x[i, j + k - 4] where j + k in [4, 99] and i + k in [3, 40] else 2.0, %w[k] : memref<40x96xf32>, memref<9xf32>)
      outs(%y[i, j] : memref<40x64xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    imap.yield %m : f32
  }
  return
}

// A value that guards read at another place in each lane is no vector.
// CHECK-LABEL: func.func @indices
// CHECK-NOT:     vector.
func.func @indices(%x: memref<64xf32>, %t: memref<64xi32>, %y: memref<64xf32>) {
  imap.generic (j)[k]{r} domain: j in [0, 63], k in [0, 8] runtime(%t[j] : memref<64xi32>)
      ins(%x[j] where r + k in [4, 99] : memref<64xf32>) outs(%y[j] : memref<64xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}
