//! The text form of expressions and indexing maps.
//!
//! ```text
//! map        := vars "->" "(" [expr {"," expr}] ")" ["," "domain:" entry {"," entry}]
//! vars       := "(" names ")" ["[" names "]"] ["{" names "}"]
//! entry      := expr "in" "[" bound "," bound "]"
//! bound      := "inf" | "-inf" | expr
//! expr       := product {("+" | "-") product}
//! product    := unary {("*" | "/" | "floordiv" | "ceildiv" | "mod") unary}
//! unary      := {"-"} (number | name | "(" expr ")" | ("min" | "max") "(" expr "," expr ")")
//! ```
//!
//! The form is XLA's (`indexing_map_serialization.h`): `/` is `floordiv`, bounds are
//! inclusive, an empty domain prints as `KNOWN EMPTY`. The first entry of a variable gives
//! its bounds, every other entry is a constraint. Three extensions: a bound of a variable may
//! be an expression over runtime variables, an infinite bound is `inf` or `-inf`, and an
//! unbounded variable has no entry.
//!
//! A disjunction of conjunctions of constraints has a form of its own, in which `&&` binds more
//! tightly than `||`:
//!
//! ```text
//! constraints := "always satisfied" | "unsatisfiable" | conjunction {"||" conjunction}
//! conjunction := constraint {"&&" constraint}
//! constraint  := expr "in" "[" ("-inf" | expr) "," ("inf" | expr) "]"
//! ```
//!
//! What is printed parses back to the same map, except that a known empty map keeps nothing
//! but its emptiness and that names which are no identifiers or not unique are replaced.
//! Nesting deeper than [`MAX_NESTING`] is a parse error; an expression of more than
//! [`MAX_PRINTED_COST`] operations prints as its size only.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Node, Var};
use crate::interval::Interval;
use crate::map::{Constraint, IndexingMap, Variable};

/// The deepest nesting of parentheses and function calls that the parser accepts.
pub const MAX_NESTING: usize = 512;

/// The largest expression that is printed, in operations.
pub const MAX_PRINTED_COST: u32 = 1 << 20;

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// The byte offset in the parsed text.
    pub offset: usize,
    /// The line in the parsed text, from 1.
    pub line: usize,
    /// The column in that line, in bytes from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl ParseError {
    /// An error at a byte offset of `text`; one past the end counts as the end.
    ///
    /// ```
    /// use tc_ir::ParseError;
    /// let error = ParseError::at("(d0)\n -> (d1)", 10, "expected a variable");
    /// assert_eq!((error.line, error.column), (2, 6));
    /// ```
    pub fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        Self {
            offset,
            line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
            column: before.len() - line_start + 1,
            message: message.into(),
        }
    }
}

// Printing

/// Where an expression stands in a larger one, which decides whether it needs parentheses.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    /// Alone, between parentheses or between commas.
    Free,
    /// The left operand of a sum.
    AddLeft,
    /// The right operand of a sum or a difference.
    AddRight,
    /// The left operand of a product-like operator.
    MulLeft(&'static str),
    /// The right operand of a product-like operator, or the operand of a negation.
    Tight,
}

enum Piece {
    Text(&'static str),
    Number(u64),
    Expr(Expr, Place),
}

/// The operator of a node that is printed between its operands with the precedence of `*`.
fn product_operator(node: Node) -> Option<(&'static str, Expr, Expr)> {
    match node {
        Node::Mul(lhs, rhs) => Some((" * ", lhs, rhs)),
        Node::FloorDiv(lhs, rhs) => Some((" / ", lhs, rhs)),
        Node::CeilDiv(lhs, rhs) => Some((" ceildiv ", lhs, rhs)),
        Node::Mod(lhs, rhs) => Some((" mod ", lhs, rhs)),
        _ => None,
    }
}

/// An expression that can be displayed; see [`Context::display_with`].
pub struct ExprDisplay<'a, N> {
    ctx: &'a Context,
    expr: Expr,
    name: N,
}

