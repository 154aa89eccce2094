//! Scalar computations of element-wise instructions and reducers.
//!
//! Source: OpenXLA, "Operation Semantics". What it leaves open is as XLA does on CPUs: integers
//! divided by zero give -1 (all bits set), the remainder is then the dividend, shifts by the width
//! or more leave zeroes or copies of the sign, and floats out of range become the nearest integer.

use super::{
    Scalar, builtin,
    coding::{decode, encode, normalize},
    complex, compute_type, resize_float, storage_type, to_bits,
};
use melior::ir::{Attribute as MlirAttribute, Type, ValueLike};
use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::{
        ArrayLiteral, Attribute, ComparisonType, Direction, Instruction, Opcode,
        Value as AttributeValue,
    },
    imap::CombinerKind,
    mlir::{self, Builder, Val},
};

/// An operand of an element-wise instruction: its type and its value.
pub type Operand<'c> = (ElementType, Scalar<'c>);

/// Whether an instruction computes each element of its result from the elements at the same
/// position, so that [`apply`] can compute one.
pub fn is_element_wise(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Abs | Acos
            | Acosh
            | Add
            | And
            | Asin
            | Asinh
            | Atan2
            | Atanh
            | Cbrt
            | Ceil
            | Clamp
            | Compare
            | Complex
            | Convert
            | Copy
            | Cosh
            | Cosine
            | CountLeadingZeros
            | Divide
            | Erf
            | Exponential
            | ExponentialMinusOne
            | Floor
            | Imag
            | IsFinite
            | Log
            | LogPlusOne
            | Logistic
            | Maximum
            | Minimum
            | Mulhi
            | Multiply
            | Negate
            | Not
            | Or
            | Popcnt
            | Power
            | Real
            | ReducePrecision
            | Remainder
            | RoundNearestAfz
            | RoundNearestEven
            | Rsqrt
            | Select
            | ShiftLeft
            | ShiftRightArithmetic
            | ShiftRightLogical
            | Sign
            | Sine
            | Sinh
            | Sqrt
            | StochasticConvert
            | Subtract
            | Tan
            | Tanh
            | Xor
    )
}

