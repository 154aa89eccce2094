//! Types, constants, conversions and arithmetic of scalars.
//!
//! Values are signless in MLIR; signedness is in the operations, chosen by the
//! [`ScalarType`] of the source.

use crate::{
    imap::{Combiner, CombinerKind},
    mlir::{self, Builder, Val},
    tc::syntax::{
        ScalarType,
        ast::Reduction,
        checked::{ArithOp, CompareOp, Expr, ExprKind},
    },
};
use melior::{
    Context,
    ir::{Attribute, Type, r#type::IntegerType},
};

/// The type of a value in a body.
pub(super) fn value_type(context: &Context, scalar: ScalarType) -> Type<'_> {
    match scalar {
        ScalarType::Float16 => Type::float16(context),
        ScalarType::Float32 => Type::float32(context),
        ScalarType::Float64 => Type::float64(context),
        integer => IntegerType::new(context, integer.width()).into(),
    }
}

/// The type of an element of a tensor, which keeps that an integer is unsigned.
pub(super) fn element_type(context: &Context, scalar: ScalarType) -> Type<'_> {
    if scalar.is_unsigned_integer() {
        IntegerType::unsigned(context, scalar.width()).into()
    } else {
        value_type(context, scalar)
    }
}

/// The combiner of a reduction over elements of this type.
pub(super) fn combiner(op: Reduction, init: bool, scalar: ScalarType) -> Combiner {
    let kind = match (op, scalar) {
        (Reduction::Add | Reduction::Max, ScalarType::Bool) => CombinerKind::Or,
        (Reduction::Mul | Reduction::Min, ScalarType::Bool) => CombinerKind::And,
        (Reduction::Add, _) => CombinerKind::Add,
        (Reduction::Mul, _) => CombinerKind::Mul,
        (Reduction::Min, it) if it.is_float() => CombinerKind::MinF,
        (Reduction::Max, it) if it.is_float() => CombinerKind::MaxF,
        (Reduction::Min, it) if it.is_unsigned_integer() => CombinerKind::MinU,
        (Reduction::Max, it) if it.is_unsigned_integer() => CombinerKind::MaxU,
        (Reduction::Min, _) => CombinerKind::MinS,
        (Reduction::Max, _) => CombinerKind::MaxS,
    };
    Combiner { kind, from_identity: init }
}

/// The value of a literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Literal {
    Int(i64),
    Float(f64),
}

impl Literal {
    /// The value of an expression that is a literal.
    pub(super) fn of(expr: &Expr) -> Option<Self> {
        match expr.kind {
            ExprKind::Int(value) => Some(Self::Int(value)),
            ExprKind::Bool(value) => Some(Self::Int(value.into())),
            ExprKind::Float { value, .. } => Some(Self::Float(value)),
            _ => None,
        }
    }

    /// The constant that a conversion to a type gives.
    pub(super) fn build<'c>(self, builder: &Builder<'c>, scalar: ScalarType) -> Val<'c> {
        let ty = value_type(builder.context, scalar);
        match self {
            Self::Int(value) if scalar.is_float() => builder.float(ty, value as f64),
            Self::Float(value) if scalar.is_float() => builder.float(ty, value),
            Self::Int(value) if scalar == ScalarType::Bool => {
                builder.integer(ty, (value != 0).into())
            }
            Self::Float(value) if scalar == ScalarType::Bool => {
                builder.integer(ty, (value != 0.0).into())
            }
            Self::Int(value) => builder.integer(ty, wrapped(value, scalar.width())),
            Self::Float(value) => builder.integer(ty, saturated(value, scalar)),
        }
    }
}

/// The low bits of a number as a signed one.
fn wrapped(value: i64, width: u32) -> i64 {
    let unused = 64 - width;
    (value << unused) >> unused
}

/// A float converted to an integer type; 0 for nan. The bits of the result, as a signed
/// number of its width.
fn saturated(value: f64, scalar: ScalarType) -> i64 {
    let width = scalar.width();
    if scalar.is_unsigned_integer() {
        let bits = (value as u64).min(u64::MAX >> (64 - width));
        wrapped(bits as i64, width)
    } else {
        let max = i64::MAX >> (64 - width);
        (value as i64).clamp(-max - 1, max)
    }
}

