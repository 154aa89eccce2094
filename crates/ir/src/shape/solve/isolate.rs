//! Solves residuals for one of their variables.
//!
//! `(* b 2) = (+ c d)` says what `d` is, but a size is positive: `d = (- (* b 2) c)` takes a condition, and which of `c`
//! and `d` is replaced would be a guess. Where it follows from the other conditions that the value is positive, as
//! from `c < b`, the equation says nothing else, and is solved.

use std::collections::HashSet;
use std::rc::Rc;

use super::sizes::{MAX_SIZE_WORK, have_sizes, is_about_sizes};
use super::sums::{content, divided};
use super::{EquationId, Reason, Relation, Solver, State};
use crate::expr::gcd;
use crate::shape::{Dim, DimOp, DimVar};

/// How many conditions are asked whether a value is positive.
const MAX_CONDITIONS: usize = 32;

impl Solver {
    /// Solves a residual for the newest of its variables that it gives a value which other conditions say is positive.
    pub(super) fn isolate(&mut self, id: EquationId) -> Result<(), Reason> {
        if self.equations[id as usize].state != State::Stuck || self.is_partial(id) {
            return Ok(());
        }
        let relation = self.resolved(&self.equations[id as usize].relation.clone());
        let Relation::Dims(left, right) = &relation else { return Ok(()) };
        let arithmetic = Rc::clone(&self.arithmetic);
        let (Some(a), Some(b)) = (arithmetic.polynomial(left), arithmetic.polynomial(right)) else {
            return Ok(());
        };
        let whole = a.sub(&b)?;
        let factor = gcd(content(&whole), whole.constant_part().unsigned_abs());
        let factor = i64::try_from(factor).unwrap_or(1).max(1);
        let constant = whole.constant_part() / factor;
        let difference = arithmetic.dim(divided(&whole, factor).plus(constant)?)?;
        let mut values = Vec::new();
        for var in arithmetic.vars(&difference).into_iter().rev() {
            if let Some((factor @ (1 | -1), rest)) = arithmetic.linear_in(&difference, var) {
                let value = arithmetic.apply(DimOp::Mul, &rest, &Dim::Constant(-factor))?;
                values.push((var, value));
            }
        }
        if values.is_empty() {
            return Ok(());
        }
        let mut seen = HashSet::new();
        let mut conditions = self.connected([id], &mut seen, MAX_CONDITIONS, true, is_about_sizes);
        conditions.remove(&id);
        // What contradicts the conditions is left to where they are looked at together.
        if !have_sizes(&arithmetic, conditions.values().chain([&relation]), MAX_SIZE_WORK) {
            return Ok(());
        }
        for (var, value) in values {
            if self.is_positive(var, &value, conditions.values())? {
                self.note("replacement", id, || Relation::Dims(Dim::Var(var), value.clone()));
                self.take_rule(id);
                self.equations[id as usize].state = State::Done;
                self.replace_dim(id, var, value);
                break;
            }
        }
        Ok(())
    }

    /// Whether the value of a variable is positive wherever conditions hold.
    fn is_positive<'r>(
        &self,
        var: DimVar,
        value: &Dim,
        conditions: impl Iterator<Item = &'r Relation>,
    ) -> Result<bool, Reason> {
        let replaced = |dim: &Dim| {
            let mut replacement = |it| (it == var).then(|| value.clone());
            self.arithmetic.substitute(dim, &mut replacement)
        };
        let no_more = self.arithmetic.apply(DimOp::Sub, &Dim::Constant(1), value)?;
        let mut all = vec![Relation::Positive(no_more)];
        for condition in conditions {
            all.push(match condition {
                Relation::Dims(a, b) => Relation::Dims(replaced(a)?, replaced(b)?),
                Relation::Positive(a) => Relation::Positive(replaced(a)?),
                other => other.clone(),
            });
        }
        Ok(!have_sizes(&self.arithmetic, all.iter(), MAX_SIZE_WORK))
    }
}
