//! Equations between what is over the variables of a map and what is over its results, and the terms that
//! follow from them; see [`inverse`](super).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};

use super::{Work, image};
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::map::IndexingMap;
use crate::simplify::Simplifier;

/// The most equations that are looked at, beside as many for each result and constraint.
const MAX_EQUATIONS: usize = 512;
/// How many equations of each result and constraint are looked at.
const MAX_EQUATIONS_EACH: usize = 4;
/// The most digits of one number.
const MAX_DIGITS: usize = 64;
/// The operators of an equation, as far as they count as work.
const MAX_OPERATORS: u32 = 256;

/// A sum of multiples of terms that are not known, and of what is known.
#[derive(Clone)]
struct Sum {
    unknown: Vec<(Expr, i64)>,
    known: Expr,
}

/// A remainder as a multiple of a smaller one and an offset: `(g*x + r) mod (g*m) == g*(x mod m) + r` for `r`
/// in `[0, g - 1]`.
struct Unit {
    term: Expr,
    scale: i64,
    offset: i64,
}

impl Unit {
    /// `None` where the term is no such remainder.
    fn of(ctx: &Context, term: Expr) -> Option<Self> {
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

/// The equations between what is over dimension variables and what is over results.
pub(super) struct Solver<'c> {
    ctx: &'c Context,
    simplifier: Simplifier<'c>,
    /// Sums and single terms that equal something over results.
    equations: Vec<(Expr, Expr)>,
    seen: HashSet<(Expr, Expr)>,
    max_equations: usize,
    /// Terms and what they equal.
    known: HashMap<Expr, Expr>,
    /// The divisors of the quotients and remainders among them.
    divisors: BTreeSet<i64>,
    work: &'c Work,
}

impl<'c> Solver<'c> {
    pub(super) fn new(ctx: &'c Context, map: &'c IndexingMap, work: &'c Work) -> Self {
        let simplifier = Simplifier::for_domain(ctx, map);
        let mut solver = Self {
            ctx,
            simplifier,
            equations: Vec::new(),
            seen: HashSet::new(),
            max_equations: (map.results.len() + map.constraints.len())
                .saturating_mul(MAX_EQUATIONS_EACH)
                .saturating_add(MAX_EQUATIONS),
            known: HashMap::new(),
            divisors: BTreeSet::new(),
            work,
        };
        for (i, &result) in (0..).zip(&map.results) {
            solver.add(result, ctx.var(image(i)));
        }
        for constraint in &map.constraints {
            if let Some(value) = constraint.interval.as_point() {
                solver.add(constraint.expr, ctx.constant(value));
            }
        }
        let intervals = map.tightened_intervals(ctx);
        for (var, _) in map.vars() {
            if let Some(value) = intervals.of(var).as_point() {
                solver.known.insert(ctx.var(var), ctx.constant(value));
            }
        }
        solver
    }

    fn add(&mut self, lhs: Expr, rhs: Expr) {
        if self.equations.len() < self.max_equations && self.seen.insert((lhs, rhs)) {
            self.equations.push((lhs, rhs));
        }
    }

    /// Solves the equations as far as possible.
    pub(super) fn solve(&mut self) {
        while !self.work.is_spent() {
            let before = (self.known.len(), self.equations.len());
            let mut next = 0;
            while let Some(&(lhs, rhs)) = self.equations.get(next) {
                next += 1;
                self.solve_sum(lhs, rhs);
            }
            self.join_digits();
            if before == (self.known.len(), self.equations.len()) {
                return;
            }
        }
    }

    /// What is known of `expr`: it without dimension variables.
    pub(super) fn express(&self, expr: Expr) -> Option<Expr> {
        let ctx = self.ctx;
        let known =
            |expr: Expr, node: Node, operands: Option<(&Option<Expr>, &Option<Expr>)>| match (
                self.known.get(&expr),
                operands,
            ) {
                (Some(&known), _) => Some(known),
                (None, Some((&Some(lhs), &Some(rhs)))) => Some(ctx.rebuild(node, lhs, rhs)),
                _ if self.work.spend(1).is_none() => None,
                (None, Some(_)) => self.of_digits(node).or_else(|| {
                    let (quotient, offset) = self.least_quotient(expr)?;
                    Some(ctx.add(*self.known.get(&quotient)?, ctx.constant(offset)))
                }),
                (None, None) => (!matches!(node, Node::Var(Var::Dim(_)))).then_some(expr),
            };
        ctx.fold_value(expr, known)
    }

