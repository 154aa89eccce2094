//! `tc-run`: compiles a TC, HLO, TML or Axon program, or an MLIR function on tensors, and runs it.

use clap::Parser;
use std::{process::ExitCode, time::Instant};
use tc_backends::{
    run::{self, Checks, Error, Inputs, Session},
    runtime::{Tensor, npy},
};
use tc_dialects::Language;
use tc_tools::{
    axon,
    command_line::{
        Execution, Source, Text, check, keep_freed_memory, limit_memory, make_folder, parse, print,
        print_ir, run_tool,
    },
    cost::{Costs, Measured, counted},
    hlo::{self, Program},
    imap,
    profile::Report,
    tml,
};

const EXAMPLES: &str = "Examples:
  tc-run matmul.tc --size M=512,K=256,N=128 --check
  tc-run matmul.tc --inputs DIR --outputs OUT --check=expected
  tc-run mlp3.tc --size B=128,N=128,O=64,P=32,Q=2 --bench --threads 2 --json
  tc-run accumulate.tc --size N=8 --init C=before.npy
  tc-run model.hlo --check
  tc-run model.hlo --inputs DIR --check=expected
  tc-run helmholtz.tml --check --bench --pad
  tc-run attention.axon --shape Q=128x64 --shape V=256x32 --check
  tc-run fused.mlir --entry matmul --size M=512,K=256,N=128 --check    a func.func on tensors
  tc-run model.hlo --mlir-print-ir-after-all 2> passes.mlir
  tc-run model.hlo --target=nvvm:sm_90a --device=emulator --check      kernels of a GPU

Exit codes: 0, 1 for an error in the program or the run, 2 for one in the command line.";

/// Compiles a TC, HLO, TML or Axon program, or a function in MLIR, and runs it.
#[derive(Parser, Debug)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    execution: Execution,
    /// The initial contents of an accumulating output (default zero); may be repeated.
    #[arg(long, value_name = "NAME=FILE.npy")]
    init: Vec<String>,
    /// Compiles for all sizes instead of the given ones.
    #[arg(long)]
    dynamic: bool,
    /// Prints the rounds of range inference.
    #[arg(long)]
    explain_ranges: bool,
}

