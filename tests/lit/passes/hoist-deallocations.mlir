// RUN: tc-opt %s --allow-unregistered-dialect --hoist-deallocations | FileCheck %s
// RUN: tc-opt %s --allow-unregistered-dialect --hoist-deallocations --remarks-filter=hoist-deallocations 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Analysis] deallocations | Category:hoist-deallocations | Function=views | Hoisted=2

// CHECK-LABEL: func.func @views
// CHECK:         %[[A:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    %[[B:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    %[[V:.*]] = memref.subview %[[A]]
// CHECK-NEXT:    "test.use"(%[[B]])
// CHECK-NEXT:    memref.dealloc %[[B]]
// CHECK-NEXT:    "test.use"(%[[V]])
// CHECK-NEXT:    memref.dealloc %[[A]]
// CHECK-NEXT:    "test.last"
func.func @views() {
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  %v = memref.subview %a[2] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: 2>>
  "test.use"(%b) : (memref<8xf32>) -> ()
  "test.use"(%v) : (memref<4xf32, strided<[1], offset: 2>>) -> ()
  "test.last"() : () -> ()
  memref.dealloc %a : memref<8xf32>
  memref.dealloc %b : memref<8xf32>
  return
}

// What a region gives may be what it uses.
// CHECK-LABEL: func.func @regions
// CHECK:         %[[A:.*]] = memref.alloc()
// CHECK:         %[[CHOSEN:.*]] = scf.if
// CHECK:         "test.use"(%[[CHOSEN]])
// CHECK-NEXT:    memref.dealloc %[[A]]
// CHECK-NEXT:    "test.last"
// CHECK:         scf.while
// CHECK:           %[[T:.*]] = memref.alloc()
// CHECK-NEXT:      "test.use"(%[[T]])
// CHECK-NEXT:      memref.dealloc %[[T]]
// CHECK-NEXT:      "test.last"
func.func @regions(%p: i1, %other: memref<8xf32>) {
  %a = memref.alloc() : memref<8xf32>
  %chosen = scf.if %p -> memref<8xf32> {
    scf.yield %a : memref<8xf32>
  } else {
    scf.yield %other : memref<8xf32>
  }
  "test.use"(%chosen) : (memref<8xf32>) -> ()
  "test.last"() : () -> ()
  scf.while : () -> () {
    scf.condition(%p)
  } do {
    %t = memref.alloc() : memref<8xf32>
    "test.use"(%t) : (memref<8xf32>) -> ()
    "test.last"() : () -> ()
    memref.dealloc %t : memref<8xf32>
    scf.yield
  }
  memref.dealloc %a : memref<8xf32>
  return
}
