//! The processor that code is generated for.

use super::llvm;

/// A target: a triple, a processor and features, as LLVM names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The target triple, such as `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor, such as `znver4`.
    pub cpu: String,
    /// Features on top of the processor's own, such as `+avx512f,-avx512bf16`.
    pub features: String,
}

impl Target {
    /// The machine that runs this program, with the features it reports: the name of the
    /// processor alone may promise more or fewer, on a virtual machine above all.
    pub fn host() -> Self {
        llvm::host()
    }

    /// A named processor of this machine's architecture and system.
    pub fn cpu(name: &str) -> Self {
        Self { cpu: name.to_string(), features: String::new(), ..Self::host() }
    }
}
