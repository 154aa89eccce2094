//! The text of Axon programs: tokens, syntax tree, parser, and the table of built-in functions.

pub mod ast;
pub mod builtins;
pub mod lexer;
pub mod parser;

pub use parser::{parse_program, parse_signature};

use crate::text::{Diagnostic, Reason, SourceFile};

/// Runs a step of a walk over a syntax tree, on more stack if little is left.
pub(crate) fn with_stack<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(1 << 20, 8 << 20, step)
}

/// Reads a program from the bytes of a file: the source, the program, and what is wrong with it. With a
/// diagnostic the program is not the one of the file.
pub fn read(file_name: &str, bytes: Vec<u8>) -> (SourceFile, ast::Program, Vec<Diagnostic>) {
    match SourceFile::from_bytes(file_name, bytes, Reason::AxonSyntax, Reason::AxonLimit) {
        Ok(source) => {
            let (program, diagnostics) = parse_program(&source);
            (source, program, diagnostics)
        }
        Err(failure) => {
            let (source, error) = *failure;
            (source, ast::Program::default(), vec![error])
        }
    }
}
