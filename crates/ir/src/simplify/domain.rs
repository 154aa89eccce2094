//! Simplification of the domain of a map, and of the map as a whole.
//!
//! Constraints are simplified under the bounds of the variables alone, never under each
//! other, so that no two of them can vanish because of each other. What they say of single
//! variables moves into the bounds, where it stays. Results are simplified under bounds and
//! constraints.

use smallvec::SmallVec;

use super::build;
use super::write::{build_sorted, is_written_sum};
use super::{MAX_ROUNDS, Simplifier};
use crate::congruence::{Congruence, Merged, gcd_and_inverse};
use crate::expr::{Context, Expr, Node, Var, checked_ceil_div, checked_floor_div, gcd};
use crate::hash::FastSet;
use crate::interval::Interval;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{ConstantBounds, Constraint, IndexingMap, VarIntervals, Variable};
use crate::period::all_values;
use crate::prove::Verdict;

/// The most points at which a constraint is tried.
const MAX_ENUMERATED: u64 = 64;
/// How often the constraints of a map are reduced, each on average.
const MAX_REDUCTIONS: usize = 64;
/// The most work to show that constraints hold everywhere.
const MAX_VACUOUS_WORK: usize = 1 << 16;
/// The fewest operators of a constraint that is tried.
const MIN_ENUMERATED_COST: u32 = 4;

/// What a constraint comes down to.
enum Reduced {
    /// It holds everywhere.
    True,
    /// It holds nowhere.
    False,
    /// It is this one, already simple.
    Simple(Constraint),
    /// It is this one, which may reduce further.
    Further(Constraint),
    /// It is these two together.
    Both(Constraint, Constraint),
}

/// What need not be simplified again.
#[derive(Default)]
struct Settled {
    /// Constraints that are simple under the bounds of the last round.
    constraints: FastSet<Constraint>,
    /// The variables whose bounds are others since.
    changed: Vec<Var>,
}

impl Settled {
    /// Whether a constraint is simple under the bounds as they are now.
    fn contains(&mut self, ctx: &Context, constraint: Constraint) -> bool {
        if !self.constraints.contains(&constraint) {
            return false;
        }
        let uses_changed =
            ctx.fold_value(constraint.expr, |_, node, operands| match (node, operands) {
                (Node::Var(var), _) => self.changed.contains(&var),
                (_, Some((&lhs, &rhs))) => lhs || rhs,
                _ => false,
            });
        !uses_changed || !self.constraints.remove(&constraint)
    }
}

impl IndexingMap {
    /// Simplifies bounds, constraints and results until nothing changes, and returns whether
    /// anything did; maps that are known to be empty are all the same. The domain stays the same
    /// set of points, except that points where a constraint has no value may join it; on it the
    /// results stay the same.
    pub fn simplify(&mut self, ctx: &Context) -> bool {
        // What the last steps do may be what the first one has undone.
        let was_empty = self.is_known_empty(ctx);
        let before = self.has_quotients(ctx).then(|| self.clone());
        let mut has_changed = self.simplify_as_given(ctx);
        let mut last: Option<IndexingMap> = None;
        for _ in 0..MAX_ROUNDS {
            // What is shorter by number, or written in another way, may be simplified back.
            let is_shorter =
                (self.is_complicated(ctx) && self.shorten_by_number(ctx)) | self.take_shortest(ctx);
            let is_new = is_shorter && last.as_ref() != Some(&*self);
            if !is_new && !self.drop_vacuous(ctx) {
                break;
            }
            last = Some(self.clone());
            self.simplify_as_given(ctx);
            has_changed = true;
        }
        !was_empty && before.map_or(has_changed, |before| *self != before)
    }

    /// Drops constraints on quotients that hold wherever the bounds do, as far as integer programs show
    /// that with little work. Returns whether there was one.
    fn drop_vacuous(&mut self, ctx: &Context) -> bool {
        let has_quotients = |constraint: &Constraint| {
            MIN_ENUMERATED_COST <= ctx.cost(constraint.expr)
                && ctx
                    .topological(&[constraint.expr])
                    .into_iter()
                    .any(|expr| ctx.node(expr).is_division())
        };
        let mut work = MAX_VACUOUS_WORK;
        let mut constraints = std::mem::take(&mut self.constraints);
        let before = constraints.len();
        constraints.retain(|constraint| {
            !has_quotients(constraint) || {
                let mut domain = LinearDomain::new(ctx, self);
                domain.deny(&[(constraint.expr, constraint.interval)]);
                domain.solve(&mut work) != LinearAnswer::Empty
            }
        });
        self.constraints = constraints;
        self.constraints.len() < before
    }

