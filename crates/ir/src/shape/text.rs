//! The notation of shapes.
//!
//! Source: Axon, figure 1. `[a, 3]` is a list of dimensions, `@` appends, a name is a variable, `*` a
//! ragged dimension, and arithmetic is written before its operands: `(+ a 1)`. Arithmetic between its
//! operands, `2*(h - 1)`, is accepted as well; inside `(op ..)` the operands are single names,
//! numbers or parentheses. `#` starts a comment.
//!
//! The parser works at a place of a larger text and says where it stopped, so that a language can use
//! it for its annotations. It recurses for parentheses, [`MAX_NESTING`] deep.

use std::collections::HashMap;

use super::solve::Solver;
use super::{Arithmetic, Dim, DimError, DimOp, DimVar, Item, Shape, ShapeVar};
use crate::polynomial::Polynomial;

/// Deepest nesting of parentheses, and the most operators in a row.
pub const MAX_NESTING: u32 = 100;

/// A range of bytes of the text, end excluded.
pub type Place = std::ops::Range<usize>;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The spelling.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}

/// A dimension as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimExpr {
    /// A number.
    Number(i64),
    /// A variable.
    Name(Name),
    /// `*`
    Ragged,
    /// An operation.
    Op(DimOp, Box<DimExpr>, Box<DimExpr>),
}

/// A part of a shape as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A shape variable.
    Name(Name),
    /// A list of dimensions.
    Dims(Vec<DimExpr>),
}

/// A shape as it is written: parts with `@` between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeExpr {
    /// The parts.
    pub parts: Vec<Part>,
    /// Where it stands.
    pub place: Place,
}

/// Why a text is no shape, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What was found and what was expected.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Whether the text is refused for its size.
    pub limit: bool,
}

/// The shape that starts at a byte of the text, and where it ends.
///
/// # Errors
/// There is none, or it is nested too deeply.
pub fn shape_at(text: &str, offset: usize) -> Result<ShapeExpr, SyntaxError> {
    let mut parser = Parser { text, position: offset, depth: 0 };
    parser.shape()
}

/// The dimension that starts at a byte of the text, and where it ends.
///
/// # Errors
/// There is none, or it is nested too deeply.
pub fn dim_at(text: &str, offset: usize) -> Result<(DimExpr, usize), SyntaxError> {
    let mut parser = Parser { text, position: offset, depth: 0 };
    let (dim, _) = parser.sum()?;
    Ok((dim, parser.position))
}

/// The shape that a text is.
///
/// # Errors
/// It is none.
pub fn parse_shape(text: &str) -> Result<ShapeExpr, SyntaxError> {
    let shape = shape_at(text, 0)?;
    Parser { text, position: shape.place.end, depth: 0 }.end("'@' or the end of the shape")?;
    Ok(shape)
}

/// The dimension that a text is.
///
/// # Errors
/// It is none.
pub fn parse_dim(text: &str) -> Result<DimExpr, SyntaxError> {
    let (dim, position) = dim_at(text, 0)?;
    Parser { text, position, depth: 0 }.end("an operator or the end of the dimension")?;
    Ok(dim)
}

struct Parser<'t> {
    text: &'t str,
    /// After the last token.
    position: usize,
    depth: u32,
}

type Parsed<T> = Result<T, SyntaxError>;

/// A dimension and the height of its tree.
type Tree = (DimExpr, u32);

