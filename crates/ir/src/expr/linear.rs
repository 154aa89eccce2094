//! Expressions as sums of multiples.

use std::collections::BinaryHeap;

use smallvec::SmallVec;

use super::{Context, Expr, Node, Var};
use crate::hash::FastMap;

impl Context {
    /// Splits `expr` into a sum of multiples and a constant,
    ///
    /// ```text
    /// expr == sum(coefficient * term) + constant
    /// ```
    ///
    /// each term once and neither a sum nor a multiple nor a constant.
    ///
    /// `None` when a coefficient leaves the 64-bit range. Shared sums are visited once.
    pub fn linear_terms(&self, expr: Expr) -> Option<LinearTerms> {
        if let Some(FewTerms { terms, constant }) = self.few_linear_terms(expr) {
            return Some(LinearTerms { terms: terms.into_vec(), constant });
        }
        let mut linear = self.many_addends(expr, &|_| false)?;
        linear.terms.sort_by(|a, b| self.compare(a.0, b.0));
        Some(linear)
    }

    /// What `expr` grows by when `var` grows by one, if that is the same everywhere.
    pub fn coefficient(&self, expr: Expr, var: Var) -> Option<i64> {
        let mut factor = 0;
        for (term, coefficient) in self.linear_terms(expr)?.terms {
            if self.as_var(term) == Some(var) {
                factor = coefficient;
            } else if self.vars(term).contains(&var) {
                return None;
            }
        }
        Some(factor)
    }

    /// The constant of [`linear_terms`](Self::linear_terms), and how many terms were looked at for it.
    pub(crate) fn constant_of_sum(&self, expr: Expr) -> Option<(i64, usize)> {
        if let Some(few) = self.few_addends(expr, &|_, _| Some(None)) {
            return Some((few.constant, few.terms.len()));
        }
        let many = self.many_addends(expr, &|_| false)?;
        Some((many.constant, many.terms.len()))
    }

    /// [`linear_terms`](Self::linear_terms) from the last made to the first, where sums and multiples in
    /// `expr` may be terms too.
    pub(crate) fn many_addends(
        &self,
        expr: Expr,
        is_term: &impl Fn(Expr) -> bool,
    ) -> Option<LinearTerms> {
        let root = expr;
        let mut coefficients: FastMap<Expr, i64> = FastMap::from_iter([(expr, 1)]);
        let mut heap = BinaryHeap::from([expr]);
        let mut linear = LinearTerms::default();
        // The largest handle has no users left, so its coefficient is final.
        while let Some(expr) = heap.pop() {
            let Some(coefficient) = coefficients.remove(&expr) else {
                continue;
            };
            if coefficient == 0 {
                continue;
            }
            let mut push = |operand: Expr, scale: i64| -> Option<()> {
                let added = coefficient.checked_mul(scale)?;
                let slot = coefficients.entry(operand).or_insert(0);
                *slot = slot.checked_add(added)?;
                heap.push(operand);
                Some(())
            };
            match self.node(expr) {
                _ if expr != root && is_term(expr) => linear.terms.push((expr, coefficient)),
                Node::Const(value) => {
                    linear.constant =
                        linear.constant.checked_add(coefficient.checked_mul(value)?)?;
                }
                Node::Add(lhs, rhs) => {
                    push(lhs, 1)?;
                    push(rhs, 1)?;
                }
                Node::Mul(operand, factor) => match self.as_constant(factor) {
                    Some(factor) => push(operand, factor)?,
                    None => linear.terms.push((expr, coefficient)),
                },
                _ => linear.terms.push((expr, coefficient)),
            }
        }
        Some(linear)
    }
}

/// The most sums and multiples that are taken apart without looking for shared ones.
const MAX_UNSHARED: usize = 1024;

/// [`LinearTerms`] of a small expression.
#[derive(Default)]
pub(crate) struct FewTerms {
    pub(crate) terms: SmallVec<[(Expr, i64); 8]>,
    pub(crate) constant: i64,
}

impl Context {
    /// [`linear_terms`](Self::linear_terms) for a small expression; `None` otherwise, and on
    /// overflow.
    pub(crate) fn few_linear_terms(&self, expr: Expr) -> Option<FewTerms> {
        self.few_linear_terms_of(expr, &|_, _| Some(None))
    }

    /// The linear terms of `expr` with some terms replaced by others, which `replaced` says; the
    /// replacements are taken apart too. `None` where `replaced` says so.
    pub(crate) fn few_linear_terms_of(
        &self,
        expr: Expr,
        replaced: &impl Fn(Expr, Node) -> Option<Option<Expr>>,
    ) -> Option<FewTerms> {
        let mut linear = self.few_addends(expr, replaced)?;
        linear.terms.sort_unstable_by(|a, b| self.compare(a.0, b.0));
        let mut kept: usize = 0;
        for place in 0..linear.terms.len() {
            let (term, coefficient) = linear.terms[place];
            match kept.checked_sub(1).map(|last| linear.terms[last]) {
                Some((last, sum)) if last == term => {
                    linear.terms[kept - 1].1 = sum.checked_add(coefficient)?;
                }
                _ => {
                    linear.terms[kept] = (term, coefficient);
                    kept += 1;
                }
            }
        }
        linear.terms.truncate(kept);
        linear.terms.retain(|&mut (_, coefficient)| coefficient != 0);
        Some(linear)
    }

    /// [`few_linear_terms_of`](Self::few_linear_terms_of), but equal terms are not put together.
    pub(crate) fn few_addends(
        &self,
        expr: Expr,
        replaced: &impl Fn(Expr, Node) -> Option<Option<Expr>>,
    ) -> Option<FewTerms> {
        let mut linear = FewTerms::default();
        // What comes next, and what comes after it.
        let mut next = Some((expr, 1, true));
        let mut stack: SmallVec<[(Expr, i64, bool); 8]> = SmallVec::new();
        let mut visits = 0;
        while let Some((expr, coefficient, is_given)) = next.take().or_else(|| stack.pop()) {
            visits += 1;
            if MAX_UNSHARED < visits {
                return None;
            }
            let node = self.node(expr);
            match node {
                Node::Const(value) => {
                    let value = coefficient.checked_mul(value)?;
                    linear.constant = linear.constant.checked_add(value)?;
                    continue;
                }
                Node::Add(lhs, rhs) => {
                    stack.push((rhs, coefficient, is_given));
                    next = Some((lhs, coefficient, is_given));
                    continue;
                }
                Node::Mul(operand, factor) => {
                    if let Some(factor) = self.as_constant(factor) {
                        next = Some((operand, coefficient.checked_mul(factor)?, is_given));
                        continue;
                    }
                }
                _ => {}
            }
            match if is_given { replaced(expr, node)? } else { None } {
                Some(new) => next = Some((new, coefficient, false)),
                None => linear.terms.push((expr, coefficient)),
            }
        }
        Some(linear)
    }
}

/// A sum of multiples of distinct terms and a constant; see [`Context::linear_terms`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinearTerms {
    /// Terms with their coefficients, none zero, in the order of [`Context::compare`].
    pub terms: Vec<(Expr, i64)>,
    /// The constant part.
    pub constant: i64,
}