    /// [`simplify`](Self::simplify) with the variables as they are.
    pub(crate) fn simplify_as_given(&mut self, ctx: &Context) -> bool {
        if self.constraints.is_empty()
            && let Some(bounds) = self.constant_bounds(ctx)
        {
            return self.simplify_in_box(ctx, bounds);
        }
        let before = self.clone();
        let mut settled = Settled::default();
        for _ in 0..MAX_ROUNDS {
            match self.simplify_domain(ctx, &mut settled) {
                Some(true) => break,
                Some(false) => {}
                None => {
                    self.set_known_empty(ctx);
                    break;
                }
            }
        }
        // Under the bounds and constraints that stay.
        for _ in 0..MAX_ROUNDS {
            if !self.simplify_results(ctx) {
                break;
            }
        }
        if !self.is_known_empty(ctx) {
            if self.is_contradictory(ctx) {
                self.set_known_empty(ctx);
            } else if self.constraints.is_empty()
                && let Some(bounds) = self.constant_bounds(ctx)
            {
                // As it is simplified from now on.
                self.simplify_in_box(ctx, bounds);
            }
        }
        *self != before
    }

    /// [`simplify`](Self::simplify) where there are no constraints and all bounds are
    /// constants: only the results can change.
    fn simplify_in_box(&mut self, ctx: &Context, bounds: ConstantBounds) -> bool {
        if bounds == ConstantBounds::Empty {
            let before = self.clone();
            self.set_known_empty(ctx);
            return *self != before;
        }
        let mut before: Option<Vec<Expr>> = None;
        for _ in 0..MAX_ROUNDS {
            let mut simplifier: Option<Simplifier<'_>> = None;
            let (mut again, mut is_settled) = (false, true);
            for place in 0..self.results.len() {
                let result = self.results[place];
                let simplified = match ctx.node(result) {
                    Node::Const(_) => result,
                    Node::Var(_) if bounds == ConstantBounds::Free => result,
                    // A variable with one value is that value.
                    Node::Var(var) => self
                        .variable(var)
                        .and_then(|variable| variable.constant_interval(ctx)?.as_point())
                        .map_or(result, |value| ctx.constant(value)),
                    _ => match self.linear_in_box(ctx, result, bounds) {
                        Some(simplified) => simplified,
                        None => {
                            let simplifier =
                                simplifier.get_or_insert_with(|| Simplifier::for_map(ctx, self));
                            let (simplified, stays) = simplifier.simplify_once(result);
                            is_settled &= stays;
                            simplified
                        }
                    },
                };
                if simplified != result {
                    again = true;
                    before.get_or_insert_with(|| self.results.clone());
                    self.results[place] = simplified;
                }
            }
            if !again || is_settled {
                break;
            }
        }
        before.is_some_and(|before| before != self.results)
    }

    /// Whether a variable has several values.
    #[inline]
    pub(super) fn is_free(&self, ctx: &Context, var: Var, bounds: ConstantBounds) -> bool {
        bounds == ConstantBounds::Free
            || self
                .variable(var)
                .and_then(|variable| variable.constant_interval(ctx))
                .is_some_and(|bounds| bounds.as_point().is_none())
    }

    /// Whether an expression is a variable or a sum of multiples of variables, none of which is a
    /// constant, written as simplification does. A `false` leaves it open.
    #[inline]
    pub(super) fn is_simple_sum(&self, ctx: &Context, expr: Expr, bounds: ConstantBounds) -> bool {
        match ctx.node(expr) {
            Node::Var(var) => self.is_free(ctx, var, bounds),
            Node::Add(..) | Node::Mul(..) => {
                is_written_sum(ctx, expr, &|var| self.is_free(ctx, var, bounds))
            }
            _ => false,
        }
    }

    /// The normal form of a small sum of multiples of variables, none of which is a constant;
    /// `None` for other expressions.
    fn linear_in_box(&self, ctx: &Context, expr: Expr, bounds: ConstantBounds) -> Option<Expr> {
        if !matches!(ctx.node(expr), Node::Add(..) | Node::Mul(..)) {
            return None;
        }
        if self.is_simple_sum(ctx, expr, bounds) {
            return Some(expr);
        }
        let mut linear = ctx.few_linear_terms(expr)?;
        let is_free = |term| ctx.as_var(term).is_some_and(|var| self.is_free(ctx, var, bounds));
        if !linear.terms.iter().all(|&(term, _)| is_free(term)) {
            return None;
        }
        let written = build(ctx, &mut linear.terms, linear.constant);
        (ctx.cost(written) <= ctx.cost(expr)).then_some(written)
    }

