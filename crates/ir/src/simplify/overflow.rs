//! No overflows that are not there in the given form.
//!
//! Values on the way have 128 bits. Variables and coefficients have 64, so that only what multiplies
//! products of variables can leave them: `(d0*d0) floordiv 1000 + d0*d0` has a value wherever `d0` has
//! 63 bits, `(d0*d0*1001) floordiv 1000` has not, and `d1*((d1 - d0)*(d1 + d0))` has one where `d0` and
//! `d1` are `-2^63`, `(d1*(d1 + d0))*(d1 - d0)` has not.

use super::Simplifier;
use crate::expr::{Expr, Node};

/// A little below 2^127, to allow for rounding.
const LARGEST: f64 = 1.7e38;

impl Simplifier<'_> {
    /// Whether a form of an expression has a value wherever the given one has, as far as bounds of the values
    /// on the way tell: what may leave 128 bits is the value itself, or a value on the way in the
    /// given form too.
    pub(crate) fn overflows_no_more(&self, new: Expr, given: Expr) -> bool {
        if !self.is_wide || new == given {
            return true;
        }
        let known = self.ctx.topological(&[given]);
        self.fits_on_the_way(new, |expr| expr == new, |expr| known.binary_search(&expr).is_ok())
    }

    /// Whether no value on the way leaves 128 bits, as far as bounds of them tell.
    pub(crate) fn never_overflows(&self, expr: Expr) -> bool {
        self.fits_on_the_way(expr, |_| false, |_| false)
    }

    /// Whether all values on the way have 128 bits, as far as their bounds tell, or are known to: alone,
    /// or with all on the way to them.
    fn fits_on_the_way(
        &self,
        expr: Expr,
        is_known: impl Fn(Expr) -> bool,
        is_way_known: impl Fn(Expr) -> bool,
    ) -> bool {
        let (_, fits) =
            self.ctx.fold_value(expr, |expr, node, operands: Option<(&Size, &Size)>| {
                let ((lhs, lhs_fits), (rhs, rhs_fits)) =
                    operands.map_or(((0.0, true), (0.0, true)), |(&lhs, &rhs)| (lhs, rhs));
                let size = self.size(node, lhs, rhs);
                let fits = size <= LARGEST || is_known(expr);
                (size, fits && lhs_fits && rhs_fits || is_way_known(expr))
            });
        fits
    }

    /// A bound of the size of a value, from those of its operands.
    #[expect(clippy::cast_precision_loss, reason = "bounds, with room for rounding")]
    fn size(&self, node: Node, lhs: f64, rhs: f64) -> f64 {
        match node {
            Node::Const(value) => value.unsigned_abs() as f64,
            Node::Var(var) => {
                let interval = (self.interval)(var);
                interval.lo.unsigned_abs().max(interval.hi.unsigned_abs()) as f64
            }
            Node::Add(..) => lhs + rhs,
            Node::Mul(..) => lhs * rhs,
            Node::FloorDiv(_, by) | Node::CeilDiv(_, by) => match self.ctx.as_constant(by) {
                Some(_) => lhs / rhs.max(1.0) + 1.0,
                None => lhs,
            },
            Node::Mod(..) => rhs,
            Node::Min(..) | Node::Max(..) => lhs.max(rhs),
        }
    }
}

/// A bound of the size of a value, and whether it and all on the way to it have 128 bits.
type Size = (f64, bool);

#[cfg(test)]
mod tests {
    use crate::expr::Context;
    use crate::map::IndexingMap;

    #[test]
    fn factors_change_places_only_where_no_product_on_the_way_overflows() {
        let ctx = Context::new();
        let text = "(d0, d1) -> (d1 * ((d1 - d0) * (d1 + d0)))";
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        let canonical = ctx.canonicalize(map.results[0]);
        // The difference is zero, and the product of the other two is 2^127.
        let value = |expr| ctx.eval(expr, &|_| Some(i64::MIN));
        assert_eq!(value(map.results[0]), Ok(0));
        assert_eq!(value(canonical), Ok(0), "{}", ctx.display(canonical));
    }

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
