//! Instructions that combine elements by a computation, and normalization.
//!
//! Computations take and give scalars. Where one combines values, floats of any width stand for
//! each other.
//!
//!   * W1: a window has a dimension for each of the operand; its sizes, strides and dilations are at
//!     least 1.
//!   * W2: a dimension of size `n` is dilated to `(n - 1) * base_dilation + 1` elements (0 if there
//!     are none) and padded; the window covers `(size - 1) * window_dilation + 1` of them, and there
//!     are as many windows as fit in steps of the stride.
//!   * W3: `reduce` and `reduce-window` take `n` arrays of the same sizes, then `n` scalars.
//!   * W4: `to_apply` of a reduction takes `n` values, then another `n` of the same types, and gives
//!     `n` of these types.
//!   * W5: `reduce` has different dimensions, which the result lacks; the result of `reduce-window`
//!     has the number of windows in each dimension. There are `n` results, with the types that
//!     `to_apply` gives.
//!   * W6: `select-and-scatter` takes an operand, a source with one element for each window, and a
//!     scalar, of one type. `select` takes two values and gives pred; `scatter` takes two and gives
//!     one. The result has the operand's shape.
//!   * W7: `map` takes arrays of the same sizes, and `to_apply` a value of each; the result has the
//!     sizes. `dimensions` is empty or lists all dimensions in order.
//!   * W8: `sort` takes arrays of the same sizes, and sorts along one dimension; `to_apply` takes two
//!     values of each and gives pred. The result has the operands' shapes.
//!   * W9: `topk` keeps `k` elements of the last dimension, at most as many as there are, and gives
//!     them and their indices as s32.
//!   * W10: `scan` has one dimension; its last `num_carries` operands are carried. `to_apply` takes
//!     the other operands without this dimension, then the carried ones, and gives a tuple of as
//!     many carried ones after what becomes the results. These have the dimension again.
//!   * W11: batch normalization takes floats; scale, offset, mean and variance have one dimension, of
//!     the size of the feature dimension.

use super::{
    Cx, Inferred, dims_of, gives, has_parameters, one_or_tuple, remaining, same, size, takes,
};
use crate::{
    element::ElementType,
    hlo::{ArrayShape, Attribute, Opcode, Shape, WindowDim},
};

pub(super) fn infer(cx: &Cx) -> Inferred {
    match cx.instruction.opcode {
        Opcode::Reduce => reduce(cx),
        Opcode::ReduceWindow => reduce_window(cx),
        Opcode::SelectAndScatter => select_and_scatter(cx),
        Opcode::Map => map(cx),
        Opcode::Sort => sort(cx),
        Opcode::TopK => topk(cx),
        Opcode::Scan => scan(cx),
        _ => batch_norm(cx),
    }
}

/// W2, and W1 but for the rank.
pub(super) fn num_windows(dim: &WindowDim, extent: i64) -> Result<i64, String> {
    for (what, value) in [
        ("size", dim.size),
        ("stride", dim.stride),
        ("lhs_dilate", dim.base_dilation),
        ("rhs_dilate", dim.window_dilation),
    ] {
        if value < 1 {
            return Err(format!("expected '{what}' of the window to be at least 1, found {value}"));
        }
    }
    let dilated = |count: i64, dilation: i64| match count {
        0 => 0,
        _ => i128::from(count - 1) * i128::from(dilation) + 1,
    };
    let base = dilated(extent, dim.base_dilation)
        + i128::from(dim.padding_low)
        + i128::from(dim.padding_high);
    let window = dilated(dim.size, dim.window_dilation);
    match window <= base {
        true => size((base - window) / i128::from(dim.stride) + 1),
        false => Ok(0),
    }
}

/// W1, W2: the number of windows in each dimension.
fn windows(cx: &Cx, array: &ArrayShape) -> Result<Vec<i64>, String> {
    let window = cx.instruction.window();
    same("the number of dimensions of the window", window.len(), array.rank())?;
    window.iter().zip(&array.dims).map(|(dim, &extent)| num_windows(dim, extent)).collect()
}

/// Whether values of one type can stand for those of the other in a computation.
fn alike(a: ElementType, b: ElementType) -> bool {
    a == b || a.is_float() && b.is_float()
}