    /// Bounds of a runtime variable are simplified under those of runtime variables with
    /// smaller numbers only: under each other, two of them might both lose what they say.
    fn simplify_bounds(&mut self, ctx: &Context) {
        let intervals = self.intervals(ctx);
        let symbolic: Vec<Var> = self
            .vars()
            .filter(|(_, variable)| variable.constant_interval(ctx).is_none())
            .map(|(var, _)| var)
            .collect();
        for var in symbolic {
            let intervals = &intervals;
            let mut simplifier = Simplifier::new(ctx, move |used| match var {
                Var::Runtime(_) if var <= used => Interval::ALL,
                _ => intervals.of(used),
            });
            if let Some(variable) = self.variable_mut(var) {
                variable.lower = variable.lower.map(|lower| simplifier.simplify(lower));
                variable.upper = variable.upper.map(|upper| simplifier.simplify(upper));
            }
        }
    }

    /// Simplifies the results under bounds and constraints, and returns whether one changed and may do so
    /// again.
    fn simplify_results(&mut self, ctx: &Context) -> bool {
        let intervals = self.tightened_intervals(ctx);
        if self.are_results_simple(ctx, &intervals) {
            return false;
        }
        let mut simplifier = Simplifier::for_domain_within(ctx, self, intervals.clone());
        let mut has_changed = false;
        for result in &mut self.results {
            let simplified = simplifier.simplify(*result);
            has_changed |= simplified != *result;
            *result = simplified;
        }
        has_changed && !self.are_results_simple(ctx, &intervals)
    }

    /// Whether all results are sums of variables, written as simplification does, none of which the
    /// domain makes a constant. A `false` leaves it open.
    fn are_results_simple(&self, ctx: &Context, intervals: &VarIntervals) -> bool {
        let is_sum = |expr| matches!(ctx.node(expr), Node::Var(_) | Node::Add(..) | Node::Mul(..));
        let is_point = |constraint: &Constraint| constraint.interval.as_point().is_some();
        if !self.results.iter().all(|&result| is_sum(result))
            || self.constraints.iter().any(is_point)
        {
            return false;
        }
        let is_free = |var| {
            intervals.of(var).as_point().is_none()
                && self.variable(var).is_none_or(|it| it.lower.is_none() || it.lower != it.upper)
        };
        self.results.iter().all(|&result| is_written_sum(ctx, result, &is_free))
    }

    /// Simplifies bounds and constraints. `None` when they are seen to hold nowhere; otherwise whether
    /// they are known to stay as they are when they are simplified again.
    fn simplify_domain(&mut self, ctx: &Context, settled: &mut Settled) -> Option<bool> {
        let variables = [&self.dims, &self.ranges, &self.runtimes].map(|it| it.clone());
        let constraints = self.constraints.clone();
        self.simplify_bounds(ctx);
        let are_settled = self.simplify_constraints(ctx, settled)?;
        if self.is_known_empty(ctx) {
            return None;
        }
        let same_bounds = variables.iter().eq([&self.dims, &self.ranges, &self.runtimes]);
        if !same_bounds {
            let places = (0..).map(Var::Dim).zip(&variables[0]);
            let places = places.chain((0..).map(Var::Range).zip(&variables[1]));
            let places = places.chain((0..).map(Var::Runtime).zip(&variables[2]));
            let differs = |&(var, before): &(Var, &Variable)| self.variable(var) != Some(before);
            settled.changed = places.filter(differs).map(|(var, _)| var).collect();
        }
        Some(same_bounds && (are_settled || self.constraints == constraints))
    }

