//! The decoded form of a function: lists of instructions over numbered registers.
//!
//! Regions are lists inside an instruction; all share one set of registers, which suffices
//! because nothing recurs. Scalars, tensors and memrefs are numbered apart. A vector is a run of
//! scalar registers, one per lane.

use super::{
    error::Error,
    fold::FoldKind,
    function::Function,
    integer::{IntBinary, IntPredicate, IntUnary, ScalarType},
    machine::Array,
    scalar::{FloatBinary, FloatPredicate, FloatType, FloatUnary, Scalar},
    sort::Sort,
};
use crate::runtime::ElementType;
use std::rc::Rc;
use tc_dialects::{element, imap::ScatterPromises};
use tc_ir::Interval;

/// The number of a scalar register.
pub(crate) type Reg = usize;
/// The number of a tensor register.
pub(crate) type TensorReg = usize;
/// The number of a memref register.
pub(crate) type MemReg = usize;
/// The number of a location in [`Program::locations`].
pub(crate) type At = usize;

/// A list of instructions.
pub(crate) type Code = Vec<Inst>;

/// One instruction. `to` is where its result goes.
#[derive(Clone, Debug)]
pub(crate) enum Inst {
    Copy {
        to: Reg,
        from: Reg,
    },
    Int {
        op: IntBinary,
        width: u32,
        to: Reg,
        lhs: Reg,
        rhs: Reg,
        at: At,
    },
    IntOne {
        op: IntUnary,
        width: u32,
        to: Reg,
        from: Reg,
    },
    IntCompare {
        predicate: IntPredicate,
        width: u32,
        to: Reg,
        lhs: Reg,
        rhs: Reg,
    },
    /// Keeps the low `to_width` bits of the operand, read as signed or unsigned.
    IntConvert {
        signed: bool,
        from_width: u32,
        to_width: u32,
        to: Reg,
        from: Reg,
    },
    Float {
        op: FloatBinary,
        ty: FloatType,
        to: Reg,
        lhs: Reg,
        rhs: Reg,
    },
    FloatOne {
        op: FloatUnary,
        ty: FloatType,
        to: Reg,
        from: Reg,
    },
    FloatCompare {
        predicate: FloatPredicate,
        ty: FloatType,
        to: Reg,
        lhs: Reg,
        rhs: Reg,
    },
    Call {
        function: Function,
        ty: FloatType,
        to: Reg,
        operands: Vec<Reg>,
    },
    /// Folds the lanes of a vector.
    Fold {
        kind: FoldKind,
        to: Reg,
        lanes: Vec<Reg>,
    },
    FloatConvert {
        ty: FloatType,
        /// Whether it rounds a value of a fold, which has another one in another order.
        open: bool,
        to: Reg,
        from: Reg,
    },
    /// Rounds to a float of at most 8 bits.
    RoundToSmall {
        ty: element::ElementType,
        to: Reg,
        from: Reg,
    },
    IntToFloat {
        ty: FloatType,
        width: u32,
        signed: bool,
        to: Reg,
        from: Reg,
    },
    FloatToInt {
        width: u32,
        signed: bool,
        to: Reg,
        from: Reg,
    },
    /// The same bits as another type.
    Bitcast {
        from_type: ScalarType,
        to_type: ScalarType,
        to: Reg,
        from: Reg,
    },
    Select {
        float: bool,
        to: Reg,
        condition: Reg,
        yes: Reg,
        no: Reg,
    },
    /// Index arithmetic of a map: checked, with a floor semantics of division.
    Index {
        op: IndexOp,
        to: Reg,
        lhs: Reg,
        rhs: Reg,
        at: At,
    },
    If(Box<If>),
    Switch(Box<Switch>),
    Loop(Box<CountedLoop>),
    While(Box<While>),
    /// A call of [`Program::functions`], by number.
    CallFunction {
        function: usize,
        arguments: Moves,
        results: Moves,
    },
    Move(Moves),
    /// Reads an element. The indices count from the origin of the tensor. Out of bounds,
    /// nothing is known of the value if `lenient`.
    Read {
        to: Reg,
        tensor: TensorReg,
        indices: Vec<Reg>,
        lenient: bool,
        at: At,
    },
    Extent {
        to: Reg,
        tensor: TensorReg,
        dim: Reg,
        at: At,
    },
    Check {
        condition: Reg,
        message: String,
        at: At,
    },
    /// An element of a tensor in place; `take` if no other operation uses the tensor.
    InsertElement {
        to: TensorReg,
        tensor: TensorReg,
        take: bool,
        value: Reg,
        indices: Vec<Reg>,
        at: At,
    },
    FromElements {
        to: TensorReg,
        shape: Vec<usize>,
        elements: Vec<Reg>,
    },
    ExtractSlice {
        to: TensorReg,
        from: TensorReg,
        slice: Slice,
        at: At,
    },
    InsertSlice {
        to: TensorReg,
        source: TensorReg,
        into: TensorReg,
        take: bool,
        slice: Slice,
        at: At,
    },
    /// The same elements in row-major order under other extents.
    Reshape {
        to: TensorReg,
        from: TensorReg,
        shape: NewShape,
        at: At,
    },
    Memory(Box<MemoryInst>, At),
    /// A runtime variable must be inside its bounds.
    Inside(Box<Inside>, At),
    /// Whether values lie in intervals. If `lenient`, an undefined value leaves that open.
    Holds {
        to: Reg,
        conditions: Vec<(Reg, Interval)>,
        lenient: bool,
        at: At,
    },
    /// A tensor of known elements.
    Constant {
        to: TensorReg,
        array: Rc<Array>,
    },
    /// A tensor about whose elements nothing is known.
    Empty {
        to: TensorReg,
        shape: Vec<Reg>,
        at: At,
    },
    Fill {
        to: TensorReg,
        tensor: TensorReg,
        value: Reg,
    },
    /// The same tensor; its static extents, if it has any, must be these.
    Reshaped {
        to: TensorReg,
        from: TensorReg,
        shape: Vec<Option<i64>>,
        at: At,
    },
    /// Lets the indices of a tensor count from the index of its first element.
    Origin {
        tensor: TensorReg,
        first: Vec<Reg>,
        position: Vec<Reg>,
        at: At,
    },
    LoopNest(Box<LoopNest>),
    Sort(Box<Sort>),
}

