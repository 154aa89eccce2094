//! Instructions whose indices are computed: `dynamic-slice`, `dynamic-update-slice`, `gather` and
//! `scatter`.

use super::{
    Lowering,
    nest::{
        IndexMath, Memory, Nest, Point, build_inside, empty_array, extents, for_each, identity,
    },
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
use tc_ir::Var;

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

    /// The loops of accesses whose runtime variables are elements of operands. Those that have to be
    /// in an interval are moved into it where the accesses use them.
    fn through_tables<'i>(
        &'i self,
        b: &Builder<'c>,
        at: InstructionRef,
        accesses: &mut Accesses,
        operands: &[&Array<'c>],
    ) -> Result<Nest<'c, 'i>, String> {
        let ir = self.ir;
        let mut nest = Nest::along(ir, accesses, Vec::new());
        let mut moved = Vec::new();
        let mut widened: Option<(usize, Array<'c>)> = None;
        for (number, runtime) in (0..).zip(&accesses.runtimes) {
            let operand = self.operand_of(at, runtime)?;
            let mut table = operands[operand].clone();
            let is_unsigned = table.element().kind() != ElementKind::Signed;
            if table.element() == ElementType::U64 {
                let known = widened.take().filter(|(known, _)| *known == operand);
                let values = known.map_or_else(|| self.as_indices(b, &table), |(_, it)| Ok(it))?;
                table = values.clone();
                widened = Some((operand, values));
            }
            nest.table(table.parts[0], runtime.map.results.clone(), is_unsigned);
            moved.push(runtime.moved_into.map(|interval| {
                let value = ir.max(ir.runtime(number), ir.constant(interval.lo));
                ir.min(value, ir.constant(interval.hi))
            }));
        }
        let moved_value = |var| match var {
            Var::Runtime(number) => moved[number as usize],
            _ => None,
        };
        for index in &mut accesses.indices {
            *index = ir.substitute_all(index, &moved_value);
        }
        Ok(nest)
    }

    /// Unsigned numbers of 64 bits as indices: what does not fit is far outside of any array anyway.
    fn as_indices(&self, b: &Builder<'c>, array: &Array<'c>) -> Result<Array<'c>, String> {
        let sources = [(array, identity(self.ir, array.shape.rank()))];
        self.compute(b, &array.shape, &sources, &|b, values| {
            let (value, ty) = (values[0][0], b.int_type(64));
            let is_large = b.compare_int("slt", value, b.integer(ty, 0));
            Ok(vec![b.select(is_large, b.integer(ty, i64::MAX), value)])
        })
    }

    pub(super) fn gather(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let mut accesses = self.over_output(at, 0, &[0])?;
        let target = empty_array(b, shape);
        if accesses.is_empty(self.ir) {
            return Ok(target);
        }
        let nest = self.through_tables(b, at, &mut accesses, operands)?;
        let from = (operands[0], &accesses.indices[0][..]);
        self.move_elements(b, &nest, from, (target, &accesses.index))
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