    /// `None` when the constraints hold nowhere; otherwise whether they are known to stay as they
    /// are when they are simplified again under the bounds that there were.
    fn simplify_constraints(&mut self, ctx: &Context, settled: &mut Settled) -> Option<bool> {
        let mut simplifier = Simplifier::for_map(ctx, self);
        let mut open: Vec<Constraint> = self.constraints.drain(..).rev().collect();
        let mut are_settled = true;
        // What the last of them has been reduced to: what is written in the shortest way may have a
        // constant again, and so on in circles.
        let mut reduced: Vec<Constraint> = Vec::new();
        let mut reductions = MAX_REDUCTIONS.saturating_mul(open.len());
        let bounds = self.constant_bounds(ctx);
        while let Some(Constraint { expr, interval }) = open.pop() {
            if settled.contains(ctx, Constraint { expr, interval }) {
                are_settled &= self.add_simple_constraint(ctx, Constraint { expr, interval })?;
                continue;
            }
            let is_simple = bounds.is_some_and(|bounds| self.is_simple_sum(ctx, expr, bounds));
            let (expr, stays) =
                if is_simple { (expr, true) } else { simplifier.simplify_once(expr) };
            let constraint = Constraint { expr, interval };
            let found = if reductions == 0 { None } else { simplifier.reduce(constraint) };
            reductions = reductions.saturating_sub(1);
            if !matches!(found, Some(Reduced::Further(_))) {
                reduced.clear();
            }
            match found {
                Some(Reduced::True) => {}
                Some(Reduced::False) => return None,
                Some(Reduced::Further(constraint)) => {
                    if let Some(start) = reduced.iter().position(|it| *it == constraint) {
                        let circle = reduced.drain(start..);
                        self.constraints.extend(circle.min_by(|a, b| {
                            let cost = ctx.cost(a.expr).cmp(&ctx.cost(b.expr));
                            cost.then_with(|| ctx.compare(a.expr, b.expr))
                        }));
                        reduced.clear();
                        are_settled = false;
                    } else {
                        reduced.push(constraint);
                        open.push(constraint);
                    }
                }
                Some(Reduced::Both(first, second)) => open.extend([first, second]),
                Some(Reduced::Simple(constraint)) => {
                    // What two constraints say together may reduce further.
                    let known = self.constraints.iter().find(|it| it.expr == constraint.expr);
                    if stays && known.is_none() && simplifier.prover.is_none() {
                        settled.constraints.insert(constraint);
                    }
                    are_settled &= stays
                        && known.is_none_or(|known| {
                            known.interval.covers(constraint.interval)
                                || constraint.interval.covers(known.interval)
                        });
                    are_settled &= self.add_simple_constraint(ctx, constraint)?;
                }
                // Its bounds do not fit when reduced, or it has been reduced often.
                None => {
                    self.constraints.push(constraint);
                    are_settled = false;
                }
            }
        }
        self.sort_constraints(ctx);
        Some(are_settled && simplifier.prover.is_none())
    }

    /// Adds a constraint, or merges it with one that there is. `None` when both hold nowhere; otherwise whether
    /// it is there as it is given.
    fn add_simple_constraint(&mut self, ctx: &Context, constraint: Constraint) -> Option<bool> {
        let Constraint { expr, interval } = constraint;
        match ctx.node(expr) {
            Node::Var(var) => {
                let open = self.tighten_bounds_of(ctx, var, interval);
                if open != Interval::ALL {
                    self.add_constraint(ctx, expr, open);
                }
                return Some(true);
            }
            Node::Mod(value, modulus) => {
                for place in 0..self.constraints.len() {
                    match merge_remainders(ctx, constraint, self.constraints[place]) {
                        Some((_, Merged::Contradiction)) => return None,
                        Some((value, Merged::One(Congruence { modulus, remainder }))) => {
                            self.constraints.remove(place);
                            let expr = ctx.modulo(value, ctx.constant(modulus));
                            let interval = Interval::point(remainder);
                            self.add_simple_constraint(ctx, Constraint { expr, interval })?;
                            return Some(false);
                        }
                        Some((_, Merged::TooLarge)) | None => {}
                    }
                }
                if let (Some(var), Some(modulus)) = (ctx.as_var(value), ctx.as_constant(modulus)) {
                    self.tighten_to_remainders(ctx, var, modulus, interval);
                }
            }
            _ => {}
        }
        self.add_constraint(ctx, expr, interval);
        Some(true)
    }

    /// Tightens the bounds of `var` to `interval` where they are no expressions, and returns
    /// the part that is left to say.
    fn tighten_bounds_of(&mut self, ctx: &Context, var: Var, interval: Interval) -> Interval {
        let Some(variable) = self.variable_mut(var) else {
            return interval;
        };
        let mut open = interval;
        let lower = variable.lower.map_or(Some(i64::MIN), |e| ctx.as_constant(e));
        if let Some(lower) = lower {
            if lower < interval.lo {
                variable.lower = Some(ctx.constant(interval.lo));
            }
            open.lo = i64::MIN;
        }
        let upper = variable.upper.map_or(Some(i64::MAX), |e| ctx.as_constant(e));
        if let Some(upper) = upper {
            if interval.hi < upper {
                variable.upper = Some(ctx.constant(interval.hi));
            }
            open.hi = i64::MAX;
        }
        open
    }

