//! The TC language: from source text to a typed program.
//!
//! [`parse_program`] reads text into a syntax tree ([`ast`]), whose `Display` writes it back; [`check`]
//! resolves names and types and makes a tree for lowering ([`checked`]). Both collect errors instead of
//! stopping at the first. Nothing here needs MLIR.
//!
//! Source: the TC language reference, which puts together what the original implementation accepts; the
//! conformance data of `tests/conformance/tc` holds its cases.
//!
//! Limits: [`MAX_FILE_BYTES`](crate::text::source::MAX_FILE_BYTES), those of [`crate::text::tokens`], [`parser::MAX_NESTING`],
//! [`parser::MAX_HEIGHT`]; beyond one of them a program is refused with a located error.
//!
//! ```
//! use tc_dialects::{tc::syntax::{Options, check, parse_program}, text::SourceFile};
//!
//! let source = SourceFile::new("sum.tc", "def sum(float(N) A) -> (s) { s +=! A(i) }");
//! let (program, errors) = parse_program(&source, &Options::default());
//! assert!(errors.is_empty());
//! let (checked, diagnostics) = check(&program);
//! assert!(diagnostics.is_empty());
//! assert_eq!(checked.functions[0].statements[0].reductions.len(), 1);
//! ```

pub mod ast;
pub mod checked;
pub mod lexer;
pub mod parser;
mod printer;
mod sema;
#[cfg(test)]
mod tests;
pub mod types;

pub use checked::Checked;
pub use parser::parse_program;
pub use sema::check;
pub use types::{ScalarType, Type};

/// How a program is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Accept the spellings of the documentation: one output without parentheses, `int` for `int32`,
    /// and a float as an index, which is truncated.
    pub relaxed: bool,
}
