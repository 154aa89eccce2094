//! Splits HLO text into tokens.
//!
//! Tokens are made on demand, so that nothing is stored for each of them, and a place that has a
//! grammar of its own (`window`, `dim_labels`, constants, opaque text) can be read byte by byte.
//! What is no token becomes [`TokenKind::Unknown`]; the lexer itself never fails.

use crate::text::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word: letters, digits, `_`, `.` and `-`, perhaps after a `%`.
    Name,
    /// Digits, perhaps after a `-`.
    Integer,
    /// Text in quotes.
    String,
    /// `->`
    Arrow,
    /// One of `( ) { } [ ] < > , = : # * / ? + @ !`.
    Punctuation(u8),
    /// Digits that run into letters or a point.
    BadNumber,
    /// Text in quotes without an end.
    OpenString,
    /// A comment without an end.
    OpenComment,
    /// A character that starts no token.
    Unknown,
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// Whether a byte can stand in a name.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// The text, and how far it was read.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    /// The whole text.
    pub text: &'a str,
    /// Offset of the next byte.
    pub position: usize,
}

impl<'a> Lexer<'a> {
    /// The byte at an offset from the current place.
    pub fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.position + ahead).copied()
    }

    /// Moves on while bytes satisfy `test`.
    pub fn skip(&mut self, test: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.position..];
        self.position += rest.iter().position(|&byte| !test(byte)).unwrap_or(rest.len());
    }

    /// Moves past white space and comments. An open comment is left where it is.
    pub fn skip_blanks(&mut self) {
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
            match (self.byte(0), self.byte(1)) {
                (Some(b'/'), Some(b'*')) => {
                    let rest = &self.text.as_bytes()[self.position + 2..];
                    let Some(end) = rest.windows(2).position(|pair| pair == b"*/") else { return };
                    self.position += 2 + end + 2;
                }
                (Some(b'/'), Some(b'/')) => self.skip(|byte| byte != b'\n'),
                _ => return,
            }
        }
    }

    /// Moves past a string, whose opening quote is the current byte; whether it has an end.
    pub fn skip_string(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let mut at = self.position + 1;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'"' => {
                    self.position = at + 1;
                    return true;
                }
                _ => at += 1,
            }
        }
        self.position = bytes.len();
        false
    }

    /// Takes the next token.
    pub fn token(&mut self) -> Token {
        self.skip_blanks();
        let start = self.position;
        let kind = match self.byte(0) {
            None => TokenKind::End,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'%') => {
                self.position += 1;
                self.name_bytes();
                TokenKind::Name
            }
            Some(b'0'..=b'9') => self.number(),
            Some(b'-') => match self.byte(1) {
                Some(b'>') => {
                    self.position += 2;
                    TokenKind::Arrow
                }
                Some(b'0'..=b'9') => {
                    self.position += 1;
                    self.number()
                }
                // `-inf` and `-nan`.
                Some(b'a'..=b'z') => {
                    self.position += 1;
                    self.name_bytes();
                    TokenKind::Name
                }
                _ => self.unknown(),
            },
            Some(b'"') => match self.skip_string() {
                true => TokenKind::String,
                false => TokenKind::OpenString,
            },
            Some(b'/') if self.byte(1) == Some(b'*') => {
                self.position = self.text.len();
                TokenKind::OpenComment
            }
            Some(
                byte @ (b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>' | b',' | b'=' | b':'
                | b'#' | b'*' | b'/' | b'?' | b'+' | b'@' | b'!'),
            ) => {
                self.position += 1;
                TokenKind::Punctuation(byte)
            }
            Some(_) => self.unknown(),
        };
        Token { kind, span: Span::new(start as u32, self.position as u32) }
    }

    /// The rest of a name; `->` ends it.
    fn name_bytes(&mut self) {
        loop {
            self.skip(|byte| is_name_byte(byte) && byte != b'-');
            if self.byte(0) != Some(b'-') || self.byte(1) == Some(b'>') {
                return;
            }
            self.position += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        self.skip(|byte| byte.is_ascii_digit());
        let end = self.position;
        self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        if self.position == end { TokenKind::Integer } else { TokenKind::BadNumber }
    }

    fn unknown(&mut self) -> TokenKind {
        let width = self.text[self.position..].chars().next().map_or(1, char::len_utf8);
        self.position += width;
        TokenKind::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut lexer = Lexer { text, position: 0 };
        let mut kinds = Vec::new();
        loop {
            match lexer.token().kind {
                End => return kinds,
                kind => kinds.push(kind),
            }
        }
    }

    #[test]
    fn words_numbers_and_strings() {
        assert_eq!(kinds("%a.1-b reduce-window _x -inf %0"), [Name; 5]);
        assert_eq!(kinds("a->b -7 12"), [Name, Arrow, Name, Integer, Integer]);
        assert_eq!(kinds(r#""a \" b" "open"#), [String, OpenString]);
        assert_eq!(kinds("1x2 3.5"), [BadNumber; 2]);
    }

    #[test]
    fn blanks_and_what_is_no_token() {
        assert_eq!(kinds("/*index=5*/ // rest\n="), [Punctuation(b'=')]);
        assert_eq!(kinds("/* open"), [OpenComment]);
        assert_eq!(kinds("\u{e9}\0;-"), [Unknown; 4]);
        assert_eq!(kinds(r#""\"#), [OpenString]);
    }
}
