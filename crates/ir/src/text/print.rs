//! Expressions, maps and constraints as text.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::{MAX_PRINTED_COST, default_name, is_identifier};
use crate::constraint_expression::ConstraintExpression;
use crate::expr::{Context, Expr, Node, Var};
use crate::map::{IndexingMap, Variable};

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

    /// An expression with the names of the map's variables.
    pub fn expr(&self, expr: Expr) -> impl fmt::Display {
        self.ctx.display_with(expr, |var| self.name(var))
    }

    /// The variables: `(d0, d1)[s0]{rt0}`.
    pub fn space(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            self.variables(f, ["(", ")"], self.map.dims.len(), Var::Dim)?;
            if !self.map.ranges.is_empty() {
                self.variables(f, ["[", "]"], self.map.ranges.len(), Var::Range)?;
            }
            if !self.map.runtimes.is_empty() {
                self.variables(f, ["{", "}"], self.map.runtimes.len(), Var::Runtime)?;
            }
            Ok(())
        })
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

    /// The entries of the domain: bounds, then constraints.
    pub fn domain(&self) -> Vec<String> {
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
        let has_variables = self.map.vars().next().is_some();
        if self.map.is_known_empty(self.ctx) && !(f.alternate() && has_variables) {
            return f.write_str("KNOWN EMPTY");
        }
        write!(f, "{} -> (", self.space())?;
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
    /// The names that the variables are printed with: dimensions, then ranges, then runtime variables. A name
    /// that another one has, too, gets a number.
    pub fn variable_names(&self) -> Vec<String> {
        let mut taken = HashSet::new();
        let name = |(var, variable): (Var, &Variable)| {
            let given = variable.name.as_deref().filter(|name| is_identifier(name));
            let wanted = given.map_or_else(|| default_name(var), str::to_string);
            let mut name = wanted.clone();
            let mut suffix = 0_u32;
            while !taken.insert(name.clone()) {
                name = format!("{wanted}_{suffix}");
                suffix += 1;
            }
            name
        };
        self.vars().map(name).collect()
    }

    /// The map as text; see the [module](crate::text) text for the form.
    pub fn display<'a>(&'a self, ctx: &'a Context) -> MapDisplay<'a> {
        let names = self.vars().map(|(var, _)| var).zip(self.variable_names()).collect();
        MapDisplay { map: self, ctx, names }
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
}
