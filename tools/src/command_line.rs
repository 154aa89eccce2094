//! What the command lines of the tools have in common: the source, the sizes, and how a
//! program is compiled.

use clap::{Arg, Args, Parser, ValueEnum, error::ErrorKind};
use std::{
    env, fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{ExitCode, exit},
};
use tc_backends::{
    Backend, Codegen, Error, MAX_THREADS, Request, backend, cpu,
    interp::{Outcome, compare},
    program::{Checks, Padding, Shape, Sizes},
    run,
    runtime::Tensor,
    targets,
};
use tc_dialects::{
    files::{self, MAX_SOURCE_BYTES},
    imap::MAX_EXTENT,
    pass, report,
};

/// What the standard input is called in diagnostics.
const STDIN: &str = "<stdin>";

/// A source language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Tensor comprehensions.
    Tc,
    /// The HLO text of XLA.
    Hlo,
    /// Tensor expressions without indices.
    Tml,
    /// A functional language in which shapes are inferred.
    Axon,
    /// MLIR text with tc.def or func.func operations.
    Mlir,
}

/// The source of a tool.
#[derive(Args, Clone, Debug)]
pub struct Source {
    /// The program: a .tc, .hlo, .tml or .axon file, MLIR with tc.def or func.func operations, or '-'
    /// for the standard input.
    pub file: PathBuf,
    /// The function to use, if the file has several.
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// The language, if neither the file name nor the first line determines it.
    #[arg(short = 'x', long, value_enum)]
    pub language: Option<Language>,
    /// Accepts the spellings of the TC documentation.
    #[arg(long)]
    pub relaxed: bool,
}

impl Source {
    /// Whether the source is the standard input.
    pub fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }

    /// Reads the source. The standard input is a comprehension unless it begins as HLO does.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self) -> Result<tc_backends::Source, Error> {
        let (name, result) = match self.is_stdin() {
            true => (STDIN.to_string(), files::read_all(io::stdin(), MAX_SOURCE_BYTES)),
            false => (self.file.display().to_string(), files::read(&self.file, MAX_SOURCE_BYTES)),
        };
        let contents = result.map_err(|error| Error::File { path: name.clone(), error })?;
        let mut source = tc_backends::Source::new(name, contents);
        source.relaxed = self.relaxed;
        source.language = match self.language {
            Some(Language::Tc) => tc_dialects::Language::Tc,
            Some(Language::Hlo) => tc_dialects::Language::Hlo,
            Some(Language::Tml) => tc_dialects::Language::Tml,
            Some(Language::Axon) => tc_dialects::Language::Axon,
            Some(Language::Mlir) => tc_dialects::Language::Mlir,
            None => match source.language {
                tc_dialects::Language::Mlir if self.is_stdin() => tc_dialects::Language::Tc,
                language => language,
            },
        };
        Ok(source)
    }
}

/// The option that [`parse`] handles.
const EXPLAIN: &str = "explain";

/// Parses the command line of a tool. `--explain CODE` prints the explanation of a diagnostic code and
/// ends the process, without the arguments that the tool needs otherwise.
pub fn parse<Arguments: Parser>() -> Arguments {
    let explain = Arg::new(EXPLAIN)
        .long(EXPLAIN)
        .value_name("CODE")
        .help("Prints the explanation of a diagnostic code, such as TC0024")
        .exclusive(true);
    let mut command = Arguments::command().arg(explain);
    let matches = command.get_matches_mut();
    if let Some(code) = matches.get_one::<String>(EXPLAIN) {
        match tc_dialects::explain(code) {
            Ok(text) => {
                let printed = print(format!("{text}\n").as_bytes());
                exit(printed.is_err().into());
            }
            Err(message) => command.error(ErrorKind::InvalidValue, message).exit(),
        }
    }
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// The reference for the results of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Check {
    /// Compare with the reference interpreter.
    Interpreter,
    /// Compare with expected/NAME.npy or NAME.expected.npy in the folder of the inputs. For HLO,
    /// with the results listed in case.json.
    Expected,
}

