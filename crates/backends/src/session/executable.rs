//! Compiled entries.

use crate::{
    backend::{
        Argument, CallError, Compiled, Extent, Function, KernelCounts, Profile, Role, Signature,
    },
    program::Layout,
    runtime::{Shape, Tensor},
};
use std::{borrow::Cow, time::Duration};

/// A compiled entry of a program. It is independent of the [`Session`](super::Session).
pub struct Executable {
    pub(super) code: Compiled,
    pub(super) function: String,
    pub(super) inputs: Vec<Layout>,
    pub(super) outputs: Vec<Layout>,
    /// A function that returns the extents of the results, if the signature does not determine them, and their ranks.
    pub(super) extents: Option<(Compiled, Vec<usize>)>,
}

/// The tensors of calls, as compiled code takes them. They serve any number of calls.
pub struct Buffers<'t> {
    inputs: Vec<Cow<'t, Tensor>>,
    outputs: Vec<Tensor>,
}

impl Buffers<'_> {
    /// The outputs of compiled code after the last call, with padding and in parts.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }
}

impl Executable {
    fn function(&self) -> Function<'_> {
        self.code.function(&self.function).expect("checked by Session::load")
    }

    /// The arguments of the compiled function.
    pub fn signature(&self) -> &Signature {
        self.function().signature()
    }

    /// The counts of all calls, if a device counts.
    pub fn counts(&self) -> Vec<KernelCounts> {
        self.code.counts()
    }

    /// The times of the kernels in all calls except the first one, if the code measures them.
    pub fn profile(&self) -> Option<Profile> {
        self.code.profile()
    }

    /// The time that LLVM took to generate and load the code.
    pub fn llvm_time(&self) -> Duration {
        self.code.llvm_time()
    }

    /// The number of objects of the code that were in the cache; see [`Codegen::cache`](tc_passes::target::Codegen).
    pub fn cache_hits(&self) -> usize {
        self.code.cache_hits()
    }

    /// The results for inputs in the order of the program.
    ///
    /// # Errors
    /// An input does not fit the signature, a check fails, or there is not enough memory.
    pub fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, CallError> {
        let mut buffers = self.buffers(inputs)?;
        self.call(&mut buffers)?;
        if self.outputs.iter().all(|it| *it == Layout::Plain) {
            return Ok(buffers.outputs);
        }
        Ok(self.results(&buffers)?.into_iter().map(Cow::into_owned).collect())
    }

    /// The tensors of a call. Results that are accumulated into start with copies of their inputs.
    ///
    /// # Errors
    /// An input does not fit the signature, or there is not enough memory.
    pub fn buffers<'t>(&self, inputs: &[&'t Tensor]) -> Result<Buffers<'t>, CallError> {
        let function = self.function();
        let arguments = function.signature().arguments.iter();
        let mut arguments = arguments.filter(|it| it.role != Role::Output);
        let (expected, found) = (self.inputs.len(), inputs.len());
        let has_layouts = !self.inputs.is_empty() || !self.outputs.is_empty();
        if has_layouts && expected != found {
            return Err(CallError::Count { what: "inputs", expected, found });
        }
        let [mut read, mut contents] = [Vec::new(), Vec::new()];
        for (number, input) in inputs.iter().enumerate() {
            let layout = self.inputs.get(number).unwrap_or(&Layout::Plain);
            let mut taken = arguments.by_ref().take(layout.num_parts());
            let Some(argument) = taken.next() else {
                return Err(CallError::Count { what: "inputs", expected: number, found });
            };
            taken.for_each(drop);
            check(argument, layout, input)?;
            let parts = layout.split(input, || constant_shape(argument));
            let parts = parts.map_err(|it| CallError::Allocation(argument.name.clone(), it))?;
            let side = if argument.role == Role::InOut { &mut contents } else { &mut read };
            side.extend(parts);
        }
        // The padding of a result is 0 because its argument is.
        for argument in arguments {
            let layout = argument.output.and_then(|number| self.outputs.get(number));
            if let (Role::InOut, Some(Layout::Padded(_))) = (argument.role, layout) {
                let zeros = Tensor::zeros(argument.element, &constant_shape(argument));
                let zeros = zeros.map_err(|it| CallError::Allocation(argument.name.clone(), it))?;
                contents.push(Cow::Owned(zeros));
            }
        }
        let shapes = self.extents.as_ref().map(|(code, ranks)| {
            let function = code.function(&self.function).expect("of the same name");
            let extents = function.run(inputs)?;
            let mut extents = extents.iter().filter_map(|it| Some(it.get(0)?.to_f64() as usize));
            let shapes = ranks.iter().map(|rank| extents.by_ref().take(*rank).collect());
            Ok::<Vec<_>, CallError>(shapes.collect())
        });
        let shapes = shapes.transpose()?;
        let arguments: Vec<&Tensor> = read.iter().chain(&contents).map(|it| &**it).collect();
        let outputs = function.outputs(&arguments, shapes.as_deref())?;
        Ok(Buffers { inputs: read, outputs })
    }

    /// Calls the function.
    ///
    /// # Errors
    /// A check fails, there is not enough memory, or the device fails. The outputs are unspecified then.
    pub fn call(&self, buffers: &mut Buffers) -> Result<(), CallError> {
        let inputs: Vec<_> = buffers.inputs.iter().map(|it| &**it).collect();
        self.function().call(&inputs, &mut buffers.outputs)
    }

    /// The results of the last call, in the order of the program.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn results<'b>(&self, buffers: &'b Buffers) -> Result<Vec<Cow<'b, Tensor>>, CallError> {
        let mut rest = &buffers.outputs[..];
        let mut results = Vec::new();
        while !rest.is_empty() {
            let layout = self.outputs.get(results.len()).unwrap_or(&Layout::Plain);
            let (parts, after) = rest.split_at(layout.num_parts());
            let result = layout.join(parts);
            results.push(result.map_err(|it| CallError::Allocation(self.function.clone(), it))?);
            rest = after;
        }
        Ok(results)
    }
}

/// Checks a value that is converted for an argument; the call checks the others.
fn check(argument: &Argument, layout: &Layout, value: &Tensor) -> Result<(), CallError> {
    let name = || argument.name.trim_end_matches("_re").to_string();
    let (found, element) = (value.shape(), argument.element);
    let expected = match layout {
        Layout::Plain => return Ok(()),
        Layout::Complex => [constant_shape(argument), vec![2]].concat(),
        Layout::Padded(extents) => extents.clone(),
    };
    if value.element() != element {
        return Err(CallError::Element { name: name(), expected: element, found: value.element() });
    }
    if found.len() != expected.len() {
        let (expected, found) = (expected.len(), Shape(found).to_string());
        return Err(CallError::Rank { name: name(), expected, found });
    }
    let mut dims = expected.iter().zip(found).enumerate();
    match dims.find(|(_, (expected, found))| expected != found) {
        Some((dim, (expected, found))) => {
            let expected = expected.to_string();
            Err(CallError::Extent { name: name(), dim, expected, found: *found })
        }
        None => Ok(()),
    }
}

/// The extents of an argument without size variables.
fn constant_shape(argument: &Argument) -> Vec<usize> {
    let extents = argument.shape.iter().filter_map(|extent| match extent {
        Extent::Constant(extent) => Some(*extent),
        _ => None,
    });
    extents.collect()
}
