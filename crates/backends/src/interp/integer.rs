//! Integers of any width up to 64 bits: exact, wrapping, kept extended by their sign.

use super::scalar::{FloatType, SLACK, Scalar};
use tc_dialects::element::ElementType;

/// An operation on two integers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum IntBinary {
    Add,
    Sub,
    Mul,
    /// The upper half of the product in twice the width.
    MulHighSigned,
    MulHighUnsigned,
    /// Division of `arith`, which is undefined for a divisor of 0 and where it overflows.
    Divide(Division),
    /// The remainder that belongs to a division.
    Remainder(Division),
    /// `tc.div`: rounds down, 0 if the divisor is 0. Signed if `true`.
    TcDiv(bool),
    /// `tc.rem`.
    TcRem(bool),
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRightSigned,
    ShiftRightUnsigned,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
}

/// Which way a division rounds, and how it reads its operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Division {
    /// Signed, toward zero.
    Signed,
    Unsigned,
    /// Signed, downward.
    Floor,
    /// Signed, upward.
    Ceil,
    /// Unsigned, upward.
    CeilUnsigned,
}

/// An operation on one integer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum IntUnary {
    Abs,
    LeadingZeros,
    TrailingZeros,
    /// The number of bits that are 1.
    Ones,
}

/// Applies an operation in a width.
pub(crate) fn unary(op: IntUnary, width: u32, operand: Scalar) -> Scalar {
    let (signed, bits) = (operand.as_int(), unsigned(operand.as_int(), width));
    let value = match op {
        IntUnary::Abs => signed.wrapping_abs(),
        IntUnary::LeadingZeros => i64::from(bits.leading_zeros()) - (64 - i64::from(width)),
        IntUnary::TrailingZeros => i64::from(bits.trailing_zeros().min(width)),
        IntUnary::Ones => i64::from(bits.count_ones()),
    };
    Scalar::int(wrap(value, width)).certain_if(operand.is_certain())
}

/// The same bits as another type of the same width.
pub(crate) fn bitcast(operand: Scalar, from: ScalarType, to: ScalarType) -> Scalar {
    let (bits, certain) = match from {
        ScalarType::Int(_) => (operand.as_int(), operand.is_certain()),
        // The sign and the payload of a nan depend on the operations that made it.
        ScalarType::Float(ty) => {
            let value = operand.as_float();
            (ty.to_bits(value), operand.is_exact() && !value.is_nan())
        }
        ScalarType::Small(ty) => {
            let value = operand.as_float();
            (ty.encode_float(value) as i64, operand.is_exact() && !value.is_nan())
        }
    };
    let value = match to {
        ScalarType::Int(width) => Scalar::int(wrap(bits, width)),
        ScalarType::Float(ty) => Scalar::exact(ty.of_bits(bits)),
        ScalarType::Small(ty) => Scalar::exact(ty.decode_float(unsigned(bits, ty.bits()))),
    };
    value.certain_if(certain)
}

/// Why an operation has no result.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undefined {
    DivisionByZero,
    Overflow,
}

/// The low bits of a number, extended by the sign; 0 for a width of 0.
pub(crate) fn wrap(value: i64, width: u32) -> i64 {
    match width {
        0 => 0,
        1..64 => (value << (64 - width)) >> (64 - width),
        _ => value,
    }
}

/// The same bits read as an unsigned number.
pub(crate) fn unsigned(value: i64, width: u32) -> u64 {
    if width < 64 { value as u64 & ((1 << width) - 1) } else { value as u64 }
}

/// Applies an operation in a width. An uncertain operand makes the result uncertain, and
/// never undefined.
pub(crate) fn binary(
    op: IntBinary,
    width: u32,
    lhs: Scalar,
    rhs: Scalar,
) -> Result<Scalar, Undefined> {
    let certain = lhs.is_certain() && rhs.is_certain();
    let (a, b) = (lhs.as_int(), rhs.as_int());
    let (ua, ub) = (unsigned(a, width), unsigned(b, width));
    let in_width = ub < u64::from(width);
    let value = match op {
        IntBinary::Add => a.wrapping_add(b),
        IntBinary::Sub => a.wrapping_sub(b),
        IntBinary::Mul => a.wrapping_mul(b),
        IntBinary::MulHighSigned => ((i128::from(a) * i128::from(b)) >> width) as i64,
        IntBinary::MulHighUnsigned => ((u128::from(ua) * u128::from(ub)) >> width) as i64,
        IntBinary::Divide(division) => match divide(division, width, a, b) {
            Err(_) if !certain => 0,
            quotient => quotient?.0,
        },
        IntBinary::Remainder(division) => match divide(division, width, a, b) {
            Err(_) if !certain => 0,
            quotient => quotient?.1,
        },
        IntBinary::TcDiv(_) | IntBinary::TcRem(_) if b == 0 => 0,
        IntBinary::TcDiv(false) => (ua / ub) as i64,
        IntBinary::TcRem(false) => (ua % ub) as i64,
        // The lowest number by -1 wraps to itself.
        IntBinary::TcDiv(true) => floor_div(a, b),
        IntBinary::TcRem(true) => a.wrapping_sub(floor_div(a, b).wrapping_mul(b)),
        IntBinary::And => a & b,
        IntBinary::Or => a | b,
        IntBinary::Xor => a ^ b,
        // A shift by the width or more gives poison, about which nothing is known.
        _ if matches!(
            op,
            IntBinary::ShiftLeft | IntBinary::ShiftRightSigned | IntBinary::ShiftRightUnsigned
        ) && !in_width =>
        {
            return Ok(Scalar::int(0).uncertain());
        }
        IntBinary::ShiftLeft => a << ub,
        IntBinary::ShiftRightSigned => a >> ub,
        IntBinary::ShiftRightUnsigned => (ua >> ub) as i64,
        IntBinary::MinSigned => a.min(b),
        IntBinary::MaxSigned => a.max(b),
        IntBinary::MinUnsigned => ua.min(ub) as i64,
        IntBinary::MaxUnsigned => ua.max(ub) as i64,
    };
    Ok(Scalar::int(wrap(value, width)).certain_if(certain))
}

