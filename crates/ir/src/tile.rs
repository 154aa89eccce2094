//! Images of tiles: the elements of an operand that a tile of the iteration domain reaches.
//!
//! A *tile* gives variables of an [`IndexingMap`] an offset and a size, both expressions: the
//! variable takes the values `offset, offset + 1, .., offset + size - 1`. Sizes are at least 1.
//! [`images`] describes the values of each result of the map as an arithmetic progression
//! `offset, offset + stride, .., offset + (size - 1) * stride`, whose parts are expressions over
//! the variables of the tile's offsets and sizes. They are folded, not simplified.
//!
//! - Dimension and range variables outside of the tile take every value between their bounds.
//! - Runtime variables outside of the tile keep one value. A caller whose runtime is read from a
//!   tensor per point adds it to the tile, or does not ask.
//! - The tile need not lie in the domain: bounds of tiled variables are not looked at.
//!
//! [`Cover`] says how the progression relates to the values:
//!
//! - [`Cover::Exact`]: where the constraints of the [`Rectangle`] hold, the values are exactly the
//!   members of the progression. Where they do not hold, nothing is promised.
//! - [`Cover::Hull`]: every value is a member, always; there are no constraints. The stride is
//!   positive if it is a constant. Where [`is_exact`](Rectangle::is_exact) is set, every member is
//!   a value, too.
//!
//! # Algorithm
//!
//! A walk from the leaves keeps each subexpression as a sum of progressions, one per tiled
//! variable, so that linear arithmetic is exact. A quotient, remainder or extremum first
//! makes one progression of its operand. With unit stride, `x floordiv c` is an interval; `x mod c`
//! is one where the tile does not cross a multiple of `c` or takes all remainders.
//!
//! A sum of progressions is one progression in the scheme of XLA's symbolic tiles
//! (`xla/codegen/tiling/size_and_stride_expression.cc`): in descending order of strides, the sizes
//! are ones, then at most one free size, then sizes that fill the next larger stride, then ones.
//! [`SymbolicTile`] is XLA's description of a whole map in these terms. Unlike XLA's:
//!
//! - the offset is part of the analysis, so that a quotient by a divisor of the offset needs no
//!   constraint, and an offset that is not a multiple of the size gives sound ones;
//! - terms of equal strides, as in a window, are merged;
//! - terms of different signs are first brought to one sign. XLA takes the sum of their first
//!   elements as offset, which is wrong where two of them have more than one element.
//!
//! # Tiles of arrays
//!
//! A [`Tile`] is a part of an array with a stride and masked lanes in each dimension. [`Tile::through`]
//! gives the tile that a map leads to. A [`TilingSpace`] has the dimensions that tiles are numbered by.
//!
//! ```
//! use tc_ir::{Context, IndexingMap, Var, tile::{Cover, Image, TiledVariable, images}};
//! let ctx = Context::new();
//! let map = IndexingMap::parse(
//!     &ctx,
//!     "(d0)[s0] -> (d0 * 2 + s0, d0 / 16), domain: d0 in [0, 63], s0 in [0, 2]",
//! )?;
//! // The tile `q * 16 .. q * 16 + n` of `d0`.
//! let (q, n) = (ctx.wrap(ctx.dim(7)), ctx.dim(8));
//! let tile = [TiledVariable { var: Var::Dim(0), offset: (q * 16).expr(), size: n }];
//! let text = images(&ctx, &map, &tile, Cover::Hull).into_iter().map(|image| match image {
//!     Image::Rectangular(it) => [it.offset, it.size, it.stride].map(|e| ctx.display(e).to_string()),
//!     other => panic!("{other:?}"),
//! });
//! assert_eq!(
//!     text.collect::<Vec<_>>(),
//!     [["d7 * 32", "(d8 - 1) * 2 + 3", "1"], ["d7", "d8 ceildiv 16", "1"]]
//! );
//! # Ok::<(), tc_ir::ParseError>(())
//! ```

mod digits;
mod nest;
mod progression;
mod propagation;
mod reshape;
mod space;
mod symbolic;

