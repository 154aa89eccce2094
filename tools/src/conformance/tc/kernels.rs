//! Kernels with published problem sizes: compiled code against the interpreter, at sizes
//! derived from the published ones that are small enough to interpret.
//!
//! The inputs are random, with elements that are used as indices inside what they index.
//! Every element must be within the error bound that the interpreter computes for it; where
//! a case gives a relative precision, also the largest difference must be within that times
//! the largest magnitude of a float input, which is how the original checks were made.

use super::program::{Runnable, Session, Variant};
use crate::conformance::{
    Options, Outcome, Status,
    row::{Mismatch, array, field, integer, object, optional, string},
    sizes::{Algebra, show},
};
use serde_json::Value;
use std::collections::BTreeMap;
use tc_backends::{
    Compiled,
    interp::{Outcome as Reference, compare},
    program::{Entry, Sizes},
    runtime::Tensor,
};
use tc_ir::Var;

/// The largest extents that are tried first when published sizes are too large.
const MAX_CAP: i64 = 64;

pub(super) fn run(row: &Value, options: &Options) -> Result<Outcome, Mismatch> {
    let session = Session::new();
    let runnable = session.open(row)?;
    let precision = optional(row, "relative_precision", string)?;
    let mut chosen: Vec<(Sizes, Entry)> = Vec::new();
    for published in field(row, "sizes", array)? {
        let published = object(published)?.iter();
        let published = published.map(|(name, value)| Ok((name.clone(), integer(value)?)));
        let published = runnable.own_sizes(&published.collect::<Result<Sizes, Mismatch>>()?);
        let small = reduced(&runnable, &published, options.work_limit)?;
        if !chosen.iter().any(|(sizes, _)| *sizes == small.0) {
            chosen.push(small);
        }
    }
    let Some((first, _)) = chosen.first() else {
        return Err(Mismatch::new("published sizes", "none"));
    };
    let samples = chosen.iter().map(|(sizes, entry)| Sample::draw(&runnable, sizes, entry));
    let samples = samples.collect::<Result<Vec<_>, _>>()?;
    let mut largest_ratio: f64 = 0.0;
    for variant in Variant::ALL {
        let compiled = runnable.compile(&runnable.lower(first, variant)?, variant.what)?;
        // Code for static sizes is for the first only.
        let count = if variant.dynamic { samples.len() } else { 1 };
        for sample in &samples[..count] {
            let how = format!("{} at {}", variant.what, show(sample.sizes));
            let ratio = sample.check(&runnable, &compiled, precision, &how)?;
            largest_ratio = largest_ratio.max(ratio);
        }
    }
    let got = format!("at most {largest_ratio:.3} of the error bound");
    let sizes: Vec<_> = chosen.iter().map(|(sizes, _)| show(sizes)).collect();
    let expected = format!("the interpreter's results at {}", sizes.join("; "));
    Ok(Outcome::new(Status::Passed, expected, got))
}

/// The published sizes if they are small enough, else the largest that are, by a cap that
/// differs between sizes so that mixed up dimensions show.
fn reduced(runnable: &Runnable, published: &Sizes, limit: u64) -> Result<(Sizes, Entry), Mismatch> {
    let capped = |cap: i64| {
        let value = |(number, (name, value)): (usize, (&String, &i64))| {
            (name.clone(), (*value).min(cap + number as i64 % 3))
        };
        published.iter().enumerate().map(value).collect()
    };
    let mut refused = None;
    for sizes in std::iter::once(published.clone()).chain((1..=MAX_CAP).rev().map(capped)) {
        match runnable.entry(&sizes) {
            Ok(entry) if work(runnable, &sizes, &entry) <= u128::from(limit) => {
                return Ok((sizes, entry));
            }
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
    }
    let got = refused.map_or("none".to_string(), |error| error.to_string());
    Err(Mismatch::new(format!("sizes of at most {limit} points and elements"), got))
}

/// The points of all statements, or the elements of all tensors if these are more.
fn work(runnable: &Runnable, sizes: &Sizes, entry: &Entry) -> u128 {
    let algebra = Algebra::new(runnable.def.sizes().into_iter().map(|(name, ..)| name));
    let product =
        |extents: &mut dyn Iterator<Item = u128>| extents.fold(1u128, u128::saturating_mul);
    let tensors = entry.inputs.iter().chain(&entry.outputs);
    let tensors = tensors.map(|it| product(&mut it.dims().into_iter().map(|it| it as u128)));
    let points = runnable.def.comprehensions().into_iter().map(|statement| {
        let Some(domain) = statement.domain(&algebra.ir) else { return u128::MAX };
        let vars = domain.vars().filter(|(var, _)| !matches!(var, Var::Runtime(_)));
        product(&mut vars.map(|(_, variable)| {
            let bound = |bound: Option<_>| bound.and_then(|it| algebra.eval(it, sizes));
            match (bound(variable.lower), bound(variable.upper)) {
                (Some(lower), Some(upper)) => {
                    (i128::from(upper) - i128::from(lower) + 1).max(0) as u128
                }
                _ => u128::MAX,
            }
        }))
    });
    points.fold(0, u128::saturating_add).max(tensors.fold(0, u128::saturating_add))
}

/// Sizes with random inputs, and what the interpreter computes for them.
struct Sample<'a> {
    sizes: &'a Sizes,
    entry: &'a Entry,
    inputs: Vec<Tensor>,
    references: Vec<Reference>,
}

