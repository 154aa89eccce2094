//! Modules, computations and instructions.
//!
//! A module is a list of computations, a computation a list of instructions; ids are positions in
//! these lists. Everything is plain data. [`verify`](super::verify) checks what the parser
//! guarantees and other producers must: an operand stands before its user in the list, and a
//! computation before its caller, so that a walk in order sees every value before its uses and
//! every callee before its callers.

use super::{
    ArrayShape, Attribute, ConvolutionDims, DotDims, GatherDims, Literal, Opcode, PaddingDim,
    ReplicaGroups, ScatterDims, Shape, SliceDim, Value, ValueKind, WindowDim,
};
use crate::text::Span;
use std::{borrow::Cow, ops::Index};

/// The position of a computation in its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComputationId(pub u32);

impl ComputationId {
    /// The position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The position of an instruction in its computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstructionId(pub u32);

impl InstructionId {
    /// The position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A whole program.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The name after `HloModule`.
    pub name: String,
    /// What else the first line says.
    pub header: Header,
    /// Where instructions come from; `stack_frame_id` in metadata refers to it.
    pub frames: StackFrames,
    /// The computations, each before its callers.
    pub computations: Vec<Computation>,
    /// The computation that the program starts with.
    pub entry: ComputationId,
}

impl Module {
    /// The computation that the program starts with.
    pub fn entry(&self) -> &Computation {
        &self[self.entry]
    }

    /// The computations with their ids, each before its callers.
    pub fn computations(&self) -> impl Iterator<Item = (ComputationId, &Computation)> {
        (0..).map(ComputationId).zip(&self.computations)
    }

    /// The computation with this name.
    pub fn find(&self, name: &str) -> Option<ComputationId> {
        let position = self.computations.iter().position(|each| each.name == name)?;
        Some(ComputationId(position as u32))
    }

    /// The number of instructions of all computations.
    pub fn num_instructions(&self) -> usize {
        self.computations.iter().map(|each| each.instructions.len()).sum()
    }
}

impl Index<ComputationId> for Module {
    type Output = Computation;

    fn index(&self, id: ComputationId) -> &Computation {
        &self.computations[id.index()]
    }
}

/// What the first line of a module says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The shapes of parameters and result with the layouts that a caller sees.
    pub entry_computation_layout: Option<ProgramShape>,
    /// Whether the instructions stand in the order in which they run.
    pub is_scheduled: bool,
    /// How many replicas run the program; 1 if it is not said.
    pub replica_count: Option<i64>,
    /// How many partitions the program is split into; 1 if it is not said.
    pub num_partitions: Option<i64>,
    /// The rest, which has no effect on the values of results: name and source text.
    pub others: Vec<(String, String)>,
}

/// The shapes of parameters and result.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramShape {
    /// Parameters in order.
    pub parameters: Vec<Shape>,
    /// The result.
    pub result: Shape,
}

/// The tables from which stack frames are put together. Numbers count from 1; 0 means none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackFrames {
    /// `FileNames`.
    pub file_names: Vec<String>,
    /// `FunctionNames`.
    pub function_names: Vec<String>,
    /// `FileLocations`.
    pub locations: Vec<FileLocation>,
    /// `StackFrames`.
    pub frames: Vec<StackFrame>,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the fields say it")]
pub struct FileLocation {
    pub file_name_id: u32,
    pub function_name_id: u32,
    pub line: u32,
    pub end_line: u32,
    pub column: u32,
    pub end_column: u32,
}

/// A place in a source file, and the frame that called it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// The entry of [`StackFrames::locations`].
    pub file_location_id: u32,
    /// The frame of the caller, as XLA numbers it: one more than its number in the list, and 1
    /// if there is none.
    pub parent_frame_id: u32,
}

