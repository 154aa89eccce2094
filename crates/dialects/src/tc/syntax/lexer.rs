//! Splits TC source text into tokens.
//!
//! Source: the TC language, "Lexical". The longest match decides, so `maximum` is a name and `max=!`
//! one token. What is not a token becomes one of the kinds `Unknown`, `BadNumber` and `TooLong`, which
//! the parser reports where it meets them; the lexer itself never fails. Time and memory are linear;
//! it stops at [`MAX_TOKENS`], which the parser reports as well.

use super::diagnostic::Span;
use super::types::ScalarType;

/// Most tokens that one program may have.
pub const MAX_TOKENS: usize = 1 << 20;

/// Longest name or number, in bytes.
pub const MAX_TOKEN_BYTES: usize = 1024;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name.
    Ident,
    /// A decimal number, with or without fraction and exponent.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// The keyword of a scalar type.
    Scalar(ScalarType),
    /// `def`
    Def,
    /// `where`
    Where,
    /// `in`
    In,
    /// `exists`
    Exists,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `!`
    Not,
    /// `?`
    Question,
    /// `:`
    Colon,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `=`
    Assign,
    /// `+=`
    PlusAssign,
    /// `*=`
    StarAssign,
    /// `min=`
    MinAssign,
    /// `max=`
    MaxAssign,
    /// `+=!`
    PlusAssignInit,
    /// `*=!`
    StarAssignInit,
    /// `min=!`
    MinAssignInit,
    /// `max=!`
    MaxAssignInit,
    /// `->`
    Arrow,
    /// `<=>`
    Equivalent,
    /// `.` of a dimension selector
    Dot,
    /// `,`
    Comma,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
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

