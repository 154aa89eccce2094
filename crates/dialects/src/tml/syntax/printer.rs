//! Writes a syntax tree as text that parses back to the same tree.

use super::ast::{Declaration, Expr, ExprKind, Program, Statement};
use crate::text::Name;
use std::fmt;

fn numbers(names: &[Name]) -> String {
    names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.declarations.iter().try_for_each(|it| writeln!(formatter, "{it}"))?;
        self.statements.iter().try_for_each(|it| writeln!(formatter, "{it}"))
    }
}

impl fmt::Display for Declaration {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        if let Some(qualifier) = self.qualifier {
            write!(formatter, "{} ", qualifier.name())?;
        }
        write!(formatter, "var {} : ", self.name.text)?;
        if let Some(element) = self.element {
            write!(formatter, "{} ", element.name())?;
        }
        write!(formatter, "[{}]", numbers(&self.extents))
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} = {}", self.target.text, self.value)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match &self.kind {
            ExprKind::Variable(name) => write!(formatter, "{name}"),
            ExprKind::Paren(inner) => write!(formatter, "({inner})"),
            ExprKind::Binary { op, lhs, rhs } => write!(formatter, "{lhs} {} {rhs}", op.name()),
            ExprKind::Contract { operand, pairs } => {
                let pairs: Vec<_> = pairs.iter().map(|pair| numbers(pair)).collect();
                write!(formatter, "{operand} . [{}]", pairs.join(", "))
            }
            ExprKind::Transpose { operand, entries } => {
                write!(formatter, "{operand} ^ [{}]", numbers(entries))
            }
        }
    }
}
