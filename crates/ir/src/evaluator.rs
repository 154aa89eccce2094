//! Evaluation of a map at many points.
//!
//! [`Context::eval`] sorts the subexpressions of what it evaluates each time. A [`MapEvaluator`]
//! does that once, so that a point costs one operation per subexpression.

use std::ops::Range;

use crate::expr::{Context, EvalError, Expr, Node, Var, value_of_node};
use crate::interval::Interval;
use crate::map::IndexingMap;

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
    /// Operations with the places of their operands, which come before them.
    steps: Vec<(Node, usize, usize)>,
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
        let place =
            |expr: Expr| order.binary_search(&expr).expect("the order holds every subexpression");
        let step = |&expr: &Expr| {
            let node = ctx.node(expr);
            let (lhs, rhs) = node.operands().map_or((0, 0), |(lhs, rhs)| (place(lhs), place(rhs)));
            (node, lhs, rhs)
        };
        Self {
            steps: order.iter().map(step).collect(),
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
        self.values.clear();
        for &(node, lhs, rhs) in &self.steps {
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
