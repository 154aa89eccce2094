//! GPU descriptions: the names and PTX versions of supported generations.

use super::Error;
use crate::llvm;

/// A supported generation of GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name of LLVM and ptxas, such as `sm_90a`.
    pub name: &'static str,
    /// The lowest version of PTX that has its instructions, as LLVM names it.
    ptx: &'static str,
}

impl Machine {
    /// All generations, the oldest one first.
    pub const ALL: [Self; 3] = [
        Self { name: "sm_80", ptx: "+ptx70" },
        Self { name: "sm_90a", ptx: "+ptx80" },
        Self { name: "sm_100a", ptx: "+ptx86" },
    ];

    /// The generation of a name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn named(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|machine| machine.name == name).ok_or_else(|| {
            let known = Self::ALL.map(|machine| machine.name).join(", ");
            Error::Target(format!("'{name}' is no GPU; these are known: {known}"))
        })
    }

    /// The machine as LLVM's code generator knows it.
    pub(super) fn llvm(&self) -> llvm::Machine {
        llvm::Machine {
            triple: "nvptx64-nvidia-cuda".to_string(),
            cpu: self.name.to_string(),
            features: self.ptx.to_string(),
        }
    }
}
