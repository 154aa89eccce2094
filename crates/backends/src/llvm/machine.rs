//! The target of LLVM's code generator.

use super::{Error, check_target, has_feature};

/// A target: a triple, a processor and features, as LLVM names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The target triple, such as `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor, such as `znver4`.
    pub cpu: String,
    /// Features on top of the processor's own, such as `+avx512f,-avx512bf16`.
    pub features: String,
}

impl Machine {
    /// Checks that LLVM generates code for the target.
    ///
    /// # Errors
    /// LLVM does not know it.
    pub fn check(&self) -> Result<(), Error> {
        check_target(self)
    }

    /// Whether rounding to an integer is an instruction: so it is for 64-bit Arm, for GPUs, and for x86
    /// from SSE4.1 on. Of other architectures nothing is known.
    pub(super) fn rounds(&self) -> bool {
        self.is_arm() || self.is_gpu() || self.is_x86_with("sse4.1")
    }

    /// Whether a fused multiply-add is an instruction.
    pub(super) fn has_fma(&self) -> bool {
        self.is_arm() || self.is_gpu() || self.is_x86_with("fma")
    }

    /// Whether it is one of NVIDIA's GPUs.
    pub(super) fn is_gpu(&self) -> bool {
        self.triple.starts_with("nvptx")
    }

    fn is_arm(&self) -> bool {
        ["aarch64", "arm64"].iter().any(|name| self.triple.starts_with(name))
    }

    fn is_x86_with(&self, feature: &str) -> bool {
        self.triple.starts_with("x86_64") && has_feature(self, feature)
    }
}