    /// Moves the constant bounds of `var` inwards to values whose remainder lies in
    /// `remainders`.
    fn tighten_to_remainders(
        &mut self,
        ctx: &Context,
        var: Var,
        modulus: i64,
        remainders: Interval,
    ) {
        let allowed = remainders.intersect(Interval::new(0, modulus.saturating_sub(1)));
        if modulus <= 0 || allowed.is_empty() {
            return;
        }
        let Some(variable) = self.variable_mut(var) else {
            return;
        };
        if let Some(lower) = variable.lower.and_then(|lower| ctx.as_constant(lower)) {
            let remainder = lower.rem_euclid(modulus);
            let step = if remainder < allowed.lo {
                allowed.lo - remainder
            } else if allowed.hi < remainder {
                modulus - remainder + allowed.lo
            } else {
                0
            };
            if let Some(lower) = lower.checked_add(step) {
                variable.lower = Some(ctx.constant(lower));
            }
        }
        if let Some(upper) = variable.upper.and_then(|upper| ctx.as_constant(upper)) {
            let remainder = upper.rem_euclid(modulus);
            let step = if allowed.hi < remainder {
                remainder - allowed.hi
            } else if remainder < allowed.lo {
                remainder + (modulus - allowed.hi)
            } else {
                0
            };
            if let Some(upper) = upper.checked_sub(step) {
                variable.upper = Some(ctx.constant(upper));
            }
        }
    }
}

