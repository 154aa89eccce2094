//! Products of arrays, and linear algebra.
//!
//!   * D1: the lists of batch and contracting dimensions of an operand hold different dimensions;
//!     both operands have as many of each, of the same sizes.
//!   * D2: the kinds of numbers are pred, integers, floats and complex numbers. The result of a
//!     product holds the later one of the kinds of its operands, of any width; of two pred it may
//!     also hold integers. The operands of `convolution` hold numbers of one kind.
//!   * D3: the result of `dot` and `scaled-dot` has the batch dimensions, then the others of the lhs,
//!     then the others of the rhs.
//!   * D4: a scale of `scaled-dot` is a scalar, or has the rank of its operand and sizes that divide
//!     those of the operand.
//!   * D5: `ragged-dot` has one ragged dimension of the lhs, and the sizes of `g` groups as integers
//!     in the last dimension of its third operand. If the ragged dimension is neither contracted
//!     nor batch, the rhs has one group dimension, of size `g`, which the result lacks. If it is
//!     contracted, the result has a dimension of size `g` in front. Otherwise the result is that of
//!     `dot`.
//!   * D6: `dim_labels` has a label for each dimension, and the window a dimension for each spatial
//!     one; its sizes are those of the kernel.
//!   * D7: both group counts are at least 1, and one of them is 1. The input features split into
//!     `feature_group_count` groups, each as large as the kernel's input features; the input batch
//!     splits into `batch_group_count` groups, and the output features into groups of both counts.
//!   * D8: the result of `convolution` has the input's batch divided by `batch_group_count`, the
//!     kernel's output features, and the number of windows in each spatial dimension (W2).
//!   * D9: `fft` has one to three entries in `fft_length`, the sizes of the last dimensions: of the
//!     operand, but of the result for IRFFT. FFT and IFFT map complex numbers to such, RFFT floats
//!     to complex numbers and IRFFT back, with `n / 2 + 1` elements instead of `n` in the last
//!     dimension of the complex side.
//!   * D10: `cholesky` and the first operand of `triangular-solve` have square matrices of floats or
//!     complex numbers in their last two dimensions. The second operand of `triangular-solve` has
//!     the same type, the same batch dimensions, and matrices that can be multiplied from that side.

use super::{Cx, Inferred, dims_of, remaining, same, window};
use crate::{
    element::{ElementKind, ElementType},
    hlo::{ArrayShape, Attribute, ConvolutionDims, DotDims, FftType, Opcode, Shape, Value},
};

pub(super) fn infer(cx: &Cx) -> Inferred {
    match cx.instruction.opcode {
        Opcode::Dot => {
            let result = dot(cx)?;
            Ok(Some(result))
        }
        Opcode::ScaledDot => scaled_dot(cx),
        Opcode::RaggedDot => ragged_dot(cx),
        Opcode::Convolution => convolution(cx),
        Opcode::Fft => fft(cx),
        Opcode::Cholesky => {
            square(cx.array(0)?)?;
            Ok(Some(cx.operand(0).clone()))
        }
        _ => triangular_solve(cx),
    }
}

/// The kinds of numbers that D2 orders.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum NumberKind {
    Pred,
    Integer,
    Float,
    Complex,
}

fn kind_of(element: ElementType) -> NumberKind {
    match element.kind() {
        ElementKind::Pred => NumberKind::Pred,
        ElementKind::Signed | ElementKind::Unsigned => NumberKind::Integer,
        ElementKind::Float => NumberKind::Float,
        ElementKind::Complex => NumberKind::Complex,
    }
}

/// D2: the element type of the result.
fn product_type(cx: &Cx, lhs: &ArrayShape, rhs: &ArrayShape) -> Result<ElementType, String> {
    let result = cx.result()?.element_type;
    let (left, right) = (kind_of(lhs.element_type), kind_of(rhs.element_type));
    if left != right && cx.instruction.opcode == Opcode::Convolution {
        return Err(format!("expected operands of one kind of numbers, found {lhs} and {rhs}"));
    }
    let (expected, example) = if left < right { (right, rhs) } else { (left, lhs) };
    let found = kind_of(result);
    if found != expected && (expected, found) != (NumberKind::Pred, NumberKind::Integer) {
        return Err(format!("expected a result that holds numbers as {example}, found {result}"));
    }
    Ok(result)
}

/// D1.
fn dot_dims(lhs: &ArrayShape, rhs: &ArrayShape, dims: &DotDims) -> Result<(), String> {
    let both = |batch: &[i64], contracting: &[i64]| [batch, contracting].concat();
    dims_of(
        "lhs_batch_dims and lhs_contracting_dims",
        &both(dims.lhs_batch, dims.lhs_contracting),
        lhs.rank(),
    )?;
    dims_of(
        "rhs_batch_dims and rhs_contracting_dims",
        &both(dims.rhs_batch, dims.rhs_contracting),
        rhs.rank(),
    )?;
    for (what, left, right) in [
        ("batch", dims.lhs_batch, dims.rhs_batch),
        ("contracting", dims.lhs_contracting, dims.rhs_contracting),
    ] {
        same(&format!("the number of {what} dimensions of the rhs"), right.len(), left.len())?;
        for (&left, &right) in left.iter().zip(right) {
            let (a, b) = (lhs.dims[left as usize], rhs.dims[right as usize]);
            if a != b {
                return Err(format!(
                    "{what} dimensions differ in size: dimension {left} of the lhs has {a}, \
                     dimension {right} of the rhs has {b}"
                ));
            }
        }
    }
    Ok(())
}

