//! Evaluation of a map at many points.
//!
//! [`Context::eval`] sorts the subexpressions of what it evaluates each time. A [`MapEvaluator`]
//! does that once, so that a point costs one operation per subexpression. Those that depend on no
//! variable that has changed since the last point keep their values: enumeration is fastest with
//! the last variable first.

use std::fmt;
use std::ops::Range;

use crate::expr::{Context, EvalError, Expr, Node, Var, value_of_node};
use crate::interval::Interval;
use crate::map::IndexingMap;
use crate::text::default_name;

/// Values of all variables of a map.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Values {
    /// Those of the dimension variables.
    pub dims: Vec<i64>,
    /// Those of the range variables.
    pub ranges: Vec<i64>,
    /// Those of the runtime variables.
    pub runtimes: Vec<i64>,
}

impl Values {
    /// The value of `var`, if there is one.
    pub fn of(&self, var: Var) -> Option<i64> {
        match var {
            Var::Dim(i) => self.dims.get(i as usize),
            Var::Range(i) => self.ranges.get(i as usize),
            Var::Runtime(i) => self.runtimes.get(i as usize),
        }
        .copied()
    }

    /// The value of `var` for a change, if there is one.
    pub(crate) fn of_mut(&mut self, var: Var) -> Option<&mut i64> {
        match var {
            Var::Dim(i) => self.dims.get_mut(i as usize),
            Var::Range(i) => self.ranges.get_mut(i as usize),
            Var::Runtime(i) => self.runtimes.get_mut(i as usize),
        }
    }
}

/// `d0 = 1, s0 = 2, rt0 = 3`.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = (0..).map(Var::Dim).zip(&self.dims);
        let ranges = (0..).map(Var::Range).zip(&self.ranges);
        let runtimes = (0..).map(Var::Runtime).zip(&self.runtimes);
        for (place, (var, value)) in dims.chain(ranges).chain(runtimes).enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}{} = {value}", default_name(var))?;
        }
        Ok(())
    }
}

impl FromIterator<(Var, i64)> for Values {
    /// The variables of each kind have to come in their order.
    fn from_iter<T: IntoIterator<Item = (Var, i64)>>(vars: T) -> Self {
        let mut values = Self::default();
        for (var, value) in vars {
            match var {
                Var::Dim(_) => values.dims.push(value),
                Var::Range(_) => values.ranges.push(value),
                Var::Runtime(_) => values.runtimes.push(value),
            }
        }
        values
    }
}

/// Values of the expressions of one map, at one point after the other.
///
/// ```
/// use tc_ir::{Context, IndexingMap, MapEvaluator, Values};
/// let ctx = Context::new();
/// let text = "(d0) -> (d0 / 2, d0 mod 2), domain: d0 in [0, 9], d0 mod 4 in [0, 1]";
/// let map = IndexingMap::parse(&ctx, text)?;
/// let mut evaluator = MapEvaluator::new(&ctx, &map);
/// let at = |d0| Values { dims: vec![d0], ..Values::default() };
/// assert_eq!(evaluator.contains(&at(5)), Ok(true));
/// assert_eq!(evaluator.result(0), Ok(2));
/// assert_eq!(evaluator.contains(&at(6)), Ok(false));
/// # Ok::<(), tc_ir::ParseError>(())
/// ```
pub struct MapEvaluator {
    /// Operations with the places of their operands, which come before them, sorted by the last
    /// variable that they depend on.
    steps: Vec<(Node, usize, usize)>,
    /// The variables in their order, with their last values and the first step that depends on them.
    vars: Vec<(Var, Option<i64>, usize)>,
    /// Those of the steps at the last point.
    values: Vec<Result<i128, EvalError>>,
    /// The places of the bounds of each variable.
    bounds: Vec<(Var, Option<usize>, Option<usize>)>,
    constraints: Vec<(usize, Interval)>,
    results: Vec<usize>,
}

