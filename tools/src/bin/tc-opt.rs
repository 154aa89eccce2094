//! `tc-opt`: `mlir-opt` with the dialects and passes of this project.

use std::process::ExitCode;
use tc_tools::{axon, command_line::run_tool};

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    if axon::asks_for_signatures(&arguments) {
        return run_tool("tc-opt", || axon::opt(&arguments));
    }
    for (name, successor) in tc_passes::REMOVED {
        // Options and pipelines name passes; paths do not.
        let names_passes = |text: &&String| text.starts_with('-') || text.contains('(');
        let is_named = |text: &String| {
            text.split(|it: char| !it.is_alphanumeric() && it != '-')
                .any(|word| word.trim_start_matches('-') == *name)
        };
        if arguments[1..].iter().filter(names_passes).any(is_named) {
            eprintln!("tc-opt: error: the pass '{name}' was removed; use '{successor}'");
            return ExitCode::FAILURE;
        }
    }
    tc_dialects::silence_panics();
    tc_backends::targets::register();
    ExitCode::from(tc_dialects::opt_main(&arguments) as u8)
}