/// D1 to D3.
fn dot(cx: &Cx) -> Result<Shape, String> {
    let (lhs, rhs, dims) = (cx.array(0)?, cx.array(1)?, cx.instruction.dot_dims());
    dot_dims(lhs, rhs, &dims)?;
    let ty = product_type(cx, lhs, rhs)?;
    let mut result: Vec<i64> = dims.lhs_batch.iter().map(|&dim| lhs.dims[dim as usize]).collect();
    result.extend(remaining(&lhs.dims, &[dims.lhs_batch, dims.lhs_contracting]));
    result.extend(remaining(&rhs.dims, &[dims.rhs_batch, dims.rhs_contracting]));
    Ok(Shape::array(ty, result))
}

/// D4.
fn scaled_dot(cx: &Cx) -> Inferred {
    let result = dot(cx)?;
    for position in 0..2 {
        let (operand, scale) = (cx.array(position)?, cx.array(position + 2)?);
        let divides = |(&scale, &size): (&i64, &i64)| 0 < scale && size % scale == 0;
        let fits = scale.is_scalar()
            || scale.rank() == operand.rank()
                && scale
                    .dims
                    .iter()
                    .zip(&operand.dims)
                    .all(|sizes| divides(sizes) || sizes.0 == sizes.1);
        if !fits || !scale.element_type.is_float() {
            return Err(format!(
                "expected floats of sizes that divide those of {operand} as its scale, found {scale}"
            ));
        }
    }
    Ok(Some(result))
}

/// D5.
fn ragged_dot(cx: &Cx) -> Inferred {
    let (lhs, rhs, groups) = (cx.array(0)?, cx.array(1)?, cx.array(2)?);
    let dims = cx.instruction.dot_dims();
    let ragged = cx.instruction.integers(Attribute::LhsRaggedDims);
    dims_of("lhs_ragged_dims", ragged, lhs.rank())?;
    let [ragged] = ragged else {
        return Err(format!("expected one entry in 'lhs_ragged_dims', found {}", ragged.len()));
    };
    let num_groups = match groups.dims.last() {
        Some(&size) if groups.element_type.is_integer() => size,
        _ => return Err(format!("expected the sizes of groups as integers, found {groups}")),
    };
    let group_dims = cx.instruction.integers(Attribute::RhsGroupDims);
    dims_of("rhs_group_dims", group_dims, rhs.rank())?;
    let is_contracted = dims.lhs_contracting.contains(ragged);
    let is_outer = !is_contracted && !dims.lhs_batch.contains(ragged);
    same("the number of entries in 'rhs_group_dims'", group_dims.len(), usize::from(is_outer))?;
    dot_dims(lhs, rhs, &dims)?;
    if let [dim] = group_dims {
        let found = rhs.dims[*dim as usize];
        same(&format!("the size of group dimension {dim} of the rhs"), found, num_groups)?;
        if dims.rhs_batch.contains(dim) || dims.rhs_contracting.contains(dim) {
            return Err(format!(
                "dimension {dim} in 'rhs_group_dims' is also batch or contracting"
            ));
        }
    }
    let ty = product_type(cx, lhs, rhs)?;
    let mut result = if is_contracted { vec![num_groups] } else { Vec::new() };
    result.extend(dims.lhs_batch.iter().map(|&dim| lhs.dims[dim as usize]));
    result.extend(remaining(&lhs.dims, &[dims.lhs_batch, dims.lhs_contracting]));
    result.extend(remaining(&rhs.dims, &[dims.rhs_batch, dims.rhs_contracting, group_dims]));
    Ok(Some(Shape::array(ty, result)))
}

/// Whether labels name each dimension of an array once, and as many as there are.
fn labels_fit(array: &ArrayShape, first: i64, second: i64, spatial: &[i64]) -> Result<(), String> {
    let all = [&[first, second], spatial].concat();
    same("the number of labels in 'dim_labels'", all.len(), array.rank())?;
    dims_of("dim_labels", &all, array.rank())
}

