//! The range of an expression on the domain of a map.
//!
//! [`Context::interval_of`] goes through an expression once and forgets where values come from: of
//! `d0 - d0 mod 4` it says that one number is subtracted from another. Here, the interval is
//! tightened by
//!
//! 1. the simplified forms of the expression, also with `x mod c` as `x - c*(x floordiv c)`;
//! 2. monotonicity: where the difference `e(x + 1) - e(x)` has one sign on the whole domain, the
//!    extremes lie where `x` is at an end of its interval (R. E. Moore, "Interval Analysis", 1966);
//! 3. constraints on sums of variables, which bound these further;
//! 4. the integer program of the domain (`linear_domain`): where it has no point with a value near an
//!    end, the end moves, until a point shows that it is a value;
//! 5. branch and bound: a box is cut in two until the expression is monotone on the piece where it is
//!    smallest, and on that where it is largest (E. Hansen, "Global optimization using interval analysis",
//!    1992);
//! 6. the values in one period (`(d0 * d0) mod 4`);
//! 7. enumeration of a small domain.
//!
//! The interval holds every value. It is called exact where it is known that both ends are values:
//! after enumeration, where the expression is monotone in all its variables on a box or on the pieces with
//! the ends, and where the program has points with these values.

use std::collections::BTreeMap;

use crate::evaluator::MapEvaluator;
use crate::expr::{Context, Expr, Node, Var, interval_of_operation};
use crate::interval::Interval;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{IndexingMap, VarIntervals};
use crate::period::all_values;
use crate::samples::BoundingBox;
use crate::simplify::Simplifier;

/// The most points of a domain that are enumerated.
const MAX_POINTS: u64 = 1 << 10;
/// The most variables whose monotonicity is looked at.
const MAX_VARS: usize = 16;
/// The most pieces that a box is cut into for each end.
const MAX_PIECES: usize = 64;
/// The most operators of an expression for which a box is cut.
const MAX_COST: u32 = 64;
/// The terms of rows of integer programs that are touched for one answer.
const MAX_WORK: usize = 1 << 16;

/// The values that an expression takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ValueRange {
    /// An interval that holds all of them.
    pub interval: Interval,
    /// Whether both ends are known to be values, or that there is no value.
    pub is_exact: bool,
}

impl IndexingMap {
    /// The values of `expr` on the domain; see the [module](crate::value_range) text.
    ///
    /// ```
    /// use tc_ir::{Context, IndexingMap, Interval};
    /// let ctx = Context::new();
    /// let map = IndexingMap::parse(&ctx, "(d0) -> (d0 - d0 mod 4), domain: d0 in [0, 99999]")?;
    /// let range = map.range_of(&ctx, map.results[0]);
    /// assert_eq!((range.interval, range.is_exact), (Interval::new(0, 99996), true));
    /// # Ok::<(), tc_ir::ParseError>(())
    /// ```
    pub fn range_of(&self, ctx: &Context, expr: Expr) -> ValueRange {
        if self.is_known_empty(ctx) {
            return ValueRange { interval: Interval::EMPTY, is_exact: true };
        }
        if let Some(interval) = self.enumerated(ctx, expr) {
            return ValueRange { interval, is_exact: true };
        }
        let mut simplifier = Simplifier::for_domain(ctx, self);
        let simplified = simplifier.simplify(expr);
        let intervals = self.tightened_intervals(ctx);
        let quotients = simplifier.simplify(with_quotients(ctx, simplified, &intervals));
        let is_box = self.constraints.is_empty()
            && self
                .vars()
                .all(|(_, it)| it.constant_interval(ctx).is_some_and(Interval::is_bounded));
        // A simplified form may have values where the given one divides by zero.
        let is_defined = ctx.topological(&[expr]).into_iter().all(|part| match ctx.node(part) {
            Node::FloorDiv(_, by) | Node::CeilDiv(_, by) | Node::Mod(_, by) => {
                !ctx.interval_of(by, &|var| intervals.of(var)).contains(0)
            }
            _ => true,
        });
        let mut range = ValueRange { interval: Interval::ALL, is_exact: false };
        for form in [expr, simplified, quotients] {
            let enclosure = simplifier.interval_of(form);
            let (monotone, _) = monotone_range(ctx, form, &intervals);
            range.interval = range.interval.intersect(enclosure).intersect(monotone.interval);
            range.is_exact |= is_box && is_defined && monotone.is_exact;
        }
        let mut hull = Interval::EMPTY;
        let add = |value| {
            hull = hull.hull(Interval::point(value));
            true
        };
        if all_values(ctx, simplified, |var| intervals.of(var), MAX_POINTS, add).is_some() {
            range.interval = range.interval.intersect(hull);
            range.is_exact |= is_box && is_defined;
        }
        if !range.is_exact {
            self.tighten(ctx, [expr, simplified], &mut range);
        }
        if !range.is_exact && is_box && is_defined && ctx.cost(quotients) <= MAX_COST {
            let lower = lower_end(ctx, quotients, &intervals);
            let upper = lower_end(ctx, ctx.neg(quotients), &intervals);
            let both = lower.interval.intersect(upper.interval.neg());
            range.interval = range.interval.intersect(both);
            range.is_exact = lower.is_exact && upper.is_exact;
        }
        range
    }