impl<N: Fn(Var) -> String> ExprDisplay<'_, N> {
    /// The operand and positive factor of `expr` if it is a multiple with a negative factor.
    fn negative_multiple(&self, expr: Expr) -> Option<(Expr, u64)> {
        let Node::Mul(operand, factor) = self.ctx.node(expr) else {
            return None;
        };
        let factor = self.ctx.as_constant(factor)?;
        let folded = self.ctx.as_constant(operand).is_some();
        (factor < 0 && factor != i64::MIN && !folded).then_some((operand, factor.unsigned_abs()))
    }

    /// Splits an expression into pieces, in reading order.
    fn expand(&self, expr: Expr, place: Place) -> Vec<Piece> {
        let node = self.ctx.node(expr);
        let mut pieces = Vec::with_capacity(6);
        let parenthesized = match node {
            Node::Add(..) => !matches!(place, Place::Free | Place::AddLeft),
            _ if matches!(self.negative_multiple(expr), Some((_, 1))) => {
                matches!(place, Place::AddRight | Place::Tight)
            }
            _ => match (product_operator(node), place) {
                (Some((own, ..)), Place::MulLeft(outer)) => own != outer,
                (Some(_), Place::Tight) => true,
                _ => false,
            },
        };
        if parenthesized {
            pieces.push(Piece::Text("("));
        }
        match node {
            Node::Const(value) => {
                if value < 0 {
                    pieces.push(Piece::Text("-"));
                }
                pieces.push(Piece::Number(value.unsigned_abs()));
            }
            Node::Var(_) => pieces.push(Piece::Expr(expr, place)),
            Node::Add(lhs, rhs) => {
                pieces.push(Piece::Expr(lhs, Place::AddLeft));
                self.expand_addend(rhs, &mut pieces);
            }
            Node::Min(lhs, rhs) | Node::Max(lhs, rhs) => {
                let name = if matches!(node, Node::Min(..)) { "min(" } else { "max(" };
                pieces.push(Piece::Text(name));
                pieces.push(Piece::Expr(lhs, Place::Free));
                pieces.push(Piece::Text(", "));
                pieces.push(Piece::Expr(rhs, Place::Free));
                pieces.push(Piece::Text(")"));
            }
            _ => match (self.negative_multiple(expr), product_operator(node)) {
                (Some((operand, 1)), _) => {
                    pieces.push(Piece::Text("-"));
                    pieces.push(Piece::Expr(operand, Place::Tight));
                }
                (_, Some((operator, lhs, rhs))) => {
                    pieces.push(Piece::Expr(lhs, Place::MulLeft(operator)));
                    pieces.push(Piece::Text(operator));
                    pieces.push(Piece::Expr(rhs, Place::Tight));
                }
                (_, None) => {}
            },
        }
        if parenthesized {
            pieces.push(Piece::Text(")"));
        }
        pieces
    }

    /// The right operand of a sum with its sign: negative constants and multiples are
    /// subtracted.
    fn expand_addend(&self, rhs: Expr, pieces: &mut Vec<Piece>) {
        match (self.ctx.node(rhs), self.negative_multiple(rhs)) {
            (Node::Const(value), _) if value < 0 && value != i64::MIN => {
                pieces.push(Piece::Text(" - "));
                pieces.push(Piece::Number(value.unsigned_abs()));
            }
            (_, Some((operand, 1))) => {
                pieces.push(Piece::Text(" - "));
                pieces.push(Piece::Expr(operand, Place::AddRight));
            }
            (_, Some((operand, factor))) => {
                pieces.push(Piece::Text(" - "));
                pieces.push(Piece::Expr(operand, Place::MulLeft(" * ")));
                pieces.push(Piece::Text(" * "));
                pieces.push(Piece::Number(factor));
            }
            _ => {
                pieces.push(Piece::Text(" + "));
                pieces.push(Piece::Expr(rhs, Place::AddRight));
            }
        }
    }
}

impl<N: Fn(Var) -> String> fmt::Display for ExprDisplay<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cost = self.ctx.cost(self.expr);
        if MAX_PRINTED_COST < cost {
            return write!(f, "<expression of {cost} operations>");
        }
        let mut stack = vec![Piece::Expr(self.expr, Place::Free)];
        while let Some(piece) = stack.pop() {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Number(number) => write!(f, "{number}")?,
                Piece::Expr(expr, place) => match self.ctx.as_var(expr) {
                    Some(var) => f.write_str(&(self.name)(var))?,
                    None => stack.extend(self.expand(expr, place).into_iter().rev()),
                },
            }
        }
        Ok(())
    }
}