impl Simplifier<'_> {
    /// One step of reducing a constraint on a simplified expression. `None` on overflow.
    fn reduce(&mut self, constraint: Constraint) -> Option<Reduced> {
        let ctx = self.ctx;
        let Constraint { expr, interval } = constraint;
        let values = self.interval_of(expr);
        if interval.intersect(values).is_empty() {
            return Some(Reduced::False);
        }
        if interval.covers(values) {
            return Some(Reduced::True);
        }
        let linear = ctx.linear_terms(expr);
        let is_var = |&&(term, _): &&(Expr, i64)| ctx.as_var(term).is_some();
        let num_vars = linear.as_ref().map_or(0, |it| it.terms.iter().filter(is_var).count());
        // Each variable has two values or more.
        let may_be_small = num_vars <= MAX_ENUMERATED.ilog2() as usize;
        match if may_be_small { self.decided_by_points(constraint) } else { None } {
            Some(true) => return Some(Reduced::True),
            Some(false) => return Some(Reduced::False),
            None => {}
        }
        let linear = linear?;

        // x + k in [lo, hi] == x in [lo - k, hi - k]
        if linear.constant != 0 {
            return Some(Reduced::Further(Constraint {
                expr: build_sorted(ctx, &linear.terms, 0),
                interval: map_ends(interval, |end| end.checked_sub(linear.constant))?,
            }));
        }
        let content = linear.terms.iter().fold(0, |content, (_, c)| gcd(content, c.unsigned_abs()));
        let content = i64::try_from(content).ok()?;
        let leading = linear.terms.first()?.1;

        // g*x in [lo, hi] == x in [ceil(lo / g), floor(hi / g)]
        if 1 < content {
            let terms = scaled(&linear.terms, |coefficient| Some(coefficient / content))?;
            return Some(Reduced::Further(Constraint {
                expr: build_sorted(ctx, &terms, 0),
                interval: quotients(interval, content)?,
            }));
        }
        // -x in [lo, hi] == x in [-hi, -lo]; a sum starts with a positive term
        if leading < 0 {
            let terms = scaled(&linear.terms, i64::checked_neg)?;
            return Some(Reduced::Further(Constraint {
                expr: build_sorted(ctx, &terms, 0),
                interval: negated(interval)?,
            }));
        }
        if 1 < linear.terms.len() {
            if let Some(reduced) = self.drop_small_terms(&linear.terms, interval) {
                return Some(Reduced::Further(reduced));
            }
            return Some(self.reduce_symbolic(constraint));
        }
        if let Some(reduced) = self.reduce_operation(expr, interval) {
            return Some(reduced);
        }
        Some(self.reduce_symbolic(constraint))
    }

    /// Whether a constraint holds at all or at none of the points of a small box; `None` where it
    /// holds at some, has no value at one, or where there are many.
    fn decided_by_points(&self, constraint: Constraint) -> Option<bool> {
        let Constraint { expr, interval } = constraint;
        // A sum of a few variables is what intervals decide.
        let cost = self.ctx.cost(expr);
        if cost < MIN_ENUMERATED_COST && !matches!(self.ctx.node(expr), Node::Mod(..) if 1 < cost) {
            return None;
        }
        let mut verdict = None;
        let is_same = |value| {
            let holds = interval.contains(value);
            *verdict.get_or_insert(holds) == holds
        };
        let bounds = |var| (self.interval)(var);
        let decides = all_values(self.ctx, expr, bounds, MAX_ENUMERATED, is_same)?;
        verdict.filter(|_| decides)
    }

    /// `g*a + r in [lo, hi] == a in [lo', hi']` where the bounds of `a` are the same for
    /// every value of `r`.
    fn drop_small_terms(
        &mut self,
        terms: &[(Expr, i64)],
        interval: Interval,
    ) -> Option<Constraint> {
        let mut factors: Vec<i64> = terms
            .iter()
            .filter_map(|(_, c)| i64::try_from(c.unsigned_abs()).ok())
            .filter(|&factor| 1 < factor)
            .collect();
        factors.sort_unstable_by(|a, b| b.cmp(a));
        factors.dedup();
        for factor in factors.into_iter().take(super::division::MAX_FACTORS) {
            let mut kept: SmallVec<[(Expr, i64); 4]> = SmallVec::new();
            let mut rest = Interval::point(0);
            for &(term, coefficient) in terms {
                if coefficient % factor == 0 {
                    kept.push((term, coefficient / factor));
                } else {
                    rest = rest.add_multiple(self.interval_of(term), coefficient);
                }
            }
            if kept.len() == terms.len() || !rest.is_bounded() {
                continue;
            }
            let bounds = |offset: i64| {
                let shifted = map_ends(interval, |end| end.checked_sub(offset))?;
                quotients(shifted, factor)
            };
            if let (Some(low), Some(high)) = (bounds(rest.lo), bounds(rest.hi))
                && low == high
            {
                return Some(Constraint { expr: build_sorted(self.ctx, &kept, 0), interval: low });
            }
        }
        None
    }

    /// Moves a constraint on an operation to its operand; `None` when no rule applies.
    fn reduce_operation(&mut self, expr: Expr, interval: Interval) -> Option<Reduced> {
        let ctx = self.ctx;
        // The ends are infinite, or numbers that may not fit.
        let further = |expr: Expr, lo: Option<Option<i64>>, hi: Option<Option<i64>>| {
            Some(Reduced::Further(Constraint { expr, interval: interval_between(lo, hi)? }))
        };
        let (lo, hi) = (interval.lo, interval.hi);
        match ctx.node(expr) {
            // floor(x / c) in [lo, hi] == lo <= x / c < hi + 1
            Node::FloorDiv(value, divisor) => {
                let c = ctx.as_constant(divisor).filter(|&c| c != 0)?;
                let from = finite(lo, i64::MIN).map(|lo| lo.checked_mul(c));
                let to = finite(hi, i64::MAX).map(|hi| hi.checked_add(1)?.checked_mul(c));
                if 0 < c {
                    let to = to.map(|to| to?.checked_sub(1));
                    further(value, from, to)
                } else {
                    let to = to.map(|to| to?.checked_add(1));
                    further(value, to, from)
                }
            }
            // ceil(x / c) in [lo, hi] == lo - 1 < x / c <= hi
            Node::CeilDiv(value, divisor) => {
                let c = ctx.as_constant(divisor).filter(|&c| c != 0)?;
                let from = finite(lo, i64::MIN).map(|lo| lo.checked_sub(1)?.checked_mul(c));
                let to = finite(hi, i64::MAX).map(|hi| hi.checked_mul(c));
                if 0 < c {
                    let from = from.map(|from| from?.checked_add(1));
                    further(value, from, to)
                } else {
                    let from = from.map(|from| from?.checked_sub(1));
                    further(value, to, from)
                }
            }
            Node::Mod(..) => {
                self.shorter_congruence(Constraint { expr, interval }).map(Reduced::Further)
            }
            // x * x <= hi == -r <= x <= r, where r is the root of hi
            Node::Mul(lhs, rhs) if lhs == rhs && lo <= 0 && 0 <= hi && hi != i64::MAX => {
                let root = hi.isqrt();
                Some(Reduced::Further(Constraint {
                    expr: lhs,
                    interval: Interval::new(-root, root),
                }))
            }
            // lo <= min(x, y) == lo <= x and lo <= y, where min(x, y) <= hi anyway
            Node::Min(lhs, rhs) if self.interval_of(expr).hi <= hi => {
                let interval = Interval::new(lo, i64::MAX);
                Some(both(lhs, rhs, interval))
            }
            Node::Max(lhs, rhs) if lo <= self.interval_of(expr).lo => {
                let interval = Interval::new(i64::MIN, hi);
                Some(both(lhs, rhs, interval))
            }
            // min(x, y) in [lo, hi] == x in [lo, hi] where hi < y, and max likewise
            node @ (Node::Min(lhs, rhs) | Node::Max(lhs, rhs)) => {
                let is_beyond = |values: Interval| match node {
                    Node::Min(..) => hi < values.lo,
                    _ => values.hi < lo,
                };
                let operands = [(lhs, rhs), (rhs, lhs)].into_iter();
                let mut kept = operands.filter(|&(_, other)| is_beyond(self.interval_of(other)));
                let (kept, _) = kept.next()?;
                Some(Reduced::Further(Constraint { expr: kept, interval }))
            }
            _ => None,
        }
    }

    /// `(a*x + b*y + k) mod m in [r, r] == (u*a*x + u*b*y) mod m in [u*(r - k) mod m]`, where `u` has an inverse
    /// modulo `m`: the shortest of the forms in which a coefficient is 1 or -1, or of which `u` is.
    fn shorter_congruence(&mut self, constraint: Constraint) -> Option<Constraint> {
        let ctx = self.ctx;
        let (value, Congruence { modulus, remainder }) = Congruence::of_value(ctx, &constraint)?;
        let linear = ctx.few_linear_terms(value)?;
        let wide = i128::from(modulus);
        let mut units: SmallVec<[i128; 16]> = SmallVec::from_slice(&[1, wide - 1]);
        for &(_, coefficient) in &linear.terms {
            let (common, inverse) = gcd_and_inverse(i128::from(coefficient).rem_euclid(wide), wide);
            if common == 1 {
                units.extend([inverse, wide - inverse]);
            }
        }
        units.sort_unstable();
        units.dedup();
        let target = i128::from(remainder) - i128::from(linear.constant);
        let mut shortest = constraint;
        for unit in units {
            let times = |number: i128| {
                i64::try_from((number.rem_euclid(wide) * unit).rem_euclid(wide)).ok()
            };
            let terms = linear.terms.iter();
            let terms = terms.map(|&(term, factor)| Some((term, times(i128::from(factor))?)));
            let mut terms: SmallVec<[(Expr, i64); 8]> = terms.collect::<Option<_>>()?;
            terms.retain(|&mut (_, factor)| factor != 0);
            let sum = build_sorted(ctx, &terms, 0);
            let expr = self.simplify(ctx.modulo(sum, ctx.constant(modulus)));
            let lengths = ctx.cost(expr).cmp(&ctx.cost(shortest.expr));
            if lengths.then_with(|| ctx.compare(expr, shortest.expr)).is_lt() {
                shortest = Constraint { expr, interval: Interval::point(times(target)?) };
            }
        }
        (shortest.expr != constraint.expr).then_some(shortest)
    }

    /// Asks the prover about a constraint that nothing else reduces.
    fn reduce_symbolic(&mut self, constraint: Constraint) -> Reduced {
        if self.prover.is_none() {
            return Reduced::Simple(constraint);
        }
        let ctx = self.ctx;
        let Constraint { expr, interval } = constraint;
        let lower = finite(interval.lo, i64::MIN).and_then(i64::checked_neg);
        let above = lower.map(|lower| self.add_scaled(expr, ctx.constant(lower), 1));
        let upper = finite(interval.hi, i64::MAX).map(|upper| ctx.constant(upper));
        let below = upper.map(|upper| self.add_scaled(upper, expr, -1));
        let mut holds = true;
        for distance in [above, below].into_iter().flatten() {
            let verdict = distance.map_or(Verdict::Unknown, |distance| self.ask(distance));
            match verdict {
                Verdict::Refuted => return Reduced::False,
                Verdict::Proved => {}
                Verdict::Unknown => holds = false,
            }
        }
        if holds { Reduced::True } else { Reduced::Simple(constraint) }
    }
}

