//! Between stored and computed elements: `bf16`, the 8-bit and 4-bit floats, and integers of
//! fewer than 8 bits.

use super::{compute_type, is_narrow, storage_type};
use melior::ir::Type;
use tc_dialects::{
    element::{ElementKind, ElementType},
    mlir::{self, Builder, Val},
};

/// From the storage type to the compute type.
pub fn decode<'c>(b: &Builder<'c>, element: ElementType, stored: Val<'c>) -> Val<'c> {
    match element {
        element if !is_narrow(element) => stored,
        ElementType::BF16 => b.value("arith.extf", &[stored], Type::float32(b.context)),
        element => decode_by_table(b, element, stored),
    }
}

/// A type of at most 256 values: what the bits stand for is looked up.
fn decode_by_table<'c>(b: &Builder<'c>, element: ElementType, stored: Val<'c>) -> Val<'c> {
    let codes = 1_u64 << element.bits();
    let bits = |code: u64| (element.decode_float(code) as f32).to_bits();
    let values: Vec<_> = (0..codes).map(|code| format!("0x{:08X}", bits(code))).collect();
    let text = format!("dense<[{}]> : tensor<{codes}xf32>", values.join(", "));
    let ty = mlir::tensor_type(&[Some(codes as i64)], Type::float32(b.context));
    let table = b.constant(ty, mlir::parse_attribute(b.context, &text));
    let mask = b.integer(b.int_type(8), (codes - 1) as i64);
    let code = b.value("arith.andi", &[stored, mask], b.int_type(8));
    let index = b.value("arith.index_castui", &[code], b.index_type());
    b.value("tensor.extract", &[table, index], Type::float32(b.context))
}

/// From the compute type to the storage type, rounded to nearest, ties to even.
pub fn encode<'c>(b: &Builder<'c>, element: ElementType, value: Val<'c>) -> Val<'c> {
    match element {
        element if !is_narrow(element) => value,
        ElementType::BF16 => b.value("arith.truncf", &[value], Type::bfloat16(b.context)),
        element => Format::of(element).encode(b, value),
    }
}

/// The bits of a stored element, with zeros above them.
pub fn low_bits<'c>(b: &Builder<'c>, element: ElementType, stored: Val<'c>) -> Val<'c> {
    let bits = element.bits();
    if element.kind() == ElementKind::Pred || 8 <= bits {
        return stored;
    }
    let ty = b.int_type(8);
    b.value("arith.andi", &[stored, b.integer(ty, (1 << bits) - 1)], ty)
}

/// What is stored of an element with these bits, above which there may be anything.
pub fn from_low_bits<'c>(b: &Builder<'c>, element: ElementType, bits: Val<'c>) -> Val<'c> {
    match element.is_integer() {
        true => normalize(b, element, bits),
        false => low_bits(b, element, bits),
    }
}

/// What an operation leaves in the compute type, as the element type holds it.
pub fn normalize<'c>(b: &Builder<'c>, element: ElementType, value: Val<'c>) -> Val<'c> {
    if is_narrow(element) {
        return decode(b, element, encode(b, element, value));
    }
    let bits = element.bits();
    if !element.is_integer() || 8 <= bits {
        return value;
    }
    // The low bits, extended.
    let ty = b.int_type(8);
    let unused = b.integer(ty, i64::from(8 - bits));
    let shift = if element.kind() == ElementKind::Signed { "arith.shrsi" } else { "arith.shrui" };
    b.value(shift, &[b.value("arith.shli", &[value, unused], ty), unused], ty)
}

/// What rounding to a small float needs to know of it.
struct Format {
    element: ElementType,
    mantissa: u32,
    bias: i32,
    /// The bits of the greatest finite value.
    greatest: u64,
    /// The bits of infinity, if there is one, without the sign.
    infinity: Option<u64>,
    has_negative_zero: bool,
}

