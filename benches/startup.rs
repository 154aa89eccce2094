//! Start-up: `tc-opt --infer-ranges` on a matrix multiplication, against upstream's
//! `mlir-opt` on the same module in generic form, which it parses without knowing its
//! operations. Runs alternate, so that both meet the same machine; the medians count.

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};
use tc_benches::build_tool;

const RUNS: usize = 20;
const MAX_RATIO: f64 = 1.3;
const MLIR_OPT: &str = "mlir-opt-22";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("startup: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures; whether the ratio is what it is meant to be.
fn run() -> Result<bool, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tc_opt = build_tool("tc-opt")?;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (pretty, generic) = (folder.join("matmul.mlir"), folder.join("matmul-generic.mlir"));
    let source = root.join("examples/tc/matmul.tc");
    check(Command::new(&tc_opt).arg(&source).arg("-o").arg(&pretty))?;
    check(
        Command::new(&tc_opt).arg(&pretty).arg("--mlir-print-op-generic").arg("-o").arg(&generic),
    )?;

    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    // The first pair warms up.
    for number in 0..=RUNS {
        let pair = [
            seconds(Command::new(&tc_opt).arg("--infer-ranges").arg(&pretty))?,
            seconds(Command::new(MLIR_OPT).arg("--allow-unregistered-dialect").arg(&generic))?,
        ];
        if 0 < number {
            ours.push(pair[0]);
            theirs.push(pair[1]);
        }
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours / theirs;
    println!(
        "startup: tc-opt {:.1} ms, {MLIR_OPT} {:.1} ms, medians of {RUNS}; ratio {ratio:.2}, \
         expected at most {MAX_RATIO}",
        ours * 1e3,
        theirs * 1e3
    );
    Ok(ratio <= MAX_RATIO)
}

fn check(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}").into()) }
}

/// The wall-clock time of a command, its output thrown away.
fn seconds(command: &mut Command) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    check(command.stdout(Stdio::null()))?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    (seconds[middle] + seconds[seconds.len() - 1 - middle]) / 2.0
}
