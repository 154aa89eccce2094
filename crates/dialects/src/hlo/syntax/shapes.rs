//! Parses shapes and layouts.

use super::{
    lexer::{Lexer, TokenKind},
    parser::{Parsed, Parser, is_permutation, shortened},
};
use crate::{
    element::ElementType,
    hlo::{ArrayShape, Layout, Shape},
    text::{Reason, Span},
};

/// What an opening brace after a shape may be.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Braces {
    /// A layout.
    Layout,
    /// The body of a computation, unless a number or a colon follows.
    Body,
}

impl Braces {
    /// Whether the brace before the lexer's place starts a layout.
    fn is_layout(self, lexer: &Lexer) -> bool {
        let mut ahead = lexer.clone();
        ahead.skip_blanks();
        match ahead.byte(0) {
            Some(b'0'..=b'9' | b':' | b'-') => true,
            Some(b'}') => self == Self::Layout,
            _ => false,
        }
    }
}

impl Parser<'_> {
    /// Whether a shape starts here rather than a name.
    pub(super) fn starts_shape(&self) -> bool {
        self.is(b'(')
            || self.token.kind == TokenKind::Name
                && self.lexer.byte(0) == Some(b'[')
                && is_shape_word(self.spelling(self.token))
    }

    pub(super) fn shape(&mut self, braces: Braces) -> Parsed<Shape> {
        if self.is(b'(') {
            return self.deeper(|parser| {
                parser.bump();
                let elements = parser.list(b')', |parser| parser.shape(Braces::Layout))?;
                Ok(Shape::Tuple(elements))
            });
        }
        if self.token.kind != TokenKind::Name {
            return Err(self.unexpected("a shape"));
        }
        let token = self.bump();
        let word = self.spelling(token);
        if !self.is(b'[') {
            let message = format!("expected a shape, found '{}'", shortened(word));
            return Err(self.error(Reason::HloSyntax, token.span, message));
        }
        let element_type = match (word, ElementType::from_name(word)) {
            ("token", _) => None,
            (_, Some(element_type)) => Some(element_type),
            _ => {
                let message = format!("unknown element type '{}'", shortened(word));
                return Err(self.error(Reason::HloShape, token.span, message));
            }
        };
        self.bump();
        let dims = self.list(b']', Self::dim)?;
        let mut layout = None;
        if self.is(b'{') && braces.is_layout(&self.lexer) {
            layout = Some(Box::new(self.layout(&dims)?));
        }
        match element_type {
            Some(element_type) => Ok(Shape::Array(ArrayShape { element_type, dims, layout })),
            None if dims.is_empty() => Ok(Shape::Token),
            None => Err(self.error(Reason::HloShape, token.span, "a token has no dimensions")),
        }
    }

    fn dim(&mut self) -> Parsed<i64> {
        if self.is(b'<') || self.is(b'?') {
            let span = self.token.span;
            let message = "expected a size, found a dynamic one, which is not supported";
            return Err(self.error(Reason::HloShape, span, message));
        }
        self.natural("a size")
    }

    /// `{minor to major:properties}`
    fn layout(&mut self, dims: &[i64]) -> Parsed<Layout> {
        let open = self.bump().span;
        let mut minor_to_major = Vec::new();
        while self.token.kind == TokenKind::Integer {
            minor_to_major.push(self.integer("a dimension")?);
            if !self.eat(b',') {
                break;
            }
        }
        let mut properties = String::new();
        if self.is(b':') {
            let start = self.lexer.position;
            self.lexer.skip(|byte| byte != b'}' && byte != b'\n');
            if self.lexer.byte(0) != Some(b'}') {
                self.bump();
                let message = "the '{' of a layout is not closed";
                return Err(self.error(Reason::HloSyntax, open, message));
            }
            properties = self.lexer.text[start..self.lexer.position].to_owned();
            self.bump();
        }
        self.expect(b'}', "at the end of a layout")?;
        let rank = dims.len();
        let span = Span::new(open.start, self.previous_end);
        // Properties alone leave the order of the dimensions as it is without a layout.
        if minor_to_major.is_empty() && !properties.is_empty() {
            return Ok(Layout { properties, ..Layout::row_major(rank) });
        }
        if minor_to_major.len() != rank {
            let found = minor_to_major.len();
            let message =
                format!("layout has {found} dimensions, expected {rank} as the shape has");
            return Err(self.error(Reason::HloShape, span, message));
        }
        if !is_permutation(&minor_to_major) {
            let message =
                format!("layout is not a permutation of the dimensions 0 to {}", rank - 1);
            return Err(self.error(Reason::HloShape, span, message));
        }
        Ok(Layout { minor_to_major, properties })
    }
}

pub(super) fn is_shape_word(word: &str) -> bool {
    word == "token" || ElementType::from_name(word).is_some()
}
