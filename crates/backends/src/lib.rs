//! Programs in all languages, the reference interpreter, code generators, and values at run time.

pub mod backend;
pub mod builtins;
pub mod cpu;
pub mod interp;
pub mod languages;
pub(crate) mod llvm;
pub mod nvvm;
pub mod program;
pub mod run;
pub mod runtime;
pub mod session;
pub mod targets;
pub mod tml;
pub(crate) mod upstream;

pub use backend::{Artifact, Backend, Compiled, Form, Stage};
pub use program::{Error, Program, Request, Source};
pub use session::{Executable, Session};
pub use tc_passes::target::{Codegen, MAX_THREADS, Machine, Target};
