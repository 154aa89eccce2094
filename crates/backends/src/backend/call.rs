//! Calling compiled code with tensors of this process.
//!
//! A call checks everything that the signature knows (number, element types, ranks,
//! extents, and that dimensions of one size variable are equal) before it passes
//! pointers. It trusts that the module stays inside tensors of such shapes: modules made
//! from `.tc` sources do, by range inference; for hand-written `imap` operations that is
//! up to their author.

use super::{
    profile::Profile,
    signature::{Argument, Extent, Role, Signature},
};
use crate::runtime::{ElementType, Shape, Tensor, TensorError};
use std::{collections::BTreeMap, marker::PhantomData, sync::Arc, time::Duration};
use tc_passes::transform::check_allocations::OUT_OF_MEMORY;

/// Why a call was refused, or stopped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// Another number of tensors is expected.
    #[error("expected {expected} {what}, found {found}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// How many are expected.
        expected: usize,
        /// How many were passed.
        found: usize,
    },
    /// A tensor has the wrong element type.
    #[error("expected '{name}' to have elements of type {expected}, found {found}")]
    Element {
        /// The argument.
        name: String,
        /// The element type that is expected.
        expected: ElementType,
        /// That of the tensor.
        found: ElementType,
    },
    /// A tensor has the wrong rank.
    #[error("expected '{name}' to have {expected} dimensions, found shape {found}")]
    Rank {
        /// The argument.
        name: String,
        /// The rank that is expected.
        expected: usize,
        /// The shape of the tensor.
        found: String,
    },
    /// A tensor has the wrong extent.
    #[error("expected dimension {dim} of '{name}' to be {expected}, found {found}")]
    Extent {
        /// The argument.
        name: String,
        /// The dimension.
        dim: usize,
        /// The extent that is expected, and why.
        expected: String,
        /// That of the tensor.
        found: usize,
    },
    /// The shape of an output is not known from the shapes of the inputs.
    #[error("the shape of output '{0}' is not known from the inputs")]
    UnknownShape(String),
    /// An output does not fit memory.
    #[error("output '{0}': {1}")]
    Allocation(String, TensorError),
    /// There is not enough memory for what the function stores on the way to its results.
    #[error("not enough memory for intermediate tensors")]
    Memory,
    /// A check of the function failed.
    #[error("check failed: {message}")]
    Check {
        /// The number of the check, from 1.
        number: usize,
        /// What does not hold.
        message: String,
    },
    /// The device that runs the code failed.
    #[error("the device failed: {0}")]
    Device(String),
}

/// A tensor as compiled code sees it: MLIR's memref descriptor, which is two pointers,
/// an offset, the extents and the strides.
pub struct Descriptor<'a> {
    words: Vec<i64>,
    _tensor: PhantomData<&'a Tensor>,
}

impl<'a> Descriptor<'a> {
    /// Of a tensor that is only read.
    pub fn read(tensor: &'a Tensor) -> Self {
        Self::new(tensor.bytes().as_ptr(), tensor.shape())
    }

    /// Of a tensor that is written.
    pub fn write(tensor: &'a mut Tensor) -> Self {
        let pointer = tensor.bytes_mut().as_mut_ptr();
        Self::new(pointer, tensor.shape())
    }

    fn new(pointer: *const u8, shape: &[usize]) -> Self {
        let address = pointer.expose_provenance() as i64;
        let mut words = vec![address, address, 0];
        words.extend(shape.iter().map(|extent| *extent as i64));
        let strides = words.len();
        words.resize(strides + shape.len(), 1);
        let mut stride: i64 = 1;
        for (dim, extent) in shape.iter().enumerate().rev() {
            words[strides + dim] = stride;
            stride = stride.saturating_mul(*extent as i64);
        }
        Self { words, _tensor: PhantomData }
    }

    /// The words of the descriptor, of 64 bits each.
    pub fn words(&self) -> &[i64] {
        &self.words
    }

    /// The extents of the tensor.
    pub fn shape(&self) -> &[i64] {
        &self.words[3..3 + (self.words.len() - 3) / 2]
    }
}

/// The events that a device counted in all launches of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCounts {
    /// The name of the kernel.
    pub kernel: String,
    /// How often it was launched.
    pub launches: u64,
    /// The number of each kind of event.
    pub events: Vec<(&'static str, u64)>,
}

/// Compiled functions that can be called.
pub trait Code: Send + Sync {
    /// Calls the function of a number with descriptors of its arguments. Returns 0, [`OUT_OF_MEMORY`],
    /// or the number of the check that failed, from 1.
    ///
    /// # Errors
    /// The device that runs the code failed.
    ///
    /// # Safety
    /// There is a descriptor for each argument in the signature, with its element type, rank and extents. For
    /// an output, [`Descriptor::write`] made it.
    unsafe fn call(&self, function: usize, arguments: &mut [Descriptor]) -> Result<i32, CallError>;

    /// The counts of all calls so far per kernel, in the order of the kernels; empty unless the device counts.
    fn counts(&self) -> Vec<KernelCounts> {
        Vec::new()
    }

