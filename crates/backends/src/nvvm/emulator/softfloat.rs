//! Exact arithmetic in every format and rounding, by integers (IEEE 754-2019, section 4.3).
//!
//! A finite value is `mantissa * 2^exponent`. Operations compute the exact result, or a prefix of
//! it with a sticky bit that says whether something follows, and round once.

use super::module::{Format, Rounding};

/// The parts of a format.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Bits of the mantissa that are stored.
    mantissa: u32,
    exponent: u32,
}

impl Layout {
    fn of(format: Format) -> Layout {
        let (mantissa, exponent) = match format {
            Format::F64 => (52, 11),
            Format::F32 => (23, 8),
            Format::Tf32 => (10, 8),
            Format::F16 => (10, 5),
            Format::Bf16 => (7, 8),
            Format::E4m3 => (3, 4),
            Format::E5m2 => (2, 5),
        };
        Layout { mantissa, exponent }
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }
}

/// A value of any format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Nan,
    Infinity(bool),
    Finite(Finite),
}

/// `(-1)^negative * mantissa * 2^exponent`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Finite {
    pub negative: bool,
    pub mantissa: u128,
    pub exponent: i32,
}

/// The NaN that operations return (PTX ISA, "Floating Point Instructions"; for f64 the manual names
/// none, and this is what devices return).
pub(super) fn canonical_nan(format: Format) -> u64 {
    match format {
        Format::F64 => 0xfff8_0000_0000_0000,
        Format::F32 => 0x7fff_ffff,
        Format::Tf32 => 0x7fff_e000,
        Format::F16 | Format::Bf16 => 0x7fff,
        Format::E4m3 | Format::E5m2 => 0x7f,
    }
}

/// Bits of the mantissa and of the exponent of a format.
pub(super) fn sizes(format: Format) -> (u32, u32) {
    let layout = Layout::of(format);
    (layout.mantissa, layout.exponent)
}

/// The bits of infinity; for e4m3, which has none, those of the largest number.
pub(super) fn infinity(format: Format, negative: bool) -> u64 {
    let sign = u64::from(negative) << (storage_bits(format) - 1);
    let layout = Layout::of(format);
    let magnitude = match format {
        Format::E4m3 => 0x7e,
        Format::Tf32 => 0xff << 23,
        _ => ((1 << layout.exponent) - 1) << layout.mantissa,
    };
    sign | magnitude
}

/// The bits of the largest finite number.
pub(super) fn largest(format: Format, negative: bool) -> u64 {
    match format {
        Format::E4m3 => infinity(format, negative),
        Format::Tf32 => infinity(format, negative) - (1 << 13),
        _ => infinity(format, negative) - 1,
    }
}

fn storage_bits(format: Format) -> u32 {
    format.bits()
}

/// Takes bits apart. The low 13 bits of tf32 are ignored.
pub(super) fn unpack(format: Format, bits: u64) -> Value {
    let layout = Layout::of(format);
    let bits = if format == Format::Tf32 { bits >> 13 } else { bits };
    let fraction = bits & ((1 << layout.mantissa) - 1);
    let biased = (bits >> layout.mantissa & ((1 << layout.exponent) - 1)) as i32;
    let negative = bits >> (layout.mantissa + layout.exponent) & 1 != 0;
    let top = (1 << layout.exponent) - 1;
    if format == Format::E4m3 {
        if biased == top && fraction == 7 {
            return Value::Nan;
        }
    } else if biased == top {
        return if fraction == 0 { Value::Infinity(negative) } else { Value::Nan };
    }
    let hidden = if biased == 0 { 0 } else { 1 << layout.mantissa };
    let exponent = biased.max(1) - layout.bias() - layout.mantissa as i32;
    Value::Finite(Finite { negative, mantissa: u128::from(fraction | hidden), exponent })
}

