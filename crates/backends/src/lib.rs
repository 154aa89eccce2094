//! Backends: the reference interpreter, native code through LLVM, and values at run time.

pub mod axon;
pub mod builtins;
pub mod cpu;
pub mod hlo;
pub mod interp;
pub(crate) mod llvm;
pub mod nvvm;
pub mod run;
pub mod runtime;
pub mod tml;