/// Terms with other coefficients.
fn scaled(
    terms: &[(Expr, i64)],
    coefficient: impl Fn(i64) -> Option<i64>,
) -> Option<SmallVec<[(Expr, i64); 4]>> {
    terms.iter().map(|&(term, old)| Some((term, coefficient(old)?))).collect()
}

fn both(lhs: Expr, rhs: Expr, interval: Interval) -> Reduced {
    let constraint = |expr| Constraint { expr, interval };
    Reduced::Both(constraint(lhs), constraint(rhs))
}

/// What two constraints `x mod m in [r, r]` and `(x + c) mod n in [s, s]` say of `x`, the shorter of the two
/// sums; `None` for others.
fn merge_remainders(
    ctx: &Context,
    first: Constraint,
    second: Constraint,
) -> Option<(Expr, Merged)> {
    if first.expr == second.expr {
        return None;
    }
    let mut both = [Congruence::of_value(ctx, &first)?, Congruence::of_value(ctx, &second)?];
    both.sort_by_key(|&(value, _)| ctx.cost(value));
    let [(value, first), (other, mut second)] = both;
    if value != other {
        let [mut x, mut y] = [ctx.linear_terms(value)?, ctx.linear_terms(other)?];
        x.terms.sort_unstable();
        y.terms.sort_unstable();
        if x.terms != y.terms {
            return None;
        }
        let distance = i128::from(y.constant) - i128::from(x.constant);
        let remainder = i128::from(second.remainder) - distance;
        second.remainder = i64::try_from(remainder.rem_euclid(second.modulus.into())).ok()?;
    }
    Some((value, first.merge(second)))
}

