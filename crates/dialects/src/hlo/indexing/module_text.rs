//! The maps of a whole module as text.
//!
//! ```text
//! ENTRY main {
//!   x = f32[2,3] parameter(0)
//!   y = f32[3,4]{0,1} parameter(1)
//!   ROOT dot = f32[2,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
//!     output -> operand 0 (x): (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2]
//!     output -> operand 1 (y): (d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2]
//!       in memory order: (d0, d1)[s0] -> (d1, s0), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2]
//!     operand 0 (x) -> output: (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 1], d1 in [0, 2], s0 in [0, 3]
//!     operand 1 (y) -> output: (d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 2], d1 in [0, 3], s0 in [0, 1]
//!       in memory order: (d0, d1)[s0] -> (s0, d0), domain: d0 in [0, 3], d1 in [0, 2], s0 in [0, 1]
//!     reads 6 of 6 elements of operand 0 (x), 100.0%
//!     reads 12 of 12 elements of operand 1 (y), 100.0%
//! }
//! ```
//!
//! A set of several maps takes a line for each, and a pair that is not related takes none. Where a
//! layout is not row-major, the map between the index spaces of both layouts follows. A
//! `fusion` has the maps to each instruction inside as well, each map once: `output -> exp in fused`;
//! and those of the epilogue, from what is more than a loop over elements to the output:
//! `epilogue: sum in fused -> output`. Where something is not an array, the number of an array in it
//! follows: `output 2`, `operand 0 (t) array 1`. Of tuples only what is read is counted.
//!
//! Where there are more pairs than anyone reads (results and operands of a reduction of hundreds of
//! arrays, all of which depend on each other) a line says so instead.

use super::{
    Direction, Indexing, IndexingSet, InstructionRef, Op, OperandIndexing, RuntimeSource, array,
    arrays, num_arrays,
    text::{UNKNOWN, is_row_major},
    unknown_operand,
};
use crate::hlo::{
    ArrayShape, ComputationId, Instruction, InstructionId, Opcode, Payload, Shape,
    syntax::print_typed_attributes,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};
use tc_ir::IndexingMap;

/// The most pairs of an output and an operand, or of an output of a fusion and an instruction in
/// it, for which maps are listed.
const MAX_PAIRS: usize = 1 << 16;
/// The same for an instruction that calls a computation: of its pairs few are related.
const MAX_PAIRS_OF_CALL: usize = 1 << 22;

/// The most characters of operands that name the instruction of a runtime variable.
const MAX_OPERANDS_TEXT: usize = 40;

/// Instructions of a module to write, computation by computation.
pub type Selection = BTreeMap<ComputationId, BTreeSet<InstructionId>>;

impl Indexing<'_> {
    /// The instructions with these names, and those of computations with these names.
    ///
    /// # Errors
    /// A name that nothing has.
    pub fn select<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Selection, &'n str> {
        let mut selection = Selection::new();
        for name in names {
            let mut found = false;
            for (id, computation) in self.module.computations() {
                let is_whole = computation.name == name;
                for (instruction, each) in computation.instructions() {
                    if is_whole || each.name == name {
                        selection.entry(id).or_default().insert(instruction);
                        found = true;
                    }
                }
            }
            if !found {
                return Err(name);
            }
        }
        Ok(selection)
    }

    /// Writes the maps of all instructions of the module, computation by computation, the entry
    /// last: from outputs to operands and back, and how much of each operand is read.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_module(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_selection(&self.everything(), out)
    }

    pub(super) fn everything(&self) -> Selection {
        let all = self.module.computations().map(|(id, computation)| {
            (id, computation.instructions().map(|(instruction, _)| instruction).collect())
        });
        all.collect()
    }

    /// Writes the maps of some instructions, as [`write_module`](Self::write_module) does.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_selection(&self, selection: &Selection, out: &mut dyn Write) -> io::Result<()> {
        for (position, (&id, instructions)) in selection.iter().enumerate() {
            if 0 < position {
                writeln!(out)?;
            }
            let computation = &self.module[id];
            let entry = if id == self.module.entry { "ENTRY " } else { "" };
            writeln!(out, "{entry}{} {{", computation.name)?;
            for &instruction in instructions {
                let at = InstructionRef { computation: id, instruction };
                writeln!(out, "  {}", self.instruction_text(at))?;
                Writer { indexing: self, op: Op::new(self, at), out }.maps()?;
            }
            writeln!(out, "}}")?;
        }
        Ok(())
    }

    pub(super) fn listed(&self, op: &Op) -> Listed {
        let calls = op.instruction.opcode.calls();
        let most = if calls { MAX_PAIRS_OF_CALL } else { MAX_PAIRS };
        let pairs = num_arrays(&op.instruction.shape).saturating_mul(op.num_operands());
        // Before the computations that it calls are looked at, which takes as long as there are pairs.
        if calls && most < pairs {
            return Listed::TooMany;
        }
        match self.is_opaque(op) {
            true => Listed::Unknown,
            false if most < pairs => Listed::TooMany,
            false => Listed::Pairs,
        }
    }

    /// An instruction on one line, without what its meaning does not depend on, default layouts, and
    /// the value of a constant that is not a scalar.
    pub(super) fn instruction_text(&self, at: InstructionRef) -> String {
        let computation = &self.module[at.computation];
        let instruction = &computation[at.instruction];
        let root = if at.instruction == computation.root { "ROOT " } else { "" };
        let value = self.value_text(at, usize::MAX);
        let attributes = print_typed_attributes(self.module, computation, instruction);
        let attributes = attributes.into_iter().map(|(_, text)| format!(", {text}"));
        format!("{root}{value}{}", attributes.collect::<String>())
    }

    /// An instruction without attributes; operands that take more than so many characters are left
    /// out.
    fn value_text(&self, at: InstructionRef, most: usize) -> String {
        let computation = &self.module[at.computation];
        let instruction = &computation[at.instruction];
        let inside = payload_text(instruction).unwrap_or_else(|| {
            let names = computation.operands(instruction).map(|it| it.name.as_str());
            names.collect::<Vec<_>>().join(", ")
        });
        let inside = if most < inside.len() { ".." } else { &inside };
        let Instruction { name, opcode, shape, .. } = instruction;
        format!("{name} = {} {opcode}({inside})", shape.without_default_layouts())
    }
}

