//! Axon programs in `tc-opt`: their signatures, and how these were found; and in `tc-run` and
//! `tc-compile`: functions at known shapes.

use crate::{
    command_line::{self, Compilation, Execution, Language, Source, Text, print},
    hlo,
};
use clap::Parser;
use melior::{Context, ir::Module};
use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
};
use tc_backends::{
    axon::{Program, Session, values},
    hlo::Array,
    interp::{Limits, stored},
    run::Error,
    runtime::npy,
};
use tc_dialects::{
    axon::{
        self, ElementType, Given, TensorType,
        to_hlo::{self, axon_element},
    },
    hlo::ArrayShape,
};
use tc_passes::convert::hlo_to_imap::MAX_BYTES;

/// Infer the types and shapes of an Axon program.
#[derive(Parser, Debug)]
#[command(
    name = "tc-opt",
    after_help = "Examples:\n  \
        tc-opt model.axon --infer-shapes     the signature of every definition\n  \
        tc-opt model.axon --explain-shapes   how they were found, step by step"
)]
struct Arguments {
    /// The program: a .axon file, or '-' for the standard input.
    file: PathBuf,
    /// The language, which has to be axon.
    #[arg(short = 'x', long, value_enum)]
    language: Option<Language>,
    /// Prints the signature of every definition, and what has to be checked when the program runs.
    #[arg(long)]
    infer_shapes: bool,
    /// Prints the rules that the solver applied, in order, and where its equations come from.
    #[arg(long)]
    explain_shapes: bool,
    /// Rejects different names of one signature that are equal.
    #[arg(long)]
    strict_names: bool,
    /// A name that is defined outside of the program; may be repeated.
    #[arg(long = "global", value_name = "NAME", value_delimiter = ',')]
    globals: Vec<String>,
    /// The file to write; '-' is the standard output.
    #[arg(short, value_name = "FILE", default_value = "-")]
    output: String,
}

/// Whether a command line asks for the signatures of an Axon program.
pub fn asks_for_signatures(arguments: &[String]) -> bool {
    let has = |test: fn(&str) -> bool| arguments.iter().skip(1).any(|argument| test(argument));
    has(|it| matches!(it, "--infer-shapes" | "--explain-shapes"))
        && has(|it| it.ends_with(".axon") || it == "axon" || it == "-x=axon")
}

/// `tc-opt` on an Axon program. What is wrong with the program goes to the standard error.
///
/// # Errors
/// The program cannot be read, or is wrong.
pub fn opt(arguments: &[String]) -> Result<(), Error> {
    let arguments = Arguments::try_parse_from(arguments).unwrap_or_else(|error| error.exit());
    let source = Source {
        file: arguments.file,
        entry: None,
        language: Some(Language::Axon),
        relaxed: false,
    };
    let text = source.read()?;
    let (source, program, mut diagnostics) = axon::syntax::read(&text.name, text.contents);
    let mut inferred = None;
    if diagnostics.is_empty() {
        let options = axon::Options {
            globals: arguments.globals,
            explain: arguments.explain_shapes,
            strict_names: arguments.strict_names,
        };
        let found = axon::infer(&program, &options);
        eprint!("{}", source.render_all(&found.warnings));
        diagnostics.clone_from(&found.diagnostics);
        inferred = Some(found);
    }
    eprint!("{}", source.render_all(&diagnostics));
    let Some(mut inferred) = inferred.filter(|_| diagnostics.is_empty()) else {
        return Err(Error::Diagnosed);
    };
    let mut out = String::new();
    if arguments.explain_shapes {
        out += &inferred.explanation(&source);
    }
    if arguments.infer_shapes || arguments.explain_shapes {
        for (name, signature) in inferred.signatures() {
            let name = name.as_deref().unwrap_or("_");
            out += &format!("{name} : {}\n", signature.text);
            for condition in signature.conditions {
                out += &format!("  where {}", condition.text);
                if let Some(span) = condition.span {
                    let (line, column) = source.line_col(span.start);
                    out += &format!("  (checked when it runs, for {line}:{column})");
                }
                out.push('\n');
            }
        }
    }
    match arguments.output.as_str() {
        "-" => print(out.as_bytes()),
        path => fs::write(path, out).map_err(|error| Error::File { path: path.to_string(), error }),
    }
}

/// Reads a program. Warnings go to the standard error.
fn read(text: Text, compilation: &Compilation) -> Result<Program, Error> {
    let options =
        axon::Options { strict_names: compilation.strict_names(), ..axon::Options::default() };
    let program = Program::read_with(&text.name, text.contents, &options).map_err(error)?;
    eprint!("{}", program.warnings());
    Ok(program)
}

/// What is wrong with a program goes to the standard error.
fn error(error: tc_backends::axon::Error) -> Error {
    match error {
        tc_backends::axon::Error::Request(reason) => Error::Usage(reason),
        tc_backends::axon::Error::Program(text) => {
            eprint!("{text}");
            Error::Diagnosed
        }
        tc_backends::axon::Error::Run(error) => hlo::error(error),
    }
}

/// Compares results with those of the reference interpreter, or with expected ones in a folder.
fn check(
    session: &mut Session,
    inputs: &[Array],
    results: &[Array],
    expected: Option<&Path>,
) -> Result<String, Error> {
    let inputs = inputs.iter().map(|input| values(input).map_err(hlo::error));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let limits = Limits { points: 1 << 30, elements: 1 << 26 };
    let outcomes = session.interpret(&inputs, limits).map_err(error)?;
    let mut report = String::new();
    for (number, (outcome, result)) in outcomes.iter().zip(results).enumerate() {
        let name = format!("out{number}");
        let found = values(result).map_err(hlo::error)?;
        report += &command_line::check(&name, outcome, &found, expected)?;
    }
    Ok(report)
}

