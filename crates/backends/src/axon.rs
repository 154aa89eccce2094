//! Axon programs at known sizes, and functions that are compiled for the sizes that they are called
//! with.
//!
//! A [`Program`] has been read and is free of errors. At the shapes of some parameters it is a
//! [`Session`], from which HLO and the reference interpreter follow; what inference has left as a
//! condition is decided there. A [`Function`] does that whenever it is called with shapes that are
//! new, as `jit` of JAX does, so that the conditions are checked once, before anything is compiled.
//! [`Program::lower`] gives one function for all sizes instead, which checks them when it is called.
//!
//! ```
//! use tc_backends::{Codegen, axon::{Function, Program}, cpu, hlo::Array};
//! use tc_dialects::{element::ElementType, hlo::ArrayShape};
//!
//! let text = "fn (x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) }";
//! let program = Program::read("join.axon", text.into()).unwrap();
//! let mut join = Function::new(program, None, cpu::BACKEND, Codegen::default()).unwrap();
//! let vector = |size: i64| Array {
//!     shape: ArrayShape::new(ElementType::F32, vec![size]),
//!     bytes: vec![0; 4 * size as usize],
//! };
//! assert_eq!(join.call(&[vector(3), vector(5)]).unwrap(), [vector(8)]);
//! let error = join.call(&[vector(3), vector(4)]).unwrap_err().to_string();
//! assert!(error.starts_with("join.axon:1:"), "{error}");
//! ```

use crate::{
    backend::{Argument, Backend, CallError, Compiled},
    hlo::{self, Array, Executable, locations},
    interp::{self, Limits, Outcome},
    runtime::{ElementType, Tensor},
};
use melior::{Context, ir::Location};
use std::{cell::RefCell, collections::HashMap};
use tc_dialects::{
    axon::{
        self, Given, Inferred, Instance, Refusal, TensorType,
        syntax::ast,
        to_hlo::{axon_element, hlo_element, to_hlo},
    },
    hlo::{ArrayShape, Module},
    report::{self, Printer},
    text::{Diagnostic, SourceFile, Span},
    tml::import::program_name,
};
use tc_passes::{convert::axon_to_imap, target::Codegen};

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is asked for is not there, or an input is not what a function takes.
    #[error("{0}")]
    Request(String),
    /// Something is wrong at places of the program: what, with these lines of it.
    #[error("{0}")]
    Program(String),
    /// The compiled function did not run.
    #[error(transparent)]
    Run(#[from] hlo::Error),
}

impl Error {
    fn at(source: &SourceFile, diagnostics: &[Diagnostic]) -> Self {
        Self::Program(source.render_all(diagnostics))
    }

    fn refused(source: &SourceFile, refusal: Refusal) -> Self {
        match refusal {
            Refusal::Request(reason) => Self::Request(reason),
            Refusal::Program(diagnostics) => Self::at(source, &diagnostics),
        }
    }
}

/// A program without errors.
#[derive(Debug)]
pub struct Program {
    source: SourceFile,
    tree: ast::Program,
    warnings: Vec<Diagnostic>,
    /// What inference has found, for the first that asks: looking at an entry changes it.
    inferred: RefCell<Option<Inferred>>,
}

