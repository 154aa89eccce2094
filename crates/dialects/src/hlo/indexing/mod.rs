//! Indexing analysis: the elements of its operands that each element of an instruction needs.
//!
//! For every instruction and every pair of an output and an operand there is a set of
//! [indexing maps](tc_ir::map), in both directions: from the output to the operand, and from the
//! operand to the output. A set has several maps where a fusion reads an operand in several ways.
//! Indices that are computed when the program runs are runtime variables; each knows the
//! instruction and the element that it is read from. Where the semantics give no such map (a loop, a
//! custom call) the set says *unknown indexing*.
//!
//! ```
//! use tc_dialects::hlo::{indexing::Indexing, syntax};
//! use tc_dialects::text::SourceFile;
//!
//! let source = SourceFile::new("dot.hlo", "
//!     HloModule example
//!     ENTRY main {
//!       x = f32[2,3] parameter(0)
//!       y = f32[3,4] parameter(1)
//!       ROOT dot = f32[2,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
//!     }");
//! let module = syntax::parse_module(&source).0.expect("no errors");
//! let indexing = Indexing::of(&module);
//! let root = indexing.root(module.entry);
//! let maps = indexing.output_to_input(root, 0);
//! assert_eq!(
//!     indexing.set_text(&maps[1]),
//!     ["(d0, d1)[s0] -> (s0, d1), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2]"]
//! );
//! ```
//!
//! Source: OpenXLA, "Indexing analysis" (openxla.org/xla/indexing), and its `indexing_analysis.h`.
//! Beyond it there are maps from input to output for every operation that has maps the other way,
//! and both maps for general `gather`, `scatter`, `sort`, `topk`, `ragged-dot` and collectives. Both
//! directions come from one description per operation, a `Relation`, so that they are inverses of
//! each other.
//!
//! Maps are exact: of an output element they give all elements of the operand that the definition
//! of the operation names, and no others. Where a map would have to leave out a part of its domain
//! that is not a box, it has [exceptions](OperandIndexing::exceptions): the pad value of `pad` is not
//! read where there is an element, nor the first operand of `dynamic-update-slice` where the update
//! stands. Where values decide (which group of `ragged-dot`, which element `select-and-scatter` selects,
//! which branch of a `conditional`), everything counts that may be read, and
//! [the map says so](OperandIndexing::is_conditional). [`Indexing::like_xla`] gives XLA's own answers
//! where they are others.
//!
//! A [`Tiling`] passes tiles of arrays through instructions by these maps.
//!
//! Cost: a whole computation takes one composition for each pair of a map of an instruction and a
//! map of its operand. Sets hold each map once and at most [`MAX_MAPS`], so that this is linear in
//! the instructions, whatever the number of paths through them. Instructions that call a
//! computation of several results need this for each result; past [`MAX_REACHED`] instructions
//! they are said to read everything in an unknown way.

mod accesses;
mod collective;
mod computation;
mod contraction;
mod dynamic;
mod elementwise;
mod graph;
mod image;
mod line;
mod module_text;
mod programs;
mod reduction;
mod relation;
mod reshape;
mod runtime;
mod set;
mod structural;
#[cfg(test)]
mod tests;
mod text;
mod tiling;
mod utilization;
mod window;

pub use accesses::Accesses;
pub use computation::{Grouped, MAX_REACHED};
pub use module_text::Selection;
pub use set::{
    IndexingSet, MAX_MAPS, MAX_OPERATORS, OperandIndexing, RuntimeSource, RuntimeVariable,
};
pub use tiling::{PlacedTile, Tiling, Untiled};
pub use utilization::Utilization;

use super::{ArrayShape, Computation, ComputationId, Instruction, InstructionId, Module, Opcode};
use computation::Summaries;
use image::Images;
use relation::Relation;
use std::cell::{OnceCell, RefCell};
use tc_ir::Context;

/// An instruction of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstructionRef {
    /// The computation that holds it.
    pub computation: ComputationId,
    /// Its position there.
    pub instruction: InstructionId,
}

