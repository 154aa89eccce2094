//! Scalars with a bound on the deviation of a compiled program.
//!
//! A float is computed in 64 bits, together with an error: every correct program that
//! computes in the types of the IR gives a value at most that far away. Each operation
//! carries the errors of its operands over and adds its own rounding, one unit roundoff of
//! its IR type (a running error bound: Wilkinson, "Error analysis revisited", 1986; Higham,
//! "Accuracy and Stability of Numerical Algorithms", section 3.3). An operation on exact
//! operands whose result the type holds is exact. Contraction of a product and a sum into
//! one rounding stays within the bound. Compiled code may take subnormal numbers as zero, and give zero in their place.
//!
//! An infinite error means *uncertain*: the value may be any other, of another class
//! (nan, infinity) too. Integers are exact or uncertain. An infinity or nan with error 0 is
//! certain. The bounds are themselves rounded; [`SLACK`] makes up for it.
//!
//! A scalar may be *undefined*, an element of memory that nothing has written. Every operation on it is
//! undefined as well, and the place that it comes from goes along.

use crate::runtime::to_odd;
use half::{bf16, f16};
use tc_dialects::element::ElementType;

/// How much a bound is widened where it decides something, for its own rounding errors: a
/// fold of 2^32 terms is off by at most 2^-21 of the bound.
pub(crate) const SLACK: f64 = 1.0 + 1.0 / (1 << 20) as f64;

/// A value and its error.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Scalar {
    /// A float's bits, or an integer, extended by its sign whatever its width (a true `i1`
    /// is -1).
    bits: u64,
    /// See the module; never negative. Not a number means uncertain as well.
    pub(crate) error: f64,
}

impl Scalar {
    /// A value of which nothing is known.
    pub(crate) const UNKNOWN: Self = Self { bits: 0, error: f64::INFINITY };

    /// The upper half of the error of an undefined scalar, a nan; the lower half is its origin.
    const UNDEFINED: u64 = 0x7ffc_0001;

    /// What memory holds before anything is stored; `origin` is the place where it was made.
    pub(crate) fn undefined(origin: usize) -> Self {
        let origin = u64::from(u32::try_from(origin).unwrap_or(u32::MAX));
        Self { bits: 0, error: f64::from_bits(Self::UNDEFINED << 32 | origin) }
    }

    /// The origin of an undefined scalar.
    pub(crate) fn origin(self) -> Option<usize> {
        let bits = self.error.to_bits();
        (self.error.is_nan() && bits >> 32 == Self::UNDEFINED).then_some(bits as u32 as usize)
    }

    pub(crate) fn is_undefined(self) -> bool {
        self.origin().is_some()
    }

    /// The first of two scalars that is undefined.
    pub(crate) fn undefined_of(lhs: Self, rhs: Self) -> Option<Self> {
        // An undefined error is a nan, and so is every sum with it.
        if !(lhs.error + rhs.error).is_nan() {
            return None;
        }
        [lhs, rhs].into_iter().find(|it| it.is_undefined())
    }

    pub(crate) fn int(value: i64) -> Self {
        Self { bits: value as u64, error: 0.0 }
    }

    pub(crate) fn bool(value: bool) -> Self {
        Self::int(-i64::from(value))
    }

    pub(crate) fn float(value: f64, error: f64) -> Self {
        Self { bits: value.to_bits(), error }
    }

    pub(crate) fn exact(value: f64) -> Self {
        Self::float(value, 0.0)
    }

    /// The same value with an infinite error; an undefined one stays undefined.
    pub(crate) fn uncertain(self) -> Self {
        if self.is_undefined() { self } else { Self { bits: self.bits, error: f64::INFINITY } }
    }

    /// The same value, uncertain unless `certain`.
    pub(crate) fn certain_if(self, certain: bool) -> Self {
        if certain { self } else { self.uncertain() }
    }

    pub(crate) fn as_int(self) -> i64 {
        self.bits as i64
    }

    pub(crate) fn as_float(self) -> f64 {
        f64::from_bits(self.bits)
    }

    pub(crate) fn is_true(self) -> bool {
        self.bits & 1 != 0
    }

    pub(crate) fn is_certain(self) -> bool {
        self.error < f64::INFINITY
    }

    pub(crate) fn is_exact(self) -> bool {
        self.error == 0.0
    }

    /// Whether the float may be zero, without being so for certain.
    fn may_be_zero(self) -> bool {
        0.0 < self.error && self.as_float().abs() <= self.error * SLACK
    }

    /// Whether the order of two finite floats is certain.
    fn apart(self, other: Self) -> bool {
        let distance = (self.as_float() - other.as_float()).abs();
        (self.error + other.error) * SLACK < distance
    }

    /// Whether this value and `other` differ for certain.
    pub(crate) fn differs(self, other: Self, float: bool) -> bool {
        if !self.is_certain() || !other.is_certain() || self.bits == other.bits {
            return false;
        }
        let (x, y) = (self.as_float(), other.as_float());
        if !float || x.is_nan() != y.is_nan() {
            return true;
        }
        !x.is_nan() && x != y && (!x.is_finite() || !y.is_finite() || self.apart(other))
    }

