//! Digits of a number that takes the values of a tile: how a tile passes through an expanding
//! reshape.
//!
//! A number in a tile is cut into `number floordiv radix` and `number mod radix`. Both are
//! progressions whose pairs are exactly those of the numbers if the numbers
//!
//! - lie between two multiples of the radix,
//! - are whole stretches between multiples of the radix, or
//! - have a stride that is a multiple of the radix.

use super::progression::{divided, divides, is_multiple};
use super::{DimTile, Irregularity};
use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Node};
use crate::interval::Interval;
use crate::map::Constraint;

/// `number floordiv divisor mod modulus`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Digit {
    pub number: Expr,
    pub divisor: i64,
    /// `None` for the first digit, which has no modulus.
    pub modulus: Option<i64>,
}

impl Digit {
    /// An expression as a digit of the number that is left when quotients and remainders by constants
    /// are taken off.
    pub fn of(ctx: &Context, expr: Expr) -> Self {
        let mut digit = Self { number: expr, divisor: 1, modulus: None };
        loop {
            let node = ctx.node(digit.number);
            let Some((number, by)) = node.operands() else { return digit };
            let Some(by) = ctx.as_constant(by).filter(|it| 0 < *it) else { return digit };
            match node {
                Node::FloorDiv(..) => {
                    let Some(divisor) = digit.divisor.checked_mul(by) else { return digit };
                    digit = Self { number, divisor, ..digit };
                }
                // `x mod by floordiv divisor` is `x floordiv divisor mod (by / divisor)`.
                Node::Mod(..) if by % digit.divisor == 0 => {
                    let outer = by / digit.divisor;
                    let inner = digit.modulus.unwrap_or(outer);
                    let modulus = match () {
                        () if outer % inner == 0 => inner,
                        () if inner % outer == 0 => outer,
                        () => return digit,
                    };
                    digit = Self { number, modulus: Some(modulus), ..digit };
                }
                _ => return digit,
            }
        }
    }
}

/// Digits of the numbers of a tile.
pub(super) struct Digits<'c> {
    pub ctx: &'c Context,
    /// Where the digits are those of the numbers.
    pub constraints: ConstraintExpression,
}