/// Options for compiling and running a program.
#[derive(Args, Clone, Debug)]
pub struct Execution {
    /// The options for compiling.
    #[command(flatten)]
    pub compilation: Compilation,
    /// A folder with NAME.npy for inputs; the others are random. For HLO, in0.npy, ..
    #[arg(long, value_name = "DIR")]
    pub inputs: Option<PathBuf>,
    /// Writes each output to NAME.npy in this folder.
    #[arg(long, value_name = "DIR")]
    pub outputs: Option<PathBuf>,
    /// The seed of random inputs.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Checks the results.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "interpreter")]
    pub check: Option<Check>,
    /// Measures the compiled program.
    #[arg(long)]
    pub bench: bool,
    /// Measures each kernel of the compiled program, and compares it with the limits of the machine.
    #[arg(long, conflicts_with = "bench")]
    pub profile: bool,
    /// Writes the names of compiled functions to /tmp/perf-PID.map, where 'perf report' looks for them.
    #[arg(long)]
    pub perf_map: bool,
    /// Keeps machine code of the target 'cpu' in a folder, and loads it if it is there [default folder:
    /// $XDG_CACHE_HOME/tc or ~/.cache/tc]. TC_CACHE=off in the environment switches this off.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true)]
    pub cache: Option<Option<PathBuf>>,
    /// Prints the measurement as JSON; with '--device=emulator', the counts of each kernel.
    #[arg(long)]
    pub json: bool,
    /// The device that runs the kernels of a GPU's program: 'cuda', the first GPU of this machine, or 'emulator',
    /// which also checks their accesses.
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Prints the fused IR.
    #[arg(long)]
    pub print_ir: bool,
}

impl Execution {
    /// The backend of the target, with the device if there is one, and how it generates code.
    ///
    /// # Errors
    /// The target, its machine or the device is unknown, or cannot do what is asked for.
    pub fn target(&self) -> Result<(&'static dyn Backend, Codegen), Error> {
        let (backend, mut codegen) = self.compilation.target()?;
        (codegen.profile, codegen.perf_map) = (self.profile, self.perf_map);
        codegen.cache = self.cache_folder()?;
        let usage = |reason: &str| Err(Error::Usage(reason.to_string()));
        if self.perf_map && codegen.machine.is_gpu() {
            return usage("'--perf-map' names functions of the target 'cpu' only");
        }
        if self.cache.is_some() && codegen.machine.is_gpu() {
            return usage("'--cache' keeps code of the target 'cpu' only; remove it");
        }
        if self.profile && codegen.machine.is_gpu() {
            return usage(
                "'--profile' measures kernels of the target 'cpu' only; \
                 for a GPU, try '--device=emulator --json'",
            );
        }
        if codegen.excess_precision && matches!(self.check, Some(Check::Interpreter)) {
            return usage(
                "'--check' compares with the interpreter, which rounds as the program says; \
                 remove '--allow-excess-precision'",
            );
        }
        match &self.device {
            Some(_) if self.bench => usage(
                "'--bench' cannot measure devices; '--json' prints the counts of the emulator",
            ),
            Some(name) => Ok((backend.on_device(name).map_err(Error::Usage)?, codegen)),
            None if self.json && !self.measures() => {
                usage("'--json' needs '--bench', '--profile' or '--device=emulator'")
            }
            None => Ok((backend, codegen)),
        }
    }

    /// The folder of the cache, unless there is none or the environment switches it off.
    fn cache_folder(&self) -> Result<Option<PathBuf>, Error> {
        let is_off = env::var_os("TC_CACHE").is_some_and(|value| value == "off");
        let Some(folder) = self.cache.as_ref().filter(|_| !is_off) else { return Ok(None) };
        let folder = folder.clone().or_else(default_cache);
        folder.map(Some).ok_or_else(|| {
            let reason = "'--cache' finds no folder without $XDG_CACHE_HOME and $HOME";
            Error::Usage(format!("{reason}; try '--cache=FOLDER'"))
        })
    }

    /// Whether the compiled program is measured.
    pub fn measures(&self) -> bool {
        self.bench || self.profile
    }

