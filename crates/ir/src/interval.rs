//! Closed intervals of 64-bit integers, the value ranges of index expressions.
//!
//! An interval `[lo, hi]` holds every integer `x` with `lo <= x <= hi`. A lower end of
//! `i64::MIN` stands for minus infinity and an upper end of `i64::MAX` for plus infinity, so
//! arithmetic saturates instead of wrapping: an end that leaves the 64-bit range turns into
//! the infinity on its side. Every operation returns an enclosure of all results, taken over
//! the mathematical integers (interval arithmetic, Moore, "Interval Analysis", 1966). Results
//! are exact for a single operation except `mod` and products of infinite ends.
//!
//! An interval with `hi < lo` is empty; an operation on an empty operand is empty.

use std::fmt;

/// A closed interval `[lo, hi]` of integers; see the [module](self) text for the infinities.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Interval {
    /// The smallest member, or `i64::MIN` when there is no lower bound.
    pub lo: i64,
    /// The largest member, or `i64::MAX` when there is no upper bound.
    pub hi: i64,
}

/// Stands for infinity in 128-bit end-point arithmetic: it stays beyond the 64-bit range when
/// any finite 64-bit number is added to it or divides it.
const INFINITY: i128 = 1 << 126;

fn wide_lo(lo: i64) -> i128 {
    if lo == i64::MIN { -INFINITY } else { i128::from(lo) }
}

fn wide_hi(hi: i64) -> i128 {
    if hi == i64::MAX { INFINITY } else { i128::from(hi) }
}

fn clamp(value: i128) -> i64 {
    let limited = value.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    i64::try_from(limited).expect("clamped to the 64-bit range")
}

/// Quotient and remainder, rounded towards zero. Nearly all have 64 bits, which takes a fraction of
/// the time.
fn div_rem_wide(lhs: i128, rhs: i128) -> (i128, i128) {
    if let (Ok(lhs), Ok(rhs)) = (i64::try_from(lhs), i64::try_from(rhs))
        && let (Some(quotient), Some(remainder)) = (lhs.checked_div(rhs), lhs.checked_rem(rhs))
    {
        return (quotient.into(), remainder.into());
    }
    (lhs / rhs, lhs % rhs)
}

/// Division that rounds towards minus infinity; the divisor must not be zero.
pub(crate) fn floor_div_wide(lhs: i128, rhs: i128) -> i128 {
    let (quotient, remainder) = div_rem_wide(lhs, rhs);
    if remainder != 0 && (lhs < 0) != (rhs < 0) { quotient - 1 } else { quotient }
}

/// Division that rounds towards plus infinity; the divisor must not be zero.
pub(crate) fn ceil_div_wide(lhs: i128, rhs: i128) -> i128 {
    let (quotient, remainder) = div_rem_wide(lhs, rhs);
    if remainder != 0 && (lhs < 0) == (rhs < 0) { quotient + 1 } else { quotient }
}

/// The Euclidean remainder; the divisor must not be zero.
pub(crate) fn remainder_wide(lhs: i128, rhs: i128) -> i128 {
    let (_, remainder) = div_rem_wide(lhs, rhs);
    if remainder < 0 { remainder + rhs.abs() } else { remainder }
}

impl Interval {
    /// Every integer.
    pub const ALL: Interval = Interval { lo: i64::MIN, hi: i64::MAX };
    /// No integer.
    pub const EMPTY: Interval = Interval { lo: 0, hi: -1 };
    /// Every integer that is not negative.
    pub const NON_NEGATIVE: Interval = Interval { lo: 0, hi: i64::MAX };

    /// The interval from `lo` to `hi`, both included.
    pub fn new(lo: i64, hi: i64) -> Self {
        Interval { lo, hi }
    }

    /// The interval that holds `value` only.
    pub fn point(value: i64) -> Self {
        Interval { lo: value, hi: value }
    }

