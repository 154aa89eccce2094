//! Parses Axon source text into a syntax tree.
//!
//! Source: the programs of the Axon paper, sections 2, 6 and 7; the notation of shapes is that of
//! [`tc_ir::shape::text`]. Recursive descent with an operator stack for binary operators. After an
//! error the parser goes on at the next definition of the file, so that one run reports several
//! mistakes. Time and memory are linear.
//!
//! Limits: [`MAX_NESTING`], [`MAX_HEIGHT`], and those of the lexer.

use super::ast::{
    CallOption, Expr, ExprKind, Function, Let, Name, OptionValue, Param, Pattern, Program,
    TypeExpr, TypeKind,
};
use super::lexer::{MAX_TOKEN_BYTES, MAX_TOKENS, Token, TokenKind, tokenize};
use crate::tc::syntax::{
    Diagnostic, Reason, SourceFile, Span,
    diagnostic::{MAX_DIAGNOSTICS, MAX_FILE_BYTES, sorted_and_capped, too_large},
};
use std::rc::Rc;
use tc_ir::shape::text::{self, ShapeExpr};

/// Deepest nesting of parentheses, calls, functions and types.
pub const MAX_NESTING: u32 = 100;

/// Greatest height of an expression tree.
pub const MAX_HEIGHT: u32 = 200;

/// Parses a program; definitions with a mistake are left out and reported.
pub fn parse_program(source: &SourceFile) -> (Program, Vec<Diagnostic>) {
    let mut program = Program::default();
    let text = source.text();
    if MAX_FILE_BYTES < text.len() {
        return (program, vec![too_large(text.len())]);
    }
    let mut parser = Parser::new(text);
    parser.program(&mut program);
    (program, sorted_and_capped(parser.diagnostics))
}

/// A line of the table of built-in functions.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) name: Name,
    pub(crate) pointwise: bool,
    pub(crate) params: Vec<TypeExpr>,
    pub(crate) options: Vec<OptionDeclaration>,
    pub(crate) result: TypeExpr,
    /// What follows `where`.
    pub(crate) conditions: Vec<Condition>,
}

/// `name = 1 as [a, b]`: an option, its value if none is given, and the names of its sizes.
#[derive(Clone, Debug)]
pub(crate) struct OptionDeclaration {
    pub(crate) name: Name,
    pub(crate) default: Option<i64>,
    pub(crate) meaning: ShapeExpr,
}

/// A condition on a call of a built-in function.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// `t : float`
    Class(Name, Name),
    /// `positive [d]`
    Positive(ShapeExpr),
    /// `elements r = s`
    Elements(ShapeExpr, ShapeExpr),
}

/// Parses the table of built-in functions.
pub(crate) fn parse_table(source: &SourceFile) -> (Vec<Declaration>, Vec<Diagnostic>) {
    let mut parser = Parser::new(source.text());
    let mut declarations = Vec::new();
    while !parser.at_end() {
        match parser.declaration() {
            Ok(declaration) => declarations.push(declaration),
            Err(Failed) => break,
        }
    }
    (declarations, sorted_and_capped(parser.diagnostics))
}

/// Parses a signature: a type, or parameters, `->` and a result.
///
/// # Errors
/// The text is none.
pub fn parse_signature(source: &SourceFile) -> Result<TypeExpr, Vec<Diagnostic>> {
    let mut parser = Parser::new(source.text());
    let parsed = parser.signature().and_then(|ty| match parser.at_end() {
        true => Ok(ty),
        false => Err(parser.unexpected("the end of the signature")),
    });
    parsed.map_err(|Failed| parser.diagnostics)
}

