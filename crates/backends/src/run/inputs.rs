//! The inputs of a run: from files, or random.

use super::{Error, Shapes, Sizes};
use crate::runtime::{Tensor, npy, random};
use std::{collections::BTreeMap, path::Path};
use tc_dialects::tc::{Def, Size};
use tc_passes::analysis::element_ranges::element_ranges;

/// Tensors by the name of the input, and what accumulated outputs hold before.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The tensors given.
    pub tensors: BTreeMap<String, Tensor>,
}

impl Inputs {
    /// Reads `NAME.npy` for each input of a function that has a file of its name.
    ///
    /// # Errors
    /// The folder cannot be read, or a file is no tensor.
    pub fn read(def: Def, folder: &Path) -> Result<Self, Error> {
        std::fs::read_dir(folder)
            .map_err(|error| Error::File { path: folder.display().to_string(), error })?;
        let mut tensors = BTreeMap::new();
        for parameter in def.parameters() {
            let path = folder.join(format!("{}.npy", parameter.name));
            if !parameter.inout && path.exists() {
                tensors.insert(parameter.name.to_string(), npy::load(&path)?);
            }
        }
        Ok(Self { tensors })
    }

    /// Adds to `sizes` what the shapes of the tensors say.
    ///
    /// # Errors
    /// A tensor has another rank than its input, or two of them disagree on a size.
    pub fn infer_sizes(&self, def: Def, sizes: &mut Sizes) -> Result<(), Error> {
        for parameter in def.parameters() {
            let Some(tensor) = self.tensors.get(parameter.name) else { continue };
            if parameter.inout {
                continue;
            }
            let shape = tensor.shape();
            if shape.len() != parameter.sizes.len() {
                return Err(Error::Refused(format!(
                    "input '{}' has {} dimensions, but the program gives it {}",
                    parameter.name,
                    shape.len(),
                    parameter.sizes.len()
                )));
            }
            for (dim, (size, extent)) in parameter.sizes.iter().zip(shape).enumerate() {
                let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
                let expected = match size {
                    Size::Constant(constant) => *constant,
                    Size::Variable(name) => *sizes.entry(name.to_string()).or_insert(extent),
                };
                if expected != extent {
                    let what = match size {
                        Size::Constant(_) => "the program".to_string(),
                        Size::Variable(name) => format!("size '{name}'"),
                    };
                    return Err(Error::Refused(format!(
                        "dimension {dim} of input '{}' is {extent}, but {what} says {expected}",
                        parameter.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// The arguments of a call, in order: what was given, zeros for accumulated outputs,
    /// and random tensors for the rest.
    ///
    /// # Errors
    /// A tensor does not fit its input, or an index tensor cannot be drawn.
    pub fn complete(
        mut self,
        def: Def,
        shapes: &Shapes,
        sizes: &Sizes,
        seed: u64,
    ) -> Result<Vec<Tensor>, Error> {
        let mut drawn =
            random_inputs(def, shapes, sizes, seed, |name| self.tensors.contains_key(name))?;
        let mut arguments = Vec::new();
        for (name, element, extents) in &shapes.inputs {
            let tensor = match self.tensors.remove(name) {
                Some(tensor) => tensor,
                None => drawn.remove(name).expect("drawn where it was not given"),
            };
            if (tensor.element(), tensor.shape()) != (*element, extents.as_slice()) {
                return Err(Error::Refused(format!(
                    "'{name}' is a tensor of {} with extents {:?}, but the program takes {element} with {extents:?}",
                    tensor.element(),
                    tensor.shape()
                )));
            }
            arguments.push(tensor);
        }
        if let Some(name) = self.tensors.keys().next() {
            return Err(Error::Usage(format!(
                "'{}' has no input or accumulated output '{name}'",
                def.name()
            )));
        }
        Ok(arguments)
    }
}

/// Random inputs that depend on the seed and the name only, except those that `given`
/// names; accumulated outputs are zero. Elements used as indices are inside the indexed
/// extents.
///
/// # Errors
/// A tensor is too large, or no element of an index tensor would be inside.
pub fn random_inputs(
    def: Def,
    shapes: &Shapes,
    sizes: &Sizes,
    seed: u64,
    given: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Tensor>, Error> {
    let intervals = element_ranges(def, sizes);
    let mut drawn = BTreeMap::new();
    for (parameter, (name, element, extents)) in def.parameters().iter().zip(&shapes.inputs) {
        if given(name) {
            continue;
        }
        let tensor = if parameter.inout {
            Tensor::zeros(*element, extents)?
        } else {
            let interval = intervals.get(name).copied();
            if let Some((lower, upper)) = interval
                && upper < lower
            {
                return Err(Error::Refused(format!(
                    "no element of '{name}' is a legal index at these sizes: it would have to be at least {lower} and at most {upper}"
                )));
            }
            // Each input its own stream, whatever the others are.
            let stream = name.bytes().fold(seed, |hash, byte| {
                hash.wrapping_mul(0x0100_0000_01b3).wrapping_add(u64::from(byte)) ^ (hash >> 29)
            });
            random(*element, extents, stream, interval)?
        };
        drawn.insert(name.clone(), tensor);
    }
    Ok(drawn)
}