    /// Whether no integer lies in the interval.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.hi < self.lo
    }

    /// The only member, if there is exactly one. The end points that stand for an infinity
    /// are no members.
    #[inline]
    pub fn as_point(self) -> Option<i64> {
        (self.lo == self.hi && self.lo != i64::MIN && self.hi != i64::MAX).then_some(self.lo)
    }

    /// Whether `value` is a member.
    pub fn contains(self, value: i64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// Whether a mathematical integer is a member; the infinite ends hold all beyond them.
    pub(crate) fn contains_wide(self, value: i128) -> bool {
        (self.lo == i64::MIN || i128::from(self.lo) <= value)
            && (self.hi == i64::MAX || value <= i128::from(self.hi))
    }

    /// The member next to `value`, or `value` where there is none.
    pub(crate) fn nearest(self, value: i64) -> i64 {
        if self.is_empty() { value } else { value.clamp(self.lo, self.hi) }
    }

    /// Whether every member of `other` is a member of `self`.
    #[inline]
    pub fn covers(self, other: Interval) -> bool {
        other.is_empty() || (self.lo <= other.lo && other.hi <= self.hi)
    }

    /// Whether both ends are finite.
    #[inline]
    pub fn is_bounded(self) -> bool {
        self.lo != i64::MIN && self.hi != i64::MAX
    }

    /// The members of both intervals.
    #[inline]
    pub fn intersect(self, other: Interval) -> Interval {
        Interval::new(self.lo.max(other.lo), self.hi.min(other.hi))
    }

    /// The smallest interval that covers both.
    pub fn hull(self, other: Interval) -> Interval {
        if self.is_empty() {
            other
        } else if other.is_empty() {
            self
        } else {
            Interval::new(self.lo.min(other.lo), self.hi.max(other.hi))
        }
    }

    /// The number of members; `None` when it is infinite or does not fit.
    pub fn num_members(self) -> Option<u64> {
        if self.is_empty() {
            return Some(0);
        }
        if !self.is_bounded() {
            return None;
        }
        self.hi.abs_diff(self.lo).checked_add(1)
    }

    /// Whether `self > other` for all pairs of members (`Some(true)`), for none
    /// (`Some(false)`), or for some only (`None`). Empty intervals compare as unknown.
    pub fn gt(self, other: Interval) -> Option<bool> {
        if self.is_empty() || other.is_empty() {
            None
        } else if other.hi < self.lo {
            Some(true)
        } else if self.hi <= other.lo && self.hi != i64::MAX && other.lo != i64::MIN {
            // Ends that stand for infinity are no members, and not equal.
            Some(false)
        } else {
            None
        }
    }

    /// Whether `self < other`, as [`gt`](Self::gt).
    pub fn lt(self, other: Interval) -> Option<bool> {
        other.gt(self)
    }

    /// Whether `self <= other`, as [`gt`](Self::gt).
    pub fn le(self, other: Interval) -> Option<bool> {
        self.gt(other).map(|greater| !greater)
    }

    /// Whether `self >= other`, as [`gt`](Self::gt).
    pub fn ge(self, other: Interval) -> Option<bool> {
        other.gt(self).map(|less| !less)
    }

    /// Whether `self == other` for all pairs of members, as [`gt`](Self::gt).
    pub fn eq_all(self, other: Interval) -> Option<bool> {
        if self.is_empty() || other.is_empty() {
            None
        } else if self.intersect(other).is_empty() {
            Some(false)
        } else if self.as_point().is_some() && self == other {
            Some(true)
        } else {
            None
        }
    }

    /// Whether `self != other` for all pairs of members, as [`gt`](Self::gt).
    pub fn ne_all(self, other: Interval) -> Option<bool> {
        self.eq_all(other).map(|equal| !equal)
    }

    /// All sums.
    #[expect(clippy::should_implement_trait, reason = "named like its siblings")]
    #[inline]
    pub fn add(self, other: Interval) -> Interval {
        if self.is_empty() || other.is_empty() {
            return Interval::EMPTY;
        }
        if self.is_bounded()
            && other.is_bounded()
            && let (Some(lo), Some(hi)) =
                (self.lo.checked_add(other.lo), self.hi.checked_add(other.hi))
        {
            return Interval::new(lo, hi);
        }
        Interval::new(
            clamp(wide_lo(self.lo).saturating_add(wide_lo(other.lo))),
            clamp(wide_hi(self.hi).saturating_add(wide_hi(other.hi))),
        )
    }

    /// All differences.
    #[expect(clippy::should_implement_trait, reason = "named like its siblings")]
    pub fn sub(self, other: Interval) -> Interval {
        self.add(other.neg())
    }

    /// All negations.
    #[expect(clippy::should_implement_trait, reason = "named like its siblings")]
    pub fn neg(self) -> Interval {
        if self.is_empty() {
            return Interval::EMPTY;
        }
        Interval::new(clamp(-wide_hi(self.hi)), clamp(-wide_lo(self.lo)))
    }

    /// All products.
    #[expect(clippy::should_implement_trait, reason = "named like its siblings")]
    #[inline]
    pub fn mul(self, other: Interval) -> Interval {
        if let Some(factor) = other.as_point()
            && self.is_bounded()
            && !self.is_empty()
            && let (Some(lo), Some(hi)) = (self.lo.checked_mul(factor), self.hi.checked_mul(factor))
        {
            return Interval::new(lo.min(hi), lo.max(hi));
        }
        self.corners(other, |lhs, rhs| lhs.saturating_mul(rhs))
    }

    /// All sums of a member and a multiple of a member of `other`.
    #[inline]
    pub(crate) fn add_multiple(self, other: Interval, factor: i64) -> Interval {
        let (first, last) = match factor < 0 {
            true => (other.hi, other.lo),
            false => (other.lo, other.hi),
        };
        if self.is_bounded()
            && other.is_bounded()
            && self.lo <= self.hi
            && other.lo <= other.hi
            && let Some(lo) = first.checked_mul(factor).and_then(|it| it.checked_add(self.lo))
            && let Some(hi) = last.checked_mul(factor).and_then(|it| it.checked_add(self.hi))
        {
            return Interval::new(lo, hi);
        }
        self.add(other.mul(Interval::point(factor)))
    }

    /// All quotients rounded down, over the divisors that are not zero. Empty when zero is
    /// the only divisor.
    #[inline]
    pub fn floor_div(self, other: Interval) -> Interval {
        if let Some(divisor) = other.as_point()
            && 0 < divisor
            && self.is_bounded()
            && !self.is_empty()
        {
            return Interval::new(self.lo.div_euclid(divisor), self.hi.div_euclid(divisor));
        }
        self.divide(other, floor_div_wide)
    }

    /// The quotient of every member by a positive divisor, rounded down, where all have one.
    #[inline]
    pub(crate) fn only_quotient(self, divisor: i64) -> Option<i64> {
        // Most intervals are longer than the divisor, which is seen without a division.
        let length = self.hi.checked_sub(self.lo)?;
        if !self.is_bounded() || !(0..divisor).contains(&length) {
            return None;
        }
        let quotient = self.lo.div_euclid(divisor);
        (quotient == self.hi.div_euclid(divisor)).then_some(quotient)
    }

    /// All quotients rounded up, over the divisors that are not zero. Empty when zero is the
    /// only divisor.
    pub fn ceil_div(self, other: Interval) -> Interval {
        self.divide(other, ceil_div_wide)
    }

    /// All Euclidean remainders, over the divisors that are not zero. Empty when zero is the
    /// only divisor.
    pub fn modulo(self, other: Interval) -> Interval {
        if 0 <= self.lo && self.hi < other.lo {
            return if self.is_empty() || other.is_empty() { Interval::EMPTY } else { self };
        }
        // x mod -c == x mod c
        let negative = other.intersect(Interval::new(i64::MIN, -1)).neg();
        let divisor = other.intersect(Interval::new(1, i64::MAX)).hull(negative);
        if self.is_empty() || divisor.is_empty() {
            return Interval::EMPTY;
        }
        if 0 <= self.lo && self.hi < divisor.lo {
            return self;
        }
        if let Some(divisor) = divisor.as_point()
            && self.is_bounded()
            && self.lo.div_euclid(divisor) == self.hi.div_euclid(divisor)
        {
            return Interval::new(self.lo.rem_euclid(divisor), self.hi.rem_euclid(divisor));
        }
        let largest = if divisor.hi == i64::MAX { i64::MAX } else { divisor.hi - 1 };
        let hi = if 0 <= self.lo { largest.min(self.hi) } else { largest };
        Interval::new(0, hi)
    }

    /// All minima.
    pub fn min(self, other: Interval) -> Interval {
        if self.is_empty() || other.is_empty() {
            return Interval::EMPTY;
        }
        Interval::new(self.lo.min(other.lo), self.hi.min(other.hi))
    }

    /// All maxima.
    pub fn max(self, other: Interval) -> Interval {
        if self.is_empty() || other.is_empty() {
            return Interval::EMPTY;
        }
        Interval::new(self.lo.max(other.lo), self.hi.max(other.hi))
    }

    /// Splits the divisor at zero: on each side a quotient is monotone in both operands.
    fn divide(self, other: Interval, op: fn(i128, i128) -> i128) -> Interval {
        let negative = other.intersect(Interval::new(i64::MIN, -1));
        let positive = other.intersect(Interval::new(1, i64::MAX));
        self.corners(negative, op).hull(self.corners(positive, op))
    }

    /// The enclosure of `op` when its extremes lie at the corners of the two intervals.
    fn corners(self, other: Interval, op: fn(i128, i128) -> i128) -> Interval {
        if self.is_empty() || other.is_empty() {
            return Interval::EMPTY;
        }
        let mut lo = i128::MAX;
        let mut hi = i128::MIN;
        for lhs in [wide_lo(self.lo), wide_hi(self.hi)] {
            for rhs in [wide_lo(other.lo), wide_hi(other.hi)] {
                let value = op(lhs, rhs);
                lo = lo.min(value);
                hi = hi.max(value);
            }
        }
        Interval::new(clamp(lo), clamp(hi))
    }
}

