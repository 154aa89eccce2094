//! Programs that have a folder: the text before and after optimization, inputs, outputs of the
//! system that made them, and results in float64.

use super::{
    super::{
        Options, Outcome, Status,
        row::{self, Mismatch},
    },
    FOLDER, bound, field, of_bytes,
    run::{self, Elements, agree},
    shape,
};
use serde_json::Value;
use std::{borrow::Cow, path::Path};
use tc_backends::{
    languages::hlo::{Array, arrays},
    runtime::{Tensor, npy},
};
use tc_dialects::hlo::{self, ArrayShape};

/// Runs both texts of a program.
pub(super) fn run(case: &Value, _options: &Options) -> Result<Outcome, Mismatch> {
    let folder = Path::new(row::string(field(case, FOLDER)?)?);
    let load = |value: &Value| array(folder, value, row::string(field(value, "file")?)?);
    let inputs =
        row::array(field(case, "inputs")?)?.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    let outputs = row::array(field(case, "outputs")?)?;
    for name in ["module.hlo", "optimized.hlo"] {
        let path = folder.join(name);
        if name == "optimized.hlo" && !path.exists() {
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Mismatch::new(format!("the text {name}"), error.to_string()))?;
        let (module, found) = run::run(text, &inputs)
            .map_err(|reason| Mismatch::new(format!("{name} runs"), reason))?;
        compare_all(folder, &module, &inputs, outputs, &found)
            .map_err(|it| Mismatch::new(format!("{name}, {}", it.expected), it.got))?;
    }
    Ok(Outcome::new(Status::Passed, "the results", "the results"))
}

/// Compares the results of a program with those in its folder, as `case.json` there describes
/// them.
///
/// # Errors
/// What is expected and what was found instead.
pub(in super::super) fn check(
    folder: &Path,
    text: Vec<u8>,
    inputs: &[Tensor],
    results: &[Cow<Tensor>],
) -> Result<(), String> {
    let (_, module, _) = hlo::read("module.hlo", text);
    let module = module.ok_or("the text is not a module")?;
    let [parameters, shapes] = arrays(&module);
    let array = |(shape, tensor): (&ArrayShape, &Tensor)| Array::of(shape, tensor);
    let inputs: Vec<_> = parameters.into_iter().zip(inputs).map(array).collect();
    let results = shapes.into_iter().zip(results.iter().map(|it| &**it));
    let results: Vec<_> = results.map(array).collect();
    let path = folder.join(super::CASE_FILE);
    let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let case: Value =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = |it: Mismatch| format!("expected {}, found {}", it.expected, it.got);
    let outputs = row::array(field(&case, "outputs").map_err(text)?).map_err(text)?;
    compare_all(folder, &module, &inputs, outputs, &results).map_err(text)
}

/// Compares every output.
fn compare_all(
    folder: &Path,
    module: &hlo::Module,
    inputs: &[Array],
    outputs: &[Value],
    results: &[Array],
) -> Result<(), Mismatch> {
    if outputs.len() != results.len() {
        return Err(Mismatch::new(format!("{} results", outputs.len()), results.len().to_string()));
    }
    for (number, (output, found)) in outputs.iter().zip(results).enumerate() {
        compare(folder, module, inputs, output, found)
            .map_err(|it| Mismatch::new(format!("output {number}: {}", it.expected), it.got))?;
    }
    Ok(())
}

/// Compares one output with the float64 reference, or exactly where there is none.
fn compare(
    folder: &Path,
    module: &hlo::Module,
    inputs: &[Array],
    output: &Value,
    found: &Array,
) -> Result<(), Mismatch> {
    let element = found.shape.element_type;
    let reference = match output.get("ref64").and_then(Value::as_str) {
        Some(file) => rounded(&npy_at(folder, file)?, &found.shape)?,
        None => array(folder, output, row::string(field(output, "file")?)?)?,
    };
    if !reference.shape.is_compatible(&found.shape) {
        let show = |array: &Array| format!("{}{:?}", array.shape.element_type, array.shape.dims);
        return Err(Mismatch::new(show(&reference), show(found)));
    }
    let is_float = element.part().is_float() && output.get("ref64").is_some();
    let (expected, found) = (Elements::of(&reference), Elements::of(found));
    // The magnitude of a typical element of the result or of what it is made from, so that one
    // that nearly cancels is compared with what cancelled, and a huge one excuses no other.
    let inputs = inputs.iter().map(|input| typical_magnitude(&Elements::of(input)));
    let typical = inputs.fold(typical_magnitude(&expected), f64::max);
    let factor = if is_float {
        2.0 * bound::num_operations(module) * bound::unit_roundoff(module, element)
    } else {
        0.0
    };
    for position in 0..expected.count() {
        let limit =
            factor * expected.magnitude(position).max(typical) + f64::from(f32::MIN_POSITIVE);
        let limit = if is_float { limit } else { 0.0 };
        if !agree(&expected, &found, position, limit) {
            return Err(Mismatch::new(
                format!("[{position}] = {} within {limit:.1e}", expected.show(position)),
                found.show(position),
            ));
        }
    }
    Ok(())
}

/// The median of the magnitudes of the finite floats.
fn typical_magnitude(elements: &Elements) -> f64 {
    let mut sizes: Vec<_> = (0..elements.count())
        .map(|position| elements.magnitude(position))
        .filter(|size| size.is_finite())
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes.get(sizes.len() / 2).copied().unwrap_or(0.0)
}

fn npy_at(folder: &Path, file: &str) -> Result<Tensor, Mismatch> {
    npy::load(folder.join(file)).map_err(|error| Mismatch::new("an array", error.to_string()))
}

/// The array of an input or output.
fn array(folder: &Path, value: &Value, file: &str) -> Result<Array, Mismatch> {
    of_bytes(shape(value)?, npy_at(folder, file)?.bytes().to_vec())
}

/// A float64 reference in the type of the result.
fn rounded(reference: &Tensor, shape: &ArrayShape) -> Result<Array, Mismatch> {
    let values = reference
        .to_values::<f64>()
        .ok_or_else(|| Mismatch::new("a reference in float64", reference.element().to_string()))?;
    let part = shape.element_type.part();
    let mut bytes = Vec::with_capacity(values.len() * part.bytes());
    for value in values {
        bytes.extend_from_slice(&part.encode_float(value).to_le_bytes()[..part.bytes()]);
    }
    of_bytes(shape.clone(), bytes)
}
