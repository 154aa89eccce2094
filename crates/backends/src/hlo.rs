//! Running HLO modules: compiled code, called with arrays of HLO's element types.

use crate::{
    backend::{self, Backend, Buffers, Compiled},
    interp,
    runtime::{ElementType as Stored, Tensor},
};
use melior::{
    Context,
    ir::{Location, operation::OperationLike as _},
};
use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::{ArrayShape, ComputationId, InstructionId, Module},
    mlir,
};
use tc_passes::{convert::hlo_to_imap, run_pipeline, target::Codegen};

/// An array: its shape, and its elements as literals hold them, row-major and little-endian, one
/// byte for types of fewer than 8 bits, complex numbers as pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The type of the elements and the sizes; the layout does not matter.
    pub shape: ArrayShape,
    /// The elements.
    pub bytes: Vec<u8>,
}

/// Why a module does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reason has been reported through the context.
    #[error("the module cannot be compiled")]
    Diagnosed,
    /// Code generation failed.
    #[error(transparent)]
    Compile(#[from] backend::Error),
    /// The inputs are not what the program takes.
    #[error("{0}")]
    Call(String),
}

/// Lowers a module to fused `imap` operations, which [`Backend::compile`] compiles. `location`
/// says where its instructions come from. The function `main` takes and gives the arrays of the
/// entry computation's parameters and result. Its compiled form does so in two parts for complex ones.
///
/// # Errors
/// An instruction is not supported, which is reported at its place.
pub fn lower<'c>(
    context: &'c Context,
    module: &Module,
    location: &dyn Fn(ComputationId, InstructionId) -> Location<'c>,
) -> Result<melior::ir::Module<'c>, Error> {
    let mut lowered = convert(context, module, location)?;
    fuse(&mut lowered)?;
    Ok(lowered)
}

/// Lowers a module as [`lower`] does, without optimization: the operations of each instruction stay
/// apart. This is the form that [`interpret`] takes.
///
/// # Errors
/// Those of [`lower`].
pub fn convert<'c>(
    context: &'c Context,
    module: &Module,
    location: &dyn Fn(ComputationId, InstructionId) -> Location<'c>,
) -> Result<melior::ir::Module<'c>, Error> {
    let lowered = hlo_to_imap::convert(context, module, location).map_err(|report| {
        report.emit();
        Error::Diagnosed
    })?;
    if lowered.as_operation().verify() { Ok(lowered) } else { Err(Error::Diagnosed) }
}

/// Runs the reference interpreter on what [`convert`] makes of a module, with the tensors of a call. The
/// results are those of the output buffers after the call.
///
/// # Errors
/// The interpreter's.
pub fn interpret(
    converted: &melior::ir::Module,
    inputs: &[Tensor],
) -> Result<Vec<interp::Outcome>, interp::Error> {
    let functions = mlir::ops(mlir::block_ref(converted.body()));
    let main = functions.into_iter().find(|it| mlir::string_attr(*it, "sym_name") == Some("main"));
    interp::run(main.expect("the function of every module"), inputs)
}

/// Verifies a module of `imap` operations and fuses them.
///
/// # Errors
/// The reason has been reported through the context.
pub(crate) fn fuse(module: &mut melior::ir::Module) -> Result<(), Error> {
    if !module.as_operation().verify() {
        return Err(Error::Diagnosed);
    }
    run_pipeline(module, "canonicalize,cse,imap-fuse,canonicalize,cse")
        .map_err(|_| Error::Diagnosed)
}

/// A compiled module.
pub struct Executable {
    parameters: Vec<ArrayShape>,
    result_shapes: Vec<ArrayShape>,
    code: Compiled,
}

