//! `drop-argument-attributes`: removes the attributes of the arguments of functions.
//!
//! They describe what a caller passes (`tc.name`, `tc.sizes`, `tc.extents`, ..). Whoever needs them reads
//! them before buffers are introduced; LLVM IR cannot hold them.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%a: memref<4xf32> {tc.name = "A"}) -> i32
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%a: memref<4xf32>) -> i32
//! ```

use tc_dialects::{
    mlir,
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "drop-argument-attributes",
    summary: "Remove the attributes of the arguments of functions",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let module = mlir::body(pass.op, 0).ok_or(Failure)?;
    for function in mlir::ops(module).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        mlir::remove_attribute(function, "arg_attrs");
    }
    Ok(())
}
