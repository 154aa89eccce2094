//! Indexing maps: the elements of an operand that one element of a result needs.
//!
//! ```text
//! (d0, .., dn)[s0, .., sm]{rt0, .., rtk} -> (e0, .., er), domain: bounds and constraints
//! ```
//!
//! Dimension variables range over the result, range variables over what is reduced or
//! gathered for one result element, and runtime variables are values known only when the
//! program runs. Each variable has closed bounds; those of dimension and range variables may
//! be expressions over runtime variables, which is how dynamic sizes are written. A
//! [`Constraint`] restricts the domain further. The notion and the text form follow XLA's
//! `indexing_map.h` ("Indexing analysis", openxla.org/xla/indexing); symbolic bounds are an
//! extension.
//!
//! Example: for `C(m, n) +=! A(m, k) * B(k, n)` with K = 16 the map of `A` is
//! `(d0, d1)[s0] -> (d0, s0), domain: ..., s0 in [0, 15]`: element `(m, n)` of `C` needs row
//! `m` of `A`. The map of a reversal of 10 elements is `(d0) -> (-d0 + 9)`.

use crate::expr::{Context, EvalError, Expr, Node, Var};
use crate::interval::Interval;

/// A variable of an [`IndexingMap`] with its closed bounds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Variable {
    /// The name in text; `None` for the default name, such as `d0`.
    pub name: Option<Box<str>>,
    /// The smallest value, or `None` when there is no lower bound. A constant or an
    /// expression over runtime variables.
    pub lower: Option<Expr>,
    /// The largest value, or `None` when there is no upper bound. A constant or an expression
    /// over runtime variables.
    pub upper: Option<Expr>,
}

impl Variable {
    /// A variable with constant bounds; an infinite end is no bound.
    pub fn bounded(ctx: &Context, interval: Interval) -> Self {
        let mut variable = Variable::default();
        variable.set_interval(ctx, interval);
        variable
    }

    /// A variable with bounds that may be symbolic.
    pub fn between(lower: Expr, upper: Expr) -> Self {
        Variable { name: None, lower: Some(lower), upper: Some(upper) }
    }

    /// The same variable with a name.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Replaces both bounds by constants; an infinite end is no bound.
    pub fn set_interval(&mut self, ctx: &Context, interval: Interval) {
        self.lower = (interval.lo != i64::MIN).then(|| ctx.constant(interval.lo));
        self.upper = (interval.hi != i64::MAX).then(|| ctx.constant(interval.hi));
    }

    /// The bounds as an interval, when each is a constant or absent.
    #[inline]
    pub fn constant_interval(&self, ctx: &Context) -> Option<Interval> {
        ctx.constants().interval(self.lower, self.upper)
    }

    /// How far a variable, given as an expression, is from its bounds: both are not negative on the domain.
    pub(crate) fn distances(&self, ctx: &Context, var: Expr) -> [Option<Expr>; 2] {
        let lower = self.lower.map(|lower| ctx.sub(var, lower));
        [lower, self.upper.map(|upper| ctx.sub(upper, var))]
    }

    /// An interval that covers the variable, given intervals of the runtime variables.
    fn enclosure(&self, ctx: &Context, runtime: &dyn Fn(Var) -> Interval) -> Interval {
        if let Some(interval) = self.constant_interval(ctx) {
            return interval;
        }
        let lower = self.lower.map(|lower| ctx.interval_of(lower, runtime));
        let upper = self.upper.map(|upper| ctx.interval_of(upper, runtime));
        // A bound that has no value at all leaves no value for the variable.
        if lower.is_some_and(Interval::is_empty) || upper.is_some_and(Interval::is_empty) {
            return Interval::EMPTY;
        }
        Interval::new(
            lower.map_or(i64::MIN, |lower| lower.lo),
            upper.map_or(i64::MAX, |upper| upper.hi),
        )
    }
}

/// A restriction of the domain: `expr` lies in `interval`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constraint {
    /// The restricted expression.
    pub expr: Expr,
    /// The values it may take; an infinite end leaves that side free.
    pub interval: Interval,
}

/// An indexing map; see the [module](self) text. [`verify`](Self::verify) checks one that is put together
/// by hand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct IndexingMap {
    /// The dimension variables.
    pub dims: Vec<Variable>,
    /// The range variables.
    pub ranges: Vec<Variable>,
    /// The runtime variables.
    pub runtimes: Vec<Variable>,
    /// The index of each dimension of the operand.
    pub results: Vec<Expr>,
    /// Restrictions beyond the bounds of the variables.
    pub constraints: Vec<Constraint>,
}

