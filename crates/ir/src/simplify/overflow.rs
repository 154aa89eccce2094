//! No overflows that are not there in the given form.
//!
//! Values on the way have 128 bits. Variables and coefficients have 64, so that only what multiplies
//! products of variables can leave them: `(d0*d0) floordiv 1000 + d0*d0` has a value wherever `d0` has
//! 63 bits, `(d0*d0*1001) floordiv 1000` has not.

use super::Simplifier;
use crate::expr::{Expr, Node, Var};

/// A little below 2^127, to allow for rounding.
const LARGEST: f64 = 1.7e38;

impl Simplifier<'_> {
    /// Whether a form of an expression overflows on the way only where the given one may, as far as the
    /// largest values on the way tell.
    pub(crate) fn overflows_no_more(&self, new: Expr, given: Expr) -> bool {
        if !self.is_wide || new == given {
            return true;
        }
        let largest = self.largest_on_the_way(new);
        largest <= LARGEST || largest <= self.largest_on_the_way(given)
    }

    /// Whether no value on the way leaves 128 bits, as far as the largest ones tell.
    pub(crate) fn never_overflows(&self, expr: Expr) -> bool {
        self.largest_on_the_way(expr) <= LARGEST
    }

    /// A bound of the sizes of all values in an evaluation.
    #[expect(clippy::cast_precision_loss, reason = "bounds, with room for rounding")]
    fn largest_on_the_way(&self, expr: Expr) -> f64 {
        let of_var = |var: Var| {
            let interval = (self.interval)(var);
            interval.lo.unsigned_abs().max(interval.hi.unsigned_abs()) as f64
        };
        // Of the value, and of all on the way to it.
        let largest =
            self.ctx.fold_value(expr, |_, node, operands: Option<(&[f64; 2], &[f64; 2])>| {
                let ([lhs, lhs_way], [rhs, rhs_way]) =
                    operands.map_or_else(Default::default, |(&lhs, &rhs)| (lhs, rhs));
                let value = match node {
                    Node::Const(value) => value.unsigned_abs() as f64,
                    Node::Var(var) => of_var(var),
                    Node::Add(..) => lhs + rhs,
                    Node::Mul(..) => lhs * rhs,
                    Node::FloorDiv(_, by) | Node::CeilDiv(_, by) => {
                        match self.ctx.as_constant(by) {
                            Some(_) => lhs / rhs.max(1.0) + 1.0,
                            None => lhs,
                        }
                    }
                    Node::Mod(..) => rhs,
                    Node::Min(..) | Node::Max(..) => lhs.max(rhs),
                };
                [value, value.max(lhs_way).max(rhs_way)]
            });
        largest[1]
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::Context;
    use crate::map::IndexingMap;

    #[test]
    fn simplified_forms_of_products_have_values() {
        for text in [
            "(d0) -> (((d0 * d0) / -1000 - d0 * d0) mod 7), domain: d0 in [0, 9223372036854775806]",
            "(d0) -> (((d0 * d0) / -2 - d0 * d0 * 3) mod 6), domain: d0 in [0, 4611686018427387904]",
            "(d0) -> ((((d0 * d0) ceildiv 2) * -3) mod 20), domain: d0 in [0, 9223372036854775806]",
            "(d0, d1) -> (((d0 * d1 + d0 / 1000) / 1099511627776) mod 9), domain: \
             d0 in [0, 9223372036854775806], d1 in [0, 9223372036854775806]",
        ] {
            let ctx = Context::new();
            let mut map = IndexingMap::parse(&ctx, text).expect("a map");
            let last: Vec<i64> = (map.dims.iter())
                .filter_map(|dim| dim.constant_interval(&ctx).map(|it| it.hi))
                .collect();
            let value = map.evaluate(&ctx, &last, &[], &[]);
            assert!(value.is_ok(), "{text}");
            map.simplify(&ctx);
            assert_eq!(map.evaluate(&ctx, &last, &[], &[]), value, "{}", map.display(&ctx));
        }
    }
}