fn main() -> ExitCode {
    let arguments: Arguments = parse();
    limit_memory();
    keep_freed_memory();
    run_tool("tc-run", || run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let execution = &arguments.execution;
    execution.compilation.enable_ir_printing();
    // An unknown target is an error whatever else is wrong.
    let (backend, codegen) = execution.target()?;
    let text = arguments.source.read()?;
    if text.language == Language::Hlo {
        return run_hlo(arguments, text);
    }
    execution.compilation.check_language(text.language)?;
    if text.language == Language::Tml {
        return run_tml(arguments, text);
    }
    if text.language == Language::Axon {
        return run_axon(arguments, text);
    }
    let context = tc_dialects::new_context();
    let session = arguments.source.open(&context, &text, arguments.explain_ranges)?;
    if text.language == Language::Mlir && session.defs().is_empty() {
        return run_imap(arguments, &session);
    }
    let def = session.def(arguments.source.entry.as_deref())?;

    let mut sizes = execution.compilation.sizes()?;
    let mut inputs = match &execution.inputs {
        Some(folder) => Inputs::read(def, folder)?,
        None => Inputs::default(),
    };
    inputs.infer_sizes(def, &mut sizes)?;
    for (name, tensor) in init(arguments)? {
        if !def.parameters().iter().any(|it| it.inout && it.name == name) {
            return Err(Error::Usage(format!("'{name}' is no output that is accumulated into")));
        }
        inputs.tensors.insert(name, tensor);
    }
    let shapes = session.shapes(def, &sizes)?;
    let tensors = inputs.complete(def, &shapes, &sizes, execution.seed)?;

    let mut options = execution.compilation.options(codegen, arguments.dynamic);
    // Random elements are drawn inside what they index; those of files may be anything.
    if execution.inputs.is_some() {
        options.checks = options.checks.max(Checks::Bounds);
    }
    // Before the compiled program runs: the interpreter refuses accesses out of bounds.
    let outcomes = match execution.check {
        Some(_) => session.interpret(def, &tensors)?,
        None => Vec::new(),
    };
    let start = Instant::now();
    let lowered = session.lower((!arguments.dynamic).then_some((def, &sizes)), &options)?;
    let lower_seconds = start.elapsed().as_secs_f64();
    print_ir(execution, &lowered)?;
    let start = Instant::now();
    let compiled = backend.compile(&lowered, &options.codegen)?.load()?;
    let compile_seconds = lower_seconds + start.elapsed().as_secs_f64();
    let function = compiled.function(def.name()).expect("the function of the module");
    let references: Vec<&Tensor> = tensors.iter().collect();
    let start = Instant::now();
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
    let expected = execution.expected()?;
    let outputs = shapes.outputs.iter().zip(outcomes.iter().zip(&results));
    for ((name, ..), (outcome, result)) in outputs {
        report += &check(name, outcome, result, expected)?;
    }
    if let Some(folder) = &execution.outputs {
        make_folder(folder)?;
        for ((name, ..), result) in shapes.outputs.iter().zip(&results) {
            npy::save(npy::file_in(folder, name)?, result)?;
        }
    }
    let mut kernels = String::new();
    if execution.measures() {
        let mut outputs = results;
        let bench = run::measure(function, &references, &mut outputs)?;
        let costs = Costs::of(&backend.cost(&lowered, &options.codegen)?, def.name(), &sizes);
        let profile = compiled.profile().map(|it| Report::new(it, &options.codegen));
        if execution.json {
            let (name, threads) = (def.name(), options.codegen.threads);
            let profile = profile.map(|it| it.json());
            let llvm_time = compiled.llvm_time();
            let measured =
                Measured { name, bench, compile_seconds, llvm_time, costs, threads, profile };
            return print(format!("{}\n", measured.json(&[])).as_bytes());
        }
        report += &bench.describe(costs.flops, costs.bytes);
        kernels = profile.map(|it| it.table()).unwrap_or_default();
    } else if execution.json {
        let costs = Costs::of(&backend.cost(&lowered, &options.codegen)?, def.name(), &sizes);
        return print(format!("{}\n", counted(def.name(), &compiled.counts(), costs)).as_bytes());
    } else {
        report += &format!("{:.3} ms", first_call * 1e3);
    }
    print(format!("{report}, compiled in {:.0} ms\n{kernels}", compile_seconds * 1e3).as_bytes())
}

/// The first contents that are given to outputs.
fn init(arguments: &Arguments) -> Result<Vec<(String, Tensor)>, Error> {
    let mut tensors = Vec::new();
    for text in &arguments.init {
        let Some((name, file)) = text.split_once('=') else {
            return Err(Error::Usage(format!(
                "'{text}' says nothing of an output; expected NAME=FILE.npy"
            )));
        };
        tensors.push((name.to_string(), npy::load(file)?));
    }
    Ok(tensors)
}

/// Runs a file without `tc.def` operations.
fn run_imap(arguments: &Arguments, session: &Session) -> Result<(), Error> {
    let execution = &arguments.execution;
    let unused = [
        ("--explain-ranges", arguments.explain_ranges),
        ("--runtime-checks", execution.compilation.has_runtime_checks()),
    ];
    refuse(&unused, "functions without 'tc.def'")?;
    imap::run(session, arguments.source.entry.as_deref(), &init(arguments)?, execution)
}

/// Refuses options that a language has no use for.
fn refuse(options: &[(&str, bool)], language: &str) -> Result<(), Error> {
    match options.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Error::Usage(format!("'{option}' does not apply to {language}; remove it")))
        }
    }
}

/// The options of comprehensions.
fn of_comprehensions(arguments: &Arguments) -> [(&'static str, bool); 5] {
    [
        ("--entry", arguments.source.entry.is_some()),
        ("--relaxed", arguments.source.relaxed),
        ("--init", !arguments.init.is_empty()),
        ("--dynamic", arguments.dynamic),
        ("--explain-ranges", arguments.explain_ranges),
    ]
}

fn run_tml(arguments: &Arguments, text: Text) -> Result<(), Error> {
    refuse(&of_comprehensions(arguments), "a TML program")?;
    tml::run(&tml::Program::read(text)?, &arguments.execution)
}

fn run_axon(arguments: &Arguments, text: Text) -> Result<(), Error> {
    let [_, others @ ..] = of_comprehensions(arguments);
    refuse(&others, "an Axon program")?;
    axon::run(text, arguments.source.entry.as_deref(), &arguments.execution)
}

fn run_hlo(arguments: &Arguments, text: Text) -> Result<(), Error> {
    let execution = &arguments.execution;
    let mut unused = vec![("--size", !execution.compilation.sizes()?.is_empty())];
    unused.extend(of_comprehensions(arguments));
    refuse(&unused, "an HLO program")?;
    execution.compilation.check_language(text.language)?;
    hlo::run(&Program::read(text)?, execution)
}