    /// Whether both are defined and have the same bits.
    pub(crate) fn is_same(self, other: Self) -> bool {
        !self.is_undefined() && !other.is_undefined() && self.bits == other.bits
    }

    /// A value that is this one or `other`, and nobody knows which.
    pub(crate) fn either(self, other: Self, float: bool) -> Self {
        if self.is_undefined() || other.is_undefined() {
            return self.uncertain();
        }
        if self.bits == other.bits {
            return Self { bits: self.bits, error: self.error.max(other.error) };
        }
        let distance = (self.as_float() - other.as_float()).abs();
        if float && distance < f64::INFINITY {
            let error = self.error.max(distance + other.error);
            Self { bits: self.bits, error }
        } else {
            self.uncertain()
        }
    }
}

/// A floating-point type of the IR.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum FloatType {
    F16,
    Bf16,
    F32,
    F64,
}

/// An operation on two floats.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum FloatBinary {
    Add,
    Sub,
    Mul,
    /// A product that goes into a sum, with which it may be contracted: it does not overflow
    /// then. An infinity of which only the sum with the opposite one is open has a finite
    /// error other than 0.
    MulIntoSum,
    Div,
    /// The remainder of C's `fmod`.
    Rem,
    /// The lesser; a nan gives the other.
    MinNum,
    /// The greater; a nan gives the other.
    MaxNum,
    /// The lesser; a nan gives nan.
    Minimum,
    /// The greater; a nan gives nan.
    Maximum,
    CopySign,
}

/// An operation on one float.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum FloatUnary {
    Neg,
    Abs,
    Floor,
    Ceil,
    Trunc,
    /// Halves away from zero.
    Round,
    /// Halves to even.
    RoundEven,
    Sqrt,
}

/// The predicates of `arith.cmpf`, in the order of their numbers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct FloatPredicate {
    unordered: bool,
    equal: bool,
    less: bool,
    greater: bool,
}

impl FloatPredicate {
    /// The predicate of a number, as `arith` counts them.
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        // false, the seven ordered ones, the seven unordered ones, true. `ord` and `ueq`
        // are where the pattern of (equal, greater, less) starts anew.
        let (unordered, bits) = match number {
            0 => (false, 0),
            1 => (false, 0b100),
            2 => (false, 0b010),
            3 => (false, 0b110),
            4 => (false, 0b001),
            5 => (false, 0b101),
            6 => (false, 0b011),
            7 => (false, 0b111),
            8 => (true, 0b100),
            9 => (true, 0b010),
            10 => (true, 0b110),
            11 => (true, 0b001),
            12 => (true, 0b101),
            13 => (true, 0b011),
            14 => (true, 0),
            15 => (true, 0b111),
            _ => return None,
        };
        Some(Self { unordered, equal: bits & 4 != 0, greater: bits & 2 != 0, less: bits & 1 != 0 })
    }

    pub(crate) fn apply(self, ty: FloatType, lhs: Scalar, rhs: Scalar) -> Scalar {
        let (lhs, rhs) = (ty.flushed(lhs), ty.flushed(rhs));
        let (a, b) = (lhs.as_float(), rhs.as_float());
        let holds = match a.partial_cmp(&b) {
            None => self.unordered,
            Some(std::cmp::Ordering::Equal) => self.equal,
            Some(std::cmp::Ordering::Less) => self.less,
            Some(std::cmp::Ordering::Greater) => self.greater,
        };
        let constant = self.equal == self.less && self.less == self.greater;
        let certain = lhs.is_exact() && rhs.is_exact()
            || constant && self.unordered == self.equal
            || lhs.is_certain()
                && rhs.is_certain()
                && (constant || a.is_nan() || b.is_nan() || lhs.apart(rhs));
        Scalar::bool(holds).certain_if(certain)
    }
}

impl FloatType {
    /// The number of bits of the significand.
    pub(crate) fn precision(self) -> u32 {
        match self {
            Self::F16 => 11,
            Self::Bf16 => 8,
            Self::F32 => 24,
            Self::F64 => 53,
        }
    }

    /// The unit roundoff, with room for the rounding of the 64-bit value itself, and for an
    /// operation of a type of 16 bits that is carried out in binary32 first.
    pub(crate) fn roundoff(self) -> f64 {
        match self {
            Self::F16 => (1.0 + 1.0 / 1024.0) / 2048.0,
            Self::Bf16 => (1.0 + 1.0 / 1024.0) / 256.0,
            Self::F32 => f64::from(f32::EPSILON) / 2.0 * SLACK,
            Self::F64 => f64::EPSILON,
        }
    }

    /// The smallest positive number: what rounding can lose near zero.
    pub(crate) fn tiny(self) -> f64 {
        match self {
            Self::F16 => f16::from_bits(1).to_f64(),
            Self::Bf16 => bf16::from_bits(1).to_f64(),
            Self::F32 => f64::from(f32::from_bits(1)),
            Self::F64 => f64::from_bits(2),
        }
    }

