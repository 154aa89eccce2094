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
pub mod diagnostic;
mod explanation;
mod ffi;
pub mod files;
pub mod hlo;
pub mod imap;
pub mod mlir;
pub mod pass;
pub mod tc;
pub mod tml;
pub mod tokens;

pub use explanation::{explain, sections as explanations};
pub use ffi::{
    has_feature, is_processor, new_context, opt_main, panic_text, register_dialects,
    register_pipeline, silence_panics, translate_to_llvm_ir,
};

use melior::{Context, ir::Module};

/// What a text is written in; `TcLanguage` of the bridge.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// MLIR text or bytecode.
    Mlir,
    /// Tensor comprehensions.
    Tc,
    /// The HLO text of XLA.
    Hlo,
    /// Tensor expressions without indices.
    Tml,
    /// A functional language in which shapes are inferred.
    Axon,
}

impl Language {
    /// The language of a file, by the ending of its name or, as dumps of XLA end in `.txt`, the
    /// `HloModule` that it begins with; otherwise MLIR.
    pub fn of(file_name: &str, contents: &[u8]) -> Self {
        if file_name.ends_with(".tc") {
            Self::Tc
        } else if file_name.ends_with(".tml") {
            Self::Tml
        } else if file_name.ends_with(".axon") {
            Self::Axon
        } else if file_name.ends_with(".hlo") || hlo::syntax::begins_with_module(contents) {
            Self::Hlo
        } else {
            Self::Mlir
        }
    }
}

/// Reads a module from the contents of a file. What is wrong goes to the diagnostic handlers of the
/// context; `None` after an error.
///
/// `relaxed` accepts the spellings of the TC documentation.
pub fn import<'c>(
    context: &'c Context,
    language: Language,
    file_name: &str,
    contents: &[u8],
    relaxed: bool,
) -> Option<Module<'c>> {
    match language {
        Language::Tc => tc::import::import(context, file_name, contents, relaxed),
        Language::Hlo => hlo::dialect::import(context, file_name, contents),
        Language::Tml => tml::import::import(context, file_name, contents),
        Language::Axon => axon::dialect::import(context, file_name, contents),
        Language::Mlir => {
            let module = ffi::parse(context, file_name, contents)?;
            mlir::ops(mlir::block_ref(module.body())).into_iter().for_each(name_arguments);
            Some(module)
        }
    }
}

/// Names the arguments of a function by its attributes `tc.name`: the parser drops the names in the text.
fn name_arguments(op: mlir::Op) {
    let Some(block) = mlir::body(op, 0).filter(|_| mlir::is(op, "func.func")) else { return };
    let attributes = mlir::array_attr(op, "arg_attrs").into_iter();
    let names = attributes.map(|it| mlir::dictionary_entry(it, "tc.name"));
    let names = names.map(|name| name.and_then(mlir::string_of).unwrap_or_default());
    mlir::name_arguments(mlir::context_of(op), block, names);
}