/// W4, for the element types of `values`: the first half are combined with the second half. Gives
/// the types of the results.
pub(super) fn reducer(
    cx: &Cx,
    attribute: Attribute,
    values: &[&ArrayShape],
) -> Result<Vec<ElementType>, String> {
    let computation = cx.callee(attribute)?;
    let name = &computation.name;
    let expected = values.len();
    has_parameters(computation, expected)?;
    let results: Vec<_> = computation.root().shape.elements().iter().map(scalar).collect();
    let results = results.into_iter().collect::<Option<Vec<_>>>().filter(|results| {
        results.len() == expected / 2 && (expected != 2 || computation.root().array().is_some())
    });
    let Some(results) = results else {
        return Err(format!(
            "expected computation '{name}' to give {} scalars, found {}",
            expected / 2,
            computation.root().shape.without_layout()
        ));
    };
    for (position, parameter) in computation.parameter_shapes().enumerate() {
        let expected = values[position].element_type;
        let result = results[position % results.len()];
        if !scalar(parameter).is_some_and(|found| alike(found, expected) && alike(found, result)) {
            return Err(format!(
                "expected parameter {position} of computation '{name}' to be {expected}[] as its \
                 result, found {}, and {result}[] as its result",
                parameter.without_layout()
            ));
        }
    }
    Ok(results)
}

/// The element type of an array without dimensions.
fn scalar(shape: &Shape) -> Option<ElementType> {
    shape.as_array().filter(|array| array.is_scalar()).map(|array| array.element_type)
}

/// W3: the arrays, and all operands.
fn reduced<'m>(cx: &Cx<'m>) -> Result<(Vec<&'m ArrayShape>, Vec<&'m ArrayShape>), String> {
    let count = cx.num_operands();
    if !count.is_multiple_of(2) {
        return Err(format!("expected as many initial values as arrays, found {count} operands"));
    }
    let all = cx.arrays(0..count)?;
    let (arrays, inits) = all.split_at(count / 2);
    same_sizes(arrays)?;
    for (array, init) in arrays.iter().zip(inits) {
        if !init.is_scalar() || !alike(init.element_type, array.element_type) {
            return Err(format!("expected {}[] to start with, found {init}", array.element_type));
        }
    }
    Ok((arrays.to_vec(), all))
}

fn same_sizes(arrays: &[&ArrayShape]) -> Result<(), String> {
    for array in arrays {
        if array.dims != arrays[0].dims {
            let first = arrays[0];
            return Err(format!("expected arrays of the same sizes, found {first} and {array}"));
        }
    }
    Ok(())
}

/// One array of these sizes for each type.
fn results(types: Vec<ElementType>, dims: &[i64]) -> Shape {
    one_or_tuple(types.into_iter().map(|ty| Shape::array(ty, dims)).collect())
}

/// W3 to W5.
fn reduce(cx: &Cx) -> Inferred {
    let (arrays, all) = reduced(cx)?;
    let dimensions = cx.instruction.dimensions();
    dims_of("dimensions", dimensions, arrays[0].rank())?;
    let types = reducer(cx, Attribute::ToApply, &all)?;
    Ok(Some(results(types, &remaining(&arrays[0].dims, &[dimensions]))))
}

/// W1 to W5.
fn reduce_window(cx: &Cx) -> Inferred {
    let (arrays, all) = reduced(cx)?;
    let dims = windows(cx, arrays[0])?;
    let types = reducer(cx, Attribute::ToApply, &all)?;
    Ok(Some(results(types, &dims)))
}

/// W6.
fn select_and_scatter(cx: &Cx) -> Inferred {
    let (operand, source, init) = (cx.array(0)?, cx.array(1)?, cx.array(2)?);
    let expected = ArrayShape::new(operand.element_type, windows(cx, operand)?);
    if !source.is_compatible(&expected) {
        return Err(format!("expected {expected} as the source, found {source}"));
    }
    if !init.is_scalar() || !alike(init.element_type, operand.element_type) {
        return Err(format!("expected {}[] to start with, found {init}", operand.element_type));
    }
    let value = Shape::scalar(operand.element_type);
    let select = cx.callee(Attribute::Select)?;
    takes(select, [&value, &value].into_iter())?;
    gives(select, &Shape::scalar(ElementType::Pred))?;
    reducer(cx, Attribute::Scatter, &[source, init])?;
    Ok(Some(cx.operand(0).clone()))
}

/// W7.
fn map(cx: &Cx) -> Inferred {
    let arrays = cx.arrays(0..cx.num_operands())?;
    same_sizes(&arrays)?;
    let dimensions = cx.instruction.dimensions();
    let is_all = dimensions.iter().copied().eq(0..arrays[0].rank() as i64);
    if !dimensions.is_empty() && !is_all {
        return Err(format!("expected all dimensions in 'dimensions', found {dimensions:?}"));
    }
    let computation = cx.callee(Attribute::ToApply)?;
    let values: Vec<_> = arrays.iter().map(|array| Shape::scalar(array.element_type)).collect();
    takes(computation, values.iter())?;
    match scalar(&computation.root().shape) {
        Some(ty) => Ok(Some(Shape::array(ty, arrays[0].dims.clone()))),
        None => Err(format!(
            "expected computation '{}' to give a scalar, found {}",
            computation.name,
            computation.root().shape.without_layout()
        )),
    }
}

