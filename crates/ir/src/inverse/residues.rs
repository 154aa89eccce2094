//! Equations between remainders.
//!
//! - `(a*t + k) mod m == y` gives `t` modulo `m/g`, for `g` the greatest common divisor of `a` and `m`,
//!   by the inverse of `a/g` (Knuth, "The Art of Computer Programming", 4.5.2).
//! - In `a*t + .. == y`, and in its remainder by `m`, all other multiples vanish modulo the greatest common
//!   divisor of their factors (and `m`). What is left is a number if it takes no more values than there
//!   are remainders.
//! - Remainders of one number by several divisors give the one by their least common multiple
//!   (Chinese remainder theorem; Knuth, 4.3.2).

use std::collections::{BTreeMap, BTreeSet};

use super::Solver;
use super::monotone::Sum;
use crate::congruence::gcd_and_inverse;
use crate::expr::{Expr, Node, gcd};

/// The most terms of a sum that are taken apart by remainders.
const MAX_TERMS: usize = 16;

/// A number modulo another: `(modulus, remainder)`.
pub(super) type Residue = (i64, Expr);

impl Solver<'_> {
    /// Solves `number mod modulus == value` for the unknown terms of the number.
    pub(super) fn solve_remainder(
        &mut self,
        number: Expr,
        modulus: i64,
        value: Expr,
    ) -> Option<()> {
        let ctx = self.ctx;
        let Sum { unknown, known } = self.sum(number)?;
        let value = ctx.sub(value, known);
        match unknown[..] {
            [(term, factor)] if term != number => {
                let (modulus, remainder) = self.solve_congruence(factor, modulus, value)?;
                self.learn(ctx.modulo(term, ctx.constant(modulus)), remainder);
            }
            [_] | [] => {}
            _ => self.isolate(&unknown, value, modulus),
        }
        Some(())
    }

    /// Solves `factor*t == value (mod modulus)` for `t`, by a smaller or equal modulus.
    pub(super) fn solve_congruence(
        &self,
        factor: i64,
        modulus: i64,
        value: Expr,
    ) -> Option<Residue> {
        let ctx = self.ctx;
        if modulus <= 1 {
            return None;
        }
        let modulus = i128::from(modulus);
        let (common, inverse) = gcd_and_inverse(i128::from(factor).rem_euclid(modulus), modulus);
        let constant = |value: i128| Some(ctx.constant(i64::try_from(value).ok()?));
        let by = i64::try_from(modulus / common).ok().filter(|_| common < modulus)?;
        let multiple = ctx.floor_div(value, constant(common)?);
        let least = ctx.modulo(ctx.mul(multiple, constant(inverse)?), ctx.constant(by));
        Some((by, least))
    }

    /// Solves `sum == value` modulo a number, which is zero for the equation itself, for terms and groups
    /// of them that take no more values than there are remainders by what the other factors have in
    /// common.
    pub(super) fn isolate(&mut self, unknown: &[(Expr, i64)], value: Expr, modulus: i64) {
        if MAX_TERMS < unknown.len() {
            return;
        }
        let whole = modulus.unsigned_abs();
        for (place, &(term, factor)) in unknown.iter().enumerate() {
            let others = unknown[..place].iter().chain(&unknown[place + 1..]);
            let common = others.fold(whole, |common, other| gcd(common, other.1.unsigned_abs()));
            let num_remainders = common / gcd(common, factor.unsigned_abs()).max(1);
            if let Ok(common) = i64::try_from(common)
                && self.num_values(term).is_some_and(|values| values <= num_remainders)
                && !self.known.contains_key(&term)
                && let Some((modulus, remainder)) = self.solve_congruence(factor, common, value)
            {
                self.learn(self.ctx.modulo(term, self.ctx.constant(modulus)), remainder);
            }
        }
        let factors = unknown.iter().map(|it| gcd(whole, it.1.unsigned_abs()));
        let divisors: BTreeSet<u64> = factors.chain([whole]).filter(|&by| 1 < by).collect();
        for divisor in divisors {
            self.isolate_group(unknown, value, divisor);
        }
    }

    /// Solves `sum == value (mod divisor)` for the sum of the terms that do not vanish.
    fn isolate_group(&mut self, unknown: &[(Expr, i64)], value: Expr, divisor: u64) -> Option<()> {
        let ctx = self.ctx;
        let is_left = |&&(_, factor): &&(Expr, i64)| factor.unsigned_abs() % divisor != 0;
        let left: Vec<(Expr, i64)> = unknown.iter().filter(is_left).copied().collect();
        if left.len() < 2 {
            return None;
        }
        let unit = left.iter().fold(0, |common, it| gcd(common, it.1.unsigned_abs()));
        let unit = i64::try_from(unit).ok()?;
        let (modulus, residue) =
            self.solve_congruence(unit, i64::try_from(divisor).ok()?, value)?;
        let left: Vec<_> = left.into_iter().map(|(term, factor)| (term, factor / unit)).collect();
        let sum = self.total(&left);
        let interval = self.simplifier.interval_of(sum);
        let is_solved = self.equations.iter().any(|equation| equation.0 == sum);
        if is_solved || interval.is_empty() || modulus.unsigned_abs() < interval.num_members()? {
            return None;
        }
        let least = ctx.constant(interval.lo);
        let above = ctx.sub(residue, least);
        self.add(sum, ctx.add(least, ctx.modulo(above, ctx.constant(modulus))));
        Some(())
    }

    /// How many values a term takes at most.
    fn num_values(&mut self, term: Expr) -> Option<u64> {
        self.simplifier.interval_of(term).num_members()
    }

    /// The remainder by the least common multiple of two divisors. `None` on overflow.
    pub(super) fn join_residues(&self, lhs: Residue, rhs: Residue) -> Option<Residue> {
        let ctx = self.ctx;
        let ((modulus, value), (other, further)) = (lhs, rhs);
        if modulus % other == 0 {
            return Some(lhs);
        }
        // value + modulus*k == further (mod other)
        let (common, inverse) = gcd_and_inverse((modulus % other).into(), other.into());
        let (common, inverse) = (i64::try_from(common).ok()?, i64::try_from(inverse).ok()?);
        let least = modulus.checked_mul(other / common)?;
        let steps = ctx.floor_div(ctx.sub(further, value), ctx.constant(common));
        let steps = ctx.mul(steps, ctx.constant(inverse));
        let steps = ctx.modulo(steps, ctx.constant(other / common));
        Some((least, ctx.add(value, ctx.mul(steps, ctx.constant(modulus)))))
    }

    /// Puts the remainders of one number together.
    pub(super) fn join_remainders(&mut self) {
        let ctx = self.ctx;
        let mut by_number: BTreeMap<Expr, Vec<Residue>> = BTreeMap::new();
        for (&term, &value) in &self.known {
            if let Node::Mod(number, modulus) = ctx.node(term)
                && let Some(modulus) = ctx.as_constant(modulus).filter(|&modulus| 1 < modulus)
            {
                by_number.entry(number).or_default().push((modulus, value));
            }
        }
        for (number, mut remainders) in by_number {
            remainders.sort_unstable();
            let joined = remainders.into_iter().map(Some);
            let joined = joined.reduce(|lhs, rhs| self.join_residues(lhs?, rhs?));
            if let Some(Some((modulus, value))) = joined {
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
    use super::super::tests::inverse_of;

    #[test]
    fn remainders_of_multiples() {
        assert_eq!(
            inverse_of("(d0) -> ((d0 * 5) mod 1001), domain: d0 in [0, 1000]"),
            "(d0) -> ((d0 * 801) mod 1001), domain: d0 in [0, 1000]"
        );
        for text in [
            "(d0) -> ((d0 * 6 + 5) mod 9), domain: d0 in [2, 4]",
            // The constraints of its inverse were reduced in circles.
            "(d0) -> (((d0 * -3 + 13) * 2 - 2) / 5, ((d0 * -3 + 13) * 2 - 2) mod 5), domain: d0 in [0, 4]",
            "(d0, d1) -> ((d0 * 3 + d1) mod 10, d1), domain: d0 in [0, 9], d1 in [0, 5]",
            "(d0, d1) -> (d0 / 8, ((d0 mod 8) * 3 + d1) mod 8, d1), domain: d0 in [0, 31], d1 in [0, 5]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn remainders_of_sums() {
        for text in [
            "(d0, d1) -> ((d0 * 3 + d1 * 5) mod 15), domain: d0 in [0, 4], d1 in [0, 2]",
            "(d0, d1) -> ((d0 * 8 + d1 + 5) mod 64), domain: d0 in [0, 7], d1 in [0, 7]",
            "(d0, d1) -> ((d0 * 8 + d1 * 3) mod 64), domain: d0 in [0, 7], d1 in [0, 7]",
            "(d0, d1, d2) -> (d0 * 8 - d1 * 75 - d2 * 15), domain: d0 in [0, 45], d1 in [0, 1], d2 in [0, 1]",
            "(d0, d1, d2) -> ((d0 * 6 + d1 * 10 + d2 * 15) mod 30), \
             domain: d0 in [0, 4], d1 in [0, 2], d2 in [0, 1]",
            "(d0, d1, d2) -> ((d0 * 36 + d1 * 6 + d2) mod 216, d0 / 2), \
             domain: d0 in [0, 9], d1 in [0, 5], d2 in [0, 5]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn sums_of_multiples() {
        assert_eq!(
            inverse_of("(d0, d1) -> (d0 * 3 + d1 * 5), domain: d0 in [0, 4], d1 in [0, 10]"),
            "(d0) -> ((d0 * 2) mod 5, ((d0 * 2) / 5) * 3 - d0), \
             domain: d0 in [0, 62], d0 - ((d0 * 2) / 5) * 3 in [-10, 0]"
        );
        for text in [
            "(d0, d1) -> (d0 * 3 + d1 * 5), domain: d0 in [0, 20], d1 in [0, 2]",
            "(d0, d1) -> (d0 * 6 - d1 * 10 + 7), domain: d0 in [-3, 1], d1 in [0, 20]",
            "(d0, d1, d2) -> (d0 * 15 + d1 * 10 + d2 * 6), \
             domain: d0 in [0, 1], d1 in [3, 5], d2 in [0, 10]",
        ] {
            inverse_of(text);
        }
    }

    #[test]
    fn remainders_by_several_divisors() {
        assert_eq!(
            inverse_of("(d0) -> (d0 mod 3, d0 mod 5), domain: d0 in [0, 14]"),
            "(d0, d1) -> ((d0 * 10 + d1 * 6) mod 15), domain: d0 in [0, 2], d1 in [0, 4]"
        );
        for text in [
            "(d0) -> (d0 mod 6, d0 mod 10, d0 mod 15), domain: d0 in [0, 29]",
            "(d0) -> (d0 mod 97, d0 mod 89, d0 mod 83), domain: d0 in [0, 716000]",
            "(d0) -> (d0 mod 1009, d0 mod 1013, d0 mod 1019), domain: d0 in [0, 1000000000]",
            "(d0) -> (d0 mod 6, (d0 + 3) mod 10), domain: d0 in [7, 30]",
            "(d0, d1) -> (d0 mod 4, (d0 * 5) mod 9, d1 + d0), domain: d0 in [-7, 28], d1 in [0, 3]",
        ] {
            inverse_of(text);
        }
    }
}
