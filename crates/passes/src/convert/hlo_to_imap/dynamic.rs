//! Instructions whose indices are computed: `dynamic-slice`, `dynamic-update-slice`, `gather` and
//! `scatter`.

use super::{
    Lowering,
    nest::{IndexMath, Memory, Point, for_each},
    scalar,
    value::{Array, Scalar, storage_type},
};
use crate::convert::loops::build_if;
use tc_dialects::{
    hlo::{
        ArrayShape, Attribute, ElementKind, ElementType, Instruction,
        indexing::{Accesses, InstructionRef, RuntimeVariable},
    },
    mlir::{Builder, Val},
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
    /// The values of the runtime variables of accesses that all iterations share.
    pub(super) fn starts(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        accesses: &Accesses,
        operands: &[&Array<'c>],
    ) -> Result<Vec<Val<'c>>, String> {
        let point = Point { ir: self.ir, accesses, dims: &[], ranges: &[], runtimes: &[] };
        let start = |runtime: &RuntimeVariable| {
            let array = operands[self.operand_of(at, runtime)?];
            let ty = storage_type(b, array.element());
            let place = point.emit(b, &runtime.map.results);
            let value = b.value("tensor.extract", &[&[array.parts[0]], &place[..]].concat(), ty);
            let value = to_index(b, array.element(), value);
            Ok(runtime.moved_into.map_or(value, |interval| b.clamp_index(value, interval.hi)))
        };
        accesses.runtimes.iter().map(start).collect()
    }

    /// The number of the operand that a runtime variable is read from.
    fn operand_of(&self, at: InstructionRef, runtime: &RuntimeVariable) -> Result<usize, String> {
        let source = runtime.source.instruction().instruction;
        let operands = &self.module[at.computation][at.instruction].operands;
        let number = operands.iter().position(|operand| *operand == source);
        number.ok_or_else(|| self.unrelated(at))
    }

    pub(super) fn dynamic_update_slice(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
    ) -> Result<Array<'c>, String> {
        let accesses = &self.over_operands(at, &[1])?[0];
        let starts = self.starts(b, at, accesses, operands)?;
        self.insert_along(b, accesses, starts, operands[1], operands[0].clone())
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
