//! What the elements of tensors are: a domain of values, extended by the undefined value.
//!
//! Source: definitions 3, 4 and 8 of the report. `None` is the undefined value: operations propagate it,
//! and a division by zero gives it.

use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use tc_dialects::tml::syntax::checked::{Element, Operator};

/// A domain of values, such as the rationals.
pub trait Value: Clone {
    /// The number 0.
    fn zero() -> Self;
    /// Whether it is 0.
    fn is_zero(&self) -> bool;
    /// The sum.
    fn add(&self, other: &Self) -> Self;
    /// The difference.
    fn sub(&self, other: &Self) -> Self;
    /// The product.
    fn mul(&self, other: &Self) -> Self;
    /// The quotient by a number that is not 0.
    fn div(&self, other: &Self) -> Self;

    /// Zero divided by zero, if that is controlled. In a domain of rounded values it may be anything.
    fn zero_by_zero(&self, _divisor: &Self) -> Self {
        Self::zero()
    }

    /// The sum of the values, in any order.
    fn sum(values: impl Iterator<Item = Self>) -> Self {
        values.fold(Self::zero(), |sum, value| sum.add(&value))
    }
}

/// What zero divided by zero is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// Undefined, as definition 4 has it.
    Plain,
    /// Zero, as definition 8 has it, which holds from section 4 of the report on.
    Controlled,
}

impl Division {
    /// An operator on values that may be undefined.
    pub fn apply<V: Value>(self, op: Operator, lhs: Option<V>, rhs: Option<V>) -> Option<V> {
        let (lhs, rhs) = (lhs?, rhs?);
        Some(match op {
            Operator::Add => lhs.add(&rhs),
            Operator::Sub => lhs.sub(&rhs),
            Operator::Mul => lhs.mul(&rhs),
            Operator::Div if !rhs.is_zero() => lhs.div(&rhs),
            Operator::Div if self == Self::Controlled && lhs.is_zero() => lhs.zero_by_zero(&rhs),
            Operator::Div => return None,
        })
    }
}

impl Value for BigRational {
    fn zero() -> Self {
        Zero::zero()
    }

    fn is_zero(&self) -> bool {
        Zero::is_zero(self)
    }

    fn add(&self, other: &Self) -> Self {
        self + other
    }

    fn sub(&self, other: &Self) -> Self {
        self - other
    }

    fn mul(&self, other: &Self) -> Self {
        self * other
    }

    fn div(&self, other: &Self) -> Self {
        self / other
    }
}

impl Value for f64 {
    fn zero() -> Self {
        0.0
    }

    fn is_zero(&self) -> bool {
        *self == 0.0
    }

    fn add(&self, other: &Self) -> Self {
        self + other
    }

    fn sub(&self, other: &Self) -> Self {
        self - other
    }

    fn mul(&self, other: &Self) -> Self {
        self * other
    }

    fn div(&self, other: &Self) -> Self {
        self / other
    }
}

/// Numbers that have a size.
pub trait Magnitude: Value {
    /// Roundings of the numbers themselves for each of a program that calculates with floats.
    const ROUNDINGS: f64;

    /// The nearest float.
    fn to_f64(&self) -> f64;

    /// The absolute value, as near as a float is.
    fn magnitude(&self) -> f64 {
        self.to_f64().abs()
    }
}

impl Magnitude for f64 {
    const ROUNDINGS: f64 = 1.0;

    fn to_f64(&self) -> f64 {
        *self
    }
}

impl Magnitude for BigRational {
    const ROUNDINGS: f64 = 0.0;

    fn to_f64(&self) -> f64 {
        ToPrimitive::to_f64(self).unwrap_or(f64::INFINITY)
    }
}

/// A value, and how far a program that calculates with floats may be from it.
///
/// Every result of n roundings is, up to first order, within n unit roundoffs of the value that the same
/// operations have on absolute values (Higham, "Accuracy and Stability of Numerical Algorithms", chapter
/// 3). That holds in every order of sums and products, so that it covers what a compiler may reassociate.
#[derive(Clone, Debug)]
pub struct Bounded<V> {
    /// The value.
    pub value: V,
    /// The value of the same operations on absolute values; infinite if rounding decides what the
    /// result is.
    magnitude: f64,
    /// Roundings on the way to it.
    roundings: f64,
    /// What no number on the way to it exceeds, in whatever order factors are multiplied and terms are
    /// added, nor the inverse of one: beyond the range of floats, numbers may overflow or vanish.
    extreme: f64,
}

