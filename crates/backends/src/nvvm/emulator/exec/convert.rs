//! `cvt` (PTX ISA, "cvt").

use super::super::{
    machine::Context,
    module::*,
    softfloat::{
        self, Finite, Value, canonical_nan, flush, from_f64, is_nan, largest, round, sign_bit,
        unpack,
    },
    warp::lanes,
};
use super::{extend, truncate};

impl Context<'_, '_> {
    pub(super) fn convert(&mut self, op: &Convert) {
        let a = *self.warp.get(op.a);
        let b = op.b.map(|reg| *self.warp.get(reg));
        let mut values = [0; 32];
        for lane in lanes(self.mask) {
            let value = match (op.to, op.from, b) {
                // The first source is the upper half.
                (Type::Packed(to), Type::Float(from), Some(b)) => {
                    let low = to_float(op, to, from, b[lane]);
                    low | to_float(op, to, from, a[lane]) << to.bits()
                }
                (Type::Packed(to), Type::Packed(from), _) => {
                    let low = to_float(op, to, from, a[lane]);
                    low | to_float(op, to, from, a[lane] >> from.bits()) << to.bits()
                }
                (Type::Float(to), Type::Float(from), _) => to_float(op, to, from, a[lane]),
                (Type::Float(to), from, _) => from_integer(op, to, from, a[lane]),
                (to, Type::Float(from), _) => to_integer(op, to, from, a[lane]),
                (to, from, _) => between_integers(op, to, from, a[lane]),
            };
            values[lane] = truncate(value, 64) & op.register_mask;
        }
        self.warp.set(op.d, self.mask, &values);
    }
}

impl Context<'_, '_> {
    pub(super) fn convert_pack(&mut self, ty: Type, [d, a, b]: [Reg; 3], c: Option<Reg>) {
        let (bits, (low, high)) = (ty.bits(), limits(ty));
        let c = c.map_or([0; 32], |c| *self.warp.get(c));
        let (a, b) = (*self.warp.get(a), *self.warp.get(b));
        let saturate = |x: u64| {
            let value = i128::from(extend(x, 32)).clamp(low, high);
            truncate(value as u64, bits)
        };
        let values = std::array::from_fn(|lane| {
            let pair = saturate(b[lane]) | saturate(a[lane]) << bits;
            truncate(pair | c[lane] << (2 * bits), 32)
        });
        self.warp.set(d, self.mask, &values);
    }
}

fn to_float(op: &Convert, to: Format, from: Format, a: u64) -> u64 {
    let a = truncate(a, from.bits());
    // Devices do not flush operands on the way to f16.
    let a = if op.ftz && from == Format::F32 && to != Format::F16 { flush(from, a) } else { a };
    let a = match op.to_integer {
        Some(rounding) => round_to_integral(from, a, rounding),
        None => a,
    };
    let mut result = softfloat::convert(from, to, a, op.rounding);
    let small = matches!(to, Format::E4m3 | Format::E5m2);
    if is_nan(from, a) {
        result = convert_nan(op, to, from, a);
    } else if op.satfinite || small {
        let negative = result & sign_bit(to) != 0;
        let magnitude = result & !sign_bit(to);
        if magnitude > largest(to, false) {
            result = largest(to, negative);
        }
    }
    if op.ftz && to == Format::F32 {
        // Flushed if it is subnormal after rounding with an unbounded exponent.
        if let Value::Finite(x) = unpack(from, a)
            && x.mantissa != 0
        {
            let raised = Finite { exponent: x.exponent + 64, ..x };
            let least = Finite { negative: false, mantissa: 1, exponent: 64 - 126 };
            let magnitude = round(to, raised, false, op.rounding) & !sign_bit(to);
            if magnitude < round(to, least, false, Rounding::Nearest) {
                result &= sign_bit(to);
            }
        }
    }
    let negative = result & sign_bit(to) != 0;
    if op.sat {
        if is_nan(to, result) || negative {
            return 0;
        }
        return result.min(from_f64(to, 1.0));
    }
    if op.relu && negative && !is_nan(to, result) {
        return 0;
    }
    result
}

