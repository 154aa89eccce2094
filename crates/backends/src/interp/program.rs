//! The decoded form of a function: lists of instructions over numbered registers.
//!
//! Regions are lists inside an instruction; all share one set of registers, which suffices
//! because nothing recurs. Scalars and tensors are numbered apart.

use super::{
    fold::FoldKind,
    function::Function,
    integer::{IntBinary, IntPredicate},
    machine::Array,
    scalar::{FloatBinary, FloatPredicate, FloatType, FloatUnary, Scalar},
};
use crate::runtime::ElementType;
use std::rc::Rc;
use tc_ir::Interval;

/// The number of a scalar register.
pub(crate) type Reg = usize;
/// The number of a tensor register.
pub(crate) type TensorReg = usize;
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
    FloatConvert {
        ty: FloatType,
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
    If {
        condition: Reg,
        then: Branch,
        otherwise: Branch,
        to: Vec<(Reg, bool)>,
    },
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
    /// A runtime variable must be inside its bounds.
    Inside(Box<Inside>, At),
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
    Nest(Box<Nest>),
}

/// One side of an `If`: its code, and where its results are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branch {
    pub(crate) code: Code,
    pub(crate) results: Vec<Reg>,
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
    /// A tensor that exists.
    Tensor(TensorReg),
    /// A new one: the first index and its position, the last position, and the static
    /// extents.
    New { first: Vec<Reg>, position: Vec<Reg>, last: Vec<Reg>, shape: Vec<Option<i64>> },
}

/// One result of a nest.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) start: Start,
    pub(crate) to: TensorReg,
    pub(crate) fold: FoldKind,
    pub(crate) from_identity: bool,
    /// The position of the element.
    pub(crate) position: Vec<Reg>,
    /// What the body computes, per point of the ranges.
    pub(crate) value: Reg,
    /// Where the epilogue expects the folded value, and has what is stored.
    pub(crate) folded: Reg,
    pub(crate) stored: Reg,
}

impl Output {
    /// Whether values are stored as they are, at the points that satisfy the constraints only.
    pub(crate) fn is_assigned(&self) -> bool {
        matches!(self.fold, FoldKind::Last)
    }
}

/// An `imap.generic` or a `tc.comprehension`.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    pub(crate) at: At,
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
    /// Run after the ranges.
    pub(crate) epilogue: Code,
    pub(crate) outputs: Vec<Output>,
}

/// An argument of a function.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<Option<i64>>,
    pub(crate) tensor: TensorReg,
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
    pub(crate) results: Vec<(TensorReg, ElementType)>,
    pub(crate) constants: Vec<(Reg, Scalar)>,
    pub(crate) num_scalars: usize,
    pub(crate) num_tensors: usize,
    pub(crate) locations: Vec<Place>,
    pub(crate) at: At,
}

/// A place in the source, for errors.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// `file:line:col`, or `-`.
    pub(crate) location: String,
    /// What stands there, such as `'tensor.extract' op`.
    pub(crate) what: String,
}
