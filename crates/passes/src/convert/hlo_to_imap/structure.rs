//! Instructions that move elements: each element of the result is one of an operand.

use super::{
    Lowering,
    memory::{Memory, empty, empty_array},
    value::Array,
};
use crate::convert::{elements::scalar, generic_builder::GenericBuilder, subscripts::identity};
use melior::ir::{Attribute, AttributeLike, operation::OperationLike};
use tc_dialects::{
    hlo::{
        ArrayShape, Instruction,
        indexing::{Accesses, InstructionRef},
    },
    imap::{self, Combiner},
    mlir::{self, Builder, Val},
};
use tc_ir::Expr;

/// How many operands of `concatenate` are put into a tensor one after the other. Bufferization takes
/// cubic time for such a chain, so that more are written to memory.
const MAX_INSERTIONS: usize = 64;

impl<'c> Lowering<'c, '_> {
    /// Writes elements of `source` into a copy of `target`, at each point of a nest that at the first
    /// index to the second.
    pub(super) fn move_elements(
        &self,
        b: &Builder<'c>,
        nest: &GenericBuilder<'c, '_>,
        (source, from): (&Array<'c>, &[Expr]),
        (target, to): (Array<'c>, &[Expr]),
    ) -> Result<Array<'c>, String> {
        let mut nest = nest.clone();
        nest.read(source.tensor, from.to_vec());
        nest.write(target.tensor, to.to_vec(), Combiner::ASSIGN);
        let moved = nest.build(b, |_, values| Ok(values.to_vec()))?;
        Ok(Array { tensor: moved[0], shape: target.shape })
    }

    /// The array whose element at `d` is the one of `source` at `index(d)`.
    pub(super) fn gather_by_map(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        shape: &ArrayShape,
        index: &[Expr],
    ) -> Result<Array<'c>, String> {
        let target = empty_array(b, shape);
        if shape.num_elements() == Some(0) {
            return Ok(target);
        }
        let nest = GenericBuilder::new(self.ir, &shape.dims);
        let to = identity(self.ir, shape.rank());
        self.move_elements(b, &nest, (source, index), (target, &to))
    }

    /// Writes `source` into a copy of `target`, its element at `d` to `index(d)`.
    pub(super) fn insert_by_map(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        target: Array<'c>,
        index: &[Expr],
    ) -> Result<Array<'c>, String> {
        let nest = GenericBuilder::new(self.ir, source.dims());
        let from = identity(self.ir, source.dims().len());
        self.move_elements(b, &nest, (source, &from), (target, index))
    }

    /// Writes the elements of an operand into a copy of `target`, to where accesses over it lead.
    pub(super) fn insert_along(
        &self,
        b: &Builder<'c>,
        accesses: &Accesses,
        runtimes: Vec<Val<'c>>,
        source: &Array<'c>,
        target: Array<'c>,
    ) -> Result<Array<'c>, String> {
        if accesses.is_empty(self.ir) {
            return Ok(target);
        }
        let nest = GenericBuilder::within(self.ir, accesses.domain.clone(), runtimes);
        self.move_elements(b, &nest, (source, &accesses.index), (target, &accesses.indices[0]))
    }

    /// An array of one value.
    pub(super) fn fill(
        &self,
        b: &Builder<'c>,
        shape: &ArrayShape,
        value: &Array<'c>,
    ) -> Result<Array<'c>, String> {
        self.gather_by_map(b, value, shape, &[])
    }

    /// Instructions whose elements are each one of the first operand; the others may say where it
    /// stands.
    pub(super) fn rearrange(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let accesses = self.over_output(at, 0, &[0])?;
        let nest = GenericBuilder::within(
            self.ir,
            accesses.domain.clone(),
            self.starts(b, at, &accesses, operands)?,
        );
        let target = (empty_array(b, shape), &accesses.index[..]);
        self.move_elements(b, &nest, (operands[0], &accesses.indices[0]), target)
    }

    /// `concatenate`.
    pub(super) fn concatenate(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        sources: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let numbers: Vec<_> = (0..sources.len()).collect();
        let accesses = self.over_operands(at, &numbers)?;
        let pieces = || accesses.iter().zip(sources).filter(|(it, _)| !it.is_empty(self.ir));
        if MAX_INSERTIONS < pieces().count() {
            let result = Memory::allocate(b, shape);
            for (accesses, source) in pieces() {
                result.insert(b, &Memory::of(b, source), self.ir, accesses)?;
            }
            return Ok(result.array(b));
        }
        let mut result = empty_array(b, shape);
        for (accesses, source) in pieces() {
            result = self.insert_along(b, accesses, Vec::new(), source, result)?;
        }
        Ok(result)
    }

    /// `pad`: a read under a guard. What is cut off by negative padding is not read. Padding between
    /// elements is stored first: a guard would take a remainder at each point.
    pub(super) fn pad(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let mut accesses = self.over_output(at, 0, &[0])?;
        let padding = self.module[at.computation][at.instruction].padding();
        if accesses.is_empty(self.ir) || padding.iter().any(|it| it.interior != 0) {
            let filled = self.fill(b, shape, operands[1])?;
            let accesses = &self.over_operands(at, &[0])?[0];
            return self.insert_along(b, accesses, Vec::new(), operands[0], filled);
        }
        let guard = std::mem::take(&mut accesses.domain.constraints);
        let mut nest = GenericBuilder::within(self.ir, accesses.domain.clone(), Vec::new());
        let (source, value) = (operands[0].tensor, operands[1].tensor);
        let constant = mlir::defining_op(value).filter(|op| mlir::is(*op, "arith.constant"));
        let constant = constant.and_then(|op| mlir::splat_of(op.attribute("value").ok()?));
        let is_zero = |it: Attribute| mlir::float_of(it).is_some_and(|it| it.to_bits() == 0);
        let fill = match constant {
            // The only complex number of a guard is zero.
            Some(it) if it.is_array() => {
                mlir::array_of(it).into_iter().all(is_zero).then_some(None)
            }
            number => number.map(Some),
        };
        nest.read_where(source, accesses.indices[0].clone(), (guard.clone(), fill.flatten()));
        if fill.is_none() && !guard.is_empty() {
            nest.read(value, Vec::new());
        }
        nest.write(empty(b, shape), accesses.index.clone(), Combiner::ASSIGN);
        let padded = nest.build(b, |b, values| match *values {
            [element, value] => {
                let inside = imap::build_inside(b, self.ir, &guard);
                Ok(vec![b.select(inside, element, value)])
            }
            _ => Ok(values.to_vec()),
        })?;
        Ok(Array { tensor: padded[0], shape: shape.clone() })
    }

    /// `iota`.
    pub(super) fn iota(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        shape: &ArrayShape,
    ) -> Result<Array<'c>, String> {
        let dim = instruction.integer(tc_dialects::hlo::Attribute::IotaDimension).unwrap_or(0);
        self.generate(b, shape, &|b, index| {
            let wide = b.value("arith.index_cast", &[index[dim as usize]], b.int_type(64));
            let from = tc_dialects::element::ElementType::S64;
            Ok(scalar::convert(b, from, shape.element_type, &[wide]))
        })
    }
}
