//! Instructions whose indices are computed: `dynamic-slice`, `dynamic-update-slice`, `gather` and
//! `scatter`.

use super::{
    Lowering,
    nest::{IndexMath, Memory, Nest, empty, for_each, identity},
    scalar,
    value::{Array, Scalar},
};
use crate::convert::loops::build_if;
use tc_dialects::{
    hlo::{ArrayShape, Attribute, ElementKind, ElementType, Instruction},
    imap::Combiner,
    mlir::{self, Builder, Val},
};

/// An integer element as an index. What does not fit is far outside of any array anyway.
pub(in crate::convert) fn to_index<'c>(
    b: &Builder<'c>,
    element: ElementType,
    value: Val<'c>,
) -> Val<'c> {
    if element.kind() == ElementKind::Signed {
        return b.value("arith.index_cast", &[value], b.index_type());
    }
    let index = b.value("arith.index_castui", &[value], b.index_type());
    let least = b.index(0);
    let is_large = b.compare_int("slt", index, least);
    b.select(is_large, b.index(i64::MAX), index)
}

impl<'c> Lowering<'c, '_> {
    /// Where a slice starts, moved so that it fits: an index per dimension and the last one there
    /// is room for.
    fn starts(
        &self,
        b: &Builder<'c>,
        indices: &[&Array<'c>],
        dims: &[i64],
        sizes: &[i64],
    ) -> Vec<(Val<'c>, i64)> {
        let mut starts = Vec::new();
        for (number, (dim, size)) in dims.iter().zip(sizes).enumerate() {
            // One index per dimension, or all of them in one array.
            let (array, place) = match indices {
                [only] if only.shape.rank() == 1 => (*only, vec![b.index(number as i64)]),
                _ => (indices[number], Vec::new()),
            };
            let ty = mlir::element_type(melior::ir::ValueLike::r#type(&array.parts[0]));
            let operands = [&[array.parts[0]], place.as_slice()].concat();
            let value = b.value("tensor.extract", &operands, ty);
            let last = dim - size;
            starts.push((b.clamp_index(to_index(b, array.element(), value), last), last));
        }
        starts
    }

    pub(super) fn dynamic_slice(
        &self,
        b: &Builder<'c>,
        operands: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let (source, indices) = (operands[0], &operands[1..]);
        let starts = self.starts(b, indices, source.dims(), &shape.dims);
        let inits = empty(b, shape);
        let parts = source.parts.iter().zip(inits).map(|(part, init)| {
            let mut nest = Nest::new(self.ir, &shape.dims);
            let mut index = identity(self.ir, shape.rank());
            for (at, (start, last)) in index.iter_mut().zip(&starts) {
                *at = self.ir.add(*at, nest.runtime(*start, *last));
            }
            nest.read(*part, index);
            nest.write(init, identity(self.ir, shape.rank()), Combiner::ASSIGN);
            Ok(nest.build(b, |_, values| Ok(values.to_vec()))?[0])
        });
        Ok(Array { parts: parts.collect::<Result<_, String>>()?, shape: shape.clone() })
    }

    pub(super) fn dynamic_update_slice(
        &self,
        b: &Builder<'c>,
        operands: &[&Array<'c>],
    ) -> Result<Array<'c>, String> {
        let (target, update, indices) = (operands[0], operands[1], &operands[2..]);
        let starts = self.starts(b, indices, target.dims(), update.dims());
        let ir = self.ir;
        self.insert_by_map(b, update, target.clone(), &starts, &|starts| {
            let dims = identity(ir, starts.len());
            dims.into_iter().zip(starts).map(|(dim, start)| ir.add(dim, *start)).collect()
        })
    }

    pub(super) fn gather(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        source: &Array<'c>,
        indices: &Array<'c>,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let dims = instruction.gather_dims();
        let rank = source.shape.rank();
        let (from, at) = (Memory::of(b, source), Memory::of(b, indices));
        let to = Memory::allocate(b, shape);
        let contains = |list: &[i64], dim: usize| list.contains(&(dim as i64));
        // The dimensions of the operand that the slice keeps, in order of `offset_dims`.
        let kept: Vec<usize> = (0..rank)
            .filter(|dim| {
                !contains(dims.collapsed_slice_dims, *dim)
                    && !contains(dims.operand_batching_dims, *dim)
            })
            .collect();
        for_each(b, &shape.dims, &mut |b, result| {
            let batch: Vec<_> = (0..shape.rank())
                .filter(|dim| !contains(dims.offset_dims, *dim))
                .map(|dim| result[dim])
                .collect();
            let mut index = vec![b.index(0); rank];
            for (component, dim) in dims.start_index_map.iter().enumerate() {
                let component = b.index(component as i64);
                let place = index_place(&batch, dims.index_vector_dim, indices, component);
                let start = to_index(b, at.element(), at.load(b, &place)[0]);
                let dim = *dim as usize;
                let last = source.dims()[dim] - dims.slice_sizes[dim];
                index[dim] = b.clamp_index(start, last);
            }
            let batching = dims.operand_batching_dims.iter();
            for (dim, of) in batching.zip(dims.start_indices_batching_dims) {
                index[*dim as usize] = batch[batch_place(*of, dims.index_vector_dim)];
            }
            for (dim, offset) in kept.iter().zip(dims.offset_dims) {
                index[*dim] = b.add_index(index[*dim], result[*offset as usize]);
            }
            to.store(b, result, &from.load(b, &index));
            Ok(())
        })?;
        Ok(to.array(b))
    }

    /// `scatter`: an update whose window does not fit is left out.
    pub(super) fn scatter(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        operands: &[&Array<'c>],
    ) -> Result<Vec<Array<'c>>, String> {
        let dims = instruction.scatter_dims();
        let count = (operands.len() - 1) / 2;
        let (targets, indices, updates) =
            (&operands[..count], operands[count], &operands[count + 1..]);
        let applied = self.applied(instruction, Attribute::ToApply)?;
        let results: Vec<_> = targets.iter().map(|target| Memory::copy_of(b, target)).collect();
        let at = Memory::of(b, indices);
        let sources: Vec<_> = updates.iter().map(|update| Memory::of(b, update)).collect();
        let target_dims = targets[0].dims();
        let update_dims = updates[0].dims();
        let rank = target_dims.len();
        let contains = |list: &[i64], dim: usize| list.contains(&(dim as i64));
        let window: Vec<usize> = (0..rank)
            .filter(|dim| {
                !contains(dims.inserted_window_dims, *dim)
                    && !contains(dims.input_batching_dims, *dim)
            })
            .collect();
        for_each(b, update_dims, &mut |b, update| {
            let batch: Vec<_> = (0..update_dims.len())
                .filter(|dim| !contains(dims.update_window_dims, *dim))
                .map(|dim| update[dim])
                .collect();
            let mut index = vec![b.index(0); rank];
            let mut fits = b.integer(b.int_type(1), 1);
            for (component, dim) in dims.scatter_dims_to_operand_dims.iter().enumerate() {
                let component = b.index(component as i64);
                let place = index_place(&batch, dims.index_vector_dim, indices, component);
                let start = to_index(b, at.element(), at.load(b, &place)[0]);
                let dim = *dim as usize;
                // The window fits if its first element and its last one are inside.
                let extent = window
                    .iter()
                    .position(|it| *it == dim)
                    .map_or(1, |place| update_dims[dims.update_window_dims[place] as usize]);
                let room = target_dims[dim] - extent + 1;
                if room <= 0 {
                    fits = b.integer(b.int_type(1), 0);
                } else {
                    fits = b.and(fits, b.is_inside(start, room));
                }
                index[dim] = start;
            }
            let batching = dims.input_batching_dims.iter();
            for (dim, of) in batching.zip(dims.scatter_indices_batching_dims) {
                index[*dim as usize] = batch[batch_place(*of, dims.index_vector_dim)];
            }
            for (dim, offset) in window.iter().zip(dims.update_window_dims) {
                index[*dim] = b.add_index(index[*dim], update[*offset as usize]);
            }
            let mut failed = Ok(());
            build_if(
                b,
                fits,
                &mut |b| {
                    let old = results.iter().map(|memory| memory.load(b, &index));
                    let new = sources.iter().map(|memory| memory.load(b, update));
                    let arguments: Vec<Scalar<'c>> = old.chain(new).collect();
                    match scalar::computation(b, self.module, applied, &arguments) {
                        Ok(values) => {
                            for (memory, value) in results.iter().zip(&values) {
                                memory.store(b, &index, value);
                            }
                        }
                        Err(error) => failed = Err(error),
                    }
                    Vec::new()
                },
                &mut |_| Vec::new(),
            );
            failed
        })?;
        Ok(results.into_iter().map(|memory| memory.array(b)).collect())
    }
}

/// Where a component of an index vector stands: the batch index, with the component put in.
fn index_place<'c>(
    batch: &[Val<'c>],
    index_vector_dim: i64,
    indices: &Array<'c>,
    component: Val<'c>,
) -> Vec<Val<'c>> {
    let mut place = batch.to_vec();
    if (index_vector_dim as usize) < indices.shape.rank() {
        place.insert(index_vector_dim as usize, component);
    }
    place
}

/// The number among the batch dimensions of a dimension of the indices.
fn batch_place(dim: i64, index_vector_dim: i64) -> usize {
    (if dim < index_vector_dim { dim } else { dim - 1 }) as usize
}