impl Program {
    /// Reads a text and infers its types and shapes; `name` is what errors call it.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn read(name: &str, text: Vec<u8>) -> Result<Self, Error> {
        Self::read_with(name, text, &axon::Options::default())
    }

    /// As [`Self::read`], with options of the inference.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn read_with(name: &str, text: Vec<u8>, options: &axon::Options) -> Result<Self, Error> {
        let (source, tree, diagnostics) = axon::syntax::read(name, text);
        if !diagnostics.is_empty() {
            return Err(Error::at(&source, &diagnostics));
        }
        let mut inferred = axon::infer(&tree, options);
        if !inferred.diagnostics.is_empty() {
            return Err(Error::at(&source, &inferred.diagnostics));
        }
        let warnings = std::mem::take(&mut inferred.warnings);
        Ok(Self { source, tree, warnings, inferred: RefCell::new(Some(inferred)) })
    }

    /// The warnings of the inference, as text.
    pub fn warnings(&self) -> String {
        self.source.render_all(&self.warnings)
    }

    /// The text.
    pub fn source(&self) -> &SourceFile {
        &self.source
    }

    /// The names of the tensors that an entry takes; see [`Inferred::parameters`].
    ///
    /// # Errors
    /// There is no such entry, or it takes something else than tensors.
    pub fn parameters(&self, entry: Option<&str>) -> Result<Vec<String>, Error> {
        let names = self.inferred().parameters(&self.tree, entry);
        names.map_err(|refusal| Error::refused(&self.source, refusal))
    }

    /// An entry for given shapes; see [`Inferred::specialize`].
    ///
    /// # Errors
    /// There is no such entry or parameter, the shapes contradict the program, or do not determine
    /// the shapes of all parameters.
    pub fn specialize(&self, entry: Option<&str>, given: &[Given]) -> Result<Session<'_>, Error> {
        let mut inferred = self.inferred();
        let instance = inferred.specialize(&self.tree, entry, given);
        let instance = instance.map_err(|refusal| Error::refused(&self.source, refusal))?;
        Ok(Session { program: self, inferred, instance })
    }

    /// An entry as fused `imap` operations, which [`Backend::compile`] compiles: a function whose
    /// sizes are parameters, but for those that are given. `None` if all sizes are known, so that
    /// [`Self::specialize`] serves.
    ///
    /// # Errors
    /// There is no such entry or parameter, the shapes contradict the program, the rank of a parameter
    /// is not known, or something cannot be executed with sizes that are parameters.
    pub fn lower<'c>(
        &self,
        context: &'c Context,
        entry: Option<&str>,
        given: &[Given],
    ) -> Result<Option<Lowered<'c>>, Error> {
        let mut inferred = self.inferred();
        let ir = tc_ir::Context::new();
        let parametric = inferred.parametric(&self.tree, entry, given, &ir);
        let parametric = parametric.map_err(|refusal| Error::refused(&self.source, refusal))?;
        if parametric.sizes.is_empty() {
            return Ok(None);
        }
        let signature = parametric.signature(&ir);
        let name = match &parametric.instance.name {
            Some(name) => name.to_string(),
            None => program_name(self.source.name()),
        };
        let (file, places) = (self.source.name(), &self.source);
        let location = |span: Span| {
            let (line, column) = places.line_col(span.start);
            Location::new(context, file, line, column)
        };
        let entry = (&ir, &parametric);
        let spelled = spelled(&name);
        let module =
            axon_to_imap::convert(context, &mut inferred, &self.tree, entry, &spelled, &location);
        let mut module = module.map_err(|error| Error::at(&self.source, &[error]))?;
        hlo::fuse(&mut module)?;
        Ok(Some(Lowered { name, signature, module }))
    }

    fn inferred(&self) -> Inferred {
        let known = self.inferred.take();
        known.unwrap_or_else(|| axon::infer(&self.tree, &axon::Options::default()))
    }
}

/// A function whose sizes are parameters.
#[derive(Debug)]
pub struct Lowered<'c> {
    /// The name in the program.
    pub name: String,
    /// Its parameters: `x : f32 [m,4], y : f32 [n,m + n]`.
    pub signature: String,
    /// A module with the function, by a name that C has.
    pub module: melior::ir::Module<'c>,
}

/// A name as C can spell it.
pub fn spelled(name: &str) -> String {
    let spell = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(spell).collect()
}

/// An entry of a program at known shapes.
#[derive(Debug)]
pub struct Session<'p> {
    program: &'p Program,
    inferred: Inferred,
    instance: Instance,
}

