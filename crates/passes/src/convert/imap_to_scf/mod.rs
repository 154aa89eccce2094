//! `convert-imap-to-scf`: operations with maps on buffers become nests of loops, and an `imap.sort`
//! loops that sort its rows (`sort.rs`).
//!
//! Loops run in the order of the step `order` of a schedule, or else in that in which the variables stand. Those of an
//! `imap.generic` have one of two shapes:
//!
//! * *In registers*: loops over the dimension variables, inside them loops over the
//!   range variables that carry the folded values, then the epilogue and one store.
//! * *In rows*: the last variable is a dimension behind ranges (`C(m, n) +=! A(m, k) * B(k, n)` in the order m, k, n).
//!   A strip of it is initialized, accumulated in memory, and finished.
//!
//! `scan.rs` and `scatter.rs` have the shapes of the others.
//!
//! Loops over dimension variables become `scf.parallel` with `parallel=true`, the
//! outermost one or two of them, if there is enough work (`loop_nest/work.rs`).
//! A constraint of the domain tightens the innermost loop over a variable that it mentions, if
//! the points of that loop may be skipped and the variable occurs with the factor 1 or -1.
//! Otherwise it is tested inside. If it does not hold, an `assign` stores nothing. Guards split the
//! innermost loop, or are tested at each element (`loop_nest/guards.rs`).
//!
//! Long floating-point sums are divided into partial sums (`loop_nest/partial_sums.rs`). Allocations for
//! partial sums have the attribute `imap.scratch`.
//!
//! Limits: at most `loop_nest::MAX_VARIABLES` variables; all floating-point sums and products
//! may be reassociated and contracted unless `strict-fp=true`.

mod nest;
mod scan;
mod scatter;
mod sort;

use super::loop_nest::{
    Choices, PARALLEL, PARALLEL_THRESHOLD, STRICT_FP, VECTOR_BITS, converted, for_each,
};
use tc_dialects::{
    imap::{Generic, Scan, Scatter, Sort},
    pass::{Failure, PassInfo, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-imap-to-scf",
    summary: "Turn operations of imap on buffers into loops",
    anchor: "func.func",
    options: &[PARALLEL, PARALLEL_THRESHOLD, STRICT_FP, VECTOR_BITS],
    dependent_dialects: &["arith", "memref", "scf", "vector"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let choices = Choices::of(run)?;
    for_each(run, converted(run.op), |op| {
        let choices = choices.inside(op);
        let generic = Generic::cast(op).map(|it| nest::convert(it, choices));
        let scan = || Scan::cast(op).map(|it| scan::convert(it, choices));
        let scatter = || Scatter::cast(op).map(|it| scatter::convert(it, choices));
        let sort = || Sort::cast(op).map(|it| sort::convert(it, choices));
        generic.or_else(scan).or_else(scatter).or_else(sort).unwrap_or(Ok(()))
    })
}
