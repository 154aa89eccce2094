//! Reductions, and what moves a window over an array: `reduce`, `reduce-window` and
//! `select-and-scatter`.

use super::{
    Lowering,
    nest::{IndexMath, Memory, Nest, Point, build_inside, extents, fold_box, for_each},
    scalar,
    value::{self, Array, Scalar},
};
use tc_dialects::{
    hlo::{
        ArrayShape, Attribute, ComputationId, ElementKind, ElementType, Opcode,
        indexing::{Accesses, InstructionRef},
    },
    imap::{Combiner, CombinerKind},
    mlir::{Builder, Val},
};

impl<'c> Lowering<'c, '_> {
    /// `reduce` and `reduce-window`.
    pub(super) fn reduce(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let instruction = &self.module[at.computation][at.instruction];
        let applied = self.applied(instruction, Attribute::ToApply)?;
        let (sources, inits) = operands.split_at(operands.len() / 2);
        let accesses = self.over_output(at, 0, &[0])?;
        if accesses.is_empty(self.ir) {
            let results = results.iter().zip(inits);
            return results.map(|(shape, init)| self.fill(b, shape, init)).collect();
        }
        let combiner = self.combiner(applied, sources[0].element());
        let (Some(kind), [source]) = (combiner, sources) else {
            return self.fold_each(b, applied, accesses, operands, results);
        };
        let filled = self.fill(b, results[0], inits[0])?;
        let mut nest = Nest::along(self.ir, &accesses, Vec::new());
        nest.read(source.parts[0], accesses.indices[0].clone());
        nest.write(filled.parts[0], accesses.index, Combiner { kind, from_identity: false });
        let parts = nest.build(b, |_, values| Ok(values.to_vec()))?;
        Ok(vec![Array { parts, shape: results[0].clone() }])
    }

    /// Folds by a computation, in loops over memory. The operands are the arrays read, then what the
    /// folds start from.
    fn fold_each(
        &self,
        b: &Builder<'c>,
        applied: ComputationId,
        accesses: Accesses,
        operands: &[&Array<'c>],
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let ir = self.ir;
        let accesses = &accesses.from_zero(ir);
        let (sources, inits) = operands.split_at(operands.len() / 2);
        let from: Vec<_> = sources.iter().map(|source| Memory::of(b, source)).collect();
        let start: Vec<_> = inits.iter().map(|init| Memory::of(b, init)).collect();
        let to: Vec<_> = results.iter().map(|shape| Memory::allocate(b, shape)).collect();
        let ranges = extents(ir, &accesses.domain.ranges);
        for_each(b, &results[0].dims, &mut |b, dims| {
            let first: Vec<_> = start.iter().flat_map(|memory| memory.load(b, &[])).collect();
            let folded = fold_box(b, &ranges, &first, &mut |b, ranges, carried| {
                let point = Point { ir, accesses, dims, ranges, runtimes: &[] };
                build_inside(b, point.is_inside(b), carried, &mut |b| {
                    let index = point.emit(b, &accesses.indices[0]);
                    let new = from.iter().map(|memory| memory.load(b, &index));
                    let arguments: Vec<_> = split(carried, &from).into_iter().chain(new).collect();
                    Ok(scalar::computation(b, self.module, applied, &arguments)?.concat())
                })
            })?;
            let values = split(&folded, &to);
            to.iter().zip(values).for_each(|(memory, value)| memory.store(b, dims, &value));
            Ok(())
        })?;
        Ok(to.into_iter().map(|memory| memory.array(b)).collect())
    }

    /// The combiner that a computation is, if it is one: a single operation on its parameters, in a
    /// type that is computed as it is stored.
    fn combiner(&self, applied: ComputationId, element: ElementType) -> Option<CombinerKind> {
        let computation = &self.module[applied];
        let root = computation.root();
        let on_parameters = computation.instructions.len() == 3
            && root.operands.len() == 2
            && root.operands[0] != root.operands[1]
            && computation.operands(root).all(|it| it.opcode == Opcode::Parameter);
        if on_parameters { combiner(root.opcode, element) } else { None }
    }

    /// `select-and-scatter`: in each window one element of the operand is selected, and the source
    /// element of the window is added there.
    pub(super) fn select_and_scatter(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
    ) -> Result<Array<'c>, String> {
        let ir = self.ir;
        let instruction = &self.module[at.computation][at.instruction];
        let (operand, source, init) = (operands[0], operands[1], operands[2]);
        let select = self.applied(instruction, Attribute::Select)?;
        let scatter = self.applied(instruction, Attribute::Scatter)?;
        let filled = self.fill(b, &operand.shape, init)?;
        // The result has the sizes of the operand: what may be written is what is compared.
        let accesses = &self.over_operands(at, &[1])?[0];
        if accesses.is_empty(ir) {
            return Ok(filled);
        }
        let result = Memory::copy_of(b, &filled);
        let (from, updates) = (Memory::of(b, operand), Memory::of(b, source));
        let num_values = operand.element().num_parts();
        let ranges = extents(ir, &accesses.domain.ranges);
        for_each(b, &extents(ir, &accesses.domain.dims), &mut |b, dims| {
            // Carried: whether anything was selected, the value, and its index.
            let mut first = vec![b.integer(b.int_type(1), 0)];
            let origin = vec![b.index(0); operand.shape.rank()];
            first.extend(from.load(b, &origin));
            first.extend(&origin);
            let found = fold_box(b, &ranges, &first, &mut |b, ranges, carried| {
                let point = Point { ir, accesses, dims, ranges, runtimes: &[] };
                build_inside(b, point.is_inside(b), carried, &mut |b| {
                    let index = point.emit(b, &accesses.indices[0]);
                    let new = from.load(b, &index);
                    let arguments = [carried[1..1 + num_values].to_vec(), new.clone()];
                    let kept = scalar::computation(b, self.module, select, &arguments)?[0][0];
                    let keeps = b.and(carried[0], kept);
                    let candidates = carried[1..].iter().zip(new.iter().chain(&index));
                    let chosen = candidates.map(|(old, new)| b.select(keeps, *old, *new));
                    Ok([b.integer(b.int_type(1), 1)].into_iter().chain(chosen).collect())
                })
            })?;
            let index = &found[1 + num_values..];
            build_inside(b, Some(found[0]), &[], &mut |b| {
                let point = Point { ir, accesses, dims, ranges: &[], runtimes: &[] };
                let place = point.emit(b, &accesses.index);
                let arguments = [result.load(b, index), updates.load(b, &place)];
                let values = scalar::computation(b, self.module, scatter, &arguments)?;
                result.store(b, index, &values[0]);
                Ok(Vec::new())
            })?;
            Ok(())
        })?;
        Ok(result.array(b))
    }
}

