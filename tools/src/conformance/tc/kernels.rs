//! Kernels with published problem sizes: compiled code against the interpreter, at sizes
//! derived from the published ones that are small enough to interpret.
//!
//! The inputs are random, with elements that are used as indices inside what they index.
//! Every element must be within the error bound that the interpreter computes for it; where
//! a case gives a relative precision, also the largest difference must be within that times
//! the largest magnitude of an input, which is how the original checks were made.

use super::program::{Runnable, Session, Variant};
use crate::conformance::{
    Options, Outcome, Status,
    row::{Mismatch, array, field, integer, object, optional, string},
    sizes::{Algebra, show},
};
use serde_json::Value;
use tc_backends::{
    cpu::{self, Compiled},
    interp::{Outcome as Reference, compare},
    run::{Shapes, Sizes, random_inputs},
    runtime::Tensor,
};
use tc_ir::Var;

/// The largest extents that are tried first when published sizes are too large.
const MAX_CAP: i64 = 64;

pub(super) fn run(row: &Value, options: &Options) -> Result<Outcome, Mismatch> {
    let session = Session::new();
    let runnable = session.open(row)?;
    let precision = optional(row, "relative_precision", string)?;
    let mut chosen: Vec<(Sizes, Shapes)> = Vec::new();
    for published in field(row, "sizes", array)? {
        let published = object(published)?.iter();
        let published = published.map(|(name, value)| Ok((name.clone(), integer(value)?)));
        let published = runnable.own_sizes(&published.collect::<Result<Sizes, Mismatch>>()?);
        let small = reduced(&runnable, &published, options.work_limit)?;
        if !chosen.iter().any(|(sizes, _)| *sizes == small.0) {
            chosen.push(small);
        }
    }
    let Some(((first, _), expected)) = chosen.first().zip(chosen.iter().map(|it| show(&it.0)).reduce(|a, b| a + "; " + &b)) else {
        return Err(Mismatch::new("published sizes", "none"));
    };
    let mut largest_ratio: f64 = 0.0;
    for variant in Variant::ALL {
        let module = runnable.lower(first, variant)?;
        let compiled = cpu::Program::lower(&module, &cpu::Options::default())
            .and_then(|program| program.jit())
            .map_err(|error| session.stopped(&format!("code for {}", variant.what), error))?;
        // Code for static sizes is for the first only.
        let count = if variant.dynamic { chosen.len() } else { 1 };
        for (sizes, shapes) in &chosen[..count] {
            let run = Run { runnable: &runnable, sizes, shapes, precision, variant };
            largest_ratio = largest_ratio.max(run.check(&compiled)?);
        }
    }
    let got = format!("at most {largest_ratio:.3} of the error bound");
    Ok(Outcome::new(Status::Passed, format!("the interpreter's results at {expected}"), got))
}

/// The published sizes if they are small enough, else the largest that are, by a cap that
/// differs between sizes so that mixed up dimensions show.
fn reduced(
    runnable: &Runnable,
    published: &Sizes,
    limit: u64,
) -> Result<(Sizes, Shapes), Mismatch> {
    let capped = |cap: i64| {
        let value = |(number, (name, value)): (usize, (&String, &i64))| {
            (name.clone(), (*value).min(cap + number as i64 % 3))
        };
        published.iter().enumerate().map(value).collect()
    };
    let mut refused = None;
    for sizes in std::iter::once(published.clone()).chain((1..=MAX_CAP).rev().map(capped)) {
        match runnable.program.shapes(runnable.def, &sizes) {
            Ok(shapes) if work(runnable, &sizes, &shapes) <= u128::from(limit) => {
                return Ok((sizes, shapes));
            }
            Ok(_) => {}
            Err(error) => refused = Some(error),
        }
    }
    let got = refused.map_or("none".to_string(), |error| error.to_string());
    Err(Mismatch::new(format!("sizes of at most {limit} points and elements"), got))
}

