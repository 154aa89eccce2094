//! Index algebra: integer index expressions, their value ranges, and indexing maps.
//!
//! An [indexing map](map::IndexingMap) says which elements of an operand one element of a result
//! needs. This crate builds, prints, parses, composes, simplifies, inverts and compares such maps.
//! It depends on no compiler framework.
//!
//! # The formula
//!
//! ```text
//! f(d, s, rt) = (e0, .., er)   where   lower <= d, s, rt <= upper   and   lo <= g(d, s, rt) <= hi
//! ```
//!
//! - *Dimension variables* `d0, d1, ..`, in parentheses: the element of the result.
//! - *Range variables* `s0, s1, ..`, in brackets: what one element of the result needs several
//!   values of, such as the dimension that a sum runs over.
//! - *Runtime variables* `rt0, rt1, ..`, in braces: values known only when the program runs, such as
//!   an index read from a tensor or the size of a dynamic dimension. The bounds of the others may be
//!   expressions over them.
//! - *Constraints* `g in [lo, hi]` restrict the domain further. All intervals are closed.
//!
//! # Examples
//!
//! A reduction of a `[4, 8]` tensor over its second dimension, after a transposition:
//!
//! ```
//! use tc_ir::{Context, IndexingMap, compose};
//! let ctx = Context::new();
//! let reduce = IndexingMap::parse(&ctx, "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 7]")?;
//! let transpose = IndexingMap::parse(&ctx, "(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 7]")?;
//! let map = compose(&ctx, &reduce, &transpose).unwrap();
//! assert_eq!(
//!     map.display(&ctx).to_string(),
//!     "(d0)[s0] -> (s0, d0), domain: d0 in [0, 3], s0 in [0, 7]"
//! );
//! assert_eq!(map.evaluate(&ctx, &[2], &[5], &[]), Ok(vec![5, 2]));
//! # Ok::<(), tc_ir::ParseError>(())
//! ```
//!
//! A reshape from `[4, 8]` to `[32]` and back is the identity:
//!
//! ```
//! use tc_ir::{Context, IndexingMap, compose};
//! let ctx = Context::new();
//! let flat = IndexingMap::parse(&ctx, "(d0) -> (d0 / 8, d0 mod 8), domain: d0 in [0, 31]")?;
//! let mut round = compose(&ctx, &flat, &flat.inverse(&ctx).unwrap()).unwrap();
//! round.simplify(&ctx);
//! assert_eq!(round.display(&ctx).to_string(), "(d0) -> (d0), domain: d0 in [0, 31]");
//! # Ok::<(), tc_ir::ParseError>(())
//! ```
//!
//! With a dynamic size, the same holds for every size:
//!
//! ```
//! use tc_ir::{Context, IndexingMap};
//! let ctx = Context::new();
//! let mut map = IndexingMap::parse(
//!     &ctx,
//!     "(i, j){M, N} -> ((i * N + j) / N, (i * N + j) mod N), domain: \
//!      i in [0, M - 1], j in [0, N - 1], M in [1, 1000], N in [1, 1000]",
//! )?;
//! map.simplify(&ctx);
//! assert_eq!(
//!     map.display(&ctx).to_string(),
//!     "(i, j){M, N} -> (i, j), domain: i in [0, M - 1], j in [0, N - 1], \
//!      M in [1, 1000], N in [1, 1000]"
//! );
//! # Ok::<(), tc_ir::ParseError>(())
//! ```

pub mod compose;
mod congruence;
pub mod constraint_expression;
pub mod emptiness;
pub mod equality;
pub mod evaluator;
pub mod expr;
pub mod frozen;
mod hash;
mod integer_program;
pub mod interval;
pub mod inverse;
mod linear_domain;
mod linear_program;
pub mod map;
mod period;
pub mod polynomial;
pub mod prove;
mod rescale;
mod samples;
mod search;
pub mod shape;
pub mod simplify;
pub mod solve;
pub mod text;
mod tighten;
pub mod tile;
pub mod value_range;
pub mod variables;
pub mod verify;

pub use compose::{ComposeError, compose, compose_simplified};
pub use constraint_expression::ConstraintExpression;
pub use emptiness::Emptiness;
pub use equality::{Difference, Equality};
pub use evaluator::{MapEvaluator, Values};
pub use expr::{Context, EvalError, Expr, ExprRef, IntoExpr, LinearTerms, Node, Var};
pub use frozen::FrozenMap;
pub use interval::Interval;
pub use inverse::InverseError;
pub use map::{Constraint, IndexingMap, VarIntervals, Variable};
pub use text::ParseError;
pub use value_range::ValueRange;
pub use variables::VariableKind;
pub use verify::VerifyError;

/// The examples of the README compile and hold.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