/// An instruction on memory.
#[derive(Clone, Debug)]
pub(crate) enum MemoryInst {
    /// `memref.view`: bytes from a start on, as elements of so many bytes.
    View {
        to: MemReg,
        from: MemReg,
        start: Reg,
        shape: Vec<Reg>,
        width: usize,
        is_float: bool,
    },
    Allocate {
        to: MemReg,
        shape: Vec<Reg>,
        is_float: bool,
    },
    /// Frees an allocation, which the memref must start at.
    Deallocate(MemReg),
    /// `bufferization.dealloc`: frees what is owned and not retained.
    DeallocateOwned {
        owned: Vec<(MemReg, Reg)>,
        retained: Vec<(MemReg, Reg)>,
    },
    /// Reads as many elements along the last dimension as there are lanes.
    Load {
        to: Vec<Reg>,
        memory: MemReg,
        indices: Vec<Reg>,
        masked: Option<MaskedLanes>,
        /// Out of bounds, nothing is known of the value.
        lenient: bool,
    },
    Store {
        values: Vec<Reg>,
        memory: MemReg,
        indices: Vec<Reg>,
        mask: Option<Vec<Reg>>,
    },
    /// Combines an element with a value; `to` is the element before.
    Update {
        to: Reg,
        /// Where the code expects the element, and has what is stored.
        element: Reg,
        code: Code,
        stored: Reg,
        memory: MemReg,
        indices: Vec<Reg>,
    },
    Copy {
        from: MemReg,
        to: MemReg,
    },
    Extent {
        to: Reg,
        memory: MemReg,
        dim: Reg,
    },
    Subview {
        to: MemReg,
        from: MemReg,
        slice: Slice,
    },
    /// The same memory; its static extents, if it has any, must be these.
    Cast {
        to: MemReg,
        from: MemReg,
        shape: Vec<Option<i64>>,
    },
    Reinterpret {
        to: MemReg,
        from: MemReg,
        offset: Reg,
        sizes: Vec<Reg>,
        strides: Vec<Reg>,
    },
    Reshape {
        to: MemReg,
        from: MemReg,
        shape: NewShape,
    },
    /// A number that two memrefs share if they start at the same element.
    Address {
        to: Reg,
        memory: MemReg,
    },
    /// Offset, extents and strides, and a memref without dimensions at the start of the allocation.
    Metadata {
        base: MemReg,
        offset: Reg,
        sizes: Vec<Reg>,
        strides: Vec<Reg>,
        memory: MemReg,
    },
    /// A global of [`Program::globals`], by number.
    Global {
        to: MemReg,
        global: usize,
    },
    /// New memory with the elements of a tensor.
    OfTensor {
        to: MemReg,
        tensor: TensorReg,
        read_only: bool,
        is_float: bool,
    },
    /// A tensor with the elements that memory has now.
    ToTensor {
        to: TensorReg,
        memory: MemReg,
    },
    /// Stores the elements of a tensor.
    Materialize {
        tensor: TensorReg,
        memory: MemReg,
    },
    /// New memory with the elements of other memory.
    Clone {
        to: MemReg,
        from: MemReg,
    },
}

