//! Whether the domain of a map is empty.
//!
//! Bounds and constraints of single expressions are compared with their intervals by
//! [`simplify`](crate::simplify). What remains are constraints that contradict each other only
//! together. Linear ones, with quotients and remainders as further variables, contradict each other
//! over the rationals exactly when a linear program says so (Farkas' lemma); congruences of one
//! variable are put together by the Chinese remainder theorem. A domain in a small box is
//! enumerated, which decides.

use std::collections::{BTreeSet, HashMap};

use crate::congruence::{Congruence, Merged};
use crate::evaluator::{MapEvaluator, Values};
use crate::expr::{Context, Var};
use crate::map::IndexingMap;
use crate::prove::Prover;
use crate::samples::BoundingBox;

/// The most constraints that are put together while a map is simplified, which happens often.
const MAX_CONSTRAINTS: usize = 8;
/// The most linear programs that are spent on one simplification.
const NUM_QUICK_PROGRAMS: usize = 2;

/// Whether a domain is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Emptiness {
    /// It holds no point.
    Empty,
    /// It holds this point.
    Inhabited(Values),
    /// Neither is shown.
    Unknown,
}

impl IndexingMap {
    /// Whether the domain is empty; see the [module](crate::emptiness) text. Points where a bound or
    /// a constraint has no value do not belong to it.
    ///
    /// ```
    /// use tc_ir::{Context, Emptiness, IndexingMap};
    /// let ctx = Context::new();
    /// let text = "(d0, d1) -> (d0), domain: d0 in [0, 99999], d1 in [0, 99999], \
    ///             d0 + d1 in [0, 10], d0 - d1 in [20, 99]";
    /// assert_eq!(IndexingMap::parse(&ctx, text)?.emptiness(&ctx), Emptiness::Empty);
    /// # Ok::<(), tc_ir::ParseError>(())
    /// ```
    pub fn emptiness(&self, ctx: &Context) -> Emptiness {
        let mut evaluator = MapEvaluator::new(ctx, self);
        let mut samples = BoundingBox::around(ctx, &[self]).samples();
        if let Some(point) = samples.find(|point| evaluator.contains(point) == Ok(true)) {
            return Emptiness::Inhabited(point);
        }
        let is_empty = samples.are_all() || {
            let mut simplified = self.clone();
            simplified.simplify(ctx);
            simplified.is_known_empty(ctx)
                || simplified.has_contradictory_congruences(ctx)
                || Prover::for_domain(ctx, &simplified).contradicts_itself(usize::MAX)
        };
        if is_empty { Emptiness::Empty } else { Emptiness::Unknown }
    }

    /// Whether a few constraints contradict each other. A `false` leaves it open.
    pub(crate) fn is_contradictory(&self, ctx: &Context) -> bool {
        // One constraint and the bounds of its variables are what intervals are for.
        if !(2..=MAX_CONSTRAINTS).contains(&self.constraints.len()) {
            return false;
        }
        let mut vars = BTreeSet::new();
        let share = self.constraints.iter().any(|constraint| {
            ctx.vars(constraint.expr)
                .into_iter()
                .fold(false, |shared, var| !vars.insert(var) | shared)
        });
        share
            && (self.has_contradictory_congruences(ctx)
                || Prover::for_domain(ctx, self).contradicts_itself(NUM_QUICK_PROGRAMS))
    }

    fn has_contradictory_congruences(&self, ctx: &Context) -> bool {
        let mut merged: HashMap<Var, Congruence> = HashMap::new();
        for constraint in &self.constraints {
            let Some((var, congruence)) = Congruence::of(ctx, constraint) else { continue };
            let slot = merged.entry(var).or_insert(congruence);
            match slot.merge(congruence) {
                Merged::One(both) => *slot = both,
                Merged::Contradiction => return true,
                Merged::TooLarge => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simplify::simplified;

    #[test]
    fn contradictions_are_seen() {
        for constraints in [
            "d0 mod 8 in [45, 49]",
            "d0 + d1 in [0, 10], d0 - d1 in [20, 99]",
            "d0 + d1 in [0, 10], d1 + d2 in [90, 99], d2 - d0 in [0, 40]",
            "d0 - d1 in [1, 9], d1 - d2 in [1, 9], d2 - d0 in [1, 9]",
            "d0 mod 4 in [1, 1], d0 mod 6 in [0, 0]",
            "(d0 + 1) mod 4 in [0, 0], (d0 * 3) mod 8 in [4, 4]",
            "d0 / 4 - d1 in [3, 9], d0 - d1 * 4 in [0, 11]",
            "d0 * 2 + d1 * 4 in [3, 3]",
        ] {
            let domain = "domain: d0 in [0, 99999], d1 in [0, 99999], d2 in [0, 99999]";
            let text = format!("(d0, d1, d2) -> (d0), {domain}, {constraints}");
            assert_eq!(simplified(&text), "KNOWN EMPTY", "{constraints}");
        }
    }

    #[test]
    fn the_verdict_has_a_witness() {
        let ctx = Context::new();
        let verdict = |text: &str| IndexingMap::parse(&ctx, text).expect("a map").emptiness(&ctx);
        let point = Values { dims: vec![4], ..Values::default() };
        assert_eq!(
            verdict("(d0) -> (), domain: d0 in [0, 9], d0 mod 5 in [4, 4]"),
            Emptiness::Inhabited(point)
        );
        assert_eq!(
            verdict("(d0) -> (), domain: d0 in [0, 9], d0 mod 5 in [4, 4], d0 / 2 in [3, 3]"),
            Emptiness::Empty
        );
    }
}
