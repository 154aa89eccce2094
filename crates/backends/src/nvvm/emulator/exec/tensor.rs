//! The arithmetic of `mma` with floating-point operands, as devices of `sm_90` do it.
//!
//! The manual leaves order and precision open ("at least single precision"). The rule, found from
//! recorded products: all products of one step and the element of C are aligned to the largest
//! exponent, cut off below two bits behind the last place of f32, added exactly, and the sum is cut
//! off to f32 or rounded to nearest in f16, once. [`step`] is this rule and the place to change it.

use super::super::{
    module::{Format, Rounding, Type},
    softfloat::{self, canonical_nan, infinity, sizes},
};

/// How many bits below the largest exponent the addends keep.
const KEPT_BITS: i32 = 25;
/// The same for `wgmma` in fp8, whose results in f32 have as many bits of fraction.
const KEPT_BITS_FP8: i32 = 13;
/// The least exponent to align to.
const LEAST_EXPONENT: i32 = -126;

/// The exponent of zero: below all others, so that zero never decides the alignment.
const ZERO_EXPONENT: i32 = -10_000;

/// A number taken apart: `mantissa * 2^(exponent - bits)`, where the mantissa has its sign. A
/// subnormal number has the least exponent of its format.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// For infinity 1 or -1.
    mantissa: i32,
    exponent: i32,
    class: Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Finite,
    Infinity,
    Nan,
}

fn part(format: Format, bits: u64) -> Part {
    let (mantissa_bits, exponent_bits) = sizes(format);
    let bits = if format == Format::Tf32 { bits >> 13 } else { bits };
    let sign = if bits >> (mantissa_bits + exponent_bits) & 1 != 0 { -1 } else { 1 };
    let top = (1u64 << exponent_bits) - 1;
    let biased = bits >> mantissa_bits & top;
    let fraction = bits & ((1 << mantissa_bits) - 1);
    let class = match format {
        Format::E4m3 if biased == top && fraction == 7 => Class::Nan,
        Format::E4m3 => Class::Finite,
        _ if biased != top => Class::Finite,
        _ if fraction == 0 => Class::Infinity,
        _ => Class::Nan,
    };
    if class != Class::Finite {
        return Part { mantissa: sign, exponent: 0, class };
    }
    let hidden = u64::from(biased != 0) << mantissa_bits;
    let mantissa = sign * (fraction | hidden) as i32;
    let exponent = match mantissa {
        0 => ZERO_EXPONENT,
        _ => biased.max(1) as i32 - (1 << (exponent_bits - 1)) + 1,
    };
    Part { mantissa, exponent, class }
}

/// `A B + C` for the shape `(m, n, k)`; A by rows, B by columns, C and D by rows.
pub(super) fn product(
    shape: (usize, usize, usize),
    (a_format, b_format, d_type): (Format, Format, Type),
    a: &[u64],
    b: &[u64],
    c: &[u64],
) -> Vec<u64> {
    if !matches!(a_format, Format::E4m3 | Format::E5m2) {
        return warpgroup_product(shape, (a_format, b_format, d_type), a, b, c);
    }
    // Converted to f16 and multiplied in two steps from zero; then C is added.
    let d_format = result_format(d_type);
    let half = |format, bits: &u64| {
        part(Format::F16, softfloat::convert(format, Format::F16, *bits, Rounding::Nearest))
    };
    let a: Vec<Part> = a.iter().map(|bits| half(a_format, bits)).collect();
    let b: Vec<Part> = b.iter().map(|bits| half(b_format, bits)).collect();
    let formats = (Format::F16, Format::F16, d_format);
    let pick = |parts: &[Part], step: usize| -> Vec<Part> {
        let picked = parts.iter().enumerate().filter(|(index, _)| index & 2 == step);
        picked.map(|(_, part)| *part).collect()
    };
    each_element(shape, &a, &b, c, |a, b, c| {
        let sum = [0, 2]
            .into_iter()
            .fold(0, |sum, half| step(formats, KEPT_BITS, &pick(a, half), &pick(b, half), sum));
        softfloat::add(d_format, c, sum, Rounding::Nearest)
    })
}

/// The same for `wgmma`, which has instructions for fp8.
pub(super) fn warpgroup_product(
    shape: (usize, usize, usize),
    (a_format, b_format, d_type): (Format, Format, Type),
    a: &[u64],
    b: &[u64],
    c: &[u64],
) -> Vec<u64> {
    let kept = match a_format {
        Format::E4m3 | Format::E5m2 => KEPT_BITS_FP8,
        _ => KEPT_BITS,
    };
    let a: Vec<Part> = a.iter().map(|bits| part(a_format, *bits)).collect();
    let b: Vec<Part> = b.iter().map(|bits| part(b_format, *bits)).collect();
    let formats = (a_format, b_format, result_format(d_type));
    each_element(shape, &a, &b, c, |a, b, c| step(formats, kept, a, b, c))
}

