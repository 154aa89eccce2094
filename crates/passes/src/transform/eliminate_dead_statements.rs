//! `tml-eliminate-dead-statements`: remove statements that no result depends on.
//!
//! A variable that is not a result is dead after its last use. Every variable is dead before an
//! assignment that no use precedes. The pass removes statements with dead values, last ones first, so
//! statements that only they used are removed too (dead code elimination, section 5 of the report).
//!
//! Before, if only `C` is a result:
//!
//! ```mlir
//! %t = tml.assign "t" %A : tensor<3xf64>
//! %C = tml.assign "C" %A : tensor<3xf64>
//! tml.return %C : tensor<3xf64>
//! ```
//!
//! After:
//!
//! ```mlir
//! %C = tml.assign "C" %A : tensor<3xf64>
//! tml.return %C : tensor<3xf64>
//! ```
//!
//! Remarks: `removed`, for each statement.

use melior::ir::operation::OperationLike;
use tc_dialects::{
    mlir,
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
    tml::Program,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tml-eliminate-dead-statements",
    summary: "Remove statements that no result depends on",
    anchor: "tml.program",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(program) = Program::cast(pass.op) else { return Ok(()) };
    for op in mlir::ops(program.body()).into_iter().rev() {
        let is_used = mlir::results(op).into_iter().any(|value| !mlir::uses(value).is_empty());
        if is_used || mlir::is(op, "tml.return") {
            continue;
        }
        if mlir::is(op, "tml.assign") {
            let name = mlir::string_attr(op, "name").unwrap_or_default();
            let arguments = [("Variable", name)];
            let kind = RemarkKind::Passed;
            remark(op.location(), kind, PASS.argument, "removed", program.name(), &arguments);
        }
        mlir::erase(op);
    }
    Ok(())
}
