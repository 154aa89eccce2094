//! Code generators behind one interface: a [`Backend`] compiles a module of functions on tensors to an
//! [`Artifact`], which is written in a [`Form`] or loaded as [`Code`] that runs.
//!
//! The languages compile and call programs through these types only. They name no target.
//!
//! ```
//! use melior::ir::Module;
//! use tc_backends::{Codegen, cpu, runtime::Tensor};
//!
//! let context = tc_dialects::new_context();
//! let module = Module::parse(&context, r#"
//!     func.func @negate(%a: tensor<4xf32>) -> tensor<4xf32> {
//!       %init = tensor.empty() : tensor<4xf32>
//!       %b = imap.generic (i) domain: i in [0, 3]
//!           ins(%a[i] : tensor<4xf32>) outs(%init[i] : tensor<4xf32>) {
//!       ^bb0(%x: f32):
//!         %y = arith.negf %x : f32
//!         imap.yield %y : f32
//!       } -> tensor<4xf32>
//!       return %b : tensor<4xf32>
//!     }"#).unwrap();
//! let compiled = cpu::BACKEND.compile(&module, &Codegen::default())?.load()?;
//! let a = Tensor::from_values(&[4], &[1.0f32, 2.0, 3.0, 4.0])?;
//! let outputs = compiled.function("negate").unwrap().run(&[&a])?;
//! assert_eq!(outputs[0].to_values::<f32>().unwrap(), [-1.0, -2.0, -3.0, -4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod profile;
mod signature;

pub use call::{CallError, Code, Compiled, Descriptor, Function, KernelCounts};
pub use profile::{KernelTimes, Profile};
pub use signature::{Argument, Extent, Formulas, Role, Signature};
pub(crate) use signature::{inputs_of, read as read_signatures, report_type};

use melior::ir::Module;
use std::{fmt, time::Duration};
use tc_passes::{
    analysis::cost::Formula,
    target::{Codegen, Target},
};

/// Why a module cannot be compiled.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A pass failed; the reason has gone to the diagnostic handlers of the context.
    #[error("lowering the module failed")]
    Lowering,
    /// No code can be generated for the machine.
    #[error("no code can be generated for this target: {0}")]
    Target(String),
    /// The backend does not write code in this form.
    #[error("the target '{target}' has no form '{form}'; it has: {}", names(.forms))]
    Form {
        /// The target.
        target: &'static str,
        /// The form that the caller named.
        form: Form,
        /// The forms that the backend writes.
        forms: &'static [Form],
    },
    /// LLVM rejects the generated module.
    #[error("LLVM: {0}")]
    Llvm(String),
    /// The device cannot hold the program.
    #[error("the device failed: {0}")]
    Device(String),
    /// A cubin has only kernels.
    #[error("the program launches no kernel, so there is no cubin; use --emit=obj")]
    NoKernels,
    /// The assembler of the target is missing, or rejects the code.
    #[error("ptxas: {0}")]
    Assembler(String),
    /// The code runs on a device only.
    #[error("a program for this target runs on a device; try '--device={0}'")]
    NoDevice(&'static str),
    /// The names of functions cannot be written for `perf`.
    #[error("cannot write '{path}': {error}")]
    PerfMap {
        /// The file.
        path: String,
        /// The reason.
        error: String,
    },
    /// The folder of [`Codegen::cache`] cannot be made, or others could put code there.
    #[error("cannot keep code in '{folder}': {reason}")]
    Cache {
        /// The folder.
        folder: String,
        /// The reason.
        reason: String,
    },
    /// The OpenMP runtime is missing.
    #[error("{threads} threads need the OpenMP runtime, and '{library}' cannot be loaded")]
    OpenMp {
        /// The number of threads that the code was compiled for.
        threads: usize,
        /// The library that was looked for.
        library: &'static str,
    },
}

fn names(forms: &[Form]) -> String {
    forms.iter().map(Form::to_string).collect::<Vec<_>>().join(", ")
}

/// How far [`Backend::lower_to`] lowers a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Loops on buffers: `scf`, `memref`, `vector` and `arith` operations. For a GPU, the code of threads.
    Loops,
    /// The `llvm` dialect. For a GPU, only the kernels are lowered to it.
    Llvm,
}

/// A form of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Optimized LLVM IR, as text.
    LlvmIr,
    /// Assembly, as text.
    Assembly,
    /// A relocatable object file; of a GPU's program, the host code that launches the kernels.
    Object,
    /// Kernels for NVIDIA's GPUs, as text.
    Ptx,
    /// Kernels for NVIDIA's GPUs, as machine code.
    Cubin,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::LlvmIr => "llvm",
            Self::Assembly => "asm",
            Self::Object => "obj",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
        })
    }
}

/// A description of compiled functions for their callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The ending of its file name.
    pub ending: &'static str,
    /// The contents of the file.
    pub text: String,
}

/// The costs of one function; [`tc_passes::analysis::cost`] defines them. `None` if unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The name of the function.
    pub name: String,
    /// Floating-point operations of a call.
    pub flops: Option<Formula>,
    /// Bytes that the operations of a call read and write.
    pub bytes: Option<Formula>,
    /// The most bytes that a call holds for tensors between operations.
    pub temporary_bytes: Option<Formula>,
    /// The most bytes that a call holds inside of operations, of all threads together.
    pub scratch_bytes: Option<Formula>,
}

/// A code generator for the machines of a target.
pub trait Backend: Target {
    /// Compiles a module of functions on tensors, with operations of `imap` and of MLIR's own dialects.
    /// The module stays as it is.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain, or no code can be generated for the machine.
    fn compile(&self, module: &Module, codegen: &Codegen) -> Result<Box<dyn Artifact>, Error>;

    /// The forms in which it writes code, the usual one first.
    fn forms(&self) -> &'static [Form];

    /// The backend with the device of a name, on which it loads code.
    ///
    /// # Errors
    /// The target has no device of this name. The text lists the known devices.
    fn on_device(&self, name: &str) -> Result<&'static dyn Backend, String>;

    /// Lowers a module as [`compile`](Self::compile) does, but stops before LLVM IR. The functions keep
    /// their names.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain.
    fn lower_to<'c>(
        &self,
        module: &Module<'c>,
        codegen: &Codegen,
        stage: Stage,
    ) -> Result<Module<'c>, Error>;

    /// The costs of the functions of a module on tensors, compiled with these options. The module stays
    /// as it is.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain.
    fn cost(&self, module: &Module, codegen: &Codegen) -> Result<Vec<Cost>, Error>;
}

/// Generated code.
pub trait Artifact {
    /// The arguments of each function.
    fn signatures(&self) -> &[Signature];

    /// How long LLVM has taken for the code so far, since its translation to LLVM IR.
    fn llvm_time(&self) -> Duration;

    /// The code in a form.
    ///
    /// # Errors
    /// The backend does not write this form, or LLVM cannot write it for the machine.
    fn emit(&self, form: Form) -> Result<Vec<u8>, Error>;

    /// The description of the functions for programs that call them, to be written beside code in a form;
    /// `stem` is the file name without its ending.
    ///
    /// # Errors
    /// The generated code is not as its description needs it.
    fn interface(&self, form: Form, stem: &str) -> Result<Interface, Error>;

    /// Loads the code, to run it.
    ///
    /// # Errors
    /// The code is for another machine, a library is missing, or no device was chosen.
    fn load(&self) -> Result<Compiled, Error>;
}
