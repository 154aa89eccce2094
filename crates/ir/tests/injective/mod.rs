//! Random maps that are injective: chains of steps each of which is.

mod symbolic;

use proptest::prelude::*;
pub use symbolic::{any_symbolic_chain, symbolic_chain};
use tc_ir::{Context, Expr, IndexingMap, Interval, Variable, compose};

/// A step of a chain. Places of dimensions are taken modulo the rank.
#[derive(Clone, Debug)]
pub enum Step {
    /// Swaps two dimensions.
    Swap(usize, usize),
    /// Reverses a dimension.
    Reverse(usize),
    /// Splits a dimension by a factor of its extent.
    Split(usize, usize),
    /// Joins a dimension with the next, with gaps between the rows.
    Join(usize, i64),
    /// Takes a dimension as a slice of a larger one.
    Slice(usize, i64, i64),
    /// Turns a dimension by some places.
    Rotate(usize, i64),
    /// Multiplies a dimension modulo its extent.
    Stride(usize, i64),
    /// Adds a multiple of one dimension to another.
    Shear(usize, usize, i64),
    /// The same modulo the extent of the other.
    Skew(usize, usize, i64),
    /// Adds what a dimension is by some function to another.
    Mix(usize, usize, Function, i64),
    /// Quotient by a number, and remainder by one that is no smaller.
    Overlap(usize, i64, i64),
    /// Remainders by several numbers.
    Residues(usize, i64),
    /// One slope up to a number, and another from it on.
    Bend(usize, i64, i64, i64),
    /// The same as a sum of a minimum and a maximum.
    Turn(usize, i64, i64, i64),
    /// Multiplies a dimension by what is known from another.
    Multiply(usize, usize),
    /// Quotient and remainder by what is known from another dimension.
    Divide(usize, usize),
    /// A number and its quotient, as a sum.
    Climb(usize, i64, i64),
    /// A quotient of a multiple that is no smaller.
    Scale(usize, i64, i64),
    /// The square of what is not negative.
    Square(usize),
    /// One more result, a function of a dimension.
    Repeat(usize, Function, i64),
    /// Leaves gaps between blocks of a dimension.
    Spread(usize, i64, i64),
    /// Reverses each block of a dimension.
    Flip(usize, i64),
    /// Takes every so manieth number of a dimension first.
    Deinterleave(usize, i64),
    /// Turns each block of a dimension by what another is.
    Swizzle(usize, usize, i64),
}

/// A function of one number.
#[derive(Copy, Clone, Debug)]
pub enum Function {
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
}

impl Function {
    fn of(self, ctx: &Context, value: Expr, by: i64) -> Expr {
        let by = ctx.constant(by);
        match self {
            Function::FloorDiv => ctx.floor_div(value, by),
            Function::CeilDiv => ctx.ceil_div(value, by),
            Function::Mod => ctx.modulo(value, by),
            Function::Min => ctx.min(value, by),
            Function::Max => ctx.max(value, by),
        }
    }
}

/// Reshapes, transpositions, reversals and slices.
pub fn any_plain_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_usize, 0..4_usize).prop_map(|(a, b)| Step::Swap(a, b)),
        (0..4_usize).prop_map(Step::Reverse),
        (0..4_usize, 0..8_usize).prop_map(|(a, b)| Step::Split(a, b)),
        (0..4_usize).prop_map(|a| Step::Join(a, 0)),
        (0..4_usize, -3..4_i64, 1..4_i64).prop_map(|(a, b, c)| Step::Slice(a, b, c)),
    ]
}