impl Session<'_> {
    /// What the entry is called, or the program where it has no name.
    pub fn name(&self) -> String {
        match &self.instance.name {
            Some(name) => name.to_string(),
            None => program_name(self.program.source.name()),
        }
    }

    /// The names and types of the tensors that it takes.
    pub fn parameters(&self) -> &[(String, TensorType)] {
        &self.instance.parameters
    }

    /// The entry as HLO.
    ///
    /// # Errors
    /// What cannot be executed.
    pub fn module(&mut self) -> Result<Module, Error> {
        let name = self.name();
        let module = to_hlo(&mut self.inferred, &self.program.tree, &self.instance, &name);
        module.map_err(|error| Error::at(&self.program.source, &[error]))
    }

    /// What the reference interpreter makes of inputs; see [`values`].
    ///
    /// # Errors
    /// What cannot be executed, or takes more than the limits allow.
    pub fn interpret(&mut self, inputs: &[Tensor], limits: Limits) -> Result<Vec<Outcome>, Error> {
        let Self { program, inferred, instance } = self;
        interp::run_axon(inferred, &program.tree, instance, inputs, limits)
            .map_err(|error| Error::at(&program.source, &[error]))
    }
}

/// An array as the reference interpreter takes it and compares with it: `bf16` as `f32`.
///
/// # Errors
/// There is no memory for it.
pub fn values(array: &Array) -> Result<Tensor, hlo::Error> {
    let stored = hlo::to_file_tensor(array)?;
    if array.shape.element_type != tc_dialects::element::ElementType::BF16 {
        return Ok(stored);
    }
    let tensor = Tensor::zeros(ElementType::F32, stored.shape());
    let mut tensor = tensor.map_err(|error| hlo::Error::Call(error.to_string()))?;
    let halves = stored.bytes().chunks_exact(2);
    // A `bf16` has the upper half of the bits of the same number as `f32`.
    for (to, from) in tensor.bytes_mut().chunks_exact_mut(4).zip(halves) {
        to[2..].copy_from_slice(from);
    }
    Ok(tensor)
}

/// A function that is compiled whenever it is called with shapes that are new, or
/// [with ranks](Self::for_all_sizes) that are.
pub struct Function {
    program: Program,
    entry: Option<String>,
    parameters: Vec<String>,
    backend: &'static dyn Backend,
    codegen: Codegen,
    for_all_sizes: bool,
    compiled: HashMap<Vec<ArrayShape>, Code>,
}

/// What a function has been compiled to.
enum Code {
    /// For some sizes.
    Static(Executable),
    /// For all sizes, with its name.
    Parametric(Compiled, String),
}

impl Function {
    /// An entry of a program; without a name, the expression at its end or the only definition.
    ///
    /// # Errors
    /// There is no such entry, or it takes something else than tensors.
    pub fn new(
        program: Program,
        entry: Option<&str>,
        backend: &'static dyn Backend,
        codegen: Codegen,
    ) -> Result<Self, Error> {
        let parameters = program.parameters(entry)?;
        let entry = entry.map(str::to_string);
        let compiled = HashMap::new();
        Ok(Self { program, entry, parameters, backend, codegen, for_all_sizes: false, compiled })
    }

    /// Compiles for the element types and ranks of inputs from now on: one code for all sizes, which
    /// checks what the program asks of them whenever it is called.
    pub fn for_all_sizes(mut self) -> Self {
        self.for_all_sizes = true;
        self.compiled.clear();
        self
    }

    /// The names of the tensors that it takes, in order; a part of a tuple is `name.0`, `name.1`, ..
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// For how many lists of shapes, or of ranks, of its inputs it has been compiled.
    pub fn num_compiled(&self) -> usize {
        self.compiled.len()
    }

    /// Its results for some inputs.
    ///
    /// # Errors
    /// The inputs are not what it takes: their number, or their shapes, where the error names the
    /// places of the program that ask for others. What cannot be executed. There is no memory.
    pub fn call(&mut self, inputs: &[Array]) -> Result<Vec<Array>, Error> {
        if inputs.len() != self.parameters.len() {
            return Err(Error::Request(format!(
                "expected {} inputs ({}), found {}",
                self.parameters.len(),
                self.parameters.join(", "),
                inputs.len()
            )));
        }
        let shapes: Vec<_> = inputs.iter().map(|input| plain(&input.shape)).collect();
        let rank =
            |shape: &ArrayShape| ArrayShape::new(shape.element_type, vec![0; shape.dims.len()]);
        let known_by = match self.for_all_sizes {
            true => shapes.iter().map(rank).collect(),
            false => shapes.clone(),
        };
        if !self.compiled.contains_key(&known_by) {
            let code = self.compile(&shapes)?;
            self.compiled.insert(known_by.clone(), code);
        }
        Ok(match &self.compiled[&known_by] {
            Code::Static(executable) => executable.run(inputs)?,
            Code::Parametric(code, name) => run(code, name, inputs)?,
        })
    }

