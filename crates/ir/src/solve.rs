//! The interval solver: the largest interval of one variable in which an expression stays within
//! bounds.
//!
//! Given `lower <= e <= upper`, a variable `v`, and other variables that range over intervals, the
//! solver finds the largest interval of `v` such that the inequality holds for *all* values of the
//! others, and gives it by expressions over the variables that stay symbolic (sizes). The task is
//! that of Halide's `solve_for_inner_interval` after `and_condition_over_domain`; the method is
//! algebra rather than pattern search:
//!
//! 1. Each side becomes `t >= 0`. Every other variable in which `t` is monotone is replaced by the
//!    end of its interval at which `t` is least, and one in which `t` is affine by both ends, which
//!    all have to hold; both are exact. A variable without such an end counts as infinite, which
//!    `min` and `max` may absorb.
//! 2. What is left is solved for `v`: `min(a, b) >= 0` is `a >= 0` and `b >= 0`, `floor(x / c) >=
//!    y` is `x >= c*y`, `floor(x / c) <= y` is `x <= c*y + c - 1`, and `a*v + r >= 0` is `v >=
//!    ceil(-r / a)` or `v <= floor(r / -a)` by the sign of `a`, which the [prover](crate::prove)
//!    decides when `a` is symbolic. `max(a, b) >= 0` is a choice: exact where the sizes settle it,
//!    or where both arguments bound `v` on one side.
//! 3. Bounds that others dominate are dropped, and the rest is written in canonical form.
//!
//! The result is exact or an error says why there is none; nothing is approximated. Recursion is
//! limited by [`MAX_DEPTH`], and the work by [`MAX_STEPS`].

use crate::expr::{Context, Expr, Node, Var};
use crate::polynomial::{Extremum, Monomial, Normalizer, Polynomial, PolynomialError};
use crate::prove::{Prover, Verdict};

/// How deep divisions, minima and maxima around the variable may nest.
pub const MAX_DEPTH: usize = 32;

/// The most subexpressions and inequalities that one question may look at; shared ones count each
/// time.
pub const MAX_STEPS: usize = 4096;

/// Expressions with more operations than this are not searched for needless ones.
const MAX_EXAMINED: usize = 64;

/// More bounds than this are not compared with each other by the prover.
const MAX_COMPARED: usize = 24;

/// Why an inequality was not solved exactly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// The variable is multiplied by itself, in a divisor, or under a remainder that matters.
    #[error("the expression is not linear in the variable")]
    NotLinear,
    /// The variable is multiplied or divided by something that changes with another variable.
    #[error("the coefficient of the variable changes with another variable")]
    VaryingCoefficient {
        /// The other variable.
        with: Var,
    },
    /// The sign of a coefficient or divisor depends on the sizes.
    #[error("a coefficient has an unknown sign")]
    UnknownSign {
        /// The coefficient or divisor.
        coefficient: Expr,
    },
    /// The expression neither only rises nor only falls with another variable.
    #[error("the expression rises and falls with another variable")]
    NotMonotone {
        /// The other variable.
        var: Var,
    },
    /// The expression grows without limit with another variable.
    #[error("another variable has no bound")]
    Unbounded {
        /// The other variable.
        var: Var,
    },
    /// Which argument of a minimum or maximum matters depends on the sizes.
    #[error("the choice between the arguments of a minimum or maximum depends on the sizes")]
    Undecided {
        /// The solution differs with the truth of `condition >= 0`.
        condition: Expr,
    },
    /// The variable is divided by zero.
    #[error("the variable is divided by zero")]
    DivisionByZero,
    /// The solutions are no interval.
    #[error("the solutions do not form an interval")]
    NotAnInterval,
    /// Divisions, minima and maxima nest deeper than [`MAX_DEPTH`], or there are too many.
    #[error("the expression is nested too deep")]
    TooDeep,
    /// The canonical form is out of reach.
    #[error(transparent)]
    Polynomial(#[from] PolynomialError),
}

type Result<T> = std::result::Result<T, SolveError>;

/// The interval that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The least value; `None` when nothing bounds the variable from below.
    pub lower: Option<Expr>,
    /// The greatest value; `None` when nothing bounds the variable from above.
    pub upper: Option<Expr>,
    /// Expressions free of the variable that have to be `>= 0` besides, because the inequality
    /// fails for every value of the variable where they are not. Those that are proven are left
    /// out.
    pub conditions: Vec<Expr>,
}

/// The least or greatest value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// Below every number.
    NegativeInfinity,
    /// An expression over the variables that stay symbolic.
    Finite(Expr),
    /// Above every number.
    PositiveInfinity,
}