use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Var};
use crate::hash::FastMap;
use crate::map::IndexingMap;
use progression::Walk;
pub use propagation::{DimTile, Tile};
pub use reshape::{MinimalReshape, ReshapeKind, minimal_reshapes};
pub use space::{Order, SpaceDim, TilingSpace};
pub use symbolic::{SymbolicTile, candidate_sizes};

/// A variable with the part of its values that a tile takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TiledVariable {
    /// The variable of the map.
    pub var: Var,
    /// Its first value.
    pub offset: Expr,
    /// The number of its values, at least 1.
    pub size: Expr,
}

/// How a progression relates to the values that it describes; see the [module](self) text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Cover {
    /// It has the same members, where the constraints hold.
    Exact,
    /// It has all of them and maybe others.
    Hull,
}

/// The values of one result over a tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Image {
    /// A progression.
    Rectangular(Rectangle),
    /// The same values for every tile: no tiled variable occurs, but others that are not fixed do.
    Whole,
    /// No progression is known.
    Irregular(Irregularity),
}

/// The progression `offset + stride * k` for `k` from 0 to `size - 1`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rectangle {
    /// The first member.
    pub offset: Expr,
    /// The number of members.
    pub size: Expr,
    /// The distance between members. It means nothing where the size is 1.
    pub stride: Expr,
    /// Where the progression is what [`Cover`] says.
    pub constraints: ConstraintExpression,
    /// Whether every member is seen to be a value of the result. Always set for [`Cover::Exact`].
    pub is_exact: bool,
}

/// Why the values of a result are not seen to be a progression.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Irregularity {
    /// A variable outside of the tile lacks a bound.
    #[error("the variable {0:?} has no bounds")]
    Unbounded(Var),
    /// A product of two factors that vary within the tile.
    #[error("a product of two factors that vary within a tile")]
    Product,
    /// A divisor that is no positive constant.
    #[error("a divisor that is no positive constant")]
    Divisor,
    /// A stride that is not constant where a constant one is needed.
    #[error("a stride that is not constant")]
    SymbolicStride,
    /// Two terms that depend on one variable.
    #[error("two terms that depend on the variable {0:?}")]
    SharedVariable(Var),
    /// Two strides neither of which divides the other.
    #[error("strides {0} and {1}, neither of which divides the other")]
    Strides(i64, i64),
    /// A stride that a quotient, remainder or extremum does not keep.
    #[error("a nonlinear operation on values with stride {0}")]
    StridedOperand(i64),
    /// The constraints of the map restrict the tile.
    #[error("the domain has constraints")]
    Constrained,
    /// The size or the constraints of the image depend on the position of the tile.
    #[error("the size of the image depends on the position of the tile")]
    Position,
    /// A tile of an array of another rank.
    #[error("expected a tile of rank {0}, found one of rank {1}")]
    Rank(usize, usize),
    /// Something other than a sum of multiples of variables, and digits of it.
    #[error("a subscript that is not linear")]
    Nonlinear,
    /// Quotients and remainders that are no digits of one number.
    #[error("quotients and remainders that overlap")]
    Digits,
    /// A stride that is not positive where a positive one is needed.
    #[error("a stride of {0}")]
    Stride(i64),
    /// No sizes of tiles are seen to give a progression.
    #[error("several dimensions are tiled in part")]
    Sizes,
    /// More alternative sizes than are followed.
    #[error("too many alternatives for the sizes of tiles")]
    Alternatives,
}

/// The image of a tile in each result of `map`; see the [module](self) text. A variable of the tile
/// is given once. Time is linear in the operators of the results, for results of few terms.
pub fn images(
    ctx: &Context,
    map: &IndexingMap,
    tile: &[TiledVariable],
    cover: Cover,
) -> Vec<Image> {
    let tiled: FastMap<Var, TiledVariable> = tile.iter().map(|it| (it.var, *it)).collect();
    let walk = Walk { ctx, map, tiled, cover };
    map.results.iter().map(|&result| walk.image(result)).collect()
}
