//! The syntax tree of a TML program, as the parser builds it and the printer writes it.
//!
//! Names are not resolved and numbers keep their spelling; [`super::check()`] gives them a meaning. Trees
//! from the parser are at most `MAX_HEIGHT` high, so that walks over them
//! may recurse.

use crate::text::{Name, Span};

/// `prog`: declarations, then statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The declarations, in order.
    pub declarations: Vec<Declaration>,
    /// The statements, in order.
    pub statements: Vec<Statement>,
}

/// How a variable communicates with the ambient application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Qualifier {
    /// `in`: every element has a value when the program starts.
    In,
    /// `out`: the ambient application uses what the variable holds in the end.
    Out,
    /// `inout`: both.
    InOut,
}

impl Qualifier {
    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::InOut => "inout",
        }
    }

    /// The qualifier of a keyword.
    pub fn from_keyword(text: &str) -> Option<Self> {
        [Self::In, Self::Out, Self::InOut].into_iter().find(|it| it.name() == text)
    }
}

/// The type of the elements of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Element {
    /// 32-bit floats.
    F32,
    /// 64-bit floats, the default.
    #[default]
    F64,
}

impl Element {
    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The element type of a keyword.
    pub fn from_keyword(text: &str) -> Option<Self> {
        [Self::F32, Self::F64].into_iter().find(|it| it.name() == text)
    }
}

/// `decl`: `[in|out|inout] var name : [f32|f64] [extents]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// What it is for, if that is said.
    pub qualifier: Option<Qualifier>,
    /// The variable.
    pub name: Name,
    /// The element type, if it is written.
    pub element: Option<Element>,
    /// The extents, first dimension outermost, as they are spelled.
    pub extents: Vec<Name>,
    /// From the qualifier to the closing bracket.
    pub span: Span,
}

/// `stmt`: `target = value`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The variable assigned to.
    pub target: Name,
    /// The expression.
    pub value: Expr,
    /// From the target to the end of the value.
    pub span: Span,
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `#`, the outer product
    Product,
}

impl BinaryOp {
    /// The spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Product => "#",
        }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// A variable.
    Variable(String),
    /// `(e)`
    Paren(Box<Expr>),
    /// `e op e`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The left operand.
        lhs: Box<Expr>,
        /// The right operand.
        rhs: Box<Expr>,
    },
    /// `e . [i j, ..]`
    Contract {
        /// What is contracted.
        operand: Box<Expr>,
        /// The pairs of dimensions, from 1, as they are spelled.
        pairs: Vec<[Name; 2]>,
    },
    /// `e ^ [p ..]`
    Transpose {
        /// What is transposed.
        operand: Box<Expr>,
        /// Two dimensions to swap, or all dimensions in their new order, from 1, as they are spelled.
        entries: Vec<Name>,
    },
}
