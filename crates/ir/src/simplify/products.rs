//! Products of non-constant expressions: their factors, sorted if there are few.

use smallvec::SmallVec;

use super::Simplifier;
use super::sum::Sum;
use crate::expr::{Expr, Node};
use crate::interval::Interval;

/// The most factors of a product that are sorted.
const MAX_PRODUCT: usize = 32;

impl Simplifier<'_> {
    /// The factors of a product, with the constant one apart. `None` on overflow.
    pub(super) fn factors(&self, expr: Expr) -> Option<(Vec<Expr>, i64)> {
        let ctx = self.ctx;
        let mut stack = vec![expr];
        let mut factors = Vec::new();
        let mut scale = 1_i64;
        while let Some(factor) = stack.pop() {
            match ctx.node(factor) {
                Node::Const(value) => scale = scale.checked_mul(value)?,
                Node::Mul(lhs, rhs) => stack.extend([lhs, rhs]),
                _ => factors.push(factor),
            }
        }
        factors.sort_by(|&a, &b| ctx.compare(a, b));
        Some((factors, scale))
    }

    /// The product of written expressions in normal form; `None` on overflow.
    pub(super) fn product(&mut self, lhs: Expr, rhs: Expr) -> Option<Sum> {
        let ctx = self.ctx;
        for (scale, other) in [(lhs, rhs), (rhs, lhs)] {
            if let Some(scale) = ctx.as_constant(scale) {
                return self.expand(other).scaled(scale);
            }
        }
        let whole = ctx.mul(lhs, rhs);
        if self.has_many_factors(whole) {
            // (a*s)*(b*t) == (a*b)*(s*t)
            let apart = |expr: Expr| match ctx.node(expr) {
                Node::Mul(of, scale) => ctx.as_constant(scale).map_or((expr, 1), |it| (of, it)),
                _ => (expr, 1),
            };
            let ((lhs, scale), (rhs, by)) = (apart(lhs), apart(rhs));
            return self.multiply(&[lhs, rhs])?.scaled(scale.checked_mul(by)?);
        }
        let (factors, scale) = self.factors(whole)?;
        self.multiply(&factors)?.scaled(scale)
    }

    /// Whether a product has more factors than are sorted.
    pub(super) fn has_many_factors(&self, product: Expr) -> bool {
        let mut open: SmallVec<[Expr; MAX_PRODUCT]> = SmallVec::from_slice(&[product]);
        let mut num_factors = 0;
        while let Some(factor) = open.pop() {
            match self.ctx.node(factor) {
                Node::Mul(lhs, rhs) => open.extend([lhs, rhs]),
                _ => num_factors += 1,
            }
            if MAX_PRODUCT < num_factors + open.len() {
                return true;
            }
        }
        false
    }

    /// The product of factors, none of which is a constant.
    pub(super) fn multiply(&mut self, factors: &[Expr]) -> Option<Sum> {
        let mut product: Option<Expr> = None;
        for &factor in factors {
            product = Some(match product {
                None => factor,
                Some(product) => {
                    let next = self.ctx.mul(product, factor);
                    self.expand_simplified(product, Interval::ALL);
                    self.expand(factor);
                    self.leaf(next);
                    next
                }
            });
        }
        match product {
            None => Some(Sum::constant(1)),
            Some(product) => Some(match self.tables.expanded.get(&product) {
                Some(sum) => sum.clone(),
                None => self.expand(product),
            }),
        }
    }
}