impl Digits<'_> {
    /// The tile of each digit.
    pub fn split(
        &mut self,
        number: DimTile,
        digits: &[Digit],
    ) -> Result<Vec<DimTile>, Irregularity> {
        let mut order: Vec<usize> = (0..digits.len()).collect();
        order.sort_by_key(|&place| digits[place].divisor);
        let mut tiles = vec![number; digits.len()];
        let (mut rest, mut unit) = (number, 1_i64);
        for (i, &place) in order.iter().enumerate() {
            let Digit { divisor, modulus, .. } = digits[place];
            if unit == 0 || divisor % unit != 0 || divisor < unit {
                return Err(Irregularity::Digits);
            }
            if unit < divisor {
                // Nothing is said of the digits between.
                rest = match i {
                    0 => self.quotient(rest, divisor / unit)?,
                    _ => self.cut(rest, divisor / unit)?.0,
                };
            }
            (tiles[place], unit) = match modulus {
                None => (rest, 0),
                Some(modulus) => {
                    let (high, low) = self.cut(rest, modulus)?;
                    rest = high;
                    (low, divisor.checked_mul(modulus).ok_or(Irregularity::Digits)?)
                }
            };
        }
        Ok(tiles)
    }

    /// The stride of a tile, where it has one.
    fn stride(&self, tile: &DimTile) -> Result<i64, Irregularity> {
        if self.ctx.as_constant(tile.size) == Some(1) {
            return Ok(1);
        }
        let stride = self.ctx.as_constant(tile.stride).ok_or(Irregularity::SymbolicStride)?;
        if stride < 1 { Err(Irregularity::Stride(stride)) } else { Ok(stride) }
    }

    /// The quotients alone.
    fn quotient(&self, tile: DimTile, radix: i64) -> Result<DimTile, Irregularity> {
        let (ctx, stride) = (self.ctx, self.stride(&tile)?);
        if stride % radix == 0 {
            return Ok(self.strided(tile, stride, radix).0);
        }
        if radix < stride {
            return Err(Irregularity::StridedOperand(stride));
        }
        let offset = divided(ctx, tile.offset, radix);
        let is_nested = ctx.as_constant(tile.size).is_some_and(|size| {
            0 < size
                && (size % radix == 0 || radix % size == 0)
                && is_multiple(ctx, tile.offset, tile.size)
        });
        let size = if stride == 1 && (ctx.is_multiple_of(tile.offset, radix) || is_nested) {
            ctx.ceil_div(tile.size, ctx.constant(radix))
        } else {
            let last = (ctx.wrap(tile.size) - 1) * stride + tile.offset;
            (last / radix - offset + 1).expr()
        };
        // Behind the quotient of the last lane that is not masked.
        let upper_bound = if stride == 1 {
            ctx.ceil_div(tile.upper_bound, ctx.constant(radix))
        } else {
            (ctx.wrap(tile.last_unmasked(ctx)) / radix + 1).expr()
        };
        Ok(DimTile { offset, size, stride: ctx.constant(1), upper_bound })
    }

    /// Quotients and remainders of a tile whose stride is a multiple of the radix.
    fn strided(&self, tile: DimTile, stride: i64, radix: i64) -> (DimTile, DimTile) {
        let (ctx, by) = (self.ctx, self.ctx.constant(radix));
        let rest = match ctx.is_multiple_of(tile.offset, radix) {
            true => ctx.constant(0),
            false => ctx.modulo(tile.offset, by),
        };
        let high = DimTile {
            offset: divided(ctx, tile.offset, radix),
            size: tile.size,
            stride: ctx.constant(stride / radix),
            upper_bound: ctx.ceil_div(ctx.sub(tile.upper_bound, rest), by),
        };
        let one = ctx.constant(1);
        (high, DimTile { offset: rest, size: one, stride: one, upper_bound: by })
    }

    /// The quotients and the remainders, where they are those of the numbers.
    fn cut(&mut self, tile: DimTile, radix: i64) -> Result<(DimTile, DimTile), Irregularity> {
        let (ctx, stride) = (self.ctx, self.stride(&tile)?);
        if stride % radix == 0 {
            return Ok(self.strided(tile, stride, radix));
        }
        let by = ctx.constant(radix);
        let high_offset = divided(ctx, tile.offset, radix);
        let is_aligned = ctx.is_multiple_of(tile.offset, radix);
        let low_offset = if is_aligned { ctx.constant(0) } else { ctx.modulo(tile.offset, by) };
        let size = ctx.as_constant(tile.size);
        // A tile in a row of equal ones lies between two multiples if its size divides the radix.
        let is_in_row = stride == 1
            && ctx.as_constant(tile.offset).is_none()
            && size.is_none_or(|size| 0 < size && radix % size == 0)
            && is_multiple(ctx, tile.offset, tile.size);
        let within = match is_in_row {
            true => divides(ctx, tile.size, by),
            false => {
                // No lane further behind the first is unmasked.
                let lanes = (ctx.wrap(tile.size) - 1) * stride;
                let rest = ctx.wrap(tile.upper_bound) - 1 - tile.offset;
                let last = lanes.min(rest) + low_offset;
                Constraint { expr: last.expr(), interval: Interval::new(0, radix - 1) }
            }
        };
        let mut cases = vec![vec![within]];
        let ends_whole = ctx.is_multiple_of(tile.upper_bound, radix);
        // Only with a stride of 1, every remainder occurs.
        let may_fill = stride == 1 && size.is_none_or(|size| radix <= size && size % radix == 0);
        if may_fill {
            let mut fills = vec![divides(ctx, by, tile.size)];
            if !is_aligned && !is_in_row {
                fills.push(divides(ctx, by, tile.offset));
            }
            if !ends_whole {
                fills.push(divides(ctx, by, tile.upper_bound));
            }
            cases.push(fills);
        }
        self.constraints = self.constraints.and(&ConstraintExpression::new(cases));
        let one = ctx.constant(1);
        let high = DimTile {
            offset: high_offset,
            size: if may_fill { ctx.ceil_div(tile.size, by) } else { one },
            stride: one,
            upper_bound: ctx.ceil_div(tile.upper_bound, by),
        };
        let low = DimTile {
            offset: low_offset,
            size: if may_fill { ctx.min(tile.size, by) } else { tile.size },
            stride: ctx.constant(stride),
            upper_bound: match ends_whole {
                true => by,
                false => (ctx.wrap(tile.upper_bound) - ctx.mul(high_offset, by)).min(by).expr(),
            },
        };
        Ok((high, low))
    }
}
