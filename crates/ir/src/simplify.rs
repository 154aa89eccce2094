//! Simplification of expressions and indexing maps.
//!
//! Expressions are rewritten bottom up, each shared subexpression once: the operands of an
//! operation are simplified first, and a constructor per operation ([`Simplifier`]'s private
//! `sum`, `product`, `quotient`, `remainder`, `extremum`) puts the simplified operands
//! together under its rules. The rules are those of XLA's `indexing_map.cc` and of Halide's
//! simplifier in kind: a linear normal form for sums, and division, remainder, minimum and
//! maximum decided by the intervals of their operands. With symbolic bounds or divisors,
//! questions that intervals leave open go to the [prover](crate::prove), a bounded number of
//! times.
//!
//! A simplified expression has, at every point of the domain where the given one has a value,
//! the same value. It never has more operators: where the normal form would, the given
//! expression stays.
//!
//! Normal form: a sum lists its terms in the order of [`Context::compare`], a positive one
//! first where there is one, the constant last; terms with coefficients of the same size are
//! collected (`(a - b) * 4`). Products list their factors in the same order.
//!
//! Cost: near-linear in the number of distinct subexpressions in practice. A sum of n terms
//! takes O(n log n); a minimum of n operands compares each with at most 16 others.

mod division;
mod domain;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::expr::{Context, Expr, LinearTerms, Node, Var, interval_of_operation};
use crate::interval::Interval;
use crate::map::{IndexingMap, VarIntervals};
use crate::prove::{Prover, Verdict};

/// The most operands of a minimum or maximum that are compared pair by pair.
const MAX_COMPARED: usize = 16;
/// How deep rules may apply rules to what they build.
const MAX_DEPTH: u32 = 64;
/// How often an expression is simplified again to reach a fixpoint.
const MAX_ROUNDS: u32 = 8;
/// The most times that quotients and remainders are joined in one sum.
const MAX_JOINS: usize = 256;
/// The most questions to the prover per simplifier.
const MAX_QUESTIONS: u32 = 32;

/// A sum of multiples of distinct terms and a constant, under construction.
#[derive(Clone, Default)]
struct Sum {
    /// Coefficients by term, possibly zero. Ordered for a deterministic traversal.
    terms: BTreeMap<Expr, i64>,
    constant: i64,
}

impl Sum {
    fn of(ctx: &Context, expr: Expr) -> Option<Self> {
        let mut sum = Sum::default();
        sum.add(ctx, expr, 1)?;
        Some(sum)
    }

    /// Adds `factor * expr`, taking sums apart. `None` on overflow.
    fn add(&mut self, ctx: &Context, expr: Expr, factor: i64) -> Option<()> {
        let LinearTerms { terms, constant } = ctx.linear_terms(expr)?;
        for (term, coefficient) in terms {
            self.add_term(term, coefficient.checked_mul(factor)?)?;
        }
        self.constant = self.constant.checked_add(constant.checked_mul(factor)?)?;
        Some(())
    }

    /// Adds `coefficient * term`, where the term is no sum, multiple or constant.
    fn add_term(&mut self, term: Expr, coefficient: i64) -> Option<()> {
        let slot = self.terms.entry(term).or_insert(0);
        *slot = slot.checked_add(coefficient)?;
        if *slot == 0 {
            self.terms.remove(&term);
        }
        Some(())
    }

    fn coefficient(&self, term: Expr) -> i64 {
        self.terms.get(&term).copied().unwrap_or(0)
    }

    /// The only term, when it stands alone and once.
    fn single(&self) -> Option<Expr> {
        match self.terms.iter().next() {
            Some((&term, &1)) if self.terms.len() == 1 && self.constant == 0 => Some(term),
            _ => None,
        }
    }
}

