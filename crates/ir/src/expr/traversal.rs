//! Bottom-up computations over expressions: values, enclosures, substitutions.

use std::collections::BTreeSet;
use std::convert::Infallible;

use smallvec::SmallVec;

use super::{Context, EvalError, Expr, Node, Var, gcd};
use crate::hash::{FastMap, FastSet};
use crate::interval::{Interval, ceil_div_wide, floor_div_wide, remainder_wide};

/// The most operators of an expression that is walked as a tree.
const MAX_SMALL: u32 = 32;

impl Context {
    /// Every subexpression of `roots` once, operands before their users.
    pub fn topological(&self, roots: &[Expr]) -> Vec<Expr> {
        self.sorted(roots).into_vec()
    }

    fn sorted(&self, roots: &[Expr]) -> SmallVec<[Expr; 32]> {
        let arena = self.arena.borrow();
        let mut seen = FastSet::default();
        let mut stack: SmallVec<[Expr; 32]> = roots.into();
        let mut order: SmallVec<[Expr; 32]> = SmallVec::new();
        while let Some(expr) = stack.pop() {
            // A few are searched faster than hashed.
            if order.len() < 32 {
                if order.contains(&expr) {
                    continue;
                }
            } else {
                if seen.is_empty() {
                    seen.extend(order.iter().copied());
                }
                if !seen.insert(expr) {
                    continue;
                }
            }
            order.push(expr);
            if let Some((lhs, rhs)) = arena.node(expr).operands() {
                stack.push(lhs);
                stack.push(rhs);
            }
        }
        order.sort_unstable();
        order
    }

    /// The operands of an operation and of those operations in it that are like it, each once, from
    /// the last to the first.
    pub(crate) fn operands_of(&self, expr: Expr, is_like: impl Fn(Node) -> bool) -> Vec<Expr> {
        let (mut operands, mut seen) = (Vec::new(), FastSet::default());
        let mut stack: SmallVec<[Expr; 16]> = SmallVec::from_slice(&[expr]);
        while let Some(expr) = stack.pop() {
            let node = self.node(expr);
            match node.operands().filter(|_| is_like(node)) {
                Some(_) if !seen.insert(expr) => {}
                Some((lhs, rhs)) => stack.extend([lhs, rhs]),
                None => operands.push(expr),
            }
        }
        operands
    }

    /// Computes one value per subexpression from the values of its operands and returns those
    /// of `roots`.
    pub fn fold<T: Clone, E>(
        &self,
        roots: &[Expr],
        mut step: impl FnMut(Expr, Node, Option<(&T, &T)>) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        if self.are_small(roots) {
            return roots.iter().map(|&root| self.fold_small(root, &mut step)).collect();
        }
        let order = self.sorted(roots);
        let place =
            |expr: Expr| order.binary_search(&expr).expect("the order holds every subexpression");
        let mut values: SmallVec<[T; 16]> = SmallVec::with_capacity(order.len());
        for &expr in &order {
            let node = self.node(expr);
            let operands =
                node.operands().map(|(lhs, rhs)| (&values[place(lhs)], &values[place(rhs)]));
            let value = step(expr, node, operands)?;
            values.push(value);
        }
        Ok(roots.iter().map(|&root| values[place(root)].clone()).collect())
    }

    /// [`fold`](Self::fold) where no step fails.
    pub fn fold_values<T: Clone>(
        &self,
        roots: &[Expr],
        mut step: impl FnMut(Expr, Node, Option<(&T, &T)>) -> T,
    ) -> Vec<T> {
        let Ok(values) = self
            .fold(roots, |expr, node, operands| Ok::<_, Infallible>(step(expr, node, operands)));
        values
    }

    /// [`fold_values`](Self::fold_values) for one expression.
    pub fn fold_value<T: Clone>(
        &self,
        root: Expr,
        mut step: impl FnMut(Expr, Node, Option<(&T, &T)>) -> T,
    ) -> T {
        if self.are_small(&[root]) {
            let Ok(value) = self.fold_small(root, &mut |expr, node, operands| {
                Ok::<_, Infallible>(step(expr, node, operands))
            });
            return value;
        }
        self.fold_values(&[root], step).swap_remove(0)
    }

    /// Whether every expression is so small that walking it as a tree beats looking for what it
    /// shares. The number of operators limits the depth too.
    pub(crate) fn are_small(&self, exprs: &[Expr]) -> bool {
        let arena = self.arena.borrow();
        exprs.iter().all(|expr| arena.costs[arena.place(*expr)] <= MAX_SMALL)
    }

    /// [`fold`](Self::fold) for a [small](Self::are_small) expression.
    fn fold_small<T, E>(
        &self,
        expr: Expr,
        step: &mut impl FnMut(Expr, Node, Option<(&T, &T)>) -> Result<T, E>,
    ) -> Result<T, E> {
        let node = self.node(expr);
        let Some((lhs, rhs)) = node.operands() else {
            return step(expr, node, None);
        };
        let lhs = self.fold_small(lhs, step)?;
        let rhs = self.fold_small(rhs, step)?;
        step(expr, node, Some((&lhs, &rhs)))
    }