/// The NaN that a conversion gives. The manual leaves the payload open; this is what devices do:
/// the canonical one between small formats, else the operand's with as many bits as fit.
fn convert_nan(op: &Convert, to: Format, from: Format, a: u64) -> u64 {
    let plain = op.to_integer.is_none() && !op.ftz;
    match (from, to) {
        (Format::F32, Format::F32) if plain => a,
        (Format::F64, Format::F64) if op.to_integer.is_none() => a,
        (Format::Bf16, Format::F32) if plain => a << 16,
        (Format::F32, Format::Tf32) if op.rounding == Rounding::Away => {
            (a & !0x1fff) - if op.satfinite { 0x2000 } else { 0 }
        }
        (Format::F32, Format::F64) if op.ftz => 0x7fff_ffff_e000_0000,
        (Format::F64, _) | (_, Format::F64) => {
            // Both are shifted so that the sign is bit 63 and the exponent follows.
            let (mantissa, exponent) = softfloat::sizes(from);
            let (to_mantissa, to_exponent) = softfloat::sizes(to);
            let payload = a << (63 - mantissa) << 1 | 1 << 63;
            let sign = a >> (mantissa + exponent) << (to_mantissa + to_exponent);
            let top = ((1 << to_exponent) - 1) << to_mantissa;
            let result = sign | top | payload >> (64 - to_mantissa);
            if op.ftz && from == Format::F32 { canonical_nan(to) } else { result }
        }
        _ => canonical_nan(to),
    }
}

/// Rounds to a whole number in the same format.
fn round_to_integral(format: Format, a: u64, rounding: Rounding) -> u64 {
    match unpack(format, a) {
        Value::Finite(x) if x.exponent < 0 => {
            let whole = whole_part(x, rounding);
            let sign = a & sign_bit(format);
            let x = Finite { mantissa: whole, exponent: 0, ..x };
            round(format, x, false, Rounding::Nearest) | sign
        }
        _ => a,
    }
}

/// The magnitude rounded to a whole number.
fn whole_part(x: Finite, rounding: Rounding) -> u128 {
    if x.exponent >= 0 {
        // Only the low 64 bits and the fact that there are more matter.
        return if x.exponent > 64 && x.mantissa != 0 {
            u128::MAX >> 1
        } else {
            x.mantissa << x.exponent
        };
    }
    let shift = -x.exponent;
    if shift > 100 {
        let up = match rounding {
            Rounding::Down => x.negative,
            Rounding::Up => !x.negative,
            _ => false,
        };
        return u128::from(up && x.mantissa != 0);
    }
    let (whole, rest) = (x.mantissa >> shift, x.mantissa & ((1 << shift) - 1));
    let half = 1 << (shift - 1);
    let up = match rounding {
        Rounding::Nearest => rest > half || (rest == half && whole & 1 == 1),
        Rounding::Away => rest >= half,
        Rounding::Zero => false,
        Rounding::Down => x.negative && rest != 0,
        Rounding::Up => !x.negative && rest != 0,
    };
    whole + u128::from(up)
}

fn limits(ty: Type) -> (i128, i128) {
    let bits = ty.bits();
    match ty {
        Type::Signed(_) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    }
}

fn to_integer(op: &Convert, to: Type, from: Format, a: u64) -> u64 {
    let a = truncate(a, from.bits());
    let a = if op.ftz && from == Format::F32 { flush(from, a) } else { a };
    let (low, high) = limits(to);
    let value = match unpack(from, a) {
        // Zero, but 2^(n-1) from f64 or to 64 bits.
        Value::Nan if from != Format::F64 && to.bits() < 64 => 0,
        Value::Nan => 1 << (to.bits() - 1),
        Value::Infinity(true) => low,
        Value::Infinity(false) => high,
        Value::Finite(x) => {
            let whole = whole_part(x, op.to_integer.unwrap_or(Rounding::Zero)) as i128;
            (if x.negative { -whole } else { whole }).clamp(low, high)
        }
    };
    number(to, value as u64) as u64
}

fn number(ty: Type, a: u64) -> i128 {
    match ty {
        Type::Signed(bits) => i128::from(extend(a, bits)),
        _ => i128::from(truncate(a, ty.bits())),
    }
}

fn from_integer(op: &Convert, to: Format, from: Type, a: u64) -> u64 {
    let value = number(from, a);
    let (negative, mantissa) = (value < 0, value.unsigned_abs());
    let result = round(to, Finite { negative, mantissa, exponent: 0 }, false, op.rounding);
    if op.sat {
        return if negative { 0 } else { result.min(from_f64(to, 1.0)) };
    }
    result
}

/// Truncation, or clamping with `.sat`; narrow results are extended to the register.
fn between_integers(op: &Convert, to: Type, from: Type, a: u64) -> u64 {
    let value = number(from, a);
    let (low, high) = limits(to);
    let value = if op.sat { value.clamp(low, high) } else { value };
    number(to, value as u64) as u64
}
