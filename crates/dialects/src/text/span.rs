//! Ranges of source text.

/// A range of bytes of one source file, end excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end`, in bytes.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A name and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The spelling.
    pub text: String,
    /// The position.
    pub span: Span,
}
