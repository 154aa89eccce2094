//! HLO modules. A value of complex numbers is one tensor, of which compiled code takes the parts.

use crate::{
    interp::{self, Outcome},
    program::{
        self, Entry, Error, Id, Layout, Lowered, Parameter, Request, Sizes, in_memory, rejected,
        spelled,
    },
    runtime::{Tensor, TensorError},
};
use melior::{
    Context,
    ir::{Location, operation::OperationLike as _},
};
use std::borrow::Cow;
use tc_dialects::{
    Language,
    hlo::{self, ArrayShape, ComputationId, Instruction, InstructionId, Module},
    mlir,
    text::SourceFile,
};
use tc_passes::{convert::hlo_to_imap, run_pipeline};

/// A module without errors.
pub struct Program<'c> {
    id: Id,
    context: &'c Context,
    source: SourceFile,
    module: Module,
}

impl<'c> Program<'c> {
    /// Reads a text.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn read(context: &'c Context, name: &str, text: Vec<u8>) -> Result<Self, Error> {
        let (source, module, diagnostics) = hlo::read(name, text);
        let module = module.ok_or_else(|| rejected(&source, &diagnostics))?;
        Ok(Self::new(context, source, module))
    }

    /// A program of a module whose instructions have spans in a source.
    pub fn new(context: &'c Context, source: SourceFile, module: Module) -> Self {
        Self { id: Id::new(), context, source, module }
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The module as a function `main` of `imap` operations. Operations of different instructions are not fused.
    ///
    /// # Errors
    /// An instruction is unsupported, which the diagnostics of the context explain.
    pub fn convert(&self) -> Result<melior::ir::Module<'c>, Error> {
        let name = self.source.name();
        let location = |computation: ComputationId, instruction: InstructionId| {
            let instruction: &Instruction =
                &self.module.computations[computation.index()].instructions[instruction.index()];
            let (line, column) = self.source.line_col(instruction.span.start);
            Location::new(self.context, name, line, column)
        };
        let lowered = hlo_to_imap::convert(self.context, &self.module, &location);
        let lowered = lowered.map_err(|report| {
            report.emit();
            Error::diagnosed()
        })?;
        lowered.as_operation().verify().then_some(lowered).ok_or_else(Error::diagnosed)
    }
}

impl<'c> program::Program<'c> for Program<'c> {
    fn id(&self) -> Id {
        self.id
    }

    fn language(&self) -> Language {
        Language::Hlo
    }

    fn entries(&self) -> Vec<String> {
        vec![self.module.name.clone()]
    }

    fn inputs(&self, _: Option<&str>) -> Result<Vec<String>, Error> {
        let [parameters, _] = arrays(&self.module);
        Ok((0..parameters.len()).map(|number| format!("in{number}")).collect())
    }

    fn entry(&self, _: &Request) -> Result<Entry, Error> {
        let [inputs, outputs] = arrays(&self.module);
        let parameters = |arrays: &[&ArrayShape], prefix: &str| {
            let named = arrays.iter().enumerate();
            named.map(|(number, array)| parameter(format!("{prefix}{number}"), array)).collect()
        };
        Ok(Entry {
            name: self.module.name.clone(),
            inputs: parameters(&inputs, "in"),
            outputs: parameters(&outputs, "out"),
            sizes: Sizes::new(),
        })
    }

    /// The function has the name of the module as C can spell it, so that objects of several modules can be linked.
    fn lower(&self, request: &Request) -> Result<Lowered<'c>, Error> {
        let mut module = self.convert()?;
        fuse(&mut module, request)?;
        let function = spelled(&self.module.name);
        if let Some(main) = main(&module) {
            mlir::set_attribute(main, "sym_name", mlir::string(self.context, &function));
        }
        let [inputs, outputs] = arrays(&self.module).map(|it| it.into_iter().map(layout).collect());
        Ok(Lowered { inputs, outputs, ..Lowered::plain(module, function) })
    }

    /// Interprets the operations that instructions become, before any optimization.
    fn interpret(&self, _: &Request, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
        let module = self.convert()?;
        let [parameters, _] = arrays(&self.module);
        let mut parts = Vec::new();
        for (input, array) in inputs.iter().zip(parameters) {
            parts.extend(layout(array).split(input, Vec::new)?.into_iter().map(Cow::into_owned));
        }
        let main = main(&module).expect("the function of every module");
        Ok(interp::run(main, &parts)?)
    }
}

/// The arrays of the parameters of the entry computation, and of its result.
pub fn arrays(module: &Module) -> [Vec<&ArrayShape>; 2] {
    let entry = module.entry();
    let [mut parameters, mut results] = [Vec::new(), Vec::new()];
    for shape in entry.parameter_shapes() {
        shape.for_each_array(&mut |array| parameters.push(array));
    }
    entry.root().shape.for_each_array(&mut |array| results.push(array));
    [parameters, results]
}

/// An array: its shape, and its elements as literals hold them, row-major and little-endian, one
/// byte for types of fewer than 8 bits, complex numbers as pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The type of the elements and the sizes; the layout does not matter.
    pub shape: ArrayShape,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl Array {
    /// The array of a value in a call.
    pub fn of(shape: &ArrayShape, value: &Tensor) -> Self {
        Self { shape: shape.clone(), bytes: value.bytes().to_vec() }
    }

    /// The value of the array in a call.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn to_tensor(&self) -> Result<Tensor, TensorError> {
        let parameter = parameter(String::new(), &self.shape);
        let mut tensor = Tensor::zeros(in_memory(self.shape.element_type), &parameter.dims())?;
        let expected = tensor.num_elements();
        if tensor.bytes().len() != self.bytes.len() {
            let found = self.bytes.len() / self.shape.element_type.part().bytes();
            return Err(TensorError::Count { shape: parameter.dims(), expected, found });
        }
        tensor.bytes_mut().copy_from_slice(&self.bytes);
        Ok(tensor)
    }
}

/// The function that [`Program::convert`] makes.
fn main<'c>(module: &melior::ir::Module<'c>) -> Option<mlir::Op<'c>> {
    let functions = mlir::ops(mlir::block_ref(module.body()));
    functions.into_iter().find(|it| mlir::string_attr(*it, "sym_name") == Some("main"))
}

/// Fuses operations, unless the request says otherwise.
///
/// # Errors
/// A pass failed, which the diagnostics of the context explain.
pub(crate) fn fuse(module: &mut melior::ir::Module, request: &Request) -> Result<(), Error> {
    let mut passes = vec!["canonicalize,cse".to_string()];
    passes.extend(request.fusion());
    Ok(run_pipeline(module, &passes.join(","))?)
}

fn layout(array: &ArrayShape) -> Layout {
    if array.element_type.is_complex() { Layout::Complex } else { Layout::Plain }
}

/// A parameter of the type of an array. Random integers are small, and bits if the type is narrow. Floats are precise:
/// functions of reductions may depend on the order of equal values.
pub(crate) fn parameter(name: String, array: &ArrayShape) -> Parameter {
    let dims: Vec<_> = array.dims.iter().map(|size| *size as usize).collect();
    let mut parameter = Parameter::new(name, array.element_type, &dims);
    parameter.is_precise = true;
    let is_narrow = array.element_type.bits() < 8;
    parameter.range = array.element_type.is_integer().then_some((0, if is_narrow { 1 } else { 9 }));
    parameter
}
