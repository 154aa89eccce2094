//! HLO text: from source to a [`Module`](super::Module) and back.
//!
//! [`parse_module`] reads what XLA prints before and after optimization: a module with or without
//! its `HloModule` line, or a single instruction whose operands carry their shapes. It resolves
//! names, puts computations before their callers, and collects errors instead of stopping at the
//! first. Whether the shapes fit is for [`verify`](super::verify). [`print()`] writes text that
//! parses to the same module.
//!
//! Source: the text that OpenXLA's `HloModule::ToString` prints and `hlo_parser` reads. Where we
//! differ: the elements of an elided constant (`{...}`) are unknown, not arbitrary; shapes of
//! instructions must be written; bounded dynamic sizes (`f32[<=7]`) and the opcodes that start and finish asynchronous
//! work are not read.
//!
//! Limits: [`MAX_FILE_BYTES`](crate::text::source::MAX_FILE_BYTES),
//! [`parser::MAX_NESTING`]. Time and memory are linear in the text.

mod header;
pub mod lexer;
mod literal;
pub mod parser;
mod printer;
mod shapes;
#[cfg(test)]
mod tests;
mod values;

use crate::text::source::BYTE_ORDER_MARK;

pub use parser::{parse_bytes, parse_module, parse_value};
pub use printer::{PrintOptions, print, print_typed_attributes, print_value};

/// Whether a text begins as a module does, after white space and lines of comment.
pub fn begins_with_module(text: &[u8]) -> bool {
    let mut text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    loop {
        text = text.trim_ascii_start();
        if !text.starts_with(b"//") {
            return text.starts_with(b"HloModule");
        }
        let end = text.iter().position(|byte| *byte == b'\n');
        text = end.map_or(&[], |end| &text[end..]);
    }
}
