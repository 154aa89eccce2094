//! Instructions that compute each element of the result from the elements at the same index.
//!
//!   * E1: the element type of the operands is one that the opcode is defined for.
//!   * E2: both operands of a binary instruction have the same shape.
//!   * E3: the result has the sizes of the operands. Its element type is that of the operands,
//!     but for: `compare` and `is-finite` give pred; `abs`, `real` and `imag` of complex numbers
//!     the type of the parts, `complex` the type with such parts; `convert` and
//!     `stochastic-convert` the type that is written.
//!   * E4: `convert` does not make a complex number real.
//!   * E5: `bitcast-convert` to a type of fewer bits adds a dimension for the parts; to one of more
//!     bits it takes the last dimension, which must be as large as the number of parts.
//!   * E6: `select` has a predicate of pred, a scalar or of the sizes of the others.
//!   * E7: the bounds of `clamp` have the element type of its second operand, and are scalars or of
//!     its sizes.
//!   * E8: `type=FLOAT` and `TOTALORDER` are for floats and complex numbers, `SIGNED` for signed
//!     integers, `UNSIGNED` for unsigned integers and pred. Complex numbers are only equal or not.
//!   * E9: `reduce-precision` keeps at least one bit of the exponent.
//!   * E10: the random numbers of `stochastic-convert` are unsigned integers with as many bits as the
//!     operand.

use super::{Cx, Inferred, Opcode};
use crate::{
    element::{ElementKind, ElementType},
    hlo::{ArrayShape, Attribute, ComparisonType, Direction, Shape, Value},
};

/// The element types that an opcode is defined for.
#[derive(Clone, Copy)]
enum Class {
    Any,
    Float,
    FloatOrComplex,
    Integer,
    IntegerOrPred,
    /// Everything but pred.
    Number,
    /// Everything but complex numbers.
    Ordered,
}

