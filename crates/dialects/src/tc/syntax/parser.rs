//! Parses TC source text into a syntax tree.
//!
//! Source: the TC language, "Grammar". Recursive descent with an operator stack for binary operators.
//! After an error the parser goes on at the next statement or the next `def`, so that one run reports
//! several mistakes; statements with a mistake are left out of the tree. Time and memory are linear.
//!
//! Limits: [`MAX_NESTING`], [`MAX_HEIGHT`], and those of the lexer. The parser recurses for parentheses,
//! calls and branches, and walks over its trees may recurse as well, so that a chain `a + a + ...` may
//! be no longer than a tree may be high. Both limits fit a stack of 2 MiB without optimization.

use super::Options;
use super::ast::{
    Assign, BinaryOp, Clause, Def, Dim, Equivalent, Expr, ExprKind, Param, Program, Reduction,
    Statement, TensorType, UnaryOp,
};
use super::lexer::TokenKind;
use super::types::ScalarType;
use crate::text::{
    Diagnostic, Name, Reason, SourceFile, Span,
    tokens::{Cursor, Failed, Parsed, Token},
};

/// Deepest nesting of parentheses, calls and branches.
pub const MAX_NESTING: u32 = 200;

/// Greatest height of an expression tree: operators, calls and branches from the root to a leaf.
pub const MAX_HEIGHT: u32 = 400;

/// Begins a statement that declares a tensor of the function; a name like others elsewhere.
pub(super) const LOCAL: &str = "local";

/// Parses a program; what could not be parsed is left out and reported.
pub fn parse_program(source: &SourceFile, options: &Options) -> (Program, Vec<Diagnostic>) {
    let mut program = Program { defs: Vec::new(), relaxed: options.relaxed };
    let text = match source.text_within(Reason::Limit) {
        Ok(text) => text,
        Err(error) => return (program, vec![error]),
    };
    let mut parser = Parser { tokens: Cursor::new(text), depth: 0, relaxed: options.relaxed };
    parser.program(&mut program);
    (program, parser.tokens.into_diagnostics())
}

/// An expression and the height of its tree.
struct Tree {
    expr: Expr,
    height: u32,
}

struct Parser<'a> {
    tokens: Cursor<'a, TokenKind>,
    depth: u32,
    relaxed: bool,
}