/// A function: instructions that compute a result from parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    /// The name, without `%`; no other computation of the module has it.
    pub name: String,
    /// The instructions, each after its operands.
    pub instructions: Vec<Instruction>,
    /// The parameters in the order of their numbers.
    pub parameters: Vec<InstructionId>,
    /// The instruction whose value is the result.
    pub root: InstructionId,
    /// Where the text names it.
    pub span: Span,
}

impl Computation {
    /// The instruction whose value is the result.
    pub fn root(&self) -> &Instruction {
        &self[self.root]
    }

    /// The instructions with their ids, each after its operands.
    pub fn instructions(&self) -> impl Iterator<Item = (InstructionId, &Instruction)> {
        (0..).map(InstructionId).zip(&self.instructions)
    }

    /// The instruction with this name.
    pub fn find(&self, name: &str) -> Option<InstructionId> {
        let position = self.instructions.iter().position(|each| each.name == name)?;
        Some(InstructionId(position as u32))
    }

    /// The operands of an instruction.
    pub fn operands<'c>(
        &'c self,
        instruction: &'c Instruction,
    ) -> impl ExactSizeIterator<Item = &'c Instruction> {
        instruction.operands.iter().map(|&id| &self[id])
    }

    /// Makes instructions refer to computations by new ids, which stand at the old ones.
    pub(super) fn renumber_callees(&mut self, ids: &[ComputationId]) {
        for (_, value) in self.instructions.iter_mut().flat_map(|each| &mut each.attributes) {
            match value {
                Value::Computation(id) => *id = ids[id.index()],
                Value::Computations(list) => {
                    list.iter_mut().for_each(|id| *id = ids[id.index()]);
                }
                _ => {}
            }
        }
    }

    /// The shapes of the parameters in order.
    pub fn parameter_shapes(&self) -> impl ExactSizeIterator<Item = &Shape> {
        self.parameters.iter().map(|&id| &self[id].shape)
    }
}

impl Index<InstructionId> for Computation {
    type Output = Instruction;

    fn index(&self, id: InstructionId) -> &Instruction {
        &self.instructions[id.index()]
    }
}

/// What stands between the parentheses of an instruction besides operands.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Nothing.
    None,
    /// The number of a parameter.
    Parameter(i64),
    /// The value of a constant.
    Constant(Box<Literal>),
}

/// One instruction: its value is what the opcode makes of the operands.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The name, without `%`; no other instruction of the computation has it.
    pub name: String,
    /// What is computed.
    pub opcode: Opcode,
    /// What the value is.
    pub shape: Shape,
    /// The operands, which stand before this instruction.
    pub operands: Vec<InstructionId>,
    /// The attributes in the order of the text.
    pub attributes: Vec<(Attribute, Value)>,
    /// The number of a parameter, or the value of a constant.
    pub payload: Payload,
    /// Where the text defines it, from its name to its end.
    pub span: Span,
}

impl Instruction {
    /// The value of an attribute.
    pub fn attribute(&self, attribute: Attribute) -> Option<&Value> {
        self.attributes.iter().find(|(name, _)| *name == attribute).map(|(_, value)| value)
    }

    /// Whether an attribute is there and `true`.
    pub fn flag(&self, attribute: Attribute) -> bool {
        matches!(self.attribute(attribute), Some(Value::Boolean(true)))
    }