/// All kinds.
pub fn any_step() -> impl Strategy<Value = Step> {
    let dim = || 0..4_usize;
    let function = || {
        use Function::{CeilDiv, FloorDiv, Max, Min, Mod};
        prop::sample::select(&[FloorDiv, CeilDiv, Mod, Min, Max][..])
    };
    prop_oneof![
        5 => any_plain_step(),
        1 => (dim(), 0..4_i64).prop_map(|(a, b)| Step::Join(a, b)),
        1 => (dim(), 1..9_i64).prop_map(|(a, b)| Step::Rotate(a, b)),
        1 => (dim(), 2..9_i64).prop_map(|(a, b)| Step::Stride(a, b)),
        1 => (dim(), dim(), -3..4_i64).prop_map(|(a, b, c)| Step::Shear(a, b, c)),
        1 => (dim(), dim(), -3..4_i64).prop_map(|(a, b, c)| Step::Skew(a, b, c)),
        1 => (dim(), dim(), function(), 1..7_i64).prop_map(|(a, b, c, d)| Step::Mix(a, b, c, d)),
        1 => (dim(), 1..7_i64, 0..5_i64).prop_map(|(a, b, c)| Step::Overlap(a, b, c)),
        1 => (dim(), 2..9_i64).prop_map(|(a, b)| Step::Residues(a, b)),
        1 => (dim(), -3..9_i64, 1..4_i64, 1..4_i64)
            .prop_map(|(a, b, c, d)| Step::Bend(a, b, c, d)),
        1 => (dim(), -3..9_i64, 1..4_i64, 1..4_i64)
            .prop_map(|(a, b, c, d)| Step::Turn(a, b, c, d)),
        1 => (dim(), dim()).prop_map(|(a, b)| Step::Multiply(a, b)),
        1 => (dim(), dim()).prop_map(|(a, b)| Step::Divide(a, b)),
        1 => (dim(), -3..4_i64, 1..6_i64).prop_map(|(a, b, c)| Step::Climb(a, b, c)),
        1 => (dim(), 1..6_i64, 0..6_i64).prop_map(|(a, b, c)| Step::Scale(a, b, c)),
        1 => dim().prop_map(Step::Square),
        1 => (dim(), function(), 1..7_i64).prop_map(|(a, b, c)| Step::Repeat(a, b, c)),
        1 => (dim(), 1..9_i64, 1..4_i64).prop_map(|(a, b, c)| Step::Spread(a, b, c)),
        1 => (dim(), 2..9_i64).prop_map(|(a, b)| Step::Flip(a, b)),
        1 => (dim(), 2..9_i64).prop_map(|(a, b)| Step::Deinterleave(a, b)),
        1 => (dim(), dim(), 2..9_i64).prop_map(|(a, b, c)| Step::Swizzle(a, b, c)),
    ]
}

fn gcd(lhs: i64, rhs: i64) -> i64 {
    if rhs == 0 { lhs } else { gcd(rhs, lhs % rhs) }
}

/// The map of a chain over a box of the given extents. Steps that do not fit are left out.
pub fn chain(ctx: &Context, extents: &[i64], steps: &[Step]) -> IndexingMap {
    let mut intervals: Vec<Interval> =
        extents.iter().map(|&extent| Interval::new(0, extent - 1)).collect();
    let mut map = IndexingMap::identity(ctx, extents);
    for step in steps {
        let results = apply(ctx, &intervals, step);
        let of_dim = |var| match var {
            tc_ir::Var::Dim(number) => intervals[number as usize],
            _ => Interval::ALL,
        };
        let after = results.iter().map(|&result| ctx.interval_of(result, &of_dim)).collect();
        let dims = intervals.iter().map(|&it| Variable::bounded(ctx, it)).collect();
        let next = IndexingMap { dims, results, ..IndexingMap::default() };
        map = compose(ctx, &map, &next).expect("the ranks agree");
        intervals = after;
    }
    map
}