/// Which way a map leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From an output of an instruction to an operand.
    OutputToInput,
    /// From an operand to an output.
    InputToOutput,
}

/// The indexing analysis of a module; see the [module](self) text.
pub struct Indexing<'m> {
    module: &'m Module,
    context: Context,
    like_xla: bool,
    /// Maps through whole computations, for the instructions that call them.
    summaries: RefCell<Summaries>,
    /// How many elements maps lead to.
    images: RefCell<Images>,
}

/// How an output of an instruction depends on one operand.
enum Reads {
    /// Not at all, but for the shape.
    Nothing,
    /// In a way that no map describes; every array of the operand may be read.
    Unknown,
    /// As the relation says.
    Related(Relation),
}

impl<'m> Indexing<'m> {
    /// The analysis of a module. Maps are computed when they are asked for.
    pub fn of(module: &'m Module) -> Self {
        Self {
            module,
            context: Context::new(),
            like_xla: false,
            summaries: RefCell::default(),
            images: RefCell::default(),
        }
    }

    /// The same with XLA's maps where they differ from the meaning of the operation:
    ///
    /// - An index that is known before the program runs, such as one from an `iota`, and that may
    ///   be in bounds is taken to be.
    /// - The update of a `dynamic-update-slice` has a map everywhere in the output; outside of the
    ///   updated part it leads outside of the update.
    /// - The inputs of a `scan` are those of the same step only, and for what is carried to the end
    ///   the maps leave out the dimension that is scanned.
    /// - With several batch groups, a convolution reads every group of the batch; where a window reaches
    ///   into the padding, all of the kernel is read.
    /// - A tile of the lhs of a `ragged-dot` counts the rows of a group from the first row of the group.
    /// - No map has exceptions: `dynamic-update-slice` reads all of its first operand, and `pad` the pad
    ///   value for each element.
    pub fn like_xla(mut self) -> Self {
        self.like_xla = true;
        self.summaries = RefCell::default();
        self
    }

    /// The module.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// Where the expressions of the maps live.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The root of a computation.
    pub fn root(&self, computation: ComputationId) -> InstructionRef {
        InstructionRef { computation, instruction: self.module[computation].root }
    }

    /// An instruction.
    pub fn instruction(&self, at: InstructionRef) -> &'m Instruction {
        &self.module[at.computation][at.instruction]
    }

    /// For each operand, the maps that lead from array `output` of an instruction to it. Arrays of
    /// a tuple, and of tuples in it, are numbered in order.
    pub fn output_to_input(&self, at: InstructionRef, output: usize) -> Vec<IndexingSet> {
        let op = Op::new(self, at);
        if op.instruction.opcode.calls() {
            return self.call_output_to_input(&op, output);
        }
        let mut sets = vec![IndexingSet::default(); op.num_operands()];
        let operands = match op.instruction.opcode {
            // Of many operands, one is the source.
            Opcode::Tuple => structural::tuple_source(&op, output).map_or(0..0, |it| it..it + 1),
            _ => 0..op.num_operands(),
        };
        for operand in operands {
            sets[operand] = self.set(&op, output, operand, Direction::OutputToInput);
        }
        sets
    }

    /// For each array of the output of an instruction, the maps that lead from an operand to it.
    /// If the operand is a tuple, [`OperandIndexing::array`] says which array of it a map starts
    /// from.
    pub fn input_to_output(&self, at: InstructionRef, operand: usize) -> Vec<IndexingSet> {
        self.operand_to_outputs(&Op::new(self, at), operand)
    }

    fn operand_to_outputs(&self, op: &Op, operand: usize) -> Vec<IndexingSet> {
        let mut sets = vec![IndexingSet::default(); num_arrays(&op.instruction.shape)];
        if op.num_operands() <= operand {
            return sets;
        }
        if op.instruction.opcode.calls() {
            return self.call_input_to_output(op, operand);
        }
        let outputs = match op.instruction.opcode {
            Opcode::Tuple => structural::tuple_places(op, operand),
            _ => 0..sets.len(),
        };
        for output in outputs {
            if let Some(set) = sets.get_mut(output) {
                *set = self.set(op, output, operand, Direction::InputToOutput);
            }
        }
        sets
    }

    /// Whether nothing is known of what an instruction reads, whichever output and operand is
    /// asked for.
    fn is_opaque(&self, op: &Op) -> bool {
        match op.instruction.opcode.calls() {
            true => self.is_beyond_limits(op),
            false => matches!(op.reads(0, &[0]), Some(Reads::Unknown)),
        }
    }

    fn set(&self, op: &Op, output: usize, operand: usize, direction: Direction) -> IndexingSet {
        match op.reads(output, &[operand]) {
            Some(Reads::Nothing) => IndexingSet::default(),
            Some(Reads::Related(relation)) => match relation.map(&self.context, direction) {
                Some(mut indexing) => {
                    runtime::replace_known(self, &mut indexing);
                    IndexingSet::of(indexing)
                }
                None => IndexingSet::unknown(relation.array),
            },
            Some(Reads::Unknown) | None => unknown_operand(op, operand),
        }
    }
}

