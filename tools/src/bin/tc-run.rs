//! `tc-run`: compiles a tensor comprehension, an HLO or a TML program and runs it.

use clap::Parser;
use std::{path::PathBuf, process::ExitCode};
use tc_backends::{
    cpu,
    interp::compare,
    run::{self, Checks, Error, Inputs},
    runtime::{Tensor, npy},
};
use tc_dialects::Language;
use tc_tools::{
    command_line::{Compilation, Source, Text, print, run_tool},
    hlo::{self, Program},
    tml,
};

const EXAMPLES: &str = "Examples:
  tc-run matmul.tc --size M=512,K=256,N=128 --check
  tc-run matmul.tc --inputs DIR --outputs OUT --check=expected
  tc-run mlp3.tc --size B=128,N=128,O=64,P=32,Q=2 --bench --threads 2 --json
  tc-run accumulate.tc --size N=8 --init C=before.npy
  tc-run model.hlo --inputs DIR --check=expected
  tc-run helmholtz.tml --check --bench --pad";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// Compare with the reference interpreter.
    Interpreter,
    /// Compare with expected/NAME.npy or NAME.expected.npy in the folder of the inputs. For HLO,
    /// with what case.json there describes.
    Expected,
}

/// Compiles a tensor comprehension, an HLO or a TML program for this machine and runs it.
#[derive(Parser, Debug)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    compilation: Compilation,
    /// A folder with NAME.npy for inputs; the others are random. For HLO, in0.npy, ..
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,
    /// What an accumulating output holds before (default zero); may be repeated.
    #[arg(long, value_name = "NAME=FILE.npy")]
    init: Vec<String>,
    /// Writes each output to NAME.npy in this folder.
    #[arg(long, value_name = "DIR")]
    outputs: Option<PathBuf>,
    /// The seed of random inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Checks the results.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "interpreter")]
    check: Option<Check>,
    /// Compiles once for all sizes instead of for those given.
    #[arg(long)]
    dynamic: bool,
    /// Measures the compiled program.
    #[arg(long)]
    bench: bool,
    /// Prints the measurement as JSON.
    #[arg(long, requires = "bench")]
    json: bool,
    /// Prints the rounds of range inference.
    #[arg(long)]
    explain_ranges: bool,
    /// Prints the fused IR.
    #[arg(long)]
    print_ir: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run_tool("tc-run", || run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let text = arguments.source.read()?;
    if text.language == Language::Hlo {
        return run_hlo(arguments, text);
    }
    arguments.compilation.check_language(text.language)?;
    if text.language == Language::Tml {
        return run_tml(arguments, text);
    }
    let context = tc_dialects::new_context();
    let session = arguments.source.open(&context, &text, arguments.explain_ranges)?;
    let def = session.def(arguments.source.entry.as_deref())?;

    let mut sizes = arguments.compilation.sizes()?;
    let mut inputs = match &arguments.inputs {
        Some(folder) => Inputs::read(def, folder)?,
        None => Inputs::default(),
    };
    inputs.infer_sizes(def, &mut sizes)?;
    for text in &arguments.init {
        let Some((name, file)) = text.split_once('=') else {
            return Err(Error::Usage(format!(
                "'{text}' says nothing of an output; expected NAME=FILE.npy"
            )));
        };
        if !def.parameters().iter().any(|it| it.inout && it.name == name) {
            return Err(Error::Usage(format!("'{name}' is no output that is accumulated into")));
        }
        inputs.tensors.insert(name.to_string(), npy::load(file)?);
    }
    let shapes = session.shapes(def, &sizes)?;
    let tensors = inputs.complete(def, &shapes, &sizes, arguments.seed)?;

    let mut options = arguments.compilation.options(cpu::Target::host(), arguments.dynamic);
    // Random elements are drawn inside what they index; those of files may be anything.
    if arguments.inputs.is_some() {
        options.checks = options.checks.max(Checks::Bounds);
    }
    if arguments.print_ir {
        let sizes = (!arguments.dynamic).then_some((def, &sizes));
        let module = session.lower(sizes, &options)?;
        print(format!("{}\n", module.as_operation()).as_bytes())?;
    }
    // Before the compiled program runs: the interpreter refuses accesses out of bounds.
    let outcomes = match arguments.check {
        Some(_) => session.interpret(def, &tensors)?,
        None => Vec::new(),
    };
    let start = std::time::Instant::now();
    let compiled = session.compile(def, &sizes, &options)?;
    let compile_seconds = start.elapsed().as_secs_f64();
    let function = compiled
        .function(def.name())
        .ok_or_else(|| Error::Usage(format!("'{}' was not compiled", def.name())))?;
    let references: Vec<&Tensor> = tensors.iter().collect();
    let start = std::time::Instant::now();
    let results = function.run(&references)?;
    let first_call = start.elapsed().as_secs_f64();

    let mut report = String::new();
    for ((name, element, extents), origins) in shapes.outputs.iter().zip(&shapes.origins) {
        let extents: Vec<_> = extents.iter().map(ToString::to_string).collect();
        report += &format!("{name}: {element}({})", extents.join(", "));
        if origins.iter().any(|origin| *origin != 0) {
            let origins: Vec<_> = origins.iter().map(ToString::to_string).collect();
            report += &format!(", first index ({})", origins.join(", "));
        }
        report += "\n";
    }
    match arguments.check {
        None => {}
        Some(Check::Interpreter) => {
            for ((name, ..), (outcome, result)) in
                shapes.outputs.iter().zip(outcomes.iter().zip(&results))
            {
                let stats = compare(outcome, result).map_err(|error| {
                    Error::Mismatch(format!("output '{name}' is wrong: {error}"))
                })?;
                report += &format!(
                    "{name} agrees with the interpreter on {} elements",
                    stats.num_elements - stats.num_uncertain
                );
                if 0 < stats.num_uncertain {
                    report += &format!(" ({} more depend on rounding)", stats.num_uncertain);
                }
                report += "\n";
            }
        }
        Some(Check::Expected) => {
            let Some(folder) = &arguments.inputs else {
                return Err(Error::Usage("'--check=expected' needs '--inputs DIR'".to_string()));
            };
            for ((name, ..), (outcome, result)) in
                shapes.outputs.iter().zip(outcomes.iter().zip(&results))
            {
                let stats = run::check_expected(outcome, folder, name, result)?;
                report += &format!("{name} agrees with {stats}\n");
            }
        }
    }
    if let Some(folder) = &arguments.outputs {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::File { path: folder.display().to_string(), error })?;
        for ((name, ..), result) in shapes.outputs.iter().zip(&results) {
            npy::save(folder.join(format!("{name}.npy")), result)?;
        }
    }
    if arguments.bench {
        let mut outputs = results;
        let bench = run::measure(function, &references, &mut outputs)?;
        let bytes = run::bytes(def, &sizes, &shapes);
        let flops = run::flops(def, &sizes);
        if arguments.json {
            let line = serde_json::json!({
                "name": def.name(),
                "seconds_min": bench.seconds_min,
                "seconds_median": bench.seconds_median,
                "compile_seconds": compile_seconds,
                "flops": flops,
                "bytes": bytes as u64,
                "threads": options.cpu.threads,
            });
            return print(format!("{line}\n").as_bytes());
        }
        report += &format!(
            "{:.3} ms (median {:.3} of {} calls), {:.2} GFLOP/s, {:.2} GB/s",
            bench.seconds_min * 1e3,
            bench.seconds_median * 1e3,
            bench.calls,
            flops / bench.seconds_min * 1e-9,
            bytes / bench.seconds_min * 1e-9,
        );
    } else {
        report += &format!("{:.3} ms", first_call * 1e3);
    }
    print(format!("{report}, compiled in {:.0} ms\n", compile_seconds * 1e3).as_bytes())
}

