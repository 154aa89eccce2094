//! Native code: lowering with MLIR, optimization and code generation with LLVM, and the
//! result as text, an object with a C header, or code that runs at once.
//!
//! ```
//! use melior::ir::Module;
//! use tc_backends::{cpu::{Options, Program}, runtime::Tensor};
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
//! let compiled = Program::lower(&module, &Options::default())?.jit()?;
//! let a = Tensor::from_values(&[4], &[1.0f32, 2.0, 3.0, 4.0])?;
//! let outputs = compiled.function("negate").unwrap().run(&[&a])?;
//! assert_eq!(outputs[0].to_values::<f32>().unwrap(), [-1.0, -2.0, -3.0, -4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code;
mod cost;
pub mod header;
mod interface;
mod jit;
mod machine;
pub mod pipeline;
mod signature;
mod upstream;

pub use cost::{Cost, cost};
pub use jit::{Buffers, CallError, Compiled, Function};
pub use signature::{Argument, Extent, Role, Signature};
pub(crate) use upstream::check_types;

pub use crate::llvm::{Error, Machine};

use crate::llvm;
use melior::ir::Module;
use std::sync::Once;
use tc_dialects::mlir;
use tc_passes::run_pipeline;

/// More threads than any machine has would only exhaust memory.
pub const MAX_THREADS: usize = 4096;

/// How a module is compiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that the outer loops are divided among; 1 for no threads at all.
    pub threads: usize,
    /// Neither reassociate nor contract floating-point operations.
    pub strict_fp: bool,
    /// The processor that the code is for.
    pub target: Machine,
}

impl Default for Options {
    /// One thread, relaxed floating-point arithmetic, for this machine.
    fn default() -> Self {
        Self { threads: 1, strict_fp: false, target: Machine::host() }
    }
}

/// How far [`lower`] lowers a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Loops on buffers: `scf`, `memref`, `vector` and `arith` operations.
    Loops,
    /// The `llvm` dialect.
    Llvm,
}

/// Lowers a module of functions on tensors, as [`Program::lower`] does, but stops before LLVM IR. The
/// functions keep their names.
///
/// # Errors
/// A pass failed, which its diagnostics explain.
pub fn lower<'c>(
    module: &Module<'c>,
    options: &Options,
    stage: Stage,
) -> Result<Module<'c>, Error> {
    options.target.check()?;
    let mut copy = copy(module)?;
    let upstream = prepare(&mut copy)?;
    signature::read(&copy).ok_or(Error::Lowering)?;
    run(&mut copy, &pipeline::to_loops(options, upstream))?;
    if stage == Stage::Llvm {
        run(&mut copy, &pipeline::to_llvm(options, upstream))?;
        upstream::check_lowered(&copy).ok_or(Error::Lowering)?;
    }
    Ok(copy)
}

/// Lowers a module as [`lower`] does to [`Stage::Loops`], one pass at a time: `visit` gets the text of
/// each pass and the module that it leaves. An oracle that runs each of these modules finds the
/// pass that changes a value.
///
/// # Errors
/// A pass failed, or the first error of `visit`.
pub fn lower_by_pass<'c, E: From<Error>>(
    module: &Module<'c>,
    options: &Options,
    mut visit: impl FnMut(&str, &Module<'c>) -> Result<(), E>,
) -> Result<(), E> {
    options.target.check()?;
    let mut copy = copy(module)?;
    let contents = upstream::check(&copy).ok_or(Error::Lowering)?;
    if !contents.decompose(&mut copy, |module, pipeline| run(module, pipeline).is_ok()) {
        return Err(Error::Lowering.into());
    }
    let upstream = contents.upstream;
    let parts = [pipeline::destinations(upstream), pipeline::to_loops(options, upstream)];
    for part in &parts {
        for pass in pipeline::passes(part) {
            run(&mut copy, pass)?;
            visit(pass, &copy)?;
        }
    }
    Ok(())
}

/// Checks that all operations are supported, and turns results into destinations. Returns whether
/// passes for MLIR's own dialects are needed.
fn prepare(module: &mut Module) -> Result<bool, Error> {
    let contents = upstream::check(module).ok_or(Error::Lowering)?;
    if !contents.decompose(module, |module, pipeline| run(module, pipeline).is_ok()) {
        return Err(Error::Lowering);
    }
    run(module, &pipeline::destinations(contents.upstream))?;
    Ok(contents.upstream)
}

/// Registers the pipeline `lower-to-cpu`, and the passes in it, with MLIR, once per process.
pub fn register() {
    static ONCE: Once = Once::new();
    tc_passes::register();
    ONCE.call_once(|| pipeline::LOWER_TO_CPU.register());
}

