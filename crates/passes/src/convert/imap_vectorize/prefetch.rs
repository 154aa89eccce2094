//! Prefetches of panels.
//!
//! A packed factor is read panel by panel, and a panel once per block along the unrolled variable:
//!
//! ```text
//! for p                                   panels of B
//!   for m = 0 to 128 step 8               blocks
//!     C(m .. m + 8, p) = sum over k of A(m .. m + 8, k) * B(p, k, ..)
//! ```
//!
//! Without prefetches the first block of a panel waits for memory at each k. So each block fetches its share of the next
//! panel: `k` runs in steps of a few values, which LLVM unrolls, and each step fetches the share of its values. A core
//! has few buffers for lines: many prefetches at once would delay the loads of the block.

use crate::{
    analysis::buffers::static_bytes,
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            emit::{Input, Nest, Scope, accessed},
            loops::FoldBody,
            order::step_along,
            tiling::Tiling,
        },
    },
    loops,
    target::LINE_BYTES,
};
use melior::ir::{
    ValueLike,
    attribute::{BoolAttribute, IntegerAttribute},
};
use tc_dialects::mlir::{self, Builder, Val};
use tc_ir::{Var, expr::ceil_div};

/// The values of the range variable in a step.
const STEP: i64 = 8;
/// The most lines per step: more wait for each other.
const MAX_LINES: i64 = 2;
/// `memref.prefetch` to the second-level cache.
const LOCALITY: i64 = 2;

/// The share that a block has in the prefetches of the next panel.
pub(super) struct Prefetch {
    /// The number of the input.
    input: usize,
    /// The variable of the panels, and its last value.
    panel: (Var, i64),
    /// The range variable, and its first and last value.
    range: (Var, i64, i64),
    /// Whether each strip of it consists of whole steps.
    is_even: bool,
    /// The variable of the blocks, its first value and the extent of a block.
    blocks: (Var, i64, i64),
    /// The lines of a value of the range variable, and the elements of a line.
    row: (i64, i64),
    /// The lines that a block fetches per step.
    lines: i64,
}