/// The value of an element-wise instruction for one element.
///
/// # Errors
/// The instruction is not defined on these types, or not supported.
pub fn apply<'c>(
    b: &Builder<'c>,
    instruction: &Instruction,
    operands: &[Operand<'c>],
) -> Result<Scalar<'c>, String> {
    let element = instruction.array().map_or(ElementType::Pred, |array| array.element_type);
    let value = |number: usize| operands[number].1[0];
    let (input, _) = &operands[0];
    Ok(match instruction.opcode {
        Opcode::Copy => operands[0].1.clone(),
        Opcode::Convert => convert(b, *input, element, &operands[0].1),
        Opcode::StochasticConvert => {
            vec![stochastic_convert(b, *input, element, value(0), (operands[1].0, value(1)))?]
        }
        Opcode::Select => {
            let pick = |(yes, no): (&Val<'c>, &Val<'c>)| b.select(value(0), *yes, *no);
            operands[1].1.iter().zip(&operands[2].1).map(pick).collect()
        }
        Opcode::Complex => vec![value(0), value(1)],
        Opcode::Real => vec![value(0)],
        Opcode::Imag if input.is_complex() => vec![operands[0].1[1]],
        Opcode::Imag => vec![b.float(compute_type(b, element), 0.0)],
        Opcode::Clamp => {
            let low = extremum(b, element, Opcode::Maximum, value(0), value(1));
            vec![extremum(b, element, Opcode::Minimum, low, value(2))]
        }
        Opcode::Compare => vec![compare(b, instruction, operands)?],
        opcode if input.is_complex() => {
            let scalars: Vec<_> = operands.iter().map(|(_, scalar)| scalar.as_slice()).collect();
            complex::apply(b, opcode, *input, &scalars)?
        }
        Opcode::IsFinite => {
            let magnitude = b.value("math.absf", &[value(0)], value(0).r#type());
            vec![b.compare_float("olt", magnitude, b.float(magnitude.r#type(), f64::INFINITY))]
        }
        Opcode::ReducePrecision => {
            let bits = |attribute| instruction.integer(attribute).unwrap_or(0);
            let (exponent, mantissa) =
                (bits(Attribute::ExponentBits), bits(Attribute::MantissaBits));
            let reduced = reduce_precision(b, element, value(0), exponent, mantissa);
            vec![normalize(b, element, reduced)]
        }
        opcode => {
            let values: Vec<_> = operands.iter().map(|(_, scalar)| scalar[0]).collect();
            let result = match element.kind() {
                ElementKind::Float => float(b, opcode, element, &values)?,
                ElementKind::Pred => truth(b, opcode, &values)?,
                _ => integer(b, opcode, element, &values)?,
            };
            vec![normalize(b, element, result)]
        }
    })
}

/// The value of an opcode on floats or complex numbers of a type that is computed as it is stored.
///
/// # Errors
/// The opcode is not supported on them.
pub fn arithmetic<'c>(
    b: &Builder<'c>,
    opcode: Opcode,
    element: ElementType,
    operands: &[Scalar<'c>],
) -> Result<Scalar<'c>, String> {
    if element.is_complex() {
        let operands: Vec<_> = operands.iter().map(Vec::as_slice).collect();
        return complex::apply(b, opcode, element, &operands);
    }
    let values: Vec<_> = operands.iter().map(|scalar| scalar[0]).collect();
    Ok(vec![float(b, opcode, element, &values)?])
}

/// A constant scalar.
pub fn constant<'c>(b: &Builder<'c>, literal: &ArrayLiteral, position: usize) -> Scalar<'c> {
    let ty = compute_type(b, literal.element_type);
    let numbers = numbers(b, literal, position, literal.element_type);
    numbers.into_iter().map(|number| b.constant(ty, number)).collect()
}

/// The numbers of an element of a literal, in the type with which bodies calculate for `element`, which
/// is as exact as that of the literal.
pub fn numbers<'c>(
    b: &Builder<'c>,
    literal: &ArrayLiteral,
    position: usize,
    element: ElementType,
) -> Vec<MlirAttribute<'c>> {
    let ty = compute_type(b, element);
    if let Some((real, imaginary)) = literal.complex(position) {
        return vec![mlir::float(b.context, ty, real), mlir::float(b.context, ty, imaginary)];
    }
    vec![match literal.float(position) {
        Some(value) => mlir::float(b.context, ty, value),
        None => {
            let value = literal.integer(position).unwrap_or(0) as i64;
            mlir::integer(b.context, ty, value)
        }
    }]
}

fn unsupported<T>(opcode: Opcode, element: ElementType) -> Result<T, String> {
    Err(format!("'{opcode}' of '{element}' is not supported"))
}

fn truth<'c>(b: &Builder<'c>, opcode: Opcode, x: &[Val<'c>]) -> Result<Val<'c>, String> {
    let name = match opcode {
        Opcode::Add | Opcode::Or | Opcode::Maximum => "arith.ori",
        Opcode::Multiply | Opcode::And | Opcode::Minimum => "arith.andi",
        Opcode::Xor | Opcode::Subtract => "arith.xori",
        Opcode::Not => return Ok(not(b, x[0])),
        _ => return unsupported(opcode, ElementType::Pred),
    };
    Ok(b.value(name, &[x[0], x[1]], b.int_type(1)))
}

pub fn not<'c>(b: &Builder<'c>, truth: Val<'c>) -> Val<'c> {
    b.value("arith.xori", &[truth, b.integer(b.int_type(1), 1)], b.int_type(1))
}

fn extremum<'c>(
    b: &Builder<'c>,
    element: ElementType,
    opcode: Opcode,
    x: Val<'c>,
    y: Val<'c>,
) -> Val<'c> {
    let is_max = opcode == Opcode::Maximum;
    let name = match (element.kind(), is_max) {
        (ElementKind::Float, true) => "arith.maximumf",
        (ElementKind::Float, false) => "arith.minimumf",
        (ElementKind::Signed, true) => "arith.maxsi",
        (ElementKind::Signed, false) => "arith.minsi",
        (_, true) => "arith.maxui",
        (_, false) => "arith.minui",
    };
    b.value(name, &[x, y], x.r#type())
}