/// Rounds a number to a format. If `sticky` is set, the true magnitude is a little larger than the
/// mantissa's; the mantissa must then have two bits more than the format's precision.
pub(super) fn round(format: Format, x: Finite, sticky: bool, rounding: Rounding) -> u64 {
    let layout = Layout::of(format);
    let sign = u64::from(x.negative) << (storage_bits(format) - 1);
    if x.mantissa == 0 && !sticky {
        return sign;
    }
    let place = |magnitude: u64| match format {
        Format::Tf32 => sign | magnitude << 13,
        _ => sign | magnitude,
    };
    let precision = layout.mantissa as i32 + 1;
    let top = 127 - x.mantissa.leading_zeros() as i32 + x.exponent;
    let least = 1 - layout.bias() - (precision - 1);
    let unit = (top - (precision - 1)).max(least);
    let shift = unit - x.exponent;
    let (mut kept, inexact, above_half, half) = if shift <= 0 {
        (x.mantissa << -shift, sticky, false, false)
    } else if shift > 127 {
        (0, true, false, false)
    } else {
        let rest = x.mantissa & ((1 << shift) - 1);
        let middle = 1 << (shift - 1);
        let half = rest == middle && !sticky;
        let above = rest > middle || (rest == middle && sticky);
        (x.mantissa >> shift, rest != 0 || sticky, above, half)
    };
    let up = match rounding {
        Rounding::Nearest => above_half || (half && kept & 1 == 1),
        Rounding::Away => above_half || half,
        Rounding::Zero => false,
        Rounding::Down => inexact && x.negative,
        Rounding::Up => inexact && !x.negative,
    };
    kept += u128::from(up);
    let mut unit = unit;
    if kept == 1 << precision {
        kept >>= 1;
        unit += 1;
    }
    if kept < 1 << (precision - 1) {
        return place(kept as u64);
    }
    let biased = unit + precision - 1 + layout.bias();
    let fraction = kept as u64 & ((1 << layout.mantissa) - 1);
    let magnitude = (biased as u64) << layout.mantissa | fraction;
    let limit = match format {
        Format::E4m3 => 0x7e,
        _ => (((1 << layout.exponent) - 1) << layout.mantissa) - 1,
    };
    if biased < 1 << layout.exponent && magnitude <= limit {
        return place(magnitude);
    }
    let to_infinity = match rounding {
        Rounding::Nearest | Rounding::Away => true,
        Rounding::Zero => false,
        Rounding::Down => x.negative,
        Rounding::Up => !x.negative,
    };
    if to_infinity { infinity(format, x.negative) } else { largest(format, x.negative) }
}

/// The exact sum of two numbers as a prefix with a sticky bit, or nothing if it is zero.
pub(super) fn add_exact(a: Finite, b: Finite) -> Option<(Finite, bool)> {
    if a.mantissa == 0 {
        return (b.mantissa != 0).then_some((b, false));
    }
    if b.mantissa == 0 {
        return Some((a, false));
    }
    let top = |x: &Finite| 127 - x.mantissa.leading_zeros() as i32 + x.exponent;
    let (big, small) = if top(&a) >= top(&b) { (a, b) } else { (b, a) };
    // The larger number's first bit goes to bit 120.
    let left = big.mantissa.leading_zeros() as i32 - 7;
    let big_mantissa = if left >= 0 { big.mantissa << left } else { big.mantissa >> -left };
    let exponent = big.exponent - left;
    let shift = small.exponent - exponent;
    let (small_mantissa, sticky) = if shift >= 0 {
        (small.mantissa << shift, false)
    } else if shift > -128 {
        (small.mantissa >> -shift, small.mantissa & ((1 << -shift) - 1) != 0)
    } else {
        (0, true)
    };
    let (negative, mantissa) = if a.negative == b.negative {
        (a.negative, big_mantissa + small_mantissa)
    } else {
        let small_mantissa = small_mantissa + u128::from(sticky);
        if big_mantissa >= small_mantissa {
            (big.negative, big_mantissa - small_mantissa)
        } else {
            (small.negative, small_mantissa - big_mantissa)
        }
    };
    if mantissa == 0 && !sticky {
        return None;
    }
    Some((Finite { negative, mantissa, exponent }, sticky))
}

/// The sign of an exact zero sum.
fn zero_sum(a: bool, b: bool, rounding: Rounding) -> bool {
    if a == b { a } else { rounding == Rounding::Down }
}

/// `a * b + c`, rounded once.
pub(super) fn fma(format: Format, a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    let (x, y, z) = (unpack(format, a), unpack(format, b), unpack(format, c));
    let product = multiply(x, y);
    add_values(format, product, z, rounding)
}

/// `a + b`.
pub(super) fn add(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    add_values(format, unpack(format, a), unpack(format, b), rounding)
}

/// `a * b`.
pub(super) fn mul(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    match multiply(unpack(format, a), unpack(format, b)) {
        Value::Nan => canonical_nan(format),
        Value::Infinity(negative) => infinity(format, negative),
        Value::Finite(product) => round(format, product, false, rounding),
    }
}