/// Why the points of a domain cannot be enumerated.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DomainError {
    /// A dimension or range variable lacks a bound.
    #[error("expected a bounded domain, found {0:?} without a bound")]
    Unbounded(Var),
    /// A bound or a constraint has no value.
    #[error("the domain has no value: {0}")]
    Eval(#[from] EvalError),
}

/// What constant bounds leave of a box.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum ConstantBounds {
    /// Nothing: a variable has no value.
    Empty,
    /// Points, where a variable has one value only.
    SomeFixed,
    /// Several values for each variable.
    Free,
}

impl IndexingMap {
    /// The identity on a domain of the given constant extents: `(d0, ..) -> (d0, ..)` with
    /// `d_i in [0, extent - 1]`.
    pub fn identity(ctx: &Context, extents: &[i64]) -> Self {
        let bounds = extents.iter().map(|&extent| Interval::new(0, extent.saturating_sub(1)));
        let dims: Vec<_> = bounds.map(|bounds| Variable::bounded(ctx, bounds)).collect();
        Self::identity_of(ctx, dims)
    }

    /// The identity on the given dimension variables, without runtime variables.
    pub fn identity_of(ctx: &Context, dims: Vec<Variable>) -> Self {
        let results = (0..).take(dims.len()).map(|i| ctx.dim(i)).collect();
        IndexingMap { dims, results, ..Self::default() }
    }

    /// The variable `var`, or `None` when the map has none of that number.
    pub fn variable(&self, var: Var) -> Option<&Variable> {
        match var {
            Var::Dim(i) => self.dims.get(i as usize),
            Var::Range(i) => self.ranges.get(i as usize),
            Var::Runtime(i) => self.runtimes.get(i as usize),
        }
    }

    /// The variable `var` for a change, or `None` when the map has none of that number.
    pub fn variable_mut(&mut self, var: Var) -> Option<&mut Variable> {
        match var {
            Var::Dim(i) => self.dims.get_mut(i as usize),
            Var::Range(i) => self.ranges.get_mut(i as usize),
            Var::Runtime(i) => self.runtimes.get_mut(i as usize),
        }
    }

    /// All variables: dimensions, ranges, then runtime variables.
    pub fn vars(&self) -> impl Iterator<Item = (Var, &Variable)> {
        let dims = (0..).map(Var::Dim).zip(&self.dims);
        let ranges = (0..).map(Var::Range).zip(&self.ranges);
        let runtimes = (0..).map(Var::Runtime).zip(&self.runtimes);
        dims.chain(ranges).chain(runtimes)
    }

    /// The place of a variable among all variables, in the order of [`vars`](Self::vars).
    pub fn position(&self, var: Var) -> usize {
        match var {
            Var::Dim(i) => i as usize,
            Var::Range(i) => self.dims.len() + i as usize,
            Var::Runtime(i) => self.dims.len() + self.ranges.len() + i as usize,
        }
    }

    /// An interval that covers every value of `var`, whatever the runtime variables are.
    /// A variable that the map does not have is unbounded.
    pub fn interval(&self, ctx: &Context, var: Var) -> Interval {
        self.intervals(ctx).of(var)
    }

    /// The intervals of all variables at once; cheaper than [`interval`](Self::interval) in a
    /// loop.
    pub fn intervals(&self, ctx: &Context) -> VarIntervals {
        // A runtime variable may be bounded by others. Taking only those with smaller numbers
        // keeps this well founded whatever the bounds refer to.
        let mut runtimes: Vec<Interval> = Vec::with_capacity(self.runtimes.len());
        for variable in &self.runtimes {
            let interval = variable.enclosure(ctx, &|var| match var {
                Var::Runtime(i) => runtimes.get(i as usize).copied().unwrap_or(Interval::ALL),
                _ => Interval::ALL,
            });
            runtimes.push(interval);
        }
        let mut intervals = VarIntervals { dims: Vec::new(), ranges: Vec::new(), runtimes };
        let enclose = |variables: &[Variable]| -> Vec<Interval> {
            variables
                .iter()
                .map(|variable| variable.enclosure(ctx, &|var| intervals.of(var)))
                .collect()
        };
        let (dims, ranges) = (enclose(&self.dims), enclose(&self.ranges));
        intervals.dims = dims;
        intervals.ranges = ranges;
        intervals
    }

