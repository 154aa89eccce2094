//! `check-device-reads`: return a code if a read of memory of a device fails.
//!
//! A function computes with what it reads, so it must not go on without. Errors of calls that do not wait for the
//! device show up in the next read.
//!
//! Before:
//!
//! ```mlir
//! %status = llvm.call %read(..) {tc.device_status} : !llvm.ptr, (..) -> i32
//! ```
//!
//! After:
//!
//! ```mlir
//!   %status = llvm.call %read(..) : !llvm.ptr, (..) -> i32
//!   %failed = llvm.icmp "ne" %status, %zero : i32
//!   llvm.cond_br %failed, ^failed, ^next
//! ^next:
//!   ..
//! ^failed:
//!   llvm.return %code : i32
//! ```

use crate::analysis::buffers::DEVICE_STATUS;
use melior::ir::{attribute::IntegerAttribute, operation::OperationLike};
use tc_dialects::{
    mlir::{self, Builder, Op},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "check-device-reads",
    summary: "Return a code where memory of a device cannot be read",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["llvm"],
    run,
};

/// The code that a compiled function returns if the device has failed.
pub const DEVICE_FAILED: i32 = -2;
/// The number of the predicate 'ne' of 'llvm.icmp'.
const ICMP_NE: i64 = 1;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "llvm.func")) {
        pass.enter(function);
        let mut calls = Vec::new();
        mlir::walk(function, &mut |op| {
            if op.has_attribute(DEVICE_STATUS) {
                calls.push(op);
            }
        });
        if !calls.is_empty() {
            check(function, &calls);
        }
    }
    Ok(())
}

/// Adds branches behind calls to a block that returns.
fn check<'c>(function: Op<'c>, calls: &[Op<'c>]) {
    let (context, location) = (mlir::context_of(function), function.location());
    let constant = |builder: &Builder<'c>, value: i32| {
        let ty = builder.int_type(32);
        let value = IntegerAttribute::new(ty, value.into()).into();
        builder.value_with("llvm.mlir.constant", &[], ty, &[("value", value)])
    };
    let blocks = mlir::blocks(function, 0);
    let exit = mlir::block_after(blocks[blocks.len() - 1], &[]);
    let builder = Builder::at_end(context, exit, location);
    builder.op("llvm.return", &[constant(&builder, DEVICE_FAILED)], &[]);
    // The last ones first: what comes after a call moves to another block.
    for call in calls.iter().rev() {
        mlir::remove_attribute(*call, DEVICE_STATUS);
        let next = mlir::next(*call).expect("a call is no terminator");
        let (before, after) = mlir::split_block(next);
        let builder = Builder::at_end(context, before, call.location());
        let operands = [mlir::result(*call, 0), constant(&builder, 0)];
        let predicate = [("predicate", mlir::i64_attr(context, ICMP_NE))];
        let failed = builder.value_with("llvm.icmp", &operands, builder.int_type(1), &predicate);
        let segments = [("operandSegmentSizes", mlir::segments(context, &[1, 0, 0]))];
        builder.branch("llvm.cond_br", &[failed], &segments, &[exit, after]);
    }
}