    /// The smallest positive number of full precision.
    pub(crate) fn min_normal(self) -> f64 {
        match self {
            Self::F16 => f16::MIN_POSITIVE.to_f64(),
            Self::Bf16 | Self::F32 => f32::MIN_POSITIVE.into(),
            Self::F64 => f64::MIN_POSITIVE,
        }
    }

    /// Compiled code may turn numbers below this limit into zero. It keeps subnormal numbers of `f16`.
    pub(crate) fn flush_limit(self) -> f64 {
        if self == Self::F16 { 0.0 } else { self.min_normal() }
    }

    /// A number that is taken as zero if it is subnormal.
    pub(crate) fn flushed(self, operand: Scalar) -> Scalar {
        let magnitude = operand.as_float().abs();
        match magnitude - operand.error * SLACK < self.flush_limit() {
            true => Scalar { error: operand.error.max(magnitude), ..operand },
            false => operand,
        }
    }

    /// What rounding may lose of a value that is at least this far from zero.
    pub(crate) fn underflow(self, least: f64) -> f64 {
        if least < self.flush_limit() { self.flush_limit() } else { self.tiny() }
    }

    /// The magnitude from which everything rounds to infinity.
    pub(crate) fn limit(self) -> f64 {
        match self {
            Self::F16 => 65520.0,
            Self::Bf16 => bf16::MAX.to_f64() + 2f64.powi(119),
            Self::F32 => f64::from(f32::MAX) + 2f64.powi(103),
            Self::F64 => f64::MAX,
        }
    }

    /// The nearest number of the type.
    pub(crate) fn nearest(self, value: f64) -> f64 {
        match self {
            Self::F16 => f16::from_f32(to_odd(value)).to_f64(),
            Self::Bf16 => bf16::from_f32(to_odd(value)).to_f64(),
            Self::F32 => (value as f32).into(),
            Self::F64 => value,
        }
    }

    pub(crate) fn holds(self, value: f64) -> bool {
        self.nearest(value) == value
    }

    /// A finite value with an error that is all accounted for: what is certainly or
    /// possibly too large for the type becomes an infinity or uncertain.
    pub(crate) fn classify(self, value: f64, error: f64) -> Scalar {
        let magnitude = value.abs();
        let limit = self.limit();
        if magnitude + error * SLACK < limit {
            Scalar::float(value, error)
        } else if limit <= magnitude - error * SLACK {
            Scalar::exact(f64::INFINITY.copysign(value))
        } else {
            Scalar::float(value, f64::INFINITY)
        }
    }

    /// The result of one rounded operation. `exact` says that the operation itself, on
    /// operands without error, lost nothing in 64 bits.
    fn round(self, value: f64, propagated: f64, exact: bool) -> Scalar {
        if propagated == 0.0 && exact && self.holds(value) {
            return self.flushed(Scalar::exact(value));
        }
        let least = value.abs() - propagated * SLACK;
        let rounding = self.roundoff() * (value.abs() + propagated) + self.underflow(least);
        self.classify(value, propagated + rounding)
    }

    pub(crate) fn binary(self, op: FloatBinary, lhs: Scalar, rhs: Scalar) -> Scalar {
        let (magnitude, sign) = (lhs, rhs);
        let (lhs, rhs) = (self.flushed(lhs), self.flushed(rhs));
        match op {
            FloatBinary::Add => self.add(lhs, rhs),
            FloatBinary::Sub => self.add(lhs, self.unary(FloatUnary::Neg, rhs)),
            FloatBinary::Mul => self.mul(lhs, rhs),
            FloatBinary::MulIntoSum => self.mul_into_sum(lhs, rhs),
            FloatBinary::Div => self.div(lhs, rhs),
            FloatBinary::Rem => rem(lhs, rhs),
            FloatBinary::MinNum => choose(lhs, rhs, false, true),
            FloatBinary::MaxNum => choose(lhs, rhs, true, true),
            FloatBinary::Minimum => choose(lhs, rhs, false, false),
            FloatBinary::Maximum => choose(lhs, rhs, true, false),
            FloatBinary::CopySign => copy_sign(magnitude, sign),
        }
    }

    fn add(self, lhs: Scalar, rhs: Scalar) -> Scalar {
        let (a, b) = (lhs.as_float(), rhs.as_float());
        let value = a + b;
        if !value.is_finite() {
            let opposite = a.is_infinite() && b.is_infinite() && value.is_nan();
            return special(value, lhs, rhs, !opposite || lhs.is_exact() && rhs.is_exact());
        }
        let exact = self != Self::F64 || two_sum_error(a, b, value) == 0.0;
        self.round(value, lhs.error + rhs.error, exact)
    }