/// Simplifies expressions of one context under what is known of their variables.
///
/// ```
/// use tc_ir::{Context, Interval, simplify::Simplifier};
/// let ctx = Context::new();
/// let (x, c) = (ctx.dim(0), ctx.constant(42));
/// let mut simplifier = Simplifier::new(&ctx, |_| Interval::new(53, 71));
/// let remainder = simplifier.simplify(ctx.modulo(x, c));
/// assert_eq!(ctx.display(remainder).to_string(), "d0 - 42");
/// ```
pub struct Simplifier<'c> {
    ctx: &'c Context,
    interval: Box<dyn Fn(Var) -> Interval + 'c>,
    /// Expressions that are known to lie in an interval.
    known: HashMap<Expr, Interval>,
    done: HashMap<Expr, Expr>,
    intervals: HashMap<Expr, Interval>,
    /// What the rules made of a sum, quotient or remainder of simplified operands. Without
    /// it, rules that try other forms of nested operands would take exponential time.
    applied: HashMap<Expr, Expr>,
    prover: Option<Prover<'c>>,
    /// The variables with symbolic bounds and those in the bounds.
    symbolic: BTreeSet<Var>,
    questions: u32,
    depth: u32,
}

impl<'c> Simplifier<'c> {
    /// A simplifier that knows intervals of the variables.
    pub fn new(ctx: &'c Context, interval: impl Fn(Var) -> Interval + 'c) -> Self {
        Simplifier {
            ctx,
            interval: Box::new(interval),
            known: HashMap::new(),
            done: HashMap::new(),
            intervals: HashMap::new(),
            applied: HashMap::new(),
            prover: None,
            symbolic: BTreeSet::new(),
            questions: 0,
            depth: 0,
        }
    }

    /// A simplifier that knows the bounds of the variables of `map`, not its constraints.
    pub fn for_map(ctx: &'c Context, map: &IndexingMap) -> Self {
        let intervals: VarIntervals = map.intervals(ctx);
        let mut simplifier = Self::new(ctx, move |var| intervals.of(var));
        for (var, variable) in map.vars() {
            if variable.constant_interval(ctx).is_none() {
                let bounds: Vec<Expr> = variable.lower.into_iter().chain(variable.upper).collect();
                simplifier.symbolic.extend(ctx.vars_of_all(&bounds));
                simplifier.symbolic.insert(var);
            }
        }
        if !simplifier.symbolic.is_empty() {
            let mut prover = Prover::new(ctx);
            for (var, variable) in map.vars() {
                prover.bound(var, variable.lower, variable.upper);
            }
            simplifier.prover = Some(prover);
            simplifier.questions = MAX_QUESTIONS;
        }
        simplifier
    }

    /// Takes for granted that `expr` lies in `interval`.
    pub fn assume(&mut self, expr: Expr, interval: Interval) {
        let slot = self.known.entry(expr).or_insert(Interval::ALL);
        *slot = slot.intersect(interval);
        self.done.clear();
        self.intervals.clear();
        self.applied.clear();
    }

    /// The simplified form of `expr`, which is its own simplified form.
    pub fn simplify(&mut self, expr: Expr) -> Expr {
        let mut current = expr;
        for _ in 0..MAX_ROUNDS {
            let next = self.once(current);
            if next == current || self.ctx.cost(current) < self.ctx.cost(next) {
                break;
            }
            current = next;
        }
        current
    }

    /// An interval that holds every value of `expr` on the domain.
    pub fn interval_of(&mut self, expr: Expr) -> Interval {
        let mut stack = vec![expr];
        while let Some(&top) = stack.last() {
            if self.intervals.contains_key(&top) {
                stack.pop();
                continue;
            }
            let node = self.ctx.node(top);
            let computed = match (node, node.operands()) {
                (Node::Const(value), _) => Interval::point(value),
                (Node::Var(var), _) => (self.interval)(var),
                (_, None) => Interval::ALL,
                (_, Some((lhs, rhs))) => {
                    match (self.intervals.get(&lhs), self.intervals.get(&rhs)) {
                        (Some(&lhs), Some(&rhs)) => interval_of_operation(node, lhs, rhs),
                        _ => {
                            stack.extend([lhs, rhs]);
                            continue;
                        }
                    }
                }
            };
            let known = self.known.get(&top).copied().unwrap_or(Interval::ALL);
            self.intervals.insert(top, computed.intersect(known));
            stack.pop();
        }
        self.intervals[&expr]
    }

