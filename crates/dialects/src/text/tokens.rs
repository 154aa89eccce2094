//! Tokens of source text and a cursor over them, for the parsers of TC, TML and Axon.
//!
//! A language says what its tokens are by a [`TokenKind`]. Splitting a text never fails: what is no
//! token becomes one of the kinds `UNKNOWN`, `BAD_NUMBER` and `TOO_LONG`, which the parser reports where
//! it meets them. Time and memory are linear; it stops at [`TokenKind::MAX_TOKENS`], which the parser
//! reports as well.

use crate::text::{
    Diagnostic, Reason, Span,
    diagnostic::{MAX_DIAGNOSTICS, sorted_and_capped},
};

/// Longest name or number, in bytes.
pub const MAX_TOKEN_BYTES: usize = 1024;

/// What a token is.
pub trait TokenKind: Copy + PartialEq + 'static {
    /// A character that starts no token.
    const UNKNOWN: Self;
    /// Digits that run into letters or a second point, where that is an error.
    const BAD_NUMBER: Option<Self>;
    /// A name or number over [`MAX_TOKEN_BYTES`].
    const TOO_LONG: Self;
    /// More tokens than [`TokenKind::MAX_TOKENS`]; the last token then.
    const TOO_MANY: Self;
    /// The end of the text; the last token otherwise.
    const END: Self;

    /// Most tokens that one program may have.
    const MAX_TOKENS: usize = 1 << 20;
    /// What starts a comment, up to the end of the line.
    const COMMENT: &'static str;
    /// Operators and brackets, longer ones first: the first that fits is the longest match.
    const PUNCTUATION: &'static [(&'static str, Self)];

    /// Why a text that does not follow the grammar is refused.
    const SYNTAX: Reason;
    /// Why a text beyond a limit is refused.
    const LIMIT: Reason;

    /// The token at an offset and where it ends, if it is not punctuation.
    fn scan(text: &str, at: usize, last: Option<Token<Self>>) -> Option<(Self, usize)>;

    /// How a character that starts no token is shown.
    fn shown(character: char) -> String {
        match character.is_control() {
            true => character.escape_default().to_string(),
            false => character.to_string(),
        }
    }

    /// What to try instead of a token that is not expected, from it and the text before and after it.
    fn hint(_spelling: &str, _before: &str, _after: &str) -> Option<&'static str> {
        None
    }
}

/// A token: what it is and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<K> {
    /// What it is.
    pub kind: K,
    /// Where it is.
    pub span: Span,
}

/// The tokens of a text; the last one is `END` or `TOO_MANY`.
///
/// Offsets are 32 bits wide: the caller keeps texts below 4 GiB.
pub fn tokenize<K: TokenKind>(text: &str) -> Vec<Token<K>> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token<K>> = Vec::new();
    let mut at = 0;
    loop {
        while at < bytes.len() {
            match bytes[at] {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => at += 1,
                _ if bytes[at..].starts_with(K::COMMENT.as_bytes()) => {
                    at = run(bytes, at, |byte| byte != b'\n');
                }
                _ => break,
            }
        }
        let span = |end: usize| Span::new(at as u32, end as u32);
        if at == bytes.len() {
            tokens.push(Token { kind: K::END, span: span(at) });
            return tokens;
        }
        if tokens.len() == K::MAX_TOKENS {
            tokens.push(Token { kind: K::TOO_MANY, span: span(at) });
            return tokens;
        }
        let scanned = K::scan(text, at, tokens.last().copied());
        let (kind, end) = scanned.unwrap_or_else(|| punctuation(text, at));
        let kind = if MAX_TOKEN_BYTES < end - at { K::TOO_LONG } else { kind };
        tokens.push(Token { kind, span: span(end) });
        at = end;
    }
}

fn punctuation<K: TokenKind>(text: &str, at: usize) -> (K, usize) {
    let rest = &text[at..];
    for &(spelling, kind) in K::PUNCTUATION {
        if rest.starts_with(spelling) {
            return (kind, at + spelling.len());
        }
    }
    let width = rest.chars().next().map_or(1, char::len_utf8);
    (K::UNKNOWN, at + width)
}

/// The offset after the bytes from `at` on that satisfy `test`.
pub fn run(bytes: &[u8], at: usize, test: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().position(|&byte| !test(byte)).map_or(bytes.len(), |length| at + length)
}

/// Whether a byte may stand in a name.
pub fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where a decimal number ends, and whether it has a fraction or an exponent.
pub fn decimal(bytes: &[u8], at: usize) -> (usize, bool) {
    let digits = |from: usize| run(bytes, from, |byte| byte.is_ascii_digit());
    let mut end = digits(at);
    let mut float = false;
    if bytes.get(end) == Some(&b'.') {
        float = true;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if end + 1 + sign < exponent {
            float = true;
            end = exponent;
        }
    }
    (end, float)
}

/// Where the word ends that a number runs into, if it does.
pub fn run_on(bytes: &[u8], number_end: usize) -> Option<usize> {
    let end = run(bytes, number_end, |byte| is_word_byte(byte) || byte == b'.');
    (number_end < end).then_some(end)
}

