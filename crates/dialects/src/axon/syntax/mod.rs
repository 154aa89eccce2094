//! The text of Axon programs: tokens, syntax tree, parser.

pub mod ast;
pub mod lexer;
pub mod parser;

pub use parser::{parse_program, parse_signature};
