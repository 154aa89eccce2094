//! Parses Axon source text into a syntax tree.
//!
//! Source: the programs of the Axon paper, sections 2, 6 and 7; the notation of shapes is that of
//! [`tc_ir::shape::text`]. Recursive descent with an operator stack for binary operators. After an
//! error the parser goes on at the next definition of the file, so that one run reports several
//! mistakes. Time and memory are linear.
//!
//! Limits: [`MAX_NESTING`], [`MAX_HEIGHT`], [`MAX_OPERATORS`], and those of the lexer.

use super::ast::{
    CallOption, Expr, ExprKind, Function, Let, Name, OptionValue, Param, Pattern, Program,
    TypeExpr, TypeKind,
};
use super::lexer::TokenKind;
use crate::text::{
    Diagnostic, Reason, SourceFile, Span,
    tokens::{Cursor, Failed, Parsed, Token},
};
use std::collections::HashSet;
use std::rc::Rc;
use tc_ir::shape::text::{self, Part, ShapeExpr};

/// Deepest nesting of parentheses, calls, functions and types.
pub const MAX_NESTING: u32 = 100;

/// Greatest height of an expression tree, in which operators in a row, as in `a + b - c`, count once.
pub const MAX_HEIGHT: u32 = 200;

/// Greatest height of an expression tree in which all operators count.
pub const MAX_OPERATORS: u32 = 1 << 14;

/// Parses a program; definitions with a mistake are left out and reported.
pub fn parse_program(source: &SourceFile) -> (Program, Vec<Diagnostic>) {
    let mut program = Program::default();
    let text = match source.text_within(Reason::AxonLimit) {
        Ok(text) => text,
        Err(error) => return (program, vec![error]),
    };
    let mut parser = Parser::new(text);
    parser.program(&mut program);
    (program, parser.tokens.into_diagnostics())
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
    /// The type, options and conditions as they are written, on one line.
    pub(crate) written: Box<str>,
}

impl Declaration {
    /// Whether all parameters and the result have one shape, which can be any: `(t s, t s) -> bool s`.
    pub(crate) fn is_elementwise(&self) -> bool {
        let shape = |ty: &TypeExpr| match &ty.kind {
            TypeKind::Tensor(_, shape) => match shape.parts.as_slice() {
                [Part::Name(name)] => Some(name.text.clone()),
                _ => None,
            },
            _ => None,
        };
        let whole = shape(&self.result);
        whole.is_some() && self.params.iter().all(|param| shape(param) == whole)
    }
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
    while !parser.tokens.at_end() {
        match parser.declaration() {
            Ok(declaration) => declarations.push(declaration),
            Err(Failed) => break,
        }
    }
    (declarations, parser.tokens.into_diagnostics())
}

/// Parses a signature: a type, or parameters, `->` and a result.
///
/// # Errors
/// The text is none.
pub fn parse_signature(source: &SourceFile) -> Result<TypeExpr, Vec<Diagnostic>> {
    let mut parser = Parser::new(source.text());
    let parsed = parser.signature().and_then(|ty| match parser.tokens.at_end() {
        true => Ok(ty),
        false => Err(parser.tokens.unexpected("the end of the signature")),
    });
    parsed.map_err(|Failed| parser.tokens.into_diagnostics())
}

/// An expression and the height of its tree.
struct Tree {
    expr: Expr,
    height: Height,
}

/// The height of a tree.
#[derive(Clone, Copy, Default)]
struct Height {
    /// Where operators in a row count once.
    nesting: u32,
    operators: u32,
}

impl Height {
    fn max(self, other: Self) -> Self {
        Self {
            nesting: self.nesting.max(other.nesting),
            operators: self.operators.max(other.operators),
        }
    }
}