impl Parser<'_> {
    /// The offset of the next token.
    fn next(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = self.position;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => at += 1,
                b'#' => {
                    let line = bytes[at..].iter().position(|&byte| byte == b'\n');
                    at = line.map_or(bytes.len(), |length| at + length);
                }
                _ => break,
            }
        }
        at
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.next()).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.position = self.next() + 1;
        }
        found
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        let at = self.next();
        match self.text.get(at..).and_then(|rest| rest.chars().next()) {
            None => SyntaxError {
                message: format!("expected {expected}, found the end of the text"),
                place: at..at,
                limit: false,
            },
            Some(found) => {
                let end = at + found.len_utf8().max(self.word_length(at));
                let word = match found.is_control() {
                    true => found.escape_default().to_string(),
                    false => self.text[at..end].to_string(),
                };
                SyntaxError {
                    message: format!("expected {expected}, found '{word}'"),
                    place: at..end,
                    limit: false,
                }
            }
        }
    }

    /// The number of letters, digits and underscores from a byte on.
    fn word_length(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        rest.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count()
    }

    fn end(&self, expected: &str) -> Parsed<()> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn shape(&mut self) -> Parsed<ShapeExpr> {
        let start = self.next();
        let mut parts = vec![self.part()?];
        while self.eat(b'@') {
            parts.push(self.part()?);
        }
        Ok(ShapeExpr { parts, place: start..self.position })
    }

    fn part(&mut self) -> Parsed<Part> {
        if self.eat(b'[') {
            let mut dims = Vec::new();
            if self.eat(b']') {
                return Ok(Part::Dims(dims));
            }
            loop {
                dims.push(self.sum()?.0);
                if self.eat(b']') {
                    return Ok(Part::Dims(dims));
                }
                if !self.eat(b',') {
                    return Err(self.unexpected("',' or ']' after a dimension"));
                }
            }
        }
        match self.name() {
            Some(name) => Ok(Part::Name(name)),
            None => Err(self.unexpected("a shape, '[..]' or a name")),
        }
    }

    fn name(&mut self) -> Option<Name> {
        let start = self.next();
        let first = self.text.as_bytes().get(start)?;
        if !first.is_ascii_alphabetic() && *first != b'_' {
            return None;
        }
        self.position = start + self.word_length(start);
        let place = start..self.position;
        Some(Name { text: self.text[place.clone()].to_string(), place })
    }

    fn limited<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.check_height(self.depth + 1)?;
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn check_height(&self, height: u32) -> Parsed<()> {
        if height <= MAX_NESTING {
            return Ok(());
        }
        let at = self.next();
        Err(SyntaxError {
            message: format!("dimension is nested more than {MAX_NESTING} deep"),
            place: at..at + 1,
            limit: true,
        })
    }

    fn op(&mut self, ops: &[DimOp]) -> Option<DimOp> {
        let byte = self.peek()?;
        let op = ops.iter().find(|op| op.name().as_bytes() == [byte])?;
        self.position = self.next() + 1;
        Some(*op)
    }

    fn sum(&mut self) -> Parsed<Tree> {
        self.chain(&[DimOp::Add, DimOp::Sub], |parser| {
            parser.chain(&[DimOp::Mul, DimOp::Div], Self::primary)
        })
    }

    /// Operands with operators of one precedence between them.
    fn chain(
        &mut self,
        ops: &[DimOp],
        mut operand: impl FnMut(&mut Self) -> Parsed<Tree>,
    ) -> Parsed<Tree> {
        let mut tree = operand(self)?;
        while let Some(op) = self.op(ops) {
            let rhs = operand(self)?;
            tree = self.node(op, tree, rhs)?;
        }
        Ok(tree)
    }

    fn node(&self, op: DimOp, lhs: Tree, rhs: Tree) -> Parsed<Tree> {
        let height = 1 + lhs.1.max(rhs.1);
        self.check_height(height)?;
        Ok((DimExpr::Op(op, Box::new(lhs.0), Box::new(rhs.0)), height))
    }

    fn primary(&mut self) -> Parsed<Tree> {
        if self.eat(b'*') {
            return Ok((DimExpr::Ragged, 0));
        }
        if self.eat(b'(') {
            return self.limited(Self::parenthesis);
        }
        if let Some(name) = self.name() {
            return Ok((DimExpr::Name(name), 0));
        }
        let start = self.next();
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected("a dimension"));
        }
        let end = start + self.word_length(start);
        let digits = &self.text[start..end];
        let error = |message: String, limit| SyntaxError { message, place: start..end, limit };
        if digits.bytes().any(|byte| !byte.is_ascii_digit()) {
            return Err(error(format!("expected a dimension, found '{digits}'"), false));
        }
        self.position = end;
        match digits.parse() {
            Ok(value) => Ok((DimExpr::Number(value), 0)),
            Err(_) => Err(error(format!("size '{digits}' does not fit 64 bits"), true)),
        }
    }

    /// What follows `(`.
    fn parenthesis(&mut self) -> Parsed<Tree> {
        let before = self.position;
        let op = self.op(&[DimOp::Add, DimOp::Sub, DimOp::Mul, DimOp::Div]);
        if op == Some(DimOp::Mul) && self.peek() == Some(b')') {
            self.position = before;
        } else if let Some(op) = op {
            let lhs = self.primary()?;
            let rhs = self.primary()?;
            if !self.eat(b')') {
                return Err(self.unexpected("')' after two operands"));
            }
            return self.node(op, lhs, rhs);
        }
        let tree = self.sum()?;
        if self.eat(b')') { Ok(tree) } else { Err(self.unexpected("an operator or ')'")) }
    }
}

