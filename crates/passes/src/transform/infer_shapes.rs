//! `axon-infer-shapes`: infer the types and shapes of Axon programs.
//!
//! This pass gives every value the type of Hindley-Milner inference with shapes. Variables have names
//! and belong to the enclosing top-level definition. Unsolved equations become the `conditions` of a
//! definition. Different names of one signature that denote equal sizes are a warning, or an error with
//! `strict-names=true`. Existing types are ignored: the annotations of functions keep the types that the program
//! writes.
//!
//! Before:
//!
//! ```mlir
//! %0 = axon.fn ["x"](%x: !axon.any) {
//!   %y = axon.exp(%x) : (!axon.any) -> !axon.any
//!   axon.return %y : !axon.any
//! } : !axon.any
//! ```
//!
//! After:
//!
//! ```mlir
//! %0 = axon.fn ["x"](%x: !axon.tensor<t, a>) {
//!   %y = axon.exp(%x) : (!axon.tensor<t, a>) -> !axon.tensor<t, a>
//!   axon.return %y : !axon.tensor<t, a>
//! } : (!axon.tensor<t, a>) -> !axon.tensor<t, a>
//! ```

use tc_dialects::{
    axon::{
        Options,
        dialect::{PROGRAM, Read},
    },
    mlir,
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "axon-infer-shapes",
    summary: "Infer the types and shapes of Axon programs",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "strict-names",
        description: "Reject different names of one signature that are equal",
        default: "false",
    }],
    dependent_dialects: &["axon"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let strict_names = pass.options.flag("strict-names");
    let options = Options { strict_names, ..Options::default() };
    for program in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, PROGRAM)) {
        pass.enter(program);
        let emit = |report: Report| {
            report.emit();
            Failure
        };
        let read = Read::with_options(program, &options).map_err(emit)?;
        read.emit_warnings();
        let typed = read.typed().map_err(emit)?;
        for op in mlir::ops(mlir::block_ref(typed.body())) {
            mlir::move_before(op, program);
        }
        mlir::erase(program);
    }
    Ok(())
}