    /// The folder with the expected results, if results are to be compared with such.
    ///
    /// # Errors
    /// No folder is given.
    pub fn expected(&self) -> Result<Option<&Path>, Error> {
        match (self.check, &self.inputs) {
            (Some(Check::Expected), None) => {
                Err(Error::Usage("'--check=expected' needs '--inputs DIR'".to_string()))
            }
            (Some(Check::Expected), Some(folder)) => Ok(Some(folder)),
            _ => Ok(None),
        }
    }
}

/// The folder of the cache by the XDG Base Directory Specification, which ignores relative paths.
fn default_cache() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Some(caches?.join("tc"))
}

/// Makes a folder, and those that it is in.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), Error> {
    let failed = |error| Error::File { path: folder.display().to_string(), error };
    std::fs::create_dir_all(folder).map_err(failed)
}

/// Options for compiling a program.
#[derive(Args, Clone, Debug)]
pub struct Compilation {
    /// Values of size variables, M=512,K=256; may be repeated.
    #[arg(long = "size", value_delimiter = ',', value_name = "NAME=VALUE")]
    sizes: Vec<String>,
    /// The shape of a parameter of an Axon program, optionally with its element type: Q=128x64 or
    /// 'Q=f64[128,64]'; '?' for an open size; may be repeated.
    #[arg(long = "shape", value_name = "NAME=SIZES")]
    shapes: Vec<String>,
    /// Rejects different names of one signature of an Axon program that are equal.
    #[arg(long)]
    strict_names: bool,
    /// Also checks indices that depend on data, and divisions by zero.
    #[arg(long)]
    runtime_checks: bool,
    /// Does not fuse producers into consumers.
    #[arg(long)]
    no_fuse: bool,
    /// Neither reassociates nor contracts floating-point operations, and keeps subnormal numbers on x86.
    #[arg(long)]
    strict_fp: bool,
    /// Does not round floats that the same operation widens again, like XLA: bf16 to f32, say.
    #[arg(long, conflicts_with = "strict_fp")]
    allow_excess_precision: bool,
    /// Rounds the dimensions of a TML program up to multiples of LENGTH. The default `target` is the
    /// number of doubles in a vector register, or less if padding takes too much memory.
    #[arg(long, value_name = "LENGTH", num_args = 0..=1, require_equals = true,
          default_missing_value = TARGET, value_parser = parse_length)]
    pad: Option<Pad>,
    /// Evaluates the products and contractions of a TML program in the written order.
    #[arg(long)]
    keep_order: bool,
    /// Threads of the compiled program.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_threads)]
    threads: usize,
    /// Threads that compile a large program [default: those of the machine].
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    compile_threads: Option<usize>,
    /// The target, and the machine after a colon: 'cpu' for this machine, 'cpu:NAME' for a processor by
    /// its LLVM name, 'nvvm:sm_80', 'nvvm:sm_90a' or 'nvvm:sm_100a' for a GPU.
    #[arg(long, value_name = "TARGET[:MACHINE]", default_value = "cpu")]
    target: String,
    /// The same as '--target=cpu:NAME'.
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    target_cpu: Option<String>,
    /// Prints the IR after each pass to the standard error, like mlir-opt.
    #[arg(long)]
    mlir_print_ir_after_all: bool,
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=MAX_THREADS).contains(threads));
    threads.ok_or_else(|| format!("expected a number from 1 to {MAX_THREADS}"))
}

/// The largest vector length that makes sense.
const MAX_LENGTH: i64 = 1 << 16;

/// What stands for the vector length of the target.
const TARGET: &str = "target";

/// The value of `--pad`: the multiple that dimensions are rounded up to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Pad {
    /// The doubles that a vector register of the target holds, or fewer; see [`Padding::AtMost`].
    Target,
    /// This number.
    Length(i64),
}

fn parse_length(text: &str) -> Result<Pad, String> {
    let length = text.parse().ok().filter(|length| (1..=MAX_LENGTH).contains(length));
    match length.map(Pad::Length) {
        None if text == TARGET => Ok(Pad::Target),
        length => {
            length.ok_or_else(|| format!("expected '{TARGET}' or a number from 1 to {MAX_LENGTH}"))
        }
    }
}

impl Compilation {
    /// Whether what depends on data is checked too.
    pub fn has_runtime_checks(&self) -> bool {
        self.runtime_checks
    }

