//! Instructions whose indices are computed: `dynamic-slice`, `dynamic-update-slice`, `gather` and
//! `scatter`.

use super::{
    Lowering,
    computation::build_computation,
    memory::{Point, empty_array},
    value::Array,
};
use crate::convert::{
    elements::{decode_all, encode_element, is_narrow, scalar, storage_type, sum_type, to_index},
    generic_builder::GenericBuilder,
    index_emitter::IndexMath,
    subscripts::identity,
};
use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::{
        ArrayShape, Attribute, ComputationId, Opcode,
        indexing::{Accesses, InstructionRef, RuntimeVariable},
    },
    imap::{self, Combiner, CombinerKind, Indexed, ScatterPromises},
    mlir::{self, Builder, Val},
};
use tc_ir::{Constraint, Expr, Var};

/// The most instructions between a constant and its use as an index.
const MAX_CHAIN: usize = 16;

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
        let value = |runtime: &RuntimeVariable| {
            let array = operands[self.operand_of(at, runtime)?];
            let place = point.emit(b, &runtime.map.results);
            let ty = storage_type(b, array.element());
            let value = b.value("tensor.extract", &[&[array.tensor], &place[..]].concat(), ty);
            let value = to_index(b, array.element(), value);
            Ok(runtime.moved_into.map_or(value, |interval| b.clamp_index(value, interval.hi)))
        };
        accesses.runtimes.iter().map(value).collect()
    }

    /// The number of the operand that a runtime variable is read from.
    fn operand_of(&self, at: InstructionRef, runtime: &RuntimeVariable) -> Result<usize, String> {
        let source = runtime.source.instruction().instruction;
        let operands = &self.module[at.computation][at.instruction].operands;
        let number = operands.iter().position(|operand| *operand == source);
        number.ok_or_else(|| self.unrelated(at))
    }

    /// The values of the runtime variables of accesses, if they are the same for all iterations and constants of the
    /// module say them.
    fn known_starts(&self, at: InstructionRef, accesses: &Accesses) -> Option<Vec<i64>> {
        let value = |runtime: &RuntimeVariable| {
            let place = self.known_values(&runtime.map.results)?;
            let instruction = runtime.source.instruction().instruction;
            self.known_integer(InstructionRef { instruction, ..at }, &place)
        };
        accesses.runtimes.iter().map(value).collect()
    }

    fn known_values(&self, exprs: &[Expr]) -> Option<Vec<i64>> {
        exprs.iter().map(|expr| self.ir.as_constant(*expr)).collect()
    }

    /// The integer at a place of an array, if it comes from a constant.
    fn known_integer(&self, mut at: InstructionRef, place: &[i64]) -> Option<i64> {
        let mut place = place.to_vec();
        for _ in 0..MAX_CHAIN {
            let instruction = &self.module[at.computation][at.instruction];
            match instruction.opcode {
                Opcode::Constant => {
                    let literal = instruction.literal()?.as_array()?;
                    let dims = &instruction.shape.as_array()?.dims;
                    let index = |index: i64, (place, extent): (&i64, &i64)| index * extent + place;
                    let index = place.iter().zip(dims).fold(0, index);
                    let position =
                        if literal.is_splat { 0 } else { usize::try_from(index).ok()? };
                    return i64::try_from(literal.integer(position)?).ok();
                }
                Opcode::Broadcast | Opcode::Copy | Opcode::Reshape | Opcode::Slice => {
                    let accesses = self.over_output(at, 0, &[0]).ok()?;
                    let at_place = |var| match var {
                        Var::Dim(dim) => Some(self.ir.constant(*place.get(dim as usize)?)),
                        _ => None,
                    };
                    place = self
                        .known_values(&self.ir.substitute_all(&accesses.indices[0], &at_place))?;
                }
                _ => return None,
            }
            at.instruction = *instruction.operands.first()?;
        }
        None
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
    ) -> Result<GenericBuilder<'c, 'i>, String> {
        let ir = self.ir;
        let mut nest = GenericBuilder::within(ir, accesses.domain.clone(), Vec::new());
        // All runtime variables are elements of the same operand.
        let Some(first) = accesses.runtimes.first() else { return Ok(nest) };
        let mut table = operands[self.operand_of(at, first)?].clone();
        let is_unsigned = table.element().kind() != ElementKind::Signed;
        if table.element() == ElementType::U64 {
            table = self.as_indices(b, &table)?;
        } else if is_narrow(table.element()) {
            // A runtime variable is stored as it is read.
            let (from, shape) = (table.element(), table.shape.clone());
            let wide = ArrayShape { element_type: sum_type(from), ..shape };
            let sources = [(&table, identity(ir, wide.rank()))];
            table = self.compute(b, &wide, &sources, &|b, values| {
                Ok(scalar::convert(b, from, wide.element_type, &values[0]))
            })?;
        }
        let mut moved = Vec::new();
        for (number, runtime) in (0..).zip(&accesses.runtimes) {
            nest.table(table.tensor, runtime.map.results.clone(), is_unsigned);
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
        let mut accesses = self.over_operands(at, &[count + 1])?.remove(0);
        if accesses.is_empty(ir) {
            return Ok(targets.iter().map(|target| (*target).clone()).collect());
        }
        if let ([target], [update]) = (targets, updates)
            && let Some(starts) = self.known_starts(at, &accesses)
        {
            let fits = |(number, start): (u32, &i64)| {
                accesses.domain.interval(ir, Var::Runtime(number)).contains(*start)
            };
            if !(0..).zip(&starts).all(fits) {
                return Ok(vec![(*target).clone()]);
            }
            let window = match self.replaces(applied) {
                true => (*update).clone(),
                false => self.updated(b, (applied, &accesses), &starts, [target, update])?,
            };
            let starts = starts.into_iter().map(|start| b.index(start)).collect();
            let result = self.insert_along(b, &accesses, starts, &window, (*target).clone())?;
            return Ok(vec![result]);
        }
        let mut guard = std::mem::take(&mut accesses.domain.constraints);
        for number in (0..).take(accesses.runtimes.len()) {
            let interval = accesses.domain.interval(ir, Var::Runtime(number));
            guard.push(Constraint { expr: ir.runtime(number), interval });
        }
        let mut nest = self.through_tables(b, at, &mut accesses, operands)?;
        // The start indices are sorted, to which batch dimensions add.
        let has_batches = !instruction.scatter_dims().input_batching_dims.is_empty();
        nest.scatter(
            guard,
            ScatterPromises {
                unique: instruction.flag(Attribute::UniqueIndices),
                sorted: instruction.flag(Attribute::IndicesAreSorted) && !has_batches,
            },
        );
        for update in updates {
            nest.read(update.tensor, accesses.index.clone());
        }
        self.build_scatter(b, nest, applied, targets, &accesses.indices[0])
    }

    /// A window of a target at known starts, which a computation combines with its updates.
    fn updated(
        &self,
        b: &Builder<'c>,
        (applied, accesses): (ComputationId, &Accesses),
        starts: &[i64],
        [target, update]: [&Array<'c>; 2],
    ) -> Result<Array<'c>, String> {
        let at_start = |var| match var {
            Var::Runtime(number) => Some(self.ir.constant(starts[number as usize])),
            _ => None,
        };
        let place = self.ir.substitute_all(&accesses.indices[0], &at_start);
        let sources = [(target, place), (update, accesses.index.clone())];
        self.compute(b, &update.shape, &sources, &|b, values| {
            let mut results = build_computation(b, self.module, applied, values)?.into_iter();
            results.next().ok_or_else(|| "the computation of a scatter has no result".to_string())
        })
    }

    /// Builds a scatter that reads its updates: a computation combines them with the elements of targets.
    pub(super) fn build_scatter(
        &self,
        b: &Builder<'c>,
        mut nest: GenericBuilder<'c, '_>,
        applied: ComputationId,
        targets: &[&Array<'c>],
        index: &[Expr],
    ) -> Result<Vec<Array<'c>>, String> {
        let elements: Vec<_> = targets.iter().map(|target| target.element()).collect();
        let kind = match elements[..] {
            _ if self.replaces(applied) => CombinerKind::Assign,
            [element] if !is_narrow(element) => {
                self.combiner(applied, element).unwrap_or(CombinerKind::Custom)
            }
            _ => CombinerKind::Custom,
        };
        for target in targets {
            nest.write(target.tensor, index.to_vec(), Combiner { kind, from_identity: false });
        }
        let scatter = nest.build_generic(b, false);
        let (body, arguments) = b.inside(scatter.body());
        imap::build_yield(&body, &arguments);
        if let Some(block) = scatter.combiner() {
            let (combine, arguments) = b.inside(block);
            let both: Vec<_> = elements.iter().chain(&elements).copied().collect();
            let arguments = decode_all(&combine, &both, &arguments);
            let values = build_computation(&combine, self.module, applied, &arguments)?;
            let stored = elements.iter().zip(&values);
            let stored = stored.map(|(element, value)| encode_element(&combine, *element, value));
            imap::build_yield(&combine, &stored.collect::<Vec<_>>());
        }
        let results = targets.iter().zip(mlir::results(scatter.op()));
        Ok(results.map(|(it, tensor)| Array { tensor, shape: it.shape.clone() }).collect())
    }

    /// Whether a computation of old and new values gives the new ones.
    fn replaces(&self, applied: ComputationId) -> bool {
        let computation = &self.module[applied];
        let (root, parameters) = (computation.root(), &computation.parameters);
        let new = &parameters[parameters.len() / 2..];
        match (root.opcode, new) {
            (Opcode::Tuple, _) => root.operands == new,
            (_, [new]) => std::ptr::eq(root, &computation[*new]),
            _ => false,
        }
    }
}