fn integer<'c>(
    b: &Builder<'c>,
    opcode: Opcode,
    element: ElementType,
    x: &[Val<'c>],
) -> Result<Val<'c>, String> {
    let ty = x[0].r#type();
    let signed = element.kind() == ElementKind::Signed;
    let constant = |value: i64| b.integer(ty, value);
    let binary = |name: &str| b.value(name, &[x[0], x[1]], ty);
    let (zero, one) = (constant(0), constant(1));
    Ok(match opcode {
        Opcode::Add => binary("arith.addi"),
        Opcode::Subtract => binary("arith.subi"),
        Opcode::Multiply => binary("arith.muli"),
        Opcode::And => binary("arith.andi"),
        Opcode::Or => binary("arith.ori"),
        Opcode::Xor => binary("arith.xori"),
        Opcode::Not => b.value("arith.xori", &[x[0], constant(-1)], ty),
        Opcode::Negate => b.value("arith.subi", &[zero, x[0]], ty),
        Opcode::Maximum | Opcode::Minimum => extremum(b, element, opcode, x[0], x[1]),
        Opcode::Abs if signed => {
            let negative = b.value("arith.subi", &[zero, x[0]], ty);
            b.select(b.compare_int("slt", x[0], zero), negative, x[0])
        }
        Opcode::Abs => x[0],
        Opcode::Sign if signed => {
            let some = b.select(b.compare_int("slt", x[0], zero), constant(-1), one);
            b.select(b.compare_int("eq", x[0], zero), zero, some)
        }
        Opcode::Sign => b.select(b.compare_int("eq", x[0], zero), zero, one),
        Opcode::Divide | Opcode::Remainder => divide(b, opcode, signed, x[0], x[1]),
        Opcode::Power => power(b, element, x[0], x[1]),
        Opcode::Mulhi => {
            let name = if signed { "arith.mulsi_extended" } else { "arith.mului_extended" };
            mlir::result(b.op(name, x, &[ty, ty]), 1)
        }
        Opcode::Popcnt => {
            let bits = low_bits(b, element, x[0]);
            b.value("math.ctpop", &[bits], ty)
        }
        Opcode::CountLeadingZeros => {
            let zeros = b.value("math.ctlz", &[low_bits(b, element, x[0])], ty);
            let width = i64::from(element.bits());
            b.value("arith.subi", &[zeros, constant(width.max(8) - width)], ty)
        }
        Opcode::ShiftLeft | Opcode::ShiftRightLogical | Opcode::ShiftRightArithmetic => {
            let width = i64::from(element.bits());
            let fits = b.compare_int("ult", x[1], constant(width));
            // What does not fit would be poison.
            let last = constant(width - 1);
            let amount = b.select(fits, x[1], last);
            match opcode {
                Opcode::ShiftLeft => {
                    b.select(fits, b.value("arith.shli", &[x[0], amount], ty), zero)
                }
                Opcode::ShiftRightLogical => {
                    let bits = low_bits(b, element, x[0]);
                    b.select(fits, b.value("arith.shrui", &[bits, amount], ty), zero)
                }
                _ => {
                    let unused = constant((width.max(8)) - width);
                    let high = b.value("arith.shli", &[x[0], unused], ty);
                    let value = b.value("arith.shrsi", &[high, unused], ty);
                    b.value("arith.shrsi", &[value, amount], ty)
                }
            }
        }
        _ => return unsupported(opcode, element),
    })
}

