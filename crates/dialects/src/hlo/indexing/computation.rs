//! Maps through whole computations: fusions, calls, groups of instructions, epilogues.
//!
//! From the start on, against or along the data flow, each instruction gets the set of maps that
//! connect it to the start; those of its operands or users follow by composition. An instruction is
//! visited once, when its set is complete.

use super::{
    Direction, Indexing, IndexingSet, InstructionRef, Op, OperandIndexing, array,
    elementwise::same_position, num_arrays, relation::Relation,
};
use crate::hlo::{Computation, ComputationId, InstructionId, Opcode, Shape};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    rc::Rc,
};
use tc_ir::IndexingMap;

/// For each instruction that is reached, the maps between the start and it.
/// [`OperandIndexing::array`] says which array of the instruction a map belongs to.
pub type Grouped = BTreeMap<InstructionId, IndexingSet>;

/// The most instructions that are reached from all outputs, or all parameters, of a computation
/// that instructions call. Where there are more, it is not known what such instructions read.
pub const MAX_REACHED: usize = 1 << 18;

/// Sets that are not empty, by number.
type Sparse = BTreeMap<usize, IndexingSet>;

/// Maps through computations that instructions call. One without an entry reaches too many
/// instructions.
#[derive(Default)]
pub(super) struct Summaries {
    /// From an output of the root to parameters.
    backward: HashMap<(ComputationId, usize), Rc<Sparse>>,
    /// From a parameter to outputs of the root, with the array of the parameter.
    forward: HashMap<(ComputationId, usize), Rc<Sparse>>,
    /// What has been looked at, and whether it has entries.
    done: HashMap<(ComputationId, Direction), bool>,
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
                    let is_unknown = consumer.is_unknown(output);
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
    fn forward(
        &self,
        start: InstructionRef,
        output: usize,
        end: InstructionId,
        users: &[Vec<InstructionId>],
    ) -> Grouped {
        let mut grouped = Grouped::new();
        grouped.insert(start.instruction, self.identity(&self.instruction(start).shape, output));
        let mut open = BTreeSet::from([start.instruction]);
        // Users stand after their operands, so that the first set is complete.
        while let Some(instruction) = open.pop_first() {
            if instruction != start.instruction {
                let at = InstructionRef { instruction, ..start };
                let set = self.maps_to_user(at, &grouped);
                if set.is_empty() {
                    continue;
                }
                grouped.insert(instruction, set);
            }
            let next = users[instruction.index()].iter().copied();
            open.extend(next.filter(|&user| user <= end));
        }
        grouped
    }

