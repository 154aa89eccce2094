//! Calls of ptxas, NVIDIA's assembler, which makes machine code of PTX.

use crate::backend::Error;
use std::{
    env, fs,
    path::PathBuf,
    process::{self, Command},
    sync::atomic::{AtomicUsize, Ordering},
};
use tc_passes::target::Machine;

/// The paths of ptxas in the Python packages `nvidia-cuda-nvcc` and `nvidia-cuda-nvcc-cu12`.
const IN_PACKAGE: [&str; 2] = ["nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas"];

/// Assembles PTX to a cubin for a machine.
///
/// # Errors
/// There is no ptxas, or it rejects the PTX.
pub fn assemble(ptx: &str, machine: &Machine) -> Result<Vec<u8>, Error> {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let program = find()?;
    let stem = format!("tc-{}-{}", process::id(), FILES.fetch_add(1, Ordering::Relaxed));
    let [source, target] = ["ptx", "cubin"].map(|it| env::temp_dir().join(format!("{stem}.{it}")));
    let assembled = fs::write(&source, ptx).and_then(|()| {
        let arch = format!("-arch={}", machine.cpu);
        let output =
            Command::new(program).arg(arch).arg(&source).arg("-o").arg(&target).output()?;
        match output.status.success() {
            true => fs::read(&target),
            false => {
                let reason = String::from_utf8_lossy(&output.stderr);
                Err(std::io::Error::other(reason.trim_end().to_string()))
            }
        }
    });
    for file in [source, target] {
        // The second one does not exist after an error.
        let _ = fs::remove_file(file);
    }
    assembled.map_err(|error| Error::Assembler(error.to_string()))
}

/// The program: in a folder of `PATH`, or in a Python package.
fn find() -> Result<PathBuf, Error> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let in_path = env::split_paths(&folders).map(|folder| folder.join("ptxas"));
    in_path.chain(in_packages()).find(|file| file.is_file()).ok_or_else(|| {
        let reason = "'ptxas' is neither in a folder of PATH nor in a Python package; \
                      try 'pip install nvidia-cuda-nvcc'";
        Error::Assembler(reason.to_string())
    })
}

/// The places of ptxas in the folders in which Python looks for packages.
fn in_packages() -> Vec<PathBuf> {
    let script = r"import sys; print(*sys.path, sep='\n')";
    let Ok(output) = Command::new("python3").arg("-c").arg(script).output() else {
        return Vec::new();
    };
    let folders = String::from_utf8_lossy(&output.stdout);
    let files = |folder: &str| IN_PACKAGE.map(|file| PathBuf::from(folder).join(file));
    folders.lines().filter(|folder| !folder.is_empty()).flat_map(files).collect()
}
