//! Makes the part of MLIR's C API that has affine maps linkable next to the shared `libMLIR`.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_LINK_SHARED");
    if env::var("MLIR_SYS_LINK_SHARED").as_deref() != Ok("1") {
        return Ok(());
    }
    // Debian has no shared library of the C API; a linker script of its name stands for the
    // static archive.
    let prefix = PathBuf::from(env::var("MLIR_SYS_220_PREFIX")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let archive = prefix.join("lib/libMLIRCAPIIR.a");
    fs::write(out.join("libMLIR-C.so"), format!("INPUT({})\n", archive.display()))?;
    println!("cargo:rustc-link-search=native={}", out.display());
    Ok(())
}