    fn mul(self, lhs: Scalar, rhs: Scalar) -> Scalar {
        let (a, b) = (lhs.as_float(), rhs.as_float());
        let value = a * b;
        if !value.is_finite() {
            // The other factor of an infinity must be known to be zero or not.
            return special(value, lhs, rhs, !lhs.may_be_zero() && !rhs.may_be_zero());
        }
        let propagated = a.abs() * rhs.error + b.abs() * lhs.error + lhs.error * rhs.error;
        // Products of the narrower types have at most 48 bits: they are exact in 64.
        let exact = self != Self::F64
            || a == 0.0
            || b == 0.0
            || far_from_underflow(value) && a.mul_add(b, -value) == 0.0;
        self.round(value, propagated, exact)
    }

    fn mul_into_sum(self, lhs: Scalar, rhs: Scalar) -> Scalar {
        let product = self.mul(lhs, rhs);
        let (a, b) = (lhs.as_float().abs(), rhs.as_float().abs());
        if product.as_float().is_finite() || !a.is_finite() || !b.is_finite() {
            return product;
        }
        // Beyond twice the limit no finite addend brings the sum back into range.
        let least = (a - lhs.error) * 0.25 * (b - rhs.error);
        let far = a > lhs.error && b > rhs.error && self.limit() / 2.0 <= least;
        Scalar::float(product.as_float(), 1.0).certain_if(far)
    }

    fn div(self, lhs: Scalar, rhs: Scalar) -> Scalar {
        let (a, b) = (lhs.as_float(), rhs.as_float());
        let value = a / b;
        if rhs.may_be_zero() {
            return Scalar::float(value, f64::INFINITY);
        }
        if !value.is_finite() {
            return special(value, lhs, rhs, !lhs.may_be_zero());
        }
        let propagated = (lhs.error + value.abs() * rhs.error) / (b.abs() - rhs.error);
        let exact = self != Self::F64
            || a == 0.0
            || far_from_underflow(value) && far_from_underflow(a) && value.mul_add(b, -a) == 0.0;
        self.round(value, propagated, exact)
    }

    pub(crate) fn fma(self, a: Scalar, b: Scalar, c: Scalar) -> Scalar {
        let [a, b, c] = [a, b, c].map(|it| self.flushed(it));
        let product = a.as_float() * b.as_float();
        let value = a.as_float().mul_add(b.as_float(), c.as_float());
        if !value.is_finite() || !product.is_finite() {
            // Far out, the two operations tell what is certain as well as the one.
            let product = self.mul(a, b);
            return self.add(product, c);
        }
        let propagated = a.as_float().abs() * b.error
            + b.as_float().abs() * a.error
            + a.error * b.error
            + c.error;
        self.round(value, propagated, true)
    }

    pub(crate) fn unary(self, op: FloatUnary, operand: Scalar) -> Scalar {
        let value = operand.as_float();
        let flushed = self.flushed(operand);
        match op {
            FloatUnary::Neg => Scalar::float(-value, operand.error),
            FloatUnary::Abs => Scalar::float(value.abs(), operand.error),
            FloatUnary::Floor => step(f64::floor, flushed),
            FloatUnary::Ceil => step(f64::ceil, flushed),
            FloatUnary::Trunc => step(f64::trunc, flushed),
            FloatUnary::Round => step(f64::round, flushed),
            FloatUnary::RoundEven => step(f64::round_ties_even, flushed),
            FloatUnary::Sqrt => self.sqrt(flushed),
        }
    }

    fn sqrt(self, operand: Scalar) -> Scalar {
        let value = operand.as_float();
        let (low, high) = (value - operand.error * SLACK, value + operand.error * SLACK);
        let root = value.sqrt();
        if !root.is_finite() || low < 0.0 {
            // nan of a negative number, nan or infinity; certain unless zero is in between.
            let certain = operand.is_certain() && (operand.is_exact() || high < 0.0);
            return Scalar::exact(root).certain_if(certain);
        }
        let propagated = if operand.is_exact() { 0.0 } else { operand.error / (root + low.sqrt()) };
        let exact = self != Self::F64 || root * root == value && root.mul_add(root, -value) == 0.0;
        self.round(root, propagated, exact)
    }

    /// Conversion from another type.
    pub(crate) fn convert(self, operand: Scalar, open: bool) -> Scalar {
        // The narrower one of the two types is binary32, if one has subnormal numbers that count.
        let operand = if self == Self::F16 { operand } else { Self::F32.flushed(operand) };
        let value = operand.as_float();
        let is_known = operand.is_exact() && (!open || self.holds(value));
        if is_known || !value.is_finite() {
            // One rounding of a known number has a known result.
            return Scalar::float(self.nearest(value), operand.error);
        }
        if self == Self::F64 { operand } else { self.round(value, operand.error, false) }
    }

    /// The bits of an exact value, as an integer of the width of the type, extended by its sign.
    pub(crate) fn to_bits(self, value: f64) -> i64 {
        match self {
            Self::F16 => i64::from(f16::from_f64(value).to_bits() as i16),
            Self::Bf16 => i64::from(bf16::from_f64(value).to_bits() as i16),
            Self::F32 => i64::from((value as f32).to_bits() as i32),
            Self::F64 => value.to_bits() as i64,
        }
    }

