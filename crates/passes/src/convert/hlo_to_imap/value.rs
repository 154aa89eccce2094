//! Values of HLO as tensors of MLIR.

use crate::convert::elements::storage_type;
use melior::ir::Type;
use std::rc::Rc;
use tc_dialects::{
    element::ElementType,
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
            Self::Array(array) => into.push(array.tensor),
            Self::Tuple(elements) => elements.iter().for_each(|element| element.flatten(into)),
            Self::Token => {}
        }
    }

    /// A value of the same structure with other tensors.
    pub(super) fn rebuild(&self, tensors: &mut impl Iterator<Item = Val<'c>>) -> Self {
        match self {
            Self::Array(array) => {
                let tensor = tensors.next().unwrap_or(array.tensor);
                Self::Array(Array { tensor, shape: array.shape.clone() })
            }
            Self::Tuple(elements) => {
                Self::Tuple(elements.iter().map(|element| element.rebuild(tensors)).collect())
            }
            Self::Token => Self::Token,
        }
    }
}

/// An array: a tensor of the storage type.
#[derive(Clone, Debug)]
pub(super) struct Array<'c> {
    pub(super) tensor: Val<'c>,
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

/// The tensor type of an array.
pub(super) fn tensor_type<'c>(builder: &Builder<'c>, shape: &ArrayShape) -> Type<'c> {
    let dims: Vec<_> = shape.dims.iter().copied().map(Some).collect();
    mlir::tensor_type(&dims, storage_type(builder, shape.element_type))
}
