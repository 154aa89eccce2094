//! `hoist-scratch`: allocate the memory of iterations once for all iterations.
//!
//! Each iteration of independent loops has memory of its own (`imap.scratch`), so that they can run at the same
//! time. Where they run one after the other, they can share it.
//!
//! Before:
//!
//! ```mlir
//! scf.for %i = %c0 to %n step %c1 {
//!   %a = memref.alloc() {imap.scratch} : memref<8xf32>
//!   ..
//! } {imap.independent}
//! ```
//!
//! After:
//!
//! ```mlir
//! %a = memref.alloc() {imap.scratch} : memref<8xf32>
//! scf.for %i = %c0 to %n step %c1 {
//!   ..
//! } {imap.independent}
//! ```

use melior::ir::operation::OperationLike;
use tc_dialects::{
    imap::{INDEPENDENT, SCRATCH},
    mlir,
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "hoist-scratch",
    summary: "Allocate the memory of iterations once for all iterations",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut allocations = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        if op.has_attribute(SCRATCH) && op.operand_count() == 0 {
            allocations.push(op);
        }
    });
    for op in allocations {
        while let Some(around) = mlir::parent(op).filter(|it| it.has_attribute(INDEPENDENT)) {
            mlir::move_before(op, around);
        }
    }
    Ok(())
}
