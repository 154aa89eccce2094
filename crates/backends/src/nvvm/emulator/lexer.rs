//! Tokens of PTX (PTX ISA, "Syntax").
//!
//! A word is an identifier with everything that hangs on it by dots and double colons, so that
//! `ld.global.nc.L1::no_allocate.v4.b32`, `%tid.x` and `.shared` are one token each.

use super::error::{Error, Position};

/// A token with its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub at: Position,
}

/// The kinds of token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    /// An identifier, opcode, register or directive.
    Word(&'a str),
    /// An integer literal, without its sign.
    Integer(u64),
    /// `0f` and eight hexadecimal digits.
    Single(u32),
    /// `0d` and sixteen hexadecimal digits.
    Double(u64),
    /// A decimal with a point; only versions are written so.
    Decimal(&'a str),
    /// The inside of a string literal.
    Text(&'a str),
    /// One of the characters of punctuation.
    Symbol(u8),
    /// The end of the text.
    End,
}

impl Kind<'_> {
    /// The token as a message quotes it.
    pub fn describe(&self) -> String {
        match self {
            Kind::Word(w) | Kind::Decimal(w) => format!("'{w}'"),
            Kind::Integer(n) => format!("'{n}'"),
            Kind::Single(bits) => format!("'0f{bits:08X}'"),
            Kind::Double(bits) => format!("'0d{bits:016X}'"),
            Kind::Text(_) => "a string".to_string(),
            Kind::Symbol(c) => format!("'{}'", char::from(*c)),
            Kind::End => "the end of the text".to_string(),
        }
    }
}

fn starts_word(c: u8) -> bool {
    c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%' | b'.')
}

fn continues_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$')
}

struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    next: usize,
    line: u32,
    line_start: usize,
}

/// The tokens of a text, ended by [`Kind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Error> {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), next: 0, line: 1, line_start: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 4);
    loop {
        let token = lexer.token()?;
        tokens.push(token);
        if token.kind == Kind::End {
            return Ok(tokens);
        }
    }
}

impl<'a> Lexer<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.next + ahead).copied().unwrap_or(0)
    }

    fn at(&self) -> Position {
        Position { line: self.line, column: (self.next - self.line_start) as u32 + 1 }
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::Syntax { at: self.at(), message: message.into() }
    }

    fn advance(&mut self) {
        if self.peek(0) == b'\n' {
            self.line += 1;
            self.line_start = self.next + 1;
        }
        self.next += 1;
    }

    fn skip_blanks(&mut self) -> Result<(), Error> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (c, _) if c.is_ascii_whitespace() => self.advance(),
                (b'/', b'/') => {
                    while self.next < self.bytes.len() && self.peek(0) != b'\n' {
                        self.advance();
                    }
                }
                (b'/', b'*') => {
                    let open = self.error("expected '*/', found the end of the text");
                    while (self.peek(0), self.peek(1)) != (b'*', b'/') {
                        if self.next >= self.bytes.len() {
                            return Err(open);
                        }
                        self.advance();
                    }
                    self.next += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn token(&mut self) -> Result<Token<'a>, Error> {
        self.skip_blanks()?;
        let at = self.at();
        let kind = if self.next >= self.bytes.len() {
            Kind::End
        } else {
            match self.peek(0) {
                c if c.is_ascii_digit() => self.number()?,
                c if starts_word(c) => Kind::Word(self.word()),
                b'"' => Kind::Text(self.string()?),
                c if c.is_ascii_punctuation() => {
                    self.next += 1;
                    Kind::Symbol(c)
                }
                _ => return Err(self.error("unsupported character")),
            }
        };
        Ok(Token { kind, at })
    }

    fn word(&mut self) -> &'a str {
        let start = self.next;
        self.next += 1;
        loop {
            if continues_word(self.peek(0)) {
                self.next += 1;
            } else if self.peek(0) == b'.' && continues_word(self.peek(1)) {
                self.next += 2;
            } else if self.peek(0) == b':' && self.peek(1) == b':' && continues_word(self.peek(2)) {
                self.next += 3;
            } else {
                return &self.text[start..self.next];
            }
        }
    }

    fn string(&mut self) -> Result<&'a str, Error> {
        let open = self.error("expected '\"', found the end of the line");
        let start = self.next + 1;
        self.next = start;
        while self.peek(0) != b'"' {
            if self.next >= self.bytes.len() || self.peek(0) == b'\n' {
                return Err(open);
            }
            self.next += 1;
        }
        self.next += 1;
        Ok(&self.text[start..self.next - 1])
    }

    fn number(&mut self) -> Result<Kind<'a>, Error> {
        let start = self.next;
        while self.peek(0).is_ascii_alphanumeric() {
            self.next += 1;
        }
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.next += 1;
            while self.peek(0).is_ascii_digit() {
                self.next += 1;
            }
            return Ok(Kind::Decimal(&self.text[start..self.next]));
        }
        let text = &self.text[start..self.next];
        let bad = || Error::Syntax {
            at: Position { line: self.line, column: (start - self.line_start) as u32 + 1 },
            message: format!("expected a number, found '{text}'"),
        };
        let digits = text.strip_suffix('U').unwrap_or(text);
        let parse = |digits: &str, radix| u64::from_str_radix(digits, radix).map_err(|_| bad());
        match (digits.get(..2), digits.get(2..)) {
            (Some("0f" | "0F"), Some(hex)) if hex.len() == 8 => {
                Ok(Kind::Single(parse(hex, 16)? as u32))
            }
            (Some("0d" | "0D"), Some(hex)) if hex.len() == 16 => Ok(Kind::Double(parse(hex, 16)?)),
            (Some("0x" | "0X"), Some(hex)) => Ok(Kind::Integer(parse(hex, 16)?)),
            (Some("0b" | "0B"), Some(bits)) => Ok(Kind::Integer(parse(bits, 2)?)),
            (Some(two), Some(_)) if two.starts_with('0') => {
                Ok(Kind::Integer(parse(&digits[1..], 8)?))
            }
            _ => Ok(Kind::Integer(parse(digits, 10)?)),
        }
    }
}
