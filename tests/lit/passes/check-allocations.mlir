// RUN: tc-opt %s --check-allocations --split-input-file | FileCheck %s
// RUN: tc-opt %s --check-allocations --split-input-file --remarks-filter=check-allocations 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Analysis] allocations | Category:check-allocations | Function=two | Checked=2

llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// Both failures lead to one block, which frees what is in the slots.
// CHECK-LABEL: llvm.func @two
// CHECK-SAME:    %[[SIZE:.*]]: i64
// CHECK-NEXT:    %[[COUNT:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK-NEXT:    %[[SLOTS:.*]] = llvm.alloca %[[COUNT]] x !llvm.ptr
// CHECK:         "llvm.intr.memset"(%[[SLOTS]],
// CHECK-NEXT:    %[[A:.*]] = llvm.call @malloc(%[[SIZE]])
// CHECK-NEXT:    %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK-NEXT:    %[[IS_NULL:.*]] = llvm.icmp "eq" %[[A]], %[[NULL]]
// CHECK-NEXT:    %[[ZERO:.*]] = llvm.mlir.zero : i64
// CHECK-NEXT:    %[[NEEDED:.*]] = llvm.icmp "ne" %[[SIZE]], %[[ZERO]]
// CHECK-NEXT:    %[[FAILED:.*]] = llvm.and %[[IS_NULL]], %[[NEEDED]]
// CHECK-NEXT:    llvm.cond_br %[[FAILED]], ^[[FAIL:.*]], ^[[NEXT:.*]]
// CHECK-NEXT:  ^[[NEXT]]:
// CHECK-NEXT:    %[[SLOT:.*]] = llvm.getelementptr %[[SLOTS]][1]
// CHECK-NEXT:    llvm.store %[[A]], %[[SLOT]]
// CHECK-NEXT:    %[[B:.*]] = llvm.call @malloc(%[[SIZE]])
// CHECK:         llvm.cond_br %{{.*}}, ^[[FAIL]], ^[[REST:.*]]
// CHECK-NEXT:  ^[[REST]]:
// CHECK-NEXT:    %[[SLOT_B:.*]] = llvm.getelementptr %[[SLOTS]][0]
// CHECK-NEXT:    llvm.store %[[B]], %[[SLOT_B]]
// CHECK-NEXT:    %[[NULL:.*]] = llvm.mlir.zero
// CHECK-NEXT:    %[[SLOT_B:.*]] = llvm.getelementptr %[[SLOTS]][0]
// CHECK-NEXT:    llvm.store %[[NULL]], %[[SLOT_B]]
// CHECK-NEXT:    llvm.call @free(%[[B]])
// CHECK:         llvm.store
// CHECK-NEXT:    llvm.call @free(%[[A]])
// CHECK:         llvm.return
// CHECK-NEXT:  ^[[FAIL]]:
// CHECK-NEXT:    %[[START:.*]] = llvm.mlir.constant(0 : i64)
// CHECK-NEXT:    llvm.br ^[[TEST:.*]](%[[START]] : i64)
// CHECK-NEXT:  ^[[TEST]](%[[I:.*]]: i64):
// CHECK-NEXT:    %[[MORE:.*]] = llvm.icmp "ult" %[[I]], %[[COUNT]]
// CHECK-NEXT:    llvm.cond_br %[[MORE]], ^[[FREE:.*]], ^[[EXIT:.*]]
// CHECK-NEXT:  ^[[FREE]]:
// CHECK-NEXT:    %[[SLOT:.*]] = llvm.getelementptr %[[SLOTS]][%[[I]]]
// CHECK-NEXT:    %[[HELD:.*]] = llvm.load %[[SLOT]]
// CHECK-NEXT:    llvm.call @free(%[[HELD]])
// CHECK:         llvm.br ^[[TEST]]
// CHECK-NEXT:  ^[[EXIT]]:
// CHECK-NEXT:    %[[CODE:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-NEXT:    llvm.return %[[CODE]] : i32
llvm.func @two(%size: i64) -> i32 attributes {llvm.emit_c_interface} {
  %a = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  %b = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.call @free(%b) : (!llvm.ptr) -> ()
  llvm.call @free(%a) : (!llvm.ptr) -> ()
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.return %0 : i32
}

// -----

llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// What is freed already is in no slot: the slot is cleared before the memory is freed.
// CHECK-LABEL: llvm.func @freed
// CHECK:         %[[A:.*]] = llvm.call @malloc
// CHECK:         llvm.cond_br %{{.*}}, ^[[FAIL:.*]], ^
// CHECK:         llvm.store %[[A]], %
// CHECK:         %[[NULL:.*]] = llvm.mlir.zero
// CHECK:         llvm.store %[[NULL]], %
// CHECK-NEXT:    llvm.call @free(%[[A]])
// CHECK:         %[[B:.*]] = llvm.call @malloc
// CHECK:         llvm.cond_br %{{.*}}, ^[[FAIL]], ^
// CHECK:         llvm.cond_br %{{.*}}, ^[[THEN:.*]], ^
// CHECK-NEXT:  ^[[THEN]]:
// CHECK-NEXT:    %[[NULL:.*]] = llvm.mlir.zero
// CHECK:         llvm.store %[[NULL]], %
// CHECK-NEXT:    llvm.call @free(%[[B]])
// CHECK:         llvm.call @malloc
// CHECK:         llvm.cond_br %{{.*}}, ^[[FAIL]], ^
// CHECK:       ^[[FAIL]]:
// CHECK-NEXT:    llvm.mlir.constant(0 : i64)
llvm.func @freed(%size: i64, %condition: i1) -> i32 attributes {llvm.emit_c_interface} {
  %a = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.call @free(%a) : (!llvm.ptr) -> ()
  %b = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.cond_br %condition, ^then, ^after
^then:
  llvm.call @free(%b) : (!llvm.ptr) -> ()
  llvm.br ^after
^after:
  %c = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.call @free(%c) : (!llvm.ptr) -> ()
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.return %0 : i32
}

// -----

llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// The only allocation needs no slot.
// CHECK-LABEL: llvm.func @one
// CHECK-NOT:     llvm.alloca
// CHECK:         llvm.cond_br %{{.*}}, ^[[FAIL:.*]], ^
// CHECK:       ^[[FAIL]]:
// CHECK-NEXT:    %[[CODE:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-NEXT:    llvm.return %[[CODE]] : i32
llvm.func @one(%size: i64) -> i32 attributes {llvm.emit_c_interface} {
  %a = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.call @free(%a) : (!llvm.ptr) -> ()
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.return %0 : i32
}

// -----

llvm.func @malloc(i64) -> !llvm.ptr

// A function that returns no code stops the program.
// CHECK-LABEL: llvm.func @inner
// CHECK:         llvm.call @malloc
// CHECK:         llvm.cond_br
// CHECK-NEXT:  ^{{.*}}:
// CHECK-NEXT:    llvm.intr.trap
// CHECK-NEXT:    llvm.unreachable
llvm.func @inner(%size: i64) -> !llvm.ptr {
  %a = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.return %a : !llvm.ptr
}

// -----

llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// A function of the program that others call returns a code, too.
// CHECK-LABEL: llvm.func internal @callee
// CHECK:         llvm.cond_br %{{.*}}, ^[[FAIL:.*]], ^
// CHECK:       ^[[FAIL]]:
// CHECK-NEXT:    %[[CODE:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-NEXT:    llvm.return %[[CODE]] : i32
llvm.func internal @callee(%size: i64) -> i32 attributes {tc.callee} {
  %a = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.call @free(%a) : (!llvm.ptr) -> ()
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.return %0 : i32
}

// Its caller frees what it holds.
// CHECK-LABEL: llvm.func @caller
// CHECK:         %[[SLOTS:.*]] = llvm.alloca
// CHECK:         %[[CALLED:.*]] = llvm.call @callee
// CHECK-NEXT:    %[[ZERO:.*]] = llvm.mlir.zero : i32
// CHECK-NEXT:    %[[FAILED:.*]] = llvm.icmp "ne" %[[CALLED]], %[[ZERO]] : i32
// CHECK-NEXT:    llvm.cond_br %[[FAILED]], ^[[FAIL:.*]], ^
// CHECK:       ^[[FAIL]]:
// CHECK:         llvm.getelementptr %[[SLOTS]]
// CHECK:         llvm.call @free
llvm.func @caller(%size: i64) -> i32 attributes {llvm.emit_c_interface} {
  %a = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  %b = llvm.call @callee(%size) : (i64) -> i32
  llvm.call @free(%a) : (!llvm.ptr) -> ()
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.return %0 : i32
}
