//! `tc-run`: compiles a TC, HLO, TML or Axon program, or an MLIR function on tensors, and runs it.

use clap::Parser;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    path::Path,
    process::ExitCode,
    time::Instant,
};
use tc_backends::{
    Error, Request, Session,
    interp::Outcome,
    program::{Checks, Entry, Layout, Lowered, Parameter, Shape, in_memory},
    run::sample,
    runtime::{ElementType, Tensor, npy},
};
use tc_dialects::{Language, axon::to_hlo::axon_element};
use tc_tools::{
    command_line::{
        Check, Execution, Source, check, keep_freed_memory, limit_memory, make_folder, parse,
        print, run_tool,
    },
    conformance,
    cost::{Costs, Measured, counted},
    profile::Report,
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
    let Execution { compilation, seed, json, .. } = &arguments.execution;
    let execution = &arguments.execution;
    compilation.enable_ir_printing();
    // An unknown target is an error whatever else is wrong.
    let (backend, codegen) = execution.target()?;
    let mut source = arguments.source.read()?;
    check_options(arguments, source.language)?;
    (source.explain, source.strict_names) = (arguments.explain_ranges, compilation.strict_names());
    let hlo = (source.language == Language::Hlo).then(|| source.contents.clone());
    let session = Session::with_backend(backend, codegen);
    session.print_diagnostics();
    let program = session.open(source)?;
    let language = program.language();
    if language == Language::Mlir {
        let unused = [
            ("--explain-ranges", arguments.explain_ranges),
            ("--runtime-checks", compilation.has_runtime_checks()),
        ];
        refuse(&unused, "functions without 'tc.def'")?;
    }

    let mut request = compilation.request(arguments.source.entry.clone(), session.codegen())?;
    let init = init(arguments)?;
    let mut given = BTreeMap::new();
    if let Some(folder) = &execution.inputs {
        // Random elements are drawn inside what they index; those of files may be anything.
        request.checks = request.checks.max(Checks::Bounds);
        given = read_inputs(folder, &program.inputs(request.entry.as_deref())?)?;
        for (name, tensor) in &given {
            if !request.shapes.iter().any(|it| it.parameter == *name) {
                let source = Some(format!("{name}.npy"));
                request.shapes.push(Shape { source, ..Shape::of(name, tensor) });
            }
        }
    }
    let entry = session.entry(&*program, &request)?;
    complete_given(language, &entry, &mut given, init)?;
    if language == Language::Axon && !json {
        for input in &entry.inputs {
            let dims = input.shape.clone().unwrap_or_default();
            let ty = shown(language, input, in_memory(input.element), &dims);
            print(format!("{}: {ty}\n", input.name).as_bytes())?;
        }
    }

    let compiled = match arguments.dynamic {
        true => request.clone().without_sizes(),
        false => request.clone(),
    };
    let start = Instant::now();
    let lowered = session.lower(&*program, &compiled)?;
    let lower_seconds = start.elapsed().as_secs_f64();
    if execution.print_ir {
        print(format!("{}\n", lowered.module.as_operation()).as_bytes())?;
    }
    let start = Instant::now();
    let executable = session.load(&lowered)?;
    let compile_seconds = lower_seconds + start.elapsed().as_secs_f64();
    if matches!(language, Language::Hlo | Language::Axon) {
        check_memory(&entry)?;
    }
    let inputs = entry.complete(given, *seed)?;
    let expected = execution.expected()?;
    // Before the compiled program runs: the interpreter rejects accesses out of bounds.
    let outcomes = match (execution.check, &hlo) {
        (None, _) | (Some(Check::Expected), Some(_)) => Vec::new(),
        _ => session.interpret(&*program, &request, &inputs)?,
    };
    let mut buffers = executable.buffers(&inputs.iter().collect::<Vec<_>>())?;
    let start = Instant::now();
    executable.call(&mut buffers)?;
    let first_call = start.elapsed().as_secs_f64();

    let results = executable.results(&buffers)?;
    let mut report = String::new();
    for (output, result) in entry.outputs.iter().zip(&results) {
        let rank = result.shape().len() - usize::from(output.element.is_complex());
        let ty = shown(language, output, result.element(), &result.shape()[..rank]);
        report += &format!("{}: {ty}", output.name);
        if output.origin.iter().any(|origin| *origin != 0) {
            let origin: Vec<_> = output.origin.iter().map(ToString::to_string).collect();
            report += &format!(", first index ({})", origin.join(", "));
        }
        report += "\n";
    }
    if let (Some(folder), Some(text)) = (expected, hlo) {
        conformance::check_hlo_results(folder, text, &inputs, &results).map_err(Error::Mismatch)?;
        report += &format!("{} results agree with the expected ones\n", results.len());
    }
    if !outcomes.is_empty() {
        report += &check_results(language, &entry, &outcomes, &results, expected)?;
    }
    if let Some(folder) = &execution.outputs {
        save(folder, language, &entry.outputs, &results)?;
    }

    let costs = || session_costs(&session, &lowered, &entry);
    if !execution.measures() {
        if *json {
            let line = counted(&entry.name, &executable.counts(), costs()?);
            return print(format!("{line}\n").as_bytes());
        }
        let compiled = compile_seconds * 1e3;
        let text = format!("{report}{:.3} ms, compiled in {compiled:.0} ms\n", first_call * 1e3);
        return print(text.as_bytes());
    }
    let bench = sample(|| executable.call(&mut buffers))?;
    let (mut costs, mut more) = (costs()?, Vec::new());
    if language == Language::Tml {
        // Padding is no work that the program asks for.
        let unpadded = |keep_order| {
            let request = Request { padding: None, keep_order, ..request.clone() };
            session_costs(&session, &session.lower(&*program, &request)?, &entry)
        };
        let (written, performed) = (unpadded(true)?.flops, unpadded(request.keep_order)?);
        (costs.flops, costs.bytes) = (performed.flops, performed.bytes);
        if let Some((flops, written)) = costs.flops.zip(written) {
            report += &format!("{flops} floating-point operations, {written} as written\n");
        }
        more = vec![
            ("flops_as_written", written.map(|flops| flops as f64).into()),
            ("vector_length", lowered.padding.into()),
        ];
    }
    if session.codegen().cache.is_some() {
        more.push(("cache_hits", executable.cache_hits().into()));
    }
    let profile = executable.profile().map(|it| Report::new(it, session.codegen()));
    if *json {
        let (name, threads) = (entry.name.as_str(), session.codegen().threads);
        let (profile, llvm_time) = (profile.map(|it| it.json()), executable.llvm_time());
        let measured =
            Measured { name, bench, compile_seconds, llvm_time, costs, threads, profile };
        return print(format!("{}\n", measured.json(&more)).as_bytes());
    }
    report += &bench.describe(costs.flops, costs.bytes);
    let kernels = profile.map(|it| it.table()).unwrap_or_default();
    let compiled = compile_seconds * 1e3;
    print(format!("{report}, compiled in {compiled:.0} ms\n{kernels}").as_bytes())
}

