//! Writes a syntax tree as TC source text.
//!
//! The text parses back to the same tree, spans aside. Parentheses are written where the tree needs
//! them and nowhere else; comments are not part of the tree and are lost. The output uses the strict
//! spellings even for a program that was read with the relaxed ones.

use std::fmt::{self, Display, Formatter};

use super::ast::{
    Clause, Def, Dim, Equivalent, Expr, ExprKind, Param, Program, Statement, TensorType, UnaryOp,
};
use super::parser::LOCAL;
use crate::text::Name;

/// Binding strength of `? :`, weaker than every operator between two operands.
const SELECT: u8 = 0;
/// Binding strength of `-` and `!`.
const UNARY: u8 = 6;
/// Binding strength of what needs no parentheses anywhere.
const PRIMARY: u8 = 7;

/// Writes the elements with `, ` between them.
fn list<T: Display>(f: &mut Formatter<'_>, elements: &[T]) -> fmt::Result {
    for (position, element) in elements.iter().enumerate() {
        if 0 < position {
            f.write_str(", ")?;
        }
        element.fmt(f)?;
    }
    Ok(())
}

/// The same in parentheses, or nothing for an empty list.
fn optional_list<T: Display>(f: &mut Formatter<'_>, elements: &[T]) -> fmt::Result {
    if elements.is_empty() {
        return Ok(());
    }
    f.write_str("(")?;
    list(f, elements)?;
    f.write_str(")")
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, def) in self.defs.iter().enumerate() {
            if 0 < position {
                f.write_str("\n")?;
            }
            def.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Display for Def {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "def {}(", self.name)?;
        list(f, &self.inputs)?;
        f.write_str(") -> (")?;
        list(f, &self.outputs)?;
        f.write_str(") {\n")?;
        for statement in &self.statements {
            writeln!(f, "  {statement}")?;
        }
        f.write_str("}\n")
    }
}

impl Display for Param {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(ty) = &self.ty {
            write!(f, "{ty} ")?;
        }
        self.name.fmt(f)
    }
}

impl Display for TensorType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.scalar.fmt(f)?;
        optional_list(f, &self.dims)
    }
}

impl Display for Dim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(name) | Self::Number(name) => name.fmt(f),
        }
    }
}

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.local {
            write!(f, "{LOCAL} ")?;
        }
        self.target.fmt(f)?;
        optional_list(f, &self.indices)?;
        write!(f, " {} {}", self.assign.name(), self.value)?;
        if let Some(equivalent) = &self.equivalent {
            write!(f, " {equivalent}")?;
        }
        if !self.clauses.is_empty() {
            f.write_str(" where ")?;
            list(f, &self.clauses)?;
        }
        Ok(())
    }
}

impl Display for Equivalent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "<=> {}(", self.name)?;
        list(f, &self.args)?;
        f.write_str(")")
    }
}

impl Display for Clause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { variable, lower, upper } => write!(f, "{variable} in {lower}:{upper}"),
            Self::Let { name, value } => write!(f, "{name} = {value}"),
            Self::Exists(value) => write!(f, "exists {value}"),
        }
    }
}

impl Expr {
    fn strength(&self) -> u8 {
        match &self.kind {
            ExprKind::Select { .. } => SELECT,
            ExprKind::Binary { op, .. } => op.precedence().unwrap_or(PRIMARY),
            ExprKind::Unary { .. } => UNARY,
            _ => PRIMARY,
        }
    }

    /// Writes the expression, in parentheses if it binds weaker than its place asks for.
    fn write_at(&self, f: &mut Formatter<'_>, least: u8) -> fmt::Result {
        if self.strength() < least {
            f.write_str("(")?;
            self.fmt(f)?;
            f.write_str(")")
        } else {
            self.fmt(f)
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Number(text) | ExprKind::Name(text) => f.write_str(text),
            ExprKind::Bool(value) => value.fmt(f),
            ExprKind::Apply { name, args } => {
                write!(f, "{name}(")?;
                list(f, args)?;
                f.write_str(")")
            }
            ExprKind::Extent { tensor, dim } => write!(f, "{tensor}.{dim}"),
            ExprKind::Cast { ty, value } => write!(f, "{ty}({value})"),
            ExprKind::Unary { op, value } => {
                f.write_str(match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                })?;
                value.write_at(f, UNARY)
            }
            ExprKind::Binary { op, lhs, rhs } => match op.precedence() {
                None => write!(f, "{}({lhs}, {rhs})", op.name()),
                Some(precedence) => {
                    lhs.write_at(f, precedence)?;
                    write!(f, " {} ", op.name())?;
                    rhs.write_at(f, precedence + 1)
                }
            },
            ExprKind::Select { condition, on_true, on_false } => {
                condition.write_at(f, SELECT + 1)?;
                write!(f, " ? {on_true} : {on_false}")
            }
        }
    }
}
