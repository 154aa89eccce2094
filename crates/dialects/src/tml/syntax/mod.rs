//! The tensor manipulation language TML: from source text to a typed program.
//!
//! [`parse_program`] reads text into a syntax tree ([`ast`]), whose `Display` writes it back; [`check`]
//! applies the typing rules and expands sugar, which leaves the core of the language ([`checked`]). Both
//! collect errors instead of stopping at the first. Nothing here needs MLIR.
//!
//! Source: N. A. Rink, "Modeling of languages for tensor manipulation", figures 1 (grammar) and 7 to 9
//! (typing), with extensions:
//!
//! * Section 5: a declaration may start with `in`, `out` or `inout`, which say what the ambient
//!   application passes and takes. A program without any of them passes and takes every variable; in one
//!   with some, a variable without is local. They are keywords before `var` only.
//! * An element type before the extents, `var x : f32 [2 3]`; `f64` without one. The rules that ask for
//!   equal types ask for equal element types too; nothing is converted.
//! * `x . [i j, k l]` contracts several pairs. All numbers are those of the dimensions of `x`.
//! * `x ^ [p q r ..]`, three entries or more, permutes all dimensions: dimension k of the result is
//!   dimension p_k of `x`. Two entries are always a swap.
//! * `//` starts a comment, up to the end of the line.
//!
//! Limits: those of [`crate::text`], [`checked::MAX_RANK`], and extents up to
//! [`crate::imap::MAX_EXTENT`]; beyond one of them a program is refused with a located error.
//!
//! ```
//! use tc_dialects::{text::SourceFile, tml::syntax::{check, parse_program}};
//!
//! let text = "var A : [3 4]  var B : [4 5]  var C : [3 5]  C = A # B . [2 3]";
//! let (program, errors) = parse_program(&SourceFile::new("matmul.tml", text));
//! assert!(errors.is_empty());
//! let (checked, diagnostics) = check(&program);
//! assert!(diagnostics.is_empty());
//! assert_eq!(checked.statements[0].value.ty.extents, [3, 5]);
//! ```

pub mod ast;
mod check;
pub mod checked;
mod lexer;
mod parser;
mod printer;
#[cfg(test)]
mod tests;

use crate::text::{Diagnostic, Reason, SourceFile};
pub use check::check;
pub use checked::Checked;
pub use parser::parse_program;

/// Reads a program from the bytes of a file: the source, the program, and what there is to say of it.
/// With an error among the diagnostics the program is not the one of the file.
pub fn read(file_name: &str, bytes: Vec<u8>) -> (SourceFile, Checked, Vec<Diagnostic>) {
    let source = match SourceFile::from_bytes(file_name, bytes, Reason::TmlSyntax, Reason::TmlLimit)
    {
        Ok(source) => source,
        Err(failure) => {
            let (source, error) = *failure;
            return (source, Checked::default(), vec![error]);
        }
    };
    let (program, diagnostics) = parse_program(&source);
    // What the parser left out would be missed by the checks.
    if !diagnostics.is_empty() {
        return (source, Checked::default(), diagnostics);
    }
    let (checked, diagnostics) = check(&program);
    (source, checked, diagnostics)
}
