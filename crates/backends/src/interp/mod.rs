//! The reference interpreter: what a program means, and how far from it a correct compiled
//! program may be.
//!
//! It runs a `tc.def` after range inference, or a `func.func` of `imap.generic` before
//! bufferization, point by point in the order of the domain. Integers are exact and wrap at
//! their width. Floats are computed in 64 bits with a running error bound (see `scalar`,
//! and `fold` for reductions, whose bound holds for any order of the terms); the bound
//! takes in what a compiler may do in the types of the IR: round every operation, contract
//! a product and a sum, reassociate a reduction, and use built-in functions within 8 ulp.
//! Where a comparison or a conversion to an integer hangs on the error, what follows from
//! it covers both outcomes or is *uncertain*. With [`compare`] the results of a backend are
//! checked against it.
//!
//! An access out of bounds, a failed `imap.check`, a division that `arith` leaves undefined
//! and an empty range of a comprehension are errors with the location of the operation and
//! the indices.
//!
//! A function is decoded into lists of instructions first, and these are run: some tens of
//! nanoseconds per instruction. Limits: types up to 64 bits, scalars and ranked tensors,
//! [`Limits`] on points and elements.

mod axon;
mod compare;
mod decode;
mod decode_nest;
mod error;
mod fold;
mod function;
mod integer;
mod machine;
mod program;
mod scalar;
#[cfg(test)]
mod tests;

pub use axon::{run_axon, stored};
pub use compare::{Mismatch, Stats, compare};
pub use error::Error;

use crate::runtime::{ElementType, Number, Shape, Tensor, TensorError};
use machine::{Array, Machine};
use program::Program;
use scalar::Scalar;
use std::{borrow::Borrow, rc::Rc};
use tc_dialects::mlir::Op;

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
}

impl Interpreter {
    /// Decodes a `tc.def` or a `func.func`.
    ///
    /// # Errors
    /// An operation or a type that the interpreter does not support, or a comprehension
    /// without a domain.
    pub fn new(op: Op) -> Result<Self, Error> {
        Ok(Self { program: decode::decode(op)? })
    }

    /// Runs the function on its inputs, in the order of its arguments.
    ///
    /// # Errors
    /// The inputs do not fit the arguments, or the module documentation's.
    pub fn run(
        &self,
        inputs: &[impl Borrow<Tensor>],
        limits: Limits,
    ) -> Result<Vec<Outcome>, Error> {
        let program = &self.program;
        let fail = |message: String| {
            let place = &program.locations[program.at];
            Err(Error::new(&place.location, format!("{} {message}", place.what)))
        };
        if inputs.len() != program.parameters.len() {
            return fail(format!(
                "takes {} tensors, but found {}",
                program.parameters.len(),
                inputs.len()
            ));
        }
        let mut arrays = Vec::new();
        for (parameter, input) in program.parameters.iter().zip(inputs) {
            let fits = |(extent, expected): (&usize, &Option<i64>)| {
                expected.is_none_or(|expected| i64::try_from(*extent) == Ok(expected))
            };
            let input = input.borrow();
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
                return fail(format!(
                    "expects {} to be {}{}, but found {}{}",
                    parameter.name,
                    parameter.element,
                    Shape(&expected),
                    input.element(),
                    Shape(shape)
                ));
            }
            if limits.elements < input.num_elements() as u64 {
                return fail(format!(
                    "is given {} elements for {}; expected at most {}",
                    input.num_elements(),
                    parameter.name,
                    limits.elements
                ));
            }
            arrays.push(to_array(input));
        }
        let results = Machine::new(program, limits).run(arrays).map_err(|error| *error)?;
        let elements = program.results.iter().map(|(_, element)| *element);
        Ok(results
            .into_iter()
            .zip(elements)
            .map(|(array, element)| Outcome { element, array })
            .collect())
    }
}

/// Decodes and runs a `tc.def` or a `func.func` within the default limits. The inputs are in
/// the order of the arguments, the contents of accumulated outputs included.
///
/// # Errors
/// As [`Interpreter::new`] and [`Interpreter::run`].
pub fn run(op: Op, inputs: &[impl Borrow<Tensor>]) -> Result<Vec<Outcome>, Error> {
    Interpreter::new(op)?.run(inputs, Limits::default())
}

fn to_array(tensor: &Tensor) -> Array {
    let width = tensor.element().width();
    let scalar = |number| match number {
        Number::Float(value) => Scalar::exact(value),
        Number::Signed(value) => Scalar::int(value),
        Number::Unsigned(value) => Scalar::int(integer::wrap(value as i64, width)),
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
    array: Rc<Array>,
}

impl Outcome {
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

    /// The value of an element, by its row-major position, which must be one.
    pub fn number(&self, position: usize) -> Number {
        let scalar = self.array.scalars[position];
        if self.element.is_float() {
            Number::Float(scalar.as_float())
        } else if self.element.is_signed() {
            Number::Signed(scalar.as_int())
        } else {
            Number::Unsigned(integer::unsigned(scalar.as_int(), self.element.width()))
        }
    }

    /// How far a correct program may be from the value; infinite where it is uncertain.
    pub fn error_bound(&self, position: usize) -> f64 {
        let scalar = self.array.scalars[position];
        if scalar.is_certain() { scalar.error } else { f64::INFINITY }
    }

    /// Whether nothing is known of the value: rounding may change it to any other, or the
    /// program never computes it.
    pub fn is_uncertain(&self, position: usize) -> bool {
        !self.array.scalars[position].is_certain()
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
            self.element.write(self.number(position), bytes);
        }
        Ok(tensor)
    }
}
