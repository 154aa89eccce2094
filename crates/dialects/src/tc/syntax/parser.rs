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
    Assign, BinaryOp, Clause, Def, Dim, Equivalent, Expr, ExprKind, Name, Param, Program,
    Reduction, Statement, TensorType, UnaryOp,
};
use super::diagnostic::{
    Diagnostic, MAX_DIAGNOSTICS, MAX_FILE_BYTES, Reason, SourceFile, Span, sorted_and_capped,
    too_large,
};
use super::lexer::{MAX_TOKEN_BYTES, MAX_TOKENS, Token, TokenKind, tokenize};
use super::types::ScalarType;

/// Deepest nesting of parentheses, calls and branches.
pub const MAX_NESTING: u32 = 200;

/// Greatest height of an expression tree: operators, calls and branches from the root to a leaf.
pub const MAX_HEIGHT: u32 = 400;

/// Parses a program; what could not be parsed is left out and reported.
pub fn parse_program(source: &SourceFile, options: &Options) -> (Program, Vec<Diagnostic>) {
    let mut program = Program { defs: Vec::new(), relaxed: options.relaxed };
    let text = source.text();
    if MAX_FILE_BYTES < text.len() {
        return (program, vec![too_large(text.len())]);
    }
    let mut parser = Parser {
        text,
        tokens: tokenize(text),
        position: 0,
        depth: 0,
        relaxed: options.relaxed,
        diagnostics: Vec::new(),
    };
    parser.program(&mut program);
    (program, sorted_and_capped(parser.diagnostics))
}

/// The current construct cannot be completed; the reason is already among the diagnostics.
struct Failed;

type Parsed<T> = Result<T, Failed>;

