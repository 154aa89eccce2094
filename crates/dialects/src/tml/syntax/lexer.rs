//! The tokens of TML.
//!
//! Source: figure 1. `[0-9][0-9]*` is an integer, `[a-zA-Z][a-zA-Z0-9]*` a name; the longest match
//! decides.

use crate::text::{
    Reason,
    tokens::{self, Token, run},
};

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
    /// A name or number that is too long.
    TooLong,
    /// More tokens than a program may have; the last token then.
    TooMany,
    /// The end of the text; the last token otherwise.
    End,
}

impl tokens::TokenKind for TokenKind {
    const UNKNOWN: Self = Self::Unknown;
    const BAD_NUMBER: Option<Self> = None;
    const TOO_LONG: Self = Self::TooLong;
    const TOO_MANY: Self = Self::TooMany;
    const END: Self = Self::End;
    const COMMENT: &'static str = "//";
    const PUNCTUATION: &'static [(&'static str, Self)] = &[
        ("+", Self::Plus),
        ("-", Self::Minus),
        ("*", Self::Star),
        ("/", Self::Slash),
        ("#", Self::Hash),
        (".", Self::Dot),
        ("^", Self::Caret),
        (":", Self::Colon),
        (",", Self::Comma),
        ("=", Self::Equal),
        ("(", Self::LeftParen),
        (")", Self::RightParen),
        ("[", Self::LeftBracket),
        ("]", Self::RightBracket),
    ];
    const SYNTAX: Reason = Reason::TmlSyntax;
    const LIMIT: Reason = Reason::TmlLimit;

    fn scan(text: &str, at: usize, _last: Option<Token<Self>>) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        match bytes[at] {
            b'a'..=b'z' | b'A'..=b'Z' => {
                let end = run(bytes, at, |byte| byte.is_ascii_alphanumeric());
                Some((if &text[at..end] == "var" { Self::Var } else { Self::Ident }, end))
            }
            b'0'..=b'9' => Some((Self::Integer, run(bytes, at, |byte| byte.is_ascii_digit()))),
            _ => None,
        }
    }
}