    fn compile(&self, shapes: &[ArrayShape]) -> Result<Code, Error> {
        let given = self.parameters.iter().zip(shapes).map(|(name, shape)| {
            let element = axon_element(shape.element_type).ok_or_else(|| {
                Error::Request(format!("'{name}' cannot be {}", shape.element_type))
            })?;
            let (parameter, dims) = (name.clone(), shape.dims.iter().copied().map(Some).collect());
            Ok(Given { parameter, element: Some(element), dims, source: None })
        });
        let given = given.collect::<Result<Vec<_>, Error>>()?;
        let entry = self.entry.as_deref();
        let context = tc_dialects::new_context();
        let (_, reported) = report::collect(&context);
        let source = &self.program.source;
        let explain = |error: hlo::Error| {
            let mut printer = Printer::default();
            printer.add_source(source.name(), source.text().as_bytes());
            let reported = reported.borrow();
            let errors = reported.iter().filter(|it| it.is_error());
            match error {
                hlo::Error::Diagnosed => {
                    Error::Program(errors.map(|error| printer.render(error)).collect())
                }
                other => other.into(),
            }
        };
        if self.for_all_sizes {
            let mut open = given.clone();
            open.iter_mut().for_each(|it| it.dims.fill(None));
            let lowered = self.program.lower(&context, entry, &open);
            let lowered = lowered.map_err(|error| match error {
                Error::Run(error) => explain(error),
                other => other,
            })?;
            if let Some(lowered) = lowered {
                let code = self.backend.compile(&lowered.module, &self.codegen);
                let code = code.and_then(|artifact| artifact.load()).map_err(hlo::Error::from)?;
                return Ok(Code::Parametric(code, spelled(&lowered.name)));
            }
        }
        let mut session = self.program.specialize(entry, &given)?;
        let module = session.module()?;
        let places = locations(&context, &module, source);
        let executable =
            Executable::compile(&context, &module, &places, self.backend, &self.codegen);
        executable.map(Code::Static).map_err(explain)
    }
}

/// Calls a function whose sizes are parameters.
fn run(code: &Compiled, name: &str, inputs: &[Array]) -> Result<Vec<Array>, hlo::Error> {
    let refused = |error: CallError| hlo::Error::Call(error.to_string());
    let function = code.function(name).expect("the function of the program");
    let mut tensors = Vec::new();
    for input in inputs {
        if input.shape.num_bytes() != i64::try_from(input.bytes.len()).ok() {
            let (found, dims) = (input.bytes.len(), &input.shape.dims);
            let message = format!("{found} bytes for {}{dims:?}", input.shape.element_type);
            return Err(hlo::Error::Call(message));
        }
        tensors.extend(hlo::to_tensors(input)?);
    }
    let results = function.run(&tensors.iter().collect::<Vec<_>>()).map_err(refused)?;
    let signature = function.signature();
    let outputs = signature.outputs().into_iter().map(|number| &signature.arguments[number]);
    Ok(outputs.zip(&results).map(|(argument, result)| from_tensor(argument, result)).collect())
}

/// A result as an array of its element type.
fn from_tensor(argument: &Argument, tensor: &Tensor) -> Array {
    let mut all = axon::ElementType::ALL.into_iter().map(hlo_element);
    let element = all.find(|it| hlo::stored(*it) == argument.element);
    let element = element.expect("an element type of the language");
    let dims: Vec<_> = tensor.shape().iter().map(|size| *size as i64).collect();
    Array { shape: ArrayShape::new(element, dims), bytes: tensor.bytes().to_vec() }
}

/// A shape without its layout, which does not matter.
fn plain(shape: &ArrayShape) -> ArrayShape {
    ArrayShape::new(shape.element_type, shape.dims.clone())
}
