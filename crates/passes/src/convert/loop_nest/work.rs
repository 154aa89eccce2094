//! Whether a nest has enough work for several threads.
//!
//! The work is an estimate ([`ThreadWork`]). Threads are started for at least
//! [`Choices::parallel_threshold`](crate::convert::loop_nest::Choices) operations, a property of the target. If the number
//! of points depends on sizes, the program computes it.

use crate::{
    analysis::cost::{ThreadWork, WORD_BYTES},
    convert::loop_nest::emit::{Nest, Scope},
};
use melior::ir::Type;
use tc_dialects::mlir::{Builder, Val};

/// Whether there is enough work.
#[derive(Copy, Clone)]
pub(super) enum Work<'c> {
    /// The sizes are constants.
    Known(bool),
    /// A truth value.
    Computed(Val<'c>),
}

/// One thread if the work of the operation is known not to be enough for several.
pub(in crate::convert) fn limit_threads(nest: &mut Nest) {
    let ThreadWork { known, unknown } = work(nest);
    nest.choices.parallel &= !unknown.is_empty() || threshold(nest) <= known;
}

fn threshold(nest: &Nest) -> u64 {
    nest.choices.parallel_threshold.saturating_mul(WORD_BYTES)
}

fn work(nest: &Nest) -> ThreadWork {
    let extent = |var| {
        // Bounds that depend on other variables count as the interval of their values.
        let is_known = nest.extent(var).is_some() || !nest.bound_needs(var).is_empty();
        is_known.then(|| nest.intervals.of(var).num_members().unwrap_or(u64::MAX))
    };
    ThreadWork::of(nest.generic, &extent, nest.reuses_inputs)
}

/// Compares the work with the threshold.
pub(super) fn estimate<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &mut Scope<'c>,
) -> Work<'c> {
    let ThreadWork { known, unknown } = work(nest);
    let threshold = threshold(nest);
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