    /// The value of bits.
    pub(crate) fn of_bits(self, bits: i64) -> f64 {
        match self {
            Self::F16 => f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => bf16::from_bits(bits as u16).to_f64(),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            Self::F64 => f64::from_bits(bits as u64),
        }
    }

    /// Conversion from an integer of `width` bits.
    pub(crate) fn of_int(self, operand: Scalar, width: u32, signed: bool) -> Scalar {
        let value = if signed {
            let value = operand.as_int();
            if self == Self::F32 { f64::from(value as f32) } else { value as f64 }
        } else {
            let value = super::integer::unsigned(operand.as_int(), width);
            if self == Self::F32 { f64::from(value as f32) } else { value as f64 }
        };
        // Every integer that binary16 does not round to infinity is exact in 64 bits.
        Scalar::exact(self.nearest(value)).certain_if(operand.is_certain())
    }
}

/// Conversion of a number to a float of at most 8 bits.
pub(crate) fn round_to_small(ty: ElementType, operand: Scalar) -> Scalar {
    let nearest = |value: f64| ty.decode_float(ty.encode_float(value));
    let value = nearest(operand.as_float());
    if operand.is_exact() || !operand.is_certain() {
        return Scalar::float(value, operand.error);
    }
    // Rounding is monotone.
    let radius = operand.error * SLACK;
    let ends = [operand.as_float() - radius, operand.as_float() + radius];
    let [low, high] = ends.map(nearest);
    if low.is_finite() && high.is_finite() {
        return Scalar::float(value, (high - value).max(value - low));
    }
    // Beyond the greatest number all values of a sign have the same result.
    let same = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan();
    let is_one_sided = ends[0].is_sign_negative() == ends[1].is_sign_negative();
    Scalar::exact(value).certain_if(is_one_sided && same(low, high))
}

/// A result that is not finite: certain if nothing about the operands is open.
/// `signs_known` says that no operand whose zero or sign matters may be zero.
fn special(value: f64, lhs: Scalar, rhs: Scalar, signs_known: bool) -> Scalar {
    let overflow = lhs.as_float().is_finite() && rhs.as_float().is_finite();
    let certain = if overflow {
        // Also division by an exact zero: of a number that is not near zero.
        lhs.is_exact() && rhs.is_exact()
            || rhs.is_exact() && rhs.as_float() == 0.0 && lhs.is_certain() && signs_known
    } else {
        lhs.is_certain() && rhs.is_certain() && signs_known
    };
    Scalar::exact(value).certain_if(certain)
}

/// The error of `value = a + b` (Knuth's two-sum).
pub(crate) fn two_sum_error(a: f64, b: f64, value: f64) -> f64 {
    let b_part = value - a;
    let a_part = value - b_part;
    (a - a_part) + (b - b_part)
}

fn far_from_underflow(value: f64) -> bool {
    // 2^-900: the error of a product of this size is still a normal number.
    1.2e-271 < value.abs()
}

/// A monotone function that rounds to an integer, without error of its own.
pub(crate) fn step(function: fn(f64) -> f64, operand: Scalar) -> Scalar {
    let value = function(operand.as_float());
    if operand.is_exact() {
        return Scalar::exact(value);
    }
    let radius = operand.error * SLACK;
    let low = function(operand.as_float() - radius);
    let high = function(operand.as_float() + radius);
    Scalar::float(value, (high - value).max(value - low))
}

fn rem(lhs: Scalar, rhs: Scalar) -> Scalar {
    let (a, b) = (lhs.as_float(), rhs.as_float());
    // C's fmod is exact.
    let value = a % b;
    if lhs.is_exact() && rhs.is_exact() {
        return Scalar::exact(value);
    }
    if !value.is_finite() || rhs.may_be_zero() || !rhs.is_certain() {
        let known = lhs.is_certain() && rhs.is_certain() && !rhs.may_be_zero();
        return Scalar::exact(value).certain_if(known);
    }
    if b.is_infinite() {
        return lhs;
    }
    // While the whole quotient stays, the remainder moves with the operands.
    let propagated = lhs.error + (a / b).trunc().abs() * rhs.error;
    let (remainder, divisor) = (value.abs(), b.abs() - rhs.error);
    let same_quotient = propagated * SLACK < remainder && remainder + propagated * SLACK < divisor;
    let error = if same_quotient { propagated } else { 2.0 * (b.abs() + rhs.error) };
    Scalar::float(value, error).certain_if(lhs.is_certain())
}

/// Minimum and maximum. Of two zeros, either may be chosen: their signs do not order them.
fn choose(lhs: Scalar, rhs: Scalar, greater: bool, skip_nan: bool) -> Scalar {
    let (a, b) = (lhs.as_float(), rhs.as_float());
    if !lhs.is_certain() || !rhs.is_certain() {
        return lhs.uncertain();
    }
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() == skip_nan { rhs } else { lhs };
    }
    let chosen = if (a < b) == greater { rhs } else { lhs };
    if a == 0.0 && b == 0.0 && a.to_bits() != b.to_bits() {
        // What depends on the sign, a quotient for one, is uncertain then.
        return Scalar::float(0.0, lhs.error.max(rhs.error).max(FloatType::F64.tiny()));
    }
    if lhs.is_exact() && rhs.is_exact() || lhs.apart(rhs) {
        return chosen;
    }
    Scalar::float(chosen.as_float(), lhs.error.max(rhs.error))
}