/// The bits that count, without a copy of the sign in the others.
fn low_bits<'c>(b: &Builder<'c>, element: ElementType, x: Val<'c>) -> Val<'c> {
    if 8 <= element.bits() {
        return x;
    }
    let mask = b.integer(x.r#type(), (1 << element.bits()) - 1);
    b.value("arith.andi", &[x, mask], x.r#type())
}

/// Quotient or remainder towards zero. By 0, the quotient has all bits set and the remainder is
/// the dividend; the least number divided by -1 stays.
fn divide<'c>(b: &Builder<'c>, opcode: Opcode, signed: bool, x: Val<'c>, y: Val<'c>) -> Val<'c> {
    let ty = x.r#type();
    let constant = |value: i64| b.integer(ty, value);
    let is_quotient = opcode == Opcode::Divide;
    let by_zero = b.compare_int("eq", y, constant(0));
    if !signed {
        let divisor = b.select(by_zero, constant(1), y);
        let name = if is_quotient { "arith.divui" } else { "arith.remui" };
        let result = b.value(name, &[x, divisor], ty);
        return b.select(by_zero, if is_quotient { constant(-1) } else { x }, result);
    }
    let by_minus_one = b.compare_int("eq", y, constant(-1));
    let special = b.value("arith.ori", &[by_zero, by_minus_one], b.int_type(1));
    let divisor = b.select(special, constant(1), y);
    let name = if is_quotient { "arith.divsi" } else { "arith.remsi" };
    let result = b.value(name, &[x, divisor], ty);
    if is_quotient {
        let negative = b.value("arith.subi", &[constant(0), x], ty);
        let result = b.select(by_minus_one, negative, result);
        b.select(by_zero, constant(-1), result)
    } else {
        // By 1 instead of -1 the remainder is 0 as well.
        b.select(by_zero, x, result)
    }
}

/// An integer power by repeated squaring. A negative exponent leaves 0, but for bases 1 and -1.
fn power<'c>(b: &Builder<'c>, element: ElementType, base: Val<'c>, exponent: Val<'c>) -> Val<'c> {
    let ty = base.r#type();
    let constant = |value: i64| b.integer(ty, value);
    let (mut result, mut square) = (constant(1), base);
    for bit in 0..element.bits() {
        let one = b.value("arith.shrui", &[exponent, constant(i64::from(bit))], ty);
        let one = b.value("arith.andi", &[one, constant(1)], ty);
        let is_set = b.compare_int("ne", one, constant(0));
        result = b.select(is_set, b.value("arith.muli", &[result, square], ty), result);
        square = b.value("arith.muli", &[square, square], ty);
    }
    if element.kind() != ElementKind::Signed {
        return result;
    }
    let odd = b.value("arith.andi", &[exponent, constant(1)], ty);
    let is_odd = b.compare_int("ne", odd, constant(0));
    let of_minus_one = b.select(is_odd, constant(-1), constant(1));
    let is_minus_one = b.compare_int("eq", base, constant(-1));
    let is_one = b.compare_int("eq", base, constant(1));
    let inverse = b.select(is_one, constant(1), constant(0));
    let inverse = b.select(is_minus_one, of_minus_one, inverse);
    b.select(b.compare_int("slt", exponent, constant(0)), inverse, result)
}

