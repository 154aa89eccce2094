//! Equations that are monotone in one unknown, including minima and maxima.
//!
//! Where `f` grows with every step of `t`, `f(t) == y` has at most one solution, the largest `t` for which
//! `f(t) <= y`. That number, the residual of `f` at `y` (Blyth and Janowitz, "Residuation Theory", 1972),
//! follows from the form of `f`:
//!
//! - `a*t + k <= y` up to `(y - k) floordiv a`.
//! - `min(f, g) <= y` up to the larger of both numbers, `max(f, g) <= y` up to the smaller.
//! - `f floordiv c <= y` where `f <= c*y + c - 1`, `f ceildiv c <= y` where `f <= c*y`.
//! - Sums go into their minima and maxima, and into quotients: `q*g + q*(f floordiv c)` is
//!   `q*((f + c*g) floordiv c)`.
//!
//! Mirrored, the least `t`, for what falls. That `f` grows is seen from the least and largest steps of its
//! parts, or from the domain: there is no point of it with `f(t + 1) <= f(t)`.
//!
//! `min(f, g) + max(f, g)` is `f + g`, and so is `max(f, g) - max(-f, -g)`.

use std::collections::HashSet;

use super::{MAX_WORK, Solver};
use crate::expr::{Context, Expr, Node, gcd};
use crate::interval::{Interval, ceil_div_wide, floor_div_wide};
use crate::linear_domain::{LinearAnswer, LinearDomain};

/// The most parts of an equation that are looked at.
const MAX_PARTS: u32 = 32;
/// The most operators of an equation.
const MAX_OPERATORS: u32 = 256;

/// Makes an expression of two.
type Operation = fn(&Context, Expr, Expr) -> Expr;

/// A sum of multiples of terms that are not known, and of what is known.
#[derive(Clone)]
pub(super) struct Sum {
    pub(super) unknown: Vec<(Expr, i64)>,
    pub(super) known: Expr,
}

/// A remainder as a multiple of a smaller one and an offset: `(g*x + r) mod (g*m) == g*(x mod m) + r` for `r`
/// in `[0, g - 1]`.
pub(super) struct Unit {
    pub(super) term: Expr,
    pub(super) scale: i64,
    pub(super) offset: i64,
}

impl Unit {
    /// `None` where the term is no such remainder.
    pub(super) fn of(ctx: &Context, term: Expr) -> Option<Self> {
        let Node::Mod(value, modulus) = ctx.node(term) else { return None };
        let modulus = ctx.as_constant(modulus).filter(|&modulus| 0 < modulus)?;
        let linear = ctx.linear_terms(value)?;
        let factors = linear.terms.iter().map(|it| it.1.unsigned_abs());
        let scale = factors.fold(modulus.unsigned_abs(), gcd);
        let scale = i64::try_from(scale).ok().filter(|&scale| 1 < scale)?;
        let mut value = ctx.constant(linear.constant.div_euclid(scale));
        for (term, factor) in linear.terms {
            value = ctx.add(value, ctx.mul(term, ctx.constant(factor / scale)));
        }
        let term = ctx.modulo(value, ctx.constant(modulus / scale));
        Some(Self { term, scale, offset: linear.constant.rem_euclid(scale) })
    }
}

