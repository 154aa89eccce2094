//! `tc-conformance`: runs conformance files and reports failing cases.

use clap::Parser;
use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};
use tc_tools::conformance::{self, Options};

/// Run the cases of conformance files
///
/// Prints one line per failing case, a table per opcode of HLO programs, a table per kind of case, and
/// finally 'N passed, N failed, N skipped'. The exit code is 1 if a case failed.
#[derive(Parser)]
#[command(
    version,
    after_help = "Examples:
  tc-conformance tests/conformance/tc
  tc-conformance --json ranges.jsonl > results.jsonl
  tc-conformance --verbose tests/conformance/hlo/hostile
  grep conv eval.jsonl | tc-conformance -"
)]
struct Arguments {
    /// Files, folders (every *.jsonl, case.json and expected.json in them), or '-' for the
    /// standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,

    /// Print one JSON object per case: file, name, kind, status, expected, got; the rest
    /// goes to the standard error
    #[arg(long)]
    json: bool,

    /// Also print passed cases, with expected and found results
    #[arg(short, long)]
    verbose: bool,

    /// Number of cases to run in parallel [default: the number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    /// Time limit of one case in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().time_limit.as_secs())]
    timeout: u64,

    /// Largest number of iteration points of a case that chooses its own sizes
    #[arg(long, value_name = "POINTS", default_value_t = Options::default().work_limit)]
    work: u64,
}

fn main() -> ExitCode {
    tc_dialects::silence_panics();
    let arguments = Arguments::parse();
    let options = Options {
        jobs: arguments.jobs.unwrap_or(Options::default().jobs),
        time_limit: Duration::from_secs(arguments.timeout),
        work_limit: arguments.work,
    };
    let report = conformance::run(&arguments.paths, &options);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if arguments.json {
        report
            .write_json(&mut out)
            .and_then(|()| report.write_text(&mut io::stderr().lock(), arguments.verbose))
    } else {
        report.write_text(&mut out, arguments.verbose)
    };
    match written.and_then(|()| out.flush()) {
        // A reader that stops early, such as `head`, is no failure of ours.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("tc-conformance: error: cannot write the report: {error}");
            ExitCode::from(2)
        }
        _ if report.is_success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