/// A module in the `llvm` dialect.
pub struct Lowered<'c> {
    signatures: Vec<Signature>,
    module: Module<'c>,
    options: Options,
}

impl<'c> Lowered<'c> {
    /// Lowers a module of functions on tensors, with operations of `imap` and of MLIR's own
    /// dialects, to the `llvm` dialect. The module stays as it is.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain.
    pub fn new(module: &Module<'c>, options: &Options) -> Result<Self, Error> {
        let mut copy = copy(module)?;
        let upstream = prepare(&mut copy)?;
        let signatures = signature::read(&copy).ok_or(Error::Lowering)?;
        rename(&copy);
        run(&mut copy, &pipeline::to_loops(options, upstream))?;
        run(&mut copy, &pipeline::to_llvm(options, upstream))?;
        upstream::check_lowered(&copy).ok_or(Error::Lowering)?;
        Ok(Self { signatures, module: copy, options: options.clone() })
    }

    /// Translates the module to LLVM IR and optimizes that.
    ///
    /// # Errors
    /// LLVM rejects the target or the generated code.
    pub fn optimize(self) -> Result<Program, Error> {
        let Self { signatures, module: lowered, options } = self;
        let names: Vec<_> = signatures.iter().map(|it| it.name.as_str()).collect();
        let mut module =
            llvm::Module::translate(mlir::op_ref(lowered.as_operation()), &options.target)?;
        module.link_builtins()?;
        if let Some(symbol) = module.undefined_symbol(&llvm::is_allowed_symbol) {
            upstream::report_undefined(&lowered, &symbol);
            return Err(Error::Lowering);
        }
        module.add_entries(&names)?;
        module.add_interfaces(&signatures, &header::function_names(&signatures))?;
        module.optimize()?;
        Ok(Program { signatures, module, options })
    }
}

/// A module compiled to optimized LLVM IR.
pub struct Program {
    signatures: Vec<Signature>,
    module: llvm::Module,
    options: Options,
}

impl Program {
    /// Lowers a module of functions on tensors, with operations of `imap` and of MLIR's own
    /// dialects, to optimized LLVM IR. The module stays as it is.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain, or LLVM rejects the target or what
    /// was generated.
    pub fn lower(module: &Module, options: &Options) -> Result<Self, Error> {
        Lowered::new(module, options)?.optimize()
    }

    /// What each function takes and gives.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// The optimized LLVM IR as text.
    pub fn llvm_ir(&self) -> String {
        self.module.text()
    }

    /// The code as assembly.
    ///
    /// # Errors
    /// LLVM cannot write assembly for the target.
    pub fn assembly(&self) -> Result<String, Error> {
        let bytes = self.module.emit(llvm::Artifact::Assembly)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The code as a relocatable object file.
    ///
    /// # Errors
    /// LLVM cannot write objects for the target.
    pub fn object(&self) -> Result<Vec<u8>, Error> {
        self.module.emit(llvm::Artifact::Object)
    }

    /// The C header of the object.
    pub fn header(&self, guard: &str) -> String {
        header::write(&self.signatures, guard, self.options.threads)
    }

    /// Loads the code into this process.
    ///
    /// # Errors
    /// The code is not for this machine, or a library that it needs is missing.
    pub fn jit(&self) -> Result<Compiled, Error> {
        let object = self.object()?;
        let names: Vec<_> = self.signatures.iter().map(|it| it.name.as_str()).collect();
        let code = code::Code::load(&object, &names, self.options.threads)?;
        Ok(Compiled::new(self.signatures.clone(), code))
    }
}

/// Gives functions names that no library has: a function may be called `exp` or `malloc`,
/// which generated code calls too. [`header::function_names`] are those that C programs use.
fn rename(module: &Module) {
    for op in mlir::ops(mlir::block_ref(module.body())) {
        if let Some(name) = mlir::string_attr(op, "sym_name")
            && mlir::body(op, 0).is_some()
        {
            let name = format!("{}{name}", interface::KERNEL_PREFIX);
            mlir::set_attribute(op, "sym_name", mlir::string(mlir::context_of(op), &name));
        }
    }
}

fn copy<'c>(module: &Module<'c>) -> Result<Module<'c>, Error> {
    Module::from_operation((*module.as_operation()).clone()).ok_or(Error::Lowering)
}

fn run(module: &mut Module, pipeline: &str) -> Result<(), Error> {
    run_pipeline(module, pipeline).map_err(|_| Error::Lowering)
}