impl Prefetch {
    /// The share of blocks of these sizes. A sum has strips of `strip` values. `None` if no input is read in panels, or
    /// the cache holds all of them.
    pub fn of(nest: &Nest, tiling: &Tiling, factors: &[i64], strip: Option<i64>) -> Option<Self> {
        let ([range], [(unrolled, factor)]) = (&tiling.ranges[..], &tiling.unrolled[..]) else {
            return None;
        };
        let panel = *tiling.rest.last()?;
        let is_alone = nest.extent(tiling.lane)? == tiling.width();
        if nest.choices.cache_bytes == 0
            || tiling.lane_is_range()
            || !is_alone
            || factors != [*factor]
        {
            return None;
        }
        let is_panel = |input: &Input| {
            let needs = nest.needs(&accessed(&input.map));
            let is_large = static_bytes(input.buffer.r#type())
                .is_some_and(|bytes| nest.choices.cache_bytes < bytes.unsigned_abs());
            input.is_folded
                && is_large
                && input.map.constraints.is_empty()
                && [panel, *range, tiling.lane].iter().all(|var| needs.contains(var))
                && !needs.contains(unrolled)
                && step_along(nest, &input.map, tiling.lane) == Some(1)
        };
        let input = nest.inputs.iter().position(is_panel)?;
        let num_blocks = nest.extent(*unrolled)?.div_euclid(*factor).max(1);
        let element = mlir::element_type(nest.inputs[input].buffer.r#type());
        let per_line = LINE_BYTES.div_euclid(i64::from(mlir::byte_width(element))).max(1);
        let row = ceil_div(tiling.width(), per_line);
        let lines = ceil_div(STEP.saturating_mul(row), num_blocks);
        let (extent, values) = (nest.extent(*range)?, nest.intervals.of(*range));
        nest.extent(panel)?;
        (lines <= MAX_LINES).then(|| Self {
            input,
            panel: (panel, nest.intervals.of(panel).hi),
            range: (*range, values.lo, values.hi),
            is_even: extent % STEP == 0 && strip.unwrap_or(extent) % STEP == 0,
            blocks: (*unrolled, nest.intervals.of(*unrolled).lo, *factor),
            row: (row, per_line),
            lines,
        })
    }

    /// Emits the steps of a strip, and returns the folded values. `fold` emits the loop over a part of the strip.
    pub fn build<'c>(
        &self,
        nest: &Nest<'c>,
        tiling: &Tiling,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        held: &[Val<'c>],
        fold: &mut FoldBody<'_, 'c>,
    ) -> Vec<Val<'c>> {
        let (range, ..) = self.range;
        let index = builder.index_type();
        let mut scope = scope.clone();
        let (lower, upper) = nest.loop_bounds(builder, &mut scope, range, &[]);
        let step = builder.index(STEP);
        let mut end = upper;
        if !self.is_even {
            let length = builder.value("arith.subi", &[upper, lower], index);
            let rest = builder.value("arith.remui", &[length, step], index);
            end = builder.value("arith.subi", &[upper, rest], index);
        }
        let held =
            loops::build_for(builder, (lower, end, step), held, &mut |inside, value, held| {
                let mut scope = scope.clone();
                self.fetch(nest, tiling, inside, &scope, value);
                scope.strips.insert(range, (value, inside.add_index(value, step)));
                let held = fold(inside, &scope, held);
                unroll(&held);
                held
            });
        if self.is_even {
            return held;
        }
        scope.strips.insert(range, (end, upper));
        fold(builder, &scope, &held)
    }

    /// Emits the prefetches of the step that starts from `start`.
    fn fetch<'c>(
        &self,
        nest: &Nest<'c>,
        tiling: &Tiling,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        start: Val<'c>,
    ) {
        let Self { input, panel: (panel, last_panel), blocks, row, lines, .. } = *self;
        let ((unrolled, first_block, factor), (row, per_line)) = (blocks, row);
        let (range, first, last) = self.range;
        let index = builder.index_type();
        let number = |value| builder.index(value);
        let mut scope = scope.clone();
        // A block fetches neighbouring lines.
        let offset = builder.add_index(scope.values[&unrolled], number(-first_block));
        let block = builder.value("arith.divui", &[offset, number(factor)], index);
        let steps = number(ceil_div(last - first + 1, STEP));
        let before = builder.value("arith.muli", &[block, steps], index);
        let offset = builder.add_index(start, number(-first));
        let step = builder.value("arith.divui", &[offset, number(STEP)], index);
        let step = builder.add_index(before, step);
        let first_line = builder.value("arith.muli", &[step, number(lines)], index);
        let next = builder.add_index(scope.values[&panel], number(1));
        let next = builder.value("arith.minsi", &[next, number(last_panel)], index);
        scope.values.insert(panel, next);
        let (buffer, map) = (nest.inputs[input].buffer, &nest.inputs[input].map);
        let lane = scope.values[&tiling.lane];
        let integer = |value| IntegerAttribute::new(builder.int_type(32), value).into();
        let [read, data] = [false, true].map(|it| BoolAttribute::new(builder.context, it).into());
        let attributes =
            [("isWrite", read), ("localityHint", integer(LOCALITY)), ("isDataCache", data)];
        for line in 0..lines {
            let line = builder.add_index(first_line, number(line));
            let value = builder.value("arith.divui", &[line, number(row)], index);
            let value = builder.add_index(value, number(first));
            let value = builder.value("arith.minsi", &[value, number(last)], index);
            let column = builder.value("arith.remui", &[line, number(row)], index);
            let column = builder.value("arith.muli", &[column, number(per_line)], index);
            scope.values.insert(range, value);
            scope.values.insert(tiling.lane, builder.add_index(lane, column));
            let place = nest.exprs(builder, &mut scope, &map.results, true);
            let operands = [&[buffer], &place[..]].concat();
            builder.op_with("memref.prefetch", &operands, &[], &attributes, Vec::new());
        }
    }
}

/// Annotates the loop with these results, so that LLVM unrolls it.
fn unroll(held: &[Val]) {
    let Some(inner) = held.first().and_then(|it| mlir::defining_op(*it)) else { return };
    loops::annotate(inner, "unroll = <full = true>");
}