/// The name that a variable has in text unless it is given one: `d0`, `s0`, `rt0`.
pub fn default_name(var: Var) -> String {
    match var {
        Var::Dim(i) => format!("d{i}"),
        Var::Range(i) => format!("s{i}"),
        Var::Runtime(i) => format!("rt{i}"),
    }
}

impl Context {
    /// `expr` as text with the [default names](default_name) of variables.
    pub fn display(&self, expr: Expr) -> impl fmt::Display {
        self.display_with(expr, default_name)
    }

    /// `expr` as text with names of variables from `name`.
    pub fn display_with<N: Fn(Var) -> String>(&self, expr: Expr, name: N) -> ExprDisplay<'_, N> {
        ExprDisplay { ctx: self, expr, name }
    }
}

/// Words with a meaning of their own, which cannot name a variable.
const KEYWORDS: [&str; 7] = ["floordiv", "ceildiv", "mod", "min", "max", "in", "inf"];

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
}

/// A map that can be displayed; see [`IndexingMap::display`].
pub struct MapDisplay<'a> {
    map: &'a IndexingMap,
    ctx: &'a Context,
    names: HashMap<Var, String>,
}

impl MapDisplay<'_> {
    fn name(&self, var: Var) -> String {
        self.names.get(&var).cloned().unwrap_or_else(|| default_name(var))
    }

    fn expr(&self, expr: Expr) -> impl fmt::Display {
        self.ctx.display_with(expr, |var| self.name(var))
    }

    fn variables(
        &self,
        f: &mut fmt::Formatter<'_>,
        brackets: [&str; 2],
        count: usize,
        make: fn(u32) -> Var,
    ) -> fmt::Result {
        f.write_str(brackets[0])?;
        for (i, number) in (0..count).zip(0..) {
            if 0 < i {
                f.write_str(", ")?;
            }
            f.write_str(&self.name(make(number)))?;
        }
        f.write_str(brackets[1])
    }

    fn domain(&self) -> Vec<String> {
        let constrained: HashSet<Expr> = self.map.constraints.iter().map(|c| c.expr).collect();
        let mut entries = Vec::new();
        for (var, variable) in self.map.vars() {
            let bounded = variable.lower.is_some() || variable.upper.is_some();
            // An entry of its own keeps a constraint on the variable from reading as bounds.
            if bounded || constrained.contains(&self.ctx.var(var)) {
                let end = |bound: Option<Expr>, infinity: &str| {
                    bound.map_or_else(|| infinity.to_string(), |bound| self.expr(bound).to_string())
                };
                let lower = end(variable.lower, "-inf");
                let upper = end(variable.upper, "inf");
                entries.push(format!("{} in [{lower}, {upper}]", self.name(var)));
            }
        }
        let mut constraints: Vec<String> = self
            .map
            .constraints
            .iter()
            .map(|c| format!("{} in {}", self.expr(c.expr), c.interval))
            .collect();
        constraints.sort();
        entries.extend(constraints);
        entries
    }
}

impl fmt::Display for MapDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.map.is_known_empty(self.ctx) {
            return f.write_str("KNOWN EMPTY");
        }
        self.variables(f, ["(", ")"], self.map.dims.len(), Var::Dim)?;
        if !self.map.ranges.is_empty() {
            self.variables(f, ["[", "]"], self.map.ranges.len(), Var::Range)?;
        }
        if !self.map.runtimes.is_empty() {
            self.variables(f, ["{", "}"], self.map.runtimes.len(), Var::Runtime)?;
        }
        f.write_str(" -> (")?;
        for (i, &result) in self.map.results.iter().enumerate() {
            if 0 < i {
                f.write_str(", ")?;
            }
            write!(f, "{}", self.expr(result))?;
        }
        f.write_str(")")?;
        for (i, entry) in self.domain().iter().enumerate() {
            f.write_str(if i == 0 { ", domain: " } else { ", " })?;
            f.write_str(entry)?;
        }
        Ok(())
    }
}

/// What stands for a map where none is known.
pub const UNDEFINED: &str = "UNDEFINED";

