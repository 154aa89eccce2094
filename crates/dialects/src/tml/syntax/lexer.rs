//! Splits TML source text into tokens.
//!
//! Source: figure 1. `[0-9][0-9]*` is an integer, `[a-zA-Z][a-zA-Z0-9]*` a name; the longest match
//! decides. What is no token becomes one of the kinds `Unknown` and `TooLong`, which the parser reports
//! where it meets them; the lexer itself never fails. Time and memory are linear; it stops at
//! [`MAX_TOKENS`], which the parser reports as well.

use super::Span;
pub(super) use crate::tc::syntax::lexer::{MAX_TOKEN_BYTES, MAX_TOKENS};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name, or one of the words that are keywords in some places: `in`, `out`, `inout`, `f32`, `f64`.
    Ident,
    /// A row of digits.
    Integer,
    /// `var`
    Var,
    Plus,
    Minus,
    Star,
    Slash,
    Hash,
    Dot,
    Caret,
    Colon,
    Comma,
    Equal,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    /// A character that starts no token.
    Unknown,
    /// A name or number over [`MAX_TOKEN_BYTES`].
    TooLong,
    /// More tokens than [`MAX_TOKENS`]; the last token then.
    TooMany,
    /// The end of the text; the last token otherwise.
    End,
}

/// A token: what it is and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// The tokens of a text; the last one is `End` or `TooMany`.
///
/// Offsets are 32 bits wide: the caller keeps texts below 4 GiB.
pub(super) fn tokenize(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut pos = 0;
    loop {
        while pos < bytes.len() {
            match bytes[pos] {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => pos += 1,
                b'/' if bytes.get(pos + 1) == Some(&b'/') => {
                    pos = run(bytes, pos, |byte| byte != b'\n');
                }
                _ => break,
            }
        }
        let mut push = |kind, end: usize| {
            tokens.push(Token { kind, span: Span::new(pos as u32, end as u32) });
            tokens.len()
        };
        if pos == bytes.len() {
            push(TokenKind::End, pos);
            return tokens;
        }
        let (kind, end) = token(text, pos);
        let kind = if MAX_TOKEN_BYTES < end - pos { TokenKind::TooLong } else { kind };
        if MAX_TOKENS < push(kind, end) {
            let last = tokens.last_mut().expect("one was pushed");
            last.kind = TokenKind::TooMany;
            return tokens;
        }
        pos = end;
    }
}

/// The offset after the bytes from `pos` on that satisfy `test`.
fn run(bytes: &[u8], pos: usize, test: impl Fn(u8) -> bool) -> usize {
    bytes[pos..].iter().position(|&byte| !test(byte)).map_or(bytes.len(), |length| pos + length)
}

fn token(text: &str, pos: usize) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let kind = match bytes[pos] {
        b'a'..=b'z' | b'A'..=b'Z' => {
            let end = run(bytes, pos, |byte| byte.is_ascii_alphanumeric());
            let is_var = &text[pos..end] == "var";
            return (if is_var { TokenKind::Var } else { TokenKind::Ident }, end);
        }
        b'0'..=b'9' => return (TokenKind::Integer, run(bytes, pos, |it| it.is_ascii_digit())),
        b'+' => TokenKind::Plus,
        b'-' => TokenKind::Minus,
        b'*' => TokenKind::Star,
        b'/' => TokenKind::Slash,
        b'#' => TokenKind::Hash,
        b'.' => TokenKind::Dot,
        b'^' => TokenKind::Caret,
        b':' => TokenKind::Colon,
        b',' => TokenKind::Comma,
        b'=' => TokenKind::Equal,
        b'(' => TokenKind::LeftParen,
        b')' => TokenKind::RightParen,
        b'[' => TokenKind::LeftBracket,
        b']' => TokenKind::RightBracket,
        _ => {
            let width = text[pos..].chars().next().map_or(1, char::len_utf8);
            return (TokenKind::Unknown, pos + width);
        }
    };
    (kind, pos + 1)
}
