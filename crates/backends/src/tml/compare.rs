//! Compares results of compiled programs with results of the evaluation rules.

use super::{
    interp::{Machine, indices},
    value::{Bounded, Magnitude},
};
use crate::{
    interp::Outcome,
    runtime::{ElementType, Number, Tensor, TensorError},
};
use std::collections::BTreeMap;
use tc_dialects::tml::syntax::checked::Element;

/// How the elements of a variable compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Elements that are near enough to their values.
    pub compared: usize,
    /// Undefined ones, for which any number may stand.
    pub undefined: usize,
    /// Those whose bound is infinite: nothing is known of them.
    pub uncertain: usize,
}

/// Why a compiled program does not agree with the rules.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    /// An element is too far from its value.
    #[error(
        "'{variable}' is wrong at {index:?}: got {found}, expected {expected} within {bound:e}"
    )]
    Element {
        /// The variable.
        variable: String,
        /// The index of the element, from 0.
        index: Vec<usize>,
        /// The number found.
        found: f64,
        /// The value of the interpreter.
        expected: f64,
        /// How far the one may be from the other.
        bound: f64,
    },
    /// Padding of a result is not 0, though all elements are defined.
    #[error("the padding of a result is not 0")]
    Padding,
    /// There is not enough memory for the values.
    #[error(transparent)]
    Memory(#[from] TensorError),
}

/// What the variables of a program hold, as the ambient application passes it: NaN where that is
/// undefined.
///
/// # Errors
/// There is no memory.
pub fn tensors<V: Magnitude>(
    machine: &Machine<'_, Bounded<V>>,
) -> Result<BTreeMap<String, Tensor>, TensorError> {
    let variables = machine.program().variables.iter().enumerate();
    let tensors = variables.map(|(number, variable)| {
        let element = match variable.ty.element {
            Element::F32 => ElementType::F32,
            Element::F64 => ElementType::F64,
        };
        let store = machine.tensor(number);
        let mut tensor = Tensor::zeros(element, &store.extents)?;
        for (place, value) in store.elements.iter().enumerate() {
            let number = value.as_ref().map_or(f64::NAN, |it| it.value.to_f64());
            tensor.set(place, Number::Float(number));
        }
        Ok((variable.name.clone(), tensor))
    });
    tensors.collect()
}

/// The final value of a variable with error bounds; undefined elements are uncertain.
pub(crate) fn outcome<V: Magnitude>(machine: &Machine<'_, Bounded<V>>, variable: usize) -> Outcome {
    let element = machine.program().variables[variable].ty.element;
    let store = machine.tensor(variable);
    let elements = store
        .elements
        .iter()
        .map(|value| value.as_ref().map(|it| (it.value.to_f64(), it.bound(element))));
    let stored = match element {
        Element::F32 => ElementType::F32,
        Element::F64 => ElementType::F64,
    };
    Outcome::of_floats(stored, store.extents.clone(), elements)
}

/// Compares the outputs of compiled code, which may be padded, with the final store of the interpreter; see
/// [`compare()`]. Padding must be 0 if all elements are defined.
///
/// # Errors
/// An element or padding is wrong, or there is not enough memory.
pub fn compare_padded<'t, V: Magnitude>(
    machine: &Machine<'_, Bounded<V>>,
    outputs: impl Iterator<Item = (&'t str, &'t Tensor)>,
) -> Result<Vec<(String, Agreement)>, Mismatch> {
    let mut results = BTreeMap::new();
    let mut is_padding_zero = true;
    for (name, output) in outputs {
        let number = machine.program().variable(name).expect("each output is a variable");
        let mut value = Tensor::zeros(output.element(), &machine.tensor(number).extents)?;
        // What is left once everything in bounds is 0.
        let mut padding = output.clone();
        value.copy_box(&mut padding);
        is_padding_zero &= padding.numbers().all(|number| number.to_f64() == 0.0);
        output.copy_box(&mut value);
        results.insert(name.to_string(), value);
    }
    let agreements = compare(machine, &results)?;
    let is_defined = agreements.iter().all(|(_, it)| it.undefined + it.uncertain == 0);
    match is_defined && !is_padding_zero {
        true => Err(Mismatch::Padding),
        false => Ok(agreements),
    }
}

/// Compares the results of a compiled program, by the names of the variables, with the final store of the
/// interpreter without padding. In the order of the declarations.
///
/// # Errors
/// The first element that is not within its bound.
pub fn compare<V: Magnitude>(
    machine: &Machine<'_, Bounded<V>>,
    results: &BTreeMap<String, Tensor>,
) -> Result<Vec<(String, Agreement)>, Mismatch> {
    let mut agreements = Vec::new();
    for (number, variable) in machine.program().variables.iter().enumerate() {
        let Some(result) = results.get(&variable.name) else { continue };
        let mut agreement = Agreement::default();
        let store = machine.tensor(number);
        let elements = indices(&store.extents).zip(&store.elements);
        for (place, (index, element)) in elements.enumerate() {
            let Some(element) = element else {
                agreement.undefined += 1;
                continue;
            };
            let bound = element.bound(variable.ty.element);
            if !bound.is_finite() {
                agreement.uncertain += 1;
                continue;
            }
            let expected = element.value.to_f64();
            let found = result.get(place).map_or(f64::NAN, |it| it.to_f64());
            if found != expected && bound < (found - expected).abs() || found.is_nan() {
                let variable = variable.name.clone();
                return Err(Mismatch::Element { variable, index, found, expected, bound });
            }
            agreement.compared += 1;
        }
        agreements.push((variable.name.clone(), agreement));
    }
    Ok(agreements)
}