/// The results of a step on dimensions with these intervals.
fn apply(ctx: &Context, intervals: &[Interval], step: &Step) -> Vec<Expr> {
    let rank = intervals.len();
    let dims: Vec<Expr> = (0..).take(rank).map(|number| ctx.dim(number)).collect();
    let mut results = dims.clone();
    let constant = |value| ctx.constant(value);
    let scaled = |dim: Expr, by: i64| ctx.mul(dim, constant(by));
    let extent = |place: usize| intervals[place].hi - intervals[place].lo + 1;
    let from_zero = |place: usize| ctx.sub(dims[place], constant(intervals[place].lo));
    let blocks = |place: usize, by: i64| {
        let (value, by) = (from_zero(place), constant(by));
        (ctx.floor_div(value, by), ctx.modulo(value, by))
    };
    match *step {
        Step::Swap(a, b) => results.swap(a % rank, b % rank),
        Step::Reverse(a) => {
            let Interval { lo, hi } = intervals[a % rank];
            results[a % rank] = ctx.sub(constant(lo + hi), dims[a % rank]);
        }
        Step::Split(a, b) => {
            let a = a % rank;
            let factors: Vec<i64> = (1..=extent(a)).filter(|it| extent(a) % it == 0).collect();
            let factor = constant(factors[b % factors.len()]);
            results[a] = ctx.floor_div(from_zero(a), factor);
            results.insert(a + 1, ctx.modulo(from_zero(a), factor));
        }
        Step::Join(a, gap) if 1 < rank => {
            let a = a % (rank - 1);
            results[a] = ctx.add(scaled(from_zero(a), extent(a + 1) + gap), from_zero(a + 1));
            results.remove(a + 1);
        }
        Step::Slice(a, offset, stride) => {
            results[a % rank] = ctx.add(scaled(dims[a % rank], stride), constant(offset));
        }
        Step::Rotate(a, by) => {
            let a = a % rank;
            let moved = ctx.add(from_zero(a), constant(by));
            results[a] = ctx.modulo(moved, constant(extent(a)));
        }
        Step::Stride(a, by) if gcd(by, extent(a % rank)) == 1 => {
            let a = a % rank;
            results[a] = ctx.modulo(scaled(from_zero(a), by), constant(extent(a)));
        }
        Step::Shear(a, b, by) if a % rank != b % rank => {
            results[a % rank] = ctx.add(dims[a % rank], scaled(dims[b % rank], by));
        }
        Step::Skew(a, b, by) if a % rank != b % rank => {
            let (a, b) = (a % rank, b % rank);
            let sum = ctx.add(from_zero(a), scaled(dims[b], by));
            results[a] = ctx.modulo(sum, constant(extent(a)));
        }
        Step::Mix(a, b, function, by) if a % rank != b % rank => {
            let added = function.of(ctx, dims[b % rank], by);
            results[a % rank] = ctx.add(dims[a % rank], added);
        }
        Step::Overlap(a, by, more) => {
            let a = a % rank;
            results[a] = ctx.floor_div(dims[a], constant(by));
            results.insert(a + 1, ctx.modulo(dims[a], constant(by + more)));
        }
        Step::Residues(a, by) => {
            let a = a % rank;
            let mut common = by;
            results[a] = ctx.modulo(dims[a], constant(by));
            for other in by + 1.. {
                if extent(a) <= common {
                    break;
                }
                common = common / gcd(common, other) * other;
                results.insert(a + 1, ctx.modulo(dims[a], constant(other)));
            }
        }
        Step::Bend(a, at, first, second) => {
            let dim = dims[a % rank];
            let other = ctx.add(scaled(dim, second), constant((first - second) * at));
            let both = (scaled(dim, first), other);
            results[a % rank] =
                if first < second { ctx.max(both.0, both.1) } else { ctx.min(both.0, both.1) };
        }
        Step::Turn(a, at, first, second) => {
            let dim = dims[a % rank];
            let below = ctx.min(dim, constant(at));
            let above = ctx.max(ctx.sub(dim, constant(at)), constant(0));
            results[a % rank] = ctx.add(scaled(below, first), scaled(above, second));
        }
        Step::Multiply(a, b) if a % rank != b % rank && extent(b % rank) < 100 => {
            let by = ctx.add(from_zero(b % rank), constant(1));
            results[a % rank] = ctx.mul(dims[a % rank], by);
        }
        Step::Divide(a, b) if a % rank != b % rank => {
            let (a, by) = (a % rank, ctx.add(from_zero(b % rank), constant(1)));
            results[a] = ctx.floor_div(dims[a], by);
            results.insert(a + 1, ctx.modulo(dims[a], by));
        }
        Step::Climb(a, offset, by) => {
            let dim = dims[a % rank];
            let quotient = ctx.floor_div(ctx.add(dim, constant(offset)), constant(by));
            results[a % rank] = ctx.add(dim, quotient);
        }
        Step::Scale(a, by, more) => {
            results[a % rank] = ctx.floor_div(scaled(dims[a % rank], by + more), constant(by));
        }
        Step::Square(a) if 0 <= intervals[a % rank].lo && intervals[a % rank].hi < 32 => {
            results[a % rank] = ctx.mul(dims[a % rank], dims[a % rank]);
        }
        Step::Spread(a, by, gap) => {
            let (block, place) = blocks(a % rank, by);
            results[a % rank] = ctx.add(scaled(block, by + gap), place);
        }
        Step::Flip(a, by) => {
            let (block, place) = blocks(a % rank, by);
            results[a % rank] = ctx.add(scaled(block, by), ctx.sub(constant(by - 1), place));
        }
        Step::Deinterleave(a, by) => {
            let (block, place) = blocks(a % rank, by);
            let count = (extent(a % rank) - 1) / by + 1;
            results[a % rank] = ctx.add(scaled(place, count), block);
        }
        Step::Swizzle(a, b, by) if a % rank != b % rank => {
            let (block, place) = blocks(a % rank, by);
            let turned = ctx.modulo(ctx.add(place, dims[b % rank]), constant(by));
            results[a % rank] = ctx.add(scaled(block, by), turned);
        }
        Step::Repeat(a, function, by) => results.push(function.of(ctx, dims[a % rank], by)),
        _ => {}
    }
    results
}
