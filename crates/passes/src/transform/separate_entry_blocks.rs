//! `separate-entry-blocks`: let the entry block of a function hold nothing but a branch.
//!
//! The conversion of functions takes buffers apart at the start of the entry block. For each argument it
//! then asks for the order of operations there, which numbers the whole block again. This pass keeps the
//! block small, so that a function of n buffers is converted in linear time.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%a: memref<4xf32>) {
//!   .. // operations
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%a: memref<4xf32>) {
//!   llvm.br ^bb1
//! ^bb1:
//!   .. // operations
//! }
//! ```

use melior::ir::operation::OperationLike;
use tc_dialects::{
    mlir::{self, Builder},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "separate-entry-blocks",
    summary: "Let the entry block of a function hold nothing but a branch",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["llvm"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let first = mlir::body(function, 0).and_then(|entry| mlir::ops(entry).first().copied());
        if let Some(first) = first {
            let (entry, rest) = mlir::split_block(first);
            let builder = Builder::at_end(pass.context, entry, function.location());
            builder.branch("llvm.br", &[], &[], &[rest]);
        }
    }
    Ok(())
}
