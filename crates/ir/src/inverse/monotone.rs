//! Equations in which a variable occurs several times, or in a minimum or a maximum.
//!
//! - `min(f, g) == y`, for `f` and `g` that grow with the only unknown `t`: `t` is the larger of the
//!   largest numbers for which `f <= y` and `g <= y`. Where `f` is the smaller one, the first of these
//!   is `t`, and the second, since `y <= g`, is no larger. Mirrored for maxima and for what falls.
//! - `(a*t + k) floordiv c == y` for `c <= a` has at most one solution, the least number for which
//!   `c*y <= a*t + k`.
//! - `min(f, g) + max(f, g)` is `f + g`, and so is `max(f, g) - max(-f, -g)`.
//! - Sums that share unknowns are a linear system (Gauss and Jordan).

use super::Solver;
use crate::expr::{Context, Expr, Node, gcd};

/// The most operands of a minimum or maximum that is solved.
const MAX_OPERANDS: usize = 8;
/// The most equations and unknowns of a linear system.
const MAX_SYSTEM: usize = 16;

/// Makes an expression of two.
type Operation = fn(&Context, Expr, Expr) -> Expr;

/// A sum of multiples of terms that are not known, and of what is known.
#[derive(Clone)]
pub(super) struct Sum {
    pub(super) unknown: Vec<(Expr, i64)>,
    pub(super) known: Expr,
}