    /// A quotient of a quotient that is known, or a remainder of a remainder.
    fn of_digits(&self, node: Node) -> Option<Expr> {
        let ctx = self.ctx;
        let (Node::FloorDiv(value, by) | Node::Mod(value, by)) = node else { return None };
        let by = ctx.as_constant(by).filter(|&by| 1 < by)?;
        if let Node::Mod(..) = node {
            let multiples =
                self.divisors.range((Excluded(by), Unbounded)).filter(|&other| other % by == 0);
            let known = |&other: &i64| self.known.get(&ctx.modulo(value, ctx.constant(other)));
            let remainder = *multiples.into_iter().find_map(known)?;
            return Some(ctx.modulo(remainder, ctx.constant(by)));
        }
        let divisors = self.divisors.range(..by).filter(|&other| by % other == 0);
        let known = |&other: &i64| {
            let quotient = self.known.get(&ctx.floor_div(value, ctx.constant(other)))?;
            Some(ctx.floor_div(*quotient, ctx.constant(by / other)))
        };
        divisors.into_iter().find_map(known)
    }

    /// Solves `lhs == rhs` for the terms of the sum `lhs` as far as possible.
    fn solve_sum(&mut self, lhs: Expr, rhs: Expr) -> Option<()> {
        let ctx = self.ctx;
        let Sum { unknown, known } = self.sum(lhs)?;
        let rest = ctx.sub(rhs, known);
        match unknown[..] {
            [] => {}
            [(term, factor)] => self.learn(term, ctx.floor_div(rest, ctx.constant(factor))),
            _ => {
                self.split_digits(unknown, rest);
            }
        }
        Some(())
    }