impl Parser<'_> {
    fn program(&mut self, program: &mut Program) {
        loop {
            match self.tokens.kind() {
                TokenKind::End => return,
                TokenKind::Def => {
                    if let Ok(def) = self.def() {
                        program.defs.push(def);
                        continue;
                    }
                }
                _ => {
                    let _ = self.tokens.unexpected("'def'");
                    if self.tokens.at_end() {
                        return;
                    }
                }
            }
            while self.tokens.kind() != TokenKind::Def && !self.tokens.at_end() {
                self.tokens.bump();
            }
        }
    }

    fn name(&mut self, expected: &str) -> Parsed<Name> {
        let token = self.tokens.expect(TokenKind::Ident, expected)?;
        Ok(self.as_name(token))
    }

    fn as_name(&self, token: Token<TokenKind>) -> Name {
        Name { text: self.tokens.spelling(token).to_owned(), span: token.span }
    }

    /// Elements with commas between them up to the closing parenthesis, which is taken as well.
    fn list<T>(
        &mut self,
        expected: &str,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        if self.tokens.eat(TokenKind::RightParen) {
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.tokens.eat(TokenKind::RightParen) {
                return Ok(elements);
            }
            self.tokens.expect(TokenKind::Comma, expected)?;
        }
    }

    fn def(&mut self) -> Parsed<Def> {
        let start = self.tokens.bump().span;
        let name = self.name("the name of the function")?;
        self.tokens.expect(TokenKind::LeftParen, "'(' and the inputs")?;
        let inputs = self.list("',' or ')' after an input", Self::param)?;
        self.tokens.expect(TokenKind::Arrow, "'->'")?;
        let outputs = if self.relaxed && self.tokens.kind() != TokenKind::LeftParen {
            vec![self.param()?]
        } else {
            self.tokens.expect(TokenKind::LeftParen, "'(' and the outputs")?;
            self.list("',' or ')' after an output", Self::param)?
        };
        let open = self.tokens.expect(TokenKind::LeftBrace, "'{' and the body")?.span;
        let mut statements = Vec::new();
        loop {
            match self.tokens.kind() {
                TokenKind::RightBrace => {
                    self.tokens.bump();
                    break;
                }
                TokenKind::Def | TokenKind::End | TokenKind::TooMany => {
                    let note = Some((open, "to close this '{'"));
                    let _ = self.tokens.unexpected_with("a statement or '}'", note);
                    break;
                }
                TokenKind::Ident => match self.statement() {
                    Ok(statement) => statements.push(statement),
                    Err(Failed) => self.skip_to_statement(),
                },
                _ => {
                    let _ = self.tokens.unexpected("a statement or '}'");
                    self.tokens.bump();
                    self.skip_to_statement();
                }
            }
        }
        let span = Span::new(start.start, self.tokens.previous_end());
        Ok(Def { name, inputs, outputs, statements, span })
    }

    /// Leaves the wreck of a statement: goes to a brace, a `def`, or what looks like a statement.
    fn skip_to_statement(&mut self) {
        self.depth = 0;
        while !matches!(self.tokens.kind(), TokenKind::RightBrace | TokenKind::Def)
            && !self.tokens.at_end()
        {
            // After a comma or `where`, `x = e` is a let.
            let clause = (self.tokens.previous())
                .is_some_and(|token| matches!(token.kind, TokenKind::Comma | TokenKind::Where));
            if !clause && self.starts_statement() {
                return;
            }
            self.tokens.bump();
        }
    }

    /// Whether the statement at the current token begins with the word `local`.
    fn at_local(&self) -> bool {
        self.tokens.kind() == TokenKind::Ident
            && self.tokens.peek(1) == TokenKind::Ident
            && self.tokens.spelling(self.tokens.token()) == LOCAL
    }

    /// Whether the tokens read `name assign` or `name(...) assign`, perhaps after `local`.
    fn starts_statement(&self) -> bool {
        let start = usize::from(self.at_local());
        if self.tokens.peek(start) != TokenKind::Ident {
            return false;
        }
        if self.tokens.peek(start + 1) != TokenKind::LeftParen {
            return assignment(self.tokens.peek(start + 1)).is_some();
        }
        // Few tokens are looked at more than `MAX_NESTING` times.
        let (mut ahead, mut nesting) = (start + 2, 1);
        while 0 < nesting {
            match self.tokens.peek(ahead) {
                TokenKind::LeftParen if nesting < MAX_NESTING => nesting += 1,
                TokenKind::RightParen => nesting -= 1,
                TokenKind::LeftParen
                | TokenKind::LeftBrace
                | TokenKind::RightBrace
                | TokenKind::Def
                | TokenKind::End
                | TokenKind::TooMany => return false,
                _ => {}
            }
            ahead += 1;
        }
        assignment(self.tokens.peek(ahead)).is_some()
    }

    /// The scalar type at the current token, not taken.
    fn scalar_type(&self) -> Option<ScalarType> {
        match self.tokens.kind() {
            TokenKind::Scalar(scalar) => Some(scalar),
            TokenKind::Ident
                if self.relaxed && self.tokens.spelling(self.tokens.token()) == "int" =>
            {
                Some(ScalarType::Int32)
            }
            _ => None,
        }
    }

    fn param(&mut self) -> Parsed<Param> {
        let ty = match self.scalar_type() {
            Some(scalar) => {
                let start = self.tokens.bump().span.start;
                let dims = if self.tokens.eat(TokenKind::LeftParen) {
                    self.list("',' or ')' after an extent", Self::dim)?
                } else {
                    Vec::new()
                };
                Some(TensorType {
                    scalar,
                    dims,
                    span: Span::new(start, self.tokens.previous_end()),
                })
            }
            None => None,
        };
        let token = self.tokens.token();
        let name = self.name(match ty {
            Some(_) => "the name of the tensor",
            None => "a scalar type or a name",
        })?;
        // Two words in a row: the first was meant as a type.
        if ty.is_none() && matches!(self.tokens.kind(), TokenKind::Ident | TokenKind::LeftParen) {
            let mut error = Diagnostic::new(
                Reason::Syntax,
                token.span,
                format!("expected a scalar type, found '{}'", name.text),
            );
            if let Some(meant) = ScalarType::similar(&name.text) {
                error = error.note(token.span, format!("try '{meant}'"));
            }
            return Err(self.tokens.report(error));
        }
        Ok(Param { ty, name })
    }

    fn dim(&mut self) -> Parsed<Dim> {
        let token = self.tokens.token();
        match token.kind {
            TokenKind::Number if self.is_integer(token) => {
                self.tokens.bump();
                Ok(Dim::Number(self.as_name(token)))
            }
            _ => Ok(Dim::Size(self.name("a size variable or an integer")?)),
        }
    }

    fn is_integer(&self, token: Token<TokenKind>) -> bool {
        self.tokens.spelling(token).bytes().all(|c| c.is_ascii_digit())
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let start = self.tokens.token().span;
        let local = self.at_local();
        if local {
            self.tokens.bump();
        }
        let target = self.name("a statement")?;
        let indices =
            if self.tokens.eat(TokenKind::LeftParen) { self.expressions()?.0 } else { Vec::new() };
        let Some(assign) = assignment(self.tokens.kind()) else {
            return Err(self.tokens.unexpected("an assignment operator"));
        };
        let assign_span = self.tokens.bump().span;
        let value = self.expression()?.expr;
        let equivalent = if self.tokens.eat(TokenKind::Equivalent) {
            let name = self.name("the name of a library function")?;
            self.tokens.expect(TokenKind::LeftParen, "'(' and the arguments")?;
            let args = self.expressions()?.0;
            Some(Equivalent { name, args })
        } else {
            None
        };
        let mut clauses = Vec::new();
        if self.tokens.eat(TokenKind::Where) {
            clauses.push(self.clause()?);
            while self.tokens.eat(TokenKind::Comma) {
                clauses.push(self.clause()?);
            }
        }
        let span = Span::new(start.start, self.tokens.previous_end());
        Ok(Statement {
            local,
            target,
            indices,
            assign,
            assign_span,
            value,
            equivalent,
            clauses,
            span,
        })
    }

    fn clause(&mut self) -> Parsed<Clause> {
        if self.tokens.eat(TokenKind::Exists) {
            return Ok(Clause::Exists(self.expression()?.expr));
        }
        let name = self.name("a where clause")?;
        if self.tokens.eat(TokenKind::Assign) {
            let value = self.expression()?.expr;
            return Ok(Clause::Let { name, value });
        }
        self.tokens.expect(TokenKind::In, "'in' and a range, or '=' and a value")?;
        let lower = self.expression()?.expr;
        self.tokens.expect(TokenKind::Colon, "':' and the end of the range")?;
        let upper = self.expression()?.expr;
        Ok(Clause::Range { variable: name, lower, upper })
    }

    fn node(&mut self, kind: ExprKind, span: Span, below: u32) -> Parsed<Tree> {
        if MAX_HEIGHT <= below {
            let message =
                format!("expression has more than {MAX_HEIGHT} levels of operators and calls");
            return Err(self.tokens.limit(span, message));
        }
        Ok(Tree { expr: Expr { kind, span }, height: below + 1 })
    }

    /// An expression; the only way in which the parser recurses.
    fn expression(&mut self) -> Parsed<Tree> {
        if MAX_NESTING <= self.depth {
            let at = self.tokens.token().span;
            let message = format!("expression is nested more than {MAX_NESTING} levels deep");
            return Err(self.tokens.limit(at, message));
        }
        self.depth += 1;
        let condition = self.operators()?;
        let tree = if self.tokens.eat(TokenKind::Question) {
            self.branches(condition)?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(tree)
    }

    fn branches(&mut self, condition: Tree) -> Parsed<Tree> {
        let on_true = self.expression()?;
        self.tokens.expect(TokenKind::Colon, "':' and the other value of '?'")?;
        let on_false = self.expression()?;
        let span = condition.expr.span.to(on_false.expr.span);
        let below = condition.height.max(on_true.height).max(on_false.height);
        let kind = ExprKind::Select {
            condition: Box::new(condition.expr),
            on_true: Box::new(on_true.expr),
            on_false: Box::new(on_false.expr),
        };
        self.node(kind, span, below)
    }

    /// Operands with binary operators between them.
    fn operators(&mut self) -> Parsed<Tree> {
        let mut tree = self.operand()?;
        // Pending left operands, with operators that bind tighter from left to right.
        let mut pending: Vec<(Tree, BinaryOp)> = Vec::new();
        loop {
            let next = binary_operator(self.tokens.kind());
            let precedence = next.and_then(BinaryOp::precedence);
            while let Some((lhs, op)) = pending.pop_if(|(_, op)| precedence <= op.precedence()) {
                tree = self.binary(op, lhs, tree)?;
            }
            let Some(op) = next else {
                return Ok(tree);
            };
            self.tokens.bump();
            let rhs = self.operand()?;
            pending.push((std::mem::replace(&mut tree, rhs), op));
        }
    }

    fn binary(&mut self, op: BinaryOp, lhs: Tree, rhs: Tree) -> Parsed<Tree> {
        let span = lhs.expr.span.to(rhs.expr.span);
        let below = lhs.height.max(rhs.height);
        let kind = ExprKind::Binary { op, lhs: Box::new(lhs.expr), rhs: Box::new(rhs.expr) };
        self.node(kind, span, below)
    }

    /// A primary with the unary operators before it.
    fn operand(&mut self) -> Parsed<Tree> {
        let mut prefix = Vec::new();
        loop {
            let op = match self.tokens.kind() {
                TokenKind::Minus => UnaryOp::Neg,
                TokenKind::Not => UnaryOp::Not,
                _ => break,
            };
            prefix.push((op, self.tokens.bump().span));
        }
        let mut tree = self.primary()?;
        while let Some((op, span)) = prefix.pop() {
            let span = span.to(tree.expr.span);
            let below = tree.height;
            let kind = ExprKind::Unary { op, value: Box::new(tree.expr) };
            tree = self.node(kind, span, below)?;
        }
        Ok(tree)
    }

    fn primary(&mut self) -> Parsed<Tree> {
        if self.scalar_type().is_some() {
            return self.cast();
        }
        let token = self.tokens.token();
        match token.kind {
            TokenKind::Number => {
                self.tokens.bump();
                let text = self.tokens.spelling(token).to_owned();
                self.node(ExprKind::Number(text), token.span, 0)
            }
            TokenKind::True | TokenKind::False => {
                self.tokens.bump();
                let value = token.kind == TokenKind::True;
                self.node(ExprKind::Bool(value), token.span, 0)
            }
            TokenKind::LeftParen => {
                self.tokens.bump();
                let tree = self.expression()?;
                self.tokens.expect(TokenKind::RightParen, "')' or an operator")?;
                Ok(tree)
            }
            TokenKind::Min => self.min_max(BinaryOp::Min),
            TokenKind::Max => self.min_max(BinaryOp::Max),
            TokenKind::Ident => self.named(),
            _ => Err(self.tokens.unexpected("an expression")),
        }
    }

    fn cast(&mut self) -> Parsed<Tree> {
        let Some(ty) = self.scalar_type() else {
            return Err(self.tokens.unexpected("a scalar type"));
        };
        let start = self.tokens.bump().span.start;
        self.tokens.expect(TokenKind::LeftParen, "'(' after the type of a cast")?;
        let value = self.expression()?;
        self.tokens.expect(TokenKind::RightParen, "')' or an operator")?;
        let span = Span::new(start, self.tokens.previous_end());
        let kind = ExprKind::Cast { ty, value: Box::new(value.expr) };
        self.node(kind, span, value.height)
    }

    fn min_max(&mut self, op: BinaryOp) -> Parsed<Tree> {
        let start = self.tokens.bump().span.start;
        self.tokens.expect(TokenKind::LeftParen, "'(' and two arguments")?;
        let lhs = self.expression()?;
        self.tokens.expect(TokenKind::Comma, "',' and the second argument")?;
        let rhs = self.expression()?;
        self.tokens.expect(TokenKind::RightParen, "')' after the second argument")?;
        let mut tree = self.binary(op, lhs, rhs)?;
        tree.expr.span = Span::new(start, self.tokens.previous_end());
        Ok(tree)
    }

    /// A variable, an access or call, or the extent of a dimension.
    fn named(&mut self) -> Parsed<Tree> {
        let token = self.tokens.bump();
        let name = self.as_name(token);
        if self.tokens.eat(TokenKind::LeftParen) {
            let (args, below) = self.expressions()?;
            let span = Span::new(token.span.start, self.tokens.previous_end());
            return self.node(ExprKind::Apply { name, args }, span, below);
        }
        if self.tokens.eat(TokenKind::Dot) {
            let number = self.tokens.token();
            if number.kind != TokenKind::Number || !self.is_integer(number) {
                return Err(self.tokens.unexpected("the number of a dimension"));
            }
            self.tokens.bump();
            let dim = self.as_name(number);
            let span = token.span.to(number.span);
            return self.node(ExprKind::Extent { tensor: name, dim }, span, 0);
        }
        self.node(ExprKind::Name(name.text), token.span, 0)
    }

    /// Arguments up to the closing parenthesis, and the height of the highest.
    fn expressions(&mut self) -> Parsed<(Vec<Expr>, u32)> {
        let mut below = 0;
        let args = self.list("',', ')' or an operator", |parser| {
            let tree = parser.expression()?;
            below = below.max(tree.height);
            Ok(tree.expr)
        })?;
        Ok((args, below))
    }
}