/// Refuses parameters that are larger than arrays may be.
fn check_sizes(parameters: &[(String, TensorType)]) -> Result<(), Error> {
    for (name, ty) in parameters {
        let array = ArrayShape::new(to_hlo::hlo_element(ty.element), ty.dims.as_slice());
        if array.num_bytes().is_none_or(|bytes| MAX_BYTES < bytes) {
            return Err(Error::Usage(format!(
                "'{name}' would be {ty}, expected at most {MAX_BYTES} bytes; try '--shape {name}=..' with \
                 smaller sizes"
            )));
        }
    }
    Ok(())
}

/// An entry as HLO.
fn lower(program: &Program, session: &mut Session) -> Result<hlo::Program, Error> {
    let module = session.module().map_err(error)?;
    Ok(hlo::Program::new(program.source().clone(), module))
}

/// The shapes of the files in a folder, but for those of parameters whose shapes are given.
fn shapes_of_files(folder: &Path, given: &[Given]) -> Result<Vec<Given>, Error> {
    let failed = |error| Error::File { path: folder.display().to_string(), error };
    let mut shapes = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let output = stem.strip_suffix(".expected").unwrap_or(&stem);
        let is_output = output.strip_prefix("out").is_some_and(|it| it.parse::<u32>().is_ok());
        if path.extension().is_none_or(|ending| ending != "npy")
            || is_output
            || given.iter().any(|it| it.parameter == stem)
        {
            continue;
        }
        let tensor = npy::load(&path)?;
        // Files have no bf16.
        let mut known = ElementType::ALL.into_iter().filter(|it| *it != ElementType::Bf16);
        let element = known.find(|it| stored(*it) == tensor.element());
        let dims = tensor.shape().iter().map(|size| Some(*size as i64)).collect();
        let source = Some(format!("{stem}.npy"));
        shapes.push(Given { parameter: stem, element, dims, source });
    }
    shapes.sort_by(|a, b| a.parameter.cmp(&b.parameter));
    Ok(shapes)
}

/// An entry of an Axon program as fused `imap` operations: a function whose sizes are parameters, but
/// for those that are given or follow, or one for these sizes alone if all are known. Which it is, is
/// said on the standard error.
///
/// # Errors
/// The program is wrong, or the shapes are.
pub fn compile<'c>(
    context: &'c Context,
    text: Text,
    entry: Option<&str>,
    compilation: &Compilation,
) -> Result<Module<'c>, Error> {
    let program = read(text, compilation)?;
    let given = compilation.shapes()?;
    let reports = hlo::report_errors(context, program.source());
    let (name, shapes, module) = match program.lower(context, entry, &given).map_err(error)? {
        Some(it) => (it.name, format!("all sizes of {}", it.signature), it.module),
        None => {
            context.detach_diagnostic_handler(reports);
            let mut session = program.specialize(entry, &given).map_err(error)?;
            check_sizes(session.parameters())?;
            let module = lower(&program, &mut session)?.lower(context)?;
            let parameters = session.parameters().iter();
            let parameters: Vec<_> =
                parameters.map(|(name, ty)| format!("{name} : {ty}")).collect();
            let parameters = match parameters.is_empty() {
                true => "it takes nothing".to_string(),
                false => parameters.join(", "),
            };
            (session.name(), format!("these shapes only: {parameters}"), module)
        }
    };
    eprintln!("{}: note: '{name}' is compiled for {shapes}", program.source().name());
    Ok(module)
}

/// Compiles an entry of a program and runs it.
///
/// # Errors
/// The program, an input or a result is not what it should be.
pub fn run(text: Text, entry: Option<&str>, execution: &Execution) -> Result<(), Error> {
    let mut given = execution.compilation.shapes()?;
    let program = read(text, &execution.compilation)?;
    let inputs = execution.inputs.as_deref();
    if let Some(folder) = inputs {
        given.extend(shapes_of_files(folder, &given)?);
    }
    let mut session = program.specialize(entry, &given).map_err(error)?;
    check_sizes(session.parameters())?;
    let lowered = lower(&program, &mut session)?;
    let parameters = session.parameters().to_vec();
    if !execution.json {
        for (name, ty) in &parameters {
            print(format!("{name}: {ty}\n").as_bytes())?;
        }
    }
    let input = |number: usize, shape: &ArrayShape| {
        let (name, _) = &parameters[number];
        let file = inputs.map(|folder| folder.join(format!("{name}.npy")));
        match file.filter(|file| file.exists()) {
            Some(file) => hlo::load(&file, shape),
            None => hlo::random(name, shape, execution.seed.wrapping_add(number as u64)),
        }
    };
    let session = RefCell::new(session);
    let expected = execution.expected()?;
    let check = |inputs: &[Array], results: &[Array]| {
        check(&mut session.borrow_mut(), inputs, results, expected)
    };
    let shown = |shape: &ArrayShape| match axon_element(shape.element_type) {
        Some(element) => TensorType { element, dims: shape.dims.clone() }.to_string(),
        None => hlo::shown(shape),
    };
    hlo::execute(&lowered, execution, &input, &check, &shown)
}
