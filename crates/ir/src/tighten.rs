//! Tightens the intervals of variables by constraints.
//!
//! In general, each operation of a constraint tightens its operands: in `x * y in [10, 20]` with `y in [2,
//! 4]`, `x` lies in `[3, 10]` (HC4; Benhamou, Goualard, Granvilliers and Puget, "Revising hull and box
//! consistency", 1999). Linear ones say more, since a variable counts once.
//!
//! Of `lower <= sum of a_i*x_i <= upper`, each term is what the ends leave when the others are as small
//! or as large as they can be. That is repeated until nothing changes (bounds propagation; Apt, "The
//! essence of constraint propagation", 1999).

use crate::expr::{Context, Expr, Node, Var, interval_of_operation};
use crate::interval::{Interval, ceil_div_wide, floor_div_wide};
use crate::map::{Constraint, IndexingMap, VarIntervals};

/// How often all sums are looked at. Some intervals shrink by one each time.
const MAX_ROUNDS: u32 = 16;

/// Sums of variables that lie in intervals.
#[derive(Default)]
pub(crate) struct Sums {
    /// Places of variables with their coefficients, and the interval of the sum.
    rows: Vec<(Vec<(usize, i64)>, Interval)>,
}

/// What is left of the intervals.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Tightened {
    /// One of them is empty.
    Empty,
    /// The sums do not tighten them further.
    Settled,
    /// They may.
    Open,
}

impl IndexingMap {
    /// The intervals of all variables, tightened by the constraints on sums of them.
    pub(crate) fn tightened_intervals(&self, ctx: &Context) -> VarIntervals {
        let mut intervals = self.intervals(ctx);
        if self.constraints.is_empty() {
            return intervals;
        }
        let mut sums = Sums::default();
        for &Constraint { expr, interval } in &self.constraints {
            sums.add(ctx, expr, interval, |var| self.variable(var).map(|_| self.position(var)));
        }
        let mut tightened: Vec<Interval> = self.vars().map(|(var, _)| intervals.of(var)).collect();
        if sums.tighten(&mut tightened) != Tightened::Empty {
            for ((var, _), interval) in self.vars().zip(tightened) {
                intervals.set(var, interval);
            }
        }
        intervals
    }
}

impl Sums {
    /// Adds that `expr` lies in `interval`, if it is a sum of variables with places.
    pub(crate) fn add(
        &mut self,
        ctx: &Context,
        expr: Expr,
        interval: Interval,
        place: impl Fn(Var) -> Option<usize>,
    ) {
        let Some(linear) = ctx.linear_terms(expr) else { return };
        let terms = linear.terms.iter().map(|&(term, by)| Some((place(ctx.as_var(term)?)?, by)));
        let Some(terms) = terms.collect::<Option<Vec<_>>>() else { return };
        let end = |end: i64, infinite: i64| match end == infinite {
            true => Some(end),
            false => end.checked_sub(linear.constant),
        };
        if let Some((lo, hi)) = end(interval.lo, i64::MIN).zip(end(interval.hi, i64::MAX)) {
            self.rows.push((terms, Interval::new(lo, hi)));
        }
    }

    /// Tightens the intervals of the variables, by their places.
    pub(crate) fn tighten(&self, intervals: &mut [Interval]) -> Tightened {
        for _ in 0..MAX_ROUNDS {
            let mut is_settled = true;
            for (terms, within) in &self.rows {
                match tighten_by(terms, *within, intervals) {
                    Tightened::Settled => {}
                    Tightened::Open => is_settled = false,
                    Tightened::Empty => return Tightened::Empty,
                }
            }
            if is_settled {
                return Tightened::Settled;
            }
        }
        Tightened::Open
    }
}

