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
pub mod imap;
pub mod mlir;
pub mod pass;
pub mod tc;

pub use ffi::{
    new_context, opt_main, register_dialects, register_pipeline, silence_panics,
    translate_to_llvm_ir,
};