impl Solver<'_> {
    /// Takes apart what is known of `expr`. `None` on overflow.
    pub(super) fn sum(&self, expr: Expr) -> Option<Sum> {
        let ctx = self.ctx;
        self.work.spend(1)?;
        let linear = ctx.linear_terms(expr)?;
        // To sort terms, they are compared as deep as they go.
        self.work.spend(linear.terms.len() * ctx.cost(expr).min(MAX_OPERATORS) as usize)?;
        let mut sum = Sum { unknown: Vec::new(), known: ctx.constant(linear.constant) };
        for (term, factor) in linear.terms {
            let known = self.express(term);
            let unit = Unit::of(ctx, term).filter(|_| known.is_none());
            let Unit { term, scale, offset } = unit.unwrap_or(Unit { term, scale: 1, offset: 0 });
            let (scale, offset) = (factor.checked_mul(scale)?, factor.checked_mul(offset)?);
            sum.known = ctx.add(sum.known, ctx.constant(offset));
            match known.or_else(|| self.express(term)) {
                Some(known) => sum.known = ctx.add(sum.known, ctx.mul(known, ctx.constant(scale))),
                None => sum.unknown.push((term, scale)),
            }
        }
        Some(sum)
    }

    /// Solves the terms that are known for what is unknown in them.
    pub(super) fn solve_known(&mut self) {
        let ctx = self.ctx;
        for (term, value) in self.all_known() {
            match ctx.node(term) {
                Node::Min(lhs, rhs) | Node::Max(lhs, rhs) => {
                    for (other, sign) in self.complements(term) {
                        if let Some(&other) = self.known.get(&other) {
                            let other = ctx.mul(other, ctx.constant(sign));
                            self.add(ctx.add(lhs, rhs), ctx.add(value, other));
                        }
                    }
                    self.solve_monotone(&[(term, 1)], value, Effort::Least);
                }
                Node::FloorDiv(..) | Node::CeilDiv(..) => {
                    self.learn_by_negated(term, value);
                    self.solve_monotone(&[(term, 1)], value, Effort::Least);
                }
                Node::Mod(number, modulus) => match ctx.as_constant(modulus) {
                    Some(modulus) => {
                        self.solve_remainder(number, modulus, value);
                    }
                    None => self.learn_by_negated(term, value),
                },
                // Factors of it may be known by now.
                Node::Mul(..) => self.divide_by_symbols(&[(term, 1)], value),
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

    /// Solves `sum == value` with minima, maxima or quotients of one unknown in it, with which it grows or
    /// falls.
    pub(super) fn solve_monotone(
        &mut self,
        unknown: &[(Expr, i64)],
        value: Expr,
        effort: Effort,
    ) -> Option<()> {
        let ctx = self.ctx;
        let is_compound = |&(term, _): &(Expr, i64)| {
            matches!(
                ctx.node(term),
                Node::Min(..) | Node::Max(..) | Node::FloorDiv(..) | Node::CeilDiv(..)
            )
        };
        if !unknown.iter().any(is_compound) {
            return None;
        }
        if MAX_OPERATORS < ctx.cost(self.total(unknown)) {
            return None;
        }
        for into_quotients in [true, false] {
            let Some(form) = self.only_unknown(unknown, into_quotients) else { continue };
            // A sum or a remainder becomes a variable that the map does not have.
            let (number, terms) = match form[..] {
                [(number, 1)] if ctx.as_var(number).is_some() => (number, unknown.to_vec()),
                _ => {
                    let number = ctx.dim(u32::MAX);
                    let mut parts = MAX_PARTS;
                    let Some(terms) =
                        self.with_number(unknown, &form, number, into_quotients, &mut parts)
                    else {
                        continue;
                    };
                    (number, terms)
                }
            };
            let Some(steps) = self.steps(&terms, number) else { continue };
            let form = self.total(&form);
            let interval = self.simplifier.interval_of(form);
            let number = Number { number, form, interval };
            let Some(solution) = self.solve_number(number, terms, steps, value, effort) else {
                continue;
            };
            if form == number.number {
                self.learn(form, solution);
            } else if self.equations.iter().all(|equation| equation.0 != form) {
                self.add(form, solution);
            }
            return Some(());
        }
        None
    }

    /// The sum of multiples.
    pub(super) fn total(&self, terms: &[(Expr, i64)]) -> Expr {
        let ctx = self.ctx;
        let multiples = terms.iter().map(|&(term, factor)| ctx.mul(term, ctx.constant(factor)));
        multiples.fold(ctx.constant(0), |lhs, rhs| ctx.add(lhs, rhs))
    }

    /// The operands of a minimum or maximum, or the numerator of a quotient if these are looked into.
    fn parts(&self, term: Expr, into_quotients: bool) -> Option<(Expr, Option<Expr>)> {
        match self.ctx.node(term) {
            Node::Min(lhs, rhs) | Node::Max(lhs, rhs) => Some((lhs, Some(rhs))),
            Node::FloorDiv(value, by) | Node::CeilDiv(value, by) => {
                let by = self.ctx.as_constant(by).filter(|&by| into_quotients && 0 < by);
                by.map(|_| (value, None))
            }
            _ => None,
        }
    }

    /// The only sum of unknown terms, without a common factor, of which a sum and the [parts](Self::parts)
    /// of its terms contain multiples.
    fn only_unknown(
        &self,
        unknown: &[(Expr, i64)],
        into_quotients: bool,
    ) -> Option<Vec<(Expr, i64)>> {
        let mut open: Vec<Vec<(Expr, i64)>> = vec![unknown.to_vec()];
        let mut seen: HashSet<Expr> = HashSet::new();
        let mut found: Option<Vec<(Expr, i64)>> = None;
        while let Some(sum) = open.pop() {
            let mut own = Vec::new();
            for (term, factor) in sum {
                match self.parts(term, into_quotients) {
                    Some((lhs, rhs)) if seen.insert(term) => {
                        for part in [Some(lhs), rhs].into_iter().flatten() {
                            open.push(self.sum(part)?.unknown);
                        }
                    }
                    Some(_) => {}
                    None => own.push((term, factor)),
                }
            }
            let form = primitive(&own)?;
            if !form.is_empty() && found.as_ref().is_some_and(|found| *found != form) {
                return None;
            }
            found = found.or(Some(form).filter(|form| !form.is_empty()));
        }
        found
    }

    /// A sum with one unknown for all multiples of `form` in it. Recursion is limited by the parts.
    fn with_number(
        &self,
        sum: &[(Expr, i64)],
        form: &[(Expr, i64)],
        number: Expr,
        into_quotients: bool,
        parts: &mut u32,
    ) -> Option<Vec<(Expr, i64)>> {
        let ctx = self.ctx;
        *parts = parts.checked_sub(1)?;
        let mut changed = Vec::new();
        for &(term, factor) in sum {
            if let Some((lhs, rhs)) = self.parts(term, into_quotients) {
                let mut part = |expr: Expr| {
                    let Sum { unknown, known } = self.sum(expr)?;
                    let changed =
                        self.with_number(&unknown, form, number, into_quotients, parts)?;
                    Some(ctx.add(self.total(&changed), known))
                };
                let lhs = part(lhs)?;
                let rhs = match rhs {
                    Some(rhs) => part(rhs)?,
                    None => ctx.node(term).operands()?.1,
                };
                changed.push((ctx.rebuild(ctx.node(term), lhs, rhs), factor));
            } else if let Some(first) = form.first().filter(|first| first.0 == term) {
                changed.push((number, factor.checked_div(first.1)?));
            }
        }
        Some(changed)
    }

    /// By how much a sum changes at least and at most where `number` grows by one.
    fn steps(&self, unknown: &[(Expr, i64)], number: Expr) -> Steps {
        let ctx = self.ctx;
        let whole = self.total(unknown);
        let steps = |expr: Expr, node: Node, operands: Option<(&Steps, &Steps)>| -> Steps {
            if expr == number {
                return Some((1, 1));
            }
            if self.is_known_in(unknown, expr) {
                return Some((0, 0));
            }
            let (&lhs, &rhs) = operands?;
            let (lhs, rhs) = (lhs?, rhs?);
            let by = node.operands().and_then(|(_, by)| ctx.as_constant(by)).map(i128::from);
            match node {
                Node::Add(..) => Some((lhs.0.checked_add(rhs.0)?, lhs.1.checked_add(rhs.1)?)),
                Node::Mul(..) => {
                    let ends = (lhs.0.checked_mul(by?)?, lhs.1.checked_mul(by?)?);
                    Some((ends.0.min(ends.1), ends.0.max(ends.1)))
                }
                Node::FloorDiv(..) | Node::CeilDiv(..) => {
                    let by = by.filter(|&by| 0 < by)?;
                    Some((floor_div_wide(lhs.0, by), ceil_div_wide(lhs.1, by)))
                }
                Node::Mod(..) => by.filter(|&by| 0 < by).map(|by| (1 - by, by - 1)),
                Node::Min(..) | Node::Max(..) => Some((lhs.0.min(rhs.0), lhs.1.max(rhs.1))),
                Node::Const(_) | Node::Var(_) => None,
            }
        };
        ctx.fold_value(whole, steps)
    }

    /// The number for which the sum has this value, if that grows or falls with every step of it.
    fn solve_number(
        &mut self,
        number: Number,
        sum: Vec<(Expr, i64)>,
        steps: (i128, i128),
        value: Expr,
        effort: Effort,
    ) -> Option<Expr> {
        let ctx = self.ctx;
        let are_strict = 0 < steps.0 || steps.1 < 0;
        if !are_strict && let Some(solution) = self.solve_piecewise(&number, &sum, value) {
            return Some(solution);
        }
        let rises = match effort {
            _ if are_strict => 0 < steps.0,
            Effort::Least => return None,
            Effort::Most => self.rises(&number, &sum, steps)?,
        };
        // What was decided on the domain need not hold behind its ends.
        let is_cut = !are_strict;
        let mut residual = Residual { number, rises, is_cut, parts: MAX_PARTS };
        let solution = self.residual(&mut residual, sum, value)?;
        let Residual { number: Number { interval, .. }, is_cut, .. } = residual;
        Some(match (is_cut, rises) {
            (false, _) => solution,
            (true, true) => ctx.min(solution, ctx.constant(interval.hi)),
            (true, false) => ctx.max(solution, ctx.constant(interval.lo)),
        })
    }

    /// Solves what the domain shows to grow or fall with every step.
    pub(super) fn solve_monotone_on_domain(&mut self) {
        let ctx = self.ctx;
        for (lhs, rhs) in self.equations.clone() {
            if let Some(Sum { unknown, known }) = self.sum(lhs) {
                self.solve_monotone(&unknown, ctx.sub(rhs, known), Effort::Most);
            }
        }
        for (term, value) in self.all_known() {
            self.solve_monotone(&[(term, 1)], value, Effort::Most);
        }
    }

    /// Whether a sum grows from each number on the domain to the next (`Some(true)`), or falls to each from
    /// the one before, where the steps of its parts do not say so.
    fn rises(&self, number: &Number, sum: &[(Expr, i64)], steps: (i128, i128)) -> Option<bool> {
        let ctx = self.ctx;
        let &Number { number, form, interval: Interval { lo, hi } } = number;
        let whole = self.total(sum);
        let at_form = ctx.replace(whole, number, form);
        let is_larger_at = |neighbour: Expr, interval: Interval| {
            let moved = |expr: Expr, node: Node, operands: Option<(&Expr, &Expr)>| match operands {
                _ if expr == number => neighbour,
                Some((&lhs, &rhs)) if !self.is_known_in(sum, expr) => ctx.rebuild(node, lhs, rhs),
                _ => expr,
            };
            let growth = ctx.sub(ctx.fold_value(whole, moved), at_form);
            // Each of them becomes a row.
            self.work.spend(4 * (self.map.dims.len() + self.map.constraints.len()))?;
            let mut domain = LinearDomain::new(ctx, self.map);
            domain.deny(&[(growth, Interval::new(1, i64::MAX))]);
            let mut left = MAX_WORK;
            let answer = domain.solve_within(form, interval, &mut left);
            self.work.spend(2 * (MAX_WORK - left))?;
            (answer == LinearAnswer::Empty).then_some(())
        };
        let one = ctx.constant(1);
        let rises = || is_larger_at(ctx.add(form, one), Interval::new(lo, hi.saturating_sub(1)));
        let falls = || is_larger_at(ctx.sub(form, one), Interval::new(lo.saturating_add(1), hi));
        let rises = if 0 < steps.1 { rises() } else { None }.map(|()| true);
        rises.or_else(|| if steps.0 < 0 { falls() } else { None }.map(|()| false))
    }

    /// Whether a part of a sum is known, and no term of it.
    fn is_known_in(&self, sum: &[(Expr, i64)], part: Expr) -> bool {
        sum.iter().all(|it| it.0 != part) && self.express(part).is_some()
    }

    /// The largest number for which `sum <= value`, if the sum rises, otherwise the least. Recursion is
    /// limited by [`MAX_PARTS`].
    fn residual(
        &mut self,
        residual: &mut Residual,
        sum: Vec<(Expr, i64)>,
        value: Expr,
    ) -> Option<Expr> {
        let ctx = self.ctx;
        residual.parts = residual.parts.checked_sub(1)?;
        let Residual { number: Number { number, interval, .. }, rises, .. } = *residual;
        let others = |place: usize| sum.iter().enumerate().filter(move |it| it.0 != place);
        let extremum = sum.iter().position(|&(term, _)| {
            term != number && matches!(ctx.node(term), Node::Min(..) | Node::Max(..))
        });
        if let Some(place) = extremum {
            let (term, factor) = sum[place];
            let rest: Vec<_> = others(place).map(|it| *it.1).collect();
            let rest = self.total(&rest);
            let (lhs, rhs) = ctx.node(term).operands()?;
            let mut of_operand = |solver: &mut Self, operand: Expr| {
                let whole = ctx.add(ctx.mul(operand, ctx.constant(factor)), rest);
                let Sum { unknown, known } = solver.sum(whole)?;
                solver.residual(residual, unknown, ctx.sub(value, known))
            };
            let (lhs, rhs) = (of_operand(self, lhs)?, of_operand(self, rhs)?);
            let is_either = matches!(ctx.node(term), Node::Min(..)) == (0 < factor);
            return Some(if is_either == rises { ctx.max(lhs, rhs) } else { ctx.min(lhs, rhs) });
        }
        let quotient = sum.iter().enumerate().find_map(|(place, &(term, factor))| {
            let (Node::FloorDiv(numerator, by) | Node::CeilDiv(numerator, by)) = ctx.node(term)
            else {
                return None;
            };
            let by = ctx.as_constant(by).filter(|&by| 0 < by && term != number)?;
            let goes_in = others(place).all(|it| it.1.1.checked_rem(factor) == Some(0));
            goes_in.then_some((place, numerator, by))
        });
        if let Some((place, numerator, by)) = quotient {
            let (term, factor) = sum[place];
            let size = factor.checked_abs()?;
            // -(x floordiv c) == -x ceildiv c
            let mut whole = if 0 < factor { numerator } else { ctx.neg(numerator) };
            for (_, &(other, times)) in others(place) {
                let inside = (times / size).checked_mul(by)?;
                whole = ctx.add(whole, ctx.mul(other, ctx.constant(inside)));
            }
            let Sum { unknown, known } = self.sum(whole)?;
            let rounds_down = matches!(ctx.node(term), Node::FloorDiv(..)) == (0 < factor);
            let most = ctx.mul(ctx.floor_div(value, ctx.constant(size)), ctx.constant(by));
            let most = ctx.add(most, ctx.constant(if rounds_down { by - 1 } else { 0 }));
            return self.residual(residual, unknown, ctx.sub(most, known));
        }
        match sum[..] {
            [(term, factor)] if term == number && (0 < factor) == rises => {
                let steps = ctx.floor_div(value, ctx.constant(factor.checked_abs()?));
                Some(if rises { steps } else { ctx.neg(steps) })
            }
            // All numbers or none: what is no less than the largest, or less than the least.
            [] => {
                residual.is_cut = true;
                let count = i64::try_from(interval.num_members()?).ok()?;
                let count = if rises { count } else { count.checked_neg()? };
                let end = if rises { interval.hi } else { interval.lo };
                let all = ctx.add(ctx.mul(value, ctx.constant(count)), ctx.constant(end));
                let end = ctx.constant(end);
                Some(if rises { ctx.min(all, end) } else { ctx.max(all, end) })
            }
            _ => None,
        }
    }
}

/// A sum divided by what its factors have in common, the first of them positive. `None` on overflow.
pub(super) fn primitive(sum: &[(Expr, i64)]) -> Option<Vec<(Expr, i64)>> {
    let Some(&(_, first)) = sum.first() else { return Some(Vec::new()) };
    let common = sum.iter().fold(0, |common, it| gcd(common, it.1.unsigned_abs()));
    let common = i64::try_from(common).ok()?.checked_mul(first.signum())?;
    sum.iter().map(|&(term, factor)| Some((term, factor.checked_div(common)?))).collect()
}

/// The least and the largest step of an expression, if they are known.
type Steps = Option<(i128, i128)>;

/// Whether a sum that may grow with every step is shown to do so by the domain.
#[derive(Clone, Copy)]
pub(super) enum Effort {
    Least,
    Most,
}

/// An unknown.
#[derive(Clone, Copy)]
pub(super) struct Number {
    /// The variable that stands for it in a sum.
    pub(super) number: Expr,
    /// What it is in the map, and what that lies in.
    form: Expr,
    pub(super) interval: Interval,
}

/// What is looked for while a residual is made.
struct Residual {
    number: Number,
    /// Whether the whole grows with it.
    rises: bool,
    /// Whether the ends of its interval are needed, as where a part does not depend on it.
    is_cut: bool,
    /// How many parts may still be looked at.
    parts: u32,
}

#[cfg(test)]
mod tests {
    use super::super::tests::inverse_of;

    #[test]
    fn extrema_of_what_grows_or_falls() {
        assert_eq!(
            inverse_of(
                "(d0, d1) -> (max(d0 + d1, d0 * 2), d1), domain: d0 in [0, 9], d1 in [0, 7]"
            ),
            "(d0, d1) -> (min(d0 / 2, d0 - d1), d1), domain: d0 in [0, 18], d1 in [0, 7], \
             d0 - d1 in [0, inf], d0 - max(min(d0 / 2, d0 - d1) * 2, \
             d1 + min(d0 / 2, d0 - d1)) in [0, 0]"
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
            inverse_of(text);
        }
    }

    #[test]
    fn extrema_of_quotients_and_constants() {
        for text in [
            "(d0) -> (d0 + min(d0 / 2, 3)), domain: d0 in [-30, 30]",
            "(d0) -> (max(min(d0 * 2, d0 + 7), d0 * 3 - 20)), domain: d0 in [-30, 30]",
            "(d0) -> (max(d0, 0) * 3 + min(d0, 0)), domain: d0 in [-30, 30]",
            "(d0) -> (d0 - max(min(d0 * 2, 8), 4)), domain: d0 in [4, 30]",
            "(d0) -> (-d0 - max(d0 ceildiv 3, 2) - min(d0, 9)), domain: d0 in [-30, 30]",
            "(d0, d1) -> (d0 + min((d0 + d1) / 2, 3), d1), domain: d0 in [-9, 9], d1 in [0, 9]",
            "(d0) -> (min(((d0 * 8) mod 59) * 3, ((d0 * 8) mod 59) * 2 + 1)), domain: d0 in [0, 58]",
            "(d0, d1) -> (min(d0 * 126 + d1 * 3, d0 * 84 + d1 * 2 + 1)), \
             domain: d0 in [0, 37], d1 in [0, 39]",
            "(d0, d1) -> (d0 * 10 + d1 + max((d0 * 10 + d1 - 7) / 4, 3)), \
             domain: d0 in [0, 37], d1 in [0, 9]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn quotients_that_grow_with_every_step() {
        for text in [
            "(d0) -> (d0 + d0 / 2), domain: d0 in [-20, 99]",
            "(d0) -> (d0 * -6 - ((d0 + 4) / 7) * 3), domain: d0 in [-20, 99]",
            "(d0, d1) -> ((d0 * 5 + d1) / 3, d1), domain: d0 in [0, 20], d1 in [0, 20]",
        ] {
            inverse_of(text);
        }
    }

    /// What the steps of the parts do not say.
    #[test]
    fn sums_that_the_domain_shows_to_grow_or_fall() {
        for text in [
            "(d0, d1) -> (min(d0, d1) + max(d0 - d1, 0) * 3, d1), domain: d0 in [-3000, 3000], d1 in [0, 3000]",
            "(d0, d1) -> (min(d0, d1) * 2 + max(d0 - d1, 0), d1), domain: d0 in [-3000, 3000], d1 in [0, 3000]",
            "(d0, d1) -> (d1 - min(d0, d1) - max(d0 - d1, 0), d1), domain: d0 in [-9, 99], d1 in [0, 99]",
            "(d0) -> (d0 / 2 + (d0 + 1) / 2), domain: d0 in [-30000, 30000]",
            "(d0) -> (-(d0 / 2) - (d0 + 1) / 2), domain: d0 in [-30000, 30000]",
            "(d0) -> (d0 / 2 + 1), domain: d0 in [0, 20000], d0 mod 2 in [1, 1]",
            "(d0) -> (d0 / -2 + 1), domain: d0 in [0, 20000], d0 mod 2 in [0, 0]",
            "(d0) -> (d0 / -2 + 1), domain: d0 in [0, 20000], d0 mod 2 in [1, 1]",
            "(d0) -> (min(d0 / 3, 500) + max(d0 / 3 - 500, 0)), domain: d0 in [0, 9000], d0 mod 3 in [2, 2]",
            "(d0) -> (max(d0 / -3, -500)), domain: d0 in [0, 1500], d0 mod 3 in [0, 0]",
        ] {
            inverse_of(text);
        }
    }
}