fn finite(end: i64, infinity: i64) -> Option<i64> {
    (end != infinity).then_some(end)
}

/// The interval with the given ends, `None` being infinite; `None` where one does not fit, as 2^63
/// and the numbers that stand for infinite ends do not.
fn interval_between(lo: Option<Option<i64>>, hi: Option<Option<i64>>) -> Option<Interval> {
    let end = |end: Option<Option<i64>>, infinity: i64| match end {
        Some(value) => value.filter(|&value| value != infinity),
        None => Some(infinity),
    };
    Some(Interval::new(end(lo, i64::MIN)?, end(hi, i64::MAX)?))
}

/// Applies `op` to the finite ends; `None` when a result does not fit.
fn map_ends(interval: Interval, op: impl Fn(i64) -> Option<i64>) -> Option<Interval> {
    let lo = finite(interval.lo, i64::MIN).map(&op);
    let hi = finite(interval.hi, i64::MAX).map(&op);
    interval_between(lo, hi)
}

/// The interval of the negated values; `None` when an end does not fit.
fn negated(interval: Interval) -> Option<Interval> {
    let lo = finite(interval.hi, i64::MAX).map(i64::checked_neg);
    let hi = finite(interval.lo, i64::MIN).map(i64::checked_neg);
    interval_between(lo, hi)
}

/// The integers whose product with a positive factor lies in the interval.
fn quotients(interval: Interval, factor: i64) -> Option<Interval> {
    let lo =
        finite(interval.lo, i64::MIN).map_or(Some(i64::MIN), |lo| checked_ceil_div(lo, factor))?;
    let hi =
        finite(interval.hi, i64::MAX).map_or(Some(i64::MAX), |hi| checked_floor_div(hi, factor))?;
    Some(Interval::new(lo, hi))
}

#[cfg(test)]
mod tests {
    use crate::simplify::simplified;

    #[test]
    fn constraints_that_repeat_are_decided_by_one_period() {
        let map = |constraint| format!("(d0) -> (d0), domain: d0 in [0, 99999], {constraint}");
        assert_eq!(simplified(&map("(d0 * d0) mod 4 in [2, 3]")), "KNOWN EMPTY");
        let domain = "(d0) -> (d0), domain: d0 in [0, 99999]";
        assert_eq!(simplified(&map("(d0 * d0 + d0) mod 6 in [0, 2]")), domain);
    }

    #[test]
    fn constraints_on_squares_and_sizes_are_bounds() {
        for (constraint, expected) in [
            ("d0 * d0 in [0, 50]", "d0 in [-7, 7]"),
            ("d0 * d0 in [-3, 49]", "d0 in [-7, 7]"),
            ("d0 * d0 in [1, 49]", "d0 in [-99, 99], d0 * d0 in [1, 49]"),
            ("max(d0, -d0) in [0, 5]", "d0 in [-5, 5]"),
            ("min(d0 + 3, -d0) in [-4, 1]", "d0 in [-7, 4]"),
        ] {
            assert_eq!(
                simplified(&format!("(d0) -> (d0), domain: d0 in [-99, 99], {constraint}")),
                format!("(d0) -> (d0), domain: {expected}")
            );
        }
    }

    #[test]
    fn constraints_on_negated_quotients_reach_what_is_divided() {
        for (constraint, expected) in [
            ("-((d0 + d1 mod 6) / 3) in [-2, 0]", "d0 + d1 mod 6 in [0, 8]"),
            ("5 - ((d0 + d1 mod 6) / 3) * 2 in [1, 5]", "d0 + d1 mod 6 in [0, 8]"),
            ("((d0 + d1 mod 6) / 3) * 4 + d1 / 64 in [0, 9]", "d0 + d1 mod 6 in [0, 8]"),
        ] {
            let domain = "d0 in [0, 20], d1 in [0, 99]";
            assert_eq!(
                simplified(&format!("(d0, d1) -> (d0), domain: {domain}, {constraint}")),
                format!("(d0, d1) -> (d0), domain: {domain}, {expected}")
            );
        }
    }
}
