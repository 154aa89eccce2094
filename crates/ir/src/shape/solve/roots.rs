//! Positive integers at which a polynomial in one unknown is zero.
//!
//! Between real roots of its derivative a polynomial is monotone, and bisection finds the root that is there.
//! So the roots of all derivatives are located, the last one first, each between two integers.

use std::collections::BTreeSet;

use crate::expr::gcd;

/// The roots of the polynomial with these coefficients, that of degree 0 first. `None` if it is zero, or
/// too large.
pub(super) fn positive_roots(coefficients: &[i64]) -> Option<Vec<i64>> {
    let whole = reduced(coefficients)?;
    // Every integer root divides it.
    let bound = i64::try_from(whole.first()?.unsigned_abs()).unwrap_or(i64::MAX);
    let mut derivatives = vec![whole];
    while let Some(last) = derivatives.last().filter(|it| 1 < it.len()) {
        let factors = (1..).zip(&last[1..]);
        let derivative: Option<Vec<i64>> = factors.map(|(i, it)| it.checked_mul(i)).collect();
        derivatives.push(reduced(&derivative?)?);
    }
    let located = derivatives
        .iter()
        .rev()
        .fold(BTreeSet::new(), |extrema, polynomial| locate(polynomial, &extrema, bound));
    let ends = located.iter().flat_map(|&start| [start, start.saturating_add(1).min(bound)]);
    let ends: BTreeSet<i64> = ends.collect();
    Some(ends.into_iter().filter(|&end| sign(&derivatives[0], end) == 0).collect())
}

/// A polynomial with the same positive roots, without common factors.
fn reduced(coefficients: &[i64]) -> Option<Vec<i64>> {
    let first = coefficients.iter().position(|it| *it != 0)?;
    let last = coefficients.iter().rposition(|it| *it != 0)?;
    let kept = &coefficients[first..=last];
    let divisor = kept.iter().fold(0, |divisor, it| gcd(divisor, it.unsigned_abs()));
    let divisor = i64::try_from(divisor).ok()?;
    Some(kept.iter().map(|it| it / divisor).collect())
}

/// The sign at a positive integer.
fn sign(coefficients: &[i64], at: i64) -> i128 {
    let mut value = 0_i128;
    for &coefficient in coefficients.iter().rev() {
        // Twice as much, and no coefficient changes the sign.
        if 1 < at && 1 << 63 < value.unsigned_abs() {
            break;
        }
        value = value * i128::from(at) + i128::from(coefficient);
    }
    value.signum()
}

/// Integers up to a bound, such that every root lies between one of them and the next integer, if those of the
/// derivative do for `extrema`.
fn locate(coefficients: &[i64], extrema: &BTreeSet<i64>, bound: i64) -> BTreeSet<i64> {
    let mut ends = BTreeSet::from([1, bound]);
    ends.extend(extrema.iter().flat_map(|&start| [start, start.saturating_add(1).min(bound)]));
    let mut located = extrema.clone();
    let ends: Vec<i64> = ends.into_iter().collect();
    for (place, &low) in ends.iter().enumerate() {
        let high = *ends.get(place + 1).unwrap_or(&low);
        let (mut low, mut high) = (low, high);
        let [first, last] = [low, high].map(|end| sign(coefficients, end));
        if 0 < first * last {
            continue;
        }
        while 1 < high - low {
            let middle = low + (high - low) / 2;
            match sign(coefficients, middle) == first {
                true => low = middle,
                false => high = middle,
            }
        }
        located.insert(low);
    }
    located
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn product(factors: &[Vec<i64>]) -> Vec<i64> {
        factors.iter().fold(vec![1], |whole, factor| {
            let mut result = vec![0; whole.len() + factor.len() - 1];
            for (i, a) in whole.iter().enumerate() {
                for (j, b) in factor.iter().enumerate() {
                    result[i + j] += a * b;
                }
            }
            result
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Linear factors, and any others.
        #[test]
        fn all_are_found(
            planted in prop::collection::vec(1..40_i64, 0..4),
            others in prop::collection::vec(prop::collection::vec(-9..9_i64, 1..4), 0..3),
        ) {
            let linear = planted.iter().map(|root| vec![-root, 1]);
            let factors: Vec<Vec<i64>> = linear.chain(others).collect();
            let whole = product(&factors);
            let value = |at: i64| {
                whole.iter().rev().fold(0, |value, it| value * i128::from(at) + i128::from(*it))
            };
            let expected: Vec<i64> = (1..100).filter(|at| value(*at) == 0).collect();
            match positive_roots(&whole) {
                Some(roots) => prop_assert_eq!(roots, expected, "{:?}", whole),
                None => prop_assert!(whole.iter().all(|it| *it == 0)),
            }
        }
    }

    #[test]
    fn large_roots_are_exact() {
        let large = 3_037_000_499;
        assert_eq!(positive_roots(&[-large * large, 0, 1]), Some(vec![large]));
        assert_eq!(positive_roots(&[1 - large * large, 0, 1]), Some(vec![]));
        assert_eq!(positive_roots(&[-i64::MAX, 1]), Some(vec![i64::MAX]));
        assert_eq!(positive_roots(&[i64::MIN, 1]), Some(vec![]));
        assert_eq!(positive_roots(&[i64::MIN, 0, 0, 1]), Some(vec![1 << 21]));
        assert_eq!(positive_roots(&[0, 0, 3]), Some(vec![]));
        let mut power = vec![0; 33];
        (power[0], power[32]) = (-1 << 32, 1);
        assert_eq!(positive_roots(&power), Some(vec![2]));
    }
}