/// Every array of an operand, read in an unknown way.
fn unknown_operand(op: &Op, operand: usize) -> IndexingSet {
    let mut set = IndexingSet::default();
    let arrays = op.operand(operand).map_or(0, |operand| num_arrays(&operand.shape));
    (0..arrays).for_each(|array| set.insert_unknown(array));
    set
}

/// The number of arrays in a shape, those of nested tuples included.
pub fn num_arrays(shape: &super::Shape) -> usize {
    let mut count = 0;
    shape.for_each_array(&mut |_| count += 1);
    count
}

/// The arrays in a shape, those of nested tuples included.
pub fn arrays(shape: &super::Shape) -> Vec<&ArrayShape> {
    let mut arrays = Vec::new();
    shape.for_each_array(&mut |array| arrays.push(array));
    arrays
}

/// The array of a shape with the given number.
pub fn array(shape: &super::Shape, number: usize) -> Option<&ArrayShape> {
    let mut rest = number;
    let mut shape = shape;
    while let super::Shape::Tuple(elements) = shape {
        shape = elements.iter().find(|element| {
            let count = num_arrays(element);
            let is_inside = rest < count;
            if !is_inside {
                rest -= count;
            }
            is_inside
        })?;
    }
    shape.as_array().filter(|_| rest == 0)
}

impl Opcode {
    /// Whether the value is that of a computation on the operands.
    fn calls(self) -> bool {
        matches!(self, Self::Fusion | Self::Call | Self::Conditional)
    }
}

/// An instruction with what surrounds it.
struct Op<'a> {
    module: &'a Module,
    computation: &'a Computation,
    instruction: &'a Instruction,
    at: InstructionRef,
    like_xla: bool,
    /// Of a `concatenate`, where each operand starts in the output.
    starts: OnceCell<Vec<Option<i64>>>,
}

impl<'a> Op<'a> {
    fn new(indexing: &Indexing<'a>, at: InstructionRef) -> Self {
        Self::of(indexing.module, at, indexing.like_xla)
    }

    fn of(module: &'a Module, at: InstructionRef, like_xla: bool) -> Self {
        let computation = &module[at.computation];
        let instruction = &computation[at.instruction];
        let starts = OnceCell::new();
        Self { module, computation, instruction, at, like_xla, starts }
    }

