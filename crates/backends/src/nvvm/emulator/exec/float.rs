//! Floating-point arithmetic, comparison and approximate functions (PTX ISA, "Floating Point
//! Instructions", "Half Precision Floating Point Instructions").
//!
//! Results are exact and rounded once. Operations in f32 and f64 that round to nearest use those of
//! the host, which are the same; all others use [`softfloat`].
//!
//! Approximate functions are computed in f64 and rounded to nearest, so that they differ from the
//! hardware's by about its error. The manual's bounds for f32: `rcp`, `rsqrt` 1 and 2^-22.9
//! relative, `sqrt` 2^-23 relative, `ex2` 2 ulp, `lg2` 2^-22 absolute or relative, `sin`, `cos`
//! 2^-20.5 absolute in [-pi, pi], `tanh` 2^-11 relative, `div.approx` 2 ulp for divisors in
//! [2^-126, 2^126], `div.full` 2 ulp.

use super::super::{
    machine::Context,
    module::*,
    softfloat::{self, canonical_nan, flush, from_f64, is_nan, sign_bit, to_f64},
    warp::lanes,
};
use super::truncate;

impl Context<'_, '_> {
    pub(super) fn float(&mut self, op: Float, style: Style, [d, a, b, c]: [Reg; 4]) {
        let plain = !style.ftz
            && !style.sat
            && !style.relu
            && !style.packed
            && style.rounding == Rounding::Nearest
            && style.format == Format::F32;
        let single = |bits: u64| f32::from_bits(bits as u32);
        match op {
            Float::Add if plain => self.map2(d, a, b, |a, b| single_bits(single(a) + single(b))),
            Float::Sub if plain => self.map2(d, a, b, |a, b| single_bits(single(a) - single(b))),
            Float::Mul if plain => self.map2(d, a, b, |a, b| single_bits(single(a) * single(b))),
            Float::Fma if plain => {
                self.map3(d, a, b, c, |a, b, c| {
                    single_bits(fma_single(single(a), single(b), single(c)))
                });
            }
            _ if style.packed => {
                let bits = style.format.bits();
                self.map_active(d, [a, b, c], |a, b, c| {
                    let low = float(op, &style, a, b, c);
                    low | float(op, &style, a >> bits, b >> bits, c >> bits) << bits
                });
            }
            _ => self.map_active(d, [a, b, c], |a, b, c| float(op, &style, a, b, c)),
        }
    }

    pub(super) fn approximate(
        &mut self,
        op: Approximate,
        (format, packed): (Format, bool),
        ftz: bool,
        [d, a, b]: [Reg; 3],
    ) {
        let bits = format.bits();
        self.map_active(d, [a, b, b], |a, b, _| {
            let low = approximate(op, format, ftz, truncate(a, bits), truncate(b, bits));
            if !packed {
                return low;
            }
            low | approximate(op, format, ftz, a >> bits, b >> bits) << bits
        });
    }

    pub(super) fn test_property(&mut self, property: Property, format: Format, d: Reg, a: Reg) {
        self.map1(d, a, |a| {
            let x = to_f64(format, a);
            let subnormal = softfloat::is_subnormal(format, a);
            u64::from(match property {
                Property::Finite => x.is_finite(),
                Property::Infinite => x.is_infinite(),
                Property::Number => !x.is_nan(),
                Property::NotANumber => x.is_nan(),
                // Zeros count as normal.
                Property::Normal => x.is_finite() && (!subnormal || x == 0.0),
                Property::Subnormal => subnormal && x != 0.0,
            })
        });
    }

