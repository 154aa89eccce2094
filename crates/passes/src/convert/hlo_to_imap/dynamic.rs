//! Instructions whose indices are computed: `dynamic-slice`, `dynamic-update-slice`, `gather` and
//! `scatter`.

use super::{
    Lowering,
    nest::{IndexMath, Memory, Point, build_inside, extents, for_each},
    scalar,
    value::{Array, storage_type},
};
use tc_dialects::{
    hlo::{
        ArrayShape, Attribute, ElementKind, ElementType,
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
    /// The values of the runtime variables of accesses at an iteration. `load` reads an element of an
    /// operand.
    fn runtimes(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        (accesses, dims): (&Accesses, &[Val<'c>]),
        operands: &[&Array<'c>],
        load: &dyn Fn(usize, &[Val<'c>]) -> Val<'c>,
    ) -> Result<Vec<Val<'c>>, String> {
        let point = Point { ir: self.ir, accesses, dims, ranges: &[], runtimes: &[] };
        let value = |runtime: &RuntimeVariable| {
            let number = self.operand_of(at, runtime)?;
            let value = load(number, &point.emit(b, &runtime.map.results));
            let value = to_index(b, operands[number].element(), value);
            Ok(runtime.moved_into.map_or(value, |interval| b.clamp_index(value, interval.hi)))
        };
        accesses.runtimes.iter().map(value).collect()
    }

    /// The values of the runtime variables of accesses that all iterations share.
    pub(super) fn starts(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        accesses: &Accesses,
        operands: &[&Array<'c>],
    ) -> Result<Vec<Val<'c>>, String> {
        self.runtimes(b, at, (accesses, &[]), operands, &|number, place| {
            let array = operands[number];
            let ty = storage_type(b, array.element());
            b.value("tensor.extract", &[&[array.parts[0]], place].concat(), ty)
        })
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
        at: InstructionRef,
        operands: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let accesses = &self.over_output(at, 0, &[0])?;
        let (from, indices) = (Memory::of(b, operands[0]), Memory::of(b, operands[1]));
        let to = Memory::allocate(b, shape);
        for_each(b, &shape.dims, &mut |b, dims| {
            let load = |_, place: &[Val<'c>]| indices.load(b, place)[0];
            let runtimes = &self.runtimes(b, at, (accesses, dims), operands, &load)?;
            let point = Point { ir: self.ir, accesses, dims, ranges: &[], runtimes };
            to.store(b, dims, &from.load(b, &point.emit(b, &accesses.indices[0])));
            Ok(())
        })?;
        Ok(to.array(b))
    }

    /// `scatter`: an update whose window does not fit is left out.
    pub(super) fn scatter(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
    ) -> Result<Vec<Array<'c>>, String> {
        let ir = self.ir;
        let instruction = &self.module[at.computation][at.instruction];
        let applied = self.applied(instruction, Attribute::ToApply)?;
        let count = operands.len() / 2;
        let (targets, updates) = (&operands[..count], &operands[count + 1..]);
        let accesses = &self.over_operands(at, &[count + 1])?[0];
        if accesses.is_empty(ir) {
            return Ok(targets.iter().map(|target| (*target).clone()).collect());
        }
        let results: Vec<_> = targets.iter().map(|target| Memory::copy_of(b, target)).collect();
        let indices = Memory::of(b, operands[count]);
        let sources: Vec<_> = updates.iter().map(|update| Memory::of(b, update)).collect();
        for_each(b, &extents(ir, &accesses.domain.dims), &mut |b, dims| {
            let load = |_, place: &[Val<'c>]| indices.load(b, place)[0];
            let runtimes = &self.runtimes(b, at, (accesses, dims), operands, &load)?;
            let point = Point { ir, accesses, dims, ranges: &[], runtimes };
            build_inside(b, point.is_inside(b), &[], &mut |b| {
                let place = point.emit(b, &accesses.index);
                let index = point.emit(b, &accesses.indices[0]);
                let old = results.iter().map(|memory| memory.load(b, &index));
                let new = sources.iter().map(|memory| memory.load(b, &place));
                let arguments: Vec<_> = old.chain(new).collect();
                let values = scalar::computation(b, self.module, applied, &arguments)?;
                for (memory, value) in results.iter().zip(&values) {
                    memory.store(b, &index, value);
                }
                Ok(Vec::new())
            })?;
            Ok(())
        })?;
        Ok(results.into_iter().map(|memory| memory.array(b)).collect())
    }
}