    fn operand(&self, number: usize) -> Option<&'a Instruction> {
        self.instruction.operands.get(number).map(|&id| &self.computation[id])
    }

    fn operand_ref(&self, number: usize) -> Option<InstructionRef> {
        let instruction = *self.instruction.operands.get(number)?;
        Some(InstructionRef { computation: self.at.computation, instruction })
    }

    /// The sizes of an operand that is an array.
    fn operand_dims(&self, number: usize) -> Option<&'a [i64]> {
        Some(&self.operand(number)?.array()?.dims)
    }

    /// The sizes of an output.
    fn output_dims(&self, output: usize) -> Option<&'a [i64]> {
        match self.instruction.array() {
            Some(array) => (output == 0).then_some(&array.dims),
            None => Some(&array(&self.instruction.shape, output)?.dims),
        }
    }

    fn num_operands(&self) -> usize {
        self.instruction.operands.len()
    }

    /// How an output depends on operands; `None` if the instruction is not well-formed. Only the
    /// products and the element-wise operations relate several operands at once; others relate the
    /// first that is asked for.
    fn reads(&self, output: usize, operands: &[usize]) -> Option<Reads> {
        use Opcode::*;
        let operand = *operands.first()?;
        let relation = match self.instruction.opcode {
            Tuple | GetTupleElement | OptBarrier | AddDependency | Copy | CopyStart | CopyDone => {
                return structural::forwarded(self, output, operand);
            }
            GetDimensionSize => return Some(Reads::Nothing),
            Abs | Add | And | Acos | Acosh | Asin | Asinh | Atan2 | Atanh | Cbrt | Ceil | Clamp
            | Compare | Complex | Convert | Cosine | Cosh | CountLeadingZeros | Divide | Erf
            | Exponential | ExponentialMinusOne | Floor | Imag | IsFinite | Log | LogPlusOne
            | Logistic | Map | Maximum | Minimum | Mulhi | Multiply | Negate | Not | Or
            | Popcnt | Power | Real | ReducePrecision | Remainder | Rng | RoundNearestAfz
            | RoundNearestEven | Rsqrt | Select | SetDimensionSize | ShiftLeft
            | ShiftRightArithmetic | ShiftRightLogical | Sign | Sine | Sinh | Sqrt
            | StochasticConvert | Subtract | Tan | Tanh | Xor => {
                elementwise::elementwise(self, output, operands)
            }
            BitcastConvert => elementwise::bitcast_convert(self),
            BatchNormGrad | BatchNormInference | BatchNormTraining => {
                elementwise::batch_norm(self, output, operand)
            }
            Broadcast => structural::broadcast(self),
            Transpose => structural::transpose(self),
            Reverse => structural::reverse(self),
            Slice => structural::slice(self),
            Pad => structural::pad(self, operand),
            Concatenate => structural::concatenate(self, operand),
            Reshape => reshape::reshape(self),
            Bitcast => reshape::bitcast(self),
            Dot => contraction::dot(self, operands),
            RaggedDot => contraction::ragged_dot(self, operand),
            ScaledDot => contraction::scaled_dot(self, operand),
            Reduce => reduction::reduce(self, output, operand),
            Scan => reduction::scan(self, output, operand),
            Sort => reduction::sort(self, output, operand),
            TopK => reduction::top_k(self, output),
            ReduceWindow => window::reduce_window(self, output, operand),
            SelectAndScatter => window::select_and_scatter(self, operand),
            Convolution => window::convolution(self, operands),
            DynamicSlice => dynamic::dynamic_slice(self, operand),
            DynamicUpdateSlice => dynamic::dynamic_update_slice(self, operand),
            Gather => dynamic::gather(self, operand),
            Scatter => dynamic::scatter(self, output, operand),
            AllGather | AllReduce | AllToAll | CollectiveBroadcast | CollectivePermute
            | ReduceScatter => return collective::reads(self, output, operand),
            AfterAll | Call | Cholesky | Conditional | Constant | CustomCall | Fft | Fusion
            | Iota | Parameter | PartitionId | ReplicaId | RngBitGenerator
            | RngGetAndUpdateState | TriangularSolve | While => return Some(Reads::Unknown),
        };
        relation.map(Reads::Related)
    }
}

/// The dimension that an attribute names.
fn dimension(number: i64, rank: usize) -> Option<usize> {
    usize::try_from(number).ok().filter(|&number| number < rank)
}

/// The dimensions that an attribute names.
fn dimensions(numbers: &[i64], rank: usize) -> Option<Vec<usize>> {
    numbers.iter().map(|&number| dimension(number, rank)).collect()
}
