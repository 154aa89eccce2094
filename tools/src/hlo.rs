//! HLO programs in `tc-run` and `tc-compile`.

use crate::{
    command_line::{self, Execution, Text, make_folder, print, print_ir},
    conformance,
    cost::{Costs, Measured, counted},
    profile::Report,
};
use melior::{Context, diagnostic::DiagnosticHandlerId};
use std::{path::Path, time::Instant};
use tc_backends::{
    hlo::{Array, Executable, locations, to_tensors},
    run::{Error, Sizes, sample},
    runtime::npy,
};
use tc_dialects::{
    element::ElementKind,
    hlo::{self, ArrayShape},
    mlir,
    report::{self, Printer},
    text::SourceFile,
};

/// A program.
#[derive(Debug)]
pub struct Program {
    source: SourceFile,
    module: hlo::Module,
}

impl Program {
    /// Reads a text. What is wrong with it goes to the standard error.
    ///
    /// # Errors
    /// The text is wrong.
    pub fn read(text: Text) -> Result<Self, Error> {
        let (source, module, diagnostics) = hlo::read(&text.name, text.contents);
        match module {
            Some(module) => Ok(Self { source, module }),
            None => {
                eprint!("{}", source.render_all(&diagnostics));
                Err(Error::Diagnosed)
            }
        }
    }

    /// A program of a module that comes from a source.
    pub(crate) fn new(source: SourceFile, module: hlo::Module) -> Self {
        Self { source, module }
    }

    /// Fused `imap` operations, in a function with the name of the module as C can spell it, so
    /// that objects of several modules can be linked. What is not supported goes to the standard
    /// error.
    ///
    /// # Errors
    /// An instruction is not supported.
    pub fn lower<'c>(&self, context: &'c Context) -> Result<melior::ir::Module<'c>, Error> {
        report_errors(context, &self.source);
        let places = locations(context, &self.module, &self.source);
        let lowered = tc_backends::hlo::lower(context, &self.module, &places).map_err(error)?;
        let name = tc_backends::axon::spelled(&self.module.name);
        for function in mlir::ops(mlir::block_ref(lowered.body())) {
            if mlir::string_attr(function, "sym_name") == Some("main") {
                mlir::set_attribute(function, "sym_name", mlir::string(context, &name));
            }
        }
        Ok(lowered)
    }
}

impl Program {
    /// Compares results with those of the reference interpreter on the operations that the instructions
    /// become, before any optimization.
    fn check(&self, inputs: &[Array], results: &[Array]) -> Result<String, Error> {
        let context = tc_dialects::new_context();
        report_errors(&context, &self.source);
        let places = locations(&context, &self.module, &self.source);
        let converted =
            tc_backends::hlo::convert(&context, &self.module, &places).map_err(error)?;
        let mut tensors = Vec::new();
        for input in inputs {
            tensors.extend(to_tensors(input).map_err(error)?);
        }
        let outcomes = tc_backends::hlo::interpret(&converted, &tensors)?;
        let mut outcomes = outcomes.iter();
        let mut report = String::new();
        for (number, result) in results.iter().enumerate() {
            let parts = to_tensors(result).map_err(error)?;
            let suffixes: &[&str] = if parts.len() == 1 { &[""] } else { &["_re", "_im"] };
            for ((part, suffix), outcome) in parts.iter().zip(suffixes).zip(outcomes.by_ref()) {
                let name = format!("out{number}{suffix}");
                report += &command_line::check(&name, outcome, part, None)?;
            }
        }
        Ok(report)
    }
}

/// Prints what goes wrong in a context, with the lines of the source.
pub(crate) fn report_errors(context: &Context, source: &SourceFile) -> DiagnosticHandlerId {
    let mut printer = Printer::default();
    printer.add_source(source.name(), source.text().as_bytes());
    report::attach(context, move |received| {
        if received.is_error() {
            eprint!("{}", printer.render(&received));
        }
    })
}

pub(crate) fn error(error: tc_backends::hlo::Error) -> Error {
    match error {
        tc_backends::hlo::Error::Compile(error) => Error::Compile(error),
        tc_backends::hlo::Error::Call(reason) => Error::Refused(reason),
        tc_backends::hlo::Error::Diagnosed => Error::Diagnosed,
    }
}

/// Compiles a program for this machine and runs it.
///
/// # Errors
/// The program, an input or a result is not what it should be.
pub fn run(program: &Program, execution: &Execution) -> Result<(), Error> {
    let input = |number: usize, shape: &ArrayShape| match &execution.inputs {
        Some(folder) => load(&folder.join(format!("in{number}.npy")), shape),
        None => random(&format!("in{number}"), shape, execution.seed.wrapping_add(number as u64)),
    };
    let expected = execution.expected()?;
    let check = |inputs: &[Array], results: &[Array]| {
        let Some(folder) = expected else { return program.check(inputs, results) };
        conformance::check_hlo_results(folder, &program.module, inputs, results)
            .map_err(Error::Mismatch)?;
        Ok(format!("{} results agree with the expected ones\n", results.len()))
    };
    execute(program, execution, &input, &check, &shown)
}

/// The type of an array as HLO spells it.
pub(crate) fn shown(shape: &ArrayShape) -> String {
    let extents: Vec<_> = shape.dims.iter().map(i64::to_string).collect();
    format!("{}[{}]", shape.element_type, extents.join(","))
}

