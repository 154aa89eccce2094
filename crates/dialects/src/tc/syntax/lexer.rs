//! The tokens of TC.
//!
//! Source: the TC language, "Lexical". The longest match decides, so `maximum` is a name and `max=!`
//! one token.

use super::types::ScalarType;
use crate::text::{
    Reason,
    tokens::{self, Token, decimal, is_word_byte, run, run_on},
};

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
    /// A name or number that is too long.
    TooLong,
    /// More tokens than a program may have; the last token then.
    TooMany,
    /// The end of the text; the last token otherwise.
    End,
}

impl tokens::TokenKind for TokenKind {
    const UNKNOWN: Self = Self::Unknown;
    const BAD_NUMBER: Option<Self> = Some(Self::BadNumber);
    const TOO_LONG: Self = Self::TooLong;
    const TOO_MANY: Self = Self::TooMany;
    const END: Self = Self::End;
    const COMMENT: &'static str = "#";
    const PUNCTUATION: &'static [(&'static str, Self)] = &[
        ("+=!", Self::PlusAssignInit),
        ("*=!", Self::StarAssignInit),
        ("<=>", Self::Equivalent),
        ("<=", Self::LessEqual),
        (">=", Self::GreaterEqual),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("&&", Self::And),
        ("||", Self::Or),
        ("+=", Self::PlusAssign),
        ("*=", Self::StarAssign),
        ("->", Self::Arrow),
        ("+", Self::Plus),
        ("-", Self::Minus),
        ("*", Self::Star),
        ("/", Self::Slash),
        ("%", Self::Percent),
        ("!", Self::Not),
        ("?", Self::Question),
        (":", Self::Colon),
        ("<", Self::Less),
        (">", Self::Greater),
        ("=", Self::Assign),
        (".", Self::Dot),
        (",", Self::Comma),
        ("(", Self::LeftParen),
        (")", Self::RightParen),
        ("{", Self::LeftBrace),
        ("}", Self::RightBrace),
    ];
    const SYNTAX: Reason = Reason::Syntax;
    const LIMIT: Reason = Reason::Limit;

    fn scan(text: &str, at: usize, last: Option<Token<Self>>) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        let after_dot = last.is_some_and(|token| token.kind == Self::Dot);
        let after_name =
            last.is_some_and(|token| token.kind == Self::Ident && token.span.end as usize == at);
        match bytes[at] {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => Some(word(text, at)),
            b'0'..=b'9' => Some(number(bytes, at, after_dot)),
            // Directly after a name the point selects a dimension, even before a digit.
            b'.' if !after_name && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                Some(number(bytes, at, after_dot))
            }
            _ => None,
        }
    }

    fn hint(spelling: &str, before: &str, _after: &str) -> Option<&'static str> {
        match spelling {
            "&" => Some("try '&&'"),
            "|" => Some("try '||'"),
            ";" => Some("try nothing: a statement ends where the next one begins"),
            "/" if before.ends_with('/') => Some("try '#', which starts a comment"),
            _ => None,
        }
    }
}

/// A keyword or a name, or `min=` and its kin, which begin like one.
fn word(text: &str, at: usize) -> (TokenKind, usize) {
    let end = run(text.as_bytes(), at, is_word_byte);
    let rest = &text.as_bytes()[end..];
    let kind = match &text[at..end] {
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
fn number(bytes: &[u8], at: usize, integer: bool) -> (TokenKind, usize) {
    let end = match integer {
        true => run(bytes, at, |byte| byte.is_ascii_digit()),
        false => decimal(bytes, at).0,
    };
    run_on(bytes, end).map_or((TokenKind::Number, end), |end| (TokenKind::BadNumber, end))
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;
    use crate::text::tokens::tokenize;

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