impl fmt::Display for Interval {
    /// Writes `[lo, hi]`, with `-inf` and `inf` for the infinities.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        if self.lo == i64::MIN {
            f.write_str("-inf")?;
        } else {
            write!(f, "{}", self.lo)?;
        }
        f.write_str(", ")?;
        if self.hi == i64::MAX {
            f.write_str("inf")?;
        } else {
            write!(f, "{}", self.hi)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_ends_stay_infinite() {
        let positive = Interval::new(1, i64::MAX);
        assert_eq!(positive.add(Interval::point(-5)), Interval::new(-4, i64::MAX));
        assert_eq!(positive.neg(), Interval::new(i64::MIN, -1));
        assert_eq!(Interval::ALL.floor_div(Interval::point(i64::MAX - 1)), Interval::ALL);
        assert_eq!(Interval::new(-5, 5).floor_div(positive), Interval::new(-5, 5));
    }

    #[test]
    fn infinite_ends_are_not_equal() {
        for end in [i64::MIN, i64::MAX] {
            let beyond = Interval::point(end);
            assert_eq!(beyond.eq_all(beyond), None);
            assert_eq!((beyond.lt(beyond), beyond.le(beyond)), (None, None));
        }
        assert_eq!(Interval::new(0, 7).le(Interval::point(i64::MAX)), Some(true));
        assert_eq!(Interval::NON_NEGATIVE.le(Interval::point(i64::MAX)), None);
    }

    #[test]
    fn operations_enclose_all_pairs() {
        let ends = -4..=4_i64;
        let all = |f: &mut dyn FnMut(Interval)| {
            for lo in ends.clone() {
                for hi in lo..=4 {
                    f(Interval::new(lo, hi));
                }
            }
        };
        all(&mut |a| {
            all(&mut |b| {
                for x in a.lo..=a.hi {
                    for y in b.lo..=b.hi {
                        assert!(a.add(b).contains(x + y));
                        assert!(a.sub(b).contains(x - y));
                        assert!(a.mul(b).contains(x * y));
                        assert!(a.min(b).contains(x.min(y)));
                        assert!(a.max(b).contains(x.max(y)));
                        if y != 0 {
                            let floor = (x as f64 / y as f64).floor() as i64;
                            let ceil = (x as f64 / y as f64).ceil() as i64;
                            assert!(a.floor_div(b).contains(floor), "{a} {b} {x} {y}");
                            assert!(a.ceil_div(b).contains(ceil), "{a} {b} {x} {y}");
                        }
                        if y != 0 {
                            assert!(a.modulo(b).contains(x.rem_euclid(y)));
                        }
                    }
                }
            });
        });
    }
}
