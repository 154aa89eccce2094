//! Instructions that move elements to indices computed at run time.
//!
//!   * I1: `dynamic-slice` has one index for each dimension of the operand, integers of one type
//!     (or one list of them), and in `dynamic_slice_sizes` sizes of at most those of the operand,
//!     which are the sizes of the result.
//!   * I2: `dynamic-update-slice` has indices likewise; the update has the element type and the rank
//!     of the operand, and sizes of at most its sizes. The result has the operand's shape.
//!   * I3: the indices of `gather` and `scatter` are integers; `index_vector_dim` is one of their
//!     dimensions, or their rank for index vectors of one component.
//!   * I4: as many entries in `start_index_map` or `scatter_dims_to_operand_dims` as an index vector
//!     has components: different dimensions of the operand.
//!   * I5: batching dimensions of operand and indices are as many, different, and of the same sizes;
//!     those of the operand are not indexed, and those of the indices are not `index_vector_dim`.
//!   * I6: `slice_sizes` has an entry for each dimension of the operand, from 0 to its size; it is
//!     at most 1 for collapsed and batching dimensions, which are different, in increasing order.
//!   * I7: `offset_dims` has an increasing entry for each other dimension of the operand. The result
//!     has the slice sizes there, and the sizes of the indices without `index_vector_dim` in its
//!     other dimensions.
//!   * I8: a `scatter` has as many updates as operands. All updates have the sizes of the indices
//!     without `index_vector_dim` outside of `update_window_dims`; inside, sizes of at most those of
//!     the operand in the dimensions that are neither inserted nor batching.
//!   * I9: `to_apply` of a `scatter` takes a value of each operand, then one of each update, and
//!     gives a value for each operand. The result has the shapes of the operands.

use super::{Cx, Inferred, dims_of, one_or_tuple, remaining, same, window};
use crate::hlo::{ArrayShape, Attribute, Opcode, Shape};

pub(super) fn infer(cx: &Cx) -> Inferred {
    match cx.instruction.opcode {
        Opcode::DynamicSlice => dynamic_slice(cx),
        Opcode::DynamicUpdateSlice => dynamic_update_slice(cx),
        Opcode::Gather => gather(cx),
        _ => scatter(cx),
    }
}

/// The indices from operand `first` on: one for each dimension.
fn start_indices(cx: &Cx, first: usize, rank: usize) -> Result<(), String> {
    let indices = cx.arrays(first..cx.num_operands())?;
    if let [list] = indices[..]
        && list.rank() == 1
    {
        if !list.element_type.is_integer() || list.dims[0] != rank as i64 {
            return Err(format!("expected {rank} integers as indices, found {list}"));
        }
        return Ok(());
    }
    same("the number of indices", indices.len(), rank)?;
    for (position, index) in indices.iter().enumerate() {
        cx.index(first + position)?;
        if index.element_type != indices[0].element_type {
            return Err(format!(
                "expected indices of one type, found {} and {}",
                indices[0].element_type, index.element_type
            ));
        }
    }
    Ok(())
}

/// Checks that sizes are at most those of an array.
fn inside(what: &str, sizes: &[i64], array: &ArrayShape) -> Result<(), String> {
    same(&format!("the rank of {what}"), sizes.len(), array.rank())?;
    for (dim, (&size, &limit)) in sizes.iter().zip(&array.dims).enumerate() {
        if size < 0 || limit < size {
            return Err(format!(
                "expected {what} to have a size from 0 to {limit} in dimension {dim}, found {size}"
            ));
        }
    }
    Ok(())
}

/// I1.
fn dynamic_slice(cx: &Cx) -> Inferred {
    let operand = cx.array(0)?;
    let sizes = cx.instruction.integers(Attribute::DynamicSliceSizes);
    inside("'dynamic_slice_sizes'", sizes, operand)?;
    start_indices(cx, 1, operand.rank())?;
    Ok(Some(Shape::array(operand.element_type, sizes)))
}

