//! `tc-opt`: `mlir-opt` with the dialects and passes of this project.

use std::process::ExitCode;

fn main() -> ExitCode {
    tc_dialects::silence_panics();
    tc_passes::register();
    let arguments: Vec<String> =
        std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    ExitCode::from(tc_dialects::opt_main(&arguments) as u8)
}
