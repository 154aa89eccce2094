//! What constraints say of numbers modulo others.

use crate::expr::{Context, Expr, Node, Var, gcd};
use crate::interval::Interval;
use crate::map::Constraint;

/// `x == remainder (mod modulus)`, with `0 <= remainder < modulus`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Congruence {
    pub(crate) modulus: i64,
    pub(crate) remainder: i64,
}

/// What two congruences of one number come down to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Merged {
    One(Congruence),
    Contradiction,
    TooLarge,
}

impl Congruence {
    /// The number that a constraint says a remainder of, and what it says: `x mod c in [r, r]`.
    pub(crate) fn of_value(ctx: &Context, constraint: &Constraint) -> Option<(Expr, Self)> {
        let Node::Mod(value, modulus) = ctx.node(constraint.expr) else {
            return None;
        };
        let modulus = ctx.as_constant(modulus).filter(|&modulus| 1 < modulus)?;
        let remainder = constraint.interval.intersect(Interval::new(0, modulus - 1)).as_point()?;
        Some((value, Self { modulus, remainder }))
    }

    /// The congruence of a variable that a constraint `(a*x + b) mod c in [r, r]` is, where it has a
    /// solution.
    pub(crate) fn of(ctx: &Context, constraint: &Constraint) -> Option<(Var, Self)> {
        let (value, Self { modulus, remainder }) = Self::of_value(ctx, constraint)?;
        let linear = ctx.linear_terms(value)?;
        let &[(term, factor)] = &linear.terms[..] else {
            return None;
        };
        // a*x == r - b (mod c): with g = gcd(a, c), x == (r - b)/g * (a/g)^-1 (mod c/g)
        let (modulus, factor) = (i128::from(modulus), i128::from(factor));
        let target = i128::from(remainder) - i128::from(linear.constant);
        let (common, inverse) = gcd_and_inverse(factor.rem_euclid(modulus), modulus);
        if target % common != 0 {
            return None;
        }
        let modulus = modulus / common;
        let remainder = ((target / common).rem_euclid(modulus) * inverse).rem_euclid(modulus);
        let congruence = Self {
            modulus: i64::try_from(modulus).ok()?,
            remainder: i64::try_from(remainder).ok()?,
        };
        Some((ctx.as_var(term)?, congruence))
    }

    /// The numbers for which both hold (Chinese remainder theorem).
    pub(crate) fn merge(self, other: Self) -> Merged {
        let (m, n) = (i128::from(self.modulus), i128::from(other.modulus));
        let common = gcd(self.modulus.unsigned_abs(), other.modulus.unsigned_abs());
        let common = i128::from(common);
        let distance = i128::from(other.remainder) - i128::from(self.remainder);
        if distance % common != 0 {
            return Merged::Contradiction;
        }
        // self.remainder + m*k == other.remainder (mod n): m/g * k == distance/g (mod n/g)
        let small = n / common;
        let (_, inverse) = gcd_and_inverse((m / common).rem_euclid(small), small);
        let steps = ((distance / common).rem_euclid(small) * inverse).rem_euclid(small);
        let merged = i64::try_from(m * small).ok().and_then(|modulus| {
            let remainder = i64::try_from(i128::from(self.remainder) + m * steps).ok()?;
            Some(Self { modulus, remainder })
        });
        merged.map_or(Merged::TooLarge, Merged::One)
    }
}

/// `g = gcd(value, modulus)`, and the inverse of `value / g` modulo `modulus / g`, for `0 <= value
/// < modulus` of at most 64 bits (extended Euclidean algorithm).
pub(crate) fn gcd_and_inverse(value: i128, modulus: i128) -> (i128, i128) {
    let (mut a, mut b) = (modulus, value);
    let (mut x, mut y) = (0_i128, 1_i128);
    while b != 0 {
        let quotient = a / b;
        (a, b) = (b, a - quotient * b);
        (x, y) = (y, x - quotient * y);
    }
    (a, x.rem_euclid(modulus / a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_congruences_are_solved() {
        for factor in -7..=7_i64 {
            for offset in -3..=3_i64 {
                for modulus in 2..=9_i64 {
                    for remainder in 0..modulus {
                        let ctx = Context::new();
                        let scaled = ctx.mul(ctx.range(0), ctx.constant(factor));
                        let value = ctx.add(scaled, ctx.constant(offset));
                        let constraint = Constraint {
                            expr: ctx.modulo(value, ctx.constant(modulus)),
                            interval: Interval::point(remainder),
                        };
                        let solution = Congruence::of(&ctx, &constraint);
                        let holds = |x: i64| (factor * x + offset).rem_euclid(modulus) == remainder;
                        if factor == 0 {
                            assert_eq!(solution, None);
                            continue;
                        }
                        for x in -20..20_i64 {
                            let found = solution.is_some_and(|(var, it)| {
                                var == Var::Range(0) && x.rem_euclid(it.modulus) == it.remainder
                            });
                            assert_eq!(found, holds(x), "{factor} {offset} {modulus} {remainder}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn inverses_of_residues() {
        for modulus in 2..40_i128 {
            for value in 0..modulus {
                let (common, inverse) = gcd_and_inverse(value, modulus);
                let expected = u128::from(gcd(value as u64, modulus as u64));
                assert_eq!(common.unsigned_abs(), expected, "{value} {modulus}");
                let small = modulus / common;
                let is_inverse = (value / common * inverse).rem_euclid(small) == 1 % small;
                assert!((0..small).contains(&inverse) && is_inverse, "{value} {modulus}");
            }
        }
        let large = i128::from(i64::MAX);
        assert_eq!(gcd_and_inverse(large - 1, large), (1, large - 1));
    }

    #[test]
    fn two_congruences_are_one() {
        for m in 1..=12_i64 {
            for n in 1..=12_i64 {
                for (r, s) in (0..m).flat_map(|r| (0..n).map(move |s| (r, s))) {
                    let one = Congruence { modulus: m, remainder: r };
                    let merged = one.merge(Congruence { modulus: n, remainder: s });
                    for x in 0..150 {
                        let found = match merged {
                            Merged::One(it) => x % it.modulus == it.remainder,
                            Merged::Contradiction => false,
                            Merged::TooLarge => unreachable!("the moduli are small"),
                        };
                        assert_eq!(found, x % m == r && x % n == s);
                    }
                }
            }
        }
        let large = Congruence { modulus: i64::MAX, remainder: i64::MAX - 1 };
        assert_eq!(large.merge(Congruence { modulus: 2, remainder: 1 }), Merged::TooLarge);
        assert_eq!(large.merge(large), Merged::One(large));
    }
}