    /// One bottom-up pass.
    fn once(&mut self, root: Expr) -> Expr {
        let mut stack = vec![(root, None)];
        while let Some((expr, operands)) = stack.pop() {
            if self.done.contains_key(&expr) {
                continue;
            }
            let operands: Vec<Expr> = operands.unwrap_or_else(|| self.operands(expr));
            let pending: Vec<Expr> = operands
                .iter()
                .copied()
                .filter(|operand| !self.done.contains_key(operand))
                .collect();
            if pending.is_empty() {
                let simplified = self.combine(expr, &operands);
                let simplified = self.constant_if_point(simplified);
                self.done.insert(expr, simplified);
            } else {
                stack.push((expr, Some(operands)));
                stack.extend(pending.into_iter().map(|operand| (operand, None)));
            }
        }
        self.done.get(&root).copied().unwrap_or(root)
    }

    /// What has to be simplified before `expr`: the terms of a sum, else the operands.
    fn operands(&self, expr: Expr) -> Vec<Expr> {
        if self.is_linear(expr)
            && let Some(linear) = self.ctx.linear_terms(expr)
        {
            return linear.terms.into_iter().map(|(term, _)| term).collect();
        }
        self.ctx.node(expr).operands().map_or_else(Vec::new, |(lhs, rhs)| vec![lhs, rhs])
    }

    /// Whether `expr` is a sum or a multiple.
    fn is_linear(&self, expr: Expr) -> bool {
        match self.ctx.node(expr) {
            Node::Add(..) => true,
            Node::Mul(_, factor) => self.ctx.as_constant(factor).is_some(),
            _ => false,
        }
    }

    /// Applies the operation of `expr` to its simplified operands.
    fn combine(&mut self, expr: Expr, operands: &[Expr]) -> Expr {
        let ctx = self.ctx;
        let node = ctx.node(expr);
        if self.is_linear(expr)
            && let Some(linear) = ctx.linear_terms(expr)
        {
            let mut sum = Sum { constant: linear.constant, ..Sum::default() };
            for (term, coefficient) in linear.terms {
                let simplified = self.done.get(&term).copied().unwrap_or(term);
                if sum.add(ctx, simplified, coefficient).is_none() {
                    return expr;
                }
            }
            return self.sum(sum).unwrap_or(expr);
        }
        let &[lhs, rhs] = operands else {
            return expr;
        };
        let lhs = self.done.get(&lhs).copied().unwrap_or(lhs);
        let rhs = self.done.get(&rhs).copied().unwrap_or(rhs);
        match node {
            Node::Mul(..) => self.product(lhs, rhs),
            Node::FloorDiv(..) => self.quotient(lhs, rhs, division::Rounding::Down),
            Node::CeilDiv(..) => self.quotient(lhs, rhs, division::Rounding::Up),
            Node::Mod(..) => self.remainder(lhs, rhs),
            Node::Min(..) => self.extremum(lhs, rhs, Extremum::Min),
            Node::Max(..) => self.extremum(lhs, rhs, Extremum::Max),
            // A sum whose coefficients overflow stays as it is written.
            Node::Add(..) => ctx.add(lhs, rhs),
            Node::Const(_) | Node::Var(_) => expr,
        }
    }

    fn constant_if_point(&mut self, expr: Expr) -> Expr {
        match self.interval_of(expr).as_point() {
            Some(value) => self.ctx.constant(value),
            None => expr,
        }
    }

    /// `lhs + factor * rhs`; `None` on overflow.
    fn add_scaled(&mut self, lhs: Expr, rhs: Expr, factor: i64) -> Option<Expr> {
        let mut sum = Sum::of(self.ctx, lhs)?;
        sum.add(self.ctx, rhs, factor)?;
        self.sum(sum)
    }

    // Sums