impl<'a> Sample<'a> {
    fn draw(runnable: &Runnable, sizes: &'a Sizes, entry: &'a Entry) -> Result<Self, Mismatch> {
        let what = || format!("inputs at {}", show(sizes));
        let inputs = entry.complete(BTreeMap::new(), 1);
        let inputs = inputs.map_err(|error| runnable.session.stopped(&what(), error))?;
        let references = runnable.interpret(&inputs)?;
        Ok(Self { sizes, entry, inputs, references })
    }

    /// Compares the results of compiled code; how much of the error bound was used.
    fn check(
        &self,
        runnable: &Runnable,
        compiled: &Compiled,
        precision: Option<&str>,
        how: &str,
    ) -> Result<f64, Mismatch> {
        let function = compiled.function(runnable.def.name());
        let function =
            function.ok_or_else(|| Mismatch::new(format!("a function ({how})"), "none"))?;
        let arguments: Vec<_> = self.inputs.iter().collect();
        let outputs = function
            .run(&arguments)
            .map_err(|error| runnable.session.stopped(&format!("a result ({how})"), error))?;
        let mut largest_ratio: f64 = 0.0;
        for ((expected, reference), output) in
            self.entry.outputs.iter().zip(&self.references).zip(&outputs)
        {
            let (name, shape) = (&expected.name, expected.dims());
            if output.shape() != shape {
                return Err(Mismatch::new(
                    format!("extents {shape:?} of '{name}' ({how})"),
                    format!("{:?}", output.shape()),
                ));
            }
            let stats = compare(reference, output).map_err(|error| {
                Mismatch::new(format!("'{name}' as interpreted ({how})"), error.to_string())
            })?;
            // Then any result would pass.
            if stats.num_uncertain == stats.num_elements {
                return Err(Mismatch::new(format!("certain values of '{name}' ({how})"), "none"));
            }
            largest_ratio = largest_ratio.max(stats.max_error_ratio);
            if let Some(precision) = precision {
                self.check_precision(precision, name, how, reference, output)?;
            }
        }
        Ok(largest_ratio)
    }

    /// The tolerance of the original check: a number times an expression over sizes.
    fn check_precision(
        &self,
        text: &str,
        name: &str,
        how: &str,
        reference: &Reference,
        output: &Tensor,
    ) -> Result<(), Mismatch> {
        let malformed = || Mismatch::new("a precision such as '1e-6 * M*N'", format!("'{text}'"));
        let (factor, sizes) = text.split_once('*').unwrap_or((text, "1"));
        let factor: f64 = factor.trim().parse().map_err(|_| malformed())?;
        let algebra = Algebra::new(self.sizes.keys().cloned());
        let count = algebra.eval(algebra.parse(sizes)?, self.sizes).ok_or_else(malformed)?;
        let floats = self.inputs.iter().filter(|it| it.element().is_float());
        let magnitudes = floats.flat_map(Tensor::numbers).map(|it| it.to_f64().abs());
        let tolerance = factor * count as f64 * magnitudes.fold(0.0, f64::max);
        let differences = output.numbers().enumerate();
        let differences = differences.map(|(position, number)| {
            (number.to_f64() - reference.number(position).to_f64()).abs()
        });
        // A difference that is nan is none within the tolerance.
        let mut outside = differences.filter(|it| it.is_nan() || tolerance < *it);
        match outside.next() {
            None => Ok(()),
            Some(difference) => Err(Mismatch::new(
                format!("'{name}' within {tolerance:e} ({how})"),
                format!("a difference of {difference:e}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(row: &Value) -> (Status, String, String) {
        let outcome = run(row, &Options::default()).unwrap_or_else(Outcome::from);
        (outcome.status, outcome.expected, outcome.got)
    }

    fn row() -> Value {
        json!({
            "tc": "def f(float(N, K) A, int32(M, L) I) -> (O) { O(m, k) +=! exp(A(I(m, l), k)) }",
            "def": "f",
            "sizes": [{ "N": 10000000, "K": 64, "M": 128, "L": 50, "X": 7 }, { "N": 2, "K": 1, "M": 1, "L": 3 }],
            "relative_precision": "1e-6 * L*2",
        })
    }

    #[test]
    fn published_sizes_are_reduced() {
        let (status, expected, got) = outcome(&row());
        assert_eq!(status, Status::Passed, "{expected}, {got}");
        let sizes = expected.strip_prefix("the interpreter's results at ").unwrap();
        assert_eq!(sizes, "K = 24, L = 25, M = 26, N = 24; K = 1, L = 3, M = 1, N = 2");
    }

    #[test]
    fn what_cannot_be_run_is_explained() {
        let changes = [
            ("/sizes", json!([]), "published sizes"),
            ("/sizes/1", json!({ "N": 1 }), "sizes of at most 16384 points"),
            ("/sizes/0", json!(1), "an object"),
            ("/relative_precision", json!("L"), "a precision such as"),
            ("/relative_precision", json!("1e-6 * Q"), "an expression over the sizes"),
            ("/relative_precision", json!("1e-30"), "'O' within "),
        ];
        for (place, value, message) in changes {
            let mut row = row();
            *row.pointer_mut(place).expect("a field of the row") = value;
            let (status, expected, got) = outcome(&row);
            assert_eq!(status, Status::Failed, "{place}");
            assert!(expected.starts_with(message), "{place}: {expected}, {got}");
        }
    }
}
