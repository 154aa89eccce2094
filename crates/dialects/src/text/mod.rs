//! Source texts of all languages: files, spans, tokens, and what is reported about them.
//!
//! Names nothing above it, and needs no MLIR.

pub mod diagnostic;
pub mod explanation;
pub mod source;
mod span;
pub mod tokens;

pub use diagnostic::{Diagnostic, Reason, Severity, Stage};
pub use source::SourceFile;
pub use span::{Name, Span};
