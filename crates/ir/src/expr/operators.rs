//! Arithmetic operators on expressions.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use super::{Context, Expr};

/// An expression together with its context, on which `+`, `-`, `*`, `/` and `%` build expressions.
///
/// The right operand is an [`Expr`] of the same context, an `ExprRef` or a number; the left
/// operand may be a number, too. `/` rounds towards minus infinity and `%` is the Euclidean
/// remainder, as in the text of maps. The operators fold constants as the functions of [`Context`]
/// do.
///
/// ```
/// use tc_ir::{Context, Expr};
/// let ctx = Context::new();
/// let (row, column) = (ctx.wrap(ctx.dim(0)), ctx.dim(1));
/// let index = row * 8 + column;
/// assert_eq!(index.to_string(), "d0 * 8 + d1");
/// assert_eq!(((index - 1) / 8 + index % 8).to_string(), "(d0 * 8 + d1 - 1) / 8 + (d0 * 8 + d1) mod 8");
/// assert_eq!((7 - row).max(0).min(column).to_string(), "min(max(-d0 + 7, 0), d1)");
///
/// let same: Expr = ctx.add(ctx.mul(ctx.dim(0), ctx.constant(8)), column);
/// assert_eq!(index.expr(), same);
/// ```
#[derive(Copy, Clone, Debug)]
pub struct ExprRef<'c> {
    ctx: &'c Context,
    expr: Expr,
}

/// An operand of the operators of [`ExprRef`].
pub trait IntoExpr {
    /// The operand as an expression of a context.
    fn into_expr(self, ctx: &Context) -> Expr;
}

impl IntoExpr for Expr {
    fn into_expr(self, _: &Context) -> Expr {
        self
    }
}

impl IntoExpr for i64 {
    fn into_expr(self, ctx: &Context) -> Expr {
        ctx.constant(self)
    }
}

impl IntoExpr for ExprRef<'_> {
    fn into_expr(self, _: &Context) -> Expr {
        self.expr
    }
}

impl Context {
    /// An expression of this context, or a constant, for arithmetic with operators.
    pub fn wrap(&self, operand: impl IntoExpr) -> ExprRef<'_> {
        ExprRef { ctx: self, expr: operand.into_expr(self) }
    }
}

impl<'c> ExprRef<'c> {
    /// The expression alone.
    pub fn expr(self) -> Expr {
        self.expr
    }

    /// The quotient rounded towards plus infinity.
    #[must_use]
    pub fn ceil_div(self, rhs: impl IntoExpr) -> Self {
        self.combine(rhs, Context::ceil_div)
    }

    /// The smaller of two expressions.
    #[must_use]
    pub fn min(self, rhs: impl IntoExpr) -> Self {
        self.combine(rhs, Context::min)
    }

    /// The larger of two expressions.
    #[must_use]
    pub fn max(self, rhs: impl IntoExpr) -> Self {
        self.combine(rhs, Context::max)
    }

    fn combine(self, rhs: impl IntoExpr, op: fn(&Context, Expr, Expr) -> Expr) -> Self {
        let expr = op(self.ctx, self.expr, rhs.into_expr(self.ctx));
        Self { ctx: self.ctx, expr }
    }
}

impl From<ExprRef<'_>> for Expr {
    fn from(term: ExprRef<'_>) -> Self {
        term.expr
    }
}

impl fmt::Display for ExprRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ctx.display(self.expr).fmt(formatter)
    }
}

impl Neg for ExprRef<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        Self { ctx: self.ctx, expr: self.ctx.neg(self.expr) }
    }
}

macro_rules! operators {
    ($($trait:ident $name:ident $function:ident;)*) => { $(
        impl<'c, R: IntoExpr> $trait<R> for ExprRef<'c> {
            type Output = ExprRef<'c>;

            fn $name(self, rhs: R) -> ExprRef<'c> {
                self.combine(rhs, Context::$function)
            }
        }

        impl<'c> $trait<ExprRef<'c>> for i64 {
            type Output = ExprRef<'c>;

            fn $name(self, rhs: ExprRef<'c>) -> ExprRef<'c> {
                rhs.ctx.wrap(self).combine(rhs, Context::$function)
            }
        }
    )* };
}

operators! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div floor_div;
    Rem rem modulo;
}

#[cfg(test)]
mod tests {
    use super::Context;

    #[test]
    fn operators_build_the_expressions_of_their_functions() {
        let ctx = Context::new();
        let (x, y, two) = (ctx.dim(0), ctx.runtime(0), ctx.constant(2));
        let term = ctx.wrap(x);
        assert_eq!((term + y).expr(), ctx.add(x, y));
        assert_eq!((term - 2).expr(), ctx.sub(x, two));
        assert_eq!((2 - term).expr(), ctx.sub(two, x));
        assert_eq!((term * ctx.wrap(y)).expr(), ctx.mul(x, y));
        assert_eq!((term / 2).expr(), ctx.floor_div(x, two));
        assert_eq!((2 % term).expr(), ctx.modulo(two, x));
        assert_eq!(term.ceil_div(y).expr(), ctx.ceil_div(x, y));
        assert_eq!((-term).expr(), ctx.neg(x));
        assert_eq!((ctx.wrap(3) * 4 + 1).expr(), ctx.constant(13));
    }
}
