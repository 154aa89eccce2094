//! `tml-forward-statements`: substitute single-use statements into their users.
//!
//! The last assignment before a use of a variable reaches it. If an assignment reaches only one use and
//! its value is not a result of the program, this pass replaces the use by the expression. Then
//! optimizations see one larger expression.
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
//! An expression with more elements than its operands, such as an outer product, replaces all its uses:
//! recomputing an element costs less than storing and reading it, and a contracted outer product need
//! not be stored at all. If it is a result, it is stored only for that.
//!
//! Remarks: `forwarded`, for each statement.

use melior::ir::operation::OperationLike;
use std::collections::HashMap;
use tc_dialects::{
    mlir::{self, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
    tml::{Program, num_elements},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tml-forward-statements",
    summary: "Substitute single-use statements into their users",
    anchor: "tml.program",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(program) = Program::cast(pass.op) else { return Ok(()) };
    // How many elements an expression without sums reads; anything else is read itself.
    let mut reads: HashMap<usize, i64> = HashMap::new();
    let read_by = |value: Val, reads: &HashMap<usize, i64>| {
        reads.get(&mlir::value_key(value)).copied().unwrap_or_else(|| num_elements(value))
    };
    for op in mlir::ops(program.body()) {
        if !mlir::is(op, "tml.assign") {
            if !mlir::is(op, "tml.contract") && op.result_count() == 1 {
                let operands = mlir::operands(op).into_iter();
                let all = operands.map(|it| read_by(it, &reads)).reduce(i64::saturating_add);
                // What is undefined reads nothing, and is read.
                reads.extend(all.map(|all| (mlir::value_key(mlir::result(op, 0)), all)));
            }
            continue;
        }
        let (value, uses) = (mlir::operand(op, 0), mlir::uses(mlir::result(op, 0)));
        if 1 < uses.len() && num_elements(value) <= read_by(value, &reads) {
            continue;
        }
        let (returns, uses): (Vec<_>, Vec<_>) =
            uses.into_iter().partition(|(user, _)| mlir::is(*user, "tml.return"));
        if uses.is_empty() {
            continue;
        }
        let name = mlir::string_attr(op, "name").unwrap_or_default();
        let arguments = [("Variable", name)];
        let kind = RemarkKind::Passed;
        remark(op.location(), kind, PASS.argument, "forwarded", program.name(), &arguments);
        for (user, number) in uses {
            mlir::set_operand(user, number, value);
        }
        if returns.is_empty() {
            mlir::erase(op);
        }
    }
    Ok(())
}
