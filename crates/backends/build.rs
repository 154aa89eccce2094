//! Compiles the scalar built-ins to LLVM bitcode, which is embedded and linked into
//! generated code on demand, and to a native library for the interpreter.

use std::{env, error::Error, path::PathBuf, process::Command};

/// The meanings of the functions rest on plain IEEE arithmetic, and errno is never read.
const MEANING: [&str; 2] = ["-fno-math-errno", "-ffp-contract=off"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=runtime");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let prefix = PathBuf::from(env::var("LLVM_SYS_221_PREFIX").map_err(
        |_| "LLVM_SYS_221_PREFIX must name the LLVM 22 installation, for example /usr/lib/llvm-22",
    )?);
    let bitcode = PathBuf::from(env::var("OUT_DIR")?).join("builtins.bc");
    let clang = prefix.join("bin/clang");
    let status = Command::new(&clang)
        .args(["-std=c11", "-O2", "-emit-llvm", "-c", "-fPIC"])
        .args(MEANING)
        // Vectors are for LLVM to form, once it knows the loops and the processor.
        .args(["-fno-vectorize", "-fno-slp-vectorize"])
        .args(["-fno-stack-protector", "-fomit-frame-pointer"])
        .arg("runtime/builtins.c")
        .arg("-o")
        .arg(&bitcode)
        .status()
        .map_err(|error| format!("cannot run {}: {error}", clang.display()))?;
    if !status.success() {
        return Err("clang failed on runtime/builtins.c".into());
    }
    // The same functions as a native library, for the interpreter.
    cc::Build::new()
        .file("runtime/builtins.c")
        .compiler(&clang)
        .std("c11")
        .opt_level(2)
        .flags(MEANING)
        .try_compile("tc_builtins")?;
    // For floor, fma and the like, which are no instructions on every x86-64.
    println!("cargo:rustc-link-lib=m");
    Ok(())
}
