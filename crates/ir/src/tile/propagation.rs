//! Tiles of arrays, and how they pass through maps.
//!
//! A [`Tile`] has *lanes*: along dimension `i` of the array, lane `k` from 0 to `size - 1` is at
//! `offset + stride * k`. Lanes outside of `[0, upper bound)` are masked: they stand for no element. A
//! tile may so reach beyond the array, as the last one does where the size does not divide the extent.
//!
//! [`Tile::through`] gives the tile of what a map leads to, from an operand to a result or the other
//! way. It has exactly the elements that the unmasked lanes lead to, where its constraints hold. It is
//! about tiles with an unmasked lane in each dimension: of others it may have more.
//!
//! # Algorithm
//!
//! Results that are digits of the same number (`x floordiv 4` and `x mod 4`, what an expanding reshape
//! gives) are looked at together, since their pairs matter. No other results may share a variable: the
//! elements then are a product.
//!
//! 1. The number is a sum of multiples of variables, and so a sum of progressions. That is one
//!    progression for sizes that fill the strides (a collapsing reshape). Lanes that are masked have to
//!    stand at its end, so that all lanes of a dimension that fills are unmasked.
//! 2. Digits are cut off from the number as the module `digits` says.
//!
//! An upper bound is the image of the upper bound; bounds of the map's domain restrict it. What
//! follows from the values of the variables, as the [`TilingSpace`] knows them, needs no constraint.
//!
//! Source: XLA's tile propagation (`xla/codegen/tiling/experimental/tile_propagation.cc`), which has one
//! rule for each operation. Here the map of the operation decides. Unlike XLA's tiles, these say for
//! which sizes they are right.

use std::ops::Range;

use super::digits::{Digit, Digits};
use super::nest::{Part, filling_sizes, nested};
use super::{Irregularity, TilingSpace};
use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Var};
use crate::hash::FastMap;
use crate::interval::Interval;
use crate::map::{Constraint, IndexingMap, VarIntervals};

/// The most alternatives that the constraints of a tile have.
const MAX_ALTERNATIVES: usize = 1 << 10;

/// The lanes of a tile along one dimension of an array. Lane `k` from 0 to `size - 1` is at
/// `offset + stride * k`. Lanes outside of `[0, upper bound)` are masked: they stand for no element.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DimTile {
    /// Where the first lane is.
    pub offset: Expr,
    /// The number of lanes.
    pub size: Expr,
    /// The distance between lanes. It means nothing where the size is 1.
    pub stride: Expr,
    /// Lanes from here on are masked.
    pub upper_bound: Expr,
}

impl DimTile {
    /// All values from `first` on, with a number of lanes that is a power of two. `None` if that is no
    /// 64-bit number.
    pub fn whole(ctx: &Context, first: i64, extent: i64) -> Option<Self> {
        let lanes = u64::try_from(extent).ok()?.checked_next_power_of_two()?;
        Some(Self {
            offset: ctx.constant(first),
            size: ctx.constant(i64::try_from(lanes).ok()?),
            stride: ctx.constant(1),
            upper_bound: ctx.constant(first.checked_add(extent)?),
        })
    }

    /// One value.
    fn point(ctx: &Context, value: Expr) -> Self {
        let one = ctx.constant(1);
        Self { offset: value, size: one, stride: one, upper_bound: ctx.add(value, one) }
    }

    /// Where the last lane is.
    pub fn last(&self, ctx: &Context) -> Expr {
        ((ctx.wrap(self.size) - 1) * self.stride + self.offset).expr()
    }

    /// The last lane that is not masked, if there is one.
    pub(super) fn last_unmasked(&self, ctx: &Context) -> Expr {
        let bound = ctx.wrap(self.upper_bound) - 1;
        if ctx.as_constant(self.stride) == Some(1) {
            return bound.min(self.last(ctx)).expr();
        }
        let lane = ((bound - self.offset) / self.stride).min(ctx.wrap(self.size) - 1);
        (lane * self.stride + self.offset).expr()
    }

    /// The same with other expressions.
    pub fn map(self, mut change: impl FnMut(Expr) -> Expr) -> Self {
        Self {
            offset: change(self.offset),
            size: change(self.size),
            stride: change(self.stride),
            upper_bound: change(self.upper_bound),
        }
    }
}

/// A part of an array: the elements at unmasked lanes of all its dimensions. It may reach beyond the array,
/// as the last tile does where the size does not divide the extent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tile {
    /// The lanes along each dimension.
    pub dims: Vec<DimTile>,
    /// Where it has exactly the elements that it is derived for.
    pub constraints: ConstraintExpression,
}

impl Tile {
    /// A tile without constraints.
    pub fn new(dims: Vec<DimTile>) -> Self {
        Self { dims, constraints: ConstraintExpression::always_satisfied() }
    }

