//! Folds along columns: neighbouring elements of the inputs belong to neighbouring points, and a thread per point
//! would leave most of the GPU, or of the block of a tile, without work.
//!
//! A block is a grid of threads. Threads of one row fold neighbouring points. Threads of one column fold parts of the
//! values of one point, and combine their partial results in shared memory.
//!
//! ```text
//! for the strips of the block
//!   folded = identities
//!   for r = row to ranges step ROWS
//!     folded = folded + body(r, point)
//!   shared[row, column] = folded
//!   for half = ROWS / 2, ROWS / 4, .., 1
//!     barrier
//!     if row < half
//!       shared[row, column] = shared[row, column] + shared[row + half, column]
//!   if row == 0
//!     destination[point] = start + shared[0, column]
//! ```

use super::{Grid, Share, Space, WARP, divide, divide_up, folds::shared_ranges, remainder};
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::emit::{Nest, Scope},
    },
    loops,
};
use melior::ir::ValueLike;
use tc_dialects::mlir::{self, Builder, Val};
use tc_ir::Var;

/// The least values of a point that are worth a thread.
const LEAST_VALUES: i64 = 4;

/// The threads of a row; `None` if a thread per point is better. `busy` threads keep the GPU busy.
pub(super) fn length(
    nest: &Nest,
    (dims, ranges): (&[Var], &[Var]),
    (block_size, busy): (i64, i64),
) -> Option<i64> {
    let points = nest.num_points(dims);
    // The rows fold in another order.
    if nest.is_map_form() || nest.keeps_order() || points.is_some_and(|count| busy <= count) {
        return None;
    }
    let length = points.map_or(WARP, |count| count.max(1));
    let length = (length.min(WARP) as u64).next_power_of_two() as i64;
    let rows = block_size / length;
    let is_long = nest.num_points(ranges).is_none_or(|values| LEAST_VALUES * rows <= values);
    (rows.count_ones() == 1 && 1 < rows && is_long).then_some(length)
}

/// Emits the code for rows of `length` threads.
pub(super) fn fold<'c>(
    nest: &Nest<'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    grid: &Grid<'c>,
    (dims, ranges): (&[Var], &[Var]),
    length: i64,
) {
    let mut scope = scope.clone();
    let points = Space::new(nest, builder, &mut scope, dims);
    let rows = grid.block_size / length;
    let accumulators = nest.accumulators.iter().enumerate();
    let shared: Vec<_> = accumulators
        .map(|(number, it)| grid.exchanged(builder, it.ty, grid.block_size, number))
        .collect();
    let row = divide(builder, grid.thread, length);
    let column = remainder(builder, grid.thread, length);
    let tested: Vec<_> = (0..nest.domain.constraints.len()).collect();
    let end = divide_up(builder, points.total, length);
    let strips = (grid.block, end, grid.num_blocks);
    loops::build_for(builder, strips, &[], &mut |builder, strip, _| {
        let mut scope = scope.clone();
        let point = builder.add_index(builder.scale_index(strip, length), column);
        let is_inside = builder.compare_int("slt", point, points.total);
        points.enter(builder, &mut scope, point, 1);
        let identities: Vec<_> =
            nest.accumulators.iter().map(|it| it.build_identity(builder)).collect();
        let folded = loops::build_if(
            builder,
            is_inside,
            &mut |builder| {
                let mut scope = scope.clone();
                nest.load_invariant(builder, &mut scope, ranges);
                let mut body = |builder: &Builder<'c>, scope: &Scope<'c>, held: &[Val<'c>]| {
                    nest.guarded(builder, scope, &tested, held, &mut |builder, scope| {
                        nest.fold(builder, scope, held)
                    })
                };
                let share = Share { first: row, step: builder.index(rows) };
                shared_ranges(nest, builder, &scope, ranges, share, &identities, &mut body)
            },
            &mut |_| identities.clone(),
        );
        // The values of the strip before have been read.
        builder.op("gpu.barrier", &[], &[]);
        let store = |builder: &Builder<'c>, values: &[Val<'c>]| {
            for (buffer, value) in shared.iter().zip(values) {
                builder.op("memref.store", &[*value, *buffer, grid.thread], &[]);
            }
        };
        let load = |builder: &Builder<'c>, rows: i64| -> Vec<_> {
            let place = builder.add_index(grid.thread, builder.index(rows * length));
            let ty = |buffer: &Val<'c>| mlir::element_type(buffer.r#type());
            let load = |it: &Val<'c>| builder.value("memref.load", &[*it, place], ty(it));
            shared.iter().map(load).collect()
        };
        store(builder, &folded);
        let mut half = rows / 2;
        while 0 < half {
            builder.op("gpu.barrier", &[], &[]);
            let combines = builder.compare_int("ult", row, builder.index(half));
            loops::build_if(
                builder,
                combines,
                &mut |builder| {
                    let (own, other) = (load(builder, 0), load(builder, half));
                    store(builder, &nest.combine(builder, &mut scope.clone(), &own, &other));
                    Vec::new()
                },
                &mut |_| Vec::new(),
            );
            half /= 2;
        }
        let is_first = builder.compare_int("eq", row, builder.index(0));
        loops::build_if(
            builder,
            builder.and(is_first, is_inside),
            &mut |builder| {
                nest.start_and_store(builder, &mut scope.clone(), &load(builder, 0));
                Vec::new()
            },
            &mut |_| Vec::new(),
        );
        Vec::new()
    });
}