    /// What the bounds leave, if all of them are constants.
    pub(crate) fn constant_bounds(&self, ctx: &Context) -> Option<ConstantBounds> {
        let mut bounds = ConstantBounds::Free;
        let constants = ctx.constants();
        for variables in [&self.dims, &self.ranges, &self.runtimes] {
            for variable in variables {
                let interval = constants.interval(variable.lower, variable.upper)?;
                if interval.lo < interval.hi {
                    continue;
                }
                if interval.is_empty() {
                    bounds = ConstantBounds::Empty;
                } else if interval.as_point().is_some() && bounds == ConstantBounds::Free {
                    bounds = ConstantBounds::SomeFixed;
                }
            }
        }
        Some(bounds)
    }

    /// Whether the domain is seen to be empty without simplification: a variable has no value
    /// or a constraint on a constant fails. A `false` leaves it open.
    pub fn is_known_empty(&self, ctx: &Context) -> bool {
        self.is_known_empty_within(ctx, self.constant_bounds(ctx))
    }

    /// [`is_known_empty`](Self::is_known_empty), given what constant bounds leave.
    pub(crate) fn is_known_empty_within(
        &self,
        ctx: &Context,
        bounds: Option<ConstantBounds>,
    ) -> bool {
        let empty = match bounds {
            Some(bounds) => bounds == ConstantBounds::Empty,
            None => {
                let intervals = self.intervals(ctx);
                self.vars().any(|(var, _)| intervals.of(var).is_empty())
            }
        };
        empty
            || self.constraints.iter().any(|constraint| {
                constraint.interval.is_empty()
                    || ctx
                        .as_constant(constraint.expr)
                        .is_some_and(|value| !constraint.interval.contains(value))
            })
    }

    /// Makes the domain empty: no constraints, no values for any variable, results zero.
    pub fn set_known_empty(&mut self, ctx: &Context) {
        let none = Variable::bounded(ctx, Interval::EMPTY);
        let variables = self.dims.iter_mut().chain(&mut self.ranges).chain(&mut self.runtimes);
        for variable in variables {
            variable.lower = none.lower;
            variable.upper = none.upper;
        }
        self.results.fill(ctx.constant(0));
        self.constraints.clear();
        if self.vars().next().is_none() {
            self.constraints.push(Constraint { expr: ctx.constant(0), interval: Interval::EMPTY });
        }
    }

    /// Whether the map returns its dimension variables unchanged. Bounds, constraints and
    /// unused variables do not matter.
    pub fn is_identity(&self, ctx: &Context) -> bool {
        self.dims.len() == self.results.len()
            && (0..)
                .zip(&self.results)
                .all(|(i, &result)| ctx.node(result) == Node::Var(Var::Dim(i)))
    }

    /// The results at a point, which need not lie in the domain.
    ///
    /// # Errors
    /// As [`Context::eval`].
    pub fn evaluate(
        &self,
        ctx: &Context,
        dims: &[i64],
        ranges: &[i64],
        runtimes: &[i64],
    ) -> Result<Vec<i64>, EvalError> {
        ctx.eval_all(&self.results, &|var| lookup(var, dims, ranges, runtimes))
    }

    /// Whether a point lies in the domain.
    ///
    /// # Errors
    /// As [`Context::eval`], when a bound or a constraint has no value.
    pub fn contains(
        &self,
        ctx: &Context,
        dims: &[i64],
        ranges: &[i64],
        runtimes: &[i64],
    ) -> Result<bool, EvalError> {
        let value_of = |var| lookup(var, dims, ranges, runtimes);
        for (var, variable) in self.vars() {
            let value = i128::from(value_of(var).ok_or(EvalError::Unbound(var))?);
            if let Some(lower) = variable.lower
                && value < ctx.eval_wide(&[lower], &value_of)?[0]
            {
                return Ok(false);
            }
            if let Some(upper) = variable.upper
                && ctx.eval_wide(&[upper], &value_of)?[0] < value
            {
                return Ok(false);
            }
        }
        self.satisfies_constraints(ctx, dims, ranges, runtimes)
    }

