//! The domain of a map as an [integer program](crate::integer_program).
//!
//! The unknowns are the variables and the operations that are not linear. `q = e floordiv c` is `0 <=
//! e - c*q <= c - 1`, `e mod c` is `e - c*(e floordiv c)`, and a minimum is at most each of its
//! operands and a choice between them. Of other operations (products of variables, divisions by
//! them) only an interval is known: without a point of the program, there is none of the domain, but
//! a point of the program need not be one of the domain.

use crate::evaluator::Values;
use crate::expr::{Context, Expr, Node};
use crate::hash::FastMap;
use crate::integer_program::{Answer, Program, Row, Terms, combination};
use crate::interval::Interval;
use crate::map::{IndexingMap, VarIntervals};

/// The most unknowns.
const MAX_COLUMNS: usize = 256;

/// What the program of a domain says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LinearAnswer {
    /// The domain is empty.
    Empty,
    /// A point of it, if all operations are linear in the sense of the [module](self) text.
    Point(Values),
    /// Neither is shown.
    Unknown,
}

/// Rows over the subexpressions of a domain.
pub(crate) struct LinearDomain<'a> {
    ctx: &'a Context,
    map: &'a IndexingMap,
    intervals: VarIntervals,
    columns: FastMap<Expr, u32>,
    exprs: Vec<Expr>,
    /// The first unknown that nothing is said of yet.
    next: usize,
    program: Program,
    is_linear: bool,
}

impl<'a> LinearDomain<'a> {
    /// The bounds and constraints of a map.
    pub(crate) fn new(ctx: &'a Context, map: &'a IndexingMap) -> Self {
        let mut domain = Self {
            ctx,
            map,
            intervals: map.intervals(ctx),
            columns: FastMap::default(),
            exprs: Vec::new(),
            next: 0,
            program: Program::default(),
            is_linear: true,
        };
        for (var, variable) in map.vars() {
            // Constant bounds say nothing of a variable that nothing else mentions.
            if variable.constant_interval(ctx).is_none_or(Interval::is_empty) {
                domain.column(ctx.var(var));
            }
        }
        for constraint in &map.constraints {
            let row = domain.row(constraint.expr, constraint.interval);
            domain.program.rows.extend(row);
        }
        domain
    }

    /// Whether all operations are linear in the sense of the [module](self) text.
    pub(crate) fn is_linear(&self) -> bool {
        self.is_linear
    }

    /// Adds that one of some expressions lies in its interval.
    pub(crate) fn choose(&mut self, alternatives: &[(Expr, Interval)]) {
        // Where one always does, there is no choice.
        let rows = alternatives.iter().map(|&(expr, interval)| self.row(expr, interval));
        let rows: Option<Vec<Row>> = rows.collect();
        self.program.choices.extend(rows);
    }

    /// Adds that one of some claims, that expressions lie in intervals, is wrong.
    pub(crate) fn deny(&mut self, claims: &[(Expr, Interval)]) {
        let mut violations = Vec::new();
        for &(expr, Interval { lo, hi }) in claims {
            let below = lo.checked_sub(1).map(|end| (expr, Interval::new(i64::MIN, end)));
            let above = hi.checked_add(1).map(|end| (expr, Interval::new(end, i64::MAX)));
            violations.extend(below.into_iter().chain(above));
        }
        self.choose(&violations);
    }

    /// A point of the domain, or that there is none; see [`Program::solve`] for the work.
    pub(crate) fn solve(&mut self, work: &mut usize) -> LinearAnswer {
        self.define_all();
        match self.program.solve(work) {
            Answer::Empty => LinearAnswer::Empty,
            Answer::Point(values) => {
                self.values(&values).map_or(LinearAnswer::Unknown, LinearAnswer::Point)
            }
            Answer::Unknown => LinearAnswer::Unknown,
        }
    }

    /// [Solves](Self::solve) the domain where `expr` lies in `interval`.
    pub(crate) fn solve_within(
        &mut self,
        expr: Expr,
        interval: Interval,
        work: &mut usize,
    ) -> LinearAnswer {
        let row = self.row(expr, interval);
        self.define_all();
        let num_rows = self.program.rows.len();
        self.program.rows.extend(row);
        let answer = self.solve(work);
        self.program.rows.truncate(num_rows);
        answer
    }

    /// Adds what is known of the unknowns.
    fn define_all(&mut self) {
        while self.next < self.exprs.len().min(MAX_COLUMNS) {
            self.define(self.exprs[self.next]);
            self.next += 1;
        }
    }

    /// The values of the variables at a point of the program; `None` where one leaves 64 bits.
    fn values(&self, found: &[i128]) -> Option<Values> {
        let value_of = |var| {
            let column = self.columns.get(&self.ctx.var(var));
            let value = match column.and_then(|&column| found.get(column as usize)) {
                Some(&value) => i64::try_from(value).ok()?,
                None => self.intervals.of(var).nearest(0),
            };
            Some((var, value))
        };
        self.map.vars().map(|(var, _)| value_of(var)).collect()
    }

