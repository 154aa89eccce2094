//! Known values of sums.
//!
//! A constraint bounds more than its expression: `d0 + d1 in [0, 50]` bounds `d0*2 + d1*2 - 3`, which holds
//! the same sum twice, and `d0 + d1 + d2`, of which the rest is bounded by what is known of it. A constraint
//! `(d0 + 4) mod 7 in [0, 0]` says that `(d0 + 4) floordiv 7` and `d0 floordiv 7` are exact: seven times
//! each is a sum without a quotient. Of two such of one sum, the lower one is a multiple of the higher one.

use super::sum::{Atom, Sum};
use super::{AtomData, Simplifier};
use crate::congruence::Congruence;
use crate::interval::Interval;
use crate::map::Constraint;

/// A sum without a constant, the coefficients of which have no common factor, and what it lies in.
#[derive(Debug)]
pub(super) struct KnownSum {
    terms: Vec<(Atom, i64)>,
    interval: Interval,
}

/// A sum that is a multiple of a number.
#[derive(Debug)]
pub(super) struct KnownMultiple {
    sum: Sum,
    modulus: i64,
}

impl Simplifier<'_> {
    /// Finds the sums of two terms and more, and the multiples, among what is known, if that has not
    /// happened.
    pub(super) fn find_known_sums(&mut self) {
        if self.known.is_empty() || self.known_sums.is_some() {
            return;
        }
        // Their own normal forms need none.
        self.known_sums = Some(Vec::new());
        let mut known: Vec<_> = self.known.iter().map(|(&expr, &it)| (expr, it)).collect();
        known.sort_unstable_by(|a, b| self.ctx.compare(a.0, b.0));
        let (mut found, mut multiples) = (Vec::new(), Vec::new());
        for (expr, interval) in known {
            let congruence = Congruence::of_value(self.ctx, &Constraint { expr, interval });
            if let Some((value, Congruence { modulus, remainder })) = congruence {
                let mut sum = self.expand(value);
                if let Some(constant) = sum.constant.checked_sub(remainder) {
                    sum.constant = constant;
                    multiples.push(KnownMultiple { sum, modulus });
                }
                continue;
            }
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
        self.known_multiples = multiples;
    }

    /// Replaces the quotients of a sum that are exact, as far as what is known says, and of which it has a
    /// multiple of the divisor, or a higher one of the same sum. Where that would overflow, they stay.
    pub(super) fn replace_exact(&self, sum: &mut Sum) {
        if self.known_multiples.is_empty() {
            return;
        }
        let find = |sum: &Sum| {
            sum.terms().iter().rev().find_map(|&(atom, coefficient)| {
                let (numerator, divisor) = self.as_floor(atom)?;
                let remainder_by = |divisor| {
                    let mut known = self.known_multiples.iter();
                    known.find_map(|it| it.remainder_of(numerator, divisor))
                };
                let remainder = remainder_by(divisor)?;
                let mut replaced = sum.clone();
                if coefficient % divisor != 0 {
                    let (high, by, of_high) = sum.terms().iter().find_map(|&(high, _)| {
                        let (other, by) = self.as_floor(high)?;
                        let is_higher = divisor < by && by % divisor == 0 && other == numerator;
                        Some((high, by, if is_higher { remainder_by(by)? } else { return None }))
                    })?;
                    replaced.add_term(atom, coefficient.checked_neg()?)?;
                    replaced.add_term(high, coefficient.checked_mul(by / divisor)?)?;
                    let digit = (of_high - remainder) / divisor;
                    replaced.constant =
                        replaced.constant.checked_add(coefficient.checked_mul(digit)?)?;
                    return Some(replaced);
                }
                let factor = coefficient / divisor;
                replaced.add_term(atom, coefficient.checked_neg()?)?;
                replaced.add(numerator, factor)?;
                let remainder = remainder.checked_mul(factor)?;
                replaced.constant = replaced.constant.checked_sub(remainder)?;
                Some(replaced)
            })
        };
        // What comes in is older than what goes: none is replaced twice.
        while let Some(replaced) = find(sum) {
            *sum = replaced;
        }
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

impl KnownMultiple {
    /// The remainder of a sum by a divisor, if it is a multiple of this one but for multiples of the divisor and
    /// a constant.
    fn remainder_of(&self, sum: &Sum, divisor: i64) -> Option<i64> {
        let by = i128::from(divisor);
        let &(first, unit) = self.sum.terms().first()?;
        let factor = i128::from(sum.coefficient(first).checked_div(unit)?);
        let is_multiple = |atom| {
            let [own, other] = [&self.sum, sum].map(|it| i128::from(it.coefficient(atom)));
            (other - factor * own) % by == 0
        };
        let mut atoms = self.sum.terms().iter().chain(sum.terms()).map(|&(atom, _)| atom);
        if factor * i128::from(self.modulus) % by != 0 || !atoms.all(is_multiple) {
            return None;
        }
        let rest = i128::from(sum.constant) - factor * i128::from(self.sum.constant);
        i64::try_from(rest.rem_euclid(by)).ok()
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
    fn quotients_that_constraints_make_exact_are_replaced() {
        for (result, constraint, expected) in [
            ("(d0 / 7) * 7", "d0 mod 7 in [0, 0]", "d0"),
            ("((d0 - 3) / 7) * 7 + 3", "(d0 + 4) mod 7 in [0, 0]", "d0"),
            ("d0 mod 4", "d0 mod 8 in [5, 5]", "1"),
            ("(d0 + 3) mod 8", "d0 mod 8 in [5, 5]", "0"),
            ("(d0 * 3 + d1 * 3) mod 6", "(d0 + d1) mod 2 in [1, 1]", "3"),
            ("(d0 * 9 + d1 * 2) mod 4", "(d0 + d1 * 2) mod 12 in [7, 7]", "3"),
            ("d0 mod 6", "d0 mod 2 in [0, 0], d0 mod 3 in [0, 0]", "0"),
            ("d0 mod 12", "d0 mod 4 in [3, 3], d0 mod 3 in [1, 1]", "7"),
            ("(d0 / 2) mod 4", "d0 mod 8 in [5, 5]", "2"),
            ("(d0 / 2) mod 2", "d0 mod 4 in [0, 0]", "0"),
            ("d0 / 2 + d0 / 4", "d0 mod 8 in [5, 5]", "(d0 / 4) * 3"),
            ("d0 / 2 + d0 / 16", "d0 mod 8 in [5, 5]", "d0 / 2 + d0 / 16"),
            ("(d0 / 14) * 7", "d0 mod 7 in [0, 0]", "(d0 / 14) * 7"),
            ("d0 mod 5", "d0 mod 7 in [0, 0]", "d0 mod 5"),
        ] {
            let domain = "d0 in [0, 99], d1 in [0, 99]";
            let simplest =
                |form| simplified(&format!("(d0, d1) -> ({form}), domain: {domain}, {constraint}"));
            let expected = simplest(expected);
            assert_eq!(simplest(result), expected, "{result}, {constraint}");
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