/// The current construct cannot be completed; the reason is already among the diagnostics.
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// An expression and the height of its tree.
struct Tree {
    expr: Expr,
    height: u32,
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    position: usize,
    depth: u32,
    diagnostics: Vec<Diagnostic>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, tokens: tokenize(text), position: 0, depth: 0, diagnostics: Vec::new() }
    }

    fn token(&self) -> Token {
        self.tokens[self.position]
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// The kind of the token `ahead` places further on, or of the last one.
    fn peek(&self, ahead: usize) -> TokenKind {
        self.tokens[(self.position + ahead).min(self.tokens.len() - 1)].kind
    }

    fn spelling(&self, token: Token) -> &'t str {
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
        match self.position {
            0 => 0,
            position => self.tokens[position - 1].span.end,
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        if self.diagnostics.last().is_none_or(|last| last.span != diagnostic.span) {
            self.diagnostics.push(diagnostic);
        }
        if MAX_DIAGNOSTICS < self.diagnostics.len() {
            self.position = self.tokens.len() - 1;
        }
        Failed
    }

    fn unexpected(&mut self, expected: &str) -> Failed {
        let token = self.token();
        let spelling = self.spelling(token);
        let (reason, message) = match token.kind {
            TokenKind::Unknown => {
                let shown: String = spelling.chars().flat_map(char::escape_debug).collect();
                (Reason::AxonSyntax, format!("expected {expected}, found character '{shown}'"))
            }
            TokenKind::BadNumber => (
                Reason::AxonSyntax,
                format!("expected {expected}, found malformed number '{spelling}'"),
            ),
            TokenKind::TooLong => (
                Reason::AxonLimit,
                format!("token has {} bytes, expected at most {MAX_TOKEN_BYTES}", spelling.len()),
            ),
            TokenKind::TooMany => {
                (Reason::AxonLimit, format!("program has more than {MAX_TOKENS} tokens"))
            }
            TokenKind::End => {
                (Reason::AxonSyntax, format!("expected {expected}, found end of file"))
            }
            _ => (Reason::AxonSyntax, format!("expected {expected}, found '{spelling}'")),
        };
        let mut diagnostic = Diagnostic::new(reason, token.span, message);
        if spelling == "'" {
            diagnostic = diagnostic
                .note(token.span, "names have letters, digits and '_'; try '_' for the quote");
        }
        self.report(diagnostic)
    }

    fn too_deep(&mut self, what: &str) -> Failed {
        let message = format!("{what} is nested too deeply, try definitions for its parts");
        self.report(Diagnostic::new(Reason::AxonLimit, self.token().span, message))
    }

    fn limited<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_NESTING {
            return Err(self.too_deep("expression"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn program(&mut self, program: &mut Program) {
        while !self.at_end() {
            let start = self.position;
            match self.statement() {
                Ok(Statement::Let(definition)) => {
                    program.lets.push(definition);
                    if self.eat(TokenKind::Semicolon) || self.at_end() {
                        continue;
                    }
                    let _ = self.unexpected("';' after a definition");
                }
                Ok(Statement::Value(value)) => {
                    program.result = Some(value);
                    self.eat(TokenKind::Semicolon);
                    if self.at_end() {
                        return;
                    }
                    let _ = self.unexpected("the end of the file after an expression");
                }
                Err(Failed) => {}
            }
            self.skip(start);
        }
        if self.kind() == TokenKind::TooMany {
            let _ = self.unexpected("a definition");
        }
    }

    /// Leaves the wreck of a definition: goes behind the `;` that ends it.
    fn skip(&mut self, start: usize) {
        self.depth = 0;
        let mut open = 0_i64;
        for token in &self.tokens[start..self.position] {
            open += brace(token.kind);
        }
        while !self.at_end() {
            let kind = self.bump().kind;
            open += brace(kind);
            if open <= 0 && kind == TokenKind::Semicolon {
                return;
            }
        }
    }

    fn name(&mut self, expected: &str) -> Parsed<Name> {
        let token = self.expect(TokenKind::Ident, expected)?;
        Ok(self.as_name(token))
    }

    fn as_name(&self, token: Token) -> Name {
        Name { text: self.spelling(token).into(), span: token.span }
    }

    /// Elements with commas between them up to the closing parenthesis, which is taken as well.
    fn list<T>(
        &mut self,
        close: TokenKind,
        expected: &str,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        if self.eat(close) {
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.eat(close) {
                return Ok(elements);
            }
            self.expect(TokenKind::Comma, expected)?;
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let value = self.values()?;
        if self.kind() != TokenKind::Assign {
            return Ok(Statement::Value(value.expr));
        }
        let pattern = self.pattern(value.expr)?;
        self.bump();
        let value = self.values()?.expr;
        Ok(Statement::Let(Let { pattern, value }))
    }

    /// Expressions with commas between them; several are a tuple.
    fn values(&mut self) -> Parsed<Tree> {
        let first = self.expression()?;
        if self.kind() != TokenKind::Comma {
            return Ok(first);
        }
        let start = first.expr.span;
        let mut below = first.height;
        let mut elements = vec![first.expr];
        while self.eat(TokenKind::Comma) {
            let next = self.expression()?;
            below = below.max(next.height);
            elements.push(next.expr);
        }
        let span = Span::new(start.start, self.previous_end());
        self.node(ExprKind::Tuple(elements), span, below)
    }

    fn pattern(&mut self, value: Expr) -> Parsed<Pattern> {
        match value.kind {
            ExprKind::Name(name) if &*name == "_" => Ok(Pattern::Ignore(value.span)),
            ExprKind::Name(text) if self.text.as_bytes()[value.span.start as usize] != b'(' => {
                Ok(Pattern::Name(Name { text, span: value.span }))
            }
            ExprKind::Tuple(parts) => {
                let parts = parts.into_iter().map(|part| self.pattern(part));
                Ok(Pattern::Tuple(parts.collect::<Parsed<_>>()?, value.span))
            }
            _ => Err(self.report(Diagnostic::new(
                Reason::AxonSyntax,
                value.span,
                "expected names to define before '='",
            ))),
        }
    }

    fn node(&mut self, kind: ExprKind, span: Span, below: u32) -> Parsed<Tree> {
        if below == MAX_HEIGHT {
            return Err(self.too_deep("expression"));
        }
        Ok(Tree { expr: Expr { kind, span }, height: below + 1 })
    }

    /// Operands with binary operators between them.
    fn expression(&mut self) -> Parsed<Tree> {
        let mut tree = self.operand()?;
        let mut pending: Vec<(Tree, Token, u8)> = Vec::new();
        loop {
            let next = precedence(self.kind());
            while let Some((lhs, op, _)) =
                pending.pop_if(|(_, _, precedence)| next.unwrap_or(0) <= *precedence)
            {
                tree = self.binary(op, lhs, tree)?;
            }
            let Some(precedence) = next else { return Ok(tree) };
            let op = self.bump();
            let rhs = self.operand()?;
            pending.push((std::mem::replace(&mut tree, rhs), op, precedence));
        }
    }

    fn binary(&mut self, op: Token, lhs: Tree, rhs: Tree) -> Parsed<Tree> {
        let span = lhs.expr.span.to(rhs.expr.span);
        let below = lhs.height.max(rhs.height);
        let function = Expr { kind: ExprKind::Name(self.spelling(op).into()), span: op.span };
        let args = vec![lhs.expr, rhs.expr];
        let function = Box::new(function);
        self.node(ExprKind::Call { function, args, options: Vec::new() }, span, below)
    }

    /// A primary with the minus signs before it.
    fn operand(&mut self) -> Parsed<Tree> {
        if precedence(self.kind()).is_some()
            && matches!(self.peek(1), TokenKind::Comma | TokenKind::RightParen)
        {
            // An operator as an argument.
            let token = self.bump();
            let kind = ExprKind::Name(self.spelling(token).into());
            return self.node(kind, token.span, 0);
        }
        let mut signs = Vec::new();
        while self.kind() == TokenKind::Minus {
            signs.push(self.bump().span);
        }
        let mut tree = self.postfix()?;
        while let Some(sign) = signs.pop() {
            let span = sign.to(tree.expr.span);
            let below = tree.height;
            tree = match tree.expr.kind {
                ExprKind::Float(value) => self.node(ExprKind::Float(-value), span, below - 1)?,
                ExprKind::Integer(value) => {
                    self.node(ExprKind::Integer(-value), span, below - 1)?
                }
                _ => {
                    let function = Expr { kind: ExprKind::Name("neg".into()), span: sign };
                    let function = Box::new(function);
                    let args = vec![tree.expr];
                    self.node(ExprKind::Call { function, args, options: Vec::new() }, span, below)?
                }
            };
        }
        Ok(tree)
    }

    /// A primary and the calls of it.
    fn postfix(&mut self) -> Parsed<Tree> {
        let mut tree = self.primary()?;
        while self.kind() == TokenKind::LeftParen {
            self.bump();
            tree = self.limited(|parser| parser.call(tree))?;
        }
        Ok(tree)
    }

    fn call(&mut self, function: Tree) -> Parsed<Tree> {
        let mut below = function.height;
        let mut args = Vec::new();
        let mut options = Vec::new();
        let close = "',', ')' or an operator";
        self.list(TokenKind::RightParen, close, |parser| {
            if parser.kind() == TokenKind::Ident && parser.peek(1) == TokenKind::Assign {
                options.push(parser.option()?);
            } else {
                let tree = parser.expression()?;
                below = below.max(tree.height);
                args.push(tree.expr);
            }
            Ok(())
        })?;
        let span = Span::new(function.expr.span.start, self.previous_end());
        let function = Box::new(function.expr);
        self.node(ExprKind::Call { function, args, options }, span, below)
    }

    fn option(&mut self) -> Parsed<CallOption> {
        let name = self.name("an option")?;
        self.bump();
        let start = self.token().span.start;
        let is_shape = self.kind() == TokenKind::LeftBracket || self.peek(1) == TokenKind::At;
        let value = if is_shape {
            OptionValue::Shape(self.shape()?)
        } else {
            let dim = text::dim_at(self.text, start as usize);
            let (dim, end) = dim.map_err(|error| self.shape_error(error))?;
            self.resume(end);
            OptionValue::Dim(dim)
        };
        let span = Span::new(start, self.previous_end());
        Ok(CallOption { name, value, span })
    }

    fn shape_error(&mut self, error: text::SyntaxError) -> Failed {
        let span = Span::new(error.place.start as u32, error.place.end as u32);
        let reason = if error.limit { Reason::AxonLimit } else { Reason::AxonSyntax };
        self.report(Diagnostic::new(reason, span, error.message))
    }

    /// Goes on behind what was parsed up to a byte of the text.
    fn resume(&mut self, end: usize) {
        while !self.at_end() && (self.token().span.start as usize) < end {
            self.position += 1;
        }
    }

    fn shape(&mut self) -> Parsed<ShapeExpr> {
        let shape = text::shape_at(self.text, self.token().span.start as usize);
        let shape = shape.map_err(|error| self.shape_error(error))?;
        self.resume(shape.place.end);
        Ok(shape)
    }

    fn primary(&mut self) -> Parsed<Tree> {
        let token = self.token();
        let spelling = self.spelling(token);
        match token.kind {
            TokenKind::Integer => {
                self.bump();
                let Ok(value) = spelling.parse() else {
                    let message = format!("number '{spelling}' does not fit 64 bits");
                    return Err(self.report(Diagnostic::new(
                        Reason::AxonLimit,
                        token.span,
                        message,
                    )));
                };
                self.node(ExprKind::Integer(value), token.span, 0)
            }
            TokenKind::Float => {
                self.bump();
                let value = spelling.trim_end_matches('f').parse().unwrap_or(f64::INFINITY);
                self.node(ExprKind::Float(value), token.span, 0)
            }
            TokenKind::Ident if spelling == "inf" => {
                self.bump();
                self.node(ExprKind::Float(f64::INFINITY), token.span, 0)
            }
            TokenKind::Ident => {
                self.bump();
                self.node(ExprKind::Name(spelling.into()), token.span, 0)
            }
            TokenKind::LeftParen => {
                self.bump();
                if self.eat(TokenKind::RightParen) {
                    let span = Span::new(token.span.start, self.previous_end());
                    return self.node(ExprKind::Tuple(Vec::new()), span, 0);
                }
                let mut tree = self.limited(Self::values)?;
                self.expect(TokenKind::RightParen, "')', ',' or an operator")?;
                tree.expr.span = Span::new(token.span.start, self.previous_end());
                Ok(tree)
            }
            TokenKind::Fn => self.limited(Self::function),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn function(&mut self) -> Parsed<Tree> {
        let start = self.bump().span.start;
        self.expect(TokenKind::LeftParen, "'(' and the parameters")?;
        let params =
            self.list(TokenKind::RightParen, "',' or ')' after a parameter", |parser| {
                let name = parser.name("a parameter")?;
                let ty = match parser.eat(TokenKind::Colon) {
                    true => Some(parser.type_expr()?),
                    false => None,
                };
                Ok(Param { name, ty })
            })?;
        let result_type = match self.eat(TokenKind::Colon) {
            true => Some(self.type_expr()?),
            false => None,
        };
        let open = self.expect(TokenKind::LeftBrace, "'{' and the body")?.span;
        let mut lets = Vec::new();
        let result = loop {
            if self.kind() == TokenKind::RightBrace {
                let failed = self.unexpected("an expression, the value of the function,");
                return Err(failed);
            }
            match self.statement()? {
                Statement::Let(definition) => {
                    lets.push(definition);
                    self.expect(TokenKind::Semicolon, "';' after a definition")?;
                }
                Statement::Value(value) => break value,
            }
        };
        self.eat(TokenKind::Semicolon);
        if !self.eat(TokenKind::RightBrace) {
            let failed = self.unexpected("'}' after the value of the function");
            if let Some(error) = self.diagnostics.last_mut() {
                error.notes.push((open, "to close this '{'".to_owned()));
            }
            return Err(failed);
        }
        let span = Span::new(start, self.previous_end());
        let function = Function { params, result_type, lets, result };
        self.node(ExprKind::Function(Rc::new(function)), span, 0)
    }

    fn type_expr(&mut self) -> Parsed<TypeExpr> {
        self.limited(|parser| {
            let start = parser.token().span.start;
            let kind = match parser.kind() {
                TokenKind::LeftParen => {
                    parser.bump();
                    let close = "',' or ')' after a type";
                    let mut types = parser.list(TokenKind::RightParen, close, Self::type_expr)?;
                    match types.len() {
                        1 => return Ok(types.remove(0)),
                        _ => TypeKind::Tuple(types),
                    }
                }
                TokenKind::Fn => {
                    parser.bump();
                    parser.expect(TokenKind::LeftParen, "'(' and the types of the parameters")?;
                    let close = "',' or ')' after a type";
                    let params = parser.list(TokenKind::RightParen, close, Self::type_expr)?;
                    parser.expect(TokenKind::Arrow, "'->' and the type of the result")?;
                    TypeKind::Function(params, Box::new(parser.type_expr()?))
                }
                _ => {
                    let name = parser.name("a type")?;
                    match parser.kind() {
                        TokenKind::Ident | TokenKind::LeftBracket => {
                            TypeKind::Tensor(name, parser.shape()?)
                        }
                        _ => TypeKind::Name(name),
                    }
                }
            };
            Ok(TypeExpr { kind, span: Span::new(start, parser.previous_end()) })
        })
    }

    fn signature(&mut self) -> Parsed<TypeExpr> {
        let ty = self.type_expr()?;
        if !self.eat(TokenKind::Arrow) {
            return Ok(ty);
        }
        let result = self.type_expr()?;
        let span = ty.span.to(result.span);
        let params = match ty.kind {
            TypeKind::Tuple(params) => params,
            _ => vec![ty],
        };
        Ok(TypeExpr { kind: TypeKind::Function(params, Box::new(result)), span })
    }

    fn declaration(&mut self) -> Parsed<Declaration> {
        let pointwise =
            self.kind() == TokenKind::Ident && self.spelling(self.token()) == "pointwise";
        if pointwise {
            self.bump();
        }
        let token = self.token();
        if token.kind != TokenKind::Ident && precedence(token.kind).is_none() {
            return Err(self.unexpected("the name of a function"));
        }
        self.bump();
        let name = self.as_name(token);
        self.expect(TokenKind::Colon, "':' and the type")?;
        self.expect(TokenKind::LeftParen, "'(' and the types of the parameters")?;
        let close = "',' or ')' after a type";
        let params = self.list(TokenKind::RightParen, close, Self::type_expr)?;
        let options = match self.eat(TokenKind::LeftBrace) {
            true => self.list(TokenKind::RightBrace, "',' or '}'", Self::option_declaration)?,
            false => Vec::new(),
        };
        self.expect(TokenKind::Arrow, "'->' and the type of the result")?;
        let result = self.type_expr()?;
        let mut conditions = Vec::new();
        if self.kind() == TokenKind::Ident && self.spelling(self.token()) == "where" {
            self.bump();
            conditions.push(self.condition()?);
            while self.eat(TokenKind::Comma) {
                conditions.push(self.condition()?);
            }
        }
        self.expect(TokenKind::Semicolon, "';' after a type")?;
        Ok(Declaration { name, pointwise, params, options, result, conditions })
    }

    fn option_declaration(&mut self) -> Parsed<OptionDeclaration> {
        let name = self.name("an option")?;
        let default = match self.eat(TokenKind::Assign) {
            true => {
                let token = self.expect(TokenKind::Integer, "a number")?;
                self.spelling(token).parse().ok()
            }
            false => None,
        };
        let word = self.name("'as' and the names of the sizes")?;
        if &*word.text != "as" {
            return Err(self.unexpected("'as'"));
        }
        let meaning = self.shape()?;
        Ok(OptionDeclaration { name, default, meaning })
    }

    fn condition(&mut self) -> Parsed<Condition> {
        let name = self.name("a condition")?;
        match &*name.text {
            "positive" => Ok(Condition::Positive(self.shape()?)),
            "elements" => {
                let left = self.shape()?;
                self.expect(TokenKind::Assign, "'=' and a shape")?;
                Ok(Condition::Elements(left, self.shape()?))
            }
            _ => {
                self.expect(TokenKind::Colon, "':' and a class of element types")?;
                Ok(Condition::Class(name, self.name("a class of element types")?))
            }
        }
    }
}

enum Statement {
    Let(Let),
    Value(Expr),
}

fn brace(kind: TokenKind) -> i64 {
    match kind {
        TokenKind::LeftBrace => 1,
        TokenKind::RightBrace => -1,
        _ => 0,
    }
}

/// How tightly an operator between its operands binds, from 1.
fn precedence(kind: TokenKind) -> Option<u8> {
    Some(match kind {
        TokenKind::Equal
        | TokenKind::NotEqual
        | TokenKind::Less
        | TokenKind::LessEqual
        | TokenKind::Greater
        | TokenKind::GreaterEqual => 1,
        TokenKind::Plus | TokenKind::Minus => 2,
        TokenKind::Star | TokenKind::Slash => 3,
        _ => return None,
    })
}