/// Tightens the intervals by one sum: [`Tightened::Open`] where one has changed.
fn tighten_by(terms: &[(usize, i64)], within: Interval, intervals: &mut [Interval]) -> Tightened {
    // The least and the largest sum of the bounded ends, and how many ends are not bounded.
    let (mut least, mut most) = ((0_i128, 0_u32), (0_i128, 0_u32));
    let ends = |interval: Interval, by: i64| {
        let end =
            |end: i64, infinite: i64| (end != infinite).then(|| i128::from(end) * i128::from(by));
        let (lo, hi) = (end(interval.lo, i64::MIN), end(interval.hi, i64::MAX));
        if by < 0 { (hi, lo) } else { (lo, hi) }
    };
    let sum = |(total, missing): (i128, u32), end: Option<i128>| match end {
        // A sum of so many terms that it overflows says nothing.
        Some(end) => total.checked_add(end).map_or((0, u32::MAX / 2), |total| (total, missing)),
        None => (total, missing.saturating_add(1)),
    };
    for &(place, by) in terms {
        let (lo, hi) = ends(intervals[place], by);
        (least, most) = (sum(least, lo), sum(most, hi));
    }
    let mut answer = Tightened::Settled;
    for &(place, by) in terms {
        let old = intervals[place];
        let (lo, hi) = ends(old, by);
        // What the other terms have at least, and at most.
        let others = |(total, missing): (i128, u32), own: Option<i128>| match (missing, own) {
            (0, Some(own)) => total.checked_sub(own),
            (1, None) => Some(total),
            _ => None,
        };
        let end = |end: i64, infinite: i64| (end != infinite).then(|| i128::from(end));
        let from = end(within.lo, i64::MIN).zip(others(most, hi));
        let to = end(within.hi, i64::MAX).zip(others(least, lo));
        let left = |(end, rest): (i128, i128)| end.checked_sub(rest);
        let (from, to) = (from.and_then(left), to.and_then(left));
        let (from, to) = if by < 0 { (to, from) } else { (from, to) };
        let by = i128::from(by);
        // An end beyond 64 bits, or one that would be taken for an infinite one, says nothing.
        let lo = from
            .and_then(|from| i64::try_from(ceil_div_wide(from, by)).ok())
            .filter(|&lo| old.lo < lo && lo != i64::MAX);
        let hi = to
            .and_then(|to| i64::try_from(floor_div_wide(to, by)).ok())
            .filter(|&hi| hi < old.hi && hi != i64::MIN);
        if lo.is_some() || hi.is_some() {
            let new = Interval::new(lo.unwrap_or(old.lo), hi.unwrap_or(old.hi));
            if new.is_empty() {
                return Tightened::Empty;
            }
            intervals[place] = new;
            // The sums of ends change with it; the next round is about those.
            answer = Tightened::Open;
        }
    }
    answer
}

/// The operations of expressions that lie in intervals.
pub(crate) struct Operations {
    /// With the numbers of their operands, which come before them.
    nodes: Vec<(Node, usize, usize)>,
    /// The numbers of the variables, with their places.
    vars: Vec<(usize, usize)>,
    /// The numbers of the expressions.
    within: Vec<(usize, Interval)>,
}

impl Operations {
    /// Claims that expressions lie in intervals, over variables with places.
    pub(crate) fn new(
        ctx: &Context,
        claims: &[(Expr, Interval)],
        place: impl Fn(Var) -> Option<usize>,
    ) -> Self {
        let roots: Vec<Expr> = claims.iter().map(|claim| claim.0).collect();
        let order = ctx.topological(&roots);
        let number =
            |expr: Expr| order.binary_search(&expr).expect("the order holds every subexpression");
        let numbered = |&expr: &Expr| {
            let node = ctx.node(expr);
            let (lhs, rhs) = node.operands().map_or((0, 0), |it| (number(it.0), number(it.1)));
            (node, lhs, rhs)
        };
        let nodes: Vec<_> = order.iter().map(numbered).collect();
        let vars = nodes.iter().enumerate().filter_map(|(number, &(node, ..))| match node {
            Node::Var(var) => Some((number, place(var)?)),
            _ => None,
        });
        let within = claims.iter().map(|&(expr, interval)| (number(expr), interval)).collect();
        Self { vars: vars.collect(), nodes, within }
    }

