//! Instructions that move elements to fixed indices.
//!
//!   * S1: `broadcast` has one entry in `dimensions` for each dimension of the operand: different
//!     dimensions of the result, with the same sizes.
//!   * S2: `reshape` keeps the element type and the number of elements.
//!   * S3: `bitcast` keeps the number of bits.
//!   * S4: `transpose` has a permutation in `dimensions`; dimension `i` of the result has the size
//!     of dimension `dimensions[i]` of the operand.
//!   * S5: `reverse` has different dimensions of the operand in `dimensions`.
//!   * S6: `slice` has a range for each dimension, `0 <= start <= limit <= size` and a stride of at
//!     least 1; the size of the result is `ceil((limit - start) / stride)`.
//!   * S7: `concatenate` has one dimension; the operands have the same element type, and the same
//!     sizes in the other dimensions. The sizes in this one are added.
//!   * S8: `pad` has padding for each dimension, `interior` at least 0, and a scalar of the element
//!     type; the size of the result is `low + high + size + max(size - 1, 0) * interior`, and at
//!     least 0.
//!   * S9: `iota` counts along a dimension of the result, which holds numbers.
//!   * S10: `get-dimension-size` gives one s32; `set-dimension-size` takes one, and keeps the shape
//!     of the operand.

use super::{Cx, Inferred, dims_of, is_permutation, out_of_range, same, size};
use crate::{
    element::ElementType,
    hlo::{ArrayShape, Attribute, Opcode, Shape},
};

pub(super) fn infer(cx: &Cx) -> Inferred {
    match cx.instruction.opcode {
        Opcode::Broadcast => broadcast(cx),
        Opcode::Reshape => reshape(cx),
        Opcode::Bitcast => bitcast(cx),
        Opcode::Transpose => transpose(cx),
        Opcode::Reverse => {
            let operand = cx.array(0)?;
            dims_of("dimensions", cx.instruction.dimensions(), operand.rank())?;
            Ok(Some(cx.operand(0).clone()))
        }
        Opcode::Slice => slice(cx),
        Opcode::Concatenate => concatenate(cx),
        Opcode::Pad => pad(cx),
        Opcode::Iota => iota(cx),
        Opcode::GetDimensionSize => {
            cx.dimension(cx.array(0)?.rank())?;
            Ok(Some(Shape::scalar(ElementType::S32)))
        }
        _ => {
            cx.dimension(cx.array(0)?.rank())?;
            cx.index(1)?;
            Ok(Some(cx.operand(0).clone()))
        }
    }
}

/// S1.
fn broadcast(cx: &Cx) -> Inferred {
    let (operand, result) = (cx.array(0)?, cx.result()?);
    let dimensions = cx.instruction.dimensions();
    same("the number of entries in 'dimensions'", dimensions.len(), operand.rank())?;
    dims_of("dimensions", dimensions, result.rank())?;
    for (dim, (&place, &expected)) in dimensions.iter().zip(&operand.dims).enumerate() {
        let found = result.dims[place as usize];
        if found != expected {
            return Err(format!(
                "dimension {dim} of the operand has size {expected}, but dimension {place} of the \
                 result has size {found}"
            ));
        }
    }
    Ok(Some(Shape::array(operand.element_type, result.dims.clone())))
}

/// S2.
fn reshape(cx: &Cx) -> Inferred {
    let (operand, result) = (cx.array(0)?, cx.result()?);
    if operand.element_type != result.element_type
        || operand.num_elements() != result.num_elements()
    {
        return Err(format!(
            "expected the same type and number of elements as {operand}, found {result}"
        ));
    }
    Ok(None)
}

/// S3.
fn bitcast(cx: &Cx) -> Inferred {
    let (operand, result) = (cx.array(0)?, cx.result()?);
    let bits = |array: &ArrayShape| {
        array.num_elements().map(|count| i128::from(count) * i128::from(array.element_type.bits()))
    };
    if bits(operand) != bits(result) {
        return Err(format!("expected as many bits as {operand} has, found {result}"));
    }
    Ok(None)
}