/// The lanes of a masked load: which are read, and the values of the others.
#[derive(Clone, Debug)]
pub(crate) struct MaskedLanes {
    pub(crate) mask: Vec<Reg>,
    pub(crate) others: Vec<Reg>,
}

/// Offsets, sizes and strides per dimension, and which dimensions the slice keeps.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) offsets: Vec<Reg>,
    pub(crate) sizes: Vec<Reg>,
    pub(crate) strides: Vec<Reg>,
    pub(crate) is_kept: Vec<bool>,
}

/// The extents that a reshape gives.
#[derive(Clone, Debug)]
pub(crate) enum NewShape {
    /// Each group of dimensions becomes one.
    Collapsed(Vec<Vec<usize>>),
    /// Each dimension becomes a group; all new extents.
    Expanded(Vec<Vec<usize>>, Vec<Reg>),
}

/// Copies of values from registers (second) to others (first): all are read before one is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves {
    pub(crate) scalars: Vec<(Reg, Reg)>,
    /// With whether nothing else uses the tensor.
    pub(crate) tensors: Vec<(TensorReg, TensorReg, bool)>,
    pub(crate) memories: Vec<(MemReg, MemReg)>,
}

/// A list of instructions, and the copies that give its results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branch {
    pub(crate) code: Code,
    pub(crate) results: Moves,
}

/// `scf.if`.
#[derive(Clone, Debug)]
pub(crate) struct If {
    pub(crate) condition: Reg,
    pub(crate) then: Branch,
    pub(crate) otherwise: Branch,
    /// The scalar and the tensor results, with whether they are floats.
    pub(crate) scalars: Vec<(Reg, bool)>,
    pub(crate) tensors: Vec<(TensorReg, bool)>,
    pub(crate) at: At,
}

/// `scf.index_switch`.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) selector: Reg,
    pub(crate) cases: Vec<(i64, Branch)>,
    pub(crate) default: Branch,
    pub(crate) at: At,
}

/// A counter of a loop, from `lower` to before `upper`.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) variable: Reg,
    pub(crate) lower: Reg,
    pub(crate) upper: Reg,
    pub(crate) step: Reg,
}

