//! Equations between what is over the variables of a map and what is over its results, and the terms that
//! follow from them; see [`inverse`](super).

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};

use super::bounds::Bounds;
use super::monotone::{Effort, Sum};
use super::table::TableSize;
use super::{Work, image};
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::interval::Interval;
use crate::map::IndexingMap;
use crate::prove::Prover;
use crate::simplify::Simplifier;

/// The most equations that are looked at, beside as many for each result and constraint.
const MAX_EQUATIONS: usize = 512;
/// How many equations of each result and constraint are looked at.
const MAX_EQUATIONS_EACH: usize = 4;
/// How often the equations are taken as a linear system.
const MAX_SYSTEMS: u32 = 4;
/// The work of a question for the prover, for each term of it.
const QUESTION_PRICE: usize = 512;
/// The most digits of one number.
const MAX_DIGITS: usize = 64;

/// The equations between what is over dimension variables and what is over results.
pub(super) struct Solver<'c> {
    pub(super) ctx: &'c Context,
    pub(super) map: &'c IndexingMap,
    pub(super) simplifier: Simplifier<'c>,
    /// Sums and single terms that equal something over results.
    pub(super) equations: Vec<(Expr, Expr)>,
    seen: HashSet<(Expr, Expr)>,
    max_equations: usize,
    /// Terms and what they equal.
    pub(super) known: HashMap<Expr, Expr>,
    /// The divisors of the quotients and remainders among them.
    divisors: BTreeSet<i64>,
    pub(super) tables: TableSize,
    pub(super) work: &'c Work,
    /// Knows the bounds and the constraints, where they are asked for.
    prover: OnceCell<Prover<'c>>,
    /// The same.
    bounds: Option<Bounds<'c>>,
    /// Which differences are not negative at any point of the domain.
    are_not_negative: RefCell<HashMap<Expr, bool>>,
}

