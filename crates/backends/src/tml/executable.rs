//! Compiled programs: from the `tml` dialect to code that runs, with padding or without.

use crate::{
    backend::{self, Backend, Buffers, CallError, Compiled, Function},
    runtime::{ElementType, Tensor, TensorError},
};
use melior::ir::Module;
use std::collections::{BTreeMap, HashMap, HashSet};
use tc_dialects::{
    mlir,
    tml::{Program, extents, syntax::checked::round_up},
};
use tc_passes::{run_pipeline, target::Codegen};

/// How a program is compiled.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The machine, and how code is generated.
    pub codegen: Codegen,
    /// Evaluate expressions in the order in which they are written.
    pub keep_order: bool,
    /// Leave statements apart.
    pub no_fuse: bool,
    /// Round all dimensions up to multiples of this.
    pub vector_length: Option<i64>,
}

impl Options {
    /// The passes from `tml` to `imap` operations.
    pub fn pipeline(&self) -> String {
        let mut passes =
            vec!["tml.program(tml-eliminate-dead-statements)".to_string(), "cse".into()];
        if !self.no_fuse {
            passes.push("tml.program(tml-forward-statements)".into());
        }
        if !self.keep_order {
            passes.push("tml.program(tml-reassociate)".into());
        }
        if let Some(vector_length) = self.vector_length {
            passes.push(format!("tml-pad{{vector-length={vector_length}}}"));
        }
        // The conversion fuses; more of it would undo the copies that it makes for contiguous reads.
        passes.push("convert-tml-to-imap,canonicalize,cse".into());
        passes.join(",")
    }
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reason has been reported through the context.
    #[error("the program cannot be compiled")]
    Diagnosed,
    /// Code generation failed.
    #[error(transparent)]
    Compile(#[from] backend::Error),
    /// The compiled function refused to run.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A tensor is too large.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A variable is missing, or has another type.
    #[error("{0}")]
    Input(String),
}

/// The only program of a module.
///
/// # Errors
/// There is none, or more than one.
pub fn program<'c>(module: &Module<'c>) -> Result<Program<'c>, Error> {
    let ops = mlir::ops(mlir::block_ref(module.body()));
    match ops.into_iter().filter_map(Program::cast).collect::<Vec<_>>()[..] {
        [program] => Ok(program),
        ref found => {
            Err(Error::Input(format!("expected one 'tml.program', found {}", found.len())))
        }
    }
}

/// Lowers a module of `tml` operations to `imap` operations, which [`Backend::compile`] compiles.
///
/// # Errors
/// A pass failed, which its diagnostics explain.
pub fn lower<'c>(module: &Module<'c>, options: &Options) -> Result<Module<'c>, Error> {
    use melior::ir::operation::OperationLike as _;
    let copy = Module::from_operation((*module.as_operation()).clone());
    let mut copy = copy.ok_or(Error::Diagnosed)?;
    debug_assert!(copy.as_operation().verify());
    run_pipeline(&mut copy, &options.pipeline()).map_err(|_| Error::Diagnosed)?;
    Ok(copy)
}

/// A variable that is passed to a program or taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: ElementType,
    /// Its extents, without padding.
    pub extents: Vec<usize>,
    /// Whether the program uses its first value.
    pub is_input: bool,
    /// Whether the program gives a last value.
    pub is_output: bool,
}

impl Argument {
    fn of(program: Program) -> Result<Vec<Self>, Error> {
        use melior::ir::ValueLike;
        let (parameters, outputs) = (program.parameters(), program.outputs());
        let inputs = parameters.iter().zip(program.arguments()).map(|it| (it, true));
        let results = outputs.iter().zip(program.results());
        let known: HashSet<_> = parameters.iter().map(|it| it.name).collect();
        let results = results.filter(|(it, _)| !known.contains(it.name));
        let arguments = inputs.chain(results.map(|it| (it, false)));
        let arguments = arguments.map(|((parameter, value), is_input)| {
            let element = mlir::element_type(value.r#type());
            let element = ElementType::of(element, false).ok_or_else(|| {
                Error::Input(format!("tensors of '{element}' have no form in memory"))
            })?;
            Ok(Self {
                name: parameter.name.to_string(),
                element,
                extents: extents(value).into_iter().map(|extent| extent as usize).collect(),
                is_input,
                is_output: !is_input || parameter.inout,
            })
        });
        arguments.collect()
    }
}

/// A compiled program.
pub struct Executable {
    arguments: Vec<Argument>,
    /// The places of the arguments, by their names.
    places: HashMap<String, usize>,
    vector_length: i64,
    name: String,
    code: Compiled,
}

impl Executable {
    /// Compiles the only program of a module of `tml` operations.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain, or code generation.
    pub fn compile(
        module: &Module,
        backend: &dyn Backend,
        options: &Options,
    ) -> Result<Self, Error> {
        Self::of_lowered(module, &lower(module, options)?, backend, options)
    }

    /// Compiles what [`lower`] makes of a module with these options.
    ///
    /// # Errors
    /// Code generation failed.
    pub fn of_lowered(
        module: &Module,
        lowered: &Module,
        backend: &dyn Backend,
        options: &Options,
    ) -> Result<Self, Error> {
        let source = program(module)?;
        let (name, arguments) = (source.name().to_string(), Argument::of(source)?);
        let code = backend.compile(lowered, &options.codegen)?.load()?;
        let places = arguments.iter().map(|it| it.name.clone()).zip(0..).collect();
        let vector_length = options.vector_length.unwrap_or(1);
        Ok(Self { arguments, places, vector_length, name, code })
    }

