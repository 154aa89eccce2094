//! What is known of sums.
//!
//! A constraint bounds more than its expression: `d0 + d1 in [0, 50]` bounds `d0*2 + d1*2 - 3`, which holds
//! the same sum twice, and `d0 + d1 + d2`, of which the rest is bounded by what is known of it.

use super::sum::{Atom, Sum};
use super::{AtomData, Simplifier};
use crate::interval::Interval;

/// A sum without a constant, the coefficients of which have no common factor, and what it lies in.
#[derive(Debug)]
pub(super) struct KnownSum {
    terms: Vec<(Atom, i64)>,
    interval: Interval,
}

impl Simplifier<'_> {
    /// Finds the sums of two terms and more among what is known, if that has not happened.
    pub(super) fn find_known_sums(&mut self) {
        if self.known.is_empty() || self.known_sums.is_some() {
            return;
        }
        // Their own normal forms need none.
        self.known_sums = Some(Vec::new());
        let mut known: Vec<_> = self.known.iter().map(|(&expr, &it)| (expr, it)).collect();
        known.sort_unstable_by(|a, b| self.ctx.compare(a.0, b.0));
        let mut found = Vec::new();
        for (expr, interval) in known {
            let Some(linear) = self.ctx.linear_terms(expr) else { continue };
            let mut sum = Sum::constant(linear.constant);
            let added = linear.terms.iter().all(|&(term, coefficient)| {
                let term = self.expand(term);
                sum.add(&term, coefficient).is_some()
            });
            if added && 1 < sum.terms().len() {
                found.extend(KnownSum::new(&sum, interval));
            }
        }
        self.known_sums = Some(found);
    }

    /// An interval that holds every value of a sum, as far as what is known says.
    pub(super) fn known_interval_of_sum(&self, sum: &Sum) -> Interval {
        let mut values = Interval::ALL;
        for known in self.known_sums.iter().flatten() {
            if let Some(scale) = known.scale_in(sum) {
                let rest = sum.terms().iter().filter(|(atom, _)| !known.has(*atom));
                let whole = known.interval.mul(Interval::point(scale));
                let whole = rest.fold(whole, |all, &(atom, coefficient)| {
                    let AtomData { interval, .. } = self.tables.atoms[atom.index()];
                    all.add_multiple(interval, coefficient)
                });
                values = values.intersect(whole.add(Interval::point(sum.constant)));
            }
        }
        values
    }

    /// An interval that holds every value of a sum, as the terms say one by one.
    pub(super) fn interval_of_each(&self, sum: &Sum) -> Interval {
        // As in `interval_of_terms`, the constant comes last.
        let values = sum.terms().iter().fold(Interval::point(0), |values, &(atom, coefficient)| {
            values.add_multiple(self.tables.atoms[atom.index()].interval, coefficient)
        });
        values.add(Interval::point(sum.constant))
    }
}

impl KnownSum {
    /// `g*x + c in interval` as one of `x`; `None` on overflow.
    fn new(sum: &Sum, interval: Interval) -> Option<Self> {
        let content = i64::try_from(sum.content()).ok()?;
        let shifted = interval.add(Interval::point(sum.constant.checked_neg()?));
        let terms = sum.terms().iter().map(|&(atom, c)| (atom, c / content)).collect();
        Some(KnownSum { terms, interval: shifted.floor_div(Interval::point(content)) })
    }

    fn has(&self, atom: Atom) -> bool {
        self.terms.binary_search_by_key(&atom, |&(atom, _)| atom).is_ok()
    }

    /// How often a sum holds this one.
    fn scale_in(&self, sum: &Sum) -> Option<i64> {
        let &(first, factor) = self.terms.first()?;
        let scale = sum.coefficient(first).checked_div(factor).filter(|&scale| scale != 0)?;
        let holds = |&(atom, factor): &(Atom, i64)| {
            factor.checked_mul(scale) == Some(sum.coefficient(atom))
        };
        self.terms.iter().all(holds).then_some(scale)
    }
}

#[cfg(test)]
mod tests {
    use crate::simplify::simplified;

    #[test]
    fn constraints_on_sums_bound_what_holds_them() {
        let domain = "d0 in [0, 99], d1 in [0, 99]";
        for (result, constraint, expected) in [
            ("(d0 + d1) / 51", "d0 + d1 in [0, 50]", "0"),
            ("(d0 * 2 + d1 * 2 + 5) / 106", "d0 + d1 in [0, 50]", "0"),
            ("(d0 + d1) mod 70", "d0 + d1 in [7, 50]", "d0 + d1"),
            ("(d0 + d1 * 3) / 149", "d0 + d1 in [0, 50]", "(d0 + d1 * 3) / 149"),
            ("max(d0, d1)", "d0 - d1 in [-99, 0]", "d1"),
            ("min(d0, d1)", "d0 - d1 in [-99, 0]", "d0"),
            ("(d0 - d1 + 99) / 100", "d0 - d1 in [-99, 0]", "0"),
        ] {
            assert_eq!(
                simplified(&format!("(d0, d1) -> ({result}), domain: {domain}, {constraint}")),
                simplified(&format!("(d0, d1) -> ({expected}), domain: {domain}, {constraint}")),
                "{result}"
            );
        }
    }

    #[test]
    fn operands_beyond_the_bounds_of_an_extremum_drop_out() {
        for (constraint, bounds) in [
            ("min(d0, 7) in [2, 5]", "[2, 5]"),
            ("min(d0, 7) in [2, 7]", "[2, 99]"),
            ("max(3, d0) in [4, 8]", "[4, 8]"),
        ] {
            assert_eq!(
                simplified(&format!("(d0) -> (d0), domain: d0 in [0, 99], {constraint}")),
                format!("(d0) -> (d0), domain: d0 in {bounds}")
            );
        }
    }
}