    /// An attribute that is an integer.
    pub fn integer(&self, attribute: Attribute) -> Option<i64> {
        match self.attribute(attribute) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    /// An attribute that is a list of integers; empty if it is not there.
    pub fn integers(&self, attribute: Attribute) -> &[i64] {
        match self.attribute(attribute) {
            Some(Value::Integers(list)) => list,
            _ => &[],
        }
    }

    /// An attribute that is a computation.
    pub fn computation(&self, attribute: Attribute) -> Option<ComputationId> {
        match self.attribute(attribute) {
            Some(Value::Computation(id)) => Some(*id),
            _ => None,
        }
    }

    /// An attribute that is a list of computations.
    pub fn computations(&self, attribute: Attribute) -> Option<&[ComputationId]> {
        match self.attribute(attribute) {
            Some(Value::Computations(ids)) => Some(ids),
            _ => None,
        }
    }

    /// An attribute that is kept as text.
    pub fn text(&self, attribute: Attribute) -> Option<&str> {
        match self.attribute(attribute) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The number of a parameter.
    pub fn parameter_number(&self) -> Option<i64> {
        match self.payload {
            Payload::Parameter(number) => Some(number),
            _ => None,
        }
    }

    /// The value of a constant.
    pub fn literal(&self) -> Option<&Literal> {
        match &self.payload {
            Payload::Constant(literal) => Some(literal),
            _ => None,
        }
    }

    /// The array that the value is, if it is one.
    pub fn array(&self) -> Option<&ArrayShape> {
        self.shape.as_array()
    }

    /// `dimensions`; empty if it is not there.
    pub fn dimensions(&self) -> &[i64] {
        self.integers(Attribute::Dimensions)
    }

    /// Every computation that the instruction refers to, in the order of the text.
    pub fn called_computations(&self) -> impl Iterator<Item = ComputationId> {
        self.attributes.iter().flat_map(|(_, value)| match value {
            Value::Computation(id) => std::slice::from_ref(id).iter().copied(),
            Value::Computations(ids) => ids.iter().copied(),
            _ => [].iter().copied(),
        })
    }

    /// The branches of a `conditional`, in the order of the indices that select them: of one
    /// with a truth value the false branch comes second.
    pub fn branches(&self) -> Vec<ComputationId> {
        match self.computations(Attribute::BranchComputations) {
            Some(ids) => ids.to_vec(),
            None => [Attribute::TrueComputation, Attribute::FalseComputation]
                .into_iter()
                .filter_map(|attribute| self.computation(attribute))
                .collect(),
        }
    }

    /// `window`; empty if it is not there.
    pub fn window(&self) -> &[WindowDim] {
        match self.attribute(Attribute::Window) {
            Some(Value::Window(dims)) => dims,
            _ => &[],
        }
    }

    /// `padding`; empty if it is not there.
    pub fn padding(&self) -> &[PaddingDim] {
        match self.attribute(Attribute::Padding) {
            Some(Value::Padding(dims)) => dims,
            _ => &[],
        }
    }

    /// `slice`; empty if it is not there.
    pub fn slice_dims(&self) -> &[SliceDim] {
        match self.attribute(Attribute::Slice) {
            Some(Value::Slice(dims)) => dims,
            _ => &[],
        }
    }

    /// `dim_labels`.
    pub fn dim_labels(&self) -> Option<&ConvolutionDims> {
        match self.attribute(Attribute::DimLabels) {
            Some(Value::DimLabels(dims)) => Some(dims),
            _ => None,
        }
    }

    /// `replica_groups`.
    pub fn replica_groups(&self) -> Option<&ReplicaGroups> {
        match self.attribute(Attribute::ReplicaGroups) {
            Some(Value::ReplicaGroups(groups)) => Some(groups),
            _ => None,
        }
    }

    /// The dimension numbers of a dot.
    pub fn dot_dims(&self) -> DotDims<'_> {
        DotDims {
            lhs_batch: self.integers(Attribute::LhsBatchDims),
            rhs_batch: self.integers(Attribute::RhsBatchDims),
            lhs_contracting: self.integers(Attribute::LhsContractingDims),
            rhs_contracting: self.integers(Attribute::RhsContractingDims),
        }
    }

    /// The dimension numbers of a `gather`.
    pub fn gather_dims(&self) -> GatherDims<'_> {
        GatherDims {
            offset_dims: self.integers(Attribute::OffsetDims),
            collapsed_slice_dims: self.integers(Attribute::CollapsedSliceDims),
            start_index_map: self.integers(Attribute::StartIndexMap),
            operand_batching_dims: self.integers(Attribute::OperandBatchingDims),
            start_indices_batching_dims: self.integers(Attribute::StartIndicesBatchingDims),
            index_vector_dim: self.integer(Attribute::IndexVectorDim).unwrap_or(0),
            slice_sizes: self.integers(Attribute::SliceSizes),
        }
    }