    /// The variables that are passed and taken.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The variable of an argument of the compiled function.
    fn argument(&self, name: &str) -> &Argument {
        &self.arguments[self.places[name]]
    }

    fn function(&self) -> Function<'_> {
        self.code.function(&self.name).expect("the function of every program")
    }

    fn padded(&self, extents: &[usize]) -> Vec<usize> {
        let round = |extent: &usize| round_up(*extent as i64, self.vector_length) as usize;
        extents.iter().map(round).collect()
    }

    /// The tensors of a call: copies of `values`, with zeros around them. A variable that is only taken
    /// may be missing; what it holds does not matter.
    ///
    /// # Errors
    /// A variable is missing or has another type, or there is no memory.
    pub fn buffers(&self, values: &BTreeMap<String, Tensor>) -> Result<Buffers, Error> {
        let mut buffers = Buffers::default();
        // The function takes arguments that are only read, then outputs in their order.
        let signature = self.function().signature();
        let mut numbered: Vec<_> = signature.arguments.iter().collect();
        numbered.sort_by_key(|argument| argument.output);
        for passed in numbered {
            let argument = self.argument(&passed.name);
            let mut buffer = Tensor::zeros(argument.element, &self.padded(&argument.extents))?;
            match values.get(&argument.name) {
                Some(value)
                    if (value.element(), value.shape())
                        != (argument.element, &argument.extents) =>
                {
                    return Err(Error::Input(format!(
                        "'{}' is a tensor of {} with extents {:?}, but the program takes {} with {:?}",
                        argument.name,
                        value.element(),
                        value.shape(),
                        argument.element,
                        argument.extents
                    )));
                }
                Some(value) => copy_box(value, &mut buffer),
                None if argument.is_input => {
                    return Err(Error::Input(format!("variable '{}' is missing", argument.name)));
                }
                None => {}
            }
            let side = match passed.output {
                Some(_) => &mut buffers.outputs,
                None => &mut buffers.inputs,
            };
            side.push(buffer);
        }
        Ok(buffers)
    }

    /// The code, which knows what was counted and measured in its calls.
    pub fn code(&self) -> &Compiled {
        &self.code
    }

    /// Runs the program on the tensors of a call, which hold its results afterwards.
    ///
    /// # Errors
    /// The tensors are those of another program.
    pub fn call(&self, buffers: &mut Buffers) -> Result<(), Error> {
        Ok(buffers.call(self.function())?)
    }

    /// The results of a call, by the names of the variables, without padding.
    ///
    /// # Errors
    /// There is no memory.
    pub fn results(&self, buffers: &Buffers) -> Result<BTreeMap<String, Tensor>, Error> {
        let mut results = BTreeMap::new();
        let signature = self.function().signature();
        for (number, buffer) in signature.outputs().into_iter().zip(&buffers.outputs) {
            let argument = self.argument(&signature.arguments[number].name);
            let mut result = Tensor::zeros(argument.element, &argument.extents)?;
            copy_box(buffer, &mut result);
            results.insert(argument.name.clone(), result);
        }
        Ok(results)
    }

    /// Whether all padding of the outputs of a call is 0.
    pub fn is_padding_zero(&self, buffers: &Buffers) -> bool {
        let signature = self.function().signature();
        signature.outputs().into_iter().zip(&buffers.outputs).all(|(number, buffer)| {
            let argument = self.argument(&signature.arguments[number].name);
            let mut cleared = buffer.clone();
            // What is left once everything in bounds is 0.
            let zeros = Tensor::zeros(argument.element, &argument.extents);
            let Ok(zeros) = zeros else { return false };
            copy_box(&zeros, &mut cleared);
            cleared.numbers().all(|number| number.to_f64() == 0.0)
        })
    }

    /// Runs the program once, on copies of `values`; see [`Executable::buffers`].
    ///
    /// # Errors
    /// Those of `buffers`.
    pub fn run(
        &self,
        values: &BTreeMap<String, Tensor>,
    ) -> Result<BTreeMap<String, Tensor>, Error> {
        let mut buffers = self.buffers(values)?;
        self.call(&mut buffers)?;
        self.results(&buffers)
    }
}

/// Copies the elements that two tensors of one rank have in common.
fn copy_box(from: &Tensor, to: &mut Tensor) {
    let width = from.element().size();
    let common: Vec<_> =
        from.shape().iter().zip(to.shape()).map(|(from, to)| *from.min(to)).collect();
    let (from_shape, to_shape) = (from.shape().to_vec(), to.shape().to_vec());
    let row = common.last().copied().unwrap_or(1);
    let rows = &common[..common.len().saturating_sub(1)];
    for index in super::interp::indices(rows) {
        let place = |shape: &[usize]| {
            let fold = |place, (index, extent): (&usize, &usize)| place * extent + index;
            let place = index.iter().zip(shape).fold(0, fold);
            place * shape.last().copied().unwrap_or(1) * width
        };
        let (source, target) = (place(&from_shape), place(&to_shape));
        let bytes = &from.bytes()[source..source + row * width];
        to.bytes_mut()[target..target + row * width].copy_from_slice(bytes);
    }
}
