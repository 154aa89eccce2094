//! `deallocate-local-buffers`: free buffers that do not leave their block after their last use.
//!
//! This pass runs before ownership-based deallocation, which follows each buffer through control flow and
//! compares all buffers of a block with each other. Most buffers are used only by loads, stores, copies and
//! views of them: this pass frees these, and marks them as freed (`bufferization.manual_deallocation`).
//!
//! Before:
//!
//! ```mlir
//! %a = memref.alloc() : memref<8xf32>
//! memref.copy %x, %a : memref<8xf32> to memref<8xf32>
//! .. // other operations
//! ```
//!
//! After:
//!
//! ```mlir
//! %a = memref.alloc() {bufferization.manual_deallocation} : memref<8xf32>
//! memref.copy %x, %a : memref<8xf32> to memref<8xf32>
//! memref.dealloc %a {bufferization.manual_deallocation} : memref<8xf32>
//! .. // other operations
//! ```
//!
//! A buffer of static shape directly in the body of an `scf.parallel` goes on the stack of the thread instead, up to
//! [`MAX_STACK_BYTES`] per loop. In a loop nested in the body, each iteration would take more of the stack.
//!
//! Remark: how many buffers of a function are freed.

use crate::{
    analysis::buffers::{VIEWS, static_bytes},
    loops::build_stack,
};
use melior::ir::{Attribute, ValueLike, operation::OperationLike};
use std::collections::HashMap;
use tc_dialects::{
    mlir::{self, Builder, Op},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "deallocate-local-buffers",
    summary: "Free buffers that do not leave their block after their last use",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["memref", "bufferization"],
    run,
};

/// Marks an operation that ownership-based deallocation leaves alone.
pub(crate) const MANUAL: &str = "bufferization.manual_deallocation";
/// Operations that use a buffer and keep no reference to it.
pub(super) const USERS: [&str; 10] = [
    "func.call",
    "memref.atomic_rmw",
    "memref.copy",
    "memref.dim",
    "memref.load",
    "memref.prefetch",
    "memref.store",
    "vector.load",
    "vector.store",
    "vector.maskedstore",
];

/// The bytes of the buffers of a parallel loop on the stack of a thread.
pub const MAX_STACK_BYTES: i64 = 1 << 18;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let (mut numbers, mut allocations) = (HashMap::new(), Vec::new());
        mlir::walk(function, &mut |op| {
            numbers.insert(mlir::op_key(op), numbers.len());
            if mlir::is(op, "memref.alloc") && op.attribute(MANUAL).is_err() {
                allocations.push(op);
            }
        });
        let (mut num_freed, mut on_stack) = (0, HashMap::new());
        for allocation in allocations {
            let Some(next) = last_use(allocation, &numbers).and_then(mlir::next) else { continue };
            let ty = mlir::result(allocation, 0).r#type();
            if let Some(around) =
                mlir::parent(allocation).filter(|it| mlir::is(*it, "scf.parallel"))
                && let Some(bytes) = static_bytes(ty)
                && let used = on_stack.entry(mlir::op_key(around)).or_insert(0_i64)
                && used.saturating_add(bytes) <= MAX_STACK_BYTES
            {
                *used += bytes;
                let builder = Builder::before(allocation).located(allocation.location());
                mlir::replace(allocation, &[build_stack(&builder, ty)]);
                continue;
            }
            let manual = (MANUAL, Attribute::unit(pass.context));
            mlir::set_attribute(allocation, manual.0, manual.1);
            let builder = Builder::before(next).located(allocation.location());
            let buffer = mlir::result(allocation, 0);
            builder.op_with("memref.dealloc", &[buffer], &[], &[manual], Vec::new());
            num_freed += 1;
        }
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "buffers",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Freed", &num_freed.to_string())],
        );
    }
    Ok(())
}

/// The last operation in the block of an allocation that uses its buffer, itself if nothing does; `None` if
/// the buffer may leave the block. Operations are numbered in program order.
fn last_use<'c>(allocation: Op<'c>, numbers: &HashMap<usize, usize>) -> Option<Op<'c>> {
    let block = mlir::block_ref(allocation.block()?);
    let mut last = allocation;
    let mut buffers = vec![mlir::result(allocation, 0)];
    while let Some(buffer) = buffers.pop() {
        for (user, _) in mlir::uses(buffer) {
            if mlir::is(user, "arith.select") || VIEWS.iter().any(|name| mlir::is(user, name)) {
                buffers.push(mlir::result(user, 0));
            } else if !USERS.iter().any(|name| mlir::is(user, name))
                || mlir::results(user).iter().any(|it| mlir::is_memref(it.r#type()))
            {
                return None;
            }
            let user = mlir::ancestor_in(user, block)?;
            if numbers.get(&mlir::op_key(last)) < numbers.get(&mlir::op_key(user)) {
                last = user;
            }
        }
    }
    Some(last)
}