/// The tokens of a text; the last one is `End` or `TooMany`.
///
/// Offsets are 32 bits wide: the caller keeps texts below 4 GiB.
pub fn tokenize(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens: Vec<Token> = Vec::new();
    let mut pos = 0;
    loop {
        while pos < bytes.len() {
            match bytes[pos] {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => pos += 1,
                b'#' => {
                    pos = bytes[pos..]
                        .iter()
                        .position(|&byte| byte == b'\n')
                        .map_or(bytes.len(), |length| pos + length);
                }
                _ => break,
            }
        }
        let span = |end: usize| Span::new(pos as u32, end as u32);
        if pos == bytes.len() {
            tokens.push(Token { kind: TokenKind::End, span: span(pos) });
            return tokens;
        }
        if tokens.len() == MAX_TOKENS {
            tokens.push(Token { kind: TokenKind::TooMany, span: span(pos) });
            return tokens;
        }
        let last = tokens.last();
        let after_dot = last.is_some_and(|token| token.kind == TokenKind::Dot);
        let after_name = last
            .is_some_and(|token| token.kind == TokenKind::Ident && token.span.end as usize == pos);
        let (kind, end) = match bytes[pos] {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => word(text, pos),
            b'0'..=b'9' => number(bytes, pos, after_dot),
            // Directly after a name the point selects a dimension, even before a digit.
            b'.' if after_name => (TokenKind::Dot, pos + 1),
            b'.' if bytes.get(pos + 1).is_some_and(u8::is_ascii_digit) => {
                number(bytes, pos, after_dot)
            }
            _ => punctuation(text, pos),
        };
        let kind = if MAX_TOKEN_BYTES < end - pos { TokenKind::TooLong } else { kind };
        tokens.push(Token { kind, span: span(end) });
        pos = end;
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The offset after the bytes from `pos` on that satisfy `test`.
fn run(bytes: &[u8], pos: usize, test: impl Fn(u8) -> bool) -> usize {
    bytes[pos..].iter().position(|&byte| !test(byte)).map_or(bytes.len(), |length| pos + length)
}

/// A keyword or a name, or `min=` and its kin, which begin like one.
fn word(text: &str, pos: usize) -> (TokenKind, usize) {
    let end = run(text.as_bytes(), pos, is_word_byte);
    let rest = &text.as_bytes()[end..];
    let kind = match &text[pos..end] {
        "def" => TokenKind::Def,
        "where" => TokenKind::Where,
        "in" => TokenKind::In,
        "exists" => TokenKind::Exists,
        "true" => TokenKind::True,
        "false" => TokenKind::False,
        "min" if rest.starts_with(b"=!") => return (TokenKind::MinAssignInit, end + 2),
        "max" if rest.starts_with(b"=!") => return (TokenKind::MaxAssignInit, end + 2),
        "min" if rest.starts_with(b"=") => return (TokenKind::MinAssign, end + 1),
        "max" if rest.starts_with(b"=") => return (TokenKind::MaxAssign, end + 1),
        "min" => TokenKind::Min,
        "max" => TokenKind::Max,
        other => ScalarType::from_keyword(other).map_or(TokenKind::Ident, TokenKind::Scalar),
    };
    (kind, end)
}

/// A number; after the point of a dimension selector only digits belong to it.
fn number(bytes: &[u8], pos: usize, integer: bool) -> (TokenKind, usize) {
    let digits = |from: usize| run(bytes, from, |byte| byte.is_ascii_digit());
    let mut end = digits(pos);
    if !integer {
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if end + 1 + sign < exponent {
                end = exponent;
            }
        }
    }
    let whole = run(bytes, end, |byte| is_word_byte(byte) || byte == b'.');
    if end < whole { (TokenKind::BadNumber, whole) } else { (TokenKind::Number, end) }
}

/// Operators by length, longest first: the first that fits is the longest match.
const PUNCTUATION: [(&str, TokenKind); 29] = [
    ("+=!", TokenKind::PlusAssignInit),
    ("*=!", TokenKind::StarAssignInit),
    ("<=>", TokenKind::Equivalent),
    ("<=", TokenKind::LessEqual),
    (">=", TokenKind::GreaterEqual),
    ("==", TokenKind::Equal),
    ("!=", TokenKind::NotEqual),
    ("&&", TokenKind::And),
    ("||", TokenKind::Or),
    ("+=", TokenKind::PlusAssign),
    ("*=", TokenKind::StarAssign),
    ("->", TokenKind::Arrow),
    ("+", TokenKind::Plus),
    ("-", TokenKind::Minus),
    ("*", TokenKind::Star),
    ("/", TokenKind::Slash),
    ("%", TokenKind::Percent),
    ("!", TokenKind::Not),
    ("?", TokenKind::Question),
    (":", TokenKind::Colon),
    ("<", TokenKind::Less),
    (">", TokenKind::Greater),
    ("=", TokenKind::Assign),
    (".", TokenKind::Dot),
    (",", TokenKind::Comma),
    ("(", TokenKind::LeftParen),
    (")", TokenKind::RightParen),
    ("{", TokenKind::LeftBrace),
    ("}", TokenKind::RightBrace),
];

fn punctuation(text: &str, pos: usize) -> (TokenKind, usize) {
    let rest = &text.as_bytes()[pos..];
    for (spelling, kind) in PUNCTUATION {
        if rest.starts_with(spelling.as_bytes()) {
            return (kind, pos + spelling.len());
        }
    }
    let width = text[pos..].chars().next().map_or(1, char::len_utf8);
    (TokenKind::Unknown, pos + width)
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
    fn numbers_as_in_c() {
        assert_eq!(kinds("1.4 .3 3 3.\n3e-3 .5e-7 3E-5 1.e+2"), vec![Number; 8]);
        assert_eq!(kinds("0x10 1.2.3 3e 1f 0..2 2foo"), vec![BadNumber; 6]);
    }

    #[test]
    fn longest_match() {
        assert_eq!(
            kinds("min maximum max=! min= in_"),
            [Min, Ident, MaxAssignInit, MinAssign, Ident]
        );
        assert_eq!(
            kinds("max=!min(<=><=>="),
            [MaxAssignInit, Min, LeftParen, Equivalent, Equivalent, Assign]
        );
        assert_eq!(kinds("+=!+= !"), [PlusAssignInit, PlusAssign, Not]);
    }

    #[test]
    fn point_after_a_name_selects() {
        assert_eq!(kinds("A.1 B.0e"), [Ident, Dot, Number, Ident, Dot, BadNumber]);
        assert_eq!(kinds("A .1"), [Ident, Number]);
        assert_eq!(kinds("A. 1"), [Ident, Dot, Number]);
    }

    #[test]
    fn comments_and_characters_outside_ascii() {
        assert_eq!(kinds("a # \u{e9} def\n b"), [Ident, Ident]);
        assert_eq!(kinds("\u{e9};"), [Unknown, Unknown]);
        assert_eq!(kinds(&"x".repeat(1025)), [TooLong]);
    }
}
