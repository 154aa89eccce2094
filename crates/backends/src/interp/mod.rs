//! The reference interpreter: what a program means, and how far from it a correct compiled
//! program may be.
//!
//! It runs a `tc.def` after range inference, or a `func.func` at any level of the CPU pipeline before
//! the `llvm` dialect: `imap`, `scf`, `tensor`, `memref`, `bufferization`, `arith`, `math` and vectors.
//! `imap.generic` runs point by point in the order of its domain. Integers are exact and wrap at
//! their width. Floats are computed in 64 bits with a running error bound (see `scalar`,
//! and `fold` for reductions, whose bound holds for any order of the terms); the bound
//! takes in what a compiler may do in the types of the IR: round every operation, contract
//! a product and a sum, reassociate a reduction, and use built-in functions within 8 ulp.
//! Where a comparison or a conversion to an integer hangs on the error, what follows from
//! it covers both outcomes or is *uncertain*. With [`compare`] the results of a backend are
//! checked against it.
//!
//! An access out of bounds, a use of freed memory, a failed `imap.check`, a division that `arith`
//! leaves undefined and an empty range of a comprehension are errors with the location of the operation
//! and the indices.
//!
//! An element of `tensor.empty`, or of memory, is *undefined* until it is written. Operations on an
//! undefined operand are undefined (`arith.select` takes the chosen side only). It is an error if an
//! undefined value is returned, or decides a branch, an index or a check; a note names the operation
//! that left it undefined.
//!
//! A function is decoded into lists of instructions first, and these are run: some tens of
//! nanoseconds per instruction. Complex numbers are split in two parts before, in arguments and results, too.
//! Limits: types up to 64 bits; scalars, vectors of a fixed length, ranked
//! tensors and memrefs; [`Limits`] on points and elements; no recursion.

mod axon;
mod compare;
mod decode;
mod decode_flow;
mod decode_linalg;
mod decode_memory;
mod decode_nest;
mod decode_scalar;
mod error;
mod fold;
mod function;
mod integer;
#[cfg(test)]
mod level_tests;
mod machine;
mod memory;
mod program;
mod promises;
mod region_fold;
mod scalar;
mod sort;
#[cfg(test)]
mod tests;

pub use axon::{run_axon, stored};
pub use compare::{Mismatch, Stats, compare};
pub use error::{Error, Note};

use crate::runtime::{ElementType, Number, Shape, Tensor, TensorError};
use integer::ScalarType;
use machine::{Array, Machine};
use program::{Parameter, Program};
use scalar::{FloatType, Scalar};
use std::{borrow::Borrow, rc::Rc};
use tc_dialects::mlir::{self, Op};

/// What a run may use, so that a mistake in sizes ends in an error.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The points of iteration domains, of all operations together.
    pub points: u64,
    /// The elements of one tensor, each of which takes 16 bytes.
    pub elements: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { points: 1 << 34, elements: 1 << 28 }
    }
}

/// A function that has been decoded, and can be run any number of times.
#[derive(Clone, Debug)]
pub struct Interpreter {
    program: Program,
    allows_undefined_results: bool,
}

impl Interpreter {
    /// Decodes a `tc.def` or a `func.func`.
    ///
    /// # Errors
    /// An operation or a type that the interpreter does not support, or a comprehension
    /// without a domain.
    pub fn new(op: Op) -> Result<Self, Error> {
        let module = decode_linalg::prepared(op);
        let name = mlir::string_attr(op, "sym_name");
        let functions = module.as_ref().map(|it| mlir::ops(mlir::block_ref(it.body())));
        let found = functions
            .into_iter()
            .flatten()
            .find(|it| name.is_some() && mlir::string_attr(*it, "sym_name") == name);
        let program = decode::decode(found.unwrap_or(op))?;
        Ok(Self { program, allows_undefined_results: false })
    }

    /// Lets results have undefined elements, which are uncertain then.
    pub fn allow_undefined_results(self) -> Self {
        Self { allows_undefined_results: true, ..self }
    }

    /// Whether arguments are marked as outputs, as `convert-results-to-destinations` does.
    pub fn takes_outputs(&self) -> bool {
        self.program.parameters.iter().any(|it| it.output.is_some())
    }

    /// Takes the element types, and which arguments are outputs, from the same function before passes that
    /// drop the attributes of arguments.
    pub fn with_arguments_of(mut self, earlier: &Self) -> Self {
        for (to, from) in self.program.parameters.iter_mut().zip(&earlier.program.parameters) {
            to.name.clone_from(&from.name);
            to.element = from.element;
            to.output = from.output;
        }
        self
    }

    /// Runs the function on its inputs, in the order of its arguments.
    ///
    /// The results are those of the function. A function that `convert-results-to-destinations` has
    /// rewritten takes its outputs as arguments: their contents are the results.
    ///
    /// # Errors
    /// The inputs do not fit the arguments, or the module documentation's.
    pub fn run(
        &self,
        inputs: &[impl Borrow<Tensor>],
        limits: Limits,
    ) -> Result<Vec<Outcome>, Error> {
        self.run_with_outputs(inputs, &[], limits)
    }