fn run_tml(arguments: &Arguments, text: Text) -> Result<(), Error> {
    if arguments.check == Some(Check::Expected) {
        let message = "TML programs have no expected results; expected '--check'";
        return Err(Error::Usage(message.to_string()));
    }
    let of_comprehensions = [
        ("--entry", arguments.source.entry.is_some()),
        ("--relaxed", arguments.source.relaxed),
        ("--init", !arguments.init.is_empty()),
        ("--dynamic", arguments.dynamic),
        ("--explain-ranges", arguments.explain_ranges),
    ];
    if let Some((option, _)) = of_comprehensions.iter().find(|(_, is_given)| *is_given) {
        return Err(Error::Usage(format!("'{option}' does not apply to a TML program; remove it")));
    }
    tml::run(&tml::Request {
        program: tml::Program::read(text)?,
        inputs: arguments.inputs.as_deref(),
        outputs: arguments.outputs.as_deref(),
        check: arguments.check.is_some(),
        print_ir: arguments.print_ir,
        bench: arguments.bench,
        json: arguments.json,
        seed: arguments.seed,
        compilation: &arguments.compilation,
    })
}

fn run_hlo(arguments: &Arguments, text: Text) -> Result<(), Error> {
    if arguments.check == Some(Check::Interpreter) {
        let message = "there is no interpreter of HLO; expected '--check=expected'";
        return Err(Error::Usage(message.to_string()));
    }
    let of_comprehensions = [
        ("--size", !arguments.compilation.sizes()?.is_empty()),
        ("--entry", arguments.source.entry.is_some()),
        ("--relaxed", arguments.source.relaxed),
        ("--init", !arguments.init.is_empty()),
        ("--dynamic", arguments.dynamic),
        ("--explain-ranges", arguments.explain_ranges),
        ("--print-ir", arguments.print_ir),
    ];
    if let Some((option, _)) = of_comprehensions.iter().find(|(_, is_given)| *is_given) {
        return Err(Error::Usage(format!(
            "'{option}' does not apply to an HLO program; remove it"
        )));
    }
    arguments.compilation.check_language(text.language)?;
    hlo::run(&hlo::Request {
        program: Program::read(text)?,
        inputs: arguments.inputs.as_deref(),
        outputs: arguments.outputs.as_deref(),
        check: arguments.check.is_some(),
        bench: arguments.bench,
        json: arguments.json,
        seed: arguments.seed,
        compilation: &arguments.compilation,
    })
}
