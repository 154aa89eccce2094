// RUN: tc-opt %s -imap-schedule-loops -convert-imap-to-scf | FileCheck %s

// On buffers: vectors are scanned in steps, and stretches of a row have their accumulators in memory.
// CHECK-LABEL: func.func @on_buffers(
// CHECK:         vector.load
// CHECK-COUNT-4: vector.shuffle
// CHECK:         vector.store
// CHECK:         memref.alloc() {alignment = 64 : i64, imap.scratch} : memref<512xf32>
// CHECK-NOT:     vector
func.func @on_buffers(%x: memref<4x100xf32>, %y: memref<4x100xf32>) {
  imap.scan (i, t) domain: i in [0, 3], t in [0, 99] scan t inclusive
    ins(%x[i, t] : memref<4x100xf32>) outs(%y[i, t] : memref<4x100xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  imap.scan (i, t) domain: i in [0, 3], t in [0, 99] scan i inclusive
    ins(%y[i, t] : memref<4x100xf32>) outs(%y[i, t] : memref<4x100xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  }
  return
}
