//! Two builds of `tc-run`: the time of the code that they generate, and the time that they take to
//! generate it, for published kernels in TC, the examples in TML and Axon, and programs in HLO.
//!
//! The current build is the release build of this checkout. Exit codes: 0, 1 if a program is slower in two
//! measurements or fails, 2 for a wrong command line.

use clap::Parser;
use std::{fs, path::PathBuf, process::ExitCode};
use tc_benches::{
    build_tool,
    compare::{Build, MIN_RATIO, RUNS, Row, Times, compare, geometric_mean, name},
    suite::{Case, cases},
};

/// The most other threads that run without a warning, on average.
const MAX_OTHER_THREADS: f64 = 0.5;

/// Compares the current release build of tc-run with another one.
#[derive(Parser)]
#[command(after_help = "Examples:
  make bench BASE=../base/tc-run
  make bench BASE=../base/tc-run ARGS='hlo/ --threads 2 --json'
  cargo bench --package tc-benches --bench compare -- /tmp/base/tc-run attention")]
struct Arguments {
    /// The tc-run to compare with.
    base: PathBuf,
    /// Measures only programs whose name has one of these in it.
    filters: Vec<String>,
    /// The tc-run to measure, instead of the release build of this checkout.
    #[arg(long, value_name = "TC-RUN")]
    new: Option<PathBuf>,
    /// Threads of the compiled programs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Prints one JSON object per line and program, and one for all.
    #[arg(long)]
    json: bool,
    /// Passed by 'cargo bench'.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compare: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Compares; whether no program is slower, and none fails.
fn run(arguments: &Arguments) -> Result<bool, String> {
    let new = match &arguments.new {
        Some(new) => new.clone(),
        None => build_tool("tc-run").map_err(|error| error.to_string())?,
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compare");
    let all = cases(&folder).map_err(|error| error.to_string())?;
    let is_asked = |case: &Case| {
        let filters = &arguments.filters;
        filters.is_empty() || filters.iter().any(|filter| case.name.contains(filter))
    };
    let cases: Vec<_> = all.into_iter().filter(is_asked).collect();
    if cases.is_empty() {
        return Err("no program has such a name".to_string());
    }
    let mut others = Vec::new();
    let mut measure = |build: Build, case: &Case| {
        others.extend(other_threads());
        let tool = if build == Build::Base { &arguments.base } else { &new };
        Times::measure(tool, case, arguments.threads)
    };
    if !arguments.json {
        println!("times of a call: minima of {RUNS} runs each");
        println!("{:28} {:>11} {:>11} {:>7}", "program", "base ms", "new ms", "ratio");
    }
    let rows = compare(&cases, &mut measure, &mut |row| {
        if !arguments.json {
            print_times(row);
        }
    });
    let pairs: Vec<_> = rows.iter().filter_map(Row::pair).collect();
    let mean = geometric_mean(pairs.iter().map(|pair| pair.ratio()));
    let compile_mean = geometric_mean(pairs.iter().map(|pair| pair.compile_ratio()));
    let names = |test: fn(&Row) -> bool| -> Vec<&str> {
        rows.iter().filter(|row| test(row)).map(|row| row.name.as_str()).collect()
    };
    let (slower, failed) = (names(Row::is_slower), names(Row::has_failed));
    if arguments.json {
        rows.iter().for_each(|row| println!("{}", row.json()));
        let summary = serde_json::json!({
            "geometric_mean": mean,
            "compile_geometric_mean": compile_mean,
            "slower": slower,
            "failed": failed,
        });
        println!("{summary}");
    } else {
        print_mean(mean);
        print_compile_times(&rows);
        print_mean(compile_mean);
        if !slower.is_empty() {
            println!(
                "\nslower in two measurements (ratio below {MIN_RATIO}): {}",
                slower.join(", ")
            );
        }
        if !failed.is_empty() {
            println!("\nfailed: {}", failed.join(", "));
        }
    }
    let others = others.iter().sum::<f64>() / others.len().max(1) as f64;
    if MAX_OTHER_THREADS < others {
        eprintln!(
            "compare: warning: {others:.1} other threads ran on average; times differ by more than the limit"
        );
    }
    Ok(slower.is_empty() && failed.is_empty())
}

/// The number of other threads that run or wait for a processor, if the system reports it.
fn other_threads() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let (running, _) = text.split_whitespace().nth(3)?.split_once('/')?;
    Some(running.parse::<f64>().ok()? - 1.0)
}

fn print_times(row: &Row) {
    let Some(pair) = row.pair() else {
        if let Err((build, error)) = &row.first {
            println!("{:28} {} failed: {error}", row.name, name(*build));
        }
        return;
    };
    let (base, new) = (pair.base.seconds * 1e3, pair.new.seconds * 1e3);
    let note = match row.second {
        Some(_) if row.is_slower() => " slower again",
        Some(_) => " not slower again",
        None if pair.ratio() < MIN_RATIO => " slower, to be measured again",
        None => "",
    };
    println!("{:28} {base:11.4} {new:11.4} {:7.3}{note}", row.name, pair.ratio());
}

fn print_compile_times(rows: &[Row]) {
    println!("\ntimes of compilation");
    println!("{:28} {:>11} {:>11} {:>7}", "program", "base ms", "new ms", "ratio");
    for row in rows {
        let Some(pair) = row.pair() else { continue };
        let (base, new) = (pair.base.compile_seconds * 1e3, pair.new.compile_seconds * 1e3);
        println!("{:28} {base:11.1} {new:11.1} {:7.3}", row.name, pair.compile_ratio());
    }
}

fn print_mean(mean: Option<f64>) {
    if let Some(mean) = mean {
        println!("{:52} {mean:7.3}", "geometric mean");
    }
}