/// The points of all statements, or the elements of all tensors if these are more.
fn work(runnable: &Runnable, sizes: &Sizes, shapes: &Shapes) -> u128 {
    let algebra = Algebra::new(runnable.def.sizes().into_iter().map(|(name, ..)| name));
    let product = |extents: &mut dyn Iterator<Item = u128>| extents.fold(1u128, u128::saturating_mul);
    let tensors = shapes.inputs.iter().chain(&shapes.outputs);
    let tensors = tensors.map(|(_, _, shape)| product(&mut shape.iter().map(|it| *it as u128)));
    let points = runnable.def.comprehensions().into_iter().map(|statement| {
        let Some(domain) = statement.domain(&algebra.ir) else { return u128::MAX };
        let vars = domain.vars().filter(|(var, _)| !matches!(var, Var::Runtime(_)));
        product(&mut vars.map(|(_, variable)| {
            let bound = |bound: Option<_>| bound.and_then(|it| algebra.eval(it, sizes));
            match (bound(variable.lower), bound(variable.upper)) {
                (Some(lower), Some(upper)) => (i128::from(upper) - i128::from(lower) + 1).max(0) as u128,
                _ => u128::MAX,
            }
        }))
    });
    points.fold(0, u128::saturating_add).max(tensors.fold(0, u128::saturating_add))
}

/// One run of compiled code.
struct Run<'a, 'c> {
    runnable: &'a Runnable<'c>,
    sizes: &'a Sizes,
    shapes: &'a Shapes,
    precision: Option<&'a str>,
    variant: Variant,
}

impl Run<'_, '_> {
    /// Compares the results; how much of the error bound was used.
    fn check(&self, compiled: &Compiled) -> Result<f64, Mismatch> {
        let Runnable { session, def, program } = self.runnable;
        let how = format!("{} at {}", self.variant.what, show(self.sizes));
        let stopped = |error: &dyn std::fmt::Display| session.stopped(&format!("a result ({how})"), error);
        let drawn = random_inputs(*def, self.shapes, self.sizes, 1, |_| false);
        let mut drawn = drawn.map_err(|error| stopped(&error))?;
        let inputs: Option<Vec<Tensor>> =
            self.shapes.inputs.iter().map(|(name, ..)| drawn.remove(name)).collect();
        let inputs = inputs.ok_or_else(|| Mismatch::new(format!("inputs ({how})"), "none"))?;
        let references = program.interpret(*def, &inputs).map_err(|error| stopped(&error))?;
        let function = compiled.function(def.name());
        let function = function.ok_or_else(|| Mismatch::new(format!("a function ({how})"), "none"))?;
        let arguments: Vec<_> = inputs.iter().collect();
        let outputs = function.run(&arguments).map_err(|error| stopped(&error))?;
        let mut largest_ratio: f64 = 0.0;
        for (((name, _, shape), reference), output) in
            self.shapes.outputs.iter().zip(&references).zip(&outputs)
        {
            if output.shape() != shape {
                return Err(Mismatch::new(
                    format!("extents {shape:?} of '{name}' ({how})"),
                    format!("{:?}", output.shape()),
                ));
            }
            let stats = compare(reference, output)
                .map_err(|error| Mismatch::new(format!("'{name}' as interpreted ({how})"), error.to_string()))?;
            largest_ratio = largest_ratio.max(stats.max_error_ratio);
            self.check_precision(name, &how, &inputs, reference, output)?;
        }
        Ok(largest_ratio)
    }

    /// The tolerance of the original check: a number times an expression over sizes.
    fn check_precision(
        &self,
        name: &str,
        how: &str,
        inputs: &[Tensor],
        reference: &Reference,
        output: &Tensor,
    ) -> Result<(), Mismatch> {
        let Some(text) = self.precision else { return Ok(()) };
        let malformed = || Mismatch::new("a precision such as '1e-6 * M*N'", format!("'{text}'"));
        let (factor, sizes) = text.split_once('*').unwrap_or((text, "1"));
        let factor: f64 = factor.trim().parse().map_err(|_| malformed())?;
        let algebra = Algebra::new(self.sizes.keys().cloned());
        let count = algebra.eval(algebra.parse(sizes)?, self.sizes).ok_or_else(malformed)?;
        let magnitudes = inputs.iter().flat_map(Tensor::numbers).map(|it| it.to_f64().abs());
        let tolerance = factor * count as f64 * magnitudes.fold(0.0, f64::max);
        let differences = output.numbers().enumerate();
        let differences = differences
            .map(|(position, number)| (number.to_f64() - reference.number(position).to_f64()).abs());
        // A difference that is nan is no difference within the tolerance.
        match differences.into_iter().find(|difference| !(*difference <= tolerance)) {
            None => Ok(()),
            Some(difference) => Err(Mismatch::new(
                format!("'{name}' within {tolerance:e} ({how})"),
                format!("a difference of {difference:e}"),
            )),
        }
    }
}
