//! The parser of expressions, maps and constraints: recursive descent.

use std::collections::{HashMap, HashSet};

use super::{KEYWORDS, MAX_NESTING, ParseError, default_name, is_identifier};
use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Var};
use crate::interval::Interval;
use crate::map::{Constraint, IndexingMap, Variable};

impl IndexingMap {
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
            } else if self.take_word("where") {
                self.conditions(&mut map, &resolve)?;
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

    /// Entries that are constraints, whatever they are on.
    fn conditions(
        &mut self,
        map: &mut IndexingMap,
        resolve: &dyn Fn(&str) -> Option<Var>,
    ) -> Result<(), ParseError> {
        let constant = |bound: Option<Expr>, infinity| match bound {
            Some(bound) => self.ctx.as_constant(bound),
            None => Some(infinity),
        };
        loop {
            let Entry { expr, lower, upper, .. } = self.entry(resolve, map)?;
            let ends = (constant(lower, i64::MIN), constant(upper, i64::MAX));
            if let (Some(lo), Some(hi)) = ends {
                map.constraints.push(Constraint { expr, interval: Interval::new(lo, hi) });
            } else {
                let above = lower.map(|lower| self.ctx.sub(expr, lower));
                let below = upper.map(|upper| self.ctx.sub(upper, expr));
                map.constraints.extend(above.into_iter().chain(below).map(|it| Constraint {
                    expr: self.ctx.canonicalize(it),
                    interval: Interval::NON_NEGATIVE,
                }));
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
