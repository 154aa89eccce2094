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

pub mod axon;
pub mod builtins;
pub mod element;
mod entry;
mod ffi;
pub mod files;
pub mod hlo;
pub mod imap;
pub mod mlir;
pub mod pass;
pub mod report;
pub mod tc;
pub mod text;
pub mod tml;

pub use entry::{Language, import};
pub use ffi::{
    has_feature, host, is_processor, new_context, opt_main, panic_text, processors,
    register_dialects, silence_panics, translate_to_llvm_ir,
};
pub use pass::{register_nvvm_passes, register_pipeline};
pub use text::explanation::{explain, sections as explanations};
