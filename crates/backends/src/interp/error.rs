//! Errors of the interpreter.

use melior::ir::{Location, operation::OperationLike};
use std::fmt;
use tc_dialects::mlir::Op;

/// Why a function could not be decoded or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// `file:line:col`, or `-` if that is unknown.
    pub location: String,
    /// What is wrong.
    pub message: String,
    /// Other places, each with what it has to do with the error.
    pub notes: Vec<Note>,
    /// Whether it is the interpreter that cannot go on, because rounding decides or a limit is reached,
    /// not the program that is wrong.
    pub(crate) is_open: bool,
}

/// A place that explains an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// As [`Error::location`].
    pub location: String,
    /// What is there.
    pub message: String,
}

impl Error {
    pub(crate) fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            location: location.into(),
            message: message.into(),
            notes: Vec::new(),
            is_open: false,
        }
    }

    pub(crate) fn note(mut self, location: &str, message: String) -> Self {
        self.notes.push(Note { location: location.to_string(), message });
        self
    }

    /// An error at an operation, whose name goes before the message.
    pub(crate) fn at(op: Op, message: impl fmt::Display) -> Self {
        Self::new(location_of(op), format!("'{}' op {message}", tc_dialects::mlir::name(op)))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}: error: {}", self.location, self.message)?;
        for Note { location, message } in &self.notes {
            write!(formatter, "\n{location}: note: {message}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The first place in a source that the location of an operation has.
pub(crate) fn location_of(op: Op) -> String {
    /// Locations nest; one that nests deeper than this is as good as unknown.
    const MAX_STEPS: usize = 100;
    let mut pending: Vec<Location> = vec![op.location()];
    for _ in 0..MAX_STEPS {
        let Some(location) = pending.pop() else { break };
        if location.is_file_line_col_range() {
            let file = location.file_line_col_range_filename();
            let file = file.as_string_ref();
            return format!(
                "{}:{}:{}",
                file.as_str().unwrap_or("-"),
                // melior extends the sign of numbers of 32 bits.
                location.file_line_col_range_start_line() as u32,
                location.file_line_col_range_start_column() as u32
            );
        }
        if location.is_call_site() {
            pending.push(location.call_site_callee());
        } else if location.is_name() {
            pending.push(location.name_child_location());
        } else if location.is_fused() {
            let count = location.fused_num_locations().min(MAX_STEPS);
            pending.extend((0..count).rev().map(|index| location.fused_location(index)));
        }
    }
    "-".into()
}
