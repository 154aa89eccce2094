//! The syntax tree of a TC program, as the parser builds it and the printer writes it.
//!
//! Names are not resolved and numbers keep their spelling; [`super::check`] gives them a meaning.
//! Trees from the parser are at most [`super::parser::MAX_HEIGHT`] high, so that walks over them
//! may recurse.

use super::types::ScalarType;
use crate::text::{Name, Span};

/// A whole source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The definitions, in order.
    pub defs: Vec<Def>,
    /// Whether the program was read with [`super::Options::relaxed`].
    pub relaxed: bool,
}

/// `def name(inputs) -> (outputs) { statements }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Def {
    /// Name of the function.
    pub name: Name,
    /// Parameters before the arrow.
    pub inputs: Vec<Param>,
    /// Parameters after the arrow.
    pub outputs: Vec<Param>,
    /// The body.
    pub statements: Vec<Statement>,
    /// From `def` to the closing brace.
    pub span: Span,
}

/// A tensor of a function's head, with or without a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The type, where one is written.
    pub ty: Option<TensorType>,
    /// Name of the tensor.
    pub name: Name,
}

/// A scalar type and extents, `float(M, 3)`; no extents is rank 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// Type of the elements.
    pub scalar: ScalarType,
    /// Extents, first dimension outermost.
    pub dims: Vec<Dim>,
    /// Where it stands.
    pub span: Span,
}

/// An extent in a tensor type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A size variable.
    Size(Name),
    /// A number, as it is spelled.
    Number(Name),
}

/// The operator of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// `+=`
    Add,
    /// `*=`
    Mul,
    /// `min=`
    Min,
    /// `max=`
    Max,
}

/// How a statement writes its tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assign {
    /// `=`
    Plain,
    /// `op=` or, with `init`, `op=!`.
    Reduce {
        /// The operator that combines values.
        op: Reduction,
        /// Whether the tensor is set to the identity first.
        init: bool,
    },
}

impl Assign {
    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "=",
            Self::Reduce { op, init } => match (op, init) {
                (Reduction::Add, false) => "+=",
                (Reduction::Add, true) => "+=!",
                (Reduction::Mul, false) => "*=",
                (Reduction::Mul, true) => "*=!",
                (Reduction::Min, false) => "min=",
                (Reduction::Min, true) => "min=!",
                (Reduction::Max, false) => "max=",
                (Reduction::Max, true) => "max=!",
            },
        }
    }
}

/// `[local] target(indices) assign value <=> equivalent where clauses`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Whether it declares a tensor that is not an output.
    pub local: bool,
    /// The tensor that is written.
    pub target: Name,
    /// The subscripts on the left.
    pub indices: Vec<Expr>,
    /// How it is written.
    pub assign: Assign,
    /// Where the assignment operator stands.
    pub assign_span: Span,
    /// The right-hand side.
    pub value: Expr,
    /// The library call that the statement is equivalent to.
    pub equivalent: Option<Equivalent>,
    /// The where clauses, in order.
    pub clauses: Vec<Clause>,
    /// The whole statement.
    pub span: Span,
}

/// `<=> name(args)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equivalent {
    /// Name of the library function.
    pub name: Name,
    /// Its arguments.
    pub args: Vec<Expr>,
}

/// A clause after `where`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clause {
    /// `variable in lower:upper`, upper bound excluded.
    Range {
        /// The index variable.
        variable: Name,
        /// Lower bound, included.
        lower: Expr,
        /// Upper bound, excluded.
        upper: Expr,
    },
    /// `name = value`
    Let {
        /// The name that stands for the value.
        name: Name,
        /// The value.
        value: Expr,
    },
    /// `exists value`
    Exists(Expr),
}

/// An expression and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands, parentheses around it not included.
    pub span: Span,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// A number, as it is spelled.
    Number(String),
    /// `true` or `false`
    Bool(bool),
    /// A name without indices.
    Name(String),
    /// `name(args)`: an access or a call.
    Apply {
        /// The tensor or function.
        name: Name,
        /// Indices or arguments.
        args: Vec<Expr>,
    },
    /// `tensor.dim`
    Extent {
        /// The tensor.
        tensor: Name,
        /// The dimension, as it is spelled.
        dim: Name,
    },
    /// `type(value)`
    Cast {
        /// The type that is asked for.
        ty: ScalarType,
        /// What is converted.
        value: Box<Expr>,
    },
    /// `op value`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// Its operand.
        value: Box<Expr>,
    },
    /// `lhs op rhs`, or `min(lhs, rhs)` and `max(lhs, rhs)`.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// First operand.
        lhs: Box<Expr>,
        /// Second operand.
        rhs: Box<Expr>,
    },
    /// `condition ? on_true : on_false`
    Select {
        /// Decides which value is taken.
        condition: Box<Expr>,
        /// The value where the condition holds.
        on_true: Box<Expr>,
        /// The value where it does not.
        on_false: Box<Expr>,
    },
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `||`
    Or,
    /// `&&`
    And,
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
    /// `min(,)`
    Min,
    /// `max(,)`
    Max,
}

impl BinaryOp {
    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Less => "<",
            Self::Greater => ">",
            Self::LessEqual => "<=",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// How tightly an operator between its operands binds, from 1; `None` for `min` and `max`.
    pub fn precedence(self) -> Option<u8> {
        match self {
            Self::Or => Some(1),
            Self::And => Some(2),
            Self::Less
            | Self::Greater
            | Self::LessEqual
            | Self::GreaterEqual
            | Self::Equal
            | Self::NotEqual => Some(3),
            Self::Add | Self::Sub => Some(4),
            Self::Mul | Self::Div | Self::Mod => Some(5),
            Self::Min | Self::Max => None,
        }
    }
}
