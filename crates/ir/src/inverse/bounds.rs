//! Bounds of the results of a map, which may be symbolic: interval arithmetic whose ends are expressions over
//! runtime variables (Blume and Eigenmann, "Symbolic Range Propagation", 1995).
//!
//! Of `d0 floordiv N` with `d0 in [0, M * N - 1]` it is `[0, M - 1]`.

use crate::expr::{Context, Expr, Node, Var};
use crate::interval::{Interval, ceil_div_wide, floor_div_wide};
use crate::map::{IndexingMap, VarIntervals, Variable};
use crate::polynomial::Normalizer;
use crate::simplify::Simplifier;

/// The most operations in a bound.
const MAX_COST: u32 = 32;

/// What the results of a map are bounded by.
pub(super) struct Bounds<'c> {
    ctx: &'c Context,
    map: &'c IndexingMap,
    intervals: VarIntervals,
    /// Where there are runtime variables.
    simplifier: Option<Simplifier<'c>>,
}

/// Makes an expression of two.
type Operation = fn(&Context, Expr, Expr) -> Expr;

/// The ends of a symbolic interval, as far as there are such.
type Ends = [Option<Expr>; 2];

/// The expression as a sum of products. `None` where that is too long.
pub(super) fn written_out(ctx: &Context, expr: Expr) -> Option<Expr> {
    let mut normalizer = Normalizer::new(ctx);
    let polynomial = normalizer.polynomial(expr).ok()?;
    normalizer.expr(&polynomial).ok()
}

/// The least and the largest value of an expression, or less and more, for variables of 64 bits: where ends of
/// 64 bits are infinite in an [`Interval`], here they are numbers. `None` where that is not known.
pub(super) fn wide_interval(
    ctx: &Context,
    expr: Expr,
    intervals: &VarIntervals,
) -> Option<[i128; 2]> {
    type Ends = Option<[i128; 2]>;
    ctx.fold_value(expr, |_, node, operands: Option<(&Ends, &Ends)>| {
        let Some((&lhs, &rhs)) = operands else {
            let interval = match node {
                Node::Var(var) => intervals.of(var),
                Node::Const(value) => Interval::point(value),
                _ => return None,
            };
            return Some([interval.lo.into(), interval.hi.into()]);
        };
        let ([a, b], [c, d]) = (lhs?, rhs?);
        let hull = |ends: [Option<i128>; 4]| {
            let [first, rest @ ..] = ends;
            rest.into_iter()
                .try_fold([first?; 2], |[lo, hi], end| Some([lo.min(end?), hi.max(end?)]))
        };
        match node {
            Node::Add(..) => Some([a.checked_add(c)?, b.checked_add(d)?]),
            Node::Mul(..) => {
                hull([a.checked_mul(c), a.checked_mul(d), b.checked_mul(c), b.checked_mul(d)])
            }
            Node::FloorDiv(..) if c == d && c != 0 => {
                let ends = [a, b].map(|end| floor_div_wide(end, c));
                Some([ends[0].min(ends[1]), ends[0].max(ends[1])])
            }
            Node::CeilDiv(..) if c == d && c != 0 => {
                let ends = [a, b].map(|end| ceil_div_wide(end, c));
                Some([ends[0].min(ends[1]), ends[0].max(ends[1])])
            }
            Node::Mod(..) => Some([0, c.checked_abs()?.max(d.checked_abs()?) - 1]),
            Node::Min(..) => Some([a.min(c), b.min(d)]),
            Node::Max(..) => Some([a.max(c), b.max(d)]),
            _ => None,
        }
    })
}

impl<'c> Bounds<'c> {
    pub(super) fn new(ctx: &'c Context, map: &'c IndexingMap) -> Self {
        let has_symbols = !map.runtimes.is_empty();
        let simplifier = has_symbols.then(|| Simplifier::for_domain(ctx, map));
        Self { ctx, map, intervals: map.intervals(ctx), simplifier }
    }