    /// The times of all calls so far except the first one; `None` unless the code measures its kernels.
    fn profile(&self) -> Option<Profile> {
        None
    }
}

/// Code that is loaded, with the signatures of its functions; unloaded when dropped.
#[derive(Clone)]
pub struct Compiled {
    signatures: Vec<Signature>,
    code: Arc<dyn Code>,
    llvm_time: Duration,
    cache_hits: usize,
}

impl Compiled {
    /// Code whose functions have these signatures, in order.
    ///
    /// # Safety
    /// The functions must have the signatures: calls rely on them.
    pub unsafe fn new(signatures: Vec<Signature>, code: Arc<dyn Code>) -> Self {
        Self { signatures, code, llvm_time: Duration::ZERO, cache_hits: 0 }
    }

    /// The same code, which LLVM took so long to generate and load.
    pub(crate) fn with_llvm_time(self, llvm_time: Duration) -> Self {
        Self { llvm_time, ..self }
    }

    /// The same code, so many objects of which were in the cache.
    pub(crate) fn with_cache_hits(self, cache_hits: usize) -> Self {
        Self { cache_hits, ..self }
    }

    /// The number of objects of the code that were in the cache.
    pub fn cache_hits(&self) -> usize {
        self.cache_hits
    }

    /// How long LLVM took for the code, from its translation to LLVM IR until it was loaded; zero if that was not
    /// measured.
    pub fn llvm_time(&self) -> Duration {
        self.llvm_time
    }

    /// The counts of all calls so far; see [`Code::counts`].
    pub fn counts(&self) -> Vec<KernelCounts> {
        self.code.counts()
    }

    /// The times of the kernels; see [`Code::profile`].
    pub fn profile(&self) -> Option<Profile> {
        self.code.profile()
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<Function<'_>> {
        let number = self.signatures.iter().position(|signature| signature.name == name)?;
        Some(Function { signature: &self.signatures[number], code: &*self.code, number })
    }
}

/// A function of compiled code.
#[derive(Copy, Clone)]
pub struct Function<'a> {
    signature: &'a Signature,
    code: &'a dyn Code,
    number: usize,
}

impl<'a> Function<'a> {
    /// What it takes and gives.
    pub fn signature(self) -> &'a Signature {
        self.signature
    }

    /// Calls the function. `inputs` are the tensors that are only read, in order;
    /// `outputs` receive the results, in order, and those that are accumulated into hold
    /// what to start from.
    ///
    /// # Errors
    /// A tensor is not what the signature says, there is not enough memory, or a check of the function
    /// fails; what the outputs hold then is unspecified.
    pub fn call(self, inputs: &[&Tensor], outputs: &mut [Tensor]) -> Result<(), CallError> {
        let mut sizes = BTreeMap::new();
        self.check_inputs(inputs, &mut sizes)?;
        let order = self.signature.outputs();
        count("outputs", order.len(), outputs.len())?;
        let arguments = &self.signature.arguments;
        for (number, output) in order.iter().zip(outputs.iter()) {
            check(&arguments[*number], output, &mut sizes)?;
        }
        for (number, output) in order.iter().zip(outputs.iter()) {
            check_computed(&arguments[*number], output, &sizes)?;
        }

        let mut inputs = inputs.iter();
        let mut outputs: Vec<_> = outputs.iter_mut().map(Some).collect();
        let mut descriptors = Vec::with_capacity(arguments.len());
        for (number, argument) in arguments.iter().enumerate() {
            descriptors.push(match argument.role {
                Role::Input => Descriptor::read(inputs.next().expect("counted above")),
                Role::Output | Role::InOut => {
                    let place = order.iter().position(|it| *it == number);
                    let output = place.and_then(|place| outputs[place].take());
                    Descriptor::write(output.expect("one tensor per output argument"))
                }
            });
        }
        // SAFETY: the tensors have been checked against the signature.
        let code = unsafe { self.code.call(self.number, &mut descriptors) }?;
        match code {
            0 => return Ok(()),
            OUT_OF_MEMORY => return Err(CallError::Memory),
            _ => {}
        }
        let number = usize::try_from(code).unwrap_or(0);
        let message = self.signature.checks.get(number.wrapping_sub(1)).cloned();
        Err(CallError::Check { number, message: message.unwrap_or_default() })
    }

    /// How many tensors are only read; those come first among the arguments of [`run`](Self::run).
    pub fn num_inputs(self) -> usize {
        self.signature.arguments.iter().filter(|it| it.role == Role::Input).count()
    }

    /// Calls the function with tensors for its inputs and, after them, the initial
    /// contents of the outputs that it accumulates into; returns the outputs in order.
    ///
    /// # Errors
    /// As [`call`](Self::call), and if the shape of an output cannot be computed.
    pub fn run(self, arguments: &[&Tensor]) -> Result<Vec<Tensor>, CallError> {
        let mut outputs = self.outputs(arguments, None)?;
        self.call(&arguments[..self.num_inputs()], &mut outputs)?;
        Ok(outputs)
    }

    /// The outputs for a call with the arguments that [`run`](Self::run) takes: initial contents, and zeros for the
    /// others, of these shapes or of those that the signature determines.
    pub(crate) fn outputs(
        self,
        arguments: &[&Tensor],
        shapes: Option<&[Vec<usize>]>,
    ) -> Result<Vec<Tensor>, CallError> {
        let read = self.signature.arguments.iter().filter(|it| it.role != Role::Output).count();
        count("tensors", read, arguments.len())?;
        let (inputs, contents) = arguments.split_at(self.num_inputs());
        let mut contents = contents.iter();
        let mut sizes = BTreeMap::new();
        self.check_inputs(inputs, &mut sizes)?;
        let mut outputs: BTreeMap<usize, Tensor> = BTreeMap::new();
        for (number, argument) in self.signature.arguments.iter().enumerate() {
            let result = argument.output.unwrap_or_default();
            let tensor = match (argument.role, shapes.and_then(|shapes| shapes.get(result))) {
                (Role::Input, _) => continue,
                (Role::InOut, _) => (*contents.next().expect("counted above")).clone(),
                (Role::Output, Some(shape)) => Tensor::zeros(argument.element, shape)
                    .map_err(|error| CallError::Allocation(argument.name.clone(), error))?,
                (Role::Output, None) => allocate(argument, &sizes)?,
            };
            outputs.insert(number, tensor);
        }
        let order = self.signature.outputs();
        let outputs = order.iter().map(|number| outputs.remove(number));
        Ok(outputs.map(|it| it.expect("one tensor per output")).collect())
    }

    fn check_inputs(
        self,
        inputs: &[&Tensor],
        sizes: &mut BTreeMap<String, i64>,
    ) -> Result<(), CallError> {
        let expected = self.signature.arguments.iter().filter(|it| it.role == Role::Input);
        let expected: Vec<_> = expected.collect();
        count("inputs", expected.len(), inputs.len())?;
        for (argument, tensor) in expected.iter().zip(inputs) {
            check(argument, tensor, sizes)?;
        }
        for (argument, tensor) in expected.into_iter().zip(inputs) {
            check_computed(argument, tensor, sizes)?;
        }
        Ok(())
    }
}

