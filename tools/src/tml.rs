//! TML programs in `tc-run` and `tc-compile`.

use crate::{
    command_line::{Compilation, Execution, Text, make_folder, print, print_ir},
    cost::{Costs, Measured, counted},
    profile::Report,
};
use melior::{Context, ir::Module};
use std::{collections::BTreeMap, fs, path::Path, time::Instant};
use tc_backends::{
    Codegen,
    interp::Limits,
    run::{Error, Sizes, check_expected_within, sample},
    runtime::{Tensor, npy, random},
    tml::{
        compare::{Agreement, compare},
        executable::{self, Executable, Options},
        interp::{self, Machine},
        value::{Bounded, Division},
    },
};
use tc_dialects::{
    report::{self, Printer},
    text::{Diagnostic, SourceFile},
    tml::{
        import,
        syntax::{Checked, ast::Qualifier, read},
    },
};

/// A program that is well-formed.
#[derive(Debug)]
pub struct Program {
    source: SourceFile,
    checked: Checked,
}

impl Program {
    /// Reads a text. What is wrong with it, or may be, goes to the standard error.
    ///
    /// # Errors
    /// It is wrong.
    pub fn read(text: Text) -> Result<Self, Error> {
        let (source, checked, diagnostics) = read(&text.name, text.contents);
        eprint!("{}", source.render_all(&diagnostics));
        match diagnostics.iter().any(Diagnostic::is_error) {
            true => Err(Error::Diagnosed),
            false => Ok(Self { source, checked }),
        }
    }

    /// The program as `tml` operations. What goes wrong with it later is printed to the standard error.
    pub fn import<'c>(&self, context: &'c Context) -> melior::ir::Module<'c> {
        let mut printer = Printer::default();
        printer.add_source(self.source.name(), self.source.text().as_bytes());
        report::attach(context, move |received| {
            if received.is_error() {
                eprint!("{}", printer.render(&received));
            }
        });
        import::import_program(context, &self.source, &self.checked)
    }

    /// How the program is compiled.
    pub fn options(&self, compilation: &Compilation, codegen: Codegen) -> Options {
        compilation.tml_options(&self.checked, codegen)
    }

    /// The program as fused `imap` operations.
    ///
    /// # Errors
    /// It cannot be lowered; the reason goes to the standard error.
    pub fn lower<'c>(
        &self,
        context: &'c Context,
        options: &Options,
    ) -> Result<melior::ir::Module<'c>, Error> {
        executable::lower(&self.import(context), options).map_err(error)
    }
}

fn error(error: executable::Error) -> Error {
    match error {
        executable::Error::Diagnosed => Error::Diagnosed,
        executable::Error::Compile(error) => Error::Compile(error),
        executable::Error::Call(error) => Error::Call(error),
        executable::Error::Tensor(error) => Error::Tensor(error),
        executable::Error::Input(reason) => Error::Usage(reason),
    }
}

/// Compiles a program and runs it.
///
/// # Errors
/// The program, an input or a result is not what it should be.
pub fn run(program: &Program, execution: &Execution) -> Result<(), Error> {
    let context = tc_dialects::new_context();
    let module = program.import(&context);
    let (backend, codegen) = execution.target()?;
    let options = program.options(&execution.compilation, codegen);
    let start = Instant::now();
    let lowered = executable::lower(&module, &options).map_err(error)?;
    let lower_seconds = start.elapsed().as_secs_f64();
    print_ir(execution, &lowered)?;
    let start = Instant::now();
    let executable = Executable::of_lowered(&module, &lowered, backend, &options).map_err(error)?;
    let compile_seconds = lower_seconds + start.elapsed().as_secs_f64();
    let values = inputs(execution, &executable)?;
    let mut buffers = executable.buffers(&values).map_err(error)?;
    let start = Instant::now();
    executable.call(&mut buffers).map_err(error)?;
    let first_call = start.elapsed().as_secs_f64();
    let results = executable.results(&buffers).map_err(error)?;

    let mut report = String::new();
    for (name, tensor) in &results {
        let extents: Vec<_> = tensor.shape().iter().map(usize::to_string).collect();
        report += &format!("{name}: {} [{}]\n", tensor.element(), extents.join(" "));
    }
    if execution.check.is_some() {
        report += &check(&program.checked, &values, &results, execution.expected()?)?;
    }
    if let Some(folder) = &execution.outputs {
        make_folder(folder)?;
        for (name, tensor) in &results {
            npy::save(npy::file_in(folder, name)?, tensor)?;
        }
    }
    let name = import::program_name(program.source.name());
    let costs = |module: &Module| -> Result<Costs, Error> {
        Ok(Costs::of(&backend.cost(module, &options.codegen)?, &name, &Sizes::new()))
    };
    if !execution.measures() && execution.json {
        let line = counted(&name, &executable.code().counts(), costs(&lowered)?);
        return print(format!("{line}\n").as_bytes());
    }
    if !execution.measures() {
        report += &format!("{:.3} ms", first_call * 1e3);
        return print(report_line(&report, compile_seconds).as_bytes());
    }
    let bench = sample(|| executable.call(&mut buffers).map_err(error))?;
    // Padding is no work that the program asks for.
    let unpadded = |keep_order| {
        let options = Options { vector_length: None, keep_order, ..options.clone() };
        costs(&executable::lower(&module, &options).map_err(error)?)
    };
    let (written, performed) = (unpadded(true)?.flops, unpadded(options.keep_order)?);
    let Costs { flops, bytes, .. } = performed;
    let profile = executable.code().profile().map(|it| Report::new(it, &options.codegen));
    if execution.json {
        let costs = Costs { flops, bytes, ..costs(&lowered)? };
        let threads = options.codegen.threads;
        let profile = profile.map(|it| it.json());
        let llvm_time = executable.code().llvm_time();
        let measured =
            Measured { name: &name, bench, compile_seconds, llvm_time, costs, threads, profile };
        let line = measured.json(&[
            ("flops_as_written", written.map(|flops| flops as f64).into()),
            ("vector_length", options.vector_length.into()),
        ]);
        return print(format!("{line}\n").as_bytes());
    }
    if let Some((flops, written)) = flops.zip(written) {
        report += &format!("{flops} floating-point operations, {written} as written\n");
    }
    report += &bench.describe(flops, bytes);
    let kernels = profile.map(|it| it.table()).unwrap_or_default();
    print(format!("{}{kernels}", report_line(&report, compile_seconds)).as_bytes())
}

