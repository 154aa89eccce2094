//! A well-formed program: names resolved, types known, sugar expanded.
//!
//! What is left is the core of the report: its seven kinds of expressions with one pair of dimensions
//! each. Trees are at most `MAX_HEIGHT` of the parser high, so that walks may recurse.

pub use super::ast::{Element, Qualifier};
use crate::text::Span;
use std::fmt;

/// Most dimensions that a tensor has, intermediate ones included.
pub const MAX_RANK: usize = 64;

/// The type of a tensor (definition 2, with the type of its elements).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The type of the elements.
    pub element: Element,
    /// The extents, each at least 1.
    pub extents: Vec<i64>,
}

impl TensorType {
    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The number of elements; `None` if it does not fit.
    pub fn num_elements(&self) -> Option<i64> {
        self.extents.iter().try_fold(1_i64, |product, extent| product.checked_mul(*extent))
    }

    /// Every extent rounded up to a multiple of the vector length (definition 7).
    pub fn padded(&self, vector_length: i64) -> Self {
        let extents = self.extents.iter().map(|extent| round_up(*extent, vector_length)).collect();
        Self { element: self.element, extents }
    }
}

/// The multiple of the vector length that is next to a number, upwards (definition 7(i)). Both are at
/// least 1, and their sum fits.
pub fn round_up(number: i64, vector_length: i64) -> i64 {
    number.saturating_add(vector_length - 1) / vector_length * vector_length
}

impl fmt::Display for TensorType {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let extents: Vec<_> = self.extents.iter().map(i64::to_string).collect();
        if self.element != Element::default() {
            write!(formatter, "{} ", self.element.name())?;
        }
        write!(formatter, "[{}]", extents.join(" "))
    }
}

/// A well-formed program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The static context, in the order of the declarations.
    pub variables: Vec<Variable>,
    /// The statements, in order.
    pub statements: Vec<Statement>,
}

impl Checked {
    /// The number of the variable of a name.
    pub fn variable(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|variable| variable.name == name)
    }

    /// A vector length for padding, at least 1: the longest power of two up to that of a register of the
    /// target for which padding makes the variables larger by a half at most. More padding costs more by
    /// what does not stay in the cache than the masks of unfilled vectors do.
    pub fn vector_length(&self, register: i64) -> i64 {
        let num_elements = |vector_length| {
            let padded = self.variables.iter().map(|it| it.ty.padded(vector_length).num_elements());
            padded.map(|it| it.map_or(f64::INFINITY, |it| it as f64)).sum::<f64>()
        };
        let most = num_elements(1) * 1.5;
        let mut vector_length = register.max(1);
        while 1 < vector_length && most < num_elements(vector_length) {
            vector_length /= 2;
        }
        vector_length
    }
}

/// A declared variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// The qualifier that is written.
    pub qualifier: Option<Qualifier>,
    /// Whether the ambient application may pass a value.
    pub live_in: bool,
    /// Whether the ambient application takes what it holds in the end.
    pub live_out: bool,
    /// Where it is declared.
    pub span: Span,
}

/// An assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The number of the variable assigned to.
    pub variable: usize,
    /// The expression.
    pub value: Expr,
    /// Where the name of the variable stands.
    pub target_span: Span,
    /// From the target to the end of the value.
    pub span: Span,
}

/// An operator that is applied element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
}

/// An expression with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type.
    pub ty: TensorType,
    /// Where it stands.
    pub span: Span,
}

/// What an expression is, by the rule that types it. Dimensions count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// t-var: the number of a variable.
    Variable(usize),
    /// t-elem
    Elementwise(Operator, Box<Expr>, Box<Expr>),
    /// t-smul: a scalar and a tensor.
    ScalarMul(Box<Expr>, Box<Expr>),
    /// t-sdiv: a tensor and a scalar.
    ScalarDiv(Box<Expr>, Box<Expr>),
    /// t-prod
    Product(Box<Expr>, Box<Expr>),
    /// t-contr: the dimensions in ascending order.
    Contract(Box<Expr>, [usize; 2]),
    /// t-trans
    Transpose(Box<Expr>, [usize; 2]),
}

impl Expr {
    /// Its operands, in order.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        let (first, second) = match &self.kind {
            ExprKind::Variable(_) => (None, None),
            ExprKind::Elementwise(_, lhs, rhs)
            | ExprKind::ScalarMul(lhs, rhs)
            | ExprKind::ScalarDiv(lhs, rhs)
            | ExprKind::Product(lhs, rhs) => (Some(lhs), Some(rhs)),
            ExprKind::Contract(operand, _) | ExprKind::Transpose(operand, _) => {
                (Some(operand), None)
            }
        };
        first.into_iter().chain(second).map(|operand| &**operand)
    }

    /// Calls `visit` for each use of a variable, from left to right.
    pub fn for_each_use(&self, visit: &mut dyn FnMut(usize, Span)) {
        if let ExprKind::Variable(variable) = self.kind {
            visit(variable, self.span);
        }
        self.operands().for_each(|operand| operand.for_each_use(visit));
    }
}
