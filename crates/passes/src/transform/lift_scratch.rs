//! `lift-scratch`: allocate the memory of outlined functions in their callers.
//!
//! Only a function with a C interface can report that an allocation failed.
//!
//! Before:
//!
//! ```mlir
//! func.func private @f_0(%a: memref<8xf32>) attributes {tc.outlined, ..} {
//!   %t = memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
//!   ..
//!   memref.dealloc %t {bufferization.manual_deallocation} : memref<8xf32>
//!   return
//! }
//! func.func @f(%a: memref<8xf32>) {
//!   func.call @f_0(%a)
//!   ..
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func private @f_0(%a: memref<8xf32>, %t: memref<8xf32> {llvm.noalias}) attributes {tc.outlined, ..} {
//!   ..
//!   return
//! }
//! func.func @f(%a: memref<8xf32>) {
//!   %t = memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
//!   func.call @f_0(%a, %t)
//!   memref.dealloc %t {bufferization.manual_deallocation} : memref<8xf32>
//!   ..
//! ```
//!
//! A function is inlined if it allocates memory of a size that it computes, or in a parallel loop.

use super::{deallocate_local_buffers::MANUAL, inline_calls::inline_call};
use crate::analysis::buffers::{OUTLINED, argument_attributes};
use melior::ir::{ValueLike, operation::OperationLike, r#type::FunctionType};
use std::collections::HashMap;
use tc_dialects::{
    mlir::{self, Builder, Op, ValueMap},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "lift-scratch",
    summary: "Allocate the memory of outlined functions where they are called",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["memref"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let functions = mlir::ops(block).into_iter().filter(|op| op.has_attribute(OUTLINED));
    let functions: Vec<_> = functions.collect();
    if functions.is_empty() {
        return Ok(());
    }
    let mut calls: HashMap<&str, Vec<Op>> = HashMap::new();
    mlir::walk(pass.op, &mut |op| {
        if let Some(callee) = mlir::callee(op).filter(|_| mlir::is(op, "func.call")) {
            calls.entry(callee).or_default().push(op);
        }
    });
    for function in functions {
        pass.enter(function);
        let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
        let calls = calls.remove(name).unwrap_or_default();
        let mut allocations = Vec::new();
        mlir::walk(function, &mut |op| {
            if mlir::is(op, "memref.alloc") {
                allocations.push(op);
            }
        });
        match allocations.iter().all(|op| is_liftable(*op)) {
            true => lift(function, &allocations, &calls),
            false => {
                calls.into_iter().for_each(|call| inline_call(function, call));
                mlir::erase(function);
            }
        }
    }
    Ok(())
}

/// Whether a call may take the memory from its caller: its size is constant, one operation of the function frees it,
/// and threads do not allocate it at the same time.
fn is_liftable(allocation: Op) -> bool {
    allocation.operand_count() == 0
        && allocation.has_attribute(MANUAL)
        && mlir::ancestor(allocation, "scf.parallel").is_none()
}

fn lift<'c>(function: Op<'c>, allocations: &[Op<'c>], calls: &[Op<'c>]) {
    let (Some(block), Some((mut types, results))) =
        (mlir::body(function, 0), mlir::function_type(function))
    else {
        return;
    };
    let context = mlir::context_of(function);
    let mut attributes = mlir::array_attr(function, "arg_attrs");
    attributes.resize(types.len(), argument_attributes(context, false));
    for allocation in allocations {
        let buffer = mlir::result(*allocation, 0);
        let users = mlir::uses(buffer).into_iter().map(|(user, _)| user);
        let frees: Vec<_> = users.filter(|user| mlir::is(*user, "memref.dealloc")).collect();
        for call in calls {
            let around = Builder::before(*call);
            let copy = around.copy(*allocation, &mut ValueMap::default());
            let operands = [&mlir::operands(*call)[..], &mlir::results(copy)].concat();
            mlir::set_operands(*call, &operands);
            let next = mlir::next(*call).expect("a call is no terminator");
            for free in &frees {
                let mut map = ValueMap::default();
                map.insert(buffer, mlir::result(copy, 0));
                Builder::before(next).copy(*free, &mut map);
            }
        }
        let ty = buffer.r#type();
        let argument = mlir::insert_argument(block, types.len(), ty, allocation.location());
        types.push(ty);
        attributes.push(argument_attributes(context, true));
        frees.into_iter().for_each(mlir::erase);
        mlir::replace(*allocation, &[argument]);
    }
    let ty = FunctionType::new(context, &types, &results).into();
    mlir::set_attribute(function, "function_type", mlir::type_attr(ty));
    mlir::set_attribute(function, "arg_attrs", mlir::array(context, &attributes));
}