/// What stands in the parentheses of an instruction that has no operands there.
pub(super) fn payload_text(instruction: &Instruction) -> Option<String> {
    Some(match &instruction.payload {
        Payload::Parameter(number) => number.to_string(),
        Payload::Constant(value) => match (value.as_array(), instruction.array()) {
            (Some(value), Some(array)) if array.is_scalar() => {
                let mut text = String::new();
                // Writing to a string does not fail.
                let _ = value.write_element(&mut text, 0, true);
                text
            }
            _ => "..".to_owned(),
        },
        Payload::None => return None,
    })
}

/// What is listed of an instruction.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Listed {
    /// The maps of each pair of an output and an operand.
    Pairs,
    /// That there are too many pairs.
    TooMany,
    /// That it is not known what it reads, whichever output and operand is asked for.
    Unknown,
}

/// Writes what belongs to one instruction.
struct Writer<'a, 'm> {
    indexing: &'a Indexing<'m>,
    op: Op<'m>,
    out: &'a mut dyn Write,
}

/// How an array of a value is called: by its number, unless the value is that array.
fn place(name: &str, word: &str, shape: &Shape, number: usize) -> String {
    match shape {
        Shape::Array(_) => name.to_owned(),
        _ => format!("{name}{word} {number}"),
    }
}

impl Writer<'_, '_> {
    fn maps(&mut self) -> io::Result<()> {
        let operands = self.op.num_operands();
        match (self.op.instruction.opcode, self.indexing.listed(&self.op)) {
            _ if operands == 0 => Ok(()),
            (Opcode::Tuple, _) => self.tuple(),
            (_, Listed::Unknown) => self.unknown(),
            (_, Listed::TooMany) => self.too_many(&format!("{operands} operands")),
            (opcode, Listed::Pairs) => {
                self.pairs()?;
                if opcode == Opcode::Fusion { self.inside() } else { Ok(()) }
            }
        }
    }

    fn output(&self, number: usize) -> String {
        place("output", "", &self.op.instruction.shape, number)
    }

    fn operand(&self, number: usize) -> String {
        let name = self.op.operand(number).map_or("", |it| it.name.as_str());
        format!("operand {number} ({name})")
    }

    fn operand_array(&self, operand: usize, array: usize) -> String {
        let name = self.operand(operand);
        match self.op.operand(operand) {
            Some(it) => place(&name, " array", &it.shape, array),
            None => name,
        }
    }

    fn line(&mut self, from: &str, to: &str, map: &str) -> io::Result<()> {
        writeln!(self.out, "    {from} -> {to}: {}", map.replace('\n', "\n      "))
    }

    /// Where the value of a runtime variable comes from.
    fn source(&self, source: RuntimeSource) -> String {
        let at = source.instruction();
        let text = match source {
            RuntimeSource::Element(at) => self.indexing.value_text(at, MAX_OPERANDS_TEXT),
            RuntimeSource::Replica(_) => self.indexing.source_text(source),
        };
        match at.computation == self.op.at.computation {
            true => text,
            false => format!("{text} in {}", self.op.module[at.computation].name),
        }
    }

