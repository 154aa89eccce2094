//! The MLIR dialects of the project, and the text languages that import into them.
//!
//! One folder per dialect: its `.td` file (the single source of truth for
//! operations, types, attributes, assembly and documentation), the Rust view of
//! its operations, their verifiers, and the front end of its language. The C++ in
//! `bridge/` only registers all this with MLIR; every algorithm is Rust.
//!
//! Operations and values are handled as [`mlir::Op`] and [`mlir::Val`], melior's
//! references with the lifetime of the context. No raw MLIR handle leaves this
//! crate, and no panic crosses into C++: every trampoline catches it and reports a
//! located error.

pub mod diagnostic;
mod ffi;
pub mod hlo;
pub mod imap;
pub mod mlir;
pub mod pass;
pub mod tc;

pub use ffi::{
    has_feature, is_processor, new_context, opt_main, panic_text, register_dialects,
    register_pipeline, silence_panics, translate_to_llvm_ir,
};

use melior::{Context, ir::Module};
use std::path::Path;

/// Whether [`load`] and `tc-opt` take a file of this name for one of the languages.
pub fn is_source(file_name: &str) -> bool {
    [".tc", ".hlo"].iter().any(|ending| file_name.ends_with(ending))
}

/// Imports the bytes of a source of one of the languages, by the ending of its name. Diagnostics
/// go to the handlers of the context; `None` after an error.
pub(crate) fn import<'c>(
    context: &'c Context,
    file_name: &str,
    bytes: &[u8],
    relaxed: bool,
) -> Option<Module<'c>> {
    match file_name.ends_with(".hlo") {
        true => hlo::dialect::import(context, file_name, bytes),
        false => tc::import::import(context, file_name, bytes, relaxed),
    }
}

/// Reads a module from a file: a source of one of the languages by its ending, otherwise
/// MLIR text or bytecode. What is wrong goes to the diagnostic handlers of the context.
///
/// `relaxed` accepts the spellings of the TC documentation.
///
/// # Errors
/// The file cannot be read.
pub fn load<'c>(
    context: &'c Context,
    path: &Path,
    relaxed: bool,
) -> std::io::Result<Option<Module<'c>>> {
    let name = path.to_string_lossy();
    if !is_source(&name) {
        return Ok(mlir::parse_file(context, path));
    }
    Ok(import(context, &name, &std::fs::read(path)?, relaxed))
}
