//! Folds: where neighbouring elements of the inputs lie along a range variable, a part of a warp, a warp or a block
//! folds the elements of each point.

use super::{Grid, Share, Space, WARP, divide, divide_up, group::Group, remainder};
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            emit::{Nest, Scope},
            loops::{FoldBody, reduction_loops},
        },
    },
    loops,
};
use std::collections::BTreeMap;
use tc_dialects::mlir::{Builder, Val};
use tc_ir::Var;

/// The number of threads that fold the elements of one point.
pub(super) fn group_size(nest: &Nest, ranges: &[Var], block_size: i64) -> i64 {
    match nest.num_points(ranges) {
        // The threads of a group fold in another order.
        _ if nest.keeps_order() => 1,
        // Neighbouring threads read neighbours, and a thread reads one.
        Some(count) if count < WARP => (count.max(1) as u64).next_power_of_two() as i64,
        Some(count) if count < block_size * 4 => WARP,
        _ => block_size,
    }
}

/// A group of threads per point.
pub(super) fn groups<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    grid: &Grid<'c>,
    dims: &[Var],
    (ranges, size): (&[Var], i64),
) {
    let mut scope = scope.clone();
    let space = Space::new(nest, builder, &mut scope, dims);
    let group = Group::new(nest, builder, grid, size);
    let lanes = group.lanes(builder);
    let tested: Vec<_> = (0..nest.domain.constraints.len()).collect();
    // Groups of one warp leave the loop together, although the last ones may have no point.
    let in_warp = (WARP / size).max(1);
    let Share { first, step } = grid.groups(builder, size * in_warp);
    let end = divide_up(builder, space.total, in_warp);
    loops::build_for(builder, (first, end, step), &[], &mut |builder, number, _| {
        let mut scope = scope.clone();
        let point = match in_warp {
            1 => number,
            _ => {
                let place = divide(builder, remainder(builder, grid.thread, WARP), size);
                builder.add_index(builder.scale_index(number, in_warp), place)
            }
        };
        let is_inside = (1 < in_warp).then(|| builder.compare_int("slt", point, space.total));
        space.enter(builder, &mut scope, point, 1);
        let identities = group.identities(builder);
        let mut fold = |builder: &Builder<'c>| {
            let mut scope = scope.clone();
            nest.load_invariant(builder, &mut scope, ranges);
            let mut body = |builder: &Builder<'c>, scope: &Scope<'c>, held: &[Val<'c>]| {
                nest.guarded(builder, scope, &tested, held, &mut |builder, scope| {
                    nest.fold(builder, scope, held)
                })
            };
            shared_ranges(nest, builder, &scope, ranges, lanes, &identities, &mut body)
        };
        let folded = match is_inside {
            Some(is_inside) => {
                loops::build_if(builder, is_inside, &mut fold, &mut |_| identities.clone())
            }
            None => fold(builder),
        };
        let folded = group.fold(builder, &scope, folded);
        let is_first = builder.compare_int("eq", lanes.first, builder.index(0));
        let stores = match is_inside {
            Some(it) => builder.value("arith.andi", &[is_first, it], builder.int_type(1)),
            None => is_first,
        };
        loops::build_if(
            builder,
            stores,
            &mut |builder| {
                nest.start_and_store(builder, &mut scope.clone(), &folded);
                Vec::new()
            },
            &mut |_| Vec::new(),
        );
        Vec::new()
    });
}

/// The loops over range variables, shared by the threads of a group. If bounds depend on other range
/// variables, the threads share the innermost loop, otherwise all points.
pub(super) fn shared_ranges<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    ranges: &[Var],
    lanes: Share<'c>,
    carried: &[Val<'c>],
    body: &mut FoldBody<'_, 'c>,
) -> Vec<Val<'c>> {
    let mut scope = scope.clone();
    let is_fixed = |var: &Var| nest.bound_needs(*var).iter().all(|it| !ranges.contains(it));
    if ranges.iter().all(is_fixed) {
        let space = Space::new(nest, builder, &mut scope, ranges);
        let bounds = (lanes.first, space.total, lanes.step);
        return loops::build_for(builder, bounds, carried, &mut |builder, point, carried| {
            let mut scope = scope.clone();
            space.enter(builder, &mut scope, point, 1);
            body(builder, &scope, carried)
        });
    }
    let Some((inner, outer)) = ranges.split_last() else { return body(builder, &scope, carried) };
    let none = BTreeMap::new();
    let outer = (outer, false);
    reduction_loops(nest, builder, &scope, outer, &none, carried, &mut |builder, scope, carried| {
        let mut scope = scope.clone();
        let (lower, end) = nest.loop_bounds(builder, &mut scope, *inner, &[]);
        let bounds = (builder.add_index(lower, lanes.first), end, lanes.step);
        loops::build_for(builder, bounds, carried, &mut |builder, value, carried| {
            let mut scope = scope.clone();
            scope.values.insert(*inner, value);
            body(builder, &scope, carried)
        })
    })
}
