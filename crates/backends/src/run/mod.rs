//! `tc-run` as a library: from a source file to a checked and timed run.
//!
//! A [`Session`] holds a file whose ranges are inferred, with the sizes symbolic. For a
//! function of it and given sizes, [`Session::shapes`] checks the preconditions and
//! [`Inputs`] finds or makes the tensors; [`Session::compile`] specializes to the sizes (or not, with
//! [`Options::dynamic`]), fuses and generates code; [`Session::interpret`] runs the
//! reference interpreter on the unfused program.

mod bench;
mod emit;
mod expected;
mod function;
mod inputs;

pub use bench::{Bench, measure, sample};
pub use expected::{check_expected, check_expected_within};
pub use function::{TensorFunction, read_inputs};
pub use inputs::{Inputs, random_inputs};

use crate::{
    backend::{self, Backend, CallError, Compiled},
    interp::{self, Outcome},
    runtime::{ElementType, Tensor, TensorError, npy::NpyError},
    upstream,
};
use melior::{
    Context,
    ir::{Module, ValueLike},
};
use std::collections::BTreeMap;
use tc_dialects::{
    mlir,
    tc::{Def, Size},
};
use tc_ir::{Var, map::IndexingMap};
use tc_passes::{PipelineError, run_pipeline, target::Codegen};

/// The values of size variables, by name.
pub type Sizes = BTreeMap<String, i64>;

/// Why a run did not happen, or not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// The program is wrong; diagnostics have been emitted.
    #[error("the program has errors")]
    Diagnosed,
    /// The command line is wrong for this program.
    #[error("{0}")]
    Usage(String),
    /// The program cannot be run: a condition does not hold, or an input does not fit.
    #[error("{0}")]
    Refused(String),
    /// An input or output file is not what it should be.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A tensor is too large.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Code generation failed.
    #[error(transparent)]
    Compile(#[from] backend::Error),
    /// The compiled function refused to run.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The interpreter refused to run.
    #[error("the interpreter: {0}")]
    Interpret(#[from] interp::Error),
    /// The result is not what is expected.
    #[error("{0}")]
    Mismatch(String),
}

impl From<PipelineError> for Error {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::Invalid(reason) => Self::Refused(reason),
            PipelineError::Diagnosed => Self::Diagnosed,
        }
    }
}

/// What a program checks before the loops that rely on it, the larger ones more: the option `kind`
/// of `tc-runtime-checks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checks {
    /// Conditions on sizes.
    #[default]
    Shape,
    /// Indices that are data, too.
    Bounds,
    /// Divisors, too.
    All,
}

impl Checks {
    fn kind(self) -> &'static str {
        match self {
            Self::Shape => "shape",
            Self::Bounds => "bounds",
            Self::All => "all",
        }
    }
}

/// How a program is compiled.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The machine, and how code is generated.
    pub codegen: Codegen,
    /// Compile once for all sizes instead of for the given ones.
    pub dynamic: bool,
    /// What is checked before it is relied on.
    pub checks: Checks,
    /// Leave producers and consumers apart.
    pub no_fuse: bool,
}

/// A source file, imported and with ranges inferred.
pub struct Session<'c> {
    context: &'c Context,
    source: Module<'c>,
    inferred: Module<'c>,
}

/// The passes that make `imap` operations of what MLIR's own dialects compute elementwise or in loops.
const TO_IMAP: &str = "func.func(convert-elementwise-to-linalg,convert-linalg-to-imap)";

fn copy<'c>(module: &Module<'c>) -> Result<Module<'c>, Error> {
    Module::from_operation((*module.as_operation()).clone()).ok_or(Error::Diagnosed)
}

/// What a function takes and gives at given sizes.
#[derive(Clone, Debug)]
pub struct Shapes {
    /// Per input: name, element type and extents; accumulated outputs come last.
    pub inputs: Vec<(String, ElementType, Vec<usize>)>,
    /// Per output: name, element type and extents.
    pub outputs: Vec<(String, ElementType, Vec<usize>)>,
    /// Per output, the index of the element stored first.
    pub origins: Vec<Vec<i64>>,
}

impl<'c> Session<'c> {
    /// Infers the ranges of a module of `tc.def`.
    ///
    /// # Errors
    /// Inference failed.
    pub fn new(context: &'c Context, source: Module<'c>, explain: bool) -> Result<Self, Error> {
        let mut inferred = copy(&source)?;
        run_pipeline(&mut inferred, &format!("tc-infer-ranges{{explain={explain}}}"))?;
        Ok(Self { context, source, inferred })
    }

