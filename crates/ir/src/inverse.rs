//! Inverses of indexing maps.
//!
//! The inverse leads from the results of a map back to its dimension variables. Its domain is the
//! image of the map: constraints of it say which results there are.
//!
//! The method solves the equations `e_i(d) == y_i` for the variables `d`, from what is known so far
//! to what follows:
//!
//! - `a*t + b == y` gives the term `t == (y - b) / a`.
//! - A sum whose terms take disjoint digits of the result, such as `8*t + u == y` with `u in [0,
//!   7]`, gives each: `t == y floordiv 8`, `u == y mod 8`. With a symbolic stride `N`, the simplifier
//!   says whether dividing by it separates the terms.
//! - Quotient and remainder give the number: `x == c*(x floordiv c) + x mod c`. This undoes
//!   reshapes and the chains of them.
//! - A remainder gives a number that takes no more values than the divisor has remainders.
//! - Linear systems, and what grows or falls with one variable: minima, maxima and sums of a
//!   variable and its quotient (`monotone`).
//! - Remainders of sums, and of one number by several divisors (`residues`).
//! - A constraint to one value is one more equation, which undoes strided slices.
//!
//! On the image these equations follow from each other, so that the solution is right there; the
//! image is where the solution lies in the old domain and the map leads from it back to `y`. Where
//! a linear system was solved, it does where the divisors divide. The image of an empty domain is empty,
//! whatever the map is.
//! Products of dimension variables are not solved, nor what neither grows nor falls.

mod collision;
mod monotone;
mod residues;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::evaluator::Values;
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::interval::Interval;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{Constraint, IndexingMap, Variable};
use crate::prove::{Prover, Verdict};
use crate::simplify::Simplifier;
use crate::text::default_name;
use collision::collision;
use monotone::Sum;

/// The most equations that are looked at, beside as many for each result and constraint.
const MAX_EQUATIONS: usize = 512;
/// How many equations of each result and constraint are looked at.
const MAX_EQUATIONS_EACH: usize = 4;
/// The most constraints of an inverse that are compared with the others.
const MAX_IMPLIED: usize = 16;
/// The terms of rows that are touched for each of them.
const MAX_WORK: usize = 1 << 14;
/// How often the equations are taken as a linear system.
const MAX_SYSTEMS: u32 = 4;

/// Why a map has no inverse here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InverseError {
    /// The map has range variables: one element leads to several.
    #[error(
        "expected a map without range variables to invert, found {0} of them; convert them to \
         dimension variables first"
    )]
    RangeVariables(usize),
    /// Two points lead to the same results.
    #[error(
        "expected an injective map to invert, found the same results at ({}) and ({}); restrict the \
         domain to one of such points, or add a result that tells them apart",
        .0[0], .0[1]
    )]
    NotInjective(Box<[Values; 2]>),
    /// The equations could not be solved for this variable.
    #[error(
        "the results could not be solved for {}, although no two points with the same results were \
         found; invert the steps that the map is composed of, and compose their inverses",
        default_name(*.0)
    )]
    Unsolved(Var),
}