/// The text of a map, or [`UNDEFINED`] where there is none: an analysis that cannot say which
/// elements are needed has no map.
pub fn display_map<'a>(map: Option<&'a IndexingMap>, ctx: &'a Context) -> impl fmt::Display {
    let display = map.map(|map| map.display(ctx));
    fmt::from_fn(move |f| match &display {
        Some(map) => write!(f, "{map}"),
        None => f.write_str(UNDEFINED),
    })
}

impl IndexingMap {
    /// The map as text; see the [module](crate::text) text for the form.
    pub fn display<'a>(&'a self, ctx: &'a Context) -> MapDisplay<'a> {
        let mut taken = HashSet::new();
        let mut names = HashMap::new();
        for (var, variable) in self.vars() {
            let given = variable.name.as_deref().filter(|name| is_identifier(name));
            let wanted = given.map_or_else(|| default_name(var), str::to_string);
            let mut name = wanted.clone();
            let mut suffix = 0_u32;
            while !taken.insert(name.clone()) {
                name = format!("{wanted}_{suffix}");
                suffix += 1;
            }
            names.insert(var, name);
        }
        MapDisplay { map: self, ctx, names }
    }

    /// Reads a map from text; see the [module](crate::text) text for the form.
    ///
    /// # Errors
    /// The first place where the text is no map.
    pub fn parse(ctx: &Context, text: &str) -> Result<Self, ParseError> {
        let (map, end) = Self::parse_prefix(ctx, text)?;
        let mut parser = Parser::new(ctx, text);
        parser.position = end;
        parser.end()?;
        Ok(map)
    }

    /// Reads a map from the start of a text and returns it with the byte offset of what
    /// follows.
    ///
    /// # Errors
    /// The first place where the text does not start with a map.
    pub fn parse_prefix(ctx: &Context, text: &str) -> Result<(Self, usize), ParseError> {
        let mut parser = Parser::new(ctx, text);
        let map = parser.map()?;
        Ok((map, parser.position))
    }
}

impl ConstraintExpression {
    /// The constraints as text, conjunctions and what is in them sorted; `name` gives the names
    /// of variables.
    pub fn display_with<N: Fn(Var) -> String>(
        &self,
        ctx: &Context,
        name: N,
    ) -> impl fmt::Display + use<N> {
        let mut conjunctions: Vec<String> = Vec::new();
        for conjunction in self.conjunctions() {
            let mut constraints: Vec<String> = conjunction
                .iter()
                .map(|c| format!("{} in {}", ctx.display_with(c.expr, &name), c.interval))
                .collect();
            constraints.sort();
            conjunctions.push(constraints.join(" && "));
        }
        conjunctions.sort();
        if self.is_always_satisfied() {
            "always satisfied".to_string()
        } else if self.is_unsatisfiable() {
            "unsatisfiable".to_string()
        } else {
            conjunctions.join(" || ")
        }
    }

    /// Reads constraints from text; `resolve` gives the variable of a name.
    ///
    /// # Errors
    /// The first place where the text has another form than the [module](crate::text) gives.
    pub fn parse(
        ctx: &Context,
        text: &str,
        resolve: &dyn Fn(&str) -> Option<Var>,
    ) -> Result<Self, ParseError> {
        let mut parser = Parser::new(ctx, text);
        let constraints = parser.constraint_expression(resolve)?;
        parser.end()?;
        Ok(constraints)
    }
}

/// Reads an expression from text; `resolve` gives the variable of a name.
///
/// # Errors
/// The first place where the text is no expression, or a name without a variable.
pub fn parse_expr(
    ctx: &Context,
    text: &str,
    resolve: &dyn Fn(&str) -> Option<Var>,
) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(ctx, text);
    let expr = parser.sum(resolve, 0)?;
    parser.end()?;
    Ok(expr)
}

// Parsing

struct Parser<'a> {
    ctx: &'a Context,
    text: &'a str,
    position: usize,
}

/// One end of a domain entry: `None` is the infinity on its side.
type Bound = Option<Expr>;

/// An entry of a domain, with the places of its bounds.
struct Entry {
    expr: Expr,
    lower: Bound,
    lower_offset: usize,
    upper: Bound,
    upper_offset: usize,
}