    /// Moves the ends of a range towards values of an expression, given with its simplified form, as
    /// far as the integer program of the domain says where these are.
    fn tighten(&self, ctx: &Context, [expr, simplified]: [Expr; 2], range: &mut ValueRange) {
        let map = IndexingMap { results: vec![expr], ..self.clone() };
        let mut evaluator = MapEvaluator::new(ctx, &map);
        let mut domain = LinearDomain::new(ctx, self);
        let mut work = MAX_WORK;
        // A value in an interval, or that there is none; `None` where neither is shown.
        let mut value_in = |interval| match domain.solve_within(simplified, interval, &mut work) {
            LinearAnswer::Empty => Some(None),
            LinearAnswer::Point(point) if evaluator.contains(&point) == Ok(true) => {
                let value = evaluator.result(0).ok();
                value.filter(|&value| interval.contains(value)).map(Some)
            }
            LinearAnswer::Point(_) | LinearAnswer::Unknown => None,
        };
        match value_in(range.interval) {
            None => {}
            Some(None) => *range = ValueRange { interval: Interval::EMPTY, is_exact: true },
            Some(Some(value)) => {
                let (lo, least) = tightened(range.interval.lo, value, &mut value_in);
                let (hi, greatest) = tightened(range.interval.hi, value, &mut value_in);
                *range = ValueRange {
                    interval: Interval::new(lo, hi),
                    is_exact: lo == least && hi == greatest,
                };
            }
        }
    }

    /// The hull of all values, if the points are few.
    fn enumerated(&self, ctx: &Context, expr: Expr) -> Option<Interval> {
        let map = IndexingMap { results: vec![expr], ..self.clone() };
        let mut points = BoundingBox::around(ctx, &[&map]).enumerate(MAX_POINTS)?;
        let mut evaluator = MapEvaluator::new(ctx, &map);
        let mut hull = Interval::EMPTY;
        while let Some(point) = points.advance() {
            if evaluator.contains(point) == Ok(true)
                && let Ok(value) = evaluator.result(0)
            {
                // Not a hull of intervals: those at the ends of 64 bits are infinite.
                let none = hull.is_empty();
                hull.lo = if none { value } else { hull.lo.min(value) };
                hull.hi = if none { value } else { hull.hi.max(value) };
            }
        }
        Some(hull)
    }
}

/// Moves an end of an interval of values towards a known value, and the known value towards the end;
/// returns where both come to. `value_in` gives a value in an interval, or that there is none.
fn tightened(
    mut end: i64,
    mut known: i64,
    value_in: &mut impl FnMut(Interval) -> Option<Option<i64>>,
) -> (i64, i64) {
    let is_lower = end < known;
    // Most ends are close.
    let mut reach = 0_u64;
    while end != known {
        reach = reach.min(end.abs_diff(known) - 1);
        let inner = if is_lower {
            end.saturating_add_unsigned(reach)
        } else {
            end.saturating_sub_unsigned(reach)
        };
        match value_in(Interval::new(end.min(inner), end.max(inner))) {
            Some(Some(value)) => {
                known = value;
                reach = end.abs_diff(known) / 2;
            }
            Some(None) => {
                end = if is_lower { inner.saturating_add(1) } else { inner.saturating_sub(1) };
                reach = reach.saturating_mul(2).saturating_add(1);
            }
            None => break,
        }
    }
    (end, known)
}