fn floor_div(a: i64, b: i64) -> i64 {
    let quotient = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// Quotient and remainder.
fn divide(division: Division, width: u32, a: i64, b: i64) -> Result<(i64, i64), Undefined> {
    if b == 0 {
        return Err(Undefined::DivisionByZero);
    }
    let (ua, ub) = (unsigned(a, width), unsigned(b, width));
    let quotient = match division {
        Division::Unsigned => (ua / ub) as i64,
        Division::CeilUnsigned => ua.div_ceil(ub) as i64,
        _ if b == -1 && a == wrap(1i64.wrapping_shl(width - 1), width) && 1 < width => {
            return Err(Undefined::Overflow);
        }
        Division::Signed => a.wrapping_div(b),
        Division::Floor => floor_div(a, b),
        Division::Ceil => floor_div(a, b) + i64::from(a.wrapping_rem(b) != 0),
    };
    Ok((quotient, a.wrapping_sub(quotient.wrapping_mul(b))))
}

/// A comparison of `arith.cmpi`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct IntPredicate(u8);

impl IntPredicate {
    pub(crate) const SIGNED_LESS: Self = Self(2);
    pub(crate) const UNSIGNED_LESS: Self = Self(6);

    /// The predicate of a number, as `arith` counts them.
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number < 10).map(Self)
    }

    pub(crate) fn apply(self, width: u32, lhs: Scalar, rhs: Scalar) -> Scalar {
        let (a, b) = (lhs.as_int(), rhs.as_int());
        let (ua, ub) = (unsigned(a, width), unsigned(b, width));
        let holds = match self.0 {
            0 => a == b,
            1 => a != b,
            2 => a < b,
            3 => a <= b,
            4 => b < a,
            5 => b <= a,
            6 => ua < ub,
            7 => ua <= ub,
            8 => ub < ua,
            _ => ub <= ua,
        };
        Scalar::bool(holds).certain_if(lhs.is_certain() && rhs.is_certain())
    }
}

/// Conversion from a float, toward zero. Out of range the IR gives poison.
pub(crate) fn from_float(operand: Scalar, width: u32, signed: bool) -> Scalar {
    let radius = operand.error * SLACK;
    let low = (operand.as_float() - radius).trunc();
    let high = (operand.as_float() + radius).trunc();
    let (least, bound) = if signed {
        let bound = 2f64.powi(width as i32 - 1);
        (-bound, bound)
    } else {
        (0.0, 2f64.powi(width as i32))
    };
    let certain = low == high && least <= low && low < bound;
    let whole = operand.as_float().trunc();
    let value = if signed { whole as i64 } else { whole as u64 as i64 };
    Scalar::int(wrap(value, width)).certain_if(certain && operand.is_certain())
}

/// The largest or smallest number of a signed type of a width.
pub(crate) fn signed_extreme(width: u32, largest: bool) -> i64 {
    let lowest = wrap(1i64.wrapping_shl(width.saturating_sub(1)), width);
    if largest { !lowest } else { lowest }
}

/// The type of a scalar of the IR.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScalarType {
    /// An integer of a width; `index` has 64 bits.
    Int(u32),
    Float(FloatType),
    /// A float of at most 8 bits: operations on it are computed as `f32` and rounded.
    Small(ElementType),
}

