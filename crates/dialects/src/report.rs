//! Errors, warnings and remarks that end as MLIR diagnostics.

use crate::{
    ffi, files,
    mlir::Op,
    text::{self, Severity, SourceFile, Span},
};
use melior::{
    Context,
    diagnostic::{Diagnostic, DiagnosticHandlerId, DiagnosticSeverity},
    ir::{Location, operation::OperationLike},
};
use std::{
    cell::RefCell,
    collections::HashMap,
    ffi::c_int,
    io::{self, Write},
    rc::Rc,
};

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

/// Writes to the standard output. A reader that stops early, such as `head`, is no failure.
///
/// # Errors
/// The output cannot be written.
pub fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Whether remarks are shown: what takes time to say need not be found out otherwise.
pub fn records_remarks(context: &melior::Context) -> bool {
    ffi::records_remarks(context)
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
    ffi::emit_remark(location, kind as c_int, pass, name, function, arguments);
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

    /// A diagnostic of a front end, with its code at the end of the message; `at` locates its spans.
    pub fn of(diagnostic: &text::Diagnostic, at: impl Fn(Span) -> Location<'c>) -> Self {
        let message = format!("{} [{}]", diagnostic.message, diagnostic.code());
        let report = Self::at(at(diagnostic.span), diagnostic.severity(), message);
        let notes = diagnostic.notes.iter();
        notes.fold(report, |report, (span, text)| report.note(Some(at(*span)), text))
    }

    /// A diagnostic of a front end on a source file.
    pub fn in_source(
        context: &'c Context,
        source: &SourceFile,
        diagnostic: &text::Diagnostic,
    ) -> Self {
        Self::of(diagnostic, |span| location(context, source, span))
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

/// The location of the start of a span.
pub fn location<'c>(context: &'c Context, source: &SourceFile, span: Span) -> Location<'c> {
    let (line, column) = source.line_col(span.start);
    Location::new(context, source.name(), line, column)
}

/// A file, a line and a column.
pub type Place = (String, usize, usize);

/// A diagnostic as it was received, for programs that link the compiler.
#[derive(Clone, Debug)]
pub struct Received {
    /// How serious it is.
    pub severity: Severity,
    /// File, line and column, if the location is one in a file.
    pub place: Option<Place>,
    /// The message.
    pub message: String,
    /// Its notes: place and text.
    pub notes: Vec<(Option<Place>, String)>,
}

impl Received {
    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The diagnostic again, to be emitted after all.
    pub fn report<'c>(&self, context: &'c Context) -> Report<'c> {
        let location = |place: &Option<Place>| match place {
            Some((file, line, column)) => Location::new(context, file, *line, *column),
            None => Location::unknown(context),
        };
        let notes = self.notes.iter();
        Report {
            location: Some(location(&self.place)),
            severity: self.severity,
            message: self.message.clone(),
            notes: notes.map(|(place, text)| (Some(location(place)), text.clone())).collect(),
        }
    }

    fn new(diagnostic: &Diagnostic) -> Self {
        let notes = (0..diagnostic.note_count())
            .filter_map(|index| diagnostic.note(index).ok())
            .map(|note| (place(note.location()), note.to_string()))
            .collect();
        Self {
            severity: match diagnostic.severity() {
                DiagnosticSeverity::Error => Severity::Error,
                DiagnosticSeverity::Warning => Severity::Warning,
                DiagnosticSeverity::Note | DiagnosticSeverity::Remark => Severity::Remark,
            },
            place: place(diagnostic.location()),
            message: diagnostic.to_string(),
            notes,
        }
    }
}

/// A text with the place that it is about, where that is known: `file:line:column: text`.
pub fn placed(location: Location, text: &str) -> String {
    match place(location) {
        Some((file, line, column)) => format!("{file}:{line}:{column}: {text}"),
        None => text.to_string(),
    }
}

/// The file, line and column of a location; of a fused or named one, the first inside.
fn place(location: Location) -> Option<Place> {
    // Nesting is limited: a location that goes deeper says nothing more.
    let mut location = location;
    for _ in 0..64 {
        if location.is_file_line_col_range() {
            let file = location.file_line_col_range_filename();
            // melior extends the sign of numbers of 32 bits.
            return Some((
                file.as_string_ref().as_str().unwrap_or_default().to_string(),
                location.file_line_col_range_start_line() as u32 as usize,
                location.file_line_col_range_start_column() as u32 as usize,
            ));
        }
        if location.is_fused() && 0 < location.fused_num_locations() {
            location = location.fused_location(0);
        } else if location.is_name() {
            location = location.name_child_location();
        } else if location.is_call_site() {
            location = location.call_site_callee();
        } else {
            return None;
        }
    }
    None
}

/// Lets `handle` have every diagnostic of a context, until the handler is detached.
pub fn attach(context: &Context, mut handle: impl FnMut(Received)) -> DiagnosticHandlerId {
    context.attach_diagnostic_handler(move |diagnostic| {
        handle(Received::new(&diagnostic));
        true
    })
}

/// Collects the diagnostics of a context, until the handler is detached.
pub fn collect(context: &Context) -> (DiagnosticHandlerId, Rc<RefCell<Vec<Received>>>) {
    let collected = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&collected);
    (attach(context, move |received| sink.borrow_mut().push(received)), collected)
}

/// Source lines of more bytes are not shown.
const MAX_LINE: usize = 1000;

/// Prints diagnostics as `mlir-opt` does: `file:line:col: error: text`, the source line,
/// and a caret. Lines of other files than the source are shown only if [`files::is_shown`].
#[derive(Debug, Default)]
pub struct Printer {
    source: String,
    files: HashMap<String, Vec<String>>,
}

impl Printer {
    /// Sets the source that diagnostics are about, and its text.
    pub fn add_source(&mut self, name: &str, text: &[u8]) {
        self.source = name.to_string();
        self.files.insert(name.to_string(), lines(text));
    }

    /// The text of a diagnostic and its notes.
    pub fn render(&mut self, received: &Received) -> String {
        let severity = received.severity.name();
        let mut text = self.entry(received.place.as_ref(), severity, &received.message);
        for (place, note) in &received.notes {
            text += &self.entry(place.as_ref(), "note", note);
        }
        text
    }

    fn entry(&mut self, place: Option<&Place>, severity: &str, message: &str) -> String {
        let Some((file, line, column)) = place else { return format!("{severity}: {message}\n") };
        let mut text = format!("{file}:{line}:{column}: {severity}: {message}\n");
        let lines = self
            .files
            .entry(file.clone())
            .or_insert_with(|| lines(&files::read_shown(&self.source, file).unwrap_or_default()));
        if let Some(source) = line.checked_sub(1).and_then(|line| lines.get(line)) {
            // A line that no screen shows says nothing.
            if source.len() <= MAX_LINE {
                text += &format!("{source}\n");
                // A program may name any column.
                let before = column.saturating_sub(1);
                if before <= source.len() {
                    text += &format!("{}^\n", " ".repeat(before));
                }
            }
        }
        text
    }
}

fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(str::to_string).collect()
}
