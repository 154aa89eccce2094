//! Congruences of sums that are written differently.
//!
//! A sum is known modulo `m` up to multiples of `m` in its coefficients, so that simplified remainders of
//! one sum by several divisors are those of different sums. All congruences are compared:
//!
//! - `sum == y (mod m)` times `k` is one of any sum whose coefficients are `k` times as large modulo `m`.
//! - Two congruences whose coefficients agree modulo what the divisors have in common are one by the
//!   least common multiple, coefficient by coefficient (Chinese remainder theorem).
//! - A remainder by a multiple of the divisor has the same remainder: `(x mod 6) mod 3 == x mod 3`.
//! - With the coefficients nearest to zero, a sum whose values differ by less than `m` is a number. Where it
//!   was multiplied, the inverse of one of its coefficients undoes that.

use std::collections::{BTreeMap, BTreeSet};

use super::Solver;
use super::monotone::Sum;
use super::residues::Residue;
use crate::congruence::{Congruence, Merged, gcd_and_inverse};
use crate::expr::{Expr, Node, gcd};

/// The most congruences that are compared, and the most terms of each.
const MAX_CONGRUENCES: usize = 32;
const MAX_TERMS: usize = 16;

/// `sum of terms == value (mod modulus)`, with coefficients in `[0, modulus - 1]`.
#[derive(Clone)]
pub(super) struct SumCongruence {
    terms: BTreeMap<Expr, i64>,
    modulus: i64,
    value: Expr,
}

impl SumCongruence {
    fn coefficient(&self, term: Expr) -> i64 {
        self.terms.get(&term).copied().unwrap_or(0)
    }

    /// The inverse of the coefficient of a term, if it has one.
    fn inverse_of(&self, term: Expr) -> Option<i64> {
        let modulus = i128::from(self.modulus);
        let (common, inverse) = gcd_and_inverse(self.coefficient(term).into(), modulus);
        i64::try_from(inverse).ok().filter(|_| common == 1)
    }
}

/// `lhs * rhs` modulo a positive number.
fn product(lhs: i64, rhs: i64, modulus: i64) -> i64 {
    let product = (i128::from(lhs) * i128::from(rhs)).rem_euclid(modulus.into());
    i64::try_from(product).expect("less than a 64-bit number")
}

