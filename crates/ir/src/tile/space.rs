//! The loops that tiles are numbered by.

use super::DimTile;
use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Var};
use crate::interval::Interval;
use crate::map::Constraint;
use crate::simplify::Simplifier;

/// In which order the tiles of a dimension are visited.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// In any order, each once.
    Parallel,
    /// One after the other, as those of a sum.
    Sequential,
}

/// A dimension that is cut into tiles of one size.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SpaceDim {
    /// The number of its elements.
    pub extent: i64,
    /// In which order its tiles are visited.
    pub order: Order,
    /// The number of elements of a tile; `None` if any size may be chosen.
    pub tile_size: Option<i64>,
}

/// The dimensions that are tiled, and the runtime variables of the tiles.
///
/// Tile number `Var::Range(i)` of dimension `i` has `Var::Dim(i)` elements, where no size is chosen,
/// and starts at their product, as in a [`SymbolicTile`](super::SymbolicTile). The last tile may reach
/// beyond the extent. Source: XLA's `TilingSpace` (`xla/codegen/tiling/experimental/tiling_space.h`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TilingSpace {
    /// The dimensions.
    pub dims: Vec<SpaceDim>,
    /// What `Var::Runtime(i)` lies in.
    pub runtimes: Vec<Interval>,
    /// The sizes of tiles that are allowed.
    pub constraints: ConstraintExpression,
}

impl Default for TilingSpace {
    fn default() -> Self {
        let constraints = ConstraintExpression::always_satisfied();
        Self { dims: Vec::new(), runtimes: Vec::new(), constraints }
    }
}

impl TilingSpace {
    /// The space of an array of these extents, whose tiles are visited in any order.
    pub fn parallel(extents: &[i64]) -> Self {
        let mut space = Self::default();
        extents.iter().for_each(|&extent| {
            space.add_dim(extent, Order::Parallel);
        });
        space
    }

    /// Adds a dimension, and returns its number.
    pub fn add_dim(&mut self, extent: i64, order: Order) -> usize {
        self.dims.push(SpaceDim { extent, order, tile_size: None });
        self.dims.len() - 1
    }

    /// The tile of a dimension.
    pub fn tile(&self, ctx: &Context, dim: usize) -> Option<DimTile> {
        let SpaceDim { extent, tile_size, .. } = *self.dims.get(dim)?;
        let number = u32::try_from(dim).ok()?;
        let size = tile_size.map_or(ctx.dim(number), |size| ctx.constant(size));
        let is_only = tile_size.is_some_and(|size| extent <= size);
        let number = if is_only { ctx.constant(0) } else { ctx.range(number) };
        let (stride, upper_bound) = (ctx.constant(1), ctx.constant(extent));
        Some(DimTile { offset: ctx.mul(number, size), size, stride, upper_bound })
    }

    /// Chooses the sizes of tiles. Returns whether there is a positive one for each dimension, and
    /// the constraints allow them; otherwise nothing changes.
    pub fn choose(&mut self, ctx: &Context, sizes: &[i64]) -> bool {
        let value_of = |var| match var {
            Var::Dim(number) => sizes.get(number as usize).copied(),
            _ => None,
        };
        let fits = sizes.len() == self.dims.len()
            && sizes.iter().all(|&size| 0 < size)
            && self.constraints.is_satisfied(ctx, &value_of).unwrap_or(false);
        if fits {
            for (dim, &size) in self.dims.iter_mut().zip(sizes) {
                dim.tile_size = Some(size);
            }
        }
        fits
    }

    /// The number of tiles of a dimension whose size of tiles is chosen.
    pub fn num_tiles(&self, dim: usize) -> Option<i64> {
        let SpaceDim { extent, tile_size, .. } = *self.dims.get(dim)?;
        Some(extent.saturating_sub(1).max(0) / tile_size.filter(|size| 0 < *size)? + 1)
    }

    /// Numbers the tiles of some dimensions, of the last one fastest: the number of their tiles, and for
    /// each dimension of the space the number of its tile, as an expression over the number of all,
    /// `Var::Dim(0)`. Other dimensions are at their first tile. `None` if a size is not chosen, or there are
    /// too many tiles.
    pub fn programs(&self, ctx: &Context, order: &[usize]) -> Option<(i64, Vec<Expr>)> {
        let mut numbers = vec![ctx.constant(0); self.dims.len()];
        let mut count = 1_i64;
        for &dim in order.iter().rev() {
            let tiles = self.num_tiles(dim)?;
            let rest = ctx.floor_div(ctx.dim(0), ctx.constant(count));
            *numbers.get_mut(dim)? = ctx.modulo(rest, ctx.constant(tiles));
            count = count.checked_mul(tiles)?;
        }
        Some((count, numbers))
    }

    /// The values of a variable: of sizes and numbers of tiles, and of runtime variables.
    pub fn interval(&self, var: Var) -> Interval {
        let dim = |number: u32| self.dims.get(number as usize);
        match var {
            Var::Dim(number) => match dim(number).and_then(|dim| dim.tile_size) {
                Some(size) => Interval::point(size),
                None => Interval::new(1, i64::MAX),
            },
            Var::Range(number) => dim(number).map_or(Interval::ALL, |dim| {
                // There are at most as many tiles as elements.
                let tiles = dim.extent.saturating_sub(1).max(0) / dim.tile_size.unwrap_or(1).max(1);
                Interval::new(0, tiles)
            }),
            Var::Runtime(number) => {
                self.runtimes.get(number as usize).copied().unwrap_or(Interval::ALL)
            }
        }
    }

    /// An interval that holds the values of an expression.
    pub fn interval_of(&self, ctx: &Context, expr: Expr) -> Interval {
        ctx.interval_of(expr, &|var| self.interval(var))
    }

    /// The expression in its simplest form.
    pub fn simplify(&self, ctx: &Context, expr: Expr) -> Expr {
        Simplifier::new(ctx, |var| self.interval(var)).simplify(expr)
    }

    /// The constraints without those that hold everywhere in the space, and without the alternatives
    /// that hold nowhere in it.
    pub fn restrict(
        &self,
        ctx: &Context,
        constraints: &ConstraintExpression,
    ) -> ConstraintExpression {
        let mut simplifier = Simplifier::new(ctx, |var| self.interval(var));
        let conjunctions = constraints.conjunctions().iter().filter_map(|conjunction| {
            let mut rest = Vec::new();
            for &Constraint { expr, interval } in conjunction {
                let expr = simplifier.simplify(expr);
                let values = simplifier.interval_of(expr);
                if values.intersect(interval).is_empty() {
                    return None;
                }
                if !interval.covers(values) {
                    rest.push(Constraint { expr, interval });
                }
            }
            Some(rest)
        });
        let mut found = ConstraintExpression::new(conjunctions.collect());
        found.simplify(ctx);
        found
    }
}