    /// The value of `expr` where `value_of` gives the variables.
    ///
    /// # Errors
    /// The first subexpression without a value, operands before their users.
    pub fn eval(
        &self,
        expr: Expr,
        value_of: &dyn Fn(Var) -> Option<i64>,
    ) -> Result<i64, EvalError> {
        self.eval_all(&[expr], value_of).map(|values| values[0])
    }

    /// The values of several expressions; a shared subexpression is computed once.
    ///
    /// # Errors
    /// As [`eval`](Self::eval).
    pub fn eval_all(
        &self,
        exprs: &[Expr],
        value_of: &dyn Fn(Var) -> Option<i64>,
    ) -> Result<Vec<i64>, EvalError> {
        self.eval_wide(exprs, value_of)?
            .into_iter()
            .map(|value| i64::try_from(value).map_err(|_| EvalError::Overflow))
            .collect()
    }

    /// The values of several expressions, which may leave the 64-bit range.
    pub(crate) fn eval_wide(
        &self,
        exprs: &[Expr],
        value_of: &dyn Fn(Var) -> Option<i64>,
    ) -> Result<Vec<i128>, EvalError> {
        self.fold(exprs, |_, node, operands| {
            let (lhs, rhs): (i128, i128) = operands.map_or((0, 0), |(&lhs, &rhs)| (lhs, rhs));
            value_of_node(node, lhs, rhs, value_of)
        })
    }

    /// `expr` with every variable that `replacement` knows replaced, all at once.
    pub fn substitute(&self, expr: Expr, replacement: &dyn Fn(Var) -> Option<Expr>) -> Expr {
        self.substitute_all(&[expr], replacement)[0]
    }

    /// [`substitute`](Self::substitute) for several expressions.
    pub fn substitute_all(
        &self,
        exprs: &[Expr],
        replacement: &dyn Fn(Var) -> Option<Expr>,
    ) -> Vec<Expr> {
        self.rewrite(exprs, |_, node| match node {
            Node::Var(var) => replacement(var),
            _ => None,
        })
    }

    /// `expr` with every subexpression equal to `from` replaced by `to`, the outermost first.
    pub fn replace(&self, expr: Expr, from: Expr, to: Expr) -> Expr {
        self.rewrite(&[expr], |old, _| (old == from).then_some(to))[0]
    }

    /// Rebuilds `exprs` with some subexpressions replaced; what `chosen` returns is not
    /// looked into.
    fn rewrite(
        &self,
        exprs: &[Expr],
        mut chosen: impl FnMut(Expr, Node) -> Option<Expr>,
    ) -> Vec<Expr> {
        if self.are_small(exprs) {
            return exprs.iter().map(|&expr| self.rewrite_small(expr, &mut chosen)).collect();
        }
        self.fold_values(exprs, |expr, node, operands| match (chosen(expr, node), operands) {
            (Some(new), _) => new,
            (None, Some((&lhs, &rhs))) => self.rebuild(node, lhs, rhs),
            (None, None) => expr,
        })
    }

    /// [`rewrite`](Self::rewrite) for a [small](Self::are_small) expression.
    fn rewrite_small(
        &self,
        expr: Expr,
        chosen: &mut impl FnMut(Expr, Node) -> Option<Expr>,
    ) -> Expr {
        let node = self.node(expr);
        if let Some(new) = chosen(expr, node) {
            return new;
        }
        let Some((old_lhs, old_rhs)) = node.operands() else {
            return expr;
        };
        let lhs = self.rewrite_small(old_lhs, chosen);
        let rhs = self.rewrite_small(old_rhs, chosen);
        if (lhs, rhs) == (old_lhs, old_rhs) { expr } else { self.rebuild(node, lhs, rhs) }
    }

    /// Expressions of another context in this one. What is made for them comes in the order of their
    /// structure, whatever order they were made in.
    pub(crate) fn import(&self, from: &Context, exprs: &[Expr]) -> Vec<Expr> {
        let mut imported: FastMap<Expr, Expr> = FastMap::default();
        let mut stack: Vec<Expr> = exprs.iter().rev().copied().collect();
        while let Some(&expr) = stack.last() {
            let node = from.node(expr);
            let new = match node.operands() {
                _ if imported.contains_key(&expr) => None,
                None => Some(node),
                Some((lhs, rhs)) => match (imported.get(&lhs), imported.get(&rhs)) {
                    (Some(&lhs), Some(&rhs)) => Some(node.over(lhs, rhs)),
                    _ => {
                        stack.extend([rhs, lhs]);
                        continue;
                    }
                },
            };
            stack.pop();
            if let Some(new) = new {
                imported.insert(expr, self.intern(new));
            }
        }
        exprs.iter().map(|expr| imported[expr]).collect()
    }

    /// The variables of `expr`.
    pub fn vars(&self, expr: Expr) -> BTreeSet<Var> {
        self.vars_of_all(&[expr])
    }

