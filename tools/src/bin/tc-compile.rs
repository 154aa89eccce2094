//! `tc-compile`: compiles tensor comprehensions, HLO, TML and Axon programs to MLIR, LLVM IR, assembly
//! or an object.

use clap::{Parser, ValueEnum};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tc_backends::{
    cpu::{Program, Target},
    run::Error,
};
use tc_dialects::Language;
use tc_tools::{
    axon,
    command_line::{Compilation, Source, print, run_tool},
    hlo, tml,
};

const EXAMPLES: &str = "Examples:
  tc-compile matmul.tc -o matmul.o                       an object, and matmul.h for it
  tc-compile matmul.tc --emit=mlir                       the fused operations
  tc-compile matmul.tc --emit=asm --size M=64,K=64,N=64  for these sizes only
  tc-compile layers.tc --entry mlp3 --emit=llvm --target-cpu x86-64-v3 -o mlp3.ll
  tc-compile model.hlo --threads 4                       the entry computation
  tc-compile model.axon --entry mlp --shape x=?x784      an Axon function for all other sizes

Sizes that are not given stay parameters of the compiled functions. An object of several
threads needs the OpenMP runtime (-lomp). Exit codes: 0, 1 for an error in the program,
2 for one in the command line.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The fused imap operations, as MLIR text.
    Mlir,
    /// Optimized LLVM IR.
    Llvm,
    /// Assembly.
    Asm,
    /// An object, and a C header with the ending .h beside it.
    Obj,
}

/// Compiles TC, HLO, TML and Axon programs.
#[derive(Parser, Debug)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    compilation: Compilation,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Emit::Obj)]
    emit: Emit,
    /// The file to write, '-' for the standard output [default: '-' for text, the source's
    /// name with the ending .o for an object].
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The target processor, by its LLVM name, for the operating system of this machine.
    #[arg(long, value_name = "NAME", default_value = "native")]
    target_cpu: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run_tool("tc-compile", || run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let output = output(arguments)?;
    let sizes = arguments.compilation.sizes()?;
    let target = match arguments.target_cpu.as_str() {
        "native" => Target::host(),
        name => Target::cpu(name),
    };
    let options = arguments.compilation.options(target, true);
    let context = tc_dialects::new_context();
    let text = arguments.source.read()?;
    if text.language == Language::Hlo {
        if !sizes.is_empty() || arguments.source.entry.is_some() {
            let message = "an HLO program has fixed sizes and one entry; \
                           remove '--size' and '--entry'";
            return Err(Error::Usage(message.to_string()));
        }
        let module = hlo::Program::read(text)?.lower(&context)?;
        return match arguments.emit {
            Emit::Mlir => write(&output, format!("{}", module.as_operation()).as_bytes()),
            _ => emit(arguments, &output, &Program::lower(&module, &options.cpu)?),
        };
    }
    arguments.compilation.check_language(text.language)?;
    if text.language == Language::Tml {
        if arguments.source.entry.is_some() {
            let message = "a TML file is one program; remove '--entry'";
            return Err(Error::Usage(message.to_string()));
        }
        let program = tml::Program::read(text)?;
        let options = program.options(&arguments.compilation, options.cpu.target);
        let module = program.lower(&context, &options)?;
        return match arguments.emit {
            Emit::Mlir => write(&output, format!("{}", module.as_operation()).as_bytes()),
            _ => emit(arguments, &output, &Program::lower(&module, &options.cpu)?),
        };
    }
    if text.language == Language::Axon {
        let entry = arguments.source.entry.as_deref();
        let module = axon::compile(&context, text, entry, &arguments.compilation)?;
        return match arguments.emit {
            Emit::Mlir => write(&output, format!("{}", module.as_operation()).as_bytes()),
            _ => emit(arguments, &output, &Program::lower(&module, &options.cpu)?),
        };
    }
    let session = arguments.source.open(&context, &text, false)?;
    let def = match &arguments.source.entry {
        Some(name) => Some(session.def(Some(name))?),
        None => None,
    };
    if arguments.emit == Emit::Mlir {
        let module = session.specialize(def, &sizes, &options)?;
        return write(&output, format!("{}", module.as_operation()).as_bytes());
    }
    emit(arguments, &output, &session.program(def, &sizes, &options)?)
}

/// Writes a program in the form asked for.
fn emit(arguments: &Arguments, output: &Path, program: &Program) -> Result<(), Error> {
    match arguments.emit {
        Emit::Llvm => write(output, program.llvm_ir().as_bytes()),
        Emit::Asm => write(output, program.assembly()?.as_bytes()),
        Emit::Mlir | Emit::Obj => {
            write(output, &program.object()?)?;
            if is_stdout(output) {
                return Ok(());
            }
            let header = output.with_extension("h");
            let guard = header.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            write(&header, program.header(&guard).as_bytes())
        }
    }
}

/// Where to write.
fn output(arguments: &Arguments) -> Result<PathBuf, Error> {
    let object = arguments.emit == Emit::Obj;
    match &arguments.output {
        Some(output) if object && output.extension().is_some_and(|it| it == "h") => {
            Err(Error::Usage(format!(
                "'{}' is the name of the header; expected that of the object after '-o'",
                output.display()
            )))
        }
        Some(output) => Ok(output.clone()),
        None if !object => Ok(PathBuf::from("-")),
        None if arguments.source.is_stdin() => Err(Error::Usage(
            "an object from the standard input has no name; try '-o FILE'".to_string(),
        )),
        // In the working directory, as compilers do.
        None => {
            let name = arguments.source.file.file_name().unwrap_or_default();
            Ok(Path::new(name).with_extension("o"))
        }
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if is_stdout(path) {
        return print(bytes);
    }
    fs::write(path, bytes).map_err(|error| Error::File { path: path.display().to_string(), error })
}