/// The scalar built-in of an opcode, if there is one.
pub fn builtin_of(opcode: Opcode) -> Option<&'static str> {
    Some(match opcode {
        Opcode::Acos => "acos",
        Opcode::Acosh => "acosh",
        Opcode::Asin => "asin",
        Opcode::Asinh => "asinh",
        Opcode::Atan2 => "atan2",
        Opcode::Atanh => "atanh",
        Opcode::Cbrt => "cbrt",
        Opcode::Cosh => "cosh",
        Opcode::Cosine => "cos",
        Opcode::Erf => "erf",
        Opcode::Exponential => "exp",
        Opcode::ExponentialMinusOne => "expm1",
        Opcode::Log => "log",
        Opcode::LogPlusOne => "log1p",
        Opcode::Power => "pow",
        Opcode::Remainder => "fmod",
        Opcode::RoundNearestAfz => "round",
        Opcode::Sine => "sin",
        Opcode::Sinh => "sinh",
        Opcode::Tan => "tan",
        Opcode::Tanh => "tanh",
        _ => return None,
    })
}

fn float<'c>(
    b: &Builder<'c>,
    opcode: Opcode,
    element: ElementType,
    x: &[Val<'c>],
) -> Result<Val<'c>, String> {
    let ty = x[0].r#type();
    if let Some(name) = builtin_of(opcode) {
        return Ok(builtin(b, name, x));
    }
    let unary = |name: &str| b.value(name, &[x[0]], ty);
    let binary = |name: &str| b.value(name, &[x[0], x[1]], ty);
    let (zero, one) = (b.float(ty, 0.0), b.float(ty, 1.0));
    Ok(match opcode {
        Opcode::Add => binary("arith.addf"),
        Opcode::Subtract => binary("arith.subf"),
        Opcode::Multiply => binary("arith.mulf"),
        Opcode::Divide => binary("arith.divf"),
        Opcode::Maximum | Opcode::Minimum => extremum(b, element, opcode, x[0], x[1]),
        Opcode::Abs => unary("math.absf"),
        Opcode::Negate => unary("arith.negf"),
        Opcode::Ceil => unary("math.ceil"),
        Opcode::Floor => unary("math.floor"),
        Opcode::RoundNearestEven => unary("math.roundeven"),
        Opcode::Sqrt => unary("math.sqrt"),
        Opcode::Rsqrt => b.value("arith.divf", &[one, unary("math.sqrt")], ty),
        Opcode::Logistic => {
            let power = builtin(b, "exp", &[unary("arith.negf")]);
            b.value("arith.divf", &[one, b.value("arith.addf", &[one, power], ty)], ty)
        }
        Opcode::Sign => {
            let sign = b.value("math.copysign", &[one, x[0]], ty);
            // Zeroes keep their sign, and NaN stays.
            let is_some = b.compare_float("one", x[0], zero);
            b.select(is_some, sign, x[0])
        }
        _ => return unsupported(opcode, element),
    })
}

/// Rounds to a float format of fewer bits, ties to even; what is too large becomes infinite and
/// what is too small zero.
fn reduce_precision<'c>(
    b: &Builder<'c>,
    element: ElementType,
    x: Val<'c>,
    exponent_bits: i64,
    mantissa_bits: i64,
) -> Val<'c> {
    let ty = x.r#type();
    let (width, full_mantissa, full_exponent) = match element {
        ElementType::F64 => (64, 52, 11),
        ElementType::F16 => (16, 10, 5),
        _ => (32, 23, 8),
    };
    let int_type = b.int_type(width);
    let constant = |value: i64| b.integer(int_type, value);
    let mut bits = b.value("arith.bitcast", &[x], int_type);
    if mantissa_bits < full_mantissa {
        let dropped = full_mantissa - mantissa_bits;
        let last = b.value("arith.shrui", &[bits, constant(dropped)], int_type);
        let odd = b.value("arith.andi", &[last, constant(1)], int_type);
        let half = constant((1 << (dropped - 1)) - 1);
        let bias = b.value("arith.addi", &[odd, half], int_type);
        let sum = b.value("arith.addi", &[bits, bias], int_type);
        bits = b.value("arith.andi", &[sum, constant(!((1 << dropped) - 1))], int_type);
    }
    if exponent_bits < full_exponent {
        let sign_mask = if width == 64 { i64::MIN } else { 1 << (width - 1) };
        let exponent_mask = ((1 << full_exponent) - 1) << full_mantissa;
        let bias = |bits: i64| (1 << (bits - 1)) - 1;
        let (full, reduced) = (bias(full_exponent), bias(exponent_bits.max(1)));
        // The exponents of the greatest numbers, and the one below those of the least.
        let greatest = (full + reduced) << full_mantissa;
        let least = (full - reduced) << full_mantissa;
        let exponent = b.value("arith.andi", &[bits, constant(exponent_mask)], int_type);
        let sign = b.value("arith.andi", &[bits, constant(sign_mask)], int_type);
        let infinite = b.value("arith.ori", &[sign, constant(exponent_mask)], int_type);
        let is_large = b.compare_int("ugt", exponent, constant(greatest));
        bits = b.select(is_large, infinite, bits);
        let is_small = b.compare_int("ule", exponent, constant(least));
        bits = b.select(is_small, sign, bits);
    }
    let reduced = b.value("arith.bitcast", &[bits], ty);
    b.select(b.compare_float("uno", x, x), x, reduced)
}