    /// Lets the passes print the IR, if it is to be printed.
    pub fn enable_ir_printing(&self) {
        if self.mlir_print_ir_after_all {
            pass::print_ir_after_all();
        }
    }

    /// The backend of the target, and how it generates code.
    ///
    /// # Errors
    /// The target or its machine is unknown.
    pub fn target(&self) -> Result<(&'static dyn Backend, Codegen), Error> {
        let (backend, machine) = match &self.target_cpu {
            Some(name) => (cpu::BACKEND, cpu::BACKEND.machine(Some(name)).map_err(Error::Usage)?),
            None => targets::named(&self.target).map_err(Error::Usage)?,
        };
        let mut codegen = Codegen::new(machine);
        (codegen.threads, codegen.strict_fp) = (self.threads, self.strict_fp);
        codegen.excess_precision = self.allow_excess_precision;
        codegen.compile_threads = match self.mlir_print_ir_after_all {
            // Threads would print at the same time.
            true => 1,
            false => self.compile_threads.unwrap_or(codegen.compile_threads),
        };
        Ok((backend, codegen))
    }

    /// The request for an entry; `codegen` has the machine whose vectors padding fills.
    ///
    /// # Errors
    /// A size or a shape is invalid.
    pub fn request(&self, entry: Option<String>, codegen: &Codegen) -> Result<Request, Error> {
        let padding = self.pad.map(|pad| match pad {
            Pad::Target => Padding::AtMost(codegen.machine.vector_length(64)),
            Pad::Length(length) => Padding::Length(length),
        });
        Ok(Request {
            entry,
            sizes: self.sizes()?,
            shapes: self.shapes()?,
            dynamic: false,
            checks: if self.runtime_checks { Checks::All } else { Checks::Shape },
            no_fuse: self.no_fuse,
            padding,
            keep_order: self.keep_order || self.strict_fp,
            ..Request::default()
        })
    }

    /// Refuses what is given and means nothing for programs in this language.
    ///
    /// # Errors
    /// There is such an option.
    pub fn check_language(&self, language: tc_dialects::Language) -> Result<(), Error> {
        let is_tml = language == tc_dialects::Language::Tml;
        let is_axon = language == tc_dialects::Language::Axon;
        let is_tc = matches!(language, tc_dialects::Language::Tc | tc_dialects::Language::Mlir);
        let options = [
            ("--pad", self.pad.is_some() && !is_tml),
            ("--keep-order", self.keep_order && !is_tml),
            ("--runtime-checks", self.runtime_checks && (is_tml || is_axon)),
            ("--shape", !self.shapes.is_empty() && !is_axon),
            ("--strict-names", self.strict_names && !is_axon),
            ("--size", !self.sizes.is_empty() && !is_tc),
        ];
        match options.iter().find(|(_, is_wrong)| *is_wrong) {
            Some((option, _)) => Err(Error::Usage(format!(
                "'{option}' does not apply to a program in this language; remove it"
            ))),
            None => Ok(()),
        }
    }

    /// Whether different names that are equal are an error in an Axon program.
    pub fn strict_names(&self) -> bool {
        self.strict_names
    }

    /// The sizes given.
    ///
    /// # Errors
    /// One of them is no size, or is given twice with different values.
    pub fn sizes(&self) -> Result<Sizes, Error> {
        let mut sizes = Sizes::new();
        for text in &self.sizes {
            let parsed =
                text.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
            let Some((name, value)) = parsed else {
                return Err(Error::Usage(format!(
                    "'{text}' is no size; expected NAME=NUMBER with a number from 1 to {MAX_EXTENT}"
                )));
            };
            if let Some(other) = sizes.insert(name.to_string(), value)
                && other != value
            {
                return Err(Error::Usage(format!(
                    "size '{name}' is given as {other} and as {value}"
                )));
            }
        }
        Ok(sizes)
    }

