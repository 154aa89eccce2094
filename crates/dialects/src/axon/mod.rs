//! Axon: a functional language that infers the shapes of tensors.
//!
//! Source: Collins and Grover, "Axon: A Language for Dynamic Shapes in Deep Learning Graphs". Where
//! the paper leaves a choice, `tests/conformance/axon/README.md` says which reading is used here.
//!
//! [`syntax`] reads a program, [`infer()`] finds the types and shapes of its definitions by the
//! algorithm of sections 4 and 5; `builtins` of this crate has the built-in functions as a table, and the prelude.
//! [`evaluate`](mod@evaluate) runs it at known sizes; [`dialect`] is the same as MLIR, and the only part that needs it.
//!
//! ```
//! use tc_dialects::{axon, text::SourceFile};
//!
//! let text = "softmax = fn (x : f32 s) {
//!     y = reduce(max, -inf, x);
//!     z = exp(x - y);
//!     z / reduce(+, 0f, z)
//! }";
//! let (program, errors) = axon::syntax::parse_program(&SourceFile::new("softmax.axon", text));
//! assert!(errors.is_empty());
//! let mut inferred = axon::infer(&program, &axon::Options::default());
//! assert!(inferred.diagnostics.is_empty());
//! let signature = inferred.signature(Some("softmax")).unwrap();
//! assert_eq!(signature.text, "f32 [a]@b -> f32 [a]@b");
//! ```

pub mod dialect;
mod display;
pub mod evaluate;
mod infer;
pub mod parametric;
mod specialize;
pub mod syntax;
#[cfg(test)]
mod tests;
pub mod to_hlo;
mod types;

pub use display::{Condition, Signature};
pub use infer::{Inferred, Options, infer};
pub use specialize::{Given, Instance, Refusal, TensorType};
pub use types::{Class, ElementType};