    /// How many operations and variables there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Tightens the intervals of the variables, by their places: once up and once down.
    pub(crate) fn tighten(&self, cell: &mut [Interval]) -> Tightened {
        let mut intervals: Vec<Interval> = Vec::with_capacity(self.nodes.len());
        let mut vars = self.vars.iter().peekable();
        for (number, &(node, lhs, rhs)) in self.nodes.iter().enumerate() {
            let known = vars.next_if(|var| var.0 == number).map(|var| cell[var.1]);
            intervals.push(match (known, node.operands()) {
                (Some(interval), _) => interval,
                (None, Some(_)) => interval_of_operation(node, intervals[lhs], intervals[rhs]),
                (None, None) => interval_of_operation(node, Interval::ALL, Interval::ALL),
            });
        }
        for &(number, interval) in &self.within {
            intervals[number] = intervals[number].intersect(interval);
        }
        for (number, &(node, lhs, rhs)) in self.nodes.iter().enumerate().rev() {
            if intervals[number].is_empty() {
                return Tightened::Empty;
            }
            if node.operands().is_some() {
                let (of_lhs, of_rhs) = operands_of(
                    node,
                    intervals[number],
                    (intervals[lhs], intervals[rhs]),
                    lhs == rhs,
                );
                intervals[lhs] = intervals[lhs].intersect(of_lhs);
                intervals[rhs] = intervals[rhs].intersect(of_rhs);
            }
        }
        let mut answer = Tightened::Settled;
        for &(number, place) in &self.vars {
            if cell[place] != intervals[number] {
                cell[place] = intervals[number];
                answer = Tightened::Open;
            }
        }
        answer
    }
}

/// What the operands of an operation can be, where it lies in `out` and they in the given intervals;
/// whether they are one.
fn operands_of(
    node: Node,
    out: Interval,
    (lhs, rhs): (Interval, Interval),
    is_one: bool,
) -> (Interval, Interval) {
    let divisor = rhs.as_point().filter(|&divisor| 0 < divisor);
    match (node, divisor) {
        (Node::Add(..), _) => (out.sub(rhs), out.sub(lhs)),
        (Node::Mul(..), _) if is_one => {
            // The end that stands for infinity is one.
            let root = match out.hi {
                i64::MAX => return (Interval::ALL, Interval::ALL),
                hi => hi.max(0).isqrt(),
            };
            (Interval::new(-root, root), Interval::new(-root, root))
        }
        (Node::Mul(..), _) => (factor_of(out, rhs), factor_of(out, lhs)),
        (Node::FloorDiv(..), Some(by)) => {
            let multiple = out.mul(Interval::point(by));
            (multiple.add(Interval::new(0, by - 1)), Interval::ALL)
        }
        (Node::CeilDiv(..), Some(by)) => {
            let multiple = out.mul(Interval::point(by));
            (multiple.add(Interval::new(1 - by, 0)), Interval::ALL)
        }
        (Node::Mod(..), Some(by)) => (dividend_of(out, lhs, by), Interval::ALL),
        (Node::Min(..), _) => {
            let at_least = Interval::new(out.lo, i64::MAX);
            (at_least, at_least)
        }
        (Node::Max(..), _) => {
            let at_most = Interval::new(i64::MIN, out.hi);
            (at_most, at_most)
        }
        _ => (Interval::ALL, Interval::ALL),
    }
}

/// The numbers of which some product with a number of `other` lies in `out`.
fn factor_of(out: Interval, other: Interval) -> Interval {
    if out.contains(0) && other.contains(0) {
        return Interval::ALL;
    }
    let (up, down) = (out.ceil_div(other), out.floor_div(other));
    if up.is_empty() { up } else { Interval::new(up.lo, down.hi) }
}