    /// The dimension numbers of a `scatter`.
    pub fn scatter_dims(&self) -> ScatterDims<'_> {
        ScatterDims {
            update_window_dims: self.integers(Attribute::UpdateWindowDims),
            inserted_window_dims: self.integers(Attribute::InsertedWindowDims),
            scatter_dims_to_operand_dims: self.integers(Attribute::ScatterDimsToOperandDims),
            input_batching_dims: self.integers(Attribute::InputBatchingDims),
            scatter_indices_batching_dims: self.integers(Attribute::ScatterIndicesBatchingDims),
            index_vector_dim: self.integer(Attribute::IndexVectorDim).unwrap_or(0),
        }
    }

    /// An attribute that is a string in quotes, without them.
    pub fn string(&self, attribute: Attribute) -> Option<Cow<'_, str>> {
        let text = self.text(attribute)?;
        Some(match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            Some(inner) => unescape(inner),
            None => Cow::Borrowed(text),
        })
    }

    /// A field of `metadata`, such as `op_name` or `stack_frame_id`, without quotes.
    pub fn metadata(&self, field: &str) -> Option<Cow<'_, str>> {
        let mut rest = self.text(Attribute::Metadata)?.strip_prefix('{')?.strip_suffix('}')?;
        loop {
            rest = rest.trim_start_matches([' ', ',']);
            let (name, value) = rest.split_once('=')?;
            let end = match value.strip_prefix('"') {
                Some(inner) => string_end(inner)? + 2,
                None => value.find([' ', ',']).unwrap_or(value.len()),
            };
            let (value, after) = value.split_at(end);
            if name == field {
                let inner = value.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                return Some(inner.map_or(Cow::Borrowed(value), unescape));
            }
            rest = after;
        }
    }

    /// Sets an attribute, after the others if it is new.
    pub fn set_attribute(&mut self, attribute: Attribute, value: Value) {
        match self.attributes.iter_mut().find(|(name, _)| *name == attribute) {
            Some((_, old)) => *old = value,
            None => self.attributes.push((attribute, value)),
        }
    }
}

/// Where the quote that ends a string stands.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        end
    })
}

/// The text that escapes stand for; those of C that need numbers stay as they are.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some(other @ ('"' | '\'' | '\\')) => out.push(other),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    Cow::Owned(out)
}

impl Value {
    /// What it looks like in text.
    pub fn kind(&self) -> ValueKind {
        match self {
            Self::Integer(_) => ValueKind::Integer,
            Self::Boolean(_) => ValueKind::Boolean,
            Self::Number(_) => ValueKind::Number,
            Self::Integers(_) => ValueKind::Integers,
            Self::Computation(_) => ValueKind::Computation,
            Self::Computations(_) => ValueKind::Computations,
            Self::Instructions(_) => ValueKind::Instructions,
            Self::Window(_) => ValueKind::Window,
            Self::Padding(_) => ValueKind::Padding,
            Self::Slice(_) => ValueKind::Slice,
            Self::DimLabels(_) => ValueKind::DimLabels,
            Self::ReplicaGroups(_) => ValueKind::ReplicaGroups,
            Self::Pairs(_) => ValueKind::Pairs,
            Self::Direction(_) => ValueKind::Direction,
            Self::ComparisonType(_) => ValueKind::ComparisonType,
            Self::FusionKind(_) => ValueKind::FusionKind,
            Self::FftType(_) => ValueKind::FftType,
            Self::RandomAlgorithm(_) => ValueKind::RandomAlgorithm,
            Self::RandomDistribution(_) => ValueKind::RandomDistribution,
            Self::Transposition(_) => ValueKind::Transposition,
            Self::Text(_) => ValueKind::Text,
        }
    }
}