    /// The simplified sum; `None` on overflow.
    fn sum(&mut self, mut sum: Sum) -> Option<Expr> {
        let built = self.build(&sum);
        let divided =
            |&term: &Expr| matches!(self.ctx.node(term), Node::FloorDiv(..) | Node::Mod(..));
        if MAX_DEPTH <= self.depth || sum.terms.len() < 2 || !sum.terms.keys().any(divided) {
            return Some(built);
        }
        if let Some(&joined) = self.applied.get(&built) {
            return Some(joined);
        }
        self.depth += 1;
        let mut joined = Some(true);
        for _ in 0..MAX_JOINS {
            joined = self.join_remainders(&mut sum);
            if joined != Some(true) {
                break;
            }
        }
        self.depth -= 1;
        let simplified = if joined.is_some() { self.build(&sum) } else { built };
        self.applied.insert(built, simplified);
        Some(simplified)
    }

    /// Applies one of two rules, where q is `x floordiv n` and r is `x mod n`:
    /// `b*n*q + b*r == b*x` and `k*x - k*n*q == k*r`. Returns whether one applied.
    fn join_remainders(&mut self, sum: &mut Sum) -> Option<bool> {
        let ctx = self.ctx;
        let terms: Vec<(Expr, i64)> = sum.terms.iter().map(|(&t, &c)| (t, c)).collect();
        for (term, coefficient) in terms {
            let applied = match ctx.node(term) {
                Node::Mod(value, modulus) => {
                    self.join_quotient(sum, term, coefficient, value, modulus)?
                }
                Node::FloorDiv(value, divisor) => {
                    self.join_multiple(sum, term, coefficient, value, divisor)?
                }
                _ => false,
            };
            if applied {
                return Some(true);
            }
        }
        Some(false)
    }

    /// `b*n*(x floordiv n) + b*(x mod n) == b*x`
    fn join_quotient(
        &mut self,
        sum: &mut Sum,
        remainder: Expr,
        coefficient: i64,
        value: Expr,
        modulus: Expr,
    ) -> Option<bool> {
        // The remainder of a negative divisor is not that of the quotient rounded down. Zero has
        // neither.
        if !self.is_non_negative(modulus) {
            return Some(false);
        }
        let quotient = self.quotient(value, modulus, division::Rounding::Down);
        let multiple = self.product(quotient, modulus);
        let Some(multiple) = Sum::of(self.ctx, multiple) else {
            return Some(false);
        };
        let present = !multiple.terms.is_empty()
            && multiple.terms.iter().all(|(&term, &factor)| {
                factor.checked_mul(coefficient) == Some(sum.coefficient(term))
            });
        if !present {
            return Some(false);
        }
        for (&term, &factor) in &multiple.terms {
            sum.add_term(term, factor.checked_mul(coefficient)?.checked_neg()?)?;
        }
        let constant = multiple.constant.checked_mul(coefficient)?;
        sum.constant = sum.constant.checked_sub(constant)?;
        sum.add_term(remainder, coefficient.checked_neg()?)?;
        sum.add(self.ctx, value, coefficient)?;
        Some(true)
    }

    /// `k*x - k*c*(x floordiv c) == k*(x mod c)` for a constant c > 1. Where x is a single
    /// term, a multiple of it larger than k*x may be there, of which the rest stays.
    fn join_multiple(
        &mut self,
        sum: &mut Sum,
        quotient: Expr,
        coefficient: i64,
        value: Expr,
        divisor: Expr,
    ) -> Option<bool> {
        let Some(divisor_value) = self.ctx.as_constant(divisor).filter(|&c| 1 < c) else {
            return Some(false);
        };
        if coefficient % divisor_value != 0 {
            return Some(false);
        }
        let scale = (coefficient / divisor_value).checked_neg()?;
        let Some(linear) = Sum::of(self.ctx, value) else {
            return Some(false);
        };
        let single = linear.single().is_some();
        let present = linear.terms.iter().all(|(&term, &factor)| {
            let (found, needed) = (sum.coefficient(term), factor.checked_mul(scale));
            needed.is_some_and(|needed| {
                found == needed
                    || (single
                        && found.signum() == needed.signum()
                        && needed.unsigned_abs() < found.unsigned_abs())
            })
        });
        if linear.terms.is_empty() || !present {
            return Some(false);
        }
        let remainder = self.remainder(value, divisor);
        sum.add_term(quotient, coefficient.checked_neg()?)?;
        sum.add(self.ctx, value, scale.checked_neg()?)?;
        sum.add(self.ctx, remainder, scale)?;
        Some(true)
    }