    /// Calls `line` with the text of each map of a set and the array of the operand that it is for.
    /// `output` and `operand` are the shapes at both ends.
    fn set(
        &mut self,
        set: &IndexingSet,
        direction: Direction,
        (output, operand): (Option<&ArrayShape>, &Shape),
        line: impl Fn(&mut Self, usize, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        let indexing = self.indexing;
        for each in set.maps() {
            let mut each = each.clone();
            // Those of single instructions are as the definition of the operation gives them.
            if !indexing.like_xla {
                each.simplify(&indexing.context);
            }
            let mut text = indexing.map_text_with(&each, &|source| self.source(source));
            if let (Some(output), Some(operand)) = (output, array(operand, each.array))
                && !(is_row_major(output) && is_row_major(operand))
            {
                let physical = indexing.physical_map(&each, direction, output, operand);
                let physical = physical.map(|physical| indexing.elements_text(&physical));
                text += "\nin memory order: ";
                text += physical.as_deref().unwrap_or(UNKNOWN);
            }
            line(self, each.array, &text)?;
        }
        for array in set.unknown_arrays() {
            line(self, array, UNKNOWN)?;
        }
        Ok(())
    }

    fn too_many(&mut self, others: &str) -> io::Result<()> {
        let outputs = num_arrays(&self.op.instruction.shape);
        writeln!(self.out, "    {outputs} outputs and {others}: too many pairs to list")
    }

    /// Both maps of every pair of an output and an operand, and what is read.
    fn pairs(&mut self) -> io::Result<()> {
        let (indexing, at) = (self.indexing, self.op.at);
        let outputs = arrays(&self.op.instruction.shape);
        let operands: Vec<&Shape> = (0..self.op.num_operands())
            .filter_map(|it| Some(&self.op.operand(it)?.shape))
            .collect();
        let mut reads = vec![IndexingSet::default(); operands.len()];
        for (output, shape) in outputs.iter().copied().enumerate() {
            let from = self.output(output);
            for (operand, set) in indexing.output_to_input(at, output).iter().enumerate() {
                let ends = (Some(shape), operands[operand]);
                self.set(set, Direction::OutputToInput, ends, |it, array, map| {
                    it.line(&from, &it.operand_array(operand, array), map)
                })?;
                reads[operand].extend(set);
            }
        }
        for (operand, operand_shape) in operands.iter().enumerate() {
            for (output, set) in indexing.operand_to_outputs(&self.op, operand).iter().enumerate() {
                let ends = (outputs.get(output).copied(), *operand_shape);
                self.set(set, Direction::InputToOutput, ends, |it, array, map| {
                    it.line(&it.operand_array(operand, array), &it.output(output), map)
                })?;
            }
        }
        for (operand, set) in reads.iter().enumerate() {
            self.reads(operand, set)?;
        }
        Ok(())
    }

    /// How much of an operand is read: `set` are the maps of all outputs. Arrays of a tuple that
    /// nothing leads to are left out.
    fn reads(&mut self, operand: usize, set: &IndexingSet) -> io::Result<()> {
        let Some(shape) = self.op.operand(operand).map(|it| &it.shape) else { return Ok(()) };
        let mut read: BTreeSet<usize> = set.maps().iter().map(|indexing| indexing.array).collect();
        read.extend(set.unknown_arrays());
        if matches!(shape, Shape::Array(_)) {
            read.insert(0);
        }
        // Not one by one: each would be looked for from the first on.
        let arrays = if set.has_unknown() { arrays(shape) } else { Vec::new() };
        for number in read {
            let array = arrays.get(number).copied().or_else(|| array(shape, number));
            let Some(array) = array else { continue };
            let place = self.operand_array(operand, number);
            let Some(found) = self.indexing.utilization(set, number, array) else {
                writeln!(self.out, "    reads {place}, which has too many elements to count")?;
                continue;
            };
            let (touched, total) = (found.touched, found.total);
            let bound = if found.exact { "" } else { "at most " };
            let percent = 100.0 * found.share();
            let percent = match touched {
                1.. if percent < 0.1 => "less than 0.1%".to_owned(),
                _ => format!("{percent:.1}%"),
            };
            writeln!(
                self.out,
                "    reads {bound}{touched} of {total} elements of {place}, {percent}"
            )?;
        }
        Ok(())
    }

    /// Arrays of operands, one after the other: no other pair is related.
    fn tuple(&mut self) -> io::Result<()> {
        let ctx = &self.indexing.context;
        let mut output = 0;
        for operand in 0..self.op.num_operands() {
            let arrays = self.op.operand(operand).map_or(Vec::new(), |it| arrays(&it.shape));
            for (number, array) in arrays.into_iter().enumerate() {
                let map = IndexingMap::identity(ctx, &array.dims);
                let mut indexing = OperandIndexing::new(number, map);
                indexing.simplify(ctx);
                let map = self.indexing.map_text(&indexing);
                let (from, to) = (self.output(output), self.operand_array(operand, number));
                self.line(&from, &to, &map)?;
                self.line(&to, &from, &map)?;
                output += 1;
            }
        }
        Ok(())
    }

    /// An instruction of which it is not known what it reads, whichever output is asked for.
    fn unknown(&mut self) -> io::Result<()> {
        for operand in 0..self.op.num_operands() {
            self.line("output", &self.operand(operand), UNKNOWN)?;
        }
        for operand in 0..self.op.num_operands() {
            self.line(&self.operand(operand), "output", UNKNOWN)?;
        }
        for operand in 0..self.op.num_operands() {
            self.reads(operand, &unknown_operand(&self.op, operand))?;
        }
        Ok(())
    }

    /// The maps from each output of a fusion to the instructions in it; those to its parameters are
    /// the ones to the operands.
    fn inside(&mut self) -> io::Result<()> {
        let Some(id) = self.op.instruction.called_computations().next() else { return Ok(()) };
        let callee = &self.op.module[id];
        let outputs = arrays(&self.op.instruction.shape);
        let count = callee.instructions.len();
        if MAX_PAIRS < outputs.len().saturating_mul(count) {
            return self.too_many(&format!("{count} instructions in {}", callee.name));
        }
        for (output, shape) in outputs.iter().copied().enumerate() {
            let from = self.output(output);
            let grouped = self.indexing.grouped(self.indexing.root(id), output, None);
            for (inner, set) in &grouped {
                let inner = &callee[*inner];
                if inner.opcode != Opcode::Parameter {
                    let ends = (Some(shape), &inner.shape);
                    self.set(set, Direction::OutputToInput, ends, |it, array, map| {
                        let to = place(&inner.name, " array", &inner.shape, array);
                        it.line(&from, &format!("{to} in {}", callee.name), map)
                    })?;
                }
            }
        }
        self.epilogues(id)
    }

    /// The maps to the outputs of a fusion from instructions in it that are more than a loop over
    /// elements.
    fn epilogues(&mut self, id: ComputationId) -> io::Result<()> {
        let callee = &self.op.module[id];
        let heroes =
            callee.instructions().filter(|(inner, it)| *inner != callee.root && is_hero(it));
        let heroes: Vec<(InstructionId, usize)> = heroes
            .flat_map(|(inner, it)| (0..num_arrays(&it.shape)).map(move |array| (inner, array)))
            .collect();
        if MAX_PAIRS < heroes.len().saturating_mul(callee.instructions.len()) {
            return self.too_many(&format!("{} epilogues in {}", heroes.len(), callee.name));
        }
        let outputs = arrays(&self.op.instruction.shape);
        let sets = self.indexing.epilogues(id, callee.root, &heroes);
        for ((inner, array), set) in heroes.into_iter().zip(&sets) {
            let inner = &callee[inner];
            let from = place(&inner.name, " array", &inner.shape, array);
            let from = format!("epilogue: {from} in {}", callee.name);
            // In these sets, the array is one of the output.
            for (output, shape) in outputs.iter().copied().enumerate() {
                let mut part = IndexingSet::default();
                for each in set.maps().iter().filter(|each| each.array == output) {
                    part.insert(OperandIndexing { array, ..each.clone() });
                }
                if set.is_unknown(output) {
                    part.insert_unknown(array);
                }
                let ends = (Some(shape), &inner.shape);
                self.set(&part, Direction::InputToOutput, ends, |it, _, map| {
                    it.line(&from, &it.output(output), map)
                })?;
            }
        }
        Ok(())
    }
}

/// Whether generated code treats an instruction as the main one of a fusion, and what comes after it
/// as its epilogue.
fn is_hero(instruction: &Instruction) -> bool {
    matches!(
        instruction.opcode,
        Opcode::Concatenate
            | Opcode::Convolution
            | Opcode::Dot
            | Opcode::DynamicUpdateSlice
            | Opcode::RaggedDot
            | Opcode::Reduce
            | Opcode::ReduceWindow
            | Opcode::ScaledDot
            | Opcode::Scan
            | Opcode::Scatter
            | Opcode::SelectAndScatter
            | Opcode::Sort
            | Opcode::Transpose
    )
}
