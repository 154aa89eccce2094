//! `limit-vectorization`: innermost loops with long branches are not vectorized.
//!
//! To vectorize a loop, LLVM computes both sides of its branches and masks what is not
//! taken. With long branches that is slower than the branches themselves, and LLVM 22 takes
//! time that is exponential in the depth of what they compute from values that the loop
//! does not change. Such loops get the annotation that tells LLVM to leave them.
//!
//! Before:
//!
//! ```mlir
//! scf.for %i = %c0 to %n step %c1 {
//!   %v = scf.if %p -> (f32) {
//!     .. // more than 48 operations
//!   } ..
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! scf.for %i = %c0 to %n step %c1 {
//!   ..
//! } {llvm.loop_annotation = #llvm.loop_annotation<vectorize = <disable = true>>}
//! ```
//!
//! Options: `max-conditional-ops`, how many operations the branches of a loop may have.
//! Remark: how many loops were annotated.

use melior::ir::operation::OperationLike;
use tc_dialects::{
    diagnostic::{RemarkKind, Report, remark},
    mlir::{self, Op},
    pass::{Failure, PassInfo, PassOption, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "limit-vectorization",
    summary: "Tell LLVM not to vectorize loops with long branches",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "max-conditional-ops",
        description: "How many operations the branches of a loop may have",
        default: "48",
    }],
    dependent_dialects: &["llvm"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(limit) = pass.options.number("max-conditional-ops") else {
        Report::op_error(pass.op, "'max-conditional-ops' expects a number").emit();
        return Err(Failure);
    };
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let text = "#llvm.loop_annotation<vectorize = <disable = true>>";
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut num_annotated = 0;
        mlir::walk(function, &mut |op| {
            if mlir::is(op, "scf.for") && is_branchy(op, limit) {
                let annotation = mlir::parse_attribute(pass.context, text);
                mlir::set_attribute(op, "llvm.loop_annotation", annotation);
                num_annotated += 1;
            }
        });
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "loops",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Annotated", &num_annotated.to_string())],
        );
    }
    Ok(())
}

/// Whether a loop is an innermost one with more than `limit` operations in branches.
fn is_branchy(around: Op, limit: i64) -> bool {
    let mut is_innermost = true;
    let mut count = 0;
    mlir::walk(around, &mut |op| {
        if op == around {
            return;
        }
        is_innermost &= !mlir::is(op, "scf.for");
        let mut next = mlir::parent(op);
        while let Some(parent) = next.filter(|parent| *parent != around) {
            if mlir::is(parent, "scf.if") {
                count += 1;
                return;
            }
            next = mlir::parent(parent);
        }
    });
    is_innermost && limit < count
}