    fn column(&mut self, expr: Expr) -> u32 {
        let next = self.exprs.len();
        let column =
            *self.columns.entry(expr).or_insert_with(|| u32::try_from(next).unwrap_or(u32::MAX));
        if column as usize == next {
            self.exprs.push(expr);
        }
        column
    }

    /// The expression as a sum over unknowns, and its constant.
    fn affine(&mut self, expr: Expr) -> (Terms, i128) {
        // What overflows is an unknown as a whole.
        let Some(linear) = self.ctx.linear_terms(expr) else {
            return (vec![(self.column(expr), 1)], 0);
        };
        let mut terms: Terms =
            linear.terms.iter().map(|&(term, by)| (self.column(term), by.into())).collect();
        terms.sort_unstable();
        (terms, linear.constant.into())
    }

    /// `expr` lies in `interval`; `None` where all do.
    fn row(&mut self, expr: Expr, interval: Interval) -> Option<Row> {
        let (terms, constant) = self.affine(expr);
        let end = |end: i64, infinite: i64| (end != infinite).then(|| i128::from(end) - constant);
        let (lower, upper) = (end(interval.lo, i64::MIN), end(interval.hi, i64::MAX));
        (lower.is_some() || upper.is_some()).then_some(Row { terms, lower, upper })
    }

    /// `lower <= expr + factor*other <= upper`.
    fn relation(
        &mut self,
        expr: Expr,
        factor: i128,
        other: Expr,
        [lower, upper]: [Option<i128>; 2],
    ) -> Option<Row> {
        let ((terms, constant), (others, by)) = (self.affine(expr), self.affine(other));
        let terms = combination(&terms, 1, &others, factor)?;
        let constant = by.checked_mul(factor)?.checked_add(constant)?;
        let moved = |end: Option<i128>| end.map(|end| end.checked_sub(constant));
        let (lower, upper) = (moved(lower), moved(upper));
        if matches!(lower, Some(None)) || matches!(upper, Some(None)) {
            return None;
        }
        Some(Row { terms, lower: lower.flatten(), upper: upper.flatten() })
    }

    /// Adds what is known of an unknown.
    fn define(&mut self, expr: Expr) {
        let ctx = self.ctx;
        let divisor = |by: Expr| ctx.as_constant(by).filter(|&by| by != 0).map(i128::from);
        let at_least = [Some(0), None];
        match ctx.node(expr) {
            Node::Var(var) => {
                let row = self.row(expr, self.intervals.of(var));
                self.program.rows.extend(row);
                let variable = self.map.variable(var);
                let is_symbolic = |bound: &Expr| ctx.as_constant(*bound).is_none();
                if let Some(lower) = variable.and_then(|it| it.lower).filter(is_symbolic) {
                    let row = self.relation(expr, -1, lower, at_least);
                    self.program.rows.extend(row);
                }
                if let Some(upper) = variable.and_then(|it| it.upper).filter(is_symbolic) {
                    let row = self.relation(upper, -1, expr, at_least);
                    self.program.rows.extend(row);
                }
                return;
            }
            Node::FloorDiv(value, by) => {
                if let Some(by) = divisor(by) {
                    // The remainder has the sign of the divisor.
                    let ends = [(by + 1).min(0), (by - 1).max(0)].map(Some);
                    let row = self.relation(value, -by, expr, ends);
                    self.program.rows.extend(row);
                    return;
                }
            }
            Node::CeilDiv(value, by) => {
                if let Some(by) = divisor(by) {
                    let ends = [(1 - by).min(0), (-by - 1).max(0)].map(Some);
                    let row = self.relation(value, -by, expr, ends);
                    self.program.rows.extend(row);
                    return;
                }
            }
            Node::Mod(value, by) => {
                if let Some(by) =
                    ctx.as_constant(by).and_then(i64::checked_abs).filter(|&by| 0 < by)
                {
                    let row = self.row(expr, Interval::new(0, by - 1));
                    self.program.rows.extend(row);
                    let quotient = ctx.floor_div(value, ctx.constant(by));
                    let rest = ctx.sub(value, expr);
                    let row = self.relation(rest, -i128::from(by), quotient, [Some(0); 2]);
                    self.program.rows.extend(row);
                    return;
                }
            }
            node @ (Node::Min(lhs, rhs) | Node::Max(lhs, rhs)) => {
                let sign = if matches!(node, Node::Min(..)) { 1 } else { -1 };
                let mut alternatives = Vec::new();
                for operand in [lhs, rhs] {
                    let (above, below) = if sign == 1 { (operand, expr) } else { (expr, operand) };
                    let row = self.relation(above, -1, below, at_least);
                    self.program.rows.extend(row);
                    alternatives.extend(self.relation(operand, -1, expr, [Some(0); 2]));
                }
                if alternatives.len() == 2 {
                    self.program.choices.push(alternatives);
                    return;
                }
            }
            _ => {}
        }
        self.is_linear = false;
        let interval = ctx.interval_of(expr, &|var| self.intervals.of(var));
        let row = self.row(expr, interval);
        self.program.rows.extend(row);
    }
}
