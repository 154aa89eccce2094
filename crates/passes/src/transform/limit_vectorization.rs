//! `limit-vectorization`: disable vectorization and unrolling of loops where they cost LLVM much time.
//!
//! To vectorize a loop, LLVM computes both sides of its branches and masks the side that is not taken.
//! With long branches, that is slower than branching. In addition, LLVM 22 needs time exponential in the
//! depth of loop-invariant computations whose operands are used several times: `isSingleScalar` of its
//! vectorizer walks every path. Minima and maxima of floats are such computations, because
//! `arith-expand` expands them to three uses of each operand. So
//!
//! - innermost loops with long branches are not vectorized,
//! - innermost loops with many scalar minima and maxima of floats are not vectorized, and
//! - innermost loops with any of them are not unrolled, because unrolling would chain them in the
//!   enclosing loop.
//!
//! To unroll a loop around another one, LLVM copies the inner loop. Such a loop is not unrolled if LLVM does not
//! unroll the inner one either, and if it carries values from one inner loop to the next or has many operations.
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
//! } {loop_annotation = #llvm.loop_annotation<vectorize = <disable = true>>}
//! ```
//!
//! Options: `max-conditional-ops`, the largest number of operations in the branches of a loop;
//! `max-extrema`, the largest number of minima and maxima of floats in a loop; `max-unrolled`, the largest number of
//! iterations of a loop that LLVM unrolls; `max-copied-ops`, the largest number of operations of a loop of which LLVM
//! may copy the inner loops. Remark: the number of annotated loops.

use crate::loops;
use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use tc_dialects::{
    mlir::{self, Op},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "limit-vectorization",
    summary: "Disable vectorization and unrolling of loops where they cost LLVM much time",
    anchor: "builtin.module",
    options: &[
        PassOption {
            name: "max-conditional-ops",
            description: "Largest number of operations in the branches of a loop",
            default: "48",
        },
        PassOption {
            name: "max-extrema",
            description: "Largest number of scalar minima and maxima of floats in a loop",
            default: "8",
        },
        PassOption {
            name: "max-unrolled",
            description: "Largest number of iterations of a loop that LLVM unrolls",
            default: "4",
        },
        PassOption {
            name: "max-copied-ops",
            description: "Largest number of operations of a loop whose inner loops LLVM may copy",
            default: "16",
        },
    ],
    dependent_dialects: &["llvm"],
    run,
};

/// Scalar operations that `arith-expand` writes out with several uses of each operand.
const EXTREMA: [&str; 4] = ["arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf"];

fn run(pass: &PassRun) -> Result<(), Failure> {
    let (max_conditional_ops, max_extrema) =
        (pass.number("max-conditional-ops")?, pass.number("max-extrema")?);
    let (max_unrolled, max_copied_ops) =
        (pass.number("max-unrolled")?, pass.number("max-copied-ops")?);
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let mut num_annotated = 0;
        mlir::walk(function, &mut |op| {
            if !mlir::is(op, "scf.for") {
                return;
            }
            let mut limits = Vec::new();
            if let Some(body) = Body::of(op) {
                if max_conditional_ops < body.num_conditional || max_extrema < body.num_extrema {
                    limits.push("vectorize = <disable = true>");
                }
                if 0 < body.num_extrema {
                    limits.push("unroll = <disable = true>");
                }
            } else if surrounds_loop(op, max_unrolled)
                && (0 < op.result_count() || max_copied_ops < count_ops(op))
            {
                limits.push("unroll = <disable = true>");
            }
            if limits.is_empty() {
                return;
            }
            loops::annotate(op, &limits.join(", "));
            num_annotated += 1;
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

/// Whether there is a loop of more iterations, or of an unknown number, in a loop.
fn surrounds_loop(op: Op, max_iterations: i64) -> bool {
    let mut found = false;
    mlir::walk(op, &mut |inner| {
        if inner != op && mlir::is(inner, "scf.for") {
            let bounds = [0, 1, 2].map(|place| mlir::constant_of(mlir::operand(inner, place)));
            let has_few = match bounds {
                [Some(lower), Some(upper), Some(step)] => {
                    let most = max_iterations.checked_mul(step);
                    upper.checked_sub(lower).zip(most).is_some_and(|(length, most)| length <= most)
                }
                _ => false,
            };
            found |= !has_few;
        }
    });
    found
}

/// The number of operations in an operation.
fn count_ops(op: Op) -> i64 {
    let mut count = -1;
    mlir::walk(op, &mut |_| count += 1);
    count
}

/// What the body of an innermost loop holds.
#[derive(Default)]
struct Body {
    /// Operations in branches.
    num_conditional: i64,
    /// Scalar minima and maxima of floats.
    num_extrema: i64,
}

impl Body {
    /// The body of a loop if that is an innermost one.
    fn of(op: Op) -> Option<Self> {
        let mut body = Self::default();
        body.add_regions(op, false).then_some(body)
    }

    /// Counts the operations in the regions of another one. Returns false at the first loop, and so visits
    /// each operation of a function for one loop only, but for those before an inner loop.
    fn add_regions(&mut self, around: Op, is_conditional: bool) -> bool {
        let blocks = (0..around.region_count()).flat_map(|region| mlir::blocks(around, region));
        blocks.flat_map(mlir::ops).all(|op| {
            let is_extremum = EXTREMA.iter().any(|name| mlir::is(op, name));
            if is_extremum && !mlir::result(op, 0).r#type().is_vector() {
                self.num_extrema += 1;
            }
            self.num_conditional += i64::from(is_conditional);
            !mlir::is(op, "scf.for")
                && self.add_regions(op, is_conditional || mlir::is(op, "scf.if"))
        })
    }
}
