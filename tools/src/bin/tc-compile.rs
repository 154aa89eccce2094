//! `tc-compile`: compiles tensor comprehensions, HLO, TML and Axon programs to MLIR, LLVM IR, assembly
//! or an object.

use clap::{Parser, ValueEnum};
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};
use tc_backends::{Artifact, Error, Form, Session, Stage, program::Lowered};
use tc_dialects::Language;
use tc_tools::{
    command_line::{Compilation, Source, parse, print, run_tool},
    cost,
};

const EXAMPLES: &str = "Examples:
  tc-compile matmul.tc -o matmul.o                       an object, and matmul.h for it
  tc-compile matmul.tc --emit=imap                       the fused operations
  tc-compile model.hlo --emit=scf                        the loops
  tc-compile matmul.tc --emit=llvm-dialect --mlir-print-ir-after-all 2> passes.mlir
  tc-compile matmul.tc --emit=asm --size M=64,K=64,N=64  for these sizes only
  tc-compile layers.tc --entry mlp3 --emit=llvm --target-cpu x86-64-v3 -o mlp3.ll
  tc-compile model.hlo --threads 4                       the entry computation
  tc-compile model.hlo --target=nvvm:sm_90a -o model.ptx kernels for a GPU, and model.json
  tc-compile model.hlo --report=json                     operations, memory traffic, memory and times
  tc-compile model.axon --entry mlp --shape x=?x784      an Axon function for all other sizes

Sizes that are not given stay parameters of the compiled functions. An object of several
threads needs the OpenMP runtime (-lomp). Exit codes: 0, 1 for an error in the program,
2 for one in the command line.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The fused imap operations, as MLIR text; 'mlir' is the same.
    #[value(alias = "mlir")]
    Imap,
    /// Loops on buffers, as MLIR text: scf, memref, vector and arith operations.
    Scf,
    /// The operations of the llvm dialect, as MLIR text; for a GPU, those of the kernels.
    LlvmDialect,
    /// Optimized LLVM IR.
    Llvm,
    /// Assembly.
    Asm,
    /// An object, and a C header with the ending .h beside it; for a GPU, the host code that launches the kernels.
    Obj,
    /// The kernels of a GPU as PTX, and a manifest with the ending .json beside it.
    Ptx,
    /// The kernels of a GPU as machine code, made by ptxas, and a manifest with the ending .json beside it.
    Cubin,
}