    /// Takes apart what is known of `expr`. `None` on overflow.
    fn sum(&self, expr: Expr) -> Option<Sum> {
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

    /// `x floordiv c` with a constant part of `x` in `[0, c - 1]`, and the number that is missing:
    /// the simplifier keeps `(x + 3) floordiv 2`, since `(x + 1) floordiv 2 + 1` is longer.
    fn least_quotient(&self, term: Expr) -> Option<(Expr, i64)> {
        let ctx = self.ctx;
        let Node::FloorDiv(value, divisor) = ctx.node(term) else { return None };
        let by = ctx.as_constant(divisor).filter(|&by| 0 < by)?;
        let (constant, num_terms) = ctx.constant_of_sum(value)?;
        self.work.spend(num_terms)?;
        let offset = constant.div_euclid(by);
        let moved = ctx.constant(offset.checked_mul(by)?.checked_neg()?);
        Some((ctx.floor_div(ctx.add(value, moved), divisor), offset))
    }

    /// `x mod c` with the coefficients of `x` in `[0, c - 1]`: the simplifier keeps the shortest
    /// of several forms, which depends on what it is given.
    fn least_remainder(&self, value: Expr, modulus: i64) -> Option<Expr> {
        let ctx = self.ctx;
        let linear = ctx.linear_terms(value)?;
        let mut sum = ctx.constant(0);
        for (term, factor) in linear.terms {
            let factor = ctx.constant(factor.checked_rem_euclid(modulus)?);
            sum = ctx.add(sum, ctx.mul(term, factor));
        }
        let constant = ctx.constant(linear.constant.checked_rem_euclid(modulus)?);
        Some(ctx.modulo(ctx.add(sum, constant), ctx.constant(modulus)))
    }

    /// `x floordiv -c` as `-x floordiv c`.
    fn positive_quotient(&self, term: Expr) -> Option<Expr> {
        let ctx = self.ctx;
        let Node::FloorDiv(value, divisor) = ctx.node(term) else { return None };
        let divisor = ctx.as_constant(divisor).filter(|&divisor| divisor < 0)?;
        let linear = ctx.linear_terms(value)?;
        let mut sum = ctx.constant(0);
        for (term, factor) in linear.terms {
            sum = ctx.add(sum, ctx.mul(term, ctx.constant(factor.checked_neg()?)));
        }
        let sum = ctx.add(sum, ctx.constant(linear.constant.checked_neg()?));
        Some(ctx.floor_div(sum, ctx.constant(divisor.checked_neg()?)))
    }

    fn learn(&mut self, term: Expr, value: Expr) {
        let ctx = self.ctx;
        self.known.entry(term).or_insert(value);
        if let Node::FloorDiv(_, by) | Node::Mod(_, by) = ctx.node(term) {
            self.divisors.extend(ctx.as_constant(by).filter(|&by| 1 < by));
        }
        if let Some(quotient) = self.positive_quotient(term) {
            return self.learn(quotient, value);
        }
        if let Some((quotient, offset)) = self.least_quotient(term) {
            let least = ctx.sub(value, ctx.constant(offset));
            self.known.entry(quotient).or_insert(least);
        }
        // x == lo + (x mod c - lo) mod c, for x in [lo, lo + c - 1]
        if let Node::Mod(number, modulus) = ctx.node(term) {
            // -x mod c == -(x mod c) mod c
            let negated = ctx.modulo(ctx.neg(value), modulus);
            for (number, value) in [(number, value), (ctx.neg(number), negated)] {
                let least =
                    ctx.as_constant(modulus).and_then(|by| self.least_remainder(number, by));
                if let Some(least) = least {
                    self.known.entry(least).or_insert(value);
                }
            }
            let interval = self.simplifier.interval_of(number);
            let few = interval.num_members().and_then(|size| i64::try_from(size).ok());
            let modulo = ctx.as_constant(modulus).zip(few);
            if modulo.is_some_and(|(modulus, few)| 0 < few && few <= modulus) {
                let least = ctx.constant(interval.lo);
                let above = ctx.modulo(ctx.sub(value, least), modulus);
                self.add(number, ctx.add(least, above));
            }
        }
    }

    /// Takes the terms of `sum == value` apart whose multiples have disjoint digits in it.
    fn split_digits(&mut self, mut sum: Vec<(Expr, i64)>, value: Expr) -> Option<()> {
        let ctx = self.ctx;
        sum.sort_by_key(|&(_, factor)| factor.unsigned_abs());
        // sum == least + s_0*u_0 + s_1*u_1 + .. with u_i in [0, extent_i] and s_i > 0
        let mut least = 0_i128;
        let mut digits = Vec::new();
        for &(term, factor) in &sum {
            let interval = self.simplifier.interval_of(term);
            if interval.is_empty() {
                return None;
            }
            // What has no bounds takes all digits from its own on.
            let is_bounded = interval.is_bounded();
            let from = match factor {
                _ if !is_bounded => 0,
                1.. => interval.lo,
                _ => interval.hi,
            };
            least = least.checked_add(i128::from(factor) * i128::from(from))?;
            let extent = i128::from(interval.hi) - i128::from(interval.lo);
            let extent = if is_bounded { extent } else { i128::from(u64::MAX) };
            digits.push((term, from, factor.signum(), i128::from(factor).abs(), extent));
        }
        let least = ctx.constant(i64::try_from(least).ok()?);
        let mut rest = ctx.sub(value, least);
        // How many units the rest has been divided by.
        let mut unit = 1_i128;
        let mut first = 0;
        let mut largest = 0_i128;
        for place in 0..digits.len() {
            let (_, _, _, scale, extent) = digits[place];
            largest = largest.checked_add(scale.checked_mul(extent)?)?;
            let step = digits[place + 1..]
                .iter()
                .try_fold(0_u64, |step, digit| Some(gcd(step, u64::try_from(digit.3).ok()?)))?;
            let is_last = place + 1 == digits.len();
            if !is_last && i128::from(step) <= largest {
                continue;
            }
            // The digits from the first to this one are what the rest has below the step.
            let part = if is_last {
                rest
            } else {
                let step = ctx.constant(i64::try_from(i128::from(step) / unit).ok()?);
                let part = ctx.modulo(rest, step);
                rest = ctx.floor_div(rest, step);
                part
            };
            if let [(term, from, sign, scale, _)] = digits[first..=place] {
                let scale = ctx.constant(i64::try_from(scale / unit).ok()?);
                let digit = ctx.mul(ctx.floor_div(part, scale), ctx.constant(sign));
                self.learn(term, ctx.add(digit, ctx.constant(from)));
            } else if 0 < first || !is_last {
                let mut lhs = ctx.constant(0);
                for &(term, from, sign, scale, _) in &digits[first..=place] {
                    let scale = ctx.constant(i64::try_from(scale / unit).ok()?.checked_mul(sign)?);
                    let from = ctx.constant(from.checked_neg()?);
                    lhs = ctx.add(lhs, ctx.mul(ctx.add(term, from), scale));
                }
                self.add(lhs, part);
            }
            first = place + 1;
            unit = i128::from(step).max(1);
            largest = 0;
        }
        Some(())
    }

    /// `x == c*(x floordiv c) + x mod c`, where both are known, and `x == c*(x ceildiv c) - (-x) mod c`.
    fn join_digits(&mut self) {
        let ctx = self.ctx;
        let divisor = |by: Expr| ctx.as_constant(by).filter(|&by| 1 < by);
        let (mut divisions, mut remainders) = (BTreeSet::new(), BTreeSet::new());
        for &term in self.known.keys() {
            let (Node::FloorDiv(value, by) | Node::Mod(value, by)) = ctx.node(term) else {
                continue;
            };
            let Some(by) = divisor(by) else { continue };
            divisions.insert((value, by));
            // The remainder of a quotient is a digit of the remainder by both divisors.
            if let (Node::Mod(..), Node::FloorDiv(whole, unit)) = (ctx.node(term), ctx.node(value))
                && let Some(unit) = divisor(unit)
            {
                remainders.extend(unit.checked_mul(by).map(|modulus| (whole, modulus)));
            }
        }
        let divisors: BTreeSet<i64> = divisions.iter().map(|&(_, divisor)| divisor).collect();
        for (value, by) in divisions {
            if self.express(value).is_some() {
                continue;
            }
            let size = ctx.constant(by);
            let quotient = |solver: &mut Self, given: Expr| {
                let quotient = solver.simplifier.simplify(given);
                solver.express(quotient).or_else(|| solver.express(given))
            };
            let down = quotient(self, ctx.floor_div(value, size));
            let up = if down.is_some() { None } else { quotient(self, ctx.ceil_div(value, size)) };
            if let Some(quotient) = down.or(up)
                && let Some(remainder) = self.remainder(value, by, &divisors)
            {
                // By -x mod c, x ceildiv c is too much.
                let missing = ctx.neg(ctx.modulo(ctx.neg(remainder), size));
                let remainder = if down.is_some() { remainder } else { missing };
                self.add(value, ctx.add(ctx.mul(quotient, size), remainder));
            }
        }
        for (value, modulus) in remainders {
            let whole = ctx.modulo(value, ctx.constant(modulus));
            if !self.known.contains_key(&whole)
                && let Some(remainder) = self.remainder(value, modulus, &divisors)
            {
                self.learn(whole, remainder);
            }
        }
    }

    /// `x mod c`, digit by digit: `x mod (f*g) == x mod f + f*((x floordiv f) mod g)` for positive `f` and
    /// `g`.
    fn remainder(&mut self, value: Expr, modulus: i64, divisors: &BTreeSet<i64>) -> Option<Expr> {
        let ctx = self.ctx;
        let (mut value, mut modulus, mut unit) = (value, modulus, 1_i64);
        let mut sum = ctx.constant(0);
        for _ in 0..MAX_DIGITS {
            let whole = self.simplifier.simplify(ctx.modulo(value, ctx.constant(modulus)));
            let least = self.least_remainder(value, modulus);
            if let Some(whole) = self.express(whole).or_else(|| self.express(least?)) {
                return Some(ctx.add(sum, ctx.mul(whole, ctx.constant(unit))));
            }
            let factors = divisors.range(..modulus).filter(|&factor| modulus % factor == 0);
            let (factor, digit) = factors.copied().find_map(|factor| {
                let digit = self.simplifier.simplify(ctx.modulo(value, ctx.constant(factor)));
                Some((factor, self.express(digit)?))
            })?;
            sum = ctx.add(sum, ctx.mul(digit, ctx.constant(unit)));
            value = self.simplifier.simplify(ctx.floor_div(value, ctx.constant(factor)));
            (modulus, unit) = (modulus / factor, unit.checked_mul(factor)?);
        }
        None
    }
}
