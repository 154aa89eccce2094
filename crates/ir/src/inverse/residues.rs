//! Equations between remainders.
//!
//! - `(a*t + k) mod m == y` gives `t` modulo `m/g`, for `g` the greatest common divisor of `a` and `m`,
//!   by the inverse of `a/g` (Knuth, "The Art of Computer Programming", 4.5.2).
//! - In `a*t + .. == y`, all other multiples vanish modulo the greatest common divisor of their
//!   factors.
//! - Remainders of one number by several divisors give the one by their least common multiple
//!   (Chinese remainder theorem; Knuth, 4.3.2).

use std::collections::BTreeMap;

use super::Solver;
use super::monotone::Sum;
use crate::congruence::gcd_and_inverse;
use crate::expr::{Expr, Node, gcd};

impl Solver<'_> {
    /// Solves `number mod modulus == value` for the only unknown term of the number, by a smaller or
    /// equal modulus.
    pub(super) fn solve_remainder(
        &mut self,
        number: Expr,
        modulus: i64,
        value: Expr,
    ) -> Option<()> {
        let Sum { unknown, known } = self.sum(number)?;
        let [(term, factor)] = unknown[..] else { return None };
        if term == number {
            return None;
        }
        self.solve_congruence(term, factor, modulus, self.ctx.sub(value, known))
    }

    /// Solves `factor*term == value (mod modulus)`.
    fn solve_congruence(
        &mut self,
        term: Expr,
        factor: i64,
        modulus: i64,
        value: Expr,
    ) -> Option<()> {
        let ctx = self.ctx;
        if modulus <= 1 {
            return None;
        }
        let modulus = i128::from(modulus);
        let (common, inverse) = gcd_and_inverse(i128::from(factor).rem_euclid(modulus), modulus);
        let constant = |value: i128| Some(ctx.constant(i64::try_from(value).ok()?));
        let by = constant(modulus / common).filter(|_| common < modulus)?;
        let multiple = ctx.floor_div(value, constant(common)?);
        let least = ctx.modulo(ctx.mul(multiple, constant(inverse)?), by);
        self.learn(ctx.modulo(term, by), least);
        Some(())
    }

    /// Solves `sum == value` for the terms that take no more values than there are remainders by what
    /// the other factors have in common.
    pub(super) fn isolate(&mut self, unknown: &[(Expr, i64)], value: Expr) {
        for (place, &(term, factor)) in unknown.iter().enumerate() {
            let others = unknown[..place].iter().chain(&unknown[place + 1..]);
            let common = others.fold(0, |common, other| gcd(common, other.1.unsigned_abs()));
            let num_remainders = common / gcd(common, factor.unsigned_abs()).max(1);
            let num_values = self.simplifier.interval_of(term).num_members();
            let is_determined = num_values.is_some_and(|values| values <= num_remainders);
            if let Ok(modulus) = i64::try_from(common)
                && is_determined
                && !self.known.contains_key(&term)
            {
                self.solve_congruence(term, factor, modulus, value);
            }
        }
    }

    /// Puts the remainders of one number together.
    pub(super) fn join_remainders(&mut self) {
        let ctx = self.ctx;
        let mut by_number: BTreeMap<Expr, Vec<(i64, Expr)>> = BTreeMap::new();
        for (&term, &value) in &self.known {
            if let Node::Mod(number, modulus) = ctx.node(term)
                && let Some(modulus) = ctx.as_constant(modulus).filter(|&modulus| 1 < modulus)
            {
                by_number.entry(number).or_default().push((modulus, value));
            }
        }
        for (number, mut remainders) in by_number {
            remainders.sort_unstable();
            let Some(joined) = remainders.into_iter().map(Some).reduce(|lhs, rhs| {
                let ((modulus, value), (other, further)) = (lhs?, rhs?);
                if modulus % other == 0 {
                    return lhs;
                }
                // value + modulus*k == further (mod other)
                let (common, inverse) = gcd_and_inverse((modulus % other).into(), other.into());
                let (common, inverse) = (i64::try_from(common).ok()?, i64::try_from(inverse).ok()?);
                let least = modulus.checked_mul(other / common)?;
                let steps = ctx.floor_div(ctx.sub(further, value), ctx.constant(common));
                let steps = ctx.mul(steps, ctx.constant(inverse));
                let steps = ctx.modulo(steps, ctx.constant(other / common));
                Some((least, ctx.add(value, ctx.mul(steps, ctx.constant(modulus)))))
            }) else {
                continue;
            };
            if let Some((modulus, value)) = joined {
                let remainder = ctx.modulo(number, ctx.constant(modulus));
                if !self.known.contains_key(&remainder) {
                    self.learn(remainder, value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::monotone::tests::inverse;

    #[test]
    fn remainders_of_multiples() {
        assert_eq!(
            inverse("(d0) -> ((d0 * 5) mod 1001), domain: d0 in [0, 1000]"),
            "(d0) -> ((d0 * 801) mod 1001), domain: d0 in [0, 1000]"
        );
        for text in [
            "(d0) -> ((d0 * 6 + 5) mod 9), domain: d0 in [2, 4]",
            // The constraints of its inverse were reduced in circles.
            "(d0) -> (((d0 * -3 + 13) * 2 - 2) / 5, ((d0 * -3 + 13) * 2 - 2) mod 5), domain: d0 in [0, 4]",
            "(d0, d1) -> ((d0 * 3 + d1) mod 10, d1), domain: d0 in [0, 9], d1 in [0, 5]",
            "(d0, d1) -> (d0 / 8, ((d0 mod 8) * 3 + d1) mod 8, d1), domain: d0 in [0, 31], d1 in [0, 5]",
        ] {
            inverse(text);
        }
    }

    #[test]
    fn sums_of_multiples() {
        assert_eq!(
            inverse("(d0, d1) -> (d0 * 3 + d1 * 5), domain: d0 in [0, 4], d1 in [0, 10]"),
            "(d0) -> ((d0 * 2) mod 5, ((d0 * 2) / 5) * 3 - d0), \
             domain: d0 in [0, 62], d0 - ((d0 * 2) / 5) * 3 in [-10, 0]"
        );
        for text in [
            "(d0, d1) -> (d0 * 3 + d1 * 5), domain: d0 in [0, 20], d1 in [0, 2]",
            "(d0, d1) -> (d0 * 6 - d1 * 10 + 7), domain: d0 in [-3, 1], d1 in [0, 20]",
            "(d0, d1, d2) -> (d0 * 15 + d1 * 10 + d2 * 6), \
             domain: d0 in [0, 1], d1 in [3, 5], d2 in [0, 10]",
        ] {
            inverse(text);
        }
    }

    #[test]
    fn remainders_by_several_divisors() {
        assert_eq!(
            inverse("(d0) -> (d0 mod 3, d0 mod 5), domain: d0 in [0, 14]"),
            "(d0, d1) -> ((d0 * 10 + d1 * 6) mod 15), domain: d0 in [0, 2], d1 in [0, 4]"
        );
        for text in [
            "(d0) -> (d0 mod 6, d0 mod 10, d0 mod 15), domain: d0 in [0, 29]",
            "(d0) -> (d0 mod 6, (d0 + 3) mod 10), domain: d0 in [7, 30]",
            "(d0, d1) -> (d0 mod 4, (d0 * 5) mod 9, d1 + d0), domain: d0 in [-7, 28], d1 in [0, 3]",
        ] {
            inverse(text);
        }
    }
}
