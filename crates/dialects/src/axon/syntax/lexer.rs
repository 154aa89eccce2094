//! Splits Axon source text into tokens.
//!
//! Identifiers are those of figure 1 of the paper. `#` starts a comment. The lexer never fails: what
//! is no token becomes one of the kinds `Unknown`, `BadNumber`, `TooLong` and `TooMany`, which the
//! parser reports where it meets them. Time and memory are linear.

use crate::tc::syntax::Span;

/// Most tokens that one program may have.
pub const MAX_TOKENS: usize = 1 << 21;

/// Longest name or number, in bytes.
pub const MAX_TOKEN_BYTES: usize = 1024;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name.
    Ident,
    /// A number without fraction, exponent or `f`.
    Integer,
    /// A number with one of them.
    Float,
    /// `fn`
    Fn,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `=`
    Assign,
    /// `@`
    At,
    /// `->`
    Arrow,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// A character that starts no token.
    Unknown,
    /// Digits that run into letters or a second point.
    BadNumber,
    /// A name or number over [`MAX_TOKEN_BYTES`].
    TooLong,
    /// More tokens than [`MAX_TOKENS`]; the last token then.
    TooMany,
    /// The end of the text; the last token otherwise.
    End,
}

/// A token: what it is and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it is.
    pub span: Span,
}

/// Operators and brackets, longer ones first.
const PUNCTUATION: &[(&str, TokenKind)] = &[
    ("->", TokenKind::Arrow),
    ("==", TokenKind::Equal),
    ("!=", TokenKind::NotEqual),
    ("<=", TokenKind::LessEqual),
    (">=", TokenKind::GreaterEqual),
    ("<", TokenKind::Less),
    (">", TokenKind::Greater),
    ("=", TokenKind::Assign),
    ("@", TokenKind::At),
    ("+", TokenKind::Plus),
    ("-", TokenKind::Minus),
    ("*", TokenKind::Star),
    ("/", TokenKind::Slash),
    ("(", TokenKind::LeftParen),
    (")", TokenKind::RightParen),
    ("{", TokenKind::LeftBrace),
    ("}", TokenKind::RightBrace),
    ("[", TokenKind::LeftBracket),
    ("]", TokenKind::RightBracket),
    (",", TokenKind::Comma),
    (";", TokenKind::Semicolon),
    (":", TokenKind::Colon),
];

/// The tokens of a text; the last one is `End` or `TooMany`.
///
/// Offsets are 32 bits wide: the caller keeps texts below 4 GiB.
pub fn tokenize(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        while at < bytes.len() {
            match bytes[at] {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => at += 1,
                b'#' => {
                    let line = bytes[at..].iter().position(|&byte| byte == b'\n');
                    at = line.map_or(bytes.len(), |length| at + length);
                }
                _ => break,
            }
        }
        let span = |end: usize| Span::new(at as u32, end as u32);
        if at == bytes.len() {
            tokens.push(Token { kind: TokenKind::End, span: span(at) });
            return tokens;
        }
        if tokens.len() == MAX_TOKENS {
            tokens.push(Token { kind: TokenKind::TooMany, span: span(at) });
            return tokens;
        }
        let (kind, end) = match bytes[at] {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                let end = run(bytes, at, is_word_byte);
                (if &text[at..end] == "fn" { TokenKind::Fn } else { TokenKind::Ident }, end)
            }
            b'0'..=b'9' => number(bytes, at),
            _ => punctuation(text, at),
        };
        let kind = if MAX_TOKEN_BYTES < end - at { TokenKind::TooLong } else { kind };
        tokens.push(Token { kind, span: span(end) });
        at = end;
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The offset after the bytes from `at` on that satisfy `test`.
fn run(bytes: &[u8], at: usize, test: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().position(|&byte| !test(byte)).map_or(bytes.len(), |length| at + length)
}

fn number(bytes: &[u8], at: usize) -> (TokenKind, usize) {
    let digits = |from: usize| run(bytes, from, |byte| byte.is_ascii_digit());
    let mut kind = TokenKind::Integer;
    let mut end = digits(at);
    if bytes.get(end) == Some(&b'.') {
        kind = TokenKind::Float;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if end + 1 + sign < exponent {
            kind = TokenKind::Float;
            end = exponent;
        }
    }
    if bytes.get(end) == Some(&b'f') {
        kind = TokenKind::Float;
        end += 1;
    }
    let whole = run(bytes, end, |byte| is_word_byte(byte) || byte == b'.');
    if end < whole { (TokenKind::BadNumber, whole) } else { (kind, end) }
}

fn punctuation(text: &str, at: usize) -> (TokenKind, usize) {
    let rest = &text.as_bytes()[at..];
    for (spelling, kind) in PUNCTUATION {
        if rest.starts_with(spelling.as_bytes()) {
            return (*kind, at + spelling.len());
        }
    }
    let width = text[at..].chars().next().map_or(1, char::len_utf8);
    (TokenKind::Unknown, at + width)
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut kinds: Vec<_> = tokenize(text).iter().map(|token| token.kind).collect();
        assert_eq!(kinds.pop(), Some(End));
        kinds
    }

    #[test]
    fn numbers_say_what_they_are() {
        assert_eq!(kinds("0 12"), [Integer; 2]);
        assert_eq!(kinds("0f 1.5 1.5f 2. 1e3 1e-3f"), [Float; 6]);
        assert_eq!(kinds("1.2.3 3x 0x1 1ff"), [BadNumber; 4]);
    }

    #[test]
    fn longest_match_and_comments() {
        assert_eq!(kinds("-> - > >= = =="), [Arrow, Minus, Greater, GreaterEqual, Assign, Equal]);
        assert_eq!(kinds("fn fn1 # x\n@"), [Fn, Ident, At]);
        assert_eq!(kinds("\u{e9}'"), [Unknown, Unknown]);
        assert_eq!(kinds(&"x".repeat(1025)), [TooLong]);
    }
}
