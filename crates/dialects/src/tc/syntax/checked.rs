//! The typed program that [`super::check`] makes of a syntax tree.
//!
//! Every name is resolved, every implicit conversion is a [`ExprKind::Cast`], and tensors are in single
//! assignment form: a read names the input, or the statement whose result it sees. The tree owns all
//! that it holds. Expressions are at most twice [`super::parser::MAX_HEIGHT`] high, so that
//! walks may recurse; lets may form longer chains, so that they are best handled in order.
//!
//! Invariants:
//! - the two operands of an arithmetic operator, of a comparison, and of a select have equal types;
//! - an expression of type [`Type::Index`] holds no operand of another type except below a cast and in
//!   comparisons of values;
//! - subscripts and bounds of a range have type [`Type::Index`], and bounds read no tensor;
//! - a size variable, index variable or extent has type `int32` or [`Type::Index`].

use super::ast::{Assign, Reduction};
use super::types::{ScalarType, Type};
use crate::builtins::Builtin;
use crate::text::Span;

/// The functions of a source file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// The functions without an error, in order.
    pub functions: Vec<Function>,
}

/// A function: what goes in, what comes out, and the statements in between.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub name_span: Span,
    /// The whole definition.
    pub span: Span,
    /// The size variables of the inputs, in order of appearance.
    pub sizes: Vec<SizeVariable>,
    /// The inputs, in order.
    pub inputs: Vec<Input>,
    /// The outputs, in order.
    pub outputs: Vec<Output>,
    /// The names of the local tensors, in the order of their declarations.
    pub locals: Vec<String>,
    /// The statements, in order.
    pub statements: Vec<Statement>,
}

impl Function {
    /// The name of the tensor that a statement assigns.
    pub fn target(&self, statement: &Statement) -> &str {
        match statement.tensor.checked_sub(self.outputs.len()) {
            None => &self.outputs[statement.tensor].name,
            Some(local) => &self.locals[local],
        }
    }
}

/// A size variable; inputs in which it occurs twice have equal sizes there.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeVariable {
    /// Its name.
    pub name: String,
    /// Where it stands first.
    pub span: Span,
}

/// An extent in the type of an input or in the annotation of an output.
#[derive(Clone, Debug, PartialEq)]
pub enum Dim {
    /// A size variable, by position in [`Function::sizes`].
    Size(usize),
    /// A number from 1 to `i32::MAX`.
    Const(i64),
    /// A size that no input has: equal names in annotations of outputs mean equal extents.
    Free(String),
}

/// An input tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Where the name stands in the head.
    pub span: Span,
    /// Type of the elements.
    pub scalar: ScalarType,
    /// Its extents, never [`Dim::Free`].
    pub dims: Vec<Dim>,
}

/// An output tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Where the name stands in the head.
    pub span: Span,
    /// Type of the elements after the last statement that assigns it.
    pub scalar: ScalarType,
    /// Its rank after that statement.
    pub rank: usize,
    /// The statement that gives it its final value, by position in [`Function::statements`].
    pub statement: usize,
    /// The extents that the head asserts, if it gives a type.
    pub annotation: Option<Vec<Dim>>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The tensor that it assigns, by position in [`Function::outputs`] followed by
    /// [`Function::locals`].
    pub tensor: usize,
    /// The operator as written; see [`Statement::reduction`] for what it does.
    pub assign: Assign,
    /// The index variables; those of the left-hand side come first, in its order.
    pub variables: Vec<IndexVariable>,
    /// How many of `variables` belong to the left-hand side; the rank of the result.
    pub rank: usize,
    /// The subscripts of the left-hand side that are no index variables, in order. The variables at
    /// their positions have no other use than to carry a range.
    pub addresses: Vec<Address>,
    /// The other variables, by position in `variables`, in the order in which they appear in the text.
    pub reductions: Vec<usize>,
    /// Type of the elements of the result.
    pub scalar: ScalarType,
    /// The statement that defined the output before, if one did.
    pub previous: Option<usize>,
    /// The range clauses, in order; several for one variable intersect.
    pub ranges: Vec<RangeClause>,
    /// The lets, in order; each may refer to earlier ones.
    pub lets: Vec<Let>,
    /// The expressions of exists clauses, for range inference only.
    pub exists: Vec<Expr>,
    /// The right-hand side, in the type of the result.
    pub value: Expr,
    /// The library call that the statement is said to be equal to; it may read the result.
    pub equivalent: Option<Equivalent>,
    /// Where the name on the left stands.
    pub target_span: Span,
    /// The left-hand side.
    pub left_span: Span,
    /// The whole statement.
    pub span: Span,
}

impl Statement {
    /// The index variables of the left-hand side.
    pub fn indices(&self) -> &[IndexVariable] {
        &self.variables[..self.rank]
    }

