//! Parses TML source text into a syntax tree.
//!
//! Source: figure 1 and section 3.1: all operators between expressions have one precedence and associate
//! to the left. After an error the parser goes on at the next declaration or statement, so that one run
//! reports several mistakes; what has a mistake is left out of the tree. Time and memory are linear. The
//! limits on nesting and height are those of TC, for the same reason.

use super::ast::{BinaryOp, Declaration, Element, Expr, ExprKind, Program, Qualifier, Statement};
use super::lexer::TokenKind;
use crate::text::{
    Diagnostic, Name, Reason, SourceFile, Span,
    tokens::{Cursor, Failed, Parsed, Token},
};

/// Deepest nesting of parentheses.
pub const MAX_NESTING: u32 = 200;

/// Greatest height of an expression tree.
pub const MAX_HEIGHT: u32 = 400;

/// Parses a program; what could not be parsed is left out and reported.
pub fn parse_program(source: &SourceFile) -> (Program, Vec<Diagnostic>) {
    let mut program = Program::default();
    let text = match source.text_within(Reason::TmlLimit) {
        Ok(text) => text,
        Err(error) => return (program, vec![error]),
    };
    let mut parser = Parser { tokens: Cursor::new(text), depth: 0 };
    parser.program(&mut program);
    (program, parser.tokens.into_diagnostics())
}

/// An expression and the height of its tree once sugar is expanded.
struct Tree {
    expr: Expr,
    height: u32,
}

struct Parser<'a> {
    tokens: Cursor<'a, TokenKind>,
    depth: u32,
}

