//! Comparison with expected files.

use super::{Error, Session};
use crate::{
    interp::Outcome,
    runtime::{Number, Tensor, npy},
};
use std::path::Path;
use tc_dialects::tc::Def;

/// Compares one output with `expected/NAME.npy` or `NAME.expected.npy` in a folder. The
/// tolerance is the error bound that the interpreter computes for this program and these
/// inputs; integers have to be equal. Returns what was compared, for a reader.
///
/// # Errors
/// There is no such file, or an element is outside its bound.
pub fn check_expected(
    session: &Session,
    def: Def,
    inputs: &[Tensor],
    folder: &Path,
    name: &str,
    found: &Tensor,
) -> Result<String, Error> {
    let candidates = [
        folder.join("expected").join(format!("{name}.npy")),
        folder.join(format!("{name}.expected.npy")),
    ];
    let Some(path) = candidates.iter().find(|path| path.exists()) else {
        return Err(Error::Usage(format!(
            "there is no expected result for output '{name}'; looked for {} and {}",
            candidates[0].display(),
            candidates[1].display()
        )));
    };
    let expected = npy::load(path)?;
    if expected.shape() != found.shape() {
        return Err(Error::Mismatch(format!(
            "output '{name}' has extents {:?}, but {} has {:?}",
            found.shape(),
            path.display(),
            expected.shape()
        )));
    }
    let number = def.outputs().iter().position(|output| *output == name);
    let outcome: Option<Outcome> = number.and_then(|number| {
        // Bounds are a by-product of interpretation; without it, results must be equal.
        session.interpret(def, inputs).ok()?.into_iter().nth(number)
    });
    for position in 0..found.num_elements() {
        let (Some(got), Some(want)) = (found.get(position), expected.get(position)) else {
            continue;
        };
        let bound = outcome.as_ref().map_or(0.0, |outcome| {
            if outcome.is_uncertain(position) {
                f64::INFINITY
            } else {
                2.0 * outcome.error_bound(position)
            }
        });
        if !agree(got, want, bound) {
            return Err(Error::Mismatch(format!(
                "output '{name}' is wrong at position {position}: got {}, expected {} within {bound:e}",
                got.to_f64(),
                want.to_f64()
            )));
        }
    }
    Ok(format!("{}, {} elements", path.display(), found.num_elements()))
}

fn agree(got: Number, want: Number, bound: f64) -> bool {
    match (got, want) {
        (Number::Signed(got), Number::Signed(want)) => got == want,
        (Number::Unsigned(got), Number::Unsigned(want)) => got == want,
        _ => {
            let (got, want) = (got.to_f64(), want.to_f64());
            got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= bound
        }
    }
}