    /// The reduction that is performed: its operator, and whether the output starts at the identity.
    ///
    /// `op=!` that defines each element once is plain assignment, for which this is `None`.
    pub fn reduction(&self) -> Option<(Reduction, bool)> {
        match self.assign {
            Assign::Plain => None,
            Assign::Reduce { init: true, .. }
                if self.reductions.is_empty() && self.addresses.is_empty() =>
            {
                None
            }
            Assign::Reduce { op, init } => Some((op, init)),
        }
    }

    /// Whether values accumulate into what the caller passed in: `op=` on an output not defined before.
    pub fn accumulates_caller_value(&self) -> bool {
        self.previous.is_none() && matches!(self.assign, Assign::Reduce { init: false, .. })
    }
}

/// A subscript of the left-hand side that is no index variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// The dimension that it addresses.
    pub dim: usize,
    /// Its value, of type [`Type::Index`].
    pub index: Expr,
}

/// An index variable of a statement.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexVariable {
    /// Its name.
    pub name: String,
    /// Where it stands first.
    pub span: Span,
}

/// `variable in lower:upper`
#[derive(Clone, Debug, PartialEq)]
pub struct RangeClause {
    /// The variable, by position in [`Statement::variables`].
    pub variable: usize,
    /// Lower bound, included. It may hold other index variables, which range inference refuses.
    pub lower: Expr,
    /// Upper bound, excluded; the same holds.
    pub upper: Expr,
    /// The whole clause.
    pub span: Span,
}

/// `name = value`
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
    /// The value, in its own type.
    pub value: Expr,
    /// The value as an index, for references of type [`Type::Index`]; `None` if it is bool or float.
    pub index: Option<Expr>,
}

/// `<=> name(args)`
#[derive(Clone, Debug, PartialEq)]
pub struct Equivalent {
    /// Name of the library function.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
    /// Its arguments.
    pub args: Vec<Expr>,
}

/// A typed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: Type,
    /// Where it stands.
    pub span: Span,
}

/// What a read sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An input, by position in [`Function::inputs`].
    Input(usize),
    /// The result of a statement, by position in [`Function::statements`].
    Statement(usize),
}

/// The forms of a typed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// An integer from 0 to `i32::MAX`.
    Int(i64),
    /// A `float`: its value, rounded to 32 bits, and its spelling.
    Float {
        /// The value.
        value: f64,
        /// As written.
        text: String,
    },
    /// `true` or `false`
    Bool(bool),
    /// An index variable, by position in [`Statement::variables`].
    Variable(usize),
    /// A size variable, by position in [`Function::sizes`].
    Size(usize),
    /// The extent of a dimension of a statement's result. Those of inputs are sizes or literals.
    Extent {
        /// The statement.
        statement: usize,
        /// The dimension, below the rank of the result.
        dim: usize,
    },
    /// The value of a let, by position in [`Statement::lets`].
    Let(usize),
    /// An element of a tensor.
    Read {
        /// The tensor.
        source: Source,
        /// One index per dimension.
        indices: Vec<Expr>,
    },
    /// `-x`; on bool x itself.
    Neg(Box<Expr>),
    /// `!x`
    Not(Box<Expr>),
    /// Arithmetic, in the type of both operands.
    Arith {
        /// The operator.
        op: ArithOp,
        /// First operand.
        lhs: Box<Expr>,
        /// Second operand.
        rhs: Box<Expr>,
    },
    /// A comparison of two operands of one type.
    Compare {
        /// The operator.
        op: CompareOp,
        /// First operand.
        lhs: Box<Expr>,
        /// Second operand.
        rhs: Box<Expr>,
    },
    /// `lhs && rhs`; `rhs` is evaluated only where `lhs` holds.
    And(Box<Expr>, Box<Expr>),
    /// `lhs || rhs`; `rhs` is evaluated only where `lhs` does not hold.
    Or(Box<Expr>, Box<Expr>),
    /// `condition ? on_true : on_false`; only the branch taken is evaluated.
    Select {
        /// Decides which value is taken.
        condition: Box<Expr>,
        /// The value where the condition holds.
        on_true: Box<Expr>,
        /// The value where it does not.
        on_false: Box<Expr>,
    },
    /// A conversion to the type of this expression, as C converts; a float that an integer type cannot
    /// hold saturates, and nan gives 0.
    Cast {
        /// What is converted.
        value: Box<Expr>,
        /// Whether the program wrote it.
        explicit: bool,
    },
    /// A built-in function of arguments that have the type of the result.
    Call {
        /// The function.
        builtin: &'static Builtin,
        /// As many arguments as it takes.
        args: Vec<Expr>,
    },
}

/// An arithmetic operator.
///
/// Integers wrap in their width, and `Div` and `Mod` floor. On bool the operators are those of a 1-bit
/// unsigned integer, except that `Add` is *or*, as it is in a reduction: `Max` is *or*, `Mul` and `Min`
/// are *and*, `Sub` is *exclusive or*, `Div` is *and* (x / 0 is 0), `Mod` is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `min`
    Min,
    /// `max`
    Max,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}