/// An expression and the height of its tree.
struct Tree {
    expr: Expr,
    height: u32,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    position: usize,
    depth: u32,
    relaxed: bool,
    diagnostics: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens[self.position]
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// The kind of the token `ahead` places further on, or of the last one.
    fn peek(&self, ahead: usize) -> TokenKind {
        let last = self.tokens.len() - 1;
        self.tokens[(self.position + ahead).min(last)].kind
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
        match self.position {
            0 => 0,
            position => self.tokens[position - 1].span.end,
        }
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

    fn unexpected(&mut self, expected: &str) -> Failed {
        let token = self.token();
        let spelling = self.spelling(token);
        let (reason, message) = match token.kind {
            TokenKind::Unknown => {
                let shown: String = spelling
                    .chars()
                    .map(|c| match c.is_control() {
                        true => c.escape_default().to_string(),
                        false => c.to_string(),
                    })
                    .collect();
                (Reason::Syntax, format!("expected {expected}, found character '{shown}'"))
            }
            TokenKind::BadNumber => (
                Reason::Syntax,
                format!("expected {expected}, found malformed number '{spelling}'"),
            ),
            TokenKind::TooLong => (
                Reason::Limit,
                format!("token has {} bytes, expected at most {MAX_TOKEN_BYTES}", spelling.len()),
            ),
            TokenKind::TooMany => {
                (Reason::Limit, format!("program has more than {MAX_TOKENS} tokens"))
            }
            TokenKind::End => (Reason::Syntax, format!("expected {expected}, found end of file")),
            _ => (Reason::Syntax, format!("expected {expected}, found '{spelling}'")),
        };
        let hint = match spelling {
            "&" => Some("try '&&'"),
            "|" => Some("try '||'"),
            ";" => Some("try nothing: a statement ends where the next one begins"),
            "/" if self.text[..token.span.start as usize].ends_with('/') => {
                Some("try '#', which starts a comment")
            }
            _ => None,
        };
        let mut diagnostic = Diagnostic::new(reason, token.span, message);
        if let Some(hint) = hint {
            diagnostic = diagnostic.note(token.span, hint);
        }
        self.report(diagnostic)
    }

    fn program(&mut self, program: &mut Program) {
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Def => {
                    if let Ok(def) = self.def() {
                        program.defs.push(def);
                        continue;
                    }
                }
                _ => {
                    let _ = self.unexpected("'def'");
                    if self.at_end() {
                        return;
                    }
                }
            }
            while self.kind() != TokenKind::Def && !self.at_end() {
                self.bump();
            }
        }
    }

    fn name(&mut self, expected: &str) -> Parsed<Name> {
        let token = self.expect(TokenKind::Ident, expected)?;
        Ok(self.as_name(token))
    }

    fn as_name(&self, token: Token) -> Name {
        Name { text: self.spelling(token).to_owned(), span: token.span }
    }

    /// Elements with commas between them up to the closing parenthesis, which is taken as well.
    fn list<T>(
        &mut self,
        expected: &str,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        if self.eat(TokenKind::RightParen) {
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.eat(TokenKind::RightParen) {
                return Ok(elements);
            }
            self.expect(TokenKind::Comma, expected)?;
        }
    }

    fn def(&mut self) -> Parsed<Def> {
        let start = self.bump().span;
        let name = self.name("the name of the function")?;
        self.expect(TokenKind::LeftParen, "'(' and the inputs")?;
        let inputs = self.list("',' or ')' after an input", Self::param)?;
        self.expect(TokenKind::Arrow, "'->'")?;
        let outputs = if self.relaxed && self.kind() != TokenKind::LeftParen {
            vec![self.param()?]
        } else {
            self.expect(TokenKind::LeftParen, "'(' and the outputs")?;
            self.list("',' or ')' after an output", Self::param)?
        };
        let open = self.expect(TokenKind::LeftBrace, "'{' and the body")?.span;
        let mut statements = Vec::new();
        loop {
            match self.kind() {
                TokenKind::RightBrace => {
                    self.bump();
                    break;
                }
                TokenKind::Def | TokenKind::End | TokenKind::TooMany => {
                    let before = self.diagnostics.len();
                    let _ = self.unexpected("a statement or '}'");
                    if before < self.diagnostics.len()
                        && let Some(error) = self.diagnostics.last_mut()
                    {
                        error.notes.push((open, "to close this '{'".to_owned()));
                    }
                    break;
                }
                TokenKind::Ident => match self.statement() {
                    Ok(statement) => statements.push(statement),
                    Err(Failed) => self.skip_to_statement(),
                },
                _ => {
                    let _ = self.unexpected("a statement or '}'");
                    self.bump();
                    self.skip_to_statement();
                }
            }
        }
        let span = Span::new(start.start, self.previous_end());
        Ok(Def { name, inputs, outputs, statements, span })
    }

    /// Leaves the wreck of a statement: goes to a brace, a `def`, or what looks like a statement.
    fn skip_to_statement(&mut self) {
        self.depth = 0;
        while !matches!(self.kind(), TokenKind::RightBrace | TokenKind::Def) && !self.at_end() {
            // After a comma or `where`, `x = e` is a let.
            let clause = self.position.checked_sub(1).is_some_and(|previous| {
                matches!(self.tokens[previous].kind, TokenKind::Comma | TokenKind::Where)
            });
            if !clause && self.starts_statement() {
                return;
            }
            self.bump();
        }
    }

    /// Whether the tokens read `name assign` or `name(name, ...) assign`.
    fn starts_statement(&self) -> bool {
        if self.kind() != TokenKind::Ident {
            return false;
        }
        if self.peek(1) != TokenKind::LeftParen {
            return assignment(self.peek(1)).is_some();
        }
        let mut ahead = 2;
        while self.peek(ahead) == TokenKind::Ident && self.peek(ahead + 1) == TokenKind::Comma {
            ahead += 2;
        }
        ahead += usize::from(self.peek(ahead) == TokenKind::Ident);
        self.peek(ahead) == TokenKind::RightParen && assignment(self.peek(ahead + 1)).is_some()
    }

    /// The scalar type at the current token, not taken.
    fn scalar_type(&self) -> Option<ScalarType> {
        match self.kind() {
            TokenKind::Scalar(scalar) => Some(scalar),
            TokenKind::Ident if self.relaxed && self.spelling(self.token()) == "int" => {
                Some(ScalarType::Int32)
            }
            _ => None,
        }
    }

    fn param(&mut self) -> Parsed<Param> {
        let ty = match self.scalar_type() {
            Some(scalar) => {
                let start = self.bump().span.start;
                let dims = if self.eat(TokenKind::LeftParen) {
                    self.list("',' or ')' after an extent", Self::dim)?
                } else {
                    Vec::new()
                };
                Some(TensorType { scalar, dims, span: Span::new(start, self.previous_end()) })
            }
            None => None,
        };
        let token = self.token();
        let name = self.name(match ty {
            Some(_) => "the name of the tensor",
            None => "a scalar type or a name",
        })?;
        // Two words in a row: the first was meant as a type.
        if ty.is_none() && matches!(self.kind(), TokenKind::Ident | TokenKind::LeftParen) {
            let mut error = Diagnostic::new(
                Reason::Syntax,
                token.span,
                format!("expected a scalar type, found '{}'", name.text),
            );
            let meant = match name.text.as_str() {
                "int" => Some("int32"),
                "half" => Some("float16"),
                "byte" => Some("uint8"),
                "uint" => Some("uint32"),
                "long" => Some("int64"),
                "short" => Some("int16"),
                _ => None,
            };
            if let Some(meant) = meant {
                error = error.note(token.span, format!("try '{meant}'"));
            }
            return Err(self.report(error));
        }
        Ok(Param { ty, name })
    }

    fn dim(&mut self) -> Parsed<Dim> {
        let token = self.token();
        match token.kind {
            TokenKind::Number if self.is_integer(token) => {
                self.bump();
                Ok(Dim::Number(self.as_name(token)))
            }
            _ => Ok(Dim::Size(self.name("a size variable or an integer")?)),
        }
    }

    fn is_integer(&self, token: Token) -> bool {
        self.spelling(token).bytes().all(|c| c.is_ascii_digit())
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let target = self.name("a statement")?;
        let indices = if self.eat(TokenKind::LeftParen) {
            self.list("',' or ')' after an index variable", |parser| {
                parser.name("an index variable (no other expression may stand on the left)")
            })?
        } else {
            Vec::new()
        };
        let Some(assign) = assignment(self.kind()) else {
            return Err(self.unexpected("an assignment operator"));
        };
        let assign_span = self.bump().span;
        let value = self.expression()?.expr;
        let equivalent = if self.eat(TokenKind::Equivalent) {
            let name = self.name("the name of a library function")?;
            self.expect(TokenKind::LeftParen, "'(' and the arguments")?;
            let args = self.expressions()?.0;
            Some(Equivalent { name, args })
        } else {
            None
        };
        let mut clauses = Vec::new();
        if self.eat(TokenKind::Where) {
            clauses.push(self.clause()?);
            while self.eat(TokenKind::Comma) {
                clauses.push(self.clause()?);
            }
        }
        let span = Span::new(target.span.start, self.previous_end());
        Ok(Statement { target, indices, assign, assign_span, value, equivalent, clauses, span })
    }

    fn clause(&mut self) -> Parsed<Clause> {
        if self.eat(TokenKind::Exists) {
            return Ok(Clause::Exists(self.expression()?.expr));
        }
        let name = self.name("a where clause")?;
        if self.eat(TokenKind::Assign) {
            let value = self.expression()?.expr;
            return Ok(Clause::Let { name, value });
        }
        self.expect(TokenKind::In, "'in' and a range, or '=' and a value")?;
        let lower = self.expression()?.expr;
        self.expect(TokenKind::Colon, "':' and the end of the range")?;
        let upper = self.expression()?.expr;
        Ok(Clause::Range { variable: name, lower, upper })
    }

    fn limit(&mut self, at: Span, message: String) -> Failed {
        self.report(Diagnostic::new(Reason::Limit, at, message))
    }

    fn node(&mut self, kind: ExprKind, span: Span, below: u32) -> Parsed<Tree> {
        if MAX_HEIGHT <= below {
            let message =
                format!("expression has more than {MAX_HEIGHT} levels of operators and calls");
            return Err(self.limit(span, message));
        }
        Ok(Tree { expr: Expr { kind, span }, height: below + 1 })
    }

    /// An expression; the only way in which the parser recurses.
    fn expression(&mut self) -> Parsed<Tree> {
        if MAX_NESTING <= self.depth {
            let at = self.token().span;
            let message = format!("expression is nested more than {MAX_NESTING} levels deep");
            return Err(self.limit(at, message));
        }
        self.depth += 1;
        let condition = self.operators()?;
        let tree =
            if self.eat(TokenKind::Question) { self.branches(condition)? } else { condition };
        self.depth -= 1;
        Ok(tree)
    }

    fn branches(&mut self, condition: Tree) -> Parsed<Tree> {
        let on_true = self.expression()?;
        self.expect(TokenKind::Colon, "':' and the other value of '?'")?;
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
            let next = binary_operator(self.kind());
            let precedence = next.and_then(BinaryOp::precedence);
            while let Some((lhs, op)) = pending.pop_if(|(_, op)| precedence <= op.precedence()) {
                tree = self.binary(op, lhs, tree)?;
            }
            let Some(op) = next else {
                return Ok(tree);
            };
            self.bump();
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
            let op = match self.kind() {
                TokenKind::Minus => UnaryOp::Neg,
                TokenKind::Not => UnaryOp::Not,
                _ => break,
            };
            prefix.push((op, self.bump().span));
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
        let token = self.token();
        match token.kind {
            TokenKind::Number => {
                self.bump();
                let text = self.spelling(token).to_owned();
                self.node(ExprKind::Number(text), token.span, 0)
            }
            TokenKind::True | TokenKind::False => {
                self.bump();
                let value = token.kind == TokenKind::True;
                self.node(ExprKind::Bool(value), token.span, 0)
            }
            TokenKind::LeftParen => {
                self.bump();
                let tree = self.expression()?;
                self.expect(TokenKind::RightParen, "')' or an operator")?;
                Ok(tree)
            }
            TokenKind::Min => self.min_max(BinaryOp::Min),
            TokenKind::Max => self.min_max(BinaryOp::Max),
            TokenKind::Ident => self.named(),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn cast(&mut self) -> Parsed<Tree> {
        let Some(ty) = self.scalar_type() else {
            return Err(self.unexpected("a scalar type"));
        };
        let start = self.bump().span.start;
        self.expect(TokenKind::LeftParen, "'(' after the type of a cast")?;
        let value = self.expression()?;
        self.expect(TokenKind::RightParen, "')' or an operator")?;
        let span = Span::new(start, self.previous_end());
        let kind = ExprKind::Cast { ty, value: Box::new(value.expr) };
        self.node(kind, span, value.height)
    }

    fn min_max(&mut self, op: BinaryOp) -> Parsed<Tree> {
        let start = self.bump().span.start;
        self.expect(TokenKind::LeftParen, "'(' and two arguments")?;
        let lhs = self.expression()?;
        self.expect(TokenKind::Comma, "',' and the second argument")?;
        let rhs = self.expression()?;
        self.expect(TokenKind::RightParen, "')' after the second argument")?;
        let mut tree = self.binary(op, lhs, rhs)?;
        tree.expr.span = Span::new(start, self.previous_end());
        Ok(tree)
    }

    /// A variable, an access or call, or the extent of a dimension.
    fn named(&mut self) -> Parsed<Tree> {
        let token = self.bump();
        let name = self.as_name(token);
        if self.eat(TokenKind::LeftParen) {
            let (args, below) = self.expressions()?;
            let span = Span::new(token.span.start, self.previous_end());
            return self.node(ExprKind::Apply { name, args }, span, below);
        }
        if self.eat(TokenKind::Dot) {
            let number = self.token();
            if number.kind != TokenKind::Number || !self.is_integer(number) {
                return Err(self.unexpected("the number of a dimension"));
            }
            self.bump();
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