    /// The maps to an instruction, from those to its operands.
    fn maps_to_user(&self, at: InstructionRef, grouped: &Grouped) -> IndexingSet {
        let mut set = IndexingSet::default();
        for (number, operand) in self.instruction(at).operands.iter().enumerate() {
            let Some(before) = grouped.get(operand) else { continue };
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
                    if before.is_unknown(second.array) {
                        set.insert_unknown(output);
                    }
                }
                let reached = |array: usize| {
                    before.maps().iter().any(|it| it.array == array) || before.is_unknown(array)
                };
                if consumer.unknown_arrays().any(reached) {
                    set.insert_unknown(output);
                }
            }
        }
        set
    }

    /// The maps that lead from output `output` of `from` to the outputs of `to`, an instruction of
    /// the same computation that needs it. [`OperandIndexing::array`] says which output of `to`.
    pub fn epilogue(&self, from: InstructionRef, output: usize, to: InstructionId) -> IndexingSet {
        self.epilogues(from.computation, to, &[(from.instruction, output)])
            .pop()
            .unwrap_or_default()
    }

    /// The [epilogue](Self::epilogue) of each of these outputs of instructions of one computation.
    pub(super) fn epilogues(
        &self,
        computation: ComputationId,
        to: InstructionId,
        from: &[(InstructionId, usize)],
    ) -> Vec<IndexingSet> {
        self.summarize_callees(computation, Direction::InputToOutput);
        let users = users(&self.module[computation]);
        let epilogue = |&(instruction, output): &(InstructionId, usize)| {
            let start = InstructionRef { computation, instruction };
            self.forward(start, output, to, &users).remove(&to).unwrap_or_default()
        };
        from.iter().map(epilogue).collect()
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
        let mut callees = BTreeSet::new();
        while let Some(computation) = open.pop() {
            for instruction in &self.module[computation].instructions {
                if instruction.opcode.calls() {
                    for callee in instruction.called_computations() {
                        let is_new =
                            !self.summaries.borrow().done.contains_key(&(callee, direction));
                        if is_new && callees.insert(callee) {
                            open.push(callee);
                        }
                    }
                }
            }
        }
        for callee in callees {
            self.summarize(callee, direction);
        }
    }

    fn summarize(&self, computation: ComputationId, direction: Direction) {
        let found = match direction {
            Direction::OutputToInput => self.summary_of_outputs(computation),
            Direction::InputToOutput => self.summary_of_parameters(computation),
        };
        let mut summaries = self.summaries.borrow_mut();
        summaries.done.insert((computation, direction), found.is_some());
        let table = match direction {
            Direction::OutputToInput => &mut summaries.backward,
            Direction::InputToOutput => &mut summaries.forward,
        };
        let found = found.unwrap_or_default().into_iter().enumerate();
        table.extend(found.map(|(number, sets)| ((computation, number), Rc::new(sets))));
    }

    /// For each output of the root, the parameters that it needs.
    fn summary_of_outputs(&self, computation: ComputationId) -> Option<Vec<Sparse>> {
        let callee = &self.module[computation];
        let numbers: HashMap<InstructionId, usize> =
            callee.parameters.iter().enumerate().map(|(number, &id)| (id, number)).collect();
        let mut reached = 0;
        let outputs = 0..num_arrays(&callee.root().shape);
        let summary = outputs.map(|output| {
            let grouped = self.backward(self.root(computation), output, None);
            reached += grouped.len();
            let sets = grouped.into_iter().filter_map(|(id, set)| Some((*numbers.get(&id)?, set)));
            (reached <= MAX_REACHED)
                .then(|| sets.filter(|(_, set)| !set.is_empty()).collect::<Sparse>())
        });
        summary.collect()
    }

    /// For each parameter, the outputs of the root that need it.
    fn summary_of_parameters(&self, computation: ComputationId) -> Option<Vec<Sparse>> {
        let callee = &self.module[computation];
        let users = users(callee);
        let mut reached = 0;
        let summary = callee.parameters.iter().map(|&parameter| {
            let at = InstructionRef { computation, instruction: parameter };
            let mut sets = Sparse::new();
            for source in 0..num_arrays(&callee[parameter].shape) {
                let mut grouped = self.forward(at, source, callee.root, &users);
                reached += grouped.len();
                if MAX_REACHED < reached {
                    return None;
                }
                let root = grouped.remove(&callee.root).unwrap_or_default();
                for indexing in root.maps() {
                    let from_source = OperandIndexing { array: source, ..indexing.clone() };
                    sets.entry(indexing.array).or_default().insert(from_source);
                }
                for output in root.unknown_arrays() {
                    sets.entry(output).or_default().insert_unknown(source);
                }
            }
            Some(sets)
        });
        summary.collect()
    }

    /// Whether nothing is said of the computations that an instruction calls, since too many
    /// instructions are reached.
    pub(super) fn is_beyond_limits(&self, op: &Op) -> bool {
        op.instruction.opcode.calls()
            && [Direction::OutputToInput, Direction::InputToOutput].into_iter().any(|direction| {
                self.summarize_called(op, direction);
                let summaries = self.summaries.borrow();
                let mut callees = op.instruction.called_computations();
                callees.any(|callee| summaries.done.get(&(callee, direction)) == Some(&false))
            })
    }

    /// The sets of a `fusion`, `call` or `conditional`.
    pub(super) fn call_output_to_input(&self, op: &Op, output: usize) -> Vec<IndexingSet> {
        self.summarize_called(op, Direction::OutputToInput);
        let mut sets = vec![IndexingSet::default(); op.num_operands()];
        let summaries = self.summaries.borrow();
        for (operand, callee, parameter) in entries(op).unwrap_or_default() {
            match summaries.backward.get(&(callee, output)) {
                Some(found) => {
                    if let Some(found) = found.get(&parameter) {
                        match is_branch(op) {
                            true => sets[operand].extend(&found.conditional()),
                            false => sets[operand].extend(found),
                        }
                    }
                }
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
        self.summarize_called(op, Direction::InputToOutput);
        let mut sets = vec![IndexingSet::default(); num_arrays(&op.instruction.shape)];
        let summaries = self.summaries.borrow();
        for (_, callee, parameter) in
            entries(op).unwrap_or_default().into_iter().filter(|entry| entry.0 == operand)
        {
            match summaries.forward.get(&(callee, parameter)) {
                Some(found) => {
                    for (&output, found) in found.iter() {
                        if let Some(set) = sets.get_mut(output) {
                            match is_branch(op) {
                                true => set.extend(&found.conditional()),
                                false => set.extend(found),
                            }
                        }
                    }
                }
                None => sets.fill(super::unknown_operand(op, operand)),
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

    fn summarize_called(&self, op: &Op, direction: Direction) {
        let is_done = |callee| self.summaries.borrow().done.contains_key(&(callee, direction));
        if !op.instruction.called_computations().all(is_done) {
            self.summarize_callees(op.at.computation, direction);
        }
    }
}

/// For each instruction, the instructions that have it as an operand, in order.
fn users(computation: &Computation) -> Vec<Vec<InstructionId>> {
    let mut users: Vec<Vec<InstructionId>> = vec![Vec::new(); computation.instructions.len()];
    for (id, instruction) in computation.instructions() {
        for operand in &instruction.operands {
            let users = &mut users[operand.index()];
            if users.last() != Some(&id) {
                users.push(id);
            }
        }
    }
    users
}

/// Whether a value decides which of several computations runs.
fn is_branch(op: &Op) -> bool {
    op.instruction.opcode == Opcode::Conditional && 1 < op.instruction.branches().len()
}

/// The branch index of a `conditional`, which every output needs.
fn selector(op: &Op, output: usize) -> Option<Relation> {
    if op.instruction.opcode != Opcode::Conditional {
        return None;
    }
    same_position(op.output_dims(output)?, op.operand_dims(0)?)
}