impl DimExpr {
    /// The canonical form, given what the names mean.
    ///
    /// # Errors
    /// A constant overflows, a divisor is zero, or the expression is too large.
    pub fn lower(
        &self,
        arithmetic: &Arithmetic,
        name: &mut dyn FnMut(&Name) -> Dim,
    ) -> Result<Dim, DimError> {
        Ok(match self {
            Self::Number(value) => Dim::Constant(*value),
            Self::Name(spelled) => name(spelled),
            Self::Ragged => Dim::Ragged,
            Self::Op(op, lhs, rhs) => {
                let lhs = lhs.lower(arithmetic, name)?;
                let rhs = rhs.lower(arithmetic, name)?;
                arithmetic.apply(*op, &lhs, &rhs)?
            }
        })
    }

    /// The names in it, in order.
    pub fn names<'e>(&'e self, found: &mut Vec<&'e Name>) {
        match self {
            Self::Number(_) | Self::Ragged => {}
            Self::Name(name) => found.push(name),
            Self::Op(_, lhs, rhs) => {
                lhs.names(found);
                rhs.names(found);
            }
        }
    }
}

/// The names of variables in texts of shapes. Dimensions and shapes have names of their own.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The shape variables.
    pub shapes: HashMap<String, ShapeVar>,
    /// The dimension variables.
    pub dims: HashMap<String, DimVar>,
}

/// Why a text does not give a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// It does not follow the grammar.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// It cannot be calculated.
    #[error(transparent)]
    Dim(#[from] DimError),
}

impl Names {
    /// The shape that a text is. New names become variables of the solver.
    ///
    /// # Errors
    /// The text is none, or a size in it cannot be calculated.
    pub fn shape(&mut self, solver: &mut Solver, text: &str) -> Result<Shape, TextError> {
        let mut items = Vec::new();
        for part in &parse_shape(text)?.parts {
            match part {
                Part::Name(name) => {
                    let var = self.shapes.entry(name.text.clone());
                    items.push(Item::Var(*var.or_insert_with(|| solver.shape_var(0))));
                }
                Part::Dims(dims) => {
                    for dim in dims {
                        items.push(Item::Dim(self.lower(solver, dim)?));
                    }
                }
            }
        }
        Ok(items.into_iter().collect())
    }

    /// The dimension that a text is. New names become variables of the solver.
    ///
    /// # Errors
    /// The text is none, or the size cannot be calculated.
    pub fn dim(&mut self, solver: &mut Solver, text: &str) -> Result<Dim, TextError> {
        Ok(self.lower(solver, &parse_dim(text)?)?)
    }

    fn lower(&mut self, solver: &mut Solver, dim: &DimExpr) -> Result<Dim, DimError> {
        let mut names = Vec::new();
        dim.names(&mut names);
        for name in names {
            self.dims.entry(name.text.clone()).or_insert_with(|| solver.dim_var(0));
        }
        dim.lower(solver.arithmetic(), &mut |name| Dim::Var(self.dims[&name.text]))
    }

    /// A shape as text, by these names; a variable without a name is `?` and its number.
    pub fn display_shape(&self, solver: &Solver, shape: &Shape) -> String {
        let name = |var: ShapeVar| {
            let found = self.shapes.iter().filter(|(_, other)| **other == var);
            found.map(|(name, _)| name.clone()).min().unwrap_or_else(|| format!("?{}", var.0))
        };
        shape_text(shape, &name, &|dim| self.display_dim(solver, dim))
    }