impl IndexingMap {
    /// The inverse of a map without range variables; see the [module](crate::inverse) text. Where the
    /// domain is known to be empty, the inverse is known to be empty.
    ///
    /// # Errors
    /// There is none, or it was not found.
    ///
    /// ```
    /// use tc_ir::{Context, IndexingMap};
    /// let ctx = Context::new();
    /// let reshape = "(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]";
    /// let inverse = IndexingMap::parse(&ctx, reshape)?.inverse(&ctx).unwrap();
    /// assert_eq!(
    ///     inverse.display(&ctx).to_string(),
    ///     "(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]"
    /// );
    /// let slice = "(d0) -> (d0 * 7 + 3), domain: d0 in [0, 2]";
    /// let inverse = IndexingMap::parse(&ctx, slice)?.inverse(&ctx).unwrap();
    /// assert_eq!(
    ///     inverse.display(&ctx).to_string(),
    ///     "(d0) -> ((d0 - 3) / 7), domain: d0 in [3, 17], (d0 + 4) mod 7 in [0, 0]"
    /// );
    /// # Ok::<(), tc_ir::ParseError>(())
    /// ```
    pub fn inverse(&self, ctx: &Context) -> Result<IndexingMap, InverseError> {
        if !self.ranges.is_empty() {
            return Err(InverseError::RangeVariables(self.ranges.len()));
        }
        let mut map = self.clone();
        map.simplify(ctx);
        let mut inverse = IndexingMap {
            dims: vec![Variable::default(); map.results.len()],
            runtimes: map.runtimes.clone(),
            results: vec![ctx.constant(0); map.dims.len()],
            ..IndexingMap::default()
        };
        if map.is_known_empty(ctx) {
            inverse.set_known_empty(ctx);
            return Ok(inverse);
        }
        let mut solver = Solver::new(ctx, &map);
        solver.solve();
        let solution: Option<Vec<Expr>> =
            (0..map.dims.len()).zip(0..).map(|(_, i)| solver.solved(Var::Dim(i))).collect();
        let Some(solution) = solution else {
            let unsolved = (0..map.dims.len()).zip(0..).map(|(_, i)| Var::Dim(i));
            let unsolved: Vec<Var> = unsolved.filter(|&var| solver.solved(var).is_none()).collect();
            return Err(collision(ctx, &map, &unsolved));
        };
        let at_solution = |var: Var| match var {
            Var::Dim(i) => solution.get(i as usize).copied(),
            _ => None,
        };
        for (variable, &result) in inverse.dims.iter_mut().zip(&map.results) {
            *variable = match ctx.as_var(result).and_then(|var| map.variable(var)) {
                Some(same) => Variable { name: None, ..same.clone() },
                None => Variable::bounded(ctx, map.range_of(ctx, result).interval),
            };
        }
        let mut constraints = map.constraints.clone();
        for (var, variable) in map.vars().filter(|(var, _)| matches!(var, Var::Dim(_))) {
            let expr = ctx.var(var);
            if let Some(interval) = variable.constant_interval(ctx) {
                constraints.push(Constraint { expr, interval });
                continue;
            }
            let distances = [
                variable.lower.map(|lower| ctx.sub(expr, lower)),
                variable.upper.map(|upper| ctx.sub(upper, expr)),
            ];
            for expr in distances.into_iter().flatten() {
                constraints.push(Constraint { expr, interval: Interval::NON_NEGATIVE });
            }
        }
        let quotients = ExactQuotients::new(ctx, &map, &solution);
        for (i, &result) in (0..).zip(&map.results) {
            let image = ctx.var(image(i));
            if let Some(divisible) = quotients.that_give(result, image) {
                constraints.extend(divisible);
                continue;
            }
            let expr = ctx.sub(result, image);
            constraints.push(Constraint { expr, interval: Interval::point(0) });
        }
        let rename = |expr: Expr| {
            ctx.substitute(expr, &|var| match var {
                Var::Range(i) => Some(ctx.dim(i)),
                _ => None,
            })
        };
        // The simplifier asks the prover only where bounds are symbolic; here they no longer are.
        let prover = Prover::for_domain(ctx, &inverse);
        for Constraint { expr, interval } in constraints {
            let expr = rename(ctx.substitute(expr, &at_solution));
            let holds =
                interval == Interval::NON_NEGATIVE && prover.nonnegative(expr) == Verdict::Proved;
            if !holds {
                inverse.constraints.push(Constraint { expr, interval });
            }
        }
        inverse.results = solution.iter().map(|&expr| rename(expr)).collect();
        inverse.sort_constraints(ctx);
        inverse.simplify(ctx);
        inverse.drop_implied(ctx);
        Ok(inverse)
    }

    /// Drops constraints that follow from the others and the bounds, the longest first. Equations have
    /// to follow from the bounds alone: they are what the map is inverted by in turn.
    fn drop_implied(&mut self, ctx: &Context) {
        let mut open: Vec<Constraint> = self.constraints.clone();
        open.sort_by_key(|constraint| std::cmp::Reverse(ctx.cost(constraint.expr)));
        let before = self.constraints.len();
        for constraint in open.into_iter().take(MAX_IMPLIED) {
            let mut rest = self.clone();
            rest.constraints.retain(|other| *other != constraint);
            let others = rest.constraints.clone();
            if constraint.interval.as_point().is_some() {
                rest.constraints.clear();
            }
            let mut domain = LinearDomain::new(ctx, &rest);
            domain.deny(&[(constraint.expr, constraint.interval)]);
            if domain.solve(&mut { MAX_WORK }) == LinearAnswer::Empty {
                self.constraints = others;
            }
        }
        if self.constraints.len() < before {
            self.simplify(ctx);
        }
    }
}

