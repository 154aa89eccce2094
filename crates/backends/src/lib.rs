//! Backends: the reference interpreter, native code through LLVM, and values at run time.

pub mod axon;
pub mod backend;
pub mod builtins;
pub mod cpu;
pub mod hlo;
pub mod interp;
pub(crate) mod llvm;
pub mod nvvm;
pub mod run;
pub mod runtime;
pub mod targets;
pub mod tml;
pub(crate) mod upstream;

pub use backend::{Artifact, Backend, Compiled, Error, Form, Stage};
pub use tc_passes::target::{Codegen, MAX_THREADS, Machine, Target};