    /// `setp` and `set`.
    pub(super) fn compare(&mut self, op: &Op) {
        let Op::Compare { compare, unordered, ty, ftz, truth, d, complement, a, b, combine } = op
        else {
            return;
        };
        let (x, y) = (*self.warp.get(*a), *self.warp.get(*b));
        let (mut low, mut high) = (0u32, 0u32);
        for lane in lanes(self.mask) {
            let holds = |x, y| compare_values(*compare, *unordered, *ty, *ftz, x, y);
            low |= u32::from(holds(x[lane], y[lane])) << lane;
            if let Type::Packed(format) = ty {
                let bits = format.bits();
                high |= u32::from(holds(x[lane] >> bits, y[lane] >> bits)) << lane;
            }
        }
        if !matches!(ty, Type::Packed(_)) {
            high = !low;
        }
        if let Some((combine, p, negate)) = combine {
            let p = self.warp.holds(*p, !negate);
            let apply = |x: u32| match combine {
                Combine::And => x & p,
                Combine::Or => x | p,
                Combine::Xor => x ^ p,
            };
            (low, high) = (apply(low), apply(high));
        }
        let spread = |mask: u32| std::array::from_fn(|lane| u64::from(mask >> lane & 1) * truth);
        self.warp.set(*d, self.mask, &spread(low));
        self.warp.set(*complement, self.mask, &spread(high));
    }

    pub(super) fn redux_float(&mut self, max: bool, abs: bool, nan: bool, d: Reg, a: Reg) {
        let values = *self.warp.get(a);
        let magnitude = |x: u64| if abs { x & 0x7fff_ffff } else { x };
        let mut rest = lanes(self.mask);
        let first = rest.next().map_or(0, |lane| magnitude(values[lane]));
        let result = rest.fold(first, |x, lane| {
            min_max(Format::F32, max, nan, false, x, magnitude(values[lane]))
        });
        let result = if is_nan(Format::F32, result) { canonical_nan(Format::F32) } else { result };
        self.warp.set(d, self.mask, &[result; 32]);
    }
}

#[inline]
fn single_bits(value: f32) -> u64 {
    if value.is_nan() { 0x7fff_ffff } else { u64::from(value.to_bits()) }
}

/// `a * b + c` rounded once. The product is exact in f64, and so is the sum but for its last bits:
/// rounding it to f32 is right unless it lies in the middle of two numbers.
#[inline]
fn fma_single(a: f32, b: f32, c: f32) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let sum = product + f64::from(c);
    let middle = sum.to_bits() & 0x1fff_ffff == 0x1000_0000;
    if !middle && sum.abs() >= f64::from(f32::MIN_POSITIVE) {
        return sum as f32;
    }
    round_sum(product, f64::from(c), sum)
}

/// The sum rounded to odd in f64, after which rounding to f32 is as if there were one rounding
/// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
fn round_sum(product: f64, addend: f64, sum: f64) -> f32 {
    // The error of the sum (Knuth, TwoSum).
    let back = sum - product;
    let error = (product - (sum - back)) + (addend - back);
    let bits = sum.to_bits();
    let away = (error > 0.0) == (sum > 0.0);
    let odd = match (error != 0.0 && bits & 1 == 0, away) {
        (false, _) => bits,
        (true, true) => bits + 1,
        (true, false) => bits - 1,
    };
    // A NaN error (of infinities) leaves the sum.
    (if error.is_nan() { sum } else { f64::from_bits(odd) }) as f32
}

