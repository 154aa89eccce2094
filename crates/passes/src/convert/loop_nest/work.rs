//! Whether a nest has enough work for several threads.
//!
//! The work is an estimate: the points of the domain, times the operations per point. An operation on 32-bit numbers
//! counts as one, on others by their bytes, because a vector holds more of the smaller ones. Threads are started for at
//! least [`Choices::parallel_threshold`](crate::convert::loop_nest::Choices) operations, a property of the target. If
//! the number of points depends on sizes, the program computes it.

use crate::{
    analysis::cost::{WORD_BYTES, element_bytes, result_bytes},
    convert::loop_nest::emit::{Nest, Scope},
};
use melior::ir::Type;
use tc_dialects::{
    imap::Indexed,
    mlir::{self, Blk, Builder, Op, Val},
};
use tc_ir::Var;

/// The cost of a mathematical function or of a call, in operations.
const FUNCTION: u64 = 16;

/// Whether there is enough work.
#[derive(Copy, Clone)]
pub(super) enum Work<'c> {
    /// The sizes are constants.
    Known(bool),
    /// A truth value.
    Computed(Val<'c>),
}

/// Compares the work with the threshold.
pub(super) fn estimate<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &mut Scope<'c>,
) -> Work<'c> {
    let mut known = bytes_per_point(nest);
    let mut unknown = Vec::new();
    for (var, _) in nest.domain.vars().filter(|(var, _)| !matches!(var, Var::Runtime(_))) {
        let is_constant = nest.extent(var).is_some();
        if is_constant || !nest.bound_needs(var).is_empty() {
            // Bounds that depend on other variables count as the interval of their values.
            let points = nest.intervals.of(var).num_members().unwrap_or(u64::MAX);
            known = known.saturating_mul(points);
        } else {
            unknown.push(var);
        }
    }
    let threshold = nest.choices.parallel_threshold.saturating_mul(WORD_BYTES);
    if unknown.is_empty() || known == 0 {
        return Work::Known(threshold <= known);
    }
    // In floating point, which does not overflow.
    let float = Type::float64(builder.context);
    let mut work = builder.float(float, known as f64);
    for var in unknown {
        let (lower, upper) = nest.loop_bounds(builder, scope, var, &[]);
        let points = builder.value("arith.subi", &[upper, lower], builder.index_type());
        let points = builder.value("arith.index_cast", &[points], builder.int_type(64));
        let points = builder.value("arith.sitofp", &[points], float);
        work = builder.value("arith.mulf", &[work, points], float);
    }
    let threshold = builder.float(float, threshold as f64);
    Work::Computed(builder.compare_float("oge", work, threshold))
}

/// The bytes that the operations per point compute: loads, the operations of the body, and folds or stores.
fn bytes_per_point(nest: &Nest) -> u64 {
    let loads = nest.inputs.iter().filter(|it| it.is_used).map(|it| it.buffer);
    let values = mlir::operands(mlir::terminator(nest.generic.body()));
    let mut bytes: u64 = loads.chain(values).map(element_bytes).sum();
    for op in mlir::ops(nest.generic.body()) {
        mlir::walk(op, &mut |inner| bytes += cost(inner) * result_bytes(inner));
    }
    bytes
}

/// The operations of a block, nested ones as well.
pub(in crate::convert) fn of_block(block: Blk) -> u64 {
    let mut operations = 0;
    for op in mlir::ops(block) {
        mlir::walk(op, &mut |inner| operations += cost(inner));
    }
    operations
}

fn cost(op: Op) -> u64 {
    match mlir::name(op) {
        "arith.constant" | "imap.index" | "imap.yield" | "scf.yield" => 0,
        name if name.starts_with("math.") || name == "func.call" => FUNCTION,
        _ => 1,
    }
}