impl Format {
    fn of(element: ElementType) -> Self {
        let (mantissa, bias) = match element {
            ElementType::F4E2M1FN => (1, 1),
            ElementType::F8E3M4 => (4, 3),
            ElementType::F8E4M3 | ElementType::F8E4M3FN => (3, 7),
            ElementType::F8E4M3B11FNUZ => (3, 11),
            ElementType::F8E4M3FNUZ => (3, 8),
            ElementType::F8E5M2 => (2, 15),
            ElementType::F8E5M2FNUZ => (2, 16),
            // F8E8M0FNU: an exponent alone.
            _ => (0, 127),
        };
        let sign = element.sign_bit();
        let codes = if sign == 0 { 1 << element.bits() } else { sign };
        let value = |bits: &u64| element.decode_float(*bits);
        let greatest = (0..codes).rev().find(|bits| value(bits).is_finite()).unwrap_or(0);
        let infinity = (0..codes).find(|bits| value(bits) == f64::INFINITY);
        let has_negative_zero = sign != 0 && value(&sign) == 0.0;
        Self { element, mantissa, bias, greatest, infinity, has_negative_zero }
    }

    fn encode<'c>(&self, b: &Builder<'c>, value: Val<'c>) -> Val<'c> {
        let ty = compute_type(b, self.element);
        let i32_type = b.int_type(32);
        let integer = |value: i64| b.integer(i32_type, value);
        let constant = |value: f64| b.float(ty, value);
        let magnitude = b.value("math.absf", &[value], ty);
        // Normal numbers: rounded on the bits of f32, where a carry runs into the exponent.
        let shift = i64::from(23 - self.mantissa);
        let bits = b.value("arith.bitcast", &[magnitude], i32_type);
        let high = b.value("arith.shrui", &[bits, integer(shift)], i32_type);
        // Ties go to even codes; powers of two alone take the larger.
        let is_power = self.element == ElementType::F8E8M0FNU;
        let mask = integer(1);
        let odd = if is_power { mask } else { b.value("arith.andi", &[high, mask], i32_type) };
        let bias = b.value("arith.addi", &[odd, integer((1 << (shift - 1)) - 1)], i32_type);
        let rounded = b.value("arith.addi", &[bits, bias], i32_type);
        let rounded = b.value("arith.shrui", &[rounded, integer(shift)], i32_type);
        let rebias = i64::from(127 - self.bias) << self.mantissa;
        let normal = b.value("arith.subi", &[rounded, integer(rebias)], i32_type);
        let mut result = if is_power {
            normal
        } else {
            // Subnormal numbers: a multiple of the least one.
            let least = 2f64.powi(1 - self.bias - self.mantissa as i32);
            let steps = b.value("arith.mulf", &[magnitude, constant(1.0 / least)], ty);
            let steps = b.value("math.roundeven", &[steps], ty);
            let limit = 2f64.powi(1 - self.bias);
            let is_subnormal = b.compare_float("olt", magnitude, constant(limit));
            // A large number of steps has no i32; it is not used then.
            let steps = b.select(is_subnormal, steps, constant(0.0));
            let steps = b.value("arith.fptoui", &[steps], i32_type);
            b.select(is_subnormal, steps, normal)
        };
        // Beyond the greatest finite value by half a step or more.
        let is_large = b.compare_int("sgt", result, integer(self.greatest as i64));
        let not_a_number = self.element.nan_bits().map(|nan| integer(nan as i64));
        let beyond = match (self.infinity, not_a_number) {
            (Some(infinity), _) => integer(infinity as i64),
            (None, Some(nan)) => nan,
            (None, None) => integer(self.greatest as i64),
        };
        result = b.select(is_large, beyond, result);
        let sign_bit = self.element.sign_bit();
        if sign_bit != 0 {
            let bits = b.value("arith.bitcast", &[value], i32_type);
            let mut is_negative = b.compare_int("slt", bits, integer(0));
            if !self.has_negative_zero {
                let is_zero = b.compare_int("eq", result, integer(0));
                let is_other =
                    b.value("arith.xori", &[is_zero, b.integer(b.int_type(1), 1)], b.int_type(1));
                is_negative = b.value("arith.andi", &[is_negative, is_other], b.int_type(1));
            }
            let negative = b.value("arith.ori", &[result, integer(sign_bit as i64)], i32_type);
            result = b.select(is_negative, negative, result);
        }
        if let Some(nan) = not_a_number {
            // Without zero and negative numbers, only what is above zero has a code.
            let is_nan = if is_power {
                b.compare_float("ule", value, constant(0.0))
            } else {
                b.compare_float("uno", value, value)
            };
            result = b.select(is_nan, nan, result);
        }
        b.value("arith.trunci", &[result], storage_type(b, self.element))
    }
}