/// `scf.for`, `scf.parallel` and `scf.forall`: iterations in lexicographic order.
#[derive(Clone, Debug)]
pub(crate) struct CountedLoop {
    pub(crate) counters: Vec<Counter>,
    /// The width in which bounds are compared without sign; 0 if they are signed.
    pub(crate) unsigned_width: u32,
    /// From the operands to the values that are carried.
    pub(crate) init: Moves,
    pub(crate) body: Branch,
    /// From the values that are carried to the results.
    pub(crate) finish: Moves,
    pub(crate) at: At,
}

/// `scf.while`.
#[derive(Clone, Debug)]
pub(crate) struct While {
    pub(crate) init: Moves,
    pub(crate) before: Code,
    pub(crate) condition: Reg,
    /// From the operands of the condition to the arguments of the body.
    pub(crate) forward: Moves,
    pub(crate) after: Branch,
    /// From the operands of the condition to the results.
    pub(crate) finish: Moves,
    pub(crate) at: At,
}

/// The closed bounds of a runtime variable.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    pub(crate) name: String,
    pub(crate) value: Reg,
    pub(crate) lower: Option<Reg>,
    pub(crate) upper: Option<Reg>,
}

/// An operation of an index expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexOp {
    Add,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
}

/// A variable of a nest.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) name: String,
    pub(crate) variable: Reg,
    /// The closed bounds.
    pub(crate) lower: Reg,
    pub(crate) upper: Reg,
}

/// What a result holds before the nest.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// A tensor that exists; `take` if nothing else uses it.
    Tensor { tensor: TensorReg, take: bool },
    /// Memory, which is written in place.
    Memory(MemReg),
    /// A new one: the first index and its position, the last position, and the static
    /// extents; and its elements.
    New {
        first: Vec<Reg>,
        position: Vec<Reg>,
        last: Vec<Reg>,
        shape: Vec<Option<i64>>,
        fill: Scalar,
    },
}

/// One result of a nest.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) start: Start,
    /// The tensor that results; unused for memory.
    pub(crate) to: TensorReg,
    /// The position of the element.
    pub(crate) position: Vec<Reg>,
    /// Whether no two points have one position, by the form of the map: otherwise the nest promises it.
    pub(crate) is_injective: bool,
    /// The value to store.
    pub(crate) stored: Reg,
}

/// The start of a fold.
#[derive(Copy, Clone, Debug)]
pub(crate) enum FoldStart {
    Identity,
    Constant(Scalar),
    /// The element of the output of this number.
    Output(usize),
}

/// The combiner of all accumulators of a nest.
#[derive(Clone, Debug)]
pub(crate) struct Combiner {
    /// The values so far, then the new ones.
    pub(crate) arguments: Vec<Reg>,
    pub(crate) code: Code,
    pub(crate) results: Vec<Reg>,
    /// A promise per accumulator. Empty for scatters, and for folds that keep their order, which are never split.
    pub(crate) promises: Vec<Promise>,
}

/// The properties that a nest promises for an accumulator of a [`Combiner`].
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) identity: Scalar,
    pub(crate) is_float: bool,
    /// The type in which the combiner rounds the value; `None` if it only selects values, or for integers.
    pub(crate) rounds: Option<FloatType>,
}

/// One accumulator of a nest.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    pub(crate) fold: FoldKind,
    pub(crate) start: FoldStart,
    /// The value of the body at one point of the ranges.
    pub(crate) value: Reg,
    /// The value after the last point of the ranges.
    pub(crate) folded: Reg,
}

/// Which values a scan stores.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The values after the value of the point is folded.
    Inclusive,
    /// The values before it is folded.
    Exclusive,
}

/// What a scatter promises about the elements that it updates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scatter {
    pub(crate) promises: ScatterPromises,
    /// The dimension variables on which the elements of runtime variables do not depend.
    pub(crate) windows: Vec<Reg>,
}

