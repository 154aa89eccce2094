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
//! panel, a few lines per strip of the sum.

use crate::{
    analysis::buffers::static_bytes,
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            emit::{Input, Nest, Scope, accessed},
            order::step_along,
            tiling::Tiling,
        },
    },
    target::LINE_BYTES,
};
use melior::ir::{
    Type, ValueLike,
    attribute::{BoolAttribute, IntegerAttribute},
};
use tc_dialects::mlir::{self, Builder, Val};
use tc_ir::{Var, expr::ceil_div};

/// The most lines per strip: more wait for each other.
const MAX_LINES: i64 = 32;
/// `memref.prefetch` to the second-level cache.
const LOCALITY: i64 = 2;

/// The share that a block has in the prefetches of the next panel.
pub(super) struct Prefetch {
    /// The number of the input.
    input: usize,
    /// The variable of the panels, and its last value.
    panel: (Var, i64),
    /// The range variable.
    range: Var,
    /// The variable of the blocks, its first value and the extent of a block.
    blocks: (Var, i64, i64),
    /// The values of the range variable that a block fetches per strip.
    rows: i64,
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
            || nest.choices.parallel
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
        let rows = ceil_div(strip.or(nest.extent(*range))?, num_blocks);
        let lines = Self::lanes_of_line(nest.inputs[input].buffer.r#type());
        let lines = ceil_div(tiling.width(), lines);
        nest.extent(panel)?;
        (rows.saturating_mul(lines) <= MAX_LINES).then(|| Self {
            input,
            panel: (panel, nest.intervals.of(panel).hi),
            range: *range,
            blocks: (*unrolled, nest.intervals.of(*unrolled).lo, *factor),
            rows,
        })
    }

    /// The elements of a cache line.
    fn lanes_of_line(buffer: Type) -> i64 {
        LINE_BYTES.div_euclid(i64::from(mlir::byte_width(mlir::element_type(buffer)))).max(1)
    }

    /// Emits the prefetches of a strip.
    pub fn build<'c>(
        &self,
        nest: &Nest<'c>,
        tiling: &Tiling,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
    ) {
        let Self { input, panel: (panel, last_panel), range, blocks, rows } = *self;
        let (unrolled, first_block, factor) = blocks;
        let index = builder.index_type();
        let add = |value: Val<'c>, number| builder.add_index(value, builder.index(number));
        let mut scope = scope.clone();
        let (lower, upper) = nest.loop_bounds(builder, &mut scope, range, &[]);
        let offset = add(scope.values[&unrolled], -first_block);
        let block = builder.value("arith.divui", &[offset, builder.index(factor)], index);
        let start = builder.value("arith.muli", &[block, builder.index(rows)], index);
        let start = builder.add_index(lower, start);
        let last = add(upper, -1);
        let next = add(scope.values[&panel], 1);
        let next = builder.value("arith.minsi", &[next, builder.index(last_panel)], index);
        scope.values.insert(panel, next);
        let (buffer, map) = (nest.inputs[input].buffer, &nest.inputs[input].map);
        let lane = scope.values[&tiling.lane];
        let step = Self::lanes_of_line(buffer.r#type());
        let number = |value| IntegerAttribute::new(builder.int_type(32), value).into();
        let [read, data] = [false, true].map(|it| BoolAttribute::new(builder.context, it).into());
        let attributes =
            [("isWrite", read), ("localityHint", number(LOCALITY)), ("isDataCache", data)];
        for row in 0..rows {
            let value = builder.value("arith.minsi", &[add(start, row), last], index);
            scope.values.insert(range, value);
            for line in (0..tiling.width()).step_by(step as usize) {
                scope.values.insert(tiling.lane, add(lane, line));
                let place = nest.exprs(builder, &mut scope, &map.results, true);
                let operands = [&[buffer], &place[..]].concat();
                builder.op_with("memref.prefetch", &operands, &[], &attributes, Vec::new());
            }
        }
    }
}