/// The costs of the entry.
fn session_costs(session: &Session, lowered: &Lowered, entry: &Entry) -> Result<Costs, Error> {
    Ok(Costs::of(&session.costs(lowered)?, &lowered.function, &entry.sizes))
}

/// Rejects options that a language does not use.
fn check_options(arguments: &Arguments, language: Language) -> Result<(), Error> {
    let compilation = &arguments.execution.compilation;
    let of_comprehensions = [
        ("--entry", arguments.source.entry.is_some() && language != Language::Axon),
        ("--relaxed", arguments.source.relaxed),
        ("--init", !arguments.init.is_empty()),
        ("--dynamic", arguments.dynamic),
        ("--explain-ranges", arguments.explain_ranges),
    ];
    let name = match language {
        Language::Tc | Language::Mlir => return compilation.check_language(language),
        Language::Hlo => "an HLO program",
        Language::Tml => "a TML program",
        Language::Axon => "an Axon program",
    };
    if language == Language::Hlo {
        refuse(&[("--size", !compilation.sizes()?.is_empty())], name)?;
    }
    compilation.check_language(language)?;
    refuse(&of_comprehensions, name)
}

/// Rejects options.
fn refuse(options: &[(&str, bool)], language: &str) -> Result<(), Error> {
    match options.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Error::Usage(format!("'{option}' does not apply to {language}; remove it")))
        }
    }
}

/// The initial contents that are given to outputs.
fn init(arguments: &Arguments) -> Result<Vec<(String, Tensor)>, Error> {
    let tensor = |text: &String| {
        let (name, file) = text.split_once('=').ok_or_else(|| {
            Error::Usage(format!("'{text}' says nothing of an output; expected NAME=FILE.npy"))
        })?;
        Ok((name.to_string(), npy::load(file)?))
    };
    arguments.init.iter().map(tensor).collect()
}

/// The tensors `NAME.npy` in a folder.
fn read_inputs(folder: &Path, names: &[String]) -> Result<BTreeMap<String, Tensor>, Error> {
    std::fs::read_dir(folder)
        .map_err(|error| Error::File { path: folder.display().to_string(), error })?;
    let mut tensors = BTreeMap::new();
    for name in names {
        let path = folder.join(format!("{name}.npy"));
        if path.exists() {
            tensors.insert(name.clone(), npy::load(&path)?);
        }
    }
    Ok(tensors)
}

