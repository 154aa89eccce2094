// RUN: tc-opt %s --pass-pipeline='builtin.module(llvm.func(scope-parallel-accesses))' | FileCheck %s

// A region of OpenMP becomes a function, for which its pointers are any pointers. Accesses name the arguments that they
// do not touch.
// CHECK-DAG: #[[A:.*]] = #llvm.alias_scope<id = "copy.0", domain = #[[DOMAIN:.*]]>
// CHECK-DAG: #[[B:.*]] = #llvm.alias_scope<id = "copy.1", domain = #[[DOMAIN]]>
// CHECK-LABEL: llvm.func @copy
llvm.func @copy(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}, %c: !llvm.ptr, %i: i64) {
  // CHECK: llvm.load %{{.*}} : !llvm.ptr -> f32
  %before = llvm.load %a : !llvm.ptr -> f32
  omp.parallel {
    // CHECK: llvm.load %{{.*}} {alias_scopes = [#[[A]]], alignment = 4 : i64, noalias_scopes = [#[[B]]]}
    %p = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> f32
    // CHECK: llvm.store %{{.*}}, %arg1 {alias_scopes = [#[[B]]], noalias_scopes = [#[[A]]]}
    llvm.store %x, %b : f32, !llvm.ptr
    // An argument that may share memory has no scope.
    // CHECK: llvm.store %{{.*}}, %arg2 : f32, !llvm.ptr
    llvm.store %x, %c : f32, !llvm.ptr
    omp.terminator
  }
  llvm.return
}
