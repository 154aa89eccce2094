//! The types of the inputs and results of an entry.

use super::{Error, Sizes};
use crate::runtime::{ElementType as Stored, Number, Tensor, TensorError, random, random_floats};
use std::{borrow::Cow, collections::BTreeMap};
use tc_dialects::{
    axon::{ElementType as AxonElement, to_hlo::hlo_element},
    element::{ElementKind, ElementType},
};

/// The form in which compiled code takes a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One tensor.
    #[default]
    Plain,
    /// Two tensors, the real and the imaginary parts. The last dimension of a value holds the two parts.
    Complex,
    /// A larger tensor with zeros around a value of these extents.
    Padded(Vec<usize>),
}

impl Layout {
    /// The number of arguments of compiled code for a value.
    pub fn num_parts(&self) -> usize {
        if *self == Self::Complex { 2 } else { 1 }
    }

    /// The arguments of compiled code for a value; `extents` are those of padded arguments.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn split<'t>(
        &self,
        value: &'t Tensor,
        extents: impl Fn() -> Vec<usize>,
    ) -> Result<Vec<Cow<'t, Tensor>>, TensorError> {
        match self {
            Self::Plain => Ok(vec![Cow::Borrowed(value)]),
            Self::Padded(_) => {
                let mut padded = Tensor::zeros(value.element(), &extents())?;
                value.copy_box(&mut padded);
                Ok(vec![Cow::Owned(padded)])
            }
            Self::Complex => {
                let (dims, width) = (value.shape().split_last(), value.element().size());
                let dims = dims.map_or(&[][..], |(_, dims)| dims);
                let part = |number: usize| {
                    let mut part = Tensor::zeros(value.element(), dims)?;
                    let values = value.bytes().chunks_exact(width).skip(number).step_by(2);
                    for (to, from) in part.bytes_mut().chunks_exact_mut(width).zip(values) {
                        to.copy_from_slice(from);
                    }
                    Ok(Cow::Owned(part))
                };
                (0..2).map(part).collect()
            }
        }
    }

    /// The value of the arguments of compiled code.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn join<'t>(&self, parts: &'t [Tensor]) -> Result<Cow<'t, Tensor>, TensorError> {
        let first = &parts[0];
        match self {
            Self::Plain => Ok(Cow::Borrowed(first)),
            Self::Padded(extents) => {
                let mut value = Tensor::zeros(first.element(), extents)?;
                first.copy_box(&mut value);
                Ok(Cow::Owned(value))
            }
            Self::Complex => {
                let mut value = Tensor::zeros(first.element(), &[first.shape(), &[2]].concat())?;
                let width = first.element().size();
                for (number, part) in parts.iter().enumerate() {
                    let places = value.bytes_mut().chunks_exact_mut(width).skip(number).step_by(2);
                    for (to, from) in places.zip(part.bytes().chunks_exact(width)) {
                        to.copy_from_slice(from);
                    }
                }
                Ok(Cow::Owned(value))
            }
        }
    }
}

/// The type in memory of the parts of an element: the bits of floats that C does not have are unsigned integers.
pub fn in_memory(element: ElementType) -> Stored {
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

/// An input or a result of an entry.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The element type.
    pub element: ElementType,
    /// The extents; `None` for a result whose extents only a call determines. Complex numbers add no dimension.
    pub shape: Option<Vec<usize>>,
    /// Whether an input is the initial contents of a result.
    pub is_accumulated: bool,
    /// The values that an element of an input may have, if it is an index or the value of a size.
    pub range: Option<(i64, i64)>,
    /// Whether random floats use the precision of the type; otherwise products and short sums of them are exact.
    pub is_precise: bool,
    /// The index of the first element of a result, if it is not zero.
    pub origin: Vec<i64>,
}

impl Parameter {
    /// A parameter of a type.
    pub(crate) fn new(name: impl Into<String>, element: ElementType, shape: &[usize]) -> Self {
        let (name, shape) = (name.into(), Some(shape.to_vec()));
        let (is_accumulated, is_precise) = (false, false);
        Self { name, element, shape, is_accumulated, range: None, is_precise, origin: Vec::new() }
    }

    /// The same parameter with an element type in memory.
    pub(crate) fn stored(name: impl Into<String>, element: Stored, shape: &[usize]) -> Self {
        let mut all = AxonElement::ALL.into_iter().map(hlo_element);
        let element = all.find(|it| in_memory(*it) == element);
        Self::new(name, element.expect("each has one"), shape)
    }

    /// The shape of the tensors that hold it, in which complex numbers are pairs.
    pub fn dims(&self) -> Vec<usize> {
        let pair = self.element.is_complex().then_some(2);
        self.shape.iter().flatten().copied().chain(pair).collect()
    }

    /// A tensor for the input: floats in `[-1, 1)`, small integers, and values in [`range`](Self::range), which depend
    /// on the seed and the name only; zeros if it is accumulated into.
    ///
    /// # Errors
    /// It is too large, or has no valid value.
    pub fn draw(&self, seed: u64) -> Result<Tensor, Error> {
        let (stored, dims) = (in_memory(self.element), self.dims());
        if self.is_accumulated {
            return Ok(Tensor::zeros(stored, &dims)?);
        }
        if let Some((lower, upper)) = self.range
            && upper < lower
        {
            return Err(Error::Rejected(format!(
                "no element of '{}' is a legal index at these sizes: it would have to be at least {lower} and at \
                 most {upper}",
                self.name
            )));
        }
        // Each input its own stream, whatever the others are.
        let stream = self.name.bytes().fold(seed, |hash, byte| {
            hash.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(byte)) ^ (hash >> 29)
        });
        let element = self.element.part();
        if !element.is_float() || stored.is_float() && !self.is_precise {
            return Ok(random(stored, &dims, stream, self.range)?);
        }
        let encode = |value| match stored.is_float() {
            true => Number::Float(value),
            false => Number::Unsigned(element.encode_float(value)),
        };
        Ok(random_floats(stored, &dims, stream, encode)?)
    }
}

/// An entry at known sizes.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The inputs, in order.
    pub inputs: Vec<Parameter>,
    /// The results, in order.
    pub outputs: Vec<Parameter>,
    /// The values of all size variables.
    pub sizes: Sizes,
}

impl Entry {
    /// The inputs of a call, in order: tensors that are given, and [drawn](Parameter::draw) ones.
    ///
    /// # Errors
    /// A tensor does not fit its input, a name is unknown, or an input cannot be drawn.
    pub fn complete(
        &self,
        mut given: BTreeMap<String, Tensor>,
        seed: u64,
    ) -> Result<Vec<Tensor>, Error> {
        let mut inputs = Vec::new();
        for parameter in &self.inputs {
            let Some(tensor) = given.remove(&parameter.name) else {
                inputs.push(parameter.draw(seed)?);
                continue;
            };
            let (element, dims) = (in_memory(parameter.element), parameter.dims());
            if (tensor.element(), tensor.shape()) != (element, dims.as_slice()) {
                return Err(Error::Rejected(format!(
                    "'{}' is a tensor of {} with extents {:?}, but the program takes {element} with {dims:?}",
                    parameter.name,
                    tensor.element(),
                    tensor.shape()
                )));
            }
            inputs.push(tensor);
        }
        match given.keys().next() {
            None => Ok(inputs),
            Some(name) => Err(Error::Usage(format!("'{}' has no input '{name}'", self.name))),
        }
    }
}
