//! Parses TML source text into a syntax tree.
//!
//! Source: figure 1 and section 3.1: all operators between expressions have one precedence and associate
//! to the left. After an error the parser goes on at the next declaration or statement, so that one run
//! reports several mistakes; what has a mistake is left out of the tree. Time and memory are linear. The
//! limits on nesting and height are those of TC, for the same reason.

use super::ast::{
    BinaryOp, Declaration, Element, Expr, ExprKind, Name, Program, Qualifier, Statement,
};
use super::lexer::{MAX_TOKEN_BYTES, MAX_TOKENS, Token, TokenKind, tokenize};
use super::{Diagnostic, Reason, SourceFile, Span};
use crate::tc::syntax::{
    diagnostic::{MAX_DIAGNOSTICS, MAX_FILE_BYTES, sorted_and_capped},
    parser::{MAX_HEIGHT, MAX_NESTING},
};

/// Parses a program; what could not be parsed is left out and reported.
pub fn parse_program(source: &SourceFile) -> (Program, Vec<Diagnostic>) {
    let mut program = Program::default();
    let text = source.text();
    if MAX_FILE_BYTES < text.len() {
        let message = format!("file has {} bytes, expected at most {MAX_FILE_BYTES}", text.len());
        return (program, vec![Diagnostic::new(Reason::TmlLimit, Span::default(), message)]);
    }
    let mut parser =
        Parser { text, tokens: tokenize(text), position: 0, depth: 0, diagnostics: Vec::new() };
    parser.program(&mut program);
    (program, sorted_and_capped(parser.diagnostics))
}

/// The current construct cannot be completed; the reason is already among the diagnostics.
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// An expression and the height of its tree once sugar is expanded.
struct Tree {
    expr: Expr,
    height: u32,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    position: usize,
    depth: u32,
    diagnostics: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens[self.position]
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// The kind of the next token but one, or of the last one.
    fn next_kind(&self) -> TokenKind {
        self.tokens[(self.position + 1).min(self.tokens.len() - 1)].kind
    }

    fn spelling(&self, token: Token) -> &str {
        &self.text[token.span.start as usize..token.span.end as usize]
    }

    fn at_end(&self) -> bool {
        matches!(self.kind(), TokenKind::End | TokenKind::TooMany)
    }

    /// Takes the current token; the last one is never passed.
    fn bump(&mut self) -> Token {
        let token = self.token();
        if !self.at_end() {
            self.position += 1;
        }
        token
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind, expected: &str) -> Parsed<Token> {
        if self.kind() == kind { Ok(self.bump()) } else { Err(self.unexpected(expected)) }
    }

    /// End of the last token that was taken.
    fn previous_end(&self) -> u32 {
        self.position.checked_sub(1).map_or(0, |position| self.tokens[position].span.end)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        // A second error at one place is the first one seen by an outer construct.
        if self.diagnostics.last().is_none_or(|last| last.span != diagnostic.span) {
            self.diagnostics.push(diagnostic);
        }
        if MAX_DIAGNOSTICS < self.diagnostics.len() {
            self.position = self.tokens.len() - 1;
        }
        Failed
    }

    fn limit(&mut self, at: Span, message: String) -> Failed {
        self.report(Diagnostic::new(Reason::TmlLimit, at, message))
    }

    fn unexpected(&mut self, expected: &str) -> Failed {
        self.unexpected_with(expected, None)
    }

