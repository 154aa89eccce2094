//! Programs of all languages, from source to results: a [`Session`] opens a [`Source`] as a [`Program`], compiles a
//! [`Request`] to an [`Executable`], and keeps the code.
//!
//! ```
//! use tc_backends::{Request, Session, Source, runtime::Tensor};
//!
//! let session = Session::new("cpu")?;
//! let text = "def scale(float(N) A) -> (B) { B(i) = 2 * A(i) }";
//! let program = session.open(Source::new("scale.tc", text))?;
//! let a = Tensor::from_values(&[3], &[1.0f32, 2.0, 3.0])?;
//! // Compiled for the shapes of the inputs, once per list of shapes.
//! let results = session.call(&*program, &Request::of("scale"), &[&a])?;
//! assert_eq!(results[0].to_values::<f32>().unwrap(), [2.0, 4.0, 6.0]);
//!
//! // Compiled for all sizes.
//! let request = Request { dynamic: true, ..Request::of("scale") };
//! let executable = session.compile(&*program, &request)?;
//! assert_eq!(executable.run(&[&a])?, results);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Axon programs infer shapes. The conditions that remain are checked for the shapes of a call, and errors name the
//! source lines that require them:
//!
//! ```
//! use tc_backends::{Request, Session, Source, runtime::{ElementType, Tensor}};
//!
//! let session = Session::new("cpu")?;
//! let text = "fn (x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) }";
//! let program = session.open(Source::new("join.axon", text))?;
//! let vector = |size| Tensor::zeros(ElementType::F32, &[size]);
//! let join = |m, n| session.call(&*program, &Request::default(), &[&vector(m)?, &vector(n)?]);
//! assert_eq!(join(3, 5)?, [vector(8)?]);
//! let error = join(3, 4).unwrap_err().to_string();
//! assert!(error.starts_with("join.axon:1:"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod executable;
mod extents;

/// The examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/src/rust.md")]
mod guide {}

pub use executable::{Buffers, Executable};

use crate::{
    backend::{self, Artifact, Backend, Cost, Stage},
    interp::Outcome,
    languages::{axon, hlo, imap, tc, tml},
    program::{Entry, Error, Id, Lowered, Program, Request, Source},
    runtime::Tensor,
    targets,
};
use melior::{Context, ir::Module};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};
use tc_dialects::{
    Language,
    report::{self, Printer, Received},
};
use tc_passes::target::Codegen;

/// A context for programs, a backend, and the code that was compiled.
pub struct Session {
    context: Context,
    diagnostics: Rc<Diagnostics>,
    backend: &'static dyn Backend,
    codegen: Codegen,
    executables: RefCell<HashMap<(Id, Request), Arc<Executable>>>,
}

/// The diagnostics of a context: errors are kept for the next [`Error::Program`], unless all are printed.
#[derive(Default)]
struct Diagnostics {
    printer: RefCell<Printer>,
    errors: RefCell<String>,
    prints: Cell<bool>,
}

impl Diagnostics {
    fn receive(&self, received: &Received) {
        let text = self.printer.borrow_mut().render(received);
        if self.prints.get() {
            eprint!("{text}");
        } else if received.is_error() {
            self.errors.borrow_mut().push_str(&text);
        }
    }

    /// Runs a step, whose error gets the text of the diagnostics.
    fn explain<T>(&self, step: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.errors.take();
        let result = step();
        let errors = self.errors.take();
        match result {
            Err(Error::Program(text)) if text.is_empty() => Err(Error::Program(errors)),
            // Passes that fail have reported the reason.
            Err(Error::Compile(backend::Error::Lowering)) if !errors.is_empty() => {
                Err(Error::Program(errors))
            }
            result => result,
        }
    }
}

