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

/// The stack of a function of a kernel, in bytes per thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The kernel, or a function that it calls.
    pub function: String,
    /// The stack frame.
    pub frame: u32,
    /// The spilled registers.
    pub spilled: u32,
}

/// Assembles PTX to a cubin for a machine.
///
/// # Errors
/// There is no ptxas, or it rejects the PTX.
pub fn assemble(ptx: &str, machine: &Machine) -> Result<Vec<u8>, Error> {
    run(ptx, machine, &[]).map(|(cubin, _)| cubin)
}

/// The stacks of the functions of PTX, as ptxas reports them.
///
/// # Errors
/// As for [`assemble`].
pub fn stacks(ptx: &str, machine: &Machine) -> Result<Vec<Stack>, Error> {
    run(ptx, machine, &["--verbose"]).map(|(_, report)| read_stacks(&report))
}

/// Reads a report of ptxas.
fn read_stacks(report: &str) -> Vec<Stack> {
    let lines = report.lines().zip(report.lines().skip(1));
    let stack = |(line, next): (&str, &str)| {
        let (_, function) = line.split_once("Function properties for ")?;
        let bytes = |text: &str| text.trim().split_once(" bytes ")?.0.parse().ok();
        let [frame, spilled, _] = next.split(',').collect::<Vec<_>>()[..] else { return None };
        let function = function.trim().to_string();
        Some(Stack { function, frame: bytes(frame)?, spilled: bytes(spilled)? })
    };
    lines.filter_map(stack).collect()
}

/// Calls ptxas. Returns the cubin and the messages.
fn run(ptx: &str, machine: &Machine, options: &[&str]) -> Result<(Vec<u8>, String), Error> {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let program = find()?;
    let stem = format!("tc-{}-{}", process::id(), FILES.fetch_add(1, Ordering::Relaxed));
    let [source, target] = ["ptx", "cubin"].map(|it| env::temp_dir().join(format!("{stem}.{it}")));
    let assembled = fs::write(&source, ptx).and_then(|()| {
        let mut command = Command::new(program);
        command.arg(format!("-arch={}", machine.cpu)).args(options);
        let output = command.arg(&source).arg("-o").arg(&target).output()?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok((fs::read(&target)?, messages)),
            false => Err(std::io::Error::other(messages.trim_end().to_string())),
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
    let is_file = |file: &PathBuf| file.is_file();
    let found = in_path.into_iter().find(is_file);
    found.or_else(|| in_packages().into_iter().find(is_file)).ok_or_else(|| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_read_from_reports() {
        let report = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    104 bytes stack frame, 100 bytes spill stores, 96 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 104 bytes cumulative stack size
ptxas info    : Function properties for f
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";
        let stack =
            |function: &str, frame, spilled| Stack { function: function.into(), frame, spilled };
        assert_eq!(read_stacks(report), [stack("k", 104, 100), stack("f", 0, 0)]);
        assert_eq!(read_stacks(""), []);
    }
}