    /// As [`run`](Self::run), with the extents of the results. A function that takes its outputs as
    /// arguments needs them if they are not static.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub fn run_with_outputs(
        &self,
        inputs: &[impl Borrow<Tensor>],
        outputs: &[Vec<usize>],
        limits: Limits,
    ) -> Result<Vec<Outcome>, Error> {
        let program = &self.program;
        let fail = |message: String| {
            let place = &program.locations[program.at];
            Err(Error::new(&place.location, format!("{} {message}", place.what)))
        };
        let is_written = |it: &Parameter| matches!(it.output, Some((_, false)));
        let num_inputs = program.parameters.iter().filter(|it| !is_written(it)).count();
        if inputs.len() != num_inputs {
            return fail(format!("takes {num_inputs} tensors, but found {}", inputs.len()));
        }
        let mut inputs = inputs.iter();
        let mut arrays = Vec::new();
        for parameter in &program.parameters {
            let output = parameter.output.filter(|(_, is_read)| !is_read);
            let array = match (output, inputs.as_slice().first()) {
                (Some((number, _)), _) => {
                    undefined(program, parameter, outputs.get(number), limits)?
                }
                (None, Some(input)) => {
                    inputs.next();
                    check_input(program, parameter, input.borrow(), limits)?;
                    to_array((*input).borrow(), parameter.scalar)
                }
                (None, None) => return fail("takes more tensors".to_string()),
            };
            arrays.push(array);
        }
        let results = Machine::new(program, limits).run(arrays).map_err(|error| *error)?;
        let mut types: Vec<_> = program.results.iter().map(|(_, types)| *types).collect();
        let outputs = program.parameters.iter();
        let mut outputs: Vec<_> =
            outputs.filter_map(|it| Some((it.output?.0, (it.element, it.scalar)))).collect();
        outputs.sort_unstable_by_key(|(number, _)| *number);
        types.extend(outputs.into_iter().map(|(_, types)| types));
        let outcome = |(array, (element, scalar))| Outcome { element, scalar, array };
        let outcomes: Vec<_> = results.into_iter().zip(types).map(outcome).collect();
        if !self.allows_undefined_results {
            check_defined(program, &outcomes)?;
        }
        Ok(outcomes)
    }
}

/// Checks an input against the argument that it is for.
fn check_input(
    program: &Program,
    parameter: &Parameter,
    input: &Tensor,
    limits: Limits,
) -> Result<(), Error> {
    let fits = |(extent, expected): (&usize, &Option<i64>)| {
        expected.is_none_or(|expected| i64::try_from(*extent) == Ok(expected))
    };
    let shape = input.shape();
    if input.element() != parameter.element
        || shape.len() != parameter.shape.len()
        || !shape.iter().zip(&parameter.shape).all(fits)
    {
        let expected: Vec<_> = parameter
            .shape
            .iter()
            .map(|extent| extent.map_or_else(|| "?".into(), |extent| extent.to_string()))
            .collect();
        let message = format!(
            "expects {} to be {}{}, but found {}{}",
            parameter.name,
            parameter.element,
            Shape(&expected),
            input.element(),
            Shape(shape)
        );
        return Err(program.error(program.at, &message));
    }
    if limits.elements < input.num_elements() as u64 {
        let message = format!(
            "is given {} elements for {}; expected at most {}",
            input.num_elements(),
            parameter.name,
            limits.elements
        );
        return Err(program.error(program.at, &message));
    }
    Ok(())
}

/// The undefined elements of an argument that is only written.
fn undefined(
    program: &Program,
    parameter: &Parameter,
    given: Option<&Vec<usize>>,
    limits: Limits,
) -> Result<Array, Error> {
    let dims = parameter.shape.iter().enumerate();
    let extent = |(dim, extent): (usize, &Option<i64>)| match extent {
        Some(extent) => usize::try_from(*extent).ok(),
        None => given.and_then(|given| given.get(dim)).copied(),
    };
    let shape: Option<Vec<_>> = dims.map(extent).collect();
    let shape = shape.ok_or_else(|| {
        let message = format!("needs the extents of its output {}", parameter.name);
        program.error(program.at, &message)
    })?;
    let count = shape.iter().try_fold(1, |count: usize, extent| count.checked_mul(*extent));
    let count = count.filter(|count| *count as u64 <= limits.elements).ok_or_else(|| {
        let message = format!(
            "needs memory of shape {} for {}; expected at most {} elements",
            Shape(&shape),
            parameter.name,
            limits.elements
        );
        program.error(program.at, &message)
    })?;
    let scalars = vec![Scalar::undefined(program.at); count];
    Ok(Array { origin: vec![0; shape.len()], shape, scalars })
}

/// Checks that results have no undefined elements.
fn check_defined(program: &Program, outcomes: &[Outcome]) -> Result<(), Error> {
    for (number, outcome) in outcomes.iter().enumerate() {
        let origins = outcome.array.scalars.iter().map(|it| it.origin());
        if let Some((position, origin)) =
            origins.enumerate().find_map(|(position, origin)| Some((position, origin?)))
        {
            let index = outcome.index_of(position);
            let message =
                format!("returns an undefined element: {} of result {number}", Shape(&index));
            let error = program.error(program.return_at, &message);
            return Err(program.note_origin(error, origin));
        }
    }
    Ok(())
}