impl<'a> Parser<'a> {
    fn new(ctx: &'a Context, text: &'a str) -> Self {
        Parser { ctx, text, position: 0 }
    }

    fn error<T>(&self, offset: usize, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError::at(self.text, offset, message))
    }

    /// What stands at the position, for a message.
    fn found(&self) -> String {
        let rest = &self.text[self.position..];
        let word = self.peek_word();
        if !word.is_empty() {
            // A long word would hide the message.
            let shown: String = word.chars().take(32).collect();
            return format!("'{shown}'");
        }
        rest.chars().next().map_or_else(|| "the end".to_string(), |c| format!("'{c}'"))
    }

    fn expected<T>(&self, what: &str) -> Result<T, ParseError> {
        let message = format!("expected {what}, found {}", self.found());
        self.error(self.position, message)
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
    }

    /// The word of letters, digits and underscores at the position, which may be empty.
    fn peek_word(&self) -> &'a str {
        let rest = &self.text[self.position..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes a word if it stands here as a whole.
    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let matches = self.peek_word() == word;
        if matches {
            self.position += word.len();
        }
        matches
    }

    /// Takes a punctuation mark if it stands here.
    fn take(&mut self, mark: &str) -> bool {
        self.skip_space();
        let matches = self.text[self.position..].starts_with(mark);
        if matches {
            self.position += mark.len();
        }
        matches
    }

    fn require(&mut self, mark: &str) -> Result<(), ParseError> {
        if self.take(mark) { Ok(()) } else { self.expected(&format!("'{mark}'")) }
    }

    fn end(&mut self) -> Result<(), ParseError> {
        self.skip_space();
        if self.position == self.text.len() { Ok(()) } else { self.expected("the end") }
    }

    fn sum(
        &mut self,
        resolve: &dyn Fn(&str) -> Option<Var>,
        nesting: usize,
    ) -> Result<Expr, ParseError> {
        let mut sum = self.product(resolve, nesting)?;
        loop {
            self.skip_space();
            if self.text[self.position..].starts_with("->") {
                return Ok(sum);
            }
            if self.take("+") {
                let rhs = self.product(resolve, nesting)?;
                sum = self.ctx.add(sum, rhs);
            } else if self.take("-") {
                let rhs = self.product(resolve, nesting)?;
                sum = self.ctx.sub(sum, rhs);
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(
        &mut self,
        resolve: &dyn Fn(&str) -> Option<Var>,
        nesting: usize,
    ) -> Result<Expr, ParseError> {
        let mut product = self.unary(resolve, nesting)?;
        loop {
            let build = if self.take("*") {
                Context::mul
            } else if self.take("/") || self.take_word("floordiv") {
                Context::floor_div
            } else if self.take_word("ceildiv") {
                Context::ceil_div
            } else if self.take_word("mod") {
                Context::modulo
            } else {
                return Ok(product);
            };
            let rhs = self.unary(resolve, nesting)?;
            product = build(self.ctx, product, rhs);
        }
    }

    fn unary(
        &mut self,
        resolve: &dyn Fn(&str) -> Option<Var>,
        nesting: usize,
    ) -> Result<Expr, ParseError> {
        let mut negative = false;
        while self.take("-") {
            negative = !negative;
        }
        let word = self.peek_word();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number(word, negative);
        }
        let operand = if word.is_empty() {
            if !self.take("(") {
                return self.expected("an expression");
            }
            let nesting = self.deeper(nesting)?;
            let inner = self.sum(resolve, nesting)?;
            self.require(")")?;
            inner
        } else if word == "min" || word == "max" {
            self.position += word.len();
            self.require("(")?;
            let nesting = self.deeper(nesting)?;
            let lhs = self.sum(resolve, nesting)?;
            self.require(",")?;
            let rhs = self.sum(resolve, nesting)?;
            self.require(")")?;
            if word == "min" { self.ctx.min(lhs, rhs) } else { self.ctx.max(lhs, rhs) }
        } else if let Some(var) = resolve(word) {
            self.position += word.len();
            self.ctx.var(var)
        } else if KEYWORDS.contains(&word) {
            return self.expected("an expression");
        } else {
            return self.expected("a variable");
        };
        Ok(if negative { self.ctx.neg(operand) } else { operand })
    }

    fn deeper(&self, nesting: usize) -> Result<usize, ParseError> {
        if nesting < MAX_NESTING {
            Ok(nesting + 1)
        } else {
            let message = format!("expected at most {MAX_NESTING} nested parentheses");
            self.error(self.position, message)
        }
    }

    fn number(&mut self, word: &str, negative: bool) -> Result<Expr, ParseError> {
        if !word.bytes().all(|b| b.is_ascii_digit()) {
            return self.expected("a number");
        }
        let value = word.parse::<u64>().ok().and_then(|magnitude| {
            let magnitude = i128::from(magnitude);
            i64::try_from(if negative { -magnitude } else { magnitude }).ok()
        });
        match value {
            Some(value) => {
                self.position += word.len();
                Ok(self.ctx.constant(value))
            }
            None => self.expected("a number of at most 64 bits"),
        }
    }

    fn names(&mut self, close: &str) -> Result<Vec<(usize, &'a str)>, ParseError> {
        let mut names = Vec::new();
        if self.take(close) {
            return Ok(names);
        }
        loop {
            self.skip_space();
            let word = self.peek_word();
            if !is_identifier(word) {
                return self.expected("the name of a variable");
            }
            names.push((self.position, word));
            self.position += word.len();
            if self.take(close) {
                return Ok(names);
            }
            if !self.take(",") {
                return self.expected(&format!("',' or '{close}'"));
            }
        }
    }

    fn map(&mut self) -> Result<IndexingMap, ParseError> {
        if self.take_word("KNOWN") {
            if !self.take_word("EMPTY") {
                return self.expected("'EMPTY'");
            }
            return Ok(IndexingMap {
                constraints: vec![Constraint {
                    expr: self.ctx.constant(0),
                    interval: Interval::EMPTY,
                }],
                ..IndexingMap::default()
            });
        }
        let mut vars: HashMap<&str, Var> = HashMap::new();
        self.require("(")?;
        let dims = self.names(")")?;
        let dims = self.variables(&dims, Var::Dim, &mut vars)?;
        let mut ranges = Vec::new();
        if self.take("[") {
            let names = self.names("]")?;
            ranges = self.variables(&names, Var::Range, &mut vars)?;
        }
        let mut runtimes = Vec::new();
        if self.take("{") {
            let names = self.names("}")?;
            runtimes = self.variables(&names, Var::Runtime, &mut vars)?;
        }
        self.require("->")?;
        let resolve = |name: &str| vars.get(name).copied();
        let mut map = IndexingMap {
            dims,
            ranges,
            runtimes,
            results: self.results(&resolve)?,
            constraints: Vec::new(),
        };
        let before = self.position;
        if self.take(",") {
            if self.take_word("domain") && self.take(":") {
                self.domain(&mut map, &resolve)?;
            } else {
                self.position = before;
            }
        }
        map.sort_constraints(self.ctx);
        Ok(map)
    }

    fn variables(
        &self,
        names: &[(usize, &'a str)],
        make: fn(u32) -> Var,
        vars: &mut HashMap<&'a str, Var>,
    ) -> Result<Vec<Variable>, ParseError> {
        let mut variables = Vec::with_capacity(names.len());
        for (&(offset, name), number) in names.iter().zip(0..) {
            let var = make(number);
            if vars.insert(name, var).is_some() {
                return self.error(offset, format!("variable '{name}' is declared twice"));
            }
            let name = (name != default_name(var)).then(|| name.into());
            variables.push(Variable { name, ..Variable::default() });
        }
        Ok(variables)
    }

    fn results(&mut self, resolve: &dyn Fn(&str) -> Option<Var>) -> Result<Vec<Expr>, ParseError> {
        self.require("(")?;
        let mut results = Vec::new();
        if self.take(")") {
            return Ok(results);
        }
        loop {
            results.push(self.sum(resolve, 0)?);
            if self.take(")") {
                return Ok(results);
            }
            if !self.take(",") {
                return self.expected("',' or ')'");
            }
        }
    }

    fn domain(
        &mut self,
        map: &mut IndexingMap,
        resolve: &dyn Fn(&str) -> Option<Var>,
    ) -> Result<(), ParseError> {
        let mut bounded = HashSet::new();
        loop {
            let entry = self.entry(resolve, map)?;
            let first_of = self.ctx.as_var(entry.expr).filter(|&var| bounded.insert(var));
            match first_of.and_then(|var| map.variable_mut(var)) {
                Some(variable) => {
                    variable.lower = entry.lower;
                    variable.upper = entry.upper;
                }
                None => map.constraints.push(self.constraint(entry)?),
            }
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    fn entry(
        &mut self,
        resolve: &dyn Fn(&str) -> Option<Var>,
        map: &IndexingMap,
    ) -> Result<Entry, ParseError> {
        let expr = self.sum(resolve, 0)?;
        if !self.take_word("in") {
            return self.expected("'in'");
        }
        self.require("[")?;
        self.skip_space();
        let lower_offset = self.position;
        let lower = self.bound(resolve, "-inf", map)?;
        self.require(",")?;
        self.skip_space();
        let upper_offset = self.position;
        let upper = self.bound(resolve, "inf", map)?;
        self.require("]")?;
        Ok(Entry { expr, lower, lower_offset, upper, upper_offset })
    }

    /// The constraint that an entry is when it gives no bounds of a variable.
    fn constraint(&self, entry: Entry) -> Result<Constraint, ParseError> {
        let lo = self.constant_bound(entry.lower, entry.lower_offset, i64::MIN)?;
        let hi = self.constant_bound(entry.upper, entry.upper_offset, i64::MAX)?;
        Ok(Constraint { expr: entry.expr, interval: Interval::new(lo, hi) })
    }

    fn constraint_expression(
        &mut self,
        resolve: &dyn Fn(&str) -> Option<Var>,
    ) -> Result<ConstraintExpression, ParseError> {
        let before = self.position;
        if self.take_word("unsatisfiable") {
            return Ok(ConstraintExpression::unsatisfiable());
        }
        if self.take_word("always") && self.take_word("satisfied") {
            return Ok(ConstraintExpression::always_satisfied());
        }
        self.position = before;
        // The variables are those of no map, whose names a message could give.
        let map = IndexingMap::default();
        let mut conjunctions = vec![Vec::new()];
        loop {
            let entry = self.entry(resolve, &map)?;
            let constraint = self.constraint(entry)?;
            if let Some(conjunction) = conjunctions.last_mut() {
                conjunction.push(constraint);
            }
            if self.take("||") {
                conjunctions.push(Vec::new());
            } else if !self.take("&&") {
                return Ok(ConstraintExpression::new(conjunctions));
            }
        }
    }

    /// A bound, which may use runtime variables only.
    fn bound(
        &mut self,
        resolve: &dyn Fn(&str) -> Option<Var>,
        infinity: &str,
        map: &IndexingMap,
    ) -> Result<Bound, ParseError> {
        let before = self.position;
        let negative = self.take("-");
        if self.take_word("inf") {
            let sign = if negative { "-inf" } else { "inf" };
            if sign == infinity {
                return Ok(None);
            }
            let message = format!("expected '{infinity}' or an expression, found '{sign}'");
            return self.error(before, message);
        }
        self.position = before;
        let expr = self.sum(resolve, 0)?;
        let local = |var: &Var| !matches!(var, Var::Runtime(_));
        if let Some(var) = self.ctx.vars(expr).into_iter().find(local) {
            let name = map
                .variable(var)
                .and_then(|variable| variable.name.as_deref())
                .map_or_else(|| default_name(var), str::to_string);
            let message = format!("expected a bound over runtime variables, found '{name}' in it");
            return self.error(before, message);
        }
        Ok(Some(expr))
    }

    fn constant_bound(
        &self,
        bound: Bound,
        offset: usize,
        infinity: i64,
    ) -> Result<i64, ParseError> {
        let Some(bound) = bound else {
            return Ok(infinity);
        };
        match self.ctx.as_constant(bound) {
            Some(value) => Ok(value),
            None => self.error(
                offset,
                format!(
                    "expected a number as the bound of a constraint, found '{}'",
                    self.ctx.display(bound)
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        let ctx = Context::new();
        let error = IndexingMap::parse(&ctx, text).expect_err("the text is wrong");
        format!("{}: {}", error.offset, error.message)
    }

    #[test]
    fn symbolic_bounds_round_trip() {
        let text = "(m, n)[r_k]{M, K, N} -> (m, n), domain: m in [0, M - 1], n in [0, N - 1], \
                    r_k in [0, K - 1], M in [1, 2147483647]";
        let ctx = Context::new();
        let map = IndexingMap::parse(&ctx, text).expect("a map");
        assert_eq!(map.display(&ctx).to_string(), text);
        assert_eq!(map.interval(&ctx, Var::Dim(0)), Interval::new(0, 2147483646));
    }

    #[test]
    fn infinite_bounds_round_trip() {
        for text in [
            "(d0, d1, d2) -> (d0), domain: d0 in [0, inf], d1 in [-inf, 5], d0 + d1 in [-inf, 3]",
            "(d0) -> (d0), domain: d0 in [-inf, inf], d0 in [0, 5]",
        ] {
            let ctx = Context::new();
            let map = IndexingMap::parse(&ctx, text).expect("a map");
            assert_eq!(map.display(&ctx).to_string(), text);
        }
    }

    #[test]
    fn extreme_constants_round_trip() {
        for text in [
            "(d0) -> (d0 + -9223372036854775808)",
            "(d0) -> (d0 * -9223372036854775808, -9223372036854775808 * -1)",
            "(d0) -> (d0 - (d0 + 1) * 2, -(d0 / 2), -d0 / 2, d0 * (-d0))",
        ] {
            let ctx = Context::new();
            let map = IndexingMap::parse(&ctx, text).expect("a map");
            assert_eq!(map.display(&ctx).to_string(), text);
        }
    }

    #[test]
    fn errors_name_place_and_expectation() {
        assert_eq!(message(""), "0: expected '(', found the end");
        assert_eq!(message("(d0) (d0)"), "5: expected '->', found '('");
        assert_eq!(message("(d0 -> (d0)"), "4: expected ',' or ')', found '-'");
        assert_eq!(message("(d0) -> (d1)"), "9: expected a variable, found 'd1'");
        assert_eq!(message("(d0, d0) -> ()"), "5: variable 'd0' is declared twice");
        assert_eq!(
            message("(d0) -> (99999999999999999999)"),
            "9: expected a number of at most 64 bits, found '99999999999999999999'"
        );
        assert_eq!(
            message("(d0, d1) -> (d0), domain: d0 in [0, d1]"),
            "36: expected a bound over runtime variables, found 'd1' in it"
        );
        assert_eq!(
            message("(d0) -> (d0), domain: d0 in [inf, 5]"),
            "29: expected '-inf' or an expression, found 'inf'"
        );
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = "(".repeat(64 << 20);
        let ctx = Context::new();
        let error = parse_expr(&ctx, &deep, &|_| None).expect_err("too deep");
        assert_eq!(error.message, "expected at most 512 nested parentheses");
        assert!(IndexingMap::parse(&ctx, &format!("() -> {deep}")).is_err());
        let accepted = format!("{}5{}", "(".repeat(512), ")".repeat(512));
        assert!(parse_expr(&ctx, &accepted, &|_| None).is_ok());
    }

    #[test]
    fn long_sums_need_no_stack() {
        let ctx = Context::new();
        let mut sum = ctx.dim(0);
        for i in 1..200_000 {
            sum = ctx.add(sum, ctx.dim(i));
        }
        let text = ctx.display(sum).to_string();
        let resolve = |name: &str| name[1..].parse().ok().map(Var::Dim);
        assert_eq!(parse_expr(&ctx, &text, &resolve), Ok(sum));
    }

    #[test]
    fn clashing_names_are_told_apart() {
        let ctx = Context::new();
        let mut map = IndexingMap::identity(&ctx, &[2, 3, 4]);
        map.dims[0].name = Some("d1".into());
        map.dims[2].name = Some("a b".into());
        assert_eq!(
            map.display(&ctx).to_string(),
            "(d1, d1_0, d2) -> (d1, d1_0, d2), domain: d1 in [0, 1], d1_0 in [0, 2], d2 in [0, 3]"
        );
    }
}