/// `value` from the first to the last number whose remainder lies in `out`.
fn dividend_of(out: Interval, value: Interval, by: i64) -> Interval {
    let out = out.intersect(Interval::new(0, by - 1));
    let lo = value.lo.checked_sub(value.lo.rem_euclid(by)).and_then(|start| {
        let next = if out.hi < value.lo.rem_euclid(by) { start.checked_add(by)? } else { start };
        next.checked_add(out.lo).map(|lo| lo.max(value.lo))
    });
    let hi = value.hi.checked_sub(value.hi.rem_euclid(by)).and_then(|start| {
        let last = if value.hi.rem_euclid(by) < out.lo { start.checked_sub(by)? } else { start };
        last.checked_add(out.hi).map(|hi| hi.min(value.hi))
    });
    // The ends that stand for infinity are none.
    Interval::new(
        lo.filter(|_| value.lo != i64::MIN).unwrap_or(value.lo),
        hi.filter(|_| value.hi != i64::MAX).unwrap_or(value.hi),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_interval() -> impl Strategy<Value = Interval> {
        let end = |infinite| prop_oneof![5 => -9..9_i64, 1 => Just(infinite)];
        (end(i64::MIN), end(i64::MAX)).prop_map(|(lo, hi)| Interval::new(lo, hi))
    }

    proptest! {
        #[test]
        fn no_solution_is_lost(
            rows in prop::collection::vec((prop::array::uniform3(-4..5_i64), any_interval()), 1..4),
            given in prop::array::uniform3(any_interval()),
        ) {
            let with_places =
                |row: &[i64; 3]| row.iter().copied().enumerate().filter(|term| term.1 != 0).collect();
            let sums =
                Sums { rows: rows.iter().map(|(row, within)| (with_places(row), *within)).collect() };
            let mut intervals = given;
            let tightened = sums.tighten(&mut intervals);
            let side = || -12..=12_i64;
            for (x, y, z) in side().flat_map(|x| side().flat_map(move |y| side().map(move |z| (x, y, z)))) {
                let point = [x, y, z];
                let value = |row: &[i64; 3]| row.iter().zip(point).map(|(a, x)| a * x).sum::<i64>();
                let solves = rows.iter().all(|(row, within)| within.contains(value(row)))
                    && given.iter().zip(point).all(|(it, x)| it.contains(x));
                let is_kept = tightened != Tightened::Empty
                    && intervals.iter().zip(point).all(|(it, x)| it.contains(x));
                prop_assert!(!solves || is_kept, "{point:?} {intervals:?}");
            }
        }
    }

    #[test]
    fn intervals_shrink_to_the_solutions() {
        let sums = Sums { rows: vec![(vec![(0, 1), (1, 1)], Interval::new(0, 3))] };
        let mut intervals = [Interval::NON_NEGATIVE; 2];
        assert_eq!(sums.tighten(&mut intervals), Tightened::Settled);
        assert_eq!(intervals, [Interval::new(0, 3); 2]);
    }

    #[test]
    fn operations_tighten_their_operands() {
        let ctx = Context::new();
        let resolve = |name: &str| name.strip_prefix('d')?.parse().ok().map(Var::Dim);
        let place = |var| match var {
            Var::Dim(number) => Some(number as usize),
            _ => None,
        };
        let sides = || (-9..=9_i64).flat_map(|x| (-9..=9_i64).map(move |y| [x, y]));
        for (text, (lo, hi), given, expected) in [
            ("d0 * d1", (10, 20), [(0, 9), (2, 4)], [(3, 9), (2, 4)]),
            ("d0 * d1", (10, 20), [(-9, 9), (-9, 9)], [(-9, 9), (-9, 9)]),
            ("d0 * d0", (10, 30), [(-9, 9), (0, 0)], [(-5, 5), (0, 0)]),
            ("d0 / 4 + d1", (3, 4), [(-9, 9), (2, 9)], [(-9, 9), (2, 7)]),
            ("d0 ceildiv 3 - d1 * 2", (1, 1), [(-9, 9), (0, 9)], [(1, 9), (0, 1)]),
            ("d0 mod 7", (2, 3), [(0, 8), (0, 0)], [(2, 3), (0, 0)]),
            ("d0 mod 7", (2, 3), [(-9, 9), (0, 0)], [(-5, 9), (0, 0)]),
            ("min(d0, d1)", (2, 3), [(-9, 9), (-9, 1)], [(2, 9), (2, 1)]),
            ("max(d0 * 2, d1)", (2, 3), [(-9, 9), (-9, 9)], [(-9, 1), (-9, 3)]),
        ] {
            let within = Interval::new(lo, hi);
            let expr = crate::text::parse_expr(&ctx, text, &resolve).expect("an expression");
            let mut cell = given.map(|(lo, hi)| Interval::new(lo, hi));
            let tightened = Operations::new(&ctx, &[(expr, within)], place).tighten(&mut cell);
            let inside = |cell: &[Interval; 2], point: [i64; 2]| {
                cell.iter().zip(point).all(|(it, x)| it.contains(x))
            };
            let given = given.map(|(lo, hi)| Interval::new(lo, hi));
            for point in sides().filter(|&point| inside(&given, point)) {
                let value = ctx.eval(expr, &|var| Some(point[place(var)?])).expect("a value");
                assert!(!within.contains(value) || inside(&cell, point), "{text} {point:?}");
            }
            if tightened != Tightened::Empty {
                assert_eq!(cell, expected.map(|(lo, hi)| Interval::new(lo, hi)), "{text}");
            }
        }
    }
}