/// I2.
fn dynamic_update_slice(cx: &Cx) -> Inferred {
    let (operand, update) = (cx.array(0)?, cx.array(1)?);
    same("the element type of the update", update.element_type, operand.element_type)?;
    inside("the update", &update.dims, operand)?;
    start_indices(cx, 2, operand.rank())?;
    Ok(Some(cx.operand(0).clone()))
}

/// I3: the number of components of an index vector, and the sizes of the indices without them.
fn index_vectors(indices: &ArrayShape, dim: i64) -> Result<(i64, Vec<i64>), String> {
    if !indices.element_type.is_integer() {
        return Err(format!("expected indices that are integers, found {indices}"));
    }
    let rank = indices.rank();
    match usize::try_from(dim) {
        Ok(dim) if dim < rank => {
            let mut dims = indices.dims.clone();
            let components = dims.remove(dim);
            Ok((components, dims))
        }
        Ok(dim) if dim == rank => Ok((1, indices.dims.clone())),
        _ => Err(format!("expected 'index_vector_dim' to be from 0 to {rank}, found {dim}")),
    }
}

/// Checks that a list is increasing.
fn increasing(what: &str, list: &[i64]) -> Result<(), String> {
    if list.is_sorted() {
        return Ok(());
    }
    Err(format!("expected '{what}' in increasing order, found {list:?}"))
}

/// The name of an attribute, and its list of dimensions.
type Named<'a> = (&'static str, &'a [i64]);

/// What the dimensions of the operand and of the indices of a `gather` or `scatter` are for. Both
/// say the same under different names.
struct Indexed<'a> {
    /// Dimensions of the operand that slices or windows do not have.
    dropped: Named<'a>,
    batching: Named<'a>,
    indices_batching: Named<'a>,
    /// The dimension of the operand that each component of an index vector is for.
    index_map: Named<'a>,
    index_vector_dim: i64,
}

/// I3 to I5. The sizes of the indices without index vectors.
fn index_dims(
    dims: &Indexed,
    operand: &ArrayShape,
    indices: &ArrayShape,
) -> Result<Vec<i64>, String> {
    let (components, batch) = index_vectors(indices, dims.index_vector_dim)?;
    let rank = operand.rank();
    let (name, index_map) = dims.index_map;
    dims_of(name, index_map, rank)?;
    same(&format!("the number of entries in '{name}'"), index_map.len() as i64, components)?;
    for (name, list) in [dims.dropped, dims.batching] {
        dims_of(name, list, rank)?;
        increasing(name, list)?;
    }
    let (name, places) = dims.indices_batching;
    let batching = dims.batching.1;
    dims_of(name, places, indices.rank())?;
    same(&format!("the number of entries in '{name}'"), places.len(), batching.len())?;
    for (&dim, &place) in batching.iter().zip(places) {
        if dims.dropped.1.contains(&dim) || index_map.contains(&dim) {
            return Err(format!(
                "dimension {dim} of '{}' is also in '{}' or '{}'",
                dims.batching.0, dims.dropped.0, dims.index_map.0
            ));
        }
        if place == dims.index_vector_dim {
            return Err(format!("'{name}' has 'index_vector_dim'"));
        }
        let (found, expected) = (indices.dims[place as usize], operand.dims[dim as usize]);
        same(&format!("the size of batching dimension {place} of the indices"), found, expected)?;
    }
    Ok(batch)
}