impl Solver<'_> {
    /// The known remainders by constants.
    pub(super) fn congruences(&self) -> Vec<SumCongruence> {
        let ctx = self.ctx;
        let congruences = self.all_known().into_iter().filter_map(|(term, value)| {
            let Node::Mod(number, modulus) = ctx.node(term) else { return None };
            let modulus = ctx.as_constant(modulus).filter(|&modulus| 1 < modulus)?;
            let Sum { unknown, known } = self.sum(number)?;
            let terms = unknown.into_iter().map(|(term, by)| (term, by.rem_euclid(modulus)));
            let terms: BTreeMap<Expr, i64> = terms.filter(|it| it.1 != 0).collect();
            let value = ctx.sub(value, known);
            let is_small = !terms.is_empty() && terms.len() <= MAX_TERMS;
            is_small.then_some(SumCongruence { terms, modulus, value })
        });
        let mut congruences: Vec<SumCongruence> = congruences.take(MAX_CONGRUENCES).collect();
        let remainders: BTreeSet<Expr> =
            congruences.iter().flat_map(|it| it.terms.keys().copied()).collect();
        for remainder in remainders {
            let nested = congruences.iter().filter_map(|it| self.of_remainder(it, remainder));
            let nested: Vec<SumCongruence> = nested.collect();
            congruences.extend(nested);
        }
        congruences
    }

    /// `x == y (mod m)` as `(x mod c*m) == y (mod m)`.
    fn of_remainder(&self, of: &SumCongruence, remainder: Expr) -> Option<SumCongruence> {
        let ctx = self.ctx;
        let Node::Mod(number, modulus) = ctx.node(remainder) else { return None };
        let modulus = ctx.as_constant(modulus).filter(|modulus| modulus % of.modulus == 0)?;
        if modulus == of.modulus {
            return None;
        }
        let Sum { unknown, known } = self.sum(number)?;
        let terms = unknown.into_iter().map(|(term, by)| (term, by.rem_euclid(of.modulus)));
        let terms: BTreeMap<Expr, i64> = terms.filter(|it| it.1 != 0).collect();
        let value = ctx.add(of.value, known);
        let terms_agree = terms == of.terms;
        terms_agree.then(|| SumCongruence {
            terms: BTreeMap::from([(remainder, 1)]),
            modulus: of.modulus,
            value,
        })
    }

    /// What is known of a sum by all congruences of multiples of it.
    pub(super) fn residue_of(
        &self,
        congruences: &[SumCongruence],
        number: Expr,
    ) -> Option<Residue> {
        let ctx = self.ctx;
        let linear = ctx.linear_terms(number)?;
        let residues = congruences.iter().filter_map(|congruence| {
            let SumCongruence { terms, modulus, value } = congruence;
            let wanted: BTreeMap<Expr, i64> =
                linear.terms.iter().map(|&(term, by)| (term, by.rem_euclid(*modulus))).collect();
            let multiple = |&factor: &i64| {
                let all: BTreeSet<&Expr> = terms.keys().chain(wanted.keys()).collect();
                all.into_iter().all(|term| {
                    let by = wanted.get(term).copied().unwrap_or(0);
                    product(congruence.coefficient(*term), factor, *modulus) == by
                })
            };
            let of_terms = terms.keys().filter_map(|&term| {
                Some(product(congruence.inverse_of(term)?, *wanted.get(&term)?, *modulus))
            });
            if let Some(factor) = [1].into_iter().chain(of_terms).find(multiple) {
                let scaled = ctx.mul(*value, ctx.constant(factor));
                return Some((*modulus, ctx.modulo(scaled, ctx.constant(*modulus))));
            }
            // One term need not have an inverse.
            match linear.terms[..] {
                [(term, 1)] if terms.len() == 1 => {
                    self.solve_congruence(*terms.get(&term)?, *modulus, *value)
                }
                _ => None,
            }
        });
        let joined = residues.map(Some).reduce(|lhs, rhs| self.join_residues(lhs?, rhs?));
        joined.flatten()
    }

    /// Solves sums of which remainders are known for the sum itself.
    pub(super) fn join_congruences(&mut self) {
        let congruences = self.congruences();
        let mut joined: Vec<SumCongruence> =
            congruences.iter().filter(|it| 1 < it.terms.len()).cloned().collect();
        for (place, first) in congruences.iter().enumerate() {
            let mut whole = first.clone();
            for other in congruences[..place].iter().chain(&congruences[place + 1..]) {
                if let Some(both) = self.both(&whole, other) {
                    whole = both;
                }
            }
            if first.modulus < whole.modulus {
                joined.push(whole);
            }
        }
        for congruence in joined {
            let inverses = congruence.terms.keys().filter_map(|&term| congruence.inverse_of(term));
            for factor in [1].into_iter().chain(inverses.collect::<BTreeSet<i64>>()) {
                if self.solve_times(&congruence, factor).is_some() {
                    break;
                }
            }
        }
    }

    /// One congruence that is equivalent to two with terms in common.
    fn both(&self, lhs: &SumCongruence, rhs: &SumCongruence) -> Option<SumCongruence> {
        let mut terms = BTreeMap::new();
        let common = gcd(lhs.modulus.unsigned_abs(), rhs.modulus.unsigned_abs());
        let modulus = lhs.modulus.checked_mul(rhs.modulus / i64::try_from(common).ok()?)?;
        if lhs.terms.keys().all(|term| !rhs.terms.contains_key(term)) {
            return None;
        }
        for &term in lhs.terms.keys().chain(rhs.terms.keys()) {
            let [one, other] = [lhs, rhs]
                .map(|it| Congruence { modulus: it.modulus, remainder: it.coefficient(term) });
            let Merged::One(merged) = one.merge(other) else { return None };
            terms.insert(term, merged.remainder);
        }
        let (first, second) = ((lhs.modulus, lhs.value), (rhs.modulus, rhs.value));
        let (_, value) = self.join_residues(first, second)?;
        (terms.len() <= MAX_TERMS).then_some(SumCongruence { terms, modulus, value })
    }

    /// Solves a congruence times a factor, if its values differ by less than the modulus.
    fn solve_times(&mut self, congruence: &SumCongruence, factor: i64) -> Option<()> {
        let ctx = self.ctx;
        let SumCongruence { terms, modulus, value } = congruence;
        let nearest = |by: i64| {
            let by = product(by, factor, *modulus);
            if modulus / 2 < by { by - modulus } else { by }
        };
        let terms: Vec<(Expr, i64)> =
            terms.iter().map(|(&term, &by)| (term, nearest(by))).collect();
        let sum = self.total(&terms);
        let interval = self.simplifier.interval_of(sum);
        if interval.is_empty() || modulus.unsigned_abs() < interval.num_members()? {
            return None;
        }
        if self.equations.iter().all(|equation| equation.0 != sum) {
            let least = ctx.constant(interval.lo);
            let above = ctx.sub(ctx.mul(*value, ctx.constant(factor)), least);
            self.add(sum, ctx.add(least, ctx.modulo(above, ctx.constant(*modulus))));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::inverse_of;

    #[test]
    fn remainders_of_one_sum() {
        for text in [
            "(d0, d1) -> ((d0 * 58 + d1) mod 8, (d0 * 58 + d1) mod 10, (d0 * 58 + d1) mod 9), \
             domain: d0 in [0, 2], d1 in [0, 57]",
            "(d0, d1, d2) -> ((d0 * 25 + d1 * 5 + d2) / 2, (d0 * 25 + d1 * 5 + d2) mod 3), \
             domain: d0 in [0, 1207], d1 in [0, 4], d2 in [0, 4]",
            "(d0, d1) -> ((d0 * 412 + d1) mod 8, (d0 * 412 + d1) mod 11, \
             ((d0 * 412 + d1) mod 10) * -2, (d0 * 412 + d1) mod 9), domain: d0 in [0, 3], d1 in [0, 411]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn remainders_of_remainders() {
        for text in [
            "(d0) -> ((d0 + 2) mod 1360 mod 7, (d0 + 2) mod 10, (d0 + 2) mod 1360 mod 9, (d0 + 2) mod 8), \
             domain: d0 in [0, 1359]",
            "(d0) -> ((d0 * 7 + 2) mod 90 mod 8, (d0 * 7 + 2) mod 15), domain: d0 in [0, 89]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn remainders_of_multiples_of_a_sum() {
        for text in [
            "(d0, d1, d2) -> ((d0 * 39620 + d1 * 28 + d2 * 4) mod 69319), \
             domain: d0 in [0, 6], d1 in [0, 1412], d2 in [0, 4]",
            "(d0, d1) -> ((d0 * 70 + d1 * 7 + 5) mod 200), domain: d0 in [0, 18], d1 in [0, 9]",
        ] {
            inverse_of(text);
        }
    }
}