/// The exact product.
pub(super) fn multiply(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinity(s), Value::Infinity(t)) => Value::Infinity(s != t),
        (Value::Infinity(s), Value::Finite(x)) | (Value::Finite(x), Value::Infinity(s)) => {
            if x.mantissa == 0 { Value::Nan } else { Value::Infinity(s != x.negative) }
        }
        (Value::Finite(x), Value::Finite(y)) => Value::Finite(Finite {
            negative: x.negative != y.negative,
            mantissa: x.mantissa * y.mantissa,
            exponent: x.exponent + y.exponent,
        }),
    }
}

fn add_values(format: Format, a: Value, b: Value, rounding: Rounding) -> u64 {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => canonical_nan(format),
        (Value::Infinity(s), Value::Infinity(t)) if s != t => canonical_nan(format),
        (Value::Infinity(s), _) | (_, Value::Infinity(s)) => infinity(format, s),
        (Value::Finite(x), Value::Finite(y)) => match add_exact(x, y) {
            Some((sum, sticky)) => round(format, sum, sticky, rounding),
            None => {
                let negative = zero_sum(x.negative, y.negative, rounding);
                round(format, Finite { negative, mantissa: 0, exponent: 0 }, false, rounding)
            }
        },
    }
}

/// `a / b`.
pub(super) fn div(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    match (unpack(format, a), unpack(format, b)) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Infinity(_), Value::Infinity(_)) => {
            canonical_nan(format)
        }
        (Value::Infinity(s), Value::Finite(y)) => infinity(format, s != y.negative),
        (Value::Finite(x), Value::Infinity(s)) => {
            let negative = x.negative != s;
            round(format, Finite { negative, mantissa: 0, exponent: 0 }, false, rounding)
        }
        (Value::Finite(x), Value::Finite(y)) => {
            let negative = x.negative != y.negative;
            match (x.mantissa, y.mantissa) {
                (0, 0) => canonical_nan(format),
                (_, 0) => infinity(format, negative),
                (0, _) => round(format, Finite { negative, ..x }, false, rounding),
                (dividend, divisor) => {
                    let shift = dividend.leading_zeros() as i32 - 1;
                    let dividend = dividend << shift;
                    let exponent = x.exponent - shift - y.exponent;
                    let quotient = Finite { negative, mantissa: dividend / divisor, exponent };
                    round(format, quotient, !dividend.is_multiple_of(divisor), rounding)
                }
            }
        }
    }
}

/// Whether a quotient is less than the least normal number before it is rounded.
pub(super) fn is_tiny_quotient(format: Format, a: u64, b: u64) -> bool {
    let truncated = div(format, a, b, Rounding::Zero);
    !is_nan(format, truncated) && is_subnormal(format, truncated)
}

/// The square root.
pub(super) fn sqrt(format: Format, a: u64, rounding: Rounding) -> u64 {
    match unpack(format, a) {
        Value::Finite(x) if x.mantissa == 0 => a,
        Value::Infinity(false) => a,
        Value::Finite(x) if !x.negative => {
            let mut shift = x.mantissa.leading_zeros() as i32 - 1;
            shift -= (x.exponent - shift) & 1;
            let mantissa = x.mantissa << shift;
            let root = mantissa.isqrt();
            let exponent = (x.exponent - shift) / 2;
            let x = Finite { negative: false, mantissa: root, exponent };
            round(format, x, root * root != mantissa, rounding)
        }
        _ => canonical_nan(format),
    }
}

/// Converts between formats, rounding.
pub(super) fn convert(from: Format, to: Format, bits: u64, rounding: Rounding) -> u64 {
    match unpack(from, bits) {
        Value::Nan => canonical_nan(to),
        Value::Infinity(negative) => infinity(to, negative),
        Value::Finite(x) => round(to, x, false, rounding),
    }
}

/// The value in f64; exact for the formats up to f32.
pub(super) fn to_f64(format: Format, bits: u64) -> f64 {
    match format {
        Format::F64 => f64::from_bits(bits),
        Format::F32 => f64::from(f32::from_bits(bits as u32)),
        Format::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
        _ => f64::from_bits(convert(format, Format::F64, bits, Rounding::Nearest)),
    }
}

/// A value rounded to a format to nearest.
pub(super) fn from_f64(format: Format, value: f64) -> u64 {
    convert(Format::F64, format, value.to_bits(), Rounding::Nearest)
}

/// Whether bits are those of a NaN.
pub(super) fn is_nan(format: Format, bits: u64) -> bool {
    matches!(unpack(format, bits), Value::Nan)
}

