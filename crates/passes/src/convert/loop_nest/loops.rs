//! The loops over variables, and what is done at a point.

use super::{
    emit::{Nest, Scope},
    guards::split_loop,
    partial_sums::{self, PartialSums},
};
use crate::loops;
use std::collections::BTreeMap;
use tc_dialects::mlir::{Builder, Val};
use tc_ir::Var;

/// What folds the values of one iteration into those carried.
pub(in crate::convert) type FoldBody<'a, 'c> =
    dyn FnMut(&Builder<'c>, &Scope<'c>, &[Val<'c>]) -> Vec<Val<'c>> + 'a;

/// Computes and stores the results at one point of the dimension variables. The map form stores
/// only if the constraints hold; a fold stores its start otherwise.
pub(in crate::convert) fn at_point<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    ranges: &[Var],
    tightening: &BTreeMap<Var, Vec<usize>>,
    tested: &[usize],
) {
    if nest.is_map_form() {
        nest.guarded(builder, scope, tested, &[], &mut |builder, scope| {
            for (number, value) in nest.compute(builder, scope).into_iter().enumerate() {
                nest.store_output(builder, scope, number, value);
            }
            Vec::new()
        });
        return;
    }
    let mut scope = scope.clone();
    let start: Vec<_> =
        (0..nest.accumulators.len()).map(|it| nest.start(builder, &mut scope, it)).collect();
    let mut fold = |builder: &Builder<'c>, scope: &Scope<'c>, ranges: &[Var], held: &[Val<'c>]| {
        reduction_loops(
            nest,
            builder,
            scope,
            (ranges, true),
            tightening,
            held,
            &mut |inside, scope, held| {
                nest.guarded(inside, scope, tested, held, &mut |inside, scope| {
                    nest.fold(inside, scope, held)
                })
            },
        )
    };
    let chains = partial_sums::vectorized_chains(nest, ranges);
    let folded = match PartialSums::of(nest, ranges, chains) {
        None => fold(builder, &scope, ranges, &start),
        Some(sums) => {
            let zeros: Vec<_> =
                nest.accumulators.iter().map(|it| it.build_identity(builder)).collect();
            let values = (&start[..], &zeros[..]);
            sums.build_in_values(nest, builder, &scope, ranges, tightening, values, &mut fold)
        }
    };
    nest.finish_and_store(builder, &mut scope, folded);
}

/// One loop over a dimension variable. If it evaluates the body, guards may split it.
pub(in crate::convert) fn row_loop<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    var: Var,
    tightening: &[usize],
    has_body: bool,
    body: &mut dyn FnMut(&Builder<'c>, &mut Scope<'c>),
) {
    let mut scope = scope.clone();
    let bounds = nest.loop_bounds(builder, &mut scope, var, tightening);
    let mut emit = |builder: &Builder<'c>, scope: &Scope<'c>, (lower, upper), _: &[Val<'c>]| {
        let one = builder.index(1);
        loops::build_for(builder, (lower, upper, one), &[], &mut |builder, value, _| {
            let mut scope = scope.clone();
            scope.values.insert(var, value);
            body(builder, &mut scope);
            Vec::new()
        })
    };
    match has_body {
        true => split_loop(nest, builder, &scope, (var, bounds), &[], &mut emit),
        false => emit(builder, &scope, bounds, &[]),
    };
}

/// The loops over the range variables, which carry the folded values. Guards may split the innermost of
/// them.
pub(in crate::convert) fn reduction_loops<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    (ranges, may_split): (&[Var], bool),
    tightening: &BTreeMap<Var, Vec<usize>>,
    carried: &[Val<'c>],
    body: &mut FoldBody<'_, 'c>,
) -> Vec<Val<'c>> {
    let Some((var, rest)) = ranges.split_first() else {
        return body(builder, scope, carried);
    };
    let mut scope = scope.clone();
    let tightened = tightening.get(var).map_or(&[][..], Vec::as_slice);
    let bounds = nest.loop_bounds(builder, &mut scope, *var, tightened);
    let mut emit = |builder: &Builder<'c>,
                    scope: &Scope<'c>,
                    (lower, upper),
                    carried: &[Val<'c>]| {
        let one = builder.index(1);
        loops::build_for(builder, (lower, upper, one), carried, &mut |builder, value, carried| {
            let mut scope = scope.clone();
            scope.values.insert(*var, value);
            reduction_loops(nest, builder, &scope, (rest, may_split), tightening, carried, body)
        })
    };
    match rest.is_empty() && may_split {
        true => split_loop(nest, builder, &scope, (*var, bounds), carried, &mut emit),
        false => emit(builder, &scope, bounds, carried),
    }
}