impl Session {
    /// A session for a target, and its machine after a colon: `cpu`, `cpu:x86-64-v3` or `nvvm:sm_90a`.
    ///
    /// # Errors
    /// The target or the machine is unknown.
    pub fn new(target: &str) -> Result<Self, Error> {
        let (backend, machine) = targets::named(target).map_err(Error::Usage)?;
        Ok(Self::with_backend(backend, Codegen::new(machine)))
    }

    /// A session for a backend and options of code generation.
    pub fn with_backend(backend: &'static dyn Backend, codegen: Codegen) -> Self {
        let context = tc_dialects::new_context();
        let diagnostics = Rc::new(Diagnostics::default());
        let sink = Rc::clone(&diagnostics);
        report::attach(&context, move |received| sink.receive(&received));
        Self { context, diagnostics, backend, codegen, executables: RefCell::default() }
    }

    /// Prints all diagnostics to the standard error. Otherwise errors are part of [`Error::Program`], and others are
    /// dropped.
    pub fn print_diagnostics(&self) {
        self.diagnostics.prints.set(true);
    }

    /// The context of the programs.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The options of code generation.
    pub fn codegen(&self) -> &Codegen {
        &self.codegen
    }

    /// The number of executables that it keeps.
    pub fn num_compiled(&self) -> usize {
        self.executables.borrow().len()
    }