impl<V: Magnitude> Bounded<V> {
    /// A value without an error.
    pub fn exact(value: V) -> Self {
        let magnitude = value.magnitude();
        Self::new(value, magnitude, 0.0, 1.0)
    }

    /// How far a program may be from the value if it calculates with these elements; infinite if the
    /// value depends on whether a rounded number is 0, or numbers on the way may leave the range of
    /// such elements.
    pub fn bound(&self, element: Element) -> f64 {
        let (unit, tiny, largest) = match element {
            Element::F32 => {
                (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX))
            }
            Element::F64 => (f64::EPSILON, f64::MIN_POSITIVE, f64::MAX),
        };
        // One over the smallest normal number is about a quarter of the largest.
        if 0.25 * largest < self.extreme {
            return f64::INFINITY;
        }
        // Twice the unit roundoff: the second half pays for terms of higher order.
        (1.0 + V::ROUNDINGS) * self.roundings * (unit * self.magnitude + tiny)
    }

    fn new(value: V, magnitude: f64, roundings: f64, extreme: f64) -> Self {
        let is_certain = magnitude.is_finite() && roundings < 1e6;
        let magnitude = if is_certain { magnitude } else { f64::INFINITY };
        let inverse = if value.is_zero() { 1.0 } else { 1.0 / value.magnitude() };
        Self { value, magnitude, roundings, extreme: extreme.max(magnitude).max(inverse) }
    }

    fn linear(&self, other: &Self, value: V) -> Self {
        let roundings = self.roundings.max(other.roundings) + 1.0;
        let extreme = self.extreme + other.extreme;
        Self::new(value, self.magnitude + other.magnitude, roundings, extreme)
    }
}

impl<V: Magnitude> Value for Bounded<V> {
    fn zero() -> Self {
        Self::exact(V::zero())
    }

    fn is_zero(&self) -> bool {
        self.value.is_zero()
    }

    fn add(&self, other: &Self) -> Self {
        self.linear(other, self.value.add(&other.value))
    }

    fn sub(&self, other: &Self) -> Self {
        self.linear(other, self.value.sub(&other.value))
    }

    fn mul(&self, other: &Self) -> Self {
        // Infinity is "uncertain" here, also where the other factor is 0.
        let is_certain = self.magnitude.is_finite() && other.magnitude.is_finite();
        let magnitude = if is_certain { self.magnitude * other.magnitude } else { f64::INFINITY };
        let roundings = self.roundings + other.roundings + 1.0;
        let extreme = self.extreme * other.extreme;
        Self::new(self.value.mul(&other.value), magnitude, roundings, extreme)
    }

    fn div(&self, other: &Self) -> Self {
        let value = self.value.div(&other.value);
        let divisor = other.value.magnitude();
        // The bound is for the shorter of the formats, which makes it one for both.
        let smallest = divisor - other.bound(Element::F32);
        let magnitude = match 0.0 < smallest && self.magnitude.is_finite() {
            true => (self.magnitude + value.magnitude() * other.magnitude) / smallest,
            false => f64::INFINITY,
        };
        let extreme = self.extreme * other.extreme;
        Self::new(value, magnitude, self.roundings + other.roundings + 2.0, extreme)
    }

    fn zero_by_zero(&self, _divisor: &Self) -> Self {
        // What no rounding has touched is 0 in floats too.
        let magnitude = if self.magnitude == 0.0 { 0.0 } else { f64::INFINITY };
        Self::new(V::zero(), magnitude, self.roundings, self.extreme)
    }

    fn sum(values: impl Iterator<Item = Self>) -> Self {
        let (mut sum, mut magnitude, mut roundings, mut count) = (V::zero(), 0.0, 0.0_f64, 0.0);
        let mut extreme = 0.0_f64;
        for value in values {
            extreme += value.extreme;
            sum = sum.add(&value.value);
            magnitude += value.magnitude;
            roundings = roundings.max(value.roundings);
            count += 1.0;
        }
        Self::new(sum, magnitude, roundings + count, extreme)
    }
}