/// S4.
fn transpose(cx: &Cx) -> Inferred {
    let operand = cx.array(0)?;
    let dimensions = cx.instruction.dimensions();
    same("the number of entries in 'dimensions'", dimensions.len(), operand.rank())?;
    if !is_permutation(dimensions) {
        dims_of("dimensions", dimensions, operand.rank())?;
    }
    let dims: Vec<_> = dimensions.iter().map(|&dim| operand.dims[dim as usize]).collect();
    Ok(Some(Shape::array(operand.element_type, dims)))
}

/// S6.
fn slice(cx: &Cx) -> Inferred {
    let operand = cx.array(0)?;
    let ranges = cx.instruction.slice_dims();
    same("the number of ranges", ranges.len(), operand.rank())?;
    let mut dims = Vec::with_capacity(ranges.len());
    for (dim, (range, &size)) in ranges.iter().zip(&operand.dims).enumerate() {
        if range.start < 0 || range.limit < range.start || size < range.limit {
            return Err(format!(
                "expected a range inside of [0:{size}] in dimension {dim}, found [{}:{}]",
                range.start, range.limit
            ));
        }
        if range.stride < 1 {
            let stride = range.stride;
            return Err(format!(
                "expected a stride of at least 1 in dimension {dim}, found {stride}"
            ));
        }
        let extent = range.limit - range.start;
        dims.push(extent / range.stride + i64::from(extent % range.stride != 0));
    }
    Ok(Some(Shape::array(operand.element_type, dims)))
}

/// S7.
fn concatenate(cx: &Cx) -> Inferred {
    let operands = cx.arrays(0..cx.num_operands())?;
    let first = operands[0];
    let dim = cx.dimension(first.rank())?;
    let mut total = 0i128;
    for (position, operand) in operands.iter().enumerate() {
        let fits = operand.element_type == first.element_type
            && operand.rank() == first.rank()
            && (0..first.rank()).all(|each| each == dim || operand.dims[each] == first.dims[each]);
        if !fits {
            return Err(format!(
                "expected operand {position} to have type and sizes of {first} but for dimension \
                 {dim}, found {operand}"
            ));
        }
        total += i128::from(operand.dims[dim]);
    }
    let mut dims = first.dims.clone();
    dims[dim] = size(total)?;
    Ok(Some(Shape::array(first.element_type, dims)))
}

/// S8.
fn pad(cx: &Cx) -> Inferred {
    let (operand, value) = (cx.array(0)?, cx.array(1)?);
    let padding = cx.instruction.padding();
    if !value.is_scalar() || value.element_type != operand.element_type {
        return Err(format!("expected {}[] to pad with, found {value}", operand.element_type));
    }
    same("the number of dimensions in 'padding'", padding.len(), operand.rank())?;
    let mut dims = Vec::with_capacity(padding.len());
    for (dim, (padding, &extent)) in padding.iter().zip(&operand.dims).enumerate() {
        let interior = i128::from(padding.interior);
        if interior < 0 {
            return Err(format!("expected interior padding of at least 0, found {interior}"));
        }
        let inside = i128::from(extent) + i128::from((extent - 1).max(0)) * interior;
        let padded = i128::from(padding.low) + i128::from(padding.high) + inside;
        if padded < 0 {
            return Err(format!(
                "padding takes {} elements from dimension {dim}, which has {inside}",
                inside - padded
            ));
        }
        dims.push(size(padded)?);
    }
    Ok(Some(Shape::array(operand.element_type, dims)))
}

/// S9.
fn iota(cx: &Cx) -> Inferred {
    let result = cx.result()?;
    let dim = cx.instruction.integer(Attribute::IotaDimension).unwrap_or(-1);
    if dim < 0 || result.rank() as i64 <= dim {
        return Err(out_of_range("iota_dimension", dim, result.rank()));
    }
    if result.element_type == ElementType::Pred {
        return Err("expected a result that holds numbers, found pred".to_owned());
    }
    Ok(None)
}
