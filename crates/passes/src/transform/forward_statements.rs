//! `tml-forward-statements`: what one other statement uses becomes a part of that statement.
//!
//! Each use of a variable is reached by the last assignment before it. Where an assignment reaches one
//! use only, and its value is no result of the program, the expression can stand in place of the use:
//! nothing else needs the variable, and optimizations see one larger expression.
//!
//! Before:
//!
//! ```mlir
//! %t = tml.assign "t" %p : tensor<3xf64>
//! %s = tml.add %t, %A : tensor<3xf64>
//! ```
//!
//! After:
//!
//! ```mlir
//! %s = tml.add %p, %A : tensor<3xf64>
//! ```
//!
//! Remarks: `forwarded`, for each statement.

use melior::ir::operation::OperationLike;
use tc_dialects::{
    diagnostic::{RemarkKind, remark},
    mlir,
    pass::{Failure, PassInfo, PassRun},
    tml::Program,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tml-forward-statements",
    summary: "Make what one other statement uses a part of that statement",
    anchor: "tml.program",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(program) = Program::cast(pass.op) else { return Ok(()) };
    for op in mlir::ops(program.body()) {
        if !mlir::is(op, "tml.assign") {
            continue;
        }
        let [(user, _)] = mlir::uses(mlir::result(op, 0))[..] else { continue };
        if mlir::is(user, "tml.return") {
            continue;
        }
        let name = mlir::string_attr(op, "name").unwrap_or_default();
        let arguments = [("Variable", name)];
        let kind = RemarkKind::Passed;
        remark(op.location(), kind, PASS.argument, "forwarded", program.name(), &arguments);
        mlir::replace(op, &[mlir::operand(op, 0)]);
    }
    Ok(())
}
