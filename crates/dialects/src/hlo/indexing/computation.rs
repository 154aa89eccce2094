//! Maps through whole computations: fusions, calls, groups of instructions, epilogues.
//!
//! From the start on, against or along the data flow, each instruction gets the set of maps that
//! connect it to the start; those of its operands or users follow by composition. An instruction is
//! visited once, when its set is complete.

use super::{
    Direction, Indexing, IndexingSet, InstructionRef, Op, OperandIndexing, array,
    elementwise::same_position, num_arrays, relation::Relation,
};
use crate::hlo::{ComputationId, InstructionId, Opcode, Shape};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
};
use tc_ir::IndexingMap;

/// For each instruction that is reached, the maps between the start and it.
/// [`OperandIndexing::array`] says which array of the instruction a map belongs to.
pub type Grouped = BTreeMap<InstructionId, IndexingSet>;

/// Maps through computations that instructions call.
#[derive(Default)]
pub(super) struct Summaries {
    /// From an output of the root to each parameter.
    backward: HashMap<(ComputationId, usize), Rc<Vec<IndexingSet>>>,
    /// From a parameter to each output of the root, with the array of the parameter.
    forward: HashMap<(ComputationId, usize), Rc<Vec<IndexingSet>>>,
}

/// How one operand of a `fusion`, `call` or `conditional` enters the computations it calls: as this
/// parameter of this computation.
fn entries(op: &Op) -> Option<Vec<(usize, ComputationId, usize)>> {
    let count = op.num_operands();
    Some(match op.instruction.opcode {
        // The first operand selects the branch, and each branch has an operand.
        Opcode::Conditional => {
            let branches = op.instruction.branches();
            (1..count).zip(branches).map(|(operand, branch)| (operand, branch, 0)).collect()
        }
        _ => {
            let callee = op.instruction.called_computations().next()?;
            (0..count).map(|operand| (operand, callee, operand)).collect()
        }
    })
}

impl<'m> Indexing<'m> {
    /// For each instruction that output `output` of `start` needs, the maps that lead to it. The
    /// start itself has the identity. Only instructions of `scope` are looked through, if there is
    /// one: their operands are reached, whatever they are.
    pub fn grouped(
        &self,
        start: InstructionRef,
        output: usize,
        scope: Option<&HashSet<InstructionId>>,
    ) -> Grouped {
        self.summarize_callees(start.computation, Direction::OutputToInput);
        self.backward(start, output, scope)
    }

    fn backward(
        &self,
        start: InstructionRef,
        output: usize,
        scope: Option<&HashSet<InstructionId>>,
    ) -> Grouped {
        let mut grouped = Grouped::new();
        let computation = &self.module[start.computation];
        grouped.insert(start.instruction, self.identity(&self.instruction(start).shape, output));
        let mut next = Some(start.instruction);
        while let Some(instruction) = next {
            if scope.is_none_or(|scope| scope.contains(&instruction)) {
                let consumer = grouped.get(&instruction).cloned().unwrap_or_default();
                let at = InstructionRef { instruction, ..start };
                let mut outputs: Vec<usize> =
                    consumer.maps().iter().map(|indexing| indexing.array).collect();
                outputs.extend(consumer.unknown_arrays());
                outputs.sort_unstable();
                outputs.dedup();
                for output in outputs {
                    let producers = self.output_to_input(at, output);
                    let maps = || consumer.maps().iter().filter(|it| it.array == output);
                    let is_unknown = consumer.unknown_arrays().any(|array| array == output);
                    for (&operand, producer) in
                        computation[instruction].operands.iter().zip(&producers)
                    {
                        if producer.is_empty() {
                            continue;
                        }
                        let set = grouped.entry(operand).or_default();
                        for first in maps() {
                            self.compose_into(set, first, producer);
                        }
                        if is_unknown {
                            producer.maps().iter().for_each(|it| set.insert_unknown(it.array));
                            producer.unknown_arrays().for_each(|array| set.insert_unknown(array));
                        }
                    }
                }
            }
            // Operands stand before their users.
            next = grouped.range(..instruction).next_back().map(|(&id, _)| id);
        }
        grouped
    }