impl Executable {
    /// Compiles a module. `location` says where its instructions come from.
    ///
    /// # Errors
    /// An instruction is not supported, which is reported at its place, or code generation fails.
    pub fn compile<'c>(
        context: &'c Context,
        module: &Module,
        location: &dyn Fn(ComputationId, InstructionId) -> Location<'c>,
        backend: &dyn Backend,
        codegen: &Codegen,
    ) -> Result<Self, Error> {
        Self::of_lowered(module, &lower(context, module, location)?, backend, codegen)
    }

    /// Compiles what [`lower`] makes of a module; the function may have another name.
    ///
    /// # Errors
    /// Code generation fails.
    pub fn of_lowered(
        module: &Module,
        lowered: &melior::ir::Module,
        backend: &dyn Backend,
        codegen: &Codegen,
    ) -> Result<Self, Error> {
        let code = backend.compile(lowered, codegen)?.load()?;
        let entry = module.entry();
        let mut parameters = Vec::new();
        for shape in entry.parameter_shapes() {
            shape.for_each_array(&mut |array| parameters.push(array.clone()));
        }
        let mut result_shapes = Vec::new();
        entry.root().shape.for_each_array(&mut |array| result_shapes.push(array.clone()));
        Ok(Self { parameters, result_shapes, code })
    }

    /// The arrays of the parameters, in order.
    pub fn parameters(&self) -> &[ArrayShape] {
        &self.parameters
    }

    /// The arrays of the result, in order.
    pub fn result_shapes(&self) -> &[ArrayShape] {
        &self.result_shapes
    }

    /// The code, which knows what was counted and measured in its calls.
    pub fn code(&self) -> &Compiled {
        &self.code
    }

    /// Runs the program.
    ///
    /// # Errors
    /// The inputs are not what it takes, or there is no memory for the results.
    pub fn run(&self, inputs: &[Array]) -> Result<Vec<Array>, Error> {
        let mut buffers = self.buffers(inputs)?;
        self.call(&mut buffers)?;
        self.results(&buffers)
    }

    /// The memory for calls with some inputs, which holds them, real and imaginary parts apart.
    ///
    /// # Errors
    /// The inputs are not what the program takes, or there is no memory for the results.
    pub fn buffers(&self, inputs: &[Array]) -> Result<Buffers, Error> {
        if inputs.len() != self.parameters.len() {
            let message =
                format!("expected {} inputs, found {}", self.parameters.len(), inputs.len());
            return Err(Error::Call(message));
        }
        let mut buffers = Buffers::default();
        for (number, (input, shape)) in inputs.iter().zip(&self.parameters).enumerate() {
            let expected = shape.num_bytes().unwrap_or(0) as usize;
            if !input.shape.is_compatible(shape) || input.bytes.len() != expected {
                return Err(Error::Call(format!(
                    "expected input {number} to be {}, found {}",
                    describe(shape),
                    describe(&input.shape)
                )));
            }
            buffers.inputs.extend(to_tensors(input)?);
        }
        for shape in &self.result_shapes {
            buffers.outputs.extend(allocate(shape)?);
        }
        Ok(buffers)
    }

    /// Calls the program.
    ///
    /// # Errors
    /// There is no memory for what it calculates on the way.
    pub fn call(&self, buffers: &mut Buffers) -> Result<(), Error> {
        let function = self.code.functions().next().expect("the function of every module");
        buffers.call(function).map_err(|error| Error::Call(error.to_string()))
    }

    /// The results of the last call.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn results(&self, buffers: &Buffers) -> Result<Vec<Array>, Error> {
        let mut outputs = buffers.outputs.iter();
        self.result_shapes.iter().map(|shape| from_tensors(shape, &mut outputs)).collect()
    }
}

fn describe(shape: &ArrayShape) -> String {
    format!("{}{:?}", shape.element_type, shape.dims)
}

/// The type in memory of the parts of an array: unsigned integers for bits of 8-bit floats.
pub(crate) fn stored(element: ElementType) -> Stored {
    let part = element.part();
    match (part.kind(), part.bits()) {
        (ElementKind::Pred, _) => Stored::Bool,
        (ElementKind::Signed, 64) => Stored::I64,
        (ElementKind::Signed, 32) => Stored::I32,
        (ElementKind::Signed, 16) => Stored::I16,
        (ElementKind::Signed, _) => Stored::I8,
        (ElementKind::Unsigned, 32) => Stored::U32,
        (ElementKind::Unsigned, 16) => Stored::U16,
        (ElementKind::Unsigned, 0..=8) => Stored::U8,
        (ElementKind::Unsigned, _) => Stored::U64,
        (_, 64) => Stored::F64,
        (_, 32) => Stored::F32,
        (_, 16) if part == ElementType::F16 => Stored::F16,
        (_, 16) => Stored::Bf16,
        _ => Stored::U8,
    }
}