impl Class {
    fn holds(self, ty: ElementType) -> bool {
        match self {
            Self::Any => true,
            Self::Float => ty.is_float(),
            Self::FloatOrComplex => ty.is_float() || ty.is_complex(),
            Self::Integer => ty.is_integer(),
            Self::IntegerOrPred => ty.is_integer() || ty == ElementType::Pred,
            Self::Number => ty != ElementType::Pred,
            Self::Ordered => !ty.is_complex(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "any type",
            Self::Float => "floats",
            Self::FloatOrComplex => "floats or complex numbers",
            Self::Integer => "integers",
            Self::IntegerOrPred => "integers or pred",
            Self::Number => "numbers",
            Self::Ordered => "anything but complex numbers",
        }
    }

    /// E1.
    fn check(self, position: usize, array: &ArrayShape) -> Result<(), String> {
        if self.holds(array.element_type) {
            return Ok(());
        }
        let expected = self.name();
        Err(format!("expected operand {position} to hold {expected}, found {array}"))
    }
}

fn class(opcode: Opcode) -> Class {
    use Opcode::*;
    match opcode {
        Acos | Acosh | Asin | Asinh | Atan2 | Atanh | Cbrt | Cosine | Cosh | Exponential
        | ExponentialMinusOne | Imag | Log | LogPlusOne | Logistic | Real | Rsqrt | Sine | Sinh
        | Sqrt | Tan | Tanh => Class::FloatOrComplex,
        Ceil | Complex | Erf | Floor | IsFinite | ReducePrecision | RoundNearestAfz
        | RoundNearestEven | StochasticConvert => Class::Float,
        CountLeadingZeros | Mulhi | Popcnt | ShiftLeft | ShiftRightArithmetic
        | ShiftRightLogical => Class::Integer,
        And | Not | Or | Xor => Class::IntegerOrPred,
        Abs | Divide | Negate | Power | Remainder | Sign | Subtract => Class::Number,
        Maximum | Minimum | Clamp => Class::Ordered,
        _ => Class::Any,
    }
}

pub(super) fn infer(cx: &Cx) -> Inferred {
    let opcode = cx.instruction.opcode;
    match opcode {
        // Tuples and tokens can be copied too.
        Opcode::Copy => return Ok(Some(cx.operand(0).clone())),
        Opcode::BitcastConvert => return bitcast_convert(cx),
        Opcode::Select => return select(cx),
        Opcode::Clamp => return clamp(cx),
        _ => {}
    }
    let lhs = cx.array(0)?;
    class(opcode).check(0, lhs)?;
    if cx.num_operands() == 2 {
        let rhs = cx.array(1)?;
        // E2.
        let same_type = opcode == Opcode::StochasticConvert || lhs.element_type == rhs.element_type;
        if !same_type || lhs.dims != rhs.dims {
            return Err(format!("expected operands of the same shape, found {lhs} and {rhs}"));
        }
    }
    let ty = lhs.element_type;
    if opcode == Opcode::StochasticConvert {
        // E10.
        let random = cx.array(1)?;
        let element = random.element_type;
        if element.kind() != ElementKind::Unsigned || element.bits() != ty.bits() {
            return Err(format!("expected random numbers of type u{}, found {random}", ty.bits()));
        }
    }
    let result = match opcode {
        Opcode::Compare => {
            compare(cx, ty)?;
            ElementType::Pred
        }
        Opcode::IsFinite => ElementType::Pred,
        Opcode::Abs | Opcode::Real | Opcode::Imag => ty.part(),
        Opcode::Complex => match ty.complex() {
            Some(complex) => complex,
            None => return Err(format!("expected operands of type f32 or f64, found {ty}")),
        },
        Opcode::Convert | Opcode::StochasticConvert => {
            let result = cx.result()?.element_type;
            // E4.
            if ty.is_complex() && !result.is_complex() {
                return Err(format!("expected a complex type to convert {ty} to, found {result}"));
            }
            result
        }
        Opcode::ReducePrecision => {
            let bits = |attribute| cx.instruction.integer(attribute).unwrap_or(0);
            let (exponent, mantissa) =
                (bits(Attribute::ExponentBits), bits(Attribute::MantissaBits));
            // E9.
            if exponent < 1 || mantissa < 0 {
                return Err(format!(
                    "expected at least 1 bit of exponent and 0 of mantissa, found {exponent} and \
                     {mantissa}"
                ));
            }
            ty
        }
        _ => ty,
    };
    Ok(Some(Shape::array(result, lhs.dims.clone())))
}

/// E8.
fn compare(cx: &Cx, ty: ElementType) -> Result<(), String> {
    let kind = ty.kind();
    if let Some(Value::ComparisonType(order)) = cx.instruction.attribute(Attribute::Type) {
        let fits = match order {
            ComparisonType::Float => ty.is_float() || ty.is_complex(),
            ComparisonType::TotalOrder => ty.is_float(),
            ComparisonType::Signed => kind == ElementKind::Signed,
            ComparisonType::Unsigned => matches!(kind, ElementKind::Unsigned | ElementKind::Pred),
        };
        if !fits {
            return Err(format!("type={order} does not fit operands of type {ty}"));
        }
    }
    match cx.instruction.attribute(Attribute::Direction) {
        Some(Value::Direction(Direction::Eq | Direction::Ne)) => Ok(()),
        Some(Value::Direction(direction)) if ty.is_complex() => {
            Err(format!("complex numbers have no order to compare with {direction}"))
        }
        _ => Ok(()),
    }
}

/// E5.
fn bitcast_convert(cx: &Cx) -> Inferred {
    let (operand, ty) = (cx.array(0)?, cx.result()?.element_type);
    let (from, to) = (operand.element_type.bits(), ty.bits());
    if operand.element_type.is_complex() != ty.is_complex() {
        return Err(format!(
            "expected both types or none to be complex, found {} and {ty}",
            operand.element_type
        ));
    }
    let mut dims = operand.dims.clone();
    if to < from && from % to == 0 {
        dims.push(i64::from(from / to));
    } else if from < to && to % from == 0 {
        let parts = i64::from(to / from);
        if dims.pop() != Some(parts) {
            return Err(format!("expected the last dimension of {operand} to have size {parts}"));
        }
    } else if from != to {
        return Err(format!("{from} bits do not divide into {to}"));
    }
    Ok(Some(Shape::array(ty, dims)))
}

/// E6.
fn select(cx: &Cx) -> Inferred {
    let (predicate, on_true, on_false) = (cx.array(0)?, cx.operand(1), cx.operand(2));
    if !on_true.is_compatible(on_false) {
        return Err(format!(
            "expected operands 1 and 2 of the same shape, found {} and {}",
            on_true.without_layout(),
            on_false.without_layout()
        ));
    }
    let fits = predicate.is_scalar()
        || on_true.as_array().is_some_and(|array| array.dims == predicate.dims);
    if predicate.element_type != ElementType::Pred || !fits {
        return Err(format!(
            "expected operand 0 to be pred[] or pred of the sizes of {}, found {predicate}",
            on_true.without_layout()
        ));
    }
    Ok(Some(on_true.clone()))
}

/// E7.
fn clamp(cx: &Cx) -> Inferred {
    let operand = cx.array(1)?;
    Class::Ordered.check(1, operand)?;
    for position in [0, 2] {
        let bound = cx.array(position)?;
        let fits = bound.is_scalar() || bound.dims == operand.dims;
        if bound.element_type != operand.element_type || !fits {
            return Err(format!(
                "expected operand {position} to be a scalar or an array of the type of {operand}, \
                 found {bound}"
            ));
        }
    }
    Ok(Some(cx.operand(1).clone()))
}
