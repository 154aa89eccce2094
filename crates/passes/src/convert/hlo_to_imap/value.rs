//! Values of HLO as tensors of MLIR, and how elements are stored.
//!
//! An element type has a *storage* type, of which tensors are, and a *compute* type, with which
//! bodies of loops calculate. They differ for what processors do not calculate with: `bf16` and
//! the 8-bit floats, which are stored as their bits, are computed as `f32`, rounded after every operation;
//! integers of fewer than 8 bits are stored and computed as `i8`, wrapped after every operation.
//! A complex array is two tensors, of the real and the imaginary parts.

use melior::ir::{Type, ValueLike};
use std::rc::Rc;
use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::ArrayShape,
    mlir::{self, Builder, Val},
};

/// The value of an instruction.
#[derive(Clone, Debug)]
pub(super) enum Value<'c> {
    Array(Array<'c>),
    /// Shared, since every element taken from a tuple comes with the tuple as operand.
    Tuple(Rc<[Value<'c>]>),
    Token,
}

impl<'c> Value<'c> {
    /// The tensors of all arrays, in order.
    pub(super) fn flatten(&self, into: &mut Vec<Val<'c>>) {
        match self {
            Self::Array(array) => into.extend(&array.parts),
            Self::Tuple(elements) => elements.iter().for_each(|element| element.flatten(into)),
            Self::Token => {}
        }
    }

    /// A value of the same structure with other tensors.
    pub(super) fn rebuild(&self, tensors: &mut impl Iterator<Item = Val<'c>>) -> Self {
        match self {
            Self::Array(array) => {
                let parts = array.parts.iter().map(|part| tensors.next().unwrap_or(*part));
                Self::Array(Array { parts: parts.collect(), shape: array.shape.clone() })
            }
            Self::Tuple(elements) => {
                Self::Tuple(elements.iter().map(|element| element.rebuild(tensors)).collect())
            }
            Self::Token => Self::Token,
        }
    }
}

/// An array: one tensor, or two for complex numbers, of the storage type.
#[derive(Clone, Debug)]
pub(super) struct Array<'c> {
    pub(super) parts: Vec<Val<'c>>,
    pub(super) shape: ArrayShape,
}

impl Array<'_> {
    pub(super) fn element(&self) -> ElementType {
        self.shape.element_type
    }

    pub(super) fn dims(&self) -> &[i64] {
        &self.shape.dims
    }
}

/// One element, of the compute type: one value, or two for complex numbers.
pub(in crate::convert) type Scalar<'c> = Vec<Val<'c>>;

/// The type of the elements of a tensor, of one part of them for complex numbers.
pub(in crate::convert) fn storage_type<'c>(
    builder: &Builder<'c>,
    element: ElementType,
) -> Type<'c> {
    let part = element.part();
    match part.kind() {
        ElementKind::Pred => builder.int_type(1),
        ElementKind::Signed | ElementKind::Unsigned => builder.int_type(part.bits().max(8)),
        _ => match part {
            ElementType::F16 => Type::float16(builder.context),
            ElementType::BF16 => Type::bfloat16(builder.context),
            ElementType::F32 => Type::float32(builder.context),
            ElementType::F64 => Type::float64(builder.context),
            coded => builder.int_type(coded.bits().max(8)),
        },
    }
}

/// The type with which bodies calculate, of one part for complex numbers.
pub(super) fn compute_type<'c>(builder: &Builder<'c>, element: ElementType) -> Type<'c> {
    if is_narrow(element) { Type::float32(builder.context) } else { storage_type(builder, element) }
}

/// Whether it is a float that bodies calculate with as `f32`.
pub(super) fn is_narrow(element: ElementType) -> bool {
    element.is_float() && !matches!(element, ElementType::F16 | ElementType::F32 | ElementType::F64)
}

/// Whether it is a float that is stored as its bits.
pub(super) fn is_coded(element: ElementType) -> bool {
    is_narrow(element) && element != ElementType::BF16
}

/// The type in which long sums of elements are carried.
pub(in crate::convert) fn sum_type(element: ElementType) -> ElementType {
    if is_narrow(element) || element == ElementType::F16 { ElementType::F32 } else { element }
}

/// The tensor type of one part of an array.
pub(super) fn tensor_type<'c>(builder: &Builder<'c>, shape: &ArrayShape) -> Type<'c> {
    let dims: Vec<_> = shape.dims.iter().copied().map(Some).collect();
    mlir::tensor_type(&dims, storage_type(builder, shape.element_type))
}

/// The product of two elements of the type of a sum.
pub(in crate::convert) fn multiply<'c>(
    builder: &Builder<'c>,
    sum: ElementType,
    x: Val<'c>,
    y: Val<'c>,
) -> Val<'c> {
    let name = match sum {
        ElementType::Pred => "arith.andi",
        sum if sum.is_float() => "arith.mulf",
        _ => "arith.muli",
    };
    builder.value(name, &[x, y], x.r#type())
}
