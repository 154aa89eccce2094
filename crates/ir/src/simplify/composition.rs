//! Simplified compositions, without building the intermediate expressions.
//!
//! The normal form of `second(first(x))` follows from that of `second` with the normal forms of the
//! results of `first` in the place of its dimension variables. This saves building the composition,
//! and in chains of reshapes quotients and remainders of the same sum cancel at once.

use std::cell::Cell;

use super::flat::FlatForms;
use super::sum::Sum;
use super::{Simplifier, build};
use crate::expr::{Context, Expr, Node, Var};
use crate::map::{ConstantBounds, IndexingMap};

impl IndexingMap {
    /// Sets the results to those of another map, simplified, with the expressions `read` for its
    /// dimension variables. The bounds are constants, and there are no constraints. Returns whether the
    /// results are known to stay as they are when they are simplified again; `None`, and nothing
    /// happens, on overflow.
    pub(crate) fn set_composed(
        &mut self,
        ctx: &Context,
        bounds: ConstantBounds,
        results: &[Expr],
        read: &[Expr],
    ) -> Option<bool> {
        let mut composed = Vec::with_capacity(results.len());
        let mut flat: Option<Option<FlatForms<'_>>> = None;
        let (mut simplifier, mut is_settled) = (None, true);
        for &result in results {
            let sum = match ctx.node(result) {
                Node::Var(var) => {
                    let new = read_for(var, read).unwrap_or(result);
                    self.is_simple_sum(ctx, new, bounds).then_some(new)
                }
                Node::Add(..) | Node::Mul(..) => self.composed_sum(ctx, result, read, bounds),
                _ => None,
            };
            if let Some(sum) = sum {
                composed.push(sum);
                continue;
            }
            let forms = flat.get_or_insert_with(|| FlatForms::reading(ctx, self, read));
            let form = forms.as_mut().and_then(|forms| forms.expand(result));
            if let (Some(forms), Some(form)) = (&*forms, &form)
                && let Some(written) = forms.write(form)
                && is_short(ctx, written, result, read)
            {
                composed.push(written);
                continue;
            }
            let simplifier = simplifier.get_or_insert_with(|| Simplifier::for_map(ctx, self));
            let sum = match (forms, &form) {
                (Some(forms), Some(form)) => forms.sum_of(simplifier, form),
                _ => None,
            };
            let (simplified, stays) = simplifier.simplify_composed(result, read, sum)?;
            is_settled &= stays;
            composed.push(simplified);
        }
        self.results = composed;
        Some(is_settled)
    }

    /// A sum of multiples of variables with sums of multiples of variables for some of them; `None`
    /// for others, where one of the variables has a single value, and where collecting makes it
    /// longer.
    fn composed_sum(
        &self,
        ctx: &Context,
        expr: Expr,
        read: &[Expr],
        bounds: ConstantBounds,
    ) -> Option<Expr> {
        let cost = Cell::new(ctx.cost(expr));
        let mut linear = ctx.few_linear_terms_of(expr, &|_, node| match node {
            Node::Var(var) => {
                let new = read_for(var, read);
                cost.set(cost.get().saturating_add(new.map_or(0, |new| ctx.cost(new))));
                Some(new)
            }
            _ => None,
        })?;
        let are_free = linear
            .terms
            .iter()
            .all(|&(term, _)| ctx.as_var(term).is_some_and(|var| self.is_free(ctx, var, bounds)));
        if !are_free {
            return None;
        }
        let sum = build(ctx, &mut linear.terms, linear.constant);
        (ctx.cost(sum) <= cost.get()).then_some(sum)
    }
}

/// What is read in the place of a variable, if it is a dimension variable.
#[inline]
fn read_for(var: Var, read: &[Expr]) -> Option<Expr> {
    match var {
        Var::Dim(i) => read.get(i as usize).copied(),
        _ => None,
    }
}

/// Whether an expression has no more operators than `expr` with the expressions `read` for the
/// dimension variables.
fn is_short(ctx: &Context, written: Expr, expr: Expr, read: &[Expr]) -> bool {
    let cost = ctx.cost(written);
    cost <= ctx.cost(expr) || cost <= composed_cost(ctx, expr, read)
}

impl Simplifier<'_> {
    /// The simplified form of `expr` with the expressions `read` for the dimension variables, and
    /// whether that is known to stay as it is. `sum` is its normal form, where that is known. `None`
    /// on overflow.
    fn simplify_composed(
        &mut self,
        expr: Expr,
        read: &[Expr],
        sum: Option<Sum>,
    ) -> Option<(Expr, bool)> {
        let ctx = self.ctx;
        let sum = match sum {
            Some(sum) => sum,
            None => self.expand_composed(expr, read)?,
        };
        let written = self.write(&sum);
        if !self.is_wide && is_short(ctx, written, expr, read) {
            return Some((written, self.is_settled(&sum)));
        }
        let composed = ctx.substitute(expr, &|var| read_for(var, read));
        Some(self.simplify_once(composed))
    }
}

/// The number of operators of `expr` with the expressions `read` for the dimension variables.
fn composed_cost(ctx: &Context, expr: Expr, read: &[Expr]) -> u32 {
    let of_read = ctx.fold_value(expr, |_, node, operands| match (node, operands) {
        (_, Some((&lhs, &rhs))) => u32::saturating_add(lhs, rhs),
        (Node::Var(Var::Dim(i)), _) => read.get(i as usize).map_or(0, |&it| ctx.cost(it)),
        _ => 0,
    });
    of_read.saturating_add(ctx.cost(expr))
}
