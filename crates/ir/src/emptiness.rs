//! Whether the domain of a map is empty.
//!
//! Bounds and constraints of single expressions are compared with their intervals by
//! [`simplify`](crate::simplify). What remains are constraints that contradict each other only
//! together. Where they are sums of variables, of quotients and remainders by constants, of minima and
//! maxima, the domain is the set of integer points of a linear system, which is decided exactly
//! (`linear_domain`, `integer_program`). Otherwise a domain in a small box is enumerated, which decides,
//! and in a larger one a point is found among corners of the box and seeded random points, the
//! [prover](crate::prove) sees that products contradict each other, or branch and prune
//! (`search`) finds a point or that there is none.

use crate::evaluator::{MapEvaluator, Values};
use crate::expr::Context;
use crate::linear_domain::{LinearAnswer, LinearDomain};
use crate::map::{IndexingMap, Variable};
use crate::prove::Prover;
use crate::samples::BoundingBox;
use crate::search::search;

/// The terms of rows that are touched for one answer.
const MAX_WORK: usize = 1 << 22;
/// Those while a map is simplified, which happens often.
const MAX_QUICK_WORK: usize = 1 << 13;
/// The most constraints that are put together then.
const MAX_CONSTRAINTS: usize = 16;
/// The most linear programs that are spent on one simplification.
const NUM_QUICK_PROGRAMS: usize = 2;
/// How many points are tried first then.
const NUM_QUICK_POINTS: usize = 8;

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
        let mut domain = LinearDomain::new(ctx, self);
        match domain.solve(&mut { MAX_WORK }) {
            LinearAnswer::Empty => return Emptiness::Empty,
            LinearAnswer::Point(point) if evaluator.contains(&point) == Ok(true) => {
                return Emptiness::Inhabited(point);
            }
            LinearAnswer::Point(_) | LinearAnswer::Unknown => {}
        }
        let mut samples = BoundingBox::around(ctx, &[self]).samples();
        if let Some(point) = samples.find(|point| evaluator.contains(point) == Ok(true)) {
            return Emptiness::Inhabited(point);
        }
        let is_empty = samples.are_all() || {
            let mut simplified = self.clone();
            simplified.simplify(ctx);
            simplified.is_known_empty(ctx) || simplified.has_contradiction(ctx, usize::MAX)
        };
        if is_empty {
            return Emptiness::Empty;
        }
        let mut found = search(ctx, self, 1);
        match found.points.pop() {
            Some(point) => Emptiness::Inhabited(point),
            None if found.are_all => Emptiness::Empty,
            None => Emptiness::Unknown,
        }
    }

    /// Whether a few constraints are seen to contradict each other or the bounds without much work.
    /// A `false` leaves it open.
    pub(crate) fn is_contradictory(&self, ctx: &Context) -> bool {
        let is_symbolic = |variable: &Variable| variable.constant_interval(ctx).is_none();
        let has_questions = !self.constraints.is_empty() || self.vars().any(|it| is_symbolic(it.1));
        if !has_questions || MAX_CONSTRAINTS < self.constraints.len() {
            return false;
        }
        let mut evaluator = MapEvaluator::new(ctx, self);
        let mut samples = BoundingBox::around(ctx, &[self]).samples();
        for _ in 0..NUM_QUICK_POINTS {
            match samples.advance() {
                Some(point) if evaluator.contains(point) == Ok(true) => return false,
                Some(_) => {}
                None => break,
            }
        }
        let mut domain = LinearDomain::new(ctx, self);
        match domain.solve(&mut { MAX_QUICK_WORK }) {
            LinearAnswer::Empty => true,
            // Single constraints are for intervals, and with symbolic bounds for the simplifier's prover.
            _ => {
                !domain.is_linear()
                    && 1 < self.constraints.len()
                    && self.has_contradiction(ctx, NUM_QUICK_PROGRAMS)
            }
        }
    }

    /// Whether the prover shows a contradiction with so many linear programs.
    fn has_contradiction(&self, ctx: &Context, num_programs: usize) -> bool {
        // In a context of its own, since the order in which expressions are made decides what is tried first.
        let own = Context::new();
        Prover::for_domain(&own, &self.in_context(ctx, &own)).contradicts_itself(num_programs)
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
            "d0 + d1 in [7, 7], d0 - d1 in [0, 0]",
            "d0 - d1 * 2 in [0, 0], d0 mod 2 in [1, 1]",
            "d0 * 15 + d1 * 10 + d2 * 6 in [29, 29]",
            "d0 mod 6 in [1, 2], d0 mod 3 in [0, 0]",
            "max(d0, d1) - min(d0, d1) in [0, 1], d0 + d1 in [77, 77], d0 mod 5 in [0, 0]",
            "d0 * 1000 - d1 * 777 in [0, 0], d0 + d1 in [1, 1776]",
            "d0 mod 7 in [3, 4], d0 mod 11 in [9, 10], d0 in [11, 30]",
        ] {
            let domain = "domain: d0 in [0, 99999], d1 in [0, 99999], d2 in [0, 99999]";
            let text = format!("(d0, d1, d2) -> (d0), {domain}, {constraints}");
            assert_eq!(simplified(&text), "KNOWN EMPTY", "{constraints}");
        }
    }

    #[test]
    fn what_is_not_linear_is_searched() {
        let ctx = Context::new();
        let verdict = |constraint: &str| {
            let text =
                format!("(d0, d1) -> (), domain: d0 in [2, 500], d1 in [0, 999999], {constraint}");
            IndexingMap::parse(&ctx, &text).expect("a map").emptiness(&ctx)
        };
        // A prime and a product of two.
        assert_eq!(verdict("d0 * d1 in [999983, 999983]"), Emptiness::Empty);
        let point = Values { dims: vec![7, 142_861], ..Values::default() };
        assert_eq!(verdict("d0 * d1 in [1000027, 1000027]"), Emptiness::Inhabited(point));
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
