//! Loops over dimension variables around rows, blocks or single results.
//!
//! The outermost one or two of them become `scf.parallel` if that was asked for, and if there is enough work
//! (`work.rs`).

use super::{
    emit::{Nest, Scope},
    guards::split_loop,
    work::{self, Work},
};
use crate::loops;
use melior::ir::Type;
use tc_dialects::mlir::{self, Builder, Val};
use tc_ir::{Var, expr::checked_ceil_div};

/// The iterations that are enough for all threads.
pub(in crate::convert) const MIN_SHARED: i64 = 64;

/// The most strips of a loop that threads share.
const MAX_SHARED: i64 = 1024;

/// One loop: its variable, and the length of the strips that it steps over, which
/// leave the points of a strip to a loop inside.
#[derive(Copy, Clone, Debug)]
pub(in crate::convert) struct Loop {
    pub var: Var,
    pub strip: Option<i64>,
    /// Whether its iterations become lanes of vectors, so that one thread has them all.
    is_for_vectors: bool,
}

impl Loop {
    pub fn over(var: Var) -> Self {
        Self { var, strip: None, is_for_vectors: false }
    }

    pub fn strips(var: Var, length: i64) -> Self {
        Self { strip: Some(length), ..Self::over(var) }
    }

    pub fn for_vectors(var: Var) -> Self {
        Self { is_for_vectors: true, ..Self::over(var) }
    }

    fn iterations(self, nest: &Nest) -> Option<i64> {
        Some(checked_ceil_div(nest.extent(self.var)?, self.strip.unwrap_or(1))?.max(1))
    }
}

/// The loops over the dimension variables, the first of them parallel if that was asked for
/// and there is enough work, which the program tests if it depends on sizes. A second one is parallel only where threads
/// need its iterations: a loop over both divides the number of each iteration. Each thread has
/// scratch memory of these types.
pub(in crate::convert) fn outer_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    loops: &[Loop],
    scratch: &[Type<'c>],
    body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>),
) {
    let can_share = |it: &&Loop| !it.is_for_vectors && nest.bound_needs(it.var).is_empty();
    let mut shared = 1_i64;
    let num_parallel = loops
        .iter()
        .take(2)
        .take_while(can_share)
        .take_while(|it| {
            let is_needed = shared < MIN_SHARED;
            shared = shared.saturating_mul(it.iterations(nest).unwrap_or(1));
            is_needed
        })
        .count();
    let can = num_parallel != 0;
    if_enough_work(nest, builder, scope, can, &mut |builder, scope, in_parallel| {
        if in_parallel {
            let divided = match loops {
                [only] => strip_length(nest, *only).map(|it| [Loop::strips(only.var, it), *only]),
                _ => None,
            };
            let loops = divided.as_ref().map_or(loops, |it| it);
            parallel_loops(nest, builder, scope, loops, num_parallel, scratch, body);
        } else {
            let mut scope = scope.clone();
            scope.scratch =
                scratch.iter().map(|ty| loops::build_scratch(builder, *ty, &[])).collect();
            serial_loops(nest, builder, &scope, loops, body);
        }
    });
}

/// The length of strips into which a loop is divided that LLVM vectorizes, so that it knows how often a loop over a strip
/// runs, and adds no loops for the rest of the iterations.
fn strip_length(nest: &Nest, it: Loop) -> Option<i64> {
    let has_guards = nest.inputs.iter().any(|input| !input.map.constraints.is_empty());
    if !nest.is_map_form() || has_guards || !nest.domain.constraints.is_empty() {
        return None;
    }
    let elements = nest.outputs.iter().map(|output| i64::from(mlir::byte_width(output.element)));
    let lanes = nest.choices.vector_bits / 8 / elements.min().filter(|width| *width != 0)?;
    let extent = nest.extent(it.var).filter(|_| it.strip.is_none() && lanes != 0)?;
    let is_even = |count: &i64| extent % count == 0 && extent / count % lanes == 0;
    (MIN_SHARED..=MAX_SHARED).find(is_even).map(|count| extent / count)
}

/// Emits loops that run in parallel if that was asked for, they `can`, and there is enough work, which
/// the program tests if it depends on sizes.
pub(in crate::convert) fn if_enough_work<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    can: bool,
    emit: &mut dyn FnMut(&Builder<'c>, &Scope<'c>, bool),
) {
    let mut scope = scope.clone();
    let work = match nest.choices.parallel && can {
        true => work::estimate(nest, builder, &mut scope),
        false => Work::Known(false),
    };
    match work {
        Work::Known(is_enough) => emit(builder, &scope, is_enough),
        Work::Computed(is_enough) => {
            loops::build_branches(builder, is_enough, &mut |builder, is_enough| {
                emit(builder, &scope, is_enough);
                Vec::new()
            });
        }
    }
}

pub(in crate::convert) fn parallel_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    loops: &[Loop],
    num_parallel: usize,
    scratch: &[Type<'c>],
    body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>),
) {
    let mut scope = scope.clone();
    let (parallel, serial) = loops.split_at(num_parallel);
    let bounds: Vec<_> =
        parallel.iter().map(|it| loop_of(nest, builder, &mut scope, *it)).collect();
    loops::build_parallel(builder, &bounds, &mut |builder, values| {
        let mut scope = scope.clone();
        scope.scratch = scratch.iter().map(|ty| loops::build_stack(builder, *ty)).collect();
        for ((it, value), (_, upper, _)) in parallel.iter().zip(values).zip(&bounds) {
            enter(nest, builder, &mut scope, *it, *value, *upper);
        }
        serial_loops(nest, builder, &scope, serial, body);
    });
}

fn serial_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    loops: &[Loop],
    body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>),
) {
    let Some((first, rest)) = loops.split_first() else {
        return body(builder, scope);
    };
    let mut scope = scope.clone();
    let (lower, upper, step) = loop_of(nest, builder, &mut scope, *first);
    let mut emit = |builder: &Builder<'c>, scope: &Scope<'c>, (lower, upper), _: &[Val<'c>]| {
        loops::build_for(builder, (lower, upper, step), &[], &mut |builder, value, _| {
            let mut scope = scope.clone();
            enter(nest, builder, &mut scope, *first, value, upper);
            serial_loops(nest, builder, &scope, rest, body);
            Vec::new()
        })
    };
    match rest.is_empty() && nest.is_map_form() {
        true => split_loop(nest, builder, &scope, (first.var, (lower, upper)), &[], &mut emit),
        false => emit(builder, &scope, (lower, upper), &[]),
    };
}

/// Lower bound, excluded upper bound and step of a loop.
fn loop_of<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &mut Scope<'c>,
    it: Loop,
) -> (Val<'c>, Val<'c>, Val<'c>) {
    let (lower, upper) = nest.loop_bounds(builder, scope, it.var, &[]);
    (lower, upper, builder.index(it.strip.unwrap_or(1)))
}

/// Notes the value of a loop's variable, or the bounds of the strip that begins there.
fn enter<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &mut Scope<'c>,
    it: Loop,
    value: Val<'c>,
    upper: Val<'c>,
) {
    let Some(length) = it.strip else {
        scope.values.insert(it.var, value);
        return;
    };
    let is_even = nest.extent(it.var).is_some_and(|extent| extent % length == 0);
    let mut end = loops::add_indices(builder, value, builder.index(length));
    if !is_even {
        end = builder.value("arith.minsi", &[end, upper], builder.index_type());
    }
    scope.strips.insert(it.var, (value, end));
}
