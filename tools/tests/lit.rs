//! Runs the FileCheck tests of `tests/lit` with LLVM's `lit`.
//!
//! A test name on the command line filters: `cargo test --test lit -- tc/import`.

use std::{
    env,
    path::Path,
    process::{Command, exit},
};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        println!("lit: test");
        return;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/lit");
    let tools = Path::new(env!("CARGO_BIN_EXE_tc-opt")).with_file_name("");
    let mut command = Command::new("lit-22");
    command
        .arg("-v")
        .arg(&root)
        .env("TC_TOOLS_DIR", &tools)
        .env("TC_LIT_OUTPUT", Path::new(env!("CARGO_TARGET_TMPDIR")).join("lit"));
    if let Some(filter) = filter {
        command.arg("--filter").arg(filter);
    }
    match command.status() {
        Ok(status) => exit(status.code().unwrap_or(1)),
        Err(error) => {
            eprintln!("cannot run lit-22 ({error}); ./bootstrap installs it");
            exit(1);
        }
    }
}
