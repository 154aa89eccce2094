//! `parallelize-loops`: threads share independent loops over memory that take long enough.
//!
//! Before, with `parallel-threshold=1000`:
//!
//! ```mlir
//! scf.for %i = %c0 to %c64 step %c1 {
//!   .. // 100 operations
//! } {imap.independent}
//! ```
//!
//! After:
//!
//! ```mlir
//! scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
//!   .. // 100 operations
//! }
//! ```
//!
//! Such loops are what lowerings emit for operations without maps, such as `fft`. The outermost one with several
//! iterations is shared. Loops whose numbers of iterations are not constant stay, and so do those inside of parallel
//! loops.

use crate::{
    analysis::cost::LOAD,
    loops::{build_parallel, is_in_parallel, trip_count},
};
use melior::ir::operation::OperationLike;
use tc_dialects::{
    imap::INDEPENDENT,
    mlir::{self, Builder, Op},
    pass::{Failure, PassInfo, PassOption, PassRun},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "parallelize-loops",
    summary: "Share independent loops over memory among threads",
    anchor: "func.func",
    options: &[PassOption {
        name: "parallel-threshold",
        description: "Operations on registers below which a loop stays in one thread",
        default: "4194304",
    }],
    dependent_dialects: &["scf"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let threshold = pass.number("parallel-threshold")?;
    let mut loops = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        let is_long = || {
            let trips = trip_count(op).unwrap_or(0);
            1 < trips && threshold <= trips.saturating_mul(work_of(op))
        };
        if op.has_attribute(INDEPENDENT) && is_long() {
            loops.push(op);
        }
    });
    // Loops around others come first.
    for op in loops {
        if !is_in_parallel(op) {
            pass.enter(op);
            share(op);
        }
    }
    Ok(())
}

/// The work of one iteration, in operations on registers. The body of a loop without constant bounds counts once.
fn work_of(op: Op) -> i64 {
    let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(op, region));
    let ops = blocks.flat_map(mlir::ops);
    let work = ops.map(|it| work_of(it).saturating_mul(trip_count(it).unwrap_or(1)));
    let own = match mlir::name(op) {
        "memref.load" | "memref.store" | "tensor.extract" | "tensor.insert" => LOAD as i64,
        _ => 1,
    };
    work.fold(0, i64::saturating_add).max(own)
}

/// Makes a parallel loop of one whose iterations are independent.
fn share(op: Op) {
    let Some(body) = mlir::body(op, 0) else { return };
    let bounds = (mlir::operand(op, 0), mlir::operand(op, 1), mlir::operand(op, 2));
    let builder = Builder::before(op).located(op.location());
    build_parallel(&builder, &[bounds], &mut |inside, indices| {
        let last = mlir::terminator(body);
        let end = inside.op("scf.yield", &[], &[]);
        let moved = mlir::ops(body).into_iter().filter(|it| *it != last);
        moved.for_each(|it| mlir::move_before(it, end));
        mlir::erase(end);
        mlir::replace_uses(mlir::arguments(body)[0], indices[0]);
    });
    mlir::erase(op);
}