    /// The variables of several expressions.
    pub fn vars_of_all(&self, exprs: &[Expr]) -> BTreeSet<Var> {
        self.topological(exprs).into_iter().filter_map(|expr| self.as_var(expr)).collect()
    }

    /// An interval that holds every value that `expr` takes while each variable stays in its
    /// interval. Points where `expr` is undefined count as no value.
    pub fn interval_of(&self, expr: Expr, interval: &dyn Fn(Var) -> Interval) -> Interval {
        self.fold_value(expr, |_, node, operands| interval_of_node(node, operands, interval))
    }

    /// [`interval_of`](Self::interval_of) for several expressions.
    pub fn intervals_of(
        &self,
        exprs: &[Expr],
        interval: &dyn Fn(Var) -> Interval,
    ) -> Vec<Interval> {
        self.fold_values(exprs, |_, node, operands| interval_of_node(node, operands, interval))
    }

    /// A non-negative number that divides every value of `expr`; zero when `expr` is always
    /// zero.
    pub fn divisor_of(&self, expr: Expr) -> u64 {
        self.fold_value(expr, |_, node, operands| {
            let (lhs, rhs) = operands.map_or((1, 1), |(&lhs, &rhs)| (lhs, rhs));
            let quotient = |divisor: Expr| match self.as_constant(divisor) {
                Some(divisor) if divisor != 0 && lhs % divisor.unsigned_abs() == 0 => {
                    lhs / divisor.unsigned_abs()
                }
                _ => 1,
            };
            match node {
                Node::Const(value) => value.unsigned_abs(),
                Node::Var(_) => 1,
                Node::Mul(..) => lhs.checked_mul(rhs).unwrap_or(lhs),
                Node::FloorDiv(_, divisor) | Node::CeilDiv(_, divisor) => quotient(divisor),
                Node::Add(..) | Node::Mod(..) | Node::Min(..) | Node::Max(..) => gcd(lhs, rhs),
            }
        })
    }

    /// Whether every value of `expr` is shown to be a multiple of `factor`. A `false` means
    /// that it is not shown.
    pub fn is_multiple_of(&self, expr: Expr, factor: i64) -> bool {
        self.divisor_of(expr).is_multiple_of(factor.unsigned_abs())
    }
}

/// The value of one operation from those of its operands; leaves have none.
pub(crate) fn value_of_node(
    node: Node,
    lhs: i128,
    rhs: i128,
    value_of: &dyn Fn(Var) -> Option<i64>,
) -> Result<i128, EvalError> {
    if node.is_division() && rhs == 0 {
        return Err(EvalError::DivisionByZero);
    }
    let value = match node {
        Node::Const(value) => Some(i128::from(value)),
        Node::Var(var) => Some(i128::from(value_of(var).ok_or(EvalError::Unbound(var))?)),
        Node::Add(..) => lhs.checked_add(rhs),
        Node::Mul(..) => lhs.checked_mul(rhs),
        Node::FloorDiv(..) | Node::CeilDiv(..) if lhs == i128::MIN && rhs == -1 => None,
        Node::FloorDiv(..) => Some(floor_div_wide(lhs, rhs)),
        Node::CeilDiv(..) => Some(ceil_div_wide(lhs, rhs)),
        // The smallest number is a multiple of -1, whatever the quotient.
        Node::Mod(..) if lhs == i128::MIN || rhs == i128::MIN => {
            Some(lhs.checked_rem_euclid(rhs).unwrap_or(0))
        }
        Node::Mod(..) => Some(remainder_wide(lhs, rhs)),
        Node::Min(..) => Some(lhs.min(rhs)),
        Node::Max(..) => Some(lhs.max(rhs)),
    };
    value.ok_or(EvalError::Overflow)
}

/// The enclosure of a node from those of its operands and of the variables.
fn interval_of_node(
    node: Node,
    operands: Option<(&Interval, &Interval)>,
    interval: &dyn Fn(Var) -> Interval,
) -> Interval {
    match (node, operands) {
        (Node::Var(var), _) => interval(var),
        (_, Some((&lhs, &rhs))) => interval_of_operation(node, lhs, rhs),
        (_, None) => interval_of_operation(node, Interval::ALL, Interval::ALL),
    }
}

/// The enclosure of one operation from those of its operands; leaves have none.
pub(crate) fn interval_of_operation(node: Node, lhs: Interval, rhs: Interval) -> Interval {
    match node {
        Node::Const(value) => Interval::point(value),
        Node::Var(_) => Interval::ALL,
        Node::Add(..) => lhs.add(rhs),
        Node::Mul(x, y) if x == y => lhs.mul(rhs).intersect(Interval::NON_NEGATIVE),
        Node::Mul(..) => lhs.mul(rhs),
        Node::FloorDiv(..) => lhs.floor_div(rhs),
        Node::CeilDiv(..) => lhs.ceil_div(rhs),
        Node::Mod(..) => lhs.modulo(rhs),
        Node::Min(..) => lhs.min(rhs),
        Node::Max(..) => lhs.max(rhs),
    }
}
