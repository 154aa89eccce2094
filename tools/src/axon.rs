//! Axon programs in `tc-opt`: their signatures, and how these were found.

use crate::command_line::print;
use clap::Parser;
use std::{
    fs,
    io::{self, Read},
    path::PathBuf,
};
use tc_backends::run::Error;
use tc_dialects::{axon, tc::syntax::SourceFile};

/// Infer the types and shapes of an Axon program.
#[derive(Parser, Debug)]
#[command(
    name = "tc-opt",
    after_help = "Examples:\n  \
        tc-opt model.axon --infer-shapes     the signature of every definition\n  \
        tc-opt model.axon --explain-shapes   how they were found, step by step"
)]
struct Arguments {
    /// The program: a .axon file.
    file: PathBuf,
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

/// Whether a command line is about an Axon program.
pub fn is_axon(arguments: &[String]) -> bool {
    arguments[1.min(arguments.len())..].iter().any(|argument| argument.ends_with(".axon"))
}

/// `tc-opt` on an Axon program. What is wrong with the program goes to the standard error.
///
/// # Errors
/// The program cannot be read, or is wrong.
pub fn opt(arguments: &[String]) -> Result<(), Error> {
    let arguments = Arguments::try_parse_from(arguments).unwrap_or_else(|error| error.exit());
    if !arguments.infer_shapes && !arguments.explain_shapes {
        return Err(Error::Usage(
            "expected '--infer-shapes' or '--explain-shapes' with an Axon program".to_string(),
        ));
    }
    let name = arguments.file.display().to_string();
    let mut bytes = Vec::new();
    let read = fs::File::open(&arguments.file).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error: io::Error| Error::File { path: name.clone(), error })?;
    let source = match SourceFile::from_bytes(&name, bytes) {
        Ok(source) => source,
        Err(error) => {
            eprint!("{}", error.0.render(&error.1));
            return Err(Error::Diagnosed);
        }
    };
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