/// The interval of a variable that is eliminated, a missing end being infinite; `None` for one that
/// stays.
pub type Elimination<'a> = &'a dyn Fn(Var) -> Option<(Option<Expr>, Option<Expr>)>;

/// The largest interval of `variable` in which `lower <= expr <= upper` for all values of the other
/// variables.
///
/// `prover` knows the sizes, and may know the other variables; it must not assume anything about
/// `variable`.
///
/// # Errors
/// Why there is no exact answer.
///
/// ```
/// use tc_ir::expr::{Context, Var};
/// use tc_ir::{polynomial::text, prove::Prover, solve::solve};
/// let ctx = Context::new();
/// let (size, i) = (ctx.runtime(0), ctx.dim(0));
/// let mut prover = Prover::new(&ctx);
/// prover.bound(Var::Runtime(0), Some(ctx.constant(1)), None);
/// // 0 <= 2*i < size
/// let twice = ctx.mul(i, ctx.constant(2));
/// let last = ctx.sub(size, ctx.constant(1));
/// let found = solve(&prover, twice, Some(ctx.constant(0)), Some(last), Var::Dim(0), &|_| None).unwrap();
/// let shown = |bound: Option<_>| text(&ctx, bound.unwrap(), &|_| "I".to_owned());
/// assert_eq!((shown(found.lower), shown(found.upper)), ("0".to_owned(), "(I - 1) / 2".to_owned()));
/// ```
pub fn solve(
    prover: &Prover,
    expr: Expr,
    lower: Option<Expr>,
    upper: Option<Expr>,
    variable: Var,
    eliminate: Elimination,
) -> Result<Solution> {
    let mut solver = Solver::new(prover, eliminate, Some(variable));
    let value = solver.polynomial(expr)?;
    let mut found = Rays::default();
    if let Some(lower) = lower {
        let side = value.sub(&solver.polynomial(lower)?)?;
        solver.side(side, &mut found)?;
    }
    if let Some(upper) = upper {
        let side = solver.polynomial(upper)?.sub(&value)?;
        solver.side(side, &mut found)?;
    }
    let lower = solver.tightest(Extremum::Max, &found.lowers)?;
    let upper = solver.tightest(Extremum::Min, &found.uppers)?;
    let mut conditions = Vec::new();
    for condition in &found.conditions {
        let condition = solver.normalizer.expr(condition)?;
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    Ok(Solution { lower, upper, conditions })
}

/// The least value of `expr` over the variables that are eliminated.
///
/// # Errors
/// Why there is no exact answer.
pub fn minimum(prover: &Prover, expr: Expr, eliminate: Elimination) -> Result<Extreme> {
    let mut solver = Solver::new(prover, eliminate, None);
    let value = solver.polynomial(expr)?;
    solver.extreme(value)
}

/// The greatest value of `expr` over the variables that are eliminated.
///
/// # Errors
/// Why there is no exact answer.
pub fn maximum(prover: &Prover, expr: Expr, eliminate: Elimination) -> Result<Extreme> {
    let mut solver = Solver::new(prover, eliminate, None);
    let value = solver.polynomial(expr)?.scale(-1)?;
    Ok(match solver.extreme(value)? {
        Extreme::NegativeInfinity => Extreme::PositiveInfinity,
        Extreme::Finite(negated) => {
            let value = solver.normalizer.polynomial(negated)?.scale(-1)?;
            Extreme::Finite(solver.normalizer.expr(&value)?)
        }
        Extreme::PositiveInfinity => Extreme::NegativeInfinity,
    })
}

/// The greatest of several lower bounds, without those that the prover finds needless; `None` for
/// none.
///
/// # Errors
/// The canonical form is out of reach.
pub fn tightest_lower(prover: &Prover, bounds: &[Expr]) -> Result<Option<Expr>> {
    tightest(prover, Extremum::Max, bounds)
}

/// The least of several upper bounds, without those that the prover finds needless; `None` for
/// none.
///
/// # Errors
/// The canonical form is out of reach.
pub fn tightest_upper(prover: &Prover, bounds: &[Expr]) -> Result<Option<Expr>> {
    tightest(prover, Extremum::Min, bounds)
}

fn tightest(prover: &Prover, kind: Extremum, bounds: &[Expr]) -> Result<Option<Expr>> {
    let mut solver = Solver::new(prover, &|_| None, None);
    let bounds =
        bounds.iter().map(|&bound| solver.polynomial(bound)).collect::<Result<Vec<_>>>()?;
    solver.tightest(kind, &bounds)
}

/// The expression in canonical form, without what the prover finds needless: remainders and
/// divisions of numbers smaller than the divisor, and arguments of minima and maxima that never
/// matter.
///
/// # Errors
/// The canonical form is out of reach.
pub fn simplified(prover: &Prover, expr: Expr) -> Result<Expr> {
    let mut solver = Solver::new(prover, &|_| None, None);
    let value = solver.polynomial(expr)?;
    Ok(solver.normalizer.expr(&value)?)
}

/// How an expression changes with a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Constant,
    Rising,
    Falling,
    Unknown,
}