impl Parser<'_> {
    /// Reports the current token, with a hint at what to try.
    fn unexpected_with(&mut self, expected: &str, hint: Option<&str>) -> Failed {
        let at = self.tokens.token().span;
        self.tokens.unexpected_with(expected, hint.map(|hint| (at, hint)))
    }

    fn program(&mut self, program: &mut Program) {
        loop {
            let parsed = match self.tokens.kind() {
                TokenKind::End => return,
                _ if self.starts_declaration() => {
                    if let Some(first) = program.statements.first() {
                        let first = first.span;
                        let message = "expected a statement, found a declaration";
                        let error =
                            Diagnostic::new(Reason::TmlSyntax, self.tokens.token().span, message)
                                .note(first, "declarations stand before this first statement");
                        let _ = self.tokens.report(error);
                    }
                    self.declaration().map(|it| program.declarations.push(it))
                }
                TokenKind::Ident => self.statement().map(|it| program.statements.push(it)),
                _ if program.statements.is_empty() => {
                    Err(self.tokens.unexpected("a declaration or a statement"))
                }
                _ => Err(self.tokens.unexpected("a statement or an operator")),
            };
            if parsed.is_err() {
                self.depth = 0;
                self.skip();
            }
            if self.tokens.kind() == TokenKind::TooMany {
                let _ = self.tokens.unexpected("a statement");
                return;
            }
        }
    }

    /// Leaves the wreck of a declaration or statement: goes to what looks like another one.
    fn skip(&mut self) {
        while !self.tokens.at_end() && !self.starts_declaration() && !self.starts_statement() {
            self.tokens.bump();
        }
    }

    fn starts_declaration(&self) -> bool {
        self.tokens.kind() == TokenKind::Var || self.qualifier().is_some()
    }

    fn starts_statement(&self) -> bool {
        self.tokens.kind() == TokenKind::Ident && self.tokens.peek(1) == TokenKind::Equal
    }

    /// The qualifier at the current token: such words are names anywhere but before `var`.
    fn qualifier(&self) -> Option<Qualifier> {
        (self.tokens.peek(1) == TokenKind::Var)
            .then(|| Qualifier::from_keyword(self.tokens.spelling(self.tokens.token())))
            .flatten()
    }

    fn as_name(&self, token: Token<TokenKind>) -> Name {
        Name { text: self.tokens.spelling(token).to_owned(), span: token.span }
    }

    /// `[in|out|inout] var id : [f32|f64] [tuple]`
    fn declaration(&mut self) -> Parsed<Declaration> {
        let start = self.tokens.token().span;
        let qualifier = self.qualifier();
        if qualifier.is_some() {
            self.tokens.bump();
        }
        self.tokens.expect(TokenKind::Var, "'var'")?;
        if self.tokens.kind() == TokenKind::Var {
            let is_repeated = self.tokens.peek(1) == TokenKind::Ident;
            let hint = match is_repeated {
                true => "try 'var' once",
                false => "'var' is a keyword; try another name",
            };
            return Err(self.unexpected_with("the name of a variable", Some(hint)));
        }
        let hint = "a name is a letter, then letters and digits";
        let hint = (self.tokens.kind() == TokenKind::Integer).then_some(hint);
        let name = match self.tokens.kind() {
            TokenKind::Ident => self.tokens.bump(),
            _ => return Err(self.unexpected_with("the name of a variable", hint)),
        };
        let name = self.as_name(name);
        self.tokens.expect(TokenKind::Colon, "':' and the type of the variable")?;
        let element = match self.tokens.kind() {
            TokenKind::Ident => {
                match Element::from_keyword(self.tokens.spelling(self.tokens.token())) {
                    Some(element) => {
                        self.tokens.bump();
                        Some(element)
                    }
                    None => {
                        return Err(self.tokens.unexpected("'f32', 'f64' or '[' and the extents"));
                    }
                }
            }
            _ => None,
        };
        self.tokens.expect(TokenKind::LeftBracket, "'[' and the extents")?;
        let extents = self.integers("an extent or ']'")?;
        self.tokens.expect(TokenKind::RightBracket, "an extent or ']'")?;
        let span = Span::new(start.start, self.tokens.previous_end());
        Ok(Declaration { qualifier, name, element, extents, span })
    }

    /// Integers with nothing between them, up to something else.
    fn integers(&mut self, expected: &str) -> Parsed<Vec<Name>> {
        let mut integers = Vec::new();
        loop {
            match self.tokens.kind() {
                TokenKind::Integer => {
                    let token = self.tokens.bump();
                    integers.push(self.as_name(token));
                }
                TokenKind::Comma => {
                    let hint = Some("try a space: there are no commas between these numbers");
                    return Err(self.unexpected_with(expected, hint));
                }
                TokenKind::TooLong | TokenKind::Unknown => {
                    return Err(self.tokens.unexpected(expected));
                }
                _ => return Ok(integers),
            }
        }
    }

    /// `id = expr`
    fn statement(&mut self) -> Parsed<Statement> {
        let target = self.tokens.expect(TokenKind::Ident, "a statement")?;
        let target = self.as_name(target);
        self.tokens.expect(TokenKind::Equal, "'=' and the value of the statement")?;
        let value = self.expression()?.expr;
        let span = target.span.to(value.span);
        Ok(Statement { target, value, span })
    }

    fn node(&mut self, kind: ExprKind, span: Span, below: u32, levels: u32) -> Parsed<Tree> {
        let height = below.saturating_add(levels);
        if MAX_HEIGHT < height {
            let message = format!("expression has more than {MAX_HEIGHT} levels of operators");
            return Err(self.tokens.limit(span, message));
        }
        Ok(Tree { expr: Expr { kind, span }, height })
    }

    /// Operands and what follows them, from left to right; the only way in which the parser recurses.
    fn expression(&mut self) -> Parsed<Tree> {
        if MAX_NESTING <= self.depth {
            let at = self.tokens.token().span;
            let message = format!("expression is nested more than {MAX_NESTING} levels deep");
            return Err(self.tokens.limit(at, message));
        }
        self.depth += 1;
        let mut tree = self.operand()?;
        loop {
            let op = match self.tokens.kind() {
                TokenKind::Plus => BinaryOp::Add,
                TokenKind::Minus => BinaryOp::Sub,
                TokenKind::Star => BinaryOp::Mul,
                TokenKind::Slash => BinaryOp::Div,
                TokenKind::Hash => BinaryOp::Product,
                TokenKind::Dot => {
                    tree = self.contraction(tree)?;
                    continue;
                }
                TokenKind::Caret => {
                    tree = self.transposition(tree)?;
                    continue;
                }
                _ => break,
            };
            self.tokens.bump();
            let rhs = self.operand()?;
            let span = tree.expr.span.to(rhs.expr.span);
            let below = tree.height.max(rhs.height);
            let kind = ExprKind::Binary { op, lhs: Box::new(tree.expr), rhs: Box::new(rhs.expr) };
            tree = self.node(kind, span, below, 1)?;
        }
        self.depth -= 1;
        Ok(tree)
    }

    fn operand(&mut self) -> Parsed<Tree> {
        let token = self.tokens.token();
        let hint = match token.kind {
            TokenKind::Ident => {
                self.tokens.bump();
                let name = self.tokens.spelling(token).to_owned();
                return self.node(ExprKind::Variable(name), token.span, 0, 1);
            }
            TokenKind::LeftParen => {
                self.tokens.bump();
                let inner = self.expression()?;
                self.tokens.expect(TokenKind::RightParen, "')' or an operator")?;
                let span = Span::new(token.span.start, self.tokens.previous_end());
                let kind = ExprKind::Paren(Box::new(inner.expr));
                return self.node(kind, span, inner.height, 1);
            }
            TokenKind::Minus => Some("there is no sign; try '-' between two operands"),
            TokenKind::Integer => Some("there are no constants; try a variable of type '[]'"),
            _ => None,
        };
        Err(self.unexpected_with("a variable or '('", hint))
    }

    /// `. [i j, k l, ..]`
    fn contraction(&mut self, operand: Tree) -> Parsed<Tree> {
        self.tokens.bump();
        self.tokens.expect(TokenKind::LeftBracket, "'[' and two dimensions")?;
        let mut pairs = Vec::new();
        loop {
            let first = self.dimension()?;
            let second = self.dimension()?;
            pairs.push([first, second]);
            if !self.tokens.eat(TokenKind::Comma) {
                break;
            }
        }
        self.tokens.expect(TokenKind::RightBracket, "',' or ']' after two dimensions")?;
        let span = Span::new(operand.expr.span.start, self.tokens.previous_end());
        let levels = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
        let kind = ExprKind::Contract { operand: Box::new(operand.expr), pairs };
        self.node(kind, span, operand.height, levels)
    }

    fn dimension(&mut self) -> Parsed<Name> {
        let token = self.tokens.expect(TokenKind::Integer, "the number of a dimension")?;
        Ok(self.as_name(token))
    }

    /// `^ [i j]` or `^ [p q r ..]`
    fn transposition(&mut self, operand: Tree) -> Parsed<Tree> {
        self.tokens.bump();
        self.tokens.expect(TokenKind::LeftBracket, "'[' and two or more dimensions")?;
        let entries = self.integers("the number of a dimension")?;
        if entries.len() < 2 {
            return Err(self.unexpected_with("the number of a dimension", None));
        }
        self.tokens.expect(TokenKind::RightBracket, "a dimension or ']'")?;
        let span = Span::new(operand.expr.span.start, self.tokens.previous_end());
        let levels = u32::try_from(entries.len() - 1).unwrap_or(u32::MAX);
        let kind = ExprKind::Transpose { operand: Box::new(operand.expr), entries };
        self.node(kind, span, operand.height, levels)
    }
}