    /// Whether a point satisfies the constraints; the bounds of the variables do not matter.
    ///
    /// # Errors
    /// As [`Context::eval`].
    pub fn satisfies_constraints(
        &self,
        ctx: &Context,
        dims: &[i64],
        ranges: &[i64],
        runtimes: &[i64],
    ) -> Result<bool, EvalError> {
        let exprs: Vec<Expr> = self.constraints.iter().map(|c| c.expr).collect();
        let values = ctx.eval_wide(&exprs, &|var| lookup(var, dims, ranges, runtimes))?;
        Ok(self
            .constraints
            .iter()
            .zip(values)
            .all(|(constraint, value)| constraint.interval.contains_wide(value)))
    }

    /// Enumerates the domain for given runtime values, the last variable fastest.
    ///
    /// # Errors
    /// A dimension or range variable is unbounded, or a bound has no value.
    pub fn points<'a>(
        &'a self,
        ctx: &'a Context,
        runtimes: &'a [i64],
    ) -> Result<Points<'a>, DomainError> {
        let value_of = |var| lookup(var, &[], &[], runtimes);
        let mut bounds = Vec::new();
        for (var, variable) in self.vars() {
            let end = |bound: Option<Expr>| -> Result<Option<i64>, EvalError> {
                bound.map(|bound| ctx.eval(bound, &value_of)).transpose()
            };
            let (lower, upper) = (end(variable.lower)?, end(variable.upper)?);
            if let Var::Runtime(_) = var {
                let value = value_of(var).ok_or(EvalError::Unbound(var))?;
                if lower.is_some_and(|lower| value < lower)
                    || upper.is_some_and(|upper| upper < value)
                {
                    bounds.push(Interval::EMPTY);
                }
            } else {
                let lower = lower.ok_or(DomainError::Unbounded(var))?;
                let upper = upper.ok_or(DomainError::Unbounded(var))?;
                bounds.push(Interval::new(lower, upper));
            }
        }
        let next = if bounds.iter().any(|bounds| bounds.is_empty()) {
            None
        } else {
            Some(bounds.iter().map(|bounds| bounds.lo).collect())
        };
        Ok(Points { map: self, ctx, runtimes, bounds, next })
    }

    /// Restricts the domain to the points where `expr` lies in `interval`. A restriction of a
    /// variable with constant bounds tightens them, one of a constrained expression tightens
    /// that constraint, and one that constants satisfy is dropped.
    pub fn add_constraint(&mut self, ctx: &Context, expr: Expr, interval: Interval) {
        match ctx.node(expr) {
            Node::Const(value) if interval.contains(value) => return,
            Node::Var(var) => {
                if let Some(variable) = self.variable_mut(var)
                    && let Some(bounds) = variable.constant_interval(ctx)
                {
                    variable.set_interval(ctx, bounds.intersect(interval));
                    return;
                }
            }
            _ => {}
        }
        let same = self.constraints.iter_mut().find(|c| c.expr == expr);
        match same {
            Some(constraint) => constraint.interval = constraint.interval.intersect(interval),
            None => self.constraints.push(Constraint { expr, interval }),
        }
    }

    /// Puts the constraints in the order of [`Context::compare`].
    pub fn sort_constraints(&mut self, ctx: &Context) {
        self.constraints
            .sort_by(|a, b| ctx.compare(a.expr, b.expr).then(a.interval.cmp(&b.interval)));
    }

    /// Every expression of the map: results, constraints, bounds.
    fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let variables = self.dims.iter_mut().chain(&mut self.ranges).chain(&mut self.runtimes);
        self.results
            .iter_mut()
            .chain(self.constraints.iter_mut().map(|c| &mut c.expr))
            .chain(variables.flat_map(|v| v.lower.iter_mut().chain(v.upper.iter_mut())))
    }

    /// Replaces variables in every expression of the map; the variable lists stay.
    pub fn substitute(&mut self, ctx: &Context, replacement: &dyn Fn(Var) -> Option<Expr>) {
        let old: Vec<Expr> = self.exprs_mut().map(|expr| *expr).collect();
        let new = ctx.substitute_all(&old, replacement);
        for (expr, new) in self.exprs_mut().zip(new) {
            *expr = new;
        }
    }

    /// This map, whose expressions are those of one context, in another.
    pub(crate) fn in_context(&self, from: &Context, ctx: &Context) -> IndexingMap {
        let mut map = self.clone();
        let old: Vec<Expr> = map.exprs_mut().map(|expr| *expr).collect();
        for (expr, new) in map.exprs_mut().zip(ctx.import(from, &old)) {
            *expr = new;
        }
        map
    }

    /// Removes the variables for which `unused` holds and renumbers the rest. No expression
    /// may use a removed variable, except the bounds of removed ones.
    pub(crate) fn remove_vars(&mut self, ctx: &Context, unused: &dyn Fn(Var) -> bool) {
        let (mut dims, mut ranges, mut runtimes) = (Vec::new(), Vec::new(), Vec::new());
        let kept = |variables: &mut Vec<Variable>, make: fn(u32) -> Var, numbers: &mut Vec<u32>| {
            let mut next = 0;
            let mut position = 0;
            variables.retain(|_| {
                let keep = !unused(make(position));
                numbers.push(next);
                position += 1;
                next += u32::from(keep);
                keep
            });
        };
        kept(&mut self.dims, Var::Dim, &mut dims);
        kept(&mut self.ranges, Var::Range, &mut ranges);
        kept(&mut self.runtimes, Var::Runtime, &mut runtimes);
        self.substitute(ctx, &|var| {
            let renumbered = match var {
                Var::Dim(i) => Var::Dim(*dims.get(i as usize)?),
                Var::Range(i) => Var::Range(*ranges.get(i as usize)?),
                Var::Runtime(i) => Var::Runtime(*runtimes.get(i as usize)?),
            };
            Some(ctx.var(renumbered))
        });
    }
}

