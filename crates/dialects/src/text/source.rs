//! Source files, and diagnostics with the lines that they are about.
//!
//! The printed form is that of MLIR, `file:line:col: severity: text`, followed by the diagnostic's
//! code, the source line, and a caret. Lines and columns start at 1; columns count bytes.

use super::{Diagnostic, Reason, Span};
use std::fmt::Write;
use std::sync::OnceLock;

/// Largest source file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// Source lines wider than this are cut around the place that is pointed at.
const MAX_SHOWN_BYTES: usize = 160;

/// The byte-order mark that some editors begin UTF-8 texts with.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A named source text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    text: String,
    /// Offset of the first byte of each line; made when the first location is asked for.
    line_starts: OnceLock<Vec<u32>>,
}

impl SourceFile {
    /// A source file from text that is already known to be UTF-8.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), line_starts: OnceLock::new() }
    }

    /// The text, if a parser takes one of that length.
    ///
    /// # Errors
    /// It has more than [`MAX_FILE_BYTES`], with the reason that the language has for that.
    pub(crate) fn text_within(&self, limit: Reason) -> Result<&str, Diagnostic> {
        match self.text.len() {
            ..=MAX_FILE_BYTES => Ok(&self.text),
            bytes => Err(too_large(bytes, limit)),
        }
    }

    /// A source file from the bytes of a file. A byte-order mark is no part of the text.
    ///
    /// # Errors
    /// As `syntax` at the first byte that is not UTF-8, as `limit` for a file over [`MAX_FILE_BYTES`]; the
    /// file that comes with the error holds the text before that place, so that it can be rendered.
    pub fn from_bytes(
        name: impl Into<String>,
        mut bytes: Vec<u8>,
        syntax: Reason,
        limit: Reason,
    ) -> Result<Self, Box<(Self, Diagnostic)>> {
        let name = name.into();
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        if MAX_FILE_BYTES < bytes.len() {
            let error = too_large(bytes.len(), limit);
            return Err(Box::new((Self::new(name, ""), error)));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let byte = error.as_bytes()[valid];
                let mut bytes = error.into_bytes();
                bytes.truncate(valid);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let at = Span::new(valid as u32, valid as u32);
                let error = Diagnostic::new(
                    syntax,
                    at,
                    format!("expected UTF-8 text, found byte 0x{byte:02x}"),
                );
                Err(Box::new((Self::new(name, text), error)))
            }
        }
    }

    /// The name that locations start with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of a byte offset, both from 1; an offset past the end counts as the end.
    pub fn line_col(&self, offset: u32) -> (usize, usize) {
        let offset = (offset as usize).min(self.text.len());
        let line = self.line_of(offset);
        (line + 1, offset - self.line_start(line) + 1)
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let newlines = self.text.bytes().enumerate().filter(|&(_, c)| c == b'\n');
            std::iter::once(0).chain(newlines.map(|(offset, _)| offset as u32 + 1)).collect()
        })
    }

    /// The line, from 0, that holds the offset.
    fn line_of(&self, offset: usize) -> usize {
        let after = |&start: &u32| start as usize <= offset;
        self.line_starts().partition_point(after) - 1
    }

    fn line_start(&self, line: usize) -> usize {
        self.line_starts()[line] as usize
    }

    /// The source line of the span with a caret line below it, cut to a readable width.
    fn excerpt(&self, span: Span) -> String {
        let offset = (span.start as usize).min(self.text.len());
        let line = self.line_of(offset);
        let line_start = self.line_start(line);
        let line_end = match self.line_starts().get(line + 1) {
            Some(&next) => next as usize - 1,
            None => self.text.len(),
        };
        let boundary = |mut place: usize| {
            while !self.text.is_char_boundary(place) {
                place -= 1;
            }
            place
        };
        let (mut from, mut to) = (line_start, line_end);
        if MAX_SHOWN_BYTES < line_end - line_start {
            from = boundary(offset.saturating_sub(MAX_SHOWN_BYTES / 2).max(line_start));
            to = boundary((from + MAX_SHOWN_BYTES).min(line_end).max(offset));
        }
        let mark_end = boundary((span.end as usize).min(to)).max(offset);
        let head = if line_start < from { "..." } else { "" };
        let tail = if to < line_end { "..." } else { "" };
        // Control characters would move the cursor; tabs stay, above and below alike.
        let shown: String = self.text[from..to]
            .trim_end_matches('\r')
            .chars()
            .map(|c| if c.is_control() && c != '\t' { '?' } else { c })
            .collect();
        let pad: String = head
            .chars()
            .chain(self.text[from..boundary(offset)].chars())
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let width = self.text[boundary(offset)..mark_end].chars().count();
        format!("{head}{shown}{tail}\n{pad}^{}\n", "~".repeat(width.saturating_sub(1)))
    }

    /// A diagnostic as text: location, severity, message, code, source line, then its notes, which show
    /// their line if it is another place.
    pub fn render(&self, diagnostic: &Diagnostic) -> String {
        let mut out = String::new();
        let head = format!("{} [{}]", diagnostic.message, diagnostic.code());
        self.render_head(&mut out, diagnostic.severity().name(), diagnostic.span, &head);
        out.push_str(&self.excerpt(diagnostic.span));
        for (span, text) in &diagnostic.notes {
            self.render_head(&mut out, "note", *span, text);
            if *span != diagnostic.span {
                out.push_str(&self.excerpt(*span));
            }
        }
        out
    }

    fn render_head(&self, out: &mut String, severity: &str, span: Span, text: &str) {
        let (line, column) = self.line_col(span.start);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}:{line}:{column}: {severity}: {text}", self.name);
    }

    /// All diagnostics as text, in order.
    pub fn render_all(&self, diagnostics: &[Diagnostic]) -> String {
        diagnostics.iter().map(|each| self.render(each)).collect()
    }
}

