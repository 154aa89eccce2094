//! Tiles by the number of the program that computes them.
//!
//! One program for each tile of the result, and inside of it loops over the dimensions that are summed
//! over. Source: XLA's `symbolic_tile_analysis.cc` (`xla/codegen/tiling`), which calls the number of a
//! program with the iteration of its loops `pid_0`.

use super::{InstructionRef, Op, PlacedTile, Tiling, dimensions};
use crate::hlo::Opcode;
use tc_ir::{
    Context, Equality, Expr, IndexingMap, Interval, Var, Variable,
    simplify::Simplifier,
    tile::{DimTile, Tile, TilingSpace},
};

impl Tiling<'_, '_> {
    /// The dimensions of the result, then those that the given instructions sum over: the loops of a
    /// program, outermost first.
    pub fn loops(&self, through: &[InstructionRef]) -> Vec<usize> {
        let of = |at: InstructionRef| {
            let numbers = 0..self.positions.len();
            numbers.filter(move |&number| self.positions[number].0 == at)
        };
        let mut loops: Vec<usize> = of(self.root()).filter(|number| *number < self.rank).collect();
        for &at in through {
            let inner: Vec<usize> = of(at).filter(|number| !loops.contains(number)).collect();
            loops.extend(inner);
        }
        loops
    }

    /// Where the tile of each program starts, with loops in this order; the domain has the programs that
    /// need an element of it. `None` if a size of tiles is not chosen, or the sizes give no tile.
    pub fn offsets(&self, tile: &Tile, order: &[usize]) -> Option<IndexingMap> {
        offsets(self.indexing.context(), &self.space, tile, order)
    }

    /// Whether programs cut the array of an instruction into their tiles, each computed by the program with
    /// its number, so that they may store it.
    pub fn is_partition(&self, at: InstructionRef, tile: &PlacedTile, order: &[usize]) -> bool {
        let ctx = self.indexing.context();
        let op = Op::new(self.indexing, at);
        let Some(extents) = op.output_dims(tile.array) else { return false };
        let sizes: Option<Vec<i64>> =
            tile.tile.dims.iter().map(|lanes| ctx.as_constant(lanes.size)).collect();
        let mut own = TilingSpace::parallel(extents);
        if !sizes.is_some_and(|sizes| own.choose(ctx, &sizes)) {
            return false;
        }
        let dims: Option<Vec<DimTile>> = (0..extents.len()).map(|dim| own.tile(ctx, dim)).collect();
        let whole = dims.and_then(|dims| {
            let order: Vec<usize> = (0..extents.len()).collect();
            offsets(ctx, &own, &Tile::new(dims), &order)
        });
        match (self.offsets(&tile.tile, order), whole) {
            (Some(found), Some(whole)) => {
                found.dims == whole.dims && found.equality(ctx, &whole) == Equality::Equal
            }
            _ => false,
        }
    }

    /// Whether a tile of a concatenation has elements of one operand only, in every program.
    pub fn is_in_one_operand(&self, at: InstructionRef, tile: &Tile) -> bool {
        let ctx = self.indexing.context();
        let op = Op::new(self.indexing, at);
        if op.instruction.opcode != Opcode::Concatenate {
            return true;
        }
        let Some(along) = dimensions(op.instruction.dimensions(), tile.dims.len()) else {
            return false;
        };
        along.iter().all(|&dim| {
            let DimTile { offset, size, stride, .. } = tile.dims[dim];
            let Some(size) = ctx.as_constant(size).filter(|size| 0 < *size) else { return false };
            let extents = (0..op.num_operands()).filter_map(|it| op.operand_dims(it)?.get(dim));
            // The last operand may end anywhere.
            let inner = extents.take(op.num_operands().saturating_sub(1));
            size == 1
                || ctx.as_constant(stride) == Some(1)
                    && ctx.is_multiple_of(offset, size)
                    && inner.into_iter().all(|extent| extent % size == 0)
        })
    }
}

fn offsets(
    ctx: &Context,
    space: &TilingSpace,
    tile: &Tile,
    order: &[usize],
) -> Option<IndexingMap> {
    let (count, numbers) = space.programs(ctx, order)?;
    if !space.restrict(ctx, &tile.constraints).is_always_satisfied() {
        return None;
    }
    let at = |expr: Expr| {
        ctx.substitute(expr, &|var| match var {
            Var::Range(number) => numbers.get(number as usize).copied(),
            _ => None,
        })
    };
    let program = Variable::bounded(ctx, Interval::new(0, count - 1)).named("pid_0");
    let mut map = IndexingMap {
        dims: vec![program],
        runtimes: space.runtimes.iter().map(|it| Variable::bounded(ctx, *it)).collect(),
        results: tile.dims.iter().map(|lanes| at(lanes.offset)).collect(),
        ..IndexingMap::default()
    };
    for lanes in &tile.dims {
        let (offset, bound) = (at(lanes.offset), at(lanes.upper_bound));
        // Between the first and the last lane is an element.
        let reach = space.simplify(ctx, (ctx.wrap(lanes.last(ctx)) - lanes.offset).expr());
        let needed = match (ctx.as_constant(reach), ctx.as_constant(bound)) {
            (Some(reach), Some(bound)) => {
                vec![(offset, Interval::new(reach.checked_neg()?, bound.checked_sub(1)?))]
            }
            _ => vec![
                (ctx.add(offset, reach), Interval::new(0, i64::MAX)),
                (ctx.sub(bound, offset), Interval::new(1, i64::MAX)),
            ],
        };
        let intervals = map.intervals(ctx);
        let mut simplifier = Simplifier::new(ctx, |var| intervals.of(var));
        for (expr, interval) in needed {
            let expr = simplifier.simplify(expr);
            if !interval.covers(simplifier.interval_of(expr)) {
                map.add_constraint(ctx, expr, interval);
            }
        }
    }
    map.simplify(ctx);
    map.remove_unused_symbols(ctx);
    Some(map)
}