/// The combiner that an opcode is on a type that is computed as it is stored.
pub(in crate::convert) fn combiner(opcode: Opcode, element: ElementType) -> Option<CombinerKind> {
    if element.bits() < 8 {
        return None;
    }
    // A sum of halves would be rounded at each step.
    let sums = matches!(element, ElementType::F32 | ElementType::F64);
    let is_native = !value::is_coded(element);
    Some(match (opcode, element.kind()) {
        (Opcode::Add | Opcode::Or | Opcode::Maximum, ElementKind::Pred) => CombinerKind::Or,
        (Opcode::Multiply | Opcode::And | Opcode::Minimum, ElementKind::Pred) => CombinerKind::And,
        (Opcode::Add, ElementKind::Float) if sums => CombinerKind::Add,
        (Opcode::Multiply, ElementKind::Float) if sums => CombinerKind::Mul,
        (Opcode::Maximum, ElementKind::Float) if is_native => CombinerKind::MaximumF,
        (Opcode::Minimum, ElementKind::Float) if is_native => CombinerKind::MinimumF,
        (_, ElementKind::Float | ElementKind::Complex | ElementKind::Pred) => return None,
        (Opcode::Add, _) => CombinerKind::Add,
        (Opcode::Multiply, _) => CombinerKind::Mul,
        (Opcode::And, _) => CombinerKind::And,
        (Opcode::Or, _) => CombinerKind::Or,
        (Opcode::Maximum, ElementKind::Signed) => CombinerKind::MaxS,
        (Opcode::Minimum, ElementKind::Signed) => CombinerKind::MinS,
        (Opcode::Maximum, _) => CombinerKind::MaxU,
        (Opcode::Minimum, _) => CombinerKind::MinU,
        _ => return None,
    })
}

/// The values of several arrays, from their parts one after the other.
fn split<'c>(values: &[Val<'c>], like: &[Memory<'c>]) -> Vec<Scalar<'c>> {
    let mut rest = values;
    let mut next = |memory: &Memory<'c>| {
        let (scalar, others) = rest.split_at(memory.element().num_parts());
        rest = others;
        scalar.to_vec()
    };
    like.iter().map(&mut next).collect()
}
