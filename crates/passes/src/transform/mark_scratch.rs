//! `mark-scratch`: mark memory that belongs to an operation.
//!
//! Operations with the attribute `imap.scratch` write panels, which only the operation after them reads. The
//! attribute moves to the allocation.
//!
//! Before, shortened:
//!
//! ```mlir
//! %p = memref.alloc() : memref<32x512x16xf32>
//! imap.generic (j, k, n) .. ins(%b[k, j * 16 + n] ..) outs(%p[j, k, n] ..) attributes {imap.scratch} {..}
//! ```
//!
//! After:
//!
//! ```mlir
//! %p = memref.alloc() {imap.scratch} : memref<32x512x16xf32>
//! imap.generic (j, k, n) .. ins(%b[k, j * 16 + n] ..) outs(%p[j, k, n] ..) {..}
//! ```

use melior::ir::{Attribute, operation::OperationLike};
use tc_dialects::{
    imap::{Generic, Indexed, SCRATCH},
    mlir,
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "mark-scratch",
    summary: "Mark memory that belongs to an operation",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut found = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        found.extend(Generic::cast(op).filter(|it| it.op().has_attribute(SCRATCH)));
    });
    for generic in found {
        let context = mlir::context_of(generic.op());
        for buffer in generic.inits() {
            let allocation = mlir::defining_op(buffer).filter(|op| mlir::is(*op, "memref.alloc"));
            if let Some(allocation) = allocation {
                mlir::set_attribute(allocation, SCRATCH, Attribute::unit(context));
            }
        }
        mlir::remove_attribute(generic.op(), SCRATCH);
    }
    Ok(())
}
