//! Axon programs in `tc-opt`: their signatures, and how these were found.

use crate::command_line::{Language, Source, print};
use clap::Parser;
use std::{fs, path::PathBuf};
use tc_backends::Error;
use tc_dialects::axon;

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
        return Err(Error::Program(String::new()));
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