/// The expression with `x - c*(x floordiv c)` for `x mod c`, for positive `c`.
pub(crate) fn with_quotients(ctx: &Context, expr: Expr, intervals: &VarIntervals) -> Expr {
    ctx.fold_value(expr, |expr, node, operands| match (node, operands) {
        (Node::Mod(..), Some((&lhs, &rhs)))
            if 0 < ctx.interval_of(rhs, &|var| intervals.of(var)).lo =>
        {
            ctx.sub(lhs, ctx.mul(ctx.floor_div(lhs, rhs), rhs))
        }
        (_, Some((&lhs, &rhs))) => ctx.rebuild(node, lhs, rhs),
        (_, None) => expr,
    })
}

/// An interval of the values on a box of which only the lower end is looked for; exact where that is a value.
fn lower_end(ctx: &Context, expr: Expr, intervals: &VarIntervals) -> ValueRange {
    let piece = |intervals: VarIntervals| {
        let (range, steepest) = monotone_range(ctx, expr, &intervals);
        let enclosure = ctx.interval_of(expr, &|var| intervals.of(var));
        (range.interval.intersect(enclosure).lo, range.is_exact, steepest, intervals)
    };
    let mut pieces = vec![piece(intervals.clone())];
    loop {
        // Of several, the last made, which is the smallest.
        let lowest = (0..pieces.len()).rev().min_by_key(|&place| pieces[place].0);
        let Some((lo, is_exact, steepest, intervals)) = lowest.map(|it| pieces.swap_remove(it))
        else {
            return ValueRange { interval: Interval::ALL, is_exact: false };
        };
        let Some(var) = steepest.filter(|_| pieces.len() < MAX_PIECES) else {
            return ValueRange { interval: Interval::new(lo, i64::MAX), is_exact };
        };
        let Interval { lo, hi } = intervals.of(var);
        let middle = lo.midpoint(hi);
        for half in [Interval::new(lo, middle), Interval::new(middle + 1, hi)] {
            let mut intervals = intervals.clone();
            intervals.set(var, half);
            pieces.push(piece(intervals));
        }
    }
}

/// The range on the box of `intervals`, exact only if it has no empty side, and of the variables that the
/// expression is not monotone in the one that may change it most (R. B. Kearfott, "Rigorous global search",
/// 1996: maximal smear).
fn monotone_range(
    ctx: &Context,
    expr: Expr,
    intervals: &VarIntervals,
) -> (ValueRange, Option<Var>) {
    let unknown = (ValueRange { interval: Interval::ALL, is_exact: false }, None);
    let vars = ctx.vars(expr);
    let order = ctx.topological(&[expr]);
    let values = ctx.intervals_of(&order, &|var| intervals.of(var));
    let value_of = |expr: Expr| order.binary_search(&expr).map_or(Interval::ALL, |i| values[i]);
    // Where a division by zero tears the values apart, differences say nothing about both sides.
    let torn = order.iter().any(|&expr| match ctx.node(expr) {
        Node::FloorDiv(_, divisor) | Node::CeilDiv(_, divisor) | Node::Mod(_, divisor) => {
            value_of(divisor).contains(0)
        }
        _ => false,
    });
    if torn || MAX_VARS < vars.len() {
        return unknown;
    }
    let (mut lowest, mut highest) = (BTreeMap::new(), BTreeMap::new());
    let mut steepest: Option<(u128, Var)> = None;
    for &var in &vars {
        let interval = intervals.of(var);
        let (lo, hi) = (Interval::point(interval.lo), Interval::point(interval.hi));
        let difference = if interval.is_bounded() && lo != hi {
            // Without the last value of the variable, and without the first.
            let without = |end: Interval| {
                let rest = if end == lo {
                    Interval::new(interval.lo + 1, interval.hi)
                } else {
                    Interval::new(interval.lo, interval.hi - 1)
                };
                ctx.intervals_of(&order, &|it| if it == var { rest } else { intervals.of(it) })
            };
            difference(ctx, &order, var, [&values, &without(hi), &without(lo)])
        } else {
            Interval::ALL
        };
        let (at_lowest, at_highest) = if lo == hi || 0 <= difference.lo {
            (lo, hi)
        } else if difference.hi <= 0 {
            (hi, lo)
        } else {
            (interval, interval)
        };
        if at_lowest.as_point().is_none() {
            let slope = difference.lo.unsigned_abs().max(difference.hi.unsigned_abs());
            let change = u128::from(slope) * u128::from(interval.hi.abs_diff(interval.lo));
            steepest = steepest.max(Some((change, var)));
        }
        lowest.insert(var, at_lowest);
        highest.insert(var, at_highest);
    }
    let at = |corner: &BTreeMap<Var, Interval>| {
        ctx.interval_of(expr, &|var| corner.get(&var).copied().unwrap_or(Interval::ALL))
    };
    let (lowest, highest) = (at(&lowest), at(&highest));
    let is_exact =
        steepest.is_none() && lowest.as_point().is_some() && highest.as_point().is_some();
    let range = ValueRange { interval: Interval::new(lowest.lo, highest.hi), is_exact };
    (range, steepest.map(|it| it.1))
}

