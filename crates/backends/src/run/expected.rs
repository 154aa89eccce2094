//! Comparison with expected files.

use crate::{
    interp::Outcome,
    program::Error,
    runtime::{Number, Tensor, npy},
};
use std::path::Path;

/// Compares one output with `expected/NAME.npy` or `NAME.expected.npy` in a folder. The
/// tolerance is the error bound that the interpreter found for this program and these
/// inputs (`outcome`). Integers have to be equal, and uncertain elements are not compared. Returns a description of the
/// comparison.
///
/// # Errors
/// There is no such file, or an element is outside its bound.
pub fn check_expected(
    outcome: &Outcome,
    folder: &Path,
    name: &str,
    found: &Tensor,
) -> Result<String, Error> {
    let candidates = [
        folder.join("expected").join(format!("{name}.npy")),
        folder.join(format!("{name}.expected.npy")),
    ];
    let Some(path) = candidates.iter().find(|path| path.exists()) else {
        return Err(Error::Rejected(format!(
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
    let mut num_uncertain = 0;
    for position in 0..found.num_elements() {
        let (Some(got), Some(want)) = (found.get(position), expected.get(position)) else {
            continue;
        };
        if outcome.is_uncertain(position) {
            num_uncertain += 1;
            continue;
        }
        // Both are this far from the exact value.
        let bound = 2.0 * outcome.error_bound(position);
        if !agree(got, want, bound) {
            return Err(Error::Mismatch(format!(
                "output '{name}' is wrong at position {position}: got {}, expected {} within {bound:e}",
                got.to_f64(),
                want.to_f64()
            )));
        }
    }
    let compared = found.num_elements() - num_uncertain;
    let mut text = format!("{} on {compared} elements", path.display());
    if 0 < num_uncertain {
        text += &format!(" ({num_uncertain} more depend on rounding)");
    }
    Ok(text)
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
