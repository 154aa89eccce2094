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
//!   7]`, gives each: `t == y floordiv 8`, `u == y mod 8`.
//! - Quotient and remainder give the number: `x == c*(x floordiv c) + x mod c`, for a constant `c`. This undoes
//!   reshapes and the chains of them.
//! - A remainder gives a number that takes no more values than the divisor has remainders.
//! - A constraint to one value is one more equation, which undoes strided slices.
//!
//! On the image these equations follow from each other, so that the solution is right there; the
//! image is where the solution lies in the old domain and the map leads from it back to `y`. What follows
//! from the `bounds` of the results, which are symbolic where sizes are, is left out. That the inverse has
//! 64-bit values is a constraint where no other says so, except over runtime variables. The image of an
//! empty domain is empty, whatever the map is.
//!
//! These are the equations of maps that move elements: transpositions, reshapes, reversals and slices. Others
//! are not solved, such as linear systems, minima and maxima, products, and strides that are symbols.

mod bounds;
mod collision;
mod solver;

use std::cell::Cell;

use crate::evaluator::Values;
use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::interval::Interval;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{Constraint, IndexingMap, VarIntervals, Variable};
use crate::prove::Prover;
use crate::simplify::Simplifier;
use crate::text::default_name;
use crate::value_range::with_quotients;
use bounds::{Bounds, wide_interval, written_out};
use collision::collision;
use solver::Solver;

/// The most constraints of an inverse that are compared with the others.
const MAX_IMPLIED: usize = 16;
/// The terms of rows that are touched for each of them.
const MAX_WORK: usize = 1 << 14;

/// The most work to solve the equations of a map.
const MAX_SOLVING: usize = 1 << 24;

/// What is left of the work to solve equations, in expressions and terms that are looked at.
struct Work(Cell<usize>);

impl Work {
    /// Takes so much of it, or all that is left, which is not enough.
    fn spend(&self, amount: usize) -> Option<()> {
        let left = self.0.get().checked_sub(amount);
        self.0.set(left.unwrap_or(0));
        left.map(|_| ())
    }

    fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

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
    /// The equations could not be solved for this variable, or not with the work that one map is worth.
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
    ///     "(d0) -> ((d0 - 3) / 7), domain: d0 in [3, 17], d0 mod 7 in [3, 3]"
    /// );
    /// # Ok::<(), tc_ir::ParseError>(())
    /// ```
    pub fn inverse(&self, ctx: &Context) -> Result<IndexingMap, InverseError> {
        if !self.ranges.is_empty() {
            return Err(InverseError::RangeVariables(self.ranges.len()));
        }
        // In a context of its own, since the order in which expressions are made decides what is tried first.
        let own = Context::new();
        let inverse = self.in_context(ctx, &own).inverse_in(&own)?;
        Ok(inverse.in_context(&own, ctx))
    }

    /// [`inverse`](Self::inverse) of a map without range variables, in its own context.
    fn inverse_in(&self, ctx: &Context) -> Result<IndexingMap, InverseError> {
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
        let solution =
            map.solution(ctx).map_err(|unsolved| collision(ctx, self, &map, &unsolved))?;
        let at_solution = |var: Var| match var {
            Var::Dim(i) => solution.get(i as usize).copied(),
            _ => None,
        };
        let mut bounds = Bounds::new(ctx, &map);
        for (variable, &result) in inverse.dims.iter_mut().zip(&map.results) {
            *variable = bounds.of(result);
        }
        let rename = |expr: Expr| {
            ctx.substitute(expr, &|var| match var {
                Var::Range(i) => Some(ctx.dim(i)),
                _ => None,
            })
        };
        let has_symbols = !map.runtimes.is_empty();
        let mut symbolic = has_symbols.then(|| SymbolicConstraints::new(ctx, &inverse));
        for Constraint { expr, interval } in image_constraints(ctx, &map, &solution) {
            let expr = rename(ctx.substitute(expr, &at_solution));
            let constraint = Some(Constraint { expr, interval });
            let open = symbolic.as_mut().map_or(constraint, |it| it.open(constraint?));
            inverse.constraints.extend(open);
        }
        inverse.results = solution.iter().map(|&expr| rename(expr)).collect();
        let overflows = overflows(ctx, &map, &inverse);
        inverse.constraints.extend(overflows);
        inverse.sort_constraints(ctx);
        inverse.simplify(ctx);
        inverse.drop_implied(ctx);
        Ok(inverse)
    }

