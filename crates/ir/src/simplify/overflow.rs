//! Prevents overflows that the given form does not have.
//!
//! Values on the way have 128 bits. Variables and coefficients have 64, so that only what multiplies
//! products of variables can leave them: `(d0*d0) floordiv 1000 + d0*d0` has a value wherever `d0` has
//! 63 bits, `(d0*d0*1001) floordiv 1000` has not, and `d1*((d1 - d0)*(d1 + d0))` has one where `d0` and
//! `d1` are `-2^63`, `(d1*(d1 + d0))*(d1 - d0)` has not.

use std::collections::BinaryHeap;

use smallvec::SmallVec;

use super::Simplifier;
use crate::expr::{Expr, Node};

/// A little below 2^127, to allow for rounding.
const LARGEST: f64 = 1.7e38;
/// What a value that has 128 bits may be moved by.
const SMALL: f64 = 1e30;

impl Simplifier<'_> {
    /// Whether a form of an expression has a value wherever the given one has, as far as bounds of the values
    /// on the way tell: what may leave 128 bits is the value itself, or a value on the way in the
    /// given form too.
    pub(crate) fn overflows_no_more(&mut self, new: Expr, given: Expr) -> bool {
        !self.is_wide || new == given || self.fits_on_the_way(new, Some(given))
    }

    /// Whether no value on the way leaves 128 bits, as far as bounds of them tell.
    pub(crate) fn never_overflows(&mut self, expr: Expr) -> bool {
        let fits = self.size_of(expr) <= LARGEST;
        fits && self.fits_on_the_way(expr, None)
    }

    /// Whether all values on the way to that of an expression have 128 bits, as far as their bounds tell, or
    /// are on the way to that of the given one.
    fn fits_on_the_way(&mut self, expr: Expr, given: Option<Expr>) -> bool {
        let (mut open, mut known) = (BinaryHeap::from([expr]), BinaryHeap::from_iter(given));
        let (mut moved, mut products) = (None, None);
        // Users have larger handles than what they use. Both ways are followed from the largest on, so that
        // what they have in common is not looked at.
        while let Some(next) = pop_largest(&mut open) {
            while known.peek().is_some_and(|&known| next < known) {
                let operands = pop_largest(&mut known).and_then(|it| self.ctx.node(it).operands());
                known.extend(operands.into_iter().flat_map(<[Expr; 2]>::from));
            }
            if known.peek() == Some(&next) {
                continue;
            }
            if next != expr && LARGEST < self.size_of(next) {
                let moved = moved.get_or_insert_with(|| self.moved_by_little(expr));
                if !moved.contains(&next) {
                    let products = products.get_or_insert_with(|| self.products_of(given));
                    if !self.is_within(next, products) {
                        return false;
                    }
                }
            }
            let operands = self.ctx.node(next).operands();
            open.extend(operands.into_iter().flat_map(<[Expr; 2]>::from));
        }
        true
    }

    /// The sum, and what is left of it without terms that are small: it has 128 bits where the sum has.
    fn moved_by_little(&mut self, sum: Expr) -> SmallVec<[Expr; 4]> {
        let mut moved = SmallVec::from_slice(&[sum]);
        let mut rest = sum;
        while let Node::Add(lhs, rhs) = self.ctx.node(rest) {
            rest = match (self.size_of(lhs) <= SMALL, self.size_of(rhs) <= SMALL) {
                (false, true) => lhs,
                (true, false) => rhs,
                _ => break,
            };
            moved.push(rest);
        }
        moved
    }

    /// The products on the way to the value of an expression: the factors, sorted, and the coefficient.
    fn products_of(&self, given: Option<Expr>) -> Vec<(Vec<Expr>, i64)> {
        let nodes = self.ctx.topological(given.as_slice());
        nodes.into_iter().filter_map(|expr| self.factors_of_product(expr)).collect()
    }

    /// Whether the value is a product of which there is a multiple, of the same sign.
    fn is_within(&self, expr: Expr, products: &[(Vec<Expr>, i64)]) -> bool {
        self.factors_of_product(expr).is_some_and(|(factors, coefficient)| {
            products.iter().any(|(others, other)| {
                *others == factors
                    && other.signum() == coefficient.signum()
                    && coefficient.unsigned_abs() <= other.unsigned_abs()
            })
        })
    }

    fn factors_of_product(&self, expr: Expr) -> Option<(Vec<Expr>, i64)> {
        let is_small = matches!(self.ctx.node(expr), Node::Mul(..)) && !self.has_many_factors(expr);
        is_small.then(|| self.factors(expr))?
    }

    /// A bound of the size of a value.
    fn size_of(&mut self, expr: Expr) -> f64 {
        let mut stack: SmallVec<[Expr; 16]> = SmallVec::from_slice(&[expr]);
        while let Some(&expr) = stack.last() {
            let before = stack.len();
            let node = self.ctx.node(expr);
            let mut size_of = |operand: Expr| {
                let size = self.tables.sizes.get(&operand).copied();
                size.unwrap_or_else(|| {
                    stack.push(operand);
                    0.0
                })
            };
            let (lhs, rhs) =
                node.operands().map_or((0.0, 0.0), |(lhs, rhs)| (size_of(lhs), size_of(rhs)));
            if stack.len() == before {
                stack.pop();
                let size = self.size(node, lhs, rhs);
                self.tables.sizes.insert(expr, size);
            }
        }
        self.tables.sizes[&expr]
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

/// The largest of a heap, however often it is there.
fn pop_largest(heap: &mut BinaryHeap<Expr>) -> Option<Expr> {
    let largest = heap.pop()?;
    while heap.peek() == Some(&largest) {
        heap.pop();
    }
    Some(largest)
}

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
    fn products_without_bounds_are_put_together() {
        let ctx = Context::new();
        for (given, expected) in [
            ("d0 * d1 + 3 + d0 * d1 + 2", "d0 * d1 * 2 + 5"),
            ("d1 + d1 - 6 + d0 * d0 * 8", "d1 * 2 + d0 * d0 * 8 - 6"),
            ("d0 * d1 * d2 + 5 + d1 * 2 + d1", "d1 * 3 + d0 * d1 * d2 + 5"),
            ("(d0 * d1 * 6 + 5) / 3", "d0 * d1 * 2 + 1"),
            ("d1 * d0 * 3 + 5", "d0 * d1 * 3 + 5"),
            ("d1 * d0 * 3 + 5 + d0", "d0 + d0 * d1 * 3 + 5"),
        ] {
            let map = IndexingMap::parse(&ctx, &format!("(d0, d1, d2) -> ({given})"));
            let canonical = ctx.canonicalize(map.expect("a map").results[0]);
            assert_eq!(ctx.display(canonical).to_string(), expected, "{given}");
        }
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
