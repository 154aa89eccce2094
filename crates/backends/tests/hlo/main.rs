//! Compiled HLO modules against what the text says, computed in other ways.

mod complex;
mod custom_calls;
mod fourier;
mod generator;
mod growth;
#[path = "../support/guard.rs"]
mod guard;
mod instructions;
mod lapack;
mod linear_algebra;
#[path = "../support/random.rs"]
mod random;
mod random_bits;
mod random_modules;
mod reference;
#[path = "../support/scheduled.rs"]
mod scheduled;
#[path = "../support/schedules.rs"]
mod schedules;
mod shared_results;
mod special_values;

use guard::{Side, guarded, side_of_threads};
use tc_backends::{
    Codegen, Error, Request, Session, Source, cpu,
    languages::hlo::{Array, arrays},
};
use tc_dialects::{
    element::ElementType,
    hlo::{self, ArrayShape},
};

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The results of a module, or the first thing said against it. They may not depend on what memory holds
/// before it is written.
fn try_run(text: &str, inputs: &[Array]) -> Result<Vec<Array>, String> {
    run_in(&Session::new("cpu").expect("this machine"), &Request::default(), text, inputs)
}

/// [`try_run`], compiled in this way.
fn run_in(
    session: &Session,
    request: &Request,
    text: &str,
    inputs: &[Array],
) -> Result<Vec<Array>, String> {
    let (_, module, diagnostics) = hlo::read("test.hlo", text.as_bytes().to_vec());
    let Some(module) = module else { return Err(diagnostics[0].message.clone()) };
    let program = session.open(Source::new("test.hlo", text)).expect("read before");
    let executable = session.compile(&*program, request).map_err(|error| match error {
        // The message without its place and without lines of the source.
        Error::Program(text) => {
            let line = text.lines().next().unwrap_or_default();
            line.split_once("error: ").map_or(line, |(_, message)| message).to_string()
        }
        error => error.to_string(),
    })?;
    let [high, low] = [Side::Start, Side::End].map(|side| {
        let run = || {
            let inputs: Vec<_> = inputs.iter().map(|it| it.to_tensor().expect("it fits")).collect();
            executable.run(&inputs.iter().collect::<Vec<_>>())
        };
        let side = side_of_threads(side, session.codegen().threads);
        let results = guarded(side, run).0.map_err(|error| error.to_string())?;
        let [_, shapes] = arrays(&module);
        let results = shapes.into_iter().zip(&results).map(|(shape, it)| Array::of(shape, it));
        Ok::<Vec<_>, String>(results.collect())
    });
    let (high, low) = (high?, low?);
    assert!(
        high == low,
        "results depend on memory that was not written: {high:?} and {low:?}\n{text}"
    );
    Ok(high)
}

/// A way to run a module that has to run: [`run`] or [`run_strict`].
type Run = fn(&str, &[Array]) -> Vec<Array>;

/// The results of a module that has to run.
fn run(text: &str, inputs: &[Array]) -> Vec<Array> {
    try_run(text, inputs).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// [`run`] with `--strict-fp`, which keeps subnormal numbers.
fn run_strict(text: &str, inputs: &[Array]) -> Vec<Array> {
    let codegen = Codegen { strict_fp: true, ..Codegen::default() };
    let session = Session::with_backend(cpu::BACKEND, codegen);
    run_in(&session, &Request::default(), text, inputs)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An array of integers, from their low bits.
fn integers(element: ElementType, dims: &[i64], values: &[u64]) -> Array {
    let width = element.bytes();
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect();
    Array { shape: ArrayShape::new(element, dims), bytes }
}

/// An array of floats, or of complex numbers from pairs.
fn floats(element: ElementType, dims: &[i64], values: &[f64]) -> Array {
    let part = element.part();
    let encode = |value: &f64| part.encode_float(*value).to_le_bytes()[..part.bytes()].to_vec();
    let bytes = values.iter().flat_map(encode).collect();
    Array { shape: ArrayShape::new(element, dims), bytes }
}

/// The values of floats, each part of a complex number on its own.
fn reals(array: &Array) -> Vec<f64> {
    let part = array.shape.element_type.part();
    bits(array).into_iter().map(|bits| part.decode_float(bits)).collect()
}

/// The bits of the elements, each part of a complex number on its own.
fn bits(array: &Array) -> Vec<u64> {
    let width = array.shape.element_type.part().bytes();
    let widen = |bytes: &[u8]| {
        let mut all = [0; 8];
        all[..width].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    };
    array.bytes.chunks_exact(width).map(widen).collect()
}