    /// Whether [`inverse`](Self::inverse) finds an inverse: to make that, or to show that there is none, takes
    /// longer.
    pub fn has_inverse(&self, ctx: &Context) -> bool {
        let own = Context::new();
        let mut map = self.in_context(ctx, &own);
        map.simplify(&own);
        self.ranges.is_empty() && (map.is_known_empty(&own) || map.solution(&own).is_ok())
    }

    /// The dimension variables over results, or those that the equations could not be solved for.
    fn solution(&self, ctx: &Context) -> Result<Vec<Expr>, Vec<Var>> {
        let work = Work(Cell::new(MAX_SOLVING));
        let solution = solution(ctx, self, &work)?;
        // What is deep is looked at once for each level above.
        let parts = solution.iter().zip(self.uses(ctx)).map(|(&value, uses)| {
            let nodes = ctx.topological(&[value]).len();
            nodes.saturating_mul(levels(ctx, value)).saturating_mul(uses + 1)
        });
        let parts = parts.fold(0, usize::saturating_add);
        let all = || (0..).map(Var::Dim).take(self.dims.len()).collect();
        work.spend(parts).map(|()| solution).ok_or_else(all)
    }

    /// How many results and constraints each dimension variable occurs in.
    fn uses(&self, ctx: &Context) -> Vec<usize> {
        let mut uses = vec![0; self.dims.len()];
        let constraints = self.constraints.iter().map(|constraint| constraint.expr);
        for expr in self.results.iter().copied().chain(constraints) {
            for var in ctx.vars(expr) {
                if let Var::Dim(number) = var
                    && let Some(uses) = uses.get_mut(number as usize)
                {
                    *uses += 1;
                }
            }
        }
        uses
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

/// How deep operations nest, where a sum is one.
fn levels(ctx: &Context, expr: Expr) -> usize {
    ctx.fold_value(expr, |_, node, operands: Option<(&usize, &usize)>| match (node, operands) {
        (_, None) => 0,
        (Node::Add(..), Some((&lhs, &rhs))) => lhs.max(rhs),
        (_, Some((&lhs, &rhs))) => lhs.max(rhs) + 1,
    })
}

/// What the solution satisfies on the image alone: it lies in the domain, and the map leads from it back.
fn image_constraints(ctx: &Context, map: &IndexingMap, solution: &[Expr]) -> Vec<Constraint> {
    let mut constraints = map.constraints.clone();
    for (var, variable) in map.vars().filter(|(var, _)| matches!(var, Var::Dim(_))) {
        let expr = ctx.var(var);
        if let Some(interval) = variable.constant_interval(ctx) {
            constraints.push(Constraint { expr, interval });
            continue;
        }
        for expr in variable.distances(ctx, expr).into_iter().flatten() {
            constraints.push(Constraint { expr, interval: Interval::NON_NEGATIVE });
        }
    }
    let quotients = ExactQuotients::new(ctx, map, solution);
    for (i, &result) in (0..).zip(&map.results) {
        let image = ctx.var(image(i));
        if let Some(divisible) = quotients.that_give(result, image) {
            constraints.extend(divisible);
            continue;
        }
        let expr = ctx.sub(result, image);
        constraints.push(Constraint { expr, interval: Interval::point(0) });
    }
    constraints
}

/// That the results of an inverse have 64 bits, as the variables of the map, where these have no bounds that
/// say so. What depends on runtime variables is left out.
fn overflows(ctx: &Context, map: &IndexingMap, inverse: &IndexingMap) -> Vec<Constraint> {
    let intervals = inverse.intervals(ctx);
    let overflow = |(variable, &result): (&Variable, &Expr)| {
        if ctx.vars(result).iter().any(|var| matches!(var, Var::Runtime(_))) {
            return None;
        }
        let wide = wide_interval(ctx, result, &intervals);
        let [lo, hi] = wide.unwrap_or([i128::MIN, i128::MAX]);
        // A bound at an end of 64 bits is none.
        let is_bound = |bound: Option<Expr>, end: i64| {
            bound.is_some_and(|bound| ctx.as_constant(bound) != Some(end))
        };
        let is_below = lo < i64::MIN.into() && !is_bound(variable.lower, i64::MIN);
        let is_above = i128::from(i64::MAX) < hi && !is_bound(variable.upper, i64::MAX);
        // 2*(2^62 - 1) + 1 == 2^63 - 1
        let lo = if is_below { i64::MIN / 2 } else { i64::MIN };
        let hi = if is_above { i64::MAX / 2 } else { i64::MAX };
        let expr = ctx.floor_div(result, ctx.constant(2));
        (is_below || is_above).then_some(Constraint { expr, interval: Interval::new(lo, hi) })
    };
    map.dims.iter().zip(&inverse.results).filter_map(overflow).collect()
}

/// What the bounds of a map say about constraints over its runtime variables, of which the simplifier asks
/// the prover only a few questions.
struct SymbolicConstraints<'c> {
    ctx: &'c Context,
    prover: Prover<'c>,
    simplifier: Simplifier<'c>,
    intervals: VarIntervals,
}

impl<'c> SymbolicConstraints<'c> {
    fn new(ctx: &'c Context, map: &IndexingMap) -> Self {
        Self {
            ctx,
            prover: Prover::for_domain(ctx, map),
            simplifier: Simplifier::for_domain(ctx, map),
            intervals: map.intervals(ctx),
        }
    }