    /// A dimension as text, by these names; a variable without a name is `?` and its number.
    pub fn display_dim(&self, solver: &Solver, dim: &Dim) -> String {
        solver.arithmetic().dim_text(dim, &|var| {
            let found = self.dims.iter().filter(|(_, other)| **other == var);
            found.map(|(name, _)| name.clone()).min().unwrap_or_else(|| format!("?{}", var.0))
        })
    }
}

/// A shape as text, with `@` between lists and variables.
pub fn shape_text(
    shape: &Shape,
    name: &dyn Fn(ShapeVar) -> String,
    dim: &dyn Fn(&Dim) -> String,
) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut open = false;
    for item in &shape.items {
        match item {
            Item::Var(var) => {
                parts.push(name(*var));
                open = false;
            }
            Item::Dim(it) => {
                let text = dim(it);
                match parts.last_mut().filter(|_| open) {
                    Some(list) => *list += &format!(",{text}"),
                    None => parts.push(format!("[{text}")),
                }
                open = true;
            }
        }
    }
    for part in &mut parts {
        if part.starts_with('[') {
            part.push(']');
        }
    }
    if parts.is_empty() { "[]".to_string() } else { parts.join("@") }
}

/// The operands that are added, and those that are subtracted.
type Signed = (Vec<String>, Vec<String>);

impl Arithmetic {
    /// A dimension as text, with operators before their operands, variables ordered by name, and
    /// constants last.
    pub fn dim_text(&self, dim: &Dim, name: &dyn Fn(DimVar) -> String) -> String {
        match dim {
            Dim::Ragged => "*".to_string(),
            Dim::Constant(value) => value.to_string(),
            Dim::Var(var) => name(*var),
            Dim::Sum(sum) => self.sum_text(sum, name),
        }
    }

    fn sum_text(&self, sum: &Polynomial, name: &dyn Fn(DimVar) -> String) -> String {
        let nested = |op: &str, operands: Vec<String>| {
            operands.into_iter().reduce(|lhs, rhs| format!("({op} {lhs} {rhs})"))
        };
        if let Some((numerator, divisor)) = self.lone_division(sum) {
            return format!("(/ {} {divisor})", self.sum_text(&numerator, name));
        }
        let (mut plus, mut minus): Signed = Default::default();
        for (monomial, coefficient) in sum.terms() {
            let mut factors: Vec<String> =
                monomial.iter().map(|&atom| self.atom_text(atom, name)).collect();
            factors.sort();
            if coefficient.unsigned_abs() != 1 {
                factors.push(coefficient.unsigned_abs().to_string());
            }
            let text = nested("*", factors).unwrap_or_default();
            if 0 < coefficient { plus.push(text) } else { minus.push(text) }
        }
        plus.sort();
        minus.sort();
        match sum.constant_part() {
            0 => {}
            value if 0 < value => plus.push(value.to_string()),
            value => minus.push(value.unsigned_abs().to_string()),
        }
        let first = nested("+", plus).unwrap_or_else(|| "0".to_string());
        nested("-", std::iter::once(first).chain(minus).collect()).unwrap_or_default()
    }

    /// Numerator and divisor of a sum that is a division by a constant and a constant beside it, which
    /// is moved into the numerator.
    fn lone_division(&self, sum: &Polynomial) -> Option<(Polynomial, i64)> {
        let [numerator, divisor] = self.division(sum.single_atom()?).ok()??;
        let divisor = divisor.as_constant()?;
        let moved = sum.constant_part().checked_mul(divisor)?;
        Some((numerator.plus(moved).ok()?, divisor))
    }

    /// Recursion is as deep as divisions are nested, which the size of an expression limits.
    fn atom_text(&self, atom: crate::expr::Expr, name: &dyn Fn(DimVar) -> String) -> String {
        if let Some(var) = self.as_var(atom) {
            return name(var);
        }
        let Ok(Some(operands)) = self.division(atom) else { return "?".to_string() };
        let [lhs, rhs] = operands.map(|sum| match self.dim((*sum).clone()) {
            Ok(dim) => self.dim_text(&dim, name),
            Err(_) => self.sum_text(&sum, name),
        });
        format!("(/ {lhs} {rhs})")
    }
}