impl Trend {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant, trend) | (trend, Self::Constant) => trend,
            (a, b) if a == b => a,
            _ => Self::Unknown,
        }
    }

    fn reversed(self) -> Self {
        match self {
            Self::Rising => Self::Falling,
            Self::Falling => Self::Rising,
            other => other,
        }
    }
}

/// A value while a variable goes to infinity.
enum Limit {
    NegativeInfinity,
    Finite(Polynomial),
    PositiveInfinity,
}

impl Limit {
    fn reversed(self) -> Self {
        match self {
            Self::NegativeInfinity => Self::PositiveInfinity,
            Self::PositiveInfinity => Self::NegativeInfinity,
            finite @ Self::Finite(_) => finite,
        }
    }
}

/// The least value over the eliminated variables.
enum Least {
    /// A variable without a bound makes it so.
    NegativeInfinity(Var),
    /// The least of these.
    Finite(Vec<Polynomial>),
    PositiveInfinity,
}

/// A value without one of its eliminated variables.
enum Eliminated {
    /// There was none.
    Nothing,
    /// The least of these.
    Ends(Vec<Polynomial>),
    Infinite(Limit, Var),
}

/// Bounds of the variable that all have to hold, and conditions without it.
#[derive(Default)]
struct Rays {
    lowers: Vec<Polynomial>,
    uppers: Vec<Polynomial>,
    conditions: Vec<Polynomial>,
}

struct Solver<'a, 'c> {
    prover: &'a Prover<'c>,
    normalizer: Normalizer<'c>,
    eliminate: Elimination<'a>,
    /// The variable that is solved for.
    variable: Option<Var>,
    steps: usize,
}

impl<'a, 'c> Solver<'a, 'c> {
    fn new(prover: &'a Prover<'c>, eliminate: Elimination<'a>, variable: Option<Var>) -> Self {
        let normalizer = Normalizer::new(prover.context());
        Self { prover, normalizer, eliminate, variable, steps: 0 }
    }