fn allocate(shape: &ArrayShape) -> Result<Vec<Tensor>, Error> {
    let dims: Vec<_> = shape.dims.iter().map(|dim| *dim as usize).collect();
    let element = stored(shape.element_type);
    let tensor = |_| Tensor::zeros(element, &dims).map_err(|error| Error::Call(error.to_string()));
    (0..shape.element_type.num_parts()).map(tensor).collect()
}

/// The tensors that hold an array in a call: complex numbers in two parts.
///
/// # Errors
/// The memory for the tensors cannot be allocated.
pub fn to_tensors(array: &Array) -> Result<Vec<Tensor>, Error> {
    let mut tensors = allocate(&array.shape)?;
    if let [tensor] = tensors.as_mut_slice() {
        tensor.bytes_mut().copy_from_slice(&array.bytes);
        return Ok(tensors);
    }
    let width = array.shape.element_type.part().bytes();
    let count = tensors.len();
    for (part, tensor) in tensors.iter_mut().enumerate() {
        let values = array.bytes.chunks_exact(width).skip(part).step_by(count);
        for (to, from) in tensor.bytes_mut().chunks_exact_mut(width).zip(values) {
            to.copy_from_slice(from);
        }
    }
    Ok(tensors)
}

/// The array as one tensor, as files hold it: `bf16` as unsigned 16-bit integers, smaller floats
/// and integers as bytes, complex numbers as pairs along one more dimension.
///
/// # Errors
/// There is no memory for it.
pub fn to_file_tensor(array: &Array) -> Result<Tensor, Error> {
    let mut dims: Vec<_> = array.shape.dims.iter().map(|dim| *dim as usize).collect();
    dims.extend(array.shape.element_type.is_complex().then_some(2));
    let element = match stored(array.shape.element_type) {
        Stored::Bf16 => Stored::U16,
        element => element,
    };
    let mut tensor =
        Tensor::zeros(element, &dims).map_err(|error| Error::Call(error.to_string()))?;
    tensor.bytes_mut().copy_from_slice(&array.bytes);
    Ok(tensor)
}

fn from_tensors<'t>(
    shape: &ArrayShape,
    tensors: &mut impl Iterator<Item = &'t Tensor>,
) -> Result<Array, Error> {
    let width = shape.element_type.part().bytes();
    let parts: Vec<_> = tensors.take(shape.element_type.num_parts()).collect();
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(shape.num_bytes().unwrap_or(0) as usize).is_err() {
        return Err(Error::Call(format!("there is no memory for a result of {:?}", shape.dims)));
    }
    if let [part] = parts.as_slice() {
        bytes.extend_from_slice(part.bytes());
        return Ok(Array { shape: shape.clone(), bytes });
    }
    let count = parts.first().map_or(0, |part| part.num_elements());
    for position in 0..count {
        for part in &parts {
            bytes.extend_from_slice(&part.bytes()[position * width..(position + 1) * width]);
        }
    }
    Ok(Array { shape: shape.clone(), bytes })
}

/// The places of the instructions of a module in its source.
pub fn locations<'c>(
    context: &'c Context,
    module: &Module,
    source: &tc_dialects::text::SourceFile,
) -> impl use<'c> + Fn(ComputationId, InstructionId) -> Location<'c> {
    let places: Vec<Vec<_>> = module
        .computations
        .iter()
        .map(|computation| {
            let place = |it: &tc_dialects::hlo::Instruction| source.line_col(it.span.start);
            computation.instructions.iter().map(place).collect()
        })
        .collect();
    let name = source.name().to_string();
    move |computation, instruction| {
        let (line, column) = places[computation.index()][instruction.index()];
        Location::new(context, &name, line, column)
    }
}
