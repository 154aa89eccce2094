//! Compiles the dialects' TableGen output and the C++ bridge, and makes MLIR's
//! C API linkable next to the shared `libMLIR`.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// TableGen backends, and the ending of the file each writes.
const BACKENDS: [(&str, &str); 12] = [
    ("-gen-dialect-decls", "dialect.h.inc"),
    ("-gen-dialect-defs", "dialect.cpp.inc"),
    ("-gen-enum-decls", "enum.h.inc"),
    ("-gen-enum-defs", "enum.cpp.inc"),
    ("-gen-attrdef-decls", "attr.h.inc"),
    ("-gen-attrdef-defs", "attr.cpp.inc"),
    ("-gen-typedef-decls", "type.h.inc"),
    ("-gen-typedef-defs", "type.cpp.inc"),
    ("-gen-op-interface-decls", "interface.h.inc"),
    ("-gen-op-interface-defs", "interface.cpp.inc"),
    ("-gen-op-decls", "op.h.inc"),
    ("-gen-op-defs", "op.cpp.inc"),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=bridge");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_LINK_SHARED");
    let prefix = PathBuf::from(env::var("MLIR_SYS_220_PREFIX").map_err(
        |_| "MLIR_SYS_220_PREFIX must name the LLVM 22 installation, for example /usr/lib/llvm-22",
    )?);
    let out = PathBuf::from(env::var("OUT_DIR")?);

    for dialect in ["imap", "tc", "hlo", "tml", "axon"] {
        let source = format!("src/{dialect}/{dialect}.td");
        println!("cargo:rerun-if-changed={source}");
        for (backend, ending) in BACKENDS {
            tablegen(&prefix, &source, dialect, backend, &out.join(format!("{dialect}.{ending}")))?;
        }
    }
    // One library per dialect and one for the driver: a change recompiles its own only.
    for (library, sources) in [
        ("tc_imap", &["Imap.cpp", "Assembly.cpp", "Tiling.cpp"][..]),
        ("tc_tc", &["Tc.cpp"]),
        ("tc_hlo", &["Hlo.cpp"]),
        ("tc_tml", &["Tml.cpp"]),
        ("tc_axon", &["Axon.cpp"]),
        ("tc_nvvm", &["Nvvm.cpp"]),
        ("tc_driver", &["Driver.cpp"]),
    ] {
        cc::Build::new()
            .cpp(true)
            // g++ and the shared libMLIR disagree on TypeIDs that have no explicit definition.
            .compiler("clang++-22")
            .files(sources.iter().map(|source| Path::new("bridge").join(source)))
            .include("bridge")
            .include(&out)
            .flag("-isystem")
            .flag(prefix.join("include"))
            .std("c++17")
            .flags(["-fno-rtti", "-fno-exceptions"])
            .define("NDEBUG", None)
            .warnings(false)
            .opt_level(1)
            .compile(library);
    }
    if env::var("MLIR_SYS_LINK_SHARED").as_deref() == Ok("1") {
        write_c_api_script(&prefix, &out)?;
        link_shared_libraries(&prefix, &out)?;
    }
    Ok(())
}

/// Runs one TableGen backend on one dialect.
fn tablegen(
    prefix: &Path,
    source: &str,
    dialect: &str,
    backend: &str,
    output: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(prefix.join("bin/mlir-tblgen"));
    command.arg(backend).arg("-I").arg(prefix.join("include")).args(["-I", "."]);
    if backend.contains("enum") || backend.contains("interface") {
        // Those of included dialects would be defined twice.
        command.arg(source);
    } else if backend.contains("dialect") {
        command.arg(format!("-dialect={dialect}")).arg(source);
    } else if backend.contains("attrdef") {
        command.arg(format!("-attrdefs-dialect={dialect}")).arg(source);
    } else if backend.contains("typedef") {
        command.arg(format!("-typedefs-dialect={dialect}")).arg(source);
    } else {
        command.arg(format!("-op-include-regex=^{dialect}\\.")).arg(source);
    }
    let status = command.arg("-o").arg(output).status()?;
    if !status.success() {
        return Err(format!("mlir-tblgen {backend} {source} failed").into());
    }
    Ok(())
}

/// Debian has no shared library of MLIR's C API. A linker script of that name
/// stands for the static archives, which link against the shared libMLIR.
fn write_c_api_script(prefix: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(prefix.join("lib"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("libMLIRCAPI") && name.ends_with(".a") {
            archives.push(path.display().to_string());
        }
    }
    archives.sort();
    fs::write(out.join("libMLIR-C.so"), format!("INPUT({})\n", archives.join(" ")))?;
    println!("cargo:rustc-link-search=native={}", out.display());
    Ok(())
}

/// `cargo run` and `cargo test` search libraries at run time in the output folders of build scripts. Links
/// to the shared libMLIR and libLLVM there start the programs of crates that set no path of their own.
fn link_shared_libraries(prefix: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(prefix.join("lib"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let link = out.join(&name);
        if (name.starts_with("libMLIR.so.") || name.starts_with("libLLVM.so.")) && !link.exists() {
            std::os::unix::fs::symlink(path, link)?;
        }
    }
    Ok(())
}
