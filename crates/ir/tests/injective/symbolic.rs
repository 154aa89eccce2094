//! Random injective maps over dynamic sizes.

use proptest::prelude::*;
use tc_ir::{Context, Expr, IndexingMap, Interval, Variable};

/// A number that is a constant, or known only when the program runs.
#[derive(Copy, Clone, Debug)]
pub enum Size {
    Constant(i64),
    /// The runtime variable of this number, modulo how many there are.
    Runtime(u32),
    /// How many blocks of a constant size cover a runtime variable.
    Blocks(u32, i64),
}

/// A step of a chain. Places of dimensions are taken modulo the rank.
#[derive(Clone, Debug)]
pub enum SymbolicStep {
    /// Swaps two dimensions.
    Swap(usize, usize),
    /// Reverses a dimension.
    Reverse(usize),
    /// Quotient and remainder of a dimension.
    Split(usize, Size),
    /// Joins a dimension with the next, with gaps between the rows.
    Join(usize, i64),
    /// Takes a dimension as a slice of a larger one.
    Slice(usize, i64, Size),
    /// Turns a dimension by some places.
    Rotate(usize, Size),
    /// Adds a multiple of one dimension to another, modulo its extent.
    Skew(usize, usize, i64),
    /// Adds one dimension to another.
    Shear(usize, usize),
}

/// The largest values of the runtime variables, the extents of the dimensions, and the steps.
pub type SymbolicChain = (Vec<i64>, Vec<Size>, Vec<SymbolicStep>);

fn any_size() -> impl Strategy<Value = Size> {
    prop_oneof![
        1 => (1..6_i64).prop_map(Size::Constant),
        3 => (0..3_u32).prop_map(Size::Runtime),
        1 => (0..3_u32, 2..5_i64).prop_map(|(of, by)| Size::Blocks(of, by)),
    ]
}

pub fn any_symbolic_chain() -> impl Strategy<Value = SymbolicChain> {
    let dim = || 0..4_usize;
    let step = prop_oneof![
        1 => (dim(), dim()).prop_map(|(a, b)| SymbolicStep::Swap(a, b)),
        1 => dim().prop_map(SymbolicStep::Reverse),
        3 => (dim(), any_size()).prop_map(|(a, b)| SymbolicStep::Split(a, b)),
        2 => dim().prop_map(|a| SymbolicStep::Join(a, 0)),
        1 => (dim(), 1..4_i64).prop_map(|(a, b)| SymbolicStep::Join(a, b)),
        1 => (dim(), 0..4_i64, any_size()).prop_map(|(a, b, c)| SymbolicStep::Slice(a, b, c)),
        1 => (dim(), any_size()).prop_map(|(a, b)| SymbolicStep::Rotate(a, b)),
        1 => (dim(), dim(), -1..3_i64).prop_map(|(a, b, c)| SymbolicStep::Skew(a, b, c)),
        1 => (dim(), dim()).prop_map(|(a, b)| SymbolicStep::Shear(a, b)),
    ];
    let largest = prop_oneof![4 => 2..5_i64, 1 => Just(1000), 1 => Just(i64::from(i32::MAX))];
    (
        prop::collection::vec(largest, 1..3),
        prop::collection::vec(any_size(), 1..4),
        prop::collection::vec(step, 0..5),
    )
}

/// The map of a chain. Steps that do not fit are left out.
pub fn symbolic_chain(ctx: &Context, (largest, extents, steps): &SymbolicChain) -> IndexingMap {
    let one = ctx.constant(1);
    let runtimes = largest.iter().map(|&largest| Variable::bounded(ctx, Interval::new(1, largest)));
    let runtimes: Vec<Variable> = runtimes.collect();
    let count = u32::try_from(runtimes.len()).expect("few");
    let size = |size: Size| match size {
        Size::Constant(value) => ctx.constant(value),
        Size::Runtime(number) => ctx.runtime(number % count),
        Size::Blocks(number, by) => ctx.ceil_div(ctx.runtime(number % count), ctx.constant(by)),
    };
    let extents: Vec<Expr> = extents.iter().map(|&extent| size(extent)).collect();
    let bounds =
        extents.iter().map(|&extent| Variable::between(ctx.constant(0), ctx.sub(extent, one)));
    let dims: Vec<Variable> = bounds.collect();
    // What each dimension is, from zero on, and its extent.
    let mut places: Vec<(Expr, Expr)> = (0..).map(|it| ctx.dim(it)).zip(extents).collect();
    for step in steps {
        let rank = places.len();
        match *step {
            SymbolicStep::Swap(a, b) => places.swap(a % rank, b % rank),
            SymbolicStep::Reverse(a) => {
                let (value, extent) = places[a % rank];
                places[a % rank].0 = ctx.sub(ctx.sub(extent, one), value);
            }
            SymbolicStep::Split(a, by) => {
                let (value, extent) = places[a % rank];
                let by = size(by);
                places[a % rank] = (ctx.floor_div(value, by), ctx.ceil_div(extent, by));
                places.insert(a % rank + 1, (ctx.modulo(value, by), by));
            }
            SymbolicStep::Join(a, gap) if 1 < rank => {
                let a = a % (rank - 1);
                let ((outer, rows), (inner, columns)) = (places[a], places.remove(a + 1));
                let stride = ctx.add(columns, ctx.constant(gap));
                places[a] = (ctx.add(ctx.mul(outer, stride), inner), ctx.mul(rows, stride));
            }
            SymbolicStep::Slice(a, offset, stride) => {
                let [offset, stride] = [ctx.constant(offset), size(stride)];
                let (value, extent) = places[a % rank];
                places[a % rank] = (
                    ctx.add(ctx.mul(value, stride), offset),
                    ctx.add(ctx.mul(extent, stride), offset),
                );
            }
            SymbolicStep::Rotate(a, by) => {
                let (value, extent) = places[a % rank];
                places[a % rank].0 = ctx.modulo(ctx.add(value, size(by)), extent);
            }
            SymbolicStep::Skew(a, b, by) if a % rank != b % rank => {
                let (value, extent) = places[a % rank];
                let added = ctx.mul(places[b % rank].0, ctx.constant(by));
                places[a % rank].0 = ctx.modulo(ctx.add(value, added), extent);
            }
            SymbolicStep::Shear(a, b) if a % rank != b % rank => {
                let ((value, extent), (other, more)) = (places[a % rank], places[b % rank]);
                places[a % rank] = (ctx.add(value, other), ctx.add(extent, more));
            }
            _ => {}
        }
    }
    let results = places.into_iter().map(|place| place.0).collect();
    IndexingMap { dims, runtimes, results, ..IndexingMap::default() }
}