impl MapEvaluator {
    /// An evaluator of `map`.
    pub fn new(ctx: &Context, map: &IndexingMap) -> Self {
        let bounds = map.vars().flat_map(|(_, it)| it.lower.into_iter().chain(it.upper));
        let constraints = map.constraints.iter().map(|constraint| constraint.expr);
        let roots: Vec<Expr> = bounds.chain(constraints).chain(map.results.clone()).collect();
        let order = ctx.topological(&roots);
        let found =
            |expr: Expr| order.binary_search(&expr).expect("the order holds every subexpression");
        let mut last_vars: Vec<Option<Var>> = Vec::with_capacity(order.len());
        for &expr in &order {
            last_vars.push(match (ctx.node(expr), ctx.node(expr).operands()) {
                (Node::Var(var), _) => Some(var),
                (_, Some((lhs, rhs))) => last_vars[found(lhs)].max(last_vars[found(rhs)]),
                (_, None) => None,
            });
        }
        let mut sorted: Vec<usize> = (0..order.len()).collect();
        sorted.sort_by_key(|&number| last_vars[number]);
        let mut places = vec![0; order.len()];
        for (place, &number) in sorted.iter().enumerate() {
            places[number] = place;
        }
        let place = |expr: Expr| places[found(expr)];
        let step = |&number: &usize| {
            let node = ctx.node(order[number]);
            let (lhs, rhs) = node.operands().map_or((0, 0), |(lhs, rhs)| (place(lhs), place(rhs)));
            (node, lhs, rhs)
        };
        let mut vars: Vec<(Var, Option<i64>, usize)> = Vec::new();
        for (place, &number) in sorted.iter().enumerate() {
            if let Some(var) = last_vars[number]
                && vars.last().is_none_or(|&(last, ..)| last != var)
            {
                vars.push((var, None, place));
            }
        }
        Self {
            steps: sorted.iter().map(step).collect(),
            vars,
            values: Vec::with_capacity(order.len()),
            bounds: map
                .vars()
                .map(|(var, it)| (var, it.lower.map(place), it.upper.map(place)))
                .collect(),
            constraints: map.constraints.iter().map(|c| (place(c.expr), c.interval)).collect(),
            results: map.results.iter().map(|&result| place(result)).collect(),
        }
    }

    /// Goes to a point and returns whether it lies in the domain.
    ///
    /// # Errors
    /// As [`IndexingMap::contains`].
    pub fn contains(&mut self, point: &Values) -> Result<bool, EvalError> {
        let mut first = if self.values.is_empty() { 0 } else { self.steps.len() };
        for (var, last, step) in &mut self.vars {
            let value = point.of(*var);
            if *last != value {
                *last = value;
                first = first.min(*step);
            }
        }
        self.values.truncate(first);
        for &(node, lhs, rhs) in &self.steps[first..] {
            let value = match (node.operands(), self.values.get(lhs), self.values.get(rhs)) {
                (Some(_), Some(&Ok(lhs)), Some(&Ok(rhs))) => {
                    value_of_node(node, lhs, rhs, &|_| None)
                }
                (Some(_), Some(&Err(error)), _) | (Some(_), _, Some(&Err(error))) => Err(error),
                _ => value_of_node(node, 0, 0, &|var| point.of(var)),
            };
            self.values.push(value);
        }
        for &(var, lower, upper) in &self.bounds {
            let value = i128::from(point.of(var).ok_or(EvalError::Unbound(var))?);
            if let Some(lower) = lower
                && value < self.values[lower]?
            {
                return Ok(false);
            }
            if let Some(upper) = upper
                && self.values[upper]? < value
            {
                return Ok(false);
            }
        }
        let mut inside = true;
        for &(place, interval) in &self.constraints {
            inside &= interval.contains_wide(self.values[place]?);
        }
        Ok(inside)
    }

    /// The numbers of the results.
    pub fn results(&self) -> Range<usize> {
        0..self.results.len()
    }

    /// The result with the given number at the point of the last call of
    /// [`contains`](Self::contains).
    ///
    /// # Errors
    /// As [`Context::eval`].
    ///
    /// # Panics
    /// Before the first point, and for a number out of [`results`](Self::results).
    pub fn result(&self, number: usize) -> Result<i64, EvalError> {
        i64::try_from(self.values[self.results[number]]?).map_err(|_| EvalError::Overflow)
    }
}