/// Whether a value is subnormal or zero.
pub(super) fn is_subnormal(format: Format, bits: u64) -> bool {
    let layout = Layout::of(format);
    let bits = if format == Format::Tf32 { bits >> 13 } else { bits };
    bits >> layout.mantissa & ((1 << layout.exponent) - 1) == 0
}

/// Subnormal values become zeros of their sign.
pub(super) fn flush(format: Format, bits: u64) -> u64 {
    if is_subnormal(format, bits) { bits & 1 << (storage_bits(format) - 1) } else { bits }
}

/// The bit of the sign.
pub(super) fn sign_bit(format: Format) -> u64 {
    1 << (storage_bits(format) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn single(bits: u32) -> u64 {
        let x = f32::from_bits(bits);
        if x.is_nan() { canonical_nan(Format::F32) } else { u64::from(bits) }
    }

    fn double(x: f64) -> u64 {
        if x.is_nan() { canonical_nan(Format::F64) } else { x.to_bits() }
    }

    proptest! {
        #[test]
        fn single_agrees_with_the_host(a: u32, b: u32, c: u32, near in any::<bool>()) {
            // Half of the time the exponents are close.
            let close = |x: u32| if near { x & 0x807f_ffff | (120 + (x >> 24 & 15)) << 23 } else { x };
            let (a, b, c) = (close(a), close(b), close(c));
            let [x, y, z] = [a, b, c].map(f32::from_bits);
            let [a, b, c] = [a, b, c].map(u64::from);
            let (format, nearest) = (Format::F32, Rounding::Nearest);
            prop_assert_eq!(add(format, a, b, nearest), single((x + y).to_bits()));
            prop_assert_eq!(mul(format, a, b, nearest), single((x * y).to_bits()));
            prop_assert_eq!(div(format, a, b, nearest), single((x / y).to_bits()));
            prop_assert_eq!(sqrt(format, a, nearest), single(x.sqrt().to_bits()));
            prop_assert_eq!(fma(format, a, b, c, nearest), single(x.mul_add(y, z).to_bits()));
        }

        #[test]
        fn double_agrees_with_the_host(a: u64, b: u64, c: u64, near in any::<bool>()) {
            let close = |x: u64| match near {
                true => x & 0x800f_ffff_ffff_ffff | (1000 + (x >> 56 & 63)) << 52,
                false => x,
            };
            let (a, b, c) = (close(a), close(b), close(c));
            let [x, y, z] = [a, b, c].map(f64::from_bits);
            let (format, nearest) = (Format::F64, Rounding::Nearest);
            prop_assert_eq!(add(format, a, b, nearest), double(x + y));
            prop_assert_eq!(mul(format, a, b, nearest), double(x * y));
            prop_assert_eq!(div(format, a, b, nearest), double(x / y));
            prop_assert_eq!(sqrt(format, a, nearest), double(x.sqrt()));
            prop_assert_eq!(fma(format, a, b, c, nearest), double(x.mul_add(y, z)));
            prop_assert_eq!(
                convert(format, Format::F32, a, nearest),
                single((x as f32).to_bits())
            );
        }

        #[test]
        fn directed_roundings_enclose(a: u32, b: u32) {
            let (format, a, b) = (Format::F32, u64::from(a), u64::from(b));
            let value = |rounding| to_f64(format, mul(format, a, b, rounding));
            let (down, up) = (value(Rounding::Down), value(Rounding::Up));
            let exact = to_f64(format, a) * to_f64(format, b);
            prop_assert!(exact.is_nan() || (down <= exact && exact <= up));
        }
    }

    #[test]
    fn small_formats_round_and_saturate() {
        let half = |x: f64| from_f64(Format::F16, x);
        assert_eq!(half(65504.0), 0x7bff);
        assert_eq!(half(65520.0), 0x7c00);
        assert_eq!(half(2f64.powi(-25)), 0);
        assert_eq!(half(1.5 * 2f64.powi(-25)), 1);
        assert_eq!(from_f64(Format::Bf16, 1.0 + 2f64.powi(-8)), 0x3f80);
        assert_eq!(from_f64(Format::E4m3, 448.0), 0x7e);
        assert_eq!(from_f64(Format::E4m3, 1000.0), 0x7e);
        assert_eq!(from_f64(Format::E5m2, 57344.0), 0x7b);
        assert_eq!(to_f64(Format::E4m3, 0x01), 2f64.powi(-9));
    }
}