fn result_format(ty: Type) -> Format {
    if ty.bits() == 16 { Format::F16 } else { Format::F32 }
}

/// An element of D from each row of A, column of B and element of C.
fn each_element(
    (m, n, k): (usize, usize, usize),
    a: &[Part],
    b: &[Part],
    c: &[u64],
    element: impl Fn(&[Part], &[Part], u64) -> u64,
) -> Vec<u64> {
    let of = |at: usize| element(&a[at / n * k..][..k], &b[at % n * k..][..k], c[at]);
    (0..m * n).map(of).collect()
}

/// One step: the products of a row and a column, and an element of C.
fn step(
    (a_format, b_format, d_format): (Format, Format, Format),
    kept: i32,
    a: &[Part],
    b: &[Part],
    c: u64,
) -> u64 {
    let c = part(d_format, c);
    let mut largest = c.exponent.max(LEAST_EXPONENT);
    let mut finite = c.class == Class::Finite;
    for (x, y) in a.iter().zip(b) {
        largest = largest.max(x.exponent + y.exponent);
        finite &= x.class == Class::Finite && y.class == Class::Finite;
    }
    if !finite {
        return special_sum(d_format, a, b, c);
    }
    let unit = largest - kept;
    let fraction_bits = (sizes(a_format).0 + sizes(b_format).0) as i32;
    // A product of the largest exponent moves to the left by so much, all others by less.
    let left = kept - fraction_bits;
    let mut total = shift(i64::from(c.mantissa), c.exponent - sizes(d_format).0 as i32 - unit);
    for (x, y) in a.iter().zip(b) {
        let product = i64::from(x.mantissa) * i64::from(y.mantissa);
        let right = (largest - x.exponent - y.exponent).min(63);
        let magnitude = (product.unsigned_abs() << left >> right) as i64;
        total += if product < 0 { -magnitude } else { magnitude };
    }
    if total == 0 {
        return 0;
    }
    let bits = pack(d_format, total, unit);
    match d_format {
        Format::F32 if kept == KEPT_BITS_FP8 => bits & !0x3ff,
        _ => bits,
    }
}

/// The sum if an operand is infinite or NaN.
fn special_sum(format: Format, a: &[Part], b: &[Part], c: Part) -> u64 {
    let mut infinities = [false; 2];
    if c.class == Class::Infinity {
        infinities[usize::from(c.mantissa < 0)] = true;
    }
    let mut nan = c.class == Class::Nan;
    for (x, y) in a.iter().zip(b) {
        let product = x.mantissa * y.mantissa;
        match (x.class, y.class) {
            (Class::Finite, Class::Finite) => {}
            (Class::Nan, _) | (_, Class::Nan) => nan = true,
            _ if product == 0 => nan = true,
            _ => infinities[usize::from(product < 0)] = true,
        }
    }
    match infinities {
        _ if nan => canonical_nan(format),
        [true, true] => canonical_nan(format),
        [_, negative] => infinity(format, negative),
    }
}

/// `x * 2^by`, cut off towards zero.
#[inline]
fn shift(x: i64, by: i32) -> i64 {
    let magnitude = x.unsigned_abs();
    let moved = match by {
        0.. => magnitude << by.min(63),
        -63..0 => magnitude >> -by,
        _ => 0,
    } as i64;
    if x < 0 { -moved } else { moved }
}

/// A sum that is not zero in the format of D: cut off in f32, rounded to nearest in f16. Too large
/// is infinity in both; zero has no sign.
fn pack(format: Format, total: i64, unit: i32) -> u64 {
    let (negative, magnitude) = (total < 0, total.unsigned_abs());
    let top = magnitude.ilog2() as i32;
    let exponent = top + unit;
    if exponent > (1 << (sizes(format).1 - 1)) - 1 {
        return infinity(format, negative);
    }
    if format == Format::F32 && exponent >= LEAST_EXPONENT {
        let fraction = if top >= 23 { magnitude >> (top - 23) } else { magnitude << (23 - top) };
        let biased = (exponent + 127) as u64;
        return u64::from(negative) << 31 | biased << 23 | fraction & 0x7f_ffff;
    }
    let rounding = if format == Format::F32 { Rounding::Zero } else { Rounding::Nearest };
    let mantissa = u128::from(magnitude);
    let x = softfloat::Finite { negative, mantissa, exponent: unit };
    let bits = softfloat::round(format, x, false, rounding);
    if bits & !softfloat::sign_bit(format) == 0 { 0 } else { bits }
}