    /// Writes a sum down in normal form.
    fn build(&self, sum: &Sum) -> Expr {
        let ctx = self.ctx;
        let mut terms: Vec<(Expr, i64)> = sum
            .terms
            .iter()
            .filter(|&(_, &coefficient)| coefficient != 0)
            .map(|(&term, &coefficient)| (term, coefficient))
            .collect();
        terms.sort_by(|a, b| ctx.compare(a.0, b.0));
        // Groups of terms with coefficients of one size, each in the place of its first term.
        let mut groups: Vec<(u64, Vec<(Expr, bool)>)> = Vec::new();
        let mut group_of: HashMap<u64, usize> = HashMap::new();
        for (term, coefficient) in terms {
            let size = coefficient.unsigned_abs();
            let member = (term, 0 < coefficient);
            match group_of.get(&size) {
                Some(&group) if size != 1 => groups[group].1.push(member),
                _ => {
                    group_of.insert(size, groups.len());
                    groups.push((size, vec![member]));
                }
            }
        }
        let addends: Vec<(Expr, u64, bool)> = groups
            .into_iter()
            .map(|(size, members)| {
                let positive = members.iter().any(|&(_, positive)| positive);
                let members =
                    members.into_iter().map(|(term, sign)| (term, 1, sign == positive)).collect();
                (self.chain(members), size, positive)
            })
            .collect();
        let expr = self.chain(addends);
        if sum.constant == 0 {
            return expr;
        }
        match ctx.as_constant(expr) {
            Some(_) => ctx.constant(sum.constant),
            None => ctx.add(expr, ctx.constant(sum.constant)),
        }
    }

    /// A sum of multiples given by size and sign, a positive one first; zero when empty.
    fn chain(&self, mut addends: Vec<(Expr, u64, bool)>) -> Expr {
        let ctx = self.ctx;
        if let Some(first) = addends.iter().position(|&(.., positive)| positive) {
            addends[..=first].rotate_right(1);
        }
        addends
            .into_iter()
            .map(|(expr, size, positive)| {
                let magnitude = i128::from(size);
                let signed = if positive { magnitude } else { -magnitude };
                // The sizes are those of 64-bit coefficients; a group takes the sign of a
                // positive member if it has one, so only -2^63 can have size 2^63.
                let factor = i64::try_from(signed).unwrap_or(i64::MIN);
                ctx.mul(expr, ctx.constant(factor))
            })
            .reduce(|lhs, rhs| ctx.add(lhs, rhs))
            .unwrap_or_else(|| ctx.constant(0))
    }

    // Products

