//! Generated code: the published kernels of the conformance files at their published
//! sizes, in GFLOP/s and GB/s. `tc-run --bench` defines the operations and bytes that count.
//!
//! There is no peer in this benchmark: it says how long our code takes, not how long others
//! do. A call is repeated for half a second; the shortest time counts.

use clap::Parser;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};
use tc_backends::{Codegen, program::Sizes};
use tc_benches::{Kernel, Measurement, read};

/// Measures the code generated for published kernels; no peer is measured.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo bench --package tc-benches --bench kernels
  cargo bench --package tc-benches --bench kernels -- MLP --threads 2 --json")]
struct Arguments {
    /// Measures only kernels whose name has this in it.
    filter: Option<String>,
    /// The conformance file with the kernels.
    #[arg(long, value_name = "FILE.jsonl")]
    kernels: Option<PathBuf>,
    /// Limits every size to this.
    #[arg(long, value_name = "SIZE")]
    max_size: Option<i64>,
    /// Makes sizes smaller until all tensors of a kernel take no more than this.
    #[arg(long, value_name = "MB", default_value_t = 1024)]
    max_mb: u32,
    /// Threads of the compiled programs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Prints one JSON object per line.
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
            eprintln!("kernels: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures; whether every kernel could be.
fn run(arguments: &Arguments) -> io::Result<bool> {
    let shipped =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/tc/kernels.jsonl");
    let kernels = read(arguments.kernels.as_deref().unwrap_or(&shipped))?;
    let filter = arguments.filter.as_deref().unwrap_or_default();
    let options = Codegen { threads: arguments.threads.max(1), ..Codegen::default() };
    let mut out = io::stdout();
    if !arguments.json {
        writeln!(
            out,
            "{:20} {:>10} {:>9} {:>8} {:>9}  sizes ({} thread(s), no peer)",
            "kernel", "ms", "GFLOP/s", "GB/s", "compile", options.threads
        )?;
    }
    let mut complete = true;
    for kernel in kernels.iter().filter(|kernel| kernel.name.contains(filter)) {
        for published in &kernel.sizes {
            let limit = arguments.max_size.unwrap_or(i64::MAX).max(1);
            let sizes = published.iter().map(|(name, size)| (name.clone(), *size.min(&limit)));
            let sizes: Sizes = sizes.collect();
            match kernel.measure(&sizes, f64::from(arguments.max_mb) * 1e6, &options) {
                Ok(measured) => print(&mut out, arguments.json, kernel, published, &measured)?,
                Err(error) => {
                    eprintln!("kernels: error: {} at {}: {error}", kernel.name, show(&sizes));
                    complete = false;
                }
            }
        }
    }
    Ok(complete)
}

fn print(
    out: &mut impl Write,
    json: bool,
    kernel: &Kernel,
    published: &Sizes,
    measured: &Measurement,
) -> io::Result<()> {
    let seconds = measured.bench.seconds_min;
    if json {
        let line = serde_json::json!({
            "name": kernel.name,
            "sizes": measured.sizes,
            "seconds_min": seconds,
            "seconds_median": measured.bench.seconds_median,
            "compile_seconds": measured.compile_seconds,
            "flops": measured.flops,
            "bytes": measured.bytes,
        });
        return writeln!(out, "{line}");
    }
    let reduced = measured.sizes.iter().any(|(name, size)| published.get(name) != Some(size));
    let rate = |amount: Option<i64>| {
        amount.map_or_else(|| "-".to_string(), |it| format!("{:.2}", it as f64 / seconds * 1e-9))
    };
    writeln!(
        out,
        "{:20} {:10.4} {:>9} {:>8} {:6.0} ms  {}{}",
        kernel.name,
        seconds * 1e3,
        rate(measured.flops),
        rate(measured.bytes),
        measured.compile_seconds * 1e3,
        show(&measured.sizes),
        if reduced { " (smaller than published)" } else { "" }
    )
}

fn show(sizes: &Sizes) -> String {
    let sizes: Vec<_> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
    sizes.join(",")
}
