//! `tc-run` for HLO programs: a folder of inputs, and what to expect.

use crate::{
    command_line::{Compilation, print},
    conformance,
};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tc_backends::{
    cpu,
    hlo::{Array, Executable, locations},
    run::Error,
    runtime::npy,
};
use tc_dialects::{
    diagnostic,
    hlo::{self, ArrayShape, ElementKind},
};

/// What to do with a program.
#[derive(Debug)]
pub struct Request<'a> {
    /// The text.
    pub file: &'a Path,
    /// A folder with `in0.npy`, ..; inputs are random without one.
    pub inputs: Option<&'a Path>,
    /// A folder for `out0.npy`, ..
    pub outputs: Option<&'a Path>,
    /// Whether to compare with the expected results in the folder of the inputs.
    pub check: bool,
    /// Whether to measure the compiled program.
    pub bench: bool,
    /// Whether to print the measurement as JSON.
    pub json: bool,
    /// The seed of random inputs.
    pub seed: u64,
    /// How to compile.
    pub compilation: &'a Compilation,
}

/// Whether a file is HLO text, by its ending.
pub fn is_hlo(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "hlo")
}

/// Compiles a program for this machine and runs it.
///
/// # Errors
/// The program, an input or a result is not what it should be.
pub fn run(request: &Request) -> Result<(), Error> {
    let name = request.file.display().to_string();
    let file_error = |path: &Path| {
        let path = path.display().to_string();
        move |error| Error::File { path, error }
    };
    let bytes = fs::read(request.file).map_err(file_error(request.file))?;
    let (source, module, diagnostics) = hlo::read(&name, bytes);
    let Some(module) = module else {
        eprint!("{}", source.render_all(&diagnostics));
        return Err(Error::Diagnosed);
    };
    let context = tc_dialects::new_context();
    let (_, received) = diagnostic::collect(&context);
    let places = locations(&context, &module, &source);
    let options = request.compilation.options(cpu::Target::host(), false).cpu;
    let start = Instant::now();
    let executable = Executable::compile(&context, &module, &places, &options);
    let compile_seconds = start.elapsed().as_secs_f64();
    let executable = executable.map_err(|error| {
        for it in received.borrow().iter().filter(|it| it.is_error()) {
            let (file, line, column) = it.place.clone().unwrap_or((name.clone(), 1, 1));
            eprintln!("{file}:{line}:{column}: error: {}", it.message);
        }
        match error {
            tc_backends::hlo::Error::Compile(error) => Error::Compile(error),
            _ => Error::Diagnosed,
        }
    })?;
    let mut inputs = Vec::new();
    for (number, shape) in executable.parameters().iter().enumerate() {
        inputs.push(match request.inputs {
            Some(folder) => load(&folder.join(format!("in{number}.npy")), shape)?,
            None => random(shape, request.seed.wrapping_add(number as u64))?,
        });
    }
    let start = Instant::now();
    let results = call(&executable, &inputs)?;
    let first_call = start.elapsed().as_secs_f64();
    let mut report = String::new();
    for (number, result) in results.iter().enumerate() {
        let extents: Vec<_> = result.shape.dims.iter().map(i64::to_string).collect();
        report += &format!("out{number}: {}[{}]\n", result.shape.element_type, extents.join(","));
    }
    if request.check {
        let Some(folder) = request.inputs else {
            return Err(Error::Usage("'--check=expected' needs '--inputs DIR'".to_string()));
        };
        conformance::check_hlo_results(folder, &module, &inputs, &results)
            .map_err(Error::Mismatch)?;
        report += &format!("{} results agree with the expected ones\n", results.len());
    }
    if let Some(folder) = request.outputs {
        fs::create_dir_all(folder).map_err(file_error(folder))?;
        for (number, result) in results.iter().enumerate() {
            let tensors = tc_backends::hlo::to_file_tensor(result)
                .map_err(|error| Error::Refused(error.to_string()))?;
            npy::save(folder.join(format!("out{number}.npy")), &tensors)?;
        }
    }
    let timing = if request.bench {
        let (min, median, calls) = measure(&executable, &inputs)?;
        if request.json {
            let line = serde_json::json!({
                "name": module.name,
                "seconds_min": min,
                "seconds_median": median,
                "compile_seconds": compile_seconds,
                "threads": options.threads,
            });
            return print(format!("{line}\n").as_bytes());
        }
        format!("{:.3} ms (median {:.3} of {calls} calls)", min * 1e3, median * 1e3)
    } else {
        format!("{:.3} ms", first_call * 1e3)
    };
    print(format!("{report}{timing}, compiled in {:.0} ms\n", compile_seconds * 1e3).as_bytes())
}

fn call(executable: &Executable, inputs: &[Array]) -> Result<Vec<Array>, Error> {
    executable.run(inputs).map_err(|error| Error::Refused(error.to_string()))
}

/// The least and the median time of a call in seconds, after one to warm up, and how many calls
/// there were: a second's worth, at least 5.
fn measure(executable: &Executable, inputs: &[Array]) -> Result<(f64, f64, usize), Error> {
    call(executable, inputs)?;
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || (start.elapsed() < Duration::from_secs(1) && times.len() < 10_000) {
        let start = Instant::now();
        call(executable, inputs)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok((times[0], times[times.len() / 2], times.len()))
}

/// An array from a file of the same bytes: `bf16` as 16-bit integers, smaller types as bytes.
fn load(path: &Path, shape: &ArrayShape) -> Result<Array, Error> {
    let tensor = npy::load(path)?;
    let mut expected: Vec<_> = shape.dims.iter().map(|dim| *dim as usize).collect();
    if shape.element_type.is_complex() {
        expected.push(2);
    }
    if tensor.shape() != expected || shape.num_bytes() != Some(tensor.bytes().len() as i64) {
        return Err(Error::Refused(format!(
            "'{}' holds {}{:?}; expected {}{:?}",
            path.display(),
            tensor.element(),
            tensor.shape(),
            shape.element_type,
            shape.dims
        )));
    }
    Ok(Array { shape: shape.clone(), bytes: tensor.bytes().to_vec() })
}

/// Floats between -1 and 1, small integers, and truth values.
fn random(shape: &ArrayShape, seed: u64) -> Result<Array, Error> {
    let element = shape.element_type;
    let count = shape.num_bytes().filter(|bytes| *bytes < 1 << 40);
    let Some(count) = count.map(|bytes| bytes as usize / element.part().bytes()) else {
        return Err(Error::Refused(format!("an input of {:?} elements is too large", shape.dims)));
    };
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = || {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::with_capacity(count * element.part().bytes());
    for _ in 0..count {
        let bits = next() >> 11;
        let value = match element.part().kind() {
            ElementKind::Pred => bits & 1,
            ElementKind::Signed | ElementKind::Unsigned if element.bits() < 8 => bits & 1,
            ElementKind::Signed | ElementKind::Unsigned => bits % 10,
            _ => element.part().encode_float(bits as f64 / (1_u64 << 52) as f64 - 1.0),
        };
        bytes.extend_from_slice(&value.to_le_bytes()[..element.part().bytes()]);
    }
    Ok(Array { shape: shape.clone(), bytes })
}