    /// The factors of a product, with the constant one apart. `None` on overflow.
    fn factors(&self, expr: Expr) -> Option<(Vec<Expr>, i64)> {
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

    /// The product of factors in normal form.
    fn multiply(&self, factors: &[Expr], scale: i64) -> Expr {
        let product = factors.iter().copied().reduce(|lhs, rhs| self.ctx.mul(lhs, rhs));
        let scale = self.ctx.constant(scale);
        product.map_or(scale, |product| self.ctx.mul(product, scale))
    }

    /// The simplified product.
    fn product(&mut self, lhs: Expr, rhs: Expr) -> Expr {
        let ctx = self.ctx;
        for (scale, other) in [(lhs, rhs), (rhs, lhs)] {
            if let Some(scale) = ctx.as_constant(scale) {
                return self
                    .add_scaled(ctx.constant(0), other, scale)
                    .unwrap_or_else(|| ctx.mul(lhs, rhs));
            }
        }
        match self.factors(ctx.mul(lhs, rhs)) {
            Some((factors, scale)) => self.multiply(&factors, scale),
            None => ctx.mul(lhs, rhs),
        }
    }

    // Minima and maxima

    /// The simplified minimum or maximum.
    fn extremum(&mut self, lhs: Expr, rhs: Expr, kind: Extremum) -> Expr {
        let ctx = self.ctx;
        let mut candidates = Vec::new();
        let mut stack = vec![rhs, lhs];
        while let Some(expr) = stack.pop() {
            match (ctx.node(expr), kind) {
                (Node::Min(a, b), Extremum::Min) | (Node::Max(a, b), Extremum::Max) => {
                    stack.extend([b, a]);
                }
                _ => candidates.push(expr),
            }
        }
        candidates.sort_by(|&a, &b| ctx.compare(a, b));
        candidates.dedup();
        let mut kept: Vec<Expr> = Vec::new();
        for candidate in candidates {
            let compared = kept.len().saturating_sub(MAX_COMPARED);
            let (mut dominated, mut position) = (false, 0);
            kept.retain(|&other| {
                position += 1;
                if dominated || position <= compared {
                    return true;
                }
                match self.decided(other, candidate, kind) {
                    Some(winner) => {
                        dominated = winner == other;
                        dominated
                    }
                    None => true,
                }
            });
            if !dominated {
                kept.push(candidate);
            }
        }
        kept.into_iter()
            .reduce(|lhs, rhs| match kind {
                Extremum::Min => ctx.min(lhs, rhs),
                Extremum::Max => ctx.max(lhs, rhs),
            })
            .unwrap_or(lhs)
    }

    /// Which of two expressions is the minimum or maximum everywhere, if one is.
    fn decided(&mut self, lhs: Expr, rhs: Expr, kind: Extremum) -> Option<Expr> {
        // min(a, max(a, b)) == a and its mirror
        for (plain, nested) in [(lhs, rhs), (rhs, lhs)] {
            match (self.ctx.node(nested), kind) {
                (Node::Max(a, b), Extremum::Min) | (Node::Min(a, b), Extremum::Max)
                    if a == plain || b == plain =>
                {
                    return Some(plain);
                }
                _ => {}
            }
        }
        let (smaller, larger) = if self.at_most(lhs, rhs) {
            (lhs, rhs)
        } else if self.at_most(rhs, lhs) {
            (rhs, lhs)
        } else {
            return None;
        };
        Some(match kind {
            Extremum::Min => smaller,
            Extremum::Max => larger,
        })
    }

    // Questions

    /// Whether `lhs <= rhs` is shown on the whole domain.
    fn at_most(&mut self, lhs: Expr, rhs: Expr) -> bool {
        if self.interval_of(lhs).le(self.interval_of(rhs)) == Some(true) {
            return true;
        }
        let difference = Sum::of(self.ctx, rhs).and_then(|mut sum| {
            sum.add(self.ctx, lhs, -1)?;
            Some(self.build(&sum))
        });
        match difference {
            Some(difference) => self.is_non_negative(difference),
            None => false,
        }
    }

    /// Whether `expr >= 0` is shown on the whole domain.
    fn is_non_negative(&mut self, expr: Expr) -> bool {
        let interval = self.interval_of(expr);
        if 0 <= interval.lo {
            return true;
        }
        0 <= interval.hi && self.ask(expr) == Verdict::Proved
    }

    /// Asks the prover whether `expr >= 0`, when symbolic bounds are involved: without them,
    /// intervals say nearly as much at once.
    fn ask(&mut self, expr: Expr) -> Verdict {
        let Some(prover) = &self.prover else {
            return Verdict::Unknown;
        };
        if self.questions == 0 || self.symbolic.is_disjoint(&self.ctx.vars(expr)) {
            return Verdict::Unknown;
        }
        self.questions -= 1;
        prover.nonnegative(expr)
    }
}

/// Which of its operands an operation picks.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Extremum {
    Min,
    Max,
}