    fn context(&self) -> &'c Context {
        self.normalizer.context()
    }

    /// The canonical form, with what the prover finds needless left out.
    fn polynomial(&mut self, expr: Expr) -> Result<Polynomial> {
        let value = self.normalizer.polynomial(expr)?.as_ref().clone();
        self.simplify(value)
    }

    fn simplify(&mut self, mut value: Polynomial) -> Result<Polynomial> {
        // Each round removes one operation from the expression.
        for _ in 0..MAX_DEPTH {
            let Some((atom, replacement)) = self.needless(&value)? else {
                break;
            };
            value = Normalizer::replacing(self.context(), atom, replacement).renormalize(&value)?;
        }
        Ok(value)
    }

    /// An operation inside the polynomial that equals something simpler.
    fn needless(&mut self, value: &Polynomial) -> Result<Option<(Expr, Polynomial)>> {
        let operations = self.context().topological(&atoms(value));
        if MAX_EXAMINED < operations.len() {
            return Ok(None);
        }
        for atom in operations {
            let replacement = match self.context().node(atom) {
                Node::Mod(a, b) => {
                    let (a, b) = (self.normalizer.polynomial(a)?, self.normalizer.polynomial(b)?);
                    (self.holds(&a) && self.holds(&b.plus(-1)?.sub(&a)?))
                        .then(|| a.as_ref().clone())
                }
                Node::FloorDiv(a, b) => {
                    let (a, b) = (self.normalizer.polynomial(a)?, self.normalizer.polynomial(b)?);
                    self.constant_quotient(&a, &b)?.map(Polynomial::constant)
                }
                Node::Min(..) | Node::Max(..) => self.fewer_arguments(atom)?,
                _ => None,
            };
            if let Some(replacement) = replacement {
                return Ok(Some((atom, replacement)));
            }
        }
        Ok(None)
    }

    /// The quotient of numbers in `[0, b - 1]`, which is 0, or in `[-b, -1]`, which is -1.
    fn constant_quotient(&mut self, a: &Polynomial, b: &Polynomial) -> Result<Option<i64>> {
        if self.holds(a) {
            return Ok(self.holds(&b.plus(-1)?.sub(a)?).then_some(0));
        }
        let negative = self.holds(&a.scale(-1)?.plus(-1)?) && self.holds(&a.add(b)?);
        Ok(negative.then_some(-1))
    }

    fn fewer_arguments(&mut self, atom: Expr) -> Result<Option<Polynomial>> {
        let Some((kind, arguments)) = self.normalizer.arguments(atom)? else {
            return Ok(None);
        };
        let kept = self.undominated(kind, &arguments)?;
        if kept.len() == arguments.len() {
            return Ok(None);
        }
        Ok(Some(self.extremum(kind, &kept)?))
    }

    fn extremum(&mut self, kind: Extremum, arguments: &[Polynomial]) -> Result<Polynomial> {
        Ok(match kind {
            Extremum::Min => self.normalizer.min(arguments)?,
            Extremum::Max => self.normalizer.max(arguments)?,
        })
    }

    /// The arguments without those that another one makes needless.
    fn undominated(&mut self, kind: Extremum, arguments: &[Polynomial]) -> Result<Vec<Polynomial>> {
        let mut kept: Vec<Polynomial> = Vec::new();
        for argument in arguments {
            if !kept.contains(argument) {
                kept.push(argument.clone());
            }
        }
        if MAX_COMPARED < kept.len() {
            return Ok(kept);
        }
        let mut index = 0;
        while index < kept.len() {
            let mut needless = false;
            for other in (0..kept.len()).filter(|&other| other != index) {
                let (low, high) = match kind {
                    Extremum::Min => (&kept[other], &kept[index]),
                    Extremum::Max => (&kept[index], &kept[other]),
                };
                if self.holds(&high.sub(low)?) {
                    needless = true;
                    break;
                }
            }
            if needless {
                kept.remove(index);
            } else {
                index += 1;
            }
        }
        Ok(kept)
    }

    fn tightest(&mut self, kind: Extremum, bounds: &[Polynomial]) -> Result<Option<Expr>> {
        if bounds.is_empty() {
            return Ok(None);
        }
        let mut simple = Vec::with_capacity(bounds.len());
        for bound in bounds {
            simple.push(self.simplify(bound.clone())?);
        }
        let kept = self.undominated(kind, &simple)?;
        let bound = self.extremum(kind, &kept)?;
        Ok(Some(self.normalizer.expr(&bound)?))
    }

    fn holds(&mut self, goal: &Polynomial) -> bool {
        self.prover.holds(&mut self.normalizer, goal)
    }

    fn depends(&self, atom: Expr, var: Var) -> bool {
        self.context().vars(atom).contains(&var)
    }

    fn depends_on_variable(&self, atom: Expr) -> bool {
        self.variable.is_some_and(|variable| self.depends(atom, variable))
    }

    /// Counts one step at a depth of recursion.
    fn step(&mut self, depth: usize) -> Result<()> {
        self.steps += 1;
        if MAX_DEPTH < depth || MAX_STEPS < self.steps {
            return Err(SolveError::TooDeep);
        }
        Ok(())
    }

    /// The sign of a polynomial that is never zero, or of one that may be zero when `weak`.
    fn is_positive(&mut self, value: &Polynomial, weak: bool) -> Result<Option<bool>> {
        let margin = if weak { 0 } else { -1 };
        if self.holds(&value.plus(margin)?) {
            Ok(Some(true))
        } else if self.holds(&value.scale(-1)?.plus(margin)?) {
            Ok(Some(false))
        } else {
            Ok(None)
        }
    }

    /// Adds what `side >= 0` says about the variable.
    fn side(&mut self, side: Polynomial, found: &mut Rays) -> Result<()> {
        if self.holds(&side) {
            return Ok(());
        }
        match self.least(side)? {
            Least::Finite(ends) => ends.into_iter().try_for_each(|end| self.require(end, found, 0)),
            Least::NegativeInfinity(var) => Err(SolveError::Unbounded { var }),
            Least::PositiveInfinity => Ok(()),
        }
    }

    fn extreme(&mut self, value: Polynomial) -> Result<Extreme> {
        Ok(match self.least(value)? {
            Least::NegativeInfinity(_) => Extreme::NegativeInfinity,
            Least::Finite(ends) => {
                let ends = self.undominated(Extremum::Min, &ends)?;
                let least = self.extremum(Extremum::Min, &ends)?;
                let least = self.normalizer.expr(&least)?;
                let least = self.polynomial(least)?;
                Extreme::Finite(self.normalizer.expr(&least)?)
            }
            Least::PositiveInfinity => Extreme::PositiveInfinity,
        })
    }

    /// The least value over the eliminated variables.
    fn least(&mut self, value: Polynomial) -> Result<Least> {
        let mut pending = vec![value];
        let mut ends = Vec::new();
        // Bounds that lead from one eliminated variable to the next end up here too.
        loop {
            self.step(0)?;
            let Some(value) = pending.pop() else {
                return Ok(if ends.is_empty() {
                    Least::PositiveInfinity
                } else {
                    Least::Finite(ends)
                });
            };
            match self.eliminate_one(&value)? {
                Eliminated::Nothing => ends.push(value),
                Eliminated::Ends(values) => pending.extend(values),
                Eliminated::Infinite(Limit::NegativeInfinity, var) => {
                    return Ok(Least::NegativeInfinity(var));
                }
                Eliminated::Infinite(..) => {}
            }
        }
    }

    /// Replaces one eliminated variable by the end of its interval where the value is least, or by
    /// both ends where the value is affine in it.
    fn eliminate_one(&mut self, value: &Polynomial) -> Result<Eliminated> {
        let mut obstacle = None;
        let mut affine = None;
        for var in self.context().vars_of_all(&atoms(value)) {
            let Some((lower, upper)) = (self.eliminate)(var).filter(|_| Some(var) != self.variable)
            else {
                continue;
            };
            let (end, infinity) = match self.trend(value, var, 0) {
                Ok(Trend::Constant | Trend::Rising) => (lower, Limit::NegativeInfinity),
                Ok(Trend::Falling) => (upper, Limit::PositiveInfinity),
                unclear => {
                    if let (Some(lower), Some(upper)) = (lower, upper)
                        && affine.is_none()
                        && self.is_affine(value, var)
                    {
                        affine = Some((var, lower, upper));
                    }
                    obstacle = obstacle.or(Some(match unclear {
                        Ok(_) => SolveError::NotMonotone { var },
                        Err(error) => error,
                    }));
                    continue;
                }
            };
            return match end {
                Some(end) => Ok(Eliminated::Ends(vec![self.at(value, var, end)?])),
                None => Ok(match self.limit(value, var, &infinity, 0)? {
                    Limit::Finite(value) => Eliminated::Ends(vec![value]),
                    infinite => Eliminated::Infinite(infinite, var),
                }),
            };
        }
        match (affine, obstacle) {
            (Some((var, lower, upper)), _) => {
                Ok(Eliminated::Ends(vec![self.at(value, var, upper)?, self.at(value, var, lower)?]))
            }
            (None, Some(obstacle)) => Err(obstacle),
            (None, None) => Ok(Eliminated::Nothing),
        }
    }

    /// The value with a bound in the place of a variable.
    fn at(&mut self, value: &Polynomial, var: Var, bound: Expr) -> Result<Polynomial> {
        let bound = self.normalizer.polynomial(bound)?.as_ref().clone();
        let var = self.context().var(var);
        Ok(Normalizer::replacing(self.context(), var, bound).renormalize(value)?)
    }

    /// Whether the variable occurs only as itself, once in each product.
    fn is_affine(&self, value: &Polynomial, var: Var) -> bool {
        value.terms().all(|(monomial, _)| {
            let mut holders = monomial.iter().filter(|&&atom| self.depends(atom, var));
            match (holders.next(), holders.next()) {
                (None, _) => true,
                (Some(&atom), None) => self.context().as_var(atom) == Some(var),
                _ => false,
            }
        })
    }

    fn trend(&mut self, value: &Polynomial, var: Var, depth: usize) -> Result<Trend> {
        self.step(depth)?;
        let mut trend = Trend::Constant;
        for (monomial, coefficient) in value.terms() {
            let (changing, fixed): (Monomial, Monomial) =
                monomial.iter().copied().partition(|&atom| self.depends(atom, var));
            let Some(&first) = changing.first() else {
                continue;
            };
            let mut factor = self.atom_trend(first, var, depth)?;
            if 1 < changing.len() {
                // A product of factors that all rise, or all fall, does so where they are not
                // negative.
                for &atom in &changing {
                    factor = factor.and(self.atom_trend(atom, var, depth)?);
                    if !self.holds(&Polynomial::atom(atom)) {
                        factor = Trend::Unknown;
                    }
                }
            }
            if fixed.iter().any(|&atom| self.depends_on_variable(atom)) {
                return Err(SolveError::VaryingCoefficient { with: var });
            }
            let factor = match self.is_positive(&Polynomial::term(fixed, coefficient), true)? {
                Some(true) => factor,
                Some(false) => factor.reversed(),
                None => Trend::Unknown,
            };
            trend = trend.and(factor);
        }
        Ok(trend)
    }

    fn atom_trend(&mut self, atom: Expr, var: Var, depth: usize) -> Result<Trend> {
        match self.context().node(atom) {
            Node::Var(_) => Ok(Trend::Rising),
            Node::FloorDiv(a, b) => {
                if self.depends(b, var) {
                    if self.depends_on_variable(a) {
                        return Err(SolveError::VaryingCoefficient { with: var });
                    }
                    return Ok(Trend::Unknown);
                }
                let (a, b) = (self.normalizer.polynomial(a)?, self.normalizer.polynomial(b)?);
                let trend = self.trend(&a, var, depth + 1)?;
                Ok(match self.is_positive(&b, false)? {
                    Some(true) => trend,
                    Some(false) => trend.reversed(),
                    None => Trend::Unknown,
                })
            }
            Node::Min(..) | Node::Max(..) => {
                let Some((_, arguments)) = self.normalizer.arguments(atom)? else {
                    return Ok(Trend::Unknown);
                };
                let mut trend = Trend::Constant;
                for argument in &arguments {
                    trend = trend.and(self.trend(argument, var, depth + 1)?);
                }
                Ok(trend)
            }
            _ => Ok(Trend::Unknown),
        }
    }

    /// The value while `var` goes to an infinity. The value is monotone in `var`, so that infinite
    /// parts agree.
    fn limit(
        &mut self,
        value: &Polynomial,
        var: Var,
        infinity: &Limit,
        depth: usize,
    ) -> Result<Limit> {
        self.step(depth)?;
        let mut finite = Polynomial::constant(value.constant_part());
        let mut infinite = None;
        for (monomial, coefficient) in value.terms() {
            let (changing, fixed): (Monomial, Monomial) =
                monomial.iter().copied().partition(|&atom| self.depends(atom, var));
            let factor = Polynomial::term(fixed, coefficient);
            let limit = match changing[..] {
                [] => Limit::Finite(Polynomial::constant(1)),
                [atom] => self.atom_limit(atom, var, infinity, depth)?,
                _ => return Err(SolveError::NotMonotone { var }),
            };
            match limit {
                Limit::Finite(limit) => finite = finite.add(&limit.mul(&factor)?)?,
                limit => {
                    infinite = Some(match self.is_positive(&factor, false)? {
                        Some(true) => limit,
                        Some(false) => limit.reversed(),
                        None => {
                            return Err(SolveError::UnknownSign {
                                coefficient: self.normalizer.expr(&factor)?,
                            });
                        }
                    });
                }
            }
        }
        Ok(infinite.unwrap_or(Limit::Finite(finite)))
    }

    fn atom_limit(
        &mut self,
        atom: Expr,
        var: Var,
        infinity: &Limit,
        depth: usize,
    ) -> Result<Limit> {
        match self.context().node(atom) {
            Node::Var(_) => Ok(match infinity {
                Limit::NegativeInfinity => Limit::NegativeInfinity,
                _ => Limit::PositiveInfinity,
            }),
            Node::FloorDiv(a, b) => {
                let (a, b) = (self.normalizer.polynomial(a)?, self.normalizer.polynomial(b)?);
                match (self.limit(&a, var, infinity, depth + 1)?, self.is_positive(&b, false)?) {
                    (Limit::Finite(limit), _) => {
                        Ok(Limit::Finite(self.normalizer.floor_div(&limit, &b)?))
                    }
                    (limit, Some(true)) => Ok(limit),
                    (limit, Some(false)) => Ok(limit.reversed()),
                    (_, None) => Err(SolveError::NotMonotone { var }),
                }
            }
            Node::Min(..) | Node::Max(..) => {
                let Some((kind, arguments)) = self.normalizer.arguments(atom)? else {
                    return Err(SolveError::NotMonotone { var });
                };
                let mut finite = Vec::new();
                for argument in &arguments {
                    match (self.limit(argument, var, infinity, depth + 1)?, kind) {
                        (Limit::Finite(limit), _) => finite.push(limit),
                        // The infinity that decides; the other one never matters.
                        (Limit::NegativeInfinity, Extremum::Min) => {
                            return Ok(Limit::NegativeInfinity);
                        }
                        (Limit::PositiveInfinity, Extremum::Max) => {
                            return Ok(Limit::PositiveInfinity);
                        }
                        _ => {}
                    }
                }
                Ok(match (finite.is_empty(), kind) {
                    (false, _) => Limit::Finite(self.extremum(kind, &finite)?),
                    (true, Extremum::Min) => Limit::PositiveInfinity,
                    (true, Extremum::Max) => Limit::NegativeInfinity,
                })
            }
            _ => Err(SolveError::NotMonotone { var }),
        }
    }

    /// Adds what `goal >= 0` says about the variable, where no other variable is left to eliminate.
    fn require(&mut self, goal: Polynomial, found: &mut Rays, depth: usize) -> Result<()> {
        self.step(depth)?;
        let Some(Parts { coefficient, atom, rest, others }) = self.parts(&goal)? else {
            if !self.holds(&goal) && !found.conditions.contains(&goal) {
                found.conditions.push(goal);
            }
            return Ok(());
        };
        let context = self.context();
        match context.node(atom) {
            Node::Min(..) | Node::Max(..) => {
                let Some((kind, arguments)) = self.normalizer.arguments(atom)? else {
                    return Err(SolveError::NotLinear);
                };
                let Some(positive) = self.is_positive(&coefficient, true)? else {
                    return Err(SolveError::UnknownSign {
                        coefficient: self.normalizer.expr(&coefficient)?,
                    });
                };
                // c*min(a, b) + r == min(c*a + r, c*b + r) for c >= 0, and a maximum for c <= 0.
                let mut goals = Vec::with_capacity(arguments.len());
                for argument in &arguments {
                    goals.push(coefficient.mul(argument)?.add(&rest)?);
                }
                if (kind == Extremum::Min) == positive {
                    goals.into_iter().try_for_each(|goal| self.require(goal, found, depth + 1))
                } else {
                    self.require_any(goals, found, depth + 1)
                }
            }
            Node::FloorDiv(numerator, divisor) => {
                if self.depends_on_variable(divisor) {
                    return Err(SolveError::NotLinear);
                }
                let numerator = self.normalizer.polynomial(numerator)?;
                let divisor = self.normalizer.polynomial(divisor)?;
                if divisor.as_constant() == Some(0) {
                    return Err(SolveError::DivisionByZero);
                }
                if self.is_positive(&divisor, false)? != Some(true) {
                    return Err(SolveError::UnknownSign {
                        coefficient: self.normalizer.expr(&divisor)?,
                    });
                }
                let (positive, bound) = match coefficient.as_constant() {
                    Some(1) => (true, rest.scale(-1)?),
                    Some(-1) => (false, rest),
                    _ if others => return Err(SolveError::NotLinear),
                    _ => self.quotient_bound(&coefficient, &rest)?,
                };
                let goal = if positive {
                    // floor(x / d) >= b  ==  x - d*b >= 0
                    numerator.sub(&divisor.mul(&bound)?)?
                } else {
                    // floor(x / d) <= b  ==  d*b + d - 1 - x >= 0
                    divisor.mul(&bound)?.add(&divisor)?.plus(-1)?.sub(&numerator)?
                };
                self.require(goal, found, depth + 1)
            }
            Node::Mod(_, divisor) if !others => {
                // Somewhere between 0 and divisor - 1; solved only if the worst of them will do.
                let last = self.normalizer.polynomial(divisor)?.plus(-1)?;
                let at_last = coefficient.mul(&last)?.add(&rest)?;
                if self.holds(&last) && self.holds(&rest) && self.holds(&at_last) {
                    Ok(())
                } else {
                    Err(SolveError::NotLinear)
                }
            }
            Node::Var(_) => {
                let (positive, bound) = self.quotient_bound(&coefficient, &rest)?;
                if positive {
                    found.lowers.push(bound)
                } else {
                    found.uppers.push(bound)
                }
                Ok(())
            }
            _ => Err(SolveError::NotLinear),
        }
    }

    /// Solves `coefficient * x + rest >= 0` for an integer `x`: whether it bounds from below, and
    /// the bound.
    fn quotient_bound(
        &mut self,
        coefficient: &Polynomial,
        rest: &Polynomial,
    ) -> Result<(bool, Polynomial)> {
        match self.is_positive(coefficient, false)? {
            Some(true) => {
                // ceil(-r / c) == floor((c - 1 - r) / c)
                let numerator = coefficient.plus(-1)?.sub(rest)?;
                Ok((true, self.normalizer.floor_div(&numerator, coefficient)?))
            }
            Some(false) => Ok((false, self.normalizer.floor_div(rest, &coefficient.scale(-1)?)?)),
            None => {
                Err(SolveError::UnknownSign { coefficient: self.normalizer.expr(coefficient)? })
            }
        }
    }

    /// Adds what "one of `goals` is `>= 0`" says about the variable.
    fn require_any(
        &mut self,
        goals: Vec<Polynomial>,
        found: &mut Rays,
        depth: usize,
    ) -> Result<()> {
        let mut open = Vec::new();
        let mut refuted = None;
        for goal in goals {
            let free = !goal
                .terms()
                .any(|(monomial, _)| monomial.iter().any(|&atom| self.depends_on_variable(atom)));
            if !free {
                open.push(goal);
                continue;
            }
            match self.prover.verdict(&mut self.normalizer, &goal) {
                Verdict::Proved => return Ok(()),
                Verdict::Refuted => refuted = Some(goal),
                Verdict::Unknown => {
                    return Err(SolveError::Undecided { condition: self.normalizer.expr(&goal)? });
                }
            }
        }
        if open.len() <= 1 {
            return match open.pop().or(refuted) {
                Some(goal) => self.require(goal, found, depth),
                None => Ok(()),
            };
        }
        let (mut lowers, mut uppers) = (Vec::new(), Vec::new());
        for goal in open {
            let mut alternative = Rays::default();
            self.require(goal, &mut alternative, depth)?;
            if let Some(condition) = alternative.conditions.first() {
                return Err(SolveError::Undecided { condition: self.normalizer.expr(condition)? });
            }
            match (alternative.lowers.is_empty(), alternative.uppers.is_empty()) {
                (true, true) => return Ok(()),
                (false, true) => lowers.push(self.extremum(Extremum::Max, &alternative.lowers)?),
                (true, false) => uppers.push(self.extremum(Extremum::Min, &alternative.uppers)?),
                (false, false) => return Err(SolveError::NotAnInterval),
            }
        }
        match (lowers.is_empty(), uppers.is_empty()) {
            (false, true) => found.lowers.push(self.extremum(Extremum::Min, &lowers)?),
            (true, false) => found.uppers.push(self.extremum(Extremum::Max, &uppers)?),
            _ => {
                // Rays in both directions: everything if they meet.
                let lower = self.extremum(Extremum::Min, &lowers)?;
                let upper = self.extremum(Extremum::Max, &uppers)?;
                if !self.holds(&upper.plus(1)?.sub(&lower)?) {
                    return Err(SolveError::NotAnInterval);
                }
            }
        }
        Ok(())
    }

    /// Splits off the operation around the variable that has to be undone next; `None` without the
    /// variable.
    fn parts(&mut self, goal: &Polynomial) -> Result<Option<Parts>> {
        let mut best: Option<(u8, Expr)> = None;
        let mut found = Vec::new();
        for (monomial, coefficient) in goal.terms() {
            let mut dependent =
                monomial.iter().copied().filter(|&atom| self.depends_on_variable(atom));
            let Some(atom) = dependent.next() else {
                continue;
            };
            if dependent.next().is_some() {
                return Err(SolveError::NotLinear);
            }
            found.push((atom, monomial.clone(), coefficient));
            // Minima and maxima distribute over everything; a division wants the rest on the other
            // side; the variable itself comes last. Of two divisions, one that has no coefficient.
            let rank = match self.context().node(atom) {
                Node::Min(..) | Node::Max(..) => 0,
                Node::FloorDiv(..) if monomial.len() == 1 && coefficient.unsigned_abs() == 1 => 1,
                Node::FloorDiv(..) => 2,
                Node::Mod(..) => 3,
                Node::Var(_) => 5,
                _ => 4,
            };
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, atom));
            }
        }
        let Some((_, atom)) = best else {
            return Ok(None);
        };
        let mut coefficient = Polynomial::default();
        let mut rest = goal.clone();
        let mut others = false;
        for (candidate, monomial, factor) in found {
            if candidate != atom {
                others = true;
                continue;
            }
            rest = rest.sub(&Polynomial::term(monomial.clone(), factor))?;
            let mut fixed = monomial;
            fixed.retain(|&mut candidate| candidate != atom);
            coefficient = coefficient.add(&Polynomial::term(fixed, factor))?;
        }
        Ok(Some(Parts { coefficient, atom, rest, others }))
    }
}

fn atoms(value: &Polynomial) -> Vec<Expr> {
    value.terms().flat_map(|(monomial, _)| monomial.iter().copied()).collect()
}

/// `goal == coefficient * atom + rest`.
struct Parts {
    coefficient: Polynomial,
    atom: Expr,
    rest: Polynomial,
    /// Whether the variable occurs in `rest`.
    others: bool,
}

#[cfg(test)]
mod tests;