fn report_line(report: &str, compile_seconds: f64) -> String {
    format!("{report}, compiled in {:.0} ms\n", compile_seconds * 1e3)
}

/// What the program is passed: files, and random tensors that depend on the seed and the order of the
/// variables.
fn inputs(
    execution: &Execution,
    executable: &Executable,
) -> Result<BTreeMap<String, Tensor>, Error> {
    if let Some(folder) = &execution.inputs {
        fs::read_dir(folder)
            .map_err(|error| Error::File { path: folder.display().to_string(), error })?;
    }
    let mut values = BTreeMap::new();
    let arguments = executable.arguments().iter().filter(|argument| argument.is_input);
    for (number, argument) in arguments.enumerate() {
        let file =
            execution.inputs.as_ref().map(|folder| folder.join(format!("{}.npy", argument.name)));
        let tensor = match file.filter(|file| file.exists()) {
            Some(file) => npy::load(&file)?,
            None => {
                let seed = execution.seed.wrapping_add(number as u64);
                random(argument.element, &argument.extents, seed, None)?
            }
        };
        values.insert(argument.name.clone(), tensor);
    }
    Ok(values)
}

/// Compares results with the evaluation rules, or with expected ones in a folder within the error
/// bounds that follow from the rules.
fn check(
    program: &Checked,
    values: &BTreeMap<String, Tensor>,
    results: &BTreeMap<String, Tensor>,
    expected: Option<&Path>,
) -> Result<String, Error> {
    let ambient = |variable: usize, place: usize| {
        let variable = &program.variables[variable];
        let Some(tensor) = values.get(&variable.name) else {
            // What is assigned before it is read is not passed: no result depends on it.
            let is_passed = variable.qualifier == Some(Qualifier::InOut);
            return is_passed.then(|| Bounded::exact(0.0));
        };
        // A NaN is a number of which nothing is known.
        tensor.get(place).map(|number| Bounded::exact(number.to_f64()))
    };
    let limits = Limits { points: 1 << 32, ..Limits::default() };
    let refused = |error: interp::Error| Error::Refused(format!("the interpreter: {error}"));
    let mut machine =
        Machine::new(program, 1, Division::Controlled, limits, ambient).map_err(refused)?;
    machine.run().map_err(refused)?;
    let mut report = String::new();
    if let Some(folder) = expected {
        for (number, variable) in program.variables.iter().enumerate() {
            let Some(result) = results.get(&variable.name) else { continue };
            let elements = &machine.tensor(number).elements;
            let bound = |place: usize| {
                let bound = elements[place].as_ref()?.bound(variable.ty.element);
                bound.is_finite().then_some(bound)
            };
            let stats = check_expected_within(&bound, folder, &variable.name, result)?;
            report += &format!("{} agrees with {stats}\n", variable.name);
        }
        return Ok(report);
    }
    let agreements =
        compare(&machine, results).map_err(|error| Error::Mismatch(error.to_string()))?;
    for (name, Agreement { compared, undefined, uncertain }) in agreements {
        report += &format!("{name} agrees with the interpreter on {compared} elements");
        if 0 < undefined + uncertain {
            report += &format!(" ({} more are undefined)", undefined + uncertain);
        }
        report += "\n";
    }
    Ok(report)
}