/// Converts a value from one type to another, as C does; floats saturate.
pub(super) fn convert<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    from: ScalarType,
    to: ScalarType,
) -> Val<'c> {
    let ty = value_type(builder.context, to);
    let name = match (from.is_float(), to.is_float()) {
        _ if from == to => return value,
        (true, _) if to == ScalarType::Bool => {
            let zero = builder.float(value_type(builder.context, from), 0.0);
            // Unordered: a nan is not 0, so that it is true.
            return builder.compare_float("une", value, zero);
        }
        (false, _) if to == ScalarType::Bool => {
            let zero = builder.integer(value_type(builder.context, from), 0);
            return builder.compare_int("ne", value, zero);
        }
        (true, true) if from.width() < to.width() => "arith.extf",
        (true, true) => "arith.truncf",
        (true, false) => return saturating(builder, value, from, to),
        (false, true) if from.is_signed_integer() => "arith.sitofp",
        (false, true) => "arith.uitofp",
        (false, false) if to.width() < from.width() => "arith.trunci",
        // The bits are the same, signed or not.
        (false, false) if to.width() == from.width() => return value,
        (false, false) if from.is_signed_integer() => "arith.extsi",
        (false, false) => "arith.extui",
    };
    builder.value(name, &[value], ty)
}

/// Converts a float to an integer. What `arith.fptosi` and `arith.fptoui` leave undefined
/// is selected away: the limits of every type are exact in `f32`, and so are the floats
/// next to them.
fn saturating<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    from: ScalarType,
    to: ScalarType,
) -> Val<'c> {
    // The limits of the wider integers are out of the range of `f16`.
    let (value, from) = if from == ScalarType::Float16 {
        (convert(builder, value, from, ScalarType::Float32), ScalarType::Float32)
    } else {
        (value, from)
    };
    let float = |limit: f64| builder.float(value_type(builder.context, from), limit);
    let ty = value_type(builder.context, to);
    let width = to.width();
    let width_power = i32::try_from(width).expect("a width of at most 64");
    if to.is_unsigned_integer() {
        let number = builder.value("arith.fptoui", &[value], ty);
        let below_end = builder.compare_float("olt", value, float(2f64.powi(width_power)));
        let number = builder.select(below_end, number, builder.integer(ty, -1));
        // Also for nan.
        let positive = builder.compare_float("ogt", value, float(0.0));
        builder.select(positive, number, builder.integer(ty, 0))
    } else {
        let end = 2f64.powi(width_power - 1);
        let max = i64::MAX >> (64 - width);
        let number = builder.value("arith.fptosi", &[value], ty);
        let below_end = builder.compare_float("olt", value, float(end));
        let number = builder.select(below_end, number, builder.integer(ty, max));
        let from_start = builder.compare_float("oge", value, float(-end));
        let number = builder.select(from_start, number, builder.integer(ty, -max - 1));
        let nan = builder.compare_float("uno", value, value);
        builder.select(nan, builder.integer(ty, 0), number)
    }
}

/// Converts a value to an index: integers as they are, floats truncated.
pub(super) fn to_index<'c>(builder: &Builder<'c>, value: Val<'c>, from: ScalarType) -> Val<'c> {
    let (value, from) = if from.is_float() {
        (convert(builder, value, from, ScalarType::Int64), ScalarType::Int64)
    } else {
        (value, from)
    };
    let name = if from.is_signed_integer() { "arith.index_cast" } else { "arith.index_castui" };
    builder.value(name, &[value], builder.index_type())
}

/// Converts an index to a value.
pub(super) fn from_index<'c>(builder: &Builder<'c>, value: Val<'c>, to: ScalarType) -> Val<'c> {
    let integer = if to.is_float() || to == ScalarType::Bool { ScalarType::Int64 } else { to };
    let ty = value_type(builder.context, integer);
    let value = builder.value("arith.index_cast", &[value], ty);
    convert(builder, value, integer, to)
}

/// `-value`.
pub(super) fn negate<'c>(builder: &Builder<'c>, value: Val<'c>, scalar: ScalarType) -> Val<'c> {
    let ty = value_type(builder.context, scalar);
    if scalar == ScalarType::Bool {
        value
    } else if scalar.is_float() {
        builder.value("arith.negf", &[value], ty)
    } else {
        let zero = builder.integer(ty, 0);
        builder.value("arith.subi", &[zero, value], ty)
    }
}

/// Arithmetic on two values of one type.
pub(super) fn arith<'c>(
    builder: &Builder<'c>,
    op: ArithOp,
    scalar: ScalarType,
    lhs: Val<'c>,
    rhs: Val<'c>,
) -> Val<'c> {
    let ty = value_type(builder.context, scalar);
    let unsigned = scalar.is_unsigned_integer();
    let name = match (op, scalar.is_float()) {
        (op, _) if scalar == ScalarType::Bool => match op {
            ArithOp::Add | ArithOp::Max => "arith.ori",
            ArithOp::Mul | ArithOp::Min | ArithOp::Div => "arith.andi",
            ArithOp::Sub => "arith.xori",
            ArithOp::Mod => return builder.integer(ty, 0),
        },
        (ArithOp::Mod, true) => return float_remainder(builder, scalar, lhs, rhs),
        (ArithOp::Add, true) => "arith.addf",
        (ArithOp::Sub, true) => "arith.subf",
        (ArithOp::Mul, true) => "arith.mulf",
        (ArithOp::Div, true) => "arith.divf",
        (ArithOp::Min, true) => "arith.minnumf",
        (ArithOp::Max, true) => "arith.maxnumf",
        (ArithOp::Add, false) => "arith.addi",
        (ArithOp::Sub, false) => "arith.subi",
        (ArithOp::Mul, false) => "arith.muli",
        (ArithOp::Div, false) => return divide(builder, "tc.div", unsigned, lhs, rhs),
        (ArithOp::Mod, false) => return divide(builder, "tc.rem", unsigned, lhs, rhs),
        (ArithOp::Min, false) if unsigned => "arith.minui",
        (ArithOp::Max, false) if unsigned => "arith.maxui",
        (ArithOp::Min, false) => "arith.minsi",
        (ArithOp::Max, false) => "arith.maxsi",
    };
    builder.value(name, &[lhs, rhs], ty)
}