/// W8.
fn sort(cx: &Cx) -> Inferred {
    let arrays = cx.arrays(0..cx.num_operands())?;
    same_sizes(&arrays)?;
    cx.dimension(arrays[0].rank())?;
    let computation = cx.callee(Attribute::ToApply)?;
    let values: Vec<_> = arrays
        .iter()
        .flat_map(|array| [Shape::scalar(array.element_type), Shape::scalar(array.element_type)])
        .collect();
    takes(computation, values.iter())?;
    gives(computation, &Shape::scalar(ElementType::Pred))?;
    Ok(Some(one_or_tuple(cx.operands().cloned().collect())))
}

/// W9.
fn topk(cx: &Cx) -> Inferred {
    let operand = cx.array(0)?;
    let k = cx.instruction.integer(Attribute::K).unwrap_or(0);
    let mut dims = operand.dims.clone();
    match dims.last_mut() {
        Some(last) if 0 <= k && k <= *last => *last = k,
        _ => return Err(format!("expected 'k' from 0 to the last size of {operand}, found {k}")),
    }
    let values = Shape::array(operand.element_type, dims.clone());
    Ok(Some(Shape::Tuple(vec![values, Shape::array(ElementType::S32, dims)])))
}

/// W10.
fn scan(cx: &Cx) -> Inferred {
    let carries = cx.instruction.integer(Attribute::NumCarries).unwrap_or(0);
    let count = cx.num_operands();
    let carries = match usize::try_from(carries) {
        Ok(carries) if carries < count => carries,
        _ => {
            let most = count - 1;
            return Err(format!("expected 'num_carries' from 0 to {most}, found {carries}"));
        }
    };
    let inputs = cx.arrays(0..count - carries)?;
    let dim = cx.dimension(inputs[0].rank())?;
    let extent = inputs[0].dims[dim];
    let mut values = Vec::with_capacity(count);
    for input in &inputs {
        if input.dims.get(dim) != Some(&extent) {
            return Err(format!("expected size {extent} in dimension {dim}, found {input}"));
        }
        let slice = remaining(&input.dims, &[&[dim as i64]]);
        values.push(Shape::array(input.element_type, slice));
    }
    values.extend(cx.operands().skip(inputs.len()).cloned());
    let computation = cx.callee(Attribute::ToApply)?;
    takes(computation, values.iter())?;
    let given = computation.root().shape.elements();
    let fits = |at: usize| {
        given[at..].iter().zip(&values[inputs.len()..]).all(|(a, b)| a.is_compatible(b))
    };
    let Some(outputs) = given.len().checked_sub(carries).filter(|&outputs| fits(outputs)) else {
        return Err(format!(
            "expected computation '{}' to give the {carries} carried values last, found {}",
            computation.name,
            computation.root().shape.without_layout()
        ));
    };
    let mut shapes = Vec::with_capacity(given.len());
    for output in &given[..outputs] {
        match output {
            Shape::Array(array) if dim <= array.rank() => {
                let mut dims = array.dims.clone();
                dims.insert(dim, extent);
                shapes.push(Shape::array(array.element_type, dims));
            }
            other => {
                return Err(format!(
                    "expected computation '{}' to give arrays of rank {dim} or more, found {}",
                    computation.name,
                    other.without_layout()
                ));
            }
        }
    }
    shapes.extend_from_slice(&values[inputs.len()..]);
    Ok(Some(match computation.root().shape {
        Shape::Tuple(_) => Shape::Tuple(shapes),
        _ => one_or_tuple(shapes),
    }))
}

/// W11.
fn batch_norm(cx: &Cx) -> Inferred {
    let operand = cx.array(0)?;
    let dim = cx.instruction.integer(Attribute::FeatureIndex).unwrap_or(-1);
    dims_of("feature_index", &[dim], operand.rank())?;
    if !operand.element_type.is_float() {
        return Err(format!("expected an operand that holds floats, found {operand}"));
    }
    let feature = Shape::array(operand.element_type, [operand.dims[dim as usize]]);
    let is_grad = cx.instruction.opcode == Opcode::BatchNormGrad;
    for (position, shape) in cx.operands().enumerate().skip(1) {
        let expected = if is_grad && position == 4 { cx.operand(0) } else { &feature };
        if !shape.is_compatible(expected) {
            return Err(format!(
                "expected operand {position} to have shape {}, found {}",
                expected.without_layout(),
                shape.without_layout()
            ));
        }
    }
    Ok(Some(match cx.instruction.opcode {
        Opcode::BatchNormInference => cx.operand(0).clone(),
        _ => Shape::Tuple(vec![cx.operand(0).clone(), feature.clone(), feature]),
    }))
}
