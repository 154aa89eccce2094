//! Operations whose indices are computed: dynamic-slice, dynamic-update-slice, gather, scatter.
//!
//! Each index is a runtime variable, read from an element of an operand. Where a slice would not fit,
//! `dynamic-slice`, `dynamic-update-slice` and `gather` move it, so that the bounds of the variable
//! are those that fit; `scatter` leaves such a slice out.

use super::{
    InstructionRef, Op, RuntimeSource, dimensions,
    elementwise::{indices, same_position},
    relation::{Condition, Index, Relation, VarId},
};
use crate::hlo::{Attribute, Instruction, Opcode};
use tc_ir::Interval;

/// The first indices that leave room for a slice.
fn room(extent: i64, size: i64) -> Option<Interval> {
    let last = extent.checked_sub(size).filter(|&last| 0 <= last && 0 <= size)?;
    Some(Interval::new(0, last))
}

/// The element that holds the start along each dimension: there is an operand per dimension from
/// `first` on, or one with all of them.
fn start(op: &Op, first: usize, dim: usize) -> Option<(InstructionRef, Vec<Index>)> {
    match op.operand_dims(first)? {
        [_] if op.num_operands() == first + 1 => {
            Some((op.operand_ref(first)?, vec![Index::Const(i64::try_from(dim).ok()?)]))
        }
        _ => {
            let operand = first.checked_add(dim)?;
            op.operand_dims(operand)?.is_empty().then_some((op.operand_ref(operand)?, Vec::new()))
        }
    }
}

/// The variables that say where a part stands in the whole.
fn computed_starts(
    op: &Op,
    relation: &mut Relation,
    part: &[i64],
    whole: &[i64],
    first_start: usize,
) -> Option<Vec<VarId>> {
    if part.len() != whole.len() {
        return None;
    }
    let extents = part.iter().zip(whole).enumerate();
    let starts = extents.map(|(dim, (&part, &whole))| {
        let (source, index) = start(op, first_start, dim)?;
        Some(relation.runtime(room(whole, part)?, RuntimeSource::Element(source), index, true))
    });
    starts.collect()
}

/// Relates a part (as output) to the whole (as operand), in which it stands at computed starts.
fn placed(
    op: &Op,
    part: &[i64],
    whole: &[i64],
    first_start: usize,
    checked: bool,
) -> Option<Relation> {
    let mut relation = Relation::default();
    let (inner, outer) = (relation.vars(part), relation.vars(whole));
    let starts = computed_starts(op, &mut relation, part, whole, first_start)?;
    for (dim, start) in starts.into_iter().enumerate() {
        let terms = [(1, outer[dim]), (-1, inner[dim]), (-1, start)];
        if checked {
            relation.equate(terms, 0);
        } else {
            relation.equate_unchecked(terms, 0);
        }
    }
    relation.output = inner.into_iter().map(Index::Var).collect();
    relation.operands = vec![outer.into_iter().map(Index::Var).collect()];
    Some(relation)
}

/// Every element of the output needs an operand with starts.
fn starts(output: &[i64], operand: &[i64]) -> Relation {
    let mut relation = Relation::default();
    relation.output = indices(&mut relation, output);
    relation.operands = vec![indices(&mut relation, operand)];
    relation
}

/// `dynamic-slice`.
pub(super) fn dynamic_slice(op: &Op, operand: usize) -> Option<Relation> {
    let output = op.output_dims(0)?;
    let dims = op.operand_dims(operand)?;
    if operand == 0 { placed(op, output, dims, 1, true) } else { Some(starts(output, dims)) }
}