/// Refuses a run whose parameters and results there is no memory for: the arrays, and the tensors that
/// compiled code takes.
fn check_memory(executable: &Executable) -> Result<(), Error> {
    let shapes = executable.parameters().iter().chain(executable.result_shapes());
    let bytes = shapes.map(ArrayShape::num_bytes).try_fold(0, |sum: i64, it| sum.checked_add(it?));
    let twice = bytes.and_then(|bytes| usize::try_from(bytes).ok()?.checked_mul(2));
    match twice.map(|twice| Vec::<u8>::new().try_reserve_exact(twice)) {
        Some(Ok(())) => Ok(()),
        _ => Err(Error::Refused(match bytes {
            Some(bytes) => format!(
                "there is no memory for the parameters and results, which are {bytes} bytes, and are held twice"
            ),
            None => "there is no memory for the parameters and results".to_string(),
        })),
    }
}

/// The input of a number.
type Input<'a> = dyn Fn(usize, &ArrayShape) -> Result<Array, Error> + 'a;
/// What is to be said of the results for some inputs.
type Checked<'a> = dyn Fn(&[Array], &[Array]) -> Result<String, Error> + 'a;

/// Compiles a program, runs it on some inputs, and reports what came of it, with
/// what `check` says if results are to be checked. `shown` writes the types of results.
pub(crate) fn execute(
    program: &Program,
    execution: &Execution,
    input: &Input,
    check: &Checked,
    shown: &dyn Fn(&ArrayShape) -> String,
) -> Result<(), Error> {
    let module = &program.module;
    let context = tc_dialects::new_context();
    let (backend, codegen) = execution.target()?;
    let start = Instant::now();
    let lowered = program.lower(&context)?;
    let lower_seconds = start.elapsed().as_secs_f64();
    print_ir(execution, &lowered)?;
    let start = Instant::now();
    let executable = Executable::of_lowered(module, &lowered, backend, &codegen).map_err(error)?;
    let compile_seconds = lower_seconds + start.elapsed().as_secs_f64();
    check_memory(&executable)?;
    let mut inputs = Vec::new();
    for (number, shape) in executable.parameters().iter().enumerate() {
        inputs.push(input(number, shape)?);
    }
    let mut buffers = executable.buffers(&inputs).map_err(error)?;
    let start = Instant::now();
    executable.call(&mut buffers).map_err(error)?;
    let first_call = start.elapsed().as_secs_f64();
    let results = executable.results(&buffers).map_err(error)?;
    let mut report = String::new();
    for (number, result) in results.iter().enumerate() {
        report += &format!("out{number}: {}\n", shown(&result.shape));
    }
    if execution.check.is_some() {
        report += &check(&inputs, &results)?;
    }
    if let Some(folder) = &execution.outputs {
        make_folder(folder)?;
        for (number, result) in results.iter().enumerate() {
            let tensor = tc_backends::hlo::to_file_tensor(result).map_err(error)?;
            let path = npy::file_in(folder, &format!("out{number}"))?;
            if result.shape.element_type.is_complex() {
                npy::save_complex(path, &tensor)?;
            } else {
                npy::save(path, &tensor)?;
            }
        }
    }
    let function = tc_backends::axon::spelled(&module.name);
    let costs = || -> Result<Costs, Error> {
        Ok(Costs::of(&backend.cost(&lowered, &codegen)?, &function, &Sizes::new()))
    };
    let mut kernels = String::new();
    let timing = if execution.measures() {
        let bench = sample(|| executable.call(&mut buffers).map_err(error))?;
        let costs = costs()?;
        let profile = executable.code().profile().map(|it| Report::new(it, &codegen));
        if execution.json {
            let (name, threads) = (module.name.as_str(), codegen.threads);
            let profile = profile.map(|it| it.json());
            let llvm_time = executable.code().llvm_time();
            let measured =
                Measured { name, bench, compile_seconds, llvm_time, costs, threads, profile };
            return print(format!("{}\n", measured.json(&[])).as_bytes());
        }
        kernels = profile.map(|it| it.table()).unwrap_or_default();
        bench.describe(costs.flops, costs.bytes)
    } else if execution.json {
        let line = counted(&module.name, &executable.code().counts(), costs()?);
        return print(format!("{line}\n").as_bytes());
    } else {
        format!("{:.3} ms", first_call * 1e3)
    };
    let compiled = compile_seconds * 1e3;
    print(format!("{report}{timing}, compiled in {compiled:.0} ms\n{kernels}").as_bytes())
}

/// An array from a file of the same bytes: `bf16` as 16-bit integers, smaller types as bytes.
pub(crate) fn load(path: &Path, shape: &ArrayShape) -> Result<Array, Error> {
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
pub(crate) fn random(name: &str, shape: &ArrayShape, seed: u64) -> Result<Array, Error> {
    let element = shape.element_type;
    let count = shape.num_bytes().filter(|bytes| *bytes < 1 << 40);
    let Some(count) = count.map(|bytes| bytes as usize / element.part().bytes()) else {
        return Err(Error::Refused(format!("the input '{name}', {shape}, is too large")));
    };
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut next = || {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(count * element.part().bytes()).is_err() {
        return Err(Error::Refused(format!("there is no memory for the input '{name}', {shape}")));
    }
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