    /// Reports the current token, with a hint at what to try.
    fn unexpected_with(&mut self, expected: &str, hint: Option<&str>) -> Failed {
        let token = self.token();
        let spelling = self.spelling(token);
        let message = match token.kind {
            TokenKind::TooLong => {
                let bytes = spelling.len();
                let message =
                    format!("token has {bytes} bytes, expected at most {MAX_TOKEN_BYTES}");
                return self.limit(token.span, message);
            }
            TokenKind::TooMany => {
                let message = format!("program has more than {MAX_TOKENS} tokens");
                return self.limit(token.span, message);
            }
            TokenKind::End => format!("expected {expected}, found end of file"),
            TokenKind::Unknown => {
                let shown: String = spelling.chars().flat_map(char::escape_default).collect();
                let shown = if spelling.chars().any(char::is_control) { &shown } else { spelling };
                format!("expected {expected}, found character '{shown}'")
            }
            _ => format!("expected {expected}, found '{spelling}'"),
        };
        let mut diagnostic = Diagnostic::new(Reason::TmlSyntax, token.span, message);
        if let Some(hint) = hint {
            diagnostic = diagnostic.note(token.span, hint);
        }
        self.report(diagnostic)
    }

    fn program(&mut self, program: &mut Program) {
        loop {
            let parsed = match self.kind() {
                TokenKind::End => return,
                _ if self.starts_declaration() => {
                    if let Some(first) = program.statements.first() {
                        let first = first.span;
                        let message = "expected a statement, found a declaration";
                        let error = Diagnostic::new(Reason::TmlSyntax, self.token().span, message)
                            .note(first, "declarations stand before this first statement");
                        let _ = self.report(error);
                    }
                    self.declaration().map(|it| program.declarations.push(it))
                }
                TokenKind::Ident => self.statement().map(|it| program.statements.push(it)),
                _ if program.statements.is_empty() => {
                    Err(self.unexpected("a declaration or a statement"))
                }
                _ => Err(self.unexpected("a statement or an operator")),
            };
            if parsed.is_err() {
                self.depth = 0;
                self.skip();
            }
            if self.kind() == TokenKind::TooMany {
                let _ = self.unexpected("a statement");
                return;
            }
        }
    }

    /// Leaves the wreck of a declaration or statement: goes to what looks like another one.
    fn skip(&mut self) {
        while !self.at_end() && !self.starts_declaration() && !self.starts_statement() {
            self.bump();
        }
    }

    fn starts_declaration(&self) -> bool {
        self.kind() == TokenKind::Var || self.qualifier().is_some()
    }

    fn starts_statement(&self) -> bool {
        self.kind() == TokenKind::Ident && self.next_kind() == TokenKind::Equal
    }

    /// The qualifier at the current token: such words are names anywhere but before `var`.
    fn qualifier(&self) -> Option<Qualifier> {
        (self.next_kind() == TokenKind::Var)
            .then(|| Qualifier::from_keyword(self.spelling(self.token())))
            .flatten()
    }

    fn as_name(&self, token: Token) -> Name {
        Name { text: self.spelling(token).to_owned(), span: token.span }
    }

    /// `[in|out|inout] var id : [f32|f64] [tuple]`
    fn declaration(&mut self) -> Parsed<Declaration> {
        let start = self.token().span;
        let qualifier = self.qualifier();
        if qualifier.is_some() {
            self.bump();
        }
        self.expect(TokenKind::Var, "'var'")?;
        if self.kind() == TokenKind::Var {
            let hint = Some("'var' is a keyword; try another name");
            return Err(self.unexpected_with("the name of a variable", hint));
        }
        let hint = "a name is a letter, then letters and digits";
        let hint = (self.kind() == TokenKind::Integer).then_some(hint);
        let name = match self.kind() {
            TokenKind::Ident => self.bump(),
            _ => return Err(self.unexpected_with("the name of a variable", hint)),
        };
        let name = self.as_name(name);
        self.expect(TokenKind::Colon, "':' and the type of the variable")?;
        let element = match self.kind() {
            TokenKind::Ident => match Element::from_keyword(self.spelling(self.token())) {
                Some(element) => {
                    self.bump();
                    Some(element)
                }
                None => return Err(self.unexpected("'f32', 'f64' or '[' and the extents")),
            },
            _ => None,
        };
        self.expect(TokenKind::LeftBracket, "'[' and the extents")?;
        let extents = self.integers("an extent or ']'")?;
        self.expect(TokenKind::RightBracket, "an extent or ']'")?;
        let span = Span::new(start.start, self.previous_end());
        Ok(Declaration { qualifier, name, element, extents, span })
    }