    /// For each instruction that needs array `output` of `start`, the maps that lead from there to
    /// it, as far as `end`.
    fn forward(&self, start: InstructionRef, output: usize, end: InstructionId) -> Grouped {
        let computation = &self.module[start.computation];
        let mut grouped = Grouped::new();
        grouped.insert(start.instruction, self.identity(&self.instruction(start).shape, output));
        let after = computation.instructions().skip(start.instruction.index() + 1);
        for (id, instruction) in after.take_while(|(id, _)| *id <= end) {
            let at = InstructionRef { instruction: id, ..start };
            for (number, operand) in instruction.operands.iter().enumerate() {
                let Some(before) = grouped.get(operand).filter(|set| !set.is_empty()).cloned()
                else {
                    continue;
                };
                let mut set = grouped.remove(&id).unwrap_or_default();
                for (output, consumer) in self.input_to_output(at, number).into_iter().enumerate() {
                    for second in consumer.maps() {
                        for first in before.maps().iter().filter(|it| it.array == second.array) {
                            match self.composed(first, second) {
                                Some(indexing) => {
                                    set.insert(OperandIndexing { array: output, ..indexing });
                                }
                                None => set.insert_unknown(output),
                            }
                        }
                        if before.unknown_arrays().any(|array| array == second.array) {
                            set.insert_unknown(output);
                        }
                    }
                    let reached = |array: usize| {
                        before.maps().iter().any(|it| it.array == array)
                            || before.unknown_arrays().any(|it| it == array)
                    };
                    if consumer.unknown_arrays().any(reached) {
                        set.insert_unknown(output);
                    }
                }
                grouped.insert(id, set);
            }
        }
        grouped
    }

    /// The maps that lead from output `output` of `from` to the outputs of `to`, an instruction of
    /// the same computation that needs it. [`OperandIndexing::array`] says which output of `to`.
    pub fn epilogue(&self, from: InstructionRef, output: usize, to: InstructionId) -> IndexingSet {
        self.summarize_callees(from.computation, Direction::InputToOutput);
        self.forward(from, output, to).remove(&to).unwrap_or_default()
    }

    fn compose_into(&self, set: &mut IndexingSet, first: &OperandIndexing, producer: &IndexingSet) {
        for second in producer.maps() {
            match self.composed(first, second) {
                Some(indexing) => set.insert(indexing),
                None => set.insert_unknown(second.array),
            }
        }
        producer.unknown_arrays().for_each(|array| set.insert_unknown(array));
    }

    fn composed(
        &self,
        first: &OperandIndexing,
        second: &OperandIndexing,
    ) -> Option<OperandIndexing> {
        let same_dims = |first: &IndexingMap, second: &IndexingMap| first.dims == second.dims;
        // Nothing to compose where the second is the identity on all that the first leads to.
        if second.is_plain_identity(&self.context) && self.lies_within(&first.map, &second.map) {
            return Some(OperandIndexing { array: second.array, ..first.clone() });
        }
        if first.is_plain_identity(&self.context) && same_dims(&first.map, &second.map) {
            let mut simplified = second.clone();
            simplified.simplify(&self.context);
            return Some(simplified);
        }
        first.then(&self.context, second)
    }

    /// Whether the bounds of the variables show that the results of the first map are in the domain
    /// of the second, which has no constraints.
    fn lies_within(&self, first: &IndexingMap, second: &IndexingMap) -> bool {
        let ctx = &self.context;
        let bounds = first.intervals(ctx);
        let results = ctx.intervals_of(&first.results, &|var| bounds.of(var));
        results.len() == second.dims.len()
            && results.iter().zip(&second.dims).all(|(result, dim)| {
                dim.constant_interval(ctx).is_some_and(|interval| interval.covers(*result))
            })
    }

    /// The identity on an array of a shape.
    fn identity(&self, shape: &Shape, number: usize) -> IndexingSet {
        let Some(array) = array(shape, number) else { return IndexingSet::unknown(number) };
        let map = IndexingMap::identity(&self.context, &array.dims);
        IndexingSet::of(OperandIndexing::new(number, map))
    }

    /// Makes the summaries of all computations that a computation calls, directly or through others.
    /// Callees stand before their callers, so that each finds those of its own callees.
    fn summarize_callees(&self, computation: ComputationId, direction: Direction) {
        let mut open = vec![computation];
        let mut callees = HashSet::new();
        while let Some(computation) = open.pop() {
            for instruction in &self.module[computation].instructions {
                if instruction.opcode.calls() {
                    for callee in instruction.called_computations() {
                        if callees.insert(callee) {
                            open.push(callee);
                        }
                    }
                }
            }
        }
        let mut callees: Vec<_> = callees.into_iter().collect();
        callees.sort_unstable();
        for callee in callees {
            self.summarize(callee, direction);
        }
    }

