//! Between stored and computed elements: floats that are less exact than `f16`, and integers of fewer
//! than 8 bits.

use super::{compute_type, is_narrow, storage_type};
use tc_dialects::{
    element::{ElementKind, ElementType},
    mlir::{Builder, Val},
};

/// From the storage type to the compute type.
pub fn decode<'c>(b: &Builder<'c>, element: ElementType, stored: Val<'c>) -> Val<'c> {
    if !is_narrow(element) {
        return stored;
    }
    let name = match element.kind() {
        ElementKind::Signed => "arith.extsi",
        ElementKind::Unsigned => "arith.extui",
        _ => "arith.extf",
    };
    b.value(name, &[stored], compute_type(b, element))
}

/// From the compute type to the storage type: floats are rounded to nearest, ties to even, and
/// integers keep their low bits.
pub fn encode<'c>(b: &Builder<'c>, element: ElementType, value: Val<'c>) -> Val<'c> {
    if !is_narrow(element) {
        return value;
    }
    let ty = storage_type(b, element);
    if element.is_integer() {
        return b.value("arith.trunci", &[value], ty);
    }
    let mut value = value;
    if element == ElementType::F8E8M0FNU {
        // Zero and negative numbers are NaN. The folder of 'arith.truncf' gives them other values.
        let compute = compute_type(b, element);
        let is_positive = b.compare_float("ogt", value, b.float(compute, 0.0));
        value = b.select(is_positive, value, b.float(compute, f64::NAN));
    }
    b.value("arith.truncf", &[value], ty)
}

/// What an operation leaves in the compute type, as the element type holds it.
pub fn normalize<'c>(b: &Builder<'c>, element: ElementType, value: Val<'c>) -> Val<'c> {
    if is_narrow(element) { decode(b, element, encode(b, element, value)) } else { value }
}