    /// Integers with nothing between them, up to something else.
    fn integers(&mut self, expected: &str) -> Parsed<Vec<Name>> {
        let mut integers = Vec::new();
        loop {
            match self.kind() {
                TokenKind::Integer => {
                    let token = self.bump();
                    integers.push(self.as_name(token));
                }
                TokenKind::Comma if expected.contains("extent") => {
                    let hint = Some("try a space: extents have no commas between them");
                    return Err(self.unexpected_with(expected, hint));
                }
                TokenKind::TooLong | TokenKind::Unknown => return Err(self.unexpected(expected)),
                _ => return Ok(integers),
            }
        }
    }

    /// `id = expr`
    fn statement(&mut self) -> Parsed<Statement> {
        let target = self.expect(TokenKind::Ident, "a statement")?;
        let target = self.as_name(target);
        self.expect(TokenKind::Equal, "'=' and the value of the statement")?;
        let value = self.expression()?.expr;
        let span = target.span.to(value.span);
        Ok(Statement { target, value, span })
    }

    fn node(&mut self, kind: ExprKind, span: Span, below: u32, levels: u32) -> Parsed<Tree> {
        let height = below.saturating_add(levels);
        if MAX_HEIGHT < height {
            let message = format!("expression has more than {MAX_HEIGHT} levels of operators");
            return Err(self.limit(span, message));
        }
        Ok(Tree { expr: Expr { kind, span }, height })
    }

    /// Operands and what follows them, from left to right; the only way in which the parser recurses.
    fn expression(&mut self) -> Parsed<Tree> {
        if MAX_NESTING <= self.depth {
            let at = self.token().span;
            let message = format!("expression is nested more than {MAX_NESTING} levels deep");
            return Err(self.limit(at, message));
        }
        self.depth += 1;
        let mut tree = self.operand()?;
        loop {
            let op = match self.kind() {
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
            self.bump();
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
        let token = self.token();
        let hint = match token.kind {
            TokenKind::Ident => {
                self.bump();
                let name = self.spelling(token).to_owned();
                return self.node(ExprKind::Variable(name), token.span, 0, 1);
            }
            TokenKind::LeftParen => {
                self.bump();
                let inner = self.expression()?;
                self.expect(TokenKind::RightParen, "')' or an operator")?;
                let span = Span::new(token.span.start, self.previous_end());
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
        self.bump();
        self.expect(TokenKind::LeftBracket, "'[' and two dimensions")?;
        let mut pairs = Vec::new();
        loop {
            let first = self.dimension()?;
            let second = self.dimension()?;
            pairs.push([first, second]);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::RightBracket, "',' or ']' after two dimensions")?;
        let span = Span::new(operand.expr.span.start, self.previous_end());
        let levels = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
        let kind = ExprKind::Contract { operand: Box::new(operand.expr), pairs };
        self.node(kind, span, operand.height, levels)
    }

    fn dimension(&mut self) -> Parsed<Name> {
        let token = self.expect(TokenKind::Integer, "the number of a dimension")?;
        Ok(self.as_name(token))
    }

    /// `^ [i j]` or `^ [p q r ..]`
    fn transposition(&mut self, operand: Tree) -> Parsed<Tree> {
        self.bump();
        self.expect(TokenKind::LeftBracket, "'[' and two or more dimensions")?;
        let mut entries = vec![self.dimension()?, self.dimension()?];
        entries.extend(self.integers("a dimension or ']'")?);
        self.expect(TokenKind::RightBracket, "a dimension or ']'")?;
        let span = Span::new(operand.expr.span.start, self.previous_end());
        let levels = u32::try_from(entries.len() - 1).unwrap_or(u32::MAX);
        let kind = ExprKind::Transpose { operand: Box::new(operand.expr), entries };
        self.node(kind, span, operand.height, levels)
    }
}