impl ScalarType {
    pub(crate) fn is_float(self) -> bool {
        !matches!(self, Self::Int(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(op: IntBinary, width: u32, a: i64, b: i64) -> Result<i64, Undefined> {
        binary(op, width, Scalar::int(a), Scalar::int(b)).map(Scalar::as_int)
    }

    /// Every operation on all pairs of 8-bit numbers, against Rust's own.
    #[test]
    fn eight_bits_agree_with_rust() {
        for a in i8::MIN..=i8::MAX {
            for b in i8::MIN..=i8::MAX {
                let (x, y) = (i32::from(a), i32::from(b));
                let (ux, uy) = (i32::from(a as u8), i32::from(b as u8));
                let check = |op, expected: i32| {
                    assert_eq!(
                        apply(op, 8, a.into(), b.into()),
                        Ok((expected as i8).into()),
                        "{op:?} {a} {b}"
                    );
                };
                check(IntBinary::Add, x + y);
                check(IntBinary::Sub, x - y);
                check(IntBinary::Mul, x * y);
                check(IntBinary::And, x & y);
                check(IntBinary::Or, x | y);
                check(IntBinary::Xor, x ^ y);
                check(IntBinary::MinSigned, x.min(y));
                check(IntBinary::MaxSigned, x.max(y));
                check(IntBinary::MinUnsigned, ux.min(uy));
                check(IntBinary::MaxUnsigned, ux.max(uy));
                if b == 0 {
                    check(IntBinary::TcDiv(true), 0);
                    check(IntBinary::TcRem(false), 0);
                    let quotient = apply(IntBinary::Divide(Division::Signed), 8, a.into(), 0);
                    assert_eq!(quotient, Err(Undefined::DivisionByZero));
                    continue;
                }
                let floor = (f64::from(x) / f64::from(y)).floor() as i32;
                check(IntBinary::TcDiv(true), floor);
                check(IntBinary::TcRem(true), x - floor * y);
                check(IntBinary::TcDiv(false), ux / uy);
                check(IntBinary::TcRem(false), ux % uy);
                check(IntBinary::Divide(Division::Unsigned), ux / uy);
                check(IntBinary::Remainder(Division::Unsigned), ux % uy);
                check(IntBinary::Divide(Division::CeilUnsigned), (ux + uy - 1) / uy);
                if (a, b) == (i8::MIN, -1) {
                    let quotient = apply(IntBinary::Divide(Division::Floor), 8, -128, -1);
                    assert_eq!(quotient, Err(Undefined::Overflow));
                    continue;
                }
                check(IntBinary::Divide(Division::Signed), x / y);
                check(IntBinary::Remainder(Division::Signed), x % y);
                check(IntBinary::Divide(Division::Floor), floor);
                check(
                    IntBinary::Divide(Division::Ceil),
                    (f64::from(x) / f64::from(y)).ceil() as i32,
                );
            }
        }
    }

    #[test]
    fn shifts_by_too_much_are_poison() {
        assert_eq!(apply(IntBinary::ShiftLeft, 8, 3, 7), Ok(-128));
        assert_eq!(apply(IntBinary::ShiftRightSigned, 8, -128, 7), Ok(-1));
        assert_eq!(apply(IntBinary::ShiftRightUnsigned, 8, -128, 7), Ok(1));
        let poison = binary(IntBinary::ShiftLeft, 8, Scalar::int(1), Scalar::int(8)).unwrap();
        assert!(!poison.is_certain());
    }

    #[test]
    fn bools_are_one_bit() {
        let (yes, no) = (Scalar::bool(true), Scalar::bool(false));
        assert!(binary(IntBinary::MaxUnsigned, 1, yes, no).unwrap().is_true());
        assert!(IntPredicate::from_number(8).unwrap().apply(1, yes, no).is_true());
        assert!(IntPredicate::from_number(10).is_none());
        assert_eq!(unsigned(yes.as_int(), 1), 1);
    }

    #[test]
    fn uncertainty_is_never_undefined() {
        let zero = Scalar::int(0).uncertain();
        let quotient = binary(IntBinary::Divide(Division::Signed), 32, Scalar::int(1), zero);
        assert!(!quotient.unwrap().is_certain());
    }

    #[test]
    fn floats_convert_toward_zero() {
        let convert = |value, error, signed| from_float(Scalar::float(value, error), 8, signed);
        assert_eq!(convert(-2.75, 0.25, true).as_int(), -2);
        assert!(!convert(-2.75, 0.25, true).is_certain());
        assert!(convert(-2.75, 0.2, true).is_certain());
        assert!(!convert(-2.75, 0.75, true).is_certain());
        assert!(!convert(128.0, 0.0, true).is_certain());
        assert!(convert(-128.5, 0.0, true).is_certain());
        assert_eq!(convert(255.5, 0.0, false).as_int(), -1);
        assert!(!convert(f64::NAN, 0.0, false).is_certain());
        let largest = from_float(Scalar::exact(2f64.powi(63)), 64, false);
        assert_eq!(largest.as_int(), i64::MIN);
        assert_eq!(signed_extreme(8, true), 127);
        assert_eq!(signed_extreme(64, false), i64::MIN);
    }
}
