//! The syntax tree of an Axon program.
//!
//! Names are not resolved. Trees from the parser are at most [`super::parser::MAX_HEIGHT`] high, but for
//! operators in a row, of which there may be [`super::parser::MAX_OPERATORS`]: walks recurse, and take more
//! stack where they need it.

use crate::text::Span;
use std::rc::Rc;
use tc_ir::shape::text::{DimExpr, ShapeExpr};

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The spelling.
    pub text: Rc<str>,
    /// Where it stands.
    pub span: Span,
}

/// A source file: definitions, and the value of the last expression if there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The definitions, in order.
    pub lets: Vec<Let>,
    /// What follows them.
    pub result: Option<Expr>,
}

/// `pattern = value;`
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    /// The names that are defined.
    pub pattern: Pattern,
    /// What they stand for.
    pub value: Expr,
}

/// What stands on the left of a definition.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A name.
    Name(Name),
    /// `_`: any value.
    Ignore(Span),
    /// The parts of a tuple.
    Tuple(Vec<Pattern>, Span),
}

impl Pattern {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Self::Name(name) => name.span,
            Self::Ignore(span) | Self::Tuple(_, span) => *span,
        }
    }
}

/// An expression and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

impl Expr {
    /// Whether nothing is calculated for it: it is a function, a name or a number. It is evaluated at each use.
    pub fn is_value(&self) -> bool {
        use ExprKind::{Float, Function, Integer, Name};
        matches!(self.kind, Function(_) | Name(_) | Integer(_) | Float(_))
    }
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number of any element type that has it.
    Integer(i128),
    /// A number of any floating element type; `inf` is one.
    Float(f64),
    /// A name, or an operator that stands for its function.
    Name(Rc<str>),
    /// Several values.
    Tuple(Vec<Expr>),
    /// `function(args, option=value)`. Operators between their operands are calls too.
    Call {
        /// What is called.
        function: Box<Expr>,
        /// The arguments.
        args: Args,
        /// The options of a built-in function.
        options: Vec<CallOption>,
    },
    /// `fn (params) : result { body }`
    Function(Rc<Function>),
}

/// The arguments of a call. Those of operators in a row are deep, and dropped one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Args(Vec<Expr>);

impl From<Vec<Expr>> for Args {
    fn from(args: Vec<Expr>) -> Self {
        Self(args)
    }
}

impl std::ops::Deref for Args {
    type Target = [Expr];

    fn deref(&self) -> &[Expr] {
        &self.0
    }
}

impl Drop for Args {
    fn drop(&mut self) {
        let mut pending = std::mem::take(&mut self.0);
        while let Some(mut expr) = pending.pop() {
            if let ExprKind::Call { args, .. } = &mut expr.kind {
                pending.append(&mut args.0);
            }
        }
    }
}

/// `name=value` among the arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallOption {
    /// The option.
    pub name: Name,
    /// Its value.
    pub value: OptionValue,
    /// Where the value stands.
    pub span: Span,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// One size.
    Dim(DimExpr),
    /// A shape.
    Shape(ShapeExpr),
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The parameters.
    pub params: Vec<Param>,
    /// The type of the result, where one is written.
    pub result_type: Option<TypeExpr>,
    /// Definitions of the body.
    pub lets: Vec<Let>,
    /// The value of the body.
    pub result: Expr,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type, where one is written.
    pub ty: Option<TypeExpr>,
}

/// A type as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    /// What it is.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// The forms of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// A name alone: an element type is a scalar, anything else a type variable.
    Name(Name),
    /// An element type, or a variable for one, and a shape.
    Tensor(Name, ShapeExpr),
    /// `(T, T)`
    Tuple(Vec<TypeExpr>),
    /// `fn(T, T) -> T`
    Function(Vec<TypeExpr>, Box<TypeExpr>),
}