impl Context {
    /// The normal form of `expr` when nothing is known of its variables.
    pub fn canonicalize(&self, expr: Expr) -> Expr {
        Simplifier::new(self, |_| Interval::ALL).simplify(expr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simplified(text: &str) -> String {
        let ctx = Context::new();
        let mut map = IndexingMap::parse(&ctx, text).expect("a map");
        map.simplify(&ctx);
        map.display(&ctx).to_string()
    }

    #[test]
    fn symbolic_linearization_is_undone() {
        assert_eq!(
            simplified(
                "(i, j){M, N} -> ((i * N + j) / N, (i * N + j) mod N), domain: \
                 i in [0, M - 1], j in [0, N - 1], M in [1, 1000], N in [1, 1000]"
            ),
            "(i, j){M, N} -> (i, j), domain: \
             i in [0, M - 1], j in [0, N - 1], M in [1, 1000], N in [1, 1000]"
        );
    }

    #[test]
    fn symbolic_remainder_joins_its_quotient() {
        assert_eq!(
            simplified("(i){N} -> ((i / N) * N + i mod N), domain: N in [0, inf]"),
            "(i){N} -> (i), domain: N in [0, inf]"
        );
    }

    #[test]
    fn symbolic_bounds_prove_constraints() {
        assert_eq!(
            simplified(
                "(i)[k]{N} -> (i + k), domain: i in [0, N - 4], k in [0, 3], N in [4, 1000], \
                 N - 1 - i - k in [0, inf], i - N in [-inf, -4]"
            ),
            "(i)[k]{N} -> (i + k), domain: i in [0, N - 4], k in [0, 3], N in [4, 1000]"
        );
    }

    #[test]
    fn equal_coefficients_are_collected() {
        let ctx = Context::new();
        let (a, b, c) = (ctx.dim(0), ctx.dim(1), ctx.dim(2));
        let four = ctx.constant(4);
        let difference = ctx.sub(ctx.mul(a, four), ctx.mul(b, four));
        let sum = ctx.add(c, difference);
        assert_eq!(ctx.display(ctx.canonicalize(sum)).to_string(), "(d0 - d1) * 4 + d2");
    }

    #[test]
    fn shared_subexpressions_are_visited_once() {
        let ctx = Context::new();
        let mut expr = ctx.dim(0);
        for i in 0..150 {
            let quotient = ctx.floor_div(expr, ctx.constant(2));
            let remainder = ctx.modulo(expr, ctx.constant(3 + i % 5));
            expr = ctx.add(ctx.min(quotient, remainder), ctx.mul(expr, ctx.dim(1)));
        }
        let canonical = ctx.canonicalize(expr);
        assert!(ctx.cost(canonical) <= ctx.cost(expr));
        assert!(ctx.num_exprs() < 100_000, "{}", ctx.num_exprs());
    }

    #[test]
    fn nested_remainders_take_polynomial_time() {
        let ctx = Context::new();
        let mut expr = ctx.dim(0);
        for i in 0..200 {
            let remainder = ctx.modulo(expr, ctx.constant(1000 - i));
            let quotient = ctx.ceil_div(expr, ctx.constant(3 + i));
            expr = ctx.add(ctx.add(remainder, quotient), ctx.dim(1));
        }
        let canonical = ctx.canonicalize(expr);
        assert!(ctx.cost(canonical) <= ctx.cost(expr));
        assert!(ctx.num_exprs() < 100_000, "{}", ctx.num_exprs());
    }

    #[test]
    fn long_sums_take_little_time() {
        let ctx = Context::new();
        let mut sum = ctx.constant(0);
        for i in (0..20_000).rev() {
            sum = ctx.add(sum, ctx.mul(ctx.dim(i), ctx.constant(i64::from(i % 7))));
        }
        let canonical = ctx.canonicalize(sum);
        assert!(ctx.cost(canonical) < ctx.cost(sum));
    }
}