    /// Bounds that hold for every value of a result.
    pub(super) fn of(&mut self, result: Expr) -> Variable {
        let ctx = self.ctx;
        if let Some(same) = ctx.as_var(result).and_then(|var| self.map.variable(var)) {
            return Variable { name: None, ..same.clone() };
        }
        let mut variable = Variable::bounded(ctx, self.constant(result));
        if self.simplifier.is_none() {
            return variable;
        }
        let [lower, upper] = self.ends(result).map(|end| self.short(end?));
        let both = |given: Option<Expr>, end: Option<Expr>, tighter: Operation| {
            let Some((given, end)) = given.zip(end) else { return given.or(end) };
            let is_constant = ctx.as_constant(end).is_some();
            Some(if is_constant { tighter(ctx, given, end) } else { end })
        };
        variable.lower = both(variable.lower, lower, Context::max);
        variable.upper = both(variable.upper, upper, Context::min);
        variable
    }

    /// An interval that holds every value of a result. Variables without a bound have 64 bits.
    fn constant(&self, result: Expr) -> Interval {
        let interval = self.map.range_of(self.ctx, result).interval;
        let Some(wide) = wide_interval(self.ctx, result, &self.intervals) else { return interval };
        let [lo, hi] = wide.map(|end| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
        interval.intersect(Interval::new(lo, hi))
    }

    fn interval_of(&self, expr: Expr) -> Interval {
        self.ctx.interval_of(expr, &|var| self.intervals.of(var))
    }

    /// A bound written out, if that is short and has a value whatever the variables are.
    fn short(&mut self, end: Expr) -> Option<Expr> {
        let simplifier = self.simplifier.as_mut()?;
        let end = simplifier.simplify(written_out(self.ctx, end)?);
        (self.ctx.cost(end) <= MAX_COST && simplifier.never_overflows(end)).then_some(end)
    }

    /// Symbolic bounds of an expression over dimension variables.
    fn ends(&self, expr: Expr) -> Ends {
        self.ctx.fold_value(expr, |expr, node, operands: Option<(&Ends, &Ends)>| {
            match (node, operands) {
                (Node::Var(var @ Var::Dim(_)), _) => {
                    self.map.variable(var).map_or([None; 2], |it| [it.lower, it.upper])
                }
                (_, None) => [Some(expr); 2],
                (_, Some((&lhs, &rhs))) => self.of_operation(node, lhs, rhs),
            }
        })
    }

    fn of_operation(&self, node: Node, lhs: Ends, rhs: Ends) -> Ends {
        let ctx = self.ctx;
        let both = |lhs: Option<Expr>, rhs: Option<Expr>, operation: Operation| {
            let end = operation(ctx, lhs?, rhs?);
            (ctx.cost(end) <= MAX_COST).then_some(end)
        };
        let each = |operation: Operation| {
            [both(lhs[0], rhs[0], operation), both(lhs[1], rhs[1], operation)]
        };
        let is_at_least = |end: Option<Expr>, least: i64| {
            end.is_some_and(|end| least <= self.interval_of(end).lo)
        };
        // Where the right operand is one number: the factor, or the divisor.
        let by = rhs[0].filter(|_| rhs[0] == rhs[1]);
        match node {
            Node::Add(..) => each(Context::add),
            Node::Min(..) => each(Context::min),
            Node::Max(..) => each(Context::max),
            Node::Mul(..) if by.and_then(|by| ctx.as_constant(by)).is_some_and(|by| by < 0) => {
                [both(lhs[1], by, Context::mul), both(lhs[0], by, Context::mul)]
            }
            // Both grow with each operand, where none is negative.
            Node::Mul(..) if is_at_least(by, 0) => each(Context::mul),
            Node::Mul(..) if is_at_least(lhs[0], 0) && is_at_least(rhs[0], 0) => each(Context::mul),
            Node::FloorDiv(..) if is_at_least(by, 1) => each(Context::floor_div),
            Node::CeilDiv(..) if is_at_least(by, 1) => each(Context::ceil_div),
            Node::Mod(..) if is_at_least(by, 1) => {
                [Some(ctx.constant(0)), by.map(|by| ctx.sub(by, ctx.constant(1)))]
            }
            _ => [None; 2],
        }
    }
}