/// Adds the initial contents of outputs, which no file in a folder gives, and interprets the bytes of files as elements
/// of HLO's types, which files do not have.
fn complete_given(
    language: Language,
    entry: &Entry,
    given: &mut BTreeMap<String, Tensor>,
    init: Vec<(String, Tensor)>,
) -> Result<(), Error> {
    for input in &entry.inputs {
        let Some(tensor) = given.remove(&input.name) else { continue };
        if input.is_accumulated {
            continue;
        }
        let tensor = match language {
            Language::Hlo | Language::Axon => tensor.with_element(in_memory(input.element)),
            _ => tensor,
        };
        given.insert(input.name.clone(), tensor);
    }
    for (name, tensor) in init {
        if !entry.inputs.iter().any(|it| it.is_accumulated && it.name == name) {
            return Err(Error::Usage(format!("'{name}' is no output that is accumulated into")));
        }
        given.insert(name, tensor);
    }
    Ok(())
}

/// The type of an input or a result, as its language writes it.
fn shown(language: Language, parameter: &Parameter, stored: ElementType, dims: &[usize]) -> String {
    let list = |separator| {
        let dims: Vec<_> = dims.iter().map(usize::to_string).collect();
        dims.join(separator)
    };
    match language {
        Language::Tc | Language::Mlir => format!("{stored}({})", list(", ")),
        Language::Tml => format!("{stored} [{}]", list(" ")),
        Language::Hlo => format!("{}[{}]", parameter.element, list(",")),
        Language::Axon => {
            let element = axon_element(parameter.element);
            format!("{} [{}]", element.map_or(stored.name(), |it| it.name()), list(","))
        }
    }
}

/// Rejects a run without memory for the parameters and results.
fn check_memory(entry: &Entry) -> Result<(), Error> {
    let bytes = entry.inputs.iter().chain(&entry.outputs).map(|parameter| {
        let mut dims = parameter.dims().into_iter();
        dims.try_fold(in_memory(parameter.element).size(), usize::checked_mul)
    });
    let bytes = bytes.into_iter().try_fold(0_usize, |sum, it| sum.checked_add(it?));
    let twice = bytes.and_then(|bytes| bytes.checked_mul(2));
    match twice.map(|twice| Vec::<u8>::new().try_reserve_exact(twice)) {
        Some(Ok(())) => Ok(()),
        _ => Err(Error::Rejected(match bytes {
            Some(bytes) => format!(
                "there is no memory for the parameters and results, which are {bytes} bytes, and are held twice"
            ),
            None => "there is no memory for the parameters and results".to_string(),
        })),
    }
}

/// Compares results with those of the interpreter, the parts of complex numbers apart, or with expected files.
fn check_results(
    language: Language,
    entry: &Entry,
    outcomes: &[Outcome],
    results: &[Cow<Tensor>],
    expected: Option<&Path>,
) -> Result<String, Error> {
    let mut outcomes = outcomes.iter();
    let mut report = String::new();
    let doubt = if language == Language::Tml { "are undefined" } else { "depend on rounding" };
    for (output, result) in entry.outputs.iter().zip(results) {
        let layout = if output.element.is_complex() { Layout::Complex } else { Layout::Plain };
        let parts = layout.split(result, Vec::new)?;
        let suffixes: &[&str] = if parts.len() == 1 { &[""] } else { &["_re", "_im"] };
        for ((part, suffix), outcome) in parts.iter().zip(suffixes).zip(outcomes.by_ref()) {
            let name = format!("{}{suffix}", output.name);
            report += &check(&name, outcome, part, expected, doubt)?;
        }
    }
    Ok(report)
}

/// Writes results to `NAME.npy` in a folder. A name that another result has gets underscores.
fn save(
    folder: &Path,
    language: Language,
    outputs: &[Parameter],
    results: &[Cow<Tensor>],
) -> Result<(), Error> {
    make_folder(folder)?;
    let mut used = HashSet::new();
    for (output, result) in outputs.iter().zip(results) {
        let mut name = output.name.clone();
        while !used.insert(name.clone()) {
            name.push('_');
        }
        let path = npy::file_in(folder, &name)?;
        match (language, result.element()) {
            _ if output.element.is_complex() => npy::save_complex(path, result)?,
            // Programs that read files of HLO expect 16-bit integers.
            (Language::Hlo | Language::Axon, ElementType::Bf16) => {
                npy::save(path, &result.as_ref().clone().with_element(ElementType::U16))?;
            }
            _ => npy::save(path, result)?,
        }
    }
    Ok(())
}
