// RUN: tc-opt %s --check-allocations --split-input-file | FileCheck %s
// RUN: tc-opt %s --check-allocations --split-input-file --remarks-filter=check-allocations 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Analysis] allocations | Category:check-allocations | Function=two | Checked=2

llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// What is held is freed where the second allocation fails.
// CHECK-LABEL: llvm.func @two
// CHECK-SAME:    %[[SIZE:.*]]: i64
// CHECK:         %[[A:.*]] = llvm.call @malloc(%[[SIZE]])
// CHECK-NEXT:    %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK-NEXT:    %[[IS_NULL:.*]] = llvm.icmp "eq" %[[A]], %[[NULL]]
// CHECK-NEXT:    %[[ZERO:.*]] = llvm.mlir.zero : i64
// CHECK-NEXT:    %[[NEEDED:.*]] = llvm.icmp "ne" %[[SIZE]], %[[ZERO]]
// CHECK-NEXT:    %[[FAILED:.*]] = llvm.and %[[IS_NULL]], %[[NEEDED]]
// CHECK-NEXT:    llvm.cond_br %[[FAILED]], ^[[FIRST:.*]], ^[[NEXT:.*]]
// CHECK-NEXT:  ^[[FIRST]]:
// CHECK-NEXT:    %[[CODE:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-NEXT:    llvm.return %[[CODE]] : i32
// CHECK-NEXT:  ^[[NEXT]]:
// CHECK-NEXT:    llvm.call @malloc(%[[SIZE]])
// CHECK:         llvm.cond_br %{{.*}}, ^[[SECOND:.*]], ^[[REST:.*]]
// CHECK-NEXT:  ^[[SECOND]]:
// CHECK-NEXT:    llvm.call @free(%[[A]])
// CHECK-NEXT:    llvm.mlir.constant(-1 : i32)
// CHECK-NEXT:    llvm.return
// CHECK-NEXT:  ^[[REST]]:
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

// What is freed already, or perhaps, is left alone.
// CHECK-LABEL: llvm.func @freed
// CHECK:         llvm.call @malloc
// CHECK:         llvm.call @malloc
// CHECK:         llvm.call @malloc
// CHECK:         llvm.cond_br
// CHECK-NEXT:  ^{{.*}}:
// CHECK-NEXT:    llvm.mlir.constant(-1 : i32)
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