fn compare<'c>(
    b: &Builder<'c>,
    instruction: &Instruction,
    operands: &[Operand<'c>],
) -> Result<Val<'c>, String> {
    let Some(AttributeValue::Direction(direction)) = instruction.attribute(Attribute::Direction)
    else {
        return Err("'compare' without 'direction'".to_string());
    };
    let (element, x) = &operands[0];
    let y = &operands[1].1;
    if element.is_complex() {
        let equal = |part: usize| b.compare_float("oeq", x[part], y[part]);
        let both = b.value("arith.andi", &[equal(0), equal(1)], b.int_type(1));
        return match direction {
            Direction::Eq => Ok(both),
            Direction::Ne => Ok(not(b, both)),
            _ => unsupported(Opcode::Compare, *element),
        };
    }
    if !element.is_float() {
        let signed = element.kind() == ElementKind::Signed;
        return Ok(b.compare_int(integer_predicate(*direction, signed), x[0], y[0]));
    }
    let total = matches!(
        instruction.attribute(Attribute::Type),
        Some(AttributeValue::ComparisonType(ComparisonType::TotalOrder))
    );
    if total {
        let (x, y) = (total_order(b, x[0]), total_order(b, y[0]));
        return Ok(b.compare_int(integer_predicate(*direction, true), x, y));
    }
    let predicate = match direction {
        Direction::Eq => "oeq",
        Direction::Ne => "une",
        Direction::Ge => "oge",
        Direction::Gt => "ogt",
        Direction::Le => "ole",
        Direction::Lt => "olt",
    };
    Ok(b.compare_float(predicate, x[0], y[0]))
}

fn integer_predicate(direction: Direction, signed: bool) -> &'static str {
    match (direction, signed) {
        (Direction::Eq, _) => "eq",
        (Direction::Ne, _) => "ne",
        (Direction::Ge, true) => "sge",
        (Direction::Gt, true) => "sgt",
        (Direction::Le, true) => "sle",
        (Direction::Lt, true) => "slt",
        (Direction::Ge, false) => "uge",
        (Direction::Gt, false) => "ugt",
        (Direction::Le, false) => "ule",
        (Direction::Lt, false) => "ult",
    }
}