/// D6 to D8.
fn convolution(cx: &Cx) -> Inferred {
    let (input, kernel) = (cx.array(0)?, cx.array(1)?);
    let Some(labels) = cx.instruction.dim_labels() else {
        return Err("expected the attribute 'dim_labels'".to_owned());
    };
    let ConvolutionDims { input_spatial, kernel_spatial, output_spatial, .. } = labels;
    labels_fit(input, labels.input_batch, labels.input_feature, input_spatial)?;
    let (first, second) = (labels.kernel_input_feature, labels.kernel_output_feature);
    labels_fit(kernel, first, second, kernel_spatial)?;
    let mut output = vec![0; input.rank()];
    let ty = product_type(cx, input, kernel)?;
    labels_fit(
        &ArrayShape::new(ty, output.clone()),
        labels.output_batch,
        labels.output_feature,
        output_spatial,
    )?;
    let window = cx.instruction.window();
    same("the number of dimensions of the window", window.len(), input_spatial.len())?;
    for (position, dim) in window.iter().enumerate() {
        let expected = kernel.dims[kernel_spatial[position] as usize];
        same(&format!("the size of the window in dimension {position}"), dim.size, expected)?;
        let extent = input.dims[input_spatial[position] as usize];
        output[output_spatial[position] as usize] = window::num_windows(dim, extent)?;
    }
    let count = |attribute| cx.instruction.integer(attribute).unwrap_or(1);
    let feature_groups = count(Attribute::FeatureGroupCount);
    let batch_groups = count(Attribute::BatchGroupCount);
    if feature_groups < 1 || batch_groups < 1 || 1 < feature_groups && 1 < batch_groups {
        return Err(format!(
            "expected 'feature_group_count' and 'batch_group_count' to be at least 1, and one of \
             them 1, found {feature_groups} and {batch_groups}"
        ));
    }
    let batch = input.dims[labels.input_batch as usize];
    let features = input.dims[labels.input_feature as usize];
    let kernel_features = kernel.dims[labels.kernel_input_feature as usize];
    let outputs = kernel.dims[labels.kernel_output_feature as usize];
    for (what, size, groups) in [
        ("input features", features, feature_groups),
        ("output features", outputs, feature_groups),
        ("elements of the input's batch", batch, batch_groups),
        ("output features", outputs, batch_groups),
    ] {
        if size % groups != 0 {
            return Err(format!("{size} {what} do not split into {groups} groups"));
        }
    }
    let expected = features / feature_groups;
    same("the number of input features of the kernel", kernel_features, expected)?;
    output[labels.output_batch as usize] = batch / batch_groups;
    output[labels.output_feature as usize] = outputs;
    Ok(Some(Shape::array(ty, output)))
}

/// D9.
fn fft(cx: &Cx) -> Inferred {
    let operand = cx.array(0)?;
    let lengths = cx.instruction.integers(Attribute::FftLength);
    let Some(Value::FftType(kind)) = cx.instruction.attribute(Attribute::FftType) else {
        return Err("expected the attribute 'fft_type'".to_owned());
    };
    let rank = operand.rank();
    if lengths.is_empty() || 3 < lengths.len() || rank < lengths.len() {
        return Err(format!(
            "expected 'fft_length' to have 1 to 3 entries, and at most {rank} for {operand}, \
             found {}",
            lengths.len()
        ));
    }
    if let Some(length) = lengths.iter().find(|length| **length < 0) {
        return Err(format!("expected lengths of at least 0, found {length}"));
    }
    let outer = rank - lengths.len();
    let mut dims = operand.dims.clone();
    dims[outer..].copy_from_slice(lengths);
    let mut half = dims.clone();
    half[rank - 1] = half[rank - 1] / 2 + 1;
    let ty = operand.element_type;
    let real = matches!(ty, ElementType::F32 | ElementType::F64);
    let (fits, result, expected, found) = match kind {
        FftType::Fft | FftType::Ifft => (ty.is_complex(), Some(ty), &dims, &dims),
        FftType::Rfft => (real, ty.complex(), &dims, &half),
        FftType::Irfft => (ty.is_complex(), Some(ty.part()), &half, &dims),
    };
    let (true, Some(result)) = (fits, result) else {
        let expected = if *kind == FftType::Rfft { "f32 or f64" } else { "complex numbers" };
        return Err(format!("expected {expected} for {kind}, found {operand}"));
    };
    // A transform of nothing is nothing, whatever its last dimension is.
    if operand.dims != *expected && operand.num_elements() != Some(0) {
        return Err(format!("expected an operand of sizes {expected:?}, found {operand}"));
    }
    Ok(Some(Shape::array(result, found.clone())))
}

/// D10: the batch dimensions, and the size of the matrices.
fn square(array: &ArrayShape) -> Result<(&[i64], i64), String> {
    let ty = array.element_type;
    match array.dims[..] {
        [ref batch @ .., rows, columns]
            if rows == columns && (ty.is_float() || ty.is_complex()) =>
        {
            Ok((batch, rows))
        }
        _ => Err(format!("expected square matrices of floats or complex numbers, found {array}")),
    }
}

/// D10.
fn triangular_solve(cx: &Cx) -> Inferred {
    let (a, b) = (cx.array(0)?, cx.array(1)?);
    let (batch, size) = square(a)?;
    let is_left = cx.instruction.flag(Attribute::LeftSide);
    let fits = a.element_type == b.element_type
        && match b.dims[..] {
            [ref outer @ .., rows, columns] => {
                outer == batch && size == if is_left { rows } else { columns }
            }
            _ => false,
        };
    if !fits {
        return Err(format!("operand {b} does not fit the matrices {a}"));
    }
    Ok(Some(cx.operand(1).clone()))
}
