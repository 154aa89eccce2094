//! Errors, warnings and remarks that end as MLIR diagnostics.

use crate::{ffi, mlir::Op};
use melior::ir::{Location, operation::OperationLike};

/// How serious a diagnostic is. The numbers are those of the C++ bridge.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input is wrong.
    Error = 0,
    /// The input may be wrong.
    Warning = 1,
    /// What the compiler did, or why it did not.
    Remark = 2,
}

/// What an optimization remark is about. The numbers are those of the C++ bridge.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RemarkKind {
    /// Something was done.
    Passed = 0,
    /// Something was not done, for the reason given.
    Missed = 1,
    /// Something was found out or counted.
    Analysis = 2,
}

/// Emits an optimization remark of a pass, which shows with `--remarks-filter=<pass>`.
/// `function` is the name of the function it is in; arguments are keys and values.
pub fn remark(
    location: Location,
    kind: RemarkKind,
    pass: &str,
    name: &str,
    function: &str,
    arguments: &[(&str, &str)],
) {
    ffi::emit_remark(location, kind, pass, name, function, arguments);
}

/// A diagnostic with the notes that belong to it, emitted by [`Report::emit`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Report<'c> {
    location: Option<Location<'c>>,
    severity: Severity,
    message: String,
    notes: Vec<(Option<Location<'c>>, String)>,
}

impl<'c> Report<'c> {
    /// An error without a location yet: [`Report::emit_on`] gives it one.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            location: None,
            severity: Severity::Error,
            message: message.into(),
            notes: Vec::new(),
        }
    }

    /// A diagnostic at a location.
    pub fn at(location: Location<'c>, severity: Severity, message: impl Into<String>) -> Self {
        Self { location: Some(location), severity, message: message.into(), notes: Vec::new() }
    }

    /// An error at an operation, whose name goes before the message.
    pub fn op_error(op: Op<'c>, message: impl AsRef<str>) -> Self {
        Self::at(op.location(), Severity::Error, op_message(op, message.as_ref()))
    }

    /// Adds a note; without a location of its own it stands at the diagnostic's.
    pub fn note(mut self, location: Option<Location<'c>>, text: impl Into<String>) -> Self {
        self.notes.push((location, text.into()));
        self
    }

    /// The message, without notes.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Emits the diagnostic through its context. One without a location is dropped by
    /// MLIR's rules, so it must have been created with one.
    pub fn emit(self) {
        if let Some(location) = self.location {
            let notes: Vec<_> = self
                .notes
                .iter()
                .map(|(at, text)| (at.unwrap_or(location), text.as_str()))
                .collect();
            ffi::emit(location, self.severity, &self.message, &notes);
        }
    }

    /// Emits the diagnostic, at `op` and with its name if it has no location.
    pub fn emit_on(mut self, op: Op<'c>) {
        if self.location.is_none() {
            self.location = Some(op.location());
            self.message = op_message(op, &self.message);
        }
        self.emit()
    }
}

fn op_message(op: Op, message: &str) -> String {
    format!("'{}' op {message}", crate::mlir::name(op))
}
