//! Turns a checked value into an index.
//!
//! Values of integers wrap in their width; indices of reads and bounds of ranges are computed in 64 bits
//! and never wrap. So a value that becomes an index is rebuilt in the wide type: implicit conversions
//! between integers fall away, and so do explicit ones that change no value; reads, other casts and
//! bools are converted as they are.

use super::super::checked::{ArithOp, Expr, ExprKind};
use super::super::types::{ScalarType, Type};
use crate::text::Span;

/// The value as an index. A float is truncated, which only the relaxed rules ask for.
pub(super) fn to_index(expr: Expr) -> Expr {
    let Some(scalar) = expr.ty.scalar() else {
        return expr;
    };
    let span = expr.span;
    if scalar == ScalarType::Bool {
        return cast(expr, span);
    }
    let kind = match expr.kind {
        // Truncation commutes with the lesser and the greater of two values, and of nothing else: a
        // clamp around a float stays visible to range inference.
        ExprKind::Arith { op: op @ (ArithOp::Min | ArithOp::Max), lhs, rhs } => {
            arith(op, *lhs, *rhs)
        }
        ExprKind::Select { condition, on_true, on_false } => {
            select(*condition, *on_true, *on_false)
        }
        ExprKind::Cast { value, explicit }
            if value.ty.scalar().is_none_or(|from| {
                from.is_integral() && (!explicit || preserves(from, scalar))
            }) =>
        {
            return to_index(*value);
        }
        kind if scalar.is_float() => return cast(Expr { kind, ..expr }, span),
        kind @ (ExprKind::Int(_)
        | ExprKind::Variable(_)
        | ExprKind::Size(_)
        | ExprKind::Extent { .. }
        | ExprKind::Let(_)) => kind,
        ExprKind::Neg(value) => ExprKind::Neg(boxed(*value)),
        ExprKind::Arith { op, lhs, rhs } => arith(op, *lhs, *rhs),
        kind => return cast(Expr { kind, ..expr }, span),
    };
    Expr { kind, ty: Type::Index, span }
}

/// Whether a conversion between integers changes no value, so that it may be left out of an index.
fn preserves(from: ScalarType, to: ScalarType) -> bool {
    from == to || from.width() < to.width() && (to.is_signed_integer() || !from.is_signed_integer())
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(to_index(expr))
}

fn arith(op: ArithOp, lhs: Expr, rhs: Expr) -> ExprKind {
    ExprKind::Arith { op, lhs: boxed(lhs), rhs: boxed(rhs) }
}

fn select(condition: Expr, on_true: Expr, on_false: Expr) -> ExprKind {
    ExprKind::Select {
        condition: Box::new(condition_of_index(condition)),
        on_true: boxed(on_true),
        on_false: boxed(on_false),
    }
}

/// A condition within an index: comparisons of integers are part of it and must not wrap either.
fn condition_of_index(expr: Expr) -> Expr {
    let inner = |expr: Box<Expr>| Box::new(condition_of_index(*expr));
    let kind = match expr.kind {
        ExprKind::Compare { op, lhs, rhs }
            if lhs.ty.scalar().is_some_and(|ty| ty.is_integral() && ty != ScalarType::Bool) =>
        {
            ExprKind::Compare { op, lhs: boxed(*lhs), rhs: boxed(*rhs) }
        }
        ExprKind::And(lhs, rhs) => ExprKind::And(inner(lhs), inner(rhs)),
        ExprKind::Or(lhs, rhs) => ExprKind::Or(inner(lhs), inner(rhs)),
        ExprKind::Not(value) => ExprKind::Not(inner(value)),
        kind => kind,
    };
    Expr { kind, ..expr }
}

fn cast(value: Expr, span: Span) -> Expr {
    Expr { kind: ExprKind::Cast { value: Box::new(value), explicit: false }, ty: Type::Index, span }
}
