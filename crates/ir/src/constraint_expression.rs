//! Constraints in disjunctive normal form: some conjunction of a disjunction has to hold.
//!
//! A conjunction is what the domain of one [`IndexingMap`](crate::IndexingMap) can say. Where
//! alternatives arise, such as the tile sizes that an analysis allows, several are joined. The
//! notion and the text form follow XLA's `constraint_expression.h`. [`text`](crate::text) has the
//! grammar.
//!
//! ```
//! use tc_ir::{ConstraintExpression, Context, text::default_name, Var};
//! let ctx = Context::new();
//! let variable = |name: &str| name.strip_prefix('d')?.parse().ok().map(Var::Dim);
//! let parse = |text| ConstraintExpression::parse(&ctx, text, &variable).unwrap();
//! let both = parse("d0 in [0, 5] || d1 mod 8 in [0, 0]").and(&parse("d0 in [4, 9]"));
//! assert_eq!(
//!     both.display_with(&ctx, default_name).to_string(),
//!     "d0 in [4, 5] || d0 in [4, 9] && d1 mod 8 in [0, 0]"
//! );
//! ```

use std::collections::HashSet;

use crate::expr::{Context, EvalError, Var};
use crate::interval::Interval;
use crate::map::Constraint;

/// A disjunction of conjunctions of constraints; see the [module](self) text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstraintExpression {
    /// No conjunction is unsatisfiable; a conjunction of nothing always holds.
    conjunctions: Vec<Vec<Constraint>>,
}

impl ConstraintExpression {
    /// The disjunction of conjunctions, each given by its constraints. Constraints of one
    /// expression in a conjunction are intersected.
    pub fn new(conjunctions: Vec<Vec<Constraint>>) -> Self {
        Self { conjunctions: conjunctions.into_iter().map(intersected).collect() }
    }

    /// What holds everywhere.
    pub fn always_satisfied() -> Self {
        Self { conjunctions: vec![Vec::new()] }
    }

    /// What holds nowhere.
    pub fn unsatisfiable() -> Self {
        Self { conjunctions: Vec::new() }
    }

    /// The conjunctions, none of which holds where there is none.
    pub fn conjunctions(&self) -> &[Vec<Constraint>] {
        &self.conjunctions
    }

    /// Whether this is seen to hold everywhere. A `false` leaves it open.
    pub fn is_always_satisfied(&self) -> bool {
        self.conjunctions.iter().any(Vec::is_empty)
    }

    /// Whether this is seen to hold nowhere. A `false` leaves it open.
    pub fn is_unsatisfiable(&self) -> bool {
        self.conjunctions.is_empty()
    }

    /// What holds where `self` or `other` holds.
    pub fn or(&self, other: &Self) -> Self {
        if self.is_always_satisfied() || other.is_always_satisfied() {
            return Self::always_satisfied();
        }
        let conjunctions = self.conjunctions.iter().chain(&other.conjunctions).cloned().collect();
        Self { conjunctions }
    }

    /// What holds where `self` and `other` hold. It has as many conjunctions as there are pairs
    /// of one of each, except for those in which an expression has no value left.
    pub fn and(&self, other: &Self) -> Self {
        let pairs = self.conjunctions.iter().flat_map(|lhs| {
            other.conjunctions.iter().map(move |rhs| lhs.iter().chain(rhs).copied().collect())
        });
        let mut both = Self::new(pairs.collect());
        both.conjunctions.retain(|conjunction| !conjunction.iter().any(|c| c.interval.is_empty()));
        both
    }

    /// Whether this holds where `value_of` gives the variables.
    ///
    /// # Errors
    /// As [`Context::eval`].
    pub fn is_satisfied(
        &self,
        ctx: &Context,
        value_of: &dyn Fn(Var) -> Option<i64>,
    ) -> Result<bool, EvalError> {
        for conjunction in &self.conjunctions {
            let exprs: Vec<_> = conjunction.iter().map(|constraint| constraint.expr).collect();
            let values = ctx.eval_wide(&exprs, value_of)?;
            if conjunction.iter().zip(values).all(|(c, value)| c.interval.contains_wide(value)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Drops constraints that hold everywhere, conjunctions that hold nowhere whatever the
    /// variables are, and repeated conjunctions, and returns whether there were any. A
    /// conjunction that implies another one stays.
    pub fn simplify(&mut self, ctx: &Context) -> bool {
        let before = self.clone();
        let mut seen = HashSet::new();
        self.conjunctions.retain_mut(|conjunction| {
            let mut holds_somewhere = true;
            conjunction.retain(|constraint| {
                let values = ctx.interval_of(constraint.expr, &|_| Interval::ALL);
                holds_somewhere &= !values.intersect(constraint.interval).is_empty();
                !constraint.interval.covers(values)
            });
            let mut key: Vec<_> = conjunction.iter().map(|c| (c.expr, c.interval)).collect();
            key.sort_unstable();
            holds_somewhere && seen.insert(key)
        });
        if self.is_always_satisfied() {
            *self = Self::always_satisfied();
        }
        *self != before
    }
}

/// The constraints with those of one expression intersected, in the order of their first ones.
fn intersected(constraints: Vec<Constraint>) -> Vec<Constraint> {
    let mut result: Vec<Constraint> = Vec::with_capacity(constraints.len());
    for constraint in constraints {
        match result.iter_mut().find(|other| other.expr == constraint.expr) {
            Some(other) => other.interval = other.interval.intersect(constraint.interval),
            None => result.push(constraint),
        }
    }
    result
}