fn assignment(kind: TokenKind) -> Option<Assign> {
    let (op, init) = match kind {
        TokenKind::Assign => return Some(Assign::Plain),
        TokenKind::PlusAssign => (Reduction::Add, false),
        TokenKind::StarAssign => (Reduction::Mul, false),
        TokenKind::MinAssign => (Reduction::Min, false),
        TokenKind::MaxAssign => (Reduction::Max, false),
        TokenKind::PlusAssignInit => (Reduction::Add, true),
        TokenKind::StarAssignInit => (Reduction::Mul, true),
        TokenKind::MinAssignInit => (Reduction::Min, true),
        TokenKind::MaxAssignInit => (Reduction::Max, true),
        _ => return None,
    };
    Some(Assign::Reduce { op, init })
}

fn binary_operator(kind: TokenKind) -> Option<BinaryOp> {
    Some(match kind {
        TokenKind::Or => BinaryOp::Or,
        TokenKind::And => BinaryOp::And,
        TokenKind::Less => BinaryOp::Less,
        TokenKind::Greater => BinaryOp::Greater,
        TokenKind::LessEqual => BinaryOp::LessEqual,
        TokenKind::GreaterEqual => BinaryOp::GreaterEqual,
        TokenKind::Equal => BinaryOp::Equal,
        TokenKind::NotEqual => BinaryOp::NotEqual,
        TokenKind::Plus => BinaryOp::Add,
        TokenKind::Minus => BinaryOp::Sub,
        TokenKind::Star => BinaryOp::Mul,
        TokenKind::Slash => BinaryOp::Div,
        TokenKind::Percent => BinaryOp::Mod,
        _ => return None,
    })
}