/// A signed integer that orders floats as `-NaN < -inf < .. < -0 < 0 < .. < inf < NaN`.
pub fn total_order<'c>(b: &Builder<'c>, x: Val<'c>) -> Val<'c> {
    let ty = b.int_type(8 * mlir::byte_width(x.r#type()));
    let bits = b.value("arith.bitcast", &[x], ty);
    flip_negative(b, bits)
}

/// Negative integers with all bits flipped but the sign. Twice, it changes nothing.
pub fn flip_negative<'c>(b: &Builder<'c>, bits: Val<'c>) -> Val<'c> {
    let ty = bits.r#type();
    let width = 8 * mlir::byte_width(ty);
    let sign = b.value("arith.shrsi", &[bits, b.integer(ty, i64::from(width) - 1)], ty);
    let others = b.integer(ty, if width == 64 { i64::MAX } else { (1 << (width - 1)) - 1 });
    let flipped = b.value("arith.andi", &[sign, others], ty);
    b.value("arith.xori", &[bits, flipped], ty)
}

/// The same number in another type.
pub fn convert<'c>(
    b: &Builder<'c>,
    from: ElementType,
    to: ElementType,
    x: &[Val<'c>],
) -> Scalar<'c> {
    if to.is_complex() {
        let imaginary = match x.get(1) {
            Some(imaginary) => convert_part(b, from.part(), to.part(), *imaginary),
            None => b.float(compute_type(b, to), 0.0),
        };
        return vec![convert_part(b, from.part(), to.part(), x[0]), imaginary];
    }
    vec![convert_part(b, from.part(), to, x[0])]
}

fn convert_part<'c>(b: &Builder<'c>, from: ElementType, to: ElementType, x: Val<'c>) -> Val<'c> {
    let (source, target) = (x.r#type(), compute_type(b, to));
    if from == to {
        return x;
    }
    if to == ElementType::Pred {
        return if from.is_float() {
            b.compare_float("une", x, b.float(source, 0.0))
        } else {
            b.compare_int("ne", x, b.integer(source, 0))
        };
    }
    let converted = match (from.is_float(), to.is_float()) {
        (true, true) => resize_float(b, x, target),
        (false, true) if from.kind() == ElementKind::Signed => {
            b.value("arith.sitofp", &[x], target)
        }
        (false, true) => b.value("arith.uitofp", &[x], target),
        (true, false) => float_to_integer(b, to, x),
        (false, false) => {
            let (have, want) = (
                mlir::integer_width(source).unwrap_or(0),
                mlir::integer_width(target).unwrap_or(0),
            );
            let signed = from.kind() == ElementKind::Signed;
            match have.cmp(&want) {
                std::cmp::Ordering::Equal => x,
                std::cmp::Ordering::Greater => b.value("arith.trunci", &[x], target),
                std::cmp::Ordering::Less if signed => b.value("arith.extsi", &[x], target),
                std::cmp::Ordering::Less => b.value("arith.extui", &[x], target),
            }
        }
    };
    normalize(b, to, converted)
}

/// A float as an integer, rounded up in magnitude as often as its fraction says: where a random
/// number, taken as a fraction, is below that. As XLA, `StochasticConvert` in `hlo_evaluator`.
fn stochastic_convert<'c>(
    b: &Builder<'c>,
    from: ElementType,
    to: ElementType,
    x: Val<'c>,
    (random_type, random): (ElementType, Val<'c>),
) -> Result<Val<'c>, String> {
    if to.kind() != ElementKind::Signed {
        return Err(format!(
            "'{}' from '{from}' to '{to}' is not supported; try a signed integer type",
            Opcode::StochasticConvert
        ));
    }
    let (float, wide) = (x.r#type(), Type::float64(b.context));
    let truncated = float_to_integer(b, to, x);
    let ty = truncated.r#type();
    let whole = b.value("arith.sitofp", &[truncated], float);
    let fraction = b.value("math.absf", &[b.value("arith.subf", &[x, whole], float)], float);
    // Of an infinity and of NaN there is none.
    let is_number = b.compare_float("olt", fraction, b.float(float, 1.0));
    let fraction = resize_float(b, b.select(is_number, fraction, b.float(float, 0.0)), wide);
    let scale = b.float(wide, f64::from(random_type.bits()).exp2());
    let scaled = b.value("arith.mulf", &[fraction, scale], wide);
    let threshold = b.value("arith.fptoui", &[scaled], random.r#type());
    let is_below = b.compare_int("ult", random, threshold);
    // What is at an end of the type was moved there.
    let (least, greatest) = to.integer_range();
    let is_least = b.compare_int("eq", truncated, b.integer(ty, least as i64));
    let is_greatest = b.compare_int("eq", truncated, b.integer(ty, greatest as i64));
    let is_end = b.value("arith.ori", &[is_least, is_greatest], b.int_type(1));
    let is_negative = b.compare_float("olt", x, b.float(float, 0.0));
    let step = b.select(is_negative, b.integer(ty, -1), b.integer(ty, 1));
    let next = b.value("arith.addi", &[truncated, step], ty);
    let moves = b.value("arith.andi", &[is_below, not(b, is_end)], b.int_type(1));
    Ok(b.select(moves, next, truncated))
}

/// The integer next to a float towards zero; the nearest one there is if it is out of range, and
/// 0 for NaN.
fn float_to_integer<'c>(b: &Builder<'c>, to: ElementType, x: Val<'c>) -> Val<'c> {
    let (source, target) = (x.r#type(), compute_type(b, to));
    let (low, high) = to.integer_range();
    // f16 does not reach all bounds.
    let x =
        if mlir::byte_width(source) < 4 { resize_float(b, x, Type::float32(b.context)) } else { x };
    let source = x.r#type();
    let constant = |value: f64| b.float(source, value);
    // Both bounds are 0 or powers of two, so that they are floats.
    let is_high = b.compare_float("oge", x, constant((high + 1) as f64));
    let is_low = b.compare_float("olt", x, constant(low as f64));
    let is_nan = b.compare_float("uno", x, x);
    let out = b.value("arith.ori", &[is_high, is_low], b.int_type(1));
    let out = b.value("arith.ori", &[out, is_nan], b.int_type(1));
    let inside = b.select(out, constant(0.0), x);
    let name = if to.kind() == ElementKind::Signed { "arith.fptosi" } else { "arith.fptoui" };
    let value = b.value(name, &[inside], target);
    let value = b.select(is_high, b.integer(target, high as i64), value);
    b.select(is_low, b.integer(target, low as i64), value)
}

/// The bits of an element as another type of the same width.
pub fn bitcast<'c>(b: &Builder<'c>, from: ElementType, to: ElementType, x: Val<'c>) -> Val<'c> {
    decode(b, to, to_bits(b, encode(b, from, x), storage_type(b, to)))
}

/// The combiner that an opcode is on a type that is computed as it is stored, or summed in `f32`.
pub fn combiner(opcode: Opcode, element: ElementType) -> Option<CombinerKind> {
    if element.bits() < 8 && !element.is_float() {
        return None;
    }
    Some(match (opcode, element.kind()) {
        (Opcode::Add | Opcode::Or | Opcode::Maximum, ElementKind::Pred) => CombinerKind::Or,
        (Opcode::Multiply | Opcode::And | Opcode::Minimum, ElementKind::Pred) => CombinerKind::And,
        (Opcode::Add, ElementKind::Float) => CombinerKind::Add,
        (Opcode::Multiply, ElementKind::Float) => CombinerKind::Mul,
        (Opcode::Maximum, ElementKind::Float) => CombinerKind::MaximumF,
        (Opcode::Minimum, ElementKind::Float) => CombinerKind::MinimumF,
        (_, ElementKind::Float | ElementKind::Complex | ElementKind::Pred) => return None,
        (Opcode::Add, _) => CombinerKind::Add,
        (Opcode::Multiply, _) => CombinerKind::Mul,
        (Opcode::And, _) => CombinerKind::And,
        (Opcode::Or, _) => CombinerKind::Or,
        (Opcode::Maximum, ElementKind::Signed) => CombinerKind::MaxS,
        (Opcode::Minimum, ElementKind::Signed) => CombinerKind::MinS,
        (Opcode::Maximum, _) => CombinerKind::MaxU,
        (Opcode::Minimum, _) => CombinerKind::MinU,
        _ => return None,
    })
}