/// One operation on values of the style's format.
pub(super) fn float(op: Float, style: &Style, a: u64, b: u64, c: u64) -> u64 {
    let format = style.format;
    let bits = format.bits();
    let operand = |x: u64| {
        let x = truncate(x, bits);
        if style.ftz { flush(format, x) } else { x }
    };
    let (a, b, c) = (operand(a), operand(b), operand(c));
    let sign = sign_bit(format);
    let rounding = style.rounding;
    let host = rounding == Rounding::Nearest && matches!(format, Format::F32 | Format::F64);
    let sign_only = matches!(op, Float::Abs | Float::Neg | Float::Copysign);
    let choice = matches!(op, Float::Min | Float::Max);
    if format == Format::F64
        && !sign_only
        && !choice
        && let Some(nan) = propagate(op, a, b, c)
    {
        return finish(style, nan);
    }
    let result = match op {
        Float::Abs | Float::Neg if is_nan(format, a) => {
            // Devices leave the sign of a NaN in f64.
            return if format == Format::F64 { a | 1 << 51 } else { canonical_nan(format) };
        }
        Float::Abs => return a & !sign,
        Float::Neg => return a ^ sign,
        Float::Copysign => return a & sign | b & !sign,
        Float::Min | Float::Max => {
            min_max(format, op == Float::Max, style.nan, style.xorsign, a, b)
        }
        _ if host && format == Format::F32 => host_single(op, a, b, c),
        _ if host => host_double(op, a, b, c),
        Float::Add => softfloat::add(format, a, b, rounding),
        Float::Sub => softfloat::add(format, a, b ^ sign, rounding),
        Float::Mul => softfloat::mul(format, a, b, rounding),
        Float::Fma => softfloat::fma(format, a, b, c, rounding),
        Float::Div
            if style.ftz
                && matches!(rounding, Rounding::Down | Rounding::Up)
                && softfloat::is_tiny_quotient(format, a, b) =>
        {
            (a ^ b) & sign
        }
        Float::Div => softfloat::div(format, a, b, rounding),
        Float::Rcp => softfloat::div(format, from_f64(format, 1.0), a, rounding),
        Float::Sqrt => softfloat::sqrt(format, a, rounding),
    };
    finish(style, result)
}

/// `.ftz`, `.sat` and `.relu` of a result, and the canonical NaN.
fn finish(style: &Style, result: u64) -> u64 {
    let format = style.format;
    let nan = is_nan(format, result);
    let result = if style.ftz { flush(format, result) } else { result };
    let negative = result & sign_bit(format) != 0;
    if style.sat {
        let one = from_f64(format, 1.0);
        return match (nan, negative) {
            (true, _) | (_, true) => 0,
            _ => result.min(one),
        };
    }
    if nan {
        return if format == Format::F64 { result } else { canonical_nan(format) };
    }
    if style.relu && negative { 0 } else { result }
}

/// The NaN that an operation in f64 returns if an operand is NaN: one of the operands, made quiet.
/// The manual leaves open which; devices take the second, then the third, then
/// the first; for division the first.
fn propagate(op: Float, a: u64, b: u64, c: u64) -> Option<u64> {
    let operands: &[u64] = match op {
        Float::Fma => &[b, c, a],
        Float::Div => &[a, b],
        Float::Rcp | Float::Sqrt => &[a],
        _ => &[b, a],
    };
    let nan = operands.iter().find(|x| is_nan(Format::F64, **x))?;
    Some(nan | 1 << 51)
}

fn host_single(op: Float, a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(|x| f32::from_bits(x as u32));
    single_bits(match op {
        Float::Add => a + b,
        Float::Sub => a - b,
        Float::Mul => a * b,
        Float::Fma => fma_single(a, b, c),
        Float::Div => a / b,
        Float::Rcp => 1.0 / a,
        _ => a.sqrt(),
    })
}

fn host_double(op: Float, a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(f64::from_bits);
    let result = match op {
        Float::Add => a + b,
        Float::Sub => a - b,
        Float::Mul => a * b,
        Float::Fma => a.mul_add(b, c),
        Float::Div => a / b,
        Float::Rcp => 1.0 / a,
        _ => a.sqrt(),
    };
    if result.is_nan() { canonical_nan(Format::F64) } else { result.to_bits() }
}

/// `min` and `max`: -0 is less than +0; of a number and NaN the number, or NaN with `.NaN`.
pub(super) fn min_max(format: Format, max: bool, nan: bool, xorsign: bool, a: u64, b: u64) -> u64 {
    let sign = sign_bit(format);
    let flip = if xorsign { (a ^ b) & sign } else { 0 };
    let (a, b) = if xorsign { (a & !sign, b & !sign) } else { (a, b) };
    let result = match (is_nan(format, a), is_nan(format, b)) {
        (true, true) if format == Format::F64 => return b | 1 << 51,
        (true, true) => return canonical_nan(format),
        (true, false) | (false, true) if nan => return canonical_nan(format),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            // Bits as integers in the order of the numbers.
            let key = |x: u64| if x & sign != 0 { -((x & !sign) as i128) - 1 } else { x as i128 };
            if (key(a) >= key(b)) == max { a } else { b }
        }
    };
    result | flip
}