/// The variable that stands for a result while equations are solved: the map has no range
/// variables, so that theirs are free.
fn image(number: u32) -> Var {
    Var::Range(number)
}

/// The variables whose solutions are quotients that leave nothing over on the image.
struct ExactQuotients<'c> {
    ctx: &'c Context,
    /// By variable: the numerator over results, and the divisor.
    quotients: Vec<Option<(Expr, i64)>>,
}

impl<'c> ExactQuotients<'c> {
    fn new(ctx: &'c Context, map: &IndexingMap, solution: &[Expr]) -> Self {
        // With the results of the map, the numerator is that multiple of the variable. Both are
        // divided by what they have in common.
        let quotient = |(number, &value): (u32, &Expr)| {
            let (numerator, divisor) = match ctx.node(value) {
                Node::FloorDiv(numerator, divisor) => (numerator, ctx.as_constant(divisor)?),
                _ => (value, 1),
            };
            let at_results = ctx.substitute(numerator, &|var| match var {
                Var::Range(i) => map.results.get(i as usize).copied(),
                _ => None,
            });
            let multiple = ctx.mul(ctx.dim(number), ctx.constant(divisor));
            let is_exact = is_zero(ctx, ctx.sub(at_results, multiple));
            let whole = ctx.linear_terms(numerator).filter(|_| divisor != 0 && is_exact)?;
            let factors = whole.terms.iter().map(|term| term.1).chain([whole.constant, divisor]);
            let common = factors.fold(0, |common, factor| gcd(common, factor.unsigned_abs()));
            let common = i64::try_from(common).ok()?;
            let mut reduced = ctx.constant(whole.constant / common);
            for (term, factor) in whole.terms {
                reduced = ctx.add(reduced, ctx.mul(term, ctx.constant(factor / common)));
            }
            Some((reduced, divisor / common))
        };
        Self { ctx, quotients: (0..).zip(solution).map(quotient).collect() }
    }

    /// The constraints under which a linear result at the solution is the given value: that the
    /// divisors divide. `None` where it may be another one.
    fn that_give(&self, result: Expr, value: Expr) -> Option<Vec<Constraint>> {
        let ctx = self.ctx;
        let linear = ctx.linear_terms(result)?;
        let mut used = Vec::with_capacity(linear.terms.len());
        let mut scale = 1_i64;
        for (term, factor) in linear.terms {
            let Some(Var::Dim(number)) = ctx.as_var(term) else { return None };
            let (numerator, divisor) = (*self.quotients.get(number as usize)?)?;
            let common = gcd(scale.unsigned_abs(), divisor.unsigned_abs());
            scale = scale.checked_mul(divisor.checked_abs()? / i64::try_from(common).ok()?)?;
            used.push((numerator, divisor, factor));
        }
        let rest = ctx.sub(ctx.constant(linear.constant), value);
        let mut sum = ctx.mul(rest, ctx.constant(scale));
        for &(numerator, divisor, factor) in &used {
            let factor = factor.checked_mul(scale / divisor)?;
            sum = ctx.add(sum, ctx.mul(numerator, ctx.constant(factor)));
        }
        let divisible = |(numerator, divisor, _): (Expr, i64, i64)| Constraint {
            expr: ctx.modulo(numerator, ctx.constant(divisor)),
            interval: Interval::point(0),
        };
        is_zero(ctx, sum).then(|| used.into_iter().map(divisible).collect())
    }
}

/// Whether the terms of a sum cancel.
fn is_zero(ctx: &Context, sum: Expr) -> bool {
    ctx.linear_terms(sum).is_some_and(|sum| sum.terms.is_empty() && sum.constant == 0)
}

/// The equations between what is over dimension variables and what is over results.
struct Solver<'c> {
    ctx: &'c Context,
    simplifier: Simplifier<'c>,
    /// Sums and single terms that equal something over results.
    equations: Vec<(Expr, Expr)>,
    seen: HashSet<(Expr, Expr)>,
    max_equations: usize,
    /// Terms and what they equal.
    known: HashMap<Expr, Expr>,
}