/// `tc.div` or `tc.rem`, on integers or indices.
pub(super) fn divide<'c>(
    builder: &Builder<'c>,
    name: &str,
    unsigned: bool,
    lhs: Val<'c>,
    rhs: Val<'c>,
) -> Val<'c> {
    use melior::ir::ValueLike;
    let attributes = [("unsigned_", Attribute::unit(builder.context))];
    let attributes = if unsigned { &attributes[..] } else { &[] };
    builder.value_with(name, &[lhs, rhs], lhs.r#type(), attributes)
}

/// `%` on floats, C's `fmod`. The built-in knows `f32` and `f64`; the remainder of two `f16`
/// is an `f16`, so that the way through `f32` is exact.
fn float_remainder<'c>(
    builder: &Builder<'c>,
    scalar: ScalarType,
    lhs: Val<'c>,
    rhs: Val<'c>,
) -> Val<'c> {
    let wide = scalar.matched(ScalarType::Float32);
    let lhs = convert(builder, lhs, scalar, wide);
    let rhs = convert(builder, rhs, scalar, wide);
    let value = builtin(builder, "fmod", wide, &[lhs, rhs]);
    convert(builder, value, wide, scalar)
}

/// A built-in function.
pub(super) fn builtin<'c>(
    builder: &Builder<'c>,
    name: &str,
    scalar: ScalarType,
    args: &[Val<'c>],
) -> Val<'c> {
    let name = mlir::string(builder.context, name);
    let ty = value_type(builder.context, scalar);
    builder.value_with("imap.builtin", args, ty, &[("name", name)])
}

/// A comparison of two values of one type, or of two indices for `None`.
pub(super) fn compare<'c>(
    builder: &Builder<'c>,
    op: CompareOp,
    scalar: Option<ScalarType>,
    lhs: Val<'c>,
    rhs: Val<'c>,
) -> Val<'c> {
    if scalar.is_some_and(ScalarType::is_float) {
        let predicate = match op {
            CompareOp::Less => "olt",
            CompareOp::Greater => "ogt",
            CompareOp::LessEqual => "ole",
            CompareOp::GreaterEqual => "oge",
            CompareOp::Equal => "oeq",
            CompareOp::NotEqual => "une",
        };
        return builder.compare_float(predicate, lhs, rhs);
    }
    let signed = scalar.is_none_or(ScalarType::is_signed_integer);
    let predicate = match (op, signed) {
        (CompareOp::Less, true) => "slt",
        (CompareOp::Less, false) => "ult",
        (CompareOp::Greater, true) => "sgt",
        (CompareOp::Greater, false) => "ugt",
        (CompareOp::LessEqual, true) => "sle",
        (CompareOp::LessEqual, false) => "ule",
        (CompareOp::GreaterEqual, true) => "sge",
        (CompareOp::GreaterEqual, false) => "uge",
        (CompareOp::Equal, _) => "eq",
        (CompareOp::NotEqual, _) => "ne",
    };
    builder.compare_int(predicate, lhs, rhs)
}

#[cfg(test)]
mod tests {
    use super::{ScalarType, saturated, wrapped};

    #[test]
    fn saturation_keeps_the_limits_of_every_width() {
        assert_eq!(saturated(f64::NAN, ScalarType::Int32), 0);
        assert_eq!(saturated(-1.5, ScalarType::UInt8), 0);
        assert_eq!(saturated(300.0, ScalarType::UInt8), -1);
        assert_eq!(saturated(127.9, ScalarType::Int8), 127);
        assert_eq!(saturated(-1e30, ScalarType::Int16), -32768);
        assert_eq!(saturated(1e30, ScalarType::Int64), i64::MAX);
        assert_eq!(saturated(f64::INFINITY, ScalarType::UInt64), -1);
    }

    #[test]
    fn integers_wrap_in_their_width() {
        assert_eq!(wrapped(255, 8), -1);
        assert_eq!(wrapped(256, 8), 0);
        assert_eq!(wrapped(i64::MIN, 64), i64::MIN);
        assert_eq!(wrapped(1 << 31, 32), -(1 << 31));
    }
}
