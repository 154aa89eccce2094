//! Vectors and their lanes.

use melior::ir::{Type, ValueLike};
use tc_dialects::mlir::{self, Builder, Val};

/// One lane of a vector.
pub(in crate::convert) fn extract<'c>(
    builder: &Builder<'c>,
    vector: Val<'c>,
    lane: i64,
) -> Val<'c> {
    let element = mlir::element_type(vector.r#type());
    let position = [("static_position", mlir::i64_array(builder.context, &[lane]))];
    builder.value_with("vector.extract", &[vector], element, &position)
}

/// A vector of so many lanes.
pub(in crate::convert) fn vector_type<'c>(element: Type<'c>, lanes: i64) -> Type<'c> {
    Type::vector(&[lanes as u64], element)
}

/// A vector of equal lanes.
pub(in crate::convert) fn broadcast<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    lanes: i64,
) -> Val<'c> {
    builder.value("vector.broadcast", &[value], vector_type(value.r#type(), lanes))
}
