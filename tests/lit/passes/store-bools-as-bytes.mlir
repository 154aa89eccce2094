// RUN: tc-opt %s --store-bools-as-bytes | FileCheck %s

// CHECK-LABEL: llvm.func @scalars(
// CHECK-SAME:      %[[FROM:.*]]: !llvm.ptr, %[[TO:.*]]: !llvm.ptr)
// CHECK:         %[[BYTE:.*]] = llvm.load %[[FROM]] {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK:         %[[ZERO:.*]] = llvm.mlir.zero : i8
// CHECK:         %[[VALUE:.*]] = llvm.icmp "ne" %[[BYTE]], %[[ZERO]] : i8
// CHECK:         %[[STORED:.*]] = llvm.zext %[[VALUE]] : i1 to i8
// CHECK:         llvm.store %[[STORED]], %[[TO]] {alignment = 1 : i64} : i8, !llvm.ptr
llvm.func @scalars(%from: !llvm.ptr, %to: !llvm.ptr) {
  %x = llvm.load %from {alignment = 1 : i64} : !llvm.ptr -> i1
  llvm.store %x, %to {alignment = 1 : i64} : i1, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @vectors(
// CHECK:         %[[FIRST:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<8xi8>
// CHECK:         %[[MASK:.*]] = llvm.icmp "ne" %[[FIRST]], %{{.*}} : vector<8xi8>
// CHECK:         %[[OTHERWISE:.*]] = llvm.zext %[[MASK]] : vector<8xi1> to vector<8xi8>
// CHECK:         %[[SECOND:.*]] = llvm.intr.masked.load %{{.*}}, %[[MASK]], %[[OTHERWISE]] {alignment = 1 : i32}
// CHECK-SAME:        -> vector<8xi8>
// CHECK:         %[[VALUES:.*]] = llvm.icmp "ne" %[[SECOND]], %{{.*}} : vector<8xi8>
// CHECK:         %[[STORED:.*]] = llvm.zext %[[VALUES]] : vector<8xi1> to vector<8xi8>
// CHECK:         llvm.intr.masked.store %[[STORED]], %{{.*}}, %[[MASK]] {alignment = 1 : i32} : vector<8xi8>
llvm.func @vectors(%from: !llvm.ptr, %to: !llvm.ptr) {
  %mask = llvm.load %from : !llvm.ptr -> vector<8xi1>
  %x = llvm.intr.masked.load %from, %mask, %mask {alignment = 1 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi1>) -> vector<8xi1>
  llvm.intr.masked.store %x, %to, %mask {alignment = 1 : i32} : vector<8xi1>, vector<8xi1> into !llvm.ptr
  llvm.return
}

// Other types stay.
// CHECK-LABEL: llvm.func @others(
// CHECK-NEXT:    %[[VALUE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i8
// CHECK-NEXT:    llvm.store %[[VALUE]], %{{.*}} : i8, !llvm.ptr
// CHECK-NEXT:    llvm.return
llvm.func @others(%from: !llvm.ptr, %to: !llvm.ptr) {
  %x = llvm.load %from : !llvm.ptr -> i8
  llvm.store %x, %to : i8, !llvm.ptr
  llvm.return
}