/// `dynamic-update-slice`.
pub(super) fn dynamic_update_slice(op: &Op, operand: usize) -> Option<Relation> {
    let output = op.output_dims(0)?;
    let dims = op.operand_dims(operand)?;
    match operand {
        0 => {
            let mut relation = same_position(output, dims)?;
            if !op.like_xla {
                let part = op.operand_dims(1)?;
                let starts = computed_starts(op, &mut relation, part, output, 2)?;
                let replaced = starts.iter().zip(&relation.output).zip(part);
                let replaced = replaced.map(|((&start, &outer), &part)| {
                    let Index::Var(outer) = outer else { return None };
                    let interval = Interval::new(0, part.checked_sub(1)?);
                    let terms = vec![(1, outer), (-1, start)];
                    Some(Condition { terms, constant: 0, step: 1, interval })
                });
                let replaced = replaced.collect::<Option<_>>()?;
                relation.except(replaced);
            }
            Some(relation)
        }
        1 => Some(placed(op, dims, output, 2, !op.like_xla)?.swapped()),
        _ => Some(starts(output, dims)),
    }
}

/// What `gather` and `scatter` have in common: slices of a *large* array (operand of the one, output
/// of the other) at computed indices, side by side in a *small* one.
struct Slices<'a> {
    large: &'a [i64],
    small: &'a [i64],
    /// The operand that holds the indices, and its sizes.
    indices: (InstructionRef, &'a [i64]),
    index_vector_dim: i64,
    /// Dimension of the large array for each component of an index vector.
    index_map: &'a [i64],
    /// Dimensions of the large array that no dimension of the slice in the small one stands for.
    dropped: &'a [i64],
    /// Dimensions of the large array that go with dimensions of the indices.
    batching: &'a [i64],
    indices_batching: &'a [i64],
    /// Dimensions of the small array that run over a slice.
    window: &'a [i64],
    /// Size of a slice in each dimension of the large array.
    sizes: Vec<i64>,
    /// Whether a slice that does not fit is moved.
    moved: bool,
}

/// The index of each array.
struct Places {
    large: Vec<Index>,
    small: Vec<Index>,
    /// Of the indices; the component is free.
    indices: Vec<Index>,
}

impl Slices<'_> {
    /// Relates the indices, and both arrays if `with_slices`, for the components of index vectors
    /// are runtime variables then.
    fn relate(&self, relation: &mut Relation, with_slices: bool) -> Option<Places> {
        let (source, indices) = self.indices;
        let window = dimensions(self.window, self.small.len())?;
        let dropped = dimensions(self.dropped, self.large.len())?;
        let batching = dimensions(self.batching, self.large.len())?;
        let index_map = dimensions(self.index_map, self.large.len())?;
        let indices_batching = dimensions(self.indices_batching, indices.len())?;
        let vector = usize::try_from(self.index_vector_dim).ok()?;

        let small = relation.vars(self.small);
        let mut batch = (0..self.small.len()).filter(|dim| !window.contains(dim));
        let mut position = Vec::new();
        for (dim, &extent) in indices.iter().enumerate() {
            if dim == vector {
                position.push(None);
            } else {
                let place = batch.next()?;
                if self.small[place] != extent {
                    return None;
                }
                position.push(Some(small[place]));
            }
        }
        if batch.next().is_some() || batching.len() != indices_batching.len() {
            return None;
        }
        // The index that holds a component of an index vector.
        let component = |number: Index| -> Vec<Index> {
            position.iter().map(|var| var.map_or(number, Index::Var)).collect()
        };
        let mut places = Places {
            large: Vec::new(),
            small: small.iter().copied().map(Index::Var).collect(),
            indices: component(Index::Const(0)),
        };
        if !with_slices {
            return Some(places);
        }
        let mut windows = window.iter();
        let outer = relation.vars(self.large);
        for (dim, &outer) in outer.iter().enumerate() {
            let (extent, size) = (self.large[dim], *self.sizes.get(dim)?);
            let mut terms = vec![(1, outer)];
            if let Some(number) = batching.iter().position(|&each| each == dim) {
                terms.push((-1, (*position.get(indices_batching[number])?)?));
            } else if !dropped.contains(&dim) {
                terms.push((-1, small[*windows.next()?]));
            }
            if let Some(number) = index_map.iter().position(|&each| each == dim) {
                let index = component(Index::Const(i64::try_from(number).ok()?));
                let source = RuntimeSource::Element(source);
                terms.push((-1, relation.runtime(room(extent, size)?, source, index, self.moved)));
            }
            if let [_, (_, only)] = terms[..]
                && index_map.iter().all(|&each| each != dim)
                && size == extent
            {
                // The whole dimension: one variable for both.
                places.large.push(Index::Var(only));
                continue;
            }
            relation.equate(terms, 0);
            places.large.push(Index::Var(outer));
        }
        Some(places)
    }

    /// Relates the small array (as output) to the indices (as operand).
    fn to_indices(&self) -> Option<Relation> {
        let mut relation = Relation::default();
        let places = self.relate(&mut relation, false)?;
        let mut operand = places.indices;
        let vector = usize::try_from(self.index_vector_dim).ok()?;
        if let Some(place) = operand.get_mut(vector) {
            *place = Index::Var(relation.var(self.indices.1[vector]));
        }
        Some(Relation { output: places.small, operands: vec![operand], ..relation })
    }
}

