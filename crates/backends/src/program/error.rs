//! What may go wrong with a program.

use crate::{
    backend::{self, CallError},
    interp,
    runtime::{TensorError, npy::NpyError},
};
use tc_passes::PipelineError;

/// Why a program is not compiled or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        error: std::io::Error,
    },
    /// The program is wrong: the diagnostics, with source lines. Empty if they have been printed.
    #[error("{0}")]
    Program(String),
    /// The request does not fit the program.
    #[error("{0}")]
    Usage(String),
    /// The program cannot be run: a condition does not hold, or an input does not fit.
    #[error("{0}")]
    Rejected(String),
    /// A file of an input or of a result is invalid.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A tensor is too large.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Code generation failed.
    #[error(transparent)]
    Compile(#[from] backend::Error),
    /// A call was rejected, or stopped.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The interpreter cannot run the program.
    #[error("the interpreter: {0}")]
    Interpret(#[from] interp::Error),
    /// A result is not as expected.
    #[error("{0}")]
    Mismatch(String),
}

impl Error {
    /// An error that has gone to the diagnostic handlers of the context.
    pub(crate) fn diagnosed() -> Self {
        Self::Program(String::new())
    }
}

impl From<PipelineError> for Error {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::Invalid(reason) => Self::Rejected(reason),
            PipelineError::Diagnosed => Self::diagnosed(),
        }
    }
}