impl Solver<'_> {
    /// Takes apart what is known of `expr`. `None` on overflow.
    pub(super) fn sum(&self, expr: Expr) -> Option<Sum> {
        let ctx = self.ctx;
        let linear = ctx.linear_terms(expr)?;
        let mut sum = Sum { unknown: Vec::new(), known: ctx.constant(linear.constant) };
        for (term, factor) in linear.terms {
            match self.express(term) {
                Some(known) => {
                    sum.known = ctx.add(sum.known, ctx.mul(known, ctx.constant(factor)));
                }
                None => sum.unknown.push((term, factor)),
            }
        }
        Some(sum)
    }

    /// Solves the terms that are known for what is unknown in them.
    pub(super) fn solve_known(&mut self) {
        let ctx = self.ctx;
        let mut known: Vec<(Expr, Expr)> = self.known.iter().map(|(&k, &v)| (k, v)).collect();
        known.sort_unstable();
        for (term, value) in known {
            match ctx.node(term) {
                Node::Min(lhs, rhs) | Node::Max(lhs, rhs) => {
                    for (other, sign) in self.complements(term) {
                        if let Some(&other) = self.known.get(&other) {
                            let other = ctx.mul(other, ctx.constant(sign));
                            self.add(ctx.add(lhs, rhs), ctx.add(value, other));
                        }
                    }
                    self.solve_extremum(&[(term, 1)], value);
                }
                Node::FloorDiv(..) => {
                    self.solve_quotient(&[(term, 1)], value);
                }
                Node::Mod(number, modulus) => {
                    if let Some(modulus) = ctx.as_constant(modulus) {
                        self.solve_remainder(number, modulus, value);
                    }
                }
                _ => {}
            }
        }
    }

    /// What makes the sum of both operands with a minimum or maximum, when added or subtracted.
    fn complements(&mut self, term: Expr) -> Vec<(Expr, i64)> {
        let ctx = self.ctx;
        let (opposite, negated): (Operation, Operation) = match ctx.node(term) {
            Node::Min(..) => (Context::max, Context::min),
            Node::Max(..) => (Context::min, Context::max),
            _ => return Vec::new(),
        };
        let Some((lhs, rhs)) = ctx.node(term).operands() else { return Vec::new() };
        let negated = negated(ctx, ctx.neg(lhs), ctx.neg(rhs));
        [(opposite(ctx, lhs, rhs), 1), (negated, -1)]
            .map(|(other, sign)| (self.simplifier.simplify(other), sign))
            .to_vec()
    }

    /// Replaces a minimum and a maximum in `sum == value` by the sum of their operands.
    pub(super) fn join_extrema(&mut self, unknown: &[(Expr, i64)], value: Expr) -> Option<()> {
        let ctx = self.ctx;
        for &(term, factor) in unknown {
            for (other, sign) in self.complements(term) {
                let wanted = (other, factor.checked_mul(sign)?);
                if !unknown.contains(&wanted) {
                    continue;
                }
                let (lhs, rhs) = ctx.node(term).operands()?;
                let mut sum = ctx.mul(ctx.add(lhs, rhs), ctx.constant(factor));
                for &(rest, by) in unknown.iter().filter(|it| it.0 != term && **it != wanted) {
                    sum = ctx.add(sum, ctx.mul(rest, ctx.constant(by)));
                }
                self.add(sum, value);
                return Some(());
            }
        }
        None
    }

    /// Solves `sum == value` with minima or maxima in the sum, all of which have to be of one kind.
    pub(super) fn solve_extremum(&mut self, unknown: &[(Expr, i64)], value: Expr) -> Option<()> {
        let ctx = self.ctx;
        let is_extremum = |term: Expr| matches!(ctx.node(term), Node::Min(..) | Node::Max(..));
        let is_minimum =
            |&(term, factor): &(Expr, i64)| matches!(ctx.node(term), Node::Min(..)) == (0 < factor);
        let is_there = |&&(term, _): &&(Expr, i64)| is_extremum(term);
        let minimum = is_minimum(unknown.iter().find(is_there)?);
        let mut open = vec![Sum { unknown: unknown.to_vec(), known: ctx.constant(0) }];
        let mut branches: Vec<(Expr, i64, Expr)> = Vec::new();
        while let Some(branch) = open.pop() {
            let Some(place) = branch.unknown.iter().position(|&(term, _)| is_extremum(term)) else {
                // One unknown, the same in all, with factors of one sign.
                let &[(term, factor)] = &branch.unknown[..] else { return None };
                let is_alike = |&(other, sign, _): &(Expr, i64, Expr)| {
                    other == term && (sign < 0) == (factor < 0)
                };
                if !branches.first().is_none_or(is_alike) {
                    return None;
                }
                branches.push((term, factor, branch.known));
                continue;
            };
            if MAX_OPERANDS <= branches.len() + open.len()
                || is_minimum(&branch.unknown[place]) != minimum
            {
                return None;
            }
            let (term, factor) = branch.unknown[place];
            let (lhs, rhs) = ctx.node(term).operands()?;
            for operand in [lhs, rhs] {
                let mut whole = ctx.mul(operand, ctx.constant(factor));
                for (other, &(term, factor)) in branch.unknown.iter().enumerate() {
                    if other != place {
                        whole = ctx.add(whole, ctx.mul(term, ctx.constant(factor)));
                    }
                }
                let mut sum = self.sum(whole)?;
                sum.known = ctx.add(sum.known, branch.known);
                open.push(sum);
            }
        }
        let &(term, factor, _) = branches.first()?;
        let solutions = branches.iter().map(|&(_, factor, known)| {
            let by = ctx.constant(factor.checked_abs()?);
            let rest = ctx.sub(value, known);
            Some(if minimum { ctx.floor_div(rest, by) } else { ctx.ceil_div(rest, by) })
        });
        let solutions: Vec<Expr> = solutions.collect::<Option<_>>()?;
        let solution = solutions
            .into_iter()
            .reduce(|lhs, rhs| if minimum { ctx.max(lhs, rhs) } else { ctx.min(lhs, rhs) })?;
        self.learn(term, if 0 < factor { solution } else { ctx.neg(solution) });
        Some(())
    }

    /// Solves `sum == value` where one term of the sum is a quotient, which the others go into:
    /// `q*t + q*(x floordiv c) == q*((x + c*t) floordiv c)`.
    pub(super) fn solve_quotient(&mut self, unknown: &[(Expr, i64)], value: Expr) -> Option<()> {
        let ctx = self.ctx;
        let quotient = |term: Expr| match ctx.node(term) {
            Node::FloorDiv(numerator, by) => {
                let by = ctx.as_constant(by).filter(|&by| 0 < by)?;
                Some((numerator, by))
            }
            _ => None,
        };
        let mut quotients = unknown.iter().filter(|&&(term, _)| quotient(term).is_some());
        let (&(found, scale), None) = (quotients.next()?, quotients.next()) else { return None };
        let (mut numerator, divisor) = quotient(found)?;
        for &(term, factor) in unknown {
            if term != found {
                if factor.checked_rem(scale)? != 0 {
                    return None;
                }
                let inside = (factor / scale).checked_mul(divisor)?;
                numerator = ctx.add(numerator, ctx.mul(term, ctx.constant(inside)));
            }
        }
        let Sum { unknown, known } = self.sum(numerator)?;
        let [(term, factor)] = unknown[..] else { return None };
        let size = factor.checked_abs()?;
        if size < divisor {
            return None;
        }
        let value = ctx.floor_div(value, ctx.constant(scale));
        let least = ctx.sub(ctx.mul(value, ctx.constant(divisor)), known);
        let solution = ctx.ceil_div(least, ctx.constant(size));
        self.learn(term, if 0 < factor { solution } else { ctx.neg(solution) });
        Some(())
    }

    /// Adds the equations of the reduced echelon form of those that are sums of unknowns.
    pub(super) fn eliminate(&mut self) {
        let ctx = self.ctx;
        let mut terms: Vec<Expr> = Vec::new();
        let mut rows: Vec<(Vec<i64>, Expr)> = Vec::new();
        for &(lhs, rhs) in &self.equations {
            let Some(Sum { unknown, known }) = self.sum(lhs) else { continue };
            if unknown.len() < 2 || MAX_SYSTEM <= rows.len() {
                continue;
            }
            let mut row = vec![0; MAX_SYSTEM];
            for (term, factor) in unknown {
                let place = terms.iter().position(|&other| other == term).unwrap_or(terms.len());
                if place == terms.len() {
                    terms.push(term);
                }
                let Some(slot) = row.get_mut(place) else { return };
                *slot = factor;
            }
            rows.push((row, ctx.sub(rhs, known)));
        }
        if rows.len() < 2 {
            return;
        }
        let mut used = vec![false; rows.len()];
        for column in 0..terms.len() {
            let pivot = (0..rows.len()).find(|&row| !used[row] && rows[row].0[column] != 0);
            let Some(pivot) = pivot else { continue };
            used[pivot] = true;
            for row in 0..rows.len() {
                if row != pivot && rows[row].0[column] != 0 {
                    let Some(new) = self.without(&rows[row], &rows[pivot], column) else { return };
                    rows[row] = new;
                }
            }
        }
        for (row, value) in rows {
            let mut lhs = ctx.constant(0);
            for (&term, &factor) in terms.iter().zip(&row) {
                lhs = ctx.add(lhs, ctx.mul(term, ctx.constant(factor)));
            }
            if ctx.as_constant(lhs).is_none() {
                self.add(lhs, value);
            }
        }
    }

    /// A multiple of `row` less one of `pivot`, without the given column. `None` on overflow.
    fn without(
        &self,
        row: &(Vec<i64>, Expr),
        pivot: &(Vec<i64>, Expr),
        column: usize,
    ) -> Option<(Vec<i64>, Expr)> {
        let ctx = self.ctx;
        let (mine, theirs) = (row.0[column], pivot.0[column]);
        let common = i64::try_from(gcd(mine.unsigned_abs(), theirs.unsigned_abs())).ok()?;
        let (times, less) = (theirs / common, mine / common);
        let pairs = row.0.iter().zip(&pivot.0);
        let factors = pairs.map(|(&mine, &theirs)| {
            mine.checked_mul(times)?.checked_sub(theirs.checked_mul(less)?)
        });
        let whole = ctx.mul(row.1, ctx.constant(times));
        let value = ctx.sub(whole, ctx.mul(pivot.1, ctx.constant(less)));
        Some((factors.collect::<Option<_>>()?, value))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crate::{Context, Equality, IndexingMap, compose};

    /// The inverse, after which the map is where it was, and no other points are in its domain.
    pub(in crate::inverse) fn inverse(text: &str) -> String {
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        let inverse = map.inverse(&ctx).expect(text);
        let identity = |map: &IndexingMap| IndexingMap {
            results: (0..map.dims.len()).zip(0..).map(|(_, dim)| ctx.dim(dim)).collect(),
            ..map.clone()
        };
        for (first, second) in [(&map, &inverse), (&inverse, &map)] {
            let both = compose(&ctx, first, second).expect("ranks agree");
            assert_eq!(both.equality(&ctx, &identity(first)), Equality::Equal, "{text}");
        }
        inverse.display(&ctx).to_string()
    }

    #[test]
    fn extrema_of_what_grows_or_falls() {
        assert_eq!(
            inverse("(d0, d1) -> (max(d0 + d1, d0 * 2), d1), domain: d0 in [0, 9], d1 in [0, 7]"),
            "(d0, d1) -> (min(d0 ceildiv 2, d0 - d1), d1), domain: d0 in [0, 18], d1 in [0, 7], \
             d0 - d1 in [0, inf], d0 - max(min(d0 ceildiv 2, d0 - d1) * 2, \
             d1 + min(d0 ceildiv 2, d0 - d1)) in [0, 0]"
        );
        for text in [
            "(d0) -> (d0 + min(d0, 3)), domain: d0 in [-9, 100]",
            "(d0) -> (max(d0 * 2, d0 + 5)), domain: d0 in [-20, 100]",
            "(d0) -> (min(-d0, d0 * -2 + 7)), domain: d0 in [-20, 100]",
            "(d0) -> (min(d0 * 3, min(d0 * 2 + 4, d0 + 11)) * -2 + 1), domain: d0 in [-20, 100]",
            "(d0) -> (min(d0, 5), max(d0, 5)), domain: d0 in [0, 10]",
            "(d0, d1) -> (min(d0, d1), max(d0, d1), d0 - d1), domain: d0 in [0, 9], d1 in [0, 9]",
            "(d0) -> (max(d0, 0) - max(-d0, 0)), domain: d0 in [-100, 100]",
            "(d0, d1) -> (max(d0, 0), max(-d0, 0), d1), domain: d0 in [-9, 9], d1 in [0, 9]",
            "(d0, d1) -> (min(d0, d1) * 3 + max(d0, d1) * 3, d1), domain: d0 in [-9, 9], d1 in [0, 9]",
        ] {
            inverse(text);
        }
    }

    #[test]
    fn quotients_that_grow_with_every_step() {
        for text in [
            "(d0) -> (d0 + d0 / 2), domain: d0 in [-20, 99]",
            "(d0) -> (d0 * -6 - ((d0 + 4) / 7) * 3), domain: d0 in [-20, 99]",
            "(d0, d1) -> ((d0 * 5 + d1) / 3, d1), domain: d0 in [0, 20], d1 in [0, 20]",
        ] {
            inverse(text);
        }
    }

    #[test]
    fn linear_systems() {
        for text in [
            "(d0, d1) -> (d0 + d1 * 2, d0 * 2 + d1), domain: d0 in [0, 20], d1 in [0, 20]",
            "(d0, d1, d2) -> (d0 + d1, d1 + d2, d0 + d2), domain: d0 in [0, 5], d1 in [-5, 5], d2 in [0, 5]",
            "(d0, d1, d2) -> (d0 * 3 - d1 * 2 + 1, d1 * 5 + d2, d0 - d2, d0 + d1 + d2), \
             domain: d0 in [0, 999], d1 in [-500, 500], d2 in [0, 999]",
        ] {
            inverse(text);
        }
        assert_eq!(
            inverse("(d0, d1) -> (d0 + d1, d0 - d1 * 6), domain: d0 in [0, 999], d1 in [0, 999]"),
            "(d0, d1) -> ((d0 * 6 + d1) / 7, (d0 - d1) / 7), domain: d0 in [0, 1998], \
             d1 in [-5994, 999], (d0 * 6 + d1) mod 7 in [0, 0], \
             (d0 + d1 * 6) mod 7 in [0, 0], d0 * 6 + d1 in [0, 6999], \
             d0 - d1 in [0, 6999]"
        );
    }
}
