//! Axon programs in `tc-opt`: their signatures, and how these were found; and in `tc-run` and
//! `tc-compile`: functions at known shapes.

use crate::{
    command_line::{Compilation, Execution, Language, Source, Text, agreement, print},
    hlo,
};
use clap::Parser;
use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
};
use tc_backends::{
    hlo::{Array, to_file_tensor},
    interp::{self, Limits, compare, stored},
    run::Error,
    runtime::npy,
};
use tc_dialects::{
    axon::{
        self, ElementType, Given, Inferred, Instance, Refusal, syntax::ast::Program, to_hlo::to_hlo,
    },
    hlo::ArrayShape,
    tc::syntax::{Diagnostic, Reason, SourceFile},
    tml::import::program_name,
};

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
    let source = source_file(source.read()?)?;
    let (program, mut diagnostics) = axon::syntax::parse_program(&source);
    let mut inferred = None;
    if diagnostics.is_empty() {
        let options =
            axon::Options { globals: arguments.globals, explain: arguments.explain_shapes };
        let found = axon::infer(&program, &options);
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
        let names = inferred.definitions().into_iter().map(Some);
        let value = inferred.has_result().then_some(None);
        for name in names.chain(value).collect::<Vec<_>>() {
            let Some(signature) = inferred.signature(name.as_deref()) else { continue };
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

/// A program whose shapes are inferred, and an entry of it at known shapes.
struct Session {
    source: SourceFile,
    program: Program,
    inferred: Inferred,
    instance: Instance,
}

fn source_file(text: Text) -> Result<SourceFile, Error> {
    SourceFile::from_bytes(text.name, text.contents, Reason::AxonSyntax, Reason::AxonLimit).map_err(
        |error| {
            eprint!("{}", error.0.render(&error.1));
            Error::Diagnosed
        },
    )
}

/// Prints what is wrong with a program.
fn diagnosed(source: &SourceFile, diagnostics: &[Diagnostic]) -> Error {
    eprint!("{}", source.render_all(diagnostics));
    Error::Diagnosed
}

impl Session {
    fn new(
        text: Text,
        entry: Option<&str>,
        mut given: Vec<Given>,
        inputs: Option<&Path>,
    ) -> Result<Self, Error> {
        let source = source_file(text)?;
        let (program, diagnostics) = axon::syntax::parse_program(&source);
        if !diagnostics.is_empty() {
            return Err(diagnosed(&source, &diagnostics));
        }
        let mut inferred = axon::infer(&program, &axon::Options::default());
        if !inferred.diagnostics.is_empty() {
            return Err(diagnosed(&source, &inferred.diagnostics));
        }
        if let Some(folder) = inputs {
            given.extend(shapes_of_files(folder, &given)?);
        }
        let instance = inferred.specialize(&program, entry, &given);
        let instance = instance.map_err(|refusal| match refusal {
            Refusal::Request(reason) => Error::Usage(reason),
            Refusal::Program(diagnostics) => diagnosed(&source, &diagnostics),
        })?;
        Ok(Self { source, program, inferred, instance })
    }

    /// What the entry is called where C can spell it.
    fn name(&self) -> String {
        match &self.instance.name {
            Some(name) => name.to_string(),
            None => program_name(self.source.name()),
        }
    }

    /// Compares results with those of the reference interpreter.
    fn check(&mut self, inputs: &[Array], results: &[Array]) -> Result<String, Error> {
        let unusable = |error: tc_backends::hlo::Error| Error::Refused(error.to_string());
        let inputs = inputs.iter().map(|input| to_file_tensor(input).map_err(unusable));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let Self { source, program, inferred, instance } = self;
        let limits = Limits { points: 1 << 30, elements: 1 << 26 };
        let outcomes = interp::run_axon(inferred, program, instance, &inputs, limits);
        let outcomes = outcomes.map_err(|error| diagnosed(source, &[error]))?;
        let mut report = String::new();
        for (number, (outcome, result)) in outcomes.iter().zip(results).enumerate() {
            let name = format!("out{number}");
            let found = to_file_tensor(result).map_err(unusable)?;
            let stats = compare(outcome, &found)
                .map_err(|error| Error::Mismatch(format!("output '{name}' is wrong: {error}")))?;
            report += &agreement(&name, &stats);
        }
        Ok(report)
    }

    fn lower(&mut self) -> Result<hlo::Program, Error> {
        let name = self.name();
        let module = to_hlo(&mut self.inferred, &self.program, &self.instance, &name);
        let module = module.map_err(|error| diagnosed(&self.source, &[error]))?;
        Ok(hlo::Program::new(self.source.clone(), module))
    }
}

/// The shapes of the files in a folder, but for those of parameters whose shapes are given.
fn shapes_of_files(folder: &Path, given: &[Given]) -> Result<Vec<Given>, Error> {
    let failed = |error| Error::File { path: folder.display().to_string(), error };
    let mut shapes = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_output = stem.strip_prefix("out").is_some_and(|it| it.parse::<u32>().is_ok());
        if path.extension().is_none_or(|ending| ending != "npy")
            || is_output
            || given.iter().any(|it| it.parameter == stem)
        {
            continue;
        }
        let tensor = npy::load(&path)?;
        let element = ElementType::ALL.into_iter().find(|it| stored(*it) == Some(tensor.element()));
        let dims = tensor.shape().iter().map(|size| *size as i64).collect();
        shapes.push(Given { parameter: stem, element, dims });
    }
    shapes.sort_by(|a, b| a.parameter.cmp(&b.parameter));
    Ok(shapes)
}

/// An entry of an Axon program at the shapes given, and those that follow from them, which are said
/// on the standard error.
///
/// # Errors
/// The program is wrong, or the shapes are.
pub fn compile(
    text: Text,
    entry: Option<&str>,
    compilation: &Compilation,
) -> Result<hlo::Program, Error> {
    let mut session = Session::new(text, entry, compilation.shapes()?, None)?;
    let program = session.lower()?;
    let parameters = session.instance.parameters.iter();
    let parameters: Vec<_> = parameters.map(|(name, ty)| format!("{name} : {ty}")).collect();
    eprintln!(
        "{}: note: '{}' is compiled for these shapes only: {}",
        session.source.name(),
        session.name(),
        if parameters.is_empty() { "it takes nothing".to_string() } else { parameters.join(", ") }
    );
    Ok(program)
}

/// Compiles an entry of a program for this machine and runs it.
///
/// # Errors
/// The program, an input or a result is not what it should be.
pub fn run(text: Text, entry: Option<&str>, execution: &Execution) -> Result<(), Error> {
    let given = execution.compilation.shapes()?;
    let inputs = execution.inputs.as_deref();
    let mut session = Session::new(text, entry, given, inputs)?;
    let program = session.lower()?;
    if execution.print_ir {
        let context = tc_dialects::new_context();
        let lowered = program.lower(&context)?;
        print(format!("{}\n", lowered.as_operation()).as_bytes())?;
    }
    let parameters = session.instance.parameters.clone();
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
            None => hlo::random(shape, execution.seed.wrapping_add(number as u64)),
        }
    };
    let session = RefCell::new(session);
    let check = |inputs: &[Array], results: &[Array]| session.borrow_mut().check(inputs, results);
    hlo::execute(&program, execution, &input, &check)
}