/// The current construct cannot be completed; the reason is already among the diagnostics.
#[derive(Debug)]
pub struct Failed;

/// What a parser has read.
pub type Parsed<T> = Result<T, Failed>;

/// The tokens of a text from the current one on, and what there is to report.
#[derive(Debug)]
pub struct Cursor<'t, K> {
    /// The whole text.
    pub text: &'t str,
    tokens: Vec<Token<K>>,
    position: usize,
    diagnostics: Vec<Diagnostic>,
}

impl<'t, K: TokenKind> Cursor<'t, K> {
    /// Starts at the first token of a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, tokens: tokenize(text), position: 0, diagnostics: Vec::new() }
    }

    /// What was reported, in the order of the text.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        sorted_and_capped(self.diagnostics)
    }

    /// The current token.
    pub fn token(&self) -> Token<K> {
        self.tokens[self.position]
    }

    /// The kind of the current token.
    pub fn kind(&self) -> K {
        self.token().kind
    }

    /// The kind of the token `ahead` places further on, or of the last one.
    pub fn peek(&self, ahead: usize) -> K {
        self.tokens[(self.position + ahead).min(self.tokens.len() - 1)].kind
    }

    /// How many tokens have been taken.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The tokens that were taken since the cursor was at a position.
    pub fn taken_since(&self, position: usize) -> &[Token<K>] {
        &self.tokens[position..self.position]
    }

    /// The last token that was taken.
    pub fn previous(&self) -> Option<Token<K>> {
        self.position.checked_sub(1).map(|position| self.tokens[position])
    }

    /// End of the last token that was taken.
    pub fn previous_end(&self) -> u32 {
        self.previous().map_or(0, |token| token.span.end)
    }

    /// The text of a token.
    pub fn spelling(&self, token: Token<K>) -> &'t str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    /// Whether the current token is the last one.
    pub fn at_end(&self) -> bool {
        self.position == self.tokens.len() - 1
    }

    /// Takes the current token; the last one is never passed.
    pub fn bump(&mut self) -> Token<K> {
        let token = self.token();
        if !self.at_end() {
            self.position += 1;
        }
        token
    }

    /// Takes the tokens that begin before an offset.
    pub fn skip_to(&mut self, offset: usize) {
        while !self.at_end() && (self.token().span.start as usize) < offset {
            self.position += 1;
        }
    }

    /// Takes the current token if it is of a kind.
    pub fn eat(&mut self, kind: K) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    /// Takes a token of a kind.
    ///
    /// # Errors
    /// The current token is another one, which is reported.
    pub fn expect(&mut self, kind: K, expected: &str) -> Parsed<Token<K>> {
        if self.kind() == kind { Ok(self.bump()) } else { Err(self.unexpected(expected)) }
    }

    /// Reports an error; the last token becomes the current one when there are too many.
    pub fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        // A second error at one place is the first one seen by an outer construct.
        if self.diagnostics.last().is_none_or(|last| last.span != diagnostic.span) {
            self.diagnostics.push(diagnostic);
        }
        if MAX_DIAGNOSTICS < self.diagnostics.len() {
            self.position = self.tokens.len() - 1;
        }
        Failed
    }

    /// Reports that a limit is exceeded.
    pub fn limit(&mut self, at: Span, message: String) -> Failed {
        self.report(Diagnostic::new(K::LIMIT, at, message))
    }

    /// Reports the current token.
    pub fn unexpected(&mut self, expected: &str) -> Failed {
        self.unexpected_with(expected, None)
    }

    /// Reports the current token, with a note.
    pub fn unexpected_with(&mut self, expected: &str, note: Option<(Span, &str)>) -> Failed {
        let token = self.token();
        let spelling = self.spelling(token);
        let mut reason = K::SYNTAX;
        let message = if token.kind == K::UNKNOWN {
            let shown: String = spelling.chars().map(K::shown).collect();
            format!("expected {expected}, found character '{shown}'")
        } else if Some(token.kind) == K::BAD_NUMBER {
            format!("expected {expected}, found malformed number '{spelling}'")
        } else if token.kind == K::TOO_LONG {
            reason = K::LIMIT;
            format!("token has {} bytes, expected at most {MAX_TOKEN_BYTES}", spelling.len())
        } else if token.kind == K::TOO_MANY {
            reason = K::LIMIT;
            format!("program has more than {} tokens", K::MAX_TOKENS)
        } else if token.kind == K::END {
            format!("expected {expected}, found end of file")
        } else {
            format!("expected {expected}, found '{spelling}'")
        };
        let mut diagnostic = Diagnostic::new(reason, token.span, message);
        let before = &self.text[..token.span.start as usize];
        let hint = K::hint(spelling, before, &self.text[token.span.end as usize..]);
        for (span, text) in hint.map(|hint| (token.span, hint)).into_iter().chain(note) {
            diagnostic = diagnostic.note(span, text);
        }
        self.report(diagnostic)
    }
}