/// I3 to I7.
fn gather(cx: &Cx) -> Inferred {
    let (operand, indices) = (cx.array(0)?, cx.array(1)?);
    let dims = cx.instruction.gather_dims();
    let indexed = Indexed {
        dropped: ("collapsed_slice_dims", dims.collapsed_slice_dims),
        batching: ("operand_batching_dims", dims.operand_batching_dims),
        indices_batching: ("start_indices_batching_dims", dims.start_indices_batching_dims),
        index_map: ("start_index_map", dims.start_index_map),
        index_vector_dim: dims.index_vector_dim,
    };
    let batch = index_dims(&indexed, operand, indices)?;
    inside("'slice_sizes'", dims.slice_sizes, operand)?;
    for list in [dims.collapsed_slice_dims, dims.operand_batching_dims] {
        for &dim in list {
            let size = dims.slice_sizes[dim as usize];
            if 1 < size {
                return Err(format!(
                    "expected a slice size of at most 1 in dimension {dim}, which is collapsed or \
                     batching, found {size}"
                ));
            }
        }
    }
    let dropped = [dims.collapsed_slice_dims, dims.operand_batching_dims];
    let offsets = remaining(dims.slice_sizes, &dropped);
    let rank = offsets.len() + batch.len();
    dims_of("offset_dims", dims.offset_dims, rank)?;
    increasing("offset_dims", dims.offset_dims)?;
    same("the number of entries in 'offset_dims'", dims.offset_dims.len(), offsets.len())?;
    let (mut offsets, mut batch) = (offsets.into_iter(), batch.into_iter());
    let result: Vec<i64> = (0..rank as i64)
        .filter_map(|dim| match dims.offset_dims.contains(&dim) {
            true => offsets.next(),
            false => batch.next(),
        })
        .collect();
    Ok(Some(Shape::array(operand.element_type, result)))
}

/// I3 to I5, I8, I9.
fn scatter(cx: &Cx) -> Inferred {
    let count = cx.num_operands();
    if count.is_multiple_of(2) {
        return Err(format!("expected operands, indices and as many updates, found {count}"));
    }
    let n = count / 2;
    let operands = cx.arrays(0..n)?;
    let indices = cx.array(n)?;
    let updates = cx.arrays(n + 1..count)?;
    let (operand, update) = (operands[0], updates[0]);
    for position in 0..n {
        same(
            "the sizes of all operands",
            format!("{:?}", operands[position].dims),
            format!("{:?}", operand.dims),
        )?;
        same(
            "the sizes of all updates",
            format!("{:?}", updates[position].dims),
            format!("{:?}", update.dims),
        )?;
    }
    let dims = cx.instruction.scatter_dims();
    let indexed = Indexed {
        dropped: ("inserted_window_dims", dims.inserted_window_dims),
        batching: ("input_batching_dims", dims.input_batching_dims),
        indices_batching: ("scatter_indices_batching_dims", dims.scatter_indices_batching_dims),
        index_map: ("scatter_dims_to_operand_dims", dims.scatter_dims_to_operand_dims),
        index_vector_dim: dims.index_vector_dim,
    };
    let batch = index_dims(&indexed, operand, indices)?;
    dims_of("update_window_dims", dims.update_window_dims, update.rank())?;
    increasing("update_window_dims", dims.update_window_dims)?;
    let limits = remaining(&operand.dims, &[dims.inserted_window_dims, dims.input_batching_dims]);
    same(
        "the number of entries in 'update_window_dims'",
        dims.update_window_dims.len(),
        limits.len(),
    )?;
    for (&dim, limit) in dims.update_window_dims.iter().zip(limits) {
        let found = update.dims[dim as usize];
        if limit < found {
            return Err(format!(
                "expected a size of at most {limit} in dimension {dim} of the updates, found {found}"
            ));
        }
    }
    let outside = remaining(&update.dims, &[dims.update_window_dims]);
    if outside != batch {
        return Err(format!(
            "expected the sizes {batch:?} of the indices outside of the window of the updates, \
             found {outside:?}"
        ));
    }
    let values: Vec<&ArrayShape> = operands.iter().chain(&updates).copied().collect();
    window::reducer(cx, Attribute::ToApply, &values)?;
    Ok(Some(one_or_tuple((0..n).map(|position| cx.operand(position).clone()).collect())))
}
