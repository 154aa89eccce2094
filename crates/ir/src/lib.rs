//! Index algebra: integer index expressions, their value ranges, and indexing maps.
//!
//! An [indexing map](map::IndexingMap) says which elements of an operand one element of a
//! result needs. This crate builds, prints, parses, composes and simplifies such maps. It
//! depends on no compiler framework.

pub mod compose;
pub mod expr;
pub mod interval;
mod linear_program;
pub mod map;
pub mod polynomial;
pub mod prove;
pub mod simplify;
pub mod solve;
pub mod text;

pub use compose::{ComposeError, compose};
pub use expr::{Context, EvalError, Expr, LinearTerms, Node, Var};
pub use interval::Interval;
pub use map::{Constraint, IndexingMap, Variable};
pub use text::ParseError;