    /// The tile that the results of `map` take. This one is that of its dimension variables, `ranges` are
    /// the lanes of its range variables; those without lanes take all values. Runtime variables are
    /// those of `space`. If this tile has an unmasked lane in each dimension, the elements are exactly
    /// those that the map leads to where the constraints hold; otherwise there may be more.
    ///
    /// # Errors
    /// The elements are not seen to be those of a tile.
    pub fn through(
        &self,
        ctx: &Context,
        space: &TilingSpace,
        map: &IndexingMap,
        ranges: &[Option<DimTile>],
    ) -> Result<Self, Irregularity> {
        if map.dims.len() != self.dims.len() {
            return Err(Irregularity::Rank(map.dims.len(), self.dims.len()));
        }
        if !map.constraints.is_empty() {
            return Err(Irregularity::Constrained);
        }
        let intervals = map.intervals(ctx);
        let mut tiled = FastMap::default();
        for (var, _) in map.vars() {
            let lanes = match var {
                Var::Dim(number) => self.dims[number as usize],
                Var::Range(number) => match ranges.get(number as usize).copied().flatten() {
                    Some(lanes) => lanes,
                    None => {
                        let Interval { lo, hi } = intervals.of(var);
                        let extent = hi.checked_sub(lo).and_then(|it| it.checked_add(1));
                        let lanes = extent.and_then(|extent| DimTile::whole(ctx, lo, extent));
                        lanes.ok_or(Irregularity::Unbounded(var))?
                    }
                },
                Var::Runtime(_) => continue,
            };
            tiled.insert(var, lanes);
        }
        let constraints = self.constraints.clone();
        let mut walk = Walk { ctx, space, intervals, tiled, constraints };
        let dims = walk.results(&map.results)?;
        Ok(Self { dims, constraints: walk.constraints })
    }

    /// The same in its simplest form.
    pub fn simplified(&self, ctx: &Context, space: &TilingSpace) -> Self {
        let dims = self.dims.iter().map(|lanes| lanes.map(|expr| space.simplify(ctx, expr)));
        Self { dims: dims.collect(), constraints: space.restrict(ctx, &self.constraints) }
    }
}

/// A tiled variable with its factor in a sum.
struct Addend {
    var: Var,
    factor: i64,
    /// Its lanes, with the bounds of the domain.
    lanes: DimTile,
}

/// What is known about the map and the tile.
struct Walk<'a> {
    ctx: &'a Context,
    space: &'a TilingSpace,
    intervals: VarIntervals,
    tiled: FastMap<Var, DimTile>,
    constraints: ConstraintExpression,
}

