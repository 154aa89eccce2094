//! What linear constraints say of the intervals of their variables.
//!
//! Of `lower <= sum of a_i*x_i <= upper`, each term is what the ends leave when the others are as small
//! or as large as they can be. That is repeated until nothing changes (bounds propagation; Apt, "The
//! essence of constraint propagation", 1999).

use crate::expr::{Context, Expr, Var};
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
pub(crate) enum Narrowed {
    /// One of them is empty.
    Empty,
    /// The sums do not narrow them further.
    Settled,
    /// They may.
    Open,
}

impl IndexingMap {
    /// The intervals of all variables, narrowed by the constraints on sums of them.
    pub(crate) fn narrowed_intervals(&self, ctx: &Context) -> VarIntervals {
        let mut intervals = self.intervals(ctx);
        if self.constraints.is_empty() {
            return intervals;
        }
        let mut sums = Sums::default();
        for &Constraint { expr, interval } in &self.constraints {
            sums.add(ctx, expr, interval, |var| self.variable(var).map(|_| self.position(var)));
        }
        let mut narrowed: Vec<Interval> = self.vars().map(|(var, _)| intervals.of(var)).collect();
        if sums.narrow(&mut narrowed) != Narrowed::Empty {
            for ((var, _), interval) in self.vars().zip(narrowed) {
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

    /// Narrows the intervals of the variables, by their places.
    pub(crate) fn narrow(&self, intervals: &mut [Interval]) -> Narrowed {
        for _ in 0..MAX_ROUNDS {
            let mut is_settled = true;
            for (terms, within) in &self.rows {
                match narrow_by(terms, *within, intervals) {
                    Narrowed::Settled => {}
                    Narrowed::Open => is_settled = false,
                    Narrowed::Empty => return Narrowed::Empty,
                }
            }
            if is_settled {
                return Narrowed::Settled;
            }
        }
        Narrowed::Open
    }
}

/// Narrows the intervals by one sum: [`Narrowed::Open`] where one has changed.
fn narrow_by(terms: &[(usize, i64)], within: Interval, intervals: &mut [Interval]) -> Narrowed {
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
    let mut answer = Narrowed::Settled;
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
                return Narrowed::Empty;
            }
            intervals[place] = new;
            // The sums of ends change with it; the next round is about those.
            answer = Narrowed::Open;
        }
    }
    answer
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
            let narrowed = sums.narrow(&mut intervals);
            let side = || -12..=12_i64;
            for (x, y, z) in side().flat_map(|x| side().flat_map(move |y| side().map(move |z| (x, y, z)))) {
                let point = [x, y, z];
                let value = |row: &[i64; 3]| row.iter().zip(point).map(|(a, x)| a * x).sum::<i64>();
                let solves = rows.iter().all(|(row, within)| within.contains(value(row)))
                    && given.iter().zip(point).all(|(it, x)| it.contains(x));
                let is_kept = narrowed != Narrowed::Empty
                    && intervals.iter().zip(point).all(|(it, x)| it.contains(x));
                prop_assert!(!solves || is_kept, "{point:?} {intervals:?}");
            }
        }
    }

    #[test]
    fn intervals_shrink_to_the_solutions() {
        let sums = Sums { rows: vec![(vec![(0, 1), (1, 1)], Interval::new(0, 3))] };
        let mut intervals = [Interval::NON_NEGATIVE; 2];
        assert_eq!(sums.narrow(&mut intervals), Narrowed::Settled);
        assert_eq!(intervals, [Interval::new(0, 3); 2]);
    }
}