fn too_large(bytes: usize, limit: Reason) -> Diagnostic {
    Diagnostic::new(
        limit,
        Span::default(),
        format!("file has {bytes} bytes, expected at most {MAX_FILE_BYTES}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_counts_from_one_in_bytes() {
        let file = SourceFile::new("f.tc", "ab\n\u{e9}c\n");
        assert_eq!(file.line_col(0), (1, 1));
        assert_eq!(file.line_col(2), (1, 3));
        assert_eq!(file.line_col(3), (2, 1));
        assert_eq!(file.line_col(5), (2, 3));
        assert_eq!(file.line_col(99), (3, 1));
    }

    #[test]
    fn rendering_points_at_the_span_and_its_notes() {
        let file = SourceFile::new("f.tc", "first\n\tO(i) = B(i)\n");
        let error = Diagnostic::new(Reason::Undeclared, Span::new(14, 15), "'B' is not declared")
            .note(Span::new(0, 5), "try this");
        assert_eq!(
            file.render(&error),
            "f.tc:2:9: error: 'B' is not declared [TC0011]\n\tO(i) = B(i)\n\t       ^\n\
             f.tc:1:1: note: try this\nfirst\n^~~~~\n"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_span() {
        let text = "\u{e9}".repeat(100_000);
        let file = SourceFile::new("f.tc", text);
        let out = file.render(&Diagnostic::new(Reason::Syntax, Span::new(100_001, 200_000), "x"));
        assert!(out.len() < 1000, "{out}");
        assert!(out.contains("\n..."));
    }

    #[test]
    fn bytes_that_are_not_text_are_located() {
        let (file, error) = *SourceFile::from_bytes(
            "f.tc",
            b"def f\n \xff".to_vec(),
            Reason::Syntax,
            Reason::Limit,
        )
        .unwrap_err();
        assert_eq!(
            file.render(&error),
            "f.tc:2:2: error: expected UTF-8 text, found byte 0xff [TC0001]\n \n ^\n"
        );
    }

    #[test]
    fn byte_order_marks_are_no_part_of_the_text() {
        let read = |bytes: &[u8]| {
            SourceFile::from_bytes("f.tc", bytes.to_vec(), Reason::Syntax, Reason::Limit)
        };
        assert_eq!(read(b"\xef\xbb\xbfdef f").unwrap().text(), "def f");
        assert_eq!(read(b"\xef\xbb\xbf").unwrap().text(), "");
        assert_eq!(read(b"\xef\xbb\xbfd\xff").unwrap_err().1.span, Span::new(1, 1));
        assert_eq!(read(b"\xef\xbb").unwrap_err().1.span, Span::new(0, 0));
        // Elsewhere it is a character like others.
        assert_eq!(read(b" \xef\xbb\xbf").unwrap().text(), " \u{feff}");
    }
}
