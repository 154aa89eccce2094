//! Simplification over the linear (row-major) index of an element.
//!
//! After a reshape, several variables together are digits of one number: for `d0` in `[0, a - 1]` and
//! `d1` in `[0, b - 1]`, `x == d0*b + d1` is the row-major number of the element, `d0 == x floordiv b`
//! and `d1 == x mod b`. A chain of reshapes and transposes takes quotients and remainders of that
//! number, and of sums of these. In the variables, such sums have coefficients without common factors,
//! which hide what is equal; as quotients of one variable the terms have one order, and digits are
//! seen. So what stays complicated is simplified as an expression over the number, and is then written
//! in the variables again.
//!
//! Example: for `d0` in `[0, 11]` and `d1` in `[0, 69]`, `((d0*70 + d1) floordiv 45)*15 + (d0*10 + d1)
//! mod 15`, over the number `(x floordiv 45)*15 + x mod 15`, has the quotient `x floordiv 9720` by 3240.

use crate::expr::{Context, Expr, Node, Var};
use crate::interval::Interval;
use crate::map::{IndexingMap, Variable};

use super::Simplifier;

/// The fewest operators of what is complicated.
const MIN_COST: u32 = 4;
/// The most operators of what is simplified once more.
pub(super) const MAX_COST: u32 = 128;
/// The most variables that make up a number.
const MAX_VARS: usize = 8;

impl IndexingMap {
    /// The results, and the expressions of the constraints, that have quotients in each other.
    fn complicated<'a>(&'a self, ctx: &'a Context) -> impl Iterator<Item = Expr> + 'a {
        let exprs = self.results.iter().copied().chain(self.constraints.iter().map(|it| it.expr));
        exprs.filter(|&expr| is_complicated(ctx, expr))
    }

    /// Whether something has quotients in each other.
    pub(super) fn is_complicated(&self, ctx: &Context) -> bool {
        self.complicated(ctx).next().is_some()
    }

    /// Takes the results, and the constraints together, of the map simplified by number where these
    /// are not longer. Returns whether that changed something.
    pub(super) fn shorten_by_number(&mut self, ctx: &Context) -> bool {
        let Some(mut numbered) = self.simplified_by_number(ctx) else {
            return false;
        };
        if numbered.is_known_empty(ctx) {
            self.set_known_empty(ctx);
            return true;
        }
        let mut has_changed = false;
        for (own, new) in self.results.iter_mut().zip(&mut numbered.results) {
            if ctx.cost(*new) <= ctx.cost(*own) {
                has_changed |= new != own;
                *own = *new;
            }
            *new = *own;
        }
        let cost = |map: &IndexingMap| {
            map.constraints.iter().map(|it| ctx.cost(it.expr)).fold(0, u32::saturating_add)
        };
        if cost(&numbered) <= cost(self) {
            has_changed |= numbered != *self;
            *self = numbered;
        }
        has_changed
    }

    /// The map simplified over the number of those dimension variables that complicated expressions
    /// use. `None` where there is none, where these do not make up a number, where the expressions are
    /// huge, and on overflow.
    fn simplified_by_number(&self, ctx: &Context) -> Option<IndexingMap> {
        let exprs: Vec<Expr> = self.complicated(ctx).collect();
        if exprs.iter().any(|&expr| MAX_COST < ctx.cost(expr)) {
            return None;
        }
        let number = Var::Dim(u32::try_from(self.dims.len()).ok()?);
        let (x, mut size) = (ctx.var(number), 1_i64);
        let (mut whole, mut digits) = (ctx.constant(0), Vec::new());
        for var in ctx.vars_of_all(&exprs).into_iter().rev() {
            if let Var::Dim(_) = var
                && let Some(Interval { lo: 0, hi }) = self.variable(var)?.constant_interval(ctx)
                && let Some(extent) = hi.checked_add(1).filter(|&extent| 1 < extent)
            {
                let quotient = ctx.floor_div(x, ctx.constant(size));
                digits.push((var, ctx.modulo(quotient, ctx.constant(extent))));
                whole = ctx.add(ctx.mul(ctx.var(var), ctx.constant(size)), whole);
                size = size.checked_mul(extent)?;
            }
        }
        if !(2..=MAX_VARS).contains(&digits.len()) {
            return None;
        }
        let mut numbered = self.clone();
        numbered.substitute(ctx, &|var| {
            let digit = digits.iter().find(|&&(digit, _)| digit == var);
            digit.map(|&(_, digit)| digit)
        });
        let values = Interval::new(0, size - 1);
        numbered.dims.push(Variable::bounded(ctx, values));
        numbered.simplify_as_given(ctx);
        numbered.take_shortest(ctx);
        let left = numbered.dims.pop()?.constant_interval(ctx)?;
        numbered.substitute(ctx, &|var| (var == number).then_some(whole));
        if left != values {
            numbered.add_constraint(ctx, whole, left);
        }
        let mut simplified = numbered.clone();
        simplified.simplify_as_given(ctx);
        if simplified.is_known_empty(ctx) {
            return Some(simplified);
        }
        // What is shortest over the number is often shorter than the normal form in the variables.
        let mut simplifier = Simplifier::for_domain(ctx, &simplified);
        for (new, &old) in simplified.results.iter_mut().zip(&numbered.results) {
            let parts = simplifier.simplify_parts(old);
            if ctx.cost(parts) < ctx.cost(*new) {
                *new = parts;
            }
        }
        Some(simplified)
    }
}

/// Whether an expression has quotients or remainders in each other.
fn is_complicated(ctx: &Context, expr: Expr) -> bool {
    if ctx.cost(expr) < MIN_COST {
        return false;
    }
    let depth = ctx.fold_value(expr, |_, node, operands| match (node, operands) {
        (Node::FloorDiv(..) | Node::Mod(..), Some((&lhs, &rhs))) => u32::max(lhs, rhs) + 1,
        (_, Some((&lhs, &rhs))) => u32::max(lhs, rhs),
        _ => 0,
    });
    2 <= depth
}

#[cfg(test)]
mod tests {
    use crate::simplify::simplified;

    #[test]
    fn digits_of_a_number_are_seen_in_its_digits() {
        let domain = "domain: d0 in [0, 971], d1 in [0, 69]";
        let position = "((d0 * 70 + d1) / 45) * 15 + (d0 * 10 + d1) mod 15";
        let text =
            format!("(d0, d1) -> (({position}) / 3240, (({position}) / 135) mod 24), {domain}");
        assert_eq!(
            simplified(&text),
            format!("(d0, d1) -> ((d0 * 70 + d1) / 9720, ((d0 * 70 + d1) / 405) mod 24), {domain}")
        );
    }
}