impl<'c> Solver<'c> {
    pub(super) fn new(
        ctx: &'c Context,
        map: &'c IndexingMap,
        tables: TableSize,
        work: &'c Work,
    ) -> Self {
        let simplifier = Simplifier::for_domain(ctx, map);
        let mut solver = Self {
            ctx,
            map,
            simplifier,
            equations: Vec::new(),
            seen: HashSet::new(),
            max_equations: (map.results.len() + map.constraints.len())
                .saturating_mul(MAX_EQUATIONS_EACH)
                .saturating_add(MAX_EQUATIONS),
            known: HashMap::new(),
            divisors: BTreeSet::new(),
            tables,
            work,
            prover: OnceCell::new(),
            bounds: None,
            are_not_negative: RefCell::default(),
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

    pub(super) fn solved(&self, var: Var) -> Option<Expr> {
        self.known.get(&self.ctx.var(var)).copied()
    }

    /// The terms that are known, in an order that does not change from run to run.
    pub(super) fn all_known(&self) -> Vec<(Expr, Expr)> {
        let mut known: Vec<(Expr, Expr)> = self.known.iter().map(|(&k, &v)| (k, v)).collect();
        known.sort_unstable();
        known
    }

    pub(super) fn add(&mut self, lhs: Expr, rhs: Expr) {
        if self.equations.len() < self.max_equations && self.seen.insert((lhs, rhs)) {
            self.equations.push((lhs, rhs));
        }
    }

    /// Solves the equations as far as possible. What takes more work, or gives longer solutions, comes where
    /// the rest finds nothing more.
    pub(super) fn solve(&mut self) {
        let mut systems = 0;
        while !self.work.is_spent() {
            let before = (self.known.len(), self.equations.len());
            let mut next = 0;
            while let Some(&(lhs, rhs)) = self.equations.get(next) {
                next += 1;
                self.solve_sum(lhs, rhs);
            }
            self.solve_known();
            self.join_digits();
            self.join_remainders();
            if before != (self.known.len(), self.equations.len()) {
                continue;
            }
            let dims = (0..).zip(&self.map.dims).map(|(number, _)| Var::Dim(number));
            if dims.into_iter().all(|var| self.solved(var).is_some()) {
                return;
            }
            if systems < MAX_SYSTEMS {
                systems += 1;
                self.eliminate();
            }
            for step in [
                Self::join_windows,
                Self::join_congruences,
                Self::solve_monotone_on_domain,
                Self::tabulate,
            ] {
                if before == (self.known.len(), self.equations.len()) {
                    step(self);
                }
            }
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
        self.divide_by_symbols(&unknown, rest);
        match unknown[..] {
            [] => {}
            [(term, factor)] => self.learn(term, ctx.floor_div(rest, ctx.constant(factor))),
            _ => {
                self.join_extrema(&unknown, rest);
                self.solve_monotone(&unknown, rest, Effort::Least);
                self.split_digits(unknown.clone(), rest);
                self.isolate(&unknown, rest, 0);
            }
        }
        Some(())
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

    /// Learns a quotient or remainder by a known negative number as one by its absolute value:
    /// `x floordiv -c` is `-(x ceildiv c)`.
    pub(super) fn learn_by_negated(&mut self, term: Expr, value: Expr) {
        let ctx = self.ctx;
        let Some((number, by)) = ctx.node(term).operands() else { return };
        if ctx.as_constant(by).is_some() {
            return;
        }
        let Some((size, -1)) = self.signed_divisor(by) else { return };
        let (same, value) = match ctx.node(term) {
            Node::FloorDiv(..) => (ctx.ceil_div(number, size), ctx.neg(value)),
            Node::CeilDiv(..) => (ctx.floor_div(number, size), ctx.neg(value)),
            _ => (ctx.modulo(number, size), value),
        };
        self.known.entry(same).or_insert(value);
    }

    pub(super) fn learn(&mut self, term: Expr, value: Expr) {
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
            let interval = self.interval_of(term);
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

    /// Divides `sum == value` by factors of terms that are known: where `0 <= u - l < s`, `s*t + u == value`
    /// gives `t == (value - l) floordiv s` and `u - l == (value - l) mod s`.
    pub(super) fn divide_by_symbols(&mut self, sum: &[(Expr, i64)], value: Expr) {
        let ctx = self.ctx;
        if !sum.iter().any(|it| matches!(ctx.node(it.0), Node::Mul(..))) {
            return;
        }
        // What is not known, and what it is multiplied by altogether.
        let mut multiples: BTreeMap<Expr, Expr> = BTreeMap::new();
        for &(term, factor) in sum {
            let (unknown, known) = self.split_product(ctx.mul(term, ctx.constant(factor)));
            let whole = multiples.entry(unknown).or_insert(ctx.constant(0));
            *whole = ctx.add(*whole, known);
        }
        if multiples.keys().all(|&unknown| ctx.as_constant(unknown).is_some()) {
            return;
        }
        let terms = multiples.into_iter().map(|(unknown, known)| ctx.mul(unknown, known));
        let terms: Vec<Expr> = terms.collect();
        let num_exprs: usize = terms.iter().map(|&term| ctx.cost(term) as usize + 1).sum();
        let symbols = terms.iter().flat_map(|&term| self.symbolic_factors(term));
        let symbols: BTreeSet<Expr> = symbols.collect();
        for symbol in symbols {
            let Some((size, sign)) = self.signed_divisor(symbol) else { continue };
            let Some(by) = self.express(symbol) else { continue };
            // Each term is simplified.
            if self.work.spend(16 * num_exprs).is_none() {
                return;
            }
            let (mut multiple, mut rest) = (ctx.constant(0), ctx.constant(0));
            for &term in &terms {
                match self.exact_quotient(term, symbol) {
                    Some(quotient) => multiple = ctx.add(multiple, quotient),
                    None => rest = ctx.add(rest, term),
                }
            }
            if let Some(least) = self.least_of(rest, size) {
                let value = ctx.sub(value, least);
                // What is left over is not negative, nor are remainders by negative numbers.
                let rounds_down = 0 < sign || ctx.as_constant(rest).is_some();
                let divide = if rounds_down { Context::floor_div } else { Context::ceil_div };
                self.add(multiple, divide(ctx, value, by));
                self.add(rest, ctx.add(ctx.modulo(value, by), least));
            }
        }
    }

    /// What is known of an expression that is positive, and not 1, at all points of the domain: what can be
    /// divided by.
    pub(super) fn divisor(&self, expr: Expr) -> Option<Expr> {
        let ctx = self.ctx;
        if let Some(constant) = ctx.as_constant(expr) {
            return (1 < constant).then_some(expr);
        }
        let value = self.express(expr)?;
        self.is_at_most(ctx.constant(1), expr).then_some(value)
    }

    /// The absolute value of a [divisor](Self::divisor), or of what is one when negated, and the sign. It has 64
    /// bits, which that of -2^63 has not.
    fn signed_divisor(&self, expr: Expr) -> Option<(Expr, i64)> {
        if self.divisor(expr).is_some() {
            return Some((expr, 1));
        }
        let size = self.ctx.neg(expr);
        let fits = || self.map.range_of(self.ctx, expr).interval.lo != i64::MIN;
        (self.divisor(size).is_some() && fits()).then_some((size, -1))
    }

    /// Whether one is at most the other at all points of the domain, as far as that is known.
    pub(super) fn is_at_most(&self, lhs: Expr, rhs: Expr) -> bool {
        let ctx = self.ctx;
        if let (Some(lhs), Some(rhs)) = (ctx.as_constant(lhs), ctx.as_constant(rhs)) {
            return lhs <= rhs;
        }
        let difference = ctx.sub(rhs, lhs);
        let known = self.are_not_negative.borrow().get(&difference).copied();
        known.unwrap_or_else(|| {
            // Programs with a row for each term are solved.
            let price = (ctx.cost(difference) as usize).saturating_mul(QUESTION_PRICE);
            if self.work.spend(price.saturating_add(self.map.dims.len())).is_none() {
                return false;
            }
            let prover = self.prover.get_or_init(|| Prover::for_domain(ctx, self.map));
            // Without a value of 64 bits there is no range, but a value on the way.
            let range = || self.map.range_of(ctx, difference).interval;
            let is_not_negative =
                prover.shows_at_most(lhs, rhs) || matches!(range(), Interval { lo: 0.., hi: 0.. });
            self.are_not_negative.borrow_mut().insert(difference, is_not_negative);
            is_not_negative
        })
    }

    /// The least of `size` numbers in a row, one of which an expression always is, over results: its lower
    /// bound, or what its upper bound says.
    pub(super) fn least_of(&mut self, expr: Expr, size: Expr) -> Option<Expr> {
        let ctx = self.ctx;
        self.work.spend(self.map.dims.len())?;
        let bounds = self.bounds().of(expr);
        let [zero, one] = [0, 1].map(|constant| ctx.constant(constant));
        let above = ctx.sub(ctx.add(bounds.upper.unwrap_or(zero), one), size);
        let mut ends = [bounds.lower.unwrap_or(zero), above].into_iter();
        let least = ends.find(|&least| {
            let number = ctx.sub(ctx.add(expr, one), least);
            self.is_at_most(least, expr) && self.is_at_most(number, size)
        });
        self.express(least?)
    }

    fn bounds(&mut self) -> &mut Bounds<'c> {
        self.bounds.get_or_insert_with(|| Bounds::new(self.ctx, self.map))
    }

    /// An interval that holds all values of a term, of which symbolic bounds may know more: `d0 floordiv N`
    /// is at most 1 where `d0` is at most `2*N - 1`.
    fn interval_of(&mut self, term: Expr) -> Interval {
        let ctx = self.ctx;
        let interval = self.simplifier.interval_of(term);
        let is_symbol = |var: &Var| matches!(var, Var::Runtime(_));
        let is_worth_it = !self.map.runtimes.is_empty()
            && ctx.vars(term).iter().any(is_symbol)
            && self.work.spend(self.map.dims.len()).is_some();
        if !is_worth_it {
            return interval;
        }
        let bounds = self.bounds().of(term);
        let constant = |end: Option<Expr>| end.and_then(|end| ctx.as_constant(end));
        let lo = constant(bounds.lower).unwrap_or(i64::MIN);
        let hi = constant(bounds.upper).unwrap_or(i64::MAX);
        interval.intersect(Interval::new(lo, hi))
    }

    /// `x == c*(x floordiv c) + x mod c`, where both are known, and `x == c*(x ceildiv c) - (-x) mod c`.
    fn join_digits(&mut self) {
        let ctx = self.ctx;
        let mut divisions = BTreeSet::new();
        let mut remainders = BTreeSet::new();
        for &term in self.known.keys() {
            let (Node::FloorDiv(value, by) | Node::Mod(value, by)) = ctx.node(term) else {
                continue;
            };
            if self.divisor(by).is_none() {
                continue;
            }
            divisions.insert((value, by));
            // The remainder of a quotient is a digit of the remainder by both divisors.
            if let (Node::Mod(..), Node::FloorDiv(whole, unit)) = (ctx.node(term), ctx.node(value))
                && self.divisor(unit).is_some()
            {
                let modulus = ctx.mul(unit, by);
                remainders.extend(self.divisor(modulus).map(|_| (whole, modulus)));
            }
        }
        let divisors: BTreeSet<Expr> = divisions.iter().map(|&(_, divisor)| divisor).collect();
        let mut divisors: Vec<Expr> = divisors.into_iter().collect();
        divisors.sort_by(|&lhs, &rhs| {
            let constants = ctx.as_constant(lhs).cmp(&ctx.as_constant(rhs));
            constants.then_with(|| ctx.compare(lhs, rhs))
        });
        for (value, by) in divisions {
            if self.express(value).is_some() {
                continue;
            }
            let Some(size) = self.express(by) else { continue };
            let quotient = |solver: &mut Self, given: Expr| {
                let quotient = solver.simplifier.simplify(given);
                solver.express(quotient).or_else(|| solver.express(given))
            };
            let down = quotient(self, ctx.floor_div(value, by));
            let up = if down.is_some() { None } else { quotient(self, ctx.ceil_div(value, by)) };
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
            let whole = ctx.modulo(value, modulus);
            if !self.known.contains_key(&whole)
                && let Some(remainder) = self.remainder(value, modulus, &divisors)
            {
                self.learn(whole, remainder);
            }
        }
    }

    /// `x mod c`, digit by digit: `x mod (f*g) == x mod f + f*((x floordiv f) mod g)` for positive `f` and
    /// `g`.
    fn remainder(&mut self, value: Expr, modulus: Expr, divisors: &[Expr]) -> Option<Expr> {
        let ctx = self.ctx;
        let (mut value, mut modulus, mut unit) = (value, modulus, ctx.constant(1));
        let mut sum = ctx.constant(0);
        for _ in 0..MAX_DIGITS {
            let whole = self.simplifier.simplify(ctx.modulo(value, modulus));
            let least = ctx.as_constant(modulus).and_then(|by| self.least_remainder(value, by));
            if let Some(whole) = self.express(whole).or_else(|| self.express(least?)) {
                return Some(ctx.add(sum, ctx.mul(whole, unit)));
            }
            let (factor, rest, digit) = divisors.iter().find_map(|&factor| {
                let rest = self.exact_quotient(modulus, factor)?;
                self.divisor(rest)?;
                let digit = self.simplifier.simplify(ctx.modulo(value, factor));
                Some((factor, rest, self.express(digit)?))
            })?;
            sum = ctx.add(sum, ctx.mul(digit, unit));
            value = self.simplifier.simplify(ctx.floor_div(value, factor));
            (modulus, unit) = (rest, ctx.mul(unit, self.express(factor)?));
        }
        None
    }

    /// The other factor of a multiple.
    fn exact_quotient(&mut self, multiple: Expr, factor: Expr) -> Option<Expr> {
        let ctx = self.ctx;
        match (ctx.as_constant(multiple), ctx.as_constant(factor)) {
            (Some(multiple), Some(factor)) => {
                let is_exact = multiple.checked_rem(factor)? == 0;
                Some(ctx.constant(multiple.checked_div(factor).filter(|_| is_exact)?))
            }
            (Some(_), None) => None,
            (None, _) if multiple == factor => Some(ctx.constant(1)),
            (None, _) => {
                if let Node::Mul(lhs, rhs) = ctx.node(multiple)
                    && (lhs == factor || rhs == factor)
                {
                    return Some(if lhs == factor { rhs } else { lhs });
                }
                let quotient = self.simplifier.simplify(ctx.floor_div(multiple, factor));
                let rest = ctx.sub(ctx.mul(quotient, factor), multiple);
                let rest = self.simplifier.simplify(rest);
                (ctx.as_constant(rest) == Some(0)).then_some(quotient)
            }
        }
    }

    /// A product as one of what is not known and one of what is.
    fn split_product(&self, product: Expr) -> (Expr, Expr) {
        let ctx = self.ctx;
        let mut open = vec![product];
        let (mut unknown, mut known) = (ctx.constant(1), ctx.constant(1));
        while let Some(expr) = open.pop() {
            match ctx.node(expr) {
                Node::Mul(lhs, rhs) => open.extend([lhs, rhs]),
                _ if self.express(expr).is_some() => known = ctx.mul(known, expr),
                _ => unknown = ctx.mul(unknown, expr),
            }
        }
        (unknown, known)
    }

    /// The factors of a product that are known and no constants, and multiples of them that divide it, too.
    fn symbolic_factors(&self, product: Expr) -> Vec<Expr> {
        let ctx = self.ctx;
        let mut open = vec![product];
        let (mut factors, mut constant) = (Vec::new(), ctx.constant(1));
        while let Some(expr) = open.pop() {
            if let Some(factor) = ctx.as_constant(expr) {
                constant = ctx.mul(constant, ctx.constant(factor.saturating_abs()));
            } else if let Node::Mul(lhs, rhs) = ctx.node(expr)
                && [lhs, rhs].into_iter().any(|it| self.express(it).is_none())
            {
                open.extend([lhs, rhs]);
            } else if self.express(expr).is_some() {
                factors.push(expr);
            }
        }
        factors.extend(factors.iter().copied().reduce(|lhs, rhs| ctx.mul(lhs, rhs)));
        let multiples = factors.iter().map(|&factor| ctx.mul(factor, constant));
        let multiples: Vec<Expr> = multiples.collect();
        factors.extend(multiples);
        factors
    }
}
