//! Passes written in Rust, in MLIR's own pass registry.
//!
//! A pass is one [`PassInfo`] constant in a file of its own. Once registered it can
//! stand in any textual pipeline next to upstream passes, and its documentation
//! shows in `--help`.

mod registry;

pub use registry::{register_nvvm_passes, register_pipeline};

use crate::{ffi, mlir::Op, report::Report};
use melior::{
    Context,
    ir::operation::OperationPrintingFlags,
    pass::{PassIrPrintingOptions, PassManager},
};
use std::{
    collections::HashSet,
    env,
    ops::RangeBounds,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// A pass has reported why it failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Failure;

/// An option of a pass, `pass{name=value}` in a pipeline.
#[derive(Copy, Clone, Debug)]
pub struct PassOption {
    /// The name in the pipeline.
    pub name: &'static str,
    /// One line for `--help`.
    pub description: &'static str,
    /// The value when it is not given.
    pub default: &'static str,
}

/// Everything that MLIR and a reader need to know of a pass.
#[derive(Debug)]
pub struct PassInfo {
    /// The name in a pipeline, `verb-noun` with the dialect it serves in front.
    pub argument: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// The operation it runs on, such as `builtin.module`; empty for any.
    pub anchor: &'static str,
    /// Its options.
    pub options: &'static [PassOption],
    /// The dialects of which it may create operations.
    pub dependent_dialects: &'static [&'static str],
    /// The work.
    pub run: for<'c> fn(&PassRun<'c>) -> Result<(), Failure>,
}

impl PassInfo {
    /// Registers the pass; registering it again does nothing.
    pub fn register(&'static self) {
        static DONE: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
        // A poisoned lock still holds a valid set: insertion cannot leave it half done.
        let mut done = DONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if done.get_or_insert_default().insert(self.argument) {
            registry::register_pass(self);
        }
    }
}

/// The only option of a pipeline that takes the whole text after `=`.
pub const VALUE: PassOption = PassOption { name: "", description: "", default: "" };

/// A pass pipeline with a name and options.
#[derive(Debug)]
pub struct PipelineInfo {
    /// The name in a pipeline and, with `--` in front, on the command line of `tc-opt`.
    pub argument: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Its options.
    pub options: &'static [PassOption],
    /// The passes as text, without their anchor `builtin.module`, or why an option is invalid.
    pub build: fn(&Options) -> Result<String, String>,
}

impl PipelineInfo {
    /// Registers the pipeline, once per process.
    pub fn register(&'static self) {
        registry::register_pipeline_builder(self);
    }
}

/// Whether pass managers print the IR.
static PRINT_IR: AtomicBool = AtomicBool::new(false);

/// Lets every [`manager`] of this process print the IR after each pass to the standard error, like
/// the option `--mlir-print-ir-after-all` of `mlir-opt`.
pub fn print_ir_after_all() {
    PRINT_IR.store(true, Ordering::Relaxed);
}

/// A pass manager for modules. It verifies the module after each pass if the environment has `TC_VERIFY_EACH`, which
/// Cargo sets for tests (`.cargo/config.toml`): that takes about as long as the passes.
pub fn manager(context: &Context) -> PassManager<'_> {
    let manager = PassManager::new(context);
    manager.enable_verifier(env::var_os("TC_VERIFY_EACH").is_some());
    if PRINT_IR.load(Ordering::Relaxed) {
        manager.enable_ir_printing(&PassIrPrintingOptions {
            before_all: false,
            after_all: true,
            module_scope: false,
            on_change: false,
            on_failure: false,
            flags: OperationPrintingFlags::new(),
            tree_printing_path: PathBuf::new(),
        });
    }
    manager
}

/// The values of the options of one run.
#[derive(Debug)]
pub struct Options {
    options: &'static [PassOption],
    values: Vec<String>,
}

impl Options {
    /// Options with their values.
    pub fn new(options: &'static [PassOption], values: Vec<String>) -> Self {
        Self { options, values }
    }

    /// Whether there is an option of a name.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }

    /// The text of an option; empty if there is none of that name.
    pub fn text(&self, name: &str) -> &str {
        let index = self.options.iter().position(|option| option.name == name);
        index.map_or("", |index| &self.values[index])
    }

    /// Whether an option is `true` (or `1`).
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1")
    }

    /// An option that must be `true` (or `1`) or `false` (or `0`).
    ///
    /// # Errors
    /// It is neither.
    pub fn truth(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(format!("'{name}' expects 'true' or 'false'")),
        }
    }

    /// An option as a number, if it is one.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name).parse().ok()
    }
}

/// One run of a pass on one operation.
#[derive(Debug)]
pub struct PassRun<'c> {
    /// The operation to work on.
    pub op: Op<'c>,
    /// Its context.
    pub context: &'c Context,
    /// The values of the options.
    pub options: Options,
}

impl<'c> PassRun<'c> {
    /// Notes that `op` is being worked on: an internal error is reported there.
    pub fn enter(&self, op: Op<'c>) {
        ffi::set_current(op);
    }

    /// An option as a number.
    ///
    /// # Errors
    /// It is none, which is reported.
    pub fn number(&self, name: &str) -> Result<i64, Failure> {
        self.number_in(name, .., "a number")
    }

    /// An option as a number in a range, which a text describes.
    ///
    /// # Errors
    /// It is none, which is reported.
    pub fn number_in(
        &self,
        name: &str,
        range: impl RangeBounds<i64>,
        expected: &str,
    ) -> Result<i64, Failure> {
        self.options.number(name).filter(|it| range.contains(it)).ok_or_else(|| {
            Report::op_error(self.op, format!("'{name}' expects {expected}")).emit();
            Failure
        })
    }
}