impl<'c> Solver<'c> {
    fn new(ctx: &'c Context, map: &IndexingMap) -> Self {
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
        };
        for (i, &result) in (0..).zip(&map.results) {
            solver.add(result, ctx.var(image(i)));
        }
        for constraint in &map.constraints {
            if let Some(value) = constraint.interval.as_point() {
                solver.add(constraint.expr, ctx.constant(value));
            }
        }
        let intervals = map.intervals(ctx);
        for (var, _) in map.vars() {
            if let Some(value) = intervals.of(var).as_point() {
                solver.known.insert(ctx.var(var), ctx.constant(value));
            }
        }
        solver
    }

    fn solved(&self, var: Var) -> Option<Expr> {
        self.known.get(&self.ctx.var(var)).copied()
    }

    fn add(&mut self, lhs: Expr, rhs: Expr) {
        if self.equations.len() < self.max_equations && self.seen.insert((lhs, rhs)) {
            self.equations.push((lhs, rhs));
        }
    }

    fn solve(&mut self) {
        let mut systems = 0;
        loop {
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
            if systems < MAX_SYSTEMS {
                systems += 1;
                self.eliminate();
            }
            if before == (self.known.len(), self.equations.len()) {
                return;
            }
        }
    }

    /// What is known of `expr`: it without dimension variables.
    fn express(&self, expr: Expr) -> Option<Expr> {
        let ctx = self.ctx;
        let known =
            |expr: Expr, node: Node, operands: Option<(&Option<Expr>, &Option<Expr>)>| match (
                self.known.get(&expr),
                operands,
            ) {
                (Some(&known), _) => Some(known),
                (None, Some((&Some(lhs), &Some(rhs)))) => Some(ctx.rebuild(node, lhs, rhs)),
                (None, Some(_)) => {
                    let (quotient, offset) = self.least_quotient(expr)?;
                    Some(ctx.add(*self.known.get(&quotient)?, ctx.constant(offset)))
                }
                (None, None) => (!matches!(node, Node::Var(Var::Dim(_)))).then_some(expr),
            };
        let folded = ctx.fold(&[expr], |expr, node, operands| {
            Ok::<_, std::convert::Infallible>(known(expr, node, operands))
        });
        match folded {
            Ok(exprs) => exprs[0],
            Err(never) => match never {},
        }
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
                self.solve_extremum(&unknown, rest);
                self.solve_quotient(&unknown, rest);
                self.split_digits(unknown.clone(), rest);
                self.isolate(&unknown, rest);
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
        let offset = ctx.linear_terms(value)?.constant.div_euclid(by);
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
        // x*f == value, for a factor f over runtime variables
        if let Node::Mul(..) = ctx.node(term) {
            self.divide_by_symbols(&[(term, 1)], value);
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
            if !interval.is_bounded() || interval.is_empty() {
                return None;
            }
            let from = if 0 < factor { interval.lo } else { interval.hi };
            least = least.checked_add(i128::from(factor) * i128::from(from))?;
            let extent = i128::from(interval.hi) - i128::from(interval.lo);
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

    /// Divides `sum == value` by the symbolic factor of a term, where that takes the sum apart.
    fn divide_by_symbols(&mut self, sum: &[(Expr, i64)], value: Expr) {
        let ctx = self.ctx;
        let is_symbol = |expr: Expr| {
            let vars = ctx.vars(expr);
            !vars.is_empty() && vars.iter().all(|var| matches!(var, Var::Runtime(_)))
        };
        for &(term, _) in sum {
            let Node::Mul(lhs, rhs) = ctx.node(term) else { continue };
            let Some(symbol) = [lhs, rhs].into_iter().find(|&factor| is_symbol(factor)) else {
                continue;
            };
            // Where it is zero, the quotient says nothing.
            if self.simplifier.interval_of(symbol).contains(0) {
                continue;
            }
            let terms = sum.iter().map(|&(term, factor)| ctx.mul(term, ctx.constant(factor)));
            let Some(whole) = terms.reduce(|lhs, rhs| ctx.add(lhs, rhs)) else { continue };
            let whole = self.simplifier.simplify(whole);
            let quotient = self.simplifier.simplify(ctx.floor_div(whole, symbol));
            let remainder = self.simplifier.simplify(ctx.modulo(whole, symbol));
            let taken_apart = |expr: Expr| {
                let parts = ctx.topological(&[expr]);
                parts
                    .iter()
                    .all(|&part| ctx.node(part).operands().is_none_or(|(_, by)| by != symbol))
            };
            if taken_apart(quotient) && taken_apart(remainder) {
                self.add(quotient, ctx.floor_div(value, symbol));
                self.add(remainder, ctx.modulo(value, symbol));
            }
        }
    }

    /// `x == c*(x floordiv c) + x mod c`, where both are known.
    fn join_digits(&mut self) {
        let ctx = self.ctx;
        let mut divisions = BTreeSet::new();
        for &term in self.known.keys() {
            if let Node::FloorDiv(value, divisor) | Node::Mod(value, divisor) = ctx.node(term)
                && let Some(divisor) = ctx.as_constant(divisor).filter(|&divisor| 1 < divisor)
            {
                divisions.insert((value, divisor));
            }
        }
        let divisors: BTreeSet<i64> = divisions.iter().map(|&(_, divisor)| divisor).collect();
        for (value, divisor) in divisions {
            if self.express(value).is_some() {
                continue;
            }
            let by = ctx.constant(divisor);
            let given = ctx.floor_div(value, by);
            let quotient = self.simplifier.simplify(given);
            if let Some(quotient) = self.express(quotient).or_else(|| self.express(given))
                && let Some(remainder) = self.remainder(value, divisor, &divisors)
            {
                self.add(value, ctx.add(ctx.mul(quotient, by), remainder));
            }
        }
    }

    /// `x mod c`, digit by digit: `x mod (f*g) == x mod f + f*((x floordiv f) mod g)`.
    fn remainder(&mut self, value: Expr, modulus: i64, divisors: &BTreeSet<i64>) -> Option<Expr> {
        let ctx = self.ctx;
        let (mut value, mut modulus, mut unit) = (value, modulus, 1_i64);
        let mut sum = ctx.constant(0);
        loop {
            let whole = self.simplifier.simplify(ctx.modulo(value, ctx.constant(modulus)));
            let least = self.least_remainder(value, modulus);
            if let Some(whole) = self.express(whole).or_else(|| self.express(least?)) {
                return Some(ctx.add(sum, ctx.mul(whole, ctx.constant(unit))));
            }
            let factors = divisors.range(..modulus).filter(|&&factor| modulus % factor == 0);
            let (factor, digit) = factors.into_iter().find_map(|&factor| {
                let digit = ctx.modulo(value, ctx.constant(factor));
                let digit = self.simplifier.simplify(digit);
                Some((factor, self.express(digit)?))
            })?;
            sum = ctx.add(sum, ctx.mul(digit, ctx.constant(unit)));
            value = self.simplifier.simplify(ctx.floor_div(value, ctx.constant(factor)));
            modulus /= factor;
            unit = unit.checked_mul(factor)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inverse(text: &str) -> String {
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        match map.inverse(&ctx) {
            Ok(inverse) => inverse.display(&ctx).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn documented_pairs() {
        // The output-to-input maps of XLA's documentation and their input-to-output maps.
        for (map, expected) in [
            (
                "(d0, d1, d2, d3) -> (d0, d3, d1, d2), domain: d0 in [0, 2], d1 in [0, 5], \
                 d2 in [0, 127], d3 in [0, 12287]",
                "(d0, d1, d2, d3) -> (d0, d2, d3, d1), domain: d0 in [0, 2], d1 in [0, 12287], \
                 d2 in [0, 5], d3 in [0, 127]",
            ),
            (
                "(d0, d1) -> (-d0 + 16, d1), domain: d0 in [0, 16], d1 in [0, 8]",
                "(d0, d1) -> (-d0 + 16, d1), domain: d0 in [0, 16], d1 in [0, 8]",
            ),
            (
                "(d0, d1, d2) -> (d0 * 2 + d1 / 2, d2 + (d1 mod 2) * 4), \
                 domain: d0 in [0, 1], d1 in [0, 3], d2 in [0, 3]",
                "(d0, d1) -> (d0 / 2, d1 / 4 + (d0 mod 2) * 2, d1 mod 4), \
                 domain: d0 in [0, 3], d1 in [0, 7]",
            ),
            (
                "(d0, d1, d2) -> (d0 / 8, d0 mod 8, d1 * 4 + d2), \
                 domain: d0 in [0, 31], d1 in [0, 2], d2 in [0, 3]",
                "(d0, d1, d2) -> (d0 * 8 + d1, d2 / 4, d2 mod 4), \
                 domain: d0 in [0, 3], d1 in [0, 7], d2 in [0, 11]",
            ),
            (
                "(d0, d1) -> ((d0 - 1) / 2, d1 - 4), domain: d0 in [1, 7], d1 in [4, 7], \
                 (d0 - 1) mod 2 in [0, 0]",
                "(d0, d1) -> (d0 * 2 + 1, d1 + 4), domain: d0 in [0, 3], d1 in [0, 3]",
            ),
        ] {
            assert_eq!(inverse(map), expected);
        }
    }

    #[test]
    fn many_dimensions_are_inverted() {
        let ctx = Context::new();
        let dims: Vec<Variable> = vec![Variable::bounded(&ctx, Interval::new(0, 9)); 2000];
        let results = (0..2000).rev().map(|i| ctx.add(ctx.dim(i), ctx.constant(i.into())));
        let map = IndexingMap { dims, results: results.collect(), ..IndexingMap::default() };
        let inverse = map.inverse(&ctx).expect("a permutation");
        assert_eq!(inverse.results[0], ctx.dim(1999));
    }

    #[test]
    fn an_empty_domain_has_an_empty_image() {
        assert_eq!(inverse("(d0) -> (0), domain: d0 in [3, 2]"), "KNOWN EMPTY");
        let large = "(d0, d1) -> (0), domain: d0 in [0, 999999], d1 in [0, 999999], \
                     d0 + d1 in [7, 7], d0 - d1 in [0, 0]";
        assert_eq!(inverse(large), "KNOWN EMPTY");
    }

    #[test]
    fn symbolic_strides_are_undone() {
        assert_eq!(
            inverse(
                "(i, j){M, N} -> (i * N + j), domain: i in [0, M - 1], j in [0, N - 1], \
                 M in [1, 1000], N in [1, 1000]"
            ),
            "(d0){M, N} -> (d0 / N, d0 mod N), domain: d0 in [0, 999999], M in [1, 1000], \
             N in [1, 1000], M - d0 / N in [1, inf]"
        );
    }

    #[test]
    fn errors_say_why() {
        assert_eq!(
            inverse("(d0)[s0] -> (d0 + s0)"),
            "expected a map without range variables to invert, found 1 of them; convert them to \
             dimension variables first"
        );
        assert_eq!(
            inverse("(d0, d1) -> (d0 / 4, d1), domain: d0 in [4, 7], d1 in [5, 6]"),
            "expected an injective map to invert, found the same results at (d0 = 4, d1 = 5) and \
             (d0 = 5, d1 = 5); restrict the domain to one of such points, or add a result that tells \
             them apart"
        );
        let ctx = Context::new();
        let error = |text: &str| {
            IndexingMap::parse(&ctx, text).expect("a map").inverse(&ctx).expect_err("no inverse")
        };
        let at = |d0| Values { dims: vec![d0], ..Values::default() };
        assert_eq!(
            error("(d0) -> (d0 / 2), domain: d0 in [0, 9]"),
            InverseError::NotInjective(Box::new([at(0), at(1)]))
        );
        for text in [
            "(d0) -> (d0 mod 1000), domain: d0 in [0, 1000000]",
            "(d0) -> (d0 mod 1000, (d0 * 7) mod 999), domain: d0 in [0, 999000]",
            "(d0, d1) -> (d0), domain: d0 in [0, 1000000], d1 in [0, 1000000]",
            "(d0, d1) -> (d0 * 999 + d1 * 1000), domain: d0 in [0, 1000], d1 in [0, 999]",
            "(d0, d1, d2) -> (d0 + d1, d1 + d2, d0 * 2 + d1 * 3 + d2), \
             domain: d0 in [0, 1000], d1 in [0, 1000], d2 in [0, 1000]",
        ] {
            assert!(matches!(error(text), InverseError::NotInjective(..)), "{text}");
        }
        assert_eq!(
            error("(d0) -> (d0 * d0), domain: d0 in [0, 1000000]"),
            InverseError::Unsolved(Var::Dim(0))
        );
    }
}
