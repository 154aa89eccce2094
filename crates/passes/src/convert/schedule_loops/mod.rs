//! `imap-schedule-loops`: choose the loops and the register blocks of operations on buffers.
//!
//! The pass gives operations the steps `order` and `vector`, which `imap-vectorize` and `convert-imap-to-scf` obey. An
//! operation that has a schedule keeps it. The innermost loop is the one that touches memory in order
//! (`loop_nest/order.rs`). Reductions and transpositions get register blocks where that gains something (`vectors.rs`).
//!
//! Before it chooses, the pass
//!
//! * makes one variable of two that walk through memory as one (`collapse.rs`);
//! * reads runtime variables from buffers of rank 0 once, in front of the operation;
//! * divides a fold that gives one result at a time from an epilogue that calls functions (`epilogue.rs`).

mod collapse;
mod epilogue;
mod vectors;

use super::loop_nest::{
    Choices, STRICT_FP, VECTOR_BITS, converted,
    emit::Nest,
    for_each,
    order::{self, Plan},
    scatter::{Updates, unordered, updates},
    schedule::{circular, order_step},
    tiling::Tiling,
};
use tc_dialects::{
    imap::{
        Generic, Scan, Scatter,
        schedule::{Schedule, Step},
    },
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::Report,
};
use tc_ir::Var;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-schedule-loops",
    summary: "Choose the loops and the register blocks of operations on buffers",
    anchor: "func.func",
    options: &[
        STRICT_FP,
        VECTOR_BITS,
        PassOption {
            name: "vector-registers",
            description: "Number of the vector registers of the target",
            default: "32",
        },
    ],
    dependent_dialects: &["arith", "imap", "memref"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let choices = Choices::of(run)?;
    let ops = converted(run.op).into_iter().filter(|op| Schedule::of(*op).is_none());
    for_each(run, ops.collect(), |op| {
        let generic = Generic::cast(op).map(|it| of_generic(it, choices));
        let scan = || Scan::cast(op).map(|it| of_scan(it, choices));
        let scatter = || Scatter::cast(op).map(|it| of_scatter(it, choices));
        generic.or_else(scan).or_else(scatter).unwrap_or(Ok(()))
    })
}

fn of_generic<'c>(generic: Generic<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let mut nest = Nest::new(generic.into(), choices)?;
    let mut generic = generic;
    if let Some(simpler) = collapse::rebuild(&mut nest, generic) {
        generic = simpler;
        nest = Nest::new(generic.into(), choices)?;
    }
    let plan = order::plan(&nest).ok_or_else(|| Report::error(circular()))?;
    let block = vectors::choose(&nest, &plan).filter(|it| Tiling::of(&nest, &plan, it).is_ok());
    let lanes = block.as_ref().map(|it| it.lanes);
    let finishes_points = match (&plan, lanes) {
        (_, Some(lanes)) => matches!(lanes, Var::Range(_)),
        (Plan::Registers { ranges, .. }, None) => !ranges.is_empty(),
        (Plan::Rows { .. }, None) => false,
    };
    if finishes_points && let Some(parts) = epilogue::detach(generic) {
        return parts.into_iter().try_for_each(|part| of_generic(part, choices));
    }
    let order = order_step(&nest, &plan.order(), lanes);
    let steps = order.into_iter().chain(block.map(|it| it.step(&nest)));
    Schedule { steps: steps.collect() }.set(generic.op());
    Ok(())
}

fn of_scan<'c>(scan: Scan<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let nest = Nest::new(scan.into(), choices)?;
    let scanned = Var::Dim(scan.dim());
    let around = order::around(&nest, scanned).ok_or_else(|| Report::error(circular()))?;
    let (mut order, row) = around;
    order.push(scanned);
    order.extend(row);
    set(&nest, order_step(&nest, &order, Some(scanned)));
    Ok(())
}

fn of_scatter<'c>(scatter: Scatter<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let Updates { nest, dims, free } = updates(scatter, choices)?;
    let order = order::of_scatter(&nest, &dims, &free).ok_or_else(unordered)?;
    set(&nest, order_step(&nest, &order, None));
    Ok(())
}

fn set(nest: &Nest, step: Option<Step>) {
    Schedule { steps: step.into_iter().collect() }.set(nest.generic.op());
}
