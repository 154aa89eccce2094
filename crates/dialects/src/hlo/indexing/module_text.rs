//! The maps of a whole module as text.
//!
//! ```text
//! ENTRY main {
//!   x = f32[2,3] parameter(0)
//!   y = f32[3,4] parameter(1)
//!   ROOT dot = f32[2,4] dot(x, y)
//!     output -> operand 0 (x): (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2]
//!     output -> operand 1 (y): (d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2]
//!     operand 0 (x) -> output: (d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 1], d1 in [0, 2], s0 in [0, 3]
//!     operand 1 (y) -> output: (d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 2], d1 in [0, 3], s0 in [0, 1]
//!     reads 6 of 6 elements of operand 0 (x), 100.0%
//!     reads 12 of 12 elements of operand 1 (y), 100.0%
//! }
//! ```
//!
//! A set of several maps takes a line for each, and a pair that is not related takes none. A
//! `fusion` has the maps to each instruction inside as well, each map once: `output -> exp in fused`.
//! Where something is not an array, the number of an array in it follows: `output 2`,
//! `operand 0 (t) array 1`. Of tuples only what is read is counted.
//!
//! Where there are more pairs than anyone reads (results and operands of a reduction of hundreds of
//! arrays, all of which depend on each other) a line says so instead.

use super::{
    Indexing, IndexingSet, InstructionRef, Op, OperandIndexing, array, arrays, num_arrays,
    text::UNKNOWN, unknown_operand,
};
use crate::hlo::{ComputationId, Instruction, Opcode, Payload, Shape};
use std::{
    collections::BTreeSet,
    io::{self, Write},
};
use tc_ir::IndexingMap;

/// The most pairs of an output and an operand, or of an output of a fusion and an instruction in
/// it, for which maps are listed.
const MAX_PAIRS: usize = 1 << 16;
/// The same for an instruction that calls a computation: of its pairs few are related.
const MAX_PAIRS_OF_CALL: usize = 1 << 22;

impl Indexing<'_> {
    /// Writes the maps of all instructions of the module, computation by computation, the entry
    /// last: from outputs to operands and back, and how much of each operand is read.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_module(&self, out: &mut dyn Write) -> io::Result<()> {
        for (id, _) in self.module.computations() {
            if 0 < id.0 {
                writeln!(out)?;
            }
            self.write_computation(id, out)?;
        }
        Ok(())
    }

    /// Writes the maps of all instructions of a computation.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_computation(&self, id: ComputationId, out: &mut dyn Write) -> io::Result<()> {
        let computation = &self.module[id];
        let entry = if id == self.module.entry { "ENTRY " } else { "" };
        writeln!(out, "{entry}{} {{", computation.name)?;
        for (instruction, _) in computation.instructions() {
            let at = InstructionRef { computation: id, instruction };
            writeln!(out, "  {}", self.instruction_text(at))?;
            Writer { indexing: self, op: Op::new(self, at), out }.maps()?;
        }
        writeln!(out, "}}")
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

    /// An instruction on one line, without attributes, and without the value of a constant that is
    /// not a scalar.
    pub(super) fn instruction_text(&self, at: InstructionRef) -> String {
        let computation = &self.module[at.computation];
        let instruction = &computation[at.instruction];
        let root = if at.instruction == computation.root { "ROOT " } else { "" };
        let inside = match &instruction.payload {
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
            Payload::None => {
                let names = computation.operands(instruction).map(|it| it.name.as_str());
                names.collect::<Vec<_>>().join(", ")
            }
        };
        let Instruction { name, opcode, shape, .. } = instruction;
        format!("{root}{name} = {} {opcode}({inside})", shape.without_layout())
    }
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

    /// Calls `line` with the text of each map of a set and the array of the operand that it is for.
    fn set(
        &mut self,
        set: &IndexingSet,
        line: impl Fn(&mut Self, usize, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        for indexing in set.maps() {
            let text = self.indexing.map_text(indexing);
            line(self, indexing.array, &text)?;
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
        let mut reads = vec![IndexingSet::default(); self.op.num_operands()];
        for output in 0..num_arrays(&self.op.instruction.shape) {
            let from = self.output(output);
            for (operand, set) in indexing.output_to_input(at, output).iter().enumerate() {
                self.set(set, |it, array, map| {
                    it.line(&from, &it.operand_array(operand, array), map)
                })?;
                reads[operand].extend(set);
            }
        }
        for operand in 0..reads.len() {
            for (output, set) in indexing.operand_to_outputs(&self.op, operand).iter().enumerate() {
                self.set(set, |it, array, map| {
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
        let outputs = num_arrays(&self.op.instruction.shape);
        let count = callee.instructions.len();
        if MAX_PAIRS < outputs.saturating_mul(count) {
            return self.too_many(&format!("{count} instructions in {}", callee.name));
        }
        for output in 0..outputs {
            let from = self.output(output);
            let grouped = self.indexing.grouped(self.indexing.root(id), output, None);
            for (inner, set) in &grouped {
                let inner = &callee[*inner];
                if inner.opcode != Opcode::Parameter {
                    self.set(set, |it, array, map| {
                        let to = place(&inner.name, " array", &inner.shape, array);
                        it.line(&from, &format!("{to} in {}", callee.name), map)
                    })?;
                }
            }
        }
        Ok(())
    }
}