fn count(what: &'static str, expected: usize, found: usize) -> Result<(), CallError> {
    if expected == found { Ok(()) } else { Err(CallError::Count { what, expected, found }) }
}

/// Checks a tensor against its argument and learns the values of size variables.
fn check(
    argument: &Argument,
    tensor: &Tensor,
    sizes: &mut BTreeMap<String, i64>,
) -> Result<(), CallError> {
    let name = || argument.name.clone();
    if tensor.element() != argument.element {
        return Err(CallError::Element {
            name: name(),
            expected: argument.element,
            found: tensor.element(),
        });
    }
    if tensor.shape().len() != argument.shape.len() {
        return Err(CallError::Rank {
            name: name(),
            expected: argument.shape.len(),
            found: Shape(tensor.shape()).to_string(),
        });
    }
    for (dim, (expected, found)) in argument.shape.iter().zip(tensor.shape()).enumerate() {
        let expected = match expected {
            Extent::Constant(extent) if extent != found => extent.to_string(),
            Extent::Size(size) => {
                // An extent in memory fits 63 bits.
                let value = *sizes.entry(size.clone()).or_insert(*found as i64);
                if value == *found as i64 {
                    continue;
                }
                format!("{value}, as '{size}' is elsewhere")
            }
            _ => continue,
        };
        return Err(CallError::Extent { name: name(), dim, expected, found: *found });
    }
    Ok(())
}

/// Checks the extents of an argument that are computed from size variables.
fn check_computed(
    argument: &Argument,
    tensor: &Tensor,
    sizes: &BTreeMap<String, i64>,
) -> Result<(), CallError> {
    let Some(formulas) = &argument.extents else { return Ok(()) };
    let Some(extents) = formulas.evaluate(sizes) else {
        return Err(CallError::UnknownShape(argument.name.clone()));
    };
    for (dim, (expected, found)) in extents.iter().zip(tensor.shape()).enumerate() {
        if i64::try_from(*found) != Ok(*expected) {
            return Err(CallError::Extent {
                name: argument.name.clone(),
                dim,
                expected: expected.to_string(),
                found: *found,
            });
        }
    }
    Ok(())
}

/// A tensor of zeros for an output.
fn allocate(argument: &Argument, sizes: &BTreeMap<String, i64>) -> Result<Tensor, CallError> {
    let unknown = || CallError::UnknownShape(argument.name.clone());
    let computed = match &argument.extents {
        Some(formulas) => formulas.evaluate(sizes).ok_or_else(unknown)?,
        None => Vec::new(),
    };
    let shape: Option<Vec<usize>> = argument
        .shape
        .iter()
        .map(|extent| match extent {
            Extent::Constant(extent) => Some(*extent),
            Extent::Size(name) => usize::try_from(*sizes.get(name)?).ok(),
            Extent::Computed(dim) => usize::try_from(*computed.get(*dim)?).ok(),
            Extent::Unknown => None,
        })
        .collect();
    Tensor::zeros(argument.element, &shape.ok_or_else(unknown)?)
        .map_err(|error| CallError::Allocation(argument.name.clone(), error))
}