/// The value of `var` in the given lists.
fn lookup(var: Var, dims: &[i64], ranges: &[i64], runtimes: &[i64]) -> Option<i64> {
    match var {
        Var::Dim(i) => dims.get(i as usize),
        Var::Range(i) => ranges.get(i as usize),
        Var::Runtime(i) => runtimes.get(i as usize),
    }
    .copied()
}

/// The numeric intervals of all variables of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VarIntervals {
    dims: Vec<Interval>,
    ranges: Vec<Interval>,
    runtimes: Vec<Interval>,
}

impl VarIntervals {
    /// The interval of `var`; everything for a variable that the map does not have.
    pub fn of(&self, var: Var) -> Interval {
        match var {
            Var::Dim(i) => self.dims.get(i as usize),
            Var::Range(i) => self.ranges.get(i as usize),
            Var::Runtime(i) => self.runtimes.get(i as usize),
        }
        .copied()
        .unwrap_or(Interval::ALL)
    }

    /// Replaces the interval of `var`, if the map has it.
    pub(crate) fn set(&mut self, var: Var, interval: Interval) {
        let place = match var {
            Var::Dim(i) => self.dims.get_mut(i as usize),
            Var::Range(i) => self.ranges.get_mut(i as usize),
            Var::Runtime(i) => self.runtimes.get_mut(i as usize),
        };
        if let Some(place) = place {
            *place = interval;
        }
    }
}

/// A point of a domain, without the runtime variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// The values of the dimension variables.
    pub dims: Vec<i64>,
    /// The values of the range variables.
    pub ranges: Vec<i64>,
}

/// Iterator over the points of a domain; see [`IndexingMap::points`].
pub struct Points<'a> {
    map: &'a IndexingMap,
    ctx: &'a Context,
    runtimes: &'a [i64],
    bounds: Vec<Interval>,
    next: Option<Vec<i64>>,
}

impl Points<'_> {
    /// The next point within the bounds, whether or not it satisfies the constraints.
    fn next_in_box(&mut self) -> Option<Vec<i64>> {
        let current = self.next.take()?;
        let mut following = current.clone();
        for (value, bounds) in following.iter_mut().zip(&self.bounds).rev() {
            if *value < bounds.hi {
                *value += 1;
                self.next = Some(following);
                break;
            }
            *value = bounds.lo;
        }
        Some(current)
    }
}

impl Iterator for Points<'_> {
    type Item = Result<Point, EvalError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(mut dims) = self.next_in_box() {
            let ranges = dims.split_off(self.map.dims.len());
            match self.map.satisfies_constraints(self.ctx, &dims, &ranges, self.runtimes) {
                Ok(false) => {}
                Ok(true) => return Some(Ok(Point { dims, ranges })),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}
