//! `drop-roundings`: a float that is rounded to fewer bits, and widened again, is not rounded.
//!
//! A program on `bf16` rounds after each operation. Inside of a fused operation, that takes longer than the operation
//! itself. XLA does the same by default (`allow-excess-precision`).
//!
//! Before:
//!
//! ```mlir
//! %r = arith.truncf %x : f32 to bf16
//! %y = arith.extf %r : bf16 to f32
//! %z = arith.mulf %y, %y : f32
//! ```
//!
//! After:
//!
//! ```mlir
//! %z = arith.mulf %x, %x : f32
//! ```
//!
//! Roundings of numbers that are stored stay. Remark: the number of those that are dropped.

use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    mlir,
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "drop-roundings",
    summary: "Keep floats that are rounded and widened again as they are",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &[],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut widened = Vec::new();
    mlir::walk(pass.op, &mut |op| widened.extend(mlir::is(op, "arith.extf").then_some(op)));
    let mut count = 0;
    for op in widened {
        let rounding = mlir::defining_op(mlir::operand(op, 0));
        let Some(rounding) = rounding.filter(|it| mlir::is(*it, "arith.truncf")) else { continue };
        let (exact, result) = (mlir::operand(rounding, 0), mlir::result(op, 0));
        if exact.r#type() == result.r#type() {
            mlir::replace(op, &[exact]);
            count += 1;
        }
    }
    if 0 < count {
        remark(
            pass.op.location(),
            RemarkKind::Passed,
            PASS.argument,
            "dropped",
            mlir::string_attr(pass.op, "sym_name").unwrap_or_default(),
            &[("Roundings", &count.to_string())],
        );
    }
    Ok(())
}
