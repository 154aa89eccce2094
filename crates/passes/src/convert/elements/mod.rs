//! Elements of arrays: how they are stored, and how bodies compute with them.
//!
//! An element type has a *storage* type, of which tensors are, and a *compute* type, with which
//! bodies of loops calculate. They differ for what processors do not calculate with: floats that are
//! less exact than `f16`, `bf16` included, are computed as `f32`, rounded after every operation;
//! integers of fewer than 8 bits are computed as `i8`, wrapped after every operation.
//! Bodies compute a complex number as two values, the real and the imaginary part; a tensor holds both
//! as one element.

pub mod coding;
pub mod complex;
pub mod division;
pub mod scalar;

use coding::{decode, encode};
use melior::{
    Context,
    ir::{Attribute, Type, ValueLike},
};
use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::Shape,
    mlir::{self, Builder, Val},
};

/// One element, of the compute type: one value, or two for complex numbers.
pub type Scalar<'c> = Vec<Val<'c>>;

/// The type of the elements of a tensor.
pub fn storage_type<'c>(builder: &Builder<'c>, element: ElementType) -> Type<'c> {
    match element.kind() {
        ElementKind::Pred => builder.int_type(1),
        ElementKind::Signed | ElementKind::Unsigned => builder.int_type(element.bits()),
        ElementKind::Float => mlir::float_type(builder.context, element),
        ElementKind::Complex => {
            mlir::complex_type(mlir::float_type(builder.context, element.part()))
        }
    }
}

/// The type with which bodies calculate, of one part for complex numbers.
pub fn compute_type<'c>(builder: &Builder<'c>, element: ElementType) -> Type<'c> {
    match (is_narrow(element), element.is_float()) {
        (false, _) => storage_type(builder, element.part()),
        (true, true) => Type::float32(builder.context),
        (true, false) => builder.int_type(8),
    }
}

/// Whether bodies calculate with another type than that of the elements of tensors.
pub fn is_narrow(element: ElementType) -> bool {
    match element {
        ElementType::BF16 => true,
        element => element.bits() < 16 && element.is_float() || is_narrow_integer(element),
    }
}

/// Whether it is an integer of fewer than 8 bits.
fn is_narrow_integer(element: ElementType) -> bool {
    element.is_integer() && element.bits() < 8
}

/// The type in which long sums of elements are carried.
pub fn sum_type(element: ElementType) -> ElementType {
    match element {
        element if element.is_float() && element.bits() <= 16 => ElementType::F32,
        element if !is_narrow_integer(element) => element,
        element if element.kind() == ElementKind::Signed => ElementType::S8,
        _ => ElementType::U8,
    }
}

/// The product of two elements of the type of a sum.
pub fn multiply<'c>(builder: &Builder<'c>, sum: ElementType, x: Val<'c>, y: Val<'c>) -> Val<'c> {
    let name = match sum {
        ElementType::Pred => "arith.andi",
        sum if sum.is_float() => "arith.mulf",
        _ => "arith.muli",
    };
    builder.value(name, &[x, y], x.r#type())
}

/// The elements that a body reads, decoded: one scalar per array.
pub fn decode_all<'c>(
    b: &Builder<'c>,
    elements: &[ElementType],
    stored: &[Val<'c>],
) -> Vec<Scalar<'c>> {
    let elements = elements.iter().zip(stored);
    elements.map(|(element, stored)| decode_element(b, *element, *stored)).collect()
}

/// An element that is read, decoded.
pub fn decode_element<'c>(b: &Builder<'c>, element: ElementType, stored: Val<'c>) -> Scalar<'c> {
    if !element.is_complex() {
        return vec![decode(b, element, stored)];
    }
    let part = compute_type(b, element);
    ["complex.re", "complex.im"].map(|name| b.value(name, &[stored], part)).to_vec()
}

/// Elements of these types, from their parts one after the other.
pub fn scalars<'c>(
    parts: &[Val<'c>],
    elements: impl IntoIterator<Item = ElementType>,
) -> Vec<Scalar<'c>> {
    let mut parts = parts.iter().copied();
    let scalar = |element: ElementType| parts.by_ref().take(element.num_parts()).collect();
    elements.into_iter().map(scalar).collect()
}

/// An element as it is stored.
pub fn encode_element<'c>(b: &Builder<'c>, element: ElementType, x: &[Val<'c>]) -> Val<'c> {
    match x {
        [value] => encode(b, element, *value),
        parts => b.value("complex.create", parts, storage_type(b, element)),
    }
}

/// An integer element as an index. What does not fit is far outside of any array anyway.
pub fn to_index<'c>(b: &Builder<'c>, element: ElementType, value: Val<'c>) -> Val<'c> {
    if element.kind() == ElementKind::Signed {
        return b.value("arith.index_cast", &[value], b.index_type());
    }
    let index = b.value("arith.index_castui", &[value], b.index_type());
    let least = b.index(0);
    let is_large = b.compare_int("slt", index, least);
    b.select(is_large, b.index(i64::MAX), index)
}

/// A value as an integer, or as a float, of the same width.
pub fn to_bits<'c>(b: &Builder<'c>, value: Val<'c>, ty: melior::ir::Type<'c>) -> Val<'c> {
    if value.r#type() == ty { value } else { b.value("arith.bitcast", &[value], ty) }
}

/// What callers know the tensors of a value by, in order: a name; whether its integers are unsigned.
pub fn describe_arrays<'c>(
    context: &'c Context,
    shape: &Shape,
    name: &dyn Fn(usize) -> String,
) -> Vec<Attribute<'c>> {
    let mut described = Vec::new();
    let mut number = 0;
    shape.for_each_array(&mut |array| {
        let mut entries = vec![("tc.name", mlir::string(context, &name(number)))];
        if array.element_type.kind() == ElementKind::Unsigned {
            entries.push(("tc.unsigned", Attribute::unit(context)));
        }
        described.push(mlir::dictionary(context, &entries));
        number += 1;
    });
    described
}

/// A call of a scalar built-in.
pub fn builtin<'c>(b: &Builder<'c>, name: &str, x: &[Val<'c>]) -> Val<'c> {
    b.value_with("imap.builtin", x, x[0].r#type(), &[("name", mlir::string(b.context, name))])
}

/// A float in another float type.
pub fn resize_float<'c>(b: &Builder<'c>, x: Val<'c>, target: Type<'c>) -> Val<'c> {
    let (have, want) = (mlir::byte_width(x.r#type()), mlir::byte_width(target));
    match have.cmp(&want) {
        std::cmp::Ordering::Equal => x,
        std::cmp::Ordering::Greater => b.value("arith.truncf", &[x], target),
        std::cmp::Ordering::Less => b.value("arith.extf", &[x], target),
    }
}
