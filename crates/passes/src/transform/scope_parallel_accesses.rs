//! `scope-parallel-accesses`: let loads and stores in parallel regions name the arguments that they do not access.
//!
//! OpenMP's regions become functions that read their pointers from memory, and LLVM drops the assumptions inside of
//! them. It then no longer knows that the arguments of the function around a region share no memory: it loads invariant
//! elements in each iteration, and has to compare pointers before vectorized loops. Alias scopes of loads and stores stay.
//!
//! Before:
//!
//! ```mlir
//! llvm.func @f(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}) {
//!   omp.parallel {
//!     %x = llvm.load %a : !llvm.ptr -> f32
//!     llvm.store %x, %b : f32, !llvm.ptr
//! ```
//!
//! After:
//!
//! ```mlir
//! llvm.func @f(%a: !llvm.ptr {llvm.noalias}, %b: !llvm.ptr {llvm.noalias}) {
//!   omp.parallel {
//!     %x = llvm.load %a {alias_scopes = [#a], noalias_scopes = [#b]} : !llvm.ptr -> f32
//!     llvm.store %x, %b {alias_scopes = [#b], noalias_scopes = [#a]} : f32, !llvm.ptr
//! ```

use crate::analysis::buffers::is_noalias;
use std::collections::HashMap;
use tc_dialects::{
    mlir::{self, Op, Val},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "scope-parallel-accesses",
    summary: "Let accesses in parallel regions name the arguments that they do not access",
    anchor: "llvm.func",
    options: &[],
    dependent_dialects: &["llvm"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut accesses = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        if mlir::is(op, "omp.parallel") {
            mlir::walk(op, &mut |inner| accesses.extend(address(inner).map(|it| (inner, it))));
        }
    });
    if accesses.is_empty() {
        return Ok(());
    }
    let arguments = mlir::body(pass.op, 0).map(mlir::arguments).unwrap_or_default();
    let arguments: Vec<Val> = arguments.into_iter().filter(|it| is_noalias(*it)).collect();
    let name = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    let scope = |number: usize| {
        let text =
            format!("#llvm.alias_scope<id = \"{name}.{number}\", domain = <id = \"{name}\">>");
        mlir::parse_attribute(pass.context, &text)
    };
    let scopes: Vec<_> = (0..arguments.len()).map(scope).collect();
    let of_others = |own: usize| {
        let others = scopes.iter().enumerate().filter(|(number, _)| *number != own);
        mlir::array(pass.context, &others.map(|(_, scope)| *scope).collect::<Vec<_>>())
    };
    let numbers = arguments.iter().enumerate();
    let attributes: HashMap<_, _> = numbers
        .map(|(number, argument)| {
            let own = mlir::array(pass.context, &scopes[number..=number]);
            (mlir::value_key(*argument), [own, of_others(number)])
        })
        .collect();
    for (op, address) in accesses {
        if let Some([own, others]) = attributes.get(&mlir::value_key(base(address))) {
            mlir::set_attribute(op, "alias_scopes", *own);
            mlir::set_attribute(op, "noalias_scopes", *others);
        }
    }
    Ok(())
}

/// The address that a load or a store accesses.
fn address(op: Op) -> Option<Val> {
    match mlir::name(op) {
        "llvm.load" => Some(mlir::operand(op, 0)),
        "llvm.store" => Some(mlir::operand(op, 1)),
        _ => None,
    }
}

/// The pointer from which an address is computed.
fn base(address: Val) -> Val {
    let mut value = address;
    while let Some(op) = mlir::defining_op(value).filter(|it| mlir::is(*it, "llvm.getelementptr")) {
        value = mlir::operand(op, 0);
    }
    value
}