/// Decodes and runs a `tc.def` or a `func.func` within the default limits. The inputs are in
/// the order of the arguments, the contents of accumulated outputs included.
///
/// # Errors
/// As [`Interpreter::new`] and [`Interpreter::run`].
pub fn run(op: Op, inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Outcome>, Error> {
    Interpreter::new(op)?.run(inputs, Limits::default())
}

/// The elements of a tensor as scalars of a type.
fn to_array(tensor: &Tensor, ty: ScalarType) -> Array {
    let scalar = |number| match (ty, number) {
        (ScalarType::Int(width), Number::Signed(value)) => Scalar::int(integer::wrap(value, width)),
        (ScalarType::Int(width), Number::Unsigned(value)) => {
            Scalar::int(integer::wrap(value as i64, width))
        }
        (ScalarType::Small(ty), Number::Unsigned(bits)) => Scalar::exact(ty.decode_float(bits)),
        (_, number) => Scalar::exact(number.to_f64()),
    };
    Array {
        shape: tensor.shape().to_vec(),
        origin: vec![0; tensor.shape().len()],
        scalars: tensor.numbers().map(scalar).collect(),
    }
}

/// One result of a run: values, and how far a compiled program may be from each.
#[derive(Clone, Debug)]
pub struct Outcome {
    element: ElementType,
    scalar: ScalarType,
    array: Rc<Array>,
}

impl Outcome {
    /// Floats of 32 or 64 bits with error bounds; `None` is an element of which nothing is known.
    pub(crate) fn of_floats(
        element: ElementType,
        shape: Vec<usize>,
        values: impl Iterator<Item = Option<(f64, f64)>>,
    ) -> Self {
        let scalars = values.map(|it| match it {
            Some((value, bound)) => Scalar::float(value, bound),
            None => Scalar::UNKNOWN,
        });
        let (origin, scalars) = (vec![0; shape.len()], scalars.collect());
        let float = if element == ElementType::F32 { FloatType::F32 } else { FloatType::F64 };
        let array = Rc::new(Array { shape, origin, scalars });
        Self { element, scalar: ScalarType::Float(float), array }
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.array.shape
    }

    /// The index, in the source, of the first element: all zero but for a comprehension
    /// whose ranges start elsewhere.
    pub fn origin(&self) -> &[i64] {
        &self.array.origin
    }

    /// The number of elements.
    pub fn num_elements(&self) -> usize {
        self.array.scalars.len()
    }

    /// The value of an element, by its row-major position, which must be one. That of a float whose bits
    /// are the element is a float.
    pub fn number(&self, position: usize) -> Number {
        let scalar = self.array.scalars[position];
        match self.scalar {
            ScalarType::Float(_) | ScalarType::Small(_) => Number::Float(scalar.as_float()),
            ScalarType::Int(_) if self.element.is_signed() => Number::Signed(scalar.as_int()),
            ScalarType::Int(width) => Number::Unsigned(integer::unsigned(scalar.as_int(), width)),
        }
    }

    /// The value of an element of a tensor of the same type.
    fn value_of(&self, element: Number) -> Number {
        match (element, self.scalar) {
            (Number::Unsigned(bits), ScalarType::Small(ty)) => Number::Float(ty.decode_float(bits)),
            _ => element,
        }
    }

    /// How far a correct program may be from the value; infinite where it is uncertain.
    pub fn error_bound(&self, position: usize) -> f64 {
        let scalar = self.array.scalars[position];
        if scalar.is_certain() { scalar.error } else { f64::INFINITY }
    }

    /// Whether nothing is known of the value: rounding may change it to any other, or it is
    /// undefined.
    pub fn is_uncertain(&self, position: usize) -> bool {
        !self.array.scalars[position].is_certain()
    }

    /// Whether the program leaves the element undefined.
    pub fn is_undefined(&self, position: usize) -> bool {
        self.array.scalars[position].is_undefined()
    }

    /// The index of an element of a row-major position.
    pub fn index_of(&self, position: usize) -> Vec<usize> {
        let mut rest = position;
        let mut index: Vec<_> = self
            .shape()
            .iter()
            .rev()
            .map(|extent| {
                let extent = (*extent).max(1);
                let index = rest % extent;
                rest /= extent;
                index
            })
            .collect();
        index.reverse();
        index
    }

    /// The values, rounded to the element type.
    ///
    /// # Errors
    /// They do not fit the address space.
    pub fn to_tensor(&self) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(self.element, self.shape())?;
        let chunks = tensor.bytes_mut().chunks_exact_mut(self.element.size());
        for (position, bytes) in chunks.enumerate() {
            let number = match (self.number(position), self.scalar) {
                (Number::Float(value), ScalarType::Small(ty)) => {
                    Number::Unsigned(ty.encode_float(value))
                }
                (number, _) => number,
            };
            self.element.write(number, bytes);
        }
        Ok(tensor)
    }
}