/// An `imap.generic`, an `imap.scan`, an `imap.scatter` or a `tc.comprehension`.
#[derive(Clone, Debug)]
pub(crate) struct LoopNest {
    pub(crate) at: At,
    /// In a scan, accumulators start at the first point of the last dimension.
    pub(crate) scan: Option<Scan>,
    /// A point that does not satisfy the constraints stores nothing, in a fold too.
    pub(crate) scatter: Option<Scatter>,
    /// Whether a loop without a point is an error, as TC has it.
    pub(crate) must_run: bool,
    pub(crate) dims: Vec<Loop>,
    pub(crate) ranges: Vec<Loop>,
    /// Run once: bounds of the dimensions, and what depends on no variable.
    pub(crate) before: Code,
    /// Run per point of the dimensions: bounds of the ranges, and positions of the results.
    pub(crate) per_dim: Code,
    /// Run per point of dimensions and ranges: the constraints.
    pub(crate) constraint_code: Code,
    pub(crate) constraints: Vec<(Reg, Interval)>,
    /// Run where the constraints hold.
    pub(crate) body: Code,
    /// Without accumulators, the values of the body are stored, at points that satisfy the constraints
    /// only.
    pub(crate) accumulators: Vec<Accumulator>,
    /// The region that combines them; `None` if each has a combiner with a name.
    pub(crate) combiner: Option<Combiner>,
    /// Run after the ranges.
    pub(crate) epilogue: Code,
    pub(crate) outputs: Vec<Output>,
}

/// An argument of a function.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) element: ElementType,
    pub(crate) scalar: ScalarType,
    pub(crate) shape: Vec<Option<i64>>,
    pub(crate) place: Place,
    /// Whether it receives a result: the number of the result, and whether what it holds before the
    /// call is read.
    pub(crate) output: Option<(usize, bool)>,
}

/// A register of a tensor or a memref.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tensor(TensorReg),
    Memory(MemReg),
}

/// A size variable: it is the extent of a dimension of each of these parameters.
#[derive(Clone, Debug)]
pub(crate) struct SizeVariable {
    pub(crate) name: String,
    pub(crate) value: Reg,
    /// Numbers of a parameter and of a dimension; the first defines it.
    pub(crate) places: Vec<(usize, usize)>,
}

/// A decoded function.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) sizes: Vec<SizeVariable>,
    pub(crate) code: Code,
    pub(crate) results: Vec<(Place, (ElementType, ScalarType))>,
    /// The number of the failed check, or 0, and the messages of the checks.
    pub(crate) status: Option<(Reg, Vec<String>)>,
    /// The bodies of the functions that are called.
    pub(crate) functions: Vec<Code>,
    /// Shapes and elements of globals; without elements they are undefined.
    pub(crate) globals: Vec<Global>,
    pub(crate) constants: Vec<(Reg, Scalar)>,
    pub(crate) num_scalars: usize,
    pub(crate) num_tensors: usize,
    pub(crate) num_memories: usize,
    pub(crate) locations: Vec<SourcePlace>,
    pub(crate) at: At,
    /// Where the function returns.
    pub(crate) return_at: At,
}

/// A `memref.global`.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    pub(crate) array: Array,
    pub(crate) is_constant: bool,
    pub(crate) is_float: bool,
    pub(crate) at: At,
}

/// A place in the source, for errors.
#[derive(Clone, Debug)]
pub(crate) struct SourcePlace {
    /// `file:line:col`, or `-`.
    pub(crate) location: String,
    /// What stands there, such as `'tensor.extract' op`.
    pub(crate) what: String,
}

impl Program {
    /// An error at a place.
    pub(crate) fn error(&self, at: At, message: &str) -> Error {
        let place = &self.locations[at];
        Error::new(&place.location, format!("{} {message}", place.what))
    }

    /// Adds where an undefined value comes from.
    pub(crate) fn note_origin(&self, error: Error, origin: At) -> Error {
        let Some(place) = self.locations.get(origin) else { return error };
        let message = format!("{} leaves the element undefined", place.what);
        error.note(&place.location, message)
    }
}