/// `gather`.
pub(super) fn gather(op: &Op, operand: usize) -> Option<Relation> {
    let dims = op.instruction.gather_dims();
    let slices = Slices {
        large: op.operand_dims(0)?,
        small: op.output_dims(0)?,
        indices: (op.operand_ref(1)?, op.operand_dims(1)?),
        index_vector_dim: dims.index_vector_dim,
        index_map: dims.start_index_map,
        dropped: dims.collapsed_slice_dims,
        batching: dims.operand_batching_dims,
        indices_batching: dims.start_indices_batching_dims,
        window: dims.offset_dims,
        sizes: dims.slice_sizes.to_vec(),
        moved: true,
    };
    if operand != 0 {
        return slices.to_indices();
    }
    let mut relation = Relation::default();
    let places = slices.relate(&mut relation, true)?;
    Some(Relation { output: places.small, operands: vec![places.large], ..relation })
}

/// Whether a `scatter` of `count` operands puts updates in the place of what was there.
fn replaces(op: &Op, output: usize, count: usize) -> bool {
    let Some(combiner) = op.instruction.computation(Attribute::ToApply) else { return false };
    let combiner = &op.module[combiner];
    let root = combiner.root();
    let value = match root.opcode {
        Opcode::Tuple => root.operands.get(output).map(|&id| &combiner[id]),
        _ => Some(root),
    };
    let parameter = value.and_then(Instruction::parameter_number);
    parameter.and_then(|number| usize::try_from(number).ok()).is_some_and(|it| count <= it)
}

/// `scatter`: operands, indices, updates; there are as many updates as operands.
pub(super) fn scatter(op: &Op, output: usize, operand: usize) -> Option<Relation> {
    let count = op.num_operands() / 2;
    let is_conditional = replaces(op, output, count);
    let output = op.output_dims(output)?;
    if operand < count {
        let relation = same_position(output, op.operand_dims(operand)?)?;
        return Some(Relation { is_conditional, ..relation });
    }
    // Updates have the same sizes; those that belong to the indices are those of the first.
    let updates = if operand == count { count + 1 } else { operand };
    let dims = op.instruction.scatter_dims();
    let small = op.operand_dims(updates)?;
    let missing = [dims.inserted_window_dims, dims.input_batching_dims].concat();
    let mut windows = dimensions(dims.update_window_dims, small.len())?.into_iter();
    let mut sizes = Vec::new();
    for dim in 0..i64::try_from(output.len()).ok()? {
        sizes.push(if missing.contains(&dim) { 1 } else { small[windows.next()?] });
    }
    let slices = Slices {
        large: output,
        small,
        indices: (op.operand_ref(count)?, op.operand_dims(count)?),
        index_vector_dim: dims.index_vector_dim,
        index_map: dims.scatter_dims_to_operand_dims,
        dropped: dims.inserted_window_dims,
        batching: dims.input_batching_dims,
        indices_batching: dims.scatter_indices_batching_dims,
        window: dims.update_window_dims,
        sizes,
        moved: false,
    };
    let mut relation = Relation::default();
    if operand == count {
        // Which update an element gets depends on all indices.
        return Some(starts(output, slices.indices.1));
    }
    let places = slices.relate(&mut relation, true)?;
    Some(Relation { output: places.large, operands: vec![places.small], ..relation })
}