    /// What is left of a constraint: the shorter of it and of it written out, which may cancel more.
    fn open(&mut self, constraint: Constraint) -> Option<Constraint> {
        let ctx = self.ctx;
        let Constraint { expr, interval } = constraint;
        if !ctx.vars(expr).iter().any(|var| matches!(var, Var::Runtime(_))) {
            return Some(constraint);
        }
        let quotients = with_quotients(ctx, expr, &self.intervals);
        let [lo, hi] = [interval.lo, interval.hi].map(|end| ctx.constant(end));
        let holds = (interval.lo == i64::MIN || self.prover.shows_at_most(lo, quotients))
            && (interval.hi == i64::MAX || self.prover.shows_at_most(quotients, hi));
        if holds {
            return None;
        }
        let simplifier = &mut self.simplifier;
        let simplified = simplifier.simplify(expr);
        let other = written_out(ctx, quotients).map(|other| simplifier.simplify(other));
        let other = other.filter(|&other| {
            ctx.cost(other) < ctx.cost(simplified) && simplifier.overflows_no_more(other, expr)
        });
        Some(Constraint { expr: other.unwrap_or(simplified), interval })
    }
}

/// The dimension variables over results, or those that the equations of a map could not be solved for.
fn solution(ctx: &Context, map: &IndexingMap, work: &Work) -> Result<Vec<Expr>, Vec<Var>> {
    let mut solver = Solver::new(ctx, map, work);
    solver.solve();
    let vars = || (0..).take(map.dims.len());
    let values: Vec<Option<Expr>> = vars().map(|number| solver.express(ctx.dim(number))).collect();
    let unsolved = vars().zip(&values).filter(|it| it.1.is_none());
    let unsolved: Vec<Var> = unsolved.map(|(number, _)| Var::Dim(number)).collect();
    if unsolved.is_empty() { Ok(values.into_iter().flatten().collect()) } else { Err(unsolved) }
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

#[cfg(test)]
mod tests;