/// An interval of `e(x + 1) - e(x)` for the last expression of `order`, given intervals of all
/// values, of those at `x` and of those at `x + 1`.
fn difference(
    ctx: &Context,
    order: &[Expr],
    var: Var,
    [values, before, after]: [&[Interval]; 3],
) -> Interval {
    let find = |values: &[Interval], expr: Expr| {
        order.binary_search(&expr).map_or(Interval::ALL, |i| values[i])
    };
    let value_of = |expr| find(values, expr);
    let zero = Interval::point(0);
    let mut differences: Vec<Interval> = Vec::with_capacity(order.len());
    for &expr in order {
        let node = ctx.node(expr);
        let Some((lhs, rhs)) = node.operands() else {
            let same = node == Node::Var(var);
            differences.push(Interval::point(i64::from(same)));
            continue;
        };
        let of = |operand| order.binary_search(&operand).map_or(Interval::ALL, |i| differences[i]);
        let (d_lhs, d_rhs) = (of(lhs), of(rhs));
        let found = match node {
            _ if d_lhs == zero && d_rhs == zero || value_of(expr).as_point().is_some() => zero,
            Node::Add(..) => d_lhs.add(d_rhs),
            // f'*g' - f*g == f'*(g' - g) + (f' - f)*g
            Node::Mul(..) => find(after, lhs).mul(d_rhs).add(d_lhs.mul(find(before, rhs))),
            // The real quotient grows by d/c, so that the rounded one grows by that, rounded.
            Node::FloorDiv(..) | Node::CeilDiv(..) if d_rhs == zero => {
                let divisor = value_of(rhs);
                d_lhs.floor_div(divisor).hull(d_lhs.ceil_div(divisor))
            }
            Node::Mod(..) if d_rhs == zero => {
                let quotient = value_of(lhs).floor_div(value_of(rhs));
                if quotient.as_point().is_some() && 0 < value_of(rhs).lo {
                    d_lhs
                } else {
                    let values = interval_of_operation(node, value_of(lhs), value_of(rhs));
                    values.sub(values)
                }
            }
            // A minimum grows by no less than its operands do, and by no more.
            Node::Min(..) | Node::Max(..) => d_lhs.hull(d_rhs),
            _ => Interval::ALL,
        };
        differences.push(found);
    }
    differences.last().copied().unwrap_or(zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> (Interval, bool) {
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        let range = map.range_of(&ctx, map.results[0]);
        (range.interval, range.is_exact)
    }

    #[test]
    fn a_variable_that_occurs_twice_counts_once() {
        let domain = "domain: d0 in [5, 100000], d1 in [0, 9999]";
        for (expr, lo, hi) in [
            ("d0 - d0 mod 4", 4, 100_000),
            ("d0 - (d0 / 2) * 2", 0, 1),
            ("d0 + d1 - d0", 0, 9999),
            ("d0 * 2 - d0 / 3", 9, 166_667),
            ("max(d0 - d1, 3) + d0 * 2", 13, 300_000),
            ("d0 * d1 * 2 - d1", 0, 1_999_790_001),
            ("d0 * d0 - d0 * 10", -25, 9_999_000_000),
            ("d1 * d1 - d1", 0, 99_970_002),
        ] {
            let (interval, _) = range(&format!("(d0, d1) -> ({expr}), {domain}"));
            assert_eq!(interval, Interval::new(lo, hi), "{expr}");
        }
    }

    /// Each expression of two variables has exactly the values of an interval.
    fn assert_hulls(cases: &[(&str, i64, i64)]) {
        for &(expr, lo, hi) in cases {
            let text = format!("(d0, d1) -> ({expr}), domain: d0 in [5, 100000], d1 in [0, 9999]");
            assert_eq!(range(&text), (Interval::new(lo, hi), true), "{expr}");
        }
    }

    #[test]
    fn what_rises_and_falls_is_cut_into_pieces() {
        assert_hulls(&[
            ("d0 * d0 - d0 * 77", -1482, 9_992_300_000),
            ("d1 * d1 * d1 - d1 * d1 * 90 + d1", -107_940, 990_701_839_908),
            ("d0 * d1 - d0 * 50", -5_000_000, 994_900_000),
            ("(d1 - 100) * (d1 - 100) + d0 mod 7", 0, 97_990_207),
            ("(d1 * d1) mod 1000 - d1 * d1", -99_980_000, 0),
            ("max(d1 * d1 - d1 * 400, 3 - d0 * d0)", -40_000, 95_980_401),
        ]);
    }

    #[test]
    fn one_period_has_all_values() {
        assert_hulls(&[
            ("(d0 * d0) mod 4", 0, 1),
            ("((d0 * d1) / 2) mod 3 + (d1 * d1) mod 8", 0, 6),
            ("(d0 * d0 * d0 - d0) mod 12 - d1 mod 5", -4, 6),
        ]);
    }

    #[test]
    fn linear_constraints_give_exact_ends() {
        for (expr, constraints, lo, hi) in [
            ("d0 + d1", "d0 + d1 * 2 in [5, 9]", 3, 9),
            ("d0 mod 7", "d0 mod 14 in [8, 9]", 1, 2),
            ("d0 * 3 - d1 * 2", "d0 + d1 in [100, 200], d0 - d1 in [-7, 50]", 33, 225),
            ("max(d0, d1) - min(d0, d1)", "d0 + d1 in [100, 101], d0 - d1 * 3 in [0, 3]", 50, 51),
            ("(d0 / 5) mod 3", "d0 - d1 * 15 in [5, 9]", 1, 1),
            ("d0 * 6 + d1 * 10", "d0 + d1 in [11, 99999], d0 * 6 + d1 * 10 in [0, 69]", 66, 66),
        ] {
            let domain = "domain: d0 in [0, 99999], d1 in [0, 99999]";
            let text = format!("(d0, d1) -> ({expr}), {domain}, {constraints}");
            assert_eq!(range(&text), (Interval::new(lo, hi), true), "{expr}");
        }
        let symbolic = "(i){N} -> (N - i), domain: i in [0, N - 1], N in [1, 1000000]";
        assert_eq!(range(symbolic), (Interval::new(1, 1_000_000), true));
        let unbounded = "(i){N} -> (N - i), domain: i in [0, N - 1], N in [3, inf]";
        assert_eq!(range(unbounded), (Interval::new(1, i64::MAX), true));
        let empty = "(d0, d1) -> (d0), domain: d0 in [0, 99999], d1 in [0, 99999], \
                     d0 * 2 - d1 * 4 in [1, 1]";
        assert_eq!(range(empty), (Interval::EMPTY, true));
    }

    #[test]
    fn constraints_on_sums_bound_their_variables() {
        let domain = "domain: d0 in [0, 99999], d1 in [0, 99999], d0 + d1 * 2 in [5, 30]";
        for (expr, lo, hi) in [("d0", 0, 30), ("d1 * 3", 0, 45), ("d0 - d1 mod 16", -15, 30)] {
            let (interval, _) = range(&format!("(d0, d1) -> ({expr}), {domain}"));
            assert_eq!(interval, Interval::new(lo, hi), "{expr}");
        }
        let mirrored = "(d0, d1) -> (d1), domain: d0 in [0, inf], d0 - d1 in [3, 4]";
        assert_eq!(range(mirrored).0, Interval::new(-4, i64::MAX));
    }

    #[test]
    fn ends_of_64_bits_are_safe() {
        let domain = "domain: d0 in [-9223372036854775807, 9223372036854775806]";
        for expr in ["d0 * d0", "d0 - d0 * 3", "d0 mod 9223372036854775807 + d0", "d0 / -1 - d0"] {
            range(&format!("(d0) -> ({expr}), {domain}"));
        }
    }
}