    /// The functions, in order.
    pub fn defs(&self) -> Vec<Def<'c>> {
        defs(&self.inferred)
    }

    /// The function of a name; without one, the only function.
    ///
    /// # Errors
    /// There is none of the name, or a name is needed.
    pub fn def(&self, name: Option<&str>) -> Result<Def<'c>, Error> {
        let defs = self.defs();
        let names: Vec<_> = defs.iter().map(|def| def.name()).collect();
        if defs.is_empty() {
            return Err(Error::Refused(
                "the file has no 'tc.def', so that its functions cannot be specialized to sizes"
                    .to_string(),
            ));
        }
        select(name, &defs, &names)
    }

    /// The shapes of inputs and outputs at given sizes.
    ///
    /// # Errors
    /// A size is missing or out of range, a range is empty, or a condition on the sizes
    /// does not hold.
    pub fn shapes(&self, def: Def<'c>, sizes: &Sizes) -> Result<Shapes, Error> {
        check_sizes(def, sizes)?;
        check_preconditions(def, sizes)?;
        let ir = tc_ir::Context::new();
        let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
        let evaluate = |map: Option<IndexingMap>| -> Result<Vec<i64>, Error> {
            let map =
                map.ok_or_else(|| Error::Refused("the function has no ranges".to_string()))?;
            evaluate(&ir, &map, &names, sizes)
        };
        let outputs = def.outputs();
        let types: Vec<_> =
            mlir::operands(def.terminator()).into_iter().map(|value| value.r#type()).collect();
        let mut shapes = Shapes { inputs: Vec::new(), outputs: Vec::new(), origins: Vec::new() };
        for (number, name) in outputs.iter().enumerate() {
            let extents = evaluate(def.output_extents(&ir, number))?;
            let extents: Vec<_> = extents.into_iter().map(|it| it.max(0) as usize).collect();
            shapes.outputs.push((name.to_string(), element_of(types[number])?, extents));
            shapes.origins.push(evaluate(def.output_origins(&ir, number))?);
        }
        for parameter in def.parameters() {
            let extents = if parameter.inout {
                let number = outputs.iter().position(|name| *name == parameter.name);
                let (_, _, extents) = &shapes.outputs[number.expect("verified by tc.def")];
                extents.clone()
            } else {
                let size = |size: &Size| match size {
                    Size::Constant(extent) => *extent as usize,
                    Size::Variable(name) => sizes[*name] as usize,
                };
                parameter.sizes.iter().map(size).collect()
            };
            let element = element_of(parameter.value.r#type())?;
            shapes.inputs.push((parameter.name.to_string(), element, extents));
        }
        Ok(shapes)
    }

    /// The program as `imap` operations: all functions with dynamic sizes, or one of them
    /// specialized to its sizes.
    ///
    /// # Errors
    /// A pass failed.
    pub fn lower(
        &self,
        specialized: Option<(Def<'c>, &Sizes)>,
        options: &Options,
    ) -> Result<Module<'c>, Error> {
        upstream::check_types(&self.source).ok_or(Error::Diagnosed)?;
        let mut module = copy(&self.source)?;
        let mut passes = Vec::new();
        if let Some((def, sizes)) = specialized {
            // The sizes are those of one function: the others go.
            for other in defs(&module).into_iter().filter(|it| it.name() != def.name()) {
                mlir::erase(other.op());
            }
            passes.extend(specialize(sizes));
        }
        passes.extend([
            "tc-infer-ranges".to_string(),
            format!("tc-runtime-checks{{kind={}}}", options.checks.kind()),
            format!("convert-tc-to-imap,{TO_IMAP},canonicalize,cse"),
        ]);
        if !options.no_fuse {
            passes.push("imap-fuse,canonicalize,cse".to_string());
        }
        // What inference warns about has been said when the file was opened.
        let silence = tc_dialects::report::collect(self.context);
        let result = run_pipeline(&mut module, &passes.join(","));
        self.context.detach_diagnostic_handler(silence.0);
        if result.is_err() {
            for error in silence.1.borrow().iter().filter(|it| it.is_error()) {
                error.report(self.context).emit();
            }
        }
        Ok(result.map(|()| module)?)
    }

    /// Compiles a function for the sizes, or the file for all sizes if the options say so.
    ///
    /// # Errors
    /// A pass or code generation failed.
    pub fn compile(
        &self,
        def: Def<'c>,
        sizes: &Sizes,
        backend: &dyn Backend,
        options: &Options,
    ) -> Result<Compiled, Error> {
        let module = self.lower((!options.dynamic).then_some((def, sizes)), options)?;
        Ok(backend.compile(&module, &options.codegen)?.load()?)
    }

    /// Runs the reference interpreter on a function, before any optimization.
    ///
    /// # Errors
    /// The interpreter's.
    pub fn interpret(&self, def: Def<'c>, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
        Ok(interp::run(def.op(), inputs)?)
    }
}

/// The function of a name; without one, the only function.
fn select<T: Copy>(name: Option<&str>, functions: &[T], names: &[&str]) -> Result<T, Error> {
    let list = names.join(", ");
    match (name, functions) {
        (Some(name), _) => {
            let number = names.iter().position(|it| *it == name).ok_or_else(|| {
                Error::Usage(format!("there is no function '{name}'; the file has: {list}"))
            })?;
            Ok(functions[number])
        }
        (None, [function]) => Ok(*function),
        (None, _) => Err(Error::Usage(format!(
            "the file has several functions; try '--entry' with one of: {list}"
        ))),
    }
}

/// The error that sizes are not given.
fn try_size(missing: &[&str]) -> Error {
    let example: Vec<_> = missing.iter().map(|name| format!("{name}=64")).collect();
    Error::Usage(format!(
        "the size of {} is not known; try '--size {}' or '--inputs' with a folder of .npy files",
        missing.join(", "),
        example.join(",")
    ))
}

/// The pass that sets the sizes, with its options. Nothing else may come before inference:
/// reads that are never performed bound variables too.
fn specialize(sizes: &Sizes) -> Option<String> {
    let pairs: Vec<_> = sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!pairs.is_empty()).then(|| format!("tc-specialize-sizes{{sizes=\"{}\"}}", pairs.join(",")))
}