struct Parser<'t> {
    tokens: Cursor<'t, TokenKind>,
    depth: u32,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        Self { tokens: Cursor::new(text), depth: 0 }
    }

    fn too_deep(&mut self, what: &str) -> Failed {
        let message = format!("{what} is nested too deeply, try definitions for its parts");
        let at = self.tokens.token().span;
        self.tokens.limit(at, message)
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
        while !self.tokens.at_end() {
            let start = self.tokens.position();
            match self.statement() {
                Ok((Statement::Let(definition), _)) => {
                    program.lets.push(definition);
                    if self.tokens.eat(TokenKind::Semicolon) || self.tokens.at_end() {
                        continue;
                    }
                    let _ = self.tokens.unexpected("';' after a definition");
                }
                Ok((Statement::Value(value), _)) => {
                    program.result = Some(value);
                    self.tokens.eat(TokenKind::Semicolon);
                    if self.tokens.at_end() {
                        return;
                    }
                    let _ = self.tokens.unexpected("the end of the file after an expression");
                }
                Err(Failed) => {}
            }
            self.skip(start);
        }
        if self.tokens.kind() == TokenKind::TooMany {
            let _ = self.tokens.unexpected("a definition");
        }
    }

    /// Leaves the wreck of a definition: goes behind the `;` that ends it.
    fn skip(&mut self, start: usize) {
        self.depth = 0;
        let mut open = 0_i64;
        for token in self.tokens.taken_since(start) {
            open += brace(token.kind);
        }
        while !self.tokens.at_end() {
            let kind = self.tokens.bump().kind;
            open += brace(kind);
            if open <= 0 && kind == TokenKind::Semicolon && !self.is_inside_brackets() {
                return;
            }
        }
    }

    /// Whether the next tokens are a part of brackets that were opened before, as after the `;` of `[3; 4]`.
    fn is_inside_brackets(&self) -> bool {
        let is_part = |kind: &TokenKind| {
            matches!(
                kind,
                TokenKind::Integer | TokenKind::Ident | TokenKind::Star | TokenKind::Comma
            )
        };
        let next = (0..).map(|ahead| self.tokens.peek(ahead)).find(|kind| !is_part(kind));
        next == Some(TokenKind::RightBracket)
    }

    fn name(&mut self, expected: &str) -> Parsed<Name> {
        let token = self.tokens.expect(TokenKind::Ident, expected)?;
        Ok(self.as_name(token))
    }

    fn as_name(&self, token: Token<TokenKind>) -> Name {
        Name { text: self.tokens.spelling(token).into(), span: token.span }
    }

    /// Elements with commas between them up to the closing parenthesis, which is taken as well.
    fn list<T>(
        &mut self,
        close: TokenKind,
        expected: &str,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        if self.tokens.eat(close) {
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.tokens.eat(close) {
                return Ok(elements);
            }
            self.tokens.expect(TokenKind::Comma, expected)?;
        }
    }

    /// A definition or a value, and the height of its tree.
    fn statement(&mut self) -> Parsed<(Statement, Height)> {
        let value = self.values()?;
        if self.tokens.kind() != TokenKind::Assign {
            return Ok((Statement::Value(value.expr), value.height));
        }
        let pattern = self.pattern(value.expr)?;
        self.tokens.bump();
        let Tree { expr: value, height } = self.values()?;
        Ok((Statement::Let(Let { pattern, value }), height))
    }

    /// Expressions with commas between them; several are a tuple.
    fn values(&mut self) -> Parsed<Tree> {
        let first = self.expression()?;
        if self.tokens.kind() != TokenKind::Comma {
            return Ok(first);
        }
        let start = first.expr.span;
        let mut below = first.height;
        let mut elements = vec![first.expr];
        while self.tokens.eat(TokenKind::Comma) {
            let next = self.expression()?;
            below = below.max(next.height);
            elements.push(next.expr);
        }
        let span = Span::new(start.start, self.tokens.previous_end());
        self.node(ExprKind::Tuple(elements), span, below)
    }

    fn pattern(&mut self, value: Expr) -> Parsed<Pattern> {
        match value.kind {
            ExprKind::Name(name) if &*name == "_" => Ok(Pattern::Ignore(value.span)),
            ExprKind::Name(text)
                if self.tokens.text.as_bytes()[value.span.start as usize] != b'(' =>
            {
                Ok(Pattern::Name(Name { text, span: value.span }))
            }
            ExprKind::Tuple(parts) => {
                let parts = parts.into_iter().map(|part| self.pattern(part));
                Ok(Pattern::Tuple(parts.collect::<Parsed<_>>()?, value.span))
            }
            kind => {
                let message = "expected names to define before '='";
                let mut error = Diagnostic::new(Reason::AxonSyntax, value.span, message);
                if let ExprKind::Call { function, .. } = kind
                    && let ExprKind::Name(name) = function.kind
                    && name.starts_with(|c: char| c.is_ascii_alphabetic())
                {
                    error = error.note(value.span, format!("try '{name} = fn(..) {{ .. }};'"));
                }
                Err(self.tokens.report(error))
            }
        }
    }

    fn node(&mut self, kind: ExprKind, span: Span, below: Height) -> Parsed<Tree> {
        self.tree(kind, span, Height { nesting: below.nesting + 1, operators: below.operators + 1 })
    }

    fn tree(&mut self, kind: ExprKind, span: Span, height: Height) -> Parsed<Tree> {
        if MAX_HEIGHT < height.nesting {
            return Err(self.too_deep("expression"));
        }
        if MAX_OPERATORS < height.operators {
            let message = format!(
                "expression has {MAX_OPERATORS} operators in a row, expected fewer; try definitions for its \
                 parts"
            );
            return Err(self.tokens.limit(self.tokens.token().span, message));
        }
        Ok(Tree { expr: Expr { kind, span }, height })
    }

    /// Operands with binary operators between them.
    fn expression(&mut self) -> Parsed<Tree> {
        let mut tree = self.operand()?;
        let mut pending: Vec<(Tree, Token<TokenKind>, u8)> = Vec::new();
        loop {
            let next = precedence(self.tokens.kind());
            while let Some((lhs, op, _)) =
                pending.pop_if(|(_, _, precedence)| next.unwrap_or(0) <= *precedence)
            {
                tree = self.binary(op, lhs, tree)?;
            }
            let Some(precedence) = next else { return Ok(tree) };
            let op = self.tokens.bump();
            let rhs = self.operand()?;
            pending.push((std::mem::replace(&mut tree, rhs), op, precedence));
        }
    }

    fn binary(&mut self, op: Token<TokenKind>, lhs: Tree, rhs: Tree) -> Parsed<Tree> {
        let span = lhs.expr.span.to(rhs.expr.span);
        let mut height = lhs.height.max(rhs.height);
        height.operators += 1;
        height.nesting = lhs.height.nesting.max(rhs.height.nesting + 1);
        let function =
            Expr { kind: ExprKind::Name(self.tokens.spelling(op).into()), span: op.span };
        let args = vec![lhs.expr, rhs.expr].into();
        let function = Box::new(function);
        self.tree(ExprKind::Call { function, args, options: Vec::new() }, span, height)
    }

    /// A primary with the minus signs before it.
    fn operand(&mut self) -> Parsed<Tree> {
        if precedence(self.tokens.kind()).is_some()
            && matches!(self.tokens.peek(1), TokenKind::Comma | TokenKind::RightParen)
        {
            // An operator as an argument.
            let token = self.tokens.bump();
            let kind = ExprKind::Name(self.tokens.spelling(token).into());
            return self.node(kind, token.span, Height::default());
        }
        let mut signs = Vec::new();
        while self.tokens.kind() == TokenKind::Minus {
            signs.push(self.tokens.bump().span);
        }
        let mut tree = self.postfix()?;
        while let Some(sign) = signs.pop() {
            let span = sign.to(tree.expr.span);
            let below = tree.height;
            tree = match tree.expr.kind {
                ExprKind::Float(value) => self.tree(ExprKind::Float(-value), span, below)?,
                ExprKind::Integer(value) if -value < i64::MIN.into() => {
                    return Err(self.too_wide(span));
                }
                ExprKind::Integer(value) => self.tree(ExprKind::Integer(-value), span, below)?,
                _ => {
                    let function = Expr { kind: ExprKind::Name("neg".into()), span: sign };
                    let function = Box::new(function);
                    let args = vec![tree.expr].into();
                    self.node(ExprKind::Call { function, args, options: Vec::new() }, span, below)?
                }
            };
        }
        Ok(tree)
    }

    /// A primary and the calls of it.
    fn postfix(&mut self) -> Parsed<Tree> {
        let mut tree = self.primary()?;
        while self.tokens.kind() == TokenKind::LeftParen {
            self.tokens.bump();
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
            if parser.tokens.kind() == TokenKind::Ident
                && parser.tokens.peek(1) == TokenKind::Assign
            {
                options.push(parser.option()?);
            } else {
                let tree = parser.expression()?;
                below = below.max(tree.height);
                args.push(tree.expr);
            }
            Ok(())
        })?;
        let span = Span::new(function.expr.span.start, self.tokens.previous_end());
        let function = Box::new(function.expr);
        self.node(ExprKind::Call { function, args: args.into(), options }, span, below)
    }

    fn option(&mut self) -> Parsed<CallOption> {
        let name = self.name("an option")?;
        self.tokens.bump();
        let start = self.tokens.token().span.start;
        let is_shape =
            self.tokens.kind() == TokenKind::LeftBracket || self.tokens.peek(1) == TokenKind::At;
        let value = if is_shape {
            OptionValue::Shape(self.shape()?)
        } else {
            let dim = text::dim_at(self.tokens.text, start as usize);
            let (dim, end) = dim.map_err(|error| self.shape_error(error))?;
            self.tokens.skip_to(end);
            if let Some(token) = self.tokens.previous()
                && end < token.span.end as usize
            {
                // A size ended inside of a number.
                let message = format!("expected a size, found '{}'", self.tokens.spelling(token));
                let error = Diagnostic::new(Reason::AxonSyntax, token.span, message);
                return Err(self.tokens.report(error));
            }
            OptionValue::Dim(dim)
        };
        let span = Span::new(start, self.tokens.previous_end());
        Ok(CallOption { name, value, span })
    }

    fn shape_error(&mut self, error: text::SyntaxError) -> Failed {
        let span = Span::new(error.place.start as u32, error.place.end as u32);
        let reason = if error.limit { Reason::AxonLimit } else { Reason::AxonSyntax };
        let before = self.tokens.text[..span.start as usize].trim_end();
        let hint = match &self.tokens.text[span.start as usize..span.end as usize] {
            "?" | "-" => {
                Some("try a name for a size that is open, or follows from others: '[n,4]'")
            }
            "." | ":" => Some("try a name for dimensions that are open: 's@[4]'"),
            "," if !before.ends_with(['[', ',']) => Some("try brackets around sizes: '[2,2]'"),
            _ => None,
        };
        let error = Diagnostic::new(reason, span, error.message);
        self.tokens.report(match hint {
            Some(hint) => error.note(span, hint),
            None => error,
        })
    }

    fn shape(&mut self) -> Parsed<ShapeExpr> {
        let shape = text::shape_at(self.tokens.text, self.tokens.token().span.start as usize);
        let shape = shape.map_err(|error| self.shape_error(error))?;
        self.tokens.skip_to(shape.place.end);
        Ok(shape)
    }

    /// Refuses an integer.
    fn too_wide(&mut self, span: Span) -> Failed {
        let spelling = &self.tokens.text[span.start as usize..span.end as usize];
        let message = format!("number '{spelling}' does not fit 64 bits");
        self.tokens.report(Diagnostic::new(Reason::AxonLimit, span, message))
    }

    fn primary(&mut self) -> Parsed<Tree> {
        let token = self.tokens.token();
        let spelling = self.tokens.spelling(token);
        match token.kind {
            TokenKind::Integer => {
                self.tokens.bump();
                let Ok(value) = spelling.parse::<u64>() else {
                    return Err(self.too_wide(token.span));
                };
                self.node(ExprKind::Integer(value.into()), token.span, Height::default())
            }
            TokenKind::Float => {
                self.tokens.bump();
                let value = spelling.trim_end_matches('f').parse().unwrap_or(f64::INFINITY);
                if value.is_infinite() {
                    let message = format!("number '{spelling}' is larger than any float");
                    let error = Diagnostic::new(Reason::AxonLimit, token.span, message);
                    return Err(self.tokens.report(error.note(token.span, "try 'inf'")));
                }
                self.node(ExprKind::Float(value), token.span, Height::default())
            }
            TokenKind::Ident if spelling == "inf" => {
                self.tokens.bump();
                self.node(ExprKind::Float(f64::INFINITY), token.span, Height::default())
            }
            TokenKind::Ident => {
                self.tokens.bump();
                self.node(ExprKind::Name(spelling.into()), token.span, Height::default())
            }
            TokenKind::LeftParen => {
                self.tokens.bump();
                if self.tokens.eat(TokenKind::RightParen) {
                    let span = Span::new(token.span.start, self.tokens.previous_end());
                    return self.node(ExprKind::Tuple(Vec::new()), span, Height::default());
                }
                let mut tree = self.limited(Self::values)?;
                self.tokens.expect(TokenKind::RightParen, "')', ',' or an operator")?;
                tree.expr.span = Span::new(token.span.start, self.tokens.previous_end());
                Ok(tree)
            }
            TokenKind::Fn => self.limited(Self::function),
            _ => Err(self.tokens.unexpected("an expression")),
        }
    }

    fn function(&mut self) -> Parsed<Tree> {
        let start = self.tokens.bump().span.start;
        self.tokens.expect(TokenKind::LeftParen, "'(' and the parameters")?;
        let params =
            self.list(TokenKind::RightParen, "',' or ')' after a parameter", |parser| {
                let name = parser.name("a parameter")?;
                let ty = match parser.tokens.eat(TokenKind::Colon) {
                    true => Some(parser.type_expr()?),
                    false => None,
                };
                Ok(Param { name, ty })
            })?;
        let mut names = HashSet::new();
        let mut named = params.iter().map(|param| &param.name).filter(|name| &*name.text != "_");
        if let Some(name) = named.find(|name| !names.insert(&name.text)) {
            let message =
                format!("'{}' is the name of two parameters, expected another name", name.text);
            return Err(self.tokens.report(Diagnostic::new(
                Reason::AxonSyntax,
                name.span,
                message,
            )));
        }
        let result_type = match self.tokens.eat(TokenKind::Colon) {
            true => Some(self.type_expr()?),
            false => None,
        };
        let open = self.tokens.expect(TokenKind::LeftBrace, "'{' and the body")?.span;
        let mut lets = Vec::new();
        let mut inside = Height::default();
        let result = loop {
            if self.tokens.kind() == TokenKind::RightBrace {
                return Err(self.no_value(&lets));
            }
            let (statement, height) = self.statement()?;
            inside = inside.max(height);
            match statement {
                Statement::Let(definition) => {
                    lets.push(definition);
                    if self.tokens.kind() == TokenKind::RightBrace {
                        return Err(self.no_value(&lets));
                    }
                    self.tokens.expect(TokenKind::Semicolon, "';' after a definition")?;
                }
                Statement::Value(value) => break value,
            }
        };
        self.tokens.eat(TokenKind::Semicolon);
        if !self.tokens.eat(TokenKind::RightBrace) {
            let note = Some((open, "to close this '{'"));
            return Err(self.tokens.unexpected_with("'}' after the value of the function", note));
        }
        let span = Span::new(start, self.tokens.previous_end());
        let function = Function { params, result_type, lets, result };
        // What stands in it is limited by how deep functions nest.
        let below = Height { nesting: 0, ..inside };
        self.node(ExprKind::Function(Rc::new(function)), span, below)
    }

    /// Reports that a body has no value after its definitions.
    fn no_value(&mut self, lets: &[Let]) -> Failed {
        let hint = lets.last().map(|last| {
            let value = match &last.pattern {
                Pattern::Name(name) => format!("'{}'", name.text),
                _ => "a value".to_string(),
            };
            (
                last.pattern.span(),
                format!("try {value} after this definition: a body ends in a value"),
            )
        });
        let note = hint.as_ref().map(|(span, text)| (*span, text.as_str()));
        self.tokens.unexpected_with("an expression as the value of the function", note)
    }

    fn type_expr(&mut self) -> Parsed<TypeExpr> {
        self.limited(|parser| {
            let start = parser.tokens.token().span.start;
            let kind = match parser.tokens.kind() {
                TokenKind::LeftParen => {
                    parser.tokens.bump();
                    let close = "',' or ')' after a type";
                    let mut types = parser.list(TokenKind::RightParen, close, Self::type_expr)?;
                    match types.len() {
                        1 => return Ok(types.remove(0)),
                        _ => TypeKind::Tuple(types),
                    }
                }
                TokenKind::Fn => {
                    parser.tokens.bump();
                    parser
                        .tokens
                        .expect(TokenKind::LeftParen, "'(' and the types of the parameters")?;
                    let close = "',' or ')' after a type";
                    let params = parser.list(TokenKind::RightParen, close, Self::type_expr)?;
                    parser.tokens.expect(TokenKind::Arrow, "'->' and the type of the result")?;
                    TypeKind::Function(params, Box::new(parser.type_expr()?))
                }
                _ => {
                    let name = parser.name("a type")?;
                    match parser.tokens.kind() {
                        TokenKind::Ident | TokenKind::LeftBracket => {
                            TypeKind::Tensor(name, parser.shape()?)
                        }
                        _ => TypeKind::Name(name),
                    }
                }
            };
            Ok(TypeExpr { kind, span: Span::new(start, parser.tokens.previous_end()) })
        })
    }

    fn signature(&mut self) -> Parsed<TypeExpr> {
        let ty = self.type_expr()?;
        if !self.tokens.eat(TokenKind::Arrow) {
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
        let pointwise = self.tokens.kind() == TokenKind::Ident
            && self.tokens.spelling(self.tokens.token()) == "pointwise";
        if pointwise {
            self.tokens.bump();
        }
        let token = self.tokens.token();
        if token.kind != TokenKind::Ident && precedence(token.kind).is_none() {
            return Err(self.tokens.unexpected("the name of a function"));
        }
        self.tokens.bump();
        let name = self.as_name(token);
        self.tokens.expect(TokenKind::Colon, "':' and the type")?;
        let start = self.tokens.token().span.start;
        self.tokens.expect(TokenKind::LeftParen, "'(' and the types of the parameters")?;
        let close = "',' or ')' after a type";
        let params = self.list(TokenKind::RightParen, close, Self::type_expr)?;
        let options = match self.tokens.eat(TokenKind::LeftBrace) {
            true => self.list(TokenKind::RightBrace, "',' or '}'", Self::option_declaration)?,
            false => Vec::new(),
        };
        self.tokens.expect(TokenKind::Arrow, "'->' and the type of the result")?;
        let result = self.type_expr()?;
        let mut conditions = Vec::new();
        if self.tokens.kind() == TokenKind::Ident
            && self.tokens.spelling(self.tokens.token()) == "where"
        {
            self.tokens.bump();
            conditions.push(self.condition()?);
            while self.tokens.eat(TokenKind::Comma) {
                conditions.push(self.condition()?);
            }
        }
        let end = self.tokens.expect(TokenKind::Semicolon, "';' after a type")?.span.start;
        let words = self.tokens.text[start as usize..end as usize].split_whitespace();
        let written = words.collect::<Vec<_>>().join(" ").into();
        Ok(Declaration { name, pointwise, params, options, result, conditions, written })
    }

    fn option_declaration(&mut self) -> Parsed<OptionDeclaration> {
        let name = self.name("an option")?;
        let default = match self.tokens.eat(TokenKind::Assign) {
            true => {
                let token = self.tokens.expect(TokenKind::Integer, "a number")?;
                self.tokens.spelling(token).parse().ok()
            }
            false => None,
        };
        let word = self.name("'as' and the names of the sizes")?;
        if &*word.text != "as" {
            return Err(self.tokens.unexpected("'as'"));
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
                self.tokens.expect(TokenKind::Assign, "'=' and a shape")?;
                Ok(Condition::Elements(left, self.shape()?))
            }
            _ => {
                self.tokens.expect(TokenKind::Colon, "':' and a class of element types")?;
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