impl Walk<'_> {
    fn results(&mut self, results: &[Expr]) -> Result<Vec<DimTile>, Irregularity> {
        let ctx = self.ctx;
        let digits: Vec<Digit> = results.iter().map(|&result| Digit::of(ctx, result)).collect();
        let mut groups: Vec<(Expr, Vec<usize>)> = Vec::new();
        let mut group_of: FastMap<Expr, usize> = FastMap::default();
        for (place, digit) in digits.iter().enumerate() {
            let group = *group_of.entry(digit.number).or_insert(groups.len());
            if group == groups.len() {
                groups.push((digit.number, Vec::new()));
            }
            groups[group].1.push(place);
        }
        let mut seen = FastMap::default();
        let mut tiles = vec![None; results.len()];
        for (number, places) in groups {
            let vars = ctx.vars(number);
            let mut vars = vars.into_iter().filter(|var| self.tiled.contains_key(var)).peekable();
            if vars.peek().is_none() {
                for place in places {
                    tiles[place] = Some(DimTile::point(ctx, results[place]));
                }
                continue;
            }
            for var in vars {
                if seen.insert(var, ()).is_some() {
                    return Err(Irregularity::SharedVariable(var));
                }
            }
            let number = self.number(number)?;
            let own: Vec<Digit> = places.iter().map(|&place| digits[place]).collect();
            let constraints = ConstraintExpression::always_satisfied();
            let mut cut = Digits { ctx, constraints };
            for (place, lanes) in places.into_iter().zip(cut.split(number, &own)?) {
                tiles[place] = Some(lanes);
            }
            let constraints = cut.constraints;
            self.demand(&constraints)?;
        }
        Ok(tiles.into_iter().flatten().collect())
    }

    /// Adds constraints.
    fn demand(&mut self, constraints: &ConstraintExpression) -> Result<(), Irregularity> {
        let constraints = self.space.restrict(self.ctx, constraints);
        if constraints.is_always_satisfied() {
            return Ok(());
        }
        let pairs = self.constraints.conjunctions().len() * constraints.conjunctions().len();
        if MAX_ALTERNATIVES < pairs {
            return Err(Irregularity::Alternatives);
        }
        self.constraints = self.constraints.and(&constraints);
        match self.constraints.is_unsatisfiable() {
            true => Err(Irregularity::Sizes),
            false => Ok(()),
        }
    }

    fn demand_within(&mut self, expr: Expr, interval: Interval) -> Result<(), Irregularity> {
        let constraint = Constraint { expr, interval };
        self.demand(&ConstraintExpression::new(vec![vec![constraint]]))
    }

    /// The lanes of a variable, without those that the domain leaves out at the end.
    fn lanes(&self, var: Var) -> Option<DimTile> {
        let mut lanes = *self.tiled.get(&var)?;
        if let Some(end) = self.intervals.of(var).hi.checked_add(1) {
            let bound = self.space.interval_of(self.ctx, lanes.upper_bound);
            if end <= bound.lo {
                lanes.upper_bound = self.ctx.constant(end);
            } else if end < bound.hi {
                lanes.upper_bound = self.ctx.min(lanes.upper_bound, self.ctx.constant(end));
            }
        }
        Some(lanes)
    }

    /// The values of a sum.
    fn number(&mut self, expr: Expr) -> Result<DimTile, Irregularity> {
        let ctx = self.ctx;
        let mut addends = Vec::new();
        for (term, factor) in ctx.linear_terms(expr).ok_or(Irregularity::Nonlinear)?.terms {
            if let Some(var) = ctx.as_var(term)
                && let Some(lanes) = self.lanes(var)
            {
                if factor < 0 {
                    return Err(Irregularity::Stride(factor));
                }
                addends.push(Addend { var, factor, lanes });
            } else if ctx.vars(term).iter().any(|var| self.tiled.contains_key(var)) {
                return Err(Irregularity::Nonlinear);
            }
        }
        let at = |place: &dyn Fn(&Addend) -> Expr| {
            ctx.substitute(expr, &|var| addends.iter().find(|it| it.var == var).map(place))
        };
        let offset = at(&|it| it.lanes.offset);
        if let [Addend { var, factor, lanes }] = addends[..] {
            let stride = ctx.mul(lanes.stride, ctx.constant(factor));
            let upper_bound = at(&|it| it.lanes.upper_bound);
            // Lanes before the domain lead to what is masked, or there are none.
            let lo = self.intervals.of(var).lo;
            let before = at(&|_| ctx.constant(lo.saturating_sub(1)));
            if 0 <= self.space.interval_of(ctx, before).hi {
                self.demand_within(lanes.offset, Interval::new(lo, i64::MAX))?;
            }
            return Ok(DimTile { offset, size: lanes.size, stride, upper_bound });
        }
        for addend in &addends {
            let lo = self.intervals.of(addend.var).lo;
            self.demand_within(addend.lanes.offset, Interval::new(lo, i64::MAX))?;
        }
        let (size, stride) = self.collapsed(&addends)?;
        // Behind the last unmasked lane. One lane is unmasked.
        let last = |it: &Addend| match ctx.as_constant(it.lanes.size) {
            Some(1) => it.lanes.offset,
            _ => it.lanes.last_unmasked(ctx),
        };
        let upper_bound = (ctx.wrap(at(&last)) + 1).expr();
        Ok(DimTile { offset, size, stride, upper_bound })
    }

    /// The size and the stride of a sum.
    fn collapsed(&mut self, addends: &[Addend]) -> Result<(Expr, Expr), Irregularity> {
        let ctx = self.ctx;
        let mut all: Vec<(i64, DimTile)> = Vec::with_capacity(addends.len());
        for Addend { factor, lanes, .. } in addends {
            if ctx.as_constant(lanes.size) == Some(1) {
                continue;
            }
            let stride = ctx.as_constant(lanes.stride).ok_or(Irregularity::SymbolicStride)?;
            let stride = stride.checked_mul(*factor).filter(|it| 0 < *it);
            all.push((stride.ok_or(Irregularity::Stride(*factor))?, *lanes));
        }
        all.sort_by_key(|(stride, _)| std::cmp::Reverse(*stride));
        // Those of one stride are one part.
        let mut parts: Vec<(Part, Vec<DimTile>)> = Vec::with_capacity(all.len());
        for (stride, lanes) in all {
            match parts.last_mut() {
                Some(((last, size), members)) if *last == stride => {
                    *size = (ctx.wrap(*size) + lanes.size - 1).expr();
                    members.push(lanes);
                }
                Some(((last, _), _)) if *last % stride != 0 => {
                    return Err(Irregularity::Strides(*last, stride));
                }
                _ => parts.push(((stride, lanes.size), vec![lanes])),
            }
        }
        let (parts, members): (Vec<Part>, Vec<Vec<DimTile>>) = parts.into_iter().unzip();
        match parts[..] {
            [] => return Ok((ctx.constant(1), ctx.constant(1))),
            [(stride, size)] => return Ok((size, ctx.constant(stride))),
            _ => {}
        }
        let unmasked = |fills: Range<usize>| {
            let lanes = members[fills].iter().flatten();
            let after = lanes.map(|lanes| ctx.sub(lanes.upper_bound, lanes.last(ctx)));
            let interval = Interval::new(1, i64::MAX);
            after.map(|expr| Constraint { expr, interval }).collect()
        };
        let sizes = filling_sizes(ctx, &parts, &unmasked);
        self.demand(&sizes)?;
        Ok(nested(ctx, &parts))
    }
}