/// Whether `slct` takes its first operand.
pub(super) fn not_negative(c: u32, float: bool, ftz: bool) -> bool {
    if !float {
        return (c as i32) >= 0;
    }
    let bits = if ftz { flush(Format::F32, u64::from(c)) as u32 } else { c };
    f32::from_bits(bits) >= 0.0
}

fn compare_values(compare: Compare, unordered: bool, ty: Type, ftz: bool, a: u64, b: u64) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let bits = match ty {
        Type::Packed(format) => format.bits(),
        _ => ty.bits(),
    };
    let (a, b) = (truncate(a, bits), truncate(b, bits));
    let ordering = match ty {
        Type::Float(format) | Type::Packed(format) => {
            let value = |x| to_f64(format, if ftz { flush(format, x) } else { x });
            value(a).partial_cmp(&value(b))
        }
        Type::Signed(_) => Some(super::extend(a, bits).cmp(&super::extend(b, bits))),
        _ => Some(a.cmp(&b)),
    };
    match (compare, ordering) {
        (Compare::Numbers, ordering) => ordering.is_some(),
        (Compare::Nan, ordering) => ordering.is_none(),
        (_, None) => unordered,
        (Compare::Eq, Some(found)) => found == Equal,
        (Compare::Ne, Some(found)) => found != Equal,
        (Compare::Lt, Some(found)) => found == Less,
        (Compare::Le, Some(found)) => found != Greater,
        (Compare::Gt, Some(found)) => found == Greater,
        (Compare::Ge, Some(found)) => found != Less,
    }
}

/// One approximate function.
fn approximate(op: Approximate, format: Format, ftz: bool, a: u64, b: u64) -> u64 {
    // The approximate functions of f32 with subnormal operands flush them only with `.ftz`;
    // `ex2` in bf16 always does.
    let operand = |x: u64| to_f64(format, if ftz { flush(format, x) } else { x });
    let (x, y) = (operand(a), operand(b));
    if format == Format::F64 {
        return approximate_double(op, ftz, a);
    }
    let result = match op {
        // The manual: 0 for divisors beyond 2^126, NaN for an infinite dividend then.
        Approximate::Div if y.abs() > 2f64.powi(126) && y.is_finite() => x * 0f64.copysign(y),
        Approximate::Div | Approximate::DivFull => x / y,
        Approximate::Rcp => 1.0 / x,
        Approximate::Rsqrt => 1.0 / x.sqrt(),
        Approximate::Sqrt => x.sqrt(),
        Approximate::Exp2 => x.exp2(),
        Approximate::Log2 => x.log2(),
        Approximate::Sin => x.sin(),
        Approximate::Cos => x.cos(),
        Approximate::Tanh => x.tanh(),
    };
    if result.is_nan() {
        return canonical_nan(format);
    }
    let bits = from_f64(format, result);
    if ftz { flush(format, bits) } else { bits }
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.f64`: of the high halves of the operand and the result.
fn approximate_double(op: Approximate, ftz: bool, a: u64) -> u64 {
    let a = if ftz { a & !0xffff_ffff } else { a };
    let x = f64::from_bits(if ftz { flush(Format::F64, a) } else { a });
    let result = match op {
        Approximate::Rcp => 1.0 / x,
        _ => 1.0 / x.sqrt(),
    };
    if result.is_nan() {
        return canonical_nan(Format::F64);
    }
    let bits = result.to_bits() & !0xffff_ffff;
    if ftz { flush(Format::F64, bits) } else { bits }
}
