//! Queries that intervals and the [prover](crate::prove) decide on the whole domain.

use super::Simplifier;
use crate::expr::Expr;
use crate::prove::Verdict;

impl Simplifier<'_> {
    /// Whether `lhs <= rhs` is shown on the whole domain.
    pub(super) fn at_most(&mut self, lhs: Expr, rhs: Expr) -> bool {
        let (a, b) = (self.interval_of(lhs), self.interval_of(rhs));
        if a.le(b) == Some(true) {
            return true;
        }
        self.is_at_most(lhs, rhs).unwrap_or(false)
    }

    /// [`at_most`](Self::at_most) by the difference. `None` on overflow.
    fn is_at_most(&mut self, lhs: Expr, rhs: Expr) -> Option<bool> {
        let difference = self.sum_scaled(rhs, lhs, -1)?;
        if self.prover.is_some() || !self.known.is_empty() {
            let difference = self.write(&difference);
            return Some(self.is_non_negative(difference));
        }
        self.find_aliases(&difference);
        Some(0 <= self.interval_of_sum(&difference).lo)
    }

    /// Whether `expr >= 0` is shown on the whole domain.
    pub(super) fn is_non_negative(&mut self, expr: Expr) -> bool {
        let interval = self.interval_of(expr);
        if 0 <= interval.lo {
            return true;
        }
        0 <= interval.hi && self.ask(expr) == Verdict::Proved
    }

    /// Asks the prover whether `expr >= 0`, when symbolic bounds are involved: without them,
    /// intervals say nearly as much at once.
    pub(super) fn ask(&mut self, expr: Expr) -> Verdict {
        let Some(prover) = &self.prover else {
            return Verdict::Unknown;
        };
        if self.questions == 0 || self.symbolic.is_disjoint(&self.ctx.vars(expr)) {
            return Verdict::Unknown;
        }
        self.questions -= 1;
        prover.nonnegative(expr)
    }
}