fn copy_sign(lhs: Scalar, rhs: Scalar) -> Scalar {
    let magnitude = lhs.as_float().abs();
    let value = magnitude.copysign(rhs.as_float());
    // The sign of a computed nan is unspecified.
    if !rhs.is_certain() || rhs.may_be_zero() || rhs.as_float().is_nan() {
        return Scalar::float(value, 2.0 * magnitude + lhs.error);
    }
    Scalar::float(value, lhs.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FloatType::{F16, F32, F64};
    use proptest::prelude::*;

    const INF: f64 = f64::INFINITY;

    fn f(value: f64, error: f64) -> Scalar {
        Scalar::float(value, error)
    }

    fn same(found: Scalar, value: f64, error: f64) {
        assert!(
            found.error == error
                && (found.as_float() == value || found.as_float().is_nan() && value.is_nan()),
            "found {} +- {}, expected {value} +- {error}",
            found.as_float(),
            found.error
        );
    }

    proptest! {
        /// Every number within the error rounds to one within the bound.
        #[test]
        fn rounding_to_small_floats_covers_its_operand(
            value in prop_oneof![-1.0..1.0, -600.0..600.0, -70000.0..70000.0_f64],
            error in prop_oneof![Just(0.0), 0.0..0.1, 0.0..1000.0_f64],
            place in -1.0..1.0_f64,
        ) {
            for ty in ElementType::ALL.iter().filter(|it| it.is_float() && it.bits() <= 8) {
                let found = round_to_small(*ty, f(value, error));
                let rounded = ty.decode_float(ty.encode_float(value + place * error));
                let distance = (found.as_float() - rounded).abs();
                let agrees = distance <= found.error || found.as_float().is_nan() && rounded.is_nan();
                let agrees = agrees || found.as_float() == rounded;
                prop_assert!(!found.is_certain() || agrees, "{ty} {found:?} {rounded}");
                prop_assert!(error != 0.0 || found.is_exact());
            }
        }
    }

    #[test]
    fn exact_operations_have_no_error() {
        let op = |op, a, b| F32.binary(op, f(a, 0.0), f(b, 0.0));
        same(op(FloatBinary::Add, 1.5, 0.25), 1.75, 0.0);
        same(op(FloatBinary::Sub, 1.5, 0.25), 1.25, 0.0);
        same(op(FloatBinary::Mul, 1.5, 0.25), 0.375, 0.0);
        same(op(FloatBinary::Div, 1.5, 0.25), 6.0, 0.0);
        assert!(op(FloatBinary::Div, 1.0, 3.0).error > 0.0);
        let double = |op, a, b| F64.binary(op, f(a, 0.0), f(b, 0.0));
        same(double(FloatBinary::Div, 1.0, 4.0), 0.25, 0.0);
        assert!(double(FloatBinary::Div, 1.0, 3.0).error > 0.0);
        assert!(double(FloatBinary::Mul, 0.1, 0.1).error > 0.0);
        assert!(double(FloatBinary::Add, 0.1, 0.2).error > 0.0);
        same(F64.unary(FloatUnary::Sqrt, f(9.0, 0.0)), 3.0, 0.0);
        assert!(F64.unary(FloatUnary::Sqrt, f(2.0, 0.0)).error > 0.0);
    }

    #[test]
    fn overflow_is_infinite_or_uncertain() {
        let square = |ty: FloatType, value, error| {
            ty.binary(FloatBinary::Mul, f(value, error), f(value, error))
        };
        same(square(F16, 300.0, 0.0), INF, 0.0);
        same(square(F32, 1e30, 0.0), INF, 0.0);
        same(square(F32, 1e30, 1.0), INF, 0.0);
        same(square(F64, 1e200, 0.0), INF, 0.0);
        assert!(!square(F64, 1e200, 1.0).is_certain());
        // 65519.9 rounds down to 65504, which is not the same as 65520.1.
        assert!(!F16.binary(FloatBinary::Add, f(65504.0, 0.0), f(16.0, 0.5)).is_certain());
    }

    #[test]
    fn contraction_may_avoid_overflow() {
        let square = |value| F32.binary(FloatBinary::MulIntoSum, f(value, 0.0), f(value, 0.0));
        same(square(INF), INF, 0.0);
        same(square(3.0), 9.0, 0.0);
        assert!(!square(1.9e19).is_certain());
        // Far beyond the range only the opposite infinity makes a difference.
        let far = square(1e30);
        same(F32.binary(FloatBinary::Add, far, f(-3e38, 0.0)), INF, 0.0);
        same(F32.binary(FloatBinary::Add, far, f(INF, 0.0)), INF, 0.0);
        assert!(!F32.binary(FloatBinary::Sub, far, f(INF, 0.0)).is_certain());
        let square = F64.binary(FloatBinary::MulIntoSum, f(1e200, 0.0), f(-1e200, 0.0));
        same(F64.binary(FloatBinary::Add, square, f(1e308, 0.0)), -INF, 0.0);
    }

    #[test]
    fn specials_are_certain_where_they_must_be() {
        let op = |op, a, b| F32.binary(op, a, b);
        same(op(FloatBinary::Add, f(INF, 0.0), f(1.0, 0.5)), INF, 0.0);
        same(op(FloatBinary::Sub, f(INF, 0.0), f(INF, 0.0)), f64::NAN, 0.0);
        same(op(FloatBinary::Mul, f(INF, 0.0), f(-1.0, 0.5)), -INF, 0.0);
        assert!(!op(FloatBinary::Mul, f(INF, 0.0), f(0.1, 0.5)).is_certain());
        same(op(FloatBinary::Mul, f(INF, 0.0), f(0.0, 0.0)), f64::NAN, 0.0);
        same(op(FloatBinary::Div, f(2.0, 0.5), f(0.0, 0.0)), INF, 0.0);
        same(op(FloatBinary::Div, f(2.0, 0.5), f(INF, 0.0)), 0.0, 0.0);
        assert!(!op(FloatBinary::Div, f(2.0, 0.0), f(0.0, 0.1)).is_certain());
        assert!(!op(FloatBinary::Mul, f(0.0, 0.0), f(1.0, INF)).is_certain());
        same(F32.unary(FloatUnary::Sqrt, f(-4.0, 1.0)), f64::NAN, 0.0);
        assert!(!F32.unary(FloatUnary::Sqrt, f(0.5, 1.0)).is_certain());
        same(F32.unary(FloatUnary::Sqrt, f(INF, 0.0)), INF, 0.0);
        same(F64.fma(f(1e308, 0.0), f(10.0, 0.0), f(-INF, 0.0)), f64::NAN, 0.0);
    }

    #[test]
    fn steps_take_both_sides() {
        same(F32.unary(FloatUnary::Floor, f(2.5, 0.25)), 2.0, 0.0);
        same(F32.unary(FloatUnary::Floor, f(2.0, 0.25)), 2.0, 1.0);
        same(F32.unary(FloatUnary::Ceil, f(2.0, 0.25)), 2.0, 1.0);
        same(F32.unary(FloatUnary::Round, f(2.5, 0.0)), 3.0, 0.0);
        same(F32.unary(FloatUnary::RoundEven, f(2.5, 0.0)), 2.0, 0.0);
        same(F32.unary(FloatUnary::Trunc, f(-2.5, 0.25)), -2.0, 0.0);
    }

    #[test]
    fn minima_and_maxima() {
        use FloatBinary::{MaxNum, Maximum, MinNum, Minimum};
        let nan = f(f64::NAN, 0.0);
        same(F32.binary(MinNum, nan, f(1.0, 0.5)), 1.0, 0.5);
        same(F32.binary(MaxNum, f(1.0, 0.5), nan), 1.0, 0.5);
        same(F32.binary(Minimum, nan, f(1.0, 0.5)), f64::NAN, 0.0);
        same(F32.binary(Maximum, f(1.0, 0.5), nan), f64::NAN, 0.0);
        same(F32.binary(Maximum, f(1.0, 0.25), f(2.0, 0.5)), 2.0, 0.5);
        same(F32.binary(Minimum, f(1.0, 0.25), f(2.0, 0.5)), 1.0, 0.25);
        same(F32.binary(MaxNum, f(1.0, 0.25), f(1.5, 0.75)), 1.5, 0.75);
        same(F32.binary(MinNum, f(INF, 0.0), f(1.5, 0.75)), 1.5, 0.75);
        let zero = F32.binary(MaxNum, f(0.0, 0.0), f(-0.0, 0.0));
        assert!(!F32.binary(FloatBinary::Div, f(1.0, 0.0), zero).is_certain());
    }

    #[test]
    fn remainders() {
        let rem = |a, b| F32.binary(FloatBinary::Rem, a, b);
        same(rem(f(-7.0, 0.0), f(2.0, 0.0)), -1.0, 0.0);
        same(rem(f(7.0, 0.25), f(2.0, 0.0)), 1.0, 0.25);
        same(rem(f(7.0, 2.0), f(2.0, 0.0)), 1.0, 4.0);
        same(rem(f(7.0, 0.25), f(INF, 0.0)), 7.0, 0.25);
        same(rem(f(7.0, 0.25), f(0.0, 0.0)), f64::NAN, 0.0);
    }

    #[test]
    fn comparisons_know_when_they_do_not_know() {
        // (predicate number, a < b, a == b, a > b, unordered)
        let table = [
            (0, [false; 4]),
            (1, [false, true, false, false]),
            (2, [false, false, true, false]),
            (3, [false, true, true, false]),
            (4, [true, false, false, false]),
            (5, [true, true, false, false]),
            (6, [true, false, true, false]),
            (7, [true, true, true, false]),
            (8, [false, true, false, true]),
            (9, [false, false, true, true]),
            (10, [false, true, true, true]),
            (11, [true, false, false, true]),
            (12, [true, true, false, true]),
            (13, [true, false, true, true]),
            (14, [false, false, false, true]),
            (15, [true; 4]),
        ];
        for (number, expected) in table {
            let predicate = FloatPredicate::from_number(number).unwrap();
            for (pair, expected) in
                [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (f64::NAN, 2.0)].into_iter().zip(expected)
            {
                let found = predicate.apply(F32, f(pair.0, 0.0), f(pair.1, 0.0));
                assert_eq!((found.is_true(), found.is_certain()), (expected, true), "{number}");
            }
            let close = predicate.apply(F32, f(1.0, 0.5), f(1.25, 0.0));
            assert_eq!(close.is_certain(), matches!(number, 0 | 7 | 14 | 15), "{number}");
            assert!(predicate.apply(F32, f(1.0, 0.5), f(2.0, 0.25)).is_certain());
        }
        assert!(FloatPredicate::from_number(16).is_none());
    }

    #[test]
    fn either_covers_both() {
        same(f(1.0, 0.25).either(f(2.0, 0.5), true), 1.0, 1.5);
        same(f(1.0, 0.25).either(f(1.0, 0.5), true), 1.0, 0.5);
        assert!(!f(1.0, 0.0).either(f(INF, 0.0), true).is_certain());
        assert!(!Scalar::int(1).either(Scalar::int(2), false).is_certain());
        assert!(Scalar::int(2).either(Scalar::int(2), false).is_certain());
    }

    #[test]
    fn conversions() {
        same(F32.convert(f(0.1, 0.0), false), 0.1f32.into(), 0.0);
        same(F16.convert(f(1e6, 0.0), false), INF, 0.0);
        assert!(F16.convert(f(0.1, 1e-9), false).error > 1e-9);
        same(F64.convert(f(0.1, 1e-9), false), 0.1, 1e-9);
        // In a fold in any order, another value is rounded in another order.
        same(F16.convert(f(0.5, 0.0), true), 0.5, 0.0);
        assert!(F16.convert(f(0.1, 0.0), true).error > 1e-5);
        same(F32.of_int(Scalar::int(-3), 8, true), -3.0, 0.0);
        same(F32.of_int(Scalar::int(-3), 8, false), 253.0, 0.0);
        same(F16.of_int(Scalar::int(100_000), 32, true), INF, 0.0);
    }

    /// Computes an expression in f32 in several ways, and with errors: all must agree.
    fn check_bounds(a: f32, b: f32, c: f32) -> Result<(), TestCaseError> {
        let [x, y, z] = [a, b, c].map(|value| f(value.into(), 0.0));
        let product = F32.binary(FloatBinary::MulIntoSum, x, y);
        let sum = F32.binary(FloatBinary::Add, product, z);
        let quotient = F32.binary(FloatBinary::Div, sum, y);
        let root = F32.unary(FloatUnary::Sqrt, quotient);
        let difference = F32.binary(FloatBinary::Sub, root, x);
        for sum32 in [a * b + c, a.mul_add(b, c)] {
            let quotient32 = sum32 / b;
            let root32 = quotient32.sqrt();
            for (bound, found) in
                [(sum, sum32), (quotient, quotient32), (root, root32), (difference, root32 - a)]
            {
                let found = f64::from(found);
                let value = bound.as_float();
                let agrees = !bound.is_certain()
                    || value == found
                    || value.is_nan() && found.is_nan()
                    || (value - found).abs() <= bound.error * SLACK;
                prop_assert!(agrees, "{value} +- {} does not cover {found}", bound.error);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn bounds_hold_near_one(a in -2.0f32..2.0, b in -2.0f32..2.0, c in -2.0f32..2.0) {
            check_bounds(a, b, c)?;
        }

        #[test]
        fn bounds_hold_anywhere(a in any::<f32>(), b in any::<f32>(), c in any::<f32>()) {
            check_bounds(a, b, c)?;
        }

        #[test]
        fn bounds_hold_in_half(a in any::<u16>(), b in any::<u16>()) {
            let (a, b) = (f16::from_bits(a), f16::from_bits(b));
            for (op, found) in [
                (FloatBinary::Add, a + b),
                (FloatBinary::Mul, a * b),
                (FloatBinary::Div, a / b),
            ] {
                let bound = F16.binary(op, f(a.to_f64(), 0.0), f(b.to_f64(), 0.0));
                let (value, found) = (bound.as_float(), found.to_f64());
                let agrees = !bound.is_certain()
                    || value == found
                    || value.is_nan() && found.is_nan()
                    || (value - found).abs() <= bound.error * SLACK;
                prop_assert!(agrees, "{a} {op:?} {b}: {value} +- {} does not cover {found}", bound.error);
            }
        }
    }
}
