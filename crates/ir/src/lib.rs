//! Index algebra: integer index expressions, their value ranges, and indexing maps.
//!
//! An [indexing map](map::IndexingMap) says which elements of an operand one element of a
//! result needs. This crate builds, prints, parses, composes and simplifies such maps. It
//! depends on no compiler framework.

pub mod compose;
mod congruence;
pub mod constraint_expression;
pub mod emptiness;
pub mod equality;
pub mod evaluator;
pub mod expr;
pub mod interval;
pub mod inverse;
mod linear_program;
pub mod map;
pub mod polynomial;
pub mod prove;
mod rescale;
mod samples;
pub mod simplify;
pub mod solve;
pub mod text;
pub mod value_range;
pub mod variables;

pub use compose::{ComposeError, compose};
pub use constraint_expression::ConstraintExpression;
pub use emptiness::Emptiness;
pub use equality::{Difference, Equality};
pub use evaluator::{MapEvaluator, Values};
pub use expr::{Context, EvalError, Expr, LinearTerms, Node, Var};
pub use interval::Interval;
pub use inverse::InverseError;
pub use map::{Constraint, IndexingMap, Variable};
pub use text::ParseError;
pub use value_range::ValueRange;
pub use variables::VariableKind;