    fn summarize(&self, computation: ComputationId, direction: Direction) {
        let callee = &self.module[computation];
        let root = self.root(computation);
        match direction {
            Direction::OutputToInput => {
                for output in 0..num_arrays(&callee.root().shape) {
                    let key = (computation, output);
                    if self.summaries.borrow().backward.contains_key(&key) {
                        continue;
                    }
                    let mut grouped = self.backward(root, output, None);
                    let parameters = callee.parameters.iter();
                    let sets =
                        parameters.map(|id| grouped.remove(id).unwrap_or_default()).collect();
                    self.summaries.borrow_mut().backward.insert(key, Rc::new(sets));
                }
            }
            Direction::InputToOutput => {
                for (number, &parameter) in callee.parameters.iter().enumerate() {
                    let key = (computation, number);
                    if self.summaries.borrow().forward.contains_key(&key) {
                        continue;
                    }
                    let at = InstructionRef { computation, instruction: parameter };
                    let mut sets = vec![IndexingSet::default(); num_arrays(&callee.root().shape)];
                    for source in 0..num_arrays(&callee[parameter].shape) {
                        let mut grouped = self.forward(at, source, callee.root);
                        let reached = grouped.remove(&callee.root).unwrap_or_default();
                        for indexing in reached.maps() {
                            if let Some(set) = sets.get_mut(indexing.array) {
                                set.insert(OperandIndexing { array: source, ..indexing.clone() });
                            }
                        }
                        for output in reached.unknown_arrays() {
                            if let Some(set) = sets.get_mut(output) {
                                set.insert_unknown(source);
                            }
                        }
                    }
                    self.summaries.borrow_mut().forward.insert(key, Rc::new(sets));
                }
            }
        }
    }

    /// The sets of a `fusion`, `call` or `conditional`.
    pub(super) fn call_output_to_input(&self, op: &Op, output: usize) -> Vec<IndexingSet> {
        self.summarize_once(op, Direction::OutputToInput);
        let mut sets = vec![IndexingSet::default(); op.num_operands()];
        for (operand, callee, parameter) in entries(op).unwrap_or_default() {
            let summaries = self.summaries.borrow();
            let found = summaries.backward.get(&(callee, output));
            match found.and_then(|sets| sets.get(parameter)) {
                Some(found) => sets[operand].extend(found),
                None => sets[operand] = super::unknown_operand(op, operand),
            }
        }
        if let Some(relation) = selector(op, output)
            && let Some(indexing) = relation.map(&self.context, Direction::OutputToInput)
        {
            sets[0].insert(indexing);
        }
        sets
    }

    /// The sets of a `fusion`, `call` or `conditional`.
    pub(super) fn call_input_to_output(&self, op: &Op, operand: usize) -> Vec<IndexingSet> {
        self.summarize_once(op, Direction::InputToOutput);
        let mut sets = vec![IndexingSet::default(); num_arrays(&op.instruction.shape)];
        for (_, callee, parameter) in
            entries(op).unwrap_or_default().into_iter().filter(|entry| entry.0 == operand)
        {
            let summaries = self.summaries.borrow();
            if let Some(found) = summaries.forward.get(&(callee, parameter)) {
                for (set, found) in sets.iter_mut().zip(found.iter()) {
                    set.extend(found);
                }
            }
        }
        if operand == 0 {
            for (output, set) in sets.iter_mut().enumerate() {
                if let Some(relation) = selector(op, output)
                    && let Some(indexing) = relation.map(&self.context, Direction::InputToOutput)
                {
                    set.insert(indexing);
                }
            }
        }
        sets
    }

    fn summarize_once(&self, op: &Op, direction: Direction) {
        let is_there = |callee: ComputationId| {
            let summaries = self.summaries.borrow();
            match direction {
                Direction::OutputToInput => summaries.backward.contains_key(&(callee, 0)),
                Direction::InputToOutput => {
                    let parameters = self.module[callee].parameters.len();
                    (0..parameters).all(|it| summaries.forward.contains_key(&(callee, it)))
                }
            }
        };
        for callee in op.instruction.called_computations() {
            if !is_there(callee) {
                self.summarize_callees(callee, direction);
                self.summarize(callee, direction);
            }
        }
    }
}

/// The branch index of a `conditional`, which every output needs.
fn selector(op: &Op, output: usize) -> Option<Relation> {
    if op.instruction.opcode != Opcode::Conditional {
        return None;
    }
    same_position(op.output_dims(output)?, op.operand_dims(0)?)
}