fn defs<'c>(module: &Module<'c>) -> Vec<Def<'c>> {
    let body = mlir::body(mlir::op_ref(module.as_operation()), 0);
    body.map(|body| mlir::ops(body).into_iter().filter_map(Def::cast).collect()).unwrap_or_default()
}

fn element_of(ty: melior::ir::Type) -> Result<ElementType, Error> {
    let element = mlir::element_type(ty);
    ElementType::of(element, mlir::is_unsigned(element))
        .ok_or_else(|| Error::Refused(format!("tensors of '{element}' have no form in memory")))
}

/// Evaluates the results of a map over sizes.
fn evaluate(
    ir: &tc_ir::Context,
    map: &IndexingMap,
    names: &[&str],
    sizes: &Sizes,
) -> Result<Vec<i64>, Error> {
    let value = |var| match var {
        Var::Runtime(number) => sizes.get(*names.get(number as usize)?).copied(),
        _ => None,
    };
    ir.eval_all(&map.results, &value)
        .map_err(|error| Error::Refused(format!("an extent cannot be computed: {error}")))
}

/// Checks that every size of the function is given, and nothing else.
fn check_sizes(def: Def, sizes: &Sizes) -> Result<(), Error> {
    check_given_sizes(def, sizes)?;
    let names = def.sizes().into_iter().map(|(name, ..)| name);
    let missing: Vec<_> = names.filter(|name| !sizes.contains_key(*name)).collect();
    if missing.is_empty() { Ok(()) } else { Err(try_size(&missing)) }
}

/// Checks the sizes that are given; others may be missing.
fn check_given_sizes(def: Def, sizes: &Sizes) -> Result<(), Error> {
    let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    for (name, value) in sizes {
        if names.is_empty() {
            return Err(Error::Usage(format!(
                "'{}' has no size variables, but '{name}' is given",
                def.name()
            )));
        }
        if !names.contains(&name.as_str()) {
            return Err(Error::Usage(format!(
                "'{}' has no size variable '{name}'; it has: {}",
                def.name(),
                names.join(", ")
            )));
        }
        if !(1..=tc_dialects::imap::MAX_EXTENT).contains(value) {
            return Err(Error::Usage(format!(
                "size {name}={value} is not between 1 and {}",
                tc_dialects::imap::MAX_EXTENT
            )));
        }
    }
    Ok(())
}

/// The conditions at entry: no range is empty, and what inference left to the caller holds.
fn check_preconditions(def: Def, sizes: &Sizes) -> Result<(), Error> {
    let ir = tc_ir::Context::new();
    let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    let values: Vec<_> = names.iter().map(|name| sizes[*name]).collect();
    let with: Vec<_> =
        names.iter().zip(&values).map(|(name, value)| format!("{name}={value}")).collect();
    let with = with.join(", ");
    for statement in def.comprehensions() {
        let Some(domain) = statement.domain(&ir) else { continue };
        let variables = statement.index_vars().into_iter().chain(statement.reduction_vars());
        for (name, variable) in variables.zip(domain.dims.iter().chain(&domain.ranges)) {
            let bound = |bound: Option<tc_ir::Expr>| {
                let value = |var| match var {
                    Var::Runtime(number) => values.get(number as usize).copied(),
                    _ => None,
                };
                bound.and_then(|bound| ir.eval(bound, &value).ok())
            };
            let (Some(lower), Some(upper)) = (bound(variable.lower), bound(variable.upper)) else {
                return Err(Error::Refused(format!(
                    "the range of '{name}' cannot be computed with {with}"
                )));
            };
            if upper < lower {
                return Err(Error::Refused(format!(
                    "the range of '{name}' in the definition of '{}' is empty with {with}: {lower} <= {name} < {}",
                    statement.target(),
                    upper + 1
                )));
            }
        }
    }
    for precondition in def.preconditions() {
        if precondition.data || precondition.guarded {
            continue;
        }
        let condition = precondition
            .condition
            .and_then(|condition| tc_dialects::imap::map::from_attribute(&ir, condition));
        let holds = condition
            .is_none_or(|map| map.satisfies_constraints(&ir, &[], &[], &values) == Ok(true));
        if !holds {
            return Err(Error::Refused(format!(
                "precondition of '{}' does not hold: {} (so that '{}' is in bounds), with {with}",
                def.name(),
                precondition.text,
                precondition.access
            )));
        }
    }
    Ok(())
}