    /// The shapes given for parameters.
    ///
    /// # Errors
    /// One of them is no shape, or a parameter is given twice.
    fn shapes(&self) -> Result<Vec<Shape>, Error> {
        let mut shapes: Vec<Shape> = Vec::new();
        for text in &self.shapes {
            let Some(mut given) = Shape::parse(text) else {
                return Err(Error::Usage(format!(
                    "'--shape {text}' is no shape; expected NAME=4x3, NAME=f64[4,?] or NAME=[] for a scalar, \
                     with sizes from 1 to {MAX_EXTENT}"
                )));
            };
            if shapes.iter().any(|other| other.parameter == given.parameter) {
                return Err(Error::Usage(format!(
                    "'--shape {text}' is the second shape of '{}', expected one",
                    given.parameter
                )));
            }
            given.source = Some(format!("--shape {text}"));
            shapes.push(given);
        }
        Ok(shapes)
    }
}

/// Compares a result with that of the interpreter, or with the expected one in a folder. Returns a line about it;
/// `doubt` is the reason why elements are not compared.
///
/// # Errors
/// They do not.
pub fn check(
    name: &str,
    outcome: &Outcome,
    result: &Tensor,
    expected: Option<&Path>,
    doubt: &str,
) -> Result<String, Error> {
    if let Some(folder) = expected {
        let agreement = run::check_expected(outcome, folder, name, result)?;
        return Ok(format!("{name} agrees with {agreement}\n"));
    }
    let stats = compare(outcome, result)
        .map_err(|error| Error::Mismatch(format!("output '{name}' is wrong: {error}")))?;
    let certain = stats.num_elements - stats.num_uncertain;
    if certain == 0 && 0 < stats.num_uncertain {
        let count = stats.num_uncertain;
        return Ok(format!(
            "{name} is not compared with the interpreter: all {count} elements {doubt}\n"
        ));
    }
    let mut line = format!("{name} agrees with the interpreter on {certain} elements");
    if 0 < stats.num_uncertain {
        line += &format!(" ({} more {doubt})", stats.num_uncertain);
    }
    Ok(line + "\n")
}

/// The exit code for a wrong command line, as in clap.
const WRONG_COMMAND_LINE: u8 = 2;

/// Runs a tool, and says what went wrong if nothing else has. A panic is a mistake of ours, and
/// said to be one.
pub fn run_tool(name: &str, run: impl FnOnce() -> Result<(), Error>) -> ExitCode {
    tc_dialects::silence_panics();
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        // Empty if the diagnostics have been printed.
        Ok(Err(Error::Program(text))) => eprint!("{text}"),
        Ok(Err(error)) => {
            eprintln!("{name}: error: {error}");
            if matches!(
                error,
                Error::Usage(_)
                    | Error::Compile(
                        backend::Error::Target(_)
                            | backend::Error::Form { .. }
                            | backend::Error::NoDevice(_)
                    )
            ) {
                return ExitCode::from(WRONG_COMMAND_LINE);
            }
        }
        Err(payload) => {
            let text = tc_dialects::panic_text(&*payload);
            eprintln!("{name}: internal error: {text} (please report it)");
        }
    }
    ExitCode::FAILURE
}

/// Refuses this process more memory than there is, so that what asks for too much gets none, and can say so,
/// instead of being ended by the system when it writes there. Only where the system says what there is.
pub fn limit_memory() {
    let Ok(text) = fs::read_to_string("/proc/meminfo") else { return };
    let Some(available) = available_memory(&text) else { return };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: The pointers are valid. A limit that cannot be set is none.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_DATA, &mut limit) == 0 && available < limit.rlim_cur {
            limit.rlim_cur = available;
            libc::setrlimit(libc::RLIMIT_DATA, &limit);
        }
    }
}

/// Lets the allocator of the C library keep freed memory for the next allocation. It would return the memory
/// of large temporaries to the system, which clears every page again when a call or an iteration of a loop
/// takes it anew.
pub fn keep_freed_memory() {
    // SAFETY: The parameters are those of mallopt(3). A parameter that is refused changes nothing.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, libc::c_int::MAX);
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    }
}

/// How many bytes can be used before others have to be written elsewhere, of what Linux says about its memory.
fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Writes to the standard output. A reader that stops early, such as `head`, is no failure.
///
/// # Errors
/// The output cannot be written.
pub fn print(bytes: &[u8]) -> Result<(), Error> {
    let path = "<stdout>".to_string();
    report::print(bytes).map_err(|error| Error::File { path, error })
}
