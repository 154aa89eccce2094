//! Sums of progressions that are one progression.
//!
//! The sums of one value of each part, where part `i` is `stride_i * k` for `k` from 0 to
//! `size_i - 1`. Strides descend, each a multiple of the next.

use std::ops::Range;

use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr};
use crate::interval::Interval;
use crate::map::Constraint;

/// A part: its stride, and the number of its values.
pub(super) type Part = (i64, Expr);

/// The size and the stride of the sum, for sizes that [`filling_sizes`] allows.
pub(super) fn nested(ctx: &Context, parts: &[Part]) -> (Expr, Expr) {
    let (mut size, mut stride) = (ctx.constant(1), ctx.constant(0));
    for &(of_part, values) in parts {
        // The quotient is 1 if the size is 1, and 0 for larger ones.
        let is_one = ctx.floor_div(ctx.constant(1), values);
        let change = (ctx.wrap(stride) - of_part) * is_one;
        stride = (change + of_part).expr();
        size = ctx.mul(size, values);
    }
    (size, stride)
}

/// The sizes with which the sum is one progression: ones, any size, sizes that fill the next larger
/// stride, ones. `also` gives what else has to hold where these parts fill.
pub(super) fn filling_sizes(
    ctx: &Context,
    parts: &[Part],
    also: &dyn Fn(Range<usize>) -> Vec<Constraint>,
) -> ConstraintExpression {
    let mut conjunctions = Vec::new();
    for free in 0..parts.len() {
        for end in free + 1..=parts.len() {
            let fills = free + 1..end;
            let mut conjunction = also(fills.clone());
            let mut holds = true;
            for (i, &(stride, size)) in parts.iter().enumerate().filter(|(i, _)| *i != free) {
                let value = if fills.contains(&i) { parts[i - 1].0 / stride } else { 1 };
                match ctx.as_constant(size) {
                    Some(size) => holds &= size == value,
                    None => conjunction
                        .push(Constraint { expr: size, interval: Interval::point(value) }),
                }
            }
            if holds {
                conjunctions.push(conjunction);
            }
        }
    }
    ConstraintExpression::new(conjunctions)
}