impl Emit {
    fn of(form: Form) -> Self {
        match form {
            Form::LlvmIr => Self::Llvm,
            Form::Assembly => Self::Asm,
            Form::Object => Self::Obj,
            Form::Ptx => Self::Ptx,
            Form::Cubin => Self::Cubin,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Report {
    /// A JSON object per line and function. A cost is a number, a formula over sizes, or null if unknown.
    Json,
}

/// Compiles TC, HLO, TML and Axon programs.
#[derive(Parser, Debug)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    compilation: Compilation,
    /// The output format [default: obj, for a GPU ptx].
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Prints the costs of each function instead of code: operations, memory traffic and memory; and the times of
    /// passes and of LLVM.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "emit")]
    report: Option<Report>,
    /// The file to write, '-' for the standard output [default: '-' for text, the source's
    /// name with the ending .o for an object, .cubin for a cubin].
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments: Arguments = parse();
    run_tool("tc-compile", || run(&arguments))
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let (backend, codegen) = arguments.compilation.target()?;
    let usual = backend.forms()[0];
    let emitted = arguments.emit.unwrap_or_else(|| Emit::of(usual));
    let output = output(arguments, emitted)?;
    arguments.compilation.enable_ir_printing();
    let session = Session::with_backend(backend, codegen);
    session.print_diagnostics();
    let (lowered, lower_time) = lower(arguments, &session)?;
    if let Some(Report::Json) = arguments.report {
        let times = compile_times(&session, &lowered, usual, lower_time)?;
        let (costs, threads) = (session.costs(&lowered)?, session.codegen().threads);
        let lines = costs.iter().map(|cost| format!("{}\n", cost::report(cost, threads, times)));
        return write(&output, lines.collect::<String>().as_bytes());
    }
    let staged = |stage| {
        let module = session.lower_to(&lowered, stage)?;
        write(&output, format!("{}", module.as_operation()).as_bytes())
    };
    let emit = |form| emit(form, &output, &*session.generate(&lowered)?);
    match emitted {
        Emit::Imap => write(&output, format!("{}", lowered.module.as_operation()).as_bytes()),
        Emit::Scf => staged(Stage::Loops),
        Emit::LlvmDialect => staged(Stage::Llvm),
        Emit::Llvm => emit(Form::LlvmIr),
        Emit::Asm => emit(Form::Assembly),
        Emit::Obj => emit(Form::Object),
        Emit::Ptx => emit(Form::Ptx),
        Emit::Cubin => emit(Form::Cubin),
    }
}

/// The program as fused `imap` operations, and the time from its import to them.
fn lower<'c>(
    arguments: &Arguments,
    session: &'c Session,
) -> Result<(Lowered<'c>, Duration), Error> {
    let Arguments { source, compilation, .. } = arguments;
    let mut text = source.read()?;
    let usage = |message: &str| Err(Error::Usage(message.to_string()));
    let has_entry = source.entry.is_some();
    if text.language == Language::Hlo {
        if has_entry || !compilation.sizes()?.is_empty() {
            return usage(
                "an HLO program has fixed sizes and one entry; remove '--size' and '--entry'",
            );
        }
    } else {
        compilation.check_language(text.language)?;
    }
    if text.language == Language::Tml && has_entry {
        return usage("a TML file is one program; remove '--entry'");
    }
    text.strict_names = compilation.strict_names();
    let name = text.name.clone();
    let program = session.open(text)?;
    let mut request = compilation.request(source.entry.clone(), session.codegen())?;
    request.dynamic = true;
    if program.language() == Language::Mlir && !request.sizes.is_empty() {
        return Err(Error::Rejected(
            "the file has no 'tc.def', so that its functions cannot be specialized to sizes".into(),
        ));
    }
    let start = Instant::now();
    let lowered = session.lower(&*program, &request)?;
    let time = start.elapsed();
    if let Some(note) = &lowered.note {
        eprintln!("{name}: note: {note}");
    }
    Ok((lowered, time))
}

/// The times of passes and of LLVM for code in a form, if the passes before took `lower_time`.
fn compile_times(
    session: &Session,
    lowered: &Lowered,
    form: Form,
    lower_time: Duration,
) -> Result<[Duration; 2], Error> {
    let start = Instant::now();
    let artifact = session.generate(lowered)?;
    let (generated, llvm_time) = (start.elapsed(), artifact.llvm_time());
    artifact.emit(form)?;
    let emit_time = start.elapsed() - generated;
    Ok([lower_time + generated.saturating_sub(llvm_time), llvm_time + emit_time])
}

/// Writes generated code in a form. The description for its callers goes beside code that they load.
fn emit(form: Form, output: &Path, artifact: &dyn Artifact) -> Result<(), Error> {
    write(output, &artifact.emit(form)?)?;
    let is_loaded = matches!(form, Form::Object | Form::Ptx | Form::Cubin);
    // A device has nothing beside it.
    if !is_loaded || is_stdout(output) || !output.is_file() {
        return Ok(());
    }
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let interface = artifact.interface(form, &stem)?;
    write(&output.with_extension(interface.ending), interface.text.as_bytes())
}

/// Where to write.
fn output(arguments: &Arguments, emitted: Emit) -> Result<PathBuf, Error> {
    let ending = match emitted {
        Emit::Obj => Some("o"),
        Emit::Cubin => Some("cubin"),
        _ => None,
    };
    let ending = ending.filter(|_| arguments.report.is_none());
    match (&arguments.output, ending) {
        (Some(output), Some("o")) if output.extension().is_some_and(|it| it == "h") => {
            Err(Error::Usage(format!(
                "'{}' is the name of the header; expected that of the object after '-o'",
                output.display()
            )))
        }
        (Some(output), _) => Ok(output.clone()),
        (None, None) => Ok(PathBuf::from("-")),
        (None, Some(_)) if arguments.source.is_stdin() => Err(Error::Usage(
            "an object from the standard input has no name; try '-o FILE'".to_string(),
        )),
        // In the working directory, as compilers do.
        (None, Some(ending)) => {
            let name = arguments.source.file.file_name().unwrap_or_default();
            Ok(Path::new(name).with_extension(ending))
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