    /// Reads a program.
    ///
    /// # Errors
    /// The program is wrong.
    pub fn open<'c>(&'c self, source: Source) -> Result<Box<dyn Program<'c> + 'c>, Error> {
        let Source { name, contents, language, relaxed, explain, strict_names } = source;
        let context = &self.context;
        self.diagnostics.printer.borrow_mut().add_source(&name, &contents);
        let open = || -> Result<Box<dyn Program<'c> + 'c>, Error> {
            Ok(match language {
                Language::Hlo => Box::new(hlo::Program::read(context, &name, contents)?),
                Language::Tml => Box::new(tml::Program::read(context, &name, contents)?),
                Language::Axon => {
                    let options = tc_dialects::axon::Options { strict_names, ..Default::default() };
                    Box::new(axon::Program::read(context, &name, contents, options)?)
                }
                Language::Tc | Language::Mlir => {
                    let module = tc_dialects::import(context, language, &name, &contents, relaxed);
                    return self.program(module.ok_or_else(Error::diagnosed)?, explain);
                }
            })
        };
        let program = self.diagnostics.explain(open)?;
        if self.diagnostics.prints.get() {
            eprint!("{}", program.warnings());
        }
        Ok(program)
    }

    /// A program of a module of `tc.def` or `func.func` operations in the [context](Self::context).
    ///
    /// # Errors
    /// The module is wrong.
    pub fn open_module<'c>(
        &'c self,
        module: Module<'c>,
    ) -> Result<Box<dyn Program<'c> + 'c>, Error> {
        self.diagnostics.explain(|| self.program(module, false))
    }

    fn program<'c>(
        &'c self,
        module: Module<'c>,
        explain: bool,
    ) -> Result<Box<dyn Program<'c> + 'c>, Error> {
        Ok(match tc::defs(&module).is_empty() {
            true => Box::new(imap::Program::new(&self.context, module)?),
            false => Box::new(tc::Program::new(&self.context, module, explain)?),
        })
    }

    /// The types of inputs and results; see [`Program::entry`].
    ///
    /// # Errors
    /// Those of [`Program::entry`].
    pub fn entry(&self, program: &dyn Program, request: &Request) -> Result<Entry, Error> {
        self.diagnostics.explain(|| program.entry(request))
    }

    /// The operations of a request, which [`load`](Self::load) compiles; see [`Program::lower`].
    ///
    /// # Errors
    /// Those of [`Program::lower`].
    pub fn lower<'c>(
        &self,
        program: &dyn Program<'c>,
        request: &Request,
    ) -> Result<Lowered<'c>, Error> {
        let costs = self.backend.costs(&self.codegen.machine);
        let request = Request { costs, ..request.clone() };
        self.diagnostics.explain(|| program.lower(&request))
    }

    /// The results of the reference interpreter; see [`Program::interpret`].
    ///
    /// # Errors
    /// Those of [`Program::interpret`].
    pub fn interpret(
        &self,
        program: &dyn Program,
        request: &Request,
        inputs: &[Tensor],
    ) -> Result<Vec<Outcome>, Error> {
        self.diagnostics.explain(|| program.interpret(request, inputs))
    }

    /// Compiles a request, or returns the code that was compiled for an equal one before.
    ///
    /// # Errors
    /// Those of [`Program::lower`], and of code generation.
    pub fn compile(
        &self,
        program: &dyn Program,
        request: &Request,
    ) -> Result<Arc<Executable>, Error> {
        let mut key = (program.id(), request.clone());
        key.1.shapes.iter_mut().for_each(|shape| shape.source = None);
        if let Some(known) = self.executables.borrow().get(&key) {
            return Ok(Arc::clone(known));
        }
        let executable = Arc::new(self.load(&self.lower(program, request)?)?);
        self.executables.borrow_mut().insert(key, Arc::clone(&executable));
        Ok(executable)
    }

    /// Calls an entry with inputs in the order of [`Program::inputs`]. It is compiled for their shapes or, if the
    /// request is dynamic, for their element types and ranks.
    ///
    /// # Errors
    /// Those of [`compile`](Self::compile) and of [`Executable::run`].
    pub fn call(
        &self,
        program: &dyn Program,
        request: &Request,
        inputs: &[&Tensor],
    ) -> Result<Vec<Tensor>, Error> {
        let names = self.diagnostics.explain(|| program.inputs(request.entry.as_deref()))?;
        let request = request.clone().with_inputs(&names, inputs)?;
        Ok(self.compile(program, &request)?.run(inputs)?)
    }

    /// Generates code for lowered operations and loads it.
    ///
    /// # Errors
    /// No entry was chosen, or no code can be generated.
    pub fn load(&self, lowered: &Lowered) -> Result<Executable, Error> {
        let compile = |module: &Module| {
            self.diagnostics.explain(|| Ok(self.backend.compile(module, &self.codegen)?.load()?))
        };
        let (code, function) = (compile(&lowered.module)?, lowered.function.clone());
        let Some(signature) = code.function(&function).map(|it| it.signature()) else {
            return Err(Error::Usage("an executable has one entry; try '--entry'".to_string()));
        };
        let extents = match signature.determines_outputs() {
            true => None,
            false => {
                let compute = || Ok(extents::compute(&lowered.module, &function)?);
                let (module, ranks) = self.diagnostics.explain(compute)?;
                Some((compile(&module)?, ranks))
            }
        };
        let (inputs, outputs) = (lowered.inputs.clone(), lowered.outputs.clone());
        Ok(Executable { code, function, inputs, outputs, extents })
    }

    /// Generates code for lowered operations, to be written.
    ///
    /// # Errors
    /// No code can be generated.
    pub fn generate(&self, lowered: &Lowered) -> Result<Box<dyn Artifact>, Error> {
        self.diagnostics.explain(|| Ok(self.backend.compile(&lowered.module, &self.codegen)?))
    }

    /// Lowers operations further, but not to code.
    ///
    /// # Errors
    /// A pass failed.
    pub fn lower_to<'c>(&self, lowered: &Lowered<'c>, stage: Stage) -> Result<Module<'c>, Error> {
        let module = &lowered.module;
        self.diagnostics.explain(|| Ok(self.backend.lower_to(module, &self.codegen, stage)?))
    }

    /// The costs of the functions of lowered operations: operations, memory traffic and memory.
    ///
    /// # Errors
    /// A pass failed.
    pub fn costs(&self, lowered: &Lowered) -> Result<Vec<Cost>, Error> {
        self.diagnostics.explain(|| Ok(self.backend.cost(&lowered.module, &self.codegen)?))
    }
}
