//! The tile of an operand for a tile of the result, in the form of XLA's symbolic tiles.

use super::{Cover, Image, Irregularity, TiledVariable, images};
use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Var};
use crate::map::IndexingMap;

/// What the tiles of a result reach of an operand: per dimension of the operand the members of a
/// progression, as [`Cover::Exact`] says.
///
/// Dimension `i` of the result is cut into tiles of size `Var::Dim(i)`; this is tile number
/// `Var::Range(i)`, which starts at their product. Sizes, strides and constraints are expressions
/// over the sizes alone, and so hold for every tile that lies in the domain; offsets may have
/// runtime variables, too. Range variables of the map take all of their values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolicTile {
    /// The first members.
    pub offsets: Vec<Expr>,
    /// The numbers of members.
    pub sizes: Vec<Expr>,
    /// The distances between members.
    pub strides: Vec<Expr>,
    /// Where the tile is a product of these progressions.
    pub constraints: ConstraintExpression,
}

impl SymbolicTile {
    /// The tile that `map`, from the result to the operand, implies.
    ///
    /// # Errors
    /// The values of a result are not seen to be a progression.
    pub fn of(ctx: &Context, map: &IndexingMap) -> Result<Self, Irregularity> {
        let mut tile = Vec::new();
        for (var, _) in map.vars() {
            if let Var::Dim(number) = var {
                let size = ctx.dim(number);
                let offset = ctx.mul(ctx.range(number), size);
                tile.push(TiledVariable { var, offset, size });
            }
        }
        let ranges = (0..).zip(&map.ranges).map(|(number, variable)| {
            let var = Var::Range(number);
            let (Some(offset), Some(upper)) = (variable.lower, variable.upper) else {
                return Err(Irregularity::Unbounded(var));
            };
            Ok(TiledVariable { var, offset, size: (ctx.wrap(upper) - offset + 1).expr() })
        });
        tile.extend(ranges.collect::<Result<Vec<_>, _>>()?);

        let mut result = SymbolicTile {
            offsets: Vec::new(),
            sizes: Vec::new(),
            strides: Vec::new(),
            constraints: ConstraintExpression::always_satisfied(),
        };
        let mut distinct: Vec<ConstraintExpression> = Vec::new();
        for image in images(ctx, map, &tile, Cover::Exact) {
            let rectangle = match image {
                Image::Rectangular(rectangle) => rectangle,
                Image::Irregular(reason) => return Err(reason),
                Image::Whole => unreachable!("every variable but runtimes is tiled"),
            };
            result.offsets.push(rectangle.offset);
            result.sizes.push(rectangle.size);
            result.strides.push(rectangle.stride);
            // Results of one variable often share constraints.
            if !distinct.contains(&rectangle.constraints) {
                distinct.push(rectangle.constraints);
            }
        }
        for constraints in &distinct {
            result.constraints = result.constraints.and(constraints);
        }
        result.constraints.simplify(ctx);
        let conjunctions = result.constraints.conjunctions().iter().flatten();
        let mut fixed: Vec<Expr> = conjunctions.map(|constraint| constraint.expr).collect();
        fixed.extend(result.sizes.iter().chain(&result.strides));
        if ctx.vars_of_all(&fixed).iter().any(|var| matches!(var, Var::Range(_))) {
            return Err(Irregularity::Position);
        }
        Ok(result)
    }
}

/// The sizes that a tile of `extents` is tried with: per dimension the powers of two below the
/// extent, then the extent; the last dimension fastest.
pub fn candidate_sizes(extents: &[i64]) -> impl Iterator<Item = Vec<i64>> {
    let sizes: Vec<Vec<i64>> = extents
        .iter()
        .map(|&extent| {
            let powers = std::iter::successors(Some(1_i64), |size| size.checked_mul(2));
            powers.take_while(|size| *size < extent).chain([extent]).collect()
        })
        .collect();
    let mut places = Some(vec![0; extents.len()]);
    std::iter::from_fn(move || {
        let current = places.take()?;
        let mut next = current.clone();
        let advances = next.iter_mut().zip(&sizes).rev().any(|(place, sizes)| {
            *place = (*place + 1) % sizes.len();
            *place != 0
        });
        places = advances.then_some(next);
        Some(current.into_iter().zip(&sizes).map(|(place, sizes)| sizes[place]).collect())
    })
}
